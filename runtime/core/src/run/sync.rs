//! Syncs: cut the graph, find or compile its program, run it, give the nodes their values.
use super::cache;
use super::checks::refuse_many;
use super::compile::{Wanted, compile, join};
use super::event::{Cause, Costs, Origin, SyncEvent};
use super::execute::{Outcome, run};
use super::kept;
use super::lower::{Lowered, lower};
use super::ranks::{barrier_here, cut_of, read_here};
use super::rounds::{end_here, has_read, step_ends};
use super::start::{Start, before_barrier, before_read};
use super::witness::{Case, Miss, Next, Witness};
use super::written::{running, written_out};
use crate::clock::{clock, traced};
use crate::device::DeviceData;
use crate::ir::{Cut, Graph, Key, NodeId, Payload, Scope, graph};
use crate::mesh::Mesh;
use crate::options::options;
use crate::sys::statement;
use crate::text::{Place, decides};
use crate::thread::rank;
use crate::{Result, metrics};
use smallvec::{SmallVec, smallvec};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// One sync at a time: between a cut and its end no other sync may see half-finished nodes or donated buffers.
static TURN: Mutex<()> = Mutex::new(());

pub(super) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `None` while another sync is at work.
pub(super) fn turn_at_once() -> Option<MutexGuard<'static, ()>> {
    match TURN.try_lock() {
        Ok(turn) => Some(turn),
        Err(TryLockError::Poisoned(p)) => Some(p.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Computes every live tensor that has no value yet and cuts the graph behind them. `None` when there was nothing to do.
pub fn barrier(by: &'static dyn Witness, cause: Cause, at: Place) -> Result<Option<SyncEvent>> {
    if rank().is_some() {
        return barrier_here(cause, at);
    }
    let _turn = turn();
    start(before_barrier())?;
    run_all(by, cause, at)
}

/// An optimizer has stepped at that line: all that is pending runs where the steps in it have become many.
pub fn step(by: &'static dyn Witness, at: Place) -> Result<Option<SyncEvent>> {
    if rank().is_some() || !step_ends(at, BARRIER.load(Ordering::Relaxed)) {
        return Ok(None);
    }
    barrier(by, Cause::UnendedSteps, at)
}

/// Runs all that is pending.
fn run_all(by: &'static dyn Witness, cause: Cause, at: Place) -> Result<Option<SyncEvent>> {
    metrics::MARK_STEP.add(1);
    let rounds = round_by_round(by, |g| of_this_cell(g, cause))?;
    let roots = of_this_cell(&mut graph(), cause);
    let ToRun { parts, scope, read } = in_parts(roots);
    take_as_read(by, &read);
    let event = run_parts(by, parts.into_iter().map(Roots::Of), scope, cause, at, None)?;
    // Only now: an interrupt that came while a program ran must not lose what was donated to it.
    crate::sys::check_interrupt();
    refuse_many()?;
    Ok(event.or(rounds))
}

/// What a barrier runs: all that is pending. One that nobody wrote leaves out what other cells left, be it since its compilation
/// took too long, where nothing of this one needs it.
fn of_this_cell(g: &mut Graph, cause: Cause) -> Vec<NodeId> {
    let mut roots = g.barrier_roots();
    let Some(here) = statement().filter(|_| cause.ends_rounds()) else { return roots };
    let foreign = |g: &Graph, r: NodeId| g.node(r).statement.is_some_and(|s| s.file() != here.file());
    let own: Vec<NodeId> = roots.iter().copied().filter(|&r| !foreign(g, r)).collect();
    if own.len() < roots.len() {
        let needed: HashSet<NodeId> = g.needed_by(&own).into_iter().collect();
        roots.retain(|r| needed.contains(r));
    }
    roots
}

/// Runs the rounds of loops that would make the program for `roots` long.
fn round_by_round(
    by: &'static dyn Witness,
    roots: impl FnOnce(&mut Graph) -> Vec<NodeId>,
) -> Result<Option<SyncEvent>> {
    let Some(mut pieces) = written_out(roots) else { return Ok(None) };
    let mut last = None;
    while let Some((roots, cause)) = pieces.next() {
        let (cut, part) = cut_and_run(by, Roots::Of(roots), Scope::Rest, cause, pieces.at);
        let (outputs, event) = part?;
        last = last.filter(|l: &SyncEvent| l.compile >= event.compile).or(Some(event));
        Ran(smallvec![(cut, outputs)]).finish();
        crate::sys::check_interrupt();
    }
    Ok(last)
}

/// A barrier of the ranks of a mesh: one program for all of them.
pub(super) fn barrier_of(by: &'static dyn Witness, mesh: Mesh, cause: Cause, at: Place) -> Result<Option<SyncEvent>> {
    let _turn = turn();
    metrics::MARK_STEP.add(1);
    let roots = {
        let g = graph();
        let all = g.barrier_roots();
        let of = |device: &u8| all.iter().copied().filter(|&r| g.node(r).placement.home() == *device).collect();
        mesh.devices().iter().map(of).collect::<Vec<Vec<NodeId>>>()
    };
    if roots.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let event = run_parts(by, [Roots::OfRanks(mesh, roots)], Scope::Barrier, cause, at, None)?;
    crate::sys::check_interrupt();
    refuse_many()?;
    Ok(event)
}

/// Has values computed that the ranks of a mesh want, each its own: as [`read_all`], one program for all of them.
pub(super) fn read_of(
    by: &'static dyn Witness,
    mesh: Mesh,
    ids: Vec<Vec<NodeId>>,
    cause: Cause,
    at: Place,
) -> Result<Option<SyncEvent>> {
    let _turn = turn();
    let cause = if cause == Cause::Read && decides(at) { Cause::ControlFlow } else { cause };
    metrics::SYNC_TENSORS.add(1);
    // held until the values are in their places
    let (cut, part) = cut_and_run(by, Roots::OfRanks(mesh, ids), Scope::Read, cause, at);
    let (outputs, event) = part?;
    let mut g = graph();
    for (root, value) in cut.all_roots().zip(&outputs) {
        if let Payload::Pending = g.node(root).payload {
            g.node_mut(root).payload = Payload::Cached(value.clone());
        }
    }
    drop(g);
    Ok(Some(event))
}

/// Runs what comes before a loop.
pub(super) fn start(before: Option<Start>) -> Result<()> {
    let Some(start) = before else { return Ok(()) };
    let ToRun { parts, scope, read } = in_parts(start.roots.clone());
    take_as_read(start.by, &read);
    let parts = parts.into_iter().map(Roots::Of);
    run_parts(start.by, parts, scope, Cause::InitialState, start.at, Some(start.seq))?;
    Ok(())
}

/// Runs a barrier's programs and gives the nodes their values; `until` is the last node that belongs to it, where more has been
/// traced since.
fn run_parts(
    by: &'static dyn Witness,
    parts: impl IntoIterator<Item = Roots>,
    scope: Scope,
    cause: Cause,
    at: Place,
    until: Option<u64>,
) -> Result<Option<SyncEvent>> {
    let mut ran = Ran(SmallVec::new());
    let mut outcome = Ok(None);
    for roots in parts {
        let (cut, part) = cut_and_run(by, roots, scope, cause, at);
        match part {
            Ok((outputs, event)) => {
                ran.0.push((cut, outputs));
                outcome = Ok(Some(event));
            }
            Err(e) => {
                outcome = Err(e);
                break;
            }
        }
    }
    by.cut_off();
    let traced = ran.finish();
    BARRIER.store(until.unwrap_or(traced), Ordering::Relaxed);
    drop(ran);
    outcome
}

type Parts = SmallVec<[Vec<NodeId>; 1]>;

fn take_as_read(by: &'static dyn Witness, read: &[NodeId]) {
    if !read.is_empty() {
        by.takes(read);
        graph().take_as_read(read);
    }
}

/// What a barrier does.
pub(super) struct ToRun {
    /// The roots that it runs, those of each device by themselves.
    pub parts: Parts,
    pub scope: Scope,
    /// Those that it takes as they are.
    pub read: Vec<NodeId>,
}

/// With all that is pending.
pub(super) fn pending_parts() -> ToRun {
    let roots = graph().barrier_roots();
    in_parts(roots)
}

fn in_parts(roots: Vec<NodeId>) -> ToRun {
    let mut g = graph();
    let (rest, read) = g.left_by_reads(roots);
    let parts = g.by_device(rest);
    let scope = match parts.len() {
        0 | 1 if read.is_empty() => Scope::Barrier,
        0 | 1 => Scope::Rest,
        _ => Scope::Part,
    };
    ToRun { parts, scope, read }
}

/// What the parts of a barrier gave. The nodes get their values when all parts have been cut, so that each finds the graph as
/// it was, or when an interrupt ends the barrier, since what was donated to the parts that ran is gone.
struct Ran(SmallVec<[(Cut, Vec<Arc<DeviceData>>); 1]>);

impl Ran {
    /// Gives the nodes their values: how many nodes had been traced by now.
    fn finish(&mut self) -> u64 {
        let mut g = graph();
        for (cut, outputs) in &self.0 {
            for (root, data) in cut.all_roots().zip(outputs) {
                g.finish(root, data.clone());
            }
        }
        if !self.0.is_empty() {
            g.prune_pending();
        }
        let traced = g.last_seq();
        drop(g);
        self.0.clear();
        traced
    }
}

impl Drop for Ran {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            self.finish();
        }
    }
}

