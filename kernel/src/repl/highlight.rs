//! Colours for Rust in the line editor: a small lexer, forgiving of text that is not finished yet.

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
    if code.starts_with("//") {
        return (Kind::Comment, to_line_end());
    }
    if code.starts_with("/*") {
        return (Kind::Comment, block_comment(code));
    }
    if let Some(length) = string(code) {
        return (Kind::Text, length);
    }
    if first == '\'' {
        return quote(code);
    }
    if first.is_ascii_digit() {
        return (Kind::Number, number(code));
    }
    if first.is_alphabetic() || first == '_' {
        let length = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
        let (word, tail) = code.split_at(length);
        return match tail.as_bytes() {
            _ if KEYWORDS.contains(&word) => (Kind::Keyword, length),
            [b'!', then, ..] if *then != b'=' => (Kind::Macro, length + 1),
            [b'!'] => (Kind::Macro, length + 1),
            _ if first.is_uppercase() => (Kind::Type, length),
            [b'(', ..] => (Kind::Call, length),
            _ => (Kind::Plain, length),
        };
    }
    (Kind::Plain, first.len_utf8())
}

/// A string literal of any kind; one that is not closed yet reaches to the end.
fn string(code: &str) -> Option<usize> {
    let letters = code.find(|c: char| !matches!(c, 'b' | 'c' | 'r')).filter(|n| *n <= 2)?;
    let (prefix, body) = code.split_at(letters);
    if prefix.contains('r') {
        let hashes = body.len() - body.trim_start_matches('#').len();
        let inner = body[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let length = inner.find(&close).map_or(inner.len(), |at| at + close.len());
        return Some(letters + hashes + 1 + length);
    }
    let inner = body.strip_prefix('"')?;
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(letters + 1 + at + 1),
            _ => {}
        }
    }
    Some(code.len())
}

/// A character literal, or a lifetime.
fn quote(code: &str) -> (Kind, usize) {
    let mut chars = code.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), _) => {
            let end = code[2..].char_indices().skip(1).find(|(_, c)| *c == '\'');
            (Kind::Text, end.map_or(code.len(), |(at, _)| 2 + at + 1))
        }
        (Some(_), Some((at, '\''))) => (Kind::Text, at + 1),
        _ => {
            let name = code[1..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len() - 1);
            (Kind::Lifetime, 1 + name)
        }
    }
}

/// `1_000`, `0xff`, `1.5e-3f32`; the dots of `0..n` and `1.max(2)` are not part of it.
fn number(code: &str) -> usize {
    let bytes = code.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let b = bytes[at];
        let exponent_sign = matches!(b, b'+' | b'-') && matches!(bytes[at - 1], b'e' | b'E') && !code.starts_with("0x");
        let point = b == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) && !code[..at].contains('.');
        if !(b.is_ascii_alphanumeric() || b == b'_' || exponent_sign || point) {
            break;
        }
        at += 1;
    }
    at
}

fn block_comment(code: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < code.len() {
        let rest = &code[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::plain_unless;

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
