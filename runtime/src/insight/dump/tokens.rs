//! MLIR text as tokens.
use super::module::Unread;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'a> {
    pub text: &'a str,
    /// Where it begins, in bytes.
    pub at: usize,
    /// From 1.
    pub line: u32,
    /// It is the first one of its line.
    pub first: bool,
    /// Nothing stands between it and the one before.
    pub joined: bool,
}

impl Token<'_> {
    pub fn is_value(&self) -> bool {
        self.text.starts_with('%')
    }

    pub fn is_string(&self) -> bool {
        self.text.starts_with('"')
    }

    pub fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }
}

/// The inside of a string, with `\n`, `\"` and `\41` as what they stand for.
pub(super) fn unquoted(text: &str) -> String {
    let text = text.strip_prefix('"').unwrap_or(text);
    let text = text.strip_suffix('"').unwrap_or(text);
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let [c, more @ ..] = rest {
        rest = more;
        match (c, rest) {
            (b'\\', [a, b, more @ ..]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {
                let digit = |c: &u8| (*c as char).to_digit(16).unwrap_or(0) as u8;
                out.push(digit(a) << 4 | digit(b));
                rest = more;
            }
            (b'\\', [c, more @ ..]) => {
                out.push(if *c == b'n' { b'\n' } else { *c });
                rest = more;
            }
            _ => out.push(*c),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The tokens of a text: words with their dots, values, strings, numbers, and single signs but for `->`.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Unread> {
    let bytes = text.as_bytes();
    let (mut out, mut at, mut line, mut first, mut end) = (Vec::new(), 0, 1u32, true, usize::MAX);
    while at < bytes.len() {
        let c = bytes[at];
        if c == b'\n' {
            (line, first) = (line + 1, true);
            at += 1;
            continue;
        }
        if c.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if text[at..].starts_with("//") {
            at += text[at..].find('\n').unwrap_or(text.len() - at);
            continue;
        }
        let quoted = |at: usize| string(&bytes[at..]).ok_or_else(|| Unread { line, why: "a string has no end".into() });
        let length = match c {
            b'"' => quoted(at)?,
            b'-' if bytes.get(at + 1) == Some(&b'>') => 2,
            b'%' | b'@' | b'#' | b'^' | b'!' => match bytes.get(at + 1) {
                Some(b'"') => 1 + quoted(at + 1)?,
                _ => 1 + word(&bytes[at + 1..]),
            },
            _ if is_word(c) => word(&bytes[at..]),
            _ => text[at..].chars().next().map_or(1, char::len_utf8),
        };
        out.push(Token { text: &text[at..at + length], at, line, first, joined: end == at });
        first = false;
        line += text[at..at + length].bytes().filter(|b| *b == b'\n').count() as u32;
        at += length;
        end = at;
    }
    Ok(out)
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'$')
}

fn word(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|c| is_word(**c)).count()
}

/// How long the string is that begins here.
fn string(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}
