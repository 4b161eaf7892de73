//! Jupyter messaging 5.4 over ZeroMQ: sees only [`crate::engine::Engine`], and knows nothing of Rust or tensors.
//!
//! A request goes: ROUTER socket (`router`, `sockets`) → [`message::parse`] → the thread of its shell (`shell`, chosen by
//! `subshells`), or at once for control (`hub`) → the engine → its events through `iopub` (gathered, in order) →
//! `publisher` (a queue per subscriber). Both kinds of socket write through `outgoing` and speak `zmtp`.
use std::io::Write;

mod content;
mod history;
mod hub;
mod iopub;
mod late;
pub mod message;
mod outgoing;
mod publisher;
mod router;
mod serve;
mod shell;
mod sockets;
mod subshells;
mod turns;
mod zmtp;

pub use serve::{Options, connection, serve};

/// One line on stderr, which Jupyter shows in its own log. Nobody may be reading any more, and that is no error.
fn log(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "xlazy kernel: {line}");
}
