//! Python's blocks, heads with a colon and the lines that stand further in, as Rust has them.
use super::instead::{IN_RUST, rewritten};
use super::literals::is_rust;
use super::no_grad;
use super::ours::Ours;
use super::pictures;
use super::several::{self, condition};
use super::there::names as is_named;
use super::words::{Words, of_quotation};
use crate::eval::text::scan::{self, Kind};
use std::ops::Range;

/// A place of a text, and what is to be written there.
pub(super) type Written = (Range<usize>, String);

/// What a block begins with.
const HEADS: [&str; 8] = ["if", "elif", "else", "while", "for", "with", "def", "try"];

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Where the line begins that a place is in.
fn begin(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |i| i + 1)
}

/// `# a comment`, whose sign is another one.
pub(super) fn comment(text: &str, at: usize) -> Option<Written> {
    let start = begin(text, at);
    let line = text[start..].lines().next()?;
    let sign = start + indent(line);
    let comment = line.trim_start().strip_prefix('#').filter(|rest| !rest.starts_with(['[', '!']))?;
    Some((sign..sign + line.trim().len(), format!("//{}", comment.trim_end())))
}

/// The `if` or `while` of Python's around a place, with what stands further in and, of an `if`, what is to be done otherwise.
pub(super) fn around(text: &str, at: usize, ours: &Ours) -> Option<Written> {
    let (head, lines) = lines_from(text, begin(text, at), &["elif", "else"])?;
    let first = Words::of(lines[0].trim());
    matches!(first.word(0), "if" | "while").then(|| colon(&first))??;
    let code = block(&lines, ours).filter(|code| is_rust(code))?;
    Some((head, code))
}

/// A line with those below that stand further in, and those as far in that go on with it: where all of that is.
fn lines_from<'t>(text: &'t str, start: usize, goes_on: &[&str]) -> Option<(Range<usize>, Vec<&'t str>)> {
    let first = text[start..].lines().next()?;
    let own = indent(first);
    let (below, end) = below(text, start + first.len() + 1, own, goes_on);
    let lines = std::iter::once(first).chain(below).collect();
    Some((start + own..end.unwrap_or(start + first.trim_end().len()), lines))
}

/// The lines from a place on that stand further in than `own`, and those as far in that go on with it; where the last one ends.
fn below<'t>(text: &'t str, mut at: usize, own: usize, goes_on: &[&str]) -> (Vec<&'t str>, Option<usize>) {
    let (mut lines, mut end) = (Vec::new(), None);
    for line in text.get(at..).unwrap_or_default().split('\n') {
        let word = line.trim_start().split([' ', ':']).next().unwrap_or_default();
        if !line.trim().is_empty() {
            if indent(line) < own || indent(line) == own && !goes_on.contains(&word) {
                break;
            }
            lines.push(line);
            end = Some(at + line.trim_end().len());
        }
        at += line.len() + 1;
    }
    (lines, end)
}

/// The colon that a head ends with, outside of brackets and paths.
fn colon(words: &Words) -> Option<usize> {
    let alone = |i: &usize| words.word(*i) == ":" && words.word(i + 1) != ":" && (*i == 0 || words.word(i - 1) != ":");
    (0..words.len()).find(|i| alone(i) && words.within(0, *i))
}

/// A head, and what stands behind its colon.
fn head_of(line: &str) -> Option<(&str, &str)> {
    let words = Words::of(line);
    let colon = colon(&words).filter(|_| HEADS.contains(&words.word(0)))?;
    let at = words.tokens[colon].range.clone();
    Some((line[..at.start].trim(), line[at.end..].trim()))
}

