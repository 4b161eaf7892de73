//! Methods that change a tensor's value, named as in torch with an underscore behind: the value that the method without it
//! gives, converted to this tensor's dtype where that can hold it, takes the old one's place. Each gives the tensor back.
use crate::tensor::{Arg, Tensor, called, refuse};
use xlazy_core::ty::Scalar;

macro_rules! of_itself {
    ($($name:ident $method:ident;)*) => {
        impl Tensor {
            $(#[doc = concat!("[`Tensor::", stringify!($method), "`] in place (`torch.Tensor.", stringify!($name), "`).")]
            #[track_caller]
            pub fn $name(&self) -> Tensor {
                let _call = called(stringify!($name), [self]);
                self.assign(stringify!($name), self.$method());
                self.clone()
            })*
        }
    };
}

macro_rules! with_another {
    ($($name:ident $method:ident;)*) => {
        impl Tensor {
            $(#[doc = concat!("[`Tensor::", stringify!($method), "`] in place (`torch.Tensor.", stringify!($name), "`).")]
            #[track_caller]
            pub fn $name<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
                let _call = called(stringify!($name), [self]);
                self.assign(stringify!($name), self.$method(other));
                self.clone()
            })*
        }
    };
}

macro_rules! along {
    ($($name:ident $method:ident($($arg:ident: $ty:ty),*);)*) => {
        impl Tensor {
            $(#[doc = concat!("[`Tensor::", stringify!($method), "`] in place (`torch.Tensor.", stringify!($name), "`).")]
            #[track_caller]
            pub fn $name(&self, $($arg: $ty),*) -> Tensor {
                let _call = called(stringify!($name), [self]);
                self.assign(stringify!($name), self.$method($($arg),*));
                self.clone()
            })*
        }
    };
}

of_itself! {
    abs_ abs;
    acos_ acos;
    acosh_ acosh;
    asin_ asin;
    asinh_ asinh;
    atan_ atan;
    atanh_ atanh;
    bitwise_not_ bitwise_not;
    ceil_ ceil;
    cos_ cos;
    cosh_ cosh;
    deg2rad_ deg2rad;
    digamma_ digamma;
    erf_ erf;
    erfc_ erfc;
    erfinv_ erfinv;
    exp_ exp;
    exp2_ exp2;
    expm1_ expm1;
    floor_ floor;
    frac_ frac;
    i0_ i0;
    lgamma_ lgamma;
    log_ log;
    log10_ log10;
    log1p_ log1p;
    log2_ log2;
    logical_not_ logical_not;
    neg_ neg;
    rad2deg_ rad2deg;
    reciprocal_ reciprocal;
    relu_ relu;
    round_ round;
    rsqrt_ rsqrt;
    sgn_ sgn;
    sigmoid_ sigmoid;
    sign_ sign;
    sin_ sin;
    sinc_ sinc;
    sinh_ sinh;
    sqrt_ sqrt;
    square_ square;
    tan_ tan;
    tanh_ tanh;
    trunc_ trunc;
}

with_another! {
    atan2_ atan2;
    bitwise_and_ bitwise_and;
    bitwise_left_shift_ bitwise_left_shift;
    bitwise_or_ bitwise_or;
    bitwise_right_shift_ bitwise_right_shift;
    bitwise_xor_ bitwise_xor;
    clamp_max_ clamp_max;
    clamp_min_ clamp_min;
    copysign_ copysign;
    floor_divide_ floor_divide;
    fmod_ fmod;
    logical_and_ logical_and;
    logical_or_ logical_or;
    logical_xor_ logical_xor;
    pow_ pow;
    remainder_ remainder;
    xlogy_ xlogy;
}

along! {
    cumprod_ cumprod(dim: i64);
    cumsum_ cumsum(dim: i64);
    hypot_ hypot(other: &Tensor);
    index_add_ index_add(dim: i64, index: &Tensor, source: &Tensor);
    index_copy_ index_copy(dim: i64, index: &Tensor, source: &Tensor);
    masked_scatter_ masked_scatter(mask: &Tensor, source: &Tensor);
    put_ put(index: &Tensor, values: &Tensor, accumulate: bool);
    renorm_ renorm(p: f64, dim: i64, maxnorm: f64);
    tril_ tril(diagonal: i64);
    triu_ triu(diagonal: i64);
}

impl Tensor {
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
        self.assign("masked_fill_", self.masked_fill(mask, value));
        self.clone()
    }

    /// [`Tensor::index_fill`] in place (`torch.Tensor.index_fill_`).
    #[track_caller]
    pub fn index_fill_<'a>(&self, dim: i64, index: &Tensor, value: impl Into<Arg<'a>>) -> Tensor {
        self.assign("index_fill_", self.index_fill(dim, index, value));
        self.clone()
    }

    /// [`Tensor::scatter`] in place (`torch.Tensor.scatter_`).
    #[track_caller]
    pub fn scatter_<'a>(&self, dim: i64, index: &Tensor, src: impl Into<Arg<'a>>) -> Tensor {
        self.assign("scatter_", self.scatter(dim, index, src));
        self.clone()
    }

    /// [`Tensor::scatter_add`] in place (`torch.Tensor.scatter_add_`).
    #[track_caller]
    pub fn scatter_add_<'a>(&self, dim: i64, index: &Tensor, src: impl Into<Arg<'a>>) -> Tensor {
        self.assign("scatter_add_", self.scatter_add(dim, index, src));
        self.clone()
    }

    /// [`Tensor::lerp`] in place (`torch.Tensor.lerp_`).
    #[track_caller]
    pub fn lerp_<'a>(&self, end: &Tensor, weight: impl Into<Arg<'a>>) -> Tensor {
        self.assign("lerp_", self.lerp(end, weight));
        self.clone()
    }

    /// [`Tensor::addcmul`] in place (`torch.Tensor.addcmul_`).
    #[track_caller]
    pub fn addcmul_<'a>(&self, tensor1: &Tensor, tensor2: &Tensor, value: impl Into<Arg<'a>>) -> Tensor {
        self.assign("addcmul_", self.addcmul(tensor1, tensor2, value));
        self.clone()
    }

    /// [`Tensor::addcdiv`] in place (`torch.Tensor.addcdiv_`).
    #[track_caller]
    pub fn addcdiv_<'a>(&self, tensor1: &Tensor, tensor2: &Tensor, value: impl Into<Arg<'a>>) -> Tensor {
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
}
