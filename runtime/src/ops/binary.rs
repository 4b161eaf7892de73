//! Elementwise arithmetic of two operands, which broadcast and promote as in torch.
use super::base::{both_widely, rounded_once};
use super::bounds::{BY_ZERO, divisors};
use super::statistics::rooted;
use crate::bucket;
use crate::tensor::{Arg, Entry, Sample, Tensor, called, refuse, trace};
use xlazy_core::emit::Val;
use xlazy_core::ir::{Kind, Lower, Rule, Sig, rules};
use xlazy_core::ty::{Category, DType, Scalar};

pub(super) fn both(l: &mut Lower, op: &str) -> Val {
    let (a, b) = (l.fit(0), l.fit(1));
    l.binary(op, &a, &b)
}

pub(super) fn samples() -> Vec<Sample> {
    vec![Sample::of(&[&[2, 3], &[2, 3]]), Sample::of(&[&[2, 3], &[3]]), Sample::of(&[&[2, 1], &[]])]
}

fn positive() -> Vec<Sample> {
    samples().into_iter().map(|s| s.range(0.3, 2.0)).collect()
}

static ADD: Entry = Entry::new("add", rules::binary, |l| both(l, "add"))
    .kind(Kind::Add)
    .samples(samples)
    .grad(|g| vec![Some(g.dy.clone()), g.want(1, || g.dy.clone())])
    .bucket(bucket::each);

static SUB: Entry = Entry::new(
    "sub",
    |s| {
        rules::refuse_bool(s, "use logical_xor()")?;
        match s.inputs.iter().any(|t| t.dtype == DType::Bool) {
            true => {
                Err("not defined for a bool tensor; use logical_not() to invert a mask, or convert it with `.long()`"
                    .into())
            }
            false => rules::binary(s),
        }
    },
    |l| both(l, "subtract"),
)
.samples(samples)
.grad(|g| vec![g.want(0, || g.dy.clone()), g.want(1, || g.dy.neg())])
.bucket(bucket::each);

static MUL: Entry = Entry::new("mul", rules::binary, |l| both(l, "multiply"))
    .kind(Kind::Mul)
    .samples(samples)
    .grad(|g| vec![g.want(0, || &g.dy * g.x(1)), g.want(1, || &g.dy * g.x(0))])
    .bucket(bucket::each);

static DIV: Entry = Entry::new("div", rules::binary_float, |l| both(l, "divide"))
    .samples(positive)
    .grad(|g| {
        let by = g.x(1);
        vec![g.want(0, || &g.dy / by), g.want(1, || (&g.dy * (g.x(0) / by / by)).neg())]
    })
    .bucket(bucket::each);

// What is made of a quotient of floats: of halves in f32, so that it is not rounded to a whole number before.
fn quotient(l: &mut Lower, f: impl FnOnce(&mut Lower, &Val) -> Val) -> Val {
    both_widely(l, |l, a, b| {
        let q = l.div(a, b);
        f(l, &q)
    })
}

// As torch has it (and Python): by the rest, so that 1.0 / 0.1, which rounds to 10, is 9.
fn floored_floats(l: &mut Lower, a: &Val, b: &Val) -> Val {
    let zero = l.constant(0.0, &a.ty);
    let rest = l.binary("remainder", a, b);
    let whole = l.sub(a, &rest);
    let q = l.div(&whole, b);
    let some = l.compare("NE", &rest, &zero);
    let (nr, nb) = (l.compare("LT", &rest, &zero), l.compare("LT", b, &zero));
    let differ = l.binary("xor", &nr, &nb);
    let lower = l.binary("and", &some, &differ);
    let less = l.with_const("subtract", &q, 1.0);
    let q = l.select(&lower, &less, &q);
    // What the quotient was rounded by is undone: to the nearest whole number.
    let down = l.unary("floor", &q);
    let off = l.sub(&q, &down);
    let half = l.constant(0.5, &off.ty);
    let beyond = l.compare("GT", &off, &half);
    let up = l.with_const("add", &down, 1.0);
    let y = l.select(&beyond, &up, &down);
    // A quotient of 0 has the sign of the operands'.
    let plain = l.div(a, b);
    let signed = l.mul(&plain, &zero);
    let none = l.compare("EQ", &y, &zero);
    let y = l.select(&none, &signed, &y);
    let by_zero = l.compare("EQ", b, &zero);
    l.select(&by_zero, &plain, &y)
}

