//! How values are written in texts: what Python has in braces, as Rust has it.
use super::words::Words;
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
