//! Positions that lie outside of what they name. Where the host knows them, in index tensors made of the host's numbers, as
//! they are or in another shape or width, they are refused at once. What a program computes, the program looks at while it runs
//! (`run/checks.rs`), by what the ops here ask for. `XLAZY_CHECK_INDICES=off` looks at nothing: reading beyond the end then
//! gives the last element, and writing there does nothing.
use crate::bucket;
use crate::tensor::{Entry, Sample, Tensor, refuse, trace};
use xlazy_core::ir::Role::Size;
use xlazy_core::ir::{AttrsExt, Check, Kind, Refused, Rule, Sig, attr, graph, rules};
use xlazy_core::run::checks_are_on;
use xlazy_core::ty::{Category, DType};

/// Operand `index` names elements of dimension `dim` of the first operand; from the end where `negative`.
pub(super) fn positions(s: &Sig, index: usize, dim: usize, negative: bool) -> Check {
    let n = s.shape(0).get(dim).copied().unwrap_or(1) as i64;
    let negative = negative && !s.dtype(index).is_unsigned();
    let refused = Refused::Outside { low: if negative { -n } else { 0 }, high: n };
    Check { operand: index, refused, why: format!("index {{}} is out of bounds for dimension {dim} with size {n}") }
}

/// As [`positions`], of the operands from `first` on, each of which names elements of one of the dimensions that the first
/// attribute lists.
pub(super) fn all_positions(s: &Sig, first: usize, negative: bool) -> Vec<Check> {
    let dims = s.attrs.dims(0);
    dims.iter().enumerate().map(|(k, &dim)| positions(s, first + k, dim, negative)).collect()
}

/// The second operand divides integers by its elements.
pub(super) fn divisors(s: &Sig) -> Vec<Check> {
    match s.inputs.iter().all(|t| t.dtype.category() <= Category::Int) {
        true => vec![Check { operand: 1, refused: Refused::Zero, why: BY_ZERO.into() }],
        false => vec![],
    }
}

/// Said of integers.
pub(super) const BY_ZERO: &str = "ZeroDivisionError: integers cannot be divided by zero";

/// The least and the greatest element, where the host knows them.
fn known_range(index: &Tensor) -> Option<(i64, i64)> {
    let g = graph();
    let mut n = g.node(index.id());
    if n.ty.shape.numel() == 0 {
        return None;
    }
    loop {
        if let Some(data) = n.data() {
            return data.range;
        }
        let &[of] = n.inputs.as_slice() else { return None };
        let inner = g.node(of);
        let same = match n.op.kind {
            Kind::View => true,
            Kind::Convert => {
                n.ty.dtype.size() >= inner.ty.dtype.size() && n.ty.dtype.category() == inner.ty.dtype.category()
            }
            _ => false,
        };
        if !same {
            return None;
        }
        n = inner;
    }
}

/// Refuses positions that are known to lie outside of dimension `dim` of `x`; from the end where `negative`.
#[track_caller]
pub(super) fn within(op: &'static str, x: &Tensor, dim: usize, index: &Tensor, negative: bool) {
    let Some((least, greatest)) = checks_are_on().then(|| known_range(index)).flatten() else { return };
    let n = x.shape().get(dim).copied().unwrap_or(1) as i64;
    let first = if negative { -n } else { 0 };
    if let Some(wrong) = [least, greatest].into_iter().find(|i| !(first..n).contains(i)) {
        refuse(op, &[x, index], format!("index {wrong} is out of bounds for dimension {dim} with size {n}"));
    }
}

/// As [`within`], for index tensors each of which names elements of one of `dims`.
#[track_caller]
pub(super) fn all_within(op: &'static str, x: &Tensor, indices: &[&Tensor], dims: &[usize]) {
    for (index, &dim) in indices.iter().zip(dims) {
        within(op, x, dim, index, true);
    }
}

/// Refuses class indices that are known to name none of `classes`; `ignored` names none and is left alone.
#[track_caller]
pub(super) fn classes(op: &'static str, x: &Tensor, target: &Tensor, classes: usize, ignored: i64) {
    let Some((least, greatest)) = checks_are_on().then(|| known_range(target)).flatten() else { return };
    let wrong = |t: &i64| *t != ignored && !(0..classes as i64).contains(t);
    if let Some(wrong) = [least, greatest].into_iter().find(wrong) {
        refuse(op, &[x, target], format!("Target {wrong} is out of bounds: there are {classes} classes, from 0 on"));
    }
}

/// The first operand as it is: what looks at it, and at the second, for the op of this name.
const fn looked_at(name: &'static str, rule: fn(&Sig) -> Rule, checks: fn(&Sig) -> Vec<Check>) -> Entry {
    Entry::new(name, rule, |l| l.x(0)).checks(checks).bucket(bucket::each)
}

