//! Special functions, and functions of a float's bits. Bessel functions and erfcx are Chebyshev series of what is left of them
//! when their growth is taken out.
use super::base::{as_float, both_widely, promoted, wide, widely};
use super::chebyshev::{ERFCX, I0E_LARGE, I0E_SMALL, I1E_LARGE, I1E_SMALL};
use crate::bucket;
use crate::tensor::{Arg, Entry, Grad, Sample, Tensor, called, refuse, trace};
use xlazy_core::emit::Val;
use xlazy_core::ir::{Lower, Rule, Sig, rules};
use xlazy_core::ty::{Category, DType, Type};

// Clenshaw's rule for a Chebyshev series in t, which is between -1 and 1.
fn series(l: &mut Lower, t: &Val, coefficients: &[f64]) -> Val {
    let mut next = l.constant(0.0, &t.ty);
    let mut after = next.clone();
    let twice = l.with_const("multiply", t, 2.0);
    for &c in coefficients[1..].iter().rev() {
        let product = l.mul(&twice, &next);
        let sum = l.sub(&product, &after);
        let sum = l.with_const("add", &sum, c);
        (after, next) = (next, sum);
    }
    let product = l.mul(t, &next);
    let sum = l.sub(&product, &after);
    l.with_const("add", &sum, coefficients[0] / 2.0)
}

// e^-|x| Iₙ(x): one series to 8, one in 1/x beyond.
fn bessel(l: &mut Lower, x: &Val, small: &[f64], large: &[f64], odd: bool) -> Val {
    let size = l.unary("abs", x);
    let eight = l.constant(8.0, &size.ty);
    let far = l.compare("GT", &size, &eight);
    let quarter = l.with_const("multiply", &size, 0.25);
    let near = l.with_const("subtract", &quarter, 1.0);
    let one = l.constant(1.0, &size.ty);
    let near = l.binary("minimum", &near, &one);
    let mut low = series(l, &near, small);
    if odd {
        low = l.mul(&low, &size);
    }
    let safe = l.binary("maximum", &size, &eight);
    let sixteen = l.constant(16.0, &size.ty);
    let t = l.div(&sixteen, &safe);
    let t = l.with_const("subtract", &t, 1.0);
    let high = series(l, &t, large);
    let root = l.unary("rsqrt", &safe);
    let high = l.mul(&high, &root);
    let y = l.select(&far, &high, &low);
    let y = match odd {
        true => {
            let sign = l.unary("sign", x);
            l.mul(&y, &sign)
        }
        false => y,
    };
    // a NaN stays one
    let nan = l.compare("NE", x, x);
    l.select(&nan, x, &y)
}

fn grown(l: &mut Lower, x: &Val, y: &Val) -> Val {
    let size = l.unary("abs", x);
    let e = l.unary("exponential", &size);
    l.mul(&e, y)
}

fn erfcx(l: &mut Lower, x: &Val) -> Val {
    let size = l.unary("abs", x);
    let (up, down) = (l.with_const("subtract", &size, 3.75), l.with_const("add", &size, 3.75));
    let t = l.div(&up, &down);
    let one = l.constant(1.0, &t.ty);
    // infinity over infinity
    let nan = l.compare("NE", &t, &t);
    let t = l.select(&nan, &one, &t);
    let y = series(l, &t, ERFCX);
    let below = l.with_const("multiply", &size, 2.0);
    let below = l.with_const("add", &below, 1.0);
    let y = l.div(&y, &below);
    // 2 e^(x²) - erfcx(-x)
    let square = l.mul(x, x);
    let e = l.unary("exponential", &square);
    let other = l.with_const("multiply", &e, 2.0);
    let other = l.sub(&other, &y);
    let zero = l.constant(0.0, &x.ty);
    let negative = l.compare("LT", x, &zero);
    let y = l.select(&negative, &other, &y);
    let nan = l.compare("NE", x, x);
    l.select(&nan, x, &y)
}

fn sample() -> Vec<Sample> {
    vec![Sample::of(&[&[2, 3]]).range(-2.0, 3.0), Sample::of(&[&[2, 2]]).range(9.0, 20.0)]
}

