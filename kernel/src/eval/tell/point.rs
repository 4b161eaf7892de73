//! Pointing into a cell: with rustc's arrows, or in words.
use crate::engine::Failure;
use crate::eval::text::source::{CellText, Sources, line_column};
use crate::eval::toolchain::rustc::FILE_PREFIX;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::ops::Range;
use std::sync::Arc;

pub(super) const RED: &str = "\x1b[1;31m";
pub(super) const BLUE: &str = "\x1b[1;34m";
pub(super) const BOLD: &str = "\x1b[1m";
pub(super) const OFF: &str = "\x1b[0m";

/// A line of a cell, with an arrow below it.
pub fn point_at(text: &CellText, at: usize) -> Vec<String> {
    let (line, column) = line_column(&text.text, at);
    let code = text.text.lines().nth(line as usize - 1).unwrap_or("");
    let number = line.to_string();
    let gutter = " ".repeat(number.len());
    let before: String = code.chars().take(column as usize - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    vec![
        format!("{gutter}{BLUE}-->{OFF} {}, line {line}", text.label()),
        format!("{BLUE}{number} |{OFF} {code}"),
        format!("{gutter} {BLUE}|{OFF} {before}{RED}^{OFF}"),
    ]
}

/// A compile error of ours.
pub fn point_out(text: &Arc<CellText>, range: Range<usize>, title: &str, label: &str) -> Failure {
    let annotation = AnnotationKind::Primary.span(range).label(label);
    let snippet = Snippet::source(text.text.as_str()).path(text.label()).annotation(annotation);
    let rendered = Renderer::styled().render(&[Level::ERROR.primary_title(title).element(snippet)]);
    let traceback = rendered.lines().map(str::to_owned).collect();
    Failure { name: "CompileError".into(), message: title.into(), traceback }
}

/// The crates that cells are compiled into: a word, and a hash.
const CRATES: [&str; 2] = ["g_", "cell_"];
const DIGITS: usize = 16;
const BODY: &str = "::xlazy_cell::{{closure}}";

/// What a program of the user's says, with cells in the place of generated files and crates.
pub fn in_the_notebook(text: String, sources: &Sources) -> String {
    let mut out = name_cells(text, sources);
    for prefix in CRATES {
        let mut from = 0;
        while let Some(at) = out[from..].find(prefix).map(|at| from + at) {
            let end = at + prefix.len() + DIGITS;
            let named = out.get(at..end).and_then(|name| sources.crate_in_words(name));
            from = at + named.as_ref().map_or(prefix.len(), String::len);
            if let Some(name) = named {
                // The function that a cell's statements are in is not the user's.
                let end = if out[end..].starts_with(BODY) { end + BODY.len() } else { end };
                out.replace_range(at..end, &name);
            }
        }
    }
    out
}

/// Puts the cell and its line where text names a place in generated source (`xlazy-cell-7:1:230`).
pub fn name_cells(text: String, sources: &Sources) -> String {
    if !text.contains(FILE_PREFIX) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(start) = rest.find(FILE_PREFIX) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != ':').unwrap_or(rest.len());
        let mut parts = rest[..word].trim_end_matches(':').split(':');
        let source = parts.next().and_then(|file| sources.get(file));
        // The file alone, as `file!()` has it.
        let cell = source.as_ref().and_then(|s| s.last_cell());
        let line = parts.next().and_then(|n| n.parse().ok());
        let column = parts.next().and_then(|n| n.parse().ok()).unwrap_or(1);
        match source.and_then(|s| s.user_place(line?, column)) {
            Some((text, at)) => {
                let (line, _) = line_column(&text.text, at);
                out.push_str(&format!("{}, line {line}", text.label()));
                let used = rest[..word].trim_end_matches(':').len();
                rest = &rest[used..];
                // `{closure@file:2:5: 2:8}` says where it ends, too.
                let end =
                    rest.strip_prefix(": ").map(|e| e.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':'));
                rest = end.filter(|e| e.starts_with('}')).unwrap_or(rest);
            }
            None => {
                let file = rest[..word].split(':').next().unwrap_or_default();
                match cell {
                    Some(cell) => out.push_str(&format!("cell {cell}")),
                    None => out.push_str(file),
                }
                rest = &rest[file.len()..];
            }
        }
    }
    out + rest
}
