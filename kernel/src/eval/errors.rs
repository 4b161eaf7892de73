//! What the user sees of an error: rustc's messages at the cell's own lines, and a failed cell's traceback.
use super::rustc::{Diagnostic, FILE_PREFIX, Span};
use super::scan;
use super::source::{CellText, Place, Source, Tag, line_column};
use crate::engine::Failure;
use annotate_snippets::{AnnotationKind, Group, Level, Patch, Renderer, Snippet};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use xlazy_mime::Fault;

/// An error that our own words explain better than rustc's.
struct Retold {
    title: String,
    help: Option<String>,
    about: About,
}

#[derive(PartialEq)]
enum About {
    /// What rustc points at.
    Words,
    /// A variable that cannot be stored.
    Keeping,
    /// A variable that cannot be fetched.
    Fetching(String),
    /// The end of the cell, which came too soon.
    End,
}

/// What the session knows of names that a cell may mean.
pub struct Known<'a> {
    /// What became of variables that no longer exist.
    pub gone: &'a HashMap<String, String>,
    pub vars: &'a [&'a str],
}

/// Turns rustc's errors into a failure.
pub fn compile_failure(errors: &[Diagnostic], source: &Source, known: &Known) -> Failure {
    let mut traceback = Vec::new();
    let mut message = String::new();
    let mut nameless = Vec::new();
    let mut borrows = 0;
    let mut told = BTreeSet::new();
    for error in errors.iter().filter(|e| e.level.starts_with("error")) {
        if error.spans.is_empty() && error.message.starts_with("aborting due to") {
            continue;
        }
        let mut retold = retell(error, source, known);
        // One variable that borrows makes several errors in what we generate; one of them says it all.
        let about_keeping = retold.as_ref().is_some_and(|r| r.about == About::Keeping);
        borrows += usize::from(about_keeping);
        if about_keeping && borrows > 1 {
            continue;
        }
        let hint = if retold.is_none() { similar_variable(error, known) } else { None };
        if let Some(help) = hint {
            retold = Some(Retold { title: error.message.clone(), help: Some(help), about: About::Words });
        }
        if retold.is_none() && behind_the_cell(error, source) {
            let title = match error.message.split_once(", found `") {
                Some((expected, _)) => format!("{expected}, found the end of the cell"),
                None => error.message.clone(),
            };
            retold = Some(Retold { title, help: None, about: About::End });
        }
        let title = retold.as_ref().map_or(&error.message, |r| &r.title);
        // What we generate names a variable's type twice.
        if retold.is_some() && !told.insert(title.clone()) {
            continue;
        }
        let mut snippets = snippets(&error.spans, source, retold.is_some());
        if snippets.is_empty()
            && let Some((text, range)) = retold.as_ref().and_then(|r| place_of(&r.about, source))
        {
            snippets.push(Mapped { text, range, primary: true, label: None });
        }
        if snippets.is_empty() && retold.is_none() {
            nameless.push(error);
            continue;
        }
        if message.is_empty() {
            message = title.clone();
        }
        traceback.extend(render(error, title, snippets, retold.as_ref(), source));
    }
    if message.is_empty() {
        // Nothing points into the cell: a linker's answer, or a mistake of ours.
        message = nameless
            .first()
            .map_or("rustc failed without a word", |e| e.message.lines().next().unwrap_or(""))
            .to_owned();
        traceback = nameless.iter().flat_map(|e| e.message.lines().map(str::to_owned)).collect();
        if traceback.is_empty() {
            traceback.push(message.clone());
        }
    }
    Failure { name: "CompileError".into(), message, traceback }
}

struct Mapped<'a> {
    text: &'a Arc<CellText>,
    range: Range<usize>,
    primary: bool,
    label: Option<&'a str>,
}

/// The user's text that a span means: itself, or the macro call it comes from.
fn map<'a>(span: &'a Span, source: &'a Source) -> Option<(&'a Arc<CellText>, Range<usize>)> {
    let own = if span.ours { source.user_part(span.start..span.end) } else { None };
    own.or_else(|| span.call.as_deref().and_then(|c| map(c, source)))
}

fn snippets<'a>(spans: &'a [Span], source: &'a Source, quiet: bool) -> Vec<Mapped<'a>> {
    let mapped = spans.iter().filter_map(|s| {
        let (text, range) = map(s, source)?;
        let label = s.label.as_deref().filter(|l| !speaks_of_generated_code(l) && !quiet);
        Some(Mapped { text, range, primary: s.primary, label })
    });
    let mut all: Vec<Mapped> = mapped.collect();
    if !all.iter().any(|m| m.primary) {
        // Its main place is in generated code; the user's part of it is the best there is.
        all.iter_mut().take(1).for_each(|m| m.primary = true);
    }
    all
}

fn speaks_of_generated_code(text: &str) -> bool {
    ["xlazy_", "xlazy::cell::rt", "`Of<", "`Show", "`catch`", "`xlazy_value`", "Stop>`", "StopDebug>`"]
        .iter()
        .any(|w| text.contains(w))
}

