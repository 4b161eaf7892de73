//! The statement of the cell's own code that runs now: what helpers are called from.
use super::flag::CELL_THREAD;
use std::panic::Location;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

// A store to a static costs a loop of the cell's less than one to a thread's own variable.
static STATEMENT: AtomicPtr<Location<'static>> = AtomicPtr::new(null_mut());

/// The cell has come to the statement at the caller's place.
#[track_caller]
#[inline(never)]
pub fn come_to_statement() {
    STATEMENT.store(std::ptr::from_ref(Location::caller()).cast_mut(), Ordering::Relaxed);
}

/// No cell runs any more.
pub fn no_statement() {
    STATEMENT.store(null_mut(), Ordering::Relaxed);
}

/// The statement that runs now; none on threads that a cell has started, which are at none.
pub fn statement() -> Option<&'static Location<'static>> {
    if !CELL_THREAD.get() {
        return None;
    }
    // SAFETY: null, or a location that lives as long as the process: objects are never closed.
    unsafe { STATEMENT.load(Ordering::Relaxed).as_ref() }
}
