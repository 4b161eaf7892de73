//! Insight as the witness of what runs: it writes syncs down, explains misses, and says what may become a parameter.
use super::budget::within_budget;
use super::history::{compiled, keep_healings, refuse, why};
use super::live;
use super::log;
use super::record::{Read, Record, of_miss, same_place};
use super::render::event_json;
use super::report::{Explanation, Place};
use super::unrolled::unrolled;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use xlazy_core::Result;
use xlazy_core::ir::{NodeId, OpDef, graph};
use xlazy_core::run::{Case, Costs, Miss, Next, Policy, SyncEvent, Witness, Work};
use xlazy_core::sys::statement;
use xlazy_core::text::{self, Source};

/// The witness of this process.
pub(crate) static INSIGHT: Insight = Insight;

pub(crate) struct Insight;

/// What one who looks on is told.
pub(crate) enum Seen<'a> {
    /// These nodes are wanted, of a barrier or a read: the graph is as it was before.
    Begins { roots: &'a [NodeId], barrier: bool },
    /// Their program was started.
    Ran(&'a SyncEvent),
}

type Onlooker = fn(Seen);

static ONLOOKER: Mutex<Option<Onlooker>> = Mutex::new(None);
/// So that nobody asks for the lock where nobody looks on.
static LOOKED_ON: AtomicBool = AtomicBool::new(false);

/// Has somebody look on from now on, or nobody any more.
pub(crate) fn look_on(onlooker: Option<Onlooker>) {
    LOOKED_ON.store(onlooker.is_some(), Ordering::Relaxed);
    *ONLOOKER.lock().unwrap_or_else(PoisonError::into_inner) = onlooker;
}

/// Whether each sync and compilation is told as it happens, to a front end that asked for it.
static STREAMED: AtomicBool = AtomicBool::new(false);

pub(crate) fn stream(on: bool) {
    STREAMED.store(on, Ordering::Relaxed);
}

fn show(seen: Seen) {
    if LOOKED_ON.load(Ordering::Relaxed) {
        let onlooker = *ONLOOKER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(onlooker) = onlooker {
            onlooker(seen);
        }
    }
}

impl Witness for Insight {
    fn begins(&self, roots: &[NodeId], barrier: bool) {
        show(Seen::Begins { roots, barrier });
    }

    fn works(&self, work: Option<Work>) {
        live::begin_wait(work);
    }

    fn rests(&self) {
        live::end_wait();
    }

    fn ran(&self, event: SyncEvent) -> SyncEvent {
        let event = log::record(event);
        show(Seen::Ran(&event));
        if STREAMED.load(Ordering::Relaxed) {
            xlazy_core::host::event("sync", &event_json(&event));
        }
        event
    }

    fn read(&self, at: text::Place, seq: u64) {
        let read = Read { at: Source::of(at), statement: statement().map(Source::of), seq };
        reads().push(read);
    }

    fn cut_off(&self) {
        reads().clear();
        taken().clear();
    }

    fn takes(&self, read: &[NodeId]) {
        let g = graph();
        taken().extend(read.iter().map(|&id| (g.node(id).op, Source::of(g.node(id).at))));
    }

    fn missed(&self, miss: Miss) -> Box<dyn Case> {
        let (parameters, name, at) = (miss.parameters, variable(&miss.results), miss.at);
        let record = record(miss);
        let why = why(&record);
        Box::new(Missed { record, at, parameters, name, why })
    }
}

/// Lines that read a value since the last barrier: what user code may have decided by.
static READS: Mutex<Vec<Read>> = Mutex::new(Vec::new());

fn reads() -> MutexGuard<'static, Vec<Read>> {
    READS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the barrier that runs takes as reads have computed it: ops and their lines.
static TAKEN: Mutex<Vec<(&'static OpDef, Place)>> = Mutex::new(Vec::new());

fn taken() -> MutexGuard<'static, Vec<(&'static OpDef, Place)>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many nodes had been traced when the cell began: what it does does not follow from values that another one read.
static CELL: AtomicU64 = AtomicU64::new(0);

/// Forgets all reads; for tests that begin anew.
pub(super) fn forget() {
    reads().clear();
    CELL.store(0, Ordering::Relaxed);
}

/// Lines that are remembered from cell to cell.
const LINES: usize = 64;

/// A new cell begins. Of the reads before it each line's last one is kept, which tells what nothing was synced since.
pub(super) fn cell_begins() {
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

/// A miss with what was read before it.
fn record(miss: Miss) -> Record {
    // Reading the same line again and again (a cell that shows a value) decides nothing.
    let site = Source::of(miss.at);
    let (here, mut others): (Vec<Read>, Vec<Read>) = reads().iter().partition(|r| same_place(r.at, site));
    let cell = CELL.load(Ordering::Relaxed);
    others.retain(|r| r.seq >= cell);
    let taken = taken().clone();
    of_miss(miss, [others, here], &taken)
}

/// The variable that a program is for, where it is for one alone.
fn variable(results: &[NodeId]) -> Option<String> {
    let mut named = xlazy_core::host::variables().into_iter().filter(|(_, id)| results.contains(id));
    match (named.next(), named.next()) {
        (Some((name, _)), None) => Some(name),
        _ => None,
    }
}

/// What is said of a healed program: that it compiles nothing more only where the next round's key says so.
fn promise(healed: &Record, next: &Next) -> String {
    let off = "`%heal off` turns that off";
    if let Some(&leaf) = next.held.first() {
        let leaf = healed.leaves.get(leaf);
        let holder = match leaf.and_then(|l| l.holder.as_ref()) {
            Some(name) => format!("`{name}` holds"),
            None => "something holds".into(),
        };
        let ty = leaf.map_or(String::new(), |l| format!(" ({})", l.ty));
        return format!(
            "healed: from now on it is a parameter, but the next step compiles once more, because {holder} what this one \
             starts from{ty}, and the next step gives away what this one makes; {off}"
        );
    }
    if next.evicted {
        return format!(
            "healed: from now on it is a parameter, which compiles nothing while the program stays in the cache, and that is \
             full (at most {}); {off}",
            xlazy_mime::count(healed.room.programs, "program")
        );
    }
    format!("healed: from now on it is a parameter and compiles nothing; {off}")
}

/// A program that was not in the cache, and why.
struct Missed {
    record: Record,
    at: text::Place,
    parameters: usize,
    name: Option<String>,
    why: (Option<Explanation>, Duration),
}

impl Policy for Missed {
    fn lifts(&mut self, on: bool) -> Vec<(&'static OpDef, Place)> {
        let Some(why) = &mut self.why.0 else { return vec![] };
        if !on {
            why.each_healable(|why| {
                let on = "`%heal on`: it becomes a parameter, which is compiled once more and then never again";
                why.fix = format!("{on}. Or: {}", why.fix);
            });
            return vec![];
        }
        why.all().flat_map(|why| why.healable.clone()).collect()
    }

    fn permits(&self) -> Result<()> {
        within_budget(self.why.0.as_ref())
    }
}

impl Case for Missed {
    fn lifted(&mut self) {
        if let Some(why) = &mut self.why.0 {
            why.each_healable(|why| why.healed = true);
        }
    }

    fn recut(&mut self, miss: Miss, next: Next) {
        self.parameters = miss.parameters;
        self.record = record(miss);
        if let Some(why) = &mut self.why.0 {
            let promise = promise(&self.record, &next);
            why.each_healable(|why| {
                why.fix.clone_from(&promise);
                why.edits.clear();
            });
        }
    }

    fn was_there(self: Box<Self>) {
        if let Some(why) = &self.why.0 {
            keep_healings(why, why.compared_with);
        }
    }

    fn compiling(&self) -> Box<dyn Any> {
        let work = Work { nodes: self.record.steps.len(), cause: self.record.cause, at: self.at };
        let advice = unrolled(&self.record, self.why.0.is_some()).map(|u| u.sentence());
        Box::new(live::compiling(work, self.name.clone(), advice))
    }

    fn refused(self: Box<Self>, costs: Costs) {
        refuse(self.record, self.why, self.parameters, costs);
    }

    fn compiled(self: Box<Self>, costs: Costs) {
        let compilation = compiled(self.record, self.why, self.parameters, costs);
        if STREAMED.load(Ordering::Relaxed) {
            xlazy_core::host::event("compilation", &compilation.json());
        }
    }
}
