//! Items that syn cannot see, because they are the argument of a macro of another crate: what they are called, and where
//! `pub` goes so that later cells see them.
use crate::eval::text::scan::{self, Kind, Token, tokens};
use crate::eval::text::source::Splice;
use std::collections::BTreeSet;
use std::ops::Range;

/// An item, and what makes it public.
pub struct Declared {
    pub name: String,
    /// What `pub` takes the place of: nothing in front of the item, or who may see it otherwise.
    pub publish: Option<Range<usize>>,
}

/// Text with `pub` at these places.
pub fn edits(places: impl IntoIterator<Item = Range<usize>>, start: usize) -> Vec<Splice> {
    let publish = |at: Range<usize>| {
        let text = if at.is_empty() { "pub " } else { "pub" };
        Splice::replace(start + at.start..start + at.end, text)
    };
    places.into_iter().map(publish).collect()
}

/// The items of a macro's argument, such as that of `thread_local!`.
pub fn items(text: &str) -> Vec<Declared> {
    let mut walk = Walk::new(text);
    walk.items(0, walk.tokens.len());
    walk.declared
}

/// What becomes public in words that only a macro understands: the items in some of its brackets, as of `seq!(N in 0..3 { enum … })`, or
/// what it begins with, as of `mock! { Foo {} … }`.
pub fn somewhere(text: &str) -> Vec<Range<usize>> {
    let mut walk = Walk::new(text);
    let mut at = 0;
    while at < walk.tokens.len() {
        // What is in there is as public as its trait or its type.
        if matches!(walk.word(at), "impl" | "trait") {
            at = (at..walk.tokens.len()).find(|i| walk.is_brace(*i)).map_or(at, |open| walk.close(open));
        } else if walk.is_open(at) {
            let close = walk.close(at);
            let known = walk.declared.len();
            match walk.items(at + 1, close) && walk.declared.len() > known {
                true => at = close,
                false => walk.declared.truncate(known),
            }
        }
        at += 1;
    }
    let begins = walk.tokens.first().map(|t| t.range.start..t.range.start);
    match walk.declared.is_empty() && walk.word(0) != "pub" {
        true => begins.into_iter().collect(),
        false => walk.declared.into_iter().filter_map(|d| d.publish).collect(),
    }
}

/// Whether the text is one item after the other.
pub fn begins_an_item(text: &str) -> bool {
    let mut walk = Walk::new(text);
    walk.items(0, walk.tokens.len()) && !walk.declared.is_empty()
}

/// The methods that a macro of another crate makes inside an `impl`, as far as its words say.
pub fn members(text: &str) -> BTreeSet<String> {
    let walk = Walk::new(text);
    let named = (1..walk.tokens.len()).filter(|i| walk.word(i - 1) == "fn").map(|i| walk.word(i).to_owned());
    named.filter(|name| !name.is_empty()).collect()
}

struct Walk<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    declared: Vec<Declared>,
}

impl<'a> Walk<'a> {
    fn new(text: &'a str) -> Walk<'a> {
        let tokens = tokens(text).into_iter().filter(|t| t.kind != Kind::Comment).collect();
        Walk { text, tokens, declared: Vec::new() }
    }

    fn word(&self, i: usize) -> &'a str {
        self.tokens.get(i).filter(|t| t.kind == Kind::Ident).map_or("", |t| &self.text[t.range.clone()])
    }

    fn is_punct(&self, i: usize, c: char) -> bool {
        self.tokens.get(i).is_some_and(|t| t.kind == Kind::Punct(c))
    }

    fn is_open(&self, i: usize) -> bool {
        self.tokens.get(i).is_some_and(|t| matches!(t.kind, Kind::Open(_)))
    }

    fn is_brace(&self, i: usize) -> bool {
        self.tokens.get(i).is_some_and(|t| t.kind == Kind::Open('{'))
    }