/// What a head of Python's (`for i in range(3):`), written as `for i in 0..3 {}`, is with what stands behind its colon, or further in on the
/// lines below: all of it, and where that ends. `known` are variables of earlier cells.
pub(super) fn with_body(
    text: &str,
    head: &Range<usize>,
    code: &str,
    ours: &Ours,
    known: &dyn Fn(&str) -> bool,
) -> Option<Written> {
    let (before, behind) = code.split_once("{}")?;
    let own = indent(&text[begin(text, head.start)..]);
    let rest = text[head.end..].strip_prefix(':').unwrap_or(&text[head.end..]);
    let from = text.len() - rest.len();
    let first = rest.split('\n').next().unwrap_or_default();
    let (lines, end) = match first.split('#').next().unwrap_or_default().trim() {
        "" => below(text, from + first.len() + 1, own, &[]),
        one => (vec![one], None),
    };
    let end = end.unwrap_or(from + first.trim_end().len());
    let after = &text[end..];
    let there = |name: &str| known(name) || is_named(&text[..head.end], name);
    let lines = within(&lines, after, &there);
    let body = block(&lines.iter().map(String::as_str).collect::<Vec<_>>(), ours)?;
    let mut code = format!("{before}{}{behind}", braced(&body));
    if before.starts_with("no_grad(") {
        // What is in a block of Python's is there behind it, too.
        let there = |name: &str| scan::follows(text, &["let"], name) || scan::follows(text, &["let", "mut"], name);
        let mut names = scan::mentions(&body);
        names.retain(|name| there(name) || known(name));
        code = no_grad::composed(&body, true, Some(&names.into_iter().collect::<Vec<_>>())).unwrap_or(code);
    }
    is_rust(&code).then_some((head.start..end, code))
}

/// Lines of Python's as statements, those that stand further in as the blocks of what is before them.
fn block(lines: &[&str], ours: &Ours) -> Option<String> {
    let (mut out, mut i) = (Vec::new(), 0);
    while i < lines.len() {
        let line = lines[i].split(" #").next()?.trim();
        let inside = lines[i + 1..].iter().take_while(|l| indent(l) > indent(lines[i])).count();
        let further = &lines[i + 1..i + 1 + inside];
        let pictures = pictures::count(&lines[i..]);
        if let Some(shown) = pictures::shown(&trimmed(&lines[i..i + pictures]), ours).filter(|_| pictures > 0) {
            out.push(shown);
            i += pictures;
            continue;
        }
        match head_of(line) {
            Some((head, "")) if inside > 0 => out.push(headed(head, &block(further, ours)?, ours)),
            Some((head, rest)) if inside == 0 && !rest.is_empty() => {
                out.push(headed(head, &block(&[rest], ours)?, ours))
            }
            Some(_) => return None,
            None if inside > 0 => return None,
            // What is said of a function.
            None if line.is_empty()
                || line == "pass"
                || line.starts_with('#')
                || line.starts_with("\"\"\"") && line.len() > 5 => {}
            None => out.push(several::in_rust(line.trim_end_matches(';'), ours) + ";"),
        }
        i += 1 + inside;
    }
    // A function that only passes has nothing in it.
    Some(out.join(" ")).filter(|code| !code.is_empty() || lines.iter().any(|l| l.trim() == "pass"))
}

fn trimmed<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    lines.iter().map(|line| line.split(" #").next().unwrap_or_default().trim().trim_end_matches(';')).collect()
}

fn braced(inner: &str) -> String {
    if inner.is_empty() { "{}".to_owned() } else { format!("{{ {inner} }}") }
}

/// A head with what is in it.
fn headed(head: &str, inner: &str, ours: &Ours) -> String {
    let inner = braced(inner);
    let (word, rest) = head.split_once(' ').unwrap_or((head, ""));
    let rest = rest.trim();
    let no_grad = ["no_grad", "inference_mode"].iter().any(|name| rest.trim_end_matches("()").ends_with(name));
    match word {
        "with" if no_grad => format!("no_grad(|| {inner});"),
        "while" if rest == "True" => format!("loop {inner}"),
        "elif" => format!("else if {} {inner}", condition(rest, ours)),
        "if" | "while" => format!("{word} {} {inner}", condition(rest, ours)),
        "for" => {
            let (target, of) = rest.split_once(" in ").unwrap_or((rest, ""));
            let several = target.contains(',') && !target.starts_with('(');
            let target = if several { format!("({target})") } else { target.to_owned() };
            format!("{} {inner}", rewritten(&format!("for {target} in {of}"), ours))
        }
        _ => format!("{} {inner}", rewritten(head, ours)),
    }
}

