//! What attributes follow from: sizes that inputs have, or nothing else.
use std::cell::Cell;
use xlazy_core::ir::{Attr, Bodies, Role, Step};
use xlazy_core::ty::{DType, Type};

/// How inputs have changed, each with the number of what explains it: `(now, was, root)`.
#[derive(Default)]
pub(crate) struct Became {
    pub sizes: Vec<(i64, i64, usize)>,
    /// How many elements there are, in all and along the dimensions that changed.
    pub amounts: Vec<(f64, f64, usize)>,
    pub dtypes: Vec<(DType, DType, usize)>,
}

/// The input that explains that an op's sizes are others: every number that changed did so as one of its sizes, by itself or
/// as a factor. Which dimension and which way follow from no size; a position does where what it takes from something
/// that is as long as it was is as long as the input.
pub(crate) fn resized(new: &Step, old: &Step, operands: &[(&Type, &Type)], became: &Became) -> Option<usize> {
    let by = Cell::new(None);
    let along = along(new);
    let sizes = |a: &Type, b: &Type, d: usize| Some((*a.shape.get(d)? as i64, *b.shape.get(d)? as i64));
    let given = |d: Option<usize>| {
        let (a, b) = operands.first()?;
        let (now, was) = sizes(a, b, d?)?;
        sizes(&new.ty, &old.ty, d?).filter(|_| now == was)
    };
    let one = |role: Role, d: Option<usize>, x: i64, y: i64| {
        let fits = |&&(now, was, _): &&(i64, i64, usize)| {
            let factor = now != 0 && was != 0 && x % now == 0 && y % was == 0 && x / now == y / was;
            match role {
                Role::Size | Role::Stride => x - y == now - was || factor,
                Role::Constant => factor,
                Role::Position => given(d) == Some((now, was)),
                Role::Axis | Role::Mode | Role::Dtype | Role::Device | Role::Sharding | Role::Body => false,
            }
        };
        let found = became.sizes.iter().find(fits).map(|f| f.2);
        by.set(by.get().or(found));
        found.is_some()
    };
    let scaled = |x: f64, y: f64| {
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.abs().max(b.abs());
        let sizes = became.sizes.iter().map(|&(now, was, r)| (now as f64, was as f64, r));
        let mut all = sizes.chain(became.amounts.iter().copied());
        let found = all.find(|&(now, was, _)| close(x * was, y * now) || close(x * now, y * was)).map(|f| f.2);
        by.set(by.get().or(found));
        found.is_some()
    };
    let attr = |(k, (a, b)): (usize, (&Attr, &Attr))| match (a, b) {
        _ if a == b => true,
        (Attr::Int(x), Attr::Int(y)) => one(new.op.attrs[k].role, along, *x, *y),
        (Attr::Ints(x), Attr::Ints(y)) if x.len() == y.len() => {
            let mut all = x.iter().zip(y.iter()).enumerate();
            all.all(|(d, (x, y))| x == y || one(new.op.attrs[k].role, Some(d), *x, *y))
        }
        // Numbers of elements, or parts of one: what a mean is divided by.
        (Attr::Float(x), Attr::Float(y)) if new.op.attrs[k].role == Role::Constant => scaled(*x, *y),
        (Attr::Floats(x), Attr::Floats(y)) if x.len() == y.len() && new.op.attrs[k].role == Role::Constant => {
            x.iter().zip(y.iter()).all(|(x, y)| x == y || scaled(*x, *y))
        }
        // The same ops on operands of other sizes.
        (Attr::Region(_), Attr::Region(_)) if Bodies::of(a).is_like(Bodies::of(b)) => {
            let found = became.sizes.first().map(|f| f.2);
            by.set(by.get().or(found));
            found.is_some()
        }
        (Attr::DType(x), Attr::DType(y)) => {
            let found = became.dtypes.iter().find(|(now, was, _)| (now, was) == (x, y)).map(|f| f.2);
            by.set(by.get().or(found));
            found.is_some()
        }
        _ => false,
    };
    let all = new.attrs.iter().zip(&old.attrs).enumerate().all(attr);
    by.get().filter(|_| all)
}

/// The dimension along which an op works, where it is one.
fn along(step: &Step) -> Option<usize> {
    step.op.attrs.iter().zip(&step.attrs).find_map(|(def, a)| match a {
        Attr::Int(axis) if def.role == Role::Axis => usize::try_from(*axis).ok(),
        _ => None,
    })
}

/// Sizes of a dimension that differ, where there are as many dimensions: `(new, old)`.
pub(crate) fn changes(new: &Type, old: &Type) -> impl Iterator<Item = (i64, i64)> {
    let all = if new.shape.len() == old.shape.len() { &new.shape[..] } else { &[] };
    all.iter().zip(old.shape.iter()).filter(|(a, b)| a != b).map(|(a, b)| (*a as i64, *b as i64))
}

/// What of an op's attributes other sizes of its operands do not decide, as far as their roles tell.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Own {
    Nothing,
    /// Positions that moved as the end of what they are in did.
    Moved,
    Attributes,
}

/// Whether attributes differ by themselves; `operands` are the types of each in both.
pub(crate) fn of_its_own(new: &Step, old: &Step, operands: &[(&Type, &Type)]) -> Own {
    let ranks = new.inputs.len() == old.inputs.len() && operands.iter().all(|(a, b)| a.shape.len() == b.shape.len());
    if !ranks || new.op.id != old.op.id {
        return Own::Nothing;
    }
    let axis = along(new);
    // How much longer what the positions are in has become, along a dimension.
    let longer = |d: usize| {
        let (a, b) = operands.first()?;
        Some(*a.shape.get(d)? as i64 - *b.shape.get(d)? as i64)
    };
    let moved = |a: &Attr, b: &Attr| match (a, b) {
        (Attr::Int(x), Attr::Int(y)) => axis.and_then(longer) == Some(x - y),
        (Attr::Ints(x), Attr::Ints(y)) => {
            x.iter().zip(y.iter()).enumerate().all(|(d, (x, y))| x == y || longer(d) == Some(x - y))
        }
        _ => false,
    };
    // As large as what it is applied to, all of it: a window over the whole of something.
    let whole = |a: &Attr, b: &Attr| match (a, b) {
        (Attr::Ints(x), Attr::Ints(y)) if x.len() == y.len() => {
            let of = |ty: &Type, d: usize| ty.shape.get(d).map(|s| *s as i64);
            let first = operands.first();
            (0..x.len())
                .all(|d| x[d] == y[d] || first.is_some_and(|(a, b)| of(a, d) == Some(x[d]) && of(b, d) == Some(y[d])))
        }
        _ => false,
    };
    let mut own = Own::Nothing;
    for k in (0..new.attrs.len().min(old.attrs.len())).filter(|&k| new.attrs[k] != old.attrs[k]) {
        let (a, b) = (&new.attrs[k], &old.attrs[k]);
        let comparable = match (a, b) {
            (Attr::Ints(a), Attr::Ints(b)) => a.len() == b.len(),
            (Attr::Floats(a), Attr::Floats(b)) => a.len() == b.len(),
            _ => true,
        };
        match new.op.attrs[k].role {
            Role::Mode => return Own::Attributes,
            Role::Body if operands.iter().all(|(x, y)| x == y) => return Own::Attributes,
            Role::Body if !Bodies::of(a).is_like(Bodies::of(b)) => return Own::Attributes,
            _ if whole(a, b) => {}
            Role::Position if moved(a, b) => own = Own::Moved,
            Role::Axis | Role::Position | Role::Constant | Role::Stride if comparable => return Own::Attributes,
            _ => {}
        }
    }
    own
}
