//! Macros of the notebook where items stand: their calls are expanded here, so that what they make persists as if it had
//! been written out. Everything else that a macro does is left to rustc.
use crate::eval::text::depth;
use crate::eval::text::scan::{self, Kind, Token};
use crate::eval::text::source::CellText;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use syn::parse::{Parse, ParseStream, Parser};

/// What stands before a macro that others name by `crate::`.
pub const EXPORTED: &str = "#[macro_export] ";

/// A macro of the notebook.
#[derive(Clone, Debug)]
pub struct Macro {
    pub name: String,
    /// On one line and without comments.
    pub text: String,
    pub mentions: BTreeSet<String>,
    pub source: Arc<CellText>,
    pub range: Range<usize>,
}

impl PartialEq for Macro {
    fn eq(&self, other: &Macro) -> bool {
        self.name == other.name && self.text == other.text
    }
}

/// The macro that a name means: the latest.
pub(super) fn known<'m>(own: &'m [Macro], earlier: &'m [Macro], name: &str) -> Option<&'m Macro> {
    own.iter().rev().chain(earlier.iter().rev()).find(|m| m.name == name)
}

/// What a call with these arguments makes, by the first rule that fits; `None` where none does, which rustc then explains.
pub fn expand(
    rules: &CellText,
    definition: Range<usize>,
    call: &CellText,
    arguments: Range<usize>,
) -> Option<Expansion> {
    if !depth::fits(&rules.text[definition.clone()]) || !depth::fits_as_argument(&call.text[arguments.clone()]) {
        return None;
    }
    let (rules, call) = (Text::new(rules, definition), Text::new(call, arguments));
    let open = (0..rules.tokens.len()).find(|i| rules.is_open(*i))?;
    let (mut at, end) = (open + 1, rules.close(open));
    while at < end {
        let pattern = rules.pattern(at + 1..rules.close(at))?;
        let body = (rules.close(at)..end).find(|i| rules.is_open(*i))?;
        let mut found = Bound::new();
        if call.matches(&rules, &pattern, 0..call.tokens.len(), &mut found) == Some(call.tokens.len()) {
            let mut made = Expansion::default();
            let all = found.iter().map(|(name, value)| (&**name, value)).collect();
            write(&rules, &rules.template(body + 1..rules.close(body))?, &call, &all, &mut made)?;
            return Some(made);
        }
        at = rules.close(body) + 1;
        at += usize::from(rules.is(at, ";"));
    }
    None
}

/// What a macro makes: text, and where each part of it was copied from.
#[derive(Default)]
pub struct Expansion {
    pub text: String,
    /// Parts that are one thing to other macros: an expression, a type.
    pub whole: Vec<Range<usize>>,
    pub parts: Vec<(Range<usize>, Copied)>,
}

/// From where in the rules or in the arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Copied {
    Rules(usize),
    Call(usize),
}

impl Expansion {
    /// Adds tokens as they stand in their text, apart from what is before them unless they follow it there at once.
    fn copy(&mut self, text: &Text, range: Range<usize>, from: fn(usize) -> Copied) {
        let before = self.parts.last().map(|(at, f)| (*f, at.len()));
        let gap = match before {
            Some((f, len)) => match (f, from(0)) {
                (Copied::Rules(start), Copied::Rules(_)) | (Copied::Call(start), Copied::Call(_)) => {
                    text.text.get(start + len..range.start)
                }
                _ => None,
            },
            None => Some(""),
        };
        match gap {
            Some("") => {}
            Some(gap) if gap.contains('\n') => self.text.push('\n'),
            _ => self.text.push(' '),
        }
        let at = self.text.len();
        self.text.push_str(&text.text[range.clone()]);
        self.parts.push((at..self.text.len(), from(range.start)));
    }
}

/// Part of a text as tokens, comments left out.
struct Text<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    whole: &'a [Range<usize>],
}

enum Pattern {
    /// A token that must stand there, in the rules.
    Token(usize),
    Group(usize, Vec<Pattern>),
    Fragment {
        name: String,
        kind: String,
    },
    Repeat {
        inner: Vec<Pattern>,
        separator: Range<usize>,
        most: usize,
        least: usize,
    },
}

enum Template {
    Token(usize),
    Variable { name: String, at: usize },
    Repeat { inner: Vec<Template>, separator: Range<usize> },
}

