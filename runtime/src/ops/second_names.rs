//! torch's second names: methods that are others, for whoever looks for them by these.
use super::base::methods;
use crate::tensor::{Arg, Tensor, called};
use xlazy_core::ty::Dims;

methods! {
    named:
    /// [`Tensor::abs`] (`torch.absolute`).
    ///
    /// `tensor([-1, 2]).absolute()` is `[1, 2]`.
    pub fn absolute() => abs;
    /// [`Tensor::abs_`] (`torch.Tensor.absolute_`).
    ///
    /// `tensor([-1, 2]).absolute_()` is `[1, 2]`.
    pub fn absolute_() => abs_;
    /// [`Tensor::acos`] (`torch.arccos`).
    ///
    /// `tensor([0.0, 1.0]).arccos()` is `[1.5708, 0.0000]`.
    pub fn arccos() => acos;
    /// [`Tensor::acos_`] (`torch.Tensor.arccos_`).
    ///
    /// `tensor([0.0, 1.0]).arccos_()` is `[1.5708, 0.0000]`.
    pub fn arccos_() => acos_;
    /// [`Tensor::acosh`] (`torch.arccosh`).
    ///
    /// `tensor([1.0, 2.0]).arccosh()` is `[0.0000, 1.3170]`.
    pub fn arccosh() => acosh;
    /// [`Tensor::acosh_`] (`torch.Tensor.arccosh_`).
    ///
    /// `tensor([1.0, 2.0]).arccosh_()` is `[0.0000, 1.3170]`.
    pub fn arccosh_() => acosh_;
    /// [`Tensor::asin`] (`torch.arcsin`).
    ///
    /// `tensor([0.0, 1.0]).arcsin()` is `[0.0000, 1.5708]`.
    pub fn arcsin() => asin;
    /// [`Tensor::asin_`] (`torch.Tensor.arcsin_`).
    ///
    /// `tensor([0.0, 1.0]).arcsin_()` is `[0.0000, 1.5708]`.
    pub fn arcsin_() => asin_;
    /// [`Tensor::asinh`] (`torch.arcsinh`).
    ///
    /// `tensor([0.0, 1.0]).arcsinh()` is `[0.0000, 0.8814]`.
    pub fn arcsinh() => asinh;
    /// [`Tensor::asinh_`] (`torch.Tensor.arcsinh_`).
    ///
    /// `tensor([0.0, 1.0]).arcsinh_()` is `[0.0000, 0.8814]`.
    pub fn arcsinh_() => asinh_;
    /// [`Tensor::atan`] (`torch.arctan`).
    ///
    /// `tensor([0.0, 1.0]).arctan()` is `[0.0000, 0.7854]`.
    pub fn arctan() => atan;
    /// [`Tensor::atan2`] (`torch.arctan2`).
    ///
    /// `tensor([1.0, -1.0]).arctan2(1.0)` is `[0.7854, -0.7854]`.
    pub fn arctan2<'a>(other: impl Into<Arg<'a>>) => atan2;
    /// [`Tensor::atan2_`] (`torch.Tensor.arctan2_`).
    ///
    /// `tensor([1.0, -1.0]).arctan2_(1.0)` is `[0.7854, -0.7854]`.
    pub fn arctan2_<'a>(other: impl Into<Arg<'a>>) => atan2_;
    /// [`Tensor::atan_`] (`torch.Tensor.arctan_`).
    ///
    /// `tensor([0.0, 1.0]).arctan_()` is `[0.0000, 0.7854]`.
    pub fn arctan_() => atan_;
    /// [`Tensor::atanh`] (`torch.arctanh`).
    ///
    /// `tensor([0.0, 0.5]).arctanh()` is `[0.0000, 0.5493]`.
    pub fn arctanh() => atanh;
    /// [`Tensor::atanh_`] (`torch.Tensor.arctanh_`).
    ///
    /// `tensor([0.0, 0.5]).arctanh_()` is `[0.0000, 0.5493]`.
    pub fn arctanh_() => atanh_;
    /// [`Tensor::clamp`] (`torch.clip`).
    ///
    /// `tensor([-1.0, 5.0]).clip(0.0, 2.0)` is `[0., 2.]`.
    pub fn clip<'a>(min: impl Into<Arg<'a>>, max: impl Into<Arg<'a>>) => clamp;
    /// [`Tensor::clamp_`] (`torch.Tensor.clip_`).
    ///
    /// `tensor([-2, 0, 3]).clip_(-1, 1)` is `[-1, 0, 1]`.
    pub fn clip_<'a>(min: impl Into<Arg<'a>>, max: impl Into<Arg<'a>>) => clamp_;
    /// [`Tensor::conj`] (`torch.conj_physical`).
    ///
    /// `tensor([3.0]).complex(&tensor([4.0])).conj_physical()` is `tensor([3.-4.j], c64)`.
    pub fn conj_physical() => conj;
    /// [`Tensor::div`] (`torch.divide`).
    ///
    /// `tensor([1, 2]).divide(2)` is `[0.5000, 1.0000]`.
    pub fn divide<'a>(other: impl Into<Arg<'a>>) => div;
    /// [`Tensor::div_`] (`torch.Tensor.divide_`).
    ///
    /// `tensor([1.0, 2.0]).divide_(2)` is `[0.5000, 1.0000]`.
    pub fn divide_<'a>(other: impl Into<Arg<'a>>) => div_;
    /// [`Tensor::trunc`] (`torch.fix`).
    ///
    /// `tensor([-1.7, 1.7]).fix()` is `[-1., 1.]`.
    pub fn fix() => trunc;
    /// [`Tensor::trunc_`] (`torch.Tensor.fix_`).
    ///
    /// `tensor([-1.5, 1.5]).fix_()` is `[-1., 1.]`.
    pub fn fix_() => trunc_;
    /// [`Tensor::outer`] (`torch.ger`).
    ///
    /// `tensor([1, 2]).ger(&tensor([3, 4]))` is `[[3, 4], [6, 8]]`.
    pub fn ger(other: &Tensor) => outer;
    /// [`Tensor::gt`] (`torch.greater`).
    ///
    /// `tensor([1, 2]).greater(1)` is `[false, true]`.
    pub fn greater<'a>(other: impl Into<Arg<'a>>) => gt;
    /// [`Tensor::gt_`] (`torch.Tensor.greater_`).
    ///
    /// `tensor([1, 2]).greater_(1)` is `[0, 1]`.
    pub fn greater_<'a>(other: impl Into<Arg<'a>>) => gt_;
    /// [`Tensor::ge`] (`torch.greater_equal`).
    ///
    /// `tensor([1, 2]).greater_equal(2)` is `[false, true]`.
    pub fn greater_equal<'a>(other: impl Into<Arg<'a>>) => ge;
    /// [`Tensor::ge_`] (`torch.Tensor.greater_equal_`).
    ///
    /// `tensor([1, 2]).greater_equal_(1)` is `[1, 1]`.
    pub fn greater_equal_<'a>(other: impl Into<Arg<'a>>) => ge_;
    /// [`Tensor::inv`] (`torch.inverse`).
    ///
    /// `tensor([[2.0, 0.0], [0.0, 4.0]]).inverse()` is `[[0.5000, 0.0000], [0.0000, 0.2500]]`.
    pub fn inverse() => inv;
    /// [`Tensor::lt`] (`torch.less`).
    ///
    /// `tensor([1, 2]).less(2)` is `[true, false]`.
    pub fn less<'a>(other: impl Into<Arg<'a>>) => lt;
    /// [`Tensor::lt_`] (`torch.Tensor.less_`).
    ///
    /// `tensor([1, 2]).less_(2)` is `[1, 0]`.
    pub fn less_<'a>(other: impl Into<Arg<'a>>) => lt_;
    /// [`Tensor::le`] (`torch.less_equal`).
    ///
    /// `tensor([1, 2]).less_equal(1)` is `[true, false]`.
    pub fn less_equal<'a>(other: impl Into<Arg<'a>>) => le;
    /// [`Tensor::le_`] (`torch.Tensor.less_equal_`).
    ///
    /// `tensor([1, 2]).less_equal_(2)` is `[1, 1]`.
    pub fn less_equal_<'a>(other: impl Into<Arg<'a>>) => le_;
    /// [`Tensor::movedim`] (`torch.moveaxis`).
    ///
    /// `Tensor::zeros([2, 3, 4]).moveaxis(0, -1).shape()` is `[3,4,2]`.
    pub fn moveaxis(source: impl Into<Dims>, destination: impl Into<Dims>) => movedim;
    /// [`Tensor::mul`] (`torch.multiply`).
    ///
    /// `tensor([1, 2]).multiply(10)` is `[10, 20]`.
    pub fn multiply<'a>(other: impl Into<Arg<'a>>) => mul;
    /// [`Tensor::mul_`] (`torch.Tensor.multiply_`).
    ///
    /// `tensor([1, 2]).multiply_(10)` is `[10, 20]`.
    pub fn multiply_<'a>(other: impl Into<Arg<'a>>) => mul_;
    /// [`Tensor::neg`] (`torch.negative`).
    ///
    /// `tensor([1, -2]).negative()` is `[-1, 2]`.
    pub fn negative() => neg;
    /// [`Tensor::neg_`] (`torch.Tensor.negative_`).
    ///
    /// `tensor([1, -2]).negative_()` is `[-1, 2]`.
    pub fn negative_() => neg_;
    /// [`Tensor::ne`] (`torch.not_equal`).
    ///
    /// `tensor([1, 2]).not_equal(2)` is `[true, false]`.
    pub fn not_equal<'a>(other: impl Into<Arg<'a>>) => ne;
    /// [`Tensor::ne_`] (`torch.Tensor.not_equal_`).
    ///
    /// `tensor([1, 2]).not_equal_(2)` is `[1, 0]`.
    pub fn not_equal_<'a>(other: impl Into<Arg<'a>>) => ne_;
    /// [`Tensor::householder_product`] (`torch.orgqr`).
    ///
    /// `tensor([[1.0], [2.0]]).orgqr(&tensor([0.4]))` is `[[0.6000], [-0.8000]]`.
    pub fn orgqr(tau: &Tensor) => householder_product;
    /// [`Tensor::sub`] (`torch.subtract`).
    ///
    /// `tensor([1, 2]).subtract(10)` is `[-9, -8]`.
    pub fn subtract<'a>(other: impl Into<Arg<'a>>) => sub;
    /// [`Tensor::sub_`] (`torch.Tensor.subtract_`).
    ///
    /// `tensor([1, 2]).subtract_(10)` is `[-9, -8]`.
    pub fn subtract_<'a>(other: impl Into<Arg<'a>>) => sub_;
    /// [`Tensor::transpose`] (`torch.swapaxes`).
    ///
    /// `Tensor::zeros([2, 3]).swapaxes(0, 1).shape()` is `[3,2]`.
    pub fn swapaxes(dim0: i64, dim1: i64) => transpose;
    /// [`Tensor::transpose`] (`torch.swapdims`).
    ///
    /// `Tensor::zeros([2, 3]).swapdims(0, 1).shape()` is `[3,2]`.
    pub fn swapdims(dim0: i64, dim1: i64) => transpose;
    /// [`Tensor::div_`] (`torch.Tensor.true_divide_`).
    ///
    /// `tensor([1.0, 2.0]).true_divide_(2)` is `[0.5000, 1.0000]`.
    pub fn true_divide_<'a>(other: impl Into<Arg<'a>>) => div_;
}