/// The value of one node; runs only what it needs, keeps the value beside the node, leaves the pending graph as it is.
pub fn read(
    by: &'static dyn Witness,
    id: NodeId,
    cause: Cause,
    at: Place,
) -> Result<(Arc<DeviceData>, Option<SyncEvent>)> {
    let (mut values, event) = read_all(by, &[id], cause, at)?;
    Ok((values.swap_remove(0), event))
}

type Values = SmallVec<[Arc<DeviceData>; 1]>;

/// The values of several nodes, which one program for each device computes: as [`read`].
pub fn read_all(
    by: &'static dyn Witness,
    ids: &[NodeId],
    cause: Cause,
    at: Place,
) -> Result<(Values, Option<SyncEvent>)> {
    let turn = turn();
    let mut missing: SmallVec<[NodeId; 1]> = {
        let g = graph();
        let mut missing: SmallVec<[NodeId; 1]> =
            ids.iter().copied().filter(|&id| g.node(id).value().is_none()).collect();
        missing.sort_by_key(|&id| g.node(id).seq);
        missing.dedup();
        missing
    };
    if rank().is_some() && !missing.is_empty() {
        // The last one to come reads for all of them.
        drop(turn);
        let event = read_here(&missing, cause, at)?;
        let g = graph();
        let value = |id: &NodeId| g.node(*id).value().cloned().expect("all ranks have their values");
        return Ok((ids.iter().map(value).collect(), event));
    }
    start(before_read(&missing))?;
    let mut last = None;
    let mut ran = HashMap::new();
    let reads = || {
        if matches!(cause, Cause::Read | Cause::ControlFlow | Cause::Concrete) {
            let seq = graph().last_seq();
            by.read(at, seq);
        }
    };
    if !missing.is_empty() && end_here(&missing, at) {
        last = run_all(by, Cause::UnendedRounds, at)?;
        reads();
        let g = graph();
        missing.retain(|id| g.node(*id).value().is_none());
    }
    if !missing.is_empty()
        && let Some(ran) = round_by_round(by, |_| missing.to_vec())?
    {
        last = Some(ran);
        let g = graph();
        missing.retain(|id| g.node(*id).value().is_none());
    }
    if !missing.is_empty() {
        {
            let mut g = graph();
            missing.extend(g.worth_keeping(&missing));
            missing.sort_by_key(|&id| g.node(id).seq);
        }
        let cause = if cause == Cause::Read && decides(at) { Cause::ControlFlow } else { cause };
        let parts = match missing[..] {
            [id] => SmallVec::from_buf([vec![id]]),
            _ => graph().by_device(missing.to_vec()),
        };
        for roots in parts {
            metrics::SYNC_TENSORS.add(1);
            // held until the values are in their places
            let (cut, part) = cut_and_run(by, Roots::Of(roots), Scope::Read, cause, at);
            reads();
            let (outputs, event) = part?;
            has_read(at, event.origin != Origin::Memory);
            let mut g = graph();
            for (&root, value) in cut.roots.iter().zip(&outputs) {
                if let Payload::Pending = g.node(root).payload {
                    g.node_mut(root).payload = Payload::Cached(value.clone());
                }
                ran.insert(root, value.clone());
            }
            drop(g);
            last = Some(event);
        }
    }
    let g = graph();
    let value = |id: &NodeId| match (g.node(*id).value(), ran.get(id)) {
        (Some(value), _) | (None, Some(value)) => value.clone(),
        (None, None) => unreachable!("what had no value was run"),
    };
    Ok((ids.iter().map(value).collect(), last))
}

