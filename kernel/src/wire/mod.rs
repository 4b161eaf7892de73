//! Jupyter messaging 5.4 over ZeroMQ: sees only [`crate::engine::Engine`], and knows nothing of Rust or tensors.
//!
//! A request goes: ROUTER socket (`router`) → [`message::parse`] (`sockets`) → the thread of its shell (`shell`, chosen by
//! `subshells`), or at once for control (`control`) → the engine → its events through `iopub` (gathered, in order) →
//! `publisher` (a queue per subscriber). Both kinds of socket take connections from `listen` into seats (`guests`), write
//! through `outgoing` and speak `zmtp`, encrypted by `curve` where the connection file has keys.
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

mod between_cells;
mod comms;
mod connection;
mod content;
mod control;
mod curve;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod guests;
mod hands;
mod history;
mod hub;
mod iopub;
mod listen;
pub mod message;
mod outgoing;
mod publisher;
mod replay;
mod router;
mod serve;
mod shell;
mod sockets;
mod subshells;
mod turns;
mod widgets;
mod zmtp;

pub use connection::{Connection, connection};
pub use serve::{Options, serve};

/// What breaks the protocol.
fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// One line on stderr, which Jupyter shows in its own log. Nobody may be reading any more, and that is no error.
fn log(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "xlazy kernel: {line}");
}

/// Lines about what others did wrong that are logged in [`STRANGERS_MINUTE`].
const STRANGERS_LINES: u32 = 30;
const STRANGERS_MINUTE: Duration = Duration::from_secs(60);

/// As [`log`], of what somebody did who may not have the key, and may do it for ever.
fn log_stranger(line: std::fmt::Arguments<'_>) {
    static LINES: Mutex<Option<(Instant, u32)>> = Mutex::new(None);
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, count) = match &mut *lines {
        Some(current) if current.0.elapsed() < STRANGERS_MINUTE => current,
        over => over.insert((Instant::now(), 0)),
    };
    *count += 1;
    let count = *count;
    drop(lines);
    match count {
        ..STRANGERS_LINES => log(line),
        STRANGERS_LINES => log(format_args!("{line}; what else is like this within a minute is not logged")),
        _ => {}
    }
}
