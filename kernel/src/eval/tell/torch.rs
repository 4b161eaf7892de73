//! What somebody who knows PyTorch has written, and what it is here: the table of the page for people (`docs/from-pytorch.md`) is
//! the one that errors are looked up in.
use super::texts::Texts;
use crate::eval::text::scan::{self, Kind, Token};
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};
use std::collections::HashMap;
use std::ops::Range;

/// A table's rows are `| PyTorch | xlazy | note |`.
const PAGE: &str = include_str!("../../../../docs/from-pytorch.md");

/// How what is told begins.
pub(super) const ANSWER: &str = "in xlazy: ";

/// One row of the table.
#[derive(Debug)]
pub struct Row {
    pub torch: String,
    pub xlazy: String,
    pub note: String,
}

/// The rows of the page's tables that have code in their first two columns.
pub fn rows() -> impl Iterator<Item = Row> {
    // A bar in code is written `\\|` in a table.
    let code = |cell: &str| Some(cell.trim().strip_prefix('`')?.strip_suffix('`')?.replace("\\|", "|"));
    PAGE.lines().filter_map(move |line| {
        let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix('|')?.split(" | ").collect();
        let [torch, xlazy, note] = cells[..] else { return None };
        Some(Row { torch: code(torch)?, xlazy: code(xlazy)?, note: note.trim().to_owned() })
    })
}

/// What to write instead of what rustc points at, where a row of the table fits.
pub(super) fn hint(error: &Diagnostic, texts: &Texts) -> Option<String> {
    let said = error.text();
    let labels = error.spans.iter().filter_map(|s| s.label.as_deref());
    let of_tensors = said.contains("Tensor") || labels.clone().any(|l| l.contains("Tensor")) || in_the_runtime(error);
    let about = match &*error.code {
        // What is called is no function.
        "E0618" => About::Call,
        // What is not even Rust may be about anything.
        "" => About::Tensors,
        _ if of_tensors => About::Tensors,
        // A name that nobody has declared is nobody's.
        "E0425" | "E0423" | "E0433" | "E0432" | "E0614" | "E0531" => About::Names,
        _ => return None,
    };
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    instead(&text.text, at, about)
}

/// Which rows an error may be about.
#[derive(Clone, Copy, PartialEq)]
enum About {
    /// Those that name something.
    Names,
    Tensors,
    /// Calls of what is no function.
    Call,
}

/// Whether rustc says of something of ours that it is defined there.
fn in_the_runtime(error: &Diagnostic) -> bool {
    let ours = |s: &Span| !s.ours && s.file.contains("runtime/src/");
    error.spans.iter().any(ours) || error.children.iter().any(in_the_runtime)
}

/// What to write instead of what stands at `at`, by the row that says most about it. Rows of nothing but signs are about tensors.
///
/// In a row a single letter, `model`, `loss` or `opt` stands for any expression, and so does a number; `2, 3` stands for a list of any
/// length.
fn instead(text: &str, at: Range<usize>, about: About) -> Option<String> {
    let (text, at) = around(text, at)?;
    let user = Words::of(text);
    let mut best: Option<(usize, String)> = None;
    for row in rows().filter(|row| row.torch != row.xlazy) {
        let pattern = Words::of(&row.torch);
        let said = (0..pattern.len()).filter(|&i| pattern.meta(i).is_none()).count();
        let named = (0..pattern.len()).any(|i| pattern.kind(i) == Some(Kind::Ident) && pattern.meta(i).is_none());
        let call = pattern.meta(0).is_some() && pattern.word(1) == "(";
        if call != (about == About::Call) || about == About::Names && !named && !row.torch.contains("**") {
            continue;
        }
        if best.as_ref().is_some_and(|(most, _)| *most >= said) {
            continue;
        }
        let found = (0..user.len()).find_map(|i| {
            let (range, captured) = found_at(&pattern, &user, i)?;
            (range.start <= at.start && at.end <= range.end).then_some(captured)
        });
        if let Some(captured) = found {
            let code = filled(&row.xlazy, &captured);
            let note = if row.note.is_empty() { String::new() } else { format!(" ({})", row.note) };
            best = Some((said, format!("{ANSWER}`{code}`{note}")));
        }
    }
    best.map(|(_, said)| said)
}

/// The lines that a place is in: what is looked for is an expression of one line.
fn around(text: &str, at: Range<usize>) -> Option<(&str, Range<usize>)> {
    const LONGEST: usize = 400;
    let start = text.get(..at.start)?.rfind('\n').map_or(0, |i| i + 1);
    let end = text.get(at.end..)?.find('\n').map_or(text.len(), |i| at.end + i);
    (end - start <= LONGEST).then(|| (&text[start..end], at.start - start..at.end - start))
}

/// Text with its tokens.
struct Words<'t> {
    text: &'t str,
    tokens: Vec<Token>,
}

impl<'t> Words<'t> {
    fn of(text: &'t str) -> Words<'t> {
        Words { text, tokens: scan::tokens(text).into_iter().filter(|t| t.kind != Kind::Comment).collect() }
    }

    fn len(&self) -> usize {
        self.tokens.len()
    }

    fn word(&self, i: usize) -> &'t str {
        self.tokens.get(i).map_or("", |t| &self.text[t.range.clone()])
    }

    fn kind(&self, i: usize) -> Option<Kind> {
        self.tokens.get(i).map(|t| t.kind)
    }

