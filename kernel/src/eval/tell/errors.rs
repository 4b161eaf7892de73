//! What the user sees of an error: rustc's messages at the cell's own lines, and a failed cell's traceback.
use super::change::{Change, suggested};
use super::instead::{ANSWER, IN_RUST};
use super::lending::lent;
use super::point::{BLUE, BOLD, OFF, RED, in_the_notebook, name_cells, point_at};
use super::retell::{place_of, retell};
use super::retold::{About, Known, Retold};
use super::texts::Texts;
use super::torch;
use super::undeclared::DECLARE;
use super::unmade::together;
use crate::engine::Failure;
use crate::eval::parse::checks::CHECK;
use crate::eval::text::source::{CellText, Source};
use crate::eval::text::sources::Sources;
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};
use annotate_snippets::{AnnotationKind, Group, Level, Patch, Renderer, Snippet};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use syn::Block;
use syn::parse::Parser;
use xlazy_mime::Fault;

/// rustc's errors about a cell, each with what is told of it in the cell's terms.
pub struct Explained {
    all: Vec<(Diagnostic, Option<Retold>)>,
    source: Arc<Source>,
    sources: Sources,
}

/// Where the cell's own text is wrong, and what rustc suggests.
pub struct Place {
    pub error: usize,
    pub at: Range<usize>,
    pub message: String,
    /// What is wrong there, in a few words: what is told of it, or rustc's own.
    pub said: String,
    /// A name is not there.
    pub names: bool,
    pub suggested: Option<Vec<Change>>,
    /// It is told in rustc's words alone, and the text is Rust.
    pub left_to_rustc: bool,
}

/// Tells rustc's errors in the cell's terms.
pub fn explain(errors: &[Diagnostic], source: &Arc<Source>, known: &Known) -> Explained {
    let errors: Vec<Diagnostic> = errors.iter().map(|e| lent(in_the_users_terms(e, known.sources), source)).collect();
    let texts = &Texts::with_others(source, &errors, known.sources);
    let summary = |e: &&Diagnostic| e.spans.is_empty() && e.message.starts_with("aborting due to");
    let errors: Vec<&Diagnostic> = errors.iter().filter(|e| e.level.starts_with("error") && !summary(e)).collect();
    let rows = torch::hints(&errors, texts, &known.rustc);
    let all: Vec<(&Diagnostic, Option<Retold>)> =
        errors.into_iter().zip(rows).map(|(e, row)| (e, retell(e, texts, known, row))).collect();
    // Where the cell is no Rust, nothing is known of the names of earlier cells in it; and what an argument is that has a name, rustc
    // does not know.
    let stands_at = |e: &Diagnostic| e.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s));
    let in_no_rust = |e: &Diagnostic| {
        torch::NAMES.contains(&&*e.code)
            && stands_at(e).is_some_and(|(text, _)| Block::parse_within.parse_str(&text.text).is_err())
    };
    let no_rust = all.iter().any(|(e, _)| e.code.is_empty() && e.spans.iter().any(|s| texts.map(s).is_some()));
    let names_an_argument = |e: &Diagnostic| {
        e.code == "E0061" && e.spans.iter().filter_map(|s| texts.map(s)).any(|(text, at)| is_named(&text.text, at))
    };
    // What rustc says once more of a place that has its answer, or of what stands next to it where it does not parse.
    let place = |e: &Diagnostic| stands_at(e).map(|(text, at)| (text.text.as_ptr(), at));
    let answered =
        all.iter().filter_map(|(e, r)| answer(r).and(place(e)).map(|(text, at)| (text, at, e.code.is_empty())));
    let answered: BTreeSet<_> = answered
        .flat_map(|(text, at, behind)| [Some((text, at.start)), behind.then_some((text, at.end))].into_iter().flatten())
        .collect();
    // Where a text that is no Rust has its answer, what rustc misses at the end of it follows from that.
    let told_of_no_rust = all.iter().any(|(e, r)| e.code.is_empty() && answer(r).is_some());
    // What an argument's name is given is a part of it: `True` in `set_to_none=True`.
    let told: BTreeSet<_> = all
        .iter()
        .filter(|(_, r)| r.as_ref().is_some_and(|r| r.help.is_some()))
        .filter_map(|(e, _)| place(e))
        .map(|(text, at)| (text, at.start))
        .collect();
    let given = |e: &Diagnostic| {
        let Some((text, at)) = stands_at(e) else { return false };
        let name = text.text[..at.start].trim_end().strip_suffix('=').map(str::trim_end).unwrap_or_default();
        let begins = name.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |i| i + 1);
        begins < name.len() && torch::NAMES.contains(&&*e.code) && told.contains(&(text.text.as_ptr(), begins))
    };
    let at_the_end = |e: &Diagnostic, r: &Option<Retold>| {
        let last = stands_at(e).is_none_or(|(text, at)| text.text[at.start..].trim_end().len() <= 1);
        e.code.is_empty() && told_of_no_rust && (last || r.as_ref().is_some_and(|r| r.about == About::End))
    };
    let again = |e: &Diagnostic| place(e).is_some_and(|(text, at)| answered.contains(&(text, at.start)));
    let all: Vec<(&Diagnostic, Option<Retold>)> = all
        .into_iter()
        .filter(|(e, r)| {
            answer(r).is_some()
                || !(no_rust && in_no_rust(e) || names_an_argument(e) || again(e) || given(e) || at_the_end(e, r))
        })
        .collect();
    let all = all.into_iter().map(|(e, retold)| (e.clone(), retold)).collect();
    Explained { all, source: source.clone(), sources: known.sources.clone() }
}

