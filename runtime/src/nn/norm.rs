//! Normalisation layers.
use super::init;
use super::module::{Module, Parts, Training, at_caller};
use crate::BatchNormOptions;
use crate::changes::Changes;
use crate::tensor::Tensor;
use xlazy_core::ty::Dims;

/// Which of weight and bias count.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Affine {
    Both,
    Weight,
    Neither,
}

impl Affine {
    fn of<'a>(self, weight: &'a Tensor, bias: &'a Tensor) -> (Option<&'a Tensor>, Option<&'a Tensor>) {
        ((self != Affine::Neither).then_some(weight), (self == Affine::Both).then_some(bias))
    }

    fn parts(self, p: &mut Parts, weight: &Tensor, bias: &Tensor) {
        p.unusual("affine", &(self != Affine::Neither), &true);
        let (weight, bias) = self.of(weight, bias);
        weight.iter().for_each(|w| p.add("weight", *w));
        bias.iter().for_each(|b| p.add("bias", *b));
    }
}

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
    affine: Affine,
}

impl LayerNorm {
    #[track_caller]
    pub fn new(normalized_shape: impl Into<Dims>) -> LayerNorm {
        LayerNorm::with(normalized_shape, 1e-5)
    }

    #[track_caller]
    pub fn with(normalized_shape: impl Into<Dims>, eps: f64) -> LayerNorm {
        let size = normalized_shape.into();
        LayerNorm { weight: init::ones(size.clone()), bias: init::zeros(size), eps, affine: Affine::Both }
    }

    /// As with `bias=False`.
    pub fn without_bias(self) -> LayerNorm {
        LayerNorm { affine: Affine::Weight, ..self }
    }

    /// As with `elementwise_affine=False`: neither weight nor bias.
    pub fn without_affine(self) -> LayerNorm {
        LayerNorm { affine: Affine::Neither, ..self }
    }
}

impl Module for LayerNorm {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.run(x)
    }

    fn parts(&self, p: &mut Parts) {
        if self.affine == Affine::Neither {
            p.setting("normalized_shape", &self.weight.shape().to_vec());
        }
        p.setting("eps", &self.eps);
        self.affine.parts(p, &self.weight, &self.bias);
    }
}

impl LayerNorm {
    #[track_caller]
    fn run(&self, x: &Tensor) -> Tensor {
        let (weight, bias) = self.affine.of(&self.weight, &self.bias);
        at_caller(|| x.layer_norm(self.weight.shape(), weight, bias, self.eps))
    }
}

/// Divides by the root of the mean of squares over the last dimensions (`torch.nn.RMSNorm`).
///
/// `nn::RMSNorm::new(2, 1e-6).forward(&tensor([[3.0, 4.0]]))` is `[[0.8485, 1.1314]]`.
pub struct RMSNorm {
    pub weight: Tensor,
    pub eps: f64,
}

impl RMSNorm {
    /// torch's `eps=None` is the dtype's: `f32::EPSILON as f64`.
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
        p.setting("eps", &self.eps);
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
///
/// `nn::GroupNorm::new(2, 4).forward(&tensor([[1.0, 3.0, 5.0, 9.0]]))` is `[[-1.0000, 1.0000, -1.0000, 1.0000]]`.
pub struct GroupNorm {
    pub num_groups: usize,
    pub weight: Tensor,
    pub bias: Tensor,
    pub eps: f64,
    affine: Affine,
}

impl GroupNorm {
    #[track_caller]
    pub fn new(num_groups: usize, num_channels: usize) -> GroupNorm {
        GroupNorm::with(num_groups, num_channels, 1e-5)
    }

    #[track_caller]
    pub fn with(num_groups: usize, num_channels: usize, eps: f64) -> GroupNorm {
        let (weight, bias) = (init::ones([num_channels]), init::zeros([num_channels]));
        GroupNorm { num_groups, weight, bias, eps, affine: Affine::Both }
    }

    /// As with `affine=False`: neither weight nor bias.
    pub fn without_affine(self) -> GroupNorm {
        GroupNorm { affine: Affine::Neither, ..self }
    }
}

impl Module for GroupNorm {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.run(x)
    }

    fn parts(&self, p: &mut Parts) {
        p.setting("num_groups", &self.num_groups);
        if self.affine == Affine::Neither {
            p.setting("num_channels", &self.weight.numel());
        }
        p.setting("eps", &self.eps);
        self.affine.parts(p, &self.weight, &self.bias);
    }
}

impl GroupNorm {
    #[track_caller]
    fn run(&self, x: &Tensor) -> Tensor {
        let (weight, bias) = self.affine.of(&self.weight, &self.bias);
        at_caller(|| x.group_norm(self.num_groups, weight, bias, self.eps))
    }
}

/// Normalises each channel of each example over its space (`torch.nn.InstanceNorm1d`, `torch.nn.InstanceNorm2d`,
/// `torch.nn.InstanceNorm3d`): [n, c, ...], or without the batch. As in torch it has no weights unless [`InstanceNorm::affine`]
/// gives them; it keeps no running statistics.
///
/// ```
/// use xlazy::prelude::*;
/// let y = nn::InstanceNorm1d::new(3).forward(&Tensor::rand([2, 3, 8]));
/// assert!(y.mean().item().abs() < 1e-5);
/// ```
pub struct InstanceNorm {
    pub num_features: usize,
    pub weight: Option<Tensor>,
    pub bias: Option<Tensor>,
    pub eps: f64,
}

