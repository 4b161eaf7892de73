//! Methods that change a tensor's value, named as in torch with an underscore behind: the value that the method without it
//! gives, converted to this tensor's dtype where that can hold it, takes the old one's place. Each gives the tensor back.
use super::indexing::ScatterReduce;
use crate::tensor::{Arg, Tensor, called, refuse};
use xlazy_core::ty::{Dims, Scalar};

macro_rules! in_place {
    ($($(#[$doc:meta])* pub fn $name:ident$(<$life:lifetime>)?($($arg:ident: $ty:ty),*) => $method:ident;)*) => {
        impl Tensor {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name$(<$life>)?(&self, $($arg: $ty),*) -> Tensor {
                let _call = called(stringify!($name), [self]);
                self.assign(stringify!($name), self.$method($($arg),*));
                self.clone()
            })*
        }
    };
}

macro_rules! another_shape {
    ($($(#[$doc:meta])* pub fn $name:ident$(<$life:lifetime>)?($($arg:ident: $ty:ty),*) => $method:ident;)*) => {
        impl Tensor {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name$(<$life>)?(&self, $($arg: $ty),*) -> Tensor {
                let _call = called(stringify!($name), [self]);
                self.become_view(stringify!($name), |x| x.$method($($arg),*))
            })*
        }
    };
}

in_place! {
    /// [`Tensor::abs`] in place (`torch.Tensor.abs_`).
    pub fn abs_() => abs;
    /// [`Tensor::acos`] in place (`torch.Tensor.acos_`).
    pub fn acos_() => acos;
    /// [`Tensor::acosh`] in place (`torch.Tensor.acosh_`).
    pub fn acosh_() => acosh;
    /// [`Tensor::addbmm`] in place (`torch.Tensor.addbmm_`).
    pub fn addbmm_(batch1: &Tensor, batch2: &Tensor) => addbmm;
    /// [`Tensor::addmm`] in place (`torch.Tensor.addmm_`).
    pub fn addmm_(mat1: &Tensor, mat2: &Tensor) => addmm;
    /// [`Tensor::addmv`] in place (`torch.Tensor.addmv_`).
    pub fn addmv_(mat: &Tensor, vec: &Tensor) => addmv;
    /// [`Tensor::addr`] in place (`torch.Tensor.addr_`).
    pub fn addr_(vec1: &Tensor, vec2: &Tensor) => addr;
    /// [`Tensor::asin`] in place (`torch.Tensor.asin_`).
    pub fn asin_() => asin;
    /// [`Tensor::asinh`] in place (`torch.Tensor.asinh_`).
    pub fn asinh_() => asinh;
    /// [`Tensor::atan2`] in place (`torch.Tensor.atan2_`).
    pub fn atan2_<'a>(other: impl Into<Arg<'a>>) => atan2;
    /// [`Tensor::atan`] in place (`torch.Tensor.atan_`).
    pub fn atan_() => atan;
    /// [`Tensor::atanh`] in place (`torch.Tensor.atanh_`).
    pub fn atanh_() => atanh;
    /// [`Tensor::baddbmm`] in place (`torch.Tensor.baddbmm_`).
    pub fn baddbmm_(batch1: &Tensor, batch2: &Tensor) => baddbmm;
    /// [`Tensor::bitwise_and`] in place (`torch.Tensor.bitwise_and_`).
    pub fn bitwise_and_<'a>(other: impl Into<Arg<'a>>) => bitwise_and;
    /// [`Tensor::bitwise_left_shift`] in place (`torch.Tensor.bitwise_left_shift_`).
    pub fn bitwise_left_shift_<'a>(other: impl Into<Arg<'a>>) => bitwise_left_shift;
    /// [`Tensor::bitwise_not`] in place (`torch.Tensor.bitwise_not_`).
    pub fn bitwise_not_() => bitwise_not;
    /// [`Tensor::bitwise_or`] in place (`torch.Tensor.bitwise_or_`).
    pub fn bitwise_or_<'a>(other: impl Into<Arg<'a>>) => bitwise_or;
    /// [`Tensor::bitwise_right_shift`] in place (`torch.Tensor.bitwise_right_shift_`).
    pub fn bitwise_right_shift_<'a>(other: impl Into<Arg<'a>>) => bitwise_right_shift;
    /// [`Tensor::bitwise_xor`] in place (`torch.Tensor.bitwise_xor_`).
    pub fn bitwise_xor_<'a>(other: impl Into<Arg<'a>>) => bitwise_xor;
    /// [`Tensor::ceil`] in place (`torch.Tensor.ceil_`).
    pub fn ceil_() => ceil;
    /// [`Tensor::celu`] in place (`torch.nn.functional.celu_`).
    pub fn celu_(alpha: f64) => celu;
    /// [`Tensor::clamp_max`] in place (`torch.Tensor.clamp_max_`).
    pub fn clamp_max_<'a>(other: impl Into<Arg<'a>>) => clamp_max;
    /// [`Tensor::clamp_min`] in place (`torch.Tensor.clamp_min_`).
    pub fn clamp_min_<'a>(other: impl Into<Arg<'a>>) => clamp_min;
    /// [`Tensor::copysign`] in place (`torch.Tensor.copysign_`).
    pub fn copysign_<'a>(other: impl Into<Arg<'a>>) => copysign;
    /// [`Tensor::cos`] in place (`torch.Tensor.cos_`).
    pub fn cos_() => cos;
    /// [`Tensor::cosh`] in place (`torch.Tensor.cosh_`).
    pub fn cosh_() => cosh;
    /// [`Tensor::cumprod`] in place (`torch.Tensor.cumprod_`).
    pub fn cumprod_(dim: i64) => cumprod;
    /// [`Tensor::cumsum`] in place (`torch.Tensor.cumsum_`).
    pub fn cumsum_(dim: i64) => cumsum;
    /// [`Tensor::deg2rad`] in place (`torch.Tensor.deg2rad_`).
    pub fn deg2rad_() => deg2rad;
    /// [`Tensor::digamma`] in place (`torch.Tensor.digamma_`).
    pub fn digamma_() => digamma;
    /// [`Tensor::elu`] in place (`torch.nn.functional.elu_`).
    pub fn elu_<'a>(alpha: impl Into<Arg<'a>>) => elu;
    /// [`Tensor::eq`] in place (`torch.Tensor.eq_`).
    pub fn eq_<'a>(other: impl Into<Arg<'a>>) => eq;
    /// [`Tensor::erf`] in place (`torch.Tensor.erf_`).
    pub fn erf_() => erf;
    /// [`Tensor::erfc`] in place (`torch.Tensor.erfc_`).
    pub fn erfc_() => erfc;
    /// [`Tensor::erfinv`] in place (`torch.Tensor.erfinv_`).
    pub fn erfinv_() => erfinv;
    /// [`Tensor::exp2`] in place (`torch.Tensor.exp2_`).
    pub fn exp2_() => exp2;
    /// [`Tensor::exp`] in place (`torch.Tensor.exp_`).
    pub fn exp_() => exp;
    /// [`Tensor::expm1`] in place (`torch.Tensor.expm1_`).
    pub fn expm1_() => expm1;
    /// [`Tensor::floor`] in place (`torch.Tensor.floor_`).
    pub fn floor_() => floor;
    /// [`Tensor::floor_divide`] in place (`torch.Tensor.floor_divide_`).
    pub fn floor_divide_<'a>(other: impl Into<Arg<'a>>) => floor_divide;
    /// [`Tensor::fmod`] in place (`torch.Tensor.fmod_`).
    pub fn fmod_<'a>(other: impl Into<Arg<'a>>) => fmod;
    /// [`Tensor::frac`] in place (`torch.Tensor.frac_`).
    pub fn frac_() => frac;
    /// [`Tensor::gcd`] in place (`torch.Tensor.gcd_`).
    pub fn gcd_<'a>(other: impl Into<Arg<'a>>) => gcd;
    /// [`Tensor::ge`] in place (`torch.Tensor.ge_`).
    pub fn ge_<'a>(other: impl Into<Arg<'a>>) => ge;
    /// [`Tensor::gt`] in place (`torch.Tensor.gt_`).
    pub fn gt_<'a>(other: impl Into<Arg<'a>>) => gt;
    /// [`Tensor::hardtanh`] in place (`torch.nn.functional.hardtanh_`).
    pub fn hardtanh_(min_val: f64, max_val: f64) => hardtanh;
    /// [`Tensor::heaviside`] in place (`torch.Tensor.heaviside_`).
    pub fn heaviside_(values: &Tensor) => heaviside;
    /// [`Tensor::hypot`] in place (`torch.Tensor.hypot_`).
    pub fn hypot_(other: &Tensor) => hypot;
    /// [`Tensor::igamma`] in place (`torch.Tensor.igamma_`).
    pub fn igamma_<'a>(other: impl Into<Arg<'a>>) => igamma;
    /// [`Tensor::igammac`] in place (`torch.Tensor.igammac_`).
    pub fn igammac_<'a>(other: impl Into<Arg<'a>>) => igammac;
    /// [`Tensor::conj`] in place (`torch.Tensor.conj_physical_`).
    pub fn conj_physical_() => conj;
    /// [`Tensor::i0`] in place (`torch.Tensor.i0_`).
    pub fn i0_() => i0;
    /// [`Tensor::index_add`] in place (`torch.Tensor.index_add_`).
    pub fn index_add_(dim: i64, index: &Tensor, source: &Tensor) => index_add;
    /// [`Tensor::index_copy`] in place (`torch.Tensor.index_copy_`).
    pub fn index_copy_(dim: i64, index: &Tensor, source: &Tensor) => index_copy;
    /// [`Tensor::index_reduce`] in place (`torch.Tensor.index_reduce_`).
    pub fn index_reduce_(dim: i64, index: &Tensor, source: &Tensor, reduce: ScatterReduce, include_self: bool) => index_reduce;
    /// [`Tensor::lcm`] in place (`torch.Tensor.lcm_`).
    pub fn lcm_(other: &Tensor) => lcm;
    /// [`Tensor::ldexp`] in place (`torch.Tensor.ldexp_`).
    pub fn ldexp_(other: &Tensor) => ldexp;
    /// [`Tensor::le`] in place (`torch.Tensor.le_`).
    pub fn le_<'a>(other: impl Into<Arg<'a>>) => le;
    /// [`Tensor::leaky_relu`] in place (`torch.nn.functional.leaky_relu_`).
    pub fn leaky_relu_<'a>(slope: impl Into<Arg<'a>>) => leaky_relu;
    /// [`Tensor::lgamma`] in place (`torch.Tensor.lgamma_`).
    pub fn lgamma_() => lgamma;
    /// [`Tensor::log10`] in place (`torch.Tensor.log10_`).
    pub fn log10_() => log10;
    /// [`Tensor::log1p`] in place (`torch.Tensor.log1p_`).
    pub fn log1p_() => log1p;
    /// [`Tensor::log2`] in place (`torch.Tensor.log2_`).
    pub fn log2_() => log2;
    /// [`Tensor::log`] in place (`torch.Tensor.log_`).
    pub fn log_() => log;
    /// [`Tensor::logical_and`] in place (`torch.Tensor.logical_and_`).
    pub fn logical_and_<'a>(other: impl Into<Arg<'a>>) => logical_and;
    /// [`Tensor::logical_not`] in place (`torch.Tensor.logical_not_`).
    pub fn logical_not_() => logical_not;
    /// [`Tensor::logical_or`] in place (`torch.Tensor.logical_or_`).
    pub fn logical_or_<'a>(other: impl Into<Arg<'a>>) => logical_or;
    /// [`Tensor::logical_xor`] in place (`torch.Tensor.logical_xor_`).
    pub fn logical_xor_<'a>(other: impl Into<Arg<'a>>) => logical_xor;
    /// [`Tensor::logit`] in place (`torch.Tensor.logit_`).
    pub fn logit_(eps: Option<f64>) => logit;
    /// [`Tensor::lt`] in place (`torch.Tensor.lt_`).
    pub fn lt_<'a>(other: impl Into<Arg<'a>>) => lt;
    /// [`Tensor::masked_scatter`] in place (`torch.Tensor.masked_scatter_`).
    pub fn masked_scatter_(mask: &Tensor, source: &Tensor) => masked_scatter;
    /// [`Tensor::mvlgamma`] in place (`torch.Tensor.mvlgamma_`).
    pub fn mvlgamma_(p: usize) => mvlgamma;
    /// [`Tensor::nan_to_num`] in place (`torch.Tensor.nan_to_num_`).
    pub fn nan_to_num_(nan: f64, posinf: Option<f64>, neginf: Option<f64>) => nan_to_num;
    /// [`Tensor::ne`] in place (`torch.Tensor.ne_`).
    pub fn ne_<'a>(other: impl Into<Arg<'a>>) => ne;
    /// [`Tensor::neg`] in place (`torch.Tensor.neg_`).
    pub fn neg_() => neg;
    /// [`Tensor::nextafter`] in place (`torch.Tensor.nextafter_`).
    pub fn nextafter_<'a>(other: impl Into<Arg<'a>>) => nextafter;
    /// [`Tensor::polygamma`] in place (`torch.Tensor.polygamma_`).
    pub fn polygamma_(n: usize) => polygamma;
    /// [`Tensor::pow`] in place (`torch.Tensor.pow_`).
    pub fn pow_<'a>(other: impl Into<Arg<'a>>) => pow;
    /// [`Tensor::put`] in place (`torch.Tensor.put_`).
    pub fn put_(index: &Tensor, values: &Tensor, accumulate: bool) => put;
    /// [`Tensor::rad2deg`] in place (`torch.Tensor.rad2deg_`).
    pub fn rad2deg_() => rad2deg;
    /// [`Tensor::reciprocal`] in place (`torch.Tensor.reciprocal_`).
    pub fn reciprocal_() => reciprocal;
    /// [`Tensor::relu`] in place (`torch.Tensor.relu_`).
    pub fn relu_() => relu;
    /// [`Tensor::remainder`] in place (`torch.Tensor.remainder_`).
    pub fn remainder_<'a>(other: impl Into<Arg<'a>>) => remainder;
    /// [`Tensor::renorm`] in place (`torch.Tensor.renorm_`).
    pub fn renorm_(p: f64, dim: i64, maxnorm: f64) => renorm;
    /// [`Tensor::round`] in place (`torch.Tensor.round_`).
    pub fn round_() => round;
    /// [`Tensor::rsqrt`] in place (`torch.Tensor.rsqrt_`).
    pub fn rsqrt_() => rsqrt;
    /// [`Tensor::scatter_reduce`] in place (`torch.Tensor.scatter_reduce_`).
    pub fn scatter_reduce_(dim: i64, index: &Tensor, src: &Tensor, reduce: ScatterReduce, include_self: bool) => scatter_reduce;
    /// [`Tensor::selu`] in place (`torch.nn.functional.selu_`).
    pub fn selu_() => selu;
    /// [`Tensor::sgn`] in place (`torch.Tensor.sgn_`).
    pub fn sgn_() => sgn;
    /// [`Tensor::sigmoid`] in place (`torch.Tensor.sigmoid_`).
    pub fn sigmoid_() => sigmoid;
    /// [`Tensor::sign`] in place (`torch.Tensor.sign_`).
    pub fn sign_() => sign;
    /// [`Tensor::sin`] in place (`torch.Tensor.sin_`).
    pub fn sin_() => sin;
    /// [`Tensor::sinc`] in place (`torch.Tensor.sinc_`).
    pub fn sinc_() => sinc;
    /// [`Tensor::sinh`] in place (`torch.Tensor.sinh_`).
    pub fn sinh_() => sinh;
    /// [`Tensor::sqrt`] in place (`torch.Tensor.sqrt_`).
    pub fn sqrt_() => sqrt;
    /// [`Tensor::square`] in place (`torch.Tensor.square_`).
    pub fn square_() => square;
    /// [`Tensor::tan`] in place (`torch.Tensor.tan_`).
    pub fn tan_() => tan;
    /// [`Tensor::tanh`] in place (`torch.Tensor.tanh_`).
    pub fn tanh_() => tanh;
    /// [`Tensor::threshold`] in place (`torch.nn.functional.threshold_`).
    pub fn threshold_(threshold: f64, value: f64) => threshold;
    /// [`Tensor::tril`] in place (`torch.Tensor.tril_`).
    pub fn tril_(diagonal: i64) => tril;
    /// [`Tensor::triu`] in place (`torch.Tensor.triu_`).
    pub fn triu_(diagonal: i64) => triu;
    /// [`Tensor::trunc`] in place (`torch.Tensor.trunc_`).
    pub fn trunc_() => trunc;
    /// [`Tensor::xlogy`] in place (`torch.Tensor.xlogy_`).
    pub fn xlogy_<'a>(other: impl Into<Arg<'a>>) => xlogy;
}

