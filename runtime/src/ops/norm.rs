//! Normalisation and attention, made of other ops; XLA fuses them.
use super::base::{promoted, rounded_once};
use crate::changes::Changes;
use crate::tensor::{Tensor, called, caller_line, refuse};
use xlazy_core::ty::Dims;

/// What torch's batch normalisation takes besides its tensors.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormOptions {
    /// Normalise by the batch's own statistics, and update the running ones.
    pub training: bool,
    /// How much of the running statistics a batch replaces.
    pub momentum: f64,
    pub eps: f64,
}

impl Default for BatchNormOptions {
    fn default() -> BatchNormOptions {
        BatchNormOptions { training: false, momentum: 0.1, eps: 1e-5 }
    }
}

/// What torch's attention takes besides query, key and value.
#[derive(Clone, Default)]
pub struct AttentionOptions {
    /// True where a key may be looked at, or numbers added to the scores.
    pub attn_mask: Option<Tensor>,
    pub dropout_p: f64,
    /// Hide the keys that come after a query.
    pub is_causal: bool,
    /// A factor on the scores instead of 1 / sqrt(size).
    pub scale: Option<f64>,
    /// Let groups of query heads share one key head.
    pub enable_gqa: bool,
}

// (x - mean) / sqrt(var + eps) over some dimensions, with the biased variance.
#[track_caller]
fn normalised(x: &Tensor, dims: &[usize], eps: f64) -> Tensor {
    let dtype = x.dtype();
    if dtype.is_half() {
        // as torch computes it: the statistics of halves, and their gradient, need more
        return normalised(&x.float(), dims, eps).to(dtype);
    }
    let mean = x.mean_dim(dims, true);
    let centred = x - mean;
    let variance = centred.square().mean_dim(dims, true);
    centred * (variance + eps).rsqrt()
}

