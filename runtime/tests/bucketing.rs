//! Bucketed dimensions: what changes in size inside a bucket compiles nothing and gives what the plain program gives.
mod support;

use support::{Seeded, alone, compiles, programs, refusal};
use xlazy::prelude::*;

fn rows(r: &mut Seeded, n: usize, width: usize) -> Tensor {
    Tensor::from_slice(&r.floats(n * width, 0.2, 1.5), [n, width])
}

#[track_caller]
fn near(what: &str, a: &Tensor, b: &Tensor) {
    assert_eq!(a.shape(), b.shape(), "{what}");
    let (a, b) = (a.to_vec::<f32>(), b.to_vec::<f32>());
    let near = |x: f32, y: f32| (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-6 + 1e-4 * x.abs().max(y.abs());
    if let Some((x, y)) = a.iter().zip(&b).find(|(x, y)| !near(**x, **y)) {
        panic!("{what}: {x} against {y}");
    }
}

#[test]
fn a_training_step_compiles_once_whatever_the_last_batch() {
    let _alone = alone();
    let mut r = Seeded(1);
    let (x, y) = (rows(&mut r, 83, 6), rows(&mut r, 83, 1));
    let train = |buckets: Option<[usize; 1]>| {
        manual_seed(3);
        let model = nn::Sequential::new((nn::Linear::new(6, 8), nn::ReLU, nn::Linear::new(8, 1)));
        let mut opt = optim::AdamW::new(model.parameters(), 0.01);
        let loader = data::DataLoader::new(data::TensorDataset::new([&x, &y]), 32);
        let (mut sizes, mut losses) = (Vec::new(), Vec::new());
        let compiled = compiles(|| {
            for _ in 0..3 {
                for [x, y] in &loader {
                    let pad = |t: &Tensor| buckets.map_or(t.clone(), |b| t.dynamic(0).buckets(b));
                    let (x, y) = (pad(&x), pad(&y));
                    let loss = model.forward(&x).mse_loss(&y, Reduction::Mean);
                    loss.backward();
                    opt.step();
                    opt.zero_grad();
                    sync();
                    sizes.push(x.shape()[0]);
                    losses.push(loss.item());
                }
            }
        });
        let weights: Vec<Tensor> = model.parameters().iter().map(Tensor::detach).collect();
        (compiled, sizes, losses, weights)
    };
    let (compiled, sizes, losses, weights) = train(Some([32]));
    assert_eq!((compiled, &sizes[..3]), (1, &[32, 32, 19][..]));
    let (compiled, plain_sizes, plain_losses, plain_weights) = train(None);
    assert_eq!((compiled, &plain_sizes), (2, &sizes));
    for (a, b) in losses.iter().zip(&plain_losses) {
        assert!((a - b).abs() < 1e-5, "{losses:?} {plain_losses:?}");
    }
    for (a, b) in weights.iter().zip(&plain_weights) {
        near("weights", a, b);
    }
}

#[test]
fn sequences_of_any_length_share_a_program() {
    let _alone = alone();
    let mut r = Seeded(2);
    let [table, q, k, v, out] = [(11, 8), (8, 8), (8, 8), (8, 8), (8, 11)]
        .map(|(n, m)| Tensor::from_slice(&r.floats(n * m, -0.5, 0.5), [n, m]).requires_grad_(true));
    let step = |words: &Tensor| {
        let x = words.embedding(&table);
        let options = AttentionOptions { is_causal: true, ..Default::default() };
        let y = x.matmul(&q).scaled_dot_product_attention(&x.matmul(&k), &x.matmul(&v), options);
        let logits = (x + y).layer_norm(8, None, None, 1e-5).matmul(&out);
        let loss = logits.reshape([-1, 11]).cross_entropy(&words.flatten(), Default::default());
        loss.backward();
        let mut results = vec![loss];
        for w in [&table, &q, &k, &v, &out] {
            results.push(w.grad().unwrap());
            w.set_grad(None);
        }
        sync();
        results
    };
    let lengths = [5, 8, 3, 1, 7, 12, 16, 9];
    let words: Vec<Vec<i64>> = lengths.iter().map(|&n| (0..n).map(|_| r.between(0, 10)).collect()).collect();
    let (mut bucketed, mut plain) = (Vec::new(), Vec::new());
    let sequence = |w: &Vec<i64>| Tensor::from_slice(w, [1, w.len()]);
    let compiled = compiles(|| {
        bucketed = words.iter().map(|w| step(&sequence(w).dynamic(1).buckets([8, 16]))).collect();
    });
    assert_eq!(compiled, 2, "one program for each bucket");
    plain.extend(words.iter().map(|w| step(&sequence(w))));
    for (n, (a, b)) in bucketed.iter().zip(&plain).enumerate() {
        a.iter().zip(b).for_each(|(a, b)| near(&format!("length {}", lengths[n]), a, b));
    }
}

#[test]
fn bags_of_any_length_share_a_program() {
    let _alone = alone();
    let mut r = Seeded(5);
    let table = rows(&mut r, 9, 4).requires_grad_(true);
    // A bag with nothing in it, at the beginning, in the middle, at the end.
    let all: Vec<Vec<Vec<i64>>> = [[3, 0, 2], [0, 1, 1], [5, 2, 0], [1, 7, 4], [0, 0, 1]]
        .iter()
        .map(|lengths| lengths.iter().map(|&n| (0..n).map(|_| r.between(0, 8)).collect()).collect())
        .collect();
    let step = |bags: &[Vec<i64>], buckets: bool| {
        let begins: Vec<i64> = bags.iter().scan(0, |at, b| Some(std::mem::replace(at, *at + b.len() as i64))).collect();
        let indices = Tensor::from_vec(bags.concat(), [bags.concat().len()]);
        let indices = if buckets { indices.dynamic(0).buckets([16]) } else { indices };
        let options = EmbeddingBagOptions { offsets: Some(tensor(begins)), ..Default::default() };
        let y = indices.embedding_bag(&table, options);
        let dy = grad(&(&y * &y).sum(), &[&table]).remove(0).unwrap();
        sync();
        [y, dy]
    };
    let mut bucketed = Vec::new();
    let compiled = compiles(|| bucketed = all.iter().map(|bags| step(bags, true)).collect());
    assert_eq!(compiled, 1);
    for (bags, [y, dy]) in all.iter().zip(&bucketed) {
        let [y_plain, dy_plain] = step(bags, false);
        near(&format!("{bags:?}"), y, &y_plain);
        near(&format!("gradient of {bags:?}"), dy, &dy_plain);
        for (i, bag) in bags.iter().enumerate() {
            let rows: Vec<Tensor> = bag.iter().map(|&b| table.detach().select(0, b)).collect();
            let mean = if rows.is_empty() {
                Tensor::zeros([4])
            } else {
                stack(&rows.iter().collect::<Vec<_>>(), 0).mean_dim(0, false)
            };
            near(&format!("bag {i} of {bags:?}"), &y.select(0, i as i64), &mean);
        }
    }
}

#[test]
fn what_is_written_by_index_is_counted_from_the_last_real_element() {
    let _alone = alone();
    let values = tensor([10.0, 20.0]);
    for n in [2, 3, 5] {
        let x = Tensor::arange(1.0, 1.0 + n as f64, 1.0);
        let write = |x: &Tensor| x.index_put(&[Some(&tensor([-1, 0]))], &values, true);
        let y = write(&x.dynamic(0).buckets([8]));
        near("index_put", &y, &write(&x));
        near("what is behind it is as the last", &y.log().sum(), &write(&x).log().sum());
    }
}

#[test]
fn only_what_is_real_is_seen() {
    let _alone = alone();
    let x = tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).dynamic(0).buckets([4, 8]);
    assert_eq!((x.shape(), x.numel(), x.size(0)), (Shape::new(&[3, 2]), 6, 3));
    assert_eq!(x.to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(format!("{x:?}"), "Tensor(f32[3≤4,2], on device)");
    assert_eq!(format!("{x}"), format!("{}", tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])));
    assert_eq!((&x + 1.0).t().to_vec::<f32>(), [2.0, 4.0, 6.0, 3.0, 5.0, 7.0]);
    assert_eq!(x.zeros_like().shape(), [3, 2]);
    assert_eq!(x.rand_like().to_vec::<f32>().len(), 6);
    // both dimensions
    let both = x.unbucket().dynamic(0).buckets([4]).dynamic(1).buckets([3]);
    assert_eq!((both.matmul(&both.t()) * 1.0).to_vec::<f32>(), [5.0, 11.0, 17.0, 11.0, 25.0, 39.0, 17.0, 39.0, 61.0]);
    assert_eq!((both.sum().item(), both.mean().item(), both.amax((), false).item()), (21.0, 3.5, 6.0));
    assert_eq!(both.neg().argmax_dim(0, false).to_vec::<i64>(), [0, 0]);
    let none = [both.gt(6.5).any(), both.zeros_like().any(), both.lt(7).all(), both.ones_like().all()];
    assert_eq!(none.map(|t| t.item()), [0.0, 0.0, 1.0, 1.0]);
    // nothing at all
    let none = Tensor::from_slice::<f32>(&[], [0, 2]).dynamic(0).buckets([4]);
    assert_eq!((none.sum().item(), none.mean().item().is_nan(), none.to_vec::<f32>().len()), (0.0, true, 0));
}

