//! Syncs: cut the graph, find or compile its program, run it, give the nodes their values.
use super::cache::{self, Program};
use super::compile::{compile, join};
use super::wait::{ready, wait};
use super::{DeviceData, disk, name_of, session};
use crate::display::place::{binding, decides};
use crate::dtype::DType;
use crate::emit::{LeafType, Mark, Params, program};
use crate::insight::{
    Cause, Costs, Explanation, LeafRecord, Lines, Origin, Place, Read, Record, SyncEvent, Work, clock, keep_healings,
    metrics, mode, record, same_place, traced, waiting, why,
};
use crate::ir::{Cut, Leaf, NodeId, Payload, REQUIRES_GRAD, Scope, Step, graph};
use crate::op::Type;
use crate::ops::{DATA, finder};
use crate::{Error, Result};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};
use xlazy_mime::count;
use xlazy_pjrt::{Buffer, Event};

/// One sync at a time: between a cut and its end no other sync may see half-finished nodes or donated buffers.
static TURN: Mutex<()> = Mutex::new(());

/// Computes every live tensor that has no value yet and cuts the graph behind them. `None` when there was nothing to do.
pub(crate) fn barrier(cause: Cause, at: &'static Location<'static>) -> Result<Option<SyncEvent>> {
    let _turn = TURN.lock().unwrap_or_else(|p| p.into_inner());
    metrics::MARK_STEP.add(1);
    let parts = pending_parts();
    let scope = if parts.len() > 1 { Scope::Part } else { Scope::Barrier };
    let mut ran = Ran(SmallVec::new());
    let mut outcome = Ok(None);
    for roots in parts {
        let (cut, part) = cut_and_run(roots, scope, cause, at);
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
    reads().clear();
    BARRIER.store(ran.finish(), Ordering::Relaxed);
    drop(ran);
    let event = outcome?;
    // Only now: an interrupt that came while a program ran must not lose what was donated to it.
    crate::sys::check_interrupt();
    Ok(event)
}

/// What a barrier must run: the pending roots, those of each device by themselves.
fn pending_parts() -> SmallVec<[Vec<NodeId>; 1]> {
    let g = graph();
    g.by_device(g.barrier_roots())
}

/// What the parts of a barrier gave. The nodes get their values when all parts have been cut, so that each finds the graph as
/// it was, or when an interrupt ends the barrier, since what was donated to the parts that ran is gone.
struct Ran(SmallVec<[(Cut, Vec<Arc<DeviceData>>); 1]>);

impl Ran {
    /// Gives the nodes their values: how many nodes had been traced by now.
    fn finish(&mut self) -> u64 {
        let mut g = graph();
        for (cut, outputs) in &self.0 {
            for (&root, data) in cut.roots.iter().zip(outputs) {
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
pub(crate) fn read(
    id: NodeId,
    cause: Cause,
    at: &'static Location<'static>,
) -> Result<(Arc<DeviceData>, Option<SyncEvent>)> {
    let _turn = TURN.lock().unwrap_or_else(|p| p.into_inner());
    if let Some(d) = graph().node(id).value() {
        return Ok((d.clone(), None));
    }
    let cause = if cause == Cause::Read && decides(at) { Cause::ControlFlow } else { cause };
    metrics::SYNC_TENSORS.add(1);
    // held until the value is in its place
    let (_cut, ran) = cut_and_run(vec![id], Scope::Read, cause, at);
    if matches!(cause, Cause::Read | Cause::ControlFlow | Cause::Concrete) {
        let seq = graph().last_seq();
        reads().push(Read { at, seq });
    }
    let mut g = graph();
    if let Ok((outputs, _)) = &ran
        && let Payload::Pending = g.node(id).payload
    {
        g.node_mut(id).payload = Payload::Cached(outputs[0].clone());
    }
    drop(g);
    ran.map(|(mut outputs, event)| (outputs.swap_remove(0), Some(event)))
}

/// What a barrier would do now.
pub(crate) struct Forecast {
    /// Ops that it would run.
    pub nodes: usize,
    /// Bytes of buffers that results would take the place of.
    pub donated: usize,
    /// One for each device.
    pub programs: usize,
    /// Of the worst of them.
    pub origin: Origin,
}

/// What a barrier would do now, without doing it; `None` when nothing is pending, or a sync is at work.
pub(crate) fn would() -> Option<Forecast> {
    let _turn = match TURN.try_lock() {
        Ok(turn) => turn,
        Err(TryLockError::Poisoned(p)) => p.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    let parts = pending_parts();
    let scope = if parts.len() > 1 { Scope::Part } else { Scope::Barrier };
    let worse = |a: Origin, b: Origin| match (a, b) {
        (Origin::Compiled, _) | (_, Origin::Compiled) => Origin::Compiled,
        (Origin::Disk, _) | (_, Origin::Disk) => Origin::Disk,
        _ => Origin::Memory,
    };
    let one = |roots: Vec<NodeId>| {
        let cut = graph().cut(roots, scope);
        let donated = cut.leaves.iter().map(|(_, leaf)| match leaf {
            Leaf::Data { data, donate: true } => data.ty.bytes(),
            _ => 0,
        });
        let origin = match cache::contains(&cut.key) {
            true => Origin::Memory,
            false if disk::is_on() && disk::contains(&cut.key, &lower(&cut).text) => Origin::Disk,
            false => Origin::Compiled,
        };
        Forecast { nodes: cut.nodes.len(), donated: donated.sum(), programs: 1, origin }
    };
    let sum = |a: Forecast, b: Forecast| Forecast {
        nodes: a.nodes + b.nodes,
        donated: a.donated + b.donated,
        programs: a.programs + b.programs,
        origin: worse(a.origin, b.origin),
    };
    parts.into_iter().map(one).reduce(sum)
}

/// Cutting a graph of more ops takes much longer than asking the clock.
const MANY: u64 = 64;

type Outcome = Result<(Vec<Arc<DeviceData>>, SyncEvent)>;

/// Cuts, finds or compiles the program, runs it.
fn cut_and_run(roots: Vec<NodeId>, scope: Scope, cause: Cause, at: Place) -> (Cut, Outcome) {
    let none = Duration::ZERO;
    let hit = |cut: &Cut, recorded: Duration, start: Option<Instant>| {
        if let Some(joined) = join(&cut.key) {
            return Some(joined.and_then(|(program, costs)| run(cut, &program, costs, cause, at)));
        }
        let program = cache::look_up(&cut.key)?;
        metrics::CACHED_COMPILE.add(1);
        let trace = recorded + program.took.cut(start);
        let costs = Costs { origin: Origin::Memory, trace, lower: none, compile: none, memory: None, flops: None };
        Some(run(cut, &program, costs, cause, at))
    };
    let (mut cut, start) = {
        let mut g = graph();
        let start = clock(g.last_seq() - BARRIER.load(Ordering::Relaxed) > MANY);
        (g.cut(roots, scope), start)
    };
    let recorded = traced();
    if let Some(ran) = hit(&cut, recorded, start) {
        return (cut, ran);
    }
    let trace = recorded + start.map_or(none, |s| s.elapsed());
    // Cutting and lowering a long graph takes its time.
    crate::sys::check_interrupt();
    let mut missed = miss(&cut, cause, at);
    crate::sys::check_interrupt();
    if heal(&mut missed) {
        // The same graph with the changing attributes as parameters is another program, which may be there already.
        let healed = graph().cut(cut.roots.clone(), scope);
        cut = healed;
        if let Some(ran) = hit(&cut, trace, None) {
            if let Some(why) = &missed.why.0 {
                keep_healings(why, why.compared_with);
            }
            return (cut, ran);
        }
        missed = Missed { why: missed.why, ..miss(&cut, cause, at) };
    }
    let ran = compile(&cut, missed, trace).and_then(|(p, costs)| run(&cut, &p, costs, cause, at));
    (cut, ran)
}

fn run(cut: &Cut, program: &Program, costs: Costs, cause: Cause, at: Place) -> Outcome {
    crate::sys::check_interrupt();
    let settles = costs.origin != Origin::Memory || UNSETTLED.load(Ordering::Relaxed);
    let start = program.took.clock(settles);
    let working = waiting(Some(Work { nodes: program.nodes, cause, at }));
    let held = held(cut, program);
    let (outputs, waited) = execute(cut, program, &held)?;
    if settles {
        settle(&outputs)?;
    }
    drop(working);
    let execute = match start.map(|s| s.elapsed()) {
        None => program.took.execute(None) + waited,
        took => program.took.execute(took),
    };
    metrics::EXECUTE_TIME.add_time_at(execute, start.map(|s| s + execute));
    let event = record(SyncEvent {
        number: 0,
        cause,
        at,
        nodes: program.nodes,
        parameters: program.params.count(),
        outputs: outputs.len(),
        donated: program.donated - held.arguments.len(),
        copied: held.bytes,
        origin: costs.origin,
        trace: costs.trace,
        lower: costs.lower,
        compile: costs.compile,
        execute,
        hash: program.key.hash,
        device: name_of(program.device),
    });
    Ok((outputs, event))
}

/// How many nodes had been traced at the last barrier.
static BARRIER: AtomicU64 = AtomicU64::new(0);

/// Lines that read a value since the last barrier: what user code may have decided by.
static READS: Mutex<Vec<Read>> = Mutex::new(Vec::new());

fn reads() -> MutexGuard<'static, Vec<Read>> {
    READS.lock().unwrap_or_else(|p| p.into_inner())
}

/// How many nodes had been traced when the cell began: what it does does not follow from values that another one read.
static CELL: AtomicU64 = AtomicU64::new(0);

/// A new cell begins. Of the reads before it each line's last one is kept, which tells what nothing was synced since.
pub(crate) fn begin_cell() {
    CELL.store(graph().last_seq(), Ordering::Relaxed);
    let mut all = reads();
    let mut kept: Vec<Read> = Vec::new();
    for read in all.drain(..).rev() {
        if kept.len() < LINES && !kept.iter().any(|k| same_place(k.at, read.at)) {
            kept.push(read);
        }
    }
    kept.reverse();
    *all = kept;
}

/// Lines that are remembered from cell to cell.
const LINES: usize = 64;

/// A program that is not in the cache: lowered, and compared with those that were.
pub(super) struct Missed {
    pub text: String,
    pub marks: Vec<Mark>,
    pub params: Params,
    pub donated: usize,
    pub lower: Duration,
    pub record: Record,
    pub why: (Option<Explanation>, Duration),
}

fn miss(cut: &Cut, cause: Cause, at: Place) -> Missed {
    let start = Instant::now();
    let Lowered { text, marks, params, donated, steps, lines, leaves, roots } = lower(cut);
    let lower = start.elapsed();
    let room = cache::room(cut.key.hash);
    let left_pending = match cause {
        Cause::Display | Cause::Read | Cause::ControlFlow | Cause::DeviceChange => {
            let runs: HashSet<NodeId> = cut.nodes.iter().copied().collect();
            graph().barrier_roots().iter().filter(|r| !runs.contains(r)).count()
        }
        _ => 0,
    };
    // Reading the same line again and again (a cell that shows a value) decides nothing.
    let (here, mut others): (Vec<Read>, Vec<Read>) = reads().iter().partition(|r| same_place(r.at, at));
    let cell = CELL.load(Ordering::Relaxed);
    others.retain(|r| r.seq >= cell);
    let barrier = BARRIER.load(Ordering::Relaxed);
    let made = leaves.iter().filter(|l| l.seq > barrier).count() as u64;
    let traced_ops = (graph().last_seq() - barrier).saturating_sub(made);
    let record = Record {
        number: 0,
        cause,
        site: at,
        hash: cut.key.hash,
        device: cut.device,
        anywhere: cut.key.anywhere(),
        steps,
        lines,
        leaves,
        roots,
        precision: cut.precision,
        reads: others,
        traced: traced_ops,
        read_before: here.last().map(|r| r.seq),
        left_pending,
        room,
    };
    let why = why(&record);
    Missed { text, marks, params, donated, lower, record, why }
}

/// Turns what keeps changing into parameters, where that is the cause of a miss; true when the graph must be cut again.
fn heal(missed: &mut Missed) -> bool {
    let Some(why) = &mut missed.why.0 else { return false };
    let mut g = graph();
    if !g.healing.is_on() && !why.healable.is_empty() {
        why.fix = format!(
            "`%heal on`: it becomes a parameter, which is compiled once more and then never again. Or: {}",
            why.fix
        );
        return false;
    }
    let added = why.healable.iter().filter(|(op, at)| g.healing.add(op, at)).count();
    if added == 0 {
        return false;
    }
    why.healed = true;
    why.fix = "healed: from now on it is a parameter and compiles nothing; `%heal off` turns that off".into();
    true
}

/// A cut as StableHLO, and how to feed it.
struct Lowered {
    text: String,
    marks: Vec<Mark>,
    params: Params,
    donated: usize,
    steps: Vec<Step>,
    lines: Vec<u64>,
    leaves: Vec<LeafRecord>,
    roots: Vec<u32>,
}

/// What the graph says of a leaf.
struct Made {
    id: NodeId,
    at: Place,
    seq: u64,
    parameter: bool,
    computed: bool,
    finder: Option<&'static str>,
    holder: Option<String>,
}

fn lower(cut: &Cut) -> Lowered {
    let variables = crate::cell::tensors();
    let names: HashMap<NodeId, &String> = variables.iter().map(|(name, id)| (*id, name)).collect();
    let (steps, leaves, made) = {
        let g = graph();
        let made: Vec<Made> = cut
            .leaves
            .iter()
            .map(|(id, leaf)| {
                let node = g.node(*id);
                let parameter = node.flags & REQUIRES_GRAD != 0;
                let held = |v: &&(String, NodeId)| match (leaf, g.node(v.1).data()) {
                    (Leaf::Data { data, donate: false }, Some(other)) => Arc::ptr_eq(data, other),
                    _ => false,
                };
                let holder = variables.iter().find(held).map(|(name, _)| name.clone());
                let found = finder(node.op);
                let computed = found.is_none() && !std::ptr::eq(node.op, &DATA);
                Made { id: *id, at: node.at, seq: node.seq, parameter, computed, finder: found, holder }
            })
            .collect();
        let leaf = |(id, leaf): &(NodeId, Leaf)| LeafType {
            ty: leaf.ty(g.node(*id)),
            scalar: leaf.bits().is_some(),
            donate: matches!(leaf, Leaf::Data { donate: true, .. }),
        };
        (g.steps(cut), cut.leaves.iter().map(leaf).collect::<Vec<_>>(), made)
    };
    let params = Params::lay_out(leaves.iter().map(|l| (&l.ty, l.scalar)));
    let at: HashMap<NodeId, u32> = cut.nodes.iter().enumerate().map(|(i, &n)| (n, i as u32)).collect();
    let roots: Vec<u32> = cut.roots.iter().map(|r| at[r]).collect();
    let (text, marks) = program(&steps, &leaves, &params, &roots, cut.precision);
    let mut places = Lines::default();
    let lines: Vec<u64> = steps.iter().map(|s| places.of(s.at)).collect();
    let latest: HashMap<u64, u64> = lines.iter().zip(&steps).map(|(&l, s)| (l, s.seq)).collect();
    let donated = leaves.iter().filter(|l| l.donate).count();
    // A line that makes several kinds of things (a model, an optimizer) has no name for one of them.
    let mut kinds: HashMap<u64, Option<&Type>> = HashMap::new();
    for (l, Made { at, .. }) in leaves.iter().zip(&made).filter(|(l, _)| !l.scalar) {
        let kind = kinds.entry(places.of(at)).or_insert(Some(&l.ty));
        *kind = kind.filter(|ty| **ty == l.ty);
    }
    let several: HashSet<u64> = kinds.into_iter().filter(|(_, kind)| kind.is_none()).map(|(line, _)| line).collect();
    let leaves = leaves
        .into_iter()
        .zip(made)
        .map(|(l, Made { id, at, seq, parameter, computed, finder, holder })| {
            let frozen = mode::frozen_at(seq).filter(|_| !parameter);
            // A line names the last thing that it makes.
            let line = places.of(at);
            let last = || !l.scalar && !several.contains(&line) && latest.get(&line).is_none_or(|&later| later <= seq);
            let name = names.get(&id).map(|n| n.to_string()).or_else(|| last().then(|| binding(at)).flatten());
            LeafRecord {
                ty: l.ty,
                scalar: l.scalar,
                donate: l.donate,
                at,
                line,
                seq,
                parameter,
                computed,
                frozen,
                finder,
                holder,
                name,
            }
        })
        .collect();
    Lowered { text, marks, params, donated, steps, lines, leaves, roots }
}

/// Looks at the program that would compute some pending nodes, without running it. `None` where there is nothing to run.
fn inspect<R>(roots: Vec<NodeId>, look: impl FnOnce(&Cut) -> R) -> Option<R> {
    let _turn = TURN.lock().unwrap_or_else(|p| p.into_inner());
    let cut = {
        let mut g = graph();
        let roots: Vec<NodeId> = roots.into_iter().filter(|&r| g.node(r).data().is_none()).collect();
        if roots.is_empty() {
            return None;
        }
        g.cut(roots, Scope::Read)
    };
    Some(look(&cut))
}

/// The StableHLO text of the program that would compute these nodes.
pub(crate) fn lowered(roots: Vec<NodeId>) -> Option<String> {
    inspect(roots, |cut| lower(cut).text)
}

/// The StableHLO text of what a barrier on these nodes alone would run, with where its parts are from; values that reads have
/// cached do not cut it short. `None` where all of them have their values.
pub(crate) fn lowered_step(mut roots: Vec<NodeId>) -> Option<(String, Vec<Mark>)> {
    let _turn = TURN.lock().unwrap_or_else(|p| p.into_inner());
    let cut = {
        let mut g = graph();
        roots.retain(|&r| g.node(r).data().is_none());
        roots.sort_unstable_by_key(|&r| g.node(r).seq);
        roots.dedup();
        if roots.is_empty() {
            return None;
        }
        g.cut(roots, Scope::Barrier)
    };
    let Lowered { text, marks, .. } = lower(&cut);
    Some((text, marks))
}

/// The compiled program that would compute these nodes: from the cache, or compiled now; it is not run.
#[track_caller]
pub(crate) fn compiled(roots: Vec<NodeId>) -> Option<Result<Arc<Program>>> {
    let (last, at) = (cache::last_program(), Location::caller());
    let program = inspect(roots, |cut| {
        let there = join(&cut.key).map(|joined| joined.map(|(program, _)| program));
        there
            .or_else(|| cache::look_up(&cut.key).map(Ok))
            .unwrap_or_else(|| compile(cut, miss(cut, Cause::Display, at), Duration::ZERO).map(|(program, _)| program))
    });
    cache::set_last(last);
    program
}

/// Arguments that the program donates and this cut keeps, since something holds them: PJRT copies them first.
#[derive(Default)]
struct Held {
    arguments: Vec<i64>,
    bytes: usize,
}

fn held(cut: &Cut, program: &Program) -> Held {
    let mut held = Held::default();
    if program.key.hash == cut.key.hash {
        return held;
    }
    for (argument, &leaf) in program.params.data.iter().enumerate() {
        if let Leaf::Data { data, donate: false } = &cut.leaves[leaf as usize].1
            && program.key.donates(leaf as usize)
        {
            held.arguments.push(argument as i64);
            held.bytes += data.ty.bytes();
        }
    }
    program.copied(held.bytes);
    metrics::HELD_DATA.add_bytes(held.bytes);
    held
}

/// Starts a program: its results, and how long the device would take nothing.
fn execute(cut: &Cut, program: &Program, held: &Held) -> Result<(Vec<Arc<DeviceData>>, Duration)> {
    let packs = program
        .params
        .packs
        .iter()
        .enumerate()
        .map(|(i, (dtype, members))| pack(cut, program, i, *dtype, members))
        .collect::<Result<Vec<Arc<Buffer>>>>()?;
    let mut copies = Vec::new();
    for &leaf in &program.params.data {
        if let Leaf::Data { data, donate } = &cut.leaves[leaf as usize].1
            && data.device != program.device
        {
            let copy = if *donate { data.copied_to(program.device) } else { data.shared_on(program.device) };
            copies.push(copy?);
        }
    }
    let mut copies = copies.iter();
    let mut arguments: Vec<&Buffer> = Vec::with_capacity(program.params.count());
    for &leaf in &program.params.data {
        match &cut.leaves[leaf as usize].1 {
            Leaf::Data { data, .. } if data.device == program.device => arguments.push(&data.buffer),
            Leaf::Data { .. } => arguments.extend(copies.next().map(|c| &c.buffer)),
            Leaf::Scalar(_) | Leaf::Lifted(_) => unreachable!("scalars are packed"),
        }
    }
    arguments.extend(packs.iter().map(|p| &**p));
    let waited = make_room()?;
    let outputs = program.executable.execute(&arguments, &held.arguments)?;
    if outputs.len() != program.root_types.len() {
        let message = format!("the program gave {} of {}", outputs.len(), count(program.root_types.len(), "result"));
        return Err(Error::Usage { message });
    }
    if let Some(output) = outputs.first() {
        watch(output)?;
    }
    let outputs = outputs.into_iter().zip(&program.root_types);
    Ok((outputs.map(|(buffer, ty)| Arc::new(DeviceData::new(buffer, ty.clone(), program.device))).collect(), waited))
}

/// Executions that were still running when the host went on. The plugin's destructors must not run under them.
static IN_FLIGHT: Mutex<Vec<Event>> = Mutex::new(Vec::new());

fn in_flight() -> MutexGuard<'static, Vec<Event>> {
    IN_FLIGHT.lock().unwrap_or_else(|p| p.into_inner())
}

/// Keeps an eye on an execution until it is done; small ones are done already.
pub(super) fn watch(output: &Buffer) -> Result<()> {
    let ready = output.ready_event()?;
    if !ready.is_ready()? {
        let mut running = in_flight();
        running.push(ready);
    }
    Ok(())
}

/// A plugin lets the host wait when this many executions are under way (XLA's CPU client from 32 on), and that wait no
/// interrupt would end.
const AT_ONCE: usize = 24;

/// Waits until the device takes another execution at once: how long that took. Nothing has been given to it yet, so an
/// interrupt may unwind.
fn make_room() -> Result<Duration> {
    let mut waited = Duration::ZERO;
    loop {
        let oldest = {
            let mut running = in_flight();
            if running.len() >= AT_ONCE {
                running.retain(|e| !e.is_ready().unwrap_or(true));
            }
            match running.len() >= AT_ONCE {
                true => running[0].clone(),
                false => return Ok(waited),
            }
        };
        let start = Instant::now();
        // An error of another execution is told where its value is read.
        let _ = wait(&oldest);
        waited += start.elapsed();
    }
}

/// The first execution of a program was interrupted before it ended: the next one settles.
static UNSETTLED: AtomicBool = AtomicBool::new(false);

/// Waits for the first execution of a new program, and has the process wait for later ones when it exits. In the first one
/// XLA sets up statics, whose destructors would otherwise run before our wait, under running executions.
fn settle(outputs: &[Arc<DeviceData>]) -> Result<()> {
    let settled = match outputs.first() {
        Some(output) => ready(&output.buffer.ready_event()?)?,
        None => true,
    };
    UNSETTLED.store(!settled, Ordering::Relaxed);
    if settled {
        crate::sys::at_exit(wait_at_exit);
    }
    Ok(())
}

/// Waits for what is still running, when the process exits.
extern "C" fn wait_at_exit() {
    disk::settle(Duration::from_secs(5));
    // An exit from within a sync holds the lock: then there is nobody left who could run into the destructors.
    if let Ok(mut running) = IN_FLIGHT.try_lock() {
        running.drain(..).for_each(|e| drop(e.await_ready()));
    }
}

/// The buffer of the scalars of one dtype; the last run's where they are the same.
fn pack(cut: &Cut, program: &Program, i: usize, dtype: DType, members: &[u32]) -> Result<Arc<Buffer>> {
    let mut bytes = Vec::with_capacity(members.len() * dtype.size());
    for &bits in members.iter().filter_map(|&leaf| cut.leaves[leaf as usize].1.bits()).flatten() {
        match dtype {
            DType::F32 => bytes.extend_from_slice(&(f64::from_bits(bits) as f32).to_le_bytes()),
            DType::I32 => bytes.extend_from_slice(&(bits as i64 as i32).to_le_bytes()),
            _ => bytes.extend_from_slice(&bits.to_le_bytes()),
        }
    }
    let mut packs = program.packs.lock().unwrap_or_else(|p| p.into_inner());
    if let Some((last, buffer)) = &packs[i]
        && *last == bytes
    {
        return Ok(buffer.clone());
    }
    let s = session()?;
    let n = [(bytes.len() / dtype.size()) as i64];
    let dims: &[i64] = if n == [1] { &[] } else { &n };
    let start = Instant::now();
    let buffer =
        Arc::new(s.client.buffer_from_host(&bytes, dtype.pjrt(), dims, &s.devices[program.device as usize])?);
    metrics::TRANSFER_TO_DEVICE_TIME.add_time(start.elapsed());
    metrics::OUTBOUND_DATA.add_bytes(bytes.len());
    packs[i] = Some((bytes, buffer.clone()));
    Ok(buffer)
}
