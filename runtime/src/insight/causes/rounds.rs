//! A line ran another number of times before the sync.
use super::claim::{Claim, Fix};
use super::keep::{SYNC, mask, stay};
use crate::insight::evidence::{Evidence, Ops, words};
use crate::insight::mode::Derived;
use crate::insight::record::Record;
use crate::insight::report::{Class, Difference, Place};
use crate::insight::unrolled::updates;
use foldhash::{HashMap, HashMapExt};
use xlazy_core::text::{
    Edit, LoopFact, Spot, callers, insert_behind, insert_in_each_round, insert_in_each_round_of, is_library, known,
    location, loops, same_line,
};
use xlazy_mime::count;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.is_part() {
        return None;
    }
    // With inputs from other lines it is another model.
    let made_before = |line: u64| e.old.lines.has(line) || e.old.leaves.iter().any(|l| l.line == line);
    let known = |ops: &Ops| ops.gains.iter().all(|&l| made_before(e.new.leaves[l as usize].line));
    let found: Vec<(usize, &Ops, (Place, usize, usize))> =
        e.ops().filter(|(_, ops)| known(ops)).filter_map(|(r, ops)| Some((r, ops, words::rounds(e, ops)?))).collect();
    let &(_, _, (at, now, was)) = found.first()?;
    // A framework's line runs for whoever calls it.
    if is_library(at.file()) {
        return None;
    }
    let covers = super::claim::with_results(e, found.iter().map(|f| f.0).collect());
    let differences: Vec<Difference> = found.iter().flat_map(|f| words::ops(e, f.1)).collect();
    let ran = format!(
        "the line at {} ran {} before this sync, {} before the last one",
        location(at),
        count(now, "time"),
        count(was, "time")
    );
    let through = || gradients_through(e, &found.iter().map(|f| f.1).collect::<Vec<_>>(), at);
    let fix = match in_loop(e, at) {
        _ if !e.new.session => Fix::from(format!(
            "the line at {} is in the program {}, was {}: always run {} and {}, or let a loop on the device go round as often \
             as a number says, which is data",
            location(at),
            count(now, "time"),
            count(was, "time"),
            count(now.max(was), "round"),
            mask(e.new)
        )),
        true if through() => Fix::from(format!(
            "{ran}, and the gradient goes back through each: expected once for each number of rounds, and {}; one program is \
             enough where the loop always goes round as often and you {}",
            stay(e.new, "all"),
            mask(e.new)
        )),
        true => {
            // In front of what is read of a round: that is computed with it.
            let (place, code) = match step_in_round(e, at, (now, was)) {
                Some(step) => ("right behind the optimizer's step", insert_behind(step, SYNC, e.new.site)),
                None => ("at the end of each round", in_each_round(e, at)),
            };
            Fix::from(format!(
                "{ran}: `sync()` {place}, so that every round is the same program, or always run {} and {}, \
                 or, where no gradient is taken through it, let the device count (`fori_loop`)",
                count(now.max(was), "round"),
                mask(e.new)
            ))
            .code(code)
        }
        false => Fix::from(format!(
            "{ran}: expected once for each number of times, and {}; with `sync()` behind each of them every time is the same \
             program",
            stay(e.new, "all")
        ))
        .code(insert_behind(at, SYNC, e.new.site)),
    };
    Some(Claim::new(covers, Class::Structure, at, words::first_at(differences, at), fix))
}

/// Whether gradients of these ops are computed behind the loop that goes round: then a barrier in it leaves them as many.
fn gradients_through(e: &Evidence, all: &[&Ops], at: Place) -> bool {
    let gradient = |r: &'_ Record, i: &u32| (r.derived(*i) == Some(Derived::Gradient)).then(|| r.steps[*i as usize].at);
    let places = |ops: &&Ops| -> Vec<Place> {
        let new = ops.new.iter().filter_map(|i| gradient(e.new, i));
        new.chain(ops.old.iter().filter_map(|j| gradient(e.old, j))).collect()
    };
    let mut around: Vec<LoopFact> = loops(at);
    around.extend(callers(at).iter().flat_map(loops));
    let outside = |at: &Place| {
        let spot = Spot::from(*at);
        !around.iter().any(|l| l.body.file == spot.file && l.body <= spot && spot < l.end)
    };
    all.iter().flat_map(places).any(|at| outside(&at))
}

/// Where an optimizer steps in the innermost loop around this line, if it does in each of its rounds, of which there are so many now and
/// were before.
fn step_in_round(e: &Evidence, at: Place, (now, was): (usize, usize)) -> Option<Place> {
    let around = loops(at).into_iter().next()?;
    let steps = updates(e.new);
    if steps.len() != now || updates(e.old).len() != was {
        return None;
    }
    let step = e.new.steps[*steps.last()?].at;
    let spot = Spot::from(step);
    (around.body.file == spot.file && around.body <= spot && spot < around.end).then_some(step)
}

/// A barrier at the end of each round of the loop that went round more or less often: the outermost one around the line, but
/// for those that the sync stands in and those whose own lines ran as often as before.
fn in_each_round(e: &Evidence, at: Place) -> Option<Vec<Edit>> {
    let site = Spot::from(e.new.site);
    let around = |l: &LoopFact| l.body <= site && site < l.end;
    // Each line's innermost loop, asked once, and how many more ops it has now.
    let mut lines: HashMap<Place, i64> = HashMap::new();
    let mut count = |r: &Record, by: i64| r.steps.iter().for_each(|s| *lines.entry(s.at).or_default() += by);
    count(e.new, 1);
    count(e.old, -1);
    let own: Vec<(Option<LoopFact>, i64)> =
        lines.into_iter().map(|(at, more)| (loops(at).into_iter().next(), more)).collect();
    let varies = |l: &LoopFact| own.iter().any(|(of, more)| of.as_ref() == Some(l) && *more != 0);
    let all = loops(at);
    match all.iter().rev().filter(|l| !around(l)).find(|l| varies(l)) {
        Some(found) => insert_in_each_round_of(found, SYNC),
        None => insert_in_each_round(at, SYNC),
    }
}

/// Whether the line, or a call that leads to it, stands in a loop; where nothing is known of the code it may. Of a function that
/// several statements call once each, a loop elsewhere that calls it, too, says nothing.
fn in_loop(e: &Evidence, at: Place) -> bool {
    let called_in_one =
        || callers(at).iter().any(|call| !loops(call).is_empty()) && [e.new, e.old].iter().any(|r| repeats(r, at));
    !known(at) || !loops(at).is_empty() || called_in_one()
}

/// Whether one statement of a cell ran the line several times: all the ops that it has there.
fn repeats(r: &Record, at: Place) -> bool {
    let mut ran: HashMap<Option<Place>, HashMap<u32, usize>> = HashMap::new();
    let own = (0..).zip(r.steps.iter()).filter(|(i, s)| same_line(s.at, at) && r.derived(*i).is_none());
    own.for_each(|(_, s)| *ran.entry(s.statement).or_default().entry(s.op.id).or_default() += 1);
    ran.values().any(|ops| ops.values().all(|n| *n > 1))
}