#[test]
fn the_padding_makes_no_nan_of_a_gradient() {
    let _alone = alone();
    let w = tensor([[1.0, 2.0], [0.5, 1.0]]).requires_grad_(true);
    let loss = |x: &Tensor| {
        let h = x.matmul(&w);
        let h = h.log() + h.normalize(2.0, 1, 1e-12) + (&h / h.sum_dim(1, true)).sqrt() + h.softmax(0).log();
        h.var_dim(0, 1, false).sqrt().mean()
    };
    let x = tensor([[1.0, 2.0], [3.0, 1.0], [0.5, 0.7]]);
    let gradient = |x: &Tensor| grad(&loss(x), &[&w]).remove(0).unwrap();
    near("gradient", &gradient(&x.dynamic(0).buckets([64])), &gradient(&x));
}

#[test]
fn gradients_of_bucketed_leaves_have_their_size() {
    let _alone = alone();
    let x = tensor([1.0, 2.0, 3.0]).dynamic(0).buckets([5]).requires_grad_(true);
    (&x * &x).mean().backward();
    (&x * 3.0).backward_with(Some(&x.ones_like()), false);
    let g = x.grad().unwrap();
    assert_eq!((g.shape(), g.to_vec::<f32>()), (Shape::new(&[3]), vec![3.0 + 2.0 / 3.0, 3.0 + 4.0 / 3.0, 5.0]));
    no_grad(|| x.sub_(g * 0.5));
    assert!((x.sum().item() + 0.5).abs() < 1e-5);
}