/// `def f(x, n=2):` with its lines as a function: where it stands, and what it is.
pub(super) fn function(text: &str, at: usize, ours: &Ours) -> Option<Written> {
    let (place, lines) = lines_from(text, begin(text, at), &[])?;
    let first = lines[0].trim();
    first.starts_with("def ").then_some(())?;
    let words = Words::of(first);
    let open = (0..words.len()).find(|&i| words.word(i) == "(")?;
    let (name, close) = (words.word(open.checked_sub(1)?), words.behind_brackets(open)? - 1);
    let all: Vec<(String, String)> =
        words.between_commas(open + 1, close).into_iter().filter_map(|one| argument(&words, one)).collect();
    let arguments: Vec<String> = all
        .iter()
        .map(|(name, ty)| if name == "self" { "&self".to_owned() } else { format!("{name}: {ty}") })
        .collect();
    let colon = (close..words.len()).find(|i| words.word(*i) == ":")?;
    let given = (words.word(close + 1) == "-").then(|| words.part(close + 3, colon)).flatten().map(|(ty, _)| ty);
    let behind = first[words.tokens[colon].range.end..].trim();
    let mut body: Vec<String> = if behind.is_empty() { vec![] } else { vec![behind.to_owned()] };
    body.extend(lines[1..].iter().map(|l| (*l).to_owned()));
    let returned = body.iter().find_map(|l| Some(l.trim().strip_prefix("return ")?.trim().to_owned()));
    let gives = match (given.as_deref(), &returned) {
        (Some("None"), _) | (None, None) => String::new(),
        (Some(ty), _) => format!(" -> {}", type_in_rust(ty).trim_start_matches('&')),
        (None, Some(value)) if value.ends_with(".item()") || value.contains("/ len(") => " -> f64".to_owned(),
        (None, Some(_)) => " -> Tensor".to_owned(),
    };
    let head = format!("fn {name}({}){gives}", arguments.join(", "));
    let is_function = |code: &String| syn::parse_str::<syn::ImplItemFn>(code).is_ok();
    let declared = declared(&body, &all);
    let lines: Vec<&str> = declared.iter().map(String::as_str).collect();
    let whole = block(&lines, ours).map(|body| format!("{head} {}", braced(&body))).filter(is_function);
    let alone = || {
        let value = returned.map(|value| rewritten(&value, ours)).unwrap_or_default();
        Some(format!("{head} {}", braced(&value))).filter(is_function)
    };
    Some((place, whole.or_else(alone)?))
}

/// `@torch.no_grad()` in front of a function, in which that stands here.
pub(super) fn decorated(text: &str, at: usize, ours: &Ours) -> Option<Written> {
    let start = begin(text, at) + indent(&text[begin(text, at)..]);
    let line = text[start..].lines().next()?;
    let guard = line.trim_end().trim_end_matches("()");
    if !guard.starts_with('@') || !["no_grad", "inference_mode"].iter().any(|name| guard.ends_with(name)) {
        return None;
    }
    let below = start + line.len() + 1;
    let rest = text.get(below..)?;
    let (code, end) = match rest.trim_start().starts_with("def ") {
        true => function(text, below + indent(rest), ours).map(|(place, code)| (code, place.end))?,
        false => {
            let words = Words::of(rest);
            let open = (0..words.len()).find(|i| words.word(*i) == "{").filter(|_| rest.contains("fn "))?;
            let end = words.tokens[words.behind_brackets(open)? - 1].range.end;
            (rest[..end].trim_start().to_owned(), below + end)
        }
    };
    let (head, body) = code.split_once('{')?;
    let body = body.strip_suffix('}')?.trim();
    let inner = match body.strip_prefix("return ").and_then(|value| value.strip_suffix(';')) {
        Some(value) if !value.contains(';') => format!("no_grad(|| {value})"),
        // What a closure gives back is not what the function does.
        _ if body.contains("return ") => {
            let (before, value) = body.rsplit_once("return ").filter(|(before, _)| !before.contains("return "))?;
            format!("no_grad(|| {{ {before}{} }})", value.trim_end_matches(';'))
        }
        _ => format!("no_grad(|| {})", braced(body)),
    };
    Some((start..end, no_grad::flat(&format!("{head}{{ {inner} }}"))?)).filter(|(_, code)| is_rust(code))
}

