//! Positions that lie outside of what they name. Where the host knows them, in index tensors made of the host's numbers, as
//! they are or in another shape or width, they are refused at once. What a program computes, the program looks at while it runs
//! (`run/checks.rs`), by what the ops here ask for. `XLAZY_CHECK_INDICES=off` looks at nothing: reading beyond the end then
//! gives the last element, and writing there does nothing.
use crate::tensor::{Tensor, refuse};
use xlazy_core::ir::{AttrsExt, Check, Kind, Refused, Sig, graph};
use xlazy_core::run::checks_are_on;
use xlazy_core::ty::Category;

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