#[test]
fn what_is_not_defined_is_refused_by_name() {
    let _alone = alone();
    let x = Tensor::ones([3, 4]).dynamic(0).buckets([8]);
    let says = |message: String, parts: &[&str]| {
        for part in parts {
            assert!(message.contains(part), "no `{part}` in: {message}");
        }
    };
    says(refusal(|| x.scatter(0, &x.long(), 1.0)), &["scatter(", "along dimension 0", "3 of 8", "`.unbucket()`"]);
    says(refusal(|| x.pad([0, 0, 1, 0], 0.0)), &["pad(", "along dimension 0"]);
    says(refusal(|| x.t().flatten()), &["reshape(", "would not stay together"]);
    // Data of the host's have the size that they have; a constant is made as large as it must be.
    let plain = Tensor::from_slice(&[1.0f32; 12], [3, 4]);
    says(
        refusal(|| &x + &plain),
        &["add(f32[3≤8,4], f32[3,4])", "operand 2 has 3 and no bucket", ".dynamic(0).buckets([8])"],
    );
    says(refusal(|| x.t().matmul(&plain)), &["matmul(", "no bucket"]);
    says(refusal(|| x.copy_(&plain)), &["bucket"]);
    says(refusal(|| plain.dynamic(0).buckets([1, 2])), &["dimension 0 has 3 elements", "largest bucket holds 2"]);
    says(refusal(|| x.dynamic(0).buckets([9])), &["has a bucket already"]);
    says(refusal(|| plain.dynamic(2).buckets([9])), &["out of range"]);
    says(refusal(|| plain.dynamic(0).buckets(Vec::<usize>::new())), &["at least one bucket"]);
    says(
        refusal(|| (plain.copy().requires_grad_(true) * 2.0).dynamic(0).buckets([4])),
        &["gradients do not flow through the padding"],
    );
    // a size of 1 is refused what other sizes are: what holds for one batch holds for all
    let one = Tensor::ones([1, 4]).dynamic(0).buckets([8]);
    says(refusal(|| &one + &plain), &["no bucket"]);
    assert_eq!(one.unsqueeze(0).shape(), [1, 1, 4]);
    assert_eq!((x.unsqueeze(0) * 2.0).squeeze_dim(0).sum().item(), 24.0);
}

