//! What rustc's errors mean in a notebook: generated code told in terms of the cell, and advice that rustc cannot give.
use super::change::{self, Change};
use super::elsewhere::{in_other_words, line_of, missing_crate, of_another_library, of_our_types, wants_a_list};
use super::habits;
use super::numbers;
use super::options::{self, wanted as options_wanted};
use super::retold::{About, Known, Retold, with_words};
use super::texts::Texts;
use super::torch::Hint;
use super::undeclared::{DECLARE, declaration, of_the_prelude};
use super::unfinished;
use super::unnamed;
use super::words::IDLE;
use crate::eval::generate::code::is_cell;
use crate::eval::generate::declared::Declaration;
use crate::eval::text::scan;
use crate::eval::text::scan::Kind;
use crate::eval::text::source::{CellText, Provenance, Source, Tag};
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};
use std::ops::Range;
use std::sync::Arc;

/// Errors about what we generated, told in terms of the cell, those that a row of the table for people from torch is about, and
/// those that rustc could say more about if it saw all cells.
pub(super) fn retell(error: &Diagnostic, texts: &Texts, known: &Known, row: Option<Hint>) -> Option<Retold> {
    let source = texts.source;
    let about_the_cell = of_generated_code(error, texts, known);
    // What is in the brackets is the mistake, not the call.
    let row = row.filter(|_| !wants_a_list(error));
    let torchs = || row.map(|hint| Retold { with_labels: false, change: hint.change, ..with_words(error, hint.said) });
    about_the_cell
        .or_else(torchs)
        .or_else(|| of_the_prelude(error, texts, known))
        .or_else(|| advised(error, texts, known))
        .or_else(|| {
            // Of syntax; what other errors say is about what stands there.
            (error.code.is_empty() && behind_the_cell(error, source)).then(|| {
                let title = match error.message.split_once(", found `") {
                    Some((expected, _)) => format!("{expected}, found the end of the cell"),
                    None => error.message.clone(),
                };
                Retold { title, help: None, with_labels: false, about: About::End, change: None }
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
        About::Part(..) | About::Words | About::Keeping => None,
    }
}

/// What rustc cannot know, because it sees neither all variables nor the text of types: a name that is nearly right, a
/// variable in a function, a trait that may be derived.
fn advised(error: &Diagnostic, texts: &Texts, known: &Known) -> Option<Retold> {
    let quoted: Vec<&str> = error.message.split('`').skip(1).step_by(2).collect();
    let text = || error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s)).map(|(text, _)| &*text.text);
    let is_ours = |ty: &str| {
        (known.is_type)(ty) || text().is_some_and(|t| ["struct", "enum"].iter().any(|k| scan::follows(t, &[*k], ty)))
    };
    if let Some((help, change)) = in_other_words(error, texts, &known.rustc.ours) {
        return Some(Retold { with_labels: false, change: Some(change), ..with_words(error, help) });
    }
    if let Some(help) = unfinished::told(error, texts, &known.rustc.ours) {
        return Some(Retold { with_labels: false, ..with_words(error, help) });
    }
    if let Some((help, change)) = habits::told(error, texts, known) {
        return Some(Retold { with_labels: false, change, ..with_words(error, help) });
    }
    let derive = |traits: &str, ty: &str| format!("put `#[derive({traits})]` in front of `{ty}`, or write the `impl`");
    let help = of_another_library(error, texts, &quoted, &is_ours, &known.rustc.ours);
    if let Some(help) = help.or_else(|| of_our_types(error, &quoted, &known.rustc.ours)) {
        let change = change::of_help(&help, error, texts);
        return Some(Retold { with_labels: false, change, ..with_words(error, help) });
    }
    let help = match (&*error.code, quoted.as_slice()) {
        ("E0425" | "E0423", ["help", ..]) => "`%help` lists the magics, and `?NAME` tells what a name is".to_owned(),
        ("E0425", [name, ..]) if error.message.starts_with("cannot find value") => {
            if let Some(value) = named_argument(error, texts) {
                let line = line_of(error, texts).unwrap_or_default();
                let help = match options::told(name, line) {
                    _ if IDLE.contains(name) => format!("leave `{name}={value}` out: it has nothing to say here"),
                    Some(told) => told,
                    None => format!("arguments have no names: write `{value}` without `{name}=`"),
                };
                return Some(with_words(error, help));
            }
            let near = |v: &&&str| strsim::damerau_levenshtein(v, name) <= name.len().div_ceil(4);
            let found = known.vars.iter().filter(near).min_by_key(|v| strsim::damerau_levenshtein(v, name));
            let in_a_function = !is_cell(&texts.source.text);
            let declared = || {
                in_a_function
                    && text()
                        .is_some_and(|t| scan::follows(t, &["let"], name) || scan::follows(t, &["let", "mut"], name))
            };
            if let Some(declared) = declaration(error, texts) {
                let help = format!("{DECLARE}`{declared}`");
                return Some(Retold { with_labels: false, ..with_words(error, help) });
            }
            if found.is_some_and(|v| v == name) || found.is_none() && declared() {
                format!(
                    "functions do not see variables: hand `{name}` over as an argument, or make the function a closure"
                )
            } else {
                format!("a variable with a similar name exists: `{}`", found?)
            }
        }
        ("E0277", _) if error.message.starts_with("the `?` operator can only be applied") => {
            let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
            let value = text.text.get(at.clone())?.strip_suffix('?')?;
            let said = error.text();
            let ty = said.split("cannot be applied to type `").nth(1).and_then(|rest| rest.split('`').next());
            let Some(ty) = ty.filter(|_| syn::parse_str::<syn::Ident>(value.trim()).is_err()) else {
                let help = "behind a value, `?` ends the cell with its error; `?NAME` on a line of its own tells what a name is";
                return Some(with_words(error, help.to_owned()));
            };
            let refuses = if ty.contains("xlazy::") { "; what an op refuses ends the cell with its error" } else { "" };
            let help = format!("leave `?` out: `{ty}` is no `Result`{refuses}");
            let change = Some(Change::new(text, at.end - 1..at.end, String::new()));
            return Some(Retold { change, with_labels: false, ..with_words(error, help) });
        }
        ("E0277", _) if let Some(help) = numbers::told(&error.message) => {
            return Some(Retold { with_labels: false, ..with_words(error, help) });
        }
        ("E0277", _) if let Some(help) = numbers::of_a_list(error, texts) => help,
        ("E0599", ["len", ty, ..]) if ty.trim_start_matches('&').ends_with("xlazy::Tensor") => {
            "in xlazy: `.size(0)`, as of torch's `len(x)`; `.numel()` counts all elements".to_owned()
        }
        ("E0277", ["usize: Neg", ..]) => {
            let sizes = sizes_in_brackets(error, texts)?;
            format!("in a tuple the sizes may be of several types: `({sizes})`")
        }
        ("E0308", _) if let Some(help) = of_numbers_type(error, texts, known) => help,
        ("E0308", _) if error.text().contains("found tuple `(_") => {
            let said = error.text();
            let is = |what: &str| said.contains(what).then_some(());
            let in_brackets = |after: &str| {
                let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
                let names = text.text.get(at)?.strip_prefix('(')?.strip_suffix(')')?;
                Some(format!("write `[{names}]`{after}"))
            };
            let batch = || is("array `[xlazy::Tensor; ").and_then(|()| in_brackets(": a batch is an array"));
            let array = || is("expected array `[").and_then(|()| in_brackets(": it is an array"));
            let help = batch().or_else(array)?;
            let code = help.split('`').nth(1).unwrap_or_default().to_owned();
            let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
            return Some(Retold { change: Some(Change::new(text, at, code)), ..with_words(error, help) });
        }
        ("E0308", _) if options_wanted(error).is_some() => {
            let (wanted, line) = (options_wanted(error)?, line_of(error, texts)?);
            let field = if line.contains("Reduction::") { "reduction: Reduction::Sum, " } else { "…, " };
            format!("`{wanted} {{ {field}..Default::default() }}`; `?{wanted}` lists its fields")
        }
        ("E0277", [ty, "Debug" | "std::fmt::Debug", ..]) if is_ours(ty) => derive("Debug", ty),
        ("E0369", [op @ ("==" | "!=" | "<" | ">" | "<=" | ">="), ty, ..]) if is_ours(ty) => {
            derive(if matches!(*op, "==" | "!=") { "PartialEq" } else { "PartialEq, PartialOrd" }, ty)
        }
        ("E0599", ["clone", ty, ..]) if is_ours(ty) => derive("Clone", ty),
        ("E0432" | "E0433" | "E0463", _) => {
            let name = missing_crate(error)?;
            format!("`:dep {name} = \"…\"` brings a crate of that name, `:dep {name}` its newest version")
        }
        _ => return None,
    };
    let change = change::of_help(&help, error, texts);
    Some(Retold { change, ..with_words(error, help) })
}

/// The tokens of the cell that an error is in, and which of them it points at.
fn words_at<'t>(error: &Diagnostic, texts: &'t Texts) -> Option<(&'t str, Vec<scan::Token>, usize)> {
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    let tokens = scan::tokens(&text.text);
    let i = tokens.iter().position(|t| t.range.start == at.start)?;
    Some((&text.text, tokens, i))
}