// What is normalised keeps its dtype: parameters of float32 beside halves do not make it wider.
#[track_caller]
fn scaled(x: Tensor, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Tensor {
    let _line = caller_line();
    let dtype = x.dtype();
    let x = weight.map_or(x.clone(), |w| &x * w);
    bias.map_or(x.clone(), |b| &x + b).to(dtype)
}

// One number per channel, as a shape that broadcasts against (batch, channels, …).
#[track_caller]
fn per_channel(t: &Tensor, rank: usize) -> Tensor {
    let _line = caller_line();
    let mut shape = vec![1i64; rank];
    shape[usize::from(rank > 1)] = -1;
    t.reshape(shape)
}

impl Tensor {
    /// Normalised over the last dimensions, which `normalized_shape` names (`torch.nn.functional.layer_norm`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let y = tensor([[1.0, 3.0]]).layer_norm(2, None, None, 0.0);
    /// assert_eq!(y.to_vec::<f32>(), [-1.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn layer_norm(
        &self,
        normalized_shape: impl Into<Dims>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Tensor {
        let _call = called("layer_norm", [self].into_iter().chain(weight).chain(bias));
        let dims = self.last_dims("layer_norm", normalized_shape.into());
        self.as_the_last("layer_norm", &dims, weight, bias);
        scaled(normalised(self, &dims, eps), weight, bias)
    }

    /// Divided by the root of the mean of squares over the last dimensions (`torch.nn.functional.rms_norm`).
    ///
    /// `tensor([3.0, 4.0]).rms_norm([2], None, 0.0)` is `[0.8485, 1.1314]`.
    #[track_caller]
    pub fn rms_norm(&self, normalized_shape: impl Into<Dims>, weight: Option<&Tensor>, eps: f64) -> Tensor {
        let _call = called("rms_norm", [self]);
        let dims = self.last_dims("rms_norm", normalized_shape.into());
        self.as_the_last("rms_norm", &dims, weight, None);
        // Squares of halves are beyond their range soon: as torch, in float32.
        let wide = if self.dtype().is_half() { self.float() } else { self.clone() };
        let mean = wide.square().mean_dim(dims, true);
        scaled((&wide * (mean + eps).rsqrt()).to(self.dtype()), weight, None)
    }

    /// Refuses weights that are not of the shape of the dimensions that are normalised over.
    #[track_caller]
    fn as_the_last(&self, op: &'static str, dims: &[usize], weight: Option<&Tensor>, bias: Option<&Tensor>) {
        let shape = self.shape();
        for t in weight.into_iter().chain(bias) {
            if t.shape() != shape[shape.len() - dims.len()..] {
                refuse(
                    op,
                    &[self, t],
                    format!("weight and bias must be of the shape that is normalised over, not {}", t.shape()),
                );
            }
        }
    }

    /// Refuses weights and statistics that are not one number for each channel.
    #[track_caller]
    fn one_each(&self, op: &'static str, weight: Option<&Tensor>, bias: Option<&Tensor>) {
        let channels = self.size(if self.dim() > 1 { 1 } else { 0 });
        for t in weight.into_iter().chain(bias) {
            if t.shape() != [channels] {
                let why = format!("weights and statistics are vectors of the {channels} channels, not {}", t.shape());
                refuse(op, &[self, t], why);
            }
        }
    }

    #[track_caller]
    fn last_dims(&self, op: &'static str, sizes: Dims) -> Vec<usize> {
        let _line = caller_line();
        let n = sizes.0.len();
        let shape = self.shape();
        let fits =
            n > 0 && n <= shape.len() && shape[shape.len() - n..].iter().zip(&sizes.0).all(|(&a, &b)| a as i64 == b);
        if !fits {
            refuse(op, &[self], format!("{:?} are not the sizes of the last dimensions", sizes.0));
        }
        (shape.len() - n..shape.len()).collect()
    }

    /// Normalised over each of `num_groups` groups of channels, dimension 1 (`torch.nn.functional.group_norm`).
    ///
    /// `tensor([[1.0, 3.0, 5.0, 9.0]]).group_norm(2, None, None, 0.0)` is `[[-1., 1., -1., 1.]]`.
    #[track_caller]
    pub fn group_norm(&self, num_groups: usize, weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Tensor {
        let _call = called("group_norm", [self].into_iter().chain(weight).chain(bias));
        let shape = self.shape();
        if shape.len() < 2 || num_groups == 0 || !shape[1].is_multiple_of(num_groups) {
            refuse("group_norm", &[self], format!("the channels do not divide into {num_groups} groups"));
        }
        self.one_each("group_norm", weight, bias);
        if let Some(t) = weight.into_iter().chain(bias).find(|t| t.dim() != 1) {
            refuse("group_norm", &[self, t], "weight and bias must be vectors");
        }
        if self.numel() == num_groups {
            refuse("group_norm", &[self], "each group has one value, which normalised is 0 whatever it was");
        }
        if self.numel() == 0 {
            return self.clone();
        }
        let grouped = self.reshape([shape[0] as i64, num_groups as i64, -1]);
        let x = normalised(&grouped, &[2], eps).reshape(&shape);
        let [w, b] = [weight, bias].map(|t| t.map(|t| per_channel(t, shape.len())));
        scaled(x, w.as_ref(), b.as_ref())
    }

    /// Normalised over the spatial dimensions of each channel of each example (`torch.nn.functional.instance_norm`).
    ///
    /// `tensor([[[1.0, 3.0], [5.0, 9.0]]]).instance_norm(None, None, 0.0)` is `[[[-1., 1.], [-1., 1.]]]`.
    #[track_caller]
    pub fn instance_norm(&self, weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Tensor {
        let _call = called("instance_norm", [self].into_iter().chain(weight).chain(bias));
        if self.dim() < 3 {
            refuse("instance_norm", &[self], "needs an input (batch, channels, space…)");
        }
        if self.shape()[2..].iter().product::<usize>() == 1 {
            refuse("instance_norm", &[self], "each channel has one value, which normalised is 0 whatever it was");
        }
        self.group_norm(self.size(1), weight, bias, eps)
    }

    /// Normalised over all dimensions but the channels, dimension 1: by the batch's statistics in training, which then
    /// flow into the running ones in place, by the running ones otherwise (`torch.nn.functional.batch_norm`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (x, mean, var) = (tensor([[1.0], [3.0]]), tensor([0.0]), tensor([1.0]));
    /// let y = x.batch_norm(Some(&mean), Some(&var), None, None, BatchNormOptions { training: true, ..Default::default() });
    /// assert!(y.allclose(&tensor([[-1.0], [1.0]])));
    /// assert!(mean.allclose(&tensor([0.2])));
    /// ```
    #[track_caller]
    pub fn batch_norm(
        &self,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        options: BatchNormOptions,
    ) -> Tensor {
        let _line = caller_line();
        let mut changes = Changes::new();
        let y = self.batch_norm_with(running_mean, running_var, weight, bias, options, &mut changes);
        changes.apply();
        y
    }

    /// As [`Tensor::batch_norm`]; the running statistics change with `changes`.
    #[track_caller]
    pub(crate) fn batch_norm_with(
        &self,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        options: BatchNormOptions,
        changes: &mut Changes,
    ) -> Tensor {
        let _call =
            called("batch_norm", [self].into_iter().chain(running_mean).chain(running_var).chain(weight).chain(bias));
        crate::insight::mode::note(options.training);
        let rank = self.dim();
        if rank == 0 {
            refuse("batch_norm", &[self], "needs an input (batch, channels, …)");
        }
        self.one_each("batch_norm", weight, bias);
        self.one_each("batch_norm", running_mean, running_var);
        let [w, b] = [weight, bias].map(|t| t.map(|t| per_channel(t, rank)));
        if self.numel() == 0 {
            return scaled(self.clone(), w.as_ref(), b.as_ref());
        }
        if !options.training
            && let (Some(mean), Some(var)) = (running_mean, running_var)
        {
            let scale = (var + options.eps).rsqrt();
            let x = (self - per_channel(mean, rank)) * per_channel(&scale, rank);
            return scaled(x, w.as_ref(), b.as_ref()).to(self.dtype());
        }
        let dims: Vec<usize> = (0..rank).filter(|&d| d != usize::from(rank > 1)).collect();
        let n = dims.iter().map(|&d| self.shape()[d]).product::<usize>();
        if n == 1 {
            refuse("batch_norm", &[self], "one value per channel has no statistics to train with");
        }
        let mean = self.mean_dim(dims.as_slice(), true);
        let centred = self - &mean;
        let variance = centred.square().mean_dim(dims.as_slice(), true);
        let m = options.momentum;
        for (running, new, unbias) in
            [(running_mean, &mean, 1.0), (running_var, &variance, n as f64 / (n as f64 - 1.0))]
        {
            if let Some(r) = running {
                let new = new.detach().reshape(r.shape()) * unbias;
                crate::no_grad(|| changes.assign("batch_norm", r, r * (1.0 - m) + new * m));
            }
        }
        scaled(centred * (variance + options.eps).rsqrt(), w.as_ref(), b.as_ref())
    }

    /// Divided by the `p`-norm along `dim`, at least `eps` (`torch.nn.functional.normalize`).
    ///
    /// `tensor([3.0, 4.0]).normalize(2.0, 0, 1e-12)` is `[0.6000, 0.8000]`.
    #[track_caller]
    pub fn normalize(&self, p: f64, dim: i64, eps: f64) -> Tensor {
        let _call = called("normalize", [self]);
        rounded_once([self], |[x]| x / x.norm_p(p, dim, true).clamp_min(eps))
    }

    /// The cosine of the angle between the vectors along `dim` (`torch.nn.functional.cosine_similarity`).
    ///
    /// `tensor([1.0, 0.0]).cosine_similarity(&tensor([1.0, 1.0]), 0, 1e-8)` is `0.7071`.
    #[track_caller]
    pub fn cosine_similarity(&self, other: &Tensor, dim: i64, eps: f64) -> Tensor {
        let _call = called("cosine_similarity", [self, other]);
        let Some(shape) = self.shape().broadcast(&other.shape()) else {
            refuse("cosine_similarity", &[self, other], "the shapes do not broadcast");
        };
        let [a, b] = promoted("cosine_similarity", [self, other]);
        let unit = |t: &Tensor| {
            let t = t.expand(&shape);
            let norm = t.norm_p(2.0, dim, true).clamp_min(eps);
            t / norm
        };
        rounded_once([&a, &b], |[a, b]| (unit(a) * unit(b)).sum_dim(dim, false))
    }

    /// softmax(Q Kᵀ · scale + mask) V over the last two dimensions
    /// (`torch.nn.functional.scaled_dot_product_attention`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (q, k, v) = (Tensor::randn([2, 4, 8]), Tensor::randn([2, 6, 8]), Tensor::randn([2, 6, 8]));
    /// let y = q.scaled_dot_product_attention(&k, &v, AttentionOptions { is_causal: true, ..Default::default() });
    /// assert_eq!(y.shape(), [2, 4, 8]);
    /// ```
    #[track_caller]
    pub fn scaled_dot_product_attention(&self, key: &Tensor, value: &Tensor, options: AttentionOptions) -> Tensor {
        let _call = called("scaled_dot_product_attention", [self, key, value]);
        if self.dim() < 2 || key.dim() < 2 || value.dim() < 2 {
            refuse("scaled_dot_product_attention", &[self, key, value], "needs (…, length, size)");
        }
        if self.dtype().is_half() {
            // rounded once, at the end
            let mask = options.attn_mask.as_ref().map(|m| if m.dtype().is_half() { m.float() } else { m.clone() });
            let options = AttentionOptions { attn_mask: mask, ..options };
            let y = self.float().scaled_dot_product_attention(&key.float(), &value.float(), options);
            return y.to(self.dtype());
        }
        let scale = options.scale.unwrap_or(1.0 / (self.size(-1) as f64).sqrt());
        let shared = |t: &Tensor| {
            let heads = self.size(-3) / t.size(-3).max(1);
            if heads > 1 { t.repeat_interleave(heads, -3) } else { t.clone() }
        };
        let gqa = options.enable_gqa && self.dim() > 2;
        let (key, value) = if gqa { (shared(key), shared(value)) } else { (key.clone(), value.clone()) };
        let mut scores = (self * scale).matmul(&key.transpose(-1, -2));
        if options.is_causal {
            let allowed = scores.ones_like().bool().tril(0);
            scores = scores.where_(&allowed, f64::NEG_INFINITY);
        }
        if let Some(mask) = &options.attn_mask {
            scores = match mask.dtype() {
                crate::DType::Bool => scores.where_(mask, f64::NEG_INFINITY),
                _ => scores + mask,
            };
        }
        scores.softmax(-1).dropout(options.dropout_p, options.dropout_p > 0.0).matmul(&value)
    }

    /// `x · weightᵀ + bias`: weight is (out, in) (`torch.nn.functional.linear`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(Tensor::ones([5, 3]).linear(&Tensor::ones([2, 3]), None).shape(), [5, 2]);
    /// ```
    #[track_caller]
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let _call = called("linear", [self, weight].into_iter().chain(bias));
        if weight.dim() > 2 {
            refuse("linear", &[self, weight], "the weight must be (out, in)");
        }
        let weight = if weight.dim() == 2 { weight.t() } else { weight.clone() };
        let y = self.matmul(&weight);
        // a product may be in a smaller dtype (`autocast`), and a bias makes it no larger
        match bias {
            Some(b) => &y + b.to(y.dtype()),
            None => y,
        }
    }
}
