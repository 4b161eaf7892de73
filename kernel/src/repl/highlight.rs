//! Colours for Rust in the line editor, by rustc's lexer, which is forgiving of text that is not finished yet.
use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

/// The text with ANSI colours; its visible characters stay the same.
pub fn coloured(code: &str) -> String {
    let mut out = String::with_capacity(code.len() * 2);
    let mut rest = code;
    let mut line_start = true;
    while !rest.is_empty() {
        let (kind, length) = next(rest, line_start);
        let (token, tail) = rest.split_at(length);
        match kind.colour() {
            // A line editor may cut the text at its line ends, so no colour reaches over one.
            Some(colour) => {
                for piece in token.split_inclusive('\n') {
                    let text = piece.trim_end_matches('\n');
                    out.push_str(&format!("\x1b[{colour}m{text}\x1b[0m{}", &piece[text.len()..]));
                }
            }
            None => out.push_str(token),
        }
        line_start = token.ends_with('\n') || (line_start && token.trim().is_empty());
        rest = tail;
    }
    out
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Keyword,
    Type,
    Macro,
    Call,
    Text,
    Number,
    Comment,
    Lifetime,
    Magic,
    Plain,
}

impl Kind {
    fn colour(self) -> Option<&'static str> {
        match self {
            Kind::Keyword => Some("35"),
            Kind::Type => Some("33"),
            Kind::Macro | Kind::Call => Some("34"),
            Kind::Text => Some("32"),
            Kind::Number | Kind::Lifetime => Some("36"),
            Kind::Comment => Some("90"),
            Kind::Magic => Some("1;36"),
            Kind::Plain => None,
        }
    }
}

const KEYWORDS: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false", "fn",
    "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "Self",
    "static", "struct", "super", "trait", "true", "type", "unsafe", "use", "where", "while",
];

/// The first token and its length in bytes, at least one character.
fn next(code: &str, line_start: bool) -> (Kind, usize) {
    let first = code.chars().next().expect("the caller has text left");
    let to_line_end = || code.find('\n').unwrap_or(code.len());
    if line_start && (first == '%' || first == '!') {
        // Of a magic, the name alone is coloured: Rust may follow. A command is a language of its own.
        let name = code.find(char::is_whitespace).unwrap_or(code.len());
        return (Kind::Magic, if first == '!' { to_line_end() } else { name });
    }
    let Some(token) = tokenize(code, FrontmatterAllowed::No).next() else { return (Kind::Plain, first.len_utf8()) };
    let length = token.len as usize;
    let kind = match token.kind {
        TokenKind::LineComment { .. } | TokenKind::BlockComment { .. } => Kind::Comment,
        TokenKind::Literal { kind: LiteralKind::Int { .. } | LiteralKind::Float { .. }, .. } => Kind::Number,
        TokenKind::Literal { .. } => Kind::Text,
        TokenKind::Lifetime { .. } | TokenKind::RawLifetime | TokenKind::UnknownPrefixLifetime => Kind::Lifetime,
        TokenKind::Ident | TokenKind::RawIdent | TokenKind::InvalidIdent | TokenKind::UnknownPrefix => {
            let (word, tail) = code.split_at(length);
            match tail.as_bytes() {
                _ if KEYWORDS.contains(&word) => Kind::Keyword,
                [b'!', then, ..] if *then != b'=' => return (Kind::Macro, length + 1),
                [b'!'] => return (Kind::Macro, length + 1),
                _ if first.is_uppercase() => Kind::Type,
                [b'(', ..] => Kind::Call,
                _ => Kind::Plain,
            }
        }
        _ => Kind::Plain,
    };
    (kind, length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::plain_unless;

    fn tokens(code: &str) -> Vec<(Kind, &str)> {
        let (mut rest, mut found, mut line_start) = (code, Vec::new(), true);
        while !rest.is_empty() {
            let (kind, length) = next(rest, line_start);
            if kind != Kind::Plain {
                found.push((kind, &rest[..length]));
            }
            line_start = rest[..length].ends_with('\n');
            rest = &rest[length..];
        }
        found
    }

    #[test]
    fn tokens_are_told_apart() {
        use Kind::*;
        assert_eq!(
            tokens(r#"let x: Vec<u8> = vec![1_0.5e-3, 0xff]; // end"#),
            [
                (Keyword, "let"),
                (Type, "Vec"),
                (Macro, "vec!"),
                (Number, "1_0.5e-3"),
                (Number, "0xff"),
                (Comment, "// end")
            ]
        );
        assert_eq!(
            tokens(r###"f('a', '\'', "q\"", r#"a"b"#, b"z", &'a str)"###),
            [
                (Call, "f"),
                (Text, "'a'"),
                (Text, r"'\''"),
                (Text, r#""q\"""#),
                (Text, r###"r#"a"b"#"###),
                (Text, "b\"z\""),
                (Lifetime, "'a"),
            ]
        );
        assert_eq!(tokens("0..n != 1.max(2)"), [(Number, "0"), (Number, "1"), (Call, "max"), (Number, "2")]);
        assert_eq!(tokens("%time f()\n!ls 'x"), [(Magic, "%time"), (Call, "f"), (Magic, "!ls 'x")]);
        assert_eq!(tokens("a != b"), []);
        assert_eq!(tokens("/* a /* b */ c */ if"), [(Comment, "/* a /* b */ c */"), (Keyword, "if")]);
    }

    #[test]
    fn every_beginning_of_a_text_keeps_its_characters() {
        let code = "fn größe<'a>() -> &'a str { r#\"x\ny\"#; '\\u{1F980}'; \"\\\"日本\" } /* a\n /* b */\n */ 1e5 '";
        for (at, _) in code.char_indices() {
            assert_eq!(plain_unless(false, &coloured(&code[..at])), &code[..at]);
        }
    }
}
