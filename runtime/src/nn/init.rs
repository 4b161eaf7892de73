//! Starting values of parameters (`torch.nn.init`), drawn on the host: a model's parameters are data from the start, so that
//! making them compiles nothing and the first step is the same program as the second.
use crate::changes::Changes;
use crate::ops::Key;
use crate::rng::SplitMix;
use crate::tensor::{Tensor, caller_line, no_grad, refuse};
use xlazy_core::ty::Dims;

/// A parameter uniform in [-bound, bound).
#[track_caller]
pub fn uniform(size: impl Into<Dims>, bound: f64) -> Tensor {
    filled(size.into(), |rng| (rng.uniform() * 2.0 - 1.0) * bound)
}

/// A parameter from the normal distribution with mean 0 and this deviation.
#[track_caller]
pub fn normal(size: impl Into<Dims>, std: f64) -> Tensor {
    filled(size.into(), |rng| rng.normal() * std)
}

#[track_caller]
fn filled(size: Dims, value: impl FnMut(&mut SplitMix) -> f64) -> Tensor {
    constant(size, value).requires_grad_(true)
}

/// A buffer of one value, as data.
#[track_caller]
pub(super) fn buffer(size: impl Into<Dims>, value: f64) -> Tensor {
    constant(size.into(), |_| value)
}

#[track_caller]
fn constant(size: Dims, mut value: impl FnMut(&mut SplitMix) -> f64) -> Tensor {
    let shape = size.shape("init").unwrap_or_else(|e| e.raise());
    let key = Key::draw();
    let mut rng = SplitMix(key.number() as u64);
    let data: Vec<f32> = (0..shape.numel()).map(|_| value(&mut rng) as f32).collect();
    let t = Tensor::from_vec(data, &shape);
    key.keep();
    t
}

/// A parameter of ones.
#[track_caller]
pub fn ones(size: impl Into<Dims>) -> Tensor {
    buffer(size, 1.0).requires_grad_(true)
}

/// A parameter of zeros.
#[track_caller]
pub fn zeros(size: impl Into<Dims>) -> Tensor {
    buffer(size, 0.0).requires_grad_(true)
}

/// The bound of torch's default for weights and biases: `kaiming_uniform_` with a = √5 is uniform within ±1/√fan_in.
pub(super) fn default_bound(fan_in: usize) -> f64 {
    if fan_in == 0 { 0.0 } else { 1.0 / (fan_in as f64).sqrt() }
}

/// A weight after He: uniform within ±√(6 / fan_in), for layers before a relu (`kaiming_uniform_`, nonlinearity relu).
/// `size` is [out, in, …].
#[track_caller]
pub fn kaiming_uniform(size: impl Into<Dims>) -> Tensor {
    let size = size.into();
    let fan_in: i64 = size.0.iter().skip(1).product();
    uniform(size, (6.0 / fan_in.max(1) as f64).sqrt())
}

/// A weight after Glorot: uniform within ±√(6 / (fan_in + fan_out)) (`xavier_uniform_`). `size` is [out, in, …].
#[track_caller]
pub fn xavier_uniform(size: impl Into<Dims>) -> Tensor {
    let size = size.into();
    let field: i64 = size.0.iter().skip(2).product();
    let fans: i64 = size.0.iter().take(2).sum::<i64>() * field;
    uniform(size, (6.0 / fans.max(1) as f64).sqrt())
}

/// What a layer is followed by, for [`calculate_gain`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nonlinearity {
    Linear,
    Sigmoid,
    Tanh,
    ReLU,
    /// With this slope below 0.
    LeakyReLU(f64),
    SELU,
}

/// How much a nonlinearity shrinks what goes through it, undone (`torch.nn.init.calculate_gain`).
///
/// ```
/// use xlazy::nn::init::{Nonlinearity, calculate_gain};
/// assert_eq!(calculate_gain(Nonlinearity::Tanh), 5.0 / 3.0);
/// ```
pub fn calculate_gain(nonlinearity: Nonlinearity) -> f64 {
    match nonlinearity {
        Nonlinearity::Linear | Nonlinearity::Sigmoid => 1.0,
        Nonlinearity::Tanh => 5.0 / 3.0,
        Nonlinearity::ReLU => std::f64::consts::SQRT_2,
        Nonlinearity::LeakyReLU(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
        Nonlinearity::SELU => 0.75,
    }
}

/// Which way [`kaiming_uniform_`] and [`kaiming_normal_`] keep the variance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fan {
    /// Forwards (`fan_in`).
    #[default]
    In,
    /// Backwards (`fan_out`).
    Out,
}

/// What torch's `kaiming_uniform_` and `kaiming_normal_` take besides the tensor; the defaults are torch's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KaimingOptions {
    pub mode: Fan,
    pub nonlinearity: Nonlinearity,
}

impl Default for KaimingOptions {
    fn default() -> KaimingOptions {
        KaimingOptions { mode: Fan::In, nonlinearity: Nonlinearity::LeakyReLU(0.0) }
    }
}

