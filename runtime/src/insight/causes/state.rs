//! A step takes up what an earlier one made: the first step of a loop is another program than the second.
use super::claim::{Claim, Fix};
use crate::insight::evidence::{Evidence, Ops, What, words};
use crate::insight::log::runs;
use crate::insight::mode::Derived;
use crate::insight::record::{LeafRecord, Record, same_place};
use crate::insight::report::{Class, Difference, Place};
use std::collections::HashSet;
use xlazy_core::ir::{Input, Kind, Step};
use xlazy_core::text::{is_shared, location, move_behind, replace};
use xlazy_core::ty::{DType, Type};

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.new.is_read() && !same_place(e.new.site, e.old.site) {
        return None;
    }
    carried_over(e).or_else(|| taken_up(e))
}

/// Inputs of a second step that the first one made: state which was not there before.
fn carried_over(e: &Evidence) -> Option<Claim> {
    let (new, old) = (e.new, e.old);
    if !new.second_of(old) {
        return None;
    }
    let state = |ops: &Ops| ops.gains.iter().map(|&l| &new.leaves[l as usize]).find(|l| old.lines.has(l.line));
    let found: Vec<(usize, &Ops, &LeafRecord)> = e.ops().filter_map(|(r, ops)| Some((r, ops, state(ops)?))).collect();
    let &(_, _, leaf) = found.first()?;
    let covers = super::claim::with_results(e, found.iter().map(|f| f.0).collect());
    let differences: Vec<Difference> = found.iter().flat_map(|f| words::ops(e, f.1)).collect();
    let fix = warm_up(e, &found.iter().map(|f| f.1).collect::<Vec<_>>(), &leaf.ty, leaf.at);
    Some(Claim { warm_up: true, ..Claim::new(covers, Class::Structure, leaf.at, differences, fix) })
}

/// State that the first step made, at `at`: what would have made the first step the same program, where that is known.
fn warm_up(e: &Evidence, all: &[&Ops], made: &Type, at: Place) -> Fix {
    let (new, old) = (e.new, e.old);
    let expected = "expected once: the second step takes up what the first made";
    let came: Vec<u32> = all.iter().flat_map(|ops| ops.new.iter().copied()).collect();
    let news: Vec<&Step> = came.iter().map(|&i| &new.steps[i as usize]).collect();
    let late = |s: &&Step| s.at.file() == new.site.file() && s.at.line() > new.site.line();
    if let Some(first) = news.first().filter(|_| news.iter().all(late)) {
        let last = news.last().unwrap_or(first);
        return Fix::from(format!(
            "{expected}. The line at {} runs after the {} at {} and so in the next step's program: move it before",
            location(first.at),
            new.cause.name(),
            location(new.site)
        ))
        .code(move_behind(new.site, last.at));
    }
    let dims = match made.shape.len() {
        0 => "()".to_owned(),
        _ => format!("{:?}", made.shape.iter().collect::<Vec<_>>()),
    };
    let on_host = |number: u8| {
        let literal = match made.dtype {
            DType::F32 | DType::F64 => format!("{number}.0{}", made.dtype.name()),
            DType::I32 | DType::I64 => format!("{number}{}", made.dtype.name()),
            _ => return None,
        };
        Some(format!("`Tensor::from_vec(vec![{literal}; {}], {dims})`", made.shape.numel()))
    };
    // What the first step made of nothing may come from the host.
    let gone: Vec<&Step> = all.iter().flat_map(|ops| &ops.old).map(|&j| &old.steps[j as usize]).collect();
    if news.is_empty() && gone.iter().all(|s| s.op.kind == Kind::Made) {
        let number = match gone[..] {
            [one] if *one.ty == *made => ["zeros", "ones"].iter().position(|name| one.op.name == *name),
            _ => None,
        };
        let Some(code) = number.and_then(|n| on_host(n as u8)) else {
            return Fix::from(format!(
                "{expected}. To compile once only, make it on the host (`Tensor::from_vec`), where it is data from the start"
            ));
        };
        let from = gone[0].at;
        let edits = if is_shared(from) { None } else { replace(from, code.trim_matches('`')) };
        return Fix::from(format!(
            "{expected}. To compile once only, make it on the host: {code}, which is data from the start"
        ))
        .code(edits);
    }
    // Nothing is what a sum begins with, if all that the second step does more is done to what it took up.
    let mut takes: HashSet<u32> = HashSet::new();
    for (i, step) in new.steps.iter().enumerate() {
        let of_it = |input: &Input| match input {
            Input::Step(s) => takes.contains(s),
            Input::Leaf(l) => new.leaves.get(*l as usize).is_some_and(|leaf| !leaf.scalar && same_place(leaf.at, at)),
        };
        if step.inputs.iter().any(of_it) {
            takes.insert(i as u32);
        }
    }
    let sums =
        news.iter().all(|s| matches!(s.op.kind, Kind::Add | Kind::Mul)) && news.iter().any(|s| s.op.kind == Kind::Add);
    let gradient = new.leaves.iter().any(|l| same_place(l.at, at) && l.derived == Some(Derived::Gradient));
    if sums
        && !gradient
        && came.iter().all(|i| takes.contains(i))
        && let Some(zeros) = on_host(0)
    {
        return format!(
            "{expected}. To compile once only, begin with zeros from the host where they give the same result: {zeros}"
        )
        .into();
    }
    expected.into()
}

/// The same ops on state that an earlier step made, where the old program had one of its other inputs in that place.
fn taken_up(e: &Evidence) -> Option<Claim> {
    let (new, old) = (e.new, e.old);
    let made = |line: u64| {
        let by = |r: &Record| r.device == new.device && r.lines.has(line);
        if new.is_read() { e.known.iter().any(|r| by(r)) } else { by(old) }
    };
    // Nothing of what the old program took was made by a step.
    let other = e.numbered(|what| !matches!(what, What::Wiring(..) | What::Donation(_) | What::Results));
    if !same_place(new.site, old.site) || !other.is_empty() || old.leaves.iter().any(|l| !l.scalar && made(l.line)) {
        return None;
    }
    let fresh = |&l: &u32| {
        let leaf = &new.leaves[l as usize];
        !leaf.scalar && leaf.computed && made(leaf.line) && e.partner(l).is_none()
    };
    let l = (0..new.leaves.len() as u32).find(fresh)?;
    let leaf = &new.leaves[l as usize];
    let covers = e.numbered(|what| matches!(what, What::Wiring(..) | What::Donation(_)));
    let fix = "expected once: this step takes up what an earlier one made, where the first took another input. The step is compiled \
               once if it begins with data of its own: from the host, or a `copy()` and `sync()` before the loop (a small program)";
    let claim = Claim::new(covers, Class::Structure, leaf.at, vec![words::gained(leaf)], fix);
    Some(Claim { warm_up: runs(old.hash) == 1, ..claim })
}
