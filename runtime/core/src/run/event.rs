//! What is told of a sync and of a compilation.
use crate::text::Place;
use std::panic::Location;
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
    /// What was pending when an optimizer was made, before the first step that builds on it.
    InitialState,
    /// A data loader's barrier between batches.
    LoaderBarrier,
    /// The pending graph grew too long.
    Trim,
    /// A line read again that needs earlier rounds of its loop, which nothing had run.
    UnendedRounds,
    /// An optimizer stepped once more where nothing had run its earlier steps, and that had become much.
    UnendedSteps,
    /// Rounds of a loop, which would make the program of all of them long, run one after another.
    WrittenOut,
    /// An op that needs concrete values, such as `nonzero`.
    Concrete,
    /// A tensor was moved to another device (`x.to("cpu:1")`), which needs its value.
    DeviceChange,
    /// Each op is to run as it is recorded (`%eager on`).
    Eager,
}

impl Cause {
    pub const ALL: [Cause; 14] = [
        Cause::Display,
        Cause::Read,
        Cause::ControlFlow,
        Cause::Sync,
        Cause::OptimizerStep,
        Cause::InitialState,
        Cause::LoaderBarrier,
        Cause::Trim,
        Cause::UnendedRounds,
        Cause::UnendedSteps,
        Cause::WrittenOut,
        Cause::Concrete,
        Cause::DeviceChange,
        Cause::Eager,
    ];

    /// Whether what ran got its values for good, and is no longer pending.
    pub fn is_barrier(self) -> bool {
        use Cause::{Eager, InitialState, LoaderBarrier, OptimizerStep, Sync, Trim, WrittenOut};
        matches!(self, Sync | OptimizerStep | InitialState | LoaderBarrier | Trim | WrittenOut | Eager)
            || self.ends_rounds()
    }

    /// Whether it ended a round of a loop since nothing else does.
    pub fn ends_rounds(self) -> bool {
        matches!(self, Cause::UnendedRounds | Cause::UnendedSteps)
    }

    pub fn name(self) -> &'static str {
        match self {
            Cause::Display => "display",
            Cause::Read => "read",
            Cause::ControlFlow => "control flow",
            Cause::Sync => "sync",
            Cause::OptimizerStep => "optimizer step",
            Cause::InitialState => "initial state",
            Cause::LoaderBarrier => "loader barrier",
            Cause::Trim => "trim",
            Cause::UnendedRounds => "read that ends its round",
            Cause::UnendedSteps => "step that ends its round",
            Cause::WrittenOut => "round of a loop",
            Cause::Concrete => "op that needs concrete values",
            Cause::DeviceChange => "device change",
            Cause::Eager => "op by op",
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

/// Bytes that a run of a program takes on the device, as XLA's memory statistics say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub arguments: u64,
    /// Results, less what reuses an argument's memory.
    pub outputs: u64,
    pub temporaries: u64,
    pub code: u64,
}

impl Memory {
    /// What is in use at once, at most.
    pub fn total(&self) -> u64 {
        self.arguments + self.outputs + self.temporaries + self.code
    }
}

/// What it took to get a program, and what it will take to run it.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    pub origin: Origin,
    pub trace: Duration,
    pub lower: Duration,
    pub compile: Duration,
    pub memory: Option<Memory>,
    pub flops: Option<f64>,
}

/// The program that is worked on.
#[derive(Clone, Copy)]
pub struct Work {
    pub nodes: usize,
    pub cause: Cause,
    pub at: Place,
}
