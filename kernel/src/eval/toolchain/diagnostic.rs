//! What rustc says, one JSON object a message.
use serde_json::Value;

/// One of rustc's messages, parsed as far as needed.
#[derive(Clone, Debug, Default)]
pub struct Diagnostic {
    pub level: String,
    pub code: String,
    pub message: String,
    pub spans: Vec<Span>,
    pub children: Vec<Diagnostic>,
}

const LINKING: &str = "linking with `rust-lld` failed";

impl Diagnostic {
    /// What the linker says, as rustc passes it on.
    pub fn of_linking(what: &str) -> Diagnostic {
        let said = |level: &str, message: &str| Diagnostic {
            level: level.into(),
            message: message.into(),
            ..Diagnostic::default()
        };
        Diagnostic { children: vec![said("note", what)], ..said("error", LINKING) }
    }

    pub fn is_of_linking(&self) -> bool {
        self.message == LINKING
    }

    /// Its message and its notes, line by line.
    pub fn text(&self) -> String {
        self.children.iter().fold(format!("{}\n", self.message), |text, child| text + &child.text())
    }
}

#[derive(Clone, Debug, Default)]
pub struct Span {
    pub start: usize,
    pub end: usize,
    pub line: usize,
    pub primary: bool,
    pub label: Option<String>,
    pub replacement: Option<String>,
    /// In the source given on standard input; otherwise in a library, or in what another cell defined.
    pub ours: bool,
    pub file: String,
    /// Where the macro that this span is in was called.
    pub call: Option<Box<Span>>,
}

fn text(v: &Value, key: &str) -> String {
    v.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl Diagnostic {
    /// A message as rustc writes it; `file` is how locations name the source at hand.
    pub fn read(v: &Value, file: &str) -> Diagnostic {
        let list = |key| v.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Diagnostic {
            level: text(v, "level"),
            code: v.get("code").map(|c| text(c, "code")).unwrap_or_default(),
            message: text(v, "message"),
            spans: list("spans").iter().map(|s| span(s, file)).collect(),
            children: list("children").iter().map(|d| Diagnostic::read(d, file)).collect(),
        }
    }
}

fn span(v: &Value, file: &str) -> Span {
    let number = |key| v.get(key).and_then(Value::as_u64).unwrap_or(0) as usize;
    let optional = |key| v.get(key).and_then(Value::as_str).map(str::to_owned);
    let name = text(v, "file_name");
    Span {
        start: number("byte_start"),
        end: number("byte_end"),
        line: number("line_start"),
        primary: v.get("is_primary").and_then(Value::as_bool).unwrap_or(false),
        label: optional("label"),
        replacement: optional("suggested_replacement"),
        ours: name == file || name == "/dev/stdin",
        file: name,
        call: v.get("expansion").and_then(|e| e.get("span")).map(|s| Box::new(span(s, file))),
    }
}
