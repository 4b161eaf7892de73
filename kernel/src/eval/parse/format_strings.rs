//! Which literals in a macro's arguments are format strings, and which variables these name: those of the standard library's
//! macros and of well-known crates', and what the notebook's own macros hand on to them.
use super::expand::{Copied, Macro, expand};
use crate::eval::text::source::CellText;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::cell::Cell;
use std::ops::Range;

/// The macro of the notebook of a name.
pub type Rules<'m> = &'m dyn Fn(&str) -> Option<&'m Macro>;

/// How much the notebook's macros may make before nothing more is asked of them: one may call itself without end.
const MOST: usize = 1 << 16;
const DEEPEST: usize = 32;

#[derive(Clone, Copy)]
struct Depth<'l> {
    deep: usize,
    left: &'l Cell<usize>,
}

/// What is found in a macro's arguments.
#[derive(Debug, Default, PartialEq)]
pub struct Strings {
    /// Names of variables in format strings.
    pub captures: Vec<Range<usize>>,
    /// Names of arguments, as in `"{width}", width = 3`, which are no variables.
    pub named: Vec<Range<usize>>,
    formats: Vec<Range<usize>>,
    others: Vec<Range<usize>>,
}

/// Which argument is the format string.
fn position(name: &str) -> Option<usize> {
    match name {
        "format" | "format_args" | "print" | "println" | "eprint" | "eprintln" | "panic" | "todo" | "unimplemented"
        | "unreachable" => Some(0),
        "write" | "writeln" | "assert" | "debug_assert" => Some(1),
        "assert_eq"
        | "assert_ne"
        | "debug_assert_eq"
        | "debug_assert_ne"
        | "assert_matches"
        | "debug_assert_matches" => Some(2),
        // `anyhow`, `eyre`, `log`, `tracing`
        "anyhow" | "bail" | "eyre" | "trace" | "debug" | "info" | "warn" | "error" => Some(0),
        "ensure" => Some(1),
        _ => None,
    }
}

/// What the call of a macro with these arguments says in format strings. `text` is where the spans are of.
pub fn of_call(text: &str, name: &str, arguments: TokenStream, rules: Rules) -> Strings {
    let mut out = Strings::default();
    let left = Cell::new(MOST);
    out.call(text, name, arguments, rules, Depth { deep: 0, left: &left });
    out
}

impl Strings {
    fn tokens(&mut self, text: &str, tokens: TokenStream, rules: Rules, within: Depth) {
        let all: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < all.len() {
            match &all[at..] {
                [TokenTree::Ident(name), TokenTree::Punct(not), TokenTree::Group(g), ..] if not.as_char() == '!' => {
                    self.call(text, &name.to_string(), g.stream(), rules, within);
                    at += 2;
                }
                // Of an attribute.
                [TokenTree::Punct(p), TokenTree::Group(g), ..]
                    if p.as_char() == '#' && g.delimiter() == Delimiter::Bracket =>
                {
                    at += 1;
                }
                [TokenTree::Group(g), ..] => self.tokens(text, g.stream(), rules, within),
                [TokenTree::Literal(l), ..] => self.others.push(l.span().byte_range()),
                _ => {}
            }
            at += 1;
        }
    }

