//! What messages say: requests read leniently, replies and MIME bundles written as the protocol wants them.
//!
//! Requests are read by hand: clients leave fields out or send `null` where `jupyter-protocol`'s request types insist
//! on a value (`history_request` without `stop`, `execute_request` without `silent`). Replies use its types where they
//! fit; those whose fields depend on the status are written out.
use crate::engine::{Completeness, Completions, Failure, Reply};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jupyter_protocol::messaging::{CompleteReply, HistoryReply};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use xlazy_mime::{Bundle, Content};

type Object = Map<String, Value>;

pub fn text(content: &Object, field: &str) -> String {
    content.get(field).and_then(Value::as_str).unwrap_or("").to_owned()
}

pub fn flag(content: &Object, field: &str, default: bool) -> bool {
    content.get(field).and_then(Value::as_bool).unwrap_or(default)
}

pub fn number(content: &Object, field: &str) -> Option<i64> {
    // Some front ends send 3.0 where 3 is meant.
    content.get(field).and_then(|v| v.as_i64().or_else(|| v.as_f64().map(|f| f as i64)))
}

/// An `execute_request`.
#[derive(Debug)]
pub struct Execute {
    pub code: String,
    pub silent: bool,
    pub store_history: bool,
    pub allow_stdin: bool,
    pub stop_on_error: bool,
    pub user_expressions: BTreeMap<String, String>,
}

impl Execute {
    pub fn read(content: &Object) -> Execute {
        let silent = flag(content, "silent", false);
        let expressions = content.get("user_expressions").and_then(Value::as_object);
        Execute {
            code: text(content, "code"),
            silent,
            // The protocol: silent forces store_history to be false.
            store_history: flag(content, "store_history", !silent) && !silent,
            allow_stdin: flag(content, "allow_stdin", true),
            stop_on_error: flag(content, "stop_on_error", true),
            user_expressions: expressions
                .into_iter()
                .flatten()
                .map(|(name, e)| (name.clone(), e.as_str().unwrap_or("").to_owned()))
                .collect(),
        }
    }
}

/// What kernel_info says about the kernel; the rest is the same for every kernel of ours.
#[derive(Clone, Debug)]
pub struct About {
    pub version: String,
    pub rust_version: String,
    pub banner: String,
}

pub fn kernel_info(about: &About) -> Value {
    json!({
        "status": "ok",
        "protocol_version": super::message::PROTOCOL,
        "implementation": "xlazy",
        "implementation_version": about.version,
        "language_info": {
            "name": "rust",
            "version": about.rust_version,
            "mimetype": "text/rust",
            "file_extension": ".rs",
            "pygments_lexer": "rust",
            "codemirror_mode": "rust",
            "nbconvert_exporter": "",
        },
        "banner": about.banner,
        "debugger": false,
        "supported_features": ["kernel subshells"],
        "help_links": [
            {"text": "The Rust book", "url": "https://doc.rust-lang.org/book/"},
            {"text": "Rust standard library", "url": "https://doc.rust-lang.org/std/"},
            {"text": "StableHLO", "url": "https://openxla.org/stablehlo/spec"},
        ],
    })
}

/// A bundle's `data`: text as it is, JSON types as JSON, bytes in base64.
pub fn data(bundle: &Bundle) -> Value {
    let entries = bundle.entries.iter().map(|(mime, content)| {
        let value = match content {
            Content::Bytes(bytes) => Value::String(STANDARD.encode(bytes)),
            Content::Text(text) if is_json(mime) => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
            }
            Content::Text(text) => Value::String(text.clone()),
        };
        (mime.clone(), value)
    });
    Value::Object(entries.collect())
}

/// About how many bytes a bundle will be as a message.
pub fn weight(bundle: &Bundle) -> usize {
    let size = |content: &Content| match content {
        Content::Text(text) => text.len(),
        Content::Bytes(bytes) => bytes.len() / 3 * 4,
    };
    bundle.entries.iter().map(|(_, content)| size(content)).sum()
}

fn is_json(mime: &str) -> bool {
    let essence = mime.split(';').next().unwrap_or(mime).trim_end();
    essence == "application/json" || essence.ends_with("+json")
}

/// The failure that a reply stands for, if it is one.
pub fn failure_of(reply: Reply) -> Option<Failure> {
    match reply {
        Reply::Ok => None,
        Reply::Error(failure) => Some(failure),
        Reply::Interrupted => Some(Failure {
            name: "Interrupted".into(),
            message: "the cell was interrupted".into(),
            traceback: vec!["\u{1b}[31mInterrupted\u{1b}[0m: the cell was interrupted".into()],
        }),
    }
}

