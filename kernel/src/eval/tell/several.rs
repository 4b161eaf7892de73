//! Several values that Python writes without brackets: `return a, b`, `a, b = b, a`, `assert n > 0, "none"`.
use super::format::{formatted, parts};
use super::instead::rewritten;
use super::ours::Ours;
use super::there::names as is_named;
use super::words::{Words, of_quotation};
use crate::eval::text::scan::{self, Kind};
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;

/// The statement in which a comma is pointed at, or that asserts something, as Rust has it.
pub(super) fn told(error: &Diagnostic, text: &str, at: &Range<usize>, ours: &Ours) -> Option<(Range<usize>, String)> {
    let words = Words::of(text);
    // A cell that is a list and nothing else is one in braces.
    let all = error.message.starts_with("this is a block expression, not an array");
    let here = match all {
        true => (0..words.len()).find(|i| words.word(*i) == "," && words.within(0, *i))?,
        false => words.at(at.start)?,
    };
    let of = statement(&words, here)?;
    let asserts = words.word(of.start) == "assert" && words.word(of.start + 1) != "!";
    if words.word(here) != "," && !asserts {
        return None;
    }
    let (line, place) = words.part(of.start, of.end)?;
    let code = in_rust(&line, ours);
    let code = match declares(&line, &text[..place.start]) {
        true => format!("let {code}"),
        false => code,
    };
    // A statement of Python's ends with its line.
    let goes_on =
        !text[place.end..].trim_start().is_empty() && text[place.end..].trim_start_matches(' ').starts_with('\n');
    let code = if goes_on && words.kind(of.end) != Some(Kind::Close('}')) { code + ";" } else { code };
    // Names of arguments have answers of their own.
    let fits = [";", " {}"].iter().any(|end| syn::parse_str::<syn::Block>(&format!("{{ {code}{end} }}")).is_ok());
    (code != line && fits).then_some((place, code))
}

/// A statement with what Python leaves out around several values.
pub(super) fn in_rust(line: &str, ours: &Ours) -> String {
    let line = filled(line.to_owned(), ours);
    asserted(&line, ours).unwrap_or_else(|| rewritten(&in_brackets(&line).unwrap_or(line), ours))
}

/// Texts with values in them, which are no Rust, as it has them; what is asserted has its own.
fn filled(line: String, ours: &Ours) -> String {
    let words = Words::of(&line);
    let begins = |i: &usize| words.word(*i).eq_ignore_ascii_case("f") && words.kind(i + 1) == Some(Kind::Literal);
    let first = (0..words.len()).find(begins).filter(|_| words.word(0) != "assert");
    let code = first.and_then(|i| formatted(&line, words.tokens[i].range.start, &|value| rewritten(value, ours)));
    match code {
        Some((at, code)) => filled(format!("{}{code}{}", &line[..at.start], &line[at.end..]), ours),
        None => line,
    }
}

/// The tokens of the statement that a token is in: of its line, and of those that its brackets reach to.
fn statement(words: &Words, here: usize) -> Option<Range<usize>> {
    let breaks = |i: usize| {
        let between = words.tokens[i].range.end..words.tokens.get(i + 1).map_or(words.text.len(), |t| t.range.start);
        words.text[between].contains('\n') && words.word(i) != ","
    };
    let (mut from, mut depth) = (here, 0);
    while let Some(before) = from.checked_sub(1) {
        match words.kind(before)? {
            Kind::Close('}') | Kind::Punct(';') if depth == 0 => break,
            Kind::Open('{') if depth == 0 => break,
            // Within other brackets commas are there.
            Kind::Open(_) if depth == 0 => return None,
            _ if depth == 0 && breaks(before) => break,
            Kind::Close(_) => depth += 1,
            Kind::Open(_) => depth -= 1,
            _ => {}
        }
        from = before;
    }
    let head = matches!(words.word(from), "fn" | "pub" | "for");
    let mut end = here;
    while end < words.len() {
        match words.kind(end)? {
            Kind::Close(_) | Kind::Punct(';') => break,
            Kind::Open('{') if head => break,
            Kind::Open(_) => end = words.behind_brackets(end)?,
            _ => end += 1,
        }
        if breaks(end - 1) {
            break;
        }
    }
    Some(from..end)
}

