//! Elementwise arithmetic of two operands, which broadcast and promote as in torch.
use crate::dtype::Category;
use crate::emit::Val;
use crate::op::{Lower, OpDef, Sample, rules};
use crate::tensor::{Arg, Tensor, trace};

fn both(l: &mut Lower, op: &str) -> Val {
    let (a, b) = (l.fit(0), l.fit(1));
    l.binary(op, &a, &b)
}

fn samples() -> Vec<Sample> {
    vec![Sample::of(&[&[2, 3], &[2, 3]]), Sample::of(&[&[2, 3], &[3]]), Sample::of(&[&[2, 1], &[]])]
}

fn positive() -> Vec<Sample> {
    samples().into_iter().map(|s| s.range(0.3, 2.0)).collect()
}

static ADD: OpDef = OpDef::new("add", rules::binary, |l| both(l, "add"))
    .samples(samples)
    .grad(|g| vec![Some(g.dy.clone()), g.want(1, || g.dy.clone())]);

static SUB: OpDef = OpDef::new(
    "sub",
    |s| {
        rules::refuse_bool(s, "use logical_xor()")?;
        rules::binary(s)
    },
    |l| both(l, "subtract"),
)
.samples(samples)
.grad(|g| vec![g.want(0, || g.dy.clone()), g.want(1, || g.dy.neg())]);

static MUL: OpDef = OpDef::new("mul", rules::binary, |l| both(l, "multiply"))
    .samples(samples)
    .grad(|g| vec![g.want(0, || &g.dy * g.x(1)), g.want(1, || &g.dy * g.x(0))]);

static DIV: OpDef = OpDef::new("div", rules::binary_float, |l| both(l, "divide"))
    .samples(positive)
    .grad(|g| vec![g.want(0, || &g.dy / g.x(1)), g.want(1, || (&g.dy * (&g.output / g.x(1))).neg())]);

