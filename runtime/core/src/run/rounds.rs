//! Loops whose rounds nothing ends. A line that reads again, and needs what was changed in place before it read last, has not run
//! since and has been changed once more, would run all earlier rounds again, and more of them each time: it ends the round, as a
//! barrier would, and so does it from then on. Where nothing has changed since, it reads one value after another.
use crate::ir::{Graph, Node, NodeId, graph};
use crate::text::Place;
use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, PoisonError};

/// A line that reads.
#[derive(Default)]
struct Reader {
    /// How many nodes had been traced when it read last.
    until: u64,
    /// It ends rounds.
    ends: bool,
}

static READERS: LazyLock<Mutex<HashMap<Place, Reader>>> = LazyLock::new(Mutex::default);

/// Whether what a line is about to read, of pending nodes, is to be run with all that is pending.
pub(super) fn end_here(roots: &[NodeId], at: Place) -> bool {
    let mut readers = READERS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut g = graph();
    let now = g.last_seq();
    let Some(reader) = readers.get_mut(at) else {
        readers.insert(at, Reader { until: now, ends: false });
        return false;
    };
    let needed = g.needed_by(roots);
    reader.ends = reader.ends || g.runs_rounds_again(&needed, reader.until);
    let ends = reader.ends && needed.iter().any(|&id| g.is_of_a_step(id, reader.until));
    reader.until = now;
    ends
}

/// Whether it is one of the later values of a tensor that is changed in place.
fn changed(n: &Node) -> bool {
    n.lineage != n.seq
}

impl Graph {
    /// Whether what is needed was changed in place at `before`, and has been changed once more since.
    fn runs_rounds_again(&self, needed: &[NodeId], before: u64) -> bool {
        let earlier = |n: &&Node| changed(n) && n.seq <= before;
        let again: HashSet<u64> = needed.iter().map(|&id| self.node(id)).filter(earlier).map(|n| n.lineage).collect();
        let once_more = |n: &Node| n.seq > before && again.contains(&n.lineage);
        !again.is_empty() && self.pending_nodes().any(|id| once_more(self.node(id)))
    }

    /// Whether a pending node has to do with what a step changes: with a tensor that was there at `before`, and whose change has not
    /// run.
    fn is_of_a_step(&self, id: NodeId, before: u64) -> bool {
        let n = self.node(id);
        let pending = changed(n) && n.lineage <= before;
        // Of an operand that has its value the tensor has gone on.
        let left = |n: &Node| n.value().is_some() && changed(n) && n.handles == 0;
        pending || n.inputs.iter().any(|&input| left(self.node(input)))
    }
}
