//! Variances, norms and counts, made of reductions.
use super::reduce::count;
use crate::tensor::{Tensor, called, caller_line, refuse};
use xlazy_core::ty::{Category, Dims, Scalar};

/// A root of what is not negative: at zero it has no slope, of which torch makes 0 and the formula NaN.
#[track_caller]
pub(super) fn rooted(s: Tensor, root: impl Fn(&Tensor) -> Tensor) -> Tensor {
    let some = s.ne(0.0);
    root(&s.where_(&some, 1.0)).where_(&some, 0.0)
}

impl Tensor {
    /// The variance along `dim`; divides by n - `correction` (`torch.var`, whose default correction is 1).
    ///
    /// `tensor([[1.0, 3.0]]).var_dim(1, 1, false)` is `[2.]`.
    #[track_caller]
    pub fn var_dim(&self, dim: impl Into<Dims>, correction: impl Into<Scalar>, keepdim: bool) -> Tensor {
        self.variance("var", dim.into(), correction.into().as_f64(), keepdim)
    }

    #[track_caller]
    fn variance(&self, op: &'static str, dim: Dims, correction: f64, keepdim: bool) -> Tensor {
        let _line = caller_line();
        if self.dtype().is_complex() {
            // How far from the mean in both directions.
            let part = |x: Tensor| x.apart().variance(op, dim.clone(), correction, keepdim);
            return part(self.real()) + part(self.imag());
        }
        if !self.dtype().is_float() {
            refuse(op, &[self], "needs a float tensor: convert with `.float()`");
        }
        let dims = self.dim_indices(op, &dim);
        let n = count(&self.shape(), &dims);
        let d: Dims = dims.as_slice().into();
        let centred = self - self.mean_dim(d.clone(), true);
        centred.square().sum_dim(d, keepdim) / (n - correction).max(0.0)
    }

    /// The variance of all elements, unbiased (`torch.var(x)`).
    ///
    /// `tensor([1.0, 3.0]).var()` is `2.`.
    #[track_caller]
    pub fn var(&self) -> Tensor {
        self.var_dim(Dims::default(), 1, false)
    }

    /// The standard deviation along `dim` (`torch.std`).
    ///
    /// `tensor([[1.0, 3.0]]).std_dim(1, 0, false)` is `[1.]`.
    #[track_caller]
    pub fn std_dim(&self, dim: impl Into<Dims>, correction: impl Into<Scalar>, keepdim: bool) -> Tensor {
        let _call = called("std", [self]);
        rooted(self.variance("std", dim.into(), correction.into().as_f64(), keepdim), |v| v.sqrt())
    }

    /// The standard deviation of all elements, unbiased (`torch.std(x)`).
    ///
    /// `tensor([1.0, 3.0, 5.0]).std()` is `2.`.
    #[track_caller]
    pub fn std(&self) -> Tensor {
        self.std_dim(Dims::default(), 1, false)
    }

    /// The variance and the mean along `dim` (`torch.var_mean`).
    ///
    /// `tensor([1.0, 3.0]).var_mean_dim(0, 1, false)` is `(tensor(2.), tensor(2.))`.
    #[track_caller]
    pub fn var_mean_dim(&self, dim: impl Into<Dims>, correction: impl Into<Scalar>, keepdim: bool) -> (Tensor, Tensor) {
        let dim = dim.into();
        (self.var_dim(dim.clone(), correction, keepdim), self.mean_dim(dim, keepdim))
    }

    /// The standard deviation and the mean along `dim` (`torch.std_mean`).
    ///
    /// `tensor([1.0, 3.0]).std_mean_dim(0, 0, false)` is `(tensor(1.), tensor(2.))`.
    #[track_caller]
    pub fn std_mean_dim(&self, dim: impl Into<Dims>, correction: impl Into<Scalar>, keepdim: bool) -> (Tensor, Tensor) {
        let dim = dim.into();
        (self.std_dim(dim.clone(), correction, keepdim), self.mean_dim(dim, keepdim))
    }

    /// The square root of the sum of squares of all elements (`torch.norm`, p = 2).
    ///
    /// `tensor([3.0, 4.0]).norm()` is `5.`.
    #[track_caller]
    pub fn norm(&self) -> Tensor {
        let _call = called("norm", [self]);
        self.norm_p(2.0, Dims::default(), false)
    }

    /// The `p`-norm along `dim` (`torch.linalg.vector_norm`): p may be infinite; 0 counts the elements that are not zero.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[3.0, 4.0]]).norm_p(2.0, 1, false).to_vec::<f32>(), [5.0]);
    /// ```
    #[track_caller]
    pub fn norm_p(&self, p: f64, dim: impl Into<Dims>, keepdim: bool) -> Tensor {
        let _call = called("norm_p", [self]);
        if self.dtype().is_half() {
            // squares of halves overflow or vanish
            return self.float().norm_p(p, dim, keepdim).to(self.dtype());
        }
        if self.dtype().is_complex() {
            return self.abs().norm_p(p, dim, keepdim);
        }
        let dim = dim.into();
        match p {
            2.0 => rooted(self.square().sum_dim(dim, keepdim), |s| s.sqrt()),
            1.0 => self.abs().sum_dim(dim, keepdim),
            0.0 => self.ne(0).to(self.dtype()).sum_dim(dim, keepdim),
            f64::INFINITY => self.abs().amax(dim, keepdim),
            f64::NEG_INFINITY => self.abs().amin(dim, keepdim),
            _ => rooted(rooted(self.abs(), |a| a.pow(p)).sum_dim(dim, keepdim), |s| s.pow(1.0 / p)),
        }
    }

    /// The sum of the elements that are not NaN (`torch.nansum`).
    ///
    /// `tensor([1.0, f32::NAN]).nansum(0, false)` is `1.`.
    #[track_caller]
    pub fn nansum(&self, dim: impl Into<Dims>, keepdim: bool) -> Tensor {
        let _call = called("nansum", [self]);
        if self.dtype().category() <= Category::Int {
            return self.sum_dim(dim, keepdim);
        }
        self.masked_fill(&self.isnan(), 0.0).sum_dim(dim, keepdim)
    }

    /// The mean of the elements that are not NaN (`torch.nanmean`).
    ///
    /// `tensor([1.0, f32::NAN]).nanmean(0, false)` is `1.`.
    #[track_caller]
    pub fn nanmean(&self, dim: impl Into<Dims>, keepdim: bool) -> Tensor {
        let _call = called("nanmean", [self]);
        let dim = dim.into();
        let count = self.isnan().logical_not().sum_dim(dim.clone(), keepdim);
        self.nansum(dim, keepdim) / count
    }

    /// How many elements along `dim` are not zero, int64 (`torch.count_nonzero`).
    ///
    /// `tensor([0, 5, 6]).count_nonzero(0)` is `2`.
    #[track_caller]
    pub fn count_nonzero(&self, dim: impl Into<Dims>) -> Tensor {
        self.ne(0).sum_dim(dim, false)
    }
}