/// How many nodes had been traced at the last barrier.
static BARRIER: AtomicU64 = AtomicU64::new(0);

/// A cache of no more programs than this may have lost one of them by the next round of the same step.
const FEW: usize = 8;

/// The parameters that the next round of the same step gives away and this one's program keeps; none where that program, or
/// one that is there, serves the next round.
fn held_now(key: &Key, next: &Key) -> Vec<usize> {
    if key == next || key.gives_more_than(next) || cache::contains(next) {
        return Vec::new();
    }
    next.donated().filter(|&leaf| !key.donates(leaf)).collect()
}

/// Cutting a graph of more ops takes much longer than asking the clock.
const MANY: u64 = 64;

/// What one program computes: on one device or mesh, or for each rank of one.
pub(super) enum Roots {
    Of(Vec<NodeId>),
    OfRanks(Mesh, Vec<Vec<NodeId>>),
}

impl Roots {
    /// Those of a cut.
    fn of(cut: &Cut) -> Roots {
        match cut.placement.mesh().filter(|m| m.is_ranks()) {
            None => Roots::Of(cut.roots.clone()),
            Some(mesh) => {
                let all = std::iter::once(cut).chain(&cut.ranks).map(|c| c.roots.clone());
                Roots::OfRanks(mesh, all.collect())
            }
        }
    }