fn render(
    error: &Diagnostic,
    title: &str,
    mapped: Vec<Mapped>,
    retold: Option<&Retold>,
    source: &Source,
) -> Vec<String> {
    let mut head = Level::ERROR.primary_title(title);
    if !error.code.is_empty() && retold.is_none() {
        head = head.id(&*error.code);
    }
    let mut main = Group::with_title(head);
    for (text, annotations) in by_text(mapped) {
        let mut snippet = Snippet::source(text.text.as_str()).path(text.label());
        for m in annotations {
            let kind = if m.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
            snippet = snippet.annotation(kind.span(m.range).label(m.label.map(str::to_owned)));
        }
        main = main.element(snippet);
    }
    let mut groups = Vec::new();
    if let Some(help) = retold.and_then(|r| r.help.as_ref()) {
        main = main.element(Level::HELP.message(help.as_str()));
    }
    let children: &[Diagnostic] = if retold.is_some() { &[] } else { &error.children };
    let mut later = Vec::new();
    for child in children.iter().filter(|c| !speaks_of_generated_code(&c.message)) {
        let level = if child.level == "help" { Level::HELP } else { Level::NOTE };
        if child.spans.is_empty() {
            main = main.element(level.message(child.message.as_str()));
        } else if child.spans.iter().any(|s| s.replacement.is_some()) {
            later.extend(suggestion(child, level, source));
        } else {
            let mapped = snippets(&child.spans, source, false);
            if !mapped.is_empty() {
                let mut group = Group::with_title(level.secondary_title(child.message.as_str()));
                for (text, annotations) in by_text(mapped) {
                    let mut snippet = Snippet::source(text.text.as_str()).path(text.label());
                    for m in annotations {
                        snippet =
                            snippet.annotation(AnnotationKind::Primary.span(m.range).label(m.label.map(str::to_owned)));
                    }
                    group = group.element(snippet);
                }
                later.push(group);
            }
        }
    }
    groups.push(main);
    groups.extend(later);
    Renderer::styled().render(&groups).lines().map(str::to_owned).collect()
}

fn by_text<'a>(mapped: Vec<Mapped<'a>>) -> Vec<(&'a Arc<CellText>, Vec<Mapped<'a>>)> {
    let mut out: Vec<(&Arc<CellText>, Vec<Mapped>)> = Vec::new();
    for m in mapped {
        match out.iter_mut().find(|(t, _)| Arc::ptr_eq(t, m.text)) {
            Some((_, list)) => list.push(m),
            None => out.push((m.text, vec![m])),
        }
    }
    out
}

/// A suggested change, when all of it is in the user's own text.
fn suggestion<'a>(child: &'a Diagnostic, level: Level<'a>, source: &'a Source) -> Option<Group<'a>> {
    let mut by_cell: BTreeMap<u64, (&Arc<CellText>, Vec<Patch>)> = BTreeMap::new();
    for span in &child.spans {
        let replacement = span.replacement.as_deref()?;
        if !span.ours {
            return None;
        }
        let (text, range) = source.user_range(span.start..span.end)?;
        let patch = Patch::new(range, replacement);
        by_cell.entry(text.cell).or_insert_with(|| (text, Vec::new())).1.push(patch);
    }
    let mut group = Group::with_title(level.secondary_title(child.message.as_str()));
    for (_, (text, patches)) in by_cell {
        group = group.element(Snippet::source(text.text.as_str()).path(text.label()).patches(patches));
    }
    Some(group)
}

/// Whether rustc points at what was generated after the user's text.
fn behind_the_cell(error: &Diagnostic, source: &Source) -> bool {
    let end = source.end_of_user().map(|(_, _, end)| end);
    error.spans.iter().any(|s| s.primary && s.ours && end.is_some_and(|end| s.start >= end))
}

/// Where the user meets what rustc finds in generated code only.
fn place_of<'a>(about: &About, source: &'a Source) -> Option<(&'a Arc<CellText>, Range<usize>)> {
    let (text, end, _) = source.end_of_user()?;
    match about {
        About::End => {
            let last = text.text[..end].trim_end();
            let start = last.char_indices().next_back().map_or(0, |(at, _)| at);
            Some((text, start..last.len()))
        }
        About::Fetching(name) => {
            let found = scan::tokens(&text.text).into_iter().find(|t| text.text[t.range.clone()] == **name);
            Some((text, found?.range))
        }
        About::Words | About::Keeping => None,
    }
}

/// A cell has only those variables in scope that it mentions, so rustc cannot know what a misspelt name may mean.
fn similar_variable(error: &Diagnostic, known: &Known) -> Option<String> {
    if error.code != "E0425" || !error.message.starts_with("cannot find value") {
        return None;
    }
    let name = error.message.split('`').nth(1)?;
    let near = |v: &&&str| strsim::damerau_levenshtein(v, name) <= name.len().div_ceil(4);
    let found = known.vars.iter().filter(near).min_by_key(|v| strsim::damerau_levenshtein(v, name))?;
    Some(format!("a variable with a similar name exists: `{found}`"))
}

