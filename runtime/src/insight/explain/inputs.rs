//! The data that two programs start from, compared.
use super::super::record::{LeafRecord, Record};
use super::super::report::{Difference, Place};
use xlazy_core::ty::Type;
use xlazy_mime::count;

/// The data that a program starts from: the line of each, and its type.
pub(super) fn kinds(r: &Record) -> Vec<(u64, String)> {
    let mut all: Vec<_> = r.leaves.iter().filter(|l| !l.scalar).map(|l| (l.line, l.ty.to_string())).collect();
    all.sort_unstable();
    all
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Shape,
    Dtype,
    /// There are more or fewer inputs.
    Count,
}

pub(super) struct InputDifference {
    pub kind: Kind,
    pub at: Place,
    pub line: u64,
    pub name: Option<String>,
    pub was: Option<Type>,
    pub now: Option<Type>,
    pub was_at: Option<Place>,
    pub was_line: Option<u64>,
    /// Whether an op made it; and the one that was.
    pub computed: bool,
    pub was_computed: bool,
    pub parameter: bool,
    pub finder: Option<&'static str>,
    /// When the new input was made.
    pub seq: Option<u64>,
}

/// Inputs are paired by line and type, then by name, where there are more or fewer of them by type, then by line; what is left
/// is paired in order where there are as many.
pub(super) fn input_differences(new: &Record, old: &Record, same_ops: bool) -> Vec<InputDifference> {
    let data = |r: &'_ Record| -> Vec<LeafRecord> { r.leaves.iter().filter(|l| !l.scalar).cloned().collect() };
    let (n, o) = (data(new), data(old));
    let mut out = Vec::new();
    let difference = |kind: Kind, now: Option<&LeafRecord>, was: Option<&LeafRecord>| {
        let l = now.or(was).expect("one of both");
        InputDifference {
            kind,
            at: l.at,
            line: l.line,
            name: l.name.clone(),
            was: was.map(|l| l.ty.clone()),
            now: now.map(|l| l.ty.clone()),
            was_at: was.map(|l| l.at),
            was_line: was.map(|l| l.line),
            computed: l.computed,
            was_computed: was.is_some_and(|l| l.computed),
            parameter: l.parameter,
            finder: l.finder,
            seq: now.map(|l| l.seq),
        }
    };
    let mut pair = |n: &LeafRecord, o: &LeafRecord| {
        if n.ty != o.ty {
            let kind = if n.ty.dtype != o.ty.dtype { Kind::Dtype } else { Kind::Shape };
            out.push(difference(kind, Some(n), Some(o)));
        }
    };
    let in_order = n.len() == o.len() && n.iter().zip(&o).all(|(n, o)| n.ty == o.ty);
    // The same inputs in another order differ in their wiring.
    if n.len() == o.len() && kinds(new) == kinds(old) && (in_order || !same_ops) {
        return out;
    }
    let mut partners: Vec<Option<usize>> = vec![None; n.len()];
    let mut rest: Vec<Option<&LeafRecord>> = o.iter().map(Some).collect();
    let rank = |l: &LeafRecord| l.ty.shape.len();
    type Fits<'a> = &'a dyn Fn(&LeafRecord, &LeafRecord) -> bool;
    let exact: Fits = &|a, b| a.line == b.line && a.ty == b.ty;
    let name: Fits = &|a, b| a.name.is_some() && a.name == b.name;
    // A line that makes more of them than before has made another one.
    let made = |all: &[LeafRecord], line: u64| all.iter().filter(|l| l.line == line).count();
    let line: Fits = &|a, b| a.line == b.line && rank(a) == rank(b) && made(&n, a.line) == made(&o, a.line);
    let alike: Fits = &|a, b| n.len() != o.len() && a.ty == b.ty;
    // The same ops take the same inputs at the same places, whatever made them.
    let phases: &[Fits] = if same_ops && n.len() == o.len() { &[] } else { &[exact, name, alike, line] };
    for fits in phases {
        for (x, partner) in n.iter().zip(&mut partners).filter(|(_, p)| p.is_none()) {
            *partner = rest.iter().position(|r| r.is_some_and(|r| fits(x, r)));
            if let Some(i) = *partner {
                rest[i] = None;
            }
        }
    }
    if n.len() == o.len() {
        let mut left = (0..o.len()).filter(|&i| rest[i].take().is_some()).collect::<Vec<_>>().into_iter();
        partners.iter_mut().filter(|p| p.is_none()).for_each(|p| *p = left.next());
    }
    let mut unpaired = Vec::new();
    for (x, partner) in n.iter().zip(partners) {
        match partner {
            Some(i) => pair(x, &o[i]),
            None => unpaired.push(x),
        }
    }
    out.extend(unpaired.into_iter().map(|x| difference(Kind::Count, Some(x), None)));
    out.extend(rest.into_iter().flatten().map(|r| difference(Kind::Count, None, Some(r))));
    out
}