/// What stands behind Python's `name=` in a call.
fn named_argument<'t>(error: &Diagnostic, texts: &'t Texts) -> Option<&'t str> {
    let (text, tokens, i) = words_at(error, texts)?;
    let word = |i: usize| tokens.get(i).map_or("", |t| &text[t.range.clone()]);
    let named = matches!(word(i.checked_sub(1)?), "(" | ",") && word(i + 1) == "=" && word(i + 2) != "=";
    let mut depth = 0;
    let end = (i + 2..tokens.len()).filter(|_| named).find(|at| match tokens[*at].kind {
        Kind::Open(_) => {
            depth += 1;
            false
        }
        Kind::Close(_) => {
            depth -= 1;
            depth < 0
        }
        _ => depth == 0 && word(*at) == ",",
    })?;
    Some(&text[tokens.get(i + 2)?.range.start..tokens[end - 1].range.end])
}

/// What stands in the brackets around an error, where they are a shape that a tensor is to have.
fn sizes_in_brackets<'t>(error: &Diagnostic, texts: &'t Texts) -> Option<&'t str> {
    let (text, tokens, i) = words_at(error, texts)?;
    let word = |i: usize| tokens.get(i).map_or("", |t| &text[t.range.clone()]);
    let open = (2..=i).rev().find(|at| word(*at) == "[")?;
    let of_a_shape = word(open - 1) == "(" && matches!(word(open - 2), "view" | "reshape" | "expand");
    let mut depth = 0;
    let close = (open..tokens.len()).filter(|_| of_a_shape).find(|at| match tokens[*at].kind {
        Kind::Open(_) => {
            depth += 1;
            false
        }
        Kind::Close(_) => {
            depth -= 1;
            depth == 0
        }
        _ => false,
    })?;
    (i < close).then(|| &text[tokens[open].range.end..tokens[close].range.start])
}