const WIDTH: usize = 4;

macro_rules! ops {
    ($($op:ident)*) => {
        /// One op of a random program, on rows [n, WIDTH].
        #[derive(Clone, Copy, Debug)]
        enum Op {
            $($op),*
        }

        const OPS: &[Op] = &[$(Op::$op),*];
    };
}

ops! {
    Linear Bias Elementwise Softmax SoftmaxRows LayerNorm BatchNorm Centre Extreme LogSumExp Mask Cat Columns
    Transposed Gram Heads Pick Where Like Running Sorted Reversed Ends Row Picked Joined Scattered Segments
    Positions Causal Attention
}

impl Op {
    fn apply(self, x: &Tensor, input: &Tensor, w: &Tensor) -> Tensor {
        match self {
            Op::Linear => x.matmul(w),
            Op::Bias => x + w.select(0, 1),
            Op::Elementwise => (x.abs() + 0.1).log().tanh() * input,
            Op::Softmax => x.softmax(1),
            Op::SoftmaxRows => x.log_softmax(0) * 0.2,
            Op::LayerNorm => x.layer_norm(WIDTH, None, None, 1e-3),
            Op::BatchNorm if x.size(0) > 1 => {
                x.batch_norm(None, None, None, None, BatchNormOptions { training: true, momentum: 0.1, eps: 1e-2 })
            }
            Op::BatchNorm => x * 0.0,
            Op::Centre => x - x.mean_dim(0, true),
            Op::Extreme => x / (x.abs().amax(0, true) + 1.0) + x.min(),
            Op::LogSumExp => x - x.logsumexp(0, false),
            Op::Mask => x.masked_fill(&x.gt(x.mean()), 0.5),
            Op::Cat => cat(&[x, &input.neg()], 1).narrow(1, 2, WIDTH as i64),
            Op::Columns => x.flip(1).roll(1, 1) + x.cumsum(1) * 0.1,
            Op::Transposed => x.t().softmax(0).t() * 2.0,
            Op::Gram => x.matmul(&(x.t().matmul(input) * 0.1).tanh()),
            Op::Heads => x.reshape([-1, 2, 2]).transpose(1, 2).reshape([x.size(0), WIDTH]) + x.reshape([-1]).mean(),
            Op::Pick => x.gather(1, &x.argmax_dim(1, true)) * x,
            Op::Where => where_(&input.gt(0.8), x, w.select(0, 0)),
            Op::Like => x * x.full_like(0.5) + x.ones_like(),
            Op::Running => x.cumsum(0) * 0.1 + (x.tanh() * 0.5 + 1.0).cumprod(0) * 0.1,
            Op::Sorted => x.sort(0, true).0 + x.sort(0, false).0 * input + x.gather(0, &x.argsort(0, false)) * 0.3,
            Op::Reversed => x.flip([0, 1]) * input + x.roll(2, 0) - input.roll(-1, 0) * x,
            Op::Ends => {
                // From each element to the next one, and as many again that nothing is known of.
                let steps = x.i(1..) - x.i(..-1);
                x + cat(&[&steps, &input.narrow(0, 0, 1)], 0)
            }
            Op::Row => x + x.select(0, -1) * input.select(0, 0) + x.narrow(0, 1, 1),
            Op::Picked => x * x.index_select(0, &tensor([-1, 0, 1])).sum_dim(0, false) + x.i((-2, ..)),
            Op::Joined => cat(&[&w.narrow(0, 0, 2), x, input, &w.select(0, 0).unsqueeze(0)], 0).mean_dim(0, true) * x,
            Op::Scattered => {
                let places = x.argmax_dim(1, true);
                x.zeros_like().scatter_add(1, &places, x.sum_dim(1, true)) + x.scatter(1, &places, 0.5)
            }
            Op::Segments => {
                let places = x.argmax_dim(1, false);
                let sums = Tensor::zeros([WIDTH, WIDTH]).index_add(0, &places, x);
                x * sums.index_select(0, &places)
            }
            Op::Positions => {
                // A table longer than the smaller bucket and shorter than the larger one, and numbers from nothing.
                let (n, table) = (x.size(0), cat(&[w, w, w], 0));
                let places = Tensor::arange(0, n, 1);
                x + table.narrow(0, 0, n as i64) + places.embedding(&table) + (places.float() * 0.1).cos().unsqueeze(1)
            }
            Op::Causal => {
                let n = x.size(0);
                let mask = Tensor::ones([n, n]).tril(0).bool();
                let scores = x.matmul(&input.t()).masked_fill(&mask.logical_not(), f64::NEG_INFINITY);
                scores.softmax(1).matmul(x)
            }
            Op::Attention => {
                let heads = |t: &Tensor| t.reshape([t.size(0), 2, 2]).transpose(0, 1);
                let options = AttentionOptions { is_causal: true, ..Default::default() };
                let y = heads(x).scaled_dot_product_attention(&heads(input), &heads(x), options);
                y.transpose(0, 1).reshape([x.size(0), WIDTH])
            }
        }
    }
}

