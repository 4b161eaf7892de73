//! What Python writes in ways that no row of a table can say: texts in its quotes and with values in them, functions, dictionaries.
use super::instead::{About, Found, IN_RUST, NAMED, instead, rewritten};
use super::signatures::Ours;
use super::words::{Words, around, receiver, unquoted};
use crate::eval::text::scan::Kind;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;

/// What no row can say of what is no Rust.
pub(super) fn of_python(error: &Diagnostic, text: &str, at: &Range<usize>, ours: &Ours) -> Option<String> {
    let here = |value: &str| rewritten(value, ours);
    let (line, in_line) = around(text, at.clone())?;
    let answer = |code: String| format!("{IN_RUST}`{code}`");
    if error.message.starts_with("prefix `f` is unknown") || error.message.starts_with("prefix `F` is unknown") {
        return formatted(text, at.start, &here).map(|(_, code)| answer(code));
    }
    if error.message.starts_with("character literal may only contain one codepoint") {
        return in_double_quotes(line, in_line.start, ours).map(|found| found.said);
    }
    if line.trim_start().starts_with("def ") {
        let behind = text[at.start..].split_once('\n').map_or("", |(_, rest)| rest);
        let note = "; a tensor is lent, and other arguments have types such as `f64` and `usize`";
        return function(line, behind, &here).map(|code| answer(code) + note);
    }
    dictionary(text, at.start).map(answer)
}

/// What to write for a text in Python's quotes, which for Rust is a lifetime and a character without an end.
///
/// `at` is where that character begins: at the second quote.
pub fn of_quotes(text: &str, at: usize, ours: &Ours) -> Option<(Range<usize>, String)> {
    let (line, in_line) = around(text, at..at)?;
    let first = line.get(..in_line.start)?.rfind('\'')?;
    let whole = at - in_line.start + first..at + 1;
    if !line[in_line.start..].starts_with('\'') || line[first..in_line.start].contains('\n') {
        return None;
    }
    let said = match in_double_quotes(line, first, ours) {
        Some(found) => found.said,
        None => format!("a text stands in double quotes: `\"{}\"`", &text[whole.start + 1..at]),
    };
    Some((whole, said))
}

