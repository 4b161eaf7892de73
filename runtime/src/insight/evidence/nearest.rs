//! Which earlier programs a new one is compared with.
use crate::insight::record::{LeafRecord, Record, same_place};
use crate::insight::report::Place;
use foldhash::HashSet;
use std::sync::Arc;
use xlazy_core::text::{Spot, callers, function, same_line};

/// Programs compared in full after those of the same site.
const NEAREST: usize = 8;

/// Of programs whose lines are alike to this part of the most, types tell which is nearer.
const CLOSE: f64 = 0.75;

/// Programs that are compared in detail.
const AS_NEAR: usize = 3;

/// The programs to compare with, nearest first, if there are any: of the same site and kind the most alike; for a barrier the
/// nearest of other barriers; for a read the step that it ran a part of, or an earlier read of the same value elsewhere. A
/// program without such a forerunner is the first of its kind, and not compiled again.
pub(crate) fn nearest(new: &Record, known: &[Arc<Record>]) -> Vec<Arc<Record>> {
    let best = |candidates: &mut dyn Iterator<Item = &Arc<Record>>, least: f64| {
        let alike = candidates.map(|r| (r.likeness(new), r)).filter(|(l, _)| *l >= least);
        let mut alike: Vec<(f64, &Arc<Record>)> = alike.collect();
        let most = alike.iter().map(|a| a.0).fold(0.0, f64::max);
        alike.retain(|(l, _)| *l >= CLOSE * most);
        if alike.len() > 1 {
            alike.iter_mut().for_each(|(l, r)| *l += r.likeness_of_types(new));
        }
        // of equals the one whose inputs differ least, else the latest
        alike.sort_by(|(a, r), (b, s)| {
            let alike = || r.inputs_apart(new).cmp(&s.inputs_apart(new));
            b.total_cmp(a).then_with(alike).then(s.number.cmp(&r.number))
        });
        let most = alike.first().map_or(0.0, |a| a.0);
        let near = alike.into_iter().filter(|(l, _)| *l >= CLOSE * most);
        Some(near.take(AS_NEAR).map(|(_, r)| r.clone()).collect()).filter(|near: &Vec<_>| !near.is_empty())
    };
    let here = |r: &&Arc<Record>| same_place(r.site, new.site) && r.is_read() == new.is_read();
    if let Some(found) = best(&mut known.iter().rev().filter(here).take(NEAREST), 0.2) {
        return found;
    }
    let closest = |of_kind: &dyn Fn(&Record) -> bool, least: f64| {
        let mut found: Vec<&Arc<Record>> = known.iter().rev().filter(|r| of_kind(r)).take(64).collect();
        found.sort_by_key(|r| r.steps.len().abs_diff(new.steps.len()));
        best(&mut found.into_iter().take(NEAREST), least)
    };
    // A cell that was edited and run again: some of its own lines are those of before.
    let edited = || {
        let again = |r: &&Arc<Record>| r.is_read() == new.is_read() && of_one_cell(r, new);
        let recent = known.iter().rev().filter(again).take(NEAREST);
        let alike = recent.map(|r| (r.likeness_of_ops(new), r)).filter(|(l, _)| *l >= 0.6);
        alike.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.number.cmp(&b.1.number))).map(|(_, r)| vec![r.clone()])
    };
    // The same line of another cell, on the same data: one that was copied and changed.
    let twin = |r: &&Arc<Record>| {
        let at_this_line = r.is_read() == new.is_read() && same_line(r.site, new.site);
        at_this_line && !r.strangers(new) && new.shares(r, |l| !l.scalar)
    };
    let copied = || best(&mut known.iter().rev().filter(twin).take(NEAREST), 0.2);
    let found = match new.is_read() {
        false => copied().or_else(|| closest(&|r| !r.is_read(), 0.5)),
        true => closest(&|r| !r.is_read() && contains(r, new), 1.0)
            .or_else(|| closest(&|r| r.is_read() && same_result(r, new) && same_sources(r, new), 0.5))
            .or_else(|| closest(&|r| r.is_read() && same_lines(r, new), 0.5))
            // On the way to a barrier, which runs again what the read has of its step.
            .or_else(|| closest(&|r| !r.is_read() && before(new.site, r.site) && !r.strangers(new), 0.0)),
    };
    // Something in common at least: what a line runs may have grown beyond likeness, but it is no first program there.
    let grown = || {
        let related = |r: &&Arc<Record>| here(r) && !r.strangers(new) || twin(r);
        let mut related = known.iter().rev().filter(related).take(NEAREST);
        if new.is_read() { None } else { best(&mut related, 0.0) }
    };
    // The same line ran before, whatever it ran.
    let line = || known.iter().rev().find(|r| here(r) && !new.is_read()).map(|r| vec![r.clone()]);
    found.or_else(grown).or_else(edited).or_else(line).unwrap_or_default()
}

/// Whether one cell, by its own lines as they read, made data of both.
fn of_one_cell(old: &Record, new: &Record) -> bool {
    let own = |r: &'_ Record| -> HashSet<u64> {
        let here = |l: &&LeafRecord| !l.scalar && l.at.file() == r.site.file();
        r.leaves.iter().filter(here).map(|l| l.line).collect()
    };
    old.site.file() != new.site.file() && !own(old).is_disjoint(&own(new))
}

/// Whether a read comes before a barrier in the code that has both, by themselves or by what they are called from.
fn before(read: Place, barrier: Place) -> bool {
    let ways = |at: Place| -> Vec<Spot> { std::iter::once(Spot::from(at)).chain(callers(at)).collect() };
    let (reads, barriers) = (ways(read), ways(barrier));
    let both = barriers.iter().flat_map(|b| reads.iter().map(move |r| (r, b)));
    let mut both = both.filter(|(r, b)| r.file == b.file && r.line != b.line && function(*r) == function(*b));
    both.next().is_some_and(|(r, b)| r.line < b.line)
}

/// Whether both start from data of the same lines.
fn same_sources(a: &Record, b: &Record) -> bool {
    let places = |r: &Record| -> Vec<u64> {
        let mut all: Vec<_> = r.leaves.iter().filter(|l| !l.scalar).map(|l| l.line).collect();
        all.sort_unstable();
        all
    };
    places(a) == places(b)
}

/// Whether both run the same lines, if not as often.
fn same_lines(a: &Record, b: &Record) -> bool {
    let lines = |r: &Record| -> HashSet<(u32, u64)> {
        r.steps.iter().zip(r.lines.iter()).map(|(s, l)| (s.op.id, *l)).collect()
    };
    lines(a) == lines(b)
}

/// Whether a barrier's program computes what a read asks for on its way: the same op of the same line, of the same type.
fn contains(step: &Record, read: &Record) -> bool {
    let Some((root, line)) = read.steps.last().zip(read.lines.last()) else { return false };
    step.steps.len() > read.steps.len()
        && step.steps.iter().zip(step.lines.iter()).any(|(s, l)| s.op.id == root.op.id && s.ty == root.ty && l == line)
}

/// Whether the last op of both was made by the same line.
fn same_result(a: &Record, b: &Record) -> bool {
    let last = |r: &Record| r.steps.last().map(|s| s.op.id).zip(r.lines.last().copied());
    last(a).is_some() && last(a) == last(b)
}
