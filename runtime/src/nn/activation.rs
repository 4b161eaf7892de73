//! Activations as modules, for `Sequential`: a line each.
use super::init;
use super::module::{Module, Parts, Training};
use crate::tensor::Tensor;
use crate::where_;

macro_rules! activations {
    // Without numbers: the name is the module.
    ($(#[$doc:meta])* $name:ident => |$x:ident| $f:expr; $($rest:tt)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;
        impl $name {
            // As other layers are made.
            #[doc(hidden)]
            #[allow(clippy::new_without_default)]
            pub fn new() -> $name {
                $name
            }
        }
        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, $x: &Tensor) -> Tensor {
                $f
            }
        }
        activations!($($rest)*);
    };
    // With numbers that have defaults, by name: `GELU` and `GELU.approximate(true)`.
    ($(#[$doc:meta])* $name:ident { $($field:ident: $t:ty = $default:expr),* } => |$m:ident, $x:ident| $f:expr; $($rest:tt)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            $(pub $field: $t,)*
        }
        /// With torch's defaults.
        #[allow(non_upper_case_globals)]
        pub const $name: $name = $name { $($field: $default),* };
        impl Default for $name {
            fn default() -> $name {
                $name
            }
        }
        impl $name {
            #[doc(hidden)]
            pub fn new() -> $name {
                $name
            }

            $(
                /// With another one.
                pub fn $field(mut self, $field: $t) -> $name {
                    self.$field = $field;
                    self
                }
            )*
        }
        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, $x: &Tensor) -> Tensor {
                let $m = self;
                $f
            }

            fn parts(&self, p: &mut Parts) {
                $(p.setting(stringify!($field), &self.$field);)*
            }
        }
        activations!($($rest)*);
    };
    // With numbers in torch's order; `Default` where torch has defaults.
    ($(#[$doc:meta])* $name:ident($($field:ident: $t:ty $(= $default:expr)?),*) => |$x:ident| $f:expr; $($rest:tt)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name($(pub $t),*);
        impl $name {
            // As other layers are made.
            #[doc(hidden)]
            pub fn new($($field: $t),*) -> $name {
                $name($($field),*)
            }
        }
        activations!(@default $name [$($($default,)?)*]);
        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, $x: &Tensor) -> Tensor {
                let $name($($field),*) = *self;
                $f
            }

            fn parts(&self, p: &mut Parts) {
                let $name($($field),*) = self;
                $(p.setting(stringify!($field), $field);)*
            }
        }
        activations!($($rest)*);
    };
    (@default $name:ident []) => {};
    (@default $name:ident [$($default:expr,)+]) => {
        impl Default for $name {
            fn default() -> $name {
                $name($($default),*)
            }
        }
    };
    () => {};
}

