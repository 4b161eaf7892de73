//! How long the pending graph may grow before it is synced unasked.
use std::sync::atomic::{AtomicUsize, Ordering};

/// Longest pending graph; 0 until it is asked for.
static TRIM: AtomicUsize = AtomicUsize::new(0);

/// How long the pending graph may grow, in ops and numbers; beyond it the runtime syncs by itself, with the cause "trim".
/// The default is 500,000, or what `XLAZY_TRIM_GRAPH_SIZE` says (torch_xla: `XLA_TRIM_GRAPH_SIZE`).
pub fn set_trim(nodes: usize) {
    TRIM.store(nodes.max(1), Ordering::Relaxed);
}

/// What [`set_trim`] set, in ops and numbers.
pub fn trim() -> usize {
    match TRIM.load(Ordering::Relaxed) {
        0 => {
            let set = std::env::var("XLAZY_TRIM_GRAPH_SIZE").ok().and_then(|v| v.parse().ok());
            set_trim(set.unwrap_or(500_000));
            TRIM.load(Ordering::Relaxed)
        }
        set => set,
    }
}
