//! The fully connected layer.
use super::init;
use super::module::{Module, Parts};
use crate::tensor::Tensor;

/// `x Wᵀ + b`: [..., in] to [..., out] (`torch.nn.Linear`). Starts as torch's does: uniform within ±1/√in.
///
/// ```
/// use xlazy::prelude::*;
/// let layer = nn::Linear::new(3, 2);
/// assert_eq!(layer.weight.shape(), [2, 3]);
/// assert_eq!(layer.forward(&Tensor::ones([5, 3])).shape(), [5, 2]);
/// ```
pub struct Linear {
    /// `[out, in]`
    pub weight: Tensor,
    /// `[out]`
    pub bias: Option<Tensor>,
}

impl Linear {
    #[track_caller]
    pub fn new(in_features: usize, out_features: usize) -> Linear {
        let bias = init::uniform([out_features], init::default_bound(in_features));
        Linear { bias: Some(bias), ..Linear::without_bias(in_features, out_features) }
    }

    /// As `torch.nn.Linear(in, out, bias=False)`.
    ///
    /// `nn::Linear::without_bias(4, 3).forward(&Tensor::ones([2, 4])).shape()` is `[2,3]`.
    #[track_caller]
    pub fn without_bias(in_features: usize, out_features: usize) -> Linear {
        let weight = init::uniform([out_features, in_features], init::default_bound(in_features));
        Linear { weight, bias: None }
    }

    /// As torch's `bias=`; a layer made by `new` has one.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!(nn::Linear::new(3, 2).bias(false).bias.is_none());
    /// ```
    #[track_caller]
    pub fn bias(mut self, bias: bool) -> Linear {
        let shape = self.weight.shape();
        let drawn = || init::uniform([shape[0]], init::default_bound(shape[1]));
        self.bias = bias.then(|| self.bias.take().unwrap_or_else(drawn));
        self
    }
}

impl Module for Linear {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let y = x.matmul(&self.weight.t());
        match &self.bias {
            // a product may be in a smaller dtype (`autocast`), and a bias makes it no larger
            Some(b) => &y + b.to(y.dtype()),
            None => y,
        }
    }

    fn parts(&self, p: &mut Parts) {
        p.add("weight", &self.weight);
        p.add("bias", &self.bias);
    }
}