// The quotient rounded down; integers stay integers.
fn floored(l: &mut Lower) -> Val {
    if l.out.dtype.category() == Category::Float {
        return both_widely(l, floored_floats);
    }
    let (a, b) = (l.fit(0), l.fit(1));
    let q = l.div(&a, &b);
    if l.out.dtype.is_unsigned() {
        return q;
    }
    // Division cuts towards zero: one less where there is a rest and the signs differ.
    let back = l.mul(&q, &b);
    let zero = l.constant(0.0, &a.ty);
    let rest = l.compare("NE", &back, &a);
    let (na, nb) = (l.compare("LT", &a, &zero), l.compare("LT", &b, &zero));
    let differ = l.binary("xor", &na, &nb);
    let lower = l.binary("and", &rest, &differ);
    let less = l.with_const("subtract", &q, 1.0);
    l.select(&lower, &less, &q)
}

// Steps have slope 0.
fn flat(g: &crate::tensor::Grad) -> Vec<Option<Tensor>> {
    [0, 1].map(|i| g.want(i, || g.x(i).zeros_like())).to_vec()
}

pub(super) fn not_all_bool(s: &Sig) -> Rule {
    rules::refuse_bool(s, "convert with `.long()`")?;
    ordered(s)
}

fn ordered(s: &Sig) -> Rule {
    rules::ordered(s)?;
    rules::binary(s)
}

static FLOOR_DIVIDE: Entry = Entry::new("floor_divide", not_all_bool, floored)
    .samples(positive)
    .checks(divisors)
    .grad(flat)
    .bucket(bucket::each);

static DIV_TRUNC: Entry = Entry::new("div_trunc", not_all_bool, |l| {
    if !l.out.dtype.is_float() {
        return both(l, "divide");
    }
    quotient(l, |l, q| {
        let (down, up) = (l.unary("floor", q), l.unary("ceil", q));
        let zero = l.constant(0.0, &q.ty);
        let negative = l.compare("LT", q, &zero);
        l.select(&negative, &up, &down)
    })
})
.samples(positive)
.checks(divisors)
.grad(flat)
.bucket(bucket::each);

static FMOD: Entry = Entry::new("fmod", not_all_bool, |l| both(l, "remainder"))
    .samples(positive)
    .checks(divisors)
    .grad(|g| vec![g.want(0, || g.dy.clone()), g.want(1, || (&g.dy * (g.x(0) / g.x(1)).trunc()).neg())])
    .bucket(bucket::each);

static REMAINDER: Entry = Entry::new("remainder", not_all_bool, |l| {
    // torch's remainder has the divisor's sign: fix up the one of StableHLO, which has the dividend's
    let (a, b) = (l.fit(0), l.fit(1));
    let r = l.binary("remainder", &a, &b);
    if l.out.dtype.is_unsigned() {
        return r;
    }
    let zero = l.constant(0.0, &a.ty);
    let some = l.compare("NE", &r, &zero);
    let (nr, nb) = (l.compare("LT", &r, &zero), l.compare("LT", &b, &zero));
    let differ = l.binary("xor", &nr, &nb);
    let fix = l.binary("and", &some, &differ);
    let moved = l.add(&r, &b);
    l.select(&fix, &moved, &r)
})
.samples(positive)
.checks(divisors)
.grad(|g| {
    let other = |[dy, a, b]: [&Tensor; 3]| (dy * a.floor_divide(b)).neg();
    vec![g.want(0, || g.dy.clone()), g.want(1, || rounded_once([&g.dy, g.x(0), g.x(1)], other))]
})
.bucket(bucket::each);