/// An argument's name and type: as it is annotated, or as its default is, or a tensor.
pub(super) fn argument(words: &Words, one: Range<usize>) -> Option<(String, String)> {
    let name = words.word(one.start).to_owned();
    let sign = (one.start..one.end).find(|i| words.word(*i) == "=");
    let annotated = (words.word(one.start + 1) == ":").then(|| words.part(one.start + 2, sign.unwrap_or(one.end)));
    let default = sign.map(|i| words.word(i + 1)).map(|value| match value {
        "True" | "False" => "bool",
        "None" => "Option<&Tensor>",
        value if value.starts_with(['"', '\'']) => "&str",
        value if value.contains('.') || value.contains('e') => "f64",
        _ => "i64",
    });
    let ty = match (annotated.flatten(), default) {
        (Some((ty, _)), _) => type_in_rust(&ty),
        (None, Some(ty)) => ty.to_owned(),
        (None, None) => "&Tensor".to_owned(),
    };
    Some((name, ty))
}

/// A type of Python's.
fn type_in_rust(ty: &str) -> String {
    match ty.trim() {
        "float" => "f64".to_owned(),
        "int" => "i64".to_owned(),
        "str" => "&str".to_owned(),
        "bool" => "bool".to_owned(),
        list if list.to_lowercase().starts_with("list[") => {
            format!("&[{}]", type_in_rust(list[5..].trim_end_matches(']')).trim_start_matches('&'))
        }
        module if module.ends_with("Module") => "&dyn Module".to_owned(),
        _ => "&Tensor".to_owned(),
    }
}

/// The name that a line gives a value to, and whether it is no change of one.
fn assigned(line: &str) -> Option<(String, bool)> {
    let words = Words::of(line.trim());
    let name = words.word(0).to_owned();
    let sets = words.word(1) == "=" && words.word(2) != "=";
    let changes = ["+", "-", "*", "/"].contains(&words.word(1)) && words.word(2) == "=";
    (words.kind(0) == Some(Kind::Ident) && (sets || changes)).then_some((name, sets))
}

/// A block's lines with `let` where a name is given a value that nothing behind the block it stands in has any use for.
fn within(lines: &[&str], after: &str, there: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let own = lines[i..].iter().position(|l| indent(l) < indent(line)).map_or(lines.len(), |n| i + n);
        let behind = |name: &str| is_named(after, name) || lines[own..].iter().any(|l| is_named(l, name));
        let first = assigned(line).filter(|(name, sets)| *sets && !there(name) && !known.contains(name));
        match first {
            Some((name, _)) if !behind(&name) => {
                let again = lines[i + 1..own].iter().any(|l| assigned(l).is_some_and(|(other, _)| other == name));
                let word = if again { "let mut" } else { "let" };
                out.push(format!("{}{word} {}", &line[..indent(line)], line.trim()));
                known.push(name);
            }
            _ => out.push((*line).to_owned()),
        }
    }
    out
}

/// A function's lines with `let` where a name is given a value first.
fn declared(lines: &[String], arguments: &[(String, String)]) -> Vec<String> {
    let own = lines.iter().map(|l| indent(l)).min().unwrap_or(0);
    let mut known: Vec<String> = arguments.iter().map(|(name, _)| name.clone()).collect();
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        match assigned(line) {
            Some((name, true)) if indent(line) == own && !known.contains(&name) => {
                let again = lines[i + 1..].iter().any(|l| assigned(l).is_some_and(|(other, _)| other == name));
                let word = if again { "let mut" } else { "let" };
                out.push(format!("{}{word} {}", &line[..indent(line)], line.trim()));
                known.push(name);
            }
            _ => out.push(line.clone()),
        }
    }
    out
}

