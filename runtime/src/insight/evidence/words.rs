//! What differs, in words.
use super::{Evidence, Ops, What};
use crate::insight::record::{LeafRecord, Record, same_place};
use crate::insight::report::{Difference, Place};
use std::collections::BTreeMap;
use xlazy_core::ir::{Attr, Bodies, BodyDifference, BodyStep, Input, Kind, Step};
use xlazy_core::text::called;
use xlazy_mime::count;

/// A step in a few words. What computes nothing is named as the call that made it: `detach`, `copy`.
pub(crate) fn describe(step: &Step) -> String {
    let call = if step.op.is_identity() { called(step.at) } else { None };
    format!("{} → {}", call.as_deref().unwrap_or(step.op.torch_name()), step.ty)
}

/// `a number (i64)`, or as many as an attribute has that healing made a parameter: `3 numbers (i64)`.
pub(crate) fn number(leaf: &LeafRecord) -> String {
    let many = (!leaf.ty.shape.is_empty()).then(|| count(leaf.ty.shape.numel(), "number"));
    format!("{} ({})", many.as_deref().unwrap_or("a number"), leaf.ty.dtype.name())
}

/// An input's difference.
pub(crate) fn input(new: &LeafRecord, old: &LeafRecord) -> Difference {
    // What was selected by positions has as many elements as these; the tensor of them is nobody's.
    let hidden = new.finder.filter(|_| new.made_by.kind == Kind::Chosen);
    let text = |l: &LeafRecord| match (l.scalar, hidden) {
        (true, _) => number(l),
        (false, Some(_)) if new.scalar || old.scalar => l.ty.to_string(),
        (false, Some(_)) => count(l.ty.shape.numel(), "element"),
        _ => l.ty.to_string(),
    };
    let what = match (hidden, &new.name, new.finder) {
        (None, Some(name), None) => format!("`{name}`"),
        (_, _, Some(op)) => format!("the result of `{op}`"),
        _ => "input".into(),
    };
    Difference { what, was: text(old), now: text(new), was_at: Some(old.at), now_at: Some(new.at) }
}

/// An input that was not there.
pub(crate) fn gained(leaf: &LeafRecord) -> Difference {
    alone(leaf, Difference::gained)
}

/// What only one of both has, by [`Difference::gained`] or [`Difference::lost`].
type Alone = fn(&str, String, Place) -> Difference;

fn alone(leaf: &LeafRecord, say: Alone) -> Difference {
    let what = leaf.name.as_ref().map_or("input".to_owned(), |name| format!("input `{name}`"));
    say(&what, leaf.ty.to_string(), leaf.at)
}

/// Ops that came or went, as differences: inputs that they bring first, then where they begin, then the rest.
pub(crate) fn ops(e: &Evidence, ops: &Ops) -> Vec<Difference> {
    let leaves = |r: &Record, all: &[u32], say: Alone| -> Vec<Difference> {
        all.iter().map(|&l| alone(&r.leaves[l as usize], say)).collect()
    };
    let mut all = leaves(e.new, &ops.gains, Difference::gained);
    all.extend(leaves(e.old, &ops.loses, Difference::lost));
    let steps = |r: &Record, all: &[u32], heads: &[u32], say: Alone| -> Vec<Difference> {
        // Gradients and updates come after what they are of.
        let rank = |i: &u32| (r.derived(*i).is_some(), !heads.contains(i), *i);
        let mut all: Vec<u32> = all.to_vec();
        all.sort_by_key(rank);
        all.iter().map(|&i| &r.steps[i as usize]).map(|s| say("op", describe(s), s.at)).collect()
    };
    all.extend(steps(e.new, &ops.new, &ops.heads_new, Difference::gained));
    all.extend(steps(e.old, &ops.old, &ops.heads_old, Difference::lost));
    all
}

/// The first attribute that differs.
pub(crate) fn attribute(e: &Evidence, pair: (u32, u32)) -> Option<Difference> {
    let (a, b) = e.pair(pair);
    let k = a.attrs.iter().zip(&b.attrs).position(|(x, y)| x != y)?;
    if let (Attr::Region(_), Attr::Region(_)) = (&a.attrs[k], &b.attrs[k])
        && let Some(differs) = body(a, b, k)
    {
        return Some(differs);
    }
    Some(Difference {
        what: format!("attribute `{}` of {}", a.op.attrs[k].name, a.op.torch_name()),
        was: b.attrs[k].to_string(),
        now: a.attrs[k].to_string(),
        was_at: Some(b.at),
        now_at: Some(a.at),
    })
}

