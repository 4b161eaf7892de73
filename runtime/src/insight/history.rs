//! The programs that were compiled, kept for comparison after they may have left the cache, and what was said of each.
use super::causes::explain;
use super::record::Record;
use super::report::{Compilation, Explanation, Healing, Place};
use super::unrolled::unrolled;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use xlazy_core::device::name_of;
use xlazy_core::ir::{OpDef, graph};
use xlazy_core::run::{Cause, Costs, Origin};

/// Bytes of records kept.
const KEPT: usize = 64 << 20;
#[derive(Default)]
struct History {
    records: VecDeque<Arc<Record>>,
    bytes: usize,
    compilations: Vec<Compilation>,
    /// The compilation that the budget refused, unless another was made since.
    refused: Option<Compilation>,
    healed: Vec<Healing>,
}

impl History {
    fn heal(&mut self, why: &Explanation, compilation: u64) {
        let healed = |(op, at): &(&OpDef, Place)| Healing { op: op.name, at, compilation };
        self.healed.extend(why.all().flat_map(|why| &why.healable).map(healed));
    }
}

static HISTORY: Mutex<Option<History>> = Mutex::new(None);

fn with<R>(f: impl FnOnce(&mut History) -> R) -> R {
    let mut h = HISTORY.lock().unwrap_or_else(|p| p.into_inner());
    f(h.get_or_insert_with(History::default))
}

/// Forgets all programs; for tests that begin anew.
pub(super) fn forget() {
    let history = with(std::mem::take);
    drop(history);
    graph().healing.forget();
    xlazy_core::run::forget_programs();
}

/// Every compilation of this session, oldest first.
pub fn compilations() -> Vec<Compilation> {
    with(|h| h.compilations.clone())
}

/// What is kept of a compilation.
pub(super) fn record(number: u64) -> Option<Arc<Record>> {
    with(|h| h.records.iter().find(|r| r.number == number).cloned())
}

/// What the parameters of a program are called, and the lines that made them, as long as it is kept.
pub(crate) fn parameters(hash: u128) -> Vec<(Option<String>, Place)> {
    let record = with(|h| h.records.iter().rev().find(|r| r.hash == hash).cloned());
    record.iter().flat_map(|r| &r.leaves).map(|l| (l.name.clone(), l.at)).collect()
}

/// How many programs XLA compiled so far, and how many there are with those from the disk.
pub(crate) fn compiled_so_far() -> (usize, usize) {
    with(|h| (h.compilations.iter().filter(|c| c.origin == Origin::Compiled).count(), h.compilations.len()))
}

/// The compilations after the first `n`.
pub(crate) fn compilations_since(n: usize) -> Vec<Compilation> {
    with(|h| h.compilations.get(n..).unwrap_or_default().to_vec())
}

/// The attributes that became parameters, oldest first.
pub fn healed() -> Vec<Healing> {
    with(|h| h.healed.clone())
}

/// Turns healing on (as it is from the start) or off; off also for what was healed before.
pub fn set_healing(on: bool) {
    graph().healing.set(on);
}

/// Whether attributes that keep changing become parameters.
pub fn healing() -> bool {
    graph().healing.is_on()
}

/// Lists what was healed where the healed program was there already, compiled for another line.
pub(crate) fn keep_healings(why: &Explanation, compilation: u64) {
    with(|h| h.heal(why, compilation));
}

/// Why a program that is about to be compiled was not there, if there was one like it; and how long the search took.
pub(crate) fn why(record: &Record) -> (Option<Explanation>, Duration) {
    let start = Instant::now();
    // Op by op every program is one op, and nothing is to be learnt from how two of them differ.
    if record.cause == Cause::Eager {
        return (None, Duration::ZERO);
    }
    let whole = |r: &&Arc<Record>| r.cause != Cause::Eager;
    let known: Vec<Arc<Record>> = with(|h| h.records.iter().filter(whole).cloned().collect());
    (explain(record, &known), start.elapsed())
}

/// Keeps why a program would have been compiled that the budget refused.
pub(crate) fn refuse(mut record: Record, why: (Option<Explanation>, Duration), parameters: usize, costs: Costs) {
    with(|h| {
        record.number = h.compilations.len() as u64 + 1;
        h.refused = Some(Compilation { refused: true, ..compilation(&record, why, parameters, costs) });
    });
}

/// The compilation that the budget refused, if it was the last one asked for.
pub(crate) fn refused() -> Option<Compilation> {
    with(|h| h.refused.clone())
}

fn compilation(
    record: &Record,
    (why, explained_in): (Option<Explanation>, Duration),
    parameters: usize,
    costs: Costs,
) -> Compilation {
    Compilation {
        number: record.number,
        cause: record.cause,
        site: record.site,
        nodes: record.steps.len(),
        parameters,
        outputs: record.roots.len(),
        origin: costs.origin,
        trace: costs.trace,
        lower: costs.lower,
        compile: costs.compile,
        memory: costs.memory,
        flops: costs.flops,
        hash: record.hash,
        device: name_of(record.device),
        unrolled: unrolled(record, why.is_some()),
        why,
        refused: false,
        explained_in,
    }
}

/// Keeps a freshly compiled program, with the reason found before.
pub(crate) fn compiled(
    mut record: Record,
    (why, explained_in): (Option<Explanation>, Duration),
    parameters: usize,
    costs: Costs,
) -> Compilation {
    with(|h| {
        record.number = h.compilations.len() as u64 + 1;
        h.refused = None;
        let compilation = compilation(&record, (why, explained_in), parameters, costs);
        if let Some(why) = compilation.why.as_ref().filter(|why| why.all().any(|why| why.healed)) {
            h.heal(why, compilation.number);
        }
        h.compilations.push(compilation.clone());
        h.bytes += record.bytes();
        h.records.push_back(Arc::new(record));
        while h.bytes > KEPT && h.records.len() > 1 {
            if let Some(old) = h.records.pop_front() {
                h.bytes -= old.bytes();
            }
        }
        compilation
    })
}