fn whole(s: &Sig) -> Rule {
    match s.dtype(0).category() {
        Category::Int => rules::same(s),
        _ => Err(format!("needs integers, not {}", s.dtype(0))),
    }
}

fn floats(s: &Sig) -> Rule {
    match s.dtype(0).category() {
        Category::Float => rules::same(s),
        _ => Err(format!("needs floats, not {}", s.dtype(0))),
    }
}

/// Floats of operand `operand` that are no probabilities.
pub(super) fn fractions(operand: usize, what: &str) -> Check {
    let why = format!("all elements of {what} should be between 0 and 1");
    Check { operand, refused: Refused::Beyond { low: 0.0, high: 1.0 }, why }
}

static CLASSES: Entry = looked_at("one_hot", whole, |s| {
    let n = s.attrs.index(0) as i64;
    let why = format!("class {{}} is out of bounds: there are {n} classes, from 0 on");
    vec![Check { operand: 0, refused: Refused::Outside { low: 0, high: n }, why }]
})
.attrs(&[attr("num_classes", Size)])
.samples(|| vec![Sample::of(&[]).index(&[2, 3], 4).attrs(vec![4usize.into()])]);

static REPEATS: Entry = looked_at("repeat_interleave", whole, |_| {
    let refused = Refused::Outside { low: 0, high: i64::MAX };
    vec![Check { operand: 0, refused, why: "repeats cannot be negative, as {} is".into() }]
})
.samples(|| vec![Sample::of(&[]).index(&[3], 4)]);

static CHANCES: Entry = looked_at("bernoulli", floats, |_| vec![fractions(0, "the input")])
    .samples(|| vec![Sample::of(&[&[2, 3]]).range(0.1, 0.9)]);

static RATES: Entry = looked_at("poisson", floats, |_| {
    let refused = Refused::Beyond { low: 0.0, high: f64::INFINITY };
    vec![Check { operand: 0, refused, why: "rates and counts are not negative".into() }]
})
.samples(|| vec![Sample::of(&[&[2, 3]]).range(0.1, 0.9)]);

static WEIGHTS: Entry = looked_at("multinomial", floats, |_| {
    let refused = Refused::Beyond { low: 0.0, high: f64::INFINITY };
    let why = "the weights contain infinity, NaN or a number below 0".into();
    let none = "the weights of a distribution are all 0".into();
    vec![Check { operand: 0, refused, why }, Check { operand: 1, refused: Refused::Zero, why: none }]
})
.samples(|| vec![Sample::of(&[&[2, 3]]).range(0.1, 0.9).and(DType::I64, &[2, 1])]);

pub(super) static OPS: &[&Entry] = &[&CLASSES, &REPEATS, &CHANCES, &RATES, &WEIGHTS];

/// Refuses what the host knows of integers, which a program is not asked then.
#[track_caller]
pub(super) fn known_within(op: &'static str, x: &Tensor, low: i64, high: i64, why: impl FnOnce(i64) -> String) {
    let Some((least, greatest)) = checks_are_on().then(|| known_range(x)).flatten() else { return };
    if let Some(wrong) = [least, greatest].into_iter().find(|v| !(low..high).contains(v)) {
        refuse(op, &[x], why(wrong));
    }
}

/// Indices that are looked at: each names one of `n` classes.
#[track_caller]
pub(super) fn known_classes(index: &Tensor, n: i64) -> Tensor {
    let why = |class| format!("class {class} is out of bounds: there are {n} classes, from 0 on");
    known_within("one_hot", index, 0, n, why);
    trace(&CLASSES, [index.into()], [(n as usize).into()])
}

/// Counts that are looked at: none is negative.
#[track_caller]
pub(super) fn counts(repeats: &Tensor) -> Tensor {
    known_within("repeat_interleave", repeats, 0, i64::MAX, |n| format!("repeats cannot be negative, as {n} is"));
    trace(&REPEATS, [repeats.into()], [])
}

/// Probabilities that are looked at.
#[track_caller]
pub(super) fn chances(p: &Tensor) -> Tensor {
    trace(&CHANCES, [p.into()], [])
}

/// Numbers that are looked at: none is negative.
#[track_caller]
pub(super) fn rates(x: &Tensor) -> Tensor {
    trace(&RATES, [x.into()], [])
}

/// Weights of distributions in the last dimension that are looked at.
#[track_caller]
pub(super) fn distributions(weights: &Tensor) -> Tensor {
    let some = weights.sum_dim(-1, true).gt(0.0).long();
    trace(&WEIGHTS, [weights.into(), (&some).into()], [])
}
