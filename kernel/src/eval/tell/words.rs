//! Text as the rows of the table for people from torch are found in it: by tokens, some of which stand for any expression.
use super::options::is_option;
use crate::eval::text::scan::{self, Kind, Token};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

pub(super) fn tokens(text: &str) -> Vec<Token> {
    scan::tokens(text).into_iter().filter(|t| t.kind != Kind::Comment).collect()
}

/// Text with its tokens.
pub(super) struct Words<'t> {
    pub text: &'t str,
    pub tokens: Cow<'t, [Token]>,
}

impl<'t> Words<'t> {
    pub fn of(text: &'t str) -> Words<'t> {
        Words { text, tokens: Cow::Owned(tokens(text)) }
    }

    /// A line as somebody wrote it, without those named arguments of torch's that have nothing to say here.
    pub fn written(text: &'t str) -> Words<'t> {
        let mut all = Words::of(text);
        let idle = |all: &Words| {
            let names = |i: &usize| IDLE.contains(&all.word(*i)) && all.word(i + 1) == "=" && all.word(i + 2) != "=";
            let i = (1..all.len()).find(|i| matches!(all.word(i - 1), "," | "(") && names(i))?;
            let end = all.up_to(i, ",", false).or_else(|| all.up_to(i, ")", false))?;
            Some(if all.word(i - 1) == "," { i - 1..end } else { i..end + usize::from(all.word(end) == ",") })
        };
        while let Some(range) = idle(&all) {
            all.tokens.to_mut().drain(range);
        }
        all
    }

    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Of a row: it begins with one of the library's modules.
    pub fn is_library(&self) -> bool {
        self.meta(0).is_none() && self.word(1) == "."
    }

    pub fn word(&self, i: usize) -> &'t str {
        self.tokens.get(i).map_or("", |t| &self.text[t.range.clone()])
    }

    pub fn kind(&self, i: usize) -> Option<Kind> {
        self.tokens.get(i).map(|t| t.kind)
    }

    /// Of a row: what stands for a list, and how many tokens that is there.
    pub fn list(&self, i: usize) -> Option<(&'static str, usize)> {
        let is = |words: &[&str], from: usize| words.iter().enumerate().all(|(n, w)| self.word(from + n) == *w);
        let opens = i > 0 && (self.word(i - 1) == "[" || self.word(i - 1) == "(" && i > 1 && self.word(i - 2) == "(");
        if is(&["2", ",", "3"], i) {
            Some((NUMBERS, 3))
        } else if opens && is(&["x", ",", "y"], i) {
            Some((TENSORS, 3))
        } else if opens && is(&["&", "x", ",", "&", "y", "]"], i) {
            Some((TENSORS, 5))
        } else if i > 0 && matches!(self.word(i - 1), "(" | "[") && is(&["a", ",", "b"], i) {
            Some((MODULES, 3))
        } else {
            None
        }
    }

    /// Of a row: what stands for any expression, or for several of them.
    pub fn meta(&self, i: usize) -> Option<Meta> {
        let word = self.word(i);
        if self.list(i).is_some() {
            return Some(Meta::Several);
        }
        // What is named behind a point or called is a name.
        let named = i > 0 && self.word(i - 1) == "." || self.word(i + 1) == "(";
        let named = named || self.word(i + 1) == "!" && self.word(i + 2) != "=";
        let stands = match self.kind(i)? {
            Kind::Ident => {
                // A type that a method is of.
                let of = word == "f32" && i > 0 && self.word(i - 1) == "<";
                of || CALLED.contains(&word)
                    || !named && (matches!(word, "loss" | "opt") || word.len() == 1 && word != "F")
            }
            Kind::Number => true,
            // The name of a file, say.
            Kind::Literal => word.starts_with('"') && !matches!(unquoted(word), Some("inf" | "-inf" | "nan" | "lr")),
            _ => false,
        };
        stands.then_some(Meta::One)
    }

    /// Behind the expressions from `i` on: up to `end`, outside of brackets.
    pub fn up_to(&self, i: usize, end: &str, several: bool) -> Option<usize> {
        let mut depth = 0;
        for at in i..self.len() {
            match self.kind(at)? {
                _ if depth == 0 && self.word(at) == end => return (at > i).then_some(at),
                Kind::Open(_) => depth += 1,
                Kind::Close(_) if depth == 0 => return None,
                Kind::Close(_) => depth -= 1,
                Kind::Punct(';') => return None,
                Kind::Punct(',') if depth == 0 && !several => return None,
                _ => {}
            }
        }
        None
    }

    /// Behind the operand that begins at `i`: a name, a number or a text, with what is called of it.
    pub fn operand(&self, i: usize) -> Option<usize> {
        let mut at = i;
        while self.word(at) == "-" || self.word(at) == "&" {
            at += 1;
        }
        match self.kind(at)? {
            Kind::Ident | Kind::Number | Kind::Literal => at += 1,
            Kind::Open('(') => at = self.behind_brackets(at)?,
            _ => return None,
        }
        loop {
            match self.kind(at) {
                Some(Kind::Open('(' | '[')) => at = self.behind_brackets(at)?,
                // A field of a tuple is a number.
                Some(Kind::Punct('.')) if matches!(self.kind(at + 1), Some(Kind::Ident | Kind::Number)) => at += 2,
                Some(Kind::Punct('?')) => at += 1,
                Some(Kind::Punct(':')) if self.word(at + 1) == ":" && self.kind(at + 2) == Some(Kind::Ident) => at += 3,
                // `sum::<f64>()`
                Some(Kind::Punct(':')) if self.word(at + 1) == ":" && self.word(at + 2) == "<" => {
                    at = (at..self.len()).find(|i| self.word(*i) == ">" && self.word(i + 1) == "(")? + 1;
                }
                _ => return Some(at),
            }
        }
    }

    /// Behind the expression that begins at `i`: where a comma, a bracket or the line ends it.
    pub fn expression(&self, i: usize) -> Option<usize> {
        let mut at = i;
        while let Some(kind) = self.kind(at) {
            match kind {
                Kind::Open(_) => at = self.behind_brackets(at)?,
                Kind::Close(_) | Kind::Punct(',' | ';') => break,
                _ => at += 1,
            }
        }
        (at > i).then_some(at)
    }

    /// Behind the list that begins at `i`, or that is lent there, or made a vector.
    fn behind_list(&self, i: usize) -> Option<usize> {
        let lent = i + usize::from(self.word(i) == "&");
        let open = lent + if self.word(lent) == "vec" && self.word(lent + 1) == "!" { 2 } else { 0 };
        self.behind_brackets(open).filter(|_| matches!(self.kind(open), Some(Kind::Open(_))))
    }

    /// The token that begins at a place of the text.
    pub fn at(&self, start: usize) -> Option<usize> {
        self.tokens.iter().position(|t| t.range.start == start)
    }

    /// What stands between the brackets of the call of what `name` names.
    pub fn arguments(&self, name: usize) -> Option<Range<usize>> {
        let end = self.behind_brackets(name + 1).filter(|_| self.word(name + 1) == "(")?;
        Some(name + 2..end - 1)
    }

    pub fn behind_brackets(&self, i: usize) -> Option<usize> {
        let mut depth = 0;
        for at in i..self.len() {
            match self.kind(at)? {
                Kind::Open(_) => depth += 1,
                Kind::Close(_) if depth == 1 => return Some(at + 1),
                Kind::Close(_) => depth -= 1,
                _ => {}
            }
        }
        None
    }

    /// Where the operand begins that ends before `i`.
    pub fn operand_before(&self, i: usize) -> Option<usize> {
        (0..i).find(|&start| {
            let before = start.checked_sub(1);
            // Brackets are an operand where they are no call's.
            let keyword = |i: usize| ["return", "in", "if", "while", "match", "else"].contains(&self.word(i));
            let opens = !keyword(start) && before.is_none_or(|before| match self.kind(start) {
                Some(Kind::Ident | Kind::Number | Kind::Literal) => !matches!(self.word(before), "." | ":"),
                Some(Kind::Open('(')) => {
                    keyword(before)
                        || matches!(self.kind(before), Some(Kind::Punct(_) | Kind::Open(_)) if self.word(before) != "!")
                }
                _ => false,
            });
            opens && self.operand(start).is_some_and(|end| end >= i && self.within(start, i))
        })
    }

    /// Where the sum or product begins whose last operand begins at a place.
    pub fn sum_before(&self, at: usize) -> usize {
        let Some(mut first) = self.at(at) else { return at };
        while first > 1 && ARITHMETIC.contains(&self.word(first - 1)) {
            match self.operand_before(first - 1) {
                Some(before) => first = before,
                None => break,
            }
        }
        self.tokens[first].range.start
    }

    /// Where the sum or product ends whose first operand ends at a place.
    pub fn sum_after(&self, at: usize) -> usize {
        let Some(last) = self.tokens.iter().position(|t| t.range.end == at) else { return at };
        let mut end = last + 1;
        while ARITHMETIC.contains(&self.word(end)) {
            match self.operand(end + 1) {
                Some(behind) => end = behind,
                None => break,
            }
        }
        self.tokens[end - 1].range.end
    }

    /// The comparison's sign, where an `if` or its like asks for what stands there.
    pub fn decided(&self, range: &Range<usize>) -> Option<&'t str> {
        let first = self.at(range.start)?;
        let word = |back: usize| first.checked_sub(back).map_or("", |i| self.word(i));
        let asks = matches!(word(1), "if" | "while")
            || matches!((word(2), word(1)), ("&", "&") | ("|", "|"))
            || (word(3), word(2), word(1)) == ("assert", "!", "(");
        let sign = |i: usize| matches!(self.word(i), ">" | "<") && self.within(first, i);
        let inside = |i: &usize| self.tokens[*i].range.end <= range.end;
        let at = (first..self.len()).take_while(inside).find(|&i| sign(i)).filter(|_| asks)?;
        let end = at + usize::from(self.word(at + 1) == "=");
        Some(&self.text[self.tokens[at].range.start..self.tokens[end].range.end])
    }