/// What stands for a statement that Rust has not, of which rustc knows the first word only as a name.
pub(super) fn statement(line: &str) -> Option<String> {
    let (word, rest) = line.split_once([' ', ':']).unwrap_or((line, ""));
    let rest = rest.trim_end_matches([';', ':']).trim();
    Some(match word {
        "del" if !rest.is_empty() => {
            let dropped: Vec<String> = rest.split(',').map(|name| format!("drop({});", name.trim())).collect();
            format!("{IN_RUST}`{}`", dropped.join(" "))
        }
        "raise" => {
            let words = Words::of(rest);
            let text = (0..words.len()).find(|&i| words.kind(i) == Some(Kind::Literal));
            let text = text.and_then(|i| of_quotation(words.word(i))).unwrap_or("…".to_owned());
            format!(
                "{IN_RUST}`panic!(\"{text}\")`; a function that gives a `Result` says `return Err(\"{text}\".into())`"
            )
        }
        "try" | "except" => {
            "what may fail gives a `Result`: `match f() { Ok(y) => …, Err(e) => … }`, and `f()?` hands the error on"
                .to_owned()
        }
        "global" | "nonlocal" => {
            "a closure sees the variables around it, and a function takes what it changes: `fn f(n: &mut i64)`"
                .to_owned()
        }
        "elif" => format!("{IN_RUST}`else if {rest} {{}}`"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements() {
        for (line, said) in [
            ("del a, b", "in Rust: `drop(a); drop(b);`"),
            ("elif n > 3:", "in Rust: `else if n > 3 {}`"),
            (
                "raise ValueError('bad')",
                "in Rust: `panic!(\"bad\")`; a function that gives a `Result` says `return Err(\"bad\".into())`",
            ),
        ] {
            assert_eq!(statement(line).as_deref(), Some(said), "{line}");
        }
        assert_eq!(statement("delta = 3"), None);
        assert_eq!(statement("delta = 3"), None);
    }

    #[test]
    fn blocks_and_comments() {
        let ours = Ours::new(&String::new);
        for (python, rust) in [
            ("if done: break", "if done { break; }"),
            (
                "while True:\n    n += 1\n    if n > 3 and not done:\n        break",
                "loop { n += 1; if n > 3 && !done { break; } }",
            ),
            (
                "if a is None:\n  x = 1\nelif b or c:\n  x = 2\nelse:\n  pass\ny",
                "if a.is_none() { x = 1; } else if b || c { x = 2; } else {}",
            ),
            ("if x[0:2] == y:\n    # nothing\n    a, b = b, a", "if x[0:2] == y { (a, b) = (b, a); }"),
            (
                "if 'bias' in name and n not in seen:\n    f(n)",
                "if name.contains(\"bias\") && !seen.contains(&n) { f(n); }",
            ),
            ("while n < 3:\n    for i, v in all:\n        n += v", "while n < 3 { for (i, v) in all { n += v; } }"),
        ] {
            let code = lines_from(python, 0, &["elif", "else"]).and_then(|(_, lines)| block(&lines, &ours));
            assert_eq!(code.as_deref(), Some(rust), "{python}");
        }
        assert_eq!(around("if a { b } else { c: d }", 0, &ours), None);
        assert_eq!(around("let x: f64 = 3", 0, &ours), None);
        assert_eq!(comment("x;\n  # a note", 7), Some((5..13, "// a note".to_owned())));
        assert_eq!(comment("#[derive(Debug)]", 3), None);
    }

    #[test]
    fn functions() {
        let ours = Ours::new(&String::new);
        for (python, rust) in [
            ("def f(x): return x + 1", "fn f(x: &Tensor) -> Tensor { return x + 1; }"),
            (
                "def f(x, y=2):\n    z = x\n    return z\nf(1)",
                "fn f(x: &Tensor, y: i64) -> Tensor { let z = x; return z; }",
            ),
            ("def forward(self, x):\n    pass", "fn forward(&self, x: &Tensor) {}"),
            (
                "def f(n: int, lr=1e-3) -> float:\n    s = 0.0\n    for i in v:\n        s += i\n    return s * lr",
                "fn f(n: i64, lr: f64) -> f64 { let mut s = 0.0; for i in v { s += i; } return s * lr; }",
            ),
        ] {
            assert_eq!(function(python, 2, &ours).map(|(_, code)| code).as_deref(), Some(rust), "{python}");
        }
        assert_eq!(function("def f", 0, &ours), None);
    }
}
