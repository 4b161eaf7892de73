//! Comparisons, logic, and choice by condition.
use crate::bucket;
use crate::tensor::{Arg, Entry, Sample, Tensor, called, refuse, trace};
use xlazy_core::emit::Val;
use xlazy_core::ir::{Lower, Rule, Sig, rules};
use xlazy_core::ty::{Category, DType, Scalar, Type};

// Both operands in the dtype they promote to, broadcast together, then compared.
fn compared(l: &mut Lower, direction: &str) -> Val {
    let types: Vec<&Type> = l.inputs.iter().map(|v| &v.ty).collect();
    let dtype = rules::promote(&types).expect("the type rule has asked");
    let shape = l.out.shape.clone();
    let [a, b] = [0, 1].map(|i| {
        let x = l.x(i);
        let x = l.convert(&x, dtype);
        l.broadcast(&x, &shape)
    });
    l.compare(direction, &a, &b)
}

fn ordered(s: &Sig) -> Rule {
    rules::ordered(s)?;
    rules::compare(s)
}

fn logic(l: &mut Lower, op: &str) -> Val {
    let (a, b) = (l.fit(0), l.fit(1));
    l.binary(op, &a, &b)
}

fn samples() -> Vec<Sample> {
    vec![Sample::of(&[&[2, 3], &[2, 3]]), Sample::of(&[&[2, 3], &[3]])]
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* pub fn $method:ident => $op:ident $rule:expr, $lower:expr;)*) => {
        $(static $op: Entry = Entry::new(stringify!($method), $rule, $lower).samples(samples).bucket(bucket::each);)*
        impl Tensor {
            $($(#[$doc])*
            #[track_caller]
            pub fn $method<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
                trace(&$op, [self.into(), other.into()], [])
            })*
        }
    };
}

comparisons! {
    /// True where equal (`torch.eq`).
    ///
    /// `tensor([1, 2]).eq(2)` is `[false, true]`.
    pub fn eq => EQ rules::compare, |l| compared(l, "EQ");
    /// True where different (`torch.ne`).
    ///
    /// `tensor([1, 2]).ne(2)` is `[true, false]`.
    pub fn ne => NE rules::compare, |l| compared(l, "NE");
    /// True where less (`torch.lt`).
    ///
    /// `tensor([1, 2]).lt(2)` is `[true, false]`.
    pub fn lt => LT ordered, |l| compared(l, "LT");
    /// True where less or equal (`torch.le`).
    ///
    /// `tensor([1, 2]).le(2)` is `[true, true]`.
    pub fn le => LE ordered, |l| compared(l, "LE");
    /// True where greater (`torch.gt`).
    ///
    /// `tensor([1, 2]).gt(1)` is `[false, true]`.
    pub fn gt => GT ordered, |l| compared(l, "GT");
    /// True where greater or equal (`torch.ge`).
    ///
    /// `tensor([1, 2]).ge(1)` is `[true, true]`.
    pub fn ge => GE ordered, |l| compared(l, "GE");
    /// True where both are not zero (`torch.logical_and`).
    ///
    /// `tensor([true, true]).logical_and(&tensor([true, false]))` is `[true, false]`.
    pub fn logical_and => LOGICAL_AND rules::compare, |l| logic(l, "and");
    /// True where one is not zero (`torch.logical_or`).
    ///
    /// `tensor([true, false]).logical_or(&tensor([false, false]))` is `[true, false]`.
    pub fn logical_or => LOGICAL_OR rules::compare, |l| logic(l, "or");
    /// True where exactly one is not zero (`torch.logical_xor`).
    ///
    /// `tensor([true, true]).logical_xor(&tensor([true, false]))` is `[false, true]`.
    pub fn logical_xor => LOGICAL_XOR rules::compare, |l| logic(l, "xor");
}

fn where_rule(s: &Sig) -> Rule {
    if s.dtype(0) != DType::Bool {
        return Err(format!("the condition is {}, expected bool: make one with a comparison", s.dtype(0)));
    }
    let shape = rules::broadcast_shapes(s)?;
    Ok(Type::new(rules::promote(&s.inputs[1..])?, shape))
}

static WHERE: Entry = Entry::new("where", where_rule, |l| {
    let shape = l.out.shape.clone();
    let c = l.x(0);
    let c = l.broadcast(&c, &shape);
    let (a, b) = (l.fit(1), l.fit(2));
    l.select(&c, &a, &b)
})
.samples(|| vec![Sample::of(&[]).and(DType::Bool, &[2, 3]).then(&[&[2, 3], &[3]])])
.grad(|g| {
    let zero = g.dy.zeros_like();
    vec![None, g.want(1, || where_(g.x(0), &g.dy, &zero)), g.want(2, || where_(g.x(0), &zero, &g.dy))]
})
.bucket(bucket::each);

