//! Op by op, as a framework without lazy tensors does: whether each op is a program of its own, run as it is recorded.
use std::sync::atomic::{AtomicBool, Ordering};

static EAGER: AtomicBool = AtomicBool::new(false);

/// Has each op run as it is recorded from now on, or no longer.
pub fn set_eager(on: bool) {
    EAGER.store(on, Ordering::Relaxed);
}

pub fn is_eager() -> bool {
    EAGER.load(Ordering::Relaxed)
}
