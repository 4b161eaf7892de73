//! PyTorch's meaning where it is easy to differ in silence: NaN, empty tensors, ties, integers, halves. What torch refuses is
//! refused, with a message that says what to do.
mod support;

use support::{alone, refusal};
use xlazy::prelude::*;

fn gradient(x: &Tensor, f: impl Fn(&Tensor) -> Tensor) -> Vec<f32> {
    let x = x.detach().requires_grad_(true);
    grad(&f(&x).sum(), &[&x])[0].as_ref().expect("a gradient flows").to_vec()
}

#[test]
fn a_nan_is_the_extreme_wherever_it_is() {
    for n in [1usize, 3, 8, 64, 257] {
        for at in [0, n / 2, n - 1] {
            let mut values = vec![1.0f32; n];
            values[at] = f32::NAN;
            let x = Tensor::from_slice(&values, [n]);
            let found = [x.max(), x.min(), x.amax(0, false), x.amin(0, false), x.median(), x.max_dim(0, false).0];
            assert!(found.iter().all(|t| t.item().is_nan()), "{n} elements, NaN at {at}");
            let image = x.reshape([1, 1, 1, n]);
            assert!(image.max_pool2d([1, n], MaxPoolOptions::default()).item().is_nan(), "{n} elements, NaN at {at}");
        }
    }
}

#[test]
fn a_nan_wins_among_two_wherever_it_is() {
    let _alone = alone();
    for n in [1usize, 3, 8, 64, 257] {
        for at in [0, n / 2, n - 1] {
            let mut values = vec![1.0f32; n];
            values[at] = f32::NAN;
            let (x, y) = (Tensor::from_slice(&values, [n]), Tensor::ones([n]));
            let found = [
                x.maximum(&y),
                y.maximum(&x),
                x.minimum(&y),
                y.minimum(&x),
                y.clamp_min(&x),
                y.clamp(&x, 2.0),
                x.clamp(0.0, 2.0),
                x.clamp_min(&y),
                x.relu(),
                x.relu6(),
                x.hardswish(),
                x.softplus(),
                (&x * 2.0).maximum(&y * 3.0),
                (&y * 2.0).minimum(&x * 3.0),
                x.half().maximum(y.half()),
                y.half().minimum(x.half()),
            ];
            for (k, t) in found.iter().enumerate() {
                let nan: Vec<usize> = (0..n).filter(|&i| t.to(F32).to_vec::<f32>()[i].is_nan()).collect();
                assert_eq!(nan, [at], "{n} elements, NaN at {at}, call {k}");
            }
        }
    }
}

#[test]
fn a_slope_at_a_nan_is_torchs() {
    let at = tensor([f32::NAN, 2.0]);
    assert_eq!(gradient(&at, |x| x.relu()), [1.0, 1.0]);
    assert_eq!(gradient(&at, |x| x.elu(1.0)), [1.0, 1.0]);
    assert_eq!(gradient(&at, |x| x.celu(1.0)), [1.0, 1.0]);
    assert_eq!(gradient(&at, |x| x.maximum(Tensor::ones([2]))), [1.0, 1.0]);
    let edge = tensor([0.0, 1.0, f32::INFINITY]);
    assert_eq!(gradient(&edge, |x| x.logit(None))[..2], [f32::INFINITY; 2]);
    assert_eq!(gradient(&edge, |x| x.huber_loss(&x.zeros_like(), 1.0, Reduction::None)), [0.0, 1.0, 1.0]);
    assert_eq!(gradient(&edge, |x| x.smooth_l1_loss(&x.zeros_like(), 1.0, Reduction::None)), [0.0, 1.0, 1.0]);
    assert_eq!(gradient(&tensor([0.0, 1.0]), |x| x.entr()), [f32::INFINITY, -1.0]);
    // of equals each has its part
    assert_eq!(gradient(&tensor([2.0, 2.0, 1.0]), |x| x.median()), [0.5, 0.5, 0.0]);
}

#[test]
fn floats_become_narrow_integers_as_in_torch() {
    let x = tensor([300.0, -1.0, -200.7, 70000.0]);
    assert_eq!(x.to(U8).to_vec::<u8>(), [44, 255, 56, 112]);
    assert_eq!(x.to(I8).to_vec::<i8>(), [44, -1, 56, 112]);
    assert_eq!(x.to(I16).to_vec::<i16>(), [300, -1, -200, 4464]);
    assert_eq!(x.double().to(U16).to_vec::<u16>(), [300, 65535, 65336, 4464]);
}