type Bound = HashMap<String, Value>;
type Values<'v> = HashMap<&'v str, &'v Value>;

/// What a variable of the rules stands for: tokens of the arguments.
enum Value {
    One { tokens: Range<usize>, kind: One },
    Many(Vec<Value>),
}

/// What a fragment is to another macro that it is handed on to.
#[derive(Clone, Copy, PartialEq)]
enum One {
    /// One thing, around which operators stand.
    Expression,
    /// One thing, around which `&` or `*` may stand.
    Type,
    /// One thing.
    Other,
    /// What it was.
    Tokens,
}

/// Operators that are one token to a macro.
const OPERATORS: [&str; 25] = [
    "<<=", ">>=", "...", "..=", "::", "->", "=>", "==", "!=", "<=", ">=", "&&", "||", "+=", "-=", "*=", "/=", "%=",
    "^=", "&=", "|=", "<<", ">>", "..", "<-",
];

impl<'a> Text<'a> {
    fn new(of: &'a CellText, range: Range<usize>) -> Text<'a> {
        let mut tokens = scan::tokens(&of.text[range.clone()]);
        tokens.retain(|t| t.kind != Kind::Comment);
        for t in &mut tokens {
            t.range = t.range.start + range.start..t.range.end + range.start;
        }
        Text { text: &of.text, tokens, whole: &of.whole }
    }

    fn word(&self, i: usize) -> &'a str {
        self.tokens.get(i).map_or("", |t| &self.text[t.range.clone()])
    }

    fn is(&self, i: usize, word: &str) -> bool {
        self.word(i) == word
    }

    fn is_open(&self, i: usize) -> bool {
        self.tokens.get(i).is_some_and(|t| matches!(t.kind, Kind::Open(_)))
    }

    /// Whether a token is part of what was matched as one thing before.
    fn is_whole(&self, i: usize) -> bool {
        let at = self.tokens[i].range.start;
        self.whole.iter().any(|w| w.contains(&at))
    }

    fn is_ident(&self, i: usize) -> bool {
        self.tokens.get(i).is_some_and(|t| t.kind == Kind::Ident)
    }

    /// The partner of an opening delimiter.
    fn close(&self, open: usize) -> usize {
        scan::close(&self.tokens, open)
    }

    /// Behind the `$( … )` that ends at `close`: the separator, which sign follows it, and where that is.
    fn repetition(&self, close: usize, end: usize) -> Option<(Range<usize>, &'a str, usize)> {
        let sign = (close + 1..end).find(|i| ["*", "+", "?"].contains(&self.word(*i)))?;
        (sign <= close + 4).then(|| (close + 1..sign, self.word(sign), sign))
    }

    fn pattern(&self, tokens: Range<usize>) -> Option<Vec<Pattern>> {
        let (mut at, mut out) = (tokens.start, Vec::new());
        while at < tokens.end {
            if self.is(at, "$") && self.is_open(at + 1) {
                let close = self.close(at + 1);
                let (separator, sign, end) = self.repetition(close, tokens.end)?;
                let (least, most) = (usize::from(sign == "+"), if sign == "?" { 1 } else { usize::MAX });
                out.push(Pattern::Repeat { inner: self.pattern(at + 2..close)?, separator, most, least });
                at = end + 1;
            } else if self.is(at, "$") && self.is_ident(at + 1) && self.is(at + 2, ":") && self.is_ident(at + 3) {
                let (name, kind) = (self.word(at + 1).to_owned(), self.word(at + 3).to_owned());
                out.push(Pattern::Fragment { name, kind });
                at += 4;
            } else if self.is_open(at) {
                let close = self.close(at);
                out.push(Pattern::Group(at, self.pattern(at + 1..close)?));
                at = close + 1;
            } else {
                out.push(Pattern::Token(at));
                at += 1;
            }
        }
        Some(out)
    }

    fn template(&self, tokens: Range<usize>) -> Option<Vec<Template>> {
        let (mut at, mut out) = (tokens.start, Vec::new());
        while at < tokens.end {
            match self.is(at, "$") {
                true if self.is(at + 1, "(") => {
                    let close = self.close(at + 1);
                    let (separator, _, end) = self.repetition(close, tokens.end)?;
                    out.push(Template::Repeat { inner: self.template(at + 2..close)?, separator });
                    at = end + 1;
                }
                // `${count(x)}` and its like
                true if self.is_open(at + 1) => return None,
                true if self.is_ident(at + 1) => {
                    out.push(Template::Variable { name: self.word(at + 1).to_owned(), at: at + 1 });
                    at += 2;
                }
                _ => {
                    out.push(Template::Token(at));
                    at += 1;
                }
            }
        }
        Some(out)
    }

