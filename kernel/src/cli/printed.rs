//! What a cell prints while `xlazy run` shows its progress.
use crate::engine::Event;
use crate::terminal::Screen;
use serde_json::Value;
use std::io::Write;
use xlazy_mime::Bundle;

/// Lines of a result that are shown; a document has all of them.
const LINES: usize = 12;

/// Output of one cell, below the line that says which cell it is.
pub struct Printed<'a> {
    screen: Screen<'a>,
    /// The line is open, since nothing has come.
    alone: bool,
    /// So is what came last on standard error.
    open: bool,
    results: bool,
}

impl<'a> Printed<'a> {
    /// `results` are shown besides what the cell prints.
    pub fn new(out: &'a mut dyn Write, err: &'a mut dyn Write, colours: (bool, bool), results: bool) -> Printed<'a> {
        let mut screen = Screen::new(out, err);
        screen.colours = colours;
        Printed { screen, alone: true, open: false, results }
    }

    /// What a terminal has of the event.
    pub fn show(&mut self, event: &Event) {
        let results = self.results;
        let shown = match event {
            Event::Stream { stderr, text } if !text.is_empty() => Event::Stream { stderr: *stderr, text: text.clone() },
            Event::Told(text) if !text.is_empty() => Event::Told(text.clone()),
            Event::Result(bundle) if results => Event::Result(first_lines(bundle)),
            Event::Page(bundle) if results => Event::Page(first_lines(bundle)),
            Event::Display { bundle, id, update } if results => {
                Event::Display { bundle: first_lines(bundle), id: id.clone(), update: *update }
            }
            _ => return,
        };
        if std::mem::take(&mut self.alone) {
            let _ = writeln!(self.screen.err);
        }
        if let Event::Stream { stderr: true, text } | Event::Told(text) = &shown {
            self.open = !text.ends_with('\n');
        }
        self.screen.show(shown);
    }

    pub fn json(&mut self, line: &Value) {
        let _ = writeln!(self.screen.out, "{line}");
        let _ = self.screen.out.flush();
    }

    /// Shows what is still to be shown, and says whether anything was.
    pub fn end(mut self) -> bool {
        self.screen.finish();
        self.screen.finish_line();
        if self.open {
            let _ = writeln!(self.screen.err);
        }
        !self.alone
    }
}

/// A result that takes no more than a screen.
fn first_lines(bundle: &Bundle) -> Bundle {
    let left = bundle.plain().trim_end().lines().count().saturating_sub(LINES);
    if left < 2 {
        return bundle.clone();
    }
    let lines: Vec<&str> = bundle.plain().lines().take(LINES).collect();
    Bundle::text(format!("{}\n… {left} more lines, which `-o FILE` writes", lines.join("\n")))
}
