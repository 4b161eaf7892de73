//! Numbers that are read of a tensor as a type that none has, `x.to_vec::<usize>()`: read as one that it has, and converted.
use super::asked::Rustc;
use super::change::Change;
use super::elements;
use super::instead::ANSWER;
use super::numbers::is_number;
use super::texts::Texts;
use super::words::{Words, receiver};
use crate::eval::text::source::CellText;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;
use std::sync::Arc;

/// What is told of it, and the change that it is.
pub(super) fn told(error: &Diagnostic, texts: &Texts, rustc: &Rustc) -> Option<(String, Change)> {
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    let (at, code) = match &*error.code {
        "E0277" => of_no_element(error, text, &at, rustc),
        "E0308" => of_another(error, text, &at),
        _ => None,
    }?;
    Some((format!("{ANSWER}`{code}`"), Change::new(text, at, code)))
}

/// `x.to_vec::<usize>()`
fn of_no_element(
    error: &Diagnostic,
    text: &Arc<CellText>,
    at: &Range<usize>,
    rustc: &Rustc,
) -> Option<(Range<usize>, String)> {
    let wanted = error.message.strip_prefix("the trait bound `")?.split_once(": xlazy::Element`")?.0;
    is_number(wanted).then_some(())?;
    let words = Words::of(&text.text);
    let here = |i: &usize| words.word(*i) == "to_vec" && words.word(i + 1) == ":" && words.word(i + 4) == wanted;
    let name = (0..words.len()).filter(here).find(|i| {
        let end = words.tokens.get(i + 7).map_or(0, |t| t.range.end);
        words.tokens[*i].range.start <= at.start && at.end <= end
    })?;
    let (of, place) = words.part(words.operand_before(name - 1)?, name - 1)?;
    let end = words.tokens.get(words.behind_brackets(name + 6)? - 1)?.range.end;
    let read = elements::typed(&format!("{of}.to_vec::<f32>()"), &text.text[..place.start], rustc);
    let read = read.filter(|read| ["i64", "i32", "u8"].iter().any(|ty| read.ends_with(&format!("::<{ty}>()"))));
    let read = read.unwrap_or_else(|| format!("{}.to(I64).to_vec::<i64>()", receiver(&of)));
    Some((place.start..end, converted(&read, wanted)))
}

/// `let v: Vec<usize> = x.to_vec::<i64>();`
fn of_another(error: &Diagnostic, text: &Arc<CellText>, at: &Range<usize>) -> Option<(Range<usize>, String)> {
    let label = error.spans.iter().find(|s| s.primary)?.label.as_deref()?;
    let (wanted, found) = label.strip_prefix("expected `Vec<")?.split_once(">`, found `Vec<")?;
    let found = found.strip_suffix(">`")?;
    let read = text.text.get(at.clone())?;
    let fits = is_number(wanted) && is_number(found) && read.ends_with(&format!(".to_vec::<{found}>()"));
    fits.then(|| (at.clone(), converted(read, wanted)))
}

fn converted(read: &str, ty: &str) -> String {
    format!("{read}.into_iter().map(|n| n as {ty}).collect::<Vec<_>>()")
}
