//! What `Debug` wrote, taken apart again: structs, lists, maps, and what is none of these. A derived `Debug` always writes what
//! this takes; where one written by hand does not, its text is shown as it is.
use xlazy_mime::gather::{CLOSE, OPEN};

#[derive(Debug, PartialEq)]
pub(super) enum Value<'t> {
    /// A number, a text in its quotes, a name.
    Atom(&'t str),
    /// What was gathered under that number.
    Part(usize),
    Struct(&'t str, Vec<(&'t str, Value<'t>)>),
    /// Without a name, a tuple.
    Tuple(&'t str, Vec<Value<'t>>),
    /// A list may have a name, as Arrow's arrays do.
    List(&'t str, Vec<Value<'t>>),
    Set(Vec<Value<'t>>),
    Map(Vec<(Value<'t>, Value<'t>)>),
    /// What was cut off, as the last of its collection.
    Rest,
}

/// Deeper than people read, and than the stack is asked to go.
const DEEPEST: usize = 48;

/// The whole text as one value; of one that was cut off, what is whole in it.
pub(super) fn parse(text: &str, cut: bool) -> Option<Value<'_>> {
    let mut parser = Parser { text, at: 0, cut };
    let value = parser.value(0)?;
    parser.space();
    (parser.at == text.len()).then_some(value)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    /// The text ends before the value does.
    cut: bool,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, what: &str) -> bool {
        let found = self.rest().starts_with(what);
        self.at += if found { what.len() } else { 0 };
        found
    }

    /// Whether the text ends here, before the value does.
    fn is_cut(&self) -> bool {
        self.cut && self.at == self.text.len()
    }

    /// What stands between here and `close`, by commas; the last may have one behind it. Of what was cut off, `rest` stands for
    /// the last one, unless that is all there is.
    fn all<T>(&mut self, close: &str, rest: T, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut out = Vec::new();
        loop {
            self.space();
            if self.eat(close) {
                return Some(out);
            }
            let next = one(self);
            self.space();
            if self.is_cut() {
                out.push(next.filter(|_| out.is_empty()).unwrap_or(rest));
                return Some(out);
            }
            out.push(next?);
            if !self.eat(",") && !self.rest().starts_with(close) {
                return None;
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value<'t>> {
        if depth > DEEPEST {
            return None;
        }
        self.space();
        let deeper = |p: &mut Self| p.value(depth + 1);
        if self.eat(OPEN.encode_utf8(&mut [0; 4])) {
            let Some((number, _)) = self.rest().split_once(CLOSE) else {
                self.at = self.text.len();
                return None;
            };
            self.at += number.len() + CLOSE.len_utf8();
            return Some(Value::Part(number.parse().ok()?));
        }
        if self.eat("[") {
            return Some(Value::List("", self.all("]", Value::Rest, deeper)?));
        }
        if self.eat("(") {
            return Some(Value::Tuple("", self.all(")", Value::Rest, deeper)?));
        }
        if self.eat("{") {
            return self.set_or_map(depth);
        }
        let text = self.atom()?;
        // A name stands right before what it names, or a space or the end of the line before it.
        let (named, mark) = (is_name(text), self.at);
        let spaced = self.rest().starts_with([' ', '\n']);
        self.space();
        if named && !spaced && self.eat("(") {
            return Some(Value::Tuple(text, self.all(")", Value::Rest, deeper)?));
        }
        if named && spaced && self.eat("{") {
            let field = |p: &mut Self| {
                if p.eat("..") {
                    return Some(("..", Value::Atom("")));
                }
                let name = p.atom().filter(|name| is_name(name))?;
                p.eat(":").then_some(())?;
                Some((name, p.value(depth + 1)?))
            };
            return Some(Value::Struct(text, self.all("}", ("..", Value::Rest), field)?));
        }
        if named && spaced && self.eat("[") {
            return Some(Value::List(text, self.all("]", Value::Rest, deeper)?));
        }
        self.at = mark;
        Some(Value::Atom(text))
    }

    fn set_or_map(&mut self, depth: usize) -> Option<Value<'t>> {
        let mut entries = self.all("}", (Value::Rest, None), |p| {
            let key = p.value(depth + 1)?;
            p.space();
            let value = if p.eat(":") { Some(p.value(depth + 1)?) } else { None };
            Some((key, value))
        })?;
        if let [(_, Some(_)), .., (Value::Rest, last)] = &mut entries[..] {
            *last = Some(Value::Rest);
        }
        let (keys, values): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        if values.iter().all(Option::is_none) && !keys.is_empty() {
            return Some(Value::Set(keys));
        }
        let values: Option<Vec<Value>> = values.into_iter().collect();
        Some(Value::Map(keys.into_iter().zip(values?).collect()))
    }

    /// A text or a character in its quotes, or everything up to what ends or opens something.
    fn atom(&mut self) -> Option<&'t str> {
        let rest = self.rest();
        let quoted = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
        let len = match quoted.chars().next()? {
            quote @ ('"' | '\'') => match quoted_len(quoted, quote) {
                Some(len) => rest.len() - quoted.len() + len,
                None if self.cut => rest.len(),
                None => return None,
            },
            _ => {
                let mut angles = 0;
                let ends = |(at, c): &(usize, char)| {
                    match c {
                        '<' => angles += 1,
                        // The arrow of a function is no bracket.
                        '>' if !rest[..*at].ends_with(['-', '=']) => angles -= 1,
                        _ => {}
                    }
                    let closes = matches!(*c, ',' | ')' | ']' | '}' | '(' | '[' | '{' | OPEN | '"' | '\n');
                    // `a: 1` is a field or an entry of a map, `a::B` a path and `12:30` a time.
                    let colon = *c == ':' && rest[at + 1..].starts_with([' ', '\n']);
                    let space = *c == ' ' && rest[at + 1..].starts_with(['{', '[']);
                    angles <= 0 && (closes || colon || space)
                };
                rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at)
            }
        };
        self.at += len;
        let text = rest[..len].trim_end();
        (!text.is_empty()).then_some(text)
    }
}

