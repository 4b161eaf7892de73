//! A part of the work records gradients and did not (`no_grad`), or the other way round: what follows from them came or went.
use super::claim::Claim;
use super::keep::stay;
use crate::insight::evidence::{Evidence, Ops, What, words};
use crate::insight::record::same_place;
use crate::insight::report::{Class, Difference};
use xlazy_core::ir::Step;
use xlazy_core::text::location;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.is_part() {
        return None;
    }
    let all: Vec<(&Step, &Step)> = e.open().find_map(|(_, what)| match what {
        What::Recorded(pairs) => Some(pairs.iter().map(|&p| e.pair(p)).collect()),
        _ => None,
    })?;
    let (first, _) = all[0];
    let one = |&(new, old): &(&Step, &Step)| {
        let say = |on: bool| if on { "recorded" } else { "not recorded" }.to_owned();
        Difference {
            what: format!("the gradient through {}", words::describe(new)),
            was: say(old.recorded),
            now: say(new.recorded),
            was_at: Some(old.at),
            now_at: Some(new.at),
        }
    };
    // Each line once.
    let begins = |(k, (new, _)): &(usize, &(&Step, &Step))| !all[..*k].iter().any(|(s, _)| same_place(s.at, new.at));
    let differences = all.iter().enumerate().filter(begins).map(|(_, pair)| one(pair)).collect();
    let covers = e.numbered(|what| matches!(what, What::Recorded(_) | What::Ops(Ops { derived: true, .. })));
    let (less, of) = match first.recorded {
        true => (e.aligned.only_new.len(), "more"),
        false => (e.aligned.only_old.len(), "fewer"),
    };
    let fix = format!(
        "expected once for each way ({} {of}): run the line at {} inside `no_grad` in every step or in none if it is to be one \
         program; {}",
        xlazy_mime::count(less, "op"),
        location(first.at),
        stay(e.new, "both")
    );
    Some(Claim::new(super::claim::with_results(e, covers), Class::Structure, first.at, differences, fix))
}
