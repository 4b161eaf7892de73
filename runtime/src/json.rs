//! JSON, which serde_json reads and writes: as a display, and times as numbers in it.
pub(crate) use serde_json::{Map, Value, json};
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

/// A text as JSON.
pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}