    /// Matches as much as the pattern takes, from the first of these tokens on: where that ends.
    fn matches(&self, rules: &Text, pattern: &[Pattern], tokens: Range<usize>, found: &mut Bound) -> Option<usize> {
        let mut at = tokens.start;
        for p in pattern {
            match p {
                Pattern::Token(token) if at < tokens.end && self.is(at, rules.word(*token)) && !self.is_whole(at) => {
                    at += 1;
                }
                Pattern::Token(_) => return None,
                Pattern::Group(open, inner) => {
                    let close = self.close(at);
                    let fits = at < tokens.end && self.is(at, rules.word(*open));
                    if !fits || self.matches(rules, inner, at + 1..close, found)? != close {
                        return None;
                    }
                    at = close + 1;
                }
                Pattern::Fragment { name, kind } => {
                    let end = self.fragment(kind, at..tokens.end)?;
                    let kind = match &**kind {
                        "ident" | "tt" | "lifetime" => One::Tokens,
                        "expr" | "expr_2021" | "literal" => One::Expression,
                        "ty" => One::Type,
                        _ => One::Other,
                    };
                    found.insert(name.clone(), Value::One { tokens: at..end, kind });
                    at = end;
                }
                Pattern::Repeat { inner, separator, most, least } => {
                    let mut rounds: Vec<Bound> = Vec::new();
                    while rounds.len() < *most && at < tokens.end {
                        let mut from = at;
                        if !rounds.is_empty() && !separator.is_empty() {
                            if !separator.clone().enumerate().all(|(i, s)| self.is(at + i, rules.word(s))) {
                                break;
                            }
                            from += separator.len();
                        }
                        let mut round = Bound::new();
                        match self.matches(rules, inner, from..tokens.end, &mut round) {
                            Some(end) if end > at => at = end,
                            _ => break,
                        }
                        rounds.push(round);
                    }
                    if rounds.len() < *least {
                        return None;
                    }
                    for name in names(inner) {
                        let all = rounds.iter_mut().filter_map(|r| r.remove(name)).collect();
                        found.insert(name.to_owned(), Value::Many(all));
                    }
                }
            }
        }
        Some(at)
    }

    /// Where a fragment of this kind ends that begins with the first of these tokens.
    fn fragment(&self, kind: &str, tokens: Range<usize>) -> Option<usize> {
        let at = tokens.start;
        let one = |fits: bool| fits.then_some(at + 1);
        let literal = |i: usize| {
            let kind = self.tokens.get(i).filter(|_| i < tokens.end).map(|t| t.kind);
            matches!(kind, Some(Kind::Number | Kind::Literal)) || ["true", "false"].contains(&self.word(i))
        };
        if at >= tokens.end {
            return (kind == "vis").then_some(at);
        }
        match kind {
            "ident" => one(self.is_ident(at) && !self.is(at, "_") && !self.is_whole(at)),
            "lifetime" => one(self.tokens[at].kind == Kind::Lifetime),
            "literal" if self.is(at, "-") => literal(at + 1).then_some(at + 2),
            "literal" => one(literal(at)),
            "tt" if self.is_open(at) => Some(self.close(at) + 1),
            "tt" => {
                let rest = &self.text[self.tokens[at].range.start..];
                let len = OPERATORS.iter().find(|o| rest.starts_with(**o)).map_or(1, |o| o.len());
                Some(at + if matches!(self.tokens[at].kind, Kind::Punct(_)) { len } else { 1 })
            }
            "expr" | "expr_2021" => self.parsed::<syn::Expr>(tokens, Parse::parse),
            "ty" => self.parsed::<syn::Type>(tokens, Parse::parse),
            "path" => self.parsed::<syn::Path>(tokens, Parse::parse),
            "pat" => self.parsed(tokens, syn::Pat::parse_multi_with_leading_vert),
            "pat_param" => self.parsed(tokens, syn::Pat::parse_single),
            "block" => self.parsed::<syn::Block>(tokens, Parse::parse),
            "item" => self.parsed::<syn::Item>(tokens, Parse::parse),
            "stmt" => self.parsed::<syn::Stmt>(tokens, Parse::parse),
            "meta" => self.parsed::<syn::Meta>(tokens, Parse::parse),
            "vis" => self.parsed::<syn::Visibility>(tokens, Parse::parse),
            _ => None,
        }
    }

