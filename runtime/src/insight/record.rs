//! The programs that were compiled, kept for comparison after they may have left the cache, and the search for the one
//! that a new program should have been.
use super::explain::explain;
use super::log::runs;
use super::report::{Compilation, Costs, Explanation, Healing, Place};
use super::{Cause, Origin};
use crate::backends::Precision;
use crate::display::place::{binding, identity};
use crate::ir::Step;
use crate::op::{OpDef, Type};
use crate::session::{Room, name_of};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::Location;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A parameter of a program, with the line that made its value and when.
#[derive(Clone)]
pub(crate) struct LeafRecord {
    pub ty: Type,
    pub scalar: bool,
    pub donate: bool,
    pub at: Place,
    pub line: u64,
    pub seq: u64,
    /// Gradients accumulate in it.
    pub parameter: bool,
    /// The op that found it, where it is positions that depend on values.
    pub finder: Option<&'static str>,
    /// An op made it; it is no data of the host's.
    pub computed: bool,
    /// Where it was frozen, if it is a parameter that was trained before.
    pub frozen: Option<Place>,
    /// A variable that keeps its buffer from being reused.
    pub holder: Option<String>,
    /// The variable that holds it, or what its line calls it.
    pub name: Option<String>,
}

/// A value that user code read, and how many nodes there had been by then.
#[derive(Clone, Copy)]
pub(crate) struct Read {
    pub at: Place,
    pub seq: u64,
}

