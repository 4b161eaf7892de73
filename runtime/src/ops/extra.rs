//! Smaller torch functions made of other ops: distances, signs, joint extremes, writing by mask and flat position.
use super::base::{as_float, of_one_dtype, of_one_rank, promoted, rounded_once};
use crate::tensor::{Arg, Tensor, called, refuse};
use xlazy_core::ty::{DType, Dims};

impl Tensor {
    /// Whether both have one shape and the same elements, as a bool tensor (`torch.equal`, which reads it).
    ///
    /// `tensor([1, 2]).equal(&tensor([1, 2]))` is `true`.
    #[track_caller]
    pub fn equal(&self, other: &Tensor) -> Tensor {
        match self.shape() == other.shape() {
            true => self.eq(other).all(),
            false => Tensor::zeros(()).bool(),
        }
    }

    /// The smallest and the largest elements along `dim`, or of all where it names none (`torch.aminmax`).
    ///
    /// `tensor([3, 1, 2]).aminmax(0, false)` is `(tensor(1), tensor(3))`.
    #[track_caller]
    pub fn aminmax(&self, dim: impl Into<Dims>, keepdim: bool) -> (Tensor, Tensor) {
        let _call = called("aminmax", [self]);
        let dim = dim.into();
        (self.amin(dim.clone(), keepdim), self.amax(dim, keepdim))
    }