/// The tensor filled in place, outside of any gradient, by numbers drawn on the host.
#[track_caller]
fn refilled(t: &Tensor, value: impl FnMut(&mut SplitMix) -> f64) -> Tensor {
    let _line = caller_line();
    let value = constant(Dims::from(t.shape()), value);
    no_grad(|| {
        let mut changes = Changes::new();
        changes.set(t, value);
        changes.apply();
    });
    t.clone()
}

/// What flows into an element of a weight [out, in, …] and out of it.
#[track_caller]
fn fans(op: &'static str, t: &Tensor) -> (f64, f64) {
    let shape = t.shape();
    if shape.len() < 2 {
        refuse(op, &[t], "fan in and fan out are those of a weight of two dimensions or more, (out, in, …)");
    }
    let field: usize = shape[2..].iter().product();
    ((shape[1] * field) as f64, (shape[0] * field) as f64)
}

/// Fills with numbers uniform in [a, b) and gives the tensor back (`torch.nn.init.uniform_`; torch's defaults: 0, 1).
///
/// ```
/// use xlazy::prelude::*;
/// let layer = nn::Linear::new(4, 4);
/// nn::init::uniform_(&layer.weight, -0.1, 0.1);
/// assert!(layer.weight.abs().max().item() <= 0.1);
/// ```
#[track_caller]
pub fn uniform_(t: &Tensor, a: f64, b: f64) -> Tensor {
    refilled(t, |rng| a + (b - a) * rng.uniform())
}

/// Fills from a normal distribution (`torch.nn.init.normal_`; torch's defaults: 0, 1).
///
/// ```
/// use xlazy::prelude::*;
/// let layer = nn::Linear::new(64, 64);
/// nn::init::normal_(&layer.weight, 3.0, 0.1);
/// assert!((layer.weight.mean().item() - 3.0).abs() < 0.05);
/// ```
#[track_caller]
pub fn normal_(t: &Tensor, mean: f64, std: f64) -> Tensor {
    refilled(t, |rng| mean + std * rng.normal())
}

/// Fills with one value (`torch.nn.init.constant_`).
///
/// ```
/// use xlazy::prelude::*;
/// let layer = nn::Linear::new(2, 2);
/// nn::init::constant_(&layer.weight, 0.5);
/// assert_eq!(layer.weight.sum().item(), 2.0);
/// ```
#[track_caller]
pub fn constant_(t: &Tensor, val: f64) -> Tensor {
    refilled(t, |_| val)
}

/// Fills with ones (`torch.nn.init.ones_`).
///
/// `nn::init::ones_(&Tensor::zeros([2]))` is `[1., 1.]`.
#[track_caller]
pub fn ones_(t: &Tensor) -> Tensor {
    refilled(t, |_| 1.0)
}

/// Fills with zeros (`torch.nn.init.zeros_`).
///
/// `nn::init::zeros_(&Tensor::ones([2]))` is `[0., 0.]`.
#[track_caller]
pub fn zeros_(t: &Tensor) -> Tensor {
    refilled(t, |_| 0.0)
}

/// Fills from a normal distribution of which only what lies in [a, b] is taken (`torch.nn.init.trunc_normal_`; torch's defaults: 0, 1,
/// -2, 2).
///
/// ```
/// use xlazy::prelude::*;
/// let layer = nn::Linear::new(8, 8);
/// nn::init::trunc_normal_(&layer.weight, 0.0, 0.02, -0.04, 0.04);
/// assert!(layer.weight.abs().max().item() <= 0.04);
/// ```
#[track_caller]
pub fn trunc_normal_(t: &Tensor, mean: f64, std: f64, a: f64, b: f64) -> Tensor {
    if !(a <= b && std > 0.0) {
        refuse("trunc_normal_", &[t], format!("needs a ≤ b and a deviation above 0, not {a}, {b} and {std}"));
    }
    // The likeliest of what is taken; nothing is so far from it that a float could have it.
    let likeliest = mean.clamp(a, b);
    let (low, high) = (a.max(likeliest - 9.0 * std), b.min(likeliest + 9.0 * std));
    let height = |x: f64| ((likeliest - mean).powi(2) - (x - mean).powi(2)) / (2.0 * std * std);
    refilled(t, |rng| {
        loop {
            let x = low + (high - low) * rng.uniform();
            if rng.uniform() < height(x).exp() {
                return x;
            }
        }
    })
}

/// Fills a weight (out, in, …) after Glorot: uniform within ±gain · √(6 / (fan_in + fan_out)) (`torch.nn.init.xavier_uniform_`; torch's
/// default gain: 1).
///
/// ```
/// use xlazy::prelude::*;
/// let layer = nn::Linear::new(5, 1);
/// nn::init::xavier_uniform_(&layer.weight, 1.0);
/// assert!(layer.weight.abs().max().item() <= 1.0);
/// ```
#[track_caller]
pub fn xavier_uniform_(t: &Tensor, gain: f64) -> Tensor {
    let (fan_in, fan_out) = fans("xavier_uniform_", t);
    let bound = gain * (6.0 / (fan_in + fan_out)).sqrt();
    uniform_(t, -bound, bound)
}