impl Explained {
    /// What is to be written, with the number of the error.
    pub fn changes(&self) -> impl Iterator<Item = (usize, &Change)> {
        self.all.iter().enumerate().filter_map(|(i, (_, r))| Some((i, r.as_ref()?.change.as_ref()?)))
    }

    /// Where the cell's own text is wrong, what is said of that, and what rustc suggests.
    pub fn places(&self) -> Vec<Place> {
        let texts = Texts::new(&self.source);
        let place = |(error, (e, retold)): (usize, &(Diagnostic, Option<Retold>))| {
            let (_, at) = e.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
            let names = torch::NAMES.contains(&&*e.code);
            let suggested = suggested(e, &texts);
            // What is no Rust but for the sign that ends a statement.
            let ends = e.message.starts_with("expected `;`") && suggested.is_some();
            let left_to_rustc = retold.is_none() && (!e.code.is_empty() || ends);
            let label = || e.spans.iter().find(|s| s.primary).and_then(|s| s.label.clone()).unwrap_or_default();
            let said = match retold.as_ref().and_then(|r| r.help.as_ref()) {
                Some(help) => format!("and then: {help}"),
                None if e.message == "mismatched types" => {
                    format!("of which rustc then says: {}, {}", e.message, label())
                }
                None => format!("of which rustc then says: {}", e.message),
            };
            Some(Place { error, at, message: e.message.clone(), said, names, suggested, left_to_rustc })
        };
        self.all.iter().enumerate().filter_map(place).collect()
    }

    /// Advises another change for an error than it did: the one that is found to do, or what is said of that.
    pub fn advise(&mut self, error: usize, code: &str, wrong: Option<&str>) {
        let Some(retold) = self.all.get_mut(error).and_then(|(_, r)| r.as_mut()) else { return };
        let (Some(help), Some(change)) = (&mut retold.help, &mut retold.change) else { return };
        let (before, new) = (format!("`{}`", change.code), format!("`{code}`"));
        *help = match wrong {
            Some(wrong) => format!("{}; {wrong}", help.replace(&before, &new)),
            // What it may be besides is not asked any more.
            None if code != change.code && !change.others.is_empty() => {
                help.split(&before).next().unwrap_or_default().to_owned() + &new
            }
            None => help.replace(&before, &new),
        };
        code.clone_into(&mut change.code);
    }

