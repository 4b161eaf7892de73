//! Starting values of parameters (`torch.nn.init`), drawn on the host: a model's parameters are data from the start, so that
//! making them compiles nothing and the first step is the same program as the second.
use crate::ops::Key;
use crate::rng::SplitMix;
use crate::tensor::Tensor;
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
