//! What Python writes in ways that no row of a table can say: texts in its quotes and with values in them, functions, dictionaries.
use super::blocks;
use super::format::{self, filled, formatted, how_in_rust};
use super::instead::{About, Found, IN_RUST, NAMED, instead, rewritten};
use super::literals::powers;
use super::named;
use super::ours::Ours;
use super::several;
use super::texts::Told;
use super::untyped;
use super::words::{Words, around, of_quotation, receiver};
use crate::eval::text::scan::Kind;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;

/// What several things are kept with.
const CHECKPOINT: &str = "`%checkpoint save NAME` keeps the variables, models and optimizers with their state, and `%checkpoint load NAME` \
    goes on from there; `nn::save(file, &net.state_dict())?` writes one model's weights";

/// What no row can say of what is no Rust.
pub(super) fn of_python(error: &Diagnostic, text: &str, at: &Range<usize>, ours: &Ours) -> Option<Told> {
    let here = |value: &str| rewritten(value, ours);
    let (line, in_line) = around(text, at.clone())?;
    let answer = |code: &str| format!("{IN_RUST}`{code}`");
    let change = |(at, code): (Range<usize>, String)| (answer(&code), Some((at, code)));
    let groups = || match named::groups(text, at.start, ours) {
        Some(all) => Some((answer(&all.code) + &all.note(), Some((all.at, all.code)))),
        None => Some((named::groups_in_a_list(text, at.start, ours)?, None)),
    };
    if let Some(statement) = several::told(error, text, at, ours) {
        return Some(change(statement));
    }
    if let Some(head) = untyped::typed(error, text, at, ours) {
        return Some(head);
    }
    if let Some(decorated) = blocks::decorated(text, at.start, ours) {
        return Some(change(decorated));
    }
    if error.message.starts_with("prefix `f` is unknown") || error.message.starts_with("prefix `F` is unknown") {
        return formatted(text, at.start, &here).map(change);
    }
    if let Some(change) = format::told(error, text, at).map(change) {
        return Some(change);
    }
    if let Some((said, code)) = floor_division(error, text, at.start).map(change) {
        return Some((said + " (`//` begins a comment; `/` of whole numbers leaves the remainder out)", code));
    }
    if error.message.starts_with("character literal may only contain one codepoint") {
        if let Some(groups) = groups() {
            return Some(groups);
        }
        let first = at.start - in_line.start;
        let found = in_double_quotes(line, in_line.start, ours)?;
        return Some((found.said, Some((first + found.at.start..first + found.at.end, found.code))));
    }
    if line.contains("torch.save({") {
        return Some((CHECKPOINT.to_owned(), None));
    }
    if let Some(comment) = blocks::comment(text, at.start) {
        return Some(change(comment));
    }
    if let Some(said) = blocks::statement(line.trim()) {
        return Some((said, None));
    }
    if let Some((said, code)) = blocks::function(text, at.start, ours).map(change) {
        let note = "; a tensor is lent, and other arguments have types such as `f64` and `usize`";
        return Some((said + note, code));
    }
    if let Some(block) = blocks::around(text, at.start, ours) {
        return Some(change(block));
    }
    groups().or_else(|| dictionary(text, at.start).map(change))
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

/// `heat_map(x)`, which is a method of a plot's and takes a tensor.
pub(super) fn heat_map(text: &str, at: usize) -> Option<String> {
    let words = Words::of(text);
    let arguments = words.arguments(words.at(at)?)?;
    let (of, _) = words.part(arguments.start, arguments.end)?;
    let made = of.contains("vec!") || of.trim_start_matches('&').starts_with('[');
    let of = of.trim_start_matches('&');
    Some(if made {
        format!("Plot::new(\"\").heat_map(&tensor({of}))")
    } else {
        format!("Plot::new(\"\").heat_map(&{of})")
    })
}

/// Where a power stands whose second star does there.
pub(super) fn power_at(text: &str, at: usize) -> Option<Range<usize>> {
    let words = Words::of(text);
    let before = words.at(at)?.checked_sub(1)?;
    let (from, to) = (words.operand_before(before)?, words.operand(before + 2)?);
    Some(words.tokens[from].range.start..words.tokens[to - 1].range.end)
}

/// `print("loss", loss.item())` as `println!`.
pub(super) fn printed(words: &Words, arguments: Range<usize>, here: &dyn Fn(&str) -> String) -> Option<String> {
    let (mut format, mut values) = (Vec::new(), Vec::new());
    let (mut between, mut end) = (" ".to_owned(), "\\n".to_owned());
    for one in words.between_commas(arguments.start, arguments.end) {
        let (value, _) = words.part(one.start, one.end)?;
        if words.word(one.start + 1) == "=" && one.len() == 3 && words.kind(one.start + 2) == Some(Kind::Literal) {
            match (words.word(one.start), of_quotation(words.word(one.start + 2))?) {
                ("sep", text) => between = text,
                ("end", text) => end = text,
                _ => return None,
            }
            continue;
        }
        if words.word(one.start + 1) == "=" && words.word(one.start) == "flush" {
            continue;
        }
        if words.word(one.start).eq_ignore_ascii_case("f") && words.kind(one.start + 1) == Some(Kind::Literal) {
            // A text with values in it is told by itself.
            return None;
        }
        if let Some((text, given)) = filled_text(words, one.clone()) {
            format.push(text);
            values.extend(given.iter().map(|value| here(value)));
            continue;
        }
        match of_quotation(&value).filter(|text| one.len() == 1 && !text.contains(['{', '}'])) {
            Some(text) => format.push(text),
            None => {
                format.push("{}".to_owned());
                values.push(here(&value));
            }
        }
    }
    let format = format.join(&between);
    Some(match &*end {
        "\\n" => filled("println", &format, &values),
        end => filled("print", &(format + end), &values),
    })
}

/// `"{:.3f} of {}".format(a, b)` and `"%.3f of %d" % (a, b)`, where `.format` or `%` stands, as `format!` or `println!`.
pub(super) fn old_format(text: &str, at: usize) -> Option<String> {
    let words = Words::of(text);
    let here = words.at(at)?;
    let first = here.checked_sub(if words.word(here) == "format" { 2 } else { 1 })?;
    let end = match words.word(here) {
        "format" => words.arguments(here)?.end + 1,
        _ => words.operand(here + 1)?,
    };
    let (format, values) = filled_text(&words, first..end)?;
    let printed =
        first > 1 && words.word(first - 1) == "(" && words.word(first - 2) == "print" && words.word(end) == ")";
    let name = if printed { "println" } else { "format" };
    Some(format!("{IN_RUST}`{}`", filled(name, &format, &values)))
}

/// What `format!` takes for a text that Python fills.
fn filled_text(words: &Words, all: Range<usize>) -> Option<(String, Vec<String>)> {
    let text = &of_quotation(words.word(all.start)).filter(|_| words.kind(all.start) == Some(Kind::Literal))?;
    if words.word(all.start + 1) == "." && words.word(all.start + 2) == "format" {
        let arguments = words.arguments(all.start + 2).filter(|a| a.end + 1 == all.end)?;
        let mut format = String::new();
        let mut rest = text.as_str();
        while let Some((before, behind)) = rest.split_once(':') {
            let (how, after) = behind.split_at(behind.find('}')?);
            // Outside of braces it is a colon.
            let inside = before.rfind('{') > before.rfind('}');
            let how = if inside { format!(":{}", how_in_rust(how)) } else { format!(":{how}") };
            format = format + before + if how == ":" && inside { "" } else { &how };
            rest = after;
        }
        return Some((format + rest, words.listed(arguments)?));
    }
    let by_percent = words.word(all.start + 1) == "%" && words.operand(all.start + 2) == Some(all.end);
    let values = match words.word(all.start + 2) {
        "(" if words.behind_brackets(all.start + 2) == Some(all.end) => all.start + 3..all.end - 1,
        _ => all.start + 2..all.end,
    };
    let values = words.listed(values).filter(|_| by_percent)?;
    let mut format = String::new();
    let mut pieces = text
        .replace('{', "{{")
        .replace('}', "}}")
        .replace("%%", "\0")
        .split('%')
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into_iter();
    format += &pieces.next()?;
    for piece in pieces {
        let end = piece.find(|c: char| c.is_ascii_alphabetic())?;
        let how = how_in_rust(&piece[..=end]);
        format += &if how.is_empty() { "{}".to_owned() } else { format!("{{:{how}}}") };
        format += &piece[end + 1..];
    }
    Some((format.replace('\0', "%"), values))
}

/// `2 ** 3` of numbers, where its second star stands.
pub(super) fn power(text: &str, at: usize) -> Option<String> {
    let words = Words::of(text);
    let star = words.at(at).filter(|&i| words.word(i) == "*")?;
    let before = star.checked_sub(1).filter(|&i| words.word(i) == "*")?;
    let (of, _) = words.part(words.operand_before(before)?, before)?;
    let (to, _) = words.part(star + 1, words.operand(star + 1)?)?;
    let of = receiver(&of);
    let whole = format!("{of} ** {to}");
    let written = powers(whole.clone());
    if written != whole {
        return Some(format!("{IN_RUST}`{written}`"));
    }
    Some(format!(
        "{IN_RUST}`{of}.pow({to})` of a whole number, `{of}.powi({to})` or `{of}.powf({to} as f64)` of another one"
    ))
}

/// `let n = a // b;`, which for Rust ends behind `a`: the statement with a division.
fn floor_division(error: &Diagnostic, text: &str, at: usize) -> Option<(Range<usize>, String)> {
    let (line, in_line) = around(text, at..at).filter(|_| error.message.starts_with("expected `;`"))?;
    let (before, behind) = line.split_at(in_line.start);
    let by = behind.trim().strip_prefix("//")?.trim().strip_suffix(';')?;
    let code = format!("{} / {by};", before.trim());
    let start = at - in_line.start + line.len() - line.trim_start().len();
    syn::parse_str::<syn::Expr>(by).is_ok().then(|| (start..at - in_line.start + line.trim_end().len(), code))
}

/// What is told where a comment ends what a line has opened, as behind Python's sign of a division: `(a // b)`.
pub fn divided(line: &str) -> Option<&'static str> {
    let (before, behind) = line.split_once("//")?;
    let cuts = |open: char, close: char| {
        let depth = |text: &str| text.matches(open).count() as i64 - text.matches(close).count() as i64;
        depth(before) > 0 && depth(behind) < 0
    };
    let operand = |c: char| c.is_alphanumeric() || matches!(c, ')' | ']' | '_');
    let divides = before.trim_end().ends_with(operand) && (cuts('(', ')') || cuts('[', ']'));
    divides.then_some("`//` begins a comment: `a / b` of whole numbers leaves the remainder out")
}