    /// The parts that commas outside of brackets make of what stands between two tokens.
    pub fn between_commas(&self, from: usize, to: usize) -> Vec<Range<usize>> {
        let (mut out, mut at) = (Vec::new(), from);
        while at < to {
            let end = (at..to).find(|i| self.word(*i) == "," && self.within(at, *i)).unwrap_or(to);
            out.push(at..end);
            at = end + 1;
        }
        out
    }

    /// The texts of these parts.
    pub fn listed(&self, all: Range<usize>) -> Option<Vec<String>> {
        let parts = self.between_commas(all.start, all.end).into_iter();
        parts.map(|one| Some(self.part(one.start, one.end)?.0)).collect()
    }

    /// Whether brackets are even between two tokens.
    pub fn within(&self, from: usize, to: usize) -> bool {
        let mut depth = 0i32;
        for at in from..to {
            match self.kind(at) {
                Some(Kind::Open(_)) => depth += 1,
                Some(Kind::Close(_)) => depth -= 1,
                _ => {}
            }
            if depth < 0 {
                return false;
            }
        }
        depth == 0
    }

    /// The text of some of them, and where it is.
    pub fn part(&self, from: usize, to: usize) -> Option<(String, Range<usize>)> {
        let (first, last) = (self.tokens.get(from)?, self.tokens.get(to.checked_sub(1)?).filter(|_| from < to)?);
        let range = first.range.start..last.range.end;
        Some((self.text[range.clone()].to_owned(), range))
    }
}

