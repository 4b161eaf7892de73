//! Elementwise functions of one tensor.
use crate::emit::Val;
use crate::op::{Grad, Lower, OpDef, Sample, rules};
use crate::tensor::{Tensor, trace};

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

macro_rules! unary {
    ($($(#[$doc:meta])* $vis:vis fn $method:ident => $op:ident $name:literal, $rule:expr, $samples:expr, $lower:expr, $grad:expr;)*) => {
        $(static $op: OpDef = OpDef::new($name, $rule, $lower).samples($samples).grad($grad);)*
        pub(super) static OPS: &[&OpDef] = &[$(&$op),*];
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
    pub fn abs => ABS "abs", rules::same, sample, |l| match l.out.dtype.category() {
        crate::dtype::Category::Bool => l.x(0),
        _ if l.out.dtype == crate::dtype::DType::U8 => l.x(0),
        _ => un(l, "abs"),
    }, |g| chain(g, g.x(0).sign());
    /// Each element with its sign turned. torch.neg; StableHLO negate.
    pub fn neg => NEG "neg", |s| { rules::refuse_bool(s, "use logical_not()")?; rules::same(s) }, sample, |l| un(l, "negate"),
        |g| vec![Some(g.dy.neg())];
    /// e to the power of each element. torch.exp; StableHLO exponential.
    pub fn exp => EXP "exp", rules::float, sample, |l| un(l, "exponential"), |g| chain(g, g.output.clone());
    /// 2 to the power of each element. torch.exp2.
    pub fn exp2 => EXP2 "exp2", rules::float, sample, |l| {
        let x = l.cast(0);
        let two = l.constant(2.0, &x.ty);
        l.binary("power", &two, &x)
    }, |g| chain(g, &g.output * std::f64::consts::LN_2);
    /// exp(x) - 1, exact near zero. torch.expm1; StableHLO exponential_minus_one.
    pub fn expm1 => EXPM1 "expm1", rules::float, sample, |l| un(l, "exponential_minus_one"), |g| chain(g, &g.output + 1.0);
    /// The natural logarithm. torch.log; StableHLO log.
    pub fn log => LOG "log", rules::float, positive, |l| un(l, "log"), |g| vec![Some(&g.dy / g.x(0))];
    /// The logarithm to base 2. torch.log2.
    pub fn log2 => LOG2 "log2", rules::float, positive, |l| {
        let x = un(l, "log");
        l.with_const("divide", &x, std::f64::consts::LN_2)
    }, |g| vec![Some(&g.dy / (g.x(0) * std::f64::consts::LN_2))];
    /// The logarithm to base 10. torch.log10.
    pub fn log10 => LOG10 "log10", rules::float, positive, |l| {
        let x = un(l, "log");
        l.with_const("divide", &x, std::f64::consts::LN_10)
    }, |g| vec![Some(&g.dy / (g.x(0) * std::f64::consts::LN_10))];
    /// log(1 + x), exact near zero. torch.log1p; StableHLO log_plus_one.
    pub fn log1p => LOG1P "log1p", rules::float, positive, |l| un(l, "log_plus_one"), |g| vec![Some(&g.dy / (g.x(0) + 1.0))];
    /// The square root; NaN below zero. torch.sqrt; StableHLO sqrt.
    pub fn sqrt => SQRT "sqrt", rules::float, positive, |l| un(l, "sqrt"), |g| vec![Some(&g.dy / (&g.output * 2.0))];
    /// 1 / sqrt(x). torch.rsqrt; StableHLO rsqrt.
    pub fn rsqrt => RSQRT "rsqrt", rules::float, positive, |l| un(l, "rsqrt"),
        |g| chain(g, g.output.pow(3.0) * -0.5);
    /// 1 / x. torch.reciprocal.
    pub fn reciprocal => RECIPROCAL "reciprocal", rules::float, positive, |l| {
        let x = l.cast(0);
        let one = l.constant(1.0, &x.ty);
        l.div(&one, &x)
    }, |g| chain(g, (&g.output * &g.output).neg());
    /// x * x. torch.square.
    pub fn square => SQUARE "square", rules::same, sample, |l| {
        let x = l.x(0);
        l.mul(&x, &x)
    }, |g| chain(g, g.x(0) * 2.0);
    /// The sine of an angle in radians. torch.sin; StableHLO sine.
    pub fn sin => SIN "sin", rules::float, sample, |l| un(l, "sine"), |g| chain(g, g.x(0).cos());
    /// The cosine of an angle in radians. torch.cos; StableHLO cosine.
    pub fn cos => COS "cos", rules::float, sample, |l| un(l, "cosine"), |g| chain(g, g.x(0).sin().neg());
    /// The tangent of an angle in radians. torch.tan; StableHLO tan.
    pub fn tan => TAN "tan", rules::float, sample, |l| un(l, "tan"), |g| chain(g, g.output.square() + 1.0);
    /// The hyperbolic tangent. torch.tanh; StableHLO tanh.
    pub fn tanh => TANH "tanh", rules::float, sample, |l| un(l, "tanh"), |g| chain(g, 1.0 - g.output.square());
    /// The arc tangent, in radians. torch.atan; StableHLO atan2.
    pub fn atan => ATAN "atan", rules::float, sample, |l| {
        let x = l.cast(0);
        let one = l.constant(1.0, &x.ty);
        l.binary("atan2", &x, &one)
    }, |g| vec![Some(&g.dy / (g.x(0).square() + 1.0))];
    /// The error function. torch.erf; CHLO erf.
    pub fn erf => ERF "erf", rules::float, sample, |l| un(l, "chlo.erf"),
        |g| chain(g, g.x(0).square().neg().exp() * std::f64::consts::FRAC_2_SQRT_PI);
    /// The largest integer not above each element. torch.floor; StableHLO floor. No gradient flows.
    pub fn floor => FLOOR "floor", rules::same, sample, |l| rounded(l, "floor"), flat;
    /// The smallest integer not below each element. torch.ceil; StableHLO ceil. No gradient flows.
    pub fn ceil => CEIL "ceil", rules::same, sample, |l| rounded(l, "ceil"), flat;
    /// The nearest integer, halves to even. torch.round; StableHLO round_nearest_even. No gradient flows.
    pub fn round => ROUND "round", rules::same, sample, |l| rounded(l, "round_nearest_even"), flat;
    /// The integer part: towards zero. torch.trunc. No gradient flows.
    pub fn trunc => TRUNC "trunc", rules::same, sample, |l| {
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
    pub fn sign => SIGN "sign", rules::same, sample, |l| match l.out.dtype {
        crate::dtype::DType::Bool => l.x(0),
        crate::dtype::DType::U8 => {
            let x = l.x(0);
            l.with_const("minimum", &x, 1.0)
        }
        _ => un(l, "sign"),
    }, flat;
    /// True where the element is zero (or false). torch.logical_not; StableHLO not.
    pub fn logical_not => LOGICAL_NOT "logical_not", rules::test, sample, |l| un(l, "not"), none;
    /// True where the element is NaN. torch.isnan.
    pub fn isnan => ISNAN "isnan", rules::test, sample, |l| {
        let x = l.x(0);
        l.compare("NE", &x, &x)
    }, none;
    /// True where the element is neither NaN nor infinite. torch.isfinite; StableHLO is_finite.
    pub fn isfinite => ISFINITE "isfinite", rules::test, sample, |l| {
        let x = l.x(0);
        match x.dtype().is_float() {
            true => l.op("is_finite", &[&x], "", crate::op::Type::new(crate::dtype::DType::Bool, x.shape().clone())),
            false => {
                let ty = l.out.clone();
                l.constant(1.0, &ty)
            }
        }
    }, none;
    /// True where the element is infinite. torch.isinf.
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