impl Tensor {
    /// The last two dimensions exchanged and conjugated (`torch.adjoint`); a view where there is nothing to conjugate.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(Tensor::ones([4, 2, 3]).adjoint().shape(), [4, 3, 2]);
    /// ```
    #[track_caller]
    pub fn adjoint(&self) -> Tensor {
        let x = self.transpose(-2, -1);
        if x.dtype().is_complex() { x.conj() } else { x }
    }

    /// Converted to the dtype of another tensor (`torch.Tensor.type_as`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1, 2]).type_as(&tensor([0.5])).dtype(), F32);
    /// ```
    #[track_caller]
    pub fn type_as(&self, other: &Tensor) -> Tensor {
        self.to(other.dtype())
    }

    /// Whether the elements are floats (`torch.is_floating_point`).
    ///
    /// `tensor([1]).is_floating_point()` is `false`.
    pub fn is_floating_point(&self) -> bool {
        self.dtype().is_float()
    }

    /// Whether the elements are complex numbers (`torch.is_complex`).
    ///
    /// `tensor([1.0]).is_complex()` is `false`.
    pub fn is_complex(&self) -> bool {
        self.dtype().is_complex()
    }

    /// As [`Tensor::diag`] with this tensor's elements in order (`torch.diagflat`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[1, 2], [3, 4]]).diagflat(0).shape(), [4, 4]);
    /// ```
    #[track_caller]
    pub fn diagflat(&self, offset: i64) -> Tensor {
        self.flatten().diag(offset)
    }
}
