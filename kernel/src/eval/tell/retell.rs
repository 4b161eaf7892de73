//! What rustc's errors mean in a notebook: generated code told in terms of the cell, and advice that rustc cannot give.
use super::texts::Texts;
use crate::eval::generate::code::is_cell;
use crate::eval::text::scan;
use crate::eval::text::source::{CellText, Place, Source, Sources, Tag};
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// An error that our own words explain better than rustc's.
pub(super) struct Retold {
    pub title: String,
    pub help: Option<String>,
    /// rustc's words at each place stay, and so do its notes.
    pub with_labels: bool,
    pub about: About,
}

#[derive(PartialEq)]
pub(super) enum About {
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
    /// What became of variables and items that no longer exist.
    pub gone: &'a HashMap<String, String>,
    pub vars: &'a [&'a str],
    pub is_type: &'a dyn Fn(&str) -> bool,
    pub sources: &'a Sources,
}

/// Errors about what we generated, told in terms of the cell, and those that rustc could say more about if it saw all cells.
pub(super) fn retell(error: &Diagnostic, texts: &Texts, known: &Known) -> Option<Retold> {
    let source = texts.source;
    let about_the_cell = of_generated_code(error, source, known);
    about_the_cell.or_else(|| advised(error, texts, known)).or_else(|| {
        // Of syntax; what other errors say is about what stands there.
        (error.code.is_empty() && behind_the_cell(error, source)).then(|| {
            let title = match error.message.split_once(", found `") {
                Some((expected, _)) => format!("{expected}, found the end of the cell"),
                None => error.message.clone(),
            };
            Retold { title, help: None, with_labels: false, about: About::End }
        })
    })
}

/// Whether rustc points at what was generated after the user's text.
fn behind_the_cell(error: &Diagnostic, source: &Source) -> bool {
    let end = source.end_of_user().map(|(_, _, end)| end);
    error.spans.iter().any(|s| s.primary && s.ours && end.is_some_and(|end| s.start >= end))
}

/// Where the user meets what rustc finds in generated code only.
pub(super) fn place_of<'a>(about: &About, source: &'a Source) -> Option<(&'a Arc<CellText>, Range<usize>)> {
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

/// What rustc cannot know, because it sees neither all variables nor the text of types: a name that is nearly right, a
/// variable in a function, a trait that may be derived.
fn advised(error: &Diagnostic, texts: &Texts, known: &Known) -> Option<Retold> {
    let quoted: Vec<&str> = error.message.split('`').skip(1).step_by(2).collect();
    let text = || error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s)).map(|(text, _)| &*text.text);
    let is_ours = |ty: &str| {
        (known.is_type)(ty) || text().is_some_and(|t| ["struct", "enum"].iter().any(|k| follows(t, &[*k], ty)))
    };
    let derive = |traits: &str, ty: &str| format!("put `#[derive({traits})]` in front of `{ty}`, or write the `impl`");
    let help = match (&*error.code, quoted.as_slice()) {
        ("E0425", [name, ..]) if error.message.starts_with("cannot find value") => {
            let near = |v: &&&str| strsim::damerau_levenshtein(v, name) <= name.len().div_ceil(4);
            let found = known.vars.iter().filter(near).min_by_key(|v| strsim::damerau_levenshtein(v, name));
            let in_a_function = !is_cell(&texts.source.text);
            let declared = || {
                in_a_function && text().is_some_and(|t| follows(t, &["let"], name) || follows(t, &["let", "mut"], name))
            };
            if found.is_some_and(|v| v == name) || found.is_none() && declared() {
                format!(
                    "functions do not see variables: hand `{name}` over as an argument, or make the function a closure"
                )
            } else {
                format!("a variable with a similar name exists: `{}`", found?)
            }
        }
        ("E0277", [ty, "Debug" | "std::fmt::Debug", ..]) if is_ours(ty) => derive("Debug", ty),
        ("E0369", [op @ ("==" | "!=" | "<" | ">" | "<=" | ">="), ty, ..]) if is_ours(ty) => {
            derive(if matches!(*op, "==" | "!=") { "PartialEq" } else { "PartialEq, PartialOrd" }, ty)
        }
        ("E0599", ["clone", ty, ..]) if is_ours(ty) => derive("Clone", ty),
        _ => return None,
    };
    Some(Retold { title: error.message.clone(), help: Some(help), with_labels: true, about: About::Words })
}

/// Whether these words stand before the name somewhere.
fn follows(text: &str, words: &[&str], name: &str) -> bool {
    let all: Vec<&str> = scan::tokens(text).into_iter().map(|t| &text[t.range]).collect();
    all.windows(words.len() + 1).any(|w| w[..words.len()] == *words && w[words.len()] == name)
}

/// Errors about what we generated.
fn of_generated_code(error: &Diagnostic, source: &Source, known: &Known) -> Option<Retold> {
    let plain = |title: &str, help: &str| {
        let help = (!help.is_empty()).then(|| help.to_owned());
        Some(Retold { title: title.into(), help, with_labels: false, about: About::Words })
    };
    if matches!(&*error.code, "E0425" | "E0423" | "E0433" | "E0412" | "E0422")
        && let Some(name) = error.message.split('`').nth(1)
        && let Some(what) = known.gone.get(name)
    {
        return plain(&format!("`{name}` {what}"), "");
    }
    let tag = |s: &Span| match source.place(s.start) {
        Place::Generated(tag) if s.ours => Some(tag),
        _ => None,
    };
    let label = |words: &[&str]| {
        error.spans.iter().filter_map(|s| s.label.as_deref()).any(|l| words.iter().any(|w| l.contains(w)))
    };
    if error.code == "E0308" && label(&["Stop>`", "StopDebug>`"]) {
        let help = "to show a value, end the cell with it; to end early, write `return`";
        return plain("`return` with a value is for functions", help);
    }
    if error.code == "E0308" && label(&["`Stop`", "`StopDebug`"]) {
        let help = "at the top of a cell write `Err(…)?`, and `Err(anyhow!(…))?` for `bail!(…)`";
        return plain("`return` with an error is for functions", help);
    }
    if error.code == "E0277" && error.message.contains("not `Option`s, in a closure that returns") {
        let help = "use `.ok_or(…)?` to give an error instead, or `let Some(x) = … else { … };`";
        return plain("the `?` operator at the top of a cell is for `Result`s, not for `Option`s", help);
    }
    if error.code == "E0069" {
        return plain("inside a macro, a cell ends early with `return Ok(())`", "");
    }
    let enclosing = |s: &Span| s.label.as_deref() == Some("enclosing closure") && tag(s).is_some();
    if error.code == "E0267" && error.spans.iter().any(enclosing) {
        let word = error.message.split('`').nth(1).unwrap_or("break");
        return plain(&format!("`{word}` outside of a loop"), "");
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
                    with_labels: false,
                    about: About::Keeping,
                });
            }
            Tag::Load(name)
                if error.spans.iter().any(|s| s.primary && matches!(source.place(s.start), Place::Generated(_))) =>
            {
                return Some(Retold {
                    title: format!("the variable `{name}` cannot be used here: {}", error.message),
                    help: Some("its type cannot be named from a cell; store what it holds instead".into()),
                    with_labels: false,
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
