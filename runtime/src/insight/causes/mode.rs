//! Training became evaluation, or the other way round.
use super::claim::Claim;
use super::keep::stay;
use crate::insight::evidence::{Evidence, Ops, words};
use crate::insight::mode;
use crate::insight::record::{Record, same_place};
use crate::insight::report::{Class, Place};
use foldhash::HashSet;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.is_part() {
        return None;
    }
    let (at, training) = other_mode(e)?;
    let covers = super::claim::with_results(e, super::claim::all_ops(e));
    Some(Claim::new(covers, Class::Mode, at, words::open(e), fix(e.new, training)))
}

/// Where the program was switched between training and evaluation, if lines that were run in both differ, each as its
/// mode has it.
fn other_mode(e: &Evidence) -> Option<(Place, bool)> {
    let line = |r: &Record, i: u32| mode::of(r.steps[i as usize].at).map(|training| (r.steps[i as usize].at, training));
    let all: Vec<_> = e.ops().map(|(_, ops)| ops).collect();
    let found = all.iter().flat_map(|ops| &ops.old).find_map(|&j| line(e.old, j));
    let found = found.or_else(|| all.iter().flat_map(|ops| &ops.new).find_map(|&i| line(e.new, i)));
    let (at, training) = found.or_else(|| other_line(e, &all)).or_else(|| copied(e, &all))?;
    Some((mode::switch_to(training).unwrap_or(at), training))
}

/// The same of lines that ran in one mode each, such as those of two cells: what is in one program alone is of a line of the one
/// mode, and what that line has in common with the other program is of a line of the other mode there.
fn other_line(e: &Evidence, all: &[&Ops]) -> Option<(Place, bool)> {
    let new = |i: &u32| e.new.steps[*i as usize].at;
    let old = |j: &u32| e.old.steps[*j as usize].at;
    let pairs = || e.aligned.pairs.iter().map(|(i, j)| (new(i), old(j))).filter(|(a, b)| !same_place(a, b));
    let switched = |(now, was): (Place, Place)| {
        let modes = mode::last_of(now).zip(mode::last_of(was));
        modes.filter(|(now, was)| now != was).map(|(training, _)| (now, training))
    };
    let went = all.iter().flat_map(|ops| &ops.old).map(old).map(|at| (at, false));
    let came = all.iter().flat_map(|ops| &ops.new).map(new).map(|at| (at, true));
    let mut asked: HashSet<(Place, bool)> = HashSet::default();
    went.chain(came).filter(|of| asked.insert(*of)).find_map(|(at, is_new)| {
        mode::last_of(at)?;
        pairs().filter(|(now, was)| same_place(if is_new { now } else { was }, at)).find_map(switched)
    })
}

/// The same of lines that are once more in another cell, and give nothing in their mode there.
fn copied(e: &Evidence, all: &[&Ops]) -> Option<(Place, bool)> {
    let went = all.iter().flat_map(|ops| &ops.old).map(|&j| e.old.steps[j as usize].at);
    let came = all.iter().flat_map(|ops| &ops.new).map(|&i| e.new.steps[i as usize].at);
    let here = |(at, _): &(Place, bool)| e.new.steps.iter().any(|s| s.at.file() == at.file());
    let gone = went.filter_map(mode::of_copy).find(here);
    gone.or_else(|| came.filter_map(|at| Some((at, !mode::of_copy(at)?.1))).next())
}

fn fix(new: &Record, training: bool) -> String {
    let (now, before) = if training { ("training", "evaluation") } else { ("evaluation", "training") };
    format!("expected once for each mode: {now} is another program than {before}, and {}", stay(new, "both"))
}
