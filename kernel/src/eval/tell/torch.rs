//! What somebody who knows PyTorch has written, and what it is here: the table of the page for people (`docs/from-pytorch.md`) is
//! the one that errors are looked up in.
use super::texts::Texts;
use crate::eval::text::scan::{self, Kind, Token};
use crate::eval::text::source::{CellText, Provenance, Source};
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

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
    tokens: Vec<Token>,
    /// It is no Rust.
    python: bool,
}

/// The rows of the page's tables that have code in their first two columns.
pub fn rows() -> &'static [Row] {
    static ROWS: LazyLock<Vec<Row>> = LazyLock::new(read);
    &ROWS
}

fn read() -> Vec<Row> {
    // A bar in code is written `\\|` in a table.
    let code = |cell: &str| Some(cell.trim().strip_prefix('`')?.strip_suffix('`')?.replace("\\|", "|"));
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix('|')?.split(" | ").collect();
        let [torch, xlazy, note] = cells[..] else { return None };
        let (torch, xlazy, note) = (code(torch)?, code(xlazy)?, note.trim().to_owned());
        let (tokens, python) = (tokens(&torch), syn::parse_str::<syn::Expr>(&torch).is_err());
        Some(Row { torch, xlazy, note, tokens, python })
    };
    PAGE.lines().filter_map(row).collect()
}

fn tokens(text: &str) -> Vec<Token> {
    scan::tokens(text).into_iter().filter(|t| t.kind != Kind::Comment).collect()
}

/// What a row's first letter stands for, and how rustc is asked whether what stands there is one.
const STANDS: [(&[&str], &str); 5] = [
    (&["x", "y", "t", "i", "m"], "impl Is for ::xlazy::Tensor {}"),
    (&["model", "a", "b"], "impl<T: ::xlazy::nn::Module + ?Sized> Is for T {}"),
    (&["loss"], "impl Is for ::xlazy::Tensor {}"),
    (&["opt"], "impl<T: ::xlazy::optim::Optimizer + ?Sized> Is for T {}"),
    (&["v", "w"], "impl<T: ?Sized> Is for T where for<'a> &'a T: ::core::iter::IntoIterator {}"),
];
const NUMBER: &str = "impl<T: ::core::convert::TryInto<i128> + Copy> Is for T {}";

/// Errors about names, and about types; what others say is about what comes after those are known.
const NAMES: [&str; 5] = ["E0423", "E0425", "E0432", "E0433", "E0531"];
const TYPES: [&str; 16] = [
    "E0061", "E0277", "E0308", "E0369", "E0599", "E0600", "E0604", "E0605", "E0606", "E0608", "E0609", "E0610",
    "E0614", "E0615", "E0616", "E0618",
];

/// What can be asked about a cell's text.
pub struct Rustc<'a> {
    /// Its errors about a source.
    pub ask: &'a dyn Fn(&str) -> Vec<Diagnostic>,
    /// The type of a variable of an earlier cell.
    pub type_of: &'a dyn Fn(&str) -> Option<&'a str>,
}

/// A row that stands where rustc points.
struct Candidate {
    said: String,
    /// What rustc is to be asked about before this is said.
    asks: Option<Asked>,
    /// Nothing but Python reads like this: it is said unless rustc says that it is about something else.
    python: bool,
}

/// Whether what stands at a place of the source is what a row is about.
#[derive(PartialEq)]
struct Asked {
    /// What is asked about, and what gives way to it where the source does not parse with it.
    at: Range<usize>,
    whole: Range<usize>,
    is: &'static str,
}

