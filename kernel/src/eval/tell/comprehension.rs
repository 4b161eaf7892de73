//! Python's comprehensions, `[f(a) for a, b in xs if a > 0]` and those of sets and dictionaries, as what iterators have.
use super::division::of_floats;
use super::words::{Words, receiver};
use crate::eval::text::scan::Kind;
use std::ops::Range;

/// The innermost comprehension of a text around a place, or any: where it stands, and what it is in Rust. `here` says what a part of it is.
pub(super) fn around(
    words: &Words,
    at: Option<&Range<usize>>,
    here: &dyn Fn(&str) -> String,
) -> Option<(Range<usize>, String)> {
    let all = (0..words.len()).filter_map(|open| {
        let close = words.behind_brackets(open).filter(|_| matches!(words.kind(open), Some(Kind::Open(_))))? - 1;
        let first = (open + 1..close).find(|i| clause(words, open, *i))?;
        let place = words.tokens[open].range.start..words.tokens[close].range.end;
        let holds = at.is_none_or(|at| place.start <= at.start && at.end <= place.end);
        (holds && first > open + 1).then_some((place, open, first, close))
    });
    let (place, open, first, close) = all.min_by_key(|(place, ..)| place.len())?;
    let text = |from: usize, to: usize| words.part(from, to).map(|(text, _)| text);
    // What `clone` is called of there is a tensor, which has a value of its own then.
    let part = |from: usize, to: usize| Some(of_floats(&here(&text(from, to)?.replace(".clone()", ".copy()"))));
    let colon = (open + 1..first).find(|i| words.word(*i) == ":" && words.within(open + 1, *i));
    let (element, collected) = match (words.word(open), colon) {
        ("{", Some(colon)) => {
            let pair = format!("({}, {})", part(open + 1, colon)?, part(colon + 1, first)?);
            (pair, "std::collections::HashMap<_, _>")
        }
        ("{", None) => (part(open + 1, first)?, "std::collections::HashSet<_>"),
        _ => (part(open + 1, first)?, "Vec<_>"),
    };
    let code = clauses(words, first, close, &element, collected, here)?;
    // What a call is given stays in its brackets.
    let called = words.word(open) == "(" && open > 0 && words.kind(open - 1) == Some(Kind::Ident);
    Some((place, if called { format!("({code})") } else { code }))
}

/// Whether a clause begins there: `for`, outside of other brackets.
fn clause(words: &Words, open: usize, i: usize) -> bool {
    words.word(i) == "for" && words.within(open + 1, i)
}

/// `for a in xs if k for b in ys`, of an element.
fn clauses(
    words: &Words,
    first: usize,
    close: usize,
    element: &str,
    collected: &str,
    here: &dyn Fn(&str) -> String,
) -> Option<String> {
    let text = |from: usize, to: usize| words.part(from, to).map(|(text, _)| text);
    let next = |word: &[&str], from: usize| {
        (from..close).find(|i| word.contains(&words.word(*i)) && words.within(first, *i)).unwrap_or(close)
    };
    let of = next(&["in"], first);
    let end = next(&["if", "for"], of + 1);
    let inner = next(&["for"], end);
    let target = text(first + 1, of)?;
    let many = words.between_commas(first + 1, of).len() > 1 && !target.starts_with('(');
    let target = if many { format!("({target})") } else { target };
    let source = source(&text(of + 1, end)?, here);
    let conditions: Vec<String> = words_of_conditions(words, end, inner).into_iter().map(|c| here(&c)).collect();
    let made = match inner < close {
        true => clauses(words, inner, close, element, "Vec<_>", here)?,
        false => element.to_owned(),
    };
    let goes = match (conditions.is_empty(), inner < close) {
        (true, false) => format!("map(|{target}| {made})"),
        (true, true) => format!("flat_map(|{target}| {made})"),
        (false, false) => format!("filter_map(|{target}| ({}).then(|| {made}))", joined(&conditions)),
        (false, true) => format!("filter_map(|{target}| ({}).then(|| {made})).flatten()", joined(&conditions)),
    };
    Some(format!("{source}.{goes}.collect::<{collected}>()"))
}

fn joined(conditions: &[String]) -> String {
    match conditions {
        [one] => one.clone(),
        all => all.iter().map(|c| format!("({c})")).collect::<Vec<_>>().join(" && "),
    }
}