/// The length of a quoted text, quotes included.
fn quoted_len(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|&(_, c)| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    Some(end.0 + 1)
}

/// The name of a type, a variant or a field.
fn is_name(text: &str) -> bool {
    let start = text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '#';
    start
        && text.split('<').next().is_some_and(|name| name.chars().all(plain))
        && (!text.contains('<') || text.ends_with('>'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[derive(Debug)]
    #[allow(dead_code)]
    struct P {
        x: i32,
        name: String,
        inner: Option<(f64, char)>,
        unit: U,
    }
    #[derive(Debug)]
    struct U;

    #[test]
    fn what_debug_derives_is_taken_apart() {
        let p = P { x: -1, name: "a, \"b\" {c: [".into(), inner: Some((0.5, '\'')), unit: U };
        let text = format!("{p:?}");
        let Some(Value::Struct("P", fields)) = parse(&text, false) else { panic!("{text}") };
        let names: Vec<&str> = fields.iter().map(|f| f.0).collect();
        assert_eq!(names, ["x", "name", "inner", "unit"]);
        assert_eq!(fields[1].1, Value::Atom(r#""a, \"b\" {c: [""#));
        let inner = Value::Tuple("", vec![Value::Atom("0.5"), Value::Atom(r"'\''")]);
        assert_eq!(fields[2].1, Value::Tuple("Some", vec![inner]));
        let pretty = format!("{p:#?}");
        assert_eq!(parse(&pretty, false), parse(&text, false));
        let map = format!("{:?}", BTreeMap::from([("k", vec![1, 2]), ("l", vec![])]));
        let Some(Value::Map(entries)) = parse(&map, false) else { panic!("{map}") };
        assert_eq!(entries[0], (Value::Atom("\"k\""), Value::List("", vec![Value::Atom("1"), Value::Atom("2")])));
        assert!(matches!(parse(&format!("{:?}", BTreeSet::from([1, 2])), false), Some(Value::Set(_))));
        assert_eq!(parse("{}", false), Some(Value::Map(vec![])));
        assert_eq!(
            parse(&format!("({OPEN}12{CLOSE}, 5)"), false),
            Some(Value::Tuple("", vec![Value::Part(12), Value::Atom("5")]))
        );
    }

    #[test]
    fn what_is_written_by_hand_is_an_atom_or_not_taken() {
        for atom in ["2026-01-01T12:30:00Z", "1.5ms", "std::fmt::Error", "0x7f", "12:30", "fn(i32) -> i32"] {
            let list = format!("[{atom}]");
            assert!(
                matches!(parse(&list, false), Some(Value::List("", v)) if v == [Value::Atom(atom)])
                    || atom.contains('('),
                "{atom}"
            );
        }
        for odd in ["[1, 2", "Point { 1, 2 }", "a b) c", "{1: 2, 3}", "\"open", ""] {
            assert_eq!(parse(odd, false), None, "{odd}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(&deep, false), None);
        let arrow = "PrimitiveArray<Timestamp(Second, None)>\n[\n  1,\n  null,\n]";
        let Some(Value::List(name, items)) = parse(arrow, false) else { panic!() };
        assert_eq!((name, items.len()), ("PrimitiveArray<Timestamp(Second, None)>", 2));
    }
}
