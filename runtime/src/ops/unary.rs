//! Elementwise functions of one tensor.
use super::base::{rounded_once, wide, widely};
use crate::bucket;
use crate::tensor::{Entry, Grad, Sample, Tensor, called, trace};
use xlazy_core::emit::{Emit, Reducer, Val};
use xlazy_core::ir::Role::Constant;
use xlazy_core::ir::{AttrsExt, Healed, Lower, Rule, Sig, attr, rules};
use xlazy_core::ty::{Shape, Type};

// Elementwise: the operand converted to the output's dtype, then one operation.
fn un(l: &mut Lower, op: &str) -> Val {
    let x = l.cast(0);
    l.unary(op, &x)
}

fn sample() -> Vec<Sample> {
    vec![Sample::of(&[&[2, 3]]), Sample::of(&[&[]])]
}

fn positive() -> Vec<Sample> {
    vec![Sample::of(&[&[2, 3]]).range(0.2, 3.0)]
}

fn inside() -> Vec<Sample> {
    vec![Sample::of(&[&[2, 3]]).range(-0.9, 0.9)]
}

fn above_one() -> Vec<Sample> {
    vec![Sample::of(&[&[2, 3]]).range(1.2, 3.0)]
}

// What rounds, or goes by the sign.
fn ordered(s: &Sig) -> Rule {
    rules::ordered(s)?;
    rules::same(s)
}

