//! Second names that torch has for what other methods do, and products added to something in one call.
use super::base::{broadcasts, rounded_once};
use crate::tensor::{Arg, Tensor, called, refuse};
use xlazy_core::ty::{DType, Scalar};

const ADDED_TO: &str = "what is added to";

impl Tensor {
    /// This tensor, or a copy where it is a view whose elements do not lie in order (`torch.Tensor.contiguous`).
    ///
    /// `tensor([[1, 2], [3, 4]]).t().contiguous().flatten()` is `[1, 3, 2, 4]`.
    #[track_caller]
    pub fn contiguous(&self) -> Tensor {
        if self.is_contiguous() { self.clone() } else { self.copy() }
    }

    /// This tensor (`torch.positive`); bools have no sign.
    ///
    /// `tensor([1, 2]).positive()` is `[1, 2]`.
    #[track_caller]
    pub fn positive(&self) -> Tensor {
        if self.dtype() == crate::DType::Bool {
            refuse("positive", &[self], "bools have no sign");
        }
        self.clone()
    }

    /// `other - alpha · self` (`torch.rsub`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1, 2]).rsub(10, 2).to_vec::<i64>(), [8, 6]);
    /// ```
    #[track_caller]
    pub fn rsub<'a>(&self, other: impl Into<Arg<'a>>, alpha: impl Into<Scalar>) -> Tensor {
        let _call = called("rsub", [self]);
        let scaled = self.scaled_by(alpha.into());
        super::binary::sub(other.into(), Arg::Owned(scaled))
    }

    /// Itself where the factor is one.
    #[track_caller]
    fn scaled_by(&self, factor: Scalar) -> Tensor {
        if factor.as_f64() == 1.0 { self.clone() } else { self.mul(factor) }
    }

    /// `self + alpha · other` (`torch.add` with `alpha`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1.0]).add_scaled(&tensor([2.0]), 3.0).item(), 7.0);
    /// ```
    #[track_caller]
    pub fn add_scaled(&self, other: &Tensor, alpha: impl Into<Scalar>) -> Tensor {
        self.add(other.scaled_by(alpha.into()))
    }

    /// `self - alpha · other` (`torch.sub` with `alpha`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1.0]).sub_scaled(&tensor([2.0]), 3.0).item(), -5.0);
    /// ```
    #[track_caller]
    pub fn sub_scaled(&self, other: &Tensor, alpha: impl Into<Scalar>) -> Tensor {
        self.sub(other.scaled_by(alpha.into()))
    }

    /// `self / other` (`torch.true_divide`).
    ///
    /// `tensor([1, 2]).true_divide(2)` is `[0.5000, 1.0000]`.
    #[track_caller]
    pub fn true_divide<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("true_divide", [self]);
        self.div(other)
    }

    /// The sign of real numbers, z / |z| of complex ones, 0 at zero (`torch.sgn`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let z = tensor([3.0]).complex(&tensor([4.0])).sgn();
    /// assert!((z.imag().item() - 0.8).abs() < 1e-6);
    /// ```
    #[track_caller]
    pub fn sgn(&self) -> Tensor {
        let _call = called("sgn", [self]);
        if !self.dtype().is_complex() {
            return self.sign();
        }
        let size = self.abs();
        let zero = size.eq(0.0);
        self / size.masked_fill(&zero, 1.0)
    }

    /// The positions of the elements that are not zero (`torch.argwhere`): [`Tensor::nonzero`].
    ///
    /// `tensor([[0, 5], [6, 0]]).argwhere()` is `[[0, 1], [1, 0]]`.
    #[track_caller]
    pub fn argwhere(&self) -> Tensor {
        self.nonzero()
    }

    /// In order along the first dimension (`torch.msort`).
    ///
    /// `tensor([3, 1, 2]).msort()` is `[1, 2, 3]`.
    #[track_caller]
    pub fn msort(&self) -> Tensor {
        self.sort(0, false).0
    }

    /// In reverse order along the second dimension (`torch.fliplr`).
    ///
    /// `tensor([[1, 2], [3, 4]]).fliplr()` is `[[2, 1], [4, 3]]`.
    #[track_caller]
    pub fn fliplr(&self) -> Tensor {
        if self.dim() < 2 {
            refuse("fliplr", &[self], "needs at least 2 dimensions");
        }
        self.flip(1)
    }

    /// In reverse order along the first dimension (`torch.flipud`).
    ///
    /// `tensor([[1, 2], [3, 4]]).flipud()` is `[[3, 4], [1, 2]]`.
    #[track_caller]
    pub fn flipud(&self) -> Tensor {
        if self.dim() < 1 {
            refuse("flipud", &[self], "needs at least 1 dimension");
        }
        self.flip(0)
    }

    /// As one dimension (`torch.ravel`): [`Tensor::flatten`].
    ///
    /// `tensor([[1, 2], [3, 4]]).ravel()` is `[1, 2, 3, 4]`.
    #[track_caller]
    pub fn ravel(&self) -> Tensor {
        self.flatten()
    }

    /// In the shape of another tensor (`torch.Tensor.reshape_as`, and `view_as`).
    ///
    /// `tensor([1, 2, 3, 4]).reshape_as(&Tensor::zeros([2, 2]))` is `[[1, 2], [3, 4]]`.
    #[track_caller]
    pub fn reshape_as(&self, other: &Tensor) -> Tensor {
        let _call = called("reshape_as", [self, other]);
        self.reshape(other.shape())
    }

    /// In the shape of another tensor (`torch.Tensor.view_as`).
    ///
    /// `tensor([1, 2, 3, 4]).view_as(&Tensor::zeros([2, 2]))` is `[[1, 2], [3, 4]]`.
    #[track_caller]
    pub fn view_as(&self, other: &Tensor) -> Tensor {
        let _call = called("view_as", [self, other]);
        self.view(other.shape())
    }

    /// The inner product of two vectors, the first conjugated (`torch.vdot`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1.0, 2.0]).vdot(&tensor([3.0, 4.0])).item(), 11.0);
    /// ```
    #[track_caller]
    pub fn vdot(&self, other: &Tensor) -> Tensor {
        let _call = called("vdot", [self, other]);
        if self.dtype().is_complex() { self.conj().dot(other) } else { self.dot(other) }
    }

    /// A product, added to this tensor.
    #[track_caller]
    pub(super) fn plus_product(&self, op: &'static str, product: &Tensor) -> Tensor {
        broadcasts(op, ADDED_TO, self, product);
        self + product
    }

    // beta · self + alpha · product; what is multiplied by zero counts for nothing, be it NaN
    #[track_caller]
    fn blended(&self, op: &'static str, product: &Tensor, beta: Scalar, alpha: Scalar) -> Tensor {
        let bools = self.dtype() == DType::Bool && product.dtype() == DType::Bool;
        let scaled = |t: &Tensor, by: Scalar| match bools {
            true => t.logical_and(by.as_f64() != 0.0),
            false => t.scaled_by(by),
        };
        let product = scaled(product, alpha);
        broadcasts(op, ADDED_TO, self, &product);
        if beta.as_f64() == 0.0 { product } else { scaled(self, beta) + product }
    }

    /// `beta · self + alpha · mat1 · mat2` (`torch.addmm`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let y = tensor([[1.0]]).addmm_with(&tensor([[2.0]]), &tensor([[3.0]]), 10.0, 2.0);
    /// assert_eq!(y.item(), 22.0);
    /// ```
    #[track_caller]
    pub fn addmm_with(
        &self,
        mat1: &Tensor,
        mat2: &Tensor,
        beta: impl Into<Scalar>,
        alpha: impl Into<Scalar>,
    ) -> Tensor {
        let _call = called("addmm_with", [self, mat1, mat2]);
        self.blended("addmm", &mat1.mm(mat2), beta.into(), alpha.into())
    }

    /// `beta · self + alpha · mat · vec` (`torch.addmv`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let y = tensor([1.0]).addmv_with(&tensor([[2.0]]), &tensor([3.0]), 1.0, 1.0);
    /// assert_eq!(y.item(), 7.0);
    /// ```
    #[track_caller]
    pub fn addmv_with(&self, mat: &Tensor, vec: &Tensor, beta: impl Into<Scalar>, alpha: impl Into<Scalar>) -> Tensor {
        let _call = called("addmv_with", [self, mat, vec]);
        self.blended("addmv", &mat.mv(vec), beta.into(), alpha.into())
    }

    /// `beta · self + alpha · vec1 ⊗ vec2` (`torch.addr`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let y = tensor([[1.0]]).addr_with(&tensor([2.0]), &tensor([3.0]), 1.0, 1.0);
    /// assert_eq!(y.item(), 7.0);
    /// ```
    #[track_caller]
    pub fn addr_with(&self, vec1: &Tensor, vec2: &Tensor, beta: impl Into<Scalar>, alpha: impl Into<Scalar>) -> Tensor {
        let _call = called("addr_with", [self, vec1, vec2]);
        let (beta, alpha) = (beta.into(), alpha.into());
        rounded_once([self, vec1, vec2], |[x, a, b]| x.blended("addr", &a.outer(b), beta, alpha))
    }

    /// `beta · self + alpha · Σ batch1 · batch2`, the products of a batch added up (`torch.addbmm`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (a, b) = (Tensor::ones([2, 1, 1]), Tensor::ones([2, 1, 1]));
    /// assert_eq!(tensor([[1.0]]).addbmm_with(&a, &b, 1.0, 1.0).item(), 3.0);
    /// ```
    #[track_caller]
    pub fn addbmm_with(
        &self,
        batch1: &Tensor,
        batch2: &Tensor,
        beta: impl Into<Scalar>,
        alpha: impl Into<Scalar>,
    ) -> Tensor {
        let _call = called("addbmm_with", [self, batch1, batch2]);
        self.blended("addbmm", &batch1.bmm_sum(batch2), beta.into(), alpha.into())
    }

    /// `beta · self + alpha · batch1 · batch2` (`torch.baddbmm`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (a, b) = (Tensor::ones([2, 1, 1]), Tensor::ones([2, 1, 1]));
    /// assert_eq!(tensor(1.0).baddbmm_with(&a, &b, 1.0, 1.0).to_vec::<f32>(), [2.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn baddbmm_with(
        &self,
        batch1: &Tensor,
        batch2: &Tensor,
        beta: impl Into<Scalar>,
        alpha: impl Into<Scalar>,
    ) -> Tensor {
        let _call = called("baddbmm_with", [self, batch1, batch2]);
        self.blended("baddbmm", &batch1.bmm(batch2), beta.into(), alpha.into())
    }
}