#[test]
fn floats_are_divided_and_rounded_down_by_their_rest() {
    let (a, b) = (tensor([1.0, 7.0, -7.0, 7.0, -1e-30, 0.0]), tensor([0.1, 2.0, 2.0, -2.0, 3.0, -5.0]));
    assert_eq!(a.floor_divide(&b).to_vec::<f32>(), [9.0, 3.0, -4.0, -4.0, -1.0, 0.0]);
    assert_eq!(tensor([1.0, -1.0]).floor_divide(0.0).to_vec::<f32>(), [f32::INFINITY, f32::NEG_INFINITY]);
}

/// torch.polygamma(n, [-0.5, -40.3, -1000.5]) for n from 1 to 3.
const POLYGAMMA: [[f64; 3]; 3] = [
    [8.934802200117687, 15.054905125605423, 9.868605400173438],
    [-0.82879664423432, 68.8369430742367, -9.980027473128604e-07],
    [193.40909103400242, 769.0208848947728, 194.81818206601082],
];

#[test]
fn polygamma_holds_far_left_of_0() {
    let x = Tensor::from_slice(&[-0.5f64, -40.3, -1000.5], [3]);
    let near = |y: Tensor, theirs: [f64; 3]| {
        for (a, b) in y.to_vec::<f64>().iter().zip(theirs) {
            assert!((a - b).abs() <= 1e-7 * b.abs().max(1.0), "{a}, torch has {b}");
        }
    };
    near(x.polygamma(1), POLYGAMMA[0]);
    near(x.polygamma(2), POLYGAMMA[1]);
    near(x.polygamma(3), POLYGAMMA[2]);
}

#[test]
fn the_gradient_of_an_extreme_goes_to_the_element_that_its_index_names() {
    let x = tensor([2.0, 3.0, 3.0]);
    assert_eq!(gradient(&x, |x| x.max_dim(0, false).0), [0.0, 1.0, 0.0]);
    // without an index equals share it
    assert_eq!(gradient(&x, |x| x.max()), [0.0, 0.5, 0.5]);
}