    /// Those of the one, or of the first rank.
    fn first(&self) -> &[NodeId] {
        match self {
            Roots::Of(roots) => roots,
            Roots::OfRanks(_, all) => &all[0],
        }
    }

    /// Cuts them out; of a long graph when that began.
    fn cut(self, scope: Scope) -> Result<(Cut, Option<Instant>)> {
        match self {
            Roots::Of(roots) => {
                let mut g = graph();
                let start = clock(g.last_seq() - BARRIER.load(Ordering::Relaxed) > MANY);
                Ok((g.cut(roots, scope), start))
            }
            Roots::OfRanks(mesh, all) => Ok((cut_of(mesh, &all, scope)?, None)),
        }
    }
}

/// Cuts, finds or compiles the program, runs it.
fn cut_and_run(by: &'static dyn Witness, roots: Roots, scope: Scope, cause: Cause, at: Place) -> (Cut, Outcome) {
    if scope != Scope::Read {
        kept::let_go();
    }
    by.begins(roots.first(), scope != Scope::Read);
    let none = Duration::ZERO;
    let hit = |cut: &Cut, recorded: Duration, start: Option<Instant>| {
        if let Some(joined) = join(&cut.key) {
            return Some(joined.and_then(|(program, costs)| run(by, cut, &program, costs, cause, at)));
        }
        let program = cache::look_up(&cut.key)?;
        metrics::CACHED_COMPILE.add(1);
        let trace = recorded + program.took.cut(start);
        let costs = Costs { origin: Origin::Memory, trace, lower: none, compile: none, memory: None, flops: None };
        Some(run(by, cut, &program, costs, cause, at))
    };
    let (mut cut, start) = match roots.cut(scope) {
        Ok(cut) => cut,
        Err(e) => return (Cut::feeding(vec![], vec![], options()), Err(e)),
    };
    let recorded = traced();
    if let Some(ran) = hit(&cut, recorded, start) {
        return (cut, ran);
    }
    let trace = recorded + start.map_or(none, |s| s.elapsed());
    // Cutting and lowering a long graph takes its time.
    crate::sys::check_interrupt();
    let (mut wanted, miss) = look_at(&cut, cause, at);
    let mut case = by.missed(miss);
    crate::sys::check_interrupt();
    if heal(&mut *case) {
        // What the first cut holds would be donated neither by the second one nor, so, by its program; the next round of a
        // step that updates in place would need another. The nodes hold the data all the while.
        cut.leaves.clear();
        cut.ranks.iter_mut().for_each(|c| c.leaves.clear());
        // The same graph with the changing attributes as parameters is another program, which may be there already.
        let healed = match Roots::of(&cut).cut(scope) {
            Ok((healed, _)) => healed,
            Err(e) => return (cut, Err(e)),
        };
        let same = scope == Scope::Read || !healed.ranks.is_empty();
        let next = if same { healed.key.clone() } else { graph().next_key(&healed) };
        cut = healed;
        if let Some(ran) = hit(&cut, trace, None) {
            case.was_there();
            return (cut, ran);
        }
        let (healed, miss) = look_at(&cut, cause, at);
        wanted = healed;
        let evicted = miss.room.full && miss.room.programs < FEW;
        case.recut(miss, Next { held: held_now(&cut.key, &next), evicted });
    }
    let ran = compile(&cut, wanted, case, trace).and_then(|(p, costs)| run(by, &cut, &p, costs, cause, at));
    (cut, ran)
}