another_shape! {
    /// [`Tensor::squeeze`] in place: all clones have the new shape from here on (`torch.Tensor.squeeze_`).
    pub fn squeeze_() => squeeze;
    /// [`Tensor::squeeze_dim`] in place: all clones have the new shape from here on (`torch.Tensor.squeeze_`).
    pub fn squeeze_dim_(dim: i64) => squeeze_dim;
    /// [`Tensor::transpose`] in place: all clones have the new shape from here on (`torch.Tensor.swapaxes_`).
    pub fn swapaxes_(dim0: i64, dim1: i64) => transpose;
    /// [`Tensor::transpose`] in place: all clones have the new shape from here on (`torch.Tensor.swapdims_`).
    pub fn swapdims_(dim0: i64, dim1: i64) => transpose;
    /// [`Tensor::t`] in place: all clones have the new shape from here on (`torch.Tensor.t_`).
    pub fn t_() => t;
    /// [`Tensor::transpose`] in place: all clones have the new shape from here on (`torch.Tensor.transpose_`).
    pub fn transpose_(dim0: i64, dim1: i64) => transpose;
    /// [`Tensor::unsqueeze`] in place: all clones have the new shape from here on (`torch.Tensor.unsqueeze_`).
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
    #[track_caller]
    pub fn resize_as_(&self, other: &Tensor) -> Tensor {
        let _call = called("resize_as_", [self, other]);
        self.resize_(other.shape())
    }

    /// [`Tensor::clamp`] in place (`torch.Tensor.clamp_`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([-2.0, 0.5, 3.0]);
    /// x.clamp_(-1.0, 1.0);
    /// assert_eq!(x.to_vec::<f32>(), [-1.0, 0.5, 1.0]);
    /// ```
    #[track_caller]
    pub fn clamp_<'a>(&self, min: impl Into<Arg<'a>>, max: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("clamp_", [self]);
        self.assign("clamp_", self.clamp(min, max));
        self.clone()
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

    /// [`Tensor::index_fill`] in place (`torch.Tensor.index_fill_`).
    #[track_caller]
    pub fn index_fill_<'a>(&self, dim: i64, index: &Tensor, value: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("index_fill_", [self]);
        self.assign("index_fill_", self.index_fill(dim, index, value));
        self.clone()
    }

    /// [`Tensor::scatter`] in place (`torch.Tensor.scatter_`).
    #[track_caller]
    pub fn scatter_<'a>(&self, dim: i64, index: &Tensor, src: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("scatter_", [self]);
        self.assign("scatter_", self.scatter(dim, index, src));
        self.clone()
    }

    /// [`Tensor::scatter_add`] in place (`torch.Tensor.scatter_add_`).
    #[track_caller]
    pub fn scatter_add_<'a>(&self, dim: i64, index: &Tensor, src: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("scatter_add_", [self]);
        self.assign("scatter_add_", self.scatter_add(dim, index, src));
        self.clone()
    }

    /// [`Tensor::lerp`] in place (`torch.Tensor.lerp_`).
    #[track_caller]
    pub fn lerp_<'a>(&self, end: &Tensor, weight: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("lerp_", [self]);
        self.assign("lerp_", self.lerp(end, weight));
        self.clone()
    }

    /// [`Tensor::addcmul`] in place (`torch.Tensor.addcmul_`).
    #[track_caller]
    pub fn addcmul_<'a>(&self, tensor1: &Tensor, tensor2: &Tensor, value: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("addcmul_", [self]);
        self.assign("addcmul_", self.addcmul(tensor1, tensor2, value));
        self.clone()
    }

    /// [`Tensor::addcdiv`] in place (`torch.Tensor.addcdiv_`).
    #[track_caller]
    pub fn addcdiv_<'a>(&self, tensor1: &Tensor, tensor2: &Tensor, value: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("addcdiv_", [self]);
        self.assign("addcdiv_", self.addcdiv(tensor1, tensor2, value));
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
    #[track_caller]
    pub fn as_strided_(&self, size: impl Into<Dims>, stride: impl Into<Dims>, offset: usize) -> Tensor {
        let _call = called("as_strided_", [self]);
        self.become_view("as_strided_", |x| x.as_strided(size, stride, offset))
    }
}