pub use InstanceNorm as InstanceNorm1d;
pub use InstanceNorm as InstanceNorm2d;
pub use InstanceNorm as InstanceNorm3d;

impl InstanceNorm {
    #[track_caller]
    pub fn new(num_features: usize) -> InstanceNorm {
        InstanceNorm::with(num_features, 1e-5)
    }

    #[track_caller]
    pub fn with(num_features: usize, eps: f64) -> InstanceNorm {
        InstanceNorm { num_features, weight: None, bias: None, eps }
    }

    /// With a weight and a bias for each channel.
    #[track_caller]
    pub fn affine(self) -> InstanceNorm {
        let (weight, bias) = (Some(init::ones([self.num_features])), Some(init::zeros([self.num_features])));
        InstanceNorm { weight, bias, ..self }
    }
}

impl Module for InstanceNorm {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.run(x)
    }

    fn parts(&self, p: &mut Parts) {
        p.setting("num_features", &self.num_features);
        p.setting("eps", &self.eps);
        p.add("weight", &self.weight);
        p.add("bias", &self.bias);
    }
}

impl InstanceNorm {
    #[track_caller]
    fn run(&self, x: &Tensor) -> Tensor {
        at_caller(|| {
            let normalised = |x: &Tensor| x.instance_norm(self.weight.as_ref(), self.bias.as_ref(), self.eps);
            // the channels come first where there is no batch
            match x.dim() > 1 && x.size(0) == self.num_features && x.size(1) != self.num_features {
                true => normalised(&x.unsqueeze(0)).squeeze_dim(0),
                false => normalised(x),
            }
        })
    }
}

/// Divides by what the channels around a place have there (`torch.nn.LocalResponseNorm`); [`LocalResponseNorm::new`] has torch's
/// alpha 1e-4, beta 0.75 and k 1.
///
/// ```
/// use xlazy::prelude::*;
/// let y = nn::LocalResponseNorm::new(2).forward(&Tensor::ones([1, 2, 3]));
/// assert!(y.lt(1.0).all().item() == 1.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LocalResponseNorm {
    pub size: usize,
    pub alpha: f64,
    pub beta: f64,
    pub k: f64,
}

impl LocalResponseNorm {
    pub fn new(size: usize) -> LocalResponseNorm {
        LocalResponseNorm { size, alpha: 1e-4, beta: 0.75, k: 1.0 }
    }
}

impl Module for LocalResponseNorm {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.local_response_norm(self.size, self.alpha, self.beta, self.k)
    }

    fn parts(&self, p: &mut Parts) {
        p.setting("size", &self.size);
        p.setting("alpha", &self.alpha);
        p.setting("beta", &self.beta);
        p.setting("k", &self.k);
    }
}

/// Normalises each channel, dimension 1, over the batch (`torch.nn.BatchNorm1d`, `torch.nn.BatchNorm2d`,
/// `torch.nn.BatchNorm3d`). While training, the
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
    /// Whether running statistics are kept, and used in evaluation.
    pub track_running_stats: bool,
    pub eps: f64,
    pub momentum: f64,
    training: Training,
    affine: Affine,
}

pub use BatchNorm as BatchNorm1d;
pub use BatchNorm as BatchNorm2d;
pub use BatchNorm as BatchNorm3d;

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
            track_running_stats: true,
            running_mean: init::buffer([num_features], 0.0),
            running_var: init::buffer([num_features], 1.0),
            num_batches_tracked: Tensor::from_vec(vec![0i64], ()),
            eps,
            momentum,
            training: Training::default(),
            affine: Affine::Both,
        }
    }

    /// As with `affine=False`: neither weight nor bias.
    pub fn without_affine(self) -> BatchNorm {
        BatchNorm { affine: Affine::Neither, ..self }
    }

    /// As with `track_running_stats=False`: always by the batch's statistics.
    pub fn without_running_stats(self) -> BatchNorm {
        BatchNorm { track_running_stats: false, ..self }
    }
}

impl Module for BatchNorm {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.run(x)
    }

    fn parts(&self, p: &mut Parts) {
        if self.affine == Affine::Neither && !self.track_running_stats {
            p.setting("num_features", &self.weight.numel());
        }
        p.setting("eps", &self.eps);
        p.setting("momentum", &self.momentum);
        p.unusual("track_running_stats", &self.track_running_stats, &true);
        self.affine.parts(p, &self.weight, &self.bias);
        if self.track_running_stats {
            p.buffer("running_mean", &self.running_mean);
            p.buffer("running_var", &self.running_var);
            p.buffer("num_batches_tracked", &self.num_batches_tracked);
        }
        p.training(&self.training);
    }
}

impl BatchNorm {
    #[track_caller]
    fn run(&self, x: &Tensor) -> Tensor {
        let training = self.training.on();
        let options = BatchNormOptions { training, momentum: self.momentum, eps: self.eps };
        let kept = |t| self.track_running_stats.then_some(t);
        let running = (kept(&self.running_mean), kept(&self.running_var));
        let (weight, bias) = self.affine.of(&self.weight, &self.bias);
        at_caller(|| {
            let mut changes = Changes::new();
            if training && self.track_running_stats {
                // Only for torch's state; nothing here reads it.
                let count = &self.num_batches_tracked;
                changes.assign("add_", count, count + 1);
            }
            let y = x.batch_norm_with(running.0, running.1, weight, bias, options, &mut changes);
            changes.apply();
            y
        })
    }
}