/// Tells source lines apart by their text where that is known: a cell that was edited and run again has other places, but
/// most of its lines are those of before.
#[derive(Default)]
pub(crate) struct Lines(HashMap<*const Location<'static>, u64>);

impl Lines {
    pub fn of(&mut self, at: Place) -> u64 {
        *self.0.entry(at).or_insert_with(|| {
            let mut h = DefaultHasher::new();
            match identity(at) {
                Some(line) => line.hash(&mut h),
                None => (at.file(), at.line(), at.column()).hash(&mut h),
            }
            h.finish()
        })
    }
}

/// A program as the explainer keeps it, after it may have been evicted from the cache.
pub(crate) struct Record {
    pub number: u64,
    pub cause: Cause,
    pub site: Place,
    pub hash: u128,
    pub device: u8,
    /// The hash that the program has whatever its device.
    pub anywhere: u128,
    pub steps: Vec<Step>,
    /// The source line of every step, as [`Lines`] tells them apart.
    pub lines: Vec<u64>,
    pub leaves: Vec<LeafRecord>,
    pub roots: Vec<u32>,
    pub precision: Precision,
    /// Values that were read since the last barrier.
    pub reads: Vec<Read>,
    /// Ops traced since the last barrier, in the cut or not.
    pub traced: u64,
    /// How many nodes there had been when this line read last, if nothing was synced since.
    pub read_before: Option<u64>,
    /// Pending results that a read neither gives nor needs: it ran a part of what was there.
    pub left_pending: usize,
    /// What there is for it in the cache.
    pub room: Room,
}

impl Record {
    fn bytes(&self) -> usize {
        self.steps.len() * size_of::<Step>() + self.leaves.len() * size_of::<LeafRecord>() + 256
    }

    /// How many (op, line) pairs two programs have in common.
    fn common(&self, other: &Record) -> usize {
        let mut mine: HashMap<(u32, u64), usize> = HashMap::new();
        let ops =
            |r: &'_ Record| -> Vec<(u32, u64)> { r.steps.iter().zip(&r.lines).map(|(s, l)| (s.op.id, *l)).collect() };
        ops(self).into_iter().for_each(|op| *mine.entry(op).or_default() += 1);
        let mut taken = |op: &(u32, u64)| match mine.get_mut(op) {
            Some(n) if *n > 0 => {
                *n -= 1;
                true
            }
            _ => false,
        };
        ops(other).iter().filter(|op| taken(op)).count()
    }

    /// How much alike two programs are, 0 to 1. A read is like a barrier's program that contains it.
    fn likeness(&self, new: &Record) -> f64 {
        let whole = match new.is_read() && !self.is_read() && self.steps.len() > new.steps.len() {
            true => new.steps.len() as f64,
            false => (self.steps.len() + new.steps.len()) as f64 / 2.0,
        };
        self.common(new) as f64 / whole.max(1.0)
    }

    /// How much alike the ops of two programs are, from whatever lines, 0 to 1.
    fn likeness_of_ops(&self, other: &Record) -> f64 {
        let mut mine: HashMap<u32, usize> = HashMap::new();
        self.steps.iter().for_each(|s| *mine.entry(s.op.id).or_default() += 1);
        let common = other.steps.iter().filter(|s| match mine.get_mut(&s.op.id) {
            Some(n) if *n > 0 => {
                *n -= 1;
                true
            }
            _ => false,
        });
        2.0 * common.count() as f64 / (self.steps.len() + other.steps.len()).max(1) as f64
    }

    /// Whether they start from data that have the same name or were made by the same line.
    fn shares_data(&self, other: &Record) -> bool {
        let data = |r: &'_ Record| -> Vec<LeafRecord> { r.leaves.iter().filter(|l| !l.scalar).cloned().collect() };
        let theirs = data(other);
        data(self).iter().any(|a| theirs.iter().any(|b| a.line == b.line || a.name.is_some() && a.name == b.name))
    }

    pub fn same_inputs(&self, other: &Record) -> bool {
        self.inputs_apart(other) == 0
    }

    /// In how many dtypes and shapes the inputs of two programs differ.
    fn inputs_apart(&self, other: &Record) -> usize {
        let apart = |(a, b): (&LeafRecord, &LeafRecord)| {
            usize::from(a.ty.dtype != b.ty.dtype)
                + usize::from(a.ty.shape != b.ty.shape)
                + usize::from(a.scalar != b.scalar)
        };
        let more = self.leaves.len().abs_diff(other.leaves.len());
        self.leaves.iter().zip(&other.leaves).map(apart).sum::<usize>() + 2 * more
    }

    /// Whether no line of the two is the same.
    pub fn strangers(&self, other: &Record) -> bool {
        self.common(other) == 0
    }

    /// Whether both run the same ops in the same order, whatever lines they are from.
    pub fn same_ops(&self, other: &Record) -> bool {
        self.steps.len() == other.steps.len() && self.steps.iter().zip(&other.steps).all(|(a, b)| a.op.id == b.op.id)
    }

    /// Whether this is the next round of a loop whose first round, and only that, was `first`.
    pub fn second_of(&self, first: &Record) -> bool {
        !self.is_read() && !first.is_read() && same_place(self.site, first.site) && runs(first.hash) == 1
    }

    /// What a step computes, with the name that its line gives it.
    pub fn written(&self, step: &Step) -> String {
        let name = self.named(step).map_or(String::new(), |n| format!("`{n}` = "));
        format!("{name}{} → {}", step.op.name, step.ty)
    }

    /// The name that its line gives to what a step computes.
    pub fn named(&self, step: &Step) -> Option<String> {
        // A line names the last thing that it makes.
        let last = !self.steps.iter().any(|s| s.seq > step.seq && same_place(s.at, step.at));
        binding(step.at).filter(|_| last)
    }

    pub fn is_read(&self) -> bool {
        matches!(self.cause, Cause::Display | Cause::Read | Cause::ControlFlow | Cause::Concrete | Cause::DeviceChange)
    }
}

/// Bytes of records kept.
const KEPT: usize = 64 << 20;
/// Programs compared in full after those of the same site.
const NEAREST: usize = 8;
/// Ops from which on a program of the same ops is thought to be the same work, though from other lines.
const ALIKE: usize = 3;

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
        self.healed.extend(why.healable.iter().map(healed));
    }
}

static HISTORY: Mutex<Option<History>> = Mutex::new(None);

fn with<R>(f: impl FnOnce(&mut History) -> R) -> R {
    let mut h = HISTORY.lock().unwrap_or_else(|p| p.into_inner());
    f(h.get_or_insert_with(History::default))
}

/// Every compilation of this session, oldest first.
pub fn compilations() -> Vec<Compilation> {
    with(|h| h.compilations.clone())
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
    crate::ir::graph().healing.set(on);
}

/// Whether attributes that keep changing become parameters.
pub fn healing() -> bool {
    crate::ir::graph().healing.is_on()
}

/// Lists what was healed where the healed program was there already, compiled for another line.
pub(crate) fn keep_healings(why: &Explanation, compilation: u64) {
    with(|h| h.heal(why, compilation));
}