const ARITHMETIC: [&str; 5] = ["+", "-", "*", "/", "%"];
/// What stands for a list of any length.
const NUMBERS: &str = "2, 3";
pub(super) const TENSORS: &str = "x, y";
pub(super) const MODULES: &str = "a, b";

/// Words of rows that stand for any expression, also where they are called.
const CALLED: &[&str] = &["model", "criterion", "ranking", "cell", "gru_cell"];

/// Named arguments that say where a tensor is, or how, and have nothing to say here.
pub(super) const IDLE: &[&str] = &[
    "device",
    "non_blocking",
    "set_to_none",
    "inplace",
    "pin_memory",
    "foreach",
    "fused",
    "memory_format",
    "weights_only",
    "cmap",
    "interpolation",
    "need_weights",
    "persistent_workers",
    "pin_memory_device",
];

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Meta {
    One,
    Several,
}

/// What a row's letters stand for, and where that is.
pub(super) type Captured = HashMap<String, (String, Range<usize>)>;

/// Modules of torch's that names are written behind.
const MODULES_OF: &[&str] = &[
    "torch",
    "nn",
    "optim",
    "data",
    "utils",
    "functional",
    "lr_scheduler",
    "rnn",
    "F",
    "distributed",
    "autograd",
    "init",
];

/// Python's names of what Rust has, too.
pub(super) fn in_rust(word: &str) -> &str {
    match word {
        "True" => "true",
        "False" => "false",
        _ if word.len() > 3 => unquoted(word).unwrap_or(word),
        _ => word,
    }
}

