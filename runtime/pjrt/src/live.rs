//! How many objects of plugins are alive in this process, for leak tests.
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) static CLIENTS: AtomicUsize = AtomicUsize::new(0);
pub(crate) static BUFFERS: AtomicUsize = AtomicUsize::new(0);
pub(crate) static EXECUTABLES: AtomicUsize = AtomicUsize::new(0);
pub(crate) static LOADED_EXECUTABLES: AtomicUsize = AtomicUsize::new(0);
pub(crate) static EVENTS: AtomicUsize = AtomicUsize::new(0);
pub(crate) static TOPOLOGIES: AtomicUsize = AtomicUsize::new(0);

/// Counts of live objects, see [`live`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveObjects {
    /// Clients.
    pub clients: usize,
    /// Device buffers, deleted and donated ones included until they are dropped.
    pub buffers: usize,
    /// Executables: one inside every loaded executable, and those compiled ahead of time.
    pub executables: usize,
    /// Executables loaded on a client.
    pub loaded_executables: usize,
    /// Events.
    pub events: usize,
    /// Topologies that were created by name (a client's own is not counted).
    pub topologies: usize,
}

/// Counts the objects of all plugins that this process holds now.
pub fn live() -> LiveObjects {
    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    LiveObjects {
        clients: count(&CLIENTS),
        buffers: count(&BUFFERS),
        executables: count(&EXECUTABLES),
        loaded_executables: count(&LOADED_EXECUTABLES),
        events: count(&EVENTS),
        topologies: count(&TOPOLOGIES),
    }
}
