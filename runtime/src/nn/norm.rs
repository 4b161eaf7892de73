//! Normalisation layers.
use super::init;
use super::module::{Module, Parts, Training, at_caller};
use crate::BatchNormOptions;
use crate::changes::Changes;
use crate::tensor::Tensor;
use xlazy_core::ty::Dims;

/// Normalises over the last dimensions (`torch.nn.LayerNorm`).
///
/// ```
/// use xlazy::prelude::*;
/// let y = nn::LayerNorm::new(4).forward(&Tensor::rand([2, 3, 4]));
/// assert!(y.mean().item().abs() < 1e-6);
/// ```
pub struct LayerNorm {
    pub weight: Tensor,
    pub bias: Tensor,
    pub eps: f64,
}

impl LayerNorm {
    #[track_caller]
    pub fn new(normalized_shape: impl Into<Dims>) -> LayerNorm {
        LayerNorm::with(normalized_shape, 1e-5)
    }

    #[track_caller]
    pub fn with(normalized_shape: impl Into<Dims>, eps: f64) -> LayerNorm {
        let size = normalized_shape.into();
        LayerNorm { weight: init::ones(size.clone()), bias: init::zeros(size), eps }
    }
}

impl Module for LayerNorm {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.run(x)
    }

    fn parts(&self, p: &mut Parts) {
        p.add("weight", &self.weight);
        p.add("bias", &self.bias);
    }
}

impl LayerNorm {
    #[track_caller]
    fn run(&self, x: &Tensor) -> Tensor {
        at_caller(|| x.layer_norm(self.weight.shape(), Some(&self.weight), Some(&self.bias), self.eps))
    }
}

/// Divides by the root of the mean of squares over the last dimensions (`torch.nn.RMSNorm`).
pub struct RMSNorm {
    pub weight: Tensor,
    pub eps: f64,
}

impl RMSNorm {
    #[track_caller]
    pub fn new(normalized_shape: impl Into<Dims>, eps: f64) -> RMSNorm {
        RMSNorm { weight: init::ones(normalized_shape), eps }
    }
}

impl Module for RMSNorm {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.run(x)
    }

    fn parts(&self, p: &mut Parts) {
        p.add("weight", &self.weight);
    }
}

impl RMSNorm {
    #[track_caller]
    fn run(&self, x: &Tensor) -> Tensor {
        at_caller(|| x.rms_norm(self.weight.shape(), Some(&self.weight), self.eps))
    }
}

/// Normalises over groups of channels, dimension 1 (`torch.nn.GroupNorm`).
pub struct GroupNorm {
    pub num_groups: usize,
    pub weight: Tensor,
    pub bias: Tensor,
    pub eps: f64,
}

impl GroupNorm {
    #[track_caller]
    pub fn new(num_groups: usize, num_channels: usize) -> GroupNorm {
        let (weight, bias) = (init::ones([num_channels]), init::zeros([num_channels]));
        GroupNorm { num_groups, weight, bias, eps: 1e-5 }
    }
}

impl Module for GroupNorm {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.run(x)
    }

    fn parts(&self, p: &mut Parts) {
        p.add("weight", &self.weight);
        p.add("bias", &self.bias);
    }
}

impl GroupNorm {
    #[track_caller]
    fn run(&self, x: &Tensor) -> Tensor {
        at_caller(|| x.group_norm(self.num_groups, Some(&self.weight), Some(&self.bias), self.eps))
    }
}

/// Normalises each channel, dimension 1, over the batch (`torch.nn.BatchNorm1d`, `BatchNorm2d`, …). While training, the
/// running statistics follow the batches', as part of the same step; in evaluation they are what is normalised by.
///
/// Of an interrupted forward a layer has taken the whole batch or nothing. Of several layers, those before the interrupt have
/// taken it, as in torch: a model's forward is a function like others, of which no layer knows where it begins and ends.
///
/// ```
/// use xlazy::prelude::*;
/// let layer = nn::BatchNorm2d::new(3);
/// layer.forward(&(Tensor::ones([4, 3, 2, 2]) * 10.0));
/// assert_eq!(layer.running_mean.to_vec::<f32>(), [1.0; 3]);
/// ```
pub struct BatchNorm {
    pub weight: Tensor,
    pub bias: Tensor,
    pub running_mean: Tensor,
    pub running_var: Tensor,
    pub num_batches_tracked: Tensor,
    pub eps: f64,
    pub momentum: f64,
    training: Training,
}

pub use BatchNorm as BatchNorm1d;
pub use BatchNorm as BatchNorm2d;

impl BatchNorm {
    #[track_caller]
    pub fn new(num_features: usize) -> BatchNorm {
        BatchNorm::with(num_features, 1e-5, 0.1)
    }

    #[track_caller]
    pub fn with(num_features: usize, eps: f64, momentum: f64) -> BatchNorm {
        BatchNorm {
            weight: init::ones([num_features]),
            bias: init::zeros([num_features]),
            running_mean: init::buffer([num_features], 0.0),
            running_var: init::buffer([num_features], 1.0),
            num_batches_tracked: Tensor::from_vec(vec![0i64], ()),
            eps,
            momentum,
            training: Training::default(),
        }
    }
}

impl Module for BatchNorm {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.run(x)
    }

    fn parts(&self, p: &mut Parts) {
        p.add("weight", &self.weight);
        p.add("bias", &self.bias);
        p.buffer("running_mean", &self.running_mean);
        p.buffer("running_var", &self.running_var);
        p.buffer("num_batches_tracked", &self.num_batches_tracked);
        p.training(&self.training);
    }
}

impl BatchNorm {
    #[track_caller]
    fn run(&self, x: &Tensor) -> Tensor {
        let training = self.training.on();
        let options = BatchNormOptions { training, momentum: self.momentum, eps: self.eps };
        let running = (Some(&self.running_mean), Some(&self.running_var));
        at_caller(|| {
            let mut changes = Changes::new();
            if training {
                // Only for torch's state; nothing here reads it.
                let count = &self.num_batches_tracked;
                changes.assign("add_", count, count + 1);
            }
            let y =
                x.batch_norm_with(running.0, running.1, Some(&self.weight), Some(&self.bias), options, &mut changes);
            changes.apply();
            y
        })
    }
}