/// What stands in quotation marks, of which Python has two kinds.
pub(super) fn unquoted(word: &str) -> Option<&str> {
    let inside = |quote: char| word.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\''))
}

/// What stands between quotation marks, as it does between double ones.
pub(super) fn of_quotation(word: &str) -> Option<String> {
    let text = unquoted(word)?;
    Some(if word.starts_with('\'') { text.replace('"', "\\\"") } else { text.to_owned() })
}

/// A row at a token: where it stands in the text, and what its letters and numbers stand for.
pub(super) fn found_at(pattern: &Words, user: &Words, start: usize) -> Option<(Range<usize>, Captured)> {
    let mut captured = Captured::new();
    let (mut p, mut u, mut first) = (0, start, start);
    // A receiver in front is whatever the rest is called of.
    if pattern.meta(0).is_some() && pattern.len() > 1 {
        // What stands in front is looked for where the name fits.
        let name = pattern.word(1) == "." && pattern.meta(2).is_none();
        if user.word(start) != pattern.word(1) || name && in_rust(user.word(start + 1)) != in_rust(pattern.word(2)) {
            return None;
        }
        first = user.operand_before(start)?;
        captured.insert(pattern.word(0).to_owned(), user.part(first, start)?);
        p = 1;
    }
    while p < pattern.len() {
        let Some(meta) = pattern.meta(p) else {
            // A list may be a tuple, and lent.
            let listed = |p: usize| pattern.list(p).is_some_and(|(name, _)| name == TENSORS);
            let opens = pattern.word(p) == "[" && listed(p + 1);
            let closes = pattern.word(p) == "]" && p > 2 && listed(p - 3);
            u += usize::from(opens && user.word(u) == "&");
            u += if opens && user.word(u) == "vec" && user.word(u + 1) == "!" { 2 } else { 0 };
            if opens && user.word(u) == "(" || closes && user.word(u) == ")" {
                (p, u) = (p + 1, u + 1);
                continue;
            }
            // Arguments have no names here: `dim=1` is `1`.
            let named = user.kind(u) == Some(Kind::Ident) && user.word(u + 1) == "=";
            if p > 0 && named && ![user.word(u), "="].contains(&pattern.word(p)) {
                u += 2;
            }
            // `nn::Linear::new(…)` is half of the way.
            let makes = pattern.is_library() || p > 0 && pattern.word(p - 1).starts_with(char::is_uppercase);
            if pattern.word(p) == "(" && makes && (1..=2).all(|i| user.word(u + i - 1) == ":") {
                u += if user.word(u + 2) == "new" { 3 } else { return None };
            }
            let (word, wanted) = (in_rust(user.word(u)), in_rust(pattern.word(p)));
            // `float("Inf")`
            let literal = user.kind(u) == Some(Kind::Literal) && word.eq_ignore_ascii_case(wanted);
            let same = (word == wanted || literal) && u < user.len();
            // `F::relu` is how somebody writes `F.relu` who has heard of Rust.
            let as_path =
                pattern.is_library() && pattern.word(p) == "." && user.word(u) == ":" && user.word(u + 1) == ":";
            (same || as_path).then_some(())?;
            (p, u) = (p + 1, u + if as_path { 2 } else { 1 });
            continue;
        };
        let (name, width) = pattern.list(p).unwrap_or((pattern.word(p), 1));
        if p > 0 && user.kind(u) == Some(Kind::Ident) && user.word(u + 1) == "=" && user.word(u + 2) != "=" {
            // By its name an option is itself, wherever it stands.
            if is_option(user.word(u)) && pattern.word(p.checked_sub(1)?) != "=" {
                return None;
            }
            // Where a row has a number that is no dimension, a dimension is another argument.
            let dim = matches!(user.word(u), "dim" | "axis");
            if dim && pattern.kind(p) == Some(Kind::Number) && pattern.word(p).contains('.') {
                return None;
            }
            u += 2;
        }
        // What says yes or no is no number, and neither is a text.
        let word = in_rust(user.word(u));
        let none = matches!(word, "true" | "false") || user.kind(u) == Some(Kind::Literal);
        if pattern.kind(p) == Some(Kind::Number) && none {
            return None;
        }
        let option = |at: &usize| {
            user.word(*at) == ","
                && user.kind(at + 1) == Some(Kind::Ident)
                && user.word(at + 2) == "="
                && user.within(u, *at)
        };
        let closing = |next: &str| match next {
            "," if meta == Meta::Several => (u..user.len()).find(option),
            // A tuple's, where the row has a list.
            "]" if name == TENSORS => user.up_to(u, "]", true).or_else(|| user.up_to(u, ")", true)),
            next => user.up_to(u, next, meta == Meta::Several),
        };
        let end = match pattern.word(p + width) {
            "" if p > 0 && matches!(pattern.word(p - 1), ":" | "assert" | "else" | "=") => user.expression(u)?,
            "" => user.operand(u)?,
            next => closing(next)?,
        };
        // An option is no element of a list.
        if meta == Meta::Several && (u..end).any(|at| option(&at) && is_option(user.word(at + 1))) {
            return None;
        }
        let (text, range) = user.part(u, end)?;
        let text = match &*text {
            word @ ("True" | "False") => in_rust(word).to_owned(),
            // A list of its own is the list, lent or not.
            list if meta == Meta::Several && user.behind_list(u) == Some(end) => inside(bare_list(list)).to_owned(),
            _ => text,
        };
        captured.insert(name.to_owned(), (text, range));
        (p, u) = (p + width, end);
    }
    let last = user.tokens.get(u.checked_sub(1)?)?;
    // `torch.utils.data.` in front of a name belongs to it.
    while pattern.meta(0).is_none() && first > 1 {
        let width = if user.word(first - 1) == "." { 2 } else { 3 };
        let colons = width == 3 && first > 2 && user.word(first - 1) == ":" && user.word(first - 2) == ":";
        if !(width == 2 || colons) || !MODULES_OF.contains(&user.word(first - width)) {
            break;
        }
        first -= width;
    }
    Some((user.tokens[first].range.start..last.range.end, captured))
}