macro_rules! unary {
    ($($(#[$doc:meta])* $vis:vis fn $method:ident => $op:ident $name:literal, $rule:expr, $samples:expr, $lower:expr, $grad:expr;)*) => {
        $(static $op: Entry = Entry::new($name, $rule, $lower).samples($samples).grad($grad).bucket(bucket::each);)*
        pub(super) static OPS: &[&Entry] = &[$(&$op),*];
        impl Tensor {
            $($(#[$doc])*
            #[track_caller]
            $vis fn $method(&self) -> Tensor {
                trace(&$op, [self.into()], [])
            })*
        }
    };
}

// d/dx f = dy * rest
fn chain(g: &Grad, rest: Tensor) -> Vec<Option<Tensor>> {
    vec![Some(&g.dy * rest)]
}

fn none(_: &Grad) -> Vec<Option<Tensor>> {
    vec![None]
}

fn flat(g: &Grad) -> Vec<Option<Tensor>> {
    vec![Some(g.dy.zeros_like())]
}

unary! {
    /// The absolute value of each element. torch.abs; StableHLO abs.
    ///
    /// `tensor([-1, 2]).abs()` is `[1, 2]`.
    pub fn abs => ABS "abs", |s| Ok(Type::new(s.dtype(0).part(), s.shape(0).clone())), sample, |l| match l.out.dtype.category() {
        xlazy_core::ty::Category::Bool => l.x(0),
        _ if l.out.dtype.is_unsigned() => l.x(0),
        _ => {
            let (x, out) = (l.x(0), l.out.clone());
            l.op("abs", &[&x], "", out)
        }
    }, |g| match g.x(0).dtype().is_complex() {
        true => {
            // not holomorphic: it wants the numbers themselves
            let zero = g.output.eq(0.0);
            chain(g, &g.inputs[0] / g.output.masked_fill(&zero, 1.0))
        }
        false => chain(g, g.x(0).sign()),
    };
    /// Each element with its sign turned. torch.neg; StableHLO negate.
    ///
    /// `tensor([1, -2]).neg()` is `[-1, 2]`.
    pub fn neg => NEG "neg", |s| { rules::refuse_bool(s, "use logical_not()")?; rules::same(s) }, sample, |l| un(l, "negate"),
        |g| vec![Some(g.dy.neg())];
    /// e to the power of each element. torch.exp; StableHLO exponential.
    ///
    /// `tensor([0.0, 1.0]).exp()` is `[1.0000, 2.7183]`.
    pub fn exp => EXP "exp", rules::float, sample, |l| un(l, "exponential"), |g| chain(g, g.y().clone());
    /// 2 to the power of each element. torch.exp2.
    ///
    /// `tensor([3.0]).exp2()` is `[8.]`.
    pub fn exp2 => EXP2 "exp2", rules::float, sample, |l| {
        let x = l.cast(0);
        let two = l.constant(2.0, &x.ty);
        l.binary("power", &two, &x)
    }, |g| chain(g, g.y() * std::f64::consts::LN_2);
    /// exp(x) - 1, exact near zero. torch.expm1; StableHLO exponential_minus_one.
    ///
    /// `tensor([0.0, 1.0]).expm1()` is `[0.0000, 1.7183]`.
    pub fn expm1 => EXPM1 "expm1", rules::float, sample, |l| un(l, "exponential_minus_one"), |g| chain(g, g.y() + 1.0);
    /// The natural logarithm. torch.log; StableHLO log.
    ///
    /// `tensor([1.0, 10.0]).log()` is `[0.0000, 2.3026]`.
    pub fn log => LOG "log", rules::float, positive, |l| un(l, "log"), |g| vec![Some(&g.dy / g.x(0))];
    /// The logarithm to base 2. torch.log2.
    ///
    /// `tensor([8.0]).log2()` is `[3.]`.
    pub fn log2 => LOG2 "log2", rules::float, positive, |l| {
        let x = un(l, "log");
        l.with_const("divide", &x, std::f64::consts::LN_2)
    }, |g| vec![Some(&g.dy / (g.x(0) * std::f64::consts::LN_2))];
    /// The logarithm to base 10. torch.log10.
    ///
    /// `tensor([2.0, 50.0]).log10()` is `[0.3010, 1.6990]`.
    pub fn log10 => LOG10 "log10", rules::float, positive, |l| {
        let x = un(l, "log");
        l.with_const("divide", &x, std::f64::consts::LN_10)
    }, |g| vec![Some(&g.dy / (g.x(0) * std::f64::consts::LN_10))];
    /// log(1 + x), exact near zero. torch.log1p; StableHLO log_plus_one.
    ///
    /// `tensor([0.0, 1.0]).log1p()` is `[0.0000, 0.6931]`.
    pub fn log1p => LOG1P "log1p", rules::float, positive, |l| un(l, "log_plus_one"), |g| vec![Some(&g.dy / (g.x(0) + 1.0))];
    /// The square root; NaN below zero. torch.sqrt; StableHLO sqrt.
    ///
    /// `tensor([4.0, 9.0]).sqrt()` is `[2., 3.]`.
    pub fn sqrt => SQRT "sqrt", rules::float, positive, |l| un(l, "sqrt"), |g| vec![Some(&g.dy / (g.y() * 2.0))];
    /// 1 / sqrt(x). torch.rsqrt; StableHLO rsqrt.
    ///
    /// `tensor([4.0]).rsqrt()` is `[0.5000]`.
    pub fn rsqrt => RSQRT "rsqrt", rules::float, positive, |l| un(l, "rsqrt"),
        |g| chain(g, g.y().pow(3.0) * -0.5);
    /// 1 / x. torch.reciprocal.
    ///
    /// `tensor([4.0]).reciprocal()` is `[0.2500]`.
    pub fn reciprocal => RECIPROCAL "reciprocal", rules::float, positive, |l| {
        let x = l.cast(0);
        let one = l.constant(1.0, &x.ty);
        l.div(&one, &x)
    }, |g| chain(g, (g.y() * g.y()).neg());
    /// x * x; of bools int64. torch.square.
    ///
    /// `tensor([3.0]).square()` is `[9.]`.
    pub fn square => SQUARE "square", |s| match s.dtype(0) {
        xlazy_core::ty::DType::Bool => Ok(Type::new(xlazy_core::ty::DType::I64, s.shape(0).clone())),
        _ => rules::same(s),
    }, sample, |l| {
        let x = l.cast(0);
        l.mul(&x, &x)
    }, |g| chain(g, g.x(0) * 2.0);
    /// The sine of an angle in radians. torch.sin; StableHLO sine.
    ///
    /// `tensor([0.0, 1.0]).sin()` is `[0.0000, 0.8415]`.
    pub fn sin => SIN "sin", rules::float, sample, |l| un(l, "sine"), |g| chain(g, g.x(0).cos());
    /// The cosine of an angle in radians. torch.cos; StableHLO cosine.
    ///
    /// `tensor([0.0, 1.0]).cos()` is `[1.0000, 0.5403]`.
    pub fn cos => COS "cos", rules::float, sample, |l| un(l, "cosine"), |g| chain(g, g.x(0).sin().neg());
    /// The tangent of an angle in radians. torch.tan; StableHLO tan.
    ///
    /// `tensor([0.0, 1.0]).tan()` is `[0.0000, 1.5574]`.
    pub fn tan => TAN "tan", rules::float, sample, |l| un(l, "tan"), |g| chain(g, g.y().square() + 1.0);
    /// The hyperbolic tangent. torch.tanh; StableHLO tanh.
    ///
    /// `tensor([0.0, 1.0]).tanh()` is `[0.0000, 0.7616]`.
    pub fn tanh => TANH "tanh", rules::float, sample, |l| un(l, "tanh"), |g| chain(g, 1.0 - g.y().square());
    /// The arc tangent, in radians. torch.atan; StableHLO atan2.
    ///
    /// `tensor([0.0, 1.0]).atan()` is `[0.0000, 0.7854]`.
    pub fn atan => ATAN "atan", rules::float, sample, |l| {
        let x = l.cast(0);
        let one = l.constant(1.0, &x.ty);
        l.binary("atan2", &x, &one)
    }, |g| vec![Some(&g.dy / (g.x(0).square() + 1.0))];
    /// The arc sine, in radians. torch.asin; CHLO asin.
    ///
    /// `tensor([0.0, 1.0]).asin()` is `[0.0000, 1.5708]`.
    pub fn asin => ASIN "asin", rules::float, inside, |l| un(l, "chlo.asin"),
        |g| vec![Some(&g.dy * (1.0 - g.x(0).square()).rsqrt())];
    /// The arc cosine, in radians. torch.acos; CHLO acos.
    ///
    /// `tensor([0.0, 1.0]).acos()` is `[1.5708, 0.0000]`.
    pub fn acos => ACOS "acos", rules::float, inside, |l| un(l, "chlo.acos"),
        |g| vec![Some((&g.dy * (1.0 - g.x(0).square()).rsqrt()).neg())];
    /// The hyperbolic sine. torch.sinh; CHLO sinh.
    ///
    /// `tensor([0.0, 1.0]).sinh()` is `[0.0000, 1.1752]`.
    pub fn sinh => SINH "sinh", rules::float, sample, |l| un(l, "chlo.sinh"), |g| chain(g, g.x(0).cosh());
    /// The hyperbolic cosine. torch.cosh; CHLO cosh.
    ///
    /// `tensor([0.0, 1.0]).cosh()` is `[1.0000, 1.5431]`.
    pub fn cosh => COSH "cosh", rules::float, sample, |l| un(l, "chlo.cosh"), |g| chain(g, g.x(0).sinh());
    /// The inverse of the hyperbolic sine. torch.asinh; CHLO asinh.
    ///
    /// `tensor([0.0, 1.0]).asinh()` is `[0.0000, 0.8814]`.
    pub fn asinh => ASINH "asinh", rules::float, sample, |l| un(l, "chlo.asinh"),
        |g| chain(g, (g.x(0).square() + 1.0).rsqrt());
    /// The inverse of the hyperbolic cosine; NaN below 1. torch.acosh; CHLO acosh.
    ///
    /// `tensor([1.0, 2.0]).acosh()` is `[0.0000, 1.3170]`.
    pub fn acosh => ACOSH "acosh", rules::float, above_one, |l| un(l, "chlo.acosh"),
        |g| match g.x(0).dtype().is_complex() {
            // one root of each factor: that of the product turns its sign left of 0
            true => chain(g, (g.x(0) - 1.0).rsqrt() * (g.x(0) + 1.0).rsqrt()),
            false => chain(g, (g.x(0).square() - 1.0).rsqrt()),
        };
    /// The inverse of the hyperbolic tangent. torch.atanh; CHLO atanh.
    ///
    /// `tensor([0.0, 0.5]).atanh()` is `[0.0000, 0.5493]`.
    pub fn atanh => ATANH "atanh", rules::float, inside, |l| un(l, "chlo.atanh"),
        |g| chain(g, (1.0 - g.x(0).square()).reciprocal());
    /// 1 - erf(x), exact where that is small. torch.erfc; CHLO erfc.
    ///
    /// `tensor([0.0, 1.0]).erfc()` is `[1.0000, 0.1573]`.
    pub fn erfc => ERFC "erfc", rules::float, sample, |l| un(l, "chlo.erfc"),
        |g| chain(g, g.x(0).square().neg().exp() * -std::f64::consts::FRAC_2_SQRT_PI);
    /// The inverse of the error function. torch.erfinv; CHLO erf_inv.
    ///
    /// `tensor([0.0, 0.5]).erfinv()` is `[0.0000, 0.4769]`.
    pub fn erfinv => ERFINV "erfinv", rules::float, inside, |l| un(l, "chlo.erf_inv"),
        |g| chain(g, g.y().square().exp() * (0.5 / std::f64::consts::FRAC_2_SQRT_PI * 2.0));
    /// The logarithm of the absolute value of the gamma function. torch.lgamma; CHLO lgamma.
    ///
    /// `tensor([4.0, 6.0]).lgamma()` is `[1.7918, 4.7875]`.
    pub fn lgamma => LGAMMA "lgamma", rules::float, positive, |l| un(l, "chlo.lgamma"), |g| chain(g, g.x(0).digamma());
    /// The derivative of lgamma. torch.digamma; CHLO digamma.
    ///
    /// `tensor([1.0, 2.0]).digamma()` is `[-0.5772, 0.4228]`.
    pub fn digamma => DIGAMMA "digamma", rules::float, positive, digamma, |g| chain(g, g.x(0).polygamma(1));
    /// Every bit turned; for bools the opposite. torch.bitwise_not; StableHLO not.
    ///
    /// `tensor([0, 5]).bitwise_not()` is `[-1, -6]`.
    pub fn bitwise_not => BITWISE_NOT "bitwise_not", |s| match s.dtype(0).is_differentiable() {
        true => Err("needs integers or bools".into()),
        false => rules::same(s),
    }, sample, |l| un(l, "not"), none;
    /// The error function. torch.erf; CHLO erf.
    ///
    /// `tensor([0.0, 1.0]).erf()` is `[0.0000, 0.8427]`.
    pub fn erf => ERF "erf", rules::float, sample, |l| un(l, "chlo.erf"),
        |g| chain(g, g.x(0).square().neg().exp() * std::f64::consts::FRAC_2_SQRT_PI);
    /// The largest integer not above each element. torch.floor; StableHLO floor. No gradient flows.
    ///
    /// `tensor([-1.5, 1.5]).floor()` is `[-2., 1.]`.
    pub fn floor => FLOOR "floor", ordered, sample, |l| rounded(l, "floor"), flat;
    /// The smallest integer not below each element. torch.ceil; StableHLO ceil. No gradient flows.
    ///
    /// `tensor([-1.5, 1.5]).ceil()` is `[-1., 2.]`.
    pub fn ceil => CEIL "ceil", ordered, sample, |l| rounded(l, "ceil"), flat;
    /// The nearest integer, halves to even. torch.round; StableHLO round_nearest_even. No gradient flows.
    ///
    /// `tensor([0.5, 1.5, 2.6]).round()` is `[0., 2., 3.]`.
    pub fn round => ROUND "round", ordered, sample, |l| rounded(l, "round_nearest_even"), flat;
    /// The integer part: towards zero. torch.trunc. No gradient flows.
    ///
    /// `tensor([-1.5, 1.5]).trunc()` is `[-1., 1.]`.
    pub fn trunc => TRUNC "trunc", ordered, sample, |l| {
        if !l.out.dtype.is_float() {
            return l.x(0);
        }
        let x = l.x(0);
        let (down, up) = (l.unary("floor", &x), l.unary("ceil", &x));
        let zero = l.constant(0.0, &x.ty);
        let negative = l.compare("LT", &x, &zero);
        l.select(&negative, &up, &down)
    }, flat;
    /// -1, 0 or 1 by the sign of each element. torch.sign; StableHLO sign. No gradient flows.
    ///
    /// `tensor([-3, 0, 2]).sign()` is `[-1, 0, 1]`.
    pub fn sign => SIGN "sign", ordered, sample, |l| match l.out.dtype {
        xlazy_core::ty::DType::Bool => l.x(0),
        dtype if dtype.is_unsigned() => {
            let x = l.x(0);
            l.with_const("minimum", &x, 1.0)
        }
        dtype if dtype.is_float() => {
            // of a NaN it is 0 in torch
            let (x, ty) = (l.x(0), l.out.clone());
            let (number, zero) = (l.compare("EQ", &x, &x), l.constant(0.0, &ty));
            let sign = l.unary("sign", &x);
            l.select(&number, &sign, &zero)
        }
        _ => un(l, "sign"),
    }, flat;
    /// True where the element is zero (or false). torch.logical_not; StableHLO not.
    ///
    /// `tensor([0, 5]).logical_not()` is `[true, false]`.
    pub fn logical_not => LOGICAL_NOT "logical_not", rules::test, sample, |l| un(l, "not"), none;
    /// True where the element is NaN. torch.isnan.
    ///
    /// `tensor([f32::NAN, 1.0]).isnan()` is `[true, false]`.
    pub fn isnan => ISNAN "isnan", rules::test, sample, |l| {
        let x = l.x(0);
        l.compare("NE", &x, &x)
    }, none;
    /// True where the element is neither NaN nor infinite. torch.isfinite; StableHLO is_finite.
    ///
    /// `tensor([f32::INFINITY, 1.0]).isfinite()` is `[false, true]`.
    pub fn isfinite => ISFINITE "isfinite", rules::test, sample, |l| {
        let x = l.x(0);
        match x.dtype().is_float() {
            true => l.op("is_finite", &[&x], "", xlazy_core::ty::Type::new(xlazy_core::ty::DType::Bool, x.shape().clone())),
            false => {
                let ty = l.out.clone();
                l.constant(1.0, &ty)
            }
        }
    }, none;
    /// True where the element is infinite. torch.isinf.
    ///
    /// `tensor([f32::INFINITY, 1.0]).isinf()` is `[true, false]`.
    pub fn isinf => ISINF "isinf", rules::test, sample, |l| {
        let x = l.x(0);
        match x.dtype().is_float() {
            true => {
                let a = l.unary("abs", &x);
                let inf = l.constant(f64::INFINITY, &a.ty);
                l.compare("EQ", &a, &inf)
            }
            false => {
                let ty = l.out.clone();
                l.constant(0.0, &ty)
            }
        }
    }, none;
}

// Integers are whole already.
fn rounded(l: &mut Lower, op: &str) -> Val {
    if l.out.dtype.is_float() { un(l, op) } else { l.x(0) }
}

// The signed pole at zero, where CHLO has NaN.
fn digamma(l: &mut Lower) -> Val {
    let (x, inside) = (l.cast(0), un(l, "chlo.digamma"));
    let zero = l.constant(0.0, &x.ty);
    let minus = l.constant(-1.0, &x.ty);
    let (pole, at) = (l.div(&minus, &x), l.compare("EQ", &x, &zero));
    l.select(&at, &pole, &inside)
}

// The n-th derivative of digamma. CHLO's holds for positive numbers: ψₙ(x) = ψₙ(x + k) + (-1)ⁿ⁺¹ n! Σ (x + i)⁻ⁿ⁻¹, i < k,
// leads there from negative ones, by as many steps as the lowest of them takes.
fn polygamma(l: &mut Lower, x: &Val, order: &Val, factorial: &Val) -> Val {
    const MOST: f64 = 100_000.0;
    let [order, factorial] = [order, factorial].map(|v| l.broadcast(v, x.shape()));
    let zero = l.constant(0.0, &x.ty);
    let exponent = l.unary("negate", &order);
    let exponent = l.with_const("subtract", &exponent, 1.0);
    let least = l.constant(-MOST, &x.ty);
    let walks = |e: &mut Emit, x: &Val, zero: &Val, least: &Val| {
        let (below, near) = (e.compare("LT", x, zero), e.compare("GE", x, least));
        e.binary("and", &below, &near)
    };
    let state = [x.clone(), zero.clone(), exponent.clone(), least.clone()];
    let done = l.e.while_loop(
        &state,
        |e, s| {
            let zero = e.constant(0.0, &s[0].ty);
            let on = walks(e, &s[0], &zero, &s[3]);
            let dims: Vec<usize> = (0..on.rank()).collect();
            e.reduce(&on, &dims, Reducer::Or)
        },
        |e, s| {
            let zero = e.constant(0.0, &s[0].ty);
            let on = walks(e, &s[0], &zero, &s[3]);
            let term = e.binary("power", &s[0], &s[2]);
            let term = e.select(&on, &term, &zero);
            let up = e.with_const("add", &s[0], 1.0);
            vec![e.select(&on, &up, &s[0]), e.add(&s[1], &term), s[2].clone(), s[3].clone()]
        },
    );
    let value = l.binary("chlo.polygamma", &order, &done[0]);
    let moved = l.mul(&done[1], &factorial);
    let below = l.compare("LT", x, &zero);
    let there = l.add(&value, &moved);
    let y = l.select(&below, &there, &value);
    // poles at 0 and at whole numbers below it, of the sign that torch's zeta gives them
    let whole = l.unary("floor", x);
    let (whole, low) = (l.compare("EQ", &whole, x), l.compare("LE", x, &zero));
    let at = l.binary("and", &whole, &low);
    let pole = l.with_const("multiply", &factorial, f64::INFINITY);
    l.select(&at, &pole, &y)
}

// The first derivative as torch computes it, by reflection: near a pole it is as large as a sine in this dtype lets it be.
fn trigamma(l: &mut Lower, x: &Val) -> Val {
    let half = l.constant(0.5, &x.ty);
    let left = l.compare("LT", x, &half);
    let angle = l.with_const("multiply", x, std::f64::consts::PI);
    let sine = l.unary("sine", &angle);
    let square = l.mul(&sine, &sine);
    let pi2 = l.constant(std::f64::consts::PI * std::f64::consts::PI, &x.ty);
    let reflected = l.div(&pi2, &square);
    let one = l.constant(1.0, &x.ty);
    let mirrored = l.sub(&one, x);
    let mut at = l.select(&left, &mirrored, x);
    let mut sum = l.constant(0.0, &x.ty);
    for _ in 0..6 {
        let square = l.mul(&at, &at);
        let term = l.div(&one, &square);
        sum = l.add(&sum, &term);
        at = l.with_const("add", &at, 1.0);
    }
    // (1 + 1/2x + (1/6 - (1/30 - 1/42x²) / x²) / x²) / x
    let square = l.mul(&at, &at);
    let inner = [1.0 / 42.0, 1.0 / 30.0, 1.0 / 6.0].into_iter().fold(None, |inner: Option<Val>, c| {
        let c = l.constant(c, &x.ty);
        let term = inner.map_or(c.clone(), |v| l.sub(&c, &v));
        Some(l.div(&term, &square))
    });
    let twice = l.with_const("multiply", &at, 2.0);
    let second = l.div(&one, &twice);
    let tail = l.add(&one, &second);
    let tail = inner.map_or(tail.clone(), |v| l.add(&tail, &v));
    let tail = l.div(&tail, &at);
    let y = l.add(&sum, &tail);
    let other = l.sub(&reflected, &y);
    l.select(&left, &other, &y)
}

// (-1)ⁿ⁺¹ n!
fn signed_factorial(n: f64) -> f64 {
    let sign = if (n as u64).is_multiple_of(2) { -1.0 } else { 1.0 };
    // what is above 170! is infinite
    sign * (1..=n.min(171.0) as u64).map(|k| k as f64).product::<f64>()
}

static POLYGAMMA: Entry = Entry::new("polygamma", rules::float, |l| {
    let n = l.attrs.float(0);
    if n == 1.0 {
        return widely(l, trigamma);
    }
    widely(l, |l, x| {
        let (order, factorial) = (l.scalar(n, x.dtype()), l.scalar(signed_factorial(n), x.dtype()));
        polygamma(l, x, &order, &factorial)
    })
})
.attrs(&[attr("n", Constant)])
.samples(|| {
    let of = |low: f64, high: f64| Sample::of(&[&[2, 3]]).range(low, high).attrs(vec![1.0.into()]);
    vec![of(0.5, 3.0), of(-1.8, -1.2)]
})
.grad(|g| chain(g, g.x(0).polygamma(g.attrs.float(0) as usize + 1)))
.heal(|attrs| {
    let n = attrs.float(0);
    Some(Healed { op: &POLYGAMMA_AT.op, attrs: [].into(), value: vec![n, signed_factorial(n)].into() })
})
.bucket(bucket::each);

static POLYGAMMA_AT: Entry = Entry::new("polygamma.n", rules::float, |l| {
    let numbers = l.cast(1);
    let [order, factorial] = [0, 1].map(|i| {
        let one = l.slice(&numbers, &[i], &[i + 1], &[1]);
        let one = wide(l, &one);
        l.reshape(&one, &Shape::default())
    });
    widely(l, |l, x| polygamma(l, x, &order, &factorial))
})
.samples(|| vec![Sample::of(&[&[2, 3], &[2]]).range(1.0, 2.0)]);

pub(super) static MORE: &[&Entry] = &[&POLYGAMMA, &POLYGAMMA_AT];

impl Tensor {
    /// The n-th derivative of [`Tensor::digamma`], which is the 0-th (`torch.polygamma`), for numbers above -100,000.
    /// CHLO polygamma.
    ///
    /// `tensor([1.0]).polygamma(1)` is `[1.6449]`.
    #[track_caller]
    pub fn polygamma(&self, n: usize) -> Tensor {
        if n == 0 { self.digamma() } else { trace(&POLYGAMMA, [self.into()], [(n as f64).into()]) }
    }

    /// The part after the point, with the sign of x (`torch.frac`).
    ///
    /// `tensor([-1.25, 1.5]).frac()` is `[-0.2500, 0.5000]`.
    #[track_caller]
    pub fn frac(&self) -> Tensor {
        let _call = called("frac", [self]);
        self - self.trunc()
    }

    /// Rounded to so many places after the point, before it where negative (`torch.round(x, decimals=…)`).
    ///
    /// `tensor([1.256]).round_decimals(2)` is `[1.2600]`.
    #[track_caller]
    pub fn round_decimals(&self, decimals: i32) -> Tensor {
        let _call = called("round_decimals", [self]);
        let by = 10f64.powi(decimals.abs());
        match decimals {
            0 => self.round(),
            d if d > 0 => (self * by).round() / by,
            _ => (self / by).round() * by,
        }
    }

    /// sin(πx) / (πx), 1 at zero (`torch.sinc`).
    ///
    /// `tensor([0.0, 0.5]).sinc()` is `[1.0000, 0.6366]`.
    #[track_caller]
    pub fn sinc(&self) -> Tensor {
        let _call = called("sinc", [self]);
        rounded_once([self], |[x]| {
            let zero = x.eq(0.0);
            let x = (x * std::f64::consts::PI).masked_fill(&zero, 1.0);
            (x.sin() / &x).masked_fill(&zero, 1.0)
        })
    }

    /// Degrees as radians (`torch.deg2rad`).
    ///
    /// `tensor([180.0]).deg2rad()` is `[3.1416]`.
    #[track_caller]
    pub fn deg2rad(&self) -> Tensor {
        self * (std::f64::consts::PI / 180.0)
    }

    /// Radians as degrees (`torch.rad2deg`).
    ///
    /// `tensor([1.0]).rad2deg()` is `[57.2958]`.
    #[track_caller]
    pub fn rad2deg(&self) -> Tensor {
        self * (180.0 / std::f64::consts::PI)
    }

    /// NaN and infinities replaced by numbers; without one for an infinity the dtype's extreme (`torch.nan_to_num`).
    ///
    /// `tensor([f32::NAN, 1.0]).nan_to_num(0.0, None, None)` is `[0., 1.]`.
    #[track_caller]
    pub fn nan_to_num(&self, nan: f64, posinf: Option<f64>, neginf: Option<f64>) -> Tensor {
        if !self.dtype().is_float() {
            return self.clone();
        }
        let most = self.dtype().format().most();
        let x = self.masked_fill(&self.isnan(), nan);
        let x = x.masked_fill(&self.eq(f64::INFINITY), posinf.unwrap_or(most));
        x.masked_fill(&self.eq(f64::NEG_INFINITY), neginf.unwrap_or(-most))
    }

    /// True where the sign is negative, -0 included (`torch.signbit`).
    ///
    /// `tensor([-1.0, 2.0]).signbit()` is `[true, false]`.
    #[track_caller]
    pub fn signbit(&self) -> Tensor {
        let _call = called("signbit", [self]);
        match self.dtype().is_float() {
            // 1 / -0 is -infinity
            true => self.lt(0.0).logical_or(self.reciprocal().eq(f64::NEG_INFINITY)),
            false => self.lt(0),
        }
    }
}
