//! `nn::init` under torch's names: moments and bounds by torch's formulas, what is filled, and what that compiles.
mod support;

use support::{alone, compiles, refusal};
use xlazy::nn::init::{self, Fan, KaimingOptions, Nonlinearity, calculate_gain};
use xlazy::prelude::*;

fn moments(t: &Tensor) -> (f64, f64, f64) {
    let all = t.to_vec::<f32>();
    let n = all.len() as f64;
    let mean = all.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
    let variance = all.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt(), all.iter().fold(0.0, |most, x| most.max(f64::from(x.abs()))))
}

#[test]
fn each_has_the_moments_of_torchs() {
    let _alone = alone();
    manual_seed(5);
    // fan in 200 * 9, fan out 40 * 9
    let w = nn::Conv2d::new(200, 40, 3).weight;
    let (fan_in, fan_out) = (1800f64, 360f64);
    let gain = |n| calculate_gain(n);
    let uniform = |bound: f64| (0.0, bound / 3f64.sqrt(), bound);
    let leaky = KaimingOptions { mode: Fan::In, nonlinearity: Nonlinearity::LeakyReLU(0.2) };
    let tanh = KaimingOptions { mode: Fan::Out, nonlinearity: Nonlinearity::Tanh };
    type Case<'a> = (&'a str, Box<dyn Fn() -> Tensor + 'a>, (f64, f64, f64));
    let cases: Vec<Case> = vec![
        ("uniform_", Box::new(|| init::uniform_(&w, -1.0, 3.0)), (1.0, 4.0 / 12f64.sqrt(), 3.0)),
        ("normal_", Box::new(|| init::normal_(&w, 2.0, 0.5)), (2.0, 0.5, 9.0)),
        ("constant_", Box::new(|| init::constant_(&w, -2.5)), (-2.5, 0.0, 2.5)),
        ("ones_", Box::new(|| init::ones_(&w)), (1.0, 0.0, 1.0)),
        ("zeros_", Box::new(|| init::zeros_(&w)), (0.0, 0.0, 0.0)),
        (
            "xavier_uniform_",
            Box::new(|| init::xavier_uniform_(&w, 2.0)),
            uniform(2.0 * (6.0 / (fan_in + fan_out)).sqrt()),
        ),
        ("xavier_normal_", Box::new(|| init::xavier_normal_(&w, 1.0)), (0.0, (2.0 / (fan_in + fan_out)).sqrt(), 9.0)),
        (
            "kaiming_uniform_",
            Box::new(|| init::kaiming_uniform_(&w, Default::default())),
            uniform((6.0 / fan_in).sqrt()),
        ),
        (
            "kaiming_uniform_, tanh",
            Box::new(|| init::kaiming_uniform_(&w, tanh)),
            uniform(gain(tanh.nonlinearity) * (3.0 / fan_out).sqrt()),
        ),
        ("kaiming_normal_", Box::new(|| init::kaiming_normal_(&w, leaky)), (0.0, (2.0 / 1.04 / fan_in).sqrt(), 9.0)),
        // the moments of what is left of a normal distribution between -2 and 2, and between 1 and 3
        ("trunc_normal_", Box::new(|| init::trunc_normal_(&w, 0.0, 1.0, -2.0, 2.0)), (0.0, 0.879_625, 2.0)),
        (
            "trunc_normal_, a tail",
            Box::new(|| init::trunc_normal_(&w, 0.0, 1.0, 1.0, 3.0)),
            (1.510_050, 0.416_477, 3.0),
        ),
        ("trunc_normal_, scaled", Box::new(|| init::trunc_normal_(&w, 0.0, 0.02, -2.0, 2.0)), (0.0, 0.02, 0.2)),
    ];
    let compiled = compiles(|| {
        for (name, fill, (mean, std, most)) in &cases {
            let filled = fill();
            assert!(filled.is_same(&w) && w.requires_grad() && w.is_leaf(), "{name}");
            let found = moments(&w);
            let near = |a: f64, b: f64| (a - b).abs() <= 0.02 * std.max(1e-6) + 1e-6;
            assert!(near(found.0, *mean) && near(found.1, *std) && found.2 <= most + 1e-6, "{name}: {found:?}");
        }
    });
    assert_eq!(compiled, 0, "they are drawn on the host");
}

#[test]
fn a_matrix_is_orthogonal_whichever_side_is_longer() {
    let _alone = alone();
    for shape in [vec![6usize, 6], vec![4, 10], vec![10, 4], vec![3, 2, 4]] {
        let w = Tensor::zeros(shape.as_slice()).detach().requires_grad_(true);
        let q = init::orthogonal_(&w, 3.0).detach().flatten_dims(1, -1) / 3.0;
        let (product, n) = match q.size(0) <= q.size(1) {
            true => (q.matmul(&q.t()), q.size(0)),
            false => (q.t().matmul(&q), q.size(1)),
        };
        assert!((product - Tensor::eye(n)).abs().max().item() < 1e-5, "{shape:?}");
    }
    assert!(refusal(|| init::orthogonal_(&Tensor::zeros([3]), 1.0)).contains("two dimensions or more"));
    assert!(refusal(|| init::xavier_uniform_(&Tensor::zeros([3]), 1.0)).contains("two dimensions or more"));
    assert!(refusal(|| init::trunc_normal_(&Tensor::zeros([3]), 0.0, 1.0, 2.0, -2.0)).contains("a ≤ b"));
}

#[test]
fn what_is_filled_keeps_its_dtype_and_its_seed_decides() {
    let _alone = alone();
    let w = Tensor::zeros([64]).to(BF16);
    let drawn = || {
        manual_seed(3);
        init::normal_(&w, 0.0, 1.0).to_vec::<f32>()
    };
    assert_eq!(drawn(), drawn());
    assert_eq!(w.dtype(), BF16);
    // a view is filled in its place
    let table = Tensor::ones([3, 2]);
    init::zeros_(&table.select(0, 1));
    assert_eq!(table.to_vec::<f32>(), [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
}
