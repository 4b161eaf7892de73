//! A tolerant tokenizer: it never fails, so it can look at code that is still being typed.
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Ident,
    Number,
    /// Any string, character or byte literal.
    Literal,
    Lifetime,
    Comment,
    Open(char),
    Close(char),
    Punct(char),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub kind: Kind,
    pub range: Range<usize>,
    /// The text ended inside this literal or comment.
    pub open_ended: bool,
}

/// Splits text into tokens; white space lies between them.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let (kind, len, open_ended) = if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        } else if rest.starts_with("//") {
            (Kind::Comment, rest.find('\n').unwrap_or(rest.len()), false)
        } else if rest.starts_with("/*") {
            let (len, open) = block_comment(rest);
            (Kind::Comment, len, open)
        } else if let '"' | 'b' | 'c' | 'r' = c
            && let Some((len, open)) = string(rest)
        {
            (Kind::Literal, len, open)
        } else if c == '\'' {
            quote(rest)
        } else if c.is_alphabetic() || c == '_' {
            (Kind::Ident, word(rest.strip_prefix("r#").map_or(rest, |_| &rest[2..])) + raw_prefix(rest), false)
        } else if c.is_ascii_digit() {
            (Kind::Number, number(rest), false)
        } else {
            let kind = match c {
                '(' | '[' | '{' => Kind::Open(c),
                ')' | ']' | '}' => Kind::Close(c),
                _ => Kind::Punct(c),
            };
            (kind, c.len_utf8(), false)
        };
        out.push(Token { kind, range: at..at + len, open_ended });
        at += len;
    }
    out
}

fn raw_prefix(rest: &str) -> usize {
    if rest.starts_with("r#") { 2 } else { 0 }
}

fn word(rest: &str) -> usize {
    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
}

fn number(rest: &str) -> usize {
    let whole = word(rest);
    // `1.5` and `1.` are numbers, `1..2` and `1.max(2)` are not.
    match rest[whole..].strip_prefix('.') {
        Some(fraction) if fraction.starts_with(|c: char| c.is_ascii_digit()) => whole + 1 + word(fraction),
        _ => whole,
    }
}

fn block_comment(rest: &str) -> (usize, bool) {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return (at, false);
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    (rest.len(), true)
}

/// `"…"`, `b"…"`, `c"…"`, `r"…"`, `br#"…"#`…
fn string(rest: &str) -> Option<(usize, bool)> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|p| {
        rest.strip_prefix(p).is_some_and(|r| {
            r.starts_with('"') || (p.ends_with('r') && r.trim_start_matches('#').starts_with('"') && r.starts_with('#'))
        })
    })?;
    let body = &rest[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = body.len() - body.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let start = prefix.len() + hashes + 1;
        return Some(match rest[start..].find(&end) {
            Some(i) => (start + i + end.len(), false),
            None => (rest.len(), true),
        });
    }
    let mut escaped = false;
    for (i, c) in body.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some((prefix.len() + i + 1, false)),
            _ => {}
        }
    }
    Some((rest.len(), true))
}

/// A character literal or a lifetime.
fn quote(rest: &str) -> (Kind, usize, bool) {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            let end = rest[3.min(rest.len())..].find('\'').map(|i| i + 4);
            (Kind::Literal, end.unwrap_or(rest.len()), end.is_none())
        }
        Some((_, c)) => match chars.next() {
            Some((i, '\'')) => (Kind::Literal, i + 1, false),
            _ if c.is_alphabetic() || c == '_' => (Kind::Lifetime, 1 + word(&rest[1..]), false),
            _ => (Kind::Punct('\''), 1, false),
        },
        None => (Kind::Punct('\''), 1, false),
    }
}

/// The partner of an opening delimiter; the end where it has none.
pub fn close(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (i, t) in tokens.iter().enumerate().skip(open) {
        match t.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth -= 1,
            _ => {}
        }
        if depth <= 0 {
            return i;
        }
    }
    tokens.len()
}

/// Every name in the text, the ones inside format strings (`"{name}"`) included. A superset of what is really meant.
pub fn mentions(text: &str) -> std::collections::BTreeSet<String> {
    let mut names = std::collections::BTreeSet::new();
    for token in tokens(text) {
        let part = &text[token.range.clone()];
        match token.kind {
            Kind::Ident => {
                names.insert(part.to_owned());
            }
            Kind::Literal => {
                for piece in part.split('{').skip(1) {
                    let name = &piece[..word(piece)];
                    if name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                        names.insert(name.to_owned());
                        // `"{type}"` means a variable of that name, which is written `r#type` elsewhere.
                        names.insert(format!("r#{name}"));
                    }
                    // `{:width$}` and `{:.precision$}` name variables too.
                    for part in piece.split('$').take(piece.matches('$').count()) {
                        let start = part.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |i| i + 1);
                        names.insert(part[start..].to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    names
}

/// The first thing that has no end or no beginning: where, what to say, and what to write below it.
pub fn unbalanced(text: &str) -> Option<(Range<usize>, String, &'static str)> {
    let mut open: Vec<(char, Range<usize>)> = Vec::new();
    for t in tokens(text) {
        if t.open_ended {
            let what = if t.kind == Kind::Comment { "comment" } else { "literal" };
            let start = t.range.start..t.range.start + text[t.range.start..].chars().next().map_or(1, char::len_utf8);
            return Some((start, format!("this {what} has no end"), "it starts here"));
        }
        match t.kind {
            Kind::Open(c) => open.push((c, t.range)),
            Kind::Close(c) => match open.pop() {
                Some((o, _)) if matches!((o, c), ('(', ')') | ('[', ']') | ('{', '}')) => {}
                // Rather the one that was left open inside than the one that closes around it.
                Some((o, at)) if open.iter().any(|(o, _)| matches!((o, c), ('(', ')') | ('[', ']') | ('{', '}'))) => {
                    return Some((at, format!("unclosed delimiter: `{o}`"), "it is never closed"));
                }
                _ => return Some((t.range, format!("unexpected closing delimiter: `{c}`"), "it closes nothing")),
            },
            _ => {}
        }
    }
    let (c, at) = open.pop()?;
    Some((at, format!("unclosed delimiter: `{c}`"), "it is never closed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        tokens(text).into_iter().map(|t| t.kind).collect()
    }

    #[test]
    fn literals_lifetimes_and_comments() {
        use Kind::*;
        assert_eq!(kinds("'a' 'a '\\n' '\\u{1F600}' \"x\\\"y\""), [Literal, Lifetime, Literal, Literal, Literal]);
        assert_eq!(kinds("r#\"a\"b\"# r#type b\"x\" br\"\\\""), [Literal, Ident, Literal, Literal]);
        assert_eq!(kinds("/* a /* b */ c */ x // y"), [Comment, Ident, Comment]);
        assert_eq!(kinds("1.5 1..2"), [Number, Number, Punct('.'), Punct('.'), Number]);
        assert!(tokens("let s = \"abc").last().unwrap().open_ended);
        assert!(tokens("/* abc").last().unwrap().open_ended);
    }

    #[test]
    fn format_strings_mention_names() {
        let found = mentions(r#"println!("{total:>width$} {} {0}", y)"#);
        for name in ["println", "total", "width", "y"] {
            assert!(found.contains(name), "{name}");
        }
    }
}
