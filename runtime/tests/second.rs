//! Gradients of gradients: against differences of first gradients, on a sample of ops, and what is said where there are none.
mod support;

use support::refusal;
use xlazy::prelude::*;

type Function = fn(&Tensor) -> Tensor;

const SAMPLE: &[(&str, Function)] = &[
    ("pow", |x| x.pow(3.0)),
    ("exp", |x| x.exp()),
    ("log", |x| (x * x + 1.0).log()),
    ("tanh", |x| x.tanh()),
    ("sigmoid", |x| x.sigmoid()),
    ("gelu", |x| x.gelu()),
    ("silu", |x| x.silu()),
    ("sqrt", |x| (x * x + 1.0).sqrt()),
    ("rsqrt", |x| (x * x + 1.0).rsqrt()),
    ("sin", |x| x.sin()),
    ("div", |x| x.div(&(x * x + 2.0))),
    ("mul", |x| x * x.roll(1, 0)),
    ("matmul", |x| x.reshape([2, 3]).matmul(&x.reshape([3, 2])).tanh()),
    ("softmax", |x| x.reshape([2, 3]).softmax(1)),
    ("log_softmax", |x| x.reshape([2, 3]).log_softmax(1) * x.reshape([2, 3])),
    ("logsumexp", |x| x.logsumexp(0, false)),
    ("layer_norm", |x| x.reshape([2, 3]).layer_norm(3, None, None, 1e-2)),
    ("norm", |x| x.norm()),
    ("var", |x| x.var() * x),
    ("prod", |x| x.prod()),
    ("cumsum", |x| x.cumsum(0).square()),
    ("cumprod", |x| x.cumprod(0)),
    ("sort", |x| x.sort(0, false).0.pow(3.0)),
    ("max", |x| x.square().max()),
    ("gather", |x| x.gather(0, &tensor([0, 0, 5])).pow(3.0)),
    ("slice_scatter", |x| x.slice_scatter(&x.i(..3).square(), 0, 0, 6, 2).pow(2.0)),
    ("pad", |x| x.pad([1, 2], 0.5).pow(3.0)),
    ("where", |x| x.where_(&x.gt(0.0), x.square()).pow(2.0)),
    ("cat", |x| cat(&[&x.square(), x], 0).pow(2.0)),
    ("written", |x| {
        let y = x * 1.0;
        y.i(..2).mul_(x.i(2..4));
        y.pow(2.0)
    }),
];

#[test]
fn second_derivatives_are_those_of_differences() {
    const STEP: f64 = 1e-5;
    let point = Tensor::from_slice(&[0.4, -0.7, 1.1, 0.3, -1.3, 0.9], [6]);
    let along = Tensor::from_slice(&[0.5, 1.0, -0.25, 0.75, 0.3, -0.6], [6]);
    let first = |f: Function, x: Tensor, recorded: bool| {
        let x = x.detach().requires_grad_(true);
        let y = f(&x);
        let weights = Tensor::arange(0.0, y.numel() as f64, 1.0).double() * 0.3 + 0.5;
        let total = (y.flatten() * weights).sum();
        (grad_with(&total, &[&x], recorded).remove(0).expect("a gradient flows"), x)
    };
    let (mut second, mut differences) = (vec![], vec![]);
    for (_, f) in SAMPLE {
        let (dx, x) = first(*f, point.copy(), true);
        second.push(grad(&(dx * &along).sum(), &[&x]).remove(0).expect("a second gradient flows"));
        let at = |by: f64| first(*f, &point + &along * by, false).0;
        differences.push((at(STEP) - at(-STEP)) / (2.0 * STEP));
    }
    let all = |of: &[Tensor]| cat(&of.iter().collect::<Vec<_>>(), 0).to_vec::<f64>();
    let (second, differences) = (all(&second), all(&differences));
    for (i, (name, _)) in SAMPLE.iter().enumerate() {
        let (a, b) = (&second[i * 6..][..6], &differences[i * 6..][..6]);
        let close = a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-6 + 1e-5 * b.abs());
        assert!(close, "{name}: {a:?}, and by differences {b:?}");
    }
}

#[test]
fn what_cannot_be_differentiated_again_is_said() {
    let x = tensor([1.0, 2.0]).requires_grad_(true);
    let dx = grad(&x.pow(3.0).sum(), &[&x]).remove(0).unwrap();
    assert!(refusal(|| grad(&dx.sum(), &[&x])).contains("grad_with"));
    assert!(refusal(|| grad(&tensor([1.0]).sum(), &[&x])).contains("requires_grad_(true)"));
    let pooled = x.reshape([1, 1, 2]).max_pool1d(2, MaxPoolOptions::default()).square();
    let dx = grad_with(&pooled.sum(), &[&x], true).remove(0).unwrap();
    assert!(refusal(|| grad(&dx.sum(), &[&x])).contains("is not implemented"));
}