/// What stands behind each `if` of a clause.
fn words_of_conditions(words: &Words, from: usize, to: usize) -> Vec<String> {
    let ifs: Vec<usize> = (from..to).filter(|i| words.word(*i) == "if" && words.within(from, *i)).collect();
    let ends = ifs.iter().skip(1).copied().chain([to]);
    ifs.iter().zip(ends).filter_map(|(i, end)| Some(words.part(i + 1, end)?.0)).collect()
}

/// What is gone through, as an iterator of its elements.
fn source(text: &str, here: &dyn Fn(&str) -> String) -> String {
    let words = Words::of(text);
    let whole = |arguments: &Range<usize>| arguments.end + 1 == words.len();
    if let Some(arguments) = words.arguments(0).filter(whole)
        && let Some(all) = words.listed(arguments)
    {
        match (words.word(0), &all[..]) {
            ("enumerate", [of]) => return format!("{}.enumerate()", source(of, here)),
            ("zip", [one, other]) => return format!("{}.zip({})", source(one, here), source(other, here)),
            ("reversed", [of]) => return format!("{}.rev()", source(of, here)),
            ("sorted" | "list" | "set" | "tuple", _) => return format!("{text}.into_iter()"),
            _ => {}
        }
    }
    if let Some(of) = text.strip_suffix(".items()") {
        return format!("{}.clone().into_iter()", receiver(&here(of)));
    }
    let code = here(text);
    let code = receiver(&code);
    let words = Words::of(&code);
    let range = (0..words.len()).any(|i| words.word(i) == "." && words.word(i + 1) == "." && words.within(1, i))
        && code.starts_with('(');
    let goes = ["iter", "rev", "enumerate", "zip", "chars", "into_iter", "keys", "values", "lines", "map"];
    let iterates = code.ends_with(')') && goes.iter().any(|name| code.contains(&format!(".{name}(")));
    if range || iterates { code.into_owned() } else { format!("{code}.iter().cloned()") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comprehensions_are_iterators() {
        let told = |text: &str| {
            let here = |part: &str| part.replace("range(5)", "0..5");
            around(&Words::of(text), None, &here)
                .map(|(at, code)| text[..at.start].to_owned() + &code + &text[at.end..])
        };
        for (text, code) in [
            (
                "[f(a) for a, b in xs if a > 0]",
                "xs.iter().cloned().filter_map(|(a, b)| (a > 0).then(|| f(a))).collect::<Vec<_>>()",
            ),
            (
                "{a: b for a, b in d.items()}",
                "d.clone().into_iter().map(|(a, b)| (a, b)).collect::<std::collections::HashMap<_, _>>()",
            ),
            (
                "{c: i for i, c in enumerate(v)}",
                "v.iter().cloned().enumerate().map(|(i, c)| (c, i)).collect::<std::collections::HashMap<_, _>>()",
            ),
            (
                "{k: v.detach().clone() for k, v in s.items()}",
                "s.clone().into_iter().map(|(k, v)| (k, v.detach().copy())).collect::<std::collections::HashMap<_, _>>()",
            ),
            ("{n % 3 for n in v}", "v.iter().cloned().map(|n| n % 3).collect::<std::collections::HashSet<_>>()"),
            ("[i for i in range(5)]", "(0..5).map(|i| i).collect::<Vec<_>>()"),
            (
                "f(a * b for a, b in zip(v, w))",
                "f(v.iter().cloned().zip(w.iter().cloned()).map(|(a, b)| a * b).collect::<Vec<_>>())",
            ),
            (
                "[a + b for a in v for b in w if b > a]",
                "v.iter().cloned().flat_map(|a| w.iter().cloned().filter_map(|b| (b > a).then(|| a + b)).collect::<Vec<_>>()).collect::<Vec<_>>()",
            ),
            (
                "[n for n in v if n > 1 if n < 5]",
                "v.iter().cloned().filter_map(|n| ((n > 1) && (n < 5)).then(|| n)).collect::<Vec<_>>()",
            ),
        ] {
            assert_eq!(told(text).as_deref(), Some(code), "{text}");
        }
        assert_eq!(told("for x in v { f(x) }"), None);
        assert_eq!(told("{ for x in v { f(x) } }"), None);
        assert_eq!(told("[1, 2]"), None);
    }
}