/// Turns what keeps changing into parameters, where that is the cause of a miss; true when the graph must be cut again.
fn heal(case: &mut dyn Case) -> bool {
    let on = graph().healing.is_on();
    let wanted = case.lifts(on);
    let mut g = graph();
    let added = wanted.iter().filter(|(op, at)| g.healing.add(op, *at)).count();
    drop(g);
    if added > 0 {
        case.lifted();
    }
    added > 0
}

/// A program that is not in the cache: lowered, and what a witness is told of it.
pub(super) fn look_at(cut: &Cut, cause: Cause, at: Place) -> (Wanted, Miss) {
    let start = Instant::now();
    let Lowered { text, marks, checks, flops, params, donated, steps, leaves, roots, .. } = lower(cut);
    let lower = start.elapsed();
    let left_pending = match cause {
        Cause::Display | Cause::Read | Cause::ControlFlow | Cause::DeviceChange => {
            let runs: HashSet<NodeId> = cut.nodes.iter().copied().collect();
            let g = graph();
            // Ranks have the same pending.
            let here = |r: &&NodeId| cut.ranks.is_empty() || g.node(**r).placement.is_default();
            g.barrier_roots().iter().filter(here).filter(|r| !runs.contains(r)).count()
        }
        _ => 0,
    };
    let since = BARRIER.load(Ordering::Relaxed);
    let made = leaves.iter().filter(|l| l.seq > since).count() as u64;
    let miss = Miss {
        cause,
        at,
        hash: cut.key.hash,
        anywhere: cut.key.anywhere(),
        device: cut.placement.home(),
        options: cut.options,
        steps: steps.clone(),
        leaves,
        roots,
        results: cut.roots.clone(),
        parameters: params.count(),
        since,
        traced: (graph().last_seq() - since).saturating_sub(made) / (1 + cut.ranks.len() as u64),
        left_pending,
        rounds: running(),
        room: cache::room(cut.key.hash),
    };
    (Wanted { key: cut.key.clone(), text, steps, marks, checks, flops, params, donated, lower }, miss)
}
