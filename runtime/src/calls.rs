//! Questions that the kernel puts to the runtime (`metrics`, `graph y`…), by name.
use xlazy_mime::{Bundle, Fault};

/// Answers one question.
pub fn call(name: &str, _args: &str) -> Result<Bundle, Fault> {
    Err(Fault { name: "UnknownCall".into(), message: format!("unknown call {name}"), ..Fault::default() })
}