    /// Tells of an error as another text's errors do, which have an answer to it.
    pub fn adopt(&mut self, error: usize, next: &Explained, its: usize) {
        let told = next.all.get(its).and_then(|(_, r)| r.clone());
        if let (Some((_, retold)), Some(told)) = (self.all.get_mut(error), told) {
            *retold = Some(told);
        }
    }

    /// Tells of an error as of another one, which is about what it is about.
    pub fn join(&mut self, error: usize, other: usize) {
        let Some(Retold { help, change, .. }) = self.all.get(other).and_then(|(_, r)| r.as_ref()) else { return };
        let (help, change) = (help.clone(), change.clone());
        if let Some((e, retold)) = self.all.get_mut(error) {
            let title = retold.as_ref().map_or(&e.message, |r| &r.title).clone();
            *retold = Some(Retold { title, help, change, with_labels: false, about: About::Words });
        }
    }

    /// Some of the errors alone.
    pub fn only(&self, which: &[usize]) -> Explained {
        let all = which.iter().map(|&i| self.all[i].clone()).collect();
        Explained { all, source: self.source.clone(), sources: self.sources.clone() }
    }

    pub fn failure(&self) -> Failure {
        let all = together(&self.all);
        let errors: Vec<Diagnostic> = all.iter().map(|(e, _)| e.clone()).collect();
        failure(&all, &Texts::with_others(&self.source, &errors, &self.sources))
    }
}

