//! Another barrier stands in the middle of a step: it runs the first part of it, and the step's own runs the rest.
use super::claim::Claim;
use crate::insight::evidence::{Evidence, Ops, What, words};
use crate::insight::log;
use crate::insight::record::{Record, same_place};
use crate::insight::report::{Class, Difference, Place};
use std::sync::Arc;
use xlazy_core::run::Cause;
use xlazy_core::text::{location, same_line};
use xlazy_mime::count;

/// Larger programs of other barriers that are looked at, the latest ones.
const LOOKED_AT: usize = 64;

/// The step of which a barrier's program is a part, if it is that, and what is left of it is not the barrier's own.
pub(super) fn step_of(new: &Record, known: &[Arc<Record>]) -> Option<Arc<Record>> {
    // What ends rounds by itself is no barrier that somebody has put in the middle.
    if new.is_read() || new.cause.ends_rounds() || !new.roots.iter().any(|&i| new.derived(i).is_some()) {
        return None;
    }
    let larger = |r: &&Arc<Record>| !r.is_read() && !same_place(r.site, new.site) && r.steps.len() > new.steps.len();
    let common = known.iter().rev().filter(larger).take(LOOKED_AT).map(|r| (r.common(new), r));
    let (_, found) = common.filter(|(n, _)| 4 * n >= 3 * new.steps.len()).take(8).max_by_key(|(n, _)| *n)?;
    middle(&Evidence::of(new, found, known)).map(|_| found.clone())
}

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.new.is_read() || e.old.is_read() {
        return None;
    }
    // `sync();` stands in many cells: it may be a copy's own, or another one.
    let copy = same_line(e.new.site, e.old.site);
    match same_place(e.new.site, e.old.site) {
        true => rest(e),
        false => middle(e).or_else(|| rest(e).filter(|_| copy)),
    }
}

/// The barrier in the middle: it gives values to what the step computes on its way, which some other function left pending.
fn middle(e: &Evidence) -> Option<Claim> {
    // An optimizer's step in a copy of the other's cell is that copy's own.
    let is_end = e.new.cause == Cause::OptimizerStep && same_line(e.new.site, e.old.site);
    if is_end || e.new.cause.ends_rounds() {
        return None;
    }
    // A value that the step computes on its way, and that only it makes use of.
    let on_the_way = |&&i: &&u32| {
        let j = e.aligned.of_new[i as usize];
        let there = e.old.steps.get(j as usize).is_some() && !e.old.roots.contains(&j);
        there && e.new.derived(i).is_some()
    };
    let left = e.new.roots.iter().find(on_the_way)?;
    let left = &e.new.steps[*left as usize];
    let rest = e.aligned.only_old.len();
    if rest == 0 || 2 * e.aligned.pairs.len() < e.new.steps.len() {
        return None;
    }
    let own = own_line(e.new, e.old).unwrap_or(e.new.site);
    let covers = e.numbered(|_| true);
    let mut differences = vec![part(e.new, e.old, e.aligned.pairs.len())];
    differences.extend(e.ops().flat_map(|(_, ops)| words::ops(e, ops)));
    let fix = fix(e.new.site, e.old, e.aligned.pairs.len(), Some(left.at));
    Some(Claim::new(covers, Class::Structure, own, words::first_at(differences, own), fix))
}

/// What is left for the step's own barrier: what the other one computed are inputs.
fn rest(e: &Evidence) -> Option<Claim> {
    let gone: Vec<(usize, &Ops)> = e.ops().filter(|(_, ops)| !ops.given.is_empty()).collect();
    if gone.is_empty() {
        return None;
    }
    let before = ran_before(e)?;
    let ran = |i: &u32| before.tokens().has(e.old.tokens()[*i as usize]);
    let by_it = |&&(_, ops): &&(usize, &Ops)| 2 * ops.old.iter().filter(|i| ran(i)).count() > ops.old.len();
    let found: Vec<&(usize, &Ops)> = gone.iter().filter(by_it).collect();
    if found.is_empty() {
        return None;
    }
    let own = own_line(&before, e.old).unwrap_or(before.site);
    let ops: usize = found.iter().map(|f| f.1.old.len()).sum();
    let mut differences: Vec<Difference> = found.iter().flat_map(|f| words::ops(e, f.1)).collect();
    differences.insert(0, part(&before, e.old, ops));
    let covers = super::claim::with_results(
        e,
        e.numbered(|what| match what {
            What::Ops(ops) => found.iter().any(|f| std::ptr::eq(f.1, ops)) || ops.derived,
            What::Wiring(..) => true,
            _ => false,
        }),
    );
    Some(Claim::new(covers, Class::Structure, own, differences, fix(before.site, e.old, ops, None)))
}

/// The program that ran last, where it was at another barrier and gave this one inputs.
fn ran_before(e: &Evidence) -> Option<Arc<Record>> {
    let hash = log::last_program()?;
    let before = e.known.iter().rev().find(|r| r.hash == hash)?;
    let other = !before.is_read() && !same_place(before.site, e.new.site);
    let fed = e.new.leaves.iter().any(|l| l.computed && before.lines.has(l.line));
    (other && fed).then(|| before.clone())
}

/// The first line of a program's own, which the step has not.
fn own_line(r: &Record, step: &Record) -> Option<Place> {
    let own = |i: &usize| !step.tokens().has(r.tokens()[*i]);
    (0..r.steps.len()).find(own).map(|i| r.steps[i].at)
}

fn part(middle: &Record, step: &Record, shared: usize) -> Difference {
    Difference {
        what: "program".into(),
        was: format!("{} at the {}", count(step.steps.len(), "op"), step.cause.name()),
        now: format!("{shared} of them at the {} before it", middle.cause.name()),
        was_at: Some(step.site),
        now_at: Some(middle.site),
    }
}

fn fix(middle: Place, step: &Record, shared: usize, left: Option<Place>) -> String {
    let by = left.map_or(String::new(), |at| format!(", left pending by the line at {}", location(at)));
    format!(
        "the sync at {} runs {} of the step that ends with the {} at {}{by}: move it behind that step, where nothing is pending, \
         or read what is looked at there (`item()`) without a barrier, after the step",
        location(middle),
        count(shared, "op"),
        step.cause.name(),
        location(step.site)
    )
}