/// A variable of an earlier cell has its numbers as the type that they have where none is written: said where another is wanted.
fn of_numbers_type(error: &Diagnostic, texts: &Texts, known: &Known) -> Option<String> {
    let said = error.children.iter().find_map(|c| c.message.strip_prefix("expected "))?;
    let mut types = said.split('`').skip(1).step_by(2);
    let (wanted, found) = (types.next()?, types.next()?);
    let others = [("i32", &INTEGERS[..]), ("f64", &["f32"])];
    let other = others.iter().find_map(|(of, all)| Some((of, all.iter().find(|o| found.replace(of, o) == wanted)?)));
    let (of, other) = other.filter(|(of, _)| found.contains(*of))?;
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    let name = text.text[at].trim_start_matches('&').trim_start_matches("mut ").trim();
    let cell = known.declared.get(name)?.cell;
    Some(format!(
        "numbers without a type are `{of}`, and those of `{name}` were when cell {cell} made it: write one there, as in `1_{other}`, \
         and run it again"
    ))
}

const INTEGERS: [&str; 11] = ["i8", "i16", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize"];

/// Errors about what we generated.
fn of_generated_code(error: &Diagnostic, texts: &Texts, known: &Known) -> Option<Retold> {
    let source = texts.source;
    let plain = |title: &str, help: &str| {
        let help = (!help.is_empty()).then(|| help.to_owned());
        Some(Retold { title: title.into(), help, with_labels: false, about: About::Words, change: None })
    };
    if matches!(&*error.code, "E0425" | "E0423" | "E0433" | "E0412" | "E0422")
        && let Some(name) = error.message.split('`').nth(1)
        && let Some(what) = known.gone.get(name)
    {
        // Assigned to, it was `mut`, and is to be again.
        let again = declaration(error, texts).map(|d| d.replacen("let ", "let mut ", 1));
        let help = again.map(|d| format!("to give it another value, write `let`: `{d}`")).unwrap_or_default();
        return plain(&format!("`{name}` {what}"), &help);
    }
    let tag = |s: &Span| match source.provenance(s.start) {
        Provenance::Generated(tag) if s.ours => Some(tag),
        _ => None,
    };
    let label = |words: &[&str]| {
        error.spans.iter().filter_map(|s| s.label.as_deref()).any(|l| words.iter().any(|w| l.contains(w)))
    };
    if error.code == "E0308"
        && label(&["Stop>`", "StopDebug>`", "expected `Result<_, _>`", "expected `Result<(), _>`"])
        && at_a_return(error, source)
    {
        let help = "to show a value, end the cell with it; to end early, write `return`";
        return plain("`return` with a value is for functions", help);
    }
    if error.code == "E0277" && error.message.contains("not `Option`s, in a closure that returns") {
        let help = "use `.ok_or(…)?` to give an error instead, or `let Some(x) = … else { … };`";
        return plain("the `?` operator at the top of a cell is for `Result`s, not for `Option`s", help);
    }
    if error.code == "E0069" {
        return plain("inside a macro, a cell ends early with `return Ok(())`", "");
    }
    let generated = |s: &Span| s.ours && matches!(source.provenance(s.start), Provenance::Generated(_));
    if error.code == "E0373"
        && let Some(lender) = error.message.split('`').nth(1)
        && error.spans.iter().any(|s| s.primary && generated(s))
    {
        let help = "put `#[derive(Clone)]` on the type of what is borrowed, with which both live on, or keep a value of its own: \
                    `.clone()`, `.to_owned()`, `.to_vec()`";
        return plain(&format!("what an earlier cell has made cannot keep what it borrows of `{lender}`"), help);
    }
    // What borrows stands in the cell beside what says for how long.
    let borrows = |s: &Span| match tag(s)? {
        Tag::Load(name) => Some((name, known.declared.get(name)?.views.keys().next()?)),
        _ => None,
    };
    let until = error.message.contains("`xlazy_until_");
    let of_a_view = |s: &&Span| until || s.primary;
    if error.code == "E0597"
        && let Some((name, of)) = error.spans.iter().filter(of_a_view).find_map(borrows)
    {
        let help = format!("hand over `{of}` itself, or a value of its own: `.clone()`, `.to_owned()`, `.to_vec()`");
        return plain(
            &format!("`{name}` borrows `{of}`: what outlives the cell, a thread or a static, cannot have it"),
            &help,
        );
    }
    let enclosing = |s: &Span| s.label.as_deref() == Some("enclosing closure") && tag(s).is_some();
    if error.code == "E0267" && error.spans.iter().any(enclosing) {
        let word = error.message.split('`').nth(1).unwrap_or("break");
        return plain(&format!("`{word}` outside of a loop"), "");
    }
    for tag in error.spans.iter().chain(error.children.iter().flat_map(|c| &c.spans)).filter_map(tag) {
        match tag {
            Tag::Load(name) if matches!(&*error.code, "E0384" | "E0594" | "E0596") => {
                let Some(Declaration { cell, fixed: true, .. }) = known.declared.get(name) else { continue };
                let help = format!(
                    "cell {cell} declares `{name}` without `mut`: write `let mut {name}` there and run it again, or \
                     `let mut {name} = {name};` here"
                );
                return Some(Retold {
                    title: error.message.clone(),
                    help: Some(help),
                    with_labels: true,
                    about: About::Words,
                    change: None,
                });
            }
            Tag::Load(name) if error.message == "lifetime may not live long enough" => {
                let Some((cell, of)) = known.declared.get(name).and_then(|d| Some((d.cell, d.views.keys().next()?)))
                else {
                    continue;
                };
                let help = format!("use `{name}` in cell {cell}, which makes it, or borrow `{of}` again here");
                return plain(
                    &format!("`{name}` could change what it borrows of `{of}`, and later cells look only"),
                    &help,
                );
            }
            Tag::Load(name) if leaves_open(error) => {
                let open =
                    known.declared.get(name).and_then(|d| Some((d.cell, d.open.as_ref().filter(|o| o.pending)?)));
                let Some((cell, open)) = open else { continue };
                let names = open.names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
                return Some(Retold {
                    title: format!("nothing says of what type {names} of cell {cell} is: {}", error.message),
                    help: Some(format!(
                        "use it in this cell so that its type is known, or write the type in cell {cell}, in `{}`",
                        open.text
                    )),
                    with_labels: false,
                    about: About::Fetching(name.clone()),
                    change: None,
                });
            }
            // Two borrows of the cell's own, told as rustc does; a third place, where the first one is used again, may be ours.
            Tag::Keep(_) if matches!(&*error.code, "E0499" | "E0502") && own_places(error, source) > 1 => return None,
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
                    change: None,
                });
            }
            Tag::Load(name) if error.spans.iter().any(|s| s.primary && generated(s)) => {
                let (title, help) = unnamed::told(name, &error.message);
                return Some(Retold {
                    title,
                    help: Some(help),
                    with_labels: false,
                    about: About::Fetching(name.clone()),
                    change: None,
                });
            }
            _ => {}
        }
    }
    None
}

/// Whether nothing says of what type something is, or only what is said where nothing is.
pub fn leaves_open(error: &Diagnostic) -> bool {
    matches!(&*error.code, "E0282" | "E0283" | "E0284" | "E0790" | "overflowing_literals")
}

/// Whether an error points at what a `return` at the top of the cell returns.
fn at_a_return(error: &Diagnostic, source: &Source) -> bool {
    let primary = error.spans.iter().find(|s| s.primary && s.ours);
    primary.is_some_and(|s| {
        source.text[..s.start].trim_end().ends_with("map_err(") || {
            let before = source.text[..s.start].trim_end();
            before.ends_with("return") || before.ends_with("Ok(")
        }
    })
}

fn own_places(error: &Diagnostic, source: &Source) -> usize {
    error.spans.iter().filter(|s| s.ours && matches!(source.provenance(s.start), Provenance::User { .. })).count()
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
