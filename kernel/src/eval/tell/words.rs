//! Text as the rows of the table for people from torch are found in it: by tokens, some of which stand for any expression.
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

    /// Of a row: what stands for any expression, or for several of them.
    pub fn meta(&self, i: usize) -> Option<Meta> {
        let word = self.word(i);
        let a_list = |i: usize| self.word(i) == "2" && self.word(i + 1) == "," && self.word(i + 2) == "3";
        if a_list(i) {
            return Some(Meta::Several);
        }
        // What is named behind a point or called is a name.
        let named = i > 0 && self.word(i - 1) == "." || self.word(i + 1) == "(" || self.word(i + 1) == "!";
        let stands = match self.kind(i)? {
            Kind::Ident => {
                word == "model" || !named && (matches!(word, "loss" | "opt") || word.len() == 1 && word != "F")
            }
            Kind::Number => true,
            // The name of a file, say.
            Kind::Literal => word.starts_with('"'),
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
                Some(Kind::Punct('.')) if self.kind(at + 1) == Some(Kind::Ident) => at += 2,
                _ => return Some(at),
            }
        }
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
            let opens = start == 0 || self.word(start - 1) != "." && self.kind(start) == Some(Kind::Ident);
            opens && self.operand(start).is_some_and(|end| end >= i && self.within(start, i))
        })
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

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Meta {
    One,
    Several,
}

/// What a row's letters stand for, and where that is.
pub(super) type Captured = HashMap<String, (String, Range<usize>)>;

/// What torch's constructors take by name, whatever stands at its place in the order.
pub(super) const OPTIONS: &[&str] = &[
    "bias",
    "stride",
    "padding",
    "dilation",
    "groups",
    "padding_mode",
    "ceil_mode",
    "momentum",
    "weight_decay",
    "betas",
    "eps",
    "nesterov",
    "amsgrad",
    "label_smoothing",
    "ignore_index",
    "reduction",
    "batch_first",
    "num_layers",
    "bidirectional",
    "dropout",
    "num_workers",
    "drop_last",
    "sampler",
    "dtype",
    "device",
    "requires_grad",
];

/// A row at a token: where it stands in the text, and what its letters and numbers stand for.
pub(super) fn found_at(pattern: &Words, user: &Words, start: usize) -> Option<(Range<usize>, Captured)> {
    let mut captured = Captured::new();
    let (mut p, mut u, mut first) = (0, start, start);
    // A receiver in front is whatever the rest is called of.
    if pattern.meta(0).is_some() && pattern.len() > 1 {
        if user.word(start) != pattern.word(1) {
            return None;
        }
        first = user.operand_before(start)?;
        captured.insert(pattern.word(0).to_owned(), user.part(first, start)?);
        p = 1;
    }
    while p < pattern.len() {
        let Some(meta) = pattern.meta(p) else {
            // Arguments have no names here: `dim=1` is `1`.
            if p > 0 && user.kind(u) == Some(Kind::Ident) && user.word(u + 1) == "=" && pattern.word(p) != user.word(u)
            {
                u += 2;
            }
            // `nn::Linear::new(…)` is half of the way.
            if pattern.word(p) == "(" && pattern.is_library() && (1..=2).all(|i| user.word(u + i - 1) == ":") {
                u += if user.word(u + 2) == "new" { 3 } else { return None };
            }
            let same = user.word(u) == pattern.word(p) && u < user.len();
            // `F::relu` is how somebody writes `F.relu` who has heard of Rust.
            let as_path =
                pattern.is_library() && pattern.word(p) == "." && user.word(u) == ":" && user.word(u + 1) == ":";
            (same || as_path).then_some(())?;
            (p, u) = (p + 1, u + if as_path { 2 } else { 1 });
            continue;
        };
        let (name, width) = if meta == Meta::Several { ("2, 3", 3) } else { (pattern.word(p), 1) };
        if p > 0 && user.kind(u) == Some(Kind::Ident) && user.word(u + 1) == "=" && user.word(u + 2) != "=" {
            // By its name an option is itself, wherever it stands.
            if OPTIONS.contains(&user.word(u)) && pattern.word(p.checked_sub(1)?) != "=" {
                return None;
            }
            u += 2;
        }
        let end = match pattern.word(p + width) {
            "" => user.operand(u)?,
            next => user.up_to(u, next, meta == Meta::Several)?,
        };
        let (text, range) = user.part(u, end)?;
        let text = match &*text {
            "True" => "true".to_owned(),
            "False" => "false".to_owned(),
            // A list of its own is the list.
            list if meta == Meta::Several
                && matches!(user.kind(u), Some(Kind::Open(_)))
                && user.behind_brackets(u) == Some(end) =>
            {
                list[1..list.len() - 1].to_owned()
            }
            _ => text,
        };
        captured.insert(name.to_owned(), (text, range));
        (p, u) = (p + width, end);
    }
    let last = user.tokens.get(u.checked_sub(1)?)?;
    Some((user.tokens[first].range.start..last.range.end, captured))
}
