//! Parameters that are assigned to, as Python's are, which are names for anything.
use super::change::Change;
use super::instead::ANSWER;
use super::texts::Texts;
use super::words::Words;
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};

/// `x = self.fc(x);` of a parameter that is lent: another one of its name, or a value of its own where that is in a block.
pub(super) fn assigned(error: &Diagnostic, texts: &Texts) -> Option<(String, Change)> {
    if let Some(again) = assigned_again(error, texts) {
        return Some(again);
    }
    let labelled = |what: &str| error.spans.iter().find(|s| s.label.as_deref() == Some(what));
    let value = labelled("expected `&Tensor`, found `Tensor`").filter(|s| s.primary && error.code == "E0308")?;
    let (text, at) = texts.map(value)?;
    let (_, ty) = texts.map(labelled("expected due to this parameter type")?)?;
    let words = Words::of(&text.text);
    let name = words.at(at.start)?.checked_sub(2).filter(|i| words.word(i + 1) == "=")?;
    let parameter = (0..words.len()).rev().find(|i| words.tokens[*i].range.end <= ty.start && words.word(*i) == ":")?;
    if words.word(parameter.checked_sub(1)?) != words.word(name) {
        return None;
    }
    let body = (parameter..name).find(|i| words.word(*i) == "{")?;
    let inside = words.within(body + 1, name) && matches!(words.word(name - 1), "{" | "}" | ";");
    let of = words.word(name);
    if inside {
        let place = words.tokens[name].range.start..at.end;
        let code = format!("let {}", &text.text[place.clone()]);
        let said = format!("{ANSWER}`{code}` (a parameter is lent: what has its name from here on is another one)");
        return Some((said, Change::new(text, place, code)));
    }
    let code = format!("{{ let mut {of} = {of}.clone();");
    let said = format!(
        "{ANSWER}`{code}` (a parameter is lent: what is given other values is a variable of the function's own)"
    );
    Some((said, Change::new(text, words.tokens[body].range.clone(), code)))
}

/// `x = self.fc(x);` where a `let` has taken a parameter's name: another one of it.
fn assigned_again(error: &Diagnostic, texts: &Texts) -> Option<(String, Change)> {
    let name = error.message.strip_prefix("cannot assign twice to immutable variable `")?.split('`').next()?;
    let (text, at) = error.spans.iter().find(|s| s.primary && error.code == "E0384").and_then(|s| texts.map(s))?;
    let first = |s: &&Span| s.label.as_deref().is_some_and(|l| l.starts_with("first assignment to"));
    let (_, declared) = texts.map(error.spans.iter().find(first)?)?;
    let words = Words::of(&text.text);
    let (here, there) = (words.at(at.start)?, words.at(declared.start)?);
    // Of a parameter: `f(x: &Tensor)`.
    let function = (0..there).rev().find(|i| words.word(*i) == "fn")?;
    let given = words.arguments(function + 1)?;
    let is_parameter = given.into_iter().any(|i| words.word(i) == name && words.word(i + 1) == ":");
    if !is_parameter || !words.within(there, here) || words.word(here + 1) != "=" {
        return None;
    }
    let (code, place) = words.part(here, words.expression(here + 2)?)?;
    let code = format!("let {code}");
    Some((format!("{ANSWER}`{code}`"), Change::new(text, place, code)))
}
