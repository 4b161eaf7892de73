//! Methods in place beside the table of `in_place`: those that give a tensor another shape, and those that are more than another
//! method's value.
use super::base::methods;
use crate::tensor::{Arg, Tensor, called, refuse};
use xlazy_core::ty::{Dims, Scalar};

methods! {
    become_view:
    /// [`Tensor::squeeze`] in place: all clones have the new shape from here on (`torch.Tensor.squeeze_`).
    ///
    /// `Tensor::zeros([1, 3, 1]).squeeze_().shape()` is `[3]`.
    pub fn squeeze_() => squeeze;
    /// [`Tensor::squeeze_dim`] in place: all clones have the new shape from here on (`torch.Tensor.squeeze_`).
    ///
    /// `Tensor::zeros([1, 3, 1]).squeeze_dim_(0).shape()` is `[3,1]`.
    pub fn squeeze_dim_(dim: i64) => squeeze_dim;
    /// [`Tensor::transpose`] in place: all clones have the new shape from here on (`torch.Tensor.swapaxes_`).
    ///
    /// `tensor([[1, 2], [3, 4]]).swapaxes_(0, 1)` is `[[1, 3], [2, 4]]`.
    pub fn swapaxes_(dim0: i64, dim1: i64) => transpose;
    /// [`Tensor::transpose`] in place: all clones have the new shape from here on (`torch.Tensor.swapdims_`).
    ///
    /// `tensor([[1, 2], [3, 4]]).swapdims_(0, 1)` is `[[1, 3], [2, 4]]`.
    pub fn swapdims_(dim0: i64, dim1: i64) => transpose;
    /// [`Tensor::t`] in place: all clones have the new shape from here on (`torch.Tensor.t_`).
    ///
    /// `tensor([[1, 2]]).t_()` is `[[1], [2]]`.
    pub fn t_() => t;
    /// [`Tensor::transpose`] in place: all clones have the new shape from here on (`torch.Tensor.transpose_`).
    ///
    /// `tensor([[1, 2], [3, 4]]).transpose_(0, 1)` is `[[1, 3], [2, 4]]`.
    pub fn transpose_(dim0: i64, dim1: i64) => transpose;
    /// [`Tensor::unsqueeze`] in place: all clones have the new shape from here on (`torch.Tensor.unsqueeze_`).
    ///
    /// `tensor([1, 2]).unsqueeze_(0)` is `[[1, 2]]`.
    pub fn unsqueeze_(dim: i64) => unsqueeze;
}

impl Tensor {
    /// Gives this tensor another shape in place, of its first elements in the order they lie in (`torch.Tensor.resize_`). All
    /// clones have it from here on, views keep theirs. More elements than there are, which torch leaves to chance, are refused.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([[1, 2, 3], [4, 5, 6]]);
    /// x.resize_([2, 2]);
    /// assert_eq!((x.shape().to_vec(), x.to_vec::<i64>()), (vec![2, 2], vec![1, 2, 3, 4]));
    /// ```
    #[track_caller]
    pub fn resize_(&self, size: impl Into<Dims>) -> Tensor {
        let _call = called("resize_", [self]);
        let shape = size.into().shape("resize_").unwrap_or_else(|e| e.raise());
        if self.requires_grad() {
            refuse("resize_", &[self], "cannot resize variables that require grad");
        }
        if !self.is_contiguous() {
            refuse("resize_", &[self], "its elements do not lie in order: `contiguous()` gives a copy that does");
        }
        if shape.numel() > self.numel() {
            let why = format!("there are {} elements and {shape} wants more: make a new tensor", self.numel());
            refuse("resize_", &[self], why);
        }
        self.become_view("resize_", |x| x.flatten().narrow(0, 0, shape.numel() as i64).reshape(&shape))
    }

    /// [`Tensor::resize_`] to the other's shape (`torch.Tensor.resize_as_`).
    ///
    /// `tensor([1, 2, 3]).resize_as_(&tensor([0, 0]))` is `[1, 2]`.
    #[track_caller]
    pub fn resize_as_(&self, other: &Tensor) -> Tensor {
        let _call = called("resize_as_", [self, other]);
        self.resize_(other.shape())
    }