/// The call of the library's around a text in Python's quotes, written as it is here.
fn in_double_quotes(line: &str, at: usize, ours: &Ours) -> Option<Found> {
    let fixed = line.replace('\'', "\"");
    let words = Words::written(&fixed);
    let before = words.tokens.iter().filter(|t| t.range.end <= at && NAMED.contains(&&fixed[t.range.clone()]));
    before.filter_map(|t| instead(&fixed, t.range.clone(), About::Names, ours)).find(|found| found.at.contains(&at))
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
    let values: String = values.iter().map(|value| format!(", {value}")).collect();
    let (before, behind) = (text[..at].trim_end(), text[end..].trim_start());
    let printed = before.strip_suffix('(').map(str::trim_end).and_then(|b| b.strip_suffix("print"));
    match printed.filter(|_| behind.starts_with(')')) {
        Some(start) => {
            let close = text.len() - behind.len() + 1;
            Some((start.len()..close, format!("println!(\"{format}\"{values})")))
        }
        None => Some((at..end, format!("format!(\"{format}\"{values})"))),
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
fn parts(mut rest: &str, rewritten: &dyn Fn(&str) -> String) -> Option<(String, Vec<String>)> {
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
        let how: String = how.trim_end_matches(['f', 'd', 's', 'g', '%']).replace([',', '_'], "");
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

/// What a function is called with, where its name stands.
pub(super) fn argument(text: &str, at: usize) -> Option<String> {
    let words = Words::of(text);
    let open = words.tokens.iter().position(|t| t.range.start == at)? + 1;
    let close = words.behind_brackets(open).filter(|_| words.word(open) == "(")? - 1;
    words.part(open + 1, close).map(|(text, _)| text)
}

/// `print("loss", loss.item())` as `println!`, where `print` stands.
pub(super) fn printed(text: &str, at: usize) -> Option<String> {
    let words = Words::of(text);
    let open = words.tokens.iter().position(|t| t.range.start == at)? + 1;
    let close = words.behind_brackets(open).filter(|_| words.word(open) == "(")? - 1;
    let (mut format, mut values) = (Vec::new(), String::new());
    for one in words.between_commas(open + 1, close) {
        let (value, _) = words.part(one.start, one.end)?;
        if words.word(one.start).eq_ignore_ascii_case("f") && words.kind(one.start + 1) == Some(Kind::Literal) {
            // A text with values in it is told by itself.
            return None;
        }
        match unquoted(&value).filter(|text| one.len() == 1 && !text.contains(['{', '}'])) {
            Some(text) => format.push(text.to_owned()),
            None => {
                format.push("{}".to_owned());
                values += &format!(", {value}");
            }
        }
    }
    Some(format!("println!(\"{}\"{values})", format.join(" ")))
}

/// `def f(x): return x + 1` as a function of tensors.
pub(super) fn function(line: &str, rest: &str, rewritten: &dyn Fn(&str) -> String) -> Option<String> {
    let head = Words::of(line);
    let open = (0..head.len()).find(|&i| head.word(i) == "(")?;
    let (name, close) = (head.word(open.checked_sub(1)?), head.behind_brackets(open)? - 1);
    let arguments = head.between_commas(open + 1, close).into_iter().map(|one| head.word(one.start).to_owned());
    let arguments: Vec<String> =
        arguments.filter(|name| name != "self").map(|name| format!("{name}: &Tensor")).collect();
    let of_itself = if head.word(open + 1) == "self" { vec!["&self".to_owned()] } else { vec![] };
    let arguments = [of_itself, arguments].concat().join(", ");
    // What it returns: on its line, or on one of those that stand further in.
    let body = head.part(close + 1, head.len()).map(|(body, _)| body).unwrap_or_default();
    let further = rest.lines().take_while(|l| l.is_empty() || l.starts_with([' ', '\t']));
    let returned = std::iter::once(&*body).chain(further).find_map(|l| Some(l.split_once("return ")?.1.trim()));
    let code = match returned {
        Some(value) => format!("fn {name}({arguments}) -> Tensor {{ {} }}", rewritten(value)),
        None => format!("fn {name}({arguments}) {{}}"),
    };
    syn::parse_str::<syn::ImplItemFn>(&code).is_ok().then_some(code)
}

/// `{"a": 1, "b": 2}` as a map, where the colon that is pointed at stands in it.
pub(super) fn dictionary(text: &str, colon: usize) -> Option<String> {
    let words = Words::of(text);
    let at = words.tokens.iter().position(|t| t.range.start == colon).filter(|&i| words.word(i) == ":")?;
    let open = at.checked_sub(2).filter(|&i| words.word(i) == "{" && words.kind(i + 1) == Some(Kind::Literal))?;
    let close = words.behind_brackets(open)? - 1;
    let pair = |one: Range<usize>| {
        let (key, _) = words.part(one.start, one.start + 1)?;
        let (value, _) = words.part(one.start + 2, one.end).filter(|_| words.word(one.start + 1) == ":")?;
        Some(format!("({}, {value})", key.replace('\'', "\"")))
    };
    let pairs = words.between_commas(open + 1, close).into_iter().map(pair).collect::<Option<Vec<String>>>()?;
    Some(format!("std::collections::HashMap::from([{}])", pairs.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_values_in_them() {
        let told = |text: &str| {
            let at = text.find("f\"").or_else(|| text.find("f'")).expect("there is one");
            formatted(text, at, &|value| value.replace("x.shape", "x.shape()"))
                .map(|(at, code)| (text[at].to_owned(), code))
        };
        for (text, at, code) in [
            ("print(f\"loss {loss:.3f}\")", "print(f\"loss {loss:.3f}\")", "println!(\"loss {loss:.3}\")"),
            ("let s = f\"{x}\";", "f\"{x}\"", "format!(\"{x}\")"),
            ("print(f'{a} of {b}')", "print(f'{a} of {b}')", "println!(\"{a} of {b}\")"),
            ("print(f\"{x.shape} {n:>5d}\");", "print(f\"{x.shape} {n:>5d}\")", "println!(\"{} {n:>5}\", x.shape())"),
            ("print(f\"{{}} {acc:.1%}\")", "print(f\"{{}} {acc:.1%}\")", "println!(\"{{}} {:.1}%\", acc * 100.0)"),
            ("print(f\"{x=}\", y)", "f\"{x=}\"", "format!(\"x = {x}\")"),
            ("f(f\"{f(a, b):02d}\")", "f\"{f(a, b):02d}\"", "format!(\"{:02}\", f(a, b))"),
            ("f\"{n:,} {d['k']}\"", "f\"{n:,} {d['k']}\"", "format!(\"{n} {}\", d['k'])"),
        ] {
            assert_eq!(told(text), Some((at.to_owned(), code.to_owned())), "{text}");
        }
        assert_eq!(
            printed("print(\"loss\", a.b(c, d), 'x')", 0).as_deref(),
            Some("println!(\"loss {} x\", a.b(c, d))")
        );
        assert_eq!(printed("print(f\"{x}\")", 0), None);
        assert_eq!(printed("print()", 0).as_deref(), Some("println!(\"\")"));
        assert_eq!(told("f\"{a"), None);
        assert_eq!(told("f\"{a\""), None);
    }

    #[test]
    fn functions_and_dictionaries() {
        let same = |value: &str| value.to_owned();
        for (line, rest, code) in [
            ("def f(x): return x + 1", "", "fn f(x: &Tensor) -> Tensor { x + 1 }"),
            ("def f(x, y=2):", "    z = x\n    return z\nf(1)", "fn f(x: &Tensor, y: &Tensor) -> Tensor { z }"),
            ("def forward(self, x):", "", "fn forward(&self, x: &Tensor) {}"),
            ("def f(x: int) -> int:", "\n    return x", "fn f(x: &Tensor) -> Tensor { x }"),
        ] {
            assert_eq!(function(line, rest, &same).as_deref(), Some(code), "{line}");
        }
        assert_eq!(function("def f", "", &same), None);
        let map = |text: &str| dictionary(text, text.find(':').unwrap());
        let code = "std::collections::HashMap::from([(\"a\", 1), (\"b\", [2, 3])])";
        assert_eq!(map("let d = {\"a\": 1, \"b\": [2, 3]};").as_deref(), Some(code));
        assert_eq!(map("let d = {a: 1};"), None);
    }
}
