//! Dropout as a module.
use super::module::{Module, Parts, Training};
use crate::tensor::Tensor;

/// Zeroes elements with probability `p` while training and scales the others by 1 / (1 - p) (`torch.nn.Dropout`).
///
/// ```
/// use xlazy::prelude::*;
/// let layer = nn::Dropout::new(0.5);
/// layer.eval();
/// assert_eq!(layer.forward(&Tensor::ones([4])).to_vec::<f32>(), [1.0; 4]);
/// ```
pub struct Dropout {
    pub p: f64,
    training: Training,
}

impl Dropout {
    pub fn new(p: f64) -> Dropout {
        Dropout { p, training: Training::default() }
    }
}

impl Module for Dropout {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.dropout(self.p, self.training.on())
    }

    fn parts(&self, p: &mut Parts) {
        p.training(&self.training);
    }
}
