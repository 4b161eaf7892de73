//! Loops whose rounds nothing ends. Two kinds of lines end them, as a barrier would:
//!
//! - One that reads again, and needs what was changed in place before it read last, has not run since and has been changed once
//!   more: it would run all earlier rounds again, and more of them each time. Or one whose last two reads had to be compiled, and needed
//!   what was there and was run for a read before: it would compile and run that again for each value.
//!   Such a line does so from then on.
//! - One where an optimizer steps, once what is pending has become much, or many steps: XLA would compile all of them as one program.
//!   Such a line ends each of its rounds from then on, one step to a program.
use crate::ir::{Graph, Node, NodeId, READ, graph};
use crate::text::Place;
use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// A line that reads, or where an optimizer steps.
#[derive(Default)]
struct Line {
    /// How many nodes had been traced when it did so last.
    until: u64,
    /// It needs what was run for a read before.
    needs: bool,
    /// How many times, one after the other, it did, and had to be compiled; of an optimizer's, how often it has stepped before with
    /// nothing run since.
    again: u8,
    /// It ends rounds.
    ends: bool,
}

static LINES: LazyLock<Mutex<HashMap<Place, Line>>> = LazyLock::new(Mutex::default);

fn lines() -> MutexGuard<'static, HashMap<Place, Line>> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nodes from which on many steps are too much for one program: XLA takes seconds for it, and longer for each more. Few steps may be
/// meant to be one, up to four times as many.
const MUCH: u64 = 1000;
const MANY: u8 = 4;

/// So many steps are a loop, however small.
const LOOP: u8 = 8;

/// Whether what a line is about to read, of pending nodes, is to be run with all that is pending.
pub(super) fn end_here(roots: &[NodeId], at: Place) -> bool {
    let mut lines = lines();
    let mut g = graph();
    let now = g.last_seq();
    let needed = g.needed_by(roots);
    let line = lines.entry(at).or_default();
    line.needs = needed.iter().any(|&id| g.node(id).flags & READ != 0 && g.node(id).seq <= line.until);
    needed.iter().for_each(|&id| g.node_mut(id).flags |= READ);
    line.ends |= line.needs && line.again > 1 || g.runs_rounds_again(&needed, line.until);
    let ends = line.ends && (line.needs || needed.iter().any(|&id| g.is_of_a_step(id, line.until)));
    line.until = now;
    ends
}

/// A line has read by itself, by a program that had to be compiled, or not.
pub(super) fn has_read(at: Place, compiled: bool) {
    if let Some(line) = lines().get_mut(at) {
        line.again = if compiled && line.needs { line.again.saturating_add(1) } else { 0 };
    }
}

/// Whether an optimizer's step, which has just been recorded, is to be run with all that is pending; `barrier` says how many nodes had
/// been traced when all was run last.
pub(super) fn step_ends(at: Place, barrier: u64) -> bool {
    let now = graph().last_seq();
    let mut lines = lines();
    let line = lines.entry(at).or_default();
    line.again = if line.until > barrier { line.again.saturating_add(1) } else { 0 };
    let most = if line.again < MANY - 1 { 4 * MUCH } else { MUCH };
    line.until = now;
    line.ends |= line.again > 0 && (now - barrier > most || line.again >= LOOP - 1);
    line.ends
}

impl Graph {
    /// Whether what is needed was changed in place at `before`, and has been changed once more since.
    fn runs_rounds_again(&self, needed: &[NodeId], before: u64) -> bool {
        let earlier = |n: &&Node| n.is_changed() && n.seq <= before;
        let again: HashSet<u64> = needed.iter().map(|&id| self.node(id)).filter(earlier).map(|n| n.lineage).collect();
        let once_more = |n: &Node| n.seq > before && again.contains(&n.lineage);
        !again.is_empty() && self.pending_nodes().any(|id| once_more(self.node(id)))
    }

    /// Whether a pending node has to do with what a step changes: with a tensor that was there at `before`, and whose change has not
    /// run.
    fn is_of_a_step(&self, id: NodeId, before: u64) -> bool {
        let n = self.node(id);
        let pending = n.is_changed() && n.lineage <= before;
        // Of an operand that has its value the tensor has gone on.
        let left = |n: &Node| n.value().is_some() && n.is_changed() && n.handles == 0;
        pending || n.inputs.iter().any(|&input| left(self.node(input)))
    }
}
