//! What is said of a compilation: the class of its cause, the line at fault, the difference, the fix.
use std::time::Duration;
use xlazy_core::ir::OpDef;
use xlazy_core::run::{Cause, Memory, Origin};
use xlazy_core::text::Spot;
use xlazy_core::ty::TypeRef;

/// Why a program had to be compiled although one much like it was there: one enum for reports, JSON and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A tensor came with other sizes.
    Shape,
    /// A tensor came with another dtype.
    Dtype,
    /// A number that is part of the program changed (an epsilon, a power given as attribute).
    Constant,
    /// A position that is part of the program changed (where a slice starts, which element is selected).
    Index,
    /// Other ops, or more or fewer of them.
    Structure,
    /// Other tensors were alive, so other results were asked for.
    Roots,
    /// The same ops on other parameters: two tensors became one, or a buffer can (no longer) be reused.
    Aliasing,
    /// The state of a random number generator is part of the program.
    Rng,
    /// A value was read before the step's barrier, which runs a part of the step as a program of its own.
    EarlyRead,
    /// User code went another way after it had read a value.
    ControlFlow,
    /// Options, precision or the plugin changed.
    Environment,
    /// The very same program had been compiled and was evicted from the cache.
    Eviction,
    /// Data lie on the devices in another way.
    Sharding,
    /// The same program for another device.
    Device,
    /// Training became evaluation, or gradients were switched on or off.
    Mode,
    /// None of these: the differing nodes are shown.
    Unclassified,
}

impl Class {
    pub const ALL: [Class; 16] = [
        Class::Shape,
        Class::Dtype,
        Class::Constant,
        Class::Index,
        Class::Structure,
        Class::Roots,
        Class::Aliasing,
        Class::Rng,
        Class::EarlyRead,
        Class::ControlFlow,
        Class::Environment,
        Class::Eviction,
        Class::Sharding,
        Class::Device,
        Class::Mode,
        Class::Unclassified,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Class::Shape => "shape",
            Class::Dtype => "dtype",
            Class::Constant => "constant",
            Class::Index => "index",
            Class::Structure => "structure",
            Class::Roots => "roots",
            Class::Aliasing => "aliasing",
            Class::Rng => "rng",
            Class::EarlyRead => "early-read",
            Class::ControlFlow => "control-flow",
            Class::Environment => "environment",
            Class::Eviction => "eviction",
            Class::Sharding => "sharding",
            Class::Device => "device",
            Class::Mode => "mode",
            Class::Unclassified => "unclassified",
        }
    }
}

pub use xlazy_core::text::Edit;

/// A line of source text, of code that runs or of a program that was read.
pub type Place = &'static xlazy_core::text::Source;

/// One thing that differs between a program and the one it is compared with; `none` is said of what is not there.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The name of an input, `input`, `attribute end of slice`, `op`, `result`, `the buffer of …`.
    pub what: String,
    pub was: String,
    pub now: String,
    pub was_at: Option<Place>,
    pub now_at: Option<Place>,
}

impl Difference {
    pub(crate) fn gained(what: &str, now: String, at: Place) -> Difference {
        Difference { what: what.into(), was: "none".into(), now, was_at: None, now_at: Some(at) }
    }

    pub(crate) fn lost(what: &str, was: String, at: Place) -> Difference {
        Difference { what: what.into(), was, now: "none".into(), was_at: Some(at), now_at: None }
    }
}

/// An attribute that became a parameter, so that its changes no longer compile anything.
#[derive(Clone, Debug)]
pub struct Healing {
    /// The op, by its torch name, and the line that calls it.
    pub op: &'static str,
    pub at: Place,
    /// The compilation that led to it.
    pub compilation: u64,
}

