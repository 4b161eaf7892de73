//! MIME bundles as Jupyter's JSON: text as strings, bytes as base64, JSON types as the values they hold.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use xlazy_mime::{Bundle, Content};

/// The `data` of a display, as messages and notebooks carry it.
pub fn mime_json(bundle: &Bundle) -> Map<String, Value> {
    bundle.entries.iter().map(|(mime, content)| (mime.clone(), content_json(mime, content))).collect()
}

fn content_json(mime: &str, content: &Content) -> Value {
    match content {
        Content::Bytes(bytes) => Value::String(STANDARD.encode(bytes)),
        Content::Text(text) if is_json(mime) => serde_json::from_str(text).unwrap_or_else(|_| text.clone().into()),
        Content::Text(text) => text.clone().into(),
    }
}

/// Whether a MIME type's content is JSON itself (`application/json`, `application/vnd.vega.v5+json`).
pub fn is_json(mime: &str) -> bool {
    mime == "application/json" || mime.ends_with("+json")
}
