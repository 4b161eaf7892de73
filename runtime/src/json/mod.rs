//! JSON: as a display, and what is read of it. It is our own, since a cell sees the impls of every crate that the runtime is made
//! of: with serde_json's `PartialEq<Value> for u64` beside the standard library's, `assert_eq!(squares(0), vec![])` has no type
//! any more (`tests/cells/open.md`).
#[cfg(test)]
pub(crate) mod drawn;
mod text;
mod value;

pub(crate) use text::{entries, parse};
pub(crate) use value::{Json, Map, Value, json};

use std::time::Duration;
use xlazy_mime::Bundle;

/// JSON as a display: a tree in Jupyter, the text elsewhere.
pub(crate) fn bundle(json: impl ToString) -> Bundle {
    let json = json.to_string();
    Bundle::text(json.clone()).with("application/json", json).passing()
}

/// Milliseconds, to the microsecond.
pub(crate) fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Whole microseconds.
pub(crate) fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}
