//! Order statistics: quantiles, medians, the most frequent element. NaN counts as the largest number when sorting.
use super::cat;
use crate::tensor::{Arg, Tensor, called, caller_line, refuse};
use xlazy_core::ty::DType;

/// How [`Tensor::quantile`] goes between the two elements that a quantile lies between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuantileInterpolation {
    #[default]
    Linear,
    Lower,
    Higher,
    Nearest,
    Midpoint,
}

/// What torch's quantiles take besides the tensor and the fractions.
///
/// ```
/// use xlazy::{QuantileOptions, prelude::*};
/// let x = tensor([[1.0, 3.0], [2.0, 8.0]]);
/// let o = QuantileOptions { dim: Some(1), ..Default::default() };
/// assert_eq!(x.quantile_with(0.5, o).to_vec::<f32>(), [2.0, 5.0]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct QuantileOptions {
    /// Along this dimension; without one of all elements.
    ///
    /// `Tensor::zeros([2, 3]).dim()` is `2`.
    pub dim: Option<i64>,
    /// Keep that dimension, with size 1.
    pub keepdim: bool,
    pub interpolation: QuantileInterpolation,
    /// Leave NaN out (`torch.nanquantile`); otherwise one makes the result NaN.
    pub ignore_nan: bool,
}

/// A dimension to go along, moved to the end: that of a tensor without dimensions is one of one element.
#[track_caller]
fn last(x: &Tensor, op: &'static str, dim: i64) -> (Tensor, usize) {
    let d = x.dim_index(op, dim);
    match x.dim() {
        0 => (x.reshape(1), 0),
        _ => (x.movedim(d as i64, -1), d),
    }
}

/// A result along the last dimension, which has one element, as torch shapes it.
#[track_caller]
fn placed(y: Tensor, x: &Tensor, d: usize, keepdim: bool) -> Tensor {
    match (x.dim(), keepdim) {
        (0, _) => y.reshape(()),
        (_, true) => y.movedim(-1, d as i64),
        (_, false) => y.squeeze_dim(-1),
    }
}