/// The inputs that gradients were computed of in one program and not in the other.
#[derive(Default)]
pub(super) struct Trained<'a> {
    pub frozen: Vec<&'a LeafRecord>,
    pub thawed: Vec<&'a LeafRecord>,
}

fn of(r: &Record, trained: bool) -> Vec<&LeafRecord> {
    r.leaves.iter().filter(|l| !l.scalar && l.parameter == trained).collect()
}

/// What of these there is beyond as many of the type.
fn beyond<'a>(mut all: Vec<&'a LeafRecord>, less: Vec<&LeafRecord>) -> Vec<&'a LeafRecord> {
    for l in less {
        let same = |a: &&LeafRecord| a.ty == l.ty;
        let named = |a: &&LeafRecord| same(a) && a.name == l.name;
        if let Some(i) = all.iter().position(named).or_else(|| all.iter().position(same)) {
            all.swap_remove(i);
        }
    }
    all
}

/// Those that have the type of one of the others, each of which counts once.
fn among<'a>(mut all: Vec<&'a LeafRecord>, others: &[&LeafRecord]) -> Vec<&'a LeafRecord> {
    let mut types: Vec<&Type> = others.iter().map(|l| &l.ty).collect();
    all.retain(|l| types.iter().position(|ty| **ty == l.ty).map(|i| types.swap_remove(i)).is_some());
    all
}

/// Parameters that were frozen or thawed: those that `requires_grad_` was said of in between. Where it was not, as many inputs
/// of a type less are trained, and as many more are not.
pub(super) fn trained<'a>(new: &'a Record, old: &'a Record) -> Option<Trained<'a>> {
    let (less, more) = (beyond(of(old, true), of(new, true)), beyond(of(new, true), of(old, true)));
    // A frozen tensor is the same one until it is thawed.
    let still = |r: &'a Record, other: &Record| -> Vec<&'a LeafRecord> {
        let there = |l: &&LeafRecord| other.leaves.iter().any(|o| o.frozen.is_some() && o.seq == l.seq);
        r.leaves.iter().filter(|l| l.frozen.is_some()).filter(|l| !there(l)).collect()
    };
    let told = Trained { frozen: among(still(new, old), &less), thawed: among(still(old, new), &more) };
    if !told.frozen.is_empty() || !told.thawed.is_empty() {
        return Some(told);
    }
    // What one program trains beyond the other, the other has without training it. There it is a variable's still: a step
    // that trains it gives the variable another value.
    let frozen = among(beyond(of(new, false), of(old, false)), &less);
    if !frozen.is_empty() {
        return Some(Trained { frozen, thawed: vec![] });
    }
    let thawed = among(beyond(of(old, false), of(new, false)), &more);
    (!thawed.is_empty()).then_some(Trained { frozen, thawed })
}

pub(super) fn shown(inputs: &[InputDifference], kind: Kind) -> Vec<Difference> {
    // What was selected by positions has as many elements as these; the tensor of them is nobody's.
    let hidden = |d: &InputDifference| d.finder.filter(|op| *op != "nonzero");
    let text = |d: &InputDifference, t: &Option<Type>| match t {
        None => "none".to_owned(),
        Some(t) if hidden(d).is_some() => count(t.shape.numel(), "element"),
        Some(t) => t.to_string(),
    };
    let what = |d: &InputDifference| match (hidden(d), &d.name, d.finder) {
        (None, Some(name), None) => format!("`{name}`"),
        (_, _, Some(op)) => format!("the result of `{op}`"),
        _ => "input".into(),
    };
    inputs
        .iter()
        .filter(|d| d.kind == kind)
        .map(|d| Difference {
            what: what(d),
            was: text(d, &d.was),
            now: text(d, &d.now),
            was_at: d.was_at,
            now_at: d.now.is_some().then_some(d.at),
        })
        .collect()
}