/// What differs first between what two steps run.
fn body(of: &Step, before: &Step, k: usize) -> Option<Difference> {
    let (now, was) = (&of.attrs[k], &before.attrs[k]);
    let body = of.op.torch_name();
    let written = |s: &BodyStep| format!("{} → {}", s.op.torch_name(), s.ty);
    let both = |what: &str, now: String, was: String| Difference {
        what: format!("{what} the body of {body}"),
        was,
        now,
        was_at: Some(before.at),
        now_at: Some(of.at),
    };
    Some(match Bodies::of(now).differs(Bodies::of(was))? {
        BodyDifference::Op(now, was) => {
            let attr = (0..now.attrs.len()).find(|&k| now.op.id == was.op.id && now.attrs.get(k) != was.attrs.get(k));
            let wiring = attr.is_none() && now.op.id == was.op.id && now.ty == was.ty;
            let op = now.op.torch_name();
            let what = match attr {
                Some(k) => format!("attribute `{}` of {op} in the body of {body}", now.op.attrs[k].name),
                None if wiring => format!("an operand of {op} in the body of {body}"),
                None => format!("an op in the body of {body}"),
            };
            let text = |s: &BodyStep| match attr {
                Some(k) => s.attrs.get(k).map_or_else(String::new, ToString::to_string),
                None if wiring => s.inputs.iter().map(named).collect::<Vec<_>>().join(", "),
                None => written(s),
            };
            Difference { what, was: text(was), now: text(now), was_at: Some(was.at), now_at: Some(now.at) }
        }
        BodyDifference::Came(s) => Difference::gained(&format!("op in the body of {body}"), written(s), s.at),
        BodyDifference::Went(s) => Difference::lost(&format!("op in the body of {body}"), written(s), s.at),
        BodyDifference::Arguments(a, b) => both("what is given to", a.taken(), b.taken()),
        BodyDifference::Results(a, b) => both("the results of", a.given(), b.given()),
        BodyDifference::Branches(a, b) => both("how many there are of", a.to_string(), b.to_string()),
    })
}

/// An operand of an op in a body, by its number.
fn named(input: &Input) -> String {
    match input {
        Input::Leaf(l) => format!("argument {}", l + 1),
        Input::Step(s) => format!("op {}", s + 1),
    }
}

/// How often the line where these ops begin ran in both programs: an op that it has once in each round tells.
pub(crate) fn rounds(e: &Evidence, ops: &Ops) -> Option<(Place, usize, usize)> {
    let (at, line) = e.begins(ops)?;
    let own = |r: &Record, all: &[u32]| all.iter().any(|&i| r.lines[i as usize] == line && r.derived(i).is_none());
    if !own(e.new, &ops.new) && !own(e.old, &ops.old) {
        return None;
    }
    let of = |r: &Record| -> BTreeMap<u32, usize> {
        let mut all = BTreeMap::new();
        for (s, _) in r.steps.iter().zip(r.lines.iter()).filter(|(_, l)| **l == line) {
            *all.entry(s.op.id).or_default() += 1;
        }
        all
    };
    let (now, was) = (of(e.new), of(e.old));
    // Once in each round there is the rarest of the ops of which there are more, or of which there are less; what is asked of the
    // last round alone is there as often as before.
    let both = || now.iter().filter_map(|(op, n)| Some((*n, *was.get(op)?)));
    let varying: Vec<(usize, usize)> = both().filter(|(n, o)| n != o).collect();
    let &(n, o) = varying.iter().min()?;
    let alike = varying.iter().all(|(a, b)| (a < b) == (n < o)) && 2 * varying.len() >= both().count();
    alike.then_some((at, n, o))
}

/// An input or a result, as an operand.
pub(crate) fn operand(input: Option<&Input>, r: &Record) -> String {
    match input {
        None => "none".to_owned(),
        Some(Input::Leaf(l)) => {
            let leaf = &r.leaves[*l as usize];
            let unnamed = || format!("input {} ({})", l + 1, leaf.ty);
            leaf.name.as_ref().map_or_else(unnamed, |n| format!("`{n}` ({})", leaf.ty))
        }
        Some(Input::Step(s)) => describe(&r.steps[*s as usize]),
    }
}

/// The graph's difference: ops that came or went, and those whose type or attributes are others; at most so many, since
/// only what is shown is described.
pub(crate) fn graph(e: &Evidence, most: usize) -> Vec<Difference> {
    let gained = e.aligned.only_new.iter().map(|&i| &e.new.steps[i as usize]);
    let lost = e.aligned.only_old.iter().map(|&j| &e.old.steps[j as usize]);
    let gained = gained.map(|s| Difference::gained("op", describe(s), s.at));
    let marks = |r: &'_ Record, i: u32| (r.typed()[i as usize], r.forms()[i as usize]);
    let pairs = e.aligned.pairs.iter().filter(|&&(i, j)| marks(e.new, i) != marks(e.old, j));
    let changed = pairs.filter_map(|&p| {
        let (a, b) = e.pair(p);
        (a.ty != b.ty || a.attrs != b.attrs).then(|| Difference {
            what: "op".into(),
            was: e.new.written(b),
            now: e.new.written(a),
            was_at: Some(b.at),
            now_at: Some(a.at),
        })
    });
    gained.chain(lost.map(|s| Difference::lost("op", describe(s), s.at))).chain(changed).take(most).collect()
}

/// What is said first is what happened at this line.
pub(crate) fn first_at(mut all: Vec<Difference>, at: Place) -> Vec<Difference> {
    let here = |d: &Difference| d.now_at.or(d.was_at).is_some_and(|there| same_place(there, at));
    all.sort_by_key(|d| !here(d));
    all
}

/// All that is not told yet.
pub(crate) fn open(e: &Evidence) -> Vec<Difference> {
    let one = |what: &What| -> Vec<Difference> {
        match *what {
            What::Input(l, m) => vec![input(&e.new.leaves[l as usize], &e.old.leaves[m as usize])],
            What::Ops(ref all) => ops(e, all),
            _ => vec![],
        }
    };
    e.open().flat_map(|(_, what)| one(what)).collect()
}
