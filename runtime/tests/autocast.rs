//! `autocast`: which dtype each call of torch_xla's lists gives, and what it saves a loss from.
mod support;

use support::alone;
use xlazy::nn::functional::{CtcOptions, ctc_loss};
use xlazy::prelude::*;

type Call = fn(&Tensor, &Tensor) -> Tensor;

/// Of two matrices of 4 × 4.
const LOWER: &[(&str, Call)] = &[
    ("matmul", |x, y| x.matmul(y)),
    ("mm", |x, y| x.mm(y)),
    ("bmm", |x, y| x.unsqueeze(0).bmm(&y.unsqueeze(0))),
    ("addmm", |x, y| x.addmm(y, y)),
    ("addmm_with", |x, y| x.addmm_with(y, y, 2.0, 1.0)),
    ("addbmm", |x, y| x.addbmm(&y.unsqueeze(0), &y.unsqueeze(0))),
    ("baddbmm", |x, y| x.unsqueeze(0).baddbmm(&y.unsqueeze(0), &y.unsqueeze(0))),
    ("linear", |x, y| x.linear(y, Some(&y.select(0, 0)))),
    ("einsum", |x, y| einsum("ij,ij->ij", &[x, y])),
    ("conv1d", |x, y| x.unsqueeze(0).conv1d(&y.unsqueeze(-1), Some(&y.select(0, 0)), Default::default())),
    ("conv2d", |x, y| square(x).conv2d(&square(y), None, Default::default())),
    ("conv_transpose2d", |x, y| square(x).conv_transpose2d(&square(y), None, Default::default())),
    ("relu", |x, _| x.relu()),
    ("prelu", |x, y| x.prelu(&y.select(0, 0).narrow(0, 0, 1))),
    ("max_pool2d", |x, _| square(x).max_pool2d(2, Default::default())),
    ("nn::Linear", |x, _| nn::Linear::new(4, 2).forward(x)),
];

