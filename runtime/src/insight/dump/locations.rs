//! MLIR's locations: names, files, calls, and several fused into one.
use super::module::{From, Line};
use super::tokens::{Token, unquoted};
use std::cell::Cell;
use std::collections::HashMap;

/// How deep locations may stand in one another.
const DEEPEST: usize = 64;

/// Frames of a call chain that are looked at.
const FRAMES: usize = 64;

/// Parts of one location that are looked at: of names that mention one another there is no end.
const MOST: usize = 4096;

/// `#loc3 = loc(…)`: where in the tokens each name for a location begins.
pub(super) struct Locations<'a> {
    tokens: &'a [Token<'a>],
    names: HashMap<&'a str, usize>,
    /// Parts of the location at hand that may still be looked at.
    left: Cell<usize>,
}

#[derive(Default)]
struct Chain {
    name: Option<String>,
    /// From the innermost on.
    frames: Vec<Line>,
}

impl<'a> Locations<'a> {
    pub fn of(tokens: &'a [Token<'a>]) -> Locations<'a> {
        let mut names = HashMap::new();
        for (i, w) in tokens.windows(4).enumerate() {
            if w[0].first && w[0].text.starts_with('#') && w[1].text == "=" && w[2].text == "loc" && w[3].text == "(" {
                names.insert(w[0].text, i + 4);
            }
        }
        Locations { tokens, names, left: Cell::new(0) }
    }

    /// What the location says that begins at this token, behind `loc(`.
    pub fn read(&self, at: usize) -> From {
        let mut chain = Chain::default();
        self.left.set(MOST);
        self.walk(at, &mut chain, DEEPEST);
        From::of(chain.name, &chain.frames)
    }

    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |t| t.text)
    }

    /// Reads one location; gives the token behind it.
    fn walk(&self, at: usize, chain: &mut Chain, depth: usize) -> usize {
        if depth == 0 || self.left.get() == 0 || chain.frames.len() >= FRAMES {
            return at + 1;
        }
        self.left.update(|left| left - 1);
        let text = self.text(at);
        if text.starts_with('#') {
            if let Some(&there) = self.names.get(text) {
                self.walk(there, chain, depth - 1);
            }
            return at + 1;
        }
        if text.starts_with('"') {
            let number = |at: usize| self.text(at).parse::<u32>().ok().filter(|_| self.text(at - 1) == ":");
            if let Some(line) = number(at + 2) {
                let column = number(at + 4);
                chain.frames.push(Line { file: unquoted(text), line, column: column.unwrap_or(0) });
                let mut end = at + if column.is_some() { 5 } else { 3 };
                // `"f.py":3:4 to 3:9`
                if self.text(end) == "to" {
                    end += 1;
                    while self.text(end) == ":" || number(end).is_some() || self.text(end).parse::<u32>().is_ok() {
                        end += 1;
                    }
                }
                return end;
            }
            chain.name.get_or_insert_with(|| unquoted(text));
            if self.text(at + 1) == "(" {
                return self.walk(at + 2, chain, depth - 1) + 1;
            }
            return at + 1;
        }
        match text {
            "callsite" => {
                let behind = self.walk(at + 2, chain, depth - 1);
                if self.text(behind) == "at" { self.walk(behind + 1, chain, depth - 1) + 1 } else { behind }
            }
            "fused" => {
                let mut next = at + 1;
                while !matches!(self.text(next), "[" | "") {
                    next += 1;
                }
                next += 1;
                // One of them stands for all: the first that says where it is.
                while !matches!(self.text(next), "]" | "") {
                    let mut one = Chain::default();
                    next = self.walk(next, &mut one, depth - 1).max(next + 1);
                    chain.name = chain.name.take().or(one.name);
                    if chain.frames.is_empty() {
                        chain.frames = one.frames;
                    }
                    if self.text(next) == "," {
                        next += 1;
                    }
                }
                next + 1
            }
            _ => at + 1,
        }
    }
}