#[test]
fn gradients_where_a_formula_saturates_or_has_no_slope_are_torchs() {
    use Reduction::None as No;
    let check = |name: &str, f: &dyn Fn(&Tensor) -> Tensor, x: &[f32], expected: &[f64]| {
        let found = gradient(&Tensor::from_slice(x, [x.len()]), f);
        for (a, b) in found.iter().zip(expected) {
            let a = f64::from(*a);
            assert!((a - b).abs() <= 1e-6 + 2e-5 * b.abs(), "{name} at {x:?}: {found:?}, torch has {expected:?}");
        }
    };
    let target = tensor([0.0, 1.0, 0.0, 1.0, 0.5]);
    let b = [-200.0, -100.0, -50.0, 0.0, 50.0, 100.0, 200.0];
    let (z, o, r) = (Tensor::zeros([7]), Tensor::ones([7]), Tensor::arange(0.0, 7.0, 1.0));
    check(
        "bce",
        &|x| x.binary_cross_entropy(&target, None, No),
        &[0.0, 0.0, 1.0, 1.0, 0.5],
        &[0.0, -1000000000000.0, 1000000000000.0, 0.0, 0.0],
    );
    check(
        "bcel0",
        &|x| x.binary_cross_entropy_with_logits(&z, None, None, No),
        &b,
        &[0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.0],
    );
    check(
        "bcel1",
        &|x| x.binary_cross_entropy_with_logits(&o, None, None, No),
        &b,
        &[-1.0, -1.0, -1.0, -0.5, 0.0, 0.0, 0.0],
    );
    check(
        "bcelp",
        &|x| x.binary_cross_entropy_with_logits(&o, None, Some(&tensor(3.0)), No),
        &b,
        &[-3.0, -3.0, -3.0, -1.5, 0.0, 0.0, 0.0],
    );
    check("softplus", &|x| x.softplus(), &b, &[0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.0]);
    check("logsigmoid", &|x| x.logsigmoid(), &b, &[1.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0]);
    check("sigmoid", &|x| x.sigmoid(), &b, &[0.0, 0.0, 0.0, 0.25, 0.0, 0.0, 0.0]);
    check("tanh", &|x| x.tanh(), &b, &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    check("silu", &|x| x.silu(), &b, &[0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.0]);
    check("mish", &|x| x.mish(), &b, &[0.0, 0.0, 0.0, 0.6, 1.0, 1.0, 1.0]);
    check("gelut", &|x| x.gelu_tanh(), &b, &[0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.0]);
    check("elu", &|x| x.elu(1.0), &b, &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
    check("selu", &|x| x.selu(), &b, &[0.0, 0.0, 0.0, 1.7581, 1.0507, 1.0507, 1.0507]);
    check("celu", &|x| x.celu(1.0), &b, &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
    check(
        "softsign",
        &|x| x.softsign(),
        &b,
        &[2.47518e-05, 9.80292e-05, 0.000384469, 1.0, 0.000384469, 9.80292e-05, 2.47518e-05],
    );
    check("tanhshrink", &|x| x.tanhshrink(), &b, &[1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]);
    check("erf", &|x| x.erf(), &b, &[0.0, 0.0, 0.0, std::f64::consts::FRAC_2_SQRT_PI, 0.0, 0.0, 0.0]);
    check("expm1", &|x| x.abs().neg().expm1(), &b, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    check("logaddexp", &|x| x.logaddexp(&z), &b, &[0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.0]);
    check("softmax", &|x| x.softmax(0) * &r, &b, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    check("logsoftmax", &|x| x.log_softmax(0) * &r, &b, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, -15.0]);
    check("lse", &|x| x.logsumexp(0, false), &b, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    check("norm0", &|x| x.norm(), &[0.0, 0.0], &[0.0, 0.0]);
    check("std", &|x| x.std(), &[1.0, 1.0], &[0.0, 0.0]);
    check("cos", &|x| x.cosine_similarity(x, 0, 1e-8), &[0.0, 0.0], &[0.0, 0.0]);
    check("normalize", &|x| x.normalize(2.0, 0, 1e-12), &[0.0, 0.0], &[1000000000000.0, 1000000000000.0]);
    check("pow", &|x| x.pow(2.0), &[0.0, -1.0], &[0.0, -2.0]);
    check("pow.5", &|x| x.pow(0.5), &[4.0, 1.0], &[0.25, 0.5]);
    check("pow0", &|x| x.pow(0), &[0.0, 1.0], &[0.0, 0.0]);
    check("cdist", &|x| x.unsqueeze(0).cdist(&x.unsqueeze(0).detach(), 2.0), &[1.0, 1.0], &[0.0, 0.0]);
    check(
        "pairwise",
        &|x| x.unsqueeze(0).pairwise_distance(&x.unsqueeze(0), 2.0, 1e-6, false),
        &[1.0, 1.0],
        &[0.0, 0.0],
    );
    check("atan2", &|x| x.atan2(x * 0.0 + 1.0), &[0.0, 0.0], &[1.0, 1.0]);
    check("hypot", &|x| x.hypot(x), &[0.0, 1.0], &[0.0, std::f64::consts::SQRT_2]);
    check("kl", &|x| x.kl_div(&tensor([0.0, 1.0]), false, No), &[0.0, -1.0], &[0.0, -1.0]);
    check("xlogy", &|x| x.xlogy(x), &[0.0, 1.0], &[0.0, 1.0]);
    check("prod", &|x| x.prod(), &[0.0, 3.0, 0.0], &[0.0, 0.0, 0.0]);
    check("cumprod", &|x| x.cumprod(0), &[2.0, 0.0, 3.0], &[1.0, 8.0, 0.0]);
    check("abs", &|x| x.abs(), &[0.0, -1.0], &[0.0, -1.0]);
    check("sinc", &|x| x.sinc(), &[0.0, 1.0], &[0.0, -1.0]);
    check("logit", &|x| x.logit(Some(1e-6)), &[0.0, 1.0, 0.5], &[0.0, 0.0, 4.0]);
    check("var", &|x| x.var(), &[1.0, 1.0], &[0.0, 0.0]);
    check("logcumsumexp", &|x| x.logcumsumexp(0), &[-200.0, 0.0, 200.0], &[1.0, 1.0, 1.0]);
    let large = tensor([3e30, 0.0, f32::INFINITY]).hypot(&tensor([4e30, 0.0, 1.0]));
    assert_eq!(large.to_vec::<f32>(), [5e30, 0.0, f32::INFINITY]);
    // what was missed with certainty is finite, as well
    let x = tensor([0.0, 1.0]);
    assert_eq!(x.binary_cross_entropy(&tensor([1.0, 0.0]), None, No).to_vec::<f32>(), [100.0, 100.0]);
}

#[test]
fn a_nan_goes_through_what_compares_it() {
    let x = tensor([f32::NAN, -1.0, 0.0, 2.0]);
    let through =
        [x.hardshrink(0.5), x.softshrink(0.5), x.threshold(0.5, 1.0), x.relu(), x.hardtanh(-1.0, 1.0), x.elu(1.0)];
    assert!(through.iter().all(|y| y.select(0, 0).item().is_nan()));
    assert_eq!(x.softshrink(0.5).narrow(0, 1, 3).to_vec::<f32>(), [-0.5, 0.0, 1.5]);
    // torch's sign of it is 0, and so is the slope of its absolute value
    assert_eq!(x.sign().to_vec::<f32>(), [0.0, -1.0, 0.0, 1.0]);
    assert_eq!(gradient(&x, |x| x.abs()), [0.0, -1.0, 0.0, 1.0]);
}

#[test]
fn attention_and_bags_of_halves_are_rounded_once() {
    manual_seed(4);
    let draw = |n: i64| (Tensor::randn([2, n, 8]) * 8.0).to(BF16);
    let (q, k, v) = (draw(3), draw(6), draw(6));
    let y = q.scaled_dot_product_attention(&k, &v, Default::default());
    let exact = q.float().scaled_dot_product_attention(&k.float(), &v.float(), Default::default());
    assert_eq!(y.dtype(), BF16);
    assert_eq!(y.to_vec::<f32>(), exact.to(BF16).to_vec::<f32>());
    let words = draw(3).reshape([6, 8]);
    let ids = Tensor::arange(0, 60, 1).remainder(6).reshape([2, 30]);
    let (sum, exact) = [words.clone(), words.float()].map(|w| ids.embedding_bag(&w, Default::default())).into();
    assert_eq!(sum.to_vec::<f32>(), exact.to(BF16).to_vec::<f32>());
}

#[test]
fn what_has_no_elements() {
    let none = Tensor::zeros([0]);
    assert_eq!(cat(&[&Tensor::ones([2, 3]), &none], 1).shape(), [2, 3]);
    let a = Tensor::ones([2, 0]).requires_grad_(true);
    let b = Tensor::ones([0, 3]).requires_grad_(true);
    let both = grad(&a.matmul(&b).sum(), &[&a, &b]);
    assert_eq!(both[0].as_ref().unwrap().shape(), [2, 0]);
    assert_eq!(both[1].as_ref().unwrap().shape(), [0, 3]);
    let options = BatchNormOptions { training: true, ..Default::default() };
    assert_eq!(Tensor::ones([0, 3]).batch_norm(None, None, None, None, options).shape(), [0, 3]);
    assert!(refusal(|| Tensor::ones([2, 0]).amax(1, false)).contains("dimension 1 is empty"));
}

#[test]
fn gradients_at_zero_and_of_what_repeats() {
    let (x, index) = (tensor([2.0, 3.0]), tensor([0, 0]));
    // a slice is filled once, however often it is named
    assert_eq!(gradient(&tensor(1.0), |v| x.index_fill(0, &index, v)), [1.0]);
    let reduce = |x: &Tensor, src: &Tensor| x.scatter_reduce(0, &index, src, xlazy::ScatterReduce::Prod, true);
    let src = tensor([0.0, 5.0]);
    assert_eq!(gradient(&x, |x| reduce(x, &src)), [0.0, 1.0]);
    assert_eq!(gradient(&src, |src| reduce(&x, src)), [10.0, 0.0]);
}

#[test]
fn integers_stay_integers_or_are_refused() {
    let x = tensor([4, 7]);
    assert!(refusal(|| x.add_(1.5)).contains("cannot be put into a tensor of i64"));
    assert_eq!(x.to_vec::<i64>(), [4, 7]);
    assert!(refusal(|| x.floor_divide(0)).contains("divided by zero"));
    assert!(refusal(|| &x % 0).contains("divided by zero"));
    assert!(refusal(|| x.pow(-1)).contains("negative"));
    assert!(refusal(|| x.matmul(&tensor([1.0, 2.0]))).contains("dtypes differ"));
    assert!(refusal(|| x.std()).starts_with("std"));
}

#[test]
fn an_index_that_is_known_to_be_out_of_range_is_refused() {
    let x = tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    let (three, last) = (tensor([0, 3]), tensor([-1]));
    let calls: [&dyn Fn() -> Tensor; 8] = [
        &|| x.index_select(0, &three),
        &|| x.gather(0, &three.unsqueeze(0)),
        &|| x.i(&three),
        &|| three.embedding(&x),
        &|| x.take(&tensor([6])),
        &|| x.scatter_add(0, &three.unsqueeze(1), Tensor::ones([2, 1])),
        &|| x.index_add(0, &three, &Tensor::ones([2, 2])),
        &|| x.index_put(&[Some(&three)], 1.0, false),
    ];
    for (i, call) in calls.into_iter().enumerate() {
        assert!(refusal(call).contains("is out of bounds for dimension 0 with size"), "call {i}");
    }
    // what counts from the end is refused where torch refuses it
    assert!(refusal(|| x.index_select(0, &last)).contains("index -1 is out of bounds for dimension 0 with size 3"));
    assert_eq!(x.i(&last).to_vec::<f32>(), [5.0, 6.0]);
    let options = CrossEntropyOptions::default;
    assert!(refusal(|| x.cross_entropy(&tensor([0, 1, 2]), options())).contains("Target 2 is out of bounds"));
    assert!(x.cross_entropy(&tensor([0, 1, -100]), options()).item().is_finite());
    // a slice need not hold what the whole does
    assert_eq!(x.index_select(0, &three.i(..1)).shape(), [1, 2]);
}

#[test]
fn halves_are_computed_in_float32() {
    let x = tensor([-3.0f32, -0.51, 0.7, 2.0]);
    assert_eq!(x.bfloat16().gelu().to_vec::<f32>(), x.bfloat16().float().gelu().bfloat16().to_vec::<f32>());
    assert_eq!(Tensor::full([4], 300.0).half().norm().item(), 600.0);
    let flat = Tensor::full([1, 4], 2.0).half();
    let slope = gradient(&flat, |x| x.layer_norm(4, None, None, 1e-5).float() * tensor([1.0, 0.0, 0.0, 0.0]));
    assert!(slope.iter().all(|g| g.is_finite()));
}

#[test]
fn what_is_normalised_keeps_its_dtype() {
    let (x, number) = (Tensor::randn([2, 4, 3]).bfloat16(), Tensor::ones([4]));
    let each = Some(&number);
    let found = [
        x.layer_norm(3, Some(&Tensor::ones([3])), None, 1e-5),
        x.rms_norm(3, Some(&Tensor::ones([3])), 1e-5),
        x.group_norm(2, each, each, 1e-5),
        x.instance_norm(each, each, 1e-5),
        x.batch_norm(each, each, each, each, BatchNormOptions::default()),
        x.batch_norm(each, each, each, each, BatchNormOptions { training: true, ..Default::default() }),
    ];
    assert_eq!(found.each_ref().map(Tensor::dtype), [BF16; 6]);
}

#[test]
fn operands_are_promoted_before_either_is_computed_with() {
    let (small, large) = (tensor([0, 10, 250]).to(U8), tensor([1.0, 0.5, 2.0]));
    let near = |y: Tensor, theirs: &[f32]| {
        let ours = y.to_vec::<f32>();
        assert!(
            ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() <= 1e-4 * b.abs()),
            "{ours:?}, torch has {theirs:?}"
        );
    };
    near(small.xlogy(&large), &[0.0, -6.931_472, 173.286_8]);
    near(small.xlog1py(&large), &[0.0, 4.054_651, 274.653_06]);
    near(small.cosine_similarity(&large, 0, 1e-8), &[0.880_896]);
    near(small.copysign(-&large), &[-0.0, -10.0, -250.0]);
    // A target of another dtype does not widen the loss.
    assert_eq!(large.soft_margin_loss(&large.double(), Reduction::Mean).dtype(), F32);
}

/// What torch.special.zeta gives.
#[test]
fn zeta_left_of_0_has_the_terms_of_negative_numbers() {
    let x = tensor([6.0, 3.0, 2.0, 253.0, 249.0, 2.5, 2.0]);
    let y = x.zeta(tensor([-8.743_258, -8.743_258, -200.5, -3.670_944, -3.337_44, -1.5, -3.0])).to_vec::<f32>();
    let theirs = [3497.823, 57.030_98, 9.864_63, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::INFINITY];
    for (a, b) in y.iter().zip(theirs) {
        assert!(a == &b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-4 * b.abs(), "{y:?}, torch has {theirs:?}");
    }
}

#[test]
fn the_slope_of_a_half_taken_apart_is_torchs() {
    let x = tensor([6e-8, 65504.0, -3.0, 0.0]).half().requires_grad_(true);
    let slope = |weights: [f32; 4]| {
        let y = (x.frexp().0.float() * tensor(weights)).sum();
        grad(&y, &[&x])[0].as_ref().expect("a gradient flows").to_vec::<f32>()
    };
    assert_eq!(slope([1.0; 4]), [f32::INFINITY, 1.0 / 65536.0, 0.25, 1.0]);
    assert_eq!(slope([0.0; 4]), [0.0; 4]);
}

#[test]
fn smaller_meanings() {
    assert_eq!(tensor([1.0, -2.0]).copysign(-1.0).to_vec::<f32>(), [-1.0, -2.0]);
    assert_eq!(tensor([1.0, 3.0]).var_dim(0, 0.5, false).item() as f32, 2.0 / 1.5);
    let x = tensor([[1, 2, 3, 4]]);
    assert_eq!(x.pad_mode([2, -1], PadMode::Circular).to_vec::<i64>(), [2, 3, 1, 2, 3]);
    assert!(refusal(|| tensor(2.5).size(0)).contains("no dimension 0"));
    assert!(refusal(|| x.flip([0, 0])).contains("twice"));
}

#[test]
fn in_place_methods_change_the_tensor_and_keep_its_dtype() {
    let x = tensor([4.0, -9.0]);
    let same = x.clone();
    x.abs_().sqrt_().mul_(2.0);
    assert_eq!(same.to_vec::<f32>(), [4.0, 6.0]);
    let n = tensor([4, 9]);
    assert!(refusal(|| n.sqrt_()).contains("cannot be put into a tensor of i64"));
    assert_eq!(n.pow_(2).to_vec::<i64>(), [16, 81]);
    let leaf = tensor([1.0]).requires_grad_(true);
    assert!(refusal(|| leaf.exp_()).contains("no_grad"));
}

#[test]
fn what_is_told_a_size_reads_nothing_and_finds_the_same() {
    let _alone = alone();
    let x = Tensor::randint(0, 3, [4, 5]);
    sync();
    let reads = || xlazy::insight::events().len();
    let before = reads();
    let (all, some) = (x.nonzero_static(20, -1), x.nonzero_static(3, -1));
    let (more, fewer) = (x.masked_select_static(&x.gt(0), 20, -9), x.masked_select_static(&x.gt(0), 2, 0));
    let values = x.unique_static(5, 7);
    assert_eq!(reads(), before, "nothing was run for it");
    sync();
    let (places, chosen) = (x.nonzero().to_vec::<i64>(), x.masked_select(&x.gt(0)).to_vec::<i64>());
    let n = chosen.len();
    let padded = |mut v: Vec<i64>, with: i64, to: usize| {
        v.resize(to, with);
        v
    };
    assert_eq!(all.to_vec::<i64>(), padded(places.clone(), -1, 40));
    assert_eq!(some.to_vec::<i64>(), padded(places, -1, 6));
    assert_eq!(more.to_vec::<i64>(), padded(chosen.clone(), -9, 20));
    assert_eq!(fewer.to_vec::<i64>(), padded(chosen, 0, 2));
    assert_eq!(values.to_vec::<i64>(), padded(x.unique().to_vec::<i64>(), 7, 5));
    assert!(n > 0 && tensor(3).nonzero_static(2, 0).shape() == [2, 0]);
}

#[test]
fn a_mask_without_dimensions_is_about_an_axis_of_its_own() {
    let x = tensor([1.0, 2.0]);
    assert_eq!(x.i(tensor(true)).shape(), [1, 2]);
    assert_eq!(x.i(tensor(false)).shape(), [0, 2]);
    let one = tensor(3.0).copy();
    one.set_(one.lt(4.0), 5.0);
    assert_eq!((one.item(), one.i(one.gt(9.0)).shape().to_vec()), (5.0, vec![0]));
}

#[test]
fn what_has_no_order_is_not_ordered() {
    let _alone = alone();
    let z = tensor([1.0, 2.0]).complex(&tensor([0.0, -1.0]));
    let calls: [(&str, &dyn Fn() -> Tensor); 22] = [
        ("lt", &|| z.lt(1.0)),
        ("ge", &|| z.ge(1.0)),
        ("max", &|| z.max()),
        ("amin", &|| z.amin(0, false)),
        ("max_dim", &|| z.max_dim(0, false).0),
        ("argmax", &|| z.argmax()),
        ("maximum", &|| z.maximum(&z)),
        ("fmin", &|| z.fmin(&z)),
        ("clamp", &|| z.clamp(0.0, 1.0)),
        ("clamp", &|| z.clamp_min(0.0)),
        ("relu", &|| z.relu()),
        ("cummax", &|| z.cummax(0).0),
        ("floor", &|| z.floor()),
        ("round", &|| z.round()),
        ("trunc", &|| z.trunc()),
        ("frac", &|| z.frac()),
        ("sign", &|| z.sign()),
        ("signbit", &|| z.signbit()),
        ("isposinf", &|| z.isposinf()),
        ("floor_divide", &|| z.floor_divide(2.0)),
        ("remainder", &|| z.remainder(2.0)),
        ("heaviside", &|| z.heaviside(&z)),
    ];
    for (name, call) in calls {
        let said = refusal(|| drop(call()));
        assert!(said.contains("which have no order"), "{name}: {said}");
    }
}

#[test]
fn what_is_written_is_held_by_the_dtype_it_is_written_to() {
    let _alone = alone();
    let (x, mask, at) = (tensor([1, 2]), tensor([true, false]), tensor([0]));
    assert_eq!(x.masked_fill(&mask, -1.5).to_vec::<i64>(), [-1, 2]);
    assert_eq!(x.masked_fill(&mask, tensor(1.5)).to_vec::<i64>(), [1, 2]);
    assert_eq!(x.to(U8).masked_fill(&mask, -1).to_vec::<u8>(), [255, 2]);
    assert_eq!(mask.masked_fill(&mask, 2).to_vec::<bool>(), [true, false]);
    assert_eq!(tensor([1i64 << 60, 3]).masked_fill(&tensor([false, true]), 0.0).to_vec::<i64>(), [1 << 60, 0]);
    for said in [
        refusal(|| drop(x.to(U8).masked_fill(&mask, 300))),
        refusal(|| drop(x.masked_fill(&mask, f64::NAN))),
        refusal(|| drop(x.half().masked_fill(&mask, -1e9))),
        refusal(|| drop(x.to(I8).index_fill(0, &at, 1000))),
        refusal(|| drop(x.to(I8).scatter(0, &at, 1000))),
    ] {
        assert!(said.contains("cannot be converted to type") && said.contains("without overflow"), "{said}");
    }
    let half = tensor([1.5]);
    for said in [
        refusal(|| drop(x.scatter(0, &at, &half))),
        refusal(|| drop(x.scatter_add(0, &at, &half))),
        refusal(|| drop(x.index_put(&[Some(&at)], &half, false))),
        refusal(|| drop(x.index_add(0, &at, &half))),
        refusal(|| drop(x.index_copy(0, &at, &half))),
        refusal(|| drop(x.put(&at, &half, false))),
        refusal(|| drop(x.masked_scatter(&mask, &half))),
        refusal(|| drop(tensor([1.0]).index_add(0, &at, &half.double()))),
    ] {
        assert!(said.contains("cannot be written to a tensor of"), "{said}");
    }
    assert_eq!(tensor([1.0, 2.0]).index_add(0, &at, &tensor([3])).to_vec::<f32>(), [4.0, 2.0]);
    for said in [refusal(|| drop(1 - &mask)), refusal(|| drop(&x - &mask)), refusal(|| drop(&mask - 1.5))] {
        assert!(said.starts_with("sub(") && said.contains("logical_not()"), "{said}");
    }
}

#[test]
fn slopes_of_extremes_without_what_was_there_are_torchs() {
    let _alone = alone();
    for reduce in [ScatterReduce::Amax, ScatterReduce::Amin] {
        let [x, src] = [[1.0, 5.0, 5.0, 2.0], [5.0, 5.0, 1.0, 5.0]].map(|v| tensor(v).requires_grad_(true));
        let y = x.scatter_reduce(0, &tensor([1, 1, 0, 2]), &src, reduce, false);
        let both = grad(&(&y * tensor([1.0, 2.0, 3.0, 4.0])).sum(), &[&x, &src]);
        let [dx, ds] = [0, 1].map(|i| both[i].as_ref().unwrap().to_vec::<f32>());
        assert_eq!((y.to_vec::<f32>(), dx), (vec![1.0, 5.0, 5.0, 2.0], vec![0.0, 0.0, 0.0, 4.0]));
        // torch counts an equal of the tensor's own, though it is given nothing
        assert_eq!(ds, [2.0 / 3.0, 2.0 / 3.0, 0.5, 1.5]);
    }
    for dtype in [I8, I16, I32, I64, U8] {
        let (x, src) = (tensor([9, 9]).to(dtype), tensor([7, 3]).to(dtype));
        let of = |r| x.scatter_reduce(0, &tensor([0, 0]), &src, r, false).to(I64).to_vec::<i64>();
        assert_eq!((of(ScatterReduce::Amax), of(ScatterReduce::Amin)), (vec![7, 9], vec![3, 9]), "{dtype}");
    }
}

#[test]
fn incomplete_gamma_functions() {
    let _alone = alone();
    let a = tensor([1.0, 0.0, 2.0, -1.0, 1.0, 0.0, 100.0, 1e4, 0.5]).double();
    let x = tensor([1.0, 1.0, 0.0, 1.0, f64::INFINITY, 0.0, 120.0, 9900.0, 30.0]).double();
    let (p, q) = (a.igamma(&x).to_vec::<f64>(), a.igammac(&x).to_vec::<f64>());
    let nan = f64::NAN;
    let low = [0.632120558828558, 1.0, 0.0, nan, 1.0, nan, 0.9721362600793289, 0.1586511921823505, 0.9999999999999906];
    let high =
        [0.367879441171442, 0.0, 1.0, nan, 0.0, nan, 0.027863739920671086, 0.8413488078176495, 9.485737571073854e-15];
    for (ours, theirs) in p.iter().zip(low).chain(q.iter().zip(high)) {
        let close = (ours - theirs).abs() <= 1e-8 * theirs.abs() || ours.is_nan() && theirs.is_nan();
        assert!(close, "{ours} and {theirs}: {p:?} {q:?}");
    }
    let said = refusal(|| drop(grad(&a.requires_grad_(true).igamma(&x).sum(), &[&a])));
    assert!(said.contains("igamma") && said.contains("detach it"), "{said}");
    let y = tensor([2.0]);
    assert!((y.igamma_(1.0).item() - 0.264241).abs() < 1e-6);
}

#[test]
fn a_tensor_is_resized_in_place() {
    let _alone = alone();
    let x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let (same, row) = (x.clone(), x.i(0));
    x.resize_([2, 2]).add_(10.0);
    assert_eq!((same.to_vec::<f32>(), same.shape().to_vec()), (vec![11.0, 12.0, 13.0, 14.0], vec![2, 2]));
    assert_eq!(row.to_vec::<f32>(), [11.0, 12.0, 13.0], "a view keeps its shape and sees the write");
    assert_eq!(x.resize_as_(&tensor([0, 0])).to_vec::<f32>(), [11.0, 12.0]);
    assert!(refusal(|| drop(x.resize_(9))).contains("wants more"));
    assert!(refusal(|| drop(Tensor::ones([2, 3]).t().resize_(2))).contains("contiguous()"));
    assert!(refusal(|| drop(Tensor::ones([3]).requires_grad_(true).resize_(2))).contains("require grad"));
}

#[test]
fn the_complex_slope_of_acosh_is_torchs_left_of_0() {
    let _alone = alone();
    let z = tensor([-2.0, 2.0]).complex(&tensor([3.0, -0.5])).requires_grad_(true);
    let dz = grad(&z.acosh().view_as_real().sum(), &[&z]).remove(0).unwrap().view_as_real();
    // of conj(f') · (1 + i), f' = 1 / (sqrt(z - 1) sqrt(z + 1))
    let expected = [[-0.3757689595222473, 0.08870701491832733], [0.683417022228241, 0.3480127453804016]];
    assert!((dz - tensor(expected)).abs().max().item() < 1e-6);
}