/// Whether what is pointed at is Python's `name=` in a call.
pub(super) fn is_name_of_argument(line: &str, at: &Range<usize>) -> bool {
    line[at.end..].trim_start().strip_prefix('=').is_some_and(|rest| !rest.starts_with('='))
        && line[..at.start].trim_end().ends_with([',', '('])
}

/// The lines that a place is in: its own, and those that the brackets of it reach to.
pub(super) fn around(text: &str, at: Range<usize>) -> Option<(&str, Range<usize>)> {
    const LONGEST: usize = 800;
    let begin = |at: usize| text[..at].rfind('\n').map_or(0, |i| i + 1);
    let finish = |at: usize| text[at..].find('\n').map_or(text.len(), |i| at + i);
    text.get(at.clone())?;
    let (mut start, mut end) = (begin(at.start), finish(at.end));
    while end - start <= LONGEST {
        let words = Words::of(&text[start..end]);
        let (mut depth, mut least) = (0i32, 0);
        for i in 0..words.len() {
            match words.kind(i) {
                // What goes on in braces is other statements.
                Some(Kind::Open(c)) if c != '{' => depth += 1,
                Some(Kind::Close(c)) if c != '}' => depth -= 1,
                _ => {}
            }
            least = least.min(depth);
        }
        match (least < 0 && start > 0, depth > least && end < text.len()) {
            (true, _) => start = begin(start - 1),
            (_, true) => end = finish(end + 1),
            _ => return Some((&text[start..end], at.start - start..at.end - start)),
        }
    }
    let (start, end) = (begin(at.start), finish(at.end));
    (end - start <= LONGEST).then(|| (&text[start..end], at.start - start..at.end - start))
}

