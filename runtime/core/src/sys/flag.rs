//! The interrupt that is due, and which thread it is for.
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// An interrupt came in and no cell has answered it yet.
pub(super) static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// When the interrupt came in, in monotonic milliseconds.
pub(super) static SINCE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    pub(super) static CELL_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Milliseconds of a clock that only goes forward.
pub(super) fn monotonic_ms() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec; clock_gettime is async-signal-safe.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1000 + t.tv_nsec as u64 / 1_000_000
}