/// What to write instead of what rustc points at, for each error: where a row of the table stands there, and rustc says that it is
/// about what the row is about. A vector that is indexed wrongly hears what rustc has to say about vectors.
pub(super) fn hints(errors: &[&Diagnostic], texts: &Texts, rustc: &Rustc) -> Vec<Option<String>> {
    let candidates: Vec<Option<Candidate>> = errors.iter().map(|e| candidate(e, texts, rustc)).collect();
    let mut asked: Vec<&Asked> = Vec::new();
    for question in candidates.iter().flatten().filter_map(|c| c.asks.as_ref()) {
        if !asked.contains(&question) {
            asked.push(question);
        }
    }
    let answers = if asked.is_empty() { Vec::new() } else { ask(&asked, texts, rustc) };
    let answer = |c: &Candidate| match &c.asks {
        Some(question) => asked.iter().position(|a| *a == question).and_then(|i| *answers.get(i)?),
        None => Some(true),
    };
    let said = |c: &Candidate| answer(c).unwrap_or(c.python).then(|| c.said.clone());
    candidates.iter().map(|c| c.as_ref().and_then(said)).collect()
}

/// The row that stands where an error points.
fn candidate(error: &Diagnostic, texts: &Texts, rustc: &Rustc) -> Option<Candidate> {
    let about = match &*error.code {
        "" => About::Python,
        "E0618" => About::Call,
        code if NAMES.contains(&code) => About::Names,
        code if TYPES.contains(&code) => About::Types,
        _ => return None,
    };
    let span = error.spans.iter().find(|s| s.primary)?;
    let (text, at) = texts.map(span)?;
    let (line, in_line) = around(&text.text, at.clone())?;
    let found = instead(line, in_line.clone(), about)?;
    let python = about == About::Python;
    let said = found.said;
    let Some((subject, is)) = found.subject else { return Some(Candidate { said, asks: None, python }) };
    let first = at.start - in_line.start;
    let here = |r: &Range<usize>| place(texts.source, text, first + r.start..first + r.end).filter(|_| span.ours);
    match (here(&subject), here(&found.at)) {
        // The source has no variables of earlier cells where the cell does not parse.
        _ if python && (rustc.type_of)(&line[subject.clone()]).is_some_and(|t| !t.ends_with("Tensor")) => None,
        (Some(at), Some(whole)) => {
            let whole = if python { whole } else { at.clone() };
            Some(Candidate { said, asks: Some(Asked { at, whole, is }), python })
        }
        _ => python.then_some(Candidate { said, asks: None, python }),
    }
}

/// Where the user's text stands in the source.
fn place(source: &Source, text: &Arc<CellText>, range: Range<usize>) -> Option<Range<usize>> {
    let part = text.text.get(range.clone())?;
    let find = |c: char, at: usize| {
        let is = |here: &usize| match source.provenance(*here) {
            Provenance::User { text: of, at: there } => Arc::ptr_eq(of, text) && there == at,
            Provenance::Generated(_) => false,
        };
        source.text.match_indices(c).map(|(here, _)| here).find(is)
    };
    let (first, last) = (part.chars().next()?, part.chars().next_back()?);
    let end = find(last, range.end - last.len_utf8())? + last.len_utf8();
    find(first, range.start).map(|start| start..end)
}

/// The method that no type has: where rustc misses it, it has come to know the type.
const METHOD: &str = "xlazy_method";

