//! What a running cell needs of its session: the variable store, displays, streams, input, the worker loop.
mod at;
#[doc(hidden)]
pub mod checkpoint;
mod frame;
pub(crate) mod handlers;
mod held;
#[doc(hidden)]
pub mod instances;
pub(crate) mod link;
#[doc(hidden)]
pub mod named;
mod object;
mod outcome;
mod places;
#[doc(hidden)]
pub mod progress;
pub mod rt;
mod show;
mod shown;
pub(crate) mod store;
mod streams;
mod wait;
pub mod worker;

pub(crate) use places::register_cell;
pub use progress::{Progress, progress};
pub use show::{clear_output, display, display_with_id, update_display};
pub use shown::Shown;
pub use store::{Handle, peek};
pub use streams::{input, input_password, sleep};

pub use xlazy_core::host::{Interrupted, running};

/// Reports something that happened in the runtime (a compile, a sync, a transfer) to the front end, as JSON.
pub fn event(kind: &str, json: &str) {
    if link::connected() {
        link::send(&xlazy_mime::Tell::Event { kind: kind.to_owned(), json: json.to_owned() });
    }
}