// (1 / x) · i1-like, ½ of the other function's value at 0.
fn over_x(x: &Tensor, y: &Tensor) -> Tensor {
    let zero = x.eq(0.0);
    (y / x.masked_fill(&zero, 1.0)).masked_fill(&zero, 0.5)
}

fn chain(g: &Grad, slope: Tensor) -> Vec<Option<Tensor>> {
    vec![Some(&g.dy * slope)]
}

macro_rules! special {
    ($($(#[$doc:meta])* fn $method:ident => $op:ident $name:literal, $samples:expr, $lower:expr, $grad:expr;)*) => {
        $(static $op: Entry =
            Entry::new($name, rules::float, |l| widely(l, $lower)).samples($samples).grad($grad).bucket(bucket::each);)*
        const SPECIAL: &[&Entry] = &[$(&$op),*];
        impl Tensor {
            $($(#[$doc])*
            #[track_caller]
            pub fn $method(&self) -> Tensor {
                trace(&$op, [self.into()], [])
            })*
        }
    };
}

special! {
    /// The modified Bessel function of the first kind of order 0 (`torch.i0`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!((tensor(1.0).i0().item() - 1.266066).abs() < 1e-5);
    /// ```
    fn i0 => I0 "i0", sample, |l, x| {
        let y = bessel(l, x, I0E_SMALL, I0E_LARGE, false);
        grown(l, x, &y)
    }, |g| chain(g, g.x(0).i1());
    /// e^-|x| times [`Tensor::i0`] (`torch.special.i0e`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor(0.0).i0e().item(), 1.0);
    /// ```
    fn i0e => I0E "special.i0e", sample, |l, x| bessel(l, x, I0E_SMALL, I0E_LARGE, false),
        |g| chain(g, g.x(0).i1e() - g.x(0).sign() * g.y());
    /// The modified Bessel function of the first kind of order 1 (`torch.special.i1`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!((tensor(1.0).i1().item() - 0.565159).abs() < 1e-5);
    /// ```
    fn i1 => I1 "special.i1", sample, |l, x| {
        let y = bessel(l, x, I1E_SMALL, I1E_LARGE, true);
        grown(l, x, &y)
    }, |g| {
        let x = g.x(0);
        let at_zero = x.eq(0.0);
        chain(g, (x.i0() - over_x(x, g.y())).masked_fill(&at_zero, 0.5))
    };
    /// e^-|x| times [`Tensor::i1`] (`torch.special.i1e`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor(0.0).i1e().item(), 0.0);
    /// ```
    fn i1e => I1E "special.i1e", sample, |l, x| bessel(l, x, I1E_SMALL, I1E_LARGE, true), |g| {
        let x = g.x(0);
        let at_zero = x.eq(0.0);
        chain(g, (x.i0e() - g.y() * x.sign() - over_x(x, g.y())).masked_fill(&at_zero, 0.5))
    };
    /// e^(x²) erfc(x), which stays a number where erfc(x) vanishes (`torch.special.erfcx`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!((tensor(1.0).erfcx().item() - 0.427584).abs() < 1e-5);
    /// ```
    fn erfcx => ERFCX_OP "special.erfcx", || vec![Sample::of(&[&[2, 3]]).range(-1.5, 6.0)], erfcx,
        |g| chain(g, g.x(0) * g.y() * 2.0 - std::f64::consts::FRAC_2_SQRT_PI);
    /// The logarithm of [`Tensor::ndtr`], which stays a number where that vanishes (`torch.special.log_ndtr`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!((tensor(-20.0).log_ndtr().item() + 203.917155).abs() < 1e-4);
    /// ```
    fn log_ndtr => LOG_NDTR "special.log_ndtr", || vec![Sample::of(&[&[2, 3]]).range(-9.0, 3.0)], |l, x| {
        let small = l.with_const("multiply", x, -std::f64::consts::FRAC_1_SQRT_2);
        // log(erfcx(-x/√2) / 2) - x²/2 below -1, log(1 - erfc(x/√2) / 2) above
        let scaled = erfcx(l, &small);
        let scaled = l.with_const("multiply", &scaled, 0.5);
        let scaled = l.unary("log", &scaled);
        let square = l.mul(&small, &small);
        let below = l.sub(&scaled, &square);
        let up = l.unary("negate", &small);
        let rest = l.unary("chlo.erfc", &up);
        let rest = l.with_const("multiply", &rest, -0.5);
        let above = l.unary("log_plus_one", &rest);
        let edge = l.constant(-1.0, &x.ty);
        let low = l.compare("LT", x, &edge);
        l.select(&low, &below, &above)
    }, |g| chain(g, (g.x(0).square() * -0.5 - g.y()).exp() * (0.5 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2));
}

// Hurwitz's zeta function.
fn zeta(l: &mut Lower, x: &Val, q: &Val) -> Val {
    let positive = l.binary("chlo.zeta", x, q);
    let (one, none) = (l.constant(1.0, &x.ty), l.constant(0.0, &q.ty));
    let (floor, low) = (l.unary("floor", q), l.compare("LT", q, &none));
    let negative = zeta_left_of_0(l, x, q, &floor);
    let y = l.select(&low, &negative, &positive);
    // no number below 1, whatever the other is
    let (below, nan) = (l.compare("LT", x, &one), l.constant(f64::NAN, &y.ty));
    // poles: at 1, and where the other is 0 or a whole number below
    let (whole, low) = (l.compare("EQ", &floor, q), l.compare("LE", q, &none));
    let at = l.binary("and", &whole, &low);
    let first = l.compare("EQ", x, &one);
    let (at, infinite) = (l.binary("or", &at, &first), l.constant(f64::INFINITY, &y.ty));
    let y = l.select(&at, &infinite, &y);
    l.select(&below, &nan, &y)
}

// Between whole numbers below 0 there are finitely many terms of negative numbers, which have a power where x is whole: those of
// their sizes, which are a difference of two sums that go on for ever, with a sign; and the terms right of 0.
fn zeta_left_of_0(l: &mut Lower, x: &Val, q: &Val, floor: &Val) -> Val {
    let one = l.constant(1.0, &x.ty);
    let first = l.sub(q, floor);
    let nearest = l.sub(&one, &first);
    let beyond = l.sub(&nearest, floor);
    let [right, near, far] = [&first, &nearest, &beyond].map(|q| l.binary("chlo.zeta", x, q));
    let left = l.sub(&near, &far);
    let halved = l.with_const("multiply", x, 0.5);
    let whole = l.unary("floor", &halved);
    let even = l.compare("EQ", &whole, &halved);
    let negated = l.unary("negate", &left);
    let left = l.select(&even, &left, &negated);
    let sum = l.add(&right, &left);
    // Beyond all numbers on both sides: the term that is nearer to 0 is the larger one.
    let closer = l.compare("LT", &first, &nearest);
    let larger = l.select(&closer, &right, &left);
    let undefined = l.compare("NE", &sum, &sum);
    let sum = l.select(&undefined, &larger, &sum);
    let (whole, nan) = (l.unary("floor", x), l.constant(f64::NAN, &sum.ty));
    let broken = l.compare("NE", &whole, x);
    l.select(&broken, &nan, &sum)
}

// Its derivative by the first operand has no closed form, and torch has none either.
static ZETA: Entry = Entry::new("special.zeta", rules::binary_float, |l| both_widely(l, zeta))
    .samples(|| vec![Sample::of(&[&[2, 3], &[3]]).range(1.5, 3.0)])
    .bucket(bucket::each);

fn integers(s: &Sig) -> Rule {
    let ty = rules::binary(s)?;
    match ty.dtype.category() {
        Category::Int => Ok(ty),
        _ => Err("needs integers".into()),
    }
}

// Euclid's algorithm on all elements, as many steps as the largest numbers need.
static GCD: Entry = Entry::new("gcd", integers, |l| {
    let (a, b) = (l.fit(0), l.fit(1));
    let [a, b] = [a, b].map(|v| if v.dtype().is_unsigned() { v } else { l.unary("abs", &v) });
    let steps = a.dtype().size() * 12;
    let done = l.e.repeat(steps, &[a, b], |e, _, carried| {
        let (a, b) = (&carried[0], &carried[1]);
        let (zero, one) = (e.constant(0.0, &b.ty), e.constant(1.0, &b.ty));
        let end = e.compare("EQ", b, &zero);
        let by = e.select(&end, &one, b);
        let rest = e.binary("remainder", a, &by);
        vec![e.select(&end, a, b), e.select(&end, &zero, &rest)]
    });
    done[0].clone()
})
.samples(|| vec![Sample::of(&[&[2, 3], &[3]])])
.bucket(bucket::each);

/// The integers of a float's size: their dtype, how many bits the fraction has, the exponent's bias.
fn layout(dtype: DType) -> (DType, u32, i64) {
    if dtype == DType::F64 { (DType::I64, 52, 1022) } else { (DType::I32, 23, 126) }
}

fn floats_alone(s: &Sig) -> std::result::Result<(), String> {
    match s.inputs.iter().find(|t| !matches!(t.dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)) {
        Some(t) => Err(format!("needs a float tensor, not {}: convert with `.float()`", t.dtype)),
        None => Ok(()),
    }
}

fn bits(l: &mut Lower, x: &Val, dtype: DType) -> Val {
    l.op("bitcast_convert", &[x], "", Type::new(dtype, x.shape().clone()))
}

// (mantissa, exponent) by the bits of the float; numbers too small for an exponent of their own are scaled first. A half is
// taken apart as the float32 that it is, too.
fn apart(l: &mut Lower) -> (Val, Val) {
    let x = l.x(0);
    let x = wide(l, &x);
    let (int, fraction, bias) = layout(x.dtype());
    let least = if int == DType::I64 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) };
    let size = l.unary("abs", &x);
    let least = l.constant(least, &x.ty);
    let small = l.compare("LT", &size, &least);
    let scaled = l.with_const("multiply", &x, 2f64.powi(60));
    let scaled = l.select(&small, &scaled, &x);
    let all = bits(l, &scaled, int);
    let places = l.constant(f64::from(fraction), &all.ty);
    let field = l.binary("shift_right_logical", &all, &places);
    let mask = l.constant((2 * bias + 3) as f64, &all.ty);
    let field = l.binary("and", &field, &mask);
    let exponent = l.with_const("subtract", &field, bias as f64);
    let moved = l.with_const("subtract", &exponent, 60.0);
    let exponent = l.select(&small, &moved, &exponent);
    // the fraction and the sign, with the exponent of what is from ½ to 1
    let whole = l.binary("shift_left", &mask, &places);
    let rest = l.unary("not", &whole);
    let rest = l.binary("and", &all, &rest);
    let half = l.constant(bias as f64, &all.ty);
    let half = l.binary("shift_left", &half, &places);
    let mantissa = l.binary("or", &rest, &half);
    let mantissa = bits(l, &mantissa, x.dtype());
    // zero, infinity and NaN are themselves
    let zero = l.constant(0.0, &x.ty);
    let plain = l.compare("EQ", &x, &zero);
    let finite = l.op("is_finite", &[&x], "", Type::new(DType::Bool, x.shape().clone()));
    let odd = l.unary("not", &finite);
    let odd = l.binary("or", &odd, &plain);
    let none = l.constant(0.0, &exponent.ty);
    (l.select(&odd, &x, &mantissa), l.select(&odd, &none, &exponent))
}

static MANTISSA: Entry = Entry::new(
    "frexp",
    |s| {
        floats_alone(s)?;
        rules::same(s)
    },
    |l| {
        let (mantissa, _) = apart(l);
        let dtype = l.out.dtype;
        l.convert(&mantissa, dtype)
    },
)
.samples(|| vec![Sample::of(&[&[2, 3]]).range(0.55, 0.95), Sample::of(&[&[2, 3]]).range(-7.5, -4.5)])
.grad(|g| {
    let dtype = g.dy.dtype();
    // Powers of 2 that halves do not have: where nothing flows they would make a NaN of it.
    let wide = if dtype.is_half() { DType::F32 } else { dtype };
    vec![Some((g.dy.to(wide) / g.x(0).frexp().1.to(wide).exp2()).to(dtype))]
})
.bucket(bucket::each);

static EXPONENT: Entry = Entry::new(
    "frexp.exponent",
    |s| {
        floats_alone(s)?;
        Ok(Type::new(DType::I32, s.shape(0).clone()))
    },
    |l| {
        let exponent = apart(l).1;
        l.convert(&exponent, DType::I32)
    },
)
.samples(|| vec![Sample::of(&[&[2, 3]])])
.bucket(bucket::each);

// One step in the order of the bits, which is that of the numbers of one sign.
static NEXTAFTER: Entry = Entry::new(
    "nextafter",
    |s| {
        floats_alone(s)?;
        rules::binary(s)
    },
    |l| {
        let (x, y) = (l.fit(0), l.fit(1));
        let int = if x.dtype().is_half() { DType::I16 } else { layout(x.dtype()).0 };
        let all = bits(l, &x, int);
        let zero = l.constant(0.0, &x.ty);
        let (up, positive) = (l.compare("GT", &y, &x), l.compare("GT", &x, &zero));
        let away = l.compare("EQ", &up, &positive);
        let (plus, minus) = (l.with_const("add", &all, 1.0), l.with_const("subtract", &all, 1.0));
        let next = l.select(&away, &plus, &minus);
        let next = bits(l, &next, x.dtype());
        // from zero the smallest number there is, with the sign of the way
        let one = l.constant(1.0, &all.ty);
        let least = bits(l, &one, x.dtype());
        let below = l.unary("negate", &least);
        let first = l.select(&up, &least, &below);
        let at_zero = l.compare("EQ", &x, &zero);
        let next = l.select(&at_zero, &first, &next);
        let same = l.compare("EQ", &x, &y);
        let next = l.select(&same, &y, &next);
        let (nx, ny) = (l.compare("NE", &x, &x), l.compare("NE", &y, &y));
        let next = l.select(&ny, &y, &next);
        l.select(&nx, &x, &next)
    },
)
.samples(|| vec![Sample::of(&[&[2, 3], &[3]])])
.bucket(bucket::each);

// -x log x, whose slope at 0 is infinite and below 0 none.
static ENTR: Entry = Entry::new("special.entr", rules::float, |l| {
    let x = l.cast(0);
    let (zero, low) = (l.constant(0.0, &x.ty), l.constant(f64::NEG_INFINITY, &x.ty));
    let log = l.unary("log", &x);
    let product = l.mul(&x, &log);
    let y = l.unary("negate", &product);
    let (none, below) = (l.compare("EQ", &x, &zero), l.compare("LT", &x, &zero));
    let y = l.select(&none, &zero, &y);
    l.select(&below, &low, &y)
})
.samples(|| vec![Sample::of(&[&[2, 3]]).range(0.5, 3.0)])
.grad(|g| vec![Some((&g.dy * (g.x(0).log() + 1.0)).neg())])
.bucket(bucket::each);

pub(super) static OPS: &[&[&Entry]] = &[SPECIAL, &[&ENTR, &ZETA, &GCD, &MANTISSA, &EXPONENT, &NEXTAFTER]];

impl Tensor {
    /// Hurwitz's zeta function, Σ (q + k)^-x (`torch.special.zeta`). No gradient flows. CHLO zeta.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!((tensor(2.0).zeta(1.0).item() - 1.644934).abs() < 1e-5);
    /// ```
    #[track_caller]
    pub fn zeta<'a>(&self, q: impl Into<Arg<'a>>) -> Tensor {
        trace(&ZETA, [self.into(), q.into()], [])
    }

    /// The greatest common divisor of integers, never negative (`torch.gcd`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([12, 0]).gcd(&tensor([18, 5])).to_vec::<i64>(), [6, 5]);
    /// ```
    #[track_caller]
    pub fn gcd<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&GCD, [self.into(), other.into()], [])
    }

    /// The least common multiple of integers, never negative; 0 where one is 0 (`torch.lcm`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([4, 0]).lcm(&tensor([6, 5])).to_vec::<i64>(), [12, 0]);
    /// ```
    #[track_caller]
    pub fn lcm(&self, other: &Tensor) -> Tensor {
        let _call = called("lcm", [self, other]);
        let gcd = self.gcd(other);
        let by = gcd.masked_fill(&gcd.eq(0), 1);
        (self.div_trunc(&by) * other).abs()
    }

    /// A number from ½ to 1 and a power of 2, int32, whose product each element is (`torch.frexp`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (mantissa, exponent) = tensor([6.0]).frexp();
    /// assert_eq!((mantissa.item(), exponent.item_i64()), (0.75, 3));
    /// ```
    #[track_caller]
    pub fn frexp(&self) -> (Tensor, Tensor) {
        (trace(&MANTISSA, [self.into()], []), trace(&EXPONENT, [self.into()], []))
    }

    /// Each element times 2 to the power of `other` (`torch.ldexp`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([0.75]).ldexp(&tensor([3])).item(), 6.0);
    /// ```
    #[track_caller]
    pub fn ldexp(&self, other: &Tensor) -> Tensor {
        let _call = called("ldexp", [self, other]);
        self * other.to(other.dtype().to_float()).exp2()
    }

    /// The next float towards `other` (`torch.nextafter`); float32 and float64.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1.0]).nextafter(2.0).item() as f32, 1.0 + f32::EPSILON);
    /// ```
    #[track_caller]
    pub fn nextafter<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&NEXTAFTER, [self.into(), other.into()], [])
    }

    /// -x log(x), 0 at zero and -infinity below (`torch.special.entr`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([0.0, 1.0]).entr().to_vec::<f32>(), [0.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn entr(&self) -> Tensor {
        let _call = called("entr", [self]);
        trace(&ENTR, [self.into()], [])
    }

    /// The area under the normal distribution up to each element (`torch.special.ndtr`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor(0.0).ndtr().item(), 0.5);
    /// ```
    #[track_caller]
    pub fn ndtr(&self) -> Tensor {
        let _call = called("ndtr", [self]);
        (self * -std::f64::consts::FRAC_1_SQRT_2).erfc() * 0.5
    }

    /// The inverse of [`Tensor::ndtr`] (`torch.special.ndtri`), computed in float64.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor(0.5).ndtri().item(), 0.0);
    /// ```
    #[track_caller]
    pub fn ndtri(&self) -> Tensor {
        let _call = called("ndtri", [self]);
        let y = (self.double() * 2.0 - 1.0).erfinv() * std::f64::consts::SQRT_2;
        y.to(self.dtype().to_float())
    }

    /// x log(1 + y), 0 where x is 0 (`torch.special.xlog1py`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor(0.0).xlog1py(&tensor(-1.0)).item(), 0.0);
    /// ```
    #[track_caller]
    pub fn xlog1py<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        let other = as_float(other, self);
        let _call = called("xlog1py", [self, &other]);
        let [x, other] = promoted("xlog1py", [self, &other]);
        // 0 times what has no number; elsewhere the slope at 0 is the logarithm
        let endless = other.le(-1.0).logical_or(other.eq(f64::INFINITY));
        &x * other.masked_fill(&x.eq(0).logical_and(&endless), 0.0).log1p()
    }

    /// The logarithm of the gamma function of several variables (`torch.mvlgamma`); elements are above (p - 1) / 2.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!(tensor(2.0).mvlgamma(1).allclose(&tensor(2.0).lgamma()));
    /// ```
    #[track_caller]
    pub fn mvlgamma(&self, p: usize) -> Tensor {
        let _call = called("mvlgamma", [self]);
        if p == 0 {
            refuse("mvlgamma", &[self], "needs a dimension of at least 1");
        }
        let constant = (p * (p - 1)) as f64 / 4.0 * std::f64::consts::PI.ln();
        let sum = (0..p).map(|j| (self - j as f64 / 2.0).lgamma()).reduce(|a, b| a + b).expect("one at least");
        sum + constant
    }
}