const FULL: &[(&str, Call)] = &[
    ("batch_norm", |x, _| {
        x.batch_norm(None, None, None, None, BatchNormOptions { training: true, ..Default::default() })
    }),
    ("batch_norm, evaluated", |x, y| {
        let (mean, var) = (y.select(0, 0), y.select(0, 1).square());
        x.batch_norm(Some(&mean), Some(&var), Some(&mean), Some(&var), Default::default())
    }),
    ("nn::BatchNorm2d", |x, _| nn::BatchNorm2d::new(1).forward(&square(x))),
    ("nn::InstanceNorm2d", |x, _| nn::InstanceNorm2d::new(1).forward(&square(x))),
    ("softmax", |x, _| x.softmax(-1)),
    ("log_softmax", |x, _| x.log_softmax(-1)),
    ("prod", |x, _| x.prod()),
    ("prod_dim", |x, _| x.prod_dim(0, false)),
    ("cdist", |x, y| x.cdist(y, 2.0)),
    ("trace", |x, _| x.trace()),
    ("quantile", |x, _| x.quantile(0.5)),
    ("nanquantile", |x, _| x.nanquantile(0.5)),
    ("grid_sample", |x, y| square(x).grid_sample(&y.reshape([1, 2, 4, 2]), Default::default())),
    ("reflection pad", |x, _| x.pad_mode([1, 1], PadMode::Reflect)),
    ("replication pad", |x, _| square(x).pad_mode([1, 1, 1, 1], PadMode::Replicate)),
    ("nn::ReflectionPad2d", |x, _| nn::ReflectionPad2d::new(1).forward(&square(x))),
    ("cholesky", |x, _| positive(x).cholesky(false)),
    ("cholesky_inverse", |x, _| x.cholesky_inverse(false)),
    ("cholesky_solve", |x, y| x.cholesky_solve(y, false)),
    ("inv", |x, _| x.inv()),
    ("pinv", |x, _| x.pinv(None, None)),
    ("solve", |x, y| x.solve(y)),
    ("lu_factor", |x, _| x.lu_factor(true).0),
    ("triangular_solve", |x, y| x.triangular_solve(y, true, false, false).0),
    ("solve_triangular", |x, y| x.solve_triangular(y, true, true, false)),
    ("qr", |x, _| x.qr(false).1),
    ("svd", |x, _| x.svd(false).1),
    ("svdvals", |x, _| x.svdvals()),
    ("eigh", |x, _| x.eigh(false).1),
    ("eigvalsh", |x, _| x.eigvalsh(false)),
    ("geqrf", |x, _| x.geqrf().0),
    ("householder_product", |x, y| x.householder_product(&y.select(0, 0))),
    ("ormqr", |x, y| x.ormqr(&y.select(0, 0), y, true, false)),
    ("rfft", |x, _| x.rfft(None, -1, Default::default()).abs()),
    ("fft2", |x, _| x.fft2((), (), Default::default()).abs()),
    ("polar", |x, y| x.polar(y).abs()),
    ("view_as_complex", |x, _| x.reshape([4, 2, 2]).view_as_complex().abs()),
    ("stft", |x, _| x.flatten().stft(4, Default::default()).abs()),
    ("mse_loss", |x, y| x.mse_loss(y, Reduction::Mean)),
    ("l1_loss", |x, y| x.l1_loss(y, Reduction::Mean)),
    ("smooth_l1_loss", |x, y| x.smooth_l1_loss(y, 1.0, Reduction::Mean)),
    ("huber_loss", |x, y| x.huber_loss(y, 1.0, Reduction::Mean)),
    ("binary_cross_entropy", |x, y| x.sigmoid().binary_cross_entropy(&y.sigmoid(), None, Reduction::Mean)),
    ("binary_cross_entropy_with_logits", |x, y| {
        x.binary_cross_entropy_with_logits(&y.sigmoid(), None, None, Reduction::Mean)
    }),
    ("kl_div", |x, y| x.kl_div(&y.sigmoid(), false, Reduction::Mean)),
    ("nll_loss", |x, _| x.nll_loss(&tensor([0, 1, 2, 3]), Default::default())),
    ("cross_entropy", |x, _| x.cross_entropy(&tensor([0, 1, 2, 3]), Default::default())),
    ("cross_entropy of probabilities", |x, y| x.cross_entropy(&y.sigmoid(), Default::default())),
    ("margin_ranking_loss", |x, y| x.margin_ranking_loss(y, &y.sign(), 0.1, Reduction::Mean)),
    ("soft_margin_loss", |x, y| x.soft_margin_loss(&y.sign(), Reduction::Mean)),
    ("hinge_embedding_loss", |x, y| x.hinge_embedding_loss(&y.sign(), 1.0, Reduction::Mean)),
    ("cosine_embedding_loss", |x, y| x.cosine_embedding_loss(y, &tensor([1, -1, 1, 1]), 0.1, Reduction::Mean)),
    ("poisson_nll_loss", |x, y| x.poisson_nll_loss(y, true, 1e-8, Reduction::Mean)),
    ("triplet_margin_loss", |x, y| x.triplet_margin_loss(y, &y.t(), 1.0, Reduction::Mean)),
    ("multi_margin_loss", |x, _| x.multi_margin_loss(&tensor([0, 1, 2, 3]), 1, 1.0, None, Reduction::Mean)),
    ("multilabel_margin_loss", |x, _| {
        x.multilabel_margin_loss(&tensor([1, -1, -1, -1]).expand([4, 4]), Reduction::Mean)
    }),
    ("ctc_loss", |x, _| {
        let (targets, lengths) = (tensor([[1, 2]]), [tensor([4]), tensor([2])]);
        ctc_loss(&x.unsqueeze(1), &targets, &lengths[0], &lengths[1], CtcOptions::default())
    }),
    ("nn::MSELoss", |x, y| nn::MSELoss::new().forward(x, y)),
];

/// In what they are given, though they lose something.
const AS_GIVEN: &[(&str, Call)] = &[
    ("add", |x, y| x + y),
    ("sum", |x, _| x.sum()),
    ("mean", |x, _| x.mean()),
    ("layer_norm", |x, _| x.layer_norm(4, None, None, 1e-5)),
    ("gelu", |x, _| x.gelu()),
    ("circular pad", |x, _| x.pad_mode([1, 1], PadMode::Circular)),
    ("max_pool1d", |x, _| x.unsqueeze(0).max_pool1d(2, Default::default())),
];

const PROMOTED: &[(&str, Call)] = &[
    ("cat", |x, y| cat(&[x, y], 0)),
    ("stack", |x, y| stack(&[x, y], 0)),
    ("index_copy", |x, y| x.index_copy(0, &tensor([1, 0, 2, 3]), y)),
];

fn square(x: &Tensor) -> Tensor {
    x.reshape([1, 1, 4, 4])
}

fn positive(x: &Tensor) -> Tensor {
    x * 0.01 + Tensor::eye(4).to(x.dtype())
}

fn matrices(dtype: DType) -> [Tensor; 2] {
    [0.37, 0.61].map(|f| Tensor::from_vec((0..16).map(|n| (n as f32 * f).sin()).collect(), [4, 4]).to(dtype))
}