/// Why a program that is about to be compiled was not there, if there was one like it; and how long the search took.
pub(crate) fn why(record: &Record) -> (Option<Explanation>, Duration) {
    let start = Instant::now();
    let known: Vec<Arc<Record>> = with(|h| h.records.iter().cloned().collect());
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
        if let Some(why) = compilation.why.as_ref().filter(|w| w.healed) {
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

/// The program to compare with, if there is one: of the same site and kind the most alike; for a barrier the nearest of
/// other barriers; for a read the step that it ran a part of, or an earlier read of the same value elsewhere. A program
/// without such a forerunner is the first of its kind, and not compiled again.
pub(super) fn nearest(new: &Record, known: &[Arc<Record>]) -> Option<Arc<Record>> {
    let best = |candidates: &mut dyn Iterator<Item = &Arc<Record>>, least: f64| {
        candidates
            .map(|r| (r.likeness(new), r))
            .filter(|(l, _)| *l >= least)
            // of equals the one whose inputs differ least, else the latest
            .max_by(|(a, r), (b, s)| {
                let alike = || s.inputs_apart(new).cmp(&r.inputs_apart(new));
                a.total_cmp(b).then_with(alike).then(r.number.cmp(&s.number))
            })
            .map(|(_, r)| r.clone())
    };
    let here = |r: &&Arc<Record>| same_place(r.site, new.site) && r.is_read() == new.is_read();
    if let Some(found) = best(&mut known.iter().rev().filter(here).take(NEAREST), 0.2) {
        return Some(found);
    }
    let closest = |of_kind: &dyn Fn(&Record) -> bool, least: f64| {
        let mut found: Vec<&Arc<Record>> = known.iter().rev().filter(|r| of_kind(r)).take(64).collect();
        found.sort_by_key(|r| r.steps.len().abs_diff(new.steps.len()));
        best(&mut found.into_iter().take(NEAREST), least)
    };
    // A cell written anew: other lines, but much the same ops on the same data.
    let rewritten = || {
        let recent = known.iter().rev().filter(|r| r.is_read() == new.is_read() && r.shares_data(new)).take(NEAREST);
        let alike = recent.map(|r| (r.likeness_of_ops(new), r)).filter(|(l, _)| *l >= 0.6);
        alike.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.number.cmp(&b.1.number))).map(|(_, r)| r.clone())
    };
    let found = match new.is_read() {
        false => closest(&|r| !r.is_read(), 0.5).or_else(|| {
            // Other lines, but the same ops throughout: a cell written anew.
            known.iter().rev().find(|r| !r.is_read() && r.steps.len() >= ALIKE && r.same_ops(new)).cloned()
        }),
        true => closest(&|r| !r.is_read() && contains(r, new), 1.0)
            .or_else(|| closest(&|r| r.is_read() && same_result(r, new) && same_sources(r, new), 0.5))
            .or_else(|| closest(&|r| r.is_read() && same_lines(r, new), 0.5))
            // On the way to a barrier, which runs again what the read has of its step.
            .or_else(|| closest(&|r| !r.is_read() && before(new.site, r.site), 0.2)),
    };
    // Something in common at least: what a line runs may have grown beyond likeness, but it is no first program there.
    let grown = || {
        let mut related = known.iter().rev().filter(|r| here(r) && !r.strangers(new)).take(NEAREST);
        if new.is_read() { None } else { best(&mut related, 0.0) }
    };
    found.or_else(grown).or_else(rewritten)
}

/// Whether one stands above the other in the same cell.
fn before(a: Place, b: Place) -> bool {
    a.file() == b.file() && a.line() < b.line()
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
    let lines =
        |r: &Record| -> HashSet<(u32, u64)> { r.steps.iter().zip(&r.lines).map(|(s, l)| (s.op.id, *l)).collect() };
    lines(a) == lines(b)
}

/// Whether a barrier's program computes what a read asks for on its way: the same op of the same line, of the same type.
fn contains(step: &Record, read: &Record) -> bool {
    let Some((root, line)) = read.steps.last().zip(read.lines.last()) else { return false };
    step.steps.len() > read.steps.len()
        && step.steps.iter().zip(&step.lines).any(|(s, l)| s.op.id == root.op.id && s.ty == root.ty && l == line)
}

/// Whether the last op of both was made by the same line.
fn same_result(a: &Record, b: &Record) -> bool {
    let last = |r: &Record| r.steps.last().map(|s| s.op.id).zip(r.lines.last().copied());
    last(a).is_some() && last(a) == last(b)
}

pub(crate) fn same_place(a: Place, b: Place) -> bool {
    a.line() == b.line() && a.column() == b.column() && a.file() == b.file()
}