activations! {
    /// `max(x, 0)` (`torch.nn.ReLU`).
    ///
    /// `nn::ReLU.forward(&tensor([-1.0, 2.0]))` is `[0., 2.]`.
    ReLU => |x| x.relu();
    /// Bounded to 0..=6 (`torch.nn.ReLU6`).
    ///
    /// `nn::ReLU6.forward(&tensor([-1.0, 2.0]))` is `[0., 2.]`.
    ReLU6 => |x| x.relu6();
    /// `1 / (1 + exp(-x))` (`torch.nn.Sigmoid`).
    ///
    /// `nn::Sigmoid.forward(&tensor([-1.0, 2.0]))` is `[0.2689, 0.8808]`.
    Sigmoid => |x| x.sigmoid();
    /// The hyperbolic tangent (`torch.nn.Tanh`).
    ///
    /// `nn::Tanh.forward(&tensor([-1.0, 2.0]))` is `[-0.7616, 0.9640]`.
    Tanh => |x| x.tanh();
    /// `x sigmoid(x)` (`torch.nn.SiLU`).
    ///
    /// `nn::SiLU.forward(&tensor([-1.0, 2.0]))` is `[-0.2689, 1.7616]`.
    SiLU => |x| x.silu();
    /// `x tanh(softplus(x))` (`torch.nn.Mish`).
    ///
    /// `nn::Mish.forward(&tensor([-1.0, 2.0]))` is `[-0.3034, 1.9440]`.
    Mish => |x| x.mish();
    /// elu with the constants that keep mean 0 and variance 1 (`torch.nn.SELU`).
    ///
    /// `nn::SELU.forward(&tensor([-1.0, 2.0]))` is `[-1.1113, 2.1014]`.
    SELU => |x| x.selu();
    /// relu6(x + 3) / 6 (`torch.nn.Hardsigmoid`).
    ///
    /// `nn::Hardsigmoid.forward(&tensor([-1.0, 2.0]))` is `[0.3333, 0.8333]`.
    Hardsigmoid => |x| x.hardsigmoid();
    /// `x hardsigmoid(x)` (`torch.nn.Hardswish`).
    ///
    /// `nn::Hardswish.forward(&tensor([-1.0, 2.0]))` is `[-0.3333, 1.6667]`.
    Hardswish => |x| x.hardswish();
    /// log(sigmoid(x)) (`torch.nn.LogSigmoid`).
    ///
    /// `nn::LogSigmoid.forward(&tensor([-1.0, 2.0]))` is `[-1.3133, -0.1269]`.
    LogSigmoid => |x| x.logsigmoid();
    /// x / (1 + |x|) (`torch.nn.Softsign`).
    ///
    /// `nn::Softsign.forward(&tensor([-1.0, 2.0]))` is `[-0.5000, 0.6667]`.
    Softsign => |x| x.softsign();
    /// x - tanh(x) (`torch.nn.Tanhshrink`).
    ///
    /// `nn::Tanhshrink.forward(&tensor([-1.0, 2.0]))` is `[-0.2384, 1.0360]`.
    Tanhshrink => |x| x.tanhshrink();
    /// Softmax over the channels of each place of a picture, [n, c, h, w] (`torch.nn.Softmax2d`).
    ///
    /// `nn::Softmax2d.forward(&Tensor::zeros([1, 2, 1, 1])).flatten()` is `[0.5000, 0.5000]`.
    Softmax2d => |x| x.softmax(-3);
    /// Gives its input back (`torch.nn.Identity`).
    ///
    /// `nn::Identity.forward(&tensor([1, 2]))` is `[1, 2]`.
    Identity => |x| x.clone();

    /// `x Φ(x)` (`torch.nn.GELU`); `GELU.approximate(true)` takes the formula with tanh (`approximate="tanh"`).
    ///
    /// `nn::GELU.forward(&tensor([-1.0, 2.0]))` is `[-0.1587, 1.9545]`.
    GELU { approximate: bool = false } => |m, x| if m.approximate { x.gelu_tanh() } else { x.gelu() };
    /// `log(1 + exp(beta x)) / beta`, and x where beta x is above the threshold (`torch.nn.Softplus`).
    ///
    /// `nn::Softplus.forward(&tensor([-1.0, 2.0]))` is `[0.3133, 2.1269]`.
    Softplus { beta: f64 = 1.0, threshold: f64 = 20.0 } => |m, x| match (m.beta, m.threshold) {
        (1.0, 20.0) => x.softplus(),
        (beta, threshold) => x.softplus_with(beta, threshold),
    };

    /// `x` where positive, `slope x` elsewhere (`torch.nn.LeakyReLU`); the default slope is 0.01.
    ///
    /// `nn::LeakyReLU(0.1).forward(&tensor([-1.0, 2.0]))` is `[-0.1000, 2.0000]`.
    LeakyReLU(negative_slope: f64 = 0.01) => |x| x.leaky_relu(negative_slope);
    /// `x` where positive, `alpha (exp(x) - 1)` elsewhere (`torch.nn.ELU`); the default alpha is 1.
    ///
    /// `nn::ELU(1.0).forward(&tensor([-1.0, 2.0]))` is `[-0.6321, 2.0000]`.
    ELU(alpha: f64 = 1.0) => |x| x.elu(alpha);
    /// `x` where positive, `alpha (exp(x / alpha) - 1)` elsewhere (`torch.nn.CELU`); the default alpha is 1.
    ///
    /// `nn::CELU(1.0).forward(&tensor([-1.0, 2.0]))` is `[-0.6321, 2.0000]`.
    CELU(alpha: f64 = 1.0) => |x| x.celu(alpha);
    /// x, but zero between `-lambd` and `lambd` (`torch.nn.Hardshrink`); by default 0.5.
    ///
    /// `nn::Hardshrink(0.5).forward(&tensor([0.2, 2.0]))` is `[0., 2.]`.
    Hardshrink(lambd: f64 = 0.5) => |x| x.hardshrink(lambd);
    /// x moved towards zero by `lambd`, zero in between (`torch.nn.Softshrink`); by default 0.5.
    ///
    /// `nn::Softshrink(0.5).forward(&tensor([0.2, 2.0]))` is `[0.0000, 1.5000]`.
    Softshrink(lambd: f64 = 0.5) => |x| x.softshrink(lambd);
    /// Bounded to `min_val..=max_val` (`torch.nn.Hardtanh`); by default -1 and 1.
    ///
    /// `nn::Hardtanh(-1.0, 1.0).forward(&tensor([0.2, 2.0]))` is `[0.2000, 1.0000]`.
    Hardtanh(min_val: f64 = -1.0, max_val: f64 = 1.0) => |x| x.hardtanh(min_val, max_val);
    /// x where above the threshold, `value` elsewhere (`torch.nn.Threshold`).
    ///
    /// `nn::Threshold(1.0, 0.0).forward(&tensor([0.2, 2.0]))` is `[0., 2.]`.
    Threshold(threshold: f64, value: f64) => |x| x.threshold(threshold, value);
    /// The first half along `dim` times the sigmoid of the second (`torch.nn.GLU`); the last dimension by default.
    ///
    /// `nn::GLU(-1).forward(&tensor([1.0, 0.0]))` is `[0.5000]`.
    GLU(dim: i64 = -1) => |x| x.glu(dim);
    /// Shares that add up to 1 along a dimension (`torch.nn.Softmax`).
    ///
    /// `nn::Softmax(-1).forward(&tensor([0.0, 1.0]))` is `[0.2689, 0.7311]`.
    Softmax(dim: i64) => |x| x.softmax(dim);
    /// softmax(-x) along a dimension (`torch.nn.Softmin`).
    ///
    /// `nn::Softmin(-1).forward(&tensor([0.0, 1.0]))` is `[0.7311, 0.2689]`.
    Softmin(dim: i64) => |x| x.softmin(dim);
    /// The logarithm of softmax along a dimension (`torch.nn.LogSoftmax`).
    ///
    /// `nn::LogSoftmax(-1).forward(&tensor([0.0, 1.0]))` is `[-1.3133, -0.3133]`.
    LogSoftmax(dim: i64) => |x| x.log_softmax(dim);
}

