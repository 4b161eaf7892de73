//! Training became evaluation, or the other way round.
use super::claim::Claim;
use super::keep::stay;
use crate::insight::evidence::{Evidence, Ops, words};
use crate::insight::mode;
use crate::insight::record::{Record, same_place};
use crate::insight::report::{Class, Place};
use foldhash::HashSet;
use xlazy_core::text::same_line;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.is_part() {
        return None;
    }
    let (at, training) = other_mode(e)?;
    let covers = super::claim::with_results(e, super::claim::all_ops(e));
    Some(Claim::new(covers, Class::Mode, at, words::open(e), fix(e.new, training)))
}

/// Where the program was switched between training and evaluation, and to which, if a line whose ops came or went ran as the one
/// has it in one program, and as the other has it in the other.
fn other_mode(e: &Evidence) -> Option<(Place, bool)> {
    let (new, old) = (|i: &u32| e.new.steps[*i as usize].at, |j: &u32| e.old.steps[*j as usize].at);
    let all: Vec<&Ops> = e.ops().map(|(_, ops)| ops).collect();
    let gone = || all.iter().flat_map(|ops| &ops.old).map(old);
    let fresh = || all.iter().flat_map(|ops| &ops.new).map(new);
    let (went, came): (HashSet<Place>, HashSet<Place>) = (gone().collect(), fresh().collect());
    let switched = |(now, was): (Place, Place)| {
        let [training, before] = [e.new.training.get(&now)?, e.old.training.get(&was)?];
        (training != before).then_some((now, *training))
    };
    // The line itself, or the one that stands for it in another cell: what it has in common with that, or a copy of it.
    let itself = || gone().chain(fresh()).find_map(|at| switched((at, at)));
    let pairs = || e.aligned.pairs.iter().map(|(i, j)| (new(i), old(j))).filter(|(a, b)| !same_place(a, b));
    let elsewhere = || pairs().filter(|(now, was)| came.contains(now) || went.contains(was)).find_map(switched);
    let copied = || {
        let here: HashSet<&str> = e.new.steps.iter().map(|s| s.at.file()).collect();
        let copies = e.new.training.keys().filter(|at| here.contains(at.file()));
        let both = copies.flat_map(|now| e.old.training.keys().map(move |was| (*now, *was)));
        let concerned = |(now, was): &(Place, Place)| came.contains(now) || went.contains(was);
        let all = both.filter(concerned).filter(|(now, was)| same_line(*now, *was)).filter_map(switched);
        all.min_by_key(|(at, _)| (at.file(), at.line(), at.column()))
    };
    let (at, training) = itself().or_else(elsewhere).or_else(copied)?;
    Some((mode::switch_to(training).unwrap_or(at), training))
}

fn fix(new: &Record, training: bool) -> String {
    let (now, before) = if training { ("training", "evaluation") } else { ("evaluation", "training") };
    format!("expected once for each mode: {now} is another program than {before}, and {}", stay(new, "both"))
}