    /// The partner of an opening delimiter.
    fn close(&self, open: usize) -> usize {
        scan::close(&self.tokens, open)
    }

    /// Behind attributes.
    fn after_attributes(&self, mut i: usize) -> usize {
        while self.is_punct(i, '#') {
            let open = if self.is_punct(i + 1, '!') { i + 2 } else { i + 1 };
            i = self.close(open) + 1;
        }
        i
    }

    /// Whether one of these attributes is `#[test]`, or `#[tokio::test]`.
    fn is_test(&self, mut attributes: Range<usize>) -> bool {
        let in_brackets = |i: usize| self.tokens.get(i).is_some_and(|t| t.kind == Kind::Open('['));
        attributes.any(|i| i > 0 && self.word(i) == "test" && (in_brackets(i - 1) || self.is_punct(i - 1, ':')))
    }

    /// Behind who may see it; and what `pub` takes the place of, if it does not say so already.
    fn after_visibility(&self, i: usize) -> (usize, Option<Range<usize>>) {
        let start = self.tokens.get(i).map_or(self.text.len(), |t| t.range.start);
        if self.word(i) == "pub" {
            if !self.tokens.get(i + 1).is_some_and(|t| t.kind == Kind::Open('(')) {
                return (i + 1, None);
            }
            let close = self.close(i + 1);
            return (close + 1, self.tokens.get(close).map(|t| start..t.range.end));
        }
        (i, Some(start..start))
    }

    /// From one token to another; whether all of it is items.
    fn items(&mut self, mut at: usize, end: usize) -> bool {
        while at < end {
            let start = self.after_attributes(at);
            if start >= end {
                return true;
            }
            let (mut i, publish) = self.after_visibility(start);
            while self.is_modifier(i) {
                i += 1;
            }
            let keyword = self.word(i);
            match keyword {
                "impl" => {
                    let Some(open) = (i..end).find(|i| self.is_brace(*i)) else { return false };
                    at = self.close(open) + 1;
                }
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "mod" | "static" | "const" => {
                    let mut name = i + 1;
                    while matches!(self.word(name), "ref" | "mut") {
                        name += 1;
                    }
                    let (written, end_of_name) = match self.word(name) {
                        "" => match self.pasted(name) {
                            Some(pasted) => pasted,
                            None => return false,
                        },
                        word => (word.to_owned(), name),
                    };
                    name = end_of_name;
                    // A test is not there in a program, and macros that make tests take no `pub`.
                    if !self.is_test(at..start) {
                        self.declared.push(Declared { name: written, publish });
                    }
                    // A value or an alias goes on to the semicolon, whatever braces are in it.
                    let ends_in_braces = !matches!(keyword, "static" | "const" | "type");
                    let mut i = self.after_generics(name + 1);
                    while i < end && !self.is_punct(i, ';') && !(ends_in_braces && self.is_brace(i)) {
                        i = if self.is_open(i) { self.close(i) + 1 } else { i + 1 };
                    }
                    if i < end && self.is_brace(i) {
                        i = self.close(i);
                    }
                    at = i + 1;
                }
                // As `cfg_if!` takes them: `if #[cfg(…)] { … } else { … }`.
                "if" | "else" => {
                    let Some(open) = (i..end).find(|i| self.is_brace(*i)) else { return false };
                    let close = self.close(open);
                    if !self.items(open + 1, close) {
                        return false;
                    }
                    at = close + 1;
                }
                // The call of another macro.
                _ if !keyword.is_empty() && self.is_punct(i + 1, '!') && self.is_open(i + 2) => {
                    at = self.close(i + 2) + 1;
                    if self.is_punct(at, ';') {
                        at += 1;
                    }
                }
                _ => return false,
            }
        }
        true
    }