/// Asks rustc about all of it at once; no answer where it does not get as far as types.
fn ask(asked: &[&Asked], texts: &Texts, rustc: &Rustc) -> Vec<Option<bool>> {
    let text = &texts.source.text;
    // Where, whether it closes, how long what it is about is, and what.
    let mut parts: Vec<(usize, bool, usize, String)> = Vec::new();
    for (i, question) in asked.iter().enumerate() {
        let Asked { at, is, .. } = question;
        let of = is.replace("Is ", &format!("XlazyIs{i} "));
        parts.push((at.start, false, at.len(), "(match (".to_owned()));
        let checks = format!(
            ") {{ ref xlazy_it => {{ trait XlazyIs{i} {{ fn xlazy_is_{i}(&self) {{}} }} {of} xlazy_it.xlazy_is_{i}(); \
             xlazy_it.{METHOD}_{i}(); loop {{}} }} }})"
        );
        parts.push((at.end, true, at.len(), checks));
    }
    // What closes comes before what opens, and the inner one first.
    parts.sort_by_key(|(at, closes, len, _)| (*at, !closes, if *closes { *len as isize } else { -(*len as isize) }));
    let gives_way = |at: usize| asked.iter().any(|a| a.whole.contains(&at) && !a.at.contains(&at));
    let (mut source, mut from) = (String::new(), 0);
    let mut copy = |source: &mut String, to: usize| {
        let kept = text[from..to].char_indices().filter(|(i, _)| !gives_way(from + i)).map(|(_, c)| c);
        source.extend(kept);
        from = to;
    };
    for (at, _, _, part) in &parts {
        copy(&mut source, *at);
        source.push_str(part);
    }
    copy(&mut source, text.len());
    let errors: String = (rustc.ask)(&source).iter().map(|e| e.message.clone() + "\n").collect();
    let missed = |i: usize| {
        let misses = |method: &str| errors.contains(&format!("`{method}_{i}`"));
        misses(METHOD).then(|| !misses("xlazy_is"))
    };
    (0..asked.len()).map(missed).collect()
}

/// Which rows an error may be about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum About {
    /// Those that are no Rust.
    Python,
    /// Those that name something.
    Names,
    Types,
    /// Calls of what is no function.
    Call,
}

