//! JSON as text (RFC 8259): written on one line, and read.
use super::value::{Map, Number, Value};
use std::fmt::{self, Display, Write as _};

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Number(Number::Whole(n)) => write!(f, "{n}"),
            // As few digits as say which number it is.
            Value::Number(Number::Float(v)) => write!(f, "{v:?}"),
            Value::String(s) => quoted(f, s),
            Value::Array(items) => {
                f.write_char('[')?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { "," } else { "" })?;
                }
                f.write_char(']')
            }
            Value::Object(fields) => {
                f.write_char('{')?;
                for (i, (key, value)) in fields.iter().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    quoted(f, key)?;
                    write!(f, ":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        f.write_str(&rest[..at])?;
        match rest.as_bytes()[at] {
            b'\n' => f.write_str("\\n")?,
            b'\r' => f.write_str("\\r")?,
            b'\t' => f.write_str("\\t")?,
            c @ (b'"' | b'\\') => write!(f, "\\{}", char::from(c))?,
            c => write!(f, "\\u{c:04x}")?,
        }
        rest = &rest[at + 1..];
    }
    f.write_str(rest)?;
    f.write_char('"')
}

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    what: String,
    line: usize,
    /// In bytes, from 1.
    column: usize,
}

impl Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {}, column {}", self.what, self.line, self.column)
    }
}

impl std::error::Error for Wrong {}

/// How deep lists and objects may lie in each other.
const DEEPEST: usize = 128;

/// A text as JSON. Of a key that comes twice the last value counts.
pub(crate) fn parse(text: impl AsRef<[u8]>) -> Result<Value, Wrong> {
    let mut reader = Reader { text: text.as_ref(), at: 0, deep: 0, twice: true };
    let value = reader.value()?;
    reader.ends()?;
    Ok(value)
}

