//! rustc's lexer, which never fails, so it can look at code that is still being typed.
use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};
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

/// Splits text into tokens as rustc does; white space lies between them.
pub fn tokens(text: &str) -> Vec<Token> {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(token) = tokenize(&text[at..], FrontmatterAllowed::No).next() {
        let first = text[at..].chars().next().unwrap_or_default();
        let range = at..at + token.len as usize;
        let ends = |terminated: bool| !terminated && range.end == text.len();
        let mut end = range.end;
        let (kind, open_ended) = match token.kind {
            TokenKind::Whitespace => {
                at = end;
                continue;
            }
            TokenKind::LineComment { .. } => (Kind::Comment, false),
            TokenKind::BlockComment { terminated, .. } => (Kind::Comment, ends(terminated)),
            TokenKind::Ident
            | TokenKind::InvalidIdent
            | TokenKind::RawIdent
            | TokenKind::ForcedKeywordIdent
            | TokenKind::UnknownPrefix => (Kind::Ident, false),
            TokenKind::Lifetime { .. } | TokenKind::RawLifetime | TokenKind::UnknownPrefixLifetime => {
                (Kind::Lifetime, false)
            }
            TokenKind::Literal { kind: LiteralKind::Int { .. } | LiteralKind::Float { .. }, .. } => {
                (Kind::Number, false)
            }
            TokenKind::Literal { kind, .. } => (Kind::Literal, ends(is_terminated(kind))),
            TokenKind::OpenParen | TokenKind::OpenBrace | TokenKind::OpenBracket => (Kind::Open(first), false),
            TokenKind::CloseParen | TokenKind::CloseBrace | TokenKind::CloseBracket => (Kind::Close(first), false),
            // One sign, also of the two that edition 2024 keeps for itself.
            _ => {
                end = at + first.len_utf8();
                (Kind::Punct(first), false)
            }
        };
        out.push(Token { kind, range: at..end, open_ended });
        at = end;
    }
    out
}

fn is_terminated(kind: LiteralKind) -> bool {
    match kind {
        LiteralKind::Char { terminated }
        | LiteralKind::Byte { terminated }
        | LiteralKind::Str { terminated }
        | LiteralKind::ByteStr { terminated }
        | LiteralKind::CStr { terminated } => terminated,
        LiteralKind::RawStr { n_hashes } | LiteralKind::RawByteStr { n_hashes } | LiteralKind::RawCStr { n_hashes } => {
            n_hashes.is_some()
        }
        LiteralKind::Int { .. } | LiteralKind::Float { .. } => true,
    }
}

fn word(rest: &str) -> usize {
    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
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

/// The brackets that are open at the end, the outermost first; none where one is closed that is not open.
pub fn open_brackets(tokens: &[Token]) -> Option<Vec<char>> {
    let mut open = Vec::new();
    for token in tokens {
        match token.kind {
            Kind::Open(c) => open.push(c),
            Kind::Close(c) if open.pop().is_some_and(|o| closing(o) == c) => {}
            Kind::Close(_) => return None,
            _ => {}
        }
    }
    Some(open)
}

/// What closes these brackets.
pub fn closers(open: &[char]) -> String {
    open.iter().rev().map(|c| closing(*c)).collect()
}

fn closing(open: char) -> char {
    match open {
        '(' => ')',
        '[' => ']',
        _ => '}',
    }
}

/// Whether these words stand before the name somewhere.
pub fn follows(text: &str, words: &[&str], name: &str) -> bool {
    let all: Vec<&str> = tokens(text).into_iter().map(|t| &text[t.range]).collect();
    all.windows(words.len() + 1).any(|w| w[..words.len()] == *words && w[words.len()] == name)
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
        assert_eq!(kinds("1e-3 2.5E+7f64 4. b'{' b'\\'' 0b_1"), [Number, Number, Number, Literal, Literal, Number]);
        assert_eq!(
            kinds("##\"a\" 'static 'r#a é x\"y\""),
            [Punct('#'), Punct('#'), Literal, Lifetime, Lifetime, Ident, Ident, Literal]
        );
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
