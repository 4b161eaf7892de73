//! What magics have in common when they answer.
use super::magic::Call;
use crate::engine::{Event, Failure, Reply};
use xlazy_mime::{Bundle, Question};

/// Puts a question to the runtime, with what stands behind the magic's name, and shows the answer.
pub fn ask(question: Question, call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    let json = if call.json { " --json" } else { "" };
    show(call.host.call(question, format!("{}{json}", call.args).trim()), events)
}

/// Shows what the runtime answered.
pub fn show(answer: Result<Bundle, Failure>, events: &mut dyn FnMut(Event)) -> Reply {
    match answer {
        Ok(bundle) => {
            display(bundle, events);
            Reply::Ok
        }
        Err(failure) => Reply::Error(failure),
    }
}

/// Shows a bundle, unless there is nothing in it.
pub fn display(bundle: Bundle, events: &mut dyn FnMut(Event)) {
    if !bundle.entries.is_empty() {
        events(Event::Display { bundle, id: None, update: false });
    }
}

/// JSON as a display: a tree in Jupyter, the text elsewhere.
pub fn json(value: &serde_json::Value) -> Bundle {
    let text = value.to_string();
    Bundle::text(text.clone()).with("application/json", text)
}
