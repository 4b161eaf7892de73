//! What rustc is asked before something is advised: whether what a row is about stands there, and whether it takes what is to be
//! written.
use super::change::Change;
use super::ours::Ours;
use super::texts::Texts;
use crate::eval::text::source::{CellText, Provenance, Source};
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;
use std::sync::Arc;

/// What can be asked about a cell's text.
pub struct Rustc<'a> {
    /// Its errors about a source.
    pub ask: &'a dyn Fn(&str) -> Vec<Diagnostic>,
    /// The type of a variable of an earlier cell.
    pub type_of: &'a dyn Fn(&str) -> Option<&'a str>,
    /// What is listed of it: of a tensor its dtype and shape.
    pub summary_of: &'a dyn Fn(&str) -> Option<&'a str>,
    /// What the runtime has.
    pub ours: Ours<'a>,
}

/// A row that stands where rustc points.
pub(super) struct Candidate {
    pub said: String,
    /// What rustc is to be asked about before this is said.
    pub asks: Option<Asked>,
    /// Nothing but Python reads like this: it is said unless rustc says that it is about something else.
    pub python: bool,
    /// What is to be written, and for what of the source.
    pub code: Option<(Range<usize>, String)>,
    /// The same as a change of the cell.
    pub change: Option<Change>,
}

/// Whether what stands at a place of the source is what a row is about.
#[derive(PartialEq)]
pub(super) struct Asked {
    /// What is asked about, and what gives way to it where the source does not parse with it.
    pub at: Range<usize>,
    pub whole: Range<usize>,
    pub is: &'static str,
}

/// Where the user's text stands in the source.
pub(super) fn place(source: &Source, text: &Arc<CellText>, range: Range<usize>) -> Option<Range<usize>> {
    let part = text.text.get(range.clone())?;
    let find = |c: char, at: usize| {
        let is = |here: &usize| match source.provenance(*here) {
            Provenance::User { text: of, at: there } => Arc::ptr_eq(of, text) && there == at,
            Provenance::Generated(_) => false,
        };
        source.text.match_indices(c).map(|(here, _)| here).find(is)
    };
    let (first, last) = (part.chars().next()?, part.chars().next_back()?);
    // A variable that is handed over stands there as its copy: between the same neighbours.
    let behind =
        || text.text[..range.start].char_indices().next_back().and_then(|(at, c)| Some(find(c, at)? + c.len_utf8()));
    let before = || text.text[range.end..].chars().next().and_then(|c| find(c, range.end));
    let end = find(last, range.end - last.len_utf8()).map(|end| end + last.len_utf8()).or_else(before)?;
    let start = find(first, range.start).or_else(behind)?;
    (start < end).then_some(start..end)
}

/// The method that no type has: where rustc misses it, it has come to know the type.
const METHOD: &str = "xlazy_method";

/// Asks rustc about all of it at once; no answer where it does not get as far as types.
pub(super) fn ask(asked: &[&Asked], texts: &Texts, rustc: &Rustc) -> Vec<Option<bool>> {
    let text = &texts.source.text;
    // Where, whether it closes, how long what it is about is, and what.
    let mut parts: Vec<(usize, bool, usize, String)> = Vec::new();
    for (i, question) in asked.iter().enumerate() {
        let Asked { at, is, .. } = question;
        let of = is.replace("Is ", &format!("XlazyIs{i} "));
        parts.push((at.start, false, at.len(), "(match (".to_owned()));
        let checks = format!(
            ") {{ ref xlazy_it => {{ trait XlazyIs{i} {{ fn xlazy_is_{i}(&self) {{}} }} {of} xlazy_it.xlazy_is_{i}(); \
             xlazy_it.{METHOD}_{i}(); loop {{}} }} }})"
        );
        parts.push((at.end, true, at.len(), checks));
    }
    // What closes comes before what opens, and the inner one first.
    parts.sort_by_key(|(at, closes, len, _)| (*at, !closes, if *closes { *len as isize } else { -(*len as isize) }));
    let gives_way = |at: usize| asked.iter().any(|a| a.whole.contains(&at) && !a.at.contains(&at));
    let (mut source, mut from) = (String::new(), 0);
    let mut copy = |source: &mut String, to: usize| {
        let kept = text[from..to].char_indices().filter(|(i, _)| !gives_way(from + i)).map(|(_, c)| c);
        source.extend(kept);
        from = to;
    };
    for (at, _, _, part) in &parts {
        copy(&mut source, *at);
        source.push_str(part);
    }
    copy(&mut source, text.len());
    let errors: String = (rustc.ask)(&source).iter().map(|e| e.message.clone() + "\n").collect();
    let missed = |i: usize| {
        let misses = |method: &str| errors.contains(&format!("`{method}_{i}`"));
        misses(METHOD).then(|| !misses("xlazy_is"))
    };
    (0..asked.len()).map(missed).collect()
}

/// What rustc says of what is to be written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Taken {
    Yes,
    /// It is called like that, with values of other types.
    OtherTypes,
    No,
}

/// Asks rustc about the source with all of it written as it is said, and with what was chosen before.
pub(super) fn tried(
    fits: &[Option<&Candidate>],
    chosen: &[Option<&Candidate>],
    texts: &Texts,
    rustc: &Rustc,
) -> Vec<Taken> {
    let mut out = vec![Taken::Yes; fits.len()];
    let text = &texts.source.text;
    let new = fits.iter().enumerate().filter_map(|(i, c)| Some((c.as_ref()?.code.as_ref()?, Some(i))));
    let mut parts: Vec<_> = new.collect();
    if parts.is_empty() {
        return out;
    }
    parts.extend(chosen.iter().flatten().filter_map(|c| Some((c.code.as_ref()?, None))));
    // What stands in another is written there.
    parts.sort_by_key(|((at, _), _)| (at.start, std::cmp::Reverse(at.end)));
    let (mut source, mut from, mut places) = (String::new(), 0, Vec::new());
    let mut written: Option<&(Range<usize>, String)> = None;
    for (part @ (at, code), of) in parts {
        if at.start < from {
            // Two errors about one call are told one way.
            if let (Some(i), true) = (of, written.is_some_and(|(there, other)| there == at && other != code)) {
                out[i] = Taken::No;
            }
            continue;
        }
        written = Some(part);
        source.push_str(&text[from..at.start]);
        let start = source.len();
        source.push_str(code);
        places.push((start..source.len(), at, of));
        from = at.end;
    }
    source.push_str(&text[from..]);
    for error in (rustc.ask)(&source).iter().filter(|e| e.level == "error") {
        let verdict = match &*error.code {
            "E0308" | "E0277" => Taken::OtherTypes,
            "E0423" | "E0432" | "E0782" | "E0433" | "E0599" | "E0618" | "E0061" | "E0560" | "E0609" | "E0533" => {
                Taken::No
            }
            "E0425" if error.message.starts_with("cannot find function") => Taken::No,
            _ => continue,
        };
        for span in error.spans.iter().filter(|s| s.primary && s.ours) {
            let hit = places.iter().find(|(at, ..)| at.start <= span.start && span.end <= at.end);
            if let Some((_, there, Some(i))) = hit {
                // What stood there before is not what is advised.
                let path = path_to(&source[..span.end]);
                if !path.is_empty() && text[(*there).clone()].contains(path) {
                    continue;
                }
                out[*i] = if out[*i] == Taken::No { Taken::No } else { verdict };
            }
        }
    }
    out
}

/// The names that a text ends with: `a.b::c` of `f(a.b::c`.
fn path_to(text: &str) -> &str {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':');
    &text[text.trim_end_matches(is_part).len()..]
}