// The quotient rounded down; integers stay integers.
fn floored(l: &mut Lower) -> Val {
    let (a, b) = (l.fit(0), l.fit(1));
    let q = l.div(&a, &b);
    if l.out.dtype.category() == Category::Float {
        return l.unary("floor", &q);
    }
    if l.out.dtype == crate::dtype::DType::U8 {
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

static FLOOR_DIVIDE: OpDef = OpDef::new("floor_divide", rules::binary, floored).samples(positive);

static REMAINDER: OpDef = OpDef::new("remainder", rules::binary, |l| {
    // torch's remainder has the divisor's sign: fix up the one of StableHLO, which has the dividend's
    let (a, b) = (l.fit(0), l.fit(1));
    let r = l.binary("remainder", &a, &b);
    if l.out.dtype == crate::dtype::DType::U8 {
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
.grad(|g| vec![g.want(0, || g.dy.clone()), g.want(1, || (&g.dy * (g.x(0) / g.x(1)).floor()).neg())]);

static POW: OpDef = OpDef::new(
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
        let log = x.log();
        &g.dy * (&g.output * log).where_(&x.gt(0.0), 0.0)
    });
    vec![base, exponent]
});

static MAXIMUM: OpDef = OpDef::new("maximum", rules::binary, |l| both(l, "maximum")).samples(samples).grad(|g| {
    // equals share the gradient, as in torch
    let (a, b) = (g.x(0), g.x(1));
    let tie = a.eq(b);
    let half = &g.dy * 0.5;
    vec![
        g.want(0, || half.where_(&tie, &g.dy.where_(&a.gt(b), 0.0))),
        g.want(1, || half.where_(&tie, &g.dy.where_(&b.gt(a), 0.0))),
    ]
});

static MINIMUM: OpDef = OpDef::new("minimum", rules::binary, |l| both(l, "minimum")).samples(samples).grad(|g| {
    let (a, b) = (g.x(0), g.x(1));
    let tie = a.eq(b);
    let half = &g.dy * 0.5;
    vec![
        g.want(0, || half.where_(&tie, &g.dy.where_(&a.lt(b), 0.0))),
        g.want(1, || half.where_(&tie, &g.dy.where_(&b.lt(a), 0.0))),
    ]
});

static ATAN2: OpDef = OpDef::new("atan2", rules::binary_float, |l| both(l, "atan2")).samples(positive).grad(|g| {
    let (y, x) = (g.x(0), g.x(1));
    let d = &g.dy / (y.square() + x.square());
    vec![g.want(0, || &d * x), g.want(1, || (&d * y).neg())]
});

pub(super) static OPS: &[&OpDef] =
    &[&ADD, &SUB, &MUL, &DIV, &FLOOR_DIVIDE, &REMAINDER, &POW, &MAXIMUM, &MINIMUM, &ATAN2];

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
    trace(&REMAINDER, [a, b], [])
}

impl Tensor {
    /// `self + other` (`torch.add`).
    #[track_caller]
    pub fn add<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        add(self.into(), other.into())
    }

    /// `self - other` (`torch.sub`).
    #[track_caller]
    pub fn sub<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        sub(self.into(), other.into())
    }

    /// `self * other` (`torch.mul`).
    #[track_caller]
    pub fn mul<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        mul(self.into(), other.into())
    }

    /// `self / other`, float also for integers (`torch.div`).
    #[track_caller]
    pub fn div<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        div(self.into(), other.into())
    }

    /// The quotient rounded down (`torch.floor_divide`); integers stay integers. No gradient flows.
    #[track_caller]
    pub fn floor_divide<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&FLOOR_DIVIDE, [self.into(), other.into()], [])
    }

    /// The rest of the division, with the sign of `other` (`torch.remainder`, Python's `%`).
    #[track_caller]
    pub fn remainder<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        remainder(self.into(), other.into())
    }

    /// `self` to the power of `exponent` (`torch.pow`); StableHLO power.
    #[track_caller]
    pub fn pow<'a>(&self, exponent: impl Into<Arg<'a>>) -> Tensor {
        trace(&POW, [self.into(), exponent.into()], [])
    }

    /// The larger of the two, element by element (`torch.maximum`).
    #[track_caller]
    pub fn maximum<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&MAXIMUM, [self.into(), other.into()], [])
    }

    /// The smaller of the two, element by element (`torch.minimum`).
    #[track_caller]
    pub fn minimum<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&MINIMUM, [self.into(), other.into()], [])
    }

    /// The angle of the point (`other`, `self`), in radians (`torch.atan2`).
    #[track_caller]
    pub fn atan2<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&ATAN2, [self.into(), other.into()], [])
    }

    /// Linear interpolation: `self + weight * (end - self)` (`torch.lerp`).
    #[track_caller]
    pub fn lerp<'a>(&self, end: &Tensor, weight: impl Into<Arg<'a>>) -> Tensor {
        self + (end - self).mul(weight)
    }

    /// `self + value * tensor1 * tensor2` (`torch.addcmul`).
    #[track_caller]
    pub fn addcmul<'a>(&self, tensor1: &Tensor, tensor2: &Tensor, value: impl Into<Arg<'a>>) -> Tensor {
        self + (tensor1 * tensor2).mul(value)
    }

    /// `self + value * tensor1 / tensor2` (`torch.addcdiv`).
    #[track_caller]
    pub fn addcdiv<'a>(&self, tensor1: &Tensor, tensor2: &Tensor, value: impl Into<Arg<'a>>) -> Tensor {
        self + (tensor1 / tensor2).mul(value)
    }
}

macro_rules! in_place {
    ($($(#[$doc:meta])* $name:ident = $op:ident;)*) => {
        impl Tensor {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
                let value = self.$op(other);
                self.assign(stringify!($name), value);
                self.clone()
            })*
        }
    };
}

in_place! {
    /// Adds to this tensor's value (`torch.Tensor.add_`).
    add_ = add;
    /// Subtracts from this tensor's value (`torch.Tensor.sub_`).
    sub_ = sub;
    /// Multiplies this tensor's value (`torch.Tensor.mul_`).
    mul_ = mul;
    /// Divides this tensor's value (`torch.Tensor.div_`).
    div_ = div;
}

impl Tensor {
    /// Sets every element to zero (`torch.Tensor.zero_`).
    #[track_caller]
    pub fn zero_(&self) -> Tensor {
        let zero = self.zeros_like();
        self.assign("zero_", zero);
        self.clone()
    }

    /// Sets every element to a number (`torch.Tensor.fill_`).
    #[track_caller]
    pub fn fill_(&self, value: impl Into<crate::dtype::Scalar>) -> Tensor {
        let full = self.full_like(value);
        self.assign("fill_", full);
        self.clone()
    }
}