/// Why a program was compiled again.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub class: Class,
    /// The line to look at.
    pub at: Place,
    /// Where that was called from, if it is in a function or another cell.
    pub called_from: Option<Place>,
    /// What differs, the root of it first, and how many more differences there are than these.
    pub differences: Vec<Difference>,
    pub hidden: usize,
    /// Ops that came, went or changed, the first ones.
    pub graph: Vec<Difference>,
    /// What to do about it, with the numbers at hand.
    pub fix: String,
    /// The same as changes of the cells' code, where it is that and nothing else: all of them together.
    pub edits: Vec<Edit>,
    /// The number of the compilation it is compared with.
    pub compared_with: u64,
    /// Ops and lines whose changing attribute can become a parameter.
    pub(crate) healable: Vec<(&'static OpDef, Place)>,
    /// Whether that was done: the cause is gone.
    pub healed: bool,
    /// The second step of a loop takes up what the first one made: compiled once, and no reason for alarm.
    pub warm_up: bool,
    /// There were two or more programs of this barrier before.
    pub later: bool,
    /// Other causes, which explain what this one does not.
    pub also: Vec<Explanation>,
}

impl Explanation {
    /// This cause and the others.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Explanation> {
        std::iter::once(self).chain(&self.also)
    }

    /// Changes those of them whose attributes can become parameters.
    pub(crate) fn each_healable(&mut self, change: impl Fn(&mut Explanation)) {
        for why in self.also.iter_mut().filter(|why| !why.healable.is_empty()) {
            change(why);
        }
        if !self.healable.is_empty() {
            change(self);
        }
    }

    /// What is said of programs in which nothing differs that can be compared.
    pub(crate) fn of_texts(
        class: Class,
        at: Place,
        difference: Difference,
        fix: String,
        compared_with: u64,
    ) -> Explanation {
        Explanation {
            class,
            at,
            called_from: None,
            differences: vec![difference],
            hidden: 0,
            graph: vec![],
            fix,
            edits: vec![],
            compared_with,
            healable: vec![],
            healed: false,
            warm_up: false,
            later: false,
            also: vec![],
        }
    }
}

/// The rounds of a loop, one behind the other in one program.
#[derive(Clone, Debug, PartialEq)]
pub struct Unrolled {
    /// The loop, or the first line of a round where none is known.
    pub at: Spot,
    pub rounds: usize,
    /// Ops of one round.
    pub ops: usize,
    /// A round takes what the one before it made.
    pub carried: bool,
    /// Each round ends in a step of an optimizer, which nobody has run.
    pub training: bool,
    /// The optimizer's name, where the line that steps says so.
    pub optimizer: Option<String>,
    /// The read at `at` ends each round from now on, since nothing else does, or the step there does whenever rounds are many; or the rounds
    /// run one after another, since all of them would make the program long.
    pub ended: Option<Cause>,
    /// What is longer in each round: its type in the first and in the last.
    pub grows: Option<[TypeRef; 2]>,
}

/// One compilation, or one program that came from the disk in its place.
#[derive(Clone, Debug)]
pub struct Compilation {
    pub number: u64,
    /// `Compiled` or `Disk`.
    pub origin: Origin,
    /// What made the sync happen, and where.
    pub cause: Cause,
    pub site: Place,
    pub nodes: usize,
    pub parameters: usize,
    pub outputs: usize,
    /// Recording and cutting; see [`SyncEvent::trace`](super::SyncEvent::trace).
    pub trace: Duration,
    pub lower: Duration,
    /// XLA's compilation, or reading the program from the disk.
    pub compile: Duration,
    /// Where the plugin tells.
    pub memory: Option<Memory>,
    /// Floating point operations of one run, by XLA's cost analysis, where the plugin has it.
    pub flops: Option<f64>,
    pub hash: u128,
    /// The device it is for, such as `cpu:0`.
    pub device: &'static str,
    /// `None` for the first program of its kind: there was nothing to reuse.
    pub why: Option<Explanation>,
    /// The loop whose rounds it has one by one, if it is made of such.
    pub unrolled: Option<Unrolled>,
    /// The budget refused it (`%budget`): it was not compiled.
    pub refused: bool,
    /// Finding the explanation took this long.
    pub explained_in: Duration,
}

impl Compilation {
    /// Runs after the first, which found the program in memory; `None` once it is no longer there.
    pub fn hits(&self) -> Option<u64> {
        xlazy_core::run::runs(self.hash).map(|runs| u64::from(runs).saturating_sub(1))
    }
}