/// `x` where positive, a learnt slope times `x` elsewhere: one slope, or one for each channel (`torch.nn.PReLU`).
///
/// ```
/// use xlazy::prelude::*;
/// assert_eq!(nn::PReLU::new(1, 0.25).forward(&tensor([-4.0, 1.0])).to_vec::<f32>(), [-1.0, 1.0]);
/// ```
pub struct PReLU {
    /// `[1]`, or `[channels]`
    pub weight: Tensor,
}

impl PReLU {
    #[track_caller]
    pub fn new(num_parameters: usize, init: f64) -> PReLU {
        PReLU { weight: init::buffer([num_parameters], init).requires_grad_(true) }
    }
}

impl Module for PReLU {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.prelu(&self.weight)
    }

    fn parts(&self, p: &mut Parts) {
        p.add("weight", &self.weight);
    }
}

/// `x` where positive, elsewhere `x` times a slope drawn between `lower` and `upper` for each element while training, and their
/// mean otherwise (`torch.nn.RReLU`); by default 1/8 and 1/3.
///
/// ```
/// use xlazy::prelude::*;
/// let mut layer = nn::RReLU::new(0.1, 0.3);
/// layer.eval();
/// assert!(layer.forward(&tensor([-1.0, 2.0])).allclose(&tensor([-0.2, 2.0])));
/// ```
pub struct RReLU {
    pub lower: f64,
    pub upper: f64,
    training: Training,
}

impl RReLU {
    pub fn new(lower: f64, upper: f64) -> RReLU {
        RReLU { lower, upper, training: Training::default() }
    }
}

impl Default for RReLU {
    fn default() -> RReLU {
        RReLU::new(1.0 / 8.0, 1.0 / 3.0)
    }
}

impl Module for RReLU {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        rrelu(x, self.lower, self.upper, self.training.on())
    }

    fn parts(&self, p: &mut Parts) {
        p.setting("lower", &self.lower);
        p.setting("upper", &self.upper);
        p.training(&self.training);
    }
}

#[track_caller]
pub(super) fn rrelu(x: &Tensor, lower: f64, upper: f64, training: bool) -> Tensor {
    crate::insight::mode::note(training);
    if !training {
        return x.leaky_relu((lower + upper) / 2.0);
    }
    let slopes = x.detach().rand_like() * (upper - lower) + lower;
    where_(&x.ge(0.0), x, x * slopes)
}

/// An activation by name, for options of layers and models: torch's and transformers' `"relu"`, `"gelu"`, `"gelu_new"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    ReLU,
    GELU,
    /// GELU by its formula with tanh (`"gelu_new"`).
    GELUTanh,
    SiLU,
    Tanh,
}

impl Activation {
    /// What it makes of `x`.
    #[track_caller]
    pub fn of(self, x: &Tensor) -> Tensor {
        match self {
            Activation::ReLU => x.relu(),
            Activation::GELU => x.gelu(),
            Activation::GELUTanh => x.gelu_tanh(),
            Activation::SiLU => x.silu(),
            Activation::Tanh => x.tanh(),
        }
    }
}
