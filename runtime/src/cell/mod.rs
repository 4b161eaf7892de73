//! What a running cell needs of its session: the variable store, displays, streams, input, the worker loop.
mod at;
#[doc(hidden)]
pub mod checkpoint;
mod link;
mod object;
mod outcome;
pub mod rt;
mod show;
pub(crate) mod store;
mod streams;
mod wait;
pub mod worker;

pub use show::{clear_output, display, display_with_id, update_display};
pub use store::{Handle, peek};
pub(crate) use store::{compiled_once, tensors};
pub(crate) use streams::line_of_input;
pub use streams::{input, input_password, sleep};

use std::sync::atomic::{AtomicBool, Ordering};

static RUNNING: AtomicBool = AtomicBool::new(false);

/// Whether a cell is running in this process (and not, say, a test or a plain program that uses the crate).
pub fn running() -> bool {
    RUNNING.load(Ordering::Relaxed)
}

/// The payload that unwinds an interrupted cell. Only [`crate::sys::check_interrupt`] makes one.
pub struct Interrupted(pub(crate) ());

/// Reports something that happened in the runtime (a compile, a sync, a transfer) to the front end, as JSON.
pub fn event(kind: &str, json: &str) {
    if link::connected() {
        link::send(&xlazy_mime::Tell::Event { kind: kind.to_owned(), json: json.to_owned() });
    }
}
