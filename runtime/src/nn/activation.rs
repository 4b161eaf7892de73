//! Activations as modules, for `Sequential`.
use super::module::Module;
use crate::tensor::Tensor;

macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident => |$x:ident| $f:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;
        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, $x: &Tensor) -> Tensor {
                $f
            }
        }
    )*};
}

activations! {
    /// `max(x, 0)` (`torch.nn.ReLU`).
    ReLU => |x| x.relu();
    /// `1 / (1 + exp(-x))` (`torch.nn.Sigmoid`).
    Sigmoid => |x| x.sigmoid();
    /// The hyperbolic tangent (`torch.nn.Tanh`).
    Tanh => |x| x.tanh();
    /// `x Φ(x)` (`torch.nn.GELU`).
    GELU => |x| x.gelu();
    /// `x sigmoid(x)` (`torch.nn.SiLU`).
    SiLU => |x| x.silu();
    /// `log(1 + exp(x))` (`torch.nn.Softplus`).
    Softplus => |x| x.softplus();
    /// Gives its input back (`torch.nn.Identity`).
    Identity => |x| x.clone();
}

/// `x` where positive, `slope x` elsewhere (`torch.nn.LeakyReLU`); the default slope is 0.01.
#[derive(Clone, Copy, Debug)]
pub struct LeakyReLU(pub f64);

impl Default for LeakyReLU {
    fn default() -> LeakyReLU {
        LeakyReLU(0.01)
    }
}

impl Module for LeakyReLU {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.leaky_relu(self.0)
    }
}

/// `x` where positive, `alpha (exp(x) - 1)` elsewhere (`torch.nn.ELU`); the default alpha is 1.
#[derive(Clone, Copy, Debug)]
pub struct ELU(pub f64);

impl Default for ELU {
    fn default() -> ELU {
        ELU(1.0)
    }
}

impl Module for ELU {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.elu(self.0)
    }
}

/// Shares that add up to 1 along a dimension (`torch.nn.Softmax`).
#[derive(Clone, Copy, Debug)]
pub struct Softmax(pub i64);

impl Module for Softmax {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.softmax(self.0)
    }
}

/// The logarithm of softmax along a dimension (`torch.nn.LogSoftmax`).
#[derive(Clone, Copy, Debug)]
pub struct LogSoftmax(pub i64);

impl Module for LogSoftmax {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.log_softmax(self.0)
    }
}