/// Fills a weight (out, in, …) after Glorot: normal with the deviation gain · √(2 / (fan_in + fan_out)) (`torch.nn.init.xavier_normal_`;
/// torch's default gain: 1).
///
/// ```
/// use xlazy::prelude::*;
/// use xlazy::nn::init::{Nonlinearity, calculate_gain};
/// let layer = nn::Linear::new(64, 64);
/// nn::init::xavier_normal_(&layer.weight, calculate_gain(Nonlinearity::Tanh));
/// assert!((layer.weight.std().item() - 5.0 / 24.0).abs() < 0.02);
/// ```
#[track_caller]
pub fn xavier_normal_(t: &Tensor, gain: f64) -> Tensor {
    let (fan_in, fan_out) = fans("xavier_normal_", t);
    normal_(t, 0.0, gain * (2.0 / (fan_in + fan_out)).sqrt())
}

#[track_caller]
fn kaiming(op: &'static str, t: &Tensor, options: KaimingOptions) -> f64 {
    let (fan_in, fan_out) = fans(op, t);
    let fan = if options.mode == Fan::In { fan_in } else { fan_out };
    calculate_gain(options.nonlinearity) / fan.max(1.0).sqrt()
}

/// Fills a weight (out, in, …) after He: uniform within ±gain · √(3 / fan) (`torch.nn.init.kaiming_uniform_`).
///
/// ```
/// use xlazy::prelude::*;
/// let layer = nn::Linear::new(6, 1);
/// nn::init::kaiming_uniform_(&layer.weight, Default::default());
/// assert!(layer.weight.abs().max().item() <= 1.0);
/// ```
#[track_caller]
pub fn kaiming_uniform_(t: &Tensor, options: KaimingOptions) -> Tensor {
    let bound = kaiming("kaiming_uniform_", t, options) * 3f64.sqrt();
    uniform_(t, -bound, bound)
}

/// Fills a weight (out, in, …) after He: normal with the deviation gain / √fan (`torch.nn.init.kaiming_normal_`).
///
/// ```
/// use xlazy::prelude::*;
/// use xlazy::nn::init::{Fan, KaimingOptions, Nonlinearity};
/// let layer = nn::Conv2d::new(16, 32, 3);
/// nn::init::kaiming_normal_(&layer.weight, KaimingOptions { mode: Fan::Out, nonlinearity: Nonlinearity::ReLU });
/// assert!((layer.weight.std().item() - (2.0f64 / 288.0).sqrt()).abs() < 0.01);
/// ```
#[track_caller]
pub fn kaiming_normal_(t: &Tensor, options: KaimingOptions) -> Tensor {
    let std = kaiming("kaiming_normal_", t, options);
    normal_(t, 0.0, std)
}

/// Fills with a matrix of which the rows, or where they are more than the columns the columns, are orthogonal and of length gain
/// (`torch.nn.init.orthogonal_`; torch's default gain: 1). Dimensions behind the first count as one.
///
/// ```
/// use xlazy::prelude::*;
/// let layer = nn::Linear::new(8, 3);
/// let w = nn::init::orthogonal_(&layer.weight, 1.0).detach();
/// assert!((w.matmul(&w.t()) - Tensor::eye(3)).abs().max().item() < 1e-5);
/// ```
#[track_caller]
pub fn orthogonal_(t: &Tensor, gain: f64) -> Tensor {
    let shape = t.shape();
    if shape.len() < 2 {
        refuse("orthogonal_", &[t], "needs two dimensions or more");
    }
    let (rows, columns) = (shape[0], shape[1..].iter().product::<usize>());
    let (long, short) = (rows.max(columns), rows.min(columns));
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let mut next = 0;
    refilled(t, |rng| {
        if basis.is_empty() {
            basis = orthonormal(rng, long, short);
        }
        let (row, column) = (next / columns, next % columns);
        next += 1;
        gain * if rows <= columns { basis[row][column] } else { basis[column][row] }
    })
}

/// Orthogonal vectors of length 1, evenly drawn: normal ones without what lies along those before them (Gram and Schmidt), twice since
/// what is left may be little.
fn orthonormal(rng: &mut SplitMix, long: usize, short: usize) -> Vec<Vec<f64>> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let mut all: Vec<Vec<f64>> = Vec::with_capacity(short);
    for _ in 0..short {
        let mut v: Vec<f64> = (0..long).map(|_| rng.normal()).collect();
        for _ in 0..2 {
            for u in &all {
                let along = dot(u, &v);
                v.iter_mut().zip(u).for_each(|(x, y)| *x -= along * y);
            }
        }
        let length = dot(&v, &v).sqrt();
        v.iter_mut().for_each(|x| *x /= length);
        all.push(v);
    }
    all
}