fn failure(all: &[(Diagnostic, Option<Retold>)], texts: &Texts) -> Failure {
    let source = texts.source;
    let (mut message, mut nameless, mut told) = (String::new(), Vec::new(), BTreeSet::new());
    let mut traceback: Vec<String> = Vec::new();
    // What we generate has errors of its own where the user's text has one: a variable that borrows, say, cannot be put
    // back, either.
    let follows = |(e, retold): &(Diagnostic, Option<Retold>)| {
        let keeping = retold.as_ref().is_some_and(|r| r.about == About::Keeping);
        let lifetime = e.code.is_empty() && e.message.starts_with("lifetime may not live long enough");
        keeping || lifetime || retold.is_none() && !e.spans.iter().any(|s| s.primary && texts.map(s).is_some())
    };
    let own = all.iter().any(|one| !follows(one));
    // Where what is not there is first assigned, a `let` declares it for all places.
    let declares = |(_, retold): &&(Diagnostic, Option<Retold>)| {
        retold.as_ref().and_then(|r| r.help.as_ref()).is_some_and(|help| help.starts_with(DECLARE))
    };
    let declared: BTreeSet<&String> = all.iter().filter(declares).map(|(error, _)| &error.message).collect();
    let (mut borrows, mut missing) = (0, BTreeSet::new());
    for one in all {
        let (error, retold) = one;
        // What is nowhere is told where it is first wanted.
        let name = torch::NAMES.contains(&&*error.code) && error.message.starts_with("cannot find ");
        if name && answer(retold).is_none() && !missing.insert(&error.message) {
            continue;
        }
        if declared.contains(&error.message) && !declares(&one) {
            continue;
        }
        borrows += usize::from(follows(one));
        if follows(one) && (own || borrows > 1) {
            continue;
        }
        let title = retold.as_ref().map_or(&error.message, |r| &r.title);
        // What we generate names a variable's type twice.
        let help = |r: &Retold| r.help.clone().unwrap_or_default();
        if retold.as_ref().is_some_and(|r| !told.insert(vec![title.clone(), help(r)])) {
            continue;
        }
        // So have those of one line, in words.
        let line = || {
            texts
                .map(error.spans.iter().find(|s| s.primary)?)
                .map(|(text, at)| text.text[..at.start].matches('\n').count())
        };
        if let Some(help) = retold.as_ref().and_then(|r| r.help.clone())
            && !told.insert(vec![help, format!("{:?}", line())])
        {
            continue;
        }
        // Several errors of one expression have one answer.
        if answer(retold).is_some_and(|help| !told.insert(vec![help.clone()])) {
            continue;
        }
        let mut snippets = snippets(&error.spans, texts, retold.as_ref().is_some_and(|r| !r.with_labels));
        if let Some(About::Part(text, range)) = retold.as_ref().map(|r| &r.about) {
            snippets = vec![Mapped { text, range: range.clone(), primary: true, label: None }];
        }
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
        let rendered = render(error, title, snippets, retold.as_ref(), texts);
        if told.insert(rendered.clone()) {
            traceback.extend(rendered);
        }
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

/// What is told to write instead, where it is.
fn answer(retold: &Option<Retold>) -> Option<&String> {
    retold.as_ref()?.help.as_ref().filter(|help| [ANSWER, IN_RUST].iter().any(|a| help.starts_with(a)))
}

/// Whether this is an argument that is written as in Python: `bias=false`.
fn is_named(text: &str, at: Range<usize>) -> bool {
    let assigns =
        |part: &str| matches!(syn::parse_str(part), Ok(syn::Expr::Assign(a)) if matches!(*a.left, syn::Expr::Path(_)));
    let in_call = text.get(..at.start).is_some_and(|before| before.trim_end().ends_with([',', '(']));
    in_call && text.get(at).is_some_and(assigns)
}

/// A message without the names that only xlazy knows of.
fn in_the_users_terms(d: &Diagnostic, sources: &Sources) -> Diagnostic {
    let clean = |text: &str| {
        let mut out = name_cells(text.to_owned(), sources);
        if let Some((before, rest)) = out.split_once(" (`cell_")
            && let Some((_, after)) = rest.split_once("`)")
        {
            out = format!("{before}{after}");
        }
        without_bodies(without_crates(out))
    };
    let span = |s: &Span| Span {
        label: s.label.as_deref().map(clean),
        replacement: s.replacement.as_deref().map(|r| with_options(&clean(r).replace(CHECK, ""))),
        ..s.clone()
    };
    let mut children: Vec<Diagnostic> = d.children.iter().map(|c| in_the_users_terms(c, sources)).collect();
    // What rustc says of any clone is not so of a tensor's.
    let of_a_tensor = |s: &Span| s.label.as_deref().is_some_and(|l| l.contains("has type `xlazy::Tensor`"));
    if d.spans.iter().any(of_a_tensor) {
        for child in children.iter_mut().filter(|c| c.message.contains("if the performance cost is acceptable")) {
            child.message = "`.clone()` costs nothing: it is another name for the same tensor".to_owned();
        }
    }
    Diagnostic { message: clean(&d.message), spans: d.spans.iter().map(span).collect(), children, ..d.clone() }
}

/// A change with our options where rustc has a place for them: `/* MaxPoolOptions */`.
fn with_options(replacement: &str) -> String {
    let mut parts = replacement.split("/* ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let options =
            part.split_once(" */").filter(|(ty, _)| ty.ends_with("Options") && syn::parse_str::<syn::Path>(ty).is_ok());
        match options {
            Some((ty, rest)) => out += &format!("{}::default(){rest}", ty.trim_start_matches("xlazy::")),
            None => out += &format!("/* {part}"),
        }
    }
    out
}

/// Text without the crates of cells and dependencies, which are a word and a hash, be it in a path from the root.
fn without_crates(mut out: String) -> String {
    const DIGITS: usize = 16;
    for prefix in ["g_", "cell_", "xlazy_deps_"] {
        let mut from = 0;
        while let Some(at) = out[from..].find(prefix).map(|at| from + at) {
            let end = at + prefix.len() + DIGITS;
            let hash = out.get(at + prefix.len()..end).is_some_and(|h| h.bytes().all(|b| b.is_ascii_hexdigit()));
            if !hash || !out[end..].starts_with("::") {
                from = at + prefix.len();
                continue;
            }
            let start = if out[..at].ends_with("crate::") { at - "crate::".len() } else { at };
            out.replace_range(start..end + 2, "");
            from = start;
        }
    }
    out
}

/// Types of a cell's own by their names, as its text has them: what it is compiled into stands around them, `xlazy_cell::{closure#0}::P`,
/// `_::P`.
fn without_bodies(mut out: String) -> String {
    for begin in ["xlazy_cell::", "_::"] {
        let mut from = 0;
        while let Some(at) = out[from..].find(begin).map(|at| from + at) {
            let mut end = at + begin.len();
            while let Some(closure) = out[end..].strip_prefix("{closure#") {
                let Some(rest) = closure.split_once("}::").map(|(_, rest)| rest) else { break };
                end = out.len() - rest.len();
            }
            let word = out[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            match word || !out[end..].starts_with(|c: char| c.is_alphabetic() || c == '_') {
                true => from = end,
                false => {
                    out.replace_range(at..end, "");
                    from = at;
                }
            }
        }
    }
    out
}

struct Mapped<'a> {
    text: &'a Arc<CellText>,
    range: Range<usize>,
    primary: bool,
    label: Option<&'a str>,
}

fn snippets<'a>(spans: &'a [Span], texts: &'a Texts, quiet: bool) -> Vec<Mapped<'a>> {
    let mapped = spans.iter().filter_map(|s| {
        let (text, range) = texts.map(s)?;
        let label = s.label.as_deref().filter(|l| !speaks_of_generated_code(l) && !quiet);
        Some(Mapped { text, range, primary: s.primary, label })
    });
    let mut all: Vec<Mapped> = mapped.collect();
    if !all.iter().any(|m| m.primary) {
        // Its main place is in generated code; the user's part of it is the best there is.
        all.iter_mut().take(1).for_each(|m| m.primary = true);
    }
    // Without rustc's words, the other places say nothing.
    all.retain(|m| m.primary || !quiet);
    // What is wrong stands in the text that is named first.
    if let Some(main) = all.iter().find(|m| m.primary).map(|m| m.text) {
        all.sort_by_key(|m| !Arc::ptr_eq(m.text, main));
    }
    all
}

fn speaks_of_generated_code(text: &str) -> bool {
    [
        "xlazy_",
        "xlazy::cell::rt",
        "`Of<",
        "`Show",
        "`catch`",
        "`xlazy_value`",
        "Stop>`",
        "StopDebug>`",
        "is defined in another crate",
        // There are two in the graph, the library and its shared form, of one version.
        "there are multiple different versions of crate `xlazy`",
    ]
    .iter()
    .any(|w| text.contains(w))
}

fn render(error: &Diagnostic, title: &str, mapped: Vec<Mapped>, retold: Option<&Retold>, texts: &Texts) -> Vec<String> {
    let mut head = Level::ERROR.primary_title(title);
    if !error.code.is_empty() && retold.is_none_or(|r| r.with_labels) {
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
    let children: &[Diagnostic] = if retold.is_some_and(|r| !r.with_labels) { &[] } else { &error.children };
    let mut later = Vec::new();
    // There is no manifest to add a crate to.
    let fits = |c: &&Diagnostic| !speaks_of_generated_code(&c.message) && !c.message.contains("`cargo add ");
    for child in children.iter().filter(fits) {
        let level = if child.level == "help" { Level::HELP } else { Level::NOTE };
        if child.spans.is_empty() {
            main = main.element(level.message(child.message.as_str()));
        } else if child.spans.iter().any(|s| s.replacement.is_some()) {
            match suggestion(child, level.clone(), texts) {
                Some(change) => later.push(change),
                // It would change generated code; the help says what to change instead.
                None if retold.is_some_and(|r| r.help.is_some()) => {}
                None => main = main.element(level.message(in_words(child))),
            }
        } else {
            let mapped = snippets(&child.spans, texts, false);
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

/// A suggested change outside of the user's text: what to write, without where.
fn in_words(child: &Diagnostic) -> String {
    let new: BTreeSet<&str> = child.spans.iter().filter_map(|s| s.replacement.as_deref()).map(str::trim).collect();
    let new = new.iter().filter(|n| !n.is_empty()).take(4).map(|n| format!("`{}`", n.trim_end_matches(';')));
    format!("{}: {}", child.message, new.collect::<Vec<_>>().join(", "))
}

/// A suggested change, when all of it is in the user's own text.
fn suggestion<'a>(child: &'a Diagnostic, level: Level<'a>, texts: &'a Texts) -> Option<Group<'a>> {
    let mut by_cell: BTreeMap<u64, (&Arc<CellText>, Vec<Patch>)> = BTreeMap::new();
    for span in &child.spans {
        let replacement = span.replacement.as_deref()?;
        if !span.ours {
            return None;
        }
        let (text, range) = texts.source.user_place_of_change(span.start..span.end)?;
        let patch = Patch::new(range, replacement);
        by_cell.entry(text.cell).or_insert_with(|| (text, Vec::new())).1.push(patch);
    }
    let mut group = Group::with_title(level.secondary_title(child.message.as_str()));
    for (_, (text, patches)) in by_cell {
        group = group.element(Snippet::source(text.text.as_str()).path(text.label()).patches(patches));
    }
    Some(group)
}

/// A failed run's traceback: the error, the line it happened on, and the notes. With the variables that the cell has lost:
/// those that it had moved, those that it keeps at its end alone, and those that had no value yet.
pub fn run_failure(fault: &Fault, sources: &Sources, [moved, inside, unset]: [Vec<String>; 3]) -> Failure {
    let message = in_the_notebook(fault.message.clone(), sources);
    let mut traceback = vec![format!("{RED}{}{OFF}: {message}", fault.name)];
    let source = sources.get(&fault.file);
    let place = source.as_ref().and_then(|s| s.user_place(fault.line, fault.column));
    match place {
        Some((text, at)) => traceback.extend(point_at(&text, at)),
        None if source.is_none() && !fault.file.is_empty() => {
            traceback.push(format!("  {BLUE}-->{OFF} {}:{}:{}", fault.file, fault.line, fault.column));
        }
        None => {}
    }
    traceback.extend(fault.notes.iter().map(|n| format!("{BOLD}note{OFF}: {n}")));
    let list = |names: &[String]| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if !unset.is_empty() {
        traceback.push(format!("{BOLD}note{OFF}: {} had no value yet", list(&unset)));
    }
    for (lost, why) in [(moved, "which moves"), (inside, "which can keep")] {
        let names = list(&lost);
        let (them, are) = if lost.len() == 1 { ("it", "is") } else { ("them", "are") };
        let at_its_end = if why == "which moves" { "" } else { " at its end only" };
        if !lost.is_empty() {
            let note = format!("{names} {are} lost: the cell, {why} {them}{at_its_end}, ended early");
            traceback.push(format!("{BOLD}note{OFF}: {note}"));
        }
    }
    Failure { name: fault.name.clone(), message, traceback }
}

/// Notes at the end of a traceback.
pub fn add_notes(failure: &mut Failure, notes: impl Iterator<Item = String>) {
    failure.traceback.extend(notes.map(|note| format!("{BOLD}note{OFF}: {note}")));
}

/// The numbers of the errors that a failure shows, such as `E0308`.
pub fn codes(failure: &Failure) -> BTreeSet<String> {
    let parts = failure.traceback.iter().flat_map(|l| l.split("[E").skip(1));
    parts.filter_map(|p| p.get(..5)?.strip_suffix(']')).map(|n| format!("E{n}")).collect()
}
