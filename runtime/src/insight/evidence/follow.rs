//! What attributes follow from: sizes that inputs have, or nothing else.
use xlazy_core::ir::{Attr, Role, Step};

/// The input that explains that an op's sizes are others: every number that changed did so as one of its sizes, by itself or
/// as a factor.
pub(crate) fn resized(new: &Step, old: &Step, became: &[(i64, i64, usize)]) -> Option<usize> {
    let mut by = None;
    let mut one = |x: i64, y: i64| {
        let fits = |&&(now, was, _): &&(i64, i64, usize)| {
            x - y == now - was || now != 0 && was != 0 && x % now == 0 && y % was == 0 && x / now == y / was
        };
        let found = became.iter().find(fits).map(|f| f.2);
        by = by.or(found);
        found.is_some()
    };
    let attr = |(a, b): (&Attr, &Attr)| match (a, b) {
        _ if a == b => true,
        (Attr::Int(x), Attr::Int(y)) => one(*x, *y),
        (Attr::Ints(x), Attr::Ints(y)) if x.len() == y.len() => {
            x.iter().zip(y.iter()).all(|(x, y)| x == y || one(*x, *y))
        }
        _ => false,
    };
    let all = new.attrs.iter().zip(&old.attrs).all(attr);
    by.filter(|_| all)
}

/// Whether an attribute differs that other sizes of the operands do not decide, as far as its role tells.
pub(crate) fn of_its_own(new: &Step, old: &Step, same_rank: impl Fn(usize) -> bool) -> bool {
    let ranks = new.inputs.len() == old.inputs.len() && (0..new.inputs.len()).all(same_rank);
    let differs = |k: usize| new.attrs[k] != old.attrs[k];
    ranks
        && new.op.id == old.op.id
        && (0..new.attrs.len().min(old.attrs.len())).filter(|&k| differs(k)).any(|k| match new.op.attrs[k].role {
            Role::Mode => true,
            Role::Axis | Role::Position | Role::Constant | Role::Stride => match (&new.attrs[k], &old.attrs[k]) {
                (Attr::Ints(a), Attr::Ints(b)) => a.len() == b.len(),
                (Attr::Floats(a), Attr::Floats(b)) => a.len() == b.len(),
                _ => true,
            },
            Role::Size | Role::Dtype | Role::Device => false,
        })
}