#[test]
fn calls_give_the_dtype_of_their_list() {
    let _alone = alone();
    for small in [BF16, F16] {
        let mut wrong = Vec::new();
        let mut check = |list: &[(&str, Call)], from: [DType; 2], wanted: DType| {
            let [x, y] = [matrices(from[0])[0].clone(), matrices(from[1])[1].clone()];
            for (name, call) in list {
                let found = std::panic::catch_unwind(|| autocast(small, || call(&x, &y)).dtype());
                if found.as_ref().ok() != Some(&wanted) {
                    wrong.push(format!("{name} of {from:?} under {small:?}: {:?}, not {wanted:?}", found.ok()));
                }
            }
        };
        check(LOWER, [F32, F32], small);
        check(LOWER, [small, F32], small);
        check(FULL, [small, small], F32);
        check(FULL, [small, F32], F32);
        check(FULL, [F32, F32], F32);
        check(AS_GIVEN, [small, small], small);
        check(AS_GIVEN, [F32, F32], F32);
        check(PROMOTED, [small, small], small);
        check(PROMOTED, [small, F32], F32);
        check(PROMOTED, [F32, small], F32);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
    // float64 stays what it is, and so does everything behind the closure
    let [x, y] = matrices(F64);
    assert_eq!(
        autocast(BF16, || [x.matmul(&y).dtype(), x.mse_loss(&y, Reduction::Mean).dtype(), x.relu().dtype()]),
        [F64; 3]
    );
    let [x, y] = matrices(BF16);
    assert_eq!([x.matmul(&y).dtype(), x.mse_loss(&y, Reduction::Mean).dtype(), x.trace().dtype()], [BF16; 3]);
}

#[test]
fn a_loss_of_halves_is_that_of_their_values() {
    let _alone = alone();
    // 300² is beyond float16
    let (x, y) = (Tensor::full([8], 300.0).to(F16), Tensor::zeros([8]).to(F16));
    assert_eq!(autocast(F16, || x.mse_loss(&y, Reduction::Mean)).item(), 90_000.0);
    for small in [BF16, F16] {
        let x = Tensor::from_vec((0..64).map(|n| (n as f32 * 0.7).sin() * 6.0).collect(), [64]);
        let t = Tensor::from_vec((0..64).map(|n| (n % 3) as f32 / 2.0).collect(), [64]);
        let w = Tensor::from_vec((0..64).map(|n| 0.3 + (n % 5) as f32).collect(), [64]);
        // value and gradient, by what is called in `autocast` and by what is cast first
        let both = |f: &dyn Fn(&Tensor) -> Tensor, cast: bool| {
            let x = x.to(small).detach().requires_grad_(true);
            let loss = if cast { f(&x.float()) } else { autocast(small, || f(&x)) };
            loss.backward();
            (loss.item(), x.grad().unwrap().to_vec::<f32>())
        };
        let losses: [&dyn Fn(&Tensor) -> Tensor; 4] = [
            &|x| x.binary_cross_entropy_with_logits(&t, None, Some(&w), Reduction::Mean),
            &|x| x.smooth_l1_loss(&t, 1.0, Reduction::Sum),
            // the mean and the variance are taken of it, and it is scaled by them: three gradients that nearly cancel
            &|x| {
                let x = x.reshape([16, 4]);
                let options = BatchNormOptions { training: true, ..Default::default() };
                (x.batch_norm(None, None, None, None, options) * w.reshape([16, 4])).sum()
            },
            &|x| {
                x.reshape([16, 4]).cosine_embedding_loss(&t.reshape([16, 4]), &Tensor::ones([16]), 0.0, Reduction::Sum)
            },
        ];
        for (i, loss) in losses.iter().enumerate() {
            assert_eq!(both(loss, false), both(loss, true), "{i} in {small:?}");
        }
    }
}

#[test]
fn running_statistics_stay_float32() {
    let _alone = alone();
    let bn = nn::BatchNorm1d::new(4);
    let [x, _] = matrices(BF16);
    let y = autocast(BF16, || bn.forward(&x));
    let kept = nn::BatchNorm1d::new(4);
    let plain = kept.forward(&x.float());
    assert_eq!(y.to_vec::<f32>(), plain.to_vec::<f32>());
    assert_eq!(bn.running_var.to_vec::<f32>(), kept.running_var.to_vec::<f32>());
    assert_eq!((bn.running_mean.dtype(), bn.num_batches_tracked.item()), (F32, 1.0));
}