/// A row that stands somewhere: what it says, and of what it is to be known that it is that.
struct Found {
    said: String,
    at: Range<usize>,
    subject: Option<(Range<usize>, &'static str)>,
}

/// The row that says most about what stands at `at` of a line.
///
/// In a row a single letter, `model`, `loss` or `opt` stands for any expression, and so does a number; `2, 3` stands for a list of any
/// length.
fn instead(line: &str, at: Range<usize>, about: About) -> Option<Found> {
    let user = Words::of(line);
    let mut best: Option<(usize, Found)> = None;
    for row in rows().iter().filter(|row| row.torch != row.xlazy) {
        let pattern = Words { text: &row.torch, tokens: Cow::Borrowed(&row.tokens) };
        let said = (0..pattern.len()).filter(|&i| pattern.meta(i).is_none()).count();
        let call = pattern.meta(0).is_some() && pattern.word(1) == "(";
        let wanted = match about {
            About::Call => call || pattern.is_library(),
            About::Python => !call && row.python,
            About::Names | About::Types => !call,
        };
        if !wanted {
            continue;
        }
        if best.as_ref().is_some_and(|(most, _)| *most >= said) {
            continue;
        }
        let found = (0..user.len()).find_map(|i| {
            let (range, captured) = found_at(&pattern, &user, i)?;
            (range.start <= at.start && at.end <= range.end).then_some((range, captured))
        });
        let Some((range, captured)) = found else { continue };
        let code = filled(&row.xlazy, &captured);
        // A row of the library's own names is known by them, and `True` by itself.
        let library = pattern.is_library();
        let subject = subject(&pattern, &captured).filter(|_| !library);
        let alone = library || subject.is_none();
        let fits = match about {
            About::Python => true,
            // Of `nn::NAME` rustc points at the name.
            About::Names | About::Call => !alone || !line[range.start..at.start].contains(['(', '[']),
            About::Types => !alone,
        };
        if !fits || code == line[range.clone()] {
            continue;
        }
        let note = if row.note.is_empty() { String::new() } else { format!(" ({})", row.note) };
        best = Some((said, Found { said: format!("{ANSWER}`{code}`{note}"), at: range, subject }));
    }
    best.map(|(_, found)| found).or_else(|| op(&user, &at).filter(|_| about == About::Names))
}

/// The page of all ops, which is written from their table.
const OPS: &str = include_str!("../../../../docs/ops.md");

/// A function of torch's that is a method here: `torch.NAME(x, …)` and `F.NAME(x, …)`.
fn op(user: &Words, at: &Range<usize>) -> Option<Found> {
    let first = (0..user.len()).find(|i| user.tokens[*i].range.start == at.start)?;
    let module = match user.word(first) {
        "torch" => "",
        "F" => "nn.functional.",
        _ => return None,
    };
    let name = first + if user.word(first + 1) == "." { 2 } else { 3 };
    let row = format!("| `{module}{}` | `Tensor::", user.word(name));
    let method = OPS.lines().find_map(|line| line.strip_prefix(&row)?.split('`').next())?;
    let end = user.behind_brackets(name + 1).filter(|_| user.word(name + 1) == "(")?;
    let behind_first = user.up_to(name + 2, ",", false).filter(|i| *i < end).unwrap_or(end - 1);
    let (subject, _) = user.part(name + 2, behind_first)?;
    let rest = user.part(behind_first + 1, end - 1).map(|(rest, _)| rest).unwrap_or_default();
    let range = at.start..user.tokens[end - 1].range.end;
    Some(Found { said: format!("{ANSWER}`{subject}.{method}({rest})`"), at: range, subject: None })
}

/// What of the text a row is about: what its first letter that says what it is stands for, or else its first number.
fn subject(pattern: &Words, captured: &Captured) -> Option<(Range<usize>, &'static str)> {
    let metas = || (0..pattern.len()).filter(|&i| pattern.meta(i) == Some(Meta::One));
    let stands =
        |i: usize| STANDS.iter().find(|(letters, _)| letters.contains(&pattern.word(i))).map(|(_, is)| (i, *is));
    let number = || metas().find(|&i| pattern.kind(i) == Some(Kind::Number)).map(|i| (i, NUMBER));
    let (i, is) = metas().find_map(stands).or_else(number)?;
    Some((captured.get(pattern.word(i))?.1.clone(), is))
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
    tokens: Cow<'t, [Token]>,
}

impl<'t> Words<'t> {
    fn of(text: &'t str) -> Words<'t> {
        Words { text, tokens: Cow::Owned(tokens(text)) }
    }

    fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Of a row: it begins with one of the library's modules.
    fn is_library(&self) -> bool {
        self.meta(0).is_none() && self.word(1) == "."
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
            // The name of a file, say.
            Kind::Literal => word.starts_with('"'),
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

    /// The text of some of them, and where it is.
    fn part(&self, from: usize, to: usize) -> Option<(String, Range<usize>)> {
        let (first, last) = (self.tokens.get(from)?, self.tokens.get(to.checked_sub(1)?).filter(|_| from < to)?);
        let range = first.range.start..last.range.end;
        Some((self.text[range.clone()].to_owned(), range))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Meta {
    One,
    Several,
}

/// What a row's letters stand for, and where that is.
type Captured = HashMap<String, (String, Range<usize>)>;

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

/// A row's other side with what was captured.
fn filled(xlazy: &str, captured: &Captured) -> String {
    let words = Words::of(xlazy);
    let (mut out, mut end, mut i) = (String::new(), 0, 0);
    while i < words.len() {
        let (name, width) = if words.meta(i) == Some(Meta::Several) { ("2, 3", 3) } else { (words.word(i), 1) };
        let range = words.tokens[i].range.start..words.tokens[(i + width - 1).min(words.len() - 1)].range.end;
        out.push_str(&xlazy[end..range.start]);
        match captured.get(name).filter(|_| words.meta(i).is_some()) {
            Some((text, _)) => {
                // A number is not lent.
                let number = text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
                out.truncate(out.len() - usize::from(number && out.ends_with('&')));
                out.push_str(text);
            }
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
        let name = |about| instead(text, at..at + what.len(), about).map(|found| found.said);
        let said = name(About::Names).or_else(|| name(About::Types)).unwrap_or_default();
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
        let all = rows();
        assert!(all.len() > 140, "{}", all.len());
        for (i, row) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| other.torch != row.torch), "{row:?}");
        }
    }
}
