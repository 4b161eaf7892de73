//! Methods that change a tensor's value, named as in torch with an underscore behind: the value that the method without it
//! gives, converted to this tensor's dtype where that can hold it, takes the old one's place. Each gives the tensor back.
use super::base::methods;
use super::indexing::ScatterReduce;
use crate::tensor::{Arg, Tensor, called};

methods! {
    overwritten:
    /// [`Tensor::abs`] in place (`torch.Tensor.abs_`).
    ///
    /// `tensor([-1, 2]).abs_()` is `[1, 2]`.
    pub fn abs_() => abs;
    /// [`Tensor::acos`] in place (`torch.Tensor.acos_`).
    ///
    /// `tensor([0.0, 1.0]).acos_()` is `[1.5708, 0.0000]`.
    pub fn acos_() => acos;
    /// [`Tensor::acosh`] in place (`torch.Tensor.acosh_`).
    ///
    /// `tensor([1.0, 2.0]).acosh_()` is `[0.0000, 1.3170]`.
    pub fn acosh_() => acosh;
    /// [`Tensor::addbmm`] in place (`torch.Tensor.addbmm_`).
    ///
    /// `tensor([[1.0]]).addbmm_(&Tensor::ones([2, 1, 3]), &Tensor::ones([2, 3, 1]))` is `[[7.]]`.
    pub fn addbmm_(batch1: &Tensor, batch2: &Tensor) => addbmm;
    /// [`Tensor::addmm`] in place (`torch.Tensor.addmm_`).
    ///
    /// `tensor([[1.0]]).addmm_(&tensor([[1.0, 2.0]]), &tensor([[3.0], [4.0]]))` is `[[12.]]`.
    pub fn addmm_(mat1: &Tensor, mat2: &Tensor) => addmm;
    /// [`Tensor::addmv`] in place (`torch.Tensor.addmv_`).
    ///
    /// `tensor([1, 1]).addmv_(&tensor([[1, 2], [3, 4]]), &tensor([1, 10]))` is `[22, 44]`.
    pub fn addmv_(mat: &Tensor, vec: &Tensor) => addmv;
    /// [`Tensor::addr`] in place (`torch.Tensor.addr_`).
    ///
    /// `tensor([[0, 0]]).addr_(&tensor([2]), &tensor([3, 4]))` is `[[6, 8]]`.
    pub fn addr_(vec1: &Tensor, vec2: &Tensor) => addr;
    /// [`Tensor::asin`] in place (`torch.Tensor.asin_`).
    ///
    /// `tensor([0.0, 1.0]).asin_()` is `[0.0000, 1.5708]`.
    pub fn asin_() => asin;
    /// [`Tensor::asinh`] in place (`torch.Tensor.asinh_`).
    ///
    /// `tensor([0.0, 1.0]).asinh_()` is `[0.0000, 0.8814]`.
    pub fn asinh_() => asinh;
    /// [`Tensor::atan2`] in place (`torch.Tensor.atan2_`).
    ///
    /// `tensor([1.0, -1.0]).atan2_(1.0)` is `[0.7854, -0.7854]`.
    pub fn atan2_<'a>(other: impl Into<Arg<'a>>) => atan2;
    /// [`Tensor::atan`] in place (`torch.Tensor.atan_`).
    ///
    /// `tensor([0.0, 1.0]).atan_()` is `[0.0000, 0.7854]`.
    pub fn atan_() => atan;
    /// [`Tensor::atanh`] in place (`torch.Tensor.atanh_`).
    ///
    /// `tensor([0.0, 0.5]).atanh_()` is `[0.0000, 0.5493]`.
    pub fn atanh_() => atanh;
    /// [`Tensor::baddbmm`] in place (`torch.Tensor.baddbmm_`).
    ///
    /// `Tensor::zeros([2, 1, 1]).baddbmm_(&Tensor::ones([2, 1, 3]), &Tensor::ones([2, 3, 1])).flatten()` is `[3., 3.]`.
    pub fn baddbmm_(batch1: &Tensor, batch2: &Tensor) => baddbmm;
    /// [`Tensor::bitwise_and`] in place (`torch.Tensor.bitwise_and_`).
    ///
    /// `tensor([6, 5]).bitwise_and_(3)` is `[2, 1]`.
    pub fn bitwise_and_<'a>(other: impl Into<Arg<'a>>) => bitwise_and;
    /// [`Tensor::bitwise_left_shift`] in place (`torch.Tensor.bitwise_left_shift_`).
    ///
    /// `tensor([1, 2]).bitwise_left_shift_(3)` is `[8, 16]`.
    pub fn bitwise_left_shift_<'a>(other: impl Into<Arg<'a>>) => bitwise_left_shift;
    /// [`Tensor::bitwise_not`] in place (`torch.Tensor.bitwise_not_`).
    ///
    /// `tensor([0, 5]).bitwise_not_()` is `[-1, -6]`.
    pub fn bitwise_not_() => bitwise_not;
    /// [`Tensor::bitwise_or`] in place (`torch.Tensor.bitwise_or_`).
    ///
    /// `tensor([6, 5]).bitwise_or_(3)` is `[7, 7]`.
    pub fn bitwise_or_<'a>(other: impl Into<Arg<'a>>) => bitwise_or;
    /// [`Tensor::bitwise_right_shift`] in place (`torch.Tensor.bitwise_right_shift_`).
    ///
    /// `tensor([8, 9]).bitwise_right_shift_(1)` is `[4, 4]`.
    pub fn bitwise_right_shift_<'a>(other: impl Into<Arg<'a>>) => bitwise_right_shift;
    /// [`Tensor::bitwise_xor`] in place (`torch.Tensor.bitwise_xor_`).
    ///
    /// `tensor([6, 5]).bitwise_xor_(3)` is `[5, 6]`.
    pub fn bitwise_xor_<'a>(other: impl Into<Arg<'a>>) => bitwise_xor;
    /// [`Tensor::ceil`] in place (`torch.Tensor.ceil_`).
    ///
    /// `tensor([-1.5, 1.5]).ceil_()` is `[-1., 2.]`.
    pub fn ceil_() => ceil;
    /// [`Tensor::celu`] in place (`torch.nn.functional.celu_`).
    ///
    /// `tensor([-1.0, 2.0]).celu_(1.0)` is `[-0.6321, 2.0000]`.
    pub fn celu_(alpha: f64) => celu;
    /// [`Tensor::clamp_max`] in place (`torch.Tensor.clamp_max_`).
    ///
    /// `tensor([-1.0, 2.0]).clamp_max_(0.0)` is `[-1., 0.]`.
    pub fn clamp_max_<'a>(other: impl Into<Arg<'a>>) => clamp_max;
    /// [`Tensor::clamp_min`] in place (`torch.Tensor.clamp_min_`).
    ///
    /// `tensor([-1.0, 2.0]).clamp_min_(0.0)` is `[0., 2.]`.
    pub fn clamp_min_<'a>(other: impl Into<Arg<'a>>) => clamp_min;
    /// [`Tensor::copysign`] in place (`torch.Tensor.copysign_`).
    ///
    /// `tensor([1.0, 2.0]).copysign_(-1.0)` is `[-1., -2.]`.
    pub fn copysign_<'a>(other: impl Into<Arg<'a>>) => copysign;
    /// [`Tensor::cos`] in place (`torch.Tensor.cos_`).
    ///
    /// `tensor([0.0, 1.0]).cos_()` is `[1.0000, 0.5403]`.
    pub fn cos_() => cos;
    /// [`Tensor::cosh`] in place (`torch.Tensor.cosh_`).
    ///
    /// `tensor([0.0, 1.0]).cosh_()` is `[1.0000, 1.5431]`.
    pub fn cosh_() => cosh;
    /// [`Tensor::cumprod`] in place (`torch.Tensor.cumprod_`).
    ///
    /// `tensor([1, 2, 3]).cumprod_(0)` is `[1, 2, 6]`.
    pub fn cumprod_(dim: i64) => cumprod;
    /// [`Tensor::cumsum`] in place (`torch.Tensor.cumsum_`).
    ///
    /// `tensor([1, 2, 3]).cumsum_(0)` is `[1, 3, 6]`.
    pub fn cumsum_(dim: i64) => cumsum;
    /// [`Tensor::deg2rad`] in place (`torch.Tensor.deg2rad_`).
    ///
    /// `tensor([180.0]).deg2rad_()` is `[3.1416]`.
    pub fn deg2rad_() => deg2rad;
    /// [`Tensor::digamma`] in place (`torch.Tensor.digamma_`).
    ///
    /// `tensor([1.0, 2.0]).digamma_()` is `[-0.5772, 0.4228]`.
    pub fn digamma_() => digamma;
    /// [`Tensor::elu`] in place (`torch.nn.functional.elu_`).
    ///
    /// `tensor([-1.0, 2.0]).elu_(1.0)` is `[-0.6321, 2.0000]`.
    pub fn elu_<'a>(alpha: impl Into<Arg<'a>>) => elu;
    /// [`Tensor::eq`] in place (`torch.Tensor.eq_`).
    ///
    /// `tensor([1, 2]).eq_(2)` is `[0, 1]`.
    pub fn eq_<'a>(other: impl Into<Arg<'a>>) => eq;
    /// [`Tensor::erf`] in place (`torch.Tensor.erf_`).
    ///
    /// `tensor([0.0, 1.0]).erf_()` is `[0.0000, 0.8427]`.
    pub fn erf_() => erf;
    /// [`Tensor::erfc`] in place (`torch.Tensor.erfc_`).
    ///
    /// `tensor([0.0, 1.0]).erfc_()` is `[1.0000, 0.1573]`.
    pub fn erfc_() => erfc;
    /// [`Tensor::erfinv`] in place (`torch.Tensor.erfinv_`).
    ///
    /// `tensor([0.0, 0.5]).erfinv_()` is `[0.0000, 0.4769]`.
    pub fn erfinv_() => erfinv;
    /// [`Tensor::exp2`] in place (`torch.Tensor.exp2_`).
    ///
    /// `tensor([3.0]).exp2_()` is `[8.]`.
    pub fn exp2_() => exp2;
    /// [`Tensor::exp`] in place (`torch.Tensor.exp_`).
    ///
    /// `tensor([0.0, 1.0]).exp_()` is `[1.0000, 2.7183]`.
    pub fn exp_() => exp;
    /// [`Tensor::expm1`] in place (`torch.Tensor.expm1_`).
    ///
    /// `tensor([0.0, 1.0]).expm1_()` is `[0.0000, 1.7183]`.
    pub fn expm1_() => expm1;
    /// [`Tensor::floor`] in place (`torch.Tensor.floor_`).
    ///
    /// `tensor([-1.5, 1.5]).floor_()` is `[-2., 1.]`.
    pub fn floor_() => floor;
    /// [`Tensor::floor_divide`] in place (`torch.Tensor.floor_divide_`).
    ///
    /// `tensor([-7, 7]).floor_divide_(2)` is `[-4, 3]`.
    pub fn floor_divide_<'a>(other: impl Into<Arg<'a>>) => floor_divide;
    /// [`Tensor::fmod`] in place (`torch.Tensor.fmod_`).
    ///
    /// `tensor([-7, 7]).fmod_(4)` is `[-3, 3]`.
    pub fn fmod_<'a>(other: impl Into<Arg<'a>>) => fmod;
    /// [`Tensor::frac`] in place (`torch.Tensor.frac_`).
    ///
    /// `tensor([-1.25, 1.5]).frac_()` is `[-0.2500, 0.5000]`.
    pub fn frac_() => frac;
    /// [`Tensor::gcd`] in place (`torch.Tensor.gcd_`).
    ///
    /// `tensor([12, 18]).gcd_(&tensor([8, 27]))` is `[4, 9]`.
    pub fn gcd_<'a>(other: impl Into<Arg<'a>>) => gcd;
    /// [`Tensor::ge`] in place (`torch.Tensor.ge_`).
    ///
    /// `tensor([1, 2]).ge_(1)` is `[1, 1]`.
    pub fn ge_<'a>(other: impl Into<Arg<'a>>) => ge;
    /// [`Tensor::gt`] in place (`torch.Tensor.gt_`).
    ///
    /// `tensor([1, 2]).gt_(1)` is `[0, 1]`.
    pub fn gt_<'a>(other: impl Into<Arg<'a>>) => gt;
    /// [`Tensor::hardtanh`] in place (`torch.nn.functional.hardtanh_`).
    ///
    /// `tensor([-2.0, 0.5, 2.0]).hardtanh_(-1.0, 1.0)` is `[-1.0000, 0.5000, 1.0000]`.
    pub fn hardtanh_(min_val: f64, max_val: f64) => hardtanh;
    /// [`Tensor::heaviside`] in place (`torch.Tensor.heaviside_`).
    ///
    /// `tensor([-1.0, 0.0, 2.0]).heaviside_(&tensor(0.5))` is `[0.0000, 0.5000, 1.0000]`.
    pub fn heaviside_(values: &Tensor) => heaviside;
    /// [`Tensor::hypot`] in place (`torch.Tensor.hypot_`).
    ///
    /// `tensor([3.0]).hypot_(&tensor([4.0]))` is `[5.]`.
    pub fn hypot_(other: &Tensor) => hypot;
    /// [`Tensor::igamma`] in place (`torch.Tensor.igamma_`).
    ///
    /// `tensor([1.0, 2.0]).igamma_(&tensor([2.0, 1.0]))` is `[0.8647, 0.2642]`.
    pub fn igamma_<'a>(other: impl Into<Arg<'a>>) => igamma;
    /// [`Tensor::igammac`] in place (`torch.Tensor.igammac_`).
    ///
    /// `tensor([1.0, 2.0]).igammac_(&tensor([2.0, 1.0]))` is `[0.1353, 0.7358]`.
    pub fn igammac_<'a>(other: impl Into<Arg<'a>>) => igammac;
    /// [`Tensor::conj`] in place (`torch.Tensor.conj_physical_`).
    ///
    /// `tensor([1.0, 2.0]).conj_physical_()` is `[1., 2.]`.
    pub fn conj_physical_() => conj;
    /// [`Tensor::i0`] in place (`torch.Tensor.i0_`).
    ///
    /// `tensor([0.0, 1.0]).i0_()` is `[1.0000, 1.2661]`.
    pub fn i0_() => i0;
    /// [`Tensor::index_add`] in place (`torch.Tensor.index_add_`).
    ///
    /// `tensor([1, 1]).index_add_(0, &tensor([0, 0]), &tensor([2, 3]))` is `[6, 1]`.
    pub fn index_add_(dim: i64, index: &Tensor, source: &Tensor) => index_add;
    /// [`Tensor::index_copy`] in place (`torch.Tensor.index_copy_`).
    ///
    /// `tensor([1, 1]).index_copy_(0, &tensor([1]), &tensor([9]))` is `[1, 9]`.
    pub fn index_copy_(dim: i64, index: &Tensor, source: &Tensor) => index_copy;
    /// [`Tensor::index_reduce`] in place (`torch.Tensor.index_reduce_`).
    ///
    /// `tensor([1, 1]).index_reduce_(0, &tensor([0]), &tensor([5]), ScatterReduce::Amax, true)` is `[5, 1]`.
    pub fn index_reduce_(dim: i64, index: &Tensor, source: &Tensor, reduce: ScatterReduce, include_self: bool) => index_reduce;
    /// [`Tensor::lcm`] in place (`torch.Tensor.lcm_`).
    ///
    /// `tensor([4, 6]).lcm_(&tensor([6, 4]))` is `[12, 12]`.
    pub fn lcm_(other: &Tensor) => lcm;
    /// [`Tensor::ldexp`] in place (`torch.Tensor.ldexp_`).
    ///
    /// `tensor([1.0, 3.0]).ldexp_(&tensor([3, 1]))` is `[8., 6.]`.
    pub fn ldexp_(other: &Tensor) => ldexp;
    /// [`Tensor::le`] in place (`torch.Tensor.le_`).
    ///
    /// `tensor([1, 2]).le_(2)` is `[1, 1]`.
    pub fn le_<'a>(other: impl Into<Arg<'a>>) => le;
    /// [`Tensor::leaky_relu`] in place (`torch.nn.functional.leaky_relu_`).
    ///
    /// `tensor([-1.0, 2.0]).leaky_relu_(0.1)` is `[-0.1000, 2.0000]`.
    pub fn leaky_relu_<'a>(slope: impl Into<Arg<'a>>) => leaky_relu;
    /// [`Tensor::lgamma`] in place (`torch.Tensor.lgamma_`).
    ///
    /// `tensor([4.0, 6.0]).lgamma_()` is `[1.7918, 4.7875]`.
    pub fn lgamma_() => lgamma;
    /// [`Tensor::log10`] in place (`torch.Tensor.log10_`).
    ///
    /// `tensor([2.0, 50.0]).log10_()` is `[0.3010, 1.6990]`.
    pub fn log10_() => log10;
    /// [`Tensor::log1p`] in place (`torch.Tensor.log1p_`).
    ///
    /// `tensor([0.0, 1.0]).log1p_()` is `[0.0000, 0.6931]`.
    pub fn log1p_() => log1p;
    /// [`Tensor::log2`] in place (`torch.Tensor.log2_`).
    ///
    /// `tensor([8.0]).log2_()` is `[3.]`.
    pub fn log2_() => log2;
    /// [`Tensor::log`] in place (`torch.Tensor.log_`).
    ///
    /// `tensor([1.0, 10.0]).log_()` is `[0.0000, 2.3026]`.
    pub fn log_() => log;
    /// [`Tensor::logical_and`] in place (`torch.Tensor.logical_and_`).
    ///
    /// `tensor([true, true]).logical_and_(&tensor([true, false]))` is `[true, false]`.
    pub fn logical_and_<'a>(other: impl Into<Arg<'a>>) => logical_and;
    /// [`Tensor::logical_not`] in place (`torch.Tensor.logical_not_`).
    ///
    /// `tensor([0, 5]).logical_not_()` is `[1, 0]`.
    pub fn logical_not_() => logical_not;
    /// [`Tensor::logical_or`] in place (`torch.Tensor.logical_or_`).
    ///
    /// `tensor([true, false]).logical_or_(&tensor([false, false]))` is `[true, false]`.
    pub fn logical_or_<'a>(other: impl Into<Arg<'a>>) => logical_or;
    /// [`Tensor::logical_xor`] in place (`torch.Tensor.logical_xor_`).
    ///
    /// `tensor([true, true]).logical_xor_(&tensor([true, false]))` is `[false, true]`.
    pub fn logical_xor_<'a>(other: impl Into<Arg<'a>>) => logical_xor;
    /// [`Tensor::logit`] in place (`torch.Tensor.logit_`).
    ///
    /// `tensor([0.5, 0.9]).logit_(None)` is `[0.0000, 2.1972]`.
    pub fn logit_(eps: Option<f64>) => logit;
    /// [`Tensor::lt`] in place (`torch.Tensor.lt_`).
    ///
    /// `tensor([1, 2]).lt_(2)` is `[1, 0]`.
    pub fn lt_<'a>(other: impl Into<Arg<'a>>) => lt;
    /// [`Tensor::masked_scatter`] in place (`torch.Tensor.masked_scatter_`).
    ///
    /// `tensor([1, 2, 3]).masked_scatter_(&tensor([true, false, true]), &tensor([8, 9]))` is `[8, 2, 9]`.
    pub fn masked_scatter_(mask: &Tensor, source: &Tensor) => masked_scatter;
    /// [`Tensor::mvlgamma`] in place (`torch.Tensor.mvlgamma_`).
    ///
    /// `tensor([2.0, 3.0]).mvlgamma_(2)` is `[0.4516, 1.5502]`.
    pub fn mvlgamma_(p: usize) => mvlgamma;
    /// [`Tensor::nan_to_num`] in place (`torch.Tensor.nan_to_num_`).
    ///
    /// `tensor([f32::NAN, 1.0]).nan_to_num_(0.0, None, None)` is `[0., 1.]`.
    pub fn nan_to_num_(nan: f64, posinf: Option<f64>, neginf: Option<f64>) => nan_to_num;
    /// [`Tensor::ne`] in place (`torch.Tensor.ne_`).
    ///
    /// `tensor([1, 2]).ne_(2)` is `[1, 0]`.
    pub fn ne_<'a>(other: impl Into<Arg<'a>>) => ne;
    /// [`Tensor::neg`] in place (`torch.Tensor.neg_`).
    ///
    /// `tensor([1, -2]).neg_()` is `[-1, 2]`.
    pub fn neg_() => neg;
    /// [`Tensor::nextafter`] in place (`torch.Tensor.nextafter_`).
    ///
    /// `tensor([1.0]).nextafter_(&tensor([2.0]))` is `[1.0000]`.
    pub fn nextafter_<'a>(other: impl Into<Arg<'a>>) => nextafter;
    /// [`Tensor::polygamma`] in place (`torch.Tensor.polygamma_`).
    ///
    /// `tensor([1.0]).polygamma_(1)` is `[1.6449]`.
    pub fn polygamma_(n: usize) => polygamma;
    /// [`Tensor::pow`] in place (`torch.Tensor.pow_`).
    ///
    /// `tensor([2.0, 3.0]).pow_(2)` is `[4., 9.]`.
    pub fn pow_<'a>(other: impl Into<Arg<'a>>) => pow;
    /// [`Tensor::put`] in place (`torch.Tensor.put_`).
    ///
    /// `tensor([5, 6]).put_(&tensor([0]), &tensor([9]), false)` is `[9, 6]`.
    pub fn put_(index: &Tensor, values: &Tensor, accumulate: bool) => put;
    /// [`Tensor::rad2deg`] in place (`torch.Tensor.rad2deg_`).
    ///
    /// `tensor([1.0]).rad2deg_()` is `[57.2958]`.
    pub fn rad2deg_() => rad2deg;
    /// [`Tensor::reciprocal`] in place (`torch.Tensor.reciprocal_`).
    ///
    /// `tensor([4.0]).reciprocal_()` is `[0.2500]`.
    pub fn reciprocal_() => reciprocal;
    /// [`Tensor::relu`] in place (`torch.Tensor.relu_`).
    ///
    /// `tensor([-1.0, 2.0]).relu_()` is `[0., 2.]`.
    pub fn relu_() => relu;
    /// [`Tensor::remainder`] in place (`torch.Tensor.remainder_`).
    ///
    /// `tensor([-7, 7]).remainder_(4)` is `[1, 3]`.
    pub fn remainder_<'a>(other: impl Into<Arg<'a>>) => remainder;
    /// [`Tensor::renorm`] in place (`torch.Tensor.renorm_`).
    ///
    /// `tensor([[3.0, 4.0]]).renorm_(2.0, 0, 1.0)` is `[[0.6000, 0.8000]]`.
    pub fn renorm_(p: f64, dim: i64, maxnorm: f64) => renorm;
    /// [`Tensor::round`] in place (`torch.Tensor.round_`).
    ///
    /// `tensor([0.5, 1.5, 2.6]).round_()` is `[0., 2., 3.]`.
    pub fn round_() => round;
    /// [`Tensor::rsqrt`] in place (`torch.Tensor.rsqrt_`).
    ///
    /// `tensor([4.0]).rsqrt_()` is `[0.5000]`.
    pub fn rsqrt_() => rsqrt;
    /// [`Tensor::scatter_reduce`] in place (`torch.Tensor.scatter_reduce_`).
    ///
    /// `tensor([1, 1]).scatter_reduce_(0, &tensor([0, 0]), &tensor([2, 3]), ScatterReduce::Sum, true)` is `[6, 1]`.
    pub fn scatter_reduce_(dim: i64, index: &Tensor, src: &Tensor, reduce: ScatterReduce, include_self: bool) => scatter_reduce;
    /// [`Tensor::selu`] in place (`torch.nn.functional.selu_`).
    ///
    /// `tensor([-1.0, 2.0]).selu_()` is `[-1.1113, 2.1014]`.
    pub fn selu_() => selu;
    /// [`Tensor::sgn`] in place (`torch.Tensor.sgn_`).
    ///
    /// `tensor([-2.0, 0.0, 5.0]).sgn_()` is `[-1., 0., 1.]`.
    pub fn sgn_() => sgn;
    /// [`Tensor::sigmoid`] in place (`torch.Tensor.sigmoid_`).
    ///
    /// `tensor([0.0, 2.0]).sigmoid_()` is `[0.5000, 0.8808]`.
    pub fn sigmoid_() => sigmoid;
    /// [`Tensor::sign`] in place (`torch.Tensor.sign_`).
    ///
    /// `tensor([-3, 0, 2]).sign_()` is `[-1, 0, 1]`.
    pub fn sign_() => sign;
    /// [`Tensor::sin`] in place (`torch.Tensor.sin_`).
    ///
    /// `tensor([0.0, 1.0]).sin_()` is `[0.0000, 0.8415]`.
    pub fn sin_() => sin;
    /// [`Tensor::sinc`] in place (`torch.Tensor.sinc_`).
    ///
    /// `tensor([0.0, 0.5]).sinc_()` is `[1.0000, 0.6366]`.
    pub fn sinc_() => sinc;
    /// [`Tensor::sinh`] in place (`torch.Tensor.sinh_`).
    ///
    /// `tensor([0.0, 1.0]).sinh_()` is `[0.0000, 1.1752]`.
    pub fn sinh_() => sinh;
    /// [`Tensor::sqrt`] in place (`torch.Tensor.sqrt_`).
    ///
    /// `tensor([4.0, 9.0]).sqrt_()` is `[2., 3.]`.
    pub fn sqrt_() => sqrt;
    /// [`Tensor::square`] in place (`torch.Tensor.square_`).
    ///
    /// `tensor([3.0]).square_()` is `[9.]`.
    pub fn square_() => square;
    /// [`Tensor::tan`] in place (`torch.Tensor.tan_`).
    ///
    /// `tensor([0.0, 1.0]).tan_()` is `[0.0000, 1.5574]`.
    pub fn tan_() => tan;
    /// [`Tensor::tanh`] in place (`torch.Tensor.tanh_`).
    ///
    /// `tensor([0.0, 1.0]).tanh_()` is `[0.0000, 0.7616]`.
    pub fn tanh_() => tanh;
    /// [`Tensor::threshold`] in place (`torch.nn.functional.threshold_`).
    ///
    /// `tensor([1.0, 3.0]).threshold_(2.0, 0.0)` is `[0., 3.]`.
    pub fn threshold_(threshold: f64, value: f64) => threshold;
    /// [`Tensor::tril`] in place (`torch.Tensor.tril_`).
    ///
    /// `Tensor::ones([2, 2]).tril_(0)` is `[[1., 0.], [1., 1.]]`.
    pub fn tril_(diagonal: i64) => tril;
    /// [`Tensor::triu`] in place (`torch.Tensor.triu_`).
    ///
    /// `Tensor::ones([2, 2]).triu_(1)` is `[[0., 1.], [0., 0.]]`.
    pub fn triu_(diagonal: i64) => triu;
    /// [`Tensor::trunc`] in place (`torch.Tensor.trunc_`).
    ///
    /// `tensor([-1.5, 1.5]).trunc_()` is `[-1., 1.]`.
    pub fn trunc_() => trunc;
    /// [`Tensor::xlogy`] in place (`torch.Tensor.xlogy_`).
    ///
    /// `tensor([0.0, 2.0]).xlogy_(1.0)` is `[0., 0.]`.
    pub fn xlogy_<'a>(other: impl Into<Arg<'a>>) => xlogy;
    /// [`Tensor::clamp`] in place (`torch.Tensor.clamp_`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([-2.0, 0.5, 3.0]);
    /// x.clamp_(-1.0, 1.0);
    /// assert_eq!(x.to_vec::<f32>(), [-1.0, 0.5, 1.0]);
    /// ```
    pub fn clamp_<'a>(min: impl Into<Arg<'a>>, max: impl Into<Arg<'a>>) => clamp;
    /// [`Tensor::index_fill`] in place (`torch.Tensor.index_fill_`).
    ///
    /// `tensor([1, 2, 3]).index_fill_(0, &tensor([0, 2]), 9)` is `[9, 2, 9]`.
    pub fn index_fill_<'a>(dim: i64, index: &Tensor, value: impl Into<Arg<'a>>) => index_fill;
    /// [`Tensor::scatter`] in place (`torch.Tensor.scatter_`).
    ///
    /// `tensor([1, 2, 3]).scatter_(0, &tensor([0, 2]), 9)` is `[9, 2, 9]`.
    pub fn scatter_<'a>(dim: i64, index: &Tensor, src: impl Into<Arg<'a>>) => scatter;
    /// [`Tensor::scatter_add`] in place (`torch.Tensor.scatter_add_`).
    ///
    /// `tensor([1, 2, 3]).scatter_add_(0, &tensor([0, 0]), &tensor([10, 20]))` is `[31, 2, 3]`.
    pub fn scatter_add_<'a>(dim: i64, index: &Tensor, src: impl Into<Arg<'a>>) => scatter_add;
    /// [`Tensor::lerp`] in place (`torch.Tensor.lerp_`).
    ///
    /// `tensor([1.0, 2.0]).lerp_(&tensor([5.0, 4.0]), 0.5)` is `[3., 3.]`.
    pub fn lerp_<'a>(end: &Tensor, weight: impl Into<Arg<'a>>) => lerp;
    /// [`Tensor::addcmul`] in place (`torch.Tensor.addcmul_`).
    ///
    /// `tensor([1.0, 2.0]).addcmul_(&tensor([3.0, 4.0]), &tensor([5.0, 6.0]), 0.5)` is `[8.5000, 14.0000]`.
    pub fn addcmul_<'a>(tensor1: &Tensor, tensor2: &Tensor, value: impl Into<Arg<'a>>) => addcmul;
    /// [`Tensor::addcdiv`] in place (`torch.Tensor.addcdiv_`).
    ///
    /// `tensor([1.0, 2.0]).addcdiv_(&tensor([6.0, 8.0]), &tensor([3.0, 4.0]), 0.5)` is `[2., 3.]`.
    pub fn addcdiv_<'a>(tensor1: &Tensor, tensor2: &Tensor, value: impl Into<Arg<'a>>) => addcdiv;
    /// Adds to this tensor's value (`torch.Tensor.add_`).
    ///
    /// `tensor([1.0, 2.0]).add_(3.0)` is `[4., 5.]`.
    pub fn add_<'a>(other: impl Into<Arg<'a>>) => add;
    /// Subtracts from this tensor's value (`torch.Tensor.sub_`).
    ///
    /// `tensor([1.0, 2.0]).sub_(3.0)` is `[-2., -1.]`.
    pub fn sub_<'a>(other: impl Into<Arg<'a>>) => sub;
    /// Multiplies this tensor's value (`torch.Tensor.mul_`).
    ///
    /// `tensor([1.0, 2.0]).mul_(3.0)` is `[3., 6.]`.
    pub fn mul_<'a>(other: impl Into<Arg<'a>>) => mul;
    /// Divides this tensor's value (`torch.Tensor.div_`).
    ///
    /// `tensor([1.0, 2.0]).div_(4.0)` is `[0.2500, 0.5000]`.
    pub fn div_<'a>(other: impl Into<Arg<'a>>) => div;
}