pub(super) static OPS: &[&Entry] = &[&EQ, &NE, &LT, &LE, &GT, &GE, &LOGICAL_AND, &LOGICAL_OR, &LOGICAL_XOR, &WHERE];

/// `yes` where the condition is true, `no` elsewhere (`torch.where`); all three broadcast.
///
/// ```
/// use xlazy::prelude::*;
/// let x = tensor([-1.0, 2.0]);
/// assert_eq!(where_(&x.gt(0.0), &x, 0.0).to_vec::<f32>(), [0.0, 2.0]);
/// ```
#[track_caller]
pub fn where_<'a>(condition: &'a Tensor, yes: impl Into<Arg<'a>>, no: impl Into<Arg<'a>>) -> Tensor {
    trace(&WHERE, [condition.into(), yes.into(), no.into()], [])
}

impl Tensor {
    /// This tensor where the condition is true, `other` elsewhere (`torch.Tensor.where`).
    ///
    /// `tensor([1.0, -2.0]).where_(&tensor([true, false]), 0.0)` is `[1., 0.]`.
    #[track_caller]
    pub fn where_<'a>(&'a self, condition: &'a Tensor, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&WHERE, [condition.into(), self.into(), other.into()], [])
    }

    /// `value`, as an element of this tensor's dtype, where the mask is true, this tensor elsewhere
    /// (`torch.Tensor.masked_fill`).
    ///
    /// `tensor([1.0, 2.0]).masked_fill(&tensor([true, false]), 0.0)` is `[0., 2.]`.
    #[track_caller]
    pub fn masked_fill<'a>(&'a self, mask: &'a Tensor, value: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("masked_fill", [self, mask]);
        let value = self.element("masked_fill", value.into());
        trace(&WHERE, [mask.into(), value, self.into()], []).to(self.dtype())
    }

    /// A value as one of this tensor's elements: integers cut floats, bools are whether it is not 0. A number beyond what the
    /// dtype holds is refused, in torch's words.
    #[track_caller]
    pub(super) fn element<'a>(&self, op: &'static str, value: Arg<'a>) -> Arg<'a> {
        let dtype = self.dtype();
        let number = match value {
            Arg::Tensor(t) if t.dtype().category() > dtype.category() => return Arg::Owned(t.to(dtype)),
            Arg::Owned(t) if t.dtype().category() > dtype.category() => return Arg::Owned(t.to(dtype)),
            Arg::Scalar(s) => s,
            other => return other,
        };
        let v = number.as_f64();
        let most = dtype.most();
        let fits = match dtype.category() {
            Category::Bool => true,
            // what is negative wraps around in unsigned ones
            Category::Int => v.trunc() <= most && v.trunc() >= if dtype.is_unsigned() { -most } else { -most - 1.0 },
            Category::Float | Category::Complex => v.abs() <= most || !v.is_finite(),
        };
        if !fits {
            refuse(
                op,
                &[self],
                format!("value {v} cannot be converted to type {} without overflow", dtype.torch_name()),
            );
        }
        match (dtype.category(), number) {
            (Category::Bool, _) => Arg::Scalar(Scalar::Bool(v != 0.0)),
            (Category::Int, Scalar::Float(f)) => Arg::Scalar(Scalar::Int(f as i64)),
            _ => Arg::Scalar(number),
        }
    }

    /// True where the two are close: `|a - b| <= atol + rtol · |b|` (`torch.isclose`).
    ///
    /// `tensor([1.0, 2.0]).isclose(&tensor([1.0, 2.1]), 1e-5, 1e-8)` is `[true, false]`.
    #[track_caller]
    pub fn isclose(&self, other: &Tensor, rtol: f64, atol: f64) -> Tensor {
        let _call = called("isclose", [self, other]);
        if rtol < 0.0 || atol < 0.0 {
            refuse("isclose", &[self, other], format!("tolerances cannot be negative, as {rtol} or {atol} is"));
        }
        if self.dtype() == DType::Bool {
            return self.long().isclose(&other.long(), rtol, atol);
        }
        let whole = (other.dtype() == DType::Bool).then(|| other.long());
        let other = whole.as_ref().unwrap_or(other);
        let close = (self - other).abs().le(&(other.abs() * rtol + atol));
        close.logical_or(self.eq(other))
    }

    /// Whether all elements are close (`torch.allclose`, with its default tolerances). Runs what both need.
    ///
    /// `tensor([1.0]).allclose(&tensor([1.0 + 1e-9]))` is `true`.
    #[track_caller]
    pub fn allclose(&self, other: &Tensor) -> bool {
        let _call = called("allclose", [self, other]);
        self.isclose(other, 1e-5, 1e-8).all().item() != 0.0
    }
}