/// A mask that is written as a comparison, or as several.
pub(super) fn compared(text: String) -> String {
    let bare = |text: &str| match syn::parse_str::<syn::Expr>(text) {
        Ok(syn::Expr::Paren(all)) => text[syn::spanned::Spanned::span(&all.expr).byte_range()].to_owned(),
        _ => text.to_owned(),
    };
    let Ok(syn::Expr::Binary(all)) = syn::parse_str::<syn::Expr>(&text) else { return text };
    let side = |e: &syn::Expr| &text[syn::spanned::Spanned::span(e).byte_range()];
    let (left, right) = (side(&all.left), side(&all.right));
    let method = match all.op {
        syn::BinOp::Gt(_) => "gt",
        syn::BinOp::Lt(_) => "lt",
        syn::BinOp::Ge(_) => "ge",
        syn::BinOp::Le(_) => "le",
        syn::BinOp::Eq(_) => "eq",
        syn::BinOp::Ne(_) => "ne",
        syn::BinOp::And(_) | syn::BinOp::BitAnd(_) | syn::BinOp::Or(_) | syn::BinOp::BitOr(_) => {
            let sign = if matches!(all.op, syn::BinOp::And(_) | syn::BinOp::BitAnd(_)) { "&" } else { "|" };
            let both = [left, right].map(|one| compared(bare(one)));
            let new = [left, right].iter().zip(&both).any(|(before, now)| bare(before) != *now);
            return if new { both.join(&format!(" {sign} ")) } else { text };
        }
        _ => return text,
    };
    format!("{}.{method}({right})", receiver(left))
}

/// Whether brackets hold a list: `(2, 3)`, and not `(a + b) * c`.
pub(super) fn listed(value: &str) -> bool {
    let words = Words::of(value);
    words.behind_brackets(0) == Some(words.len())
        && (words.len() == 2 || words.between_commas(1, words.len() - 1).len() > 1 || value.ends_with(",)"))
}

/// A type's own name, without its modules and what it is of.
pub(super) fn own_name(ty: &str) -> Option<&str> {
    ty.split('<').next()?.rsplit("::").next()
}

/// A list as it is in Python, which nobody lends and which is no macro's.
pub(super) fn bare_list(value: &str) -> &str {
    let list = value.trim_start_matches(['&', ' ']);
    list.strip_prefix("vec!").filter(|list| list.starts_with('[')).unwrap_or(list)
}

/// Whether a list has one element.
pub(super) fn is_one(elements: &str) -> bool {
    let words = Words::of(elements);
    words.between_commas(0, words.len()).len() == 1
}

pub(super) fn inside(value: &str) -> &str {
    &value[1..value.len() - 1]
}

/// An expression that something is called of.
pub(super) fn receiver(text: &str) -> Cow<'_, str> {
    let text = text.trim_start_matches(['&', ' ']);
    match syn::parse_str::<syn::Expr>(text) {
        Ok(syn::Expr::Binary(_) | syn::Expr::Unary(_) | syn::Expr::Cast(_) | syn::Expr::Range(_)) => {
            format!("({text})").into()
        }
        _ => text.into(),
    }
}
