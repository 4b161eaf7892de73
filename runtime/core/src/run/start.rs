//! Where a loop will start: what is pending when an optimizer is made, such as parameters still to be drawn and state still to
//! be filled, is a program of its own, or the first step would be another program than the second. It runs when something that
//! builds on it does, not before.
use super::witness::Witness;
use crate::ir::{Graph, NodeId, graph};
use crate::text::Place;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What was pending up to a node.
pub(super) struct Start {
    pub by: &'static dyn Witness,
    pub at: Place,
    /// The last node that belongs to it.
    pub seq: u64,
    /// What it computes: held, since the step that is recorded next gives its handles other nodes.
    pub roots: Vec<NodeId>,
}

/// Ends the hold on them; so a start must not be dropped while the arena is locked.
impl Drop for Start {
    fn drop(&mut self) {
        let mut g = graph();
        self.roots.drain(..).for_each(|r| g.unref(r));
    }
}

/// The last one that has not run. One that is noted later holds all that came before it.
static START: Mutex<Option<Start>> = Mutex::new(None);

/// Its node, or 0 where there is none, so that no sync takes a lock for it.
static SEQ: AtomicU64 = AtomicU64::new(0);

/// What is pending now will be a program of its own.
pub fn start_here(by: &'static dyn Witness, at: Place) {
    let mut noted = START.lock().unwrap_or_else(PoisonError::into_inner);
    let before = noted.take();
    let start = {
        let mut g = graph();
        let mut roots = g.barrier_roots();
        roots.extend(before.iter().flat_map(|b| still(&g, b)));
        in_order(&g, &mut roots);
        roots.iter().for_each(|&r| g.node_mut(r).refs += 1);
        Start { by, at, seq: g.last_seq(), roots }
    };
    SEQ.store(start.seq, Ordering::Relaxed);
    *noted = Some(start);
}

/// Those of its roots that have no value yet and that anybody else still wants.
fn still<'a>(g: &'a Graph, start: &'a Start) -> impl Iterator<Item = NodeId> + 'a {
    let wanted = |r: &NodeId| {
        let n = g.node(*r);
        n.data().is_none() && (n.handles > 0 || n.refs > 1)
    };
    start.roots.iter().copied().filter(wanted)
}

fn in_order(g: &Graph, roots: &mut Vec<NodeId>) {
    roots.sort_unstable_by_key(|&r| g.node(r).seq);
    roots.dedup();
}

/// The start that a barrier must run first. A barrier that has nothing but what belongs to it is the start itself.
pub(super) fn before_barrier() -> Option<Start> {
    take_if(|g, seq| g.barrier_roots().iter().any(|&r| g.node(r).seq > seq))
}

/// The start that must run before `roots`, pending ones in creation order, are read: where they build on it. What belongs to it
/// entirely is read by itself.
pub(super) fn before_read(roots: &[NodeId]) -> Option<Start> {
    take_if(|g, seq| {
        let needed = g.needed_by(roots);
        let early = |id: &NodeId| g.node(*id).seq <= seq;
        needed.iter().any(early) && !needed.iter().all(early)
    })
}

/// None where nothing of it is wanted any more.
fn take_if(wanted: impl FnOnce(&mut Graph, u64) -> bool) -> Option<Start> {
    let seq = SEQ.load(Ordering::Relaxed);
    if seq == 0 || !wanted(&mut graph(), seq) {
        return None;
    }
    let taken = START.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    SEQ.store(0, Ordering::Relaxed);
    let start = {
        let mut g = graph();
        let mut roots: Vec<NodeId> = g.barrier_roots().into_iter().filter(|&r| g.node(r).seq <= seq).collect();
        roots.extend(still(&g, &taken));
        in_order(&g, &mut roots);
        roots.iter().for_each(|&r| g.node_mut(r).refs += 1);
        Start { by: taken.by, at: taken.at, seq, roots }
    };
    drop(taken);
    (!start.roots.is_empty()).then_some(start)
}