/// `ename`, `evalue` and `traceback`, with what goes beside them.
pub fn error(failure: &Failure, mut beside: Value) -> Value {
    let shown = if failure.traceback.is_empty() {
        vec![format!("{}: {}", failure.name, failure.message)]
    } else {
        failure.traceback.clone()
    };
    beside["ename"] = json!(failure.name);
    beside["evalue"] = json!(failure.message);
    beside["traceback"] = json!(shown);
    beside
}

pub fn expression(result: Result<Bundle, Failure>) -> Value {
    match result {
        Ok(bundle) => json!({"status": "ok", "data": data(&bundle), "metadata": {}}),
        Err(failure) => error(&failure, json!({"status": "error"})),
    }
}

pub fn completeness(answer: Completeness) -> Value {
    match answer {
        Completeness::Complete => json!({"status": "complete"}),
        Completeness::Incomplete(indent) => json!({"status": "incomplete", "indent": indent}),
        Completeness::Invalid => json!({"status": "invalid"}),
    }
}

pub fn completions(code: &str, found: &Completions) -> Value {
    let (start, end) = (code_point(code, found.start), code_point(code, found.end));
    let types = found.matches.iter().map(|c| {
        let mut one = json!({"start": start, "end": end, "text": c.text, "type": c.kind});
        if !c.detail.is_empty() {
            one["signature"] = json!(c.detail);
        }
        if !c.doc.is_empty() {
            one["documentation"] = json!(c.doc);
        }
        one
    });
    let metadata = Map::from_iter([("_jupyter_types_experimental".to_owned(), types.collect())]);
    typed(CompleteReply {
        matches: found.matches.iter().map(|c| c.text.clone()).collect(),
        cursor_start: start,
        cursor_end: end,
        metadata,
        ..CompleteReply::default()
    })
}

pub fn inspection(found: Option<Bundle>) -> Value {
    match found {
        Some(bundle) => json!({"status": "ok", "found": true, "data": data(&bundle), "metadata": {}}),
        None => json!({"status": "ok", "found": false, "data": {}, "metadata": {}}),
    }
}

pub fn history(found: Result<Vec<jupyter_protocol::messaging::HistoryEntry>, Failure>) -> Value {
    match found {
        Ok(entries) => typed(HistoryReply::new(entries)),
        Err(failure) => error(&failure, json!({"status": "error", "history": []})),
    }
}

/// A content type of `jupyter-protocol` as a value.
pub fn typed(content: impl Serialize) -> Value {
    serde_json::to_value(content).unwrap_or_else(|_| json!({}))
}

/// The protocol counts a cursor in code points, the engine in bytes; out of range means the nearest end.
pub fn byte_offset(code: &str, cursor: i64) -> usize {
    let cursor = usize::try_from(cursor).unwrap_or(0);
    code.char_indices().nth(cursor).map_or(code.len(), |(at, _)| at)
}

fn code_point(code: &str, offset: usize) -> usize {
    code.char_indices().take_while(|(at, _)| *at < offset).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_count_code_points() {
        let code = "let ü = \"𝛑\";x";
        assert_eq!(byte_offset(code, 5), 6);
        assert_eq!(byte_offset(code, 10), 14);
        assert_eq!(code_point(code, 14), 10);
        for at in 0..=code.chars().count() {
            assert_eq!(code_point(code, byte_offset(code, at as i64)), at);
        }
        assert_eq!((byte_offset(code, -3), byte_offset(code, 1 << 40)), (0, code.len()));
    }

    #[test]
    fn bundles_become_json() {
        let bundle = Bundle::text("p")
            .with("application/vnd.x+json", "{\"a\":1}")
            .with("application/json", "not json")
            .with_bytes("image/png", vec![1, 2, 3]);
        let want = json!({"text/plain": "p", "application/vnd.x+json": {"a": 1}, "application/json": "not json",
            "image/png": "AQID"});
        assert_eq!(data(&bundle), want);
    }

    #[test]
    fn execute_requests_may_leave_fields_out() {
        let read = |v: Value| Execute::read(v.as_object().unwrap());
        let bare = read(json!({"code": "x"}));
        assert!(bare.store_history && bare.allow_stdin && bare.stop_on_error && !bare.silent);
        let silent = read(json!({"code": "x", "silent": true, "store_history": true, "user_expressions": null}));
        assert!(silent.silent && !silent.store_history && silent.user_expressions.is_empty());
    }
}