    /// Where what syn takes for a `T` ends.
    fn parsed<T>(&self, tokens: Range<usize>, parse: fn(ParseStream) -> syn::Result<T>) -> Option<usize> {
        let start = self.tokens[tokens.start].range.start;
        let prefix = |input: ParseStream| {
            parse(input)?;
            let rest: proc_macro2::TokenStream = input.parse()?;
            Ok(rest.into_iter().next().map(|t| t.span().byte_range().start))
        };
        // Mostly it ends at the next comma or semicolon, and there may be many.
        let mut at = tokens.start;
        loop {
            while at < tokens.end && !self.is(at, ",") && !self.is(at, ";") {
                at = if self.is_open(at) { self.close(at) + 1 } else { at + 1 };
            }
            let end = at.min(tokens.end);
            let text = self.text.get(start..self.tokens[end.max(tokens.start + 1) - 1].range.end)?;
            let text = Some(text).filter(|text| depth::fits(text))?;
            match prefix.parse_str(text) {
                Ok(Some(after)) => return tokens.clone().find(|i| self.tokens[*i].range.start >= start + after),
                Ok(None) => return Some(end),
                Err(_) if end == tokens.end => return None,
                Err(_) => at = end + 1,
            }
        }
    }
}

/// The variables of a pattern.
fn names<'p>(pattern: &'p [Pattern]) -> Vec<&'p str> {
    let of = |p: &'p Pattern| -> Vec<&'p str> {
        match p {
            Pattern::Token(_) => Vec::new(),
            Pattern::Fragment { name, .. } => vec![name],
            Pattern::Group(_, inner) | Pattern::Repeat { inner, .. } => names(inner),
        }
    };
    pattern.iter().flat_map(of).collect()
}

/// Writes a rule's right-hand side with what its variables stand for.
fn write(rules: &Text, template: &[Template], call: &Text, bound: &Values, out: &mut Expansion) -> Option<()> {
    for (i, part) in template.iter().enumerate() {
        match part {
            Template::Token(at) => out.copy(rules, rules.tokens[*at].range.clone(), Copied::Rules),
            Template::Variable { name, at } => match bound.get(&**name) {
                Some(Value::One { tokens, .. }) if tokens.is_empty() => {}
                Some(Value::One { tokens, kind }) => {
                    let start = out.text.len();
                    let apart = match kind {
                        One::Expression => tokens.len() > 1 && !stands_apart(rules, template, i),
                        One::Type => tokens.clone().any(|t| call.is(t, "+")) && !stands_apart(rules, template, i),
                        One::Other | One::Tokens => false,
                    };
                    if apart {
                        out.text.push_str(" (");
                    }
                    for token in tokens.clone() {
                        out.copy(call, call.tokens[token].range.clone(), Copied::Call);
                    }
                    if apart {
                        out.text.push(')');
                    }
                    if *kind != One::Tokens {
                        out.whole.push(start..out.text.len());
                    }
                }
                Some(Value::Many(_)) => return None,
                None if name == "crate" => out.copy(rules, rules.tokens[*at].range.clone(), Copied::Rules),
                // Of a macro that this one makes.
                None => {
                    out.copy(rules, rules.tokens[at - 1].range.clone(), Copied::Rules);
                    out.copy(rules, rules.tokens[*at].range.clone(), Copied::Rules);
                }
            },
            Template::Repeat { inner, separator } => {
                let many: Vec<(&str, &[Value])> = variables(inner)
                    .into_iter()
                    .filter_map(|name| match bound.get(name) {
                        Some(Value::Many(values)) => Some((name, &**values)),
                        _ => None,
                    })
                    .collect();
                let rounds = many.first()?.1.len();
                if many.iter().any(|(_, values)| values.len() != rounds) {
                    return None;
                }
                let mut of_round = bound.clone();
                for round in 0..rounds {
                    if round > 0 {
                        separator.clone().for_each(|s| out.copy(rules, rules.tokens[s].range.clone(), Copied::Rules));
                    }
                    of_round.extend(many.iter().map(|(name, values)| (*name, &values[round])));
                    write(rules, inner, call, &of_round, out)?;
                }
            }
        }
    }
    Some(())
}