    /// This tensor's size with the sign of `other` (`torch.copysign`).
    ///
    /// `tensor([1.0, 2.0]).copysign(-1.0)` is `[-1., -2.]`.
    #[track_caller]
    pub fn copysign<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        let other = as_float(other, self);
        let _call = called("copysign", [self, &other]);
        let [x, y] = promoted("copysign", [self, &other]);
        // the slope at 0 is 0, as that of abs
        let sign = Tensor::ones(()).to(x.dtype()).where_(&y.signbit().logical_not(), -1.0);
        x.abs() * sign
    }

    /// True where the element is +infinity (`torch.isposinf`).
    ///
    /// `tensor([f32::INFINITY, 1.0]).isposinf()` is `[true, false]`.
    #[track_caller]
    pub fn isposinf(&self) -> Tensor {
        let _call = called("isposinf", [self]);
        if self.dtype().is_complex() {
            return self.gt(0.0);
        }
        if self.dtype().is_float() { self.eq(f64::INFINITY) } else { self.zeros_like().bool() }
    }

    /// True where the element is -infinity (`torch.isneginf`).
    ///
    /// `tensor([f32::NEG_INFINITY, 1.0]).isneginf()` is `[true, false]`.
    #[track_caller]
    pub fn isneginf(&self) -> Tensor {
        let _call = called("isneginf", [self]);
        if self.dtype().is_complex() {
            return self.lt(0.0);
        }
        if self.dtype().is_float() { self.eq(f64::NEG_INFINITY) } else { self.zeros_like().bool() }
    }

    /// 0 below zero, 1 above, `values` at zero (`torch.heaviside`).
    ///
    /// `tensor([-1.0, 0.0, 2.0]).heaviside(&tensor(0.5))` is `[0.0000, 0.5000, 1.0000]`.
    #[track_caller]
    pub fn heaviside(&self, values: &Tensor) -> Tensor {
        let _call = called("heaviside", [self, values]);
        of_one_dtype("heaviside", &[self, values]);
        let step = self.gt(0).to(self.dtype());
        let x = values.where_(&self.eq(0), &step);
        if self.dtype().is_float() { x.masked_fill(&self.isnan(), f64::NAN) } else { x }
    }

    /// A power computed in float64 (`torch.float_power`).
    ///
    /// `tensor([2, 3]).float_power(2)` is `tensor([4., 9.], f64)`.
    #[track_caller]
    pub fn float_power<'a>(&self, exponent: impl Into<Arg<'a>>) -> Tensor {
        let exponent = exponent.into();
        let power = exponent.tensor();
        let _call = called("float_power", [self].into_iter().chain(power));
        let complex = self.dtype().is_complex() || power.is_some_and(|t| t.dtype().is_complex());
        let wide = if complex { DType::C128 } else { DType::F64 };
        let x = self.to(wide);
        match power {
            Some(t) => x.pow(t.to(wide)),
            None => x.pow(exponent.again()),
        }
    }

    /// log2(2^a + 2^b), without overflow (`torch.logaddexp2`).
    ///
    /// `tensor([0.0]).logaddexp2(&tensor([0.0]))` is `[1.]`.
    #[track_caller]
    pub fn logaddexp2(&self, other: &Tensor) -> Tensor {
        let _call = called("logaddexp2", [self, other]);
        if self.dtype().is_complex() || other.dtype().is_complex() {
            refuse("logaddexp2", &[self, other], "needs real numbers");
        }
        let ln2 = std::f64::consts::LN_2;
        (self * ln2).logaddexp(&(other * ln2)) / ln2
    }

    /// The `p`-norm of the difference (`torch.dist`).
    ///
    /// `tensor([0.0, 0.0]).dist(&tensor([3.0, 4.0]), 2.0)` is `5.`.
    #[track_caller]
    pub fn dist(&self, other: &Tensor, p: f64) -> Tensor {
        let _call = called("dist", [self, other]);
        (self - other).norm_p(p, Dims::default(), false)
    }

    /// The `p`-norm of the differences along the last dimension, `eps` added to each
    /// (`torch.nn.functional.pairwise_distance`).
    ///
    /// `tensor([[0.0, 0.0]]).pairwise_distance(&tensor([[3.0, 4.0]]), 2.0, 0.0, false)` is `[5.]`.
    #[track_caller]
    pub fn pairwise_distance(&self, other: &Tensor, p: f64, eps: f64, keepdim: bool) -> Tensor {
        let _call = called("pairwise_distance", [self, other]);
        (self - other + eps).norm_p(p, -1, keepdim)
    }

    /// The `p`-norm between every row of one and every row of the other (`torch.cdist`).
    ///
    /// `tensor([[0.0, 0.0]]).cdist(&tensor([[3.0, 4.0], [0.0, 1.0]]), 2.0)` is `[[5., 1.]]`.
    #[track_caller]
    pub fn cdist(&self, other: &Tensor, p: f64) -> Tensor {
        let _call = called("cdist", [self, other]);
        if self.dim() < 2 || other.dim() < 2 || self.size(-1) != other.size(-1) {
            refuse("cdist", &[self, other], "needs (…, rows, size), the sizes equal");
        }
        if p < 0.0 {
            refuse("cdist", &[self, other], format!("p must be 0 or more, not {p}"));
        }
        (self.unsqueeze(-2) - other.unsqueeze(-3)).norm_p(p, -1, false)
    }

    /// The cross product of the vectors of three elements along `dim` (`torch.linalg.cross`).
    ///
    /// `tensor([1, 0, 0]).cross(&tensor([0, 1, 0]), 0)` is `[0, 0, 1]`.
    #[track_caller]
    pub fn cross(&self, other: &Tensor, dim: i64) -> Tensor {
        let _call = called("cross", [self, other]);
        of_one_dtype("cross", &[self, other]);
        of_one_rank("cross", "both", &[self, other]);
        if self.size(dim) != 3 || other.size(dim) != 3 {
            refuse("cross", &[self, other], format!("dimension {dim} must have 3 elements"));
        }
        rounded_once([self, other], |[a, b]| a.roll(-1, dim) * b.roll(-2, dim) - a.roll(-2, dim) * b.roll(-1, dim))
    }

    /// The sum of products along `dim` (`torch.linalg.vecdot`).
    ///
    /// `tensor([[1.0, 2.0], [3.0, 4.0]]).vecdot(&tensor([1.0, 10.0]), -1)` is `[21., 43.]`.
    #[track_caller]
    pub fn vecdot(&self, other: &Tensor, dim: i64) -> Tensor {
        let _call = called("vecdot", [self, other]);
        (self.conj() * other).sum_dim(dim, false)
    }

    /// As [`Tensor::gather`], with the other dimensions broadcast (`torch.take_along_dim`).
    ///
    /// `tensor([[5, 6], [7, 8]]).take_along_dim(&tensor([[1], [0]]), 1)` is `[[6], [7]]`.
    #[track_caller]
    pub fn take_along_dim(&self, index: &Tensor, dim: i64) -> Tensor {
        let _call = called("take_along_dim", [self, index]);
        let d = self.dim_index("take_along_dim", dim);
        let (mine, theirs) = (self.shape(), index.shape());
        let (mut a, mut b) = (mine.clone(), theirs.clone());
        if a.len() != b.len() {
            refuse("take_along_dim", &[self, index], "both must have the same number of dimensions");
        }
        (a[d], b[d]) = (1, 1);
        let Some(mut both) = a.broadcast(&b) else {
            refuse("take_along_dim", &[self, index], "the dimensions other than `dim` do not broadcast");
        };
        both[d] = mine[d];
        let x = self.expand(&both);
        both[d] = theirs[d];
        x.gather(dim, &index.expand(&both))
    }

    /// The elements of `source`, in order, in the places where the mask is true (`torch.masked_scatter`).
    ///
    /// `tensor([1, 2, 3]).masked_scatter(&tensor([true, false, true]), &tensor([8, 9]))` is `[8, 2, 9]`.
    #[track_caller]
    pub fn masked_scatter(&self, mask: &Tensor, source: &Tensor) -> Tensor {
        if mask.dtype() != DType::Bool {
            refuse("masked_scatter", &[self, mask, source], "the mask must be bool: make one with a comparison");
        }
        self.holds("masked_scatter", source);
        let Some(shape) = self.shape().broadcast(&mask.shape()) else {
            refuse("masked_scatter", &[self, mask], "the mask and the tensor do not broadcast");
        };
        let mask = mask.expand(&shape);
        // the n-th true place takes the n-th element
        let n = (mask.flatten().cumsum(0) - 1).clamp_min(0);
        source.take(&n).reshape(&shape).where_(&mask, self.expand(&shape))
    }

    /// Channels of `groups` groups mixed: the first of each group, then the second… (`torch.nn.functional.channel_shuffle`)
    ///
    /// `tensor([[1, 2, 3, 4]]).reshape([1, 4, 1, 1]).channel_shuffle(2).flatten()` is `[1, 3, 2, 4]`.
    #[track_caller]
    pub fn channel_shuffle(&self, groups: usize) -> Tensor {
        let _call = called("channel_shuffle", [self]);
        let shape = self.shape();
        if shape.len() < 3 || groups == 0 || !shape[1].is_multiple_of(groups) {
            refuse("channel_shuffle", &[self], format!("the channels do not divide into {groups} groups"));
        }
        self.unflatten(1, [groups, shape[1] / groups]).transpose(1, 2).reshape(&shape)
    }

    /// max(0, d(anchor, positive) - d(anchor, negative) + margin) (`torch.nn.functional.triplet_margin_loss`, p = 2).
    ///
    /// `tensor([[0.0]]).triplet_margin_loss(&tensor([[1.0]]), &tensor([[3.0]]), 1.0, Reduction::Mean)` is `0.`.
    #[track_caller]
    pub fn triplet_margin_loss(
        &self,
        positive: &Tensor,
        negative: &Tensor,
        margin: f64,
        reduction: super::Reduction,
    ) -> Tensor {
        let _call = called("triplet_margin_loss", [self, positive, negative]);
        self.triplet_margin_loss_with(positive, negative, margin, 2.0, 1e-6, false, reduction)
    }
}
