//! Dropout as modules.
use super::module::{Module, Parts, Training};
use crate::tensor::Tensor;
use crate::where_;

macro_rules! dropouts {
    ($($(#[$doc:meta])* $name:ident => $f:path;)*) => {$(
        $(#[$doc])*
        pub struct $name {
            pub p: f64,
            training: Training,
        }

        impl $name {
            pub fn new(p: f64) -> $name {
                $name { p, training: Training::default() }
            }
        }

        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                $f(x, self.p, self.training.on())
            }

            fn parts(&self, p: &mut Parts) {
                p.setting("p", &self.p);
                p.training(&self.training);
            }
        }
    )*};
}

dropouts! {
    /// Zeroes elements with probability `p` while training and scales the others by 1 / (1 - p) (`torch.nn.Dropout`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let layer = nn::Dropout::new(0.5);
    /// layer.eval();
    /// assert_eq!(layer.forward(&Tensor::ones([4])).to_vec::<f32>(), [1.0; 4]);
    /// ```
    Dropout => Tensor::dropout;
    /// Whole channels of [n, c, length] (`torch.nn.Dropout1d`).
    ///
    /// `nn::Dropout1d::new(0.5).forward(&Tensor::ones([2, 3, 4])).shape()` is `[2,3,4]`.
    Dropout1d => channels;
    /// Whole channels of [n, c, height, width] (`torch.nn.Dropout2d`).
    ///
    /// `nn::Dropout2d::new(0.5).forward(&Tensor::ones([2, 3, 4, 4])).shape()` is `[2,3,4,4]`.
    Dropout2d => channels;
    /// Whole channels of [n, c, depth, height, width] (`torch.nn.Dropout3d`).
    ///
    /// `nn::Dropout3d::new(0.5).forward(&Tensor::ones([2, 3, 2, 4, 4])).shape()` is `[2,3,2,4,4]`.
    Dropout3d => channels;
    /// Elements become the value that SELU tends to, and the rest is scaled so that mean and variance stay
    /// (`torch.nn.AlphaDropout`).
    ///
    /// `nn::AlphaDropout::new(0.5).forward(&Tensor::ones([2, 3])).shape()` is `[2,3]`.
    AlphaDropout => alpha;
    /// Whole channels become the value that SELU tends to (`torch.nn.FeatureAlphaDropout`).
    ///
    /// `nn::FeatureAlphaDropout::new(0.5).forward(&Tensor::ones([2, 3, 4])).shape()` is `[2,3,4]`.
    FeatureAlphaDropout => feature_alpha;
}

/// Ones of the shape of a channel's factor.
#[track_caller]
fn per_channel(x: &Tensor) -> Tensor {
    let shape: Vec<usize> = x.shape().iter().enumerate().map(|(i, &d)| if i < 2 { d } else { 1 }).collect();
    Tensor::ones(shape).to(x.dtype())
}

#[track_caller]
pub(crate) fn channels(x: &Tensor, p: f64, training: bool) -> Tensor {
    if !training {
        return x.dropout(p, false);
    }
    x * per_channel(x).dropout(p, true)
}

#[track_caller]
pub(super) fn alpha(x: &Tensor, p: f64, training: bool) -> Tensor {
    let kept = Tensor::ones(x.shape()).to(x.dtype());
    towards(x, kept, p, training)
}

#[track_caller]
pub(super) fn feature_alpha(x: &Tensor, p: f64, training: bool) -> Tensor {
    towards(x, per_channel(x), p, training)
}

/// As torch: what is dropped becomes -scale · alpha of SELU, and a linear map brings back mean 0 and variance 1.
#[track_caller]
fn towards(x: &Tensor, ones: Tensor, p: f64, training: bool) -> Tensor {
    if !training || p == 0.0 {
        return x.dropout(p, false);
    }
    let low = -1.7580993408473766;
    let a = 1.0 / ((1.0 - p) * (1.0 + p * low * low)).sqrt();
    let kept = ones.dropout(p, true).gt(0.0);
    where_(&kept, x, low) * a - a * low * p
}