    fn call(&mut self, text: &str, name: &str, arguments: TokenStream, rules: Rules, within: Depth) {
        if let Some(own) = rules(name) {
            let within = Depth { deep: within.deep + 1, ..within };
            if within.deep < DEEPEST && within.left.get() > 0 {
                self.handed_on(text, own, arguments.clone(), rules, within);
            }
            // A macro that is called in the arguments says of its own which are its format strings.
            let mut inside = Strings::default();
            inside.tokens(text, arguments, rules, within);
            self.captures.extend(inside.captures);
            self.named.extend(inside.named);
            return;
        }
        let Some(position) = position(name) else { return self.tokens(text, arguments, rules, within) };
        let all: Vec<TokenTree> = arguments.into_iter().collect();
        let parts: Vec<&[TokenTree]> = all.split(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ',')).collect();
        let mut named = Vec::new();
        for part in &parts {
            let rest = match part {
                [TokenTree::Ident(i), TokenTree::Punct(p), rest @ ..]
                    if p.as_char() == '=' && !rest.is_empty() && p.spacing() == proc_macro2::Spacing::Alone =>
                {
                    named.push(i);
                    rest
                }
                all => all,
            };
            if !matches!(rest, [TokenTree::Literal(_)]) {
                self.tokens(text, rest.iter().cloned().collect(), rules, within);
            }
        }
        for (i, part) in parts.iter().enumerate() {
            let [TokenTree::Literal(literal)] = part else { continue };
            let at = literal.span().byte_range();
            if i != position {
                self.others.push(at);
                continue;
            }
            let free = |c: &Range<usize>| !named.iter().any(|n| text[c.clone()] == n.to_string());
            self.captures.extend(captures(&text[at.clone()], at.start).into_iter().filter(free));
            self.formats.push(at);
        }
        self.named.extend(named.iter().map(|n| n.span().byte_range()));
    }

    /// What a macro of the notebook makes of its arguments tells what they are.
    fn handed_on(&mut self, text: &str, own: &Macro, arguments: TokenStream, rules: Rules, within: Depth) {
        let mut spans = arguments.into_iter().map(|t| t.span().byte_range());
        let Some(first) = spans.next() else { return };
        let whole = first.start..spans.last().map_or(first.end, |s| s.end);
        let call = CellText::new(0, text);
        let Some(made) = expand(&own.source, own.range.clone(), &call, whole) else { return };
        within.left.set(within.left.get().saturating_sub(made.text.len() + 100));
        let Ok(tokens) = made.text.parse::<TokenStream>() else { return };
        let mut inside = Strings::default();
        inside.tokens(&made.text, tokens, rules, within);
        let back = |at: &Range<usize>| {
            let part = made.parts.partition_point(|(part, _)| part.end <= at.start);
            match made.parts.get(part) {
                Some((part, Copied::Call(start))) if part.start <= at.start && at.end <= part.end => {
                    Some(start + at.start - part.start..start + at.end - part.start)
                }
                _ => None,
            }
        };
        let from_call = |of: &[Range<usize>]| -> Vec<Range<usize>> { of.iter().filter_map(back).collect() };
        let others = from_call(&inside.others);
        // What is told as it stands besides stays as it stands.
        let formats: Vec<_> = from_call(&inside.formats).into_iter().filter(|f| !others.contains(f)).collect();
        let captures = from_call(&inside.captures);
        let in_one = |c: &Range<usize>| formats.iter().any(|f| f.start <= c.start && c.end <= f.end);
        self.captures.extend(captures.into_iter().filter(in_one));
        self.named.extend(from_call(&inside.named));
        self.formats.extend(formats);
        self.others.extend(others);
    }
}

/// Where a format string names variables: `{name}`, `{name:?}`, `{:width$}`, `{:.precision$}`.
fn captures(literal: &str, base: usize) -> Vec<Range<usize>> {
    let raw = literal.starts_with('r');
    // `b"…"` and numbers are no format strings.
    let Some(start) = literal.find('"').filter(|_| raw || literal.starts_with('"')) else { return Vec::new() };
    let end = literal.rfind('"').unwrap_or(literal.len());
    let is_name = |name: &str| name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let word = |at: usize| {
        let rest = &literal[at..end];
        at..at + rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
    };
    let (mut out, mut at) = (Vec::new(), start + 1);
    while at < end {
        let rest = &literal[at..end];
        let Some(c) = rest.chars().next() else { break };
        if c == '\\' && !raw {
            let unicode = rest.starts_with("\\u{").then(|| rest.find('}').map(|i| i + 1)).flatten();
            at += unicode.unwrap_or_else(|| 1 + rest[1..].chars().next().map_or(0, char::len_utf8));
        } else if rest.starts_with("{{") {
            at += 2;
        } else if c == '{' {
            let close = at + rest.find('}').unwrap_or(rest.len());
            let name = word(at + 1 + literal[at + 1..close].len() - literal[at + 1..close].trim_start().len());
            let mut spec = name.end;
            out.push(name);
            while spec < close {
                let mut name = word(spec);
                spec = name.end + literal[name.end..].chars().next().map_or(1, char::len_utf8);
                if literal[name.end..].starts_with('$') {
                    // A zero before it says what is filled in.
                    let digits = literal[name.clone()].find(|c: char| !c.is_ascii_digit());
                    name.start += digits.unwrap_or_default();
                    out.push(name);
                }
            }
            at = close + 1;
        } else {
            at += c.len_utf8();
        }
    }
    out.retain(|name| is_name(&literal[name.clone()]));
    out.into_iter().map(|n| n.start + base..n.end + base).collect()
}

