//! Reading JSON that xlazy wrote: reports of another process, checkpoints. `write` writes it.

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// What xlazy writes as a plain number is exact as a double.
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The value that a text holds; `None` where it is not JSON.
    pub fn parse(text: &str) -> Option<Json> {
        let mut p = Parser { bytes: text.as_bytes(), at: 0, depth: 0 };
        let value = p.value()?;
        p.space();
        (p.at == p.bytes.len()).then_some(value)
    }

    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    pub fn number(&self, key: &str) -> Option<f64> {
        match self.get(key)? {
            Json::Number(n) => Some(*n),
            _ => None,
        }
    }

    pub fn count(&self, key: &str) -> Option<u64> {
        self.number(key).filter(|n| *n >= 0.0).map(|n| n as u64)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Json::Text(s) => Some(s),
            _ => None,
        }
    }

    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            Json::Bool(b) => Some(*b),
            _ => None,
        }
    }

    pub fn list(&self, key: &str) -> &[Json] {
        match self.get(key) {
            Some(Json::List(items)) => items,
            _ => &[],
        }
    }
}

/// Deeper nesting than any report has; a limit, so that no text can exhaust the stack.
const DEEPEST: usize = 64;

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, word: &str) -> Option<()> {
        self.bytes[self.at..].starts_with(word.as_bytes()).then(|| self.at += word.len())
    }

    fn value(&mut self) -> Option<Json> {
        self.space();
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let value = match *self.bytes.get(self.at)? {
            b'{' => Json::Object(self.items(b'}', |p| {
                p.space();
                let key = p.string()?;
                p.space();
                p.take(":")?;
                Some((key, p.value()?))
            })?),
            b'[' => Json::List(self.items(b']', Parser::value)?),
            b'"' => Json::Text(self.string()?),
            b't' => self.take("true").map(|_| Json::Bool(true))?,
            b'f' => self.take("false").map(|_| Json::Bool(false))?,
            b'n' => self.take("null").map(|_| Json::Null)?,
            _ => self.number()?,
        };
        self.depth -= 1;
        Some(value)
    }

    fn items<T>(&mut self, end: u8, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.at += 1;
        let mut out = Vec::new();
        self.space();
        if self.bytes.get(self.at) == Some(&end) {
            self.at += 1;
            return Some(out);
        }
        loop {
            out.push(item(self)?);
            self.space();
            match self.next()? {
                b',' => {}
                b if b == end => return Some(out),
                _ => return None,
            }
        }
    }

    fn number(&mut self) -> Option<Json> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|b| b"+-.eE0123456789".contains(b)) {
            self.at += 1;
        }
        std::str::from_utf8(&self.bytes[start..self.at]).ok()?.parse().ok().map(Json::Number)
    }

    fn string(&mut self) -> Option<String> {
        self.take("\"")?;
        let mut out = Vec::new();
        loop {
            match self.next()? {
                b'"' => return String::from_utf8(out).ok(),
                b'\\' => {
                    let c = match self.next()? {
                        b'n' => '\n',
                        b't' => '\t',
                        b'r' => '\r',
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'u' => self.escaped()?,
                        c => c as char,
                    };
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                byte => out.push(byte),
            }
        }
    }

    /// The character of `\uXXXX`, or of two such that form a pair.
    fn escaped(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        self.take("\\u")?;
        let second = self.hex()?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + second.checked_sub(0xdc00)?)
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.bytes.get(self.at..self.at + 4)?;
        self.at += 4;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn values_are_read() {
        let v =
            Json::parse(r#" {"a": [1, -2.5e3, true, null], "b": {"c": "ü\n\"\u00e9\ud83d\ude00"}, "d": 7} "#).unwrap();
        assert_eq!(v.list("a")[1], Json::Number(-2500.0));
        assert_eq!(v.get("b").unwrap().text("c"), Some("ü\n\"é😀"));
        assert_eq!((v.count("d"), v.flag("a")), (Some(7), None));
        assert_eq!(Json::parse("[]"), Some(Json::List(vec![])));
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in ["", "{", "[1,", "{\"a\" 1}", "tru", "\"x", "[1] 2", "\"\\ud800\"", "-", "{1:2}", "\"\\u00"] {
            assert_eq!(Json::parse(text), None, "{text}");
        }
        assert_eq!(Json::parse(&"[".repeat(100_000)), None);
    }
}
