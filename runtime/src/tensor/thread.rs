//! What tracing needs to know of its thread: whether gradients are recorded, whose line it traces for, who shows values.
use std::cell::Cell;
use std::panic::Location;
use xlazy_core::clock::TIMED_ALONE;
use xlazy_core::text::{Behalf, behalf};

/// What tracing needs to know of its thread.
struct Thread {
    grad: Cell<bool>,
    /// The line that is showing values.
    shows: Cell<Option<&'static Location<'static>>>,
    /// Ops it has recorded since the last sync, as long as there were few syncs.
    ops: Cell<u32>,
    /// Syncs of the cell.
    syncs: Cell<u32>,
    /// Tensors are taken as they are physically, their buckets out of sight.
    physical: Cell<bool>,
}

thread_local! {
    static THREAD: Thread = const { Thread { grad: Cell::new(true), shows: Cell::new(None), ops: Cell::new(0), syncs: Cell::new(0), physical: Cell::new(false) } };
}

/// Whether ops on this thread are recorded for gradients (`torch.is_grad_enabled`).
pub fn is_grad_enabled() -> bool {
    THREAD.with(|t| t.grad.get())
}

/// Puts a thread's grad mode back when it goes.
struct Restore(bool);

impl Drop for Restore {
    fn drop(&mut self) {
        THREAD.with(|t| t.grad.set(self.0));
    }
}

/// Runs `f` without recording gradients (`with torch.no_grad()`).
///
/// ```
/// use xlazy::prelude::*;
/// let w = Tensor::ones([2]).requires_grad_(true);
/// let y = no_grad(|| &w * 2.0);
/// assert!(!y.requires_grad());
/// ```
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    let _restore = Restore(THREAD.with(|t| t.grad.replace(false)));
    f()
}

/// Whether this thread takes tensors as they are physically.
pub(crate) fn is_physical() -> bool {
    THREAD.with(|t| t.physical.get())
}

/// Runs `f` with tensors taken as they are physically: bucketed dimensions are of their bucket's size and nothing else.
pub(crate) fn physically<R>(f: impl FnOnce() -> R) -> R {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            THREAD.with(|t| t.physical.set(self.0));
        }
    }
    let _back = Back(THREAD.with(|t| t.physical.replace(true)));
    f()
}

/// Runs `f` with all that it traces put down to the line `at` (unless a line is set already), gradients on or off.
pub(crate) fn on_behalf<R>(at: &'static Location<'static>, grad: bool, f: impl FnOnce() -> R) -> R {
    let _restore = (Restore(THREAD.with(|t| t.grad.replace(grad))), behalf(at));
    f()
}

/// Puts all that this thread traces down to the caller's line (unless a line is set already) until the guard goes: for
/// methods that trace in closures, where `#[track_caller]` does not reach.
#[track_caller]
pub(crate) fn caller_line() -> Behalf {
    behalf(Location::caller())
}

/// Runs `f`, which shows values, on behalf of the line `at`: what it reads is put down to it.
pub(crate) fn showing<R>(at: &'static Location<'static>, f: impl FnOnce() -> R) -> R {
    struct Before(Option<&'static Location<'static>>);
    impl Drop for Before {
        fn drop(&mut self) {
            THREAD.with(|t| t.shows.set(self.0));
        }
    }
    let _before = Before(THREAD.with(|t| t.shows.replace(Some(at))));
    f()
}

/// The line that shows values, if it is known.
pub(crate) fn shown_by() -> Option<&'static Location<'static>> {
    THREAD.with(|t| t.shows.get())
}

/// A cell begins on this thread: what it does first is timed.
pub(crate) fn begin_cell() {
    THREAD.with(|t| {
        t.ops.set(0);
        t.syncs.set(0);
    });
}

/// An op more on this thread since its last sync: whether gradients are recorded, whether tensors are taken as they are
/// physically, and which op it is.
pub(super) fn next_op() -> (bool, bool, u32) {
    THREAD.with(|t| {
        t.ops.set(t.ops.get().wrapping_add(1));
        (t.grad.get(), t.physical.get(), t.ops.get())
    })
}

/// A sync more on this thread.
pub(super) fn synced() {
    THREAD.with(|t| {
        t.syncs.set(t.syncs.get().saturating_add(1));
        if t.syncs.get() <= TIMED_ALONE {
            t.ops.set(0);
        }
    });
}