/// Random programs give the same with buckets as without, values and gradients, and compile once a bucket.
#[test]
fn random_programs_are_the_same_bucketed() {
    let _alone = alone();
    let mut seen = std::collections::HashSet::new();
    for seed in programs(12) {
        let mut r = Seeded(seed);
        let ops: Vec<Op> = (0..3 + r.below(4)).map(|_| OPS[r.below(OPS.len())]).collect();
        seen.extend(ops.iter().map(|op| format!("{op:?}")));
        let w = Tensor::from_slice(&r.floats(WIDTH * WIDTH, -0.8, 0.8), [WIDTH, WIDTH]).requires_grad_(true);
        let inputs: Vec<Tensor> = [7, 3, 8, 2, 11].map(|n| rows(&mut r, n, WIDTH)).into();
        let run = |x: &Tensor| {
            let x = x.requires_grad_(true);
            let y = ops.iter().fold(x.clone(), |y, op| op.apply(&y, &x, &w));
            let loss = (&y * &y).mean() + y.matmul(&w).sum() * 0.1;
            loss.backward();
            let results = vec![loss, x.grad().unwrap(), w.grad().unwrap_or(w.zeros_like()), y];
            w.set_grad(None);
            sync();
            results
        };
        let mut bucketed = Vec::new();
        let padded: Vec<Tensor> = inputs.iter().map(|x| x.dynamic(0).buckets([8, 16])).collect();
        let compiled = compiles(|| bucketed = padded.iter().map(run).collect::<Vec<_>>());
        let again = format!("seed {seed} (XLAZY_SEED={seed} XLAZY_PROGRAMS=1), {ops:?}");
        assert_eq!(compiled, 2, "{again}");
        for (n, (a, x)) in bucketed.iter().zip(&inputs).enumerate() {
            for (k, (a, b)) in a.iter().zip(run(&Tensor::from_slice(&x.to_vec::<f32>(), x.shape()))).enumerate() {
                near(&format!("{again}, input {n}, result {k}"), a, &b);
            }
        }
    }
    assert!(seen.len() * 2 > OPS.len(), "too few ops were met: {seen:?}");
}
