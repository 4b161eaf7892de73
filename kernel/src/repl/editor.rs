//! The line editor: multi-line cells, history, completion and colours on top of rustyline.
use super::highlight;
use crate::engine::{Completeness, Engine};
use crate::terminal::colours;
use rustyline::completion::{Completer, Pair};
use rustyline::config::{BellStyle, ColorMode, CompletionType};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, ConditionalEventHandler, Config, Context, Event, EventContext, EventHandler, ExternalPrinter, Helper, KeyCode,
    KeyEvent, Modifiers, RepeatCount,
};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const INDENT: &str = "    ";

pub struct Editor {
    inner: rustyline::Editor<Assistant, FileHistory>,
    history: Option<PathBuf>,
}

/// An editor whose history comes from a file and goes there, line by line; without a file it is forgotten.
pub fn new(engine: Arc<dyn Engine>, history: Option<PathBuf>) -> Result<Editor, ReadlineError> {
    let config = Config::builder()
        .max_history_size(10_000)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .bell_style(BellStyle::None)
        .color_mode(if colours(&std::io::stdout()) { ColorMode::Enabled } else { ColorMode::Disabled })
        .build();
    let pending = Arc::new(AtomicBool::new(false));
    let mut inner = rustyline::Editor::with_config(config)?;
    inner.set_helper(Some(Assistant { engine: engine.clone(), closing_brace: pending.clone() }));
    // What was typed while a cell ran comes with line feeds, which are Ctrl-J here.
    for enter in [KeyEvent(KeyCode::Enter, Modifiers::NONE), KeyEvent::ctrl('J')] {
        let handler = OnEnter { engine: engine.clone() };
        inner.bind_sequence(enter, EventHandler::Conditional(Box::new(handler)));
    }
    inner.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), EventHandler::Simple(Cmd::Newline));
    inner.bind_sequence(KeyEvent(KeyCode::Tab, Modifiers::NONE), EventHandler::Conditional(Box::new(OnTab)));
    inner.bind_sequence(KeyEvent::from('}'), EventHandler::Conditional(Box::new(OnClosingBrace { pending })));
    // A pipe in its place would be waited for.
    let history = history.filter(|file| file.is_file() || !file.exists());
    if let Some(file) = &history {
        let _ = file.parent().map(std::fs::create_dir_all);
        // There is none before the first session.
        let _ = inner.load_history(file);
    }
    Ok(Editor { inner, history })
}

impl Editor {
    /// Reads one cell.
    pub fn read(&mut self, cell: u64) -> Result<String, ReadlineError> {
        let plain = format!("In [{cell}]: ");
        let coloured = format!("\x1b[32m{plain}\x1b[0m");
        let code = self.inner.readline(&(plain, coloured))?;
        if self.inner.add_history_entry(code.as_str())?
            && let Some(file) = &self.history
        {
            // A history that cannot be written is no reason to lose the cell.
            let _ = self.inner.append_history(file);
        }
        Ok(code)
    }
}

impl Editor {
    /// Writes above the line that is being edited, from any thread.
    pub fn printer(&mut self) -> Result<impl FnMut(String) + Send + use<>, ReadlineError> {
        let mut printer = self.inner.create_external_printer()?;
        // What cannot be shown is lost, as it would be on a terminal that is gone.
        Ok(move |text| drop(printer.print(text)))
    }
}

struct Assistant {
    engine: Arc<dyn Engine>,
    /// Set when the completion asked for next is really a closing brace.
    closing_brace: Arc<AtomicBool>,
}

impl Helper for Assistant {}
impl Validator for Assistant {}

impl Hinter for Assistant {
    type Hint = String;
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>), ReadlineError> {
        if self.closing_brace.swap(false, Ordering::Relaxed)
            && let Some(start) = closing_brace(line, pos)
        {
            return Ok((start, vec![Pair { display: "}".to_owned(), replacement: "}".to_owned() }]));
        }
        let found = self.engine.complete(line, pos);
        let few = found.matches.len() <= 20;
        // The editor counts candidates in 16 bits.
        let pairs = found.matches.into_iter().take(2000).map(|c| {
            let detail: String = c.detail.chars().take(60).collect();
            let display = if few && !detail.is_empty() { c.text.clone() + DETAIL + &detail } else { c.text.clone() };
            Pair { display, replacement: c.text }
        });
        Ok((found.start.min(pos), pairs.collect()))
    }
}

/// Between a candidate and what it is.
const DETAIL: &str = "  ";

impl Highlighter for Assistant {
    fn highlight_candidate<'c>(&self, candidate: &'c str, _: CompletionType) -> Cow<'c, str> {
        match candidate.split_once(DETAIL) {
            Some((text, detail)) => Cow::Owned(format!("{text}{DETAIL}\x1b[90m{detail}\x1b[0m")),
            None => Cow::Borrowed(candidate),
        }
    }

    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        Cow::Owned(highlight::coloured(line))
    }

    // A character can change the colour of everything after it.
    fn highlight_char(&self, _line: &str, _pos: usize, kind: CmdKind) -> bool {
        kind != CmdKind::MoveCursor
    }
}

/// Enter runs a complete cell and continues an unfinished one.
struct OnEnter {
    engine: Arc<dyn Engine>,
}

impl ConditionalEventHandler for OnEnter {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        let (before, after) = context.line().split_at(context.pos());
        if !after.trim().is_empty() && after.contains('\n') {
            return Some(Cmd::Insert(1, format!("\n{}", current_indent(before))));
        }
        // Two blank lines send even what looks unfinished, so that nobody gets stuck.
        let insists = before.ends_with("\n\n") || before.trim_end_matches(' ').ends_with("\n\n");
        match self.engine.is_complete(context.line()) {
            Completeness::Incomplete(indent) if !insists => Some(Cmd::Insert(1, format!("\n{indent}"))),
            _ => Some(Cmd::AcceptLine),
        }
    }
}

/// Tab indents where there is nothing to complete.
struct OnTab;

impl ConditionalEventHandler for OnTab {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        let before = &context.line()[..context.pos()];
        let line = before.rsplit('\n').next().unwrap_or_default();
        line.trim().is_empty().then(|| Cmd::Insert(1, INDENT.to_owned()))
    }
}

/// A closing brace at the start of a line takes one step of the indent back. A handler may only name one command,
/// and rustyline's `Replace` leaves the cursor before the new text; a completion puts it behind.
struct OnClosingBrace {
    pending: Arc<AtomicBool>,
}

impl ConditionalEventHandler for OnClosingBrace {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        closing_brace(context.line(), context.pos())?;
        self.pending.store(true, Ordering::Relaxed);
        Some(Cmd::Complete)
    }
}

/// Where the indent begins that a closing brace at the cursor replaces, if it stands at the start of a line.
fn closing_brace(text: &str, cursor: usize) -> Option<usize> {
    let (_, line) = text[..cursor].rsplit_once('\n')?;
    let outer = line.strip_suffix(INDENT)?;
    outer.trim().is_empty().then_some(cursor - INDENT.len())
}

fn current_indent(before: &str) -> &str {
    let line = before.rsplit('\n').next().unwrap_or_default();
    &line[..line.len() - line.trim_start_matches(' ').len()]
}
