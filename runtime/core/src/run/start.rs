//! Where a loop will start: what is pending when an optimizer is made, such as parameters still to be drawn and state still to
//! be filled, is a program of its own, or the first step would be another program than the second. It runs when something that
//! builds on it does, not before.
use super::witness::Witness;
use crate::ir::{Graph, NodeId, graph};
use crate::text::Place;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What was pending up to a node.
#[derive(Clone, Copy)]
pub(super) struct Start {
    pub by: &'static dyn Witness,
    pub at: Place,
    /// The last node that belongs to it.
    pub seq: u64,
}

/// The last one that has not run. One that is noted later holds all that came before it.
static START: Mutex<Option<Start>> = Mutex::new(None);

/// Its node, or 0 where there is none, so that no sync takes a lock for it.
static SEQ: AtomicU64 = AtomicU64::new(0);

/// What is pending now will be a program of its own.
pub fn start_here(by: &'static dyn Witness, at: Place) {
    let seq = graph().last_seq();
    *START.lock().unwrap_or_else(PoisonError::into_inner) = Some(Start { by, at, seq });
    SEQ.store(seq, Ordering::Relaxed);
}

/// The start that a barrier must run first, with the roots that belong to it. A barrier that has nothing but such roots is the
/// start itself.
pub(super) fn before_barrier() -> Option<(Start, Vec<NodeId>)> {
    take_if(|g, seq| g.barrier_roots().iter().any(|&r| g.node(r).seq > seq))
}

/// The start that must run before `roots`, pending ones in creation order, are read: where they build on it. What belongs to it
/// entirely is read by itself.
pub(super) fn before_read(roots: &[NodeId]) -> Option<(Start, Vec<NodeId>)> {
    take_if(|g, seq| {
        let needed = g.needed_by(roots);
        let early = |id: &NodeId| g.node(*id).seq <= seq;
        needed.iter().any(early) && !needed.iter().all(early)
    })
}

fn take_if(wanted: impl FnOnce(&mut Graph, u64) -> bool) -> Option<(Start, Vec<NodeId>)> {
    let seq = SEQ.load(Ordering::Relaxed);
    if seq == 0 {
        return None;
    }
    let mut g = graph();
    if !wanted(&mut g, seq) {
        return None;
    }
    let early: Vec<NodeId> = g.barrier_roots().into_iter().filter(|&r| g.node(r).seq <= seq).collect();
    drop(g);
    let start = START.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    SEQ.store(0, Ordering::Relaxed);
    (!early.is_empty()).then_some((start, early))
}
