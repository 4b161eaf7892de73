//! Pointing into a cell: with rustc's arrows, or in words.
use crate::engine::Failure;
use crate::eval::text::source::{CellText, Source, line_column};
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

/// Puts the cell and its line where text names a place in generated source (`xlazy-cell-7:1:230`).
pub fn name_cells(text: String, sources: &dyn Fn(&str) -> Option<Arc<Source>>) -> String {
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
        let source = parts.next().and_then(sources);
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
                out.push_str(FILE_PREFIX);
                rest = &rest[FILE_PREFIX.len()..];
            }
        }
    }
    out + rest
}
