//! The seam between front ends (`wire/`, `repl/`, `run`) and what runs cells (`eval/`): front ends see only [`Engine`].
use serde_json::Value;
use std::sync::mpsc::Sender;
use xlazy_mime::Bundle;

pub mod overwriting;
pub mod spill;

/// One cell to run.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub code: String,
    /// Run for its effects alone: no result is shown and no execution count is used up.
    pub silent: bool,
    /// Whether the cell gets a number and enters the history.
    pub store_history: bool,
    /// Whether the front end can answer [`Event::Input`].
    pub allow_stdin: bool,
    /// The number the front end shows for this cell (`In [7]`).
    pub cell: u64,
}

/// What happens while a cell runs, in order.
#[derive(Debug)]
pub enum Event {
    Stream {
        stderr: bool,
        text: String,
    },
    /// What xlazy says of its own work, such as cargo's progress: no output of the cell, and no error, which is what a notebook makes
    /// of text on the standard error.
    Told(String),
    Display {
        bundle: Bundle,
        id: Option<String>,
        update: bool,
    },
    /// The value of the last expression.
    Result(Bundle),
    ClearOutput {
        wait: bool,
    },
    /// The cell wants a line from the user; answer with it, or with the reason why there is none.
    Input {
        prompt: String,
        password: bool,
        answer: Sender<Result<String, String>>,
    },
    /// Text for the front end's pager (`%help`, `name?`).
    Page(Bundle),
    /// Text that is to be the next cell, for the user to read and run (`%fix`).
    NextInput(String),
    /// A message of a widget to its front ends: `type`, `id`, `data`, `buffers` in base64.
    Comm(Value),
    /// A compile, a sync, a transfer…, as JSON.
    Insight {
        kind: String,
        json: String,
    },
}

/// A failed cell, ready to show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failure {
    pub name: String,
    pub message: String,
    /// Lines to show, with ANSI colours; they point into the cell.
    pub traceback: Vec<String>,
}

/// A failure in one sentence.
pub fn sentence(name: &str, message: impl Into<String>) -> Failure {
    let message = message.into();
    let traceback = vec![format!("\x1b[1;31m{name}\x1b[0m: {message}")];
    Failure { name: name.into(), message, traceback }
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Ok,
    Error(Failure),
    Interrupted,
}

/// Candidates that replace `start..end` (byte offsets) of the code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completions {
    pub start: usize,
    pub end: usize,
    pub matches: Vec<Candidate>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    pub text: String,
    /// `variable`, `method`, `function`, `magic`, `keyword`…
    pub kind: String,
    /// A signature or a type, empty where there is none.
    pub detail: String,
    /// The first line of its documentation.
    pub doc: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Completeness {
    Complete,
    /// More is needed; the string is the indent for the next line.
    Incomplete(String),
    Invalid,
}

/// The code that calls who waits for what was done to widgets.
pub const HANDLERS: &str = "::xlazy::widget::run_handlers();";

/// What runs cells. Methods take `&self`: a front end may complete or inspect while a cell runs.
/// Cursors are byte offsets into the code; one out of range is clamped to a character boundary.
pub trait Engine: Send + Sync {
    /// Runs one cell to its end and reports what happens through `events`.
    fn execute(&self, request: &Request, events: &mut dyn FnMut(Event)) -> Reply;
    /// Runs a cell beside the one that is running, where all of it only reads (`%metrics`, `%vars`); `None` says that it
    /// has to wait for its turn in [`Engine::execute`].
    fn execute_beside(&self, _request: &Request, _events: &mut dyn FnMut(Event)) -> Option<Reply> {
        None
    }
    /// Evaluates an expression for `user_expressions`; its value, or why there is none.
    fn evaluate(&self, expression: &str) -> Result<Bundle, Failure>;
    fn complete(&self, code: &str, cursor: usize) -> Completions;
    /// Documentation of the name at the cursor; more of it at detail level 1.
    fn inspect(&self, code: &str, cursor: usize, detail: u8) -> Option<Bundle>;
    fn is_complete(&self, code: &str) -> Completeness;
    /// Ends the running cell, keeping every variable; does nothing when idle. Called from any thread. The answer says
    /// whether there was a cell.
    fn interrupt(&self) -> bool;
    /// Where output goes that comes between cells, of threads that outlive theirs. Where nobody listens, it waits for
    /// the next cell.
    fn listen(&self, _late: Box<dyn FnMut(Event) + Send>) {}
    /// Whether each sync and compilation is an event of its own, as it happens ([`Event::Insight`] of the kinds `sync` and
    /// `compilation`), from the next cell on.
    fn stream(&self, _on: bool) {}
    /// What a front end has sent to a widget: `id`, `data`, `buffers`; `states` for all of them, or `next`: [`HANDLERS`] is about what
    /// happened to this one. The answer has the `messages` that
    /// go back, whether it is `known`, and whether [`HANDLERS`] is to `call` who waits for it. None where there are no widgets.
    fn widget(&self, _message: &Value) -> Option<Value> {
        None
    }
    /// Throws the session away and starts a new one.
    fn restart(&self) -> Result<(), Failure>;
    fn shutdown(&self);
}