#[cfg(test)]
mod tests {
    use super::super::split;
    use super::*;
    use std::sync::Arc;

    fn named(literal: &str) -> Vec<&str> {
        captures(literal, 0).into_iter().map(|c| &literal[c]).collect()
    }

    #[test]
    fn a_format_string_names_variables() {
        assert_eq!(named(r#""a {x} {y:?} {0} {} {{z}} {{{w}}}""#), ["x", "y", "w"]);
        assert_eq!(named(r#""{:>width$.prec$} {v:#0w$x} {:.*} { s }""#), ["width", "prec", "v", "w", "s"]);
        assert_eq!(named(r#""\u{78}x} \u{61}bc {x}\"{y}\\{z}""#), ["x", "y", "z"]);
        assert_eq!(named(r##"r#"{x}"\u{y}"#"##), ["x", "y"]);
        assert_eq!(named(r#"b"{x}""#), Vec::<&str>::new());
        assert_eq!(named("1.5"), Vec::<&str>::new());
    }

    #[test]
    fn only_format_strings_are_told() {
        let rules = r#"
            macro_rules! log { ($($t:tt)*) => { println!($($t)*) } }
            macro_rules! twice { ($a:expr) => { log!($a); log!($a) } }
            macro_rules! plain { ($a:expr) => { takes($a) } }
            macro_rules! both { ($a:expr) => { { println!($a); takes($a) } } }
            macro_rules! second { ($a:expr, $b:literal) => { { takes($a); assert!(true, $b) } } }
        "#;
        let cell = Arc::new(CellText::new(1, rules));
        let macros = split::parse(&cell, 0..rules.len(), &[]).unwrap().macros;
        let find = |name: &str| macros.iter().find(|m| m.name == name);
        for (text, expected) in [
            (r#"println!("{x}")"#, vec!["x"]),
            (r#"println!("{}", "{x}")"#, vec![]),
            (r#"println!("{x} {y}", x = 1)"#, vec!["y"]),
            (r#"println!("{}", takes("{x}"))"#, vec![]),
            (r#"println!("{}", format!("{x}"))"#, vec!["x"]),
            (r#"println!(r"{x}")"#, vec!["x"]),
            (r#"takes!("{x}")"#, vec![]),
            (r#"concat!("{x}", "{y}")"#, vec![]),
            (r#"vec![format!("{x}"), "{y}".into()]"#, vec!["x"]),
            (r#"write!("{a}", "{x}")"#, vec!["x"]),
            (r#"assert!(a == "{a}", "{x}")"#, vec!["x"]),
            (r#"assert_eq!("{a}", "{b}", "{x}")"#, vec!["x"]),
            (r#"log!("{x}", "{y}")"#, vec!["x"]),
            (r#"log!("{x} {y}", x = 3)"#, vec!["y"]),
            (r#"twice!("{x}")"#, vec!["x", "x"]),
            (r#"plain!("{x}")"#, vec![]),
            (r#"both!("{x}")"#, vec![]),
            (r#"second!("{x}", "{y}")"#, vec!["y"]),
            (r#"plain!(format!("{x}"))"#, vec!["x"]),
        ] {
            let call: syn::Macro = syn::parse_str(text).unwrap();
            let name = call.path.segments.last().unwrap().ident.to_string();
            let found = of_call(text, &name, call.tokens, &find);
            let mut found: Vec<&str> = found.captures.iter().map(|c| &text[c.clone()]).collect();
            if text != r#"twice!("{x}")"# {
                found.dedup();
            }
            assert_eq!(found, expected, "{text}");
        }
    }
}