    /// A name that a macro puts together, as `[<get_ name>]`, and its last token.
    fn pasted(&self, open: usize) -> Option<(String, usize)> {
        let close = self.close(open);
        let is_open = self.tokens.get(open).is_some_and(|t| t.kind == Kind::Open('['));
        if !(is_open && self.is_punct(open + 1, '<') && close > open + 2 && self.is_punct(close - 1, '>')) {
            return None;
        }
        let words = (open + 2..close - 1).map(|i| Some(self.word(i)).filter(|w| !w.is_empty()));
        Some((words.collect::<Option<String>>()?, close))
    }

    /// Behind `<…>`, when that stands here.
    fn after_generics(&self, from: usize) -> usize {
        let (mut i, mut angles) = (from, 0);
        loop {
            angles += i32::from(self.is_punct(i, '<'));
            angles -= i32::from(self.is_punct(i, '>') && !(i > 0 && self.is_punct(i - 1, '-')));
            if angles <= 0 || i >= self.tokens.len() {
                return if i > from { i + 1 } else { from };
            }
            i += 1;
        }
    }

    fn is_modifier(&self, i: usize) -> bool {
        match self.word(i) {
            "unsafe" | "safe" | "async" | "extern" => true,
            "const" => matches!(self.word(i + 1), "fn" | "unsafe" | "async" | "extern"),
            _ => self.tokens.get(i).is_some_and(|t| t.kind == Kind::Literal) && i > 0 && self.word(i - 1) == "extern",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(text: &str) -> String {
        let edits = edits(items(text).into_iter().filter_map(|d| d.publish), 0);
        edits
            .iter()
            .rev()
            .fold(text.to_owned(), |t, e| format!("{}{}{}", &t[..e.range.start], e.text, &t[e.range.end..]))
    }

    #[test]
    fn items_in_a_macros_argument_become_public() {
        let text = "static A: Cell<u8> = const { Cell::new(1) }; pub static ref B: u8 = 2; #[x] static C: u8 = 3";
        let expected =
            "pub static A: Cell<u8> = const { Cell::new(1) }; pub static ref B: u8 = 2; #[x] pub static C: u8 = 3";
        assert_eq!(published(text), expected);
        assert_eq!(published("safe fn f(x: i32)"), "pub safe fn f(x: i32)");
        assert_eq!(published("struct F: u8 { const A = 1; } impl F {}"), "pub struct F: u8 { const A = 1; } impl F {}");
        assert!(begins_an_item("unsafe extern \"C\" fn f() {}") && !begins_an_item("a, b") && !begins_an_item(""));
        assert_eq!(
            published("if #[cfg(unix)] { fn f() {} } else { struct P; }"),
            "if #[cfg(unix)] { pub fn f() {} } else { pub struct P; }"
        );
        assert_eq!(published("fn [<get_ name>]() {}"), "pub fn [<get_ name>]() {}");
        assert_eq!(items("fn [<get_ name>]() {}")[0].name, "get_name");
        assert!(!begins_an_item("if a { b() } else { c() }"));
        assert_eq!(
            published("#[test] fn f(a: u8) {} #[cfg(not(test))] fn g() {}"),
            "#[test] fn f(a: u8) {} #[cfg(not(test))] pub fn g() {}"
        );
        assert!(!begins_an_item("#[tokio::test] async fn f() {}"));
        let somewhere = |text: &str| {
            let mut out = text.to_owned();
            edits(super::somewhere(text), 0).iter().rev().for_each(|e| out.replace_range(e.range.clone(), &e.text));
            out
        };
        assert_eq!(somewhere("N in 0..3 { enum A { #( V~N, )* } }"), "N in 0..3 { pub enum A { #( V~N, )* } }");
        assert_eq!(somewhere("// of it\nC {} impl A for C { fn f(); }"), "// of it\npub C {} impl A for C { fn f(); }");
        assert_eq!(somewhere("pub C {}"), "pub C {}");
        assert!(!begins_an_item("const { 1 }") && !begins_an_item("\"{}\", fn_name"));
    }
}
