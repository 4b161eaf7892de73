//! Loops that a program would write out, round behind round. Where they make it long, XLA compiles a round as a program of its own,
//! which serves all of them, and not all of them as one.
use super::event::Cause;
use crate::ir::{Graph, LEAF, NodeId, Origin, graph};
use crate::text::Place;
use crate::ty::TypeRef;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rounds of a loop that run one behind the other.
pub struct Rounds {
    /// The lines of one of them.
    pub lines: Vec<Place>,
    pub rounds: usize,
    /// Ops of one round.
    pub ops: usize,
    /// A round takes what the one before it made.
    pub carried: bool,
    /// What is longer in each round: its type in the first and in the last.
    pub grows: Option<[TypeRef; 2]>,
}

/// Ops from which on XLA takes seconds for a program, and longer for each more.
const MUCH: usize = 1000;
/// Fewer rounds are no reason to run each by itself.
pub const ROUNDS: usize = 16;
/// Ops of a program that are worth a run of their own.
const WORTH: usize = 16;
/// Values that one of these programs may hand on.
const WIDE: usize = 64;
/// How often an op of one line may stand in a round, as all those of a function do that is called more than once.
const OFTEN: usize = 4;
/// Distances between equal ops that are looked at.
const PERIODS: usize = 16;

/// Those that run now.
static RUNNING: Mutex<Option<Arc<Rounds>>> = Mutex::new(None);

fn running_now() -> MutexGuard<'static, Option<Arc<Rounds>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rounds that a program is one or a few of, where these run now.
pub(super) fn running() -> Option<Arc<Rounds>> {
    running_now().clone()
}

/// What is to be run before the rest, in this order; nothing of it is freed before it has run.
pub(super) struct Pieces {
    /// A line of the loop.
    pub at: Place,
    /// The results of what comes before the rounds.
    before: Option<Vec<NodeId>>,
    /// Those of each that has not run, the last one first.
    all: Vec<Vec<NodeId>>,
    /// Those of the one that runs.
    held: Vec<NodeId>,
}

impl Pieces {
    /// The results of the next one, and why it runs. Of the last one's it holds what it needs, so that it may take their place.
    pub fn next(&mut self) -> Option<(Vec<NodeId>, Cause)> {
        release(&mut graph(), &std::mem::take(&mut self.held));
        let (roots, cause) = match self.before.take() {
            Some(before) => (before, Cause::InitialState),
            None => (self.all.pop()?, Cause::WrittenOut),
        };
        self.held = roots.clone();
        Some((roots, cause))
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        *running_now() = None;
        let mut g = graph();
        self.all.iter().chain(&self.before).chain([&self.held]).for_each(|roots| release(&mut g, roots));
    }
}

fn release(g: &mut Graph, roots: &[NodeId]) {
    roots.iter().for_each(|&r| g.unref(r));
}

/// The rounds that make up most of what is to be run for the roots, where that is much. A model's layers, each of which has parameters of
/// its own, are none, nor is what gradients are computed of with them: that is one step, which runs often.
pub(super) fn written_out(roots: impl FnOnce(&mut Graph) -> Vec<NodeId>) -> Option<Pieces> {
    let mut g = graph();
    if g.pending.len() < MUCH || g.on_several_devices() {
        return None;
    }
    let roots = roots(&mut g);
    let needed = g.needed_by(&roots);
    if needed.len() < MUCH || needed.iter().any(|&id| g.node(id).origin == Origin::Physically) {
        return None;
    }
    let line = |id: &NodeId| (g.node(*id).op.base, std::ptr::from_ref(g.node(*id).at).addr());
    let hasher = foldhash::fast::FixedState::default();
    let marks: Vec<u64> = needed.iter().map(|id| hasher.hash_one(line(id))).collect();
    let (period, run) = repetition(&marks)?;
    let rounds = run.len() / period;
    if rounds < ROUNDS || run.len() * 2 < needed.len() {
        return None;
    }
    let at: HashMap<NodeId, usize> = needed.iter().enumerate().map(|(i, &id)| (id, i)).collect();
    let (mut carried, mut last) = (false, (0..needed.len()).collect::<Vec<usize>>());
    for (i, &id) in needed.iter().enumerate() {
        let before = i.checked_sub(period).filter(|before| run.contains(&i) && run.contains(before));
        for (k, input) in g.node(id).inputs.iter().enumerate() {
            let Some(&made) = at.get(input) else {
                let there = before.and_then(|before| g.node(needed[before]).inputs.get(k));
                if there.is_some_and(|there| there != input) && g.node(*input).flags & LEAF != 0 {
                    return None;
                }
                continue;
            };
            last[made] = i;
            carried |= before.is_some() && made < i - (i - run.start) % period;
        }
    }
    roots.iter().filter_map(|r| at.get(r)).for_each(|&i| last[i] = usize::MAX);
    let together = WORTH.div_ceil(period);
    // The last round may be in the run only in part, which begins anywhere in the first one.
    let until = (run.end..marks.len()).find(|&i| marks[i] != marks[i - period]).unwrap_or(marks.len());
    let ends = ends(&g, &needed, &last, (period, run.start..until), together)?;
    let mut from = 0;
    let piece = |&end: &usize| -> Vec<NodeId> {
        let made = std::mem::replace(&mut from, end)..end;
        made.filter(|&i| last[i] >= end).map(|i| needed[i]).collect()
    };
    let mut all: Vec<Vec<NodeId>> = ends.iter().map(piece).collect();
    if all.iter().map(Vec::len).sum::<usize>() > all.len() * WIDE {
        return None;
    }
    all.iter().flatten().for_each(|&r| g.node_mut(r).refs += 1);
    let before = Some(all.remove(0)).filter(|roots| !roots.is_empty());
    all.retain(|roots| !roots.is_empty());
    all.reverse();
    let types = |offset: usize| run.clone().skip(offset).step_by(period).map(|i| g.node(needed[i]).ty);
    let grows = (0..period).find_map(|offset| longer_in_each(types(offset)));
    let lines: Vec<Place> = needed[run.start..run.start + period].iter().map(|&id| g.node(id).at).collect();
    *running_now() = Some(Arc::new(Rounds { lines, rounds, ops: period, carried, grows }));
    Some(Pieces { at: g.node(needed[run.start]).at, before, all, held: vec![] })
}

