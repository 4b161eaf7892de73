//! Pointing into a cell: with rustc's arrows, or in words.
use crate::engine::Failure;
use crate::eval::text::source::{CellText, line_column};
use crate::eval::text::sources::Sources;
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

/// What a program of the user's says, with cells in the place of generated files and crates, and variables as they are written.
pub fn in_the_notebook(text: String, sources: &Sources) -> String {
    CRATES.iter().fold(name_variables(name_cells(text, sources)), |text, prefix| name_crates(text, prefix, sources))
}

/// Variables as a macro has them that says what it was given: `((*x))`, or `((*f).0)` of a closure, in generated code alone.
fn name_variables(text: String) -> String {
    const BEFORE: &str = "((*";
    if !text.contains(BEFORE) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split(BEFORE);
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
        let behind = |end: usize| part[end..].strip_prefix("))").or_else(|| part[end..].strip_prefix(").0)"));
        match behind(end).filter(|_| end > 0) {
            Some(rest) => out.extend([&part[..end], rest]),
            None => out.extend([BEFORE, part]),
        }
    }
    out
}

/// In one pass: a cell may write nothing else.
fn name_crates(text: String, prefix: &str, sources: &Sources) -> String {
    let mut out = String::new();
    let mut from = 0;
    for (at, _) in text.match_indices(prefix) {
        let end = at + prefix.len() + DIGITS;
        let name = text.get(at..end).and_then(|name| sources.crate_in_words(name));
        let (Some(before), Some(name)) = (text.get(from..at), name) else { continue };
        out.push_str(before);
        out.push_str(&name);
        // The function that a cell's statements are in is not the user's.
        from = if text[end..].starts_with(BODY) { end + BODY.len() } else { end };
    }
    match from {
        0 => text,
        from => out + &text[from..],
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::text::source::Source;

    #[test]
    fn crates_are_named_wherever_they_stand_and_however_often() {
        let sources = Sources::of("lesson");
        for (cell, name) in [(3, "g_0123456789abcdef"), (12, "cell_fedcba9876543210")] {
            let mut source = Source::default();
            source.plain(&format!("#![crate_name=\"{name}\"]"));
            source.user(&Arc::new(CellText::new(cell, "f()")), 0..3, &[]);
            sources.insert(format!("xlazy-cell-{cell}"), Arc::new(source));
        }
        let told = |text: &str| in_the_notebook(text.to_owned(), &sources);
        assert_eq!(told("g_0123456789abcdef::P"), "lesson::cell_3::P");
        assert_eq!(told("fn cell_fedcba9876543210::xlazy_cell::{{closure}}::f in é"), "fn lesson::cell_12::f in é");
        for other in ["", "g_", "cell_", "training_accuracy", "g_0123456789abcdeé", "g_fedcba9876543210"] {
            assert_eq!(told(other), other);
        }
        assert_eq!(told(&"g_0123456789abcdef ".repeat(1000)), "lesson::cell_3 ".repeat(1000));
    }
}
