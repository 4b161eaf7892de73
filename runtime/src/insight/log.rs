//! The log of syncs: what caused each, where, and whether it compiled.
use super::render::place;
use super::watch::watching;
use std::collections::VecDeque;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Why something was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A value was shown.
    Display,
    /// User code read a value: `item()`, `to_vec()`.
    Read,
    /// Control flow on a value.
    ControlFlow,
    /// `sync()`.
    Sync,
    /// An optimizer's step.
    OptimizerStep,
    /// A data loader's barrier between batches.
    LoaderBarrier,
    /// The pending graph grew too long.
    Trim,
    /// An op that needs concrete values, such as `nonzero`.
    Concrete,
    /// A tensor was moved to another device (`x.to("cpu:1")`), which needs its value.
    DeviceChange,
}

impl Cause {
    pub const ALL: [Cause; 9] = [
        Cause::Display,
        Cause::Read,
        Cause::ControlFlow,
        Cause::Sync,
        Cause::OptimizerStep,
        Cause::LoaderBarrier,
        Cause::Trim,
        Cause::Concrete,
        Cause::DeviceChange,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Cause::Display => "display",
            Cause::Read => "read",
            Cause::ControlFlow => "control flow",
            Cause::Sync => "sync",
            Cause::OptimizerStep => "optimizer step",
            Cause::LoaderBarrier => "loader barrier",
            Cause::Trim => "trim",
            Cause::Concrete => "op that needs concrete values",
            Cause::DeviceChange => "device change",
        }
    }
}

/// Where a sync's program came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// XLA compiled it.
    Compiled,
    /// It was in the session's cache.
    Memory,
    /// An earlier session had compiled it and left it on the disk.
    Disk,
}

impl Origin {
    pub const ALL: [Origin; 3] = [Origin::Compiled, Origin::Memory, Origin::Disk];

    pub fn name(self) -> &'static str {
        match self {
            Origin::Compiled => "compiled",
            Origin::Memory => "memory",
            Origin::Disk => "disk",
        }
    }
}

/// One sync that ran something.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncEvent {
    pub number: u64,
    pub cause: Cause,
    pub at: &'static Location<'static>,
    /// Ops in the program.
    pub nodes: usize,
    pub parameters: usize,
    pub outputs: usize,
    /// Donated buffers.
    pub donated: usize,
    /// Bytes of buffers that the program donates and something holds: they were copied first.
    pub copied: usize,
    pub origin: Origin,
    /// Recording the ops since the last sync (timed for some of them), cutting and looking the program up. Of small cached
    /// programs that run often one run in 64 is timed; its times stand for the others.
    pub trace: Duration,
    pub lower: Duration,
    /// XLA's compilation, or reading the program from the disk.
    pub compile: Duration,
    /// Until the host could go on; the device may still have been working.
    pub execute: Duration,
    /// The program's 128-bit hash.
    pub hash: u128,
    /// The device that ran it, such as `cpu:0`.
    pub device: &'static str,
}

impl SyncEvent {
    /// As one JSON object.
    pub fn json(&self) -> String {
        format!(
            "{{\"number\":{},\"cause\":\"{}\",\"site\":{},\"nodes\":{},\"parameters\":{},\"outputs\":{},\"donated\":{},\
             \"copied_bytes\":{},\"origin\":\"{}\",\"trace_us\":{},\"lower_us\":{},\"compile_us\":{},\"execute_us\":{},\"hash\":\"{:032x}\",\"device\":\"{}\"}}",
            self.number,
            self.cause.name(),
            place(self.at),
            self.nodes,
            self.parameters,
            self.outputs,
            self.donated,
            self.copied,
            self.origin.name(),
            self.trace.as_micros(),
            self.lower.as_micros(),
            self.compile.as_micros(),
            self.execute.as_micros(),
            self.hash,
            self.device
        )
    }
}

const KEPT: usize = 4096;

static LOG: Mutex<Log> = Mutex::new(Log { count: 0, trace: Duration::ZERO, events: VecDeque::new() });

struct Log {
    count: u64,
    /// Of all syncs so far.
    trace: Duration,
    /// Each stands for itself and for as many before it that were the same in all but their number: writing down the same
    /// again costs a run of a small program less than new memory would.
    events: VecDeque<(SyncEvent, u64)>,
}

impl Log {
    /// From the latest on, at most as many as are kept.
    fn latest(&self) -> impl Iterator<Item = SyncEvent> {
        let numbered = |e: &SyncEvent, before: u64| SyncEvent { number: e.number - before, ..e.clone() };
        let all = self.events.iter().rev().flat_map(move |(e, times)| (0..=*times).map(move |i| numbered(e, i)));
        all.take(KEPT)
    }
}

fn log() -> MutexGuard<'static, Log> {
    LOG.lock().unwrap_or_else(|p| p.into_inner())
}

pub(crate) fn record(mut event: SyncEvent) -> SyncEvent {
    if !watching() {
        return event;
    }
    let mut log = log();
    log.count += 1;
    log.trace += event.trace;
    event.number = log.count;
    if let Some((last, times)) = log.events.back_mut() {
        last.number = event.number;
        if *last == event {
            *times += 1;
            return event;
        }
        last.number -= 1;
    }
    if log.events.len() == KEPT {
        log.events.pop_front();
    }
    log.events.push_back((event.clone(), 0));
    event
}

/// The syncs after the one of that number (0 for all that are kept).
pub(crate) fn events_since(number: u64) -> Vec<SyncEvent> {
    let mut events: Vec<SyncEvent> = log().latest().take_while(|e| e.number > number).collect();
    events.reverse();
    events
}

/// How often a program has run, as far as the log goes back.
pub(crate) fn runs(hash: u128) -> u64 {
    log().events.iter().filter(|(e, _)| e.hash == hash).map(|(_, times)| times + 1).sum()
}

/// How many other programs ran since this one did last.
pub(crate) fn ran_since(hash: u128) -> usize {
    let log = log();
    let since = log.events.iter().rev().map(|(e, _)| e.hash).take_while(|h| *h != hash);
    since.collect::<std::collections::HashSet<_>>().len()
}

/// How many syncs there were, and how long their tracing took in all.
pub(crate) fn syncs_so_far() -> (u64, Duration) {
    let log = log();
    (log.count, log.trace)
}

/// The last syncs that ran something, oldest first (at most 4096).
pub fn events() -> Vec<SyncEvent> {
    events_since(0)
}