/// The text of an object: its keys and values in their order, with what comes twice; in the values nothing may.
pub(crate) fn entries(text: &[u8]) -> Result<Vec<(String, Value)>, Wrong> {
    let mut reader = Reader { text, at: 0, deep: 0, twice: false };
    let mut out = Vec::new();
    reader.blank();
    if reader.peek() != Some(b'{') {
        return Err(reader.wrong("an object is expected"));
    }
    reader.object(&mut |reader, key| {
        let value = reader.value().map_err(|w| Wrong { what: format!("`{key}`: {}", w.what), ..w })?;
        out.push((key, value));
        Ok(())
    })?;
    reader.ends()?;
    Ok(out)
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    deep: usize,
    /// A key may come twice in an object.
    twice: bool,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn wrong(&self, what: impl Into<String>) -> Wrong {
        let (what, before) = (what.into(), &self.text[..self.at]);
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
        let ends = self.at == self.text.len();
        Wrong { what: if ends { format!("{what}, and it ends") } else { what }, line, column }
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn ends(&mut self) -> Result<(), Wrong> {
        self.blank();
        if self.at < self.text.len() { Err(self.wrong("nothing more is expected")) } else { Ok(()) }
    }

    /// Goes on if that comes next.
    fn takes(&mut self, text: &str) -> bool {
        let next = self.text[self.at..].starts_with(text.as_bytes());
        self.at += if next { text.len() } else { 0 };
        next
    }

    fn value(&mut self) -> Result<Value, Wrong> {
        self.blank();
        match self.peek() {
            Some(b'{') => {
                let (mut fields, twice) = (Map::new(), self.twice);
                self.object(&mut |reader, key| {
                    let value = reader.value()?;
                    match fields.insert(key.clone(), value) {
                        Some(_) if !twice => Err(reader.wrong(format!("duplicate field `{key}`"))),
                        _ => Ok(()),
                    }
                })?;
                Ok(Value::Object(fields))
            }
            Some(b'[') => {
                let mut items = Vec::new();
                self.each("]", &mut |reader| {
                    items.push(reader.value()?);
                    Ok(())
                })?;
                Ok(Value::Array(items))
            }
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ if self.takes("null") => Ok(Value::Null),
            _ if self.takes("true") => Ok(Value::Bool(true)),
            _ if self.takes("false") => Ok(Value::Bool(false)),
            _ => Err(self.wrong("a value is expected")),
        }
    }

    /// Goes through what stands in brackets, from the one that opens them.
    fn each(&mut self, close: &str, one: &mut dyn FnMut(&mut Self) -> Result<(), Wrong>) -> Result<(), Wrong> {
        if self.deep == DEEPEST {
            return Err(self.wrong(format!("lists and objects lie more than {DEEPEST} deep in each other")));
        }
        (self.deep, self.at) = (self.deep + 1, self.at + 1);
        self.blank();
        let mut closed = self.takes(close);
        while !closed {
            one(self)?;
            self.blank();
            closed = self.takes(close);
            if !closed && !self.takes(",") {
                return Err(self.wrong(format!("`,` or `{close}` is expected")));
            }
        }
        self.deep -= 1;
        Ok(())
    }

    /// Goes through an object; each value is read by who is told its key.
    fn object(&mut self, entry: &mut dyn FnMut(&mut Self, String) -> Result<(), Wrong>) -> Result<(), Wrong> {
        self.each("}", &mut |reader| {
            reader.blank();
            if reader.peek() != Some(b'"') {
                return Err(reader.wrong("a key in quotes is expected"));
            }
            let key = reader.string()?;
            reader.blank();
            if !reader.takes(":") {
                return Err(reader.wrong("`:` is expected"));
            }
            entry(reader, key)
        })
    }

    fn number(&mut self) -> Result<Value, Wrong> {
        let start = self.at;
        self.takes("-");
        if !self.takes("0") {
            self.digits()?;
        }
        let mut whole = true;
        if self.takes(".") {
            (whole, _) = (false, self.digits()?);
        }
        if self.takes("e") || self.takes("E") {
            whole = false;
            let _sign = self.takes("+") || self.takes("-");
            self.digits()?;
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        let fits = |n: &i128| (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(n);
        if let Some(n) = text.parse().ok().filter(fits).filter(|_| whole && text != "-0") {
            return Ok(Value::Number(Number::Whole(n)));
        }
        match text.parse() {
            Ok(v) if f64::is_finite(v) => Ok(Value::Number(Number::Float(v))),
            _ => Err(self.wrong("the number is out of range")),
        }
    }

    fn digits(&mut self) -> Result<(), Wrong> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.wrong("a digit is expected")) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<String, Wrong> {
        self.at += 1;
        let mut out: Vec<u8> = Vec::new();
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let c = self.escape()?;
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Some(0..0x20) => return Err(self.wrong("a control character stands in a text")),
                Some(b) => {
                    out.push(b);
                    self.at += 1;
                }
                None => return Err(self.wrong("a text has no end")),
            }
        }
        self.at += 1;
        String::from_utf8(out).map_err(|_| self.wrong("a text is not UTF-8"))
    }

    fn escape(&mut self) -> Result<char, Wrong> {
        const NAMED: [(&str, char); 8] = [
            ("\\\"", '"'),
            ("\\\\", '\\'),
            ("\\/", '/'),
            ("\\b", '\u{8}'),
            ("\\f", '\u{c}'),
            ("\\n", '\n'),
            ("\\r", '\r'),
            ("\\t", '\t'),
        ];
        if let Some((_, c)) = NAMED.into_iter().find(|(text, _)| self.takes(text)) {
            return Ok(c);
        }
        let first = self.unit()?;
        let code = match first {
            0xd800..0xdc00 => match self.unit()? {
                second @ 0xdc00..0xe000 => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                _ => return Err(self.wrong("half of a character stands alone")),
            },
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.wrong("half of a character stands alone"))
    }

    /// `\u` and four digits.
    fn unit(&mut self) -> Result<u32, Wrong> {
        if !self.takes("\\u") {
            return Err(self.wrong("an escape is expected"));
        }
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|d| std::str::from_utf8(d).ok());
        let code = digits.and_then(|d| u32::from_str_radix(d, 16).ok());
        let code = code.ok_or_else(|| self.wrong("four hexadecimal digits are expected"))?;
        self.at += 4;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::drawn::{drawn, spoilt};

    /// The same in both, as serde_json has it; `None` where neither takes it.
    fn as_serde_has_it(text: &[u8]) -> Option<String> {
        let ours = parse(text);
        let theirs = serde_json::from_slice::<serde_json::Value>(text);
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?}: {ours:?}, {theirs:?}", String::from_utf8_lossy(text));
        let (ours, theirs) = (ours.ok()?.to_string(), theirs.ok()?);
        let again: serde_json::Value = serde_json::from_str(&ours).expect("what is written");
        assert_eq!(again, theirs, "{ours}");
        assert_eq!(parse(&ours).expect("what is written").to_string(), ours);
        Some(ours)
    }

    #[test]
    fn texts_are_what_serde_json_says() {
        for text in [
            r#"{"a": [1, -2.5, 1e-7, 1E+20, true, false, null], "b": {}, "c": [], "é😀\u00e9\ud83d\ude00\n\"\\\/\b": "\u0001"}"#,
            "18446744073709551615",
            "-9223372036854775808",
            "18446744073709551616",
            "-0",
            "0.1",
            "123456789012345680000",
            "5e-324",
            " [ ] ",
        ] {
            assert!(as_serde_has_it(text.as_bytes()).is_some(), "{text}");
        }
        let deep = |n: usize| ["[".repeat(n), "]".repeat(n)].concat();
        for text in [
            "",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "1e999",
            "nul",
            "[1,]",
            "{\"a\" 1}",
            "{a:1}",
            "\"\\ud83d\"",
            "\"\\x\"",
            "[1] 2",
            "\"\n\"",
            "\"a",
        ] {
            assert!(as_serde_has_it(text.as_bytes()).is_none(), "{text}");
        }
        assert!(parse(deep(DEEPEST)).is_ok() && parse(deep(100_000)).is_err());
    }

    #[test]
    fn drawn_texts_are_what_serde_json_says() {
        let mut below = drawn();
        let good = r#"{"k":"v\u00e9\ud83d\ude00","a":[1,-2.5e3,{"b":null}],"é":true,"n":18446744073709551615}"#;
        let pieces = [
            "\"", "\\", "\\u", "\\ud83d", "{", "}", "[", "]", ",", ":", "0", "-1", "1e9", ".5", "é", "\0", " ", "null",
        ];
        let mut read = 0;
        for _ in 0..50_000 {
            let text = spoilt(good, &pieces, &mut below);
            read += usize::from(as_serde_has_it(&text).is_some());
        }
        assert!(read > 500, "{read}");
    }

    #[test]
    fn what_is_wrong_says_where() {
        let wrong = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(wrong("{\n  \"a\": 1\n  \"b\": 2\n}"), "`,` or `}` is expected at line 3, column 3");
        assert_eq!(wrong("[1, 2"), "`,` or `]` is expected, and it ends at line 1, column 6");
        let twice = entries(br#"{"a": {"b": 1, "b": 2}}"#).unwrap_err().to_string();
        assert_eq!(twice, "`a`: duplicate field `b` at line 1, column 22");
        let order = entries(br#"{"b": 1, "a": 2, "b": 3}"#).unwrap();
        assert_eq!(order.iter().map(|(key, _)| &**key).collect::<String>(), "bab");
    }
}
