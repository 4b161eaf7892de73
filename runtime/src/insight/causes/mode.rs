//! Training became evaluation, or the other way round.
use super::claim::Claim;
use super::keep::stay;
use crate::insight::evidence::{Evidence, words};
use crate::insight::mode;
use crate::insight::record::Record;
use crate::insight::report::{Class, Place};

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
    let (at, training) = found?;
    Some((mode::switch_to(training).unwrap_or(at), training))
}

fn fix(new: &Record, training: bool) -> String {
    let (now, before) = if training { ("training", "evaluation") } else { ("evaluation", "training") };
    format!("expected once for each mode: {now} is another program than {before}, and {}", stay(new, "both"))
}