/// Errors about what we generated, told in terms of the cell.
fn retell(error: &Diagnostic, source: &Source, known: &Known) -> Option<Retold> {
    if matches!(&*error.code, "E0425" | "E0423")
        && let Some(name) = error.message.split('`').nth(1)
        && let Some(what) = known.gone.get(name)
    {
        return Some(Retold { title: format!("`{name}` {what}"), help: None, about: About::Words });
    }
    let tag = |s: &Span| match source.place(s.start) {
        Place::Generated(tag) if s.ours => Some(tag),
        _ => None,
    };
    let labels = || error.spans.iter().filter_map(|s| s.label.as_deref());
    if error.code == "E0308" && labels().any(|l| l.contains("Stop>`") || l.contains("StopDebug>`")) {
        return Some(Retold {
            title: "`return` with a value is for functions: a cell returns nothing".into(),
            help: Some("to show a value, end the cell with it; to end early, write `return Ok(())`".into()),
            about: About::Words,
        });
    }
    for tag in error.spans.iter().chain(error.children.iter().flat_map(|c| &c.spans)).filter_map(tag) {
        match tag {
            Tag::Keep(name) if is_about_borrowing(&error.code) => {
                let from = error.message.split('`').nth(1).filter(|f| f != name && !f.contains("xlazy"));
                let from = from.map(|f| format!(" `{f}`")).unwrap_or_default();
                return Some(Retold {
                    title: format!("`{name}` borrows{from}, so it cannot live on after this cell"),
                    help: Some(
                        "store a value of its own: `.clone()`, `.to_owned()`, `.to_vec()`; for a closure, write `move |…|`. \
                         Inside braces `{ … }` borrowing is fine"
                            .into(),
                    ),
                    about: About::Keeping,
                });
            }
            Tag::Load(name)
                if error.spans.iter().any(|s| s.primary && matches!(source.place(s.start), Place::Generated(_))) =>
            {
                return Some(Retold {
                    title: format!("the variable `{name}` cannot be used here: {}", error.message),
                    help: Some("its type cannot be named from a cell; store what it holds instead".into()),
                    about: About::Fetching(name.clone()),
                });
            }
            _ => {}
        }
    }
    None
}

fn is_about_borrowing(code: &str) -> bool {
    matches!(
        code,
        "E0597"
            | "E0521"
            | "E0716"
            | "E0373"
            | "E0505"
            | "E0499"
            | "E0502"
            | "E0506"
            | "E0515"
            | "E0310"
            | "E0700"
            | "E0713"
            | "E0503"
    )
}

const RED: &str = "\x1b[1;31m";
const BLUE: &str = "\x1b[1;34m";
const BOLD: &str = "\x1b[1m";
const OFF: &str = "\x1b[0m";

/// A failed run's traceback: the error, the line it happened on, and the notes.
pub fn run_failure(fault: &Fault, sources: &dyn Fn(&str) -> Option<Arc<Source>>, lost: &[String]) -> Failure {
    let mut traceback = vec![format!("{RED}{}{OFF}: {}", fault.name, fault.message)];
    let source = sources(&fault.file);
    let place = source.as_ref().and_then(|s| s.user_place(fault.line, fault.column));
    match place {
        Some((text, at)) => traceback.extend(point_at(&text, at)),
        None if source.is_none() && !fault.file.is_empty() => {
            traceback.push(format!("  {BLUE}-->{OFF} {}:{}:{}", fault.file, fault.line, fault.column));
        }
        None => {}
    }
    traceback.extend(fault.notes.iter().map(|n| format!("{BOLD}note{OFF}: {n}")));
    if !lost.is_empty() {
        let names = lost.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        let (them, are) = if lost.len() == 1 { ("it", "is") } else { ("them", "are") };
        traceback.push(format!("{BOLD}note{OFF}: {names} {are} lost: the cell, which moves {them}, ended early"));
    }
    Failure { name: fault.name.clone(), message: fault.message.clone(), traceback }
}

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

/// The numbers of the errors that a failure shows, such as `E0308`.
pub fn codes(failure: &Failure) -> BTreeSet<String> {
    let parts = failure.traceback.iter().flat_map(|l| l.split("[E").skip(1));
    parts.filter_map(|p| p.get(..5)?.strip_suffix(']')).map(|n| format!("E{n}")).collect()
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
            }
            None => {
                out.push_str(FILE_PREFIX);
                rest = &rest[FILE_PREFIX.len()..];
            }
        }
    }
    out + rest
}

/// A failure in one sentence.
pub fn sentence(name: &str, message: impl Into<String>) -> Failure {
    let message = message.into();
    let traceback = vec![format!("{RED}{name}{OFF}: {message}")];
    Failure { name: name.into(), message, traceback }
}