/// `{"a": 1, "b": 2}` as a map, where the colon that is pointed at stands in it.
fn dictionary(text: &str, colon: usize) -> Option<(Range<usize>, String)> {
    let words = Words::of(text);
    let at = words.at(colon).filter(|&i| words.word(i) == ":")?;
    let open = at.checked_sub(2).filter(|&i| words.word(i) == "{" && words.kind(i + 1) == Some(Kind::Literal))?;
    let close = words.behind_brackets(open)? - 1;
    let pair = |one: Range<usize>| {
        let (key, _) = words.part(one.start, one.start + 1)?;
        let (value, _) = words.part(one.start + 2, one.end).filter(|_| words.word(one.start + 1) == ":")?;
        Some(format!("({}, {value})", key.replace('\'', "\"")))
    };
    let pairs = words.between_commas(open + 1, close).into_iter().map(pair).collect::<Option<Vec<String>>>()?;
    let at = words.tokens[open].range.start..words.tokens[close].range.end;
    Some((at, format!("std::collections::HashMap::from([{}])", pairs.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::super::functions;
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
        for (text, code) in [
            ("print(\"loss\", a.b(c, d), 'x')", "println!(\"loss {} x\", a.b(c, d))"),
            ("print()", "println!(\"\")"),
            ("print(x.shape, n)", "println!(\"{} {}\", x.shape(), n)"),
            ("print('\"', x)", "println!(\"\\\" {}\", x)"),
            ("print('loss', x, end='')", "print!(\"loss {}\", x)"),
            ("print(a, b, sep=', ', flush=True)", "println!(\"{}, {}\", a, b)"),
            ("print(\"{:.3f}: {}\".format(x, y))", "println!(\"{:.3}: {}\", x, y)"),
            ("print(\"at\", \"%5.2f of 100%%\" % loss)", "println!(\"at {:5.2} of 100%\", loss)"),
        ] {
            assert_eq!(
                functions::told("print", text, 0, &|value| value.replace("x.shape", "x.shape()")),
                Some(format!("in Rust: `{code}` (`{{:?}}` shows a list)")),
                "{text}"
            );
        }
        assert_eq!(functions::told("print", "print(f\"{x}\")", 0, &str::to_owned), None);
        assert_eq!(told("f\"{a"), None);
        assert_eq!(told("f\"{a\""), None);
    }

    #[test]
    fn statements_powers_and_old_formats() {
        for (text, at, said) in [
            ("let s = \"%d: %s\" % (n, name);", "% (", "in Rust: `format!(\"{}: {}\", n, name)`"),
            ("let s = \"%s\" % (a + b).abs();", "% (", "in Rust: `format!(\"{}\", (a + b).abs())`"),
            ("print(\"%.3f\" % loss)", "% l", "in Rust: `println!(\"{:.3}\", loss)`"),
            ("\"{:>8} is {0:.1f}: {}\".format(a, b)", "format", "in Rust: `format!(\"{:>8} is {0:.1}: {}\", a, b)`"),
        ] {
            assert_eq!(old_format(text, text.find(at).unwrap()).as_deref(), Some(said), "{text}");
        }
        assert_eq!(power("2 ** 3", 3).as_deref(), Some("in Rust: `2_i64.pow(3)`"));
        assert_eq!(power("2 * 3", 2), None);
    }

    #[test]
    fn functions_and_dictionaries() {
        let map = |text: &str| dictionary(text, text.find(':').unwrap()).map(|(_, code)| code);
        let code = "std::collections::HashMap::from([(\"a\", 1), (\"b\", [2, 3])])";
        assert_eq!(map("let d = {\"a\": 1, \"b\": [2, 3]};").as_deref(), Some(code));
        assert_eq!(map("let d = {a: 1};"), None);
    }
}