    /// [`Tensor::masked_fill`] in place (`torch.Tensor.masked_fill_`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([1, -2]);
    /// x.masked_fill_(&x.lt(0), 0);
    /// assert_eq!(x.to_vec::<i64>(), [1, 0]);
    /// ```
    #[track_caller]
    pub fn masked_fill_<'a>(&'a self, mask: &'a Tensor, value: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("masked_fill_", [self]);
        self.assign("masked_fill_", self.masked_fill(mask, value));
        self.clone()
    }

    /// Draws each element anew, uniform from `low` up to `high` (`torch.Tensor.uniform_`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::zeros([3]);
    /// x.uniform_(1.0, 2.0);
    /// assert!(x.min().item() >= 1.0);
    /// ```
    #[track_caller]
    pub fn uniform_(&self, low: impl Into<Scalar>, high: impl Into<Scalar>) -> Tensor {
        let (low, high) = (low.into().as_f64(), high.into().as_f64());
        if low > high {
            refuse("uniform_", &[self], format!("there is no number from {low} up to {high}"));
        }
        self.assign("uniform_", self.detach().rand_like() * (high - low) + low);
        self.clone()
    }

    /// Draws each element anew, normal with this mean and deviation (`torch.Tensor.normal_`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::zeros([3]);
    /// x.normal_(5.0, 0.0);
    /// assert_eq!(x.to_vec::<f32>(), [5.0; 3]);
    /// ```
    #[track_caller]
    pub fn normal_(&self, mean: impl Into<Scalar>, std: impl Into<Scalar>) -> Tensor {
        let (mean, std) = (mean.into().as_f64(), std.into().as_f64());
        if std < 0.0 {
            refuse("normal_", &[self], format!("a deviation of {std} is none"));
        }
        self.assign("normal_", self.detach().randn_like() * std + mean);
        self.clone()
    }

    /// Uniform numbers in [0, 1) of this tensor's shape and device, to draw from; of a float dtype.
    #[track_caller]
    fn drawn(&self) -> Tensor {
        let x = self.detach();
        if x.dtype().is_float() { x.rand_like() } else { x.float().rand_like() }
    }

    /// Draws each element anew: 1 with probability `p`, else 0 (`torch.Tensor.bernoulli_`). Of any dtype.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::zeros([100]).bernoulli_(1.0);
    /// assert_eq!(x.sum().item(), 100.0);
    /// ```
    #[track_caller]
    pub fn bernoulli_(&self, p: f64) -> Tensor {
        let _call = called("bernoulli_", [self]);
        if !(0.0..=1.0).contains(&p) {
            refuse("bernoulli_", &[self], format!("the probability must be between 0 and 1, not {p}"));
        }
        self.assign("bernoulli_", self.drawn().lt(p));
        self.clone()
    }

    #[track_caller]
    fn continuous(&self, op: &'static str, right: bool, what: impl Into<String>) {
        if !self.dtype().is_float() {
            let why = format!("this distribution is continuous, and {} is no dtype of floats", self.dtype());
            refuse(op, &[self], why + ": make a tensor with `.float()` first");
        }
        if !right {
            refuse(op, &[self], what);
        }
    }

    /// Draws each element anew by the exponential distribution of this rate (`torch.Tensor.exponential_`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!(Tensor::zeros([1000]).exponential_(4.0).mean().item() < 0.5);
    /// ```
    #[track_caller]
    pub fn exponential_(&self, lambd: f64) -> Tensor {
        let _call = called("exponential_", [self]);
        self.continuous("exponential_", lambd > 0.0, format!("the rate must be above 0, not {lambd}"));
        self.assign("exponential_", self.drawn().neg().log1p() / -lambd);
        self.clone()
    }

    /// Draws each element anew: how many trials it takes until one of probability `p` succeeds (`torch.Tensor.geometric_`).
    /// Of any dtype.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!(Tensor::zeros([100]).geometric_(0.5).min().item() >= 1.0);
    /// ```
    #[track_caller]
    pub fn geometric_(&self, p: f64) -> Tensor {
        let _call = called("geometric_", [self]);
        if !(p > 0.0 && p < 1.0) {
            refuse("geometric_", &[self], format!("the probability must be between 0 and 1, not {p}"));
        }
        let trials = (self.drawn().neg().log1p() / (-p).ln_1p()).ceil().clamp_min(1.0);
        self.assign("geometric_", trials.to(self.dtype()));
        self.clone()
    }

    /// Draws each element anew by the Cauchy distribution (`torch.Tensor.cauchy_`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::zeros([1001]).cauchy_(5.0, 0.1);
    /// assert!((x.median().item() - 5.0).abs() < 0.1);
    /// ```
    #[track_caller]
    pub fn cauchy_(&self, median: f64, sigma: f64) -> Tensor {
        let _call = called("cauchy_", [self]);
        self.continuous("cauchy_", sigma > 0.0, format!("the width must be above 0, not {sigma}"));
        self.assign("cauchy_", ((self.drawn() - 0.5) * std::f64::consts::PI).tan() * sigma + median);
        self.clone()
    }

    /// Draws each element anew: e to the power of a normal number with this mean and deviation
    /// (`torch.Tensor.log_normal_`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!(Tensor::zeros([100]).log_normal_(0.0, 1.0).min().item() > 0.0);
    /// ```
    #[track_caller]
    pub fn log_normal_(&self, mean: f64, std: f64) -> Tensor {
        let _call = called("log_normal_", [self]);
        self.continuous("log_normal_", std > 0.0, format!("the deviation must be above 0, not {std}"));
        self.assign("log_normal_", (self.detach().randn_like() * std + mean).exp());
        self.clone()
    }

    /// Draws each element anew: a whole number from `from` up to and without `to` (`torch.Tensor.random_`). Of any dtype.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::zeros([100]).long().random_(3, 6);
    /// assert_eq!((x.min().item(), x.max().item()), (3.0, 5.0));
    /// ```
    #[track_caller]
    pub fn random_(&self, from: i64, to: i64) -> Tensor {
        let _call = called("random_", [self]);
        if from >= to {
            refuse("random_", &[self], format!("there is no integer from {from} up to {to}"));
        }
        self.assign("random_", Tensor::randint(from, to, self.shape()).to(self.dtype()));
        self.clone()
    }

    /// Writes `value` to the diagonal of a matrix, or of a tensor whose dimensions are equal; `wrap` goes on below the square
    /// of a tall matrix (`torch.Tensor.fill_diagonal_`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::zeros([2, 2]).fill_diagonal_(3.0, false);
    /// assert_eq!(x.to_vec::<f32>(), [3.0, 0.0, 0.0, 3.0]);
    /// ```
    #[track_caller]
    pub fn fill_diagonal_(&self, value: impl Into<Scalar>, wrap: bool) -> Tensor {
        let _call = called("fill_diagonal_", [self]);
        let shape = self.shape();
        if shape.len() < 2 {
            refuse("fill_diagonal_", &[self], "dimensions must larger than 1: a diagonal needs two");
        }
        if shape.len() > 2 && shape.iter().any(|n| *n != shape[0]) {
            refuse("fill_diagonal_", &[self], "all dimensions of input must be of equal length");
        }
        let columns = shape[shape.len() - 1];
        let step = (0..shape.len()).fold(0, |step, _| step * columns + 1);
        let at = Tensor::arange(0, shape.numel(), 1);
        let mut there = at.remainder(step.max(1)).eq(0);
        if shape.len() == 2 && !wrap {
            there = there.logical_and(at.lt(columns * columns));
        }
        self.masked_fill_(&there.reshape(&shape), value.into())
    }

    /// [`Tensor::float_power`] in place (`torch.Tensor.float_power_`), of float64 and complex128 only, as in torch: the result
    /// is one.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([2.0, 3.0]).double();
    /// assert_eq!(x.float_power_(2).to_vec::<f64>(), [4.0, 9.0]);
    /// ```
    #[track_caller]
    pub fn float_power_<'a>(&self, exponent: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("float_power_", [self]);
        let value = self.float_power(exponent);
        if value.dtype() != self.dtype() {
            let why = format!("the base has dtype {} but the result is {}", self.dtype(), value.dtype());
            refuse("float_power_", &[self], why);
        }
        self.assign("float_power_", value);
        self.clone()
    }

    /// [`Tensor::as_strided`] in place: all clones have the new shape from here on (`torch.Tensor.as_strided_`).
    ///
    /// `Tensor::arange(0, 6, 1).as_strided_([2, 2], [3, 1], 1)` is `[[1, 2], [4, 5]]`.
    #[track_caller]
    pub fn as_strided_(&self, size: impl Into<Dims>, stride: impl Into<Dims>, offset: usize) -> Tensor {
        let _call = called("as_strided_", [self]);
        self.become_view("as_strided_", |x| x.as_strided(size, stride, offset))
    }
}