impl Tensor {
    /// The element below which the fraction `q` of all elements lies, between neighbours in proportion (`torch.quantile`).
    /// `q` is a number, or a vector, which becomes the first dimension of the result. Float32 and float64 only.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([0.0, 1.0, 2.0, 10.0]).quantile(0.5).item(), 1.5);
    /// ```
    #[track_caller]
    pub fn quantile<'a>(&self, q: impl Into<Arg<'a>>) -> Tensor {
        self.quantile_with(q, QuantileOptions::default())
    }

    /// As [`Tensor::quantile`] without the elements that are NaN (`torch.nanquantile`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([f32::NAN, 1.0, 3.0]).nanquantile(0.5).item(), 2.0);
    /// ```
    #[track_caller]
    pub fn nanquantile<'a>(&self, q: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("nanquantile", [self]);
        self.quantile_with(q, QuantileOptions { ignore_nan: true, ..QuantileOptions::default() })
    }

    /// As [`Tensor::quantile`], along a dimension and with other ways to go between neighbours.
    #[track_caller]
    pub fn quantile_with<'a>(&self, q: impl Into<Arg<'a>>, options: QuantileOptions) -> Tensor {
        let _call = called("quantile_with", [self]);
        let q = match q.into() {
            Arg::Tensor(t) => t.clone(),
            Arg::Owned(t) => t,
            Arg::Scalar(s) if (0.0..=1.0).contains(&s.as_f64()) => Tensor::full((), s.as_f64()).to(self.dtype()),
            Arg::Scalar(s) => refuse("quantile", &[self], format!("{} is no fraction between 0 and 1", s.as_f64())),
        };
        if !matches!(self.dtype(), DType::F32 | DType::F64) || q.dim() > 1 || q.dtype() != self.dtype() {
            refuse(
                "quantile",
                &[self, &q],
                "needs float32 or float64, and q as a number or a vector of the same dtype",
            );
        }
        if self.numel() == 0 {
            refuse("quantile", &[self], "an empty tensor has no quantiles");
        }
        let (x, d) = match options.dim {
            Some(dim) => last(self, "quantile", dim),
            None => (self.flatten(), 0),
        };
        let n = x.size(-1) as i64;
        let sorted = x.sort(-1, false).0;
        let nan = sorted.isnan();
        let steps = match options.ignore_nan {
            true => (nan.logical_not().sum_dim(-1, true) - 1).clamp_min(0),
            // a NaN is in the last place, and chosen wherever there is one
            false => Tensor::full((), n - 1),
        };
        let rank = q.reshape(-1) * steps.to(q.dtype());
        let rank = match options.ignore_nan {
            true => rank,
            false => rank.masked_fill(&nan.any_dim(-1, true), (n - 1) as f64),
        };
        use QuantileInterpolation::{Higher, Linear, Lower, Midpoint, Nearest};
        let (below, weight) = match options.interpolation {
            Lower => (rank.floor(), None),
            Higher => (rank.ceil(), None),
            Nearest => (rank.round(), None),
            Linear => (rank.floor(), Some(&rank - rank.floor())),
            Midpoint => (rank.floor(), Some(rank.full_like(0.5))),
        };
        let mut shape = sorted.shape();
        let end = shape.len() - 1;
        shape[end] = q.numel();
        let at = |rank: Tensor| sorted.gather(-1, &rank.detach().long().expand(&shape));
        let low = at(below);
        let y = match weight {
            Some(w) => low.lerp(&at(rank.ceil()), &w),
            None => low,
        };
        // the fractions first, then what the dimension leaves
        let y = y.movedim(-1, 0);
        let y = match (options.dim, options.keepdim && self.dim() > 0) {
            (Some(_), true) => y.unsqueeze(d as i64 + 1),
            (None, true) => {
                let mut ones = vec![y.size(0)];
                ones.extend(self.shape().iter().map(|_| 1));
                y.reshape(ones)
            }
            _ if self.dim() == 0 => y.reshape([q.numel()]),
            _ => y,
        };
        if q.dim() == 0 { y.squeeze_dim(0) } else { y }
    }

    /// The `nth` element along the last dimension in order, and where it is.
    #[track_caller]
    fn nth(&self, nth: impl Fn(&Tensor) -> Tensor) -> (Tensor, Tensor) {
        let (values, indices) = self.sort(-1, false);
        let nan = values.isnan().sum_dim(-1, true);
        let at = nth(&nan);
        (values.gather(-1, &at), indices.gather(-1, &at))
    }

    #[track_caller]
    fn median_of(
        &self,
        op: &'static str,
        dim: i64,
        keepdim: bool,
        nth: impl Fn(&Tensor, i64) -> Tensor,
    ) -> (Tensor, Tensor) {
        let _line = caller_line();
        let (x, d) = last(self, op, dim);
        let n = x.size(-1) as i64;
        if n == 0 {
            refuse(op, &[self], format!("dimension {dim} is empty and has no median"));
        }
        let (values, indices) = x.nth(|nan| nth(nan, n));
        (placed(values, self, d, keepdim), placed(indices, self, d, keepdim))
    }

    /// The median along `dim`, the lower one of two, and where it is (`torch.median(x, dim)`). NaN where there is one.
    ///
    /// `tensor([[3, 1, 2]]).median_dim(1, false)` is `(tensor([2]), tensor([2]))`.
    #[track_caller]
    pub fn median_dim(&self, dim: i64, keepdim: bool) -> (Tensor, Tensor) {
        let _call = called("median", [self]);
        self.median_of("median", dim, keepdim, |nan, n| {
            let first_nan = nan.neg() + n;
            first_nan.where_(&nan.gt(0), (n - 1) / 2)
        })
    }

    /// The median of all elements, the lower one of two (`torch.median`). NaN where there is one, and of no floats.
    ///
    /// `tensor([3, 1, 2]).median()` is `2`.
    #[track_caller]
    pub fn median(&self) -> Tensor {
        let _call = called("median", [self]);
        if self.numel() == 0 && self.dtype().is_float() {
            return Tensor::full((), f64::NAN).to(self.dtype());
        }
        self.flatten().median_dim(0, false).0.shared_by_equals(self)
    }

    /// A number found among the elements of `x`: all that are equal to it share its gradient, as in torch.
    #[track_caller]
    fn shared_by_equals(self, x: &Tensor) -> Tensor {
        if !self.requires_grad() {
            return self;
        }
        let _line = caller_line();
        let found = self.detach();
        let equal = x.eq(&found).logical_or(x.isnan().logical_and(found.isnan()));
        let mean = x.where_(&equal, 0.0).sum() / equal.to(x.dtype()).sum();
        found.apart().with_history_of(&mean)
    }

    /// The median along `dim` of the elements that are not NaN, and where it is (`torch.nanmedian(x, dim)`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (median, at) = tensor([5.0, f32::NAN, 3.0]).nanmedian_dim(0, false);
    /// assert_eq!((median.item(), at.item_i64()), (3.0, 2));
    /// ```
    #[track_caller]
    pub fn nanmedian_dim(&self, dim: i64, keepdim: bool) -> (Tensor, Tensor) {
        let _call = called("nanmedian", [self]);
        self.median_of("nanmedian", dim, keepdim, |nan, n| (nan.neg() + (n - 1)).clamp_min(0).floor_divide(2))
    }

    /// The median of all elements that are not NaN (`torch.nanmedian`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([5.0, f32::NAN, 3.0]).nanmedian().item(), 3.0);
    /// ```
    #[track_caller]
    pub fn nanmedian(&self) -> Tensor {
        let _call = called("nanmedian", [self]);
        self.flatten().nanmedian_dim(0, false).0.shared_by_equals(self)
    }

    /// The most frequent element along `dim`, the smallest of several, and where one of it is (`torch.mode`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([3, 1, 3, 2]).mode(0, false).0.item_i64(), 3);
    /// ```
    #[track_caller]
    pub fn mode(&self, dim: i64, keepdim: bool) -> (Tensor, Tensor) {
        let _call = called("mode", [self]);
        let (x, d) = last(self, "mode", dim);
        let n = x.size(-1) as i64;
        if n == 0 {
            refuse("mode", &[self], format!("dimension {dim} is empty and has no most frequent element"));
        }
        let (values, indices) = x.sort(-1, false);
        let first = values.narrow(-1, 0, 1).ones_like().bool();
        let changes = values.narrow(-1, 1, n - 1).ne(values.narrow(-1, 0, n - 1));
        let begins = cat(&[&first, &changes], -1);
        let place = Tensor::arange(0, n, 1).expand(values.shape());
        // how long the run of equals is that each element is in, up to it
        let run = &place - place.where_(&begins, 0).cummax(-1).0;
        let at = run.argmax_dim(-1, true);
        let (value, index) = (values.gather(-1, &at), indices.gather(-1, &at));
        (placed(value, self, d, keepdim), placed(index, self, d, keepdim))
    }
}