    /// Of a row: what stands for any expression, or for several of them.
    fn meta(&self, i: usize) -> Option<Meta> {
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
            _ => false,
        };
        stands.then_some(Meta::One)
    }

    /// Behind the expressions from `i` on: up to `end`, outside of brackets.
    fn up_to(&self, i: usize, end: &str, several: bool) -> Option<usize> {
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
    fn operand(&self, i: usize) -> Option<usize> {
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

    fn behind_brackets(&self, i: usize) -> Option<usize> {
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
    fn operand_before(&self, i: usize) -> Option<usize> {
        (0..i).find(|&start| {
            let opens = start == 0 || self.word(start - 1) != "." && self.kind(start) == Some(Kind::Ident);
            opens && self.operand(start).is_some_and(|end| end >= i && self.within(start, i))
        })
    }

    /// Whether brackets are even between two tokens.
    fn within(&self, from: usize, to: usize) -> bool {
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

    fn slice(&self, from: usize, to: usize) -> &'t str {
        match (self.tokens.get(from), self.tokens.get(to.wrapping_sub(1))) {
            (Some(first), Some(last)) if from < to => &self.text[first.range.start..last.range.end],
            _ => "",
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Meta {
    One,
    Several,
}

type Captured = HashMap<String, String>;

/// A row at a token: where it stands in the text, and what its letters and numbers stand for.
fn found_at(pattern: &Words, user: &Words, start: usize) -> Option<(Range<usize>, Captured)> {
    let mut captured = Captured::new();
    let (mut p, mut u, mut first) = (0, start, start);
    // A receiver in front is whatever the rest is called of.
    if pattern.meta(0).is_some() && pattern.len() > 1 {
        if user.word(start) != pattern.word(1) {
            return None;
        }
        first = user.operand_before(start)?;
        captured.insert(pattern.word(0).to_owned(), user.slice(first, start).to_owned());
        p = 1;
    }
    while p < pattern.len() {
        let Some(meta) = pattern.meta(p) else {
            // Arguments have no names here: `dim=1` is `1`.
            if user.kind(u) == Some(Kind::Ident) && user.word(u + 1) == "=" && pattern.word(p) != user.word(u) {
                u += 2;
            }
            let same = user.word(u) == pattern.word(p) && u < user.len();
            same.then_some(())?;
            (p, u) = (p + 1, u + 1);
            continue;
        };
        let (name, width) = if meta == Meta::Several { ("2, 3", 3) } else { (pattern.word(p), 1) };
        if user.kind(u) == Some(Kind::Ident) && user.word(u + 1) == "=" && user.word(u + 2) != "=" {
            u += 2;
        }
        let end = match pattern.word(p + width) {
            "" => user.operand(u)?,
            next => user.up_to(u, next, meta == Meta::Several)?,
        };
        let text = match user.slice(u, end) {
            "True" => "true",
            "False" => "false",
            text => text,
        };
        captured.insert(name.to_owned(), text.to_owned());
        (p, u) = (p + width, end);
    }
    let last = user.tokens.get(u.checked_sub(1)?)?;
    Some((user.tokens[first].range.start..last.range.end, captured))
}

/// A row's other side with what was captured.
fn filled(xlazy: &str, captured: &Captured) -> String {
    let words = Words::of(xlazy);
    let (mut out, mut end, mut i) = (String::new(), 0, 0);
    while i < words.len() {
        let (name, width) = if words.meta(i) == Some(Meta::Several) { ("2, 3", 3) } else { (words.word(i), 1) };
        let range = words.tokens[i].range.start..words.tokens[(i + width - 1).min(words.len() - 1)].range.end;
        out.push_str(&xlazy[end..range.start]);
        match captured.get(name).filter(|_| words.meta(i).is_some()) {
            Some(text) => out.push_str(text),
            None => out.push_str(&xlazy[range.clone()]),
        }
        (end, i) = (range.end, i + width);
    }
    out + &xlazy[end..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, what: &str) -> String {
        let at = text.find(what).unwrap();
        let said = instead(text, at..at + what.len(), About::Tensors).unwrap_or_default();
        said.split('`').nth(1).unwrap_or_default().to_owned()
    }

    #[test]
    fn rows_stand_for_what_is_like_them() {
        assert_eq!(of("let a = h.relu().sum(1) + 2;", "sum"), "h.relu().sum_dim(1, false)");
        assert_eq!(of("x.sum(dim=-1, keepdim=True)", "dim"), "x.sum_dim(-1, true)");
        assert_eq!(of("f(&loss_fn(a)[0])", "loss_fn(a)[0]"), "loss_fn(a).i(0)");
        assert_eq!(of("torch.zeros(4, n, 7)", "torch"), "Tensor::zeros([4, n, 7])");
        assert_eq!(of("F.relu(self.fc1.forward(x))", "F"), "self.fc1.forward(x).relu()");
        assert_eq!(of("if x.abs() > y { }", "x.abs() > y"), "x.abs().gt(y)");
        assert_eq!(of("net.train()", "train"), "net.train(true)");
        assert_eq!(of("len(v)", "len"), "v.size(0)");
        assert_eq!(of("let q = v + w;", "v"), "");
    }

    #[test]
    fn the_table_is_long_enough_to_be_of_use_and_has_each_once() {
        let all: Vec<Row> = rows().collect();
        assert!(all.len() > 140, "{}", all.len());
        for (i, row) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| other.torch != row.torch), "{row:?}");
        }
    }
}
