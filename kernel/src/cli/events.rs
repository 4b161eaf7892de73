//! What happens in a cell as JSON, one object per event: the lines of `xlazy eval --json` and `xlazy run --json`.
use super::bundle::mime_json;
use crate::engine::{Event, Reply};
use serde_json::{Value, json};
use std::time::Duration;

/// One event. `cell` tells the cells of one call apart, counted from 1.
pub fn event_json(cell: u64, event: &Event) -> Value {
    match event {
        Event::Stream { stderr, text } => {
            json!({"event": "stream", "cell": cell, "name": stream_name(*stderr), "text": text})
        }
        Event::Told(text) => json!({"event": "stream", "cell": cell, "name": "stderr", "text": text}),
        Event::Display { bundle, id, update } => {
            json!({"event": "display", "cell": cell, "data": mime_json(bundle), "id": id, "update": update})
        }
        Event::Result(bundle) => json!({"event": "result", "cell": cell, "data": mime_json(bundle)}),
        Event::ClearOutput { wait } => json!({"event": "clear_output", "cell": cell, "wait": wait}),
        Event::Input { prompt, password, .. } => {
            json!({"event": "input", "cell": cell, "prompt": prompt, "password": password})
        }
        Event::NextInput(text) => json!({"event": "next_input", "cell": cell, "text": text}),
        Event::Page(bundle) => json!({"event": "page", "cell": cell, "data": mime_json(bundle)}),
        Event::Comm(message) => json!({"event": "comm", "cell": cell, "message": message}),
        Event::Insight { kind, json } => {
            let data = serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.clone()));
            json!({"event": "insight", "cell": cell, "kind": kind, "data": data})
        }
    }
}

/// How a cell ended; the last object of each cell.
pub fn reply_json(cell: u64, reply: &Reply, took: Duration) -> Value {
    let mut object = json!({"event": "reply", "cell": cell, "ms": (took.as_secs_f64() * 1e6).round() / 1e3});
    object["status"] = match reply {
        Reply::Ok => "ok".into(),
        Reply::Interrupted => "interrupted".into(),
        Reply::Error(failure) => {
            object["ename"] = failure.name.clone().into();
            object["evalue"] = failure.message.clone().into();
            object["traceback"] = failure.traceback.clone().into();
            "error".into()
        }
    };
    object
}

pub fn stream_name(stderr: bool) -> &'static str {
    if stderr { "stderr" } else { "stdout" }
}
