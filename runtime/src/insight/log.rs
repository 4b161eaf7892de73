//! The log of syncs: what caused each, where, and whether it compiled.
use crate::display::json::string;
use std::collections::VecDeque;
use std::panic::Location;
use std::sync::Mutex;
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
    /// A tensor moved to another device.
    DeviceChange,
}

impl Cause {
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

/// One sync that ran something.
#[derive(Clone, Debug)]
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
    /// Whether XLA had to compile; otherwise the program came from the cache.
    pub compiled: bool,
    pub lower: Duration,
    pub compile: Duration,
    /// Until the host could go on; the device may still have been working.
    pub execute: Duration,
    /// The program's 128-bit hash.
    pub hash: u128,
}

impl SyncEvent {
    /// As one JSON object.
    pub fn json(&self) -> String {
        format!(
            "{{\"number\":{},\"cause\":\"{}\",\"file\":{},\"line\":{},\"nodes\":{},\"parameters\":{},\"outputs\":{},\
             \"donated\":{},\"compiled\":{},\"lower_us\":{},\"compile_us\":{},\"execute_us\":{},\"hash\":\"{:032x}\"}}",
            self.number,
            self.cause.name(),
            string(self.at.file()),
            self.at.line(),
            self.nodes,
            self.parameters,
            self.outputs,
            self.donated,
            self.compiled,
            self.lower.as_micros(),
            self.compile.as_micros(),
            self.execute.as_micros(),
            self.hash
        )
    }
}

const KEPT: usize = 4096;

static LOG: Mutex<(u64, VecDeque<SyncEvent>)> = Mutex::new((0, VecDeque::new()));

pub(crate) fn record(mut event: SyncEvent) -> SyncEvent {
    let mut log = LOG.lock().unwrap_or_else(|p| p.into_inner());
    log.0 += 1;
    event.number = log.0;
    if log.1.len() == KEPT {
        log.1.pop_front();
    }
    log.1.push_back(event.clone());
    event
}

/// The syncs after the one of that number (0 for all that are kept).
pub(crate) fn events_since(number: u64) -> Vec<SyncEvent> {
    let log = LOG.lock().unwrap_or_else(|p| p.into_inner());
    let after = log.1.partition_point(|e| e.number <= number);
    log.1.range(after..).cloned().collect()
}

/// How often a program has run, as far as the log goes back.
pub(crate) fn runs(hash: u128) -> usize {
    LOG.lock().unwrap_or_else(|p| p.into_inner()).1.iter().filter(|e| e.hash == hash).count()
}

/// The number of the last sync.
pub(crate) fn last_event() -> u64 {
    LOG.lock().unwrap_or_else(|p| p.into_inner()).0
}

/// The last syncs that ran something, oldest first (at most 4096).
pub fn events() -> Vec<SyncEvent> {
    events_since(0)
}
