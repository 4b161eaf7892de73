//! What tracing asks of its thread: whether gradients are recorded, whose line it traces for, who shows values.
use super::{Tensor, mixed, takes};
use smallvec::SmallVec;
use std::fmt::Display;
use std::panic::Location;
use xlazy_core::thread::{behalf, call, nobodys, thread};
use xlazy_core::ty::TypeRef;

/// Whether ops on this thread are recorded for gradients (`torch.is_grad_enabled`).
pub fn is_grad_enabled() -> bool {
    thread(|t| t.grad.get())
}

/// Puts a thread's grad mode back when it goes.
pub(super) struct Restored(bool);

impl Drop for Restored {
    #[inline(never)]
    fn drop(&mut self) {
        thread(|t| t.grad.set(self.0));
    }
}

/// Whether ops on this thread are recorded for gradients, until the guard goes.
#[inline(never)]
pub(super) fn recording(on: bool) -> Restored {
    Restored(thread(|t| t.grad.replace(on)))
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
    let _restored = recording(false);
    f()
}

/// Whether this thread takes tensors as they are physically.
pub(crate) fn is_physical() -> bool {
    thread(|t| t.physical.get())
}

/// Runs `f` with tensors taken as they are physically: bucketed dimensions are of their bucket's size and nothing else.
pub(crate) fn physically<R>(f: impl FnOnce() -> R) -> R {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            thread(|t| t.physical.set(self.0));
        }
    }
    let _back = Back(thread(|t| t.physical.replace(true)));
    f()
}

/// Runs `f` with what the library traces in it put down to the line `at`, gradients on or off.
pub(crate) fn on_behalf<R>(at: &'static Location<'static>, grad: bool, f: impl FnOnce() -> R) -> R {
    let _restored = (recording(grad), behalf(at));
    f()
}

/// Puts what the library traces until the guard goes down to the caller's line, and what it refuses to this method of several
/// ops, with its operands.
#[track_caller]
pub(crate) fn called<'a>(op: &'static str, operands: impl IntoIterator<Item = &'a Tensor>) -> Called {
    let types: SmallVec<[TypeRef; 3]> = operands.into_iter().map(Tensor::known_type).collect();
    let shown = types.iter().map(|t| t.get() as &'static (dyn Display + Sync)).collect();
    let call = call(Location::caller(), op, shown);
    if call.outermost
        && let Err(e) = takes::check(op, types.iter())
    {
        e.raise();
    }
    let within = mixed::within(op, types.iter().map(|t| t.dtype));
    Called { _within: within, _call: call }
}

/// Ends a call of several ops when it goes.
pub(crate) struct Called {
    _within: Option<mixed::Back>,
    _call: xlazy_core::thread::Called,
}

/// Runs `f`, which shows values, on behalf of the line `at`: what it reads is put down to it.
pub(crate) fn showing<R>(at: &'static Location<'static>, f: impl FnOnce() -> R) -> R {
    let _shows = Shows::from(at);
    f()
}

/// Until it goes, values are shown on behalf of a line. A part of what cells compile, so neither half is compiled with them.
struct Shows {
    before: Option<&'static Location<'static>>,
}

impl Shows {
    #[inline(never)]
    fn from(at: &'static Location<'static>) -> Shows {
        Shows { before: thread(|t| t.shows.replace(Some(at))) }
    }
}

impl Drop for Shows {
    #[inline(never)]
    fn drop(&mut self) {
        thread(|t| t.shows.set(self.before));
    }
}

/// The line that shows values, if it is known.
pub(crate) fn shown_by() -> Option<&'static Location<'static>> {
    thread(|t| t.shows.get())
}

/// Runs `f`, which records on trial: neither counted nor timed, without gradients, and gone afterwards.
pub(crate) fn on_trial<R>(f: impl FnOnce() -> R) -> R {
    struct Back(u32);
    impl Drop for Back {
        fn drop(&mut self) {
            thread(|t| t.ops.set(self.0));
        }
    }
    let _back = (Back(thread(|t| t.ops.get())), nobodys());
    no_grad(|| xlazy_core::clock::untimed(|| xlazy_core::ir::aside(f)))
}
