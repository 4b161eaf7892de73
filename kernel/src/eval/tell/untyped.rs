//! Parameters of functions without types, as Python has them.
use super::blocks::{self, argument};
use super::instead::IN_RUST;
use super::ours::Ours;
use super::texts::Told;
use super::words::Words;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;

/// `fn f(x, n=2)`, whose parameters rustc asks the types of: the function's head with some.
pub(super) fn typed(error: &Diagnostic, text: &str, at: &Range<usize>, ours: &Ours) -> Option<Told> {
    const NOTE: &str = "; a tensor is lent, and other arguments have types such as `f64` and `usize`";
    if !error.message.starts_with("expected one of `:`, `@`, or `|`, found ") {
        return None;
    }
    let words = Words::of(text);
    let around = |i: &usize| {
        let given = words.arguments(i + 1).filter(|_| words.word(*i) == "fn")?;
        let place = words.tokens[*i].range.start..words.tokens[given.end].range.end;
        (place.start <= at.start && at.end <= place.end).then_some((place, given))
    };
    let (place, given) = (0..words.len()).find_map(|i| around(&i))?;
    let close = given.end;
    if words.word(close + 1) == ":" {
        // All of it is Python's but for a word.
        let python = format!("{}def{}", &text[..place.start], &text[place.start + 2..]);
        let (of, code) = blocks::function(&python, place.start, ours)?;
        return Some((format!("{IN_RUST}`{code}`{NOTE}"), Some((of.start..of.end - 1, code))));
    }
    let one = |one: Range<usize>| {
        let plain = one.len() == 1 || words.word(one.start + 1) == "=";
        Some(match argument(&words, one.clone()).filter(|_| plain) {
            Some((name, _)) if name == "self" => "&self".to_owned(),
            Some((name, ty)) => format!("{name}: {ty}"),
            None => words.part(one.start, one.end)?.0,
        })
    };
    let all: Option<Vec<String>> = words.between_commas(given.start, given.end).into_iter().map(one).collect();
    // What ends with a value gives it.
    let open = close + 1;
    let value = || {
        let last = words.behind_brackets(open)?.checked_sub(2)?;
        (words.word(open) == "{" && !matches!(words.word(last), "{" | "}" | ";")).then_some(" -> Tensor")
    };
    let head = &text[place.start..words.tokens[given.start - 1].range.end];
    let code = format!("{head}{}){}", all?.join(", "), value().unwrap_or_default());
    Some((format!("{IN_RUST}`{code}`{NOTE}"), Some((place, code))))
}