static POW: Entry = Entry::new(
    "pow",
    |s| {
        rules::refuse_bool(s, "convert with `.to(I64)`")?;
        rules::binary(s)
    },
    |l| both(l, "power"),
)
.samples(positive)
.grad(|g| {
    let (x, p) = (g.x(0), g.x(1));
    let base = g.want(0, || {
        // At p = 0 the slope is 0 everywhere, at x = 0 too.
        let slope = p * x.pow(&(p - 1.0));
        &g.dy * slope.where_(&p.ne(0.0), 0.0)
    });
    let exponent = g.want(1, || {
        // 0 at a base of 0, and NaN below, where the power itself is not continuous
        let up = match p.dtype().is_complex() {
            true => p.real().ge(0.0).logical_and(p.imag().eq(0.0)),
            false => p.ge(0.0),
        };
        let flat = x.eq(0.0).logical_and(up);
        // The power of halves again: it may have been rounded to infinity.
        let y = if g.output.dtype().is_half() { x.pow(p) } else { g.y().clone() };
        &g.dy * (y * x.log()).masked_fill(&flat, 0.0)
    });
    vec![base, exponent]
})
.bucket(bucket::each);

static MAXIMUM: Entry = Entry::new("maximum", ordered, |l| both(l, "maximum"))
    .samples(samples)
    .grad(|g| {
        // equals share the gradient, and both have it beside a NaN, as in torch
        let (a, b) = (g.x(0), g.x(1));
        let tie = a.eq(b);
        let half = &g.dy * 0.5;
        vec![
            g.want(0, || half.where_(&tie, g.dy.masked_fill(&a.lt(b), 0.0))),
            g.want(1, || half.where_(&tie, g.dy.masked_fill(&b.lt(a), 0.0))),
        ]
    })
    .bucket(bucket::each);

static MINIMUM: Entry = Entry::new("minimum", ordered, |l| both(l, "minimum"))
    .samples(samples)
    .grad(|g| {
        let (a, b) = (g.x(0), g.x(1));
        let tie = a.eq(b);
        let half = &g.dy * 0.5;
        vec![
            g.want(0, || half.where_(&tie, g.dy.masked_fill(&a.gt(b), 0.0))),
            g.want(1, || half.where_(&tie, g.dy.masked_fill(&b.gt(a), 0.0))),
        ]
    })
    .bucket(bucket::each);

static ATAN2: Entry = Entry::new(
    "atan2",
    |s| {
        rules::ordered(s)?;
        rules::binary_float(s)
    },
    |l| both(l, "atan2"),
)
.samples(positive)
.grad(|g| {
    let (y, x) = (g.x(0), g.x(1));
    let d = &g.dy / (y.square() + x.square());
    vec![g.want(0, || &d * x), g.want(1, || (&d * y).neg())]
})
.bucket(bucket::each);

pub(super) static OPS: &[&Entry] =
    &[&ADD, &SUB, &MUL, &DIV, &FLOOR_DIVIDE, &DIV_TRUNC, &REMAINDER, &FMOD, &POW, &MAXIMUM, &MINIMUM, &ATAN2];

/// `a + b` for the operator impls.
#[track_caller]
pub(super) fn add(a: Arg, b: Arg) -> Tensor {
    trace(&ADD, [a, b], [])
}

#[track_caller]
pub(super) fn sub(a: Arg, b: Arg) -> Tensor {
    trace(&SUB, [a, b], [])
}

#[track_caller]
pub(super) fn mul(a: Arg, b: Arg) -> Tensor {
    trace(&MUL, [a, b], [])
}

#[track_caller]
pub(super) fn div(a: Arg, b: Arg) -> Tensor {
    trace(&DIV, [a, b], [])
}

#[track_caller]
pub(super) fn remainder(a: Arg, b: Arg) -> Tensor {
    if let Some(t) = a.tensor() {
        t.divisible("remainder", &b);
    }
    trace(&REMAINDER, [a, b], [])
}