/// Where programs of so many rounds end: there in each where the fewest values are handed on, none of which is a part of an op.
fn ends(
    g: &Graph,
    needed: &[NodeId],
    last: &[usize],
    (period, run): (usize, Range<usize>),
    together: usize,
) -> Option<Vec<usize>> {
    // How many there are at each place, and how many that are none by themselves.
    let mut live = vec![(0isize, 0isize); needed.len() + 2];
    for (i, &until) in last.iter().enumerate().filter(|(_, until)| **until != usize::MAX) {
        let part = isize::from(g.node(needed[i]).op.several || g.node(needed[i]).depth > 0);
        live[i + 1] = (live[i + 1].0 + 1, live[i + 1].1 + part);
        live[until + 1] = (live[until + 1].0 - 1, live[until + 1].1 - part);
    }
    for i in 1..live.len() {
        live[i] = (live[i].0 + live[i - 1].0, live[i].1 + live[i - 1].1);
    }
    let of = |offset: usize| -> Vec<usize> { (run.start + offset..=run.end).step_by(period * together).collect() };
    let whole = |offset: &usize| of(*offset).iter().all(|&end| live[end].1 == 0);
    let offset = (0..period).filter(whole).min_by_key(|offset| live[run.start + offset + 2 * period].0)?;
    Some(of(offset))
}

/// What is larger in each round than in the one before: its type in the first and in the last.
pub fn longer_in_each(types: impl Iterator<Item = TypeRef>) -> Option<[TypeRef; 2]> {
    let types: Vec<TypeRef> = types.collect();
    let longer = |a: &TypeRef, b: &TypeRef| {
        a.shape.len() == b.shape.len() && (0..a.shape.len()).any(|d| a.shape[d] < b.shape[d])
    };
    let all = types.len() > 1 && types.windows(2).all(|w| longer(&w[0], &w[1]));
    all.then(|| [types[0], types[types.len() - 1]])
}

/// The longest stretch in which marks come again at a distance, whole rounds of it, and that distance.
pub fn repetition(marks: &[u64]) -> Option<(usize, Range<usize>)> {
    let (mut last, mut distances) = (HashMap::<_, [usize; OFTEN]>::new(), HashMap::<usize, usize>::new());
    for (i, mark) in marks.iter().enumerate() {
        let before = last.entry(mark).or_insert([usize::MAX; OFTEN]);
        before.iter().filter(|b| **b != usize::MAX).for_each(|b| *distances.entry(i - b).or_default() += 1);
        before.rotate_right(1);
        before[0] = i;
    }
    let mut often: Vec<(usize, usize)> =
        distances.into_iter().map(|(distance, n)| (n, distance)).filter(|(n, _)| n + 1 >= ROUNDS).collect();
    often.sort_unstable_by_key(|&(n, distance)| (Reverse(n), distance));
    let periods = often.iter().take(PERIODS).map(|&(_, period)| period);
    let stretches = periods.filter_map(|period| {
        let (mut best, mut start) = (0..0, period);
        for i in period..=marks.len() {
            if i < marks.len() && marks[i] == marks[i - period] {
                continue;
            }
            if i - start > best.len() {
                best = start..i;
            }
            start = i + 1;
        }
        let whole = (best.len() + period) / period * period;
        (!best.is_empty()).then(|| (period, best.start - period..best.start - period + whole))
    });
    stretches.max_by_key(|(period, run)| (run.len(), Reverse(*period)))
}