/// `a, b = f()` and `return a, b` with tuples.
fn in_brackets(line: &str) -> Option<String> {
    let words = Words::of(line);
    let outside = |i: &usize| words.within(0, *i);
    let text = |from: usize, to: usize| words.part(from, to).map(|(text, _)| text);
    let tuple = |from: usize, to: usize| {
        let text = text(from, to)?;
        Some(if words.between_commas(from, to).len() > 1 { format!("({text})") } else { text })
    };
    let end = words.len();
    match words.word(0) {
        "return" => return Some(format!("return {}", tuple(1, end)?)),
        "for" => {
            let of = (1..end).find(|i| words.word(*i) == "in" && outside(i))?;
            return Some(format!("for {} in {}", tuple(1, of)?, text(of + 1, end)?));
        }
        "fn" | "pub" => {
            let gives = (1..end).find(|i| words.word(*i) == "-" && words.word(i + 1) == ">" && outside(i))? + 2;
            return Some(format!("{} {}", text(0, gives)?, tuple(gives, end)?));
        }
        _ => {}
    }
    let sign = |i: &usize| {
        let alone = !["=", "!", "<", ">", "+", "-", "*", "/"].contains(&words.word(i - 1))
            && !["=", ">"].contains(&words.word(i + 1));
        words.word(*i) == "=" && alone && outside(i)
    };
    let first = usize::from(words.word(0) == "let");
    match (1..end).find(sign) {
        Some(sign) => {
            let declares = if first == 1 { "let " } else { "" };
            Some(format!("{declares}{} = {}", tuple(first, sign)?, tuple(sign + 1, end)?))
        }
        None => tuple(first, end),
    }
}

/// Whether a line of Python's gives names values that nothing before it declares.
fn declares(line: &str, before: &str) -> bool {
    let words = Words::of(line);
    let Some(sign) = (1..words.len()).find(|i| words.word(*i) == "=" && words.within(0, *i)) else { return false };
    let names = || words.between_commas(0, sign).into_iter().map(|one| (one.len() == 1).then(|| words.word(one.start)));
    let value = words.part(sign + 1, words.len()).map_or(String::new(), |(text, _)| text);
    let there = |name: &str| scan::mentions(before).contains(name) || is_named(&value, name);
    let head = matches!(words.word(0), "let" | "for" | "return" | "assert" | "fn" | "pub");
    !head && names().count() > 1 && names().all(|name| name.is_some_and(|name| !there(name)))
}

/// `assert n > 0, f"{n}"`, with what it says where that is not so.
fn asserted(line: &str, ours: &Ours) -> Option<String> {
    let words = Words::of(line);
    let parts_of = words.between_commas(1, words.len());
    let (first, rest) = parts_of.split_first().filter(|_| words.word(0) == "assert" && words.word(1) != "!")?;
    let holds = condition(&words.part(first.start, first.end)?.0, ours);
    let says = rest.first().filter(|_| rest.len() == 1)?;
    let (message, _) = words.part(says.start, says.end)?;
    let filled = says.len() == 2 && words.word(says.start).eq_ignore_ascii_case("f");
    let text = of_quotation(words.word(says.end - 1)).filter(|_| filled || says.len() == 1);
    let (format, values) = match text {
        Some(text) if filled => parts(&text, &|value| rewritten(value, ours))?,
        Some(text) => (text.replace('{', "{{").replace('}', "}}"), vec![]),
        None => ("{}".to_owned(), vec![rewritten(&message, ours)]),
    };
    let values: String = values.iter().map(|value| format!(", {value}")).collect();
    Some(format!("assert!({holds}, \"{format}\"{values})"))
}

/// `"bias" in name` and `n not in seen`.
fn contained(text: String) -> String {
    let words = Words::of(&text);
    let asked = (1..words.len()).filter(|i| words.word(*i) == "in").find_map(|i| {
        let not = words.word(i - 1) == "not";
        let before = i - usize::from(not);
        let from = words.operand_before(before)?;
        let ((what, first), (of, last)) = (words.part(from, before)?, words.part(i + 1, words.operand(i + 1)?)?);
        let what = of_quotation(&what).map_or_else(|| format!("&{what}"), |text| format!("\"{text}\""));
        Some((first.start..last.end, format!("{}{of}.contains({what})", if not { "!" } else { "" })))
    });
    match asked {
        Some((at, code)) => contained(format!("{}{code}{}", &text[..at.start], &text[at.end..])),
        None => text,
    }
}

/// What is asked, with `and`, `or`, `not` and `is None` as Rust has them.
pub(super) fn condition(text: &str, ours: &Ours) -> String {
    let text = text.replace(" is not None", ".is_some()").replace(" is None", ".is_none()");
    let text = contained(text);
    let text = rewritten(&text, ours);
    let words = Words::of(&text);
    let (mut out, mut from) = (String::new(), 0);
    for (i, token) in words.tokens.iter().enumerate() {
        let sign = match words.word(i) {
            "and" => "&&",
            "or" => "||",
            "not" if words.word(i + 1) != "in" => "!",
            _ => continue,
        };
        out += &text[from..token.range.start];
        out += sign;
        from = token.range.end + usize::from(sign == "!" && text[token.range.end..].starts_with(' '));
    }
    out + &text[from..]
}