impl Tensor {
    /// `self + other` (`torch.add`).
    /// `tensor([1, 2]).add(10)` is `[11, 12]`.
    #[track_caller]
    pub fn add<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        add(self.into(), other.into())
    }

    /// `self - other` (`torch.sub`).
    /// `tensor([1, 2]).sub(10)` is `[-9, -8]`.
    #[track_caller]
    pub fn sub<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        sub(self.into(), other.into())
    }

    /// `self * other` (`torch.mul`).
    /// `tensor([1, 2]).mul(10)` is `[10, 20]`.
    #[track_caller]
    pub fn mul<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        mul(self.into(), other.into())
    }

    /// `self / other`, float also for integers (`torch.div`).
    /// `tensor([1, 2]).div(2)` is `[0.5000, 1.0000]`.
    #[track_caller]
    pub fn div<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        div(self.into(), other.into())
    }

    /// The quotient cut towards zero (`torch.div(a, b, rounding_mode="trunc")`); integers stay integers.
    /// `tensor([-7, 7]).div_trunc(2)` is `[-3, 3]`.
    #[track_caller]
    pub fn div_trunc<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        let other = other.into();
        self.divisible("div_trunc", &other);
        trace(&DIV_TRUNC, [self.into(), other], [])
    }

    /// The rest of the division, with the sign of this tensor (`torch.fmod`). StableHLO: remainder.
    /// `tensor([-7, 7]).fmod(4)` is `[-3, 3]`.
    #[track_caller]
    pub fn fmod<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        let other = other.into();
        self.divisible("fmod", &other);
        trace(&FMOD, [self.into(), other], [])
    }

    /// Refuses zero as the divisor of integers, where it is known.
    #[track_caller]
    fn divisible(&self, op: &'static str, other: &Arg) {
        if let Arg::Scalar(number) = other
            && number.category() <= Category::Int
            && number.as_i64() == 0
            && self.dtype().category() <= Category::Int
        {
            refuse(op, &[self], BY_ZERO);
        }
    }

    /// The larger of the two, a number winning over NaN (`torch.fmax`).
    /// `tensor([1.0, f32::NAN]).fmax(&tensor([2.0, 3.0]))` is `[2., 3.]`.
    #[track_caller]
    pub fn fmax(&self, other: &Tensor) -> Tensor {
        let _call = called("fmax", [self, other]);
        // of equals torch's gradient is the first one's
        self.where_(&self.ge(other).logical_or(other.isnan()), other)
    }

    /// The smaller of the two, a number winning over NaN (`torch.fmin`).
    /// `tensor([1.0, f32::NAN]).fmin(&tensor([2.0, 3.0]))` is `[1., 3.]`.
    #[track_caller]
    pub fn fmin(&self, other: &Tensor) -> Tensor {
        let _call = called("fmin", [self, other]);
        self.where_(&self.le(other).logical_or(other.isnan()), other)
    }

    /// The length of the hypotenuse (`torch.hypot`).
    /// `tensor([3.0]).hypot(&tensor([4.0]))` is `[5.]`.
    #[track_caller]
    pub fn hypot(&self, other: &Tensor) -> Tensor {
        let _call = called("hypot", [self, other]);
        // squares of what is divided by the larger one neither overflow nor vanish
        rounded_once([self, other], |[a, b]| {
            let larger = a.detach().abs().maximum(b.detach().abs());
            let scale = larger.where_(&larger.gt(0.0).logical_and(larger.isfinite()), 1.0);
            rooted((a / &scale).square() + (b / &scale).square(), |s| s.sqrt()) * scale
        })
    }

    /// log(e^a + e^b), without overflow (`torch.logaddexp`).
    /// `tensor([0.0]).logaddexp(&tensor([0.0]))` is `[0.6931]`.
    #[track_caller]
    pub fn logaddexp(&self, other: &Tensor) -> Tensor {
        let _call = called("logaddexp", [self, other]);
        if self.dtype().is_complex() || other.dtype().is_complex() {
            // the larger real part in front
            let (a, b) = (self.real(), other.real());
            let first = a.ge(&b).logical_or(a.isnan());
            let (top, rest) = (self.where_(&first, other), other.where_(&first, self));
            return (rest - &top).exp().add(1.0).log() + top;
        }
        // at equal infinities the difference is NaN
        let d = (self - other).abs();
        let top = self.maximum(other);
        let d = d.masked_fill(&d.isnan(), f64::INFINITY);
        top + d.neg().exp().log1p()
    }

    /// The quotient rounded down (`torch.floor_divide`); integers stay integers. No gradient flows.
    /// `tensor([-7, 7]).floor_divide(2)` is `[-4, 3]`.
    #[track_caller]
    pub fn floor_divide<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        let other = other.into();
        self.divisible("floor_divide", &other);
        trace(&FLOOR_DIVIDE, [self.into(), other], [])
    }

    /// The rest of the division, with the sign of `other` (`torch.remainder`, Python's `%`).
    /// `tensor([-7, 7]).remainder(4)` is `[1, 3]`.
    #[track_caller]
    pub fn remainder<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        remainder(self.into(), other.into())
    }

    /// `self` to the power of `exponent` (`torch.pow`); StableHLO power.
    /// `tensor([2.0, 3.0]).pow(2)` is `[4., 9.]`.
    #[track_caller]
    pub fn pow<'a>(&self, exponent: impl Into<Arg<'a>>) -> Tensor {
        let exponent = exponent.into();
        if let Arg::Scalar(Scalar::Int(n)) = exponent
            && n < 0
            && self.dtype().category() <= Category::Int
        {
            let message = format!("integers to the power of {n}, which is negative, are none: convert with `.float()`");
            refuse("pow", &[self], message);
        }
        trace(&POW, [self.into(), exponent], [])
    }

    /// The larger of the two, element by element (`torch.maximum`).
    /// `tensor([1, 5]).maximum(3)` is `[3, 5]`.
    #[track_caller]
    pub fn maximum<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&MAXIMUM, [self.into(), other.into()], [])
    }

    /// The smaller of the two, element by element (`torch.minimum`).
    /// `tensor([1, 5]).minimum(3)` is `[1, 3]`.
    #[track_caller]
    pub fn minimum<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&MINIMUM, [self.into(), other.into()], [])
    }

    /// The angle of the point (`other`, `self`), in radians (`torch.atan2`).
    /// `tensor([1.0, -1.0]).atan2(1.0)` is `[0.7854, -0.7854]`.
    #[track_caller]
    pub fn atan2<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&ATAN2, [self.into(), other.into()], [])
    }

    /// Linear interpolation: `self + weight * (end - self)` (`torch.lerp`).
    /// `tensor([0.0, 10.0]).lerp(&tensor([1.0, 20.0]), 0.5)` is `[0.5000, 15.0000]`.
    #[track_caller]
    pub fn lerp<'a>(&self, end: &Tensor, weight: impl Into<Arg<'a>>) -> Tensor {
        let weight = weight.into();
        let _call = called("lerp", [self, end].into_iter().chain(weight.tensor()));
        self + (end - self).mul(weight)
    }

    /// `self + value * tensor1 * tensor2` (`torch.addcmul`).
    /// `tensor([1.0]).addcmul(&tensor([2.0]), &tensor([3.0]), 0.5)` is `[4.]`.
    #[track_caller]
    pub fn addcmul<'a>(&self, tensor1: &Tensor, tensor2: &Tensor, value: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("addcmul", [self, tensor1, tensor2]);
        self + (tensor1 * tensor2).mul(value)
    }

    /// `self + value * tensor1 / tensor2` (`torch.addcdiv`).
    /// `tensor([1.0]).addcdiv(&tensor([2.0]), &tensor([4.0]), 2.0)` is `[2.]`.
    #[track_caller]
    pub fn addcdiv<'a>(&self, tensor1: &Tensor, tensor2: &Tensor, value: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("addcdiv", [self, tensor1, tensor2]);
        self + (tensor1 / tensor2).mul(value)
    }
}

impl Tensor {
    /// Sets every element to zero (`torch.Tensor.zero_`).
    ///
    /// `tensor([1, 2]).zero_()` is `[0, 0]`.
    #[track_caller]
    pub fn zero_(&self) -> Tensor {
        let zero = self.zeros_like();
        self.assign("zero_", zero);
        self.clone()
    }

    /// Sets every element to a number (`torch.Tensor.fill_`).
    ///
    /// `tensor([1, 2]).fill_(7)` is `[7, 7]`.
    #[track_caller]
    pub fn fill_(&self, value: impl Into<Scalar>) -> Tensor {
        let full = self.full_like(value);
        self.assign("fill_", full);
        self.clone()
    }
}