fn variables<'t>(template: &'t [Template]) -> Vec<&'t str> {
    let of = |t: &'t Template| -> Vec<&'t str> {
        match t {
            Template::Token(_) => Vec::new(),
            Template::Variable { name, .. } => vec![name],
            Template::Repeat { inner, .. } => variables(inner),
        }
    };
    template.iter().flat_map(of).collect()
}

/// Whether no operator could take part of an expression that stands here.
fn stands_apart(rules: &Text, template: &[Template], i: usize) -> bool {
    let word = |i: Option<usize>| match i.and_then(|i| template.get(i)) {
        Some(Template::Token(at)) => rules.word(*at),
        Some(_) => "$",
        None => "",
    };
    let before = ["", "(", "[", "{", ",", ";", "=", ">", "return"].contains(&word(i.checked_sub(1)));
    before && ["", ")", "]", "}", ",", ";"].contains(&word(Some(i + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(rules: &str, call: &str) -> Option<String> {
        let text = |text: &str| CellText::new(1, text);
        let made = expand(&text(rules), 0..rules.len(), &text(call), 0..call.len())?;
        for (at, from) in &made.parts {
            let (of, start) = match from {
                Copied::Rules(start) => (rules, *start),
                Copied::Call(start) => (call, *start),
            };
            assert_eq!(made.text[at.clone()], of[start..start + at.len()]);
        }
        Some(tokens(&made.text))
    }

    /// Blanks between tokens, and nowhere else.
    fn tokens(text: &str) -> String {
        scan::tokens(text).into_iter().map(|t| &text[t.range]).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rules_are_tried_in_order() {
        let rules =
            "macro_rules! m { ($n:ident) => { fn $n() {} }; ($a:expr, $b:expr) => { const C: i32 = $a * $b; } }";
        assert_eq!(made(rules, "f").as_deref(), Some("fn f ( ) { }"));
        assert_eq!(made(rules, "1 + 2, g(x)"), Some(tokens("const C: i32 = (1 + 2) * (g(x));")));
        assert_eq!(made(rules, "a b"), None);
    }

    #[test]
    fn repetitions_nest() {
        let rules =
            "macro_rules! m { ($($n:ident { $($f:ident: $t:ty),* $(,)? })+) => { $(struct $n { $($f: $t,)* })+ } }";
        let made = made(rules, "A { x: Vec<(u8, u8)>, y: [i32; 2], } B { z: &'static str } C {}").unwrap();
        let expected = "struct A { x: Vec<(u8, u8)>, y: [i32; 2], } struct B { z: &'static str, } struct C {}";
        assert_eq!(made, tokens(expected));
    }

    #[test]
    fn every_kind_of_fragment() {
        let one = |kind: &str, call: &str| {
            made(&format!("macro_rules! m {{ ($x:{kind} ; $($rest:tt)*) => {{ [$x] $($rest)* }} }}"), call)
        };
        for (kind, text) in [
            ("ident", "r#type"),
            ("lifetime", "'a"),
            ("literal", "-1.5"),
            ("ty", "HashMap<K, Vec<V>>"),
            ("path", "std::fmt::Debug"),
            ("pat", "Some(1 | 2)"),
            ("expr", "if a { b } else { c }"),
            ("block", "{ let x = 1; x }"),
            ("item", "pub struct S(u8);"),
            ("meta", "derive(Debug)"),
            ("vis", "pub(crate)"),
            ("tt", "{ a b }"),
            ("tt", "=>"),
        ] {
            let expected = tokens(&format!("[{text}] a => b"));
            assert_eq!(one(kind, &format!("{text}; a => b")), Some(expected), "{kind}");
        }
        assert_eq!(one("vis", "; a").as_deref(), Some("[ ] a"));
        assert_eq!(one("ident", "1; a"), None);
    }

    #[test]
    fn a_macro_may_make_a_macro() {
        let rules = "macro_rules! m { ($n:ident) => { macro_rules! $n { ($x:expr) => { $crate::f($x) } } } }";
        let expected = "macro_rules! k { ($x:expr) => { crate::f($x) } }";
        assert_eq!(made(rules, "k"), Some(tokens(expected)));
    }
}
