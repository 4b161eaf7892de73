//! Positions that lie outside of what they name, where the host knows them: in index tensors made of the host's numbers, as
//! they are or in another shape or width. What a program computes is not looked at: reading beyond the end then gives the
//! last element, and writing there does nothing. `XLAZY_CHECK_INDICES=off` looks at nothing.
use crate::tensor::{Tensor, refuse};
use std::sync::LazyLock;
use xlazy_core::ir::{Kind, graph};

static CHECKED: LazyLock<bool> = LazyLock::new(|| std::env::var("XLAZY_CHECK_INDICES").as_deref() != Ok("off"));

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
    let Some((least, greatest)) = (*CHECKED).then(|| known_range(index)).flatten() else { return };
    let n = x.shape().get(dim).copied().unwrap_or(1) as i64;
    let first = if negative { -n } else { 0 };
    if let Some(wrong) = [least, greatest].into_iter().find(|i| !(first..n).contains(i)) {
        refuse(op, &[x, index], format!("index {wrong} is out of bounds for dimension {dim} with size {n}"));
    }
}

/// As [`within`], for index tensors each of which names elements of one of `dims`.
#[track_caller]
pub(super) fn all_within(x: &Tensor, indices: &[&Tensor], dims: &[usize]) {
    for (index, &dim) in indices.iter().zip(dims) {
        within("index", x, dim, index, true);
    }
}

/// Refuses class indices that are known to name none of `classes`; `ignored` names none and is left alone.
#[track_caller]
pub(super) fn classes(op: &'static str, x: &Tensor, target: &Tensor, classes: usize, ignored: i64) {
    let Some((least, greatest)) = (*CHECKED).then(|| known_range(target)).flatten() else { return };
    let wrong = |t: &i64| *t != ignored && !(0..classes as i64).contains(t);
    if let Some(wrong) = [least, greatest].into_iter().find(wrong) {
        refuse(op, &[x, target], format!("Target {wrong} is out of bounds: there are {classes} classes, from 0 on"));
    }
}
