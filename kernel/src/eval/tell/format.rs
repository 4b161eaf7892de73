//! How values are written in texts: what Python has in braces, as Rust has it.
use super::division::of_floats;
use super::words::{Words, receiver};
use crate::eval::text::scan::Kind;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;

/// The text that an error about its braces is in, as Rust takes it: `"{:.2f}"` is `"{:.2}"`.
pub(super) fn told(error: &Diagnostic, text: &str, at: &Range<usize>) -> Option<(Range<usize>, String)> {
    let about =
        ["unknown format trait `", "invalid format string: "].iter().any(|begin| error.message.starts_with(begin));
    let words = about.then(|| Words::of(text))?;
    let around = |i: &usize| {
        let place = &words.tokens[*i].range;
        words.kind(*i) == Some(Kind::Literal) && place.start <= at.start && at.end <= place.end
    };
    // rustc points at the macro where it is about more than one brace.
    let behind = |i: &usize| words.kind(*i) == Some(Kind::Literal) && words.tokens[*i].range.start >= at.start;
    let literal = (0..words.len()).find(around).or_else(|| (0..words.len()).find(behind))?;
    let place = words.tokens[literal].range.clone();
    let code = in_rust(&text[place.clone()])?;
    (code != text[place.clone()]).then_some((place, code))
}

/// How a value is written: Rust leaves the letter for numbers and texts out.
pub(super) fn how_in_rust(how: &str) -> String {
    how.trim_end_matches(['f', 'd', 'i', 's', 'g']).replace([',', '_'], "")
}

/// A text with what stands behind the colons in its braces as in Rust.
fn in_rust(text: &str) -> Option<String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(open) = rest.find('{') {
        out += &rest[..=open];
        rest = &rest[open + 1..];
        if let Some(behind) = rest.strip_prefix('{') {
            out.push('{');
            rest = behind;
            continue;
        }
        let (inside, behind) = rest.split_at(rest.find('}')?);
        rest = behind;
        let (value, how) = inside.split_once(':').unwrap_or((inside, ""));
        // A part of a hundred is another number.
        if how.ends_with('%') {
            return None;
        }
        let (value, debugs) = match value.split_once('!') {
            Some((value, "r")) => (value, true),
            Some((value, "s")) => (value, false),
            Some(_) => return None,
            None => (value, false),
        };
        let how = how_in_rust(how.trim()) + if debugs { "?" } else { "" };
        out += value;
        if !how.is_empty() {
            out += &format!(":{how}");
        }
    }
    Some(out + rest)
}

/// `f"loss {loss:.3f}"` as `format!` has it, and as `println!` where it is all that is printed: where that stands, and the code.
///
/// `at` is where the `f` stands; `rewritten` says what an expression is here.
pub(super) fn formatted(text: &str, at: usize, rewritten: &dyn Fn(&str) -> String) -> Option<(Range<usize>, String)> {
    let quoted = text.get(at..)?.strip_prefix(['f', 'F'])?;
    let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let inside = &quoted[1..1 + end_of(&quoted[1..], quote)?];
    let end = at + 1 + 1 + inside.len() + 1;
    let (format, values) = parts(inside, rewritten)?;
    let (before, behind) = (text[..at].trim_end(), text[end..].trim_start());
    let printed = before.strip_suffix('(').map(str::trim_end).and_then(|b| b.strip_suffix("print"));
    match printed.filter(|_| behind.starts_with(')')) {
        Some(start) => {
            let close = text.len() - behind.len() + 1;
            Some((start.len()..close, filled("println", &format, &values)))
        }
        None => Some((at..end, filled("format", &format, &values))),
    }
}

/// Where a text ends that began before.
fn end_of(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    let ends = |c: char| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    };
    text.find(ends).filter(|end| !text[..*end].contains('\n'))
}

/// What stands in the quotation marks, and the values behind them.
pub(super) fn parts(mut rest: &str, rewritten: &dyn Fn(&str) -> String) -> Option<(String, Vec<String>)> {
    let (mut format, mut values) = (String::new(), Vec::new());
    while let Some(open) = rest.find(['{', '}']) {
        format += &rest[..open];
        rest = &rest[open..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            format += &rest[..2];
            rest = &rest[2..];
            continue;
        }
        let words = Words::of(rest);
        let close = words.behind_brackets(0)? - 1;
        // What stands behind the last colon outside of brackets says how.
        let colon = (1..close).rev().find(|&i| words.word(i) == ":" && words.within(1, i));
        let (value, _) = words.part(1, colon.unwrap_or(close))?;
        let how = colon.map_or("", |i| &rest[words.tokens[i].range.end..words.tokens[close].range.start]);
        let value = value.split(" !").next()?.trim_end_matches("!r").trim_end_matches("!s");
        let (value, debugging) = match value.strip_suffix('=') {
            Some(value) => (value, format!("{value} = ")),
            None => (value, String::new()),
        };
        let percent = how.ends_with('%');
        let how = how_in_rust(how.trim_end_matches('%'));
        let how = if how.is_empty() { how } else { format!(":{how}") };
        let code = rewritten(value);
        let code = if percent { format!("{} * 100.0", receiver(&code)) } else { code };
        format += &debugging;
        match syn::parse_str::<syn::Ident>(&code) {
            Ok(name) => format += &format!("{{{name}{how}}}"),
            Err(_) => {
                format += &format!("{{{how}}}");
                values.push(code);
            }
        }
        if percent {
            format.push('%');
        }
        rest = &rest[words.tokens[close].range.end..];
    }
    Some((format + rest, values))
}

/// `println!("{} of {}", a, b)`.
pub(super) fn filled(name: &str, format: &str, values: &[String]) -> String {
    let values: String = values.iter().map(|value| format!(", {}", of_floats(value))).collect();
    format!("{name}!(\"{format}\"{values})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_of_pythons_are_those_of_rust() {
        for (python, rust) in [
            ("{:.2f}", "{:.2}"),
            ("{x:5d} of {n:,}", "{x:5} of {n}"),
            ("{:>10s}{:.3e}", "{:>10}{:.3e}"),
            ("{{:.2f}} {x!r:>8}", "{{:.2f}} {x:>8?}"),
            ("{:?} {x:#x} {:05.1f}", "{:?} {x:#x} {:05.1}"),
            ("{name} {:s}", "{name} {}"),
        ] {
            assert_eq!(in_rust(python).as_deref(), Some(rust));
        }
        assert_eq!(in_rust("{:.1%}"), None);
    }
}
