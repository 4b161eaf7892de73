//! JSON text, written by hand: the runtime has no use for a JSON library otherwise.
use std::fmt::Write;
use xlazy_mime::Bundle;

/// A string as a JSON literal.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if (c as u32) < 0x20 => _ = write!(out, "\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Items that are JSON already, as a list.
pub(crate) fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

/// JSON as a display: a tree in Jupyter, the text elsewhere.
pub(crate) fn bundle(json: String) -> Bundle {
    Bundle::text(json.clone()).with("application/json", json).passing()
}
