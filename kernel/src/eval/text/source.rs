//! Generated source text that remembers, byte by byte, what of it the user wrote and where.
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A cell's text as the user wrote it, with the number it is known by; or what a macro made of it.
#[derive(Debug, PartialEq)]
pub struct CellText {
    pub cell: u64,
    pub text: String,
    /// For what a macro made: where its parts were copied from, which somebody wrote.
    copied: Vec<Copy>,
    /// And those that are one thing to other macros.
    pub whole: Vec<Range<usize>>,
}

#[derive(Debug, PartialEq)]
struct Copy {
    at: Range<usize>,
    from: Arc<CellText>,
    start: usize,
}

impl CellText {
    pub fn new(cell: u64, text: impl Into<String>) -> CellText {
        CellText { cell, text: text.into(), copied: Vec::new(), whole: Vec::new() }
    }

    /// Text with parts that were copied from other texts: which range of it is from where.
    pub fn copied<'a>(
        cell: u64,
        text: String,
        parts: impl Iterator<Item = (Range<usize>, &'a Arc<CellText>, usize)>,
    ) -> CellText {
        let mut copied = Vec::new();
        for (at, from, start) in parts {
            let parts = from.written(start..start + at.len());
            copied.extend(parts.into_iter().map(|(part, from, first)| {
                let at = at.start + part.start - start..at.start + part.end - start;
                Copy { at, from: from.clone(), start: first }
            }));
        }
        CellText { cell, text, copied, whole: Vec::new() }
    }

    /// The parts of a range that somebody wrote, with the text and the place where that was.
    pub fn written<'a>(self: &'a Arc<Self>, range: Range<usize>) -> Vec<(Range<usize>, &'a Arc<CellText>, usize)> {
        if self.copied.is_empty() {
            return vec![(range.clone(), self, range.start)];
        }
        let first = self.copied.partition_point(|c| c.at.end <= range.start);
        let parts = self.copied[first..].iter().take_while(|c| c.at.start < range.end);
        let part = |c: &'a Copy| {
            let at = c.at.start.max(range.start)..c.at.end.min(range.end);
            (at.clone(), &c.from, c.start + at.start - c.at.start)
        };
        parts.map(part).collect()
    }

    /// What messages call this cell.
    pub fn label(&self) -> String {
        match self.cell {
            0 => "cell".to_owned(),
            n => format!("cell {n}"),
        }
    }
}

/// Why a piece of text was generated, so that an error inside it can be told in the user's terms.
#[derive(Clone, Debug, PartialEq)]
pub enum Tag {
    Plain,
    /// Lets the cell wait for a future.
    Await,
    /// A program made of the cell's text needs it, too.
    Program,
    /// What stands for a call of the runtime's function of that name, unless the notebook has one; and whether a glob may bring one.
    Show(&'static str, bool),
    /// Fetches a variable; its type is written out here.
    Load(String),
    /// Stores a variable that this cell declares.
    Keep(String),
    /// Puts a variable of an earlier cell back.
    Restore(String),
    /// Repeats a `use` of an earlier cell, or imports an item (by its path) that one defined.
    Use(String),
    /// Repeats a macro of an earlier cell.
    Macro(String),
    /// Holds a variable that the cell declares, by its number in `Places`.
    Hold(usize),
    /// Lends a variable for good, by its number.
    Lend(usize),
    /// Boxes a closure that a variable is made of, by its number.
    Boxed(usize),
    /// What stands for a mention of a variable that is held.
    Mention(usize),
    /// The same for an assignment.
    Assignment(usize),
}

#[derive(Clone, Debug)]
enum Origin {
    Generated(Tag),
    User {
        text: Arc<CellText>,
        start: usize,
    },
    /// Stands for what the user wrote: to point at it means that.
    Instead {
        tag: Tag,
        text: Arc<CellText>,
        range: Range<usize>,
    },
}

#[derive(Clone, Debug)]
struct Piece {
    at: usize,
    len: usize,
    origin: Origin,
}

impl Piece {
    /// What of the user's it is, or stands for.
    fn user(&self) -> Option<(&Arc<CellText>, Range<usize>)> {
        match &self.origin {
            Origin::User { text, start } => Some((text, *start..start + self.len)),
            Origin::Instead { text, range, .. } => Some((text, range.clone())),
            Origin::Generated(_) => None,
        }
    }

    /// The user's bytes that a byte of it is, or stands for.
    fn user_at(&self, byte: usize) -> Option<(&Arc<CellText>, Range<usize>)> {
        let (text, range) = self.user()?;
        Some(match self.origin {
            Origin::Instead { .. } => (text, range),
            _ => {
                let at = range.start + byte.saturating_sub(self.at).min(self.len);
                (text, at..at + 1)
            }
        })
    }

    /// Where a byte of the user's is here, or what stands for it; behind the last one, too.
    fn here(&self, at: usize) -> Option<usize> {
        let (_, range) = self.user()?;
        Some(match self.origin {
            Origin::Instead { .. } if at >= range.end => self.at + self.len,
            Origin::Instead { .. } => self.at,
            _ => self.at + (at - range.start).min(self.len),
        })
    }
}

/// A replacement of part of a user's text.
#[derive(Clone, Debug, PartialEq)]
pub struct Splice {
    pub range: Range<usize>,
    pub text: String,
    pub tag: Tag,
}

impl Splice {
    pub fn insert(at: usize, text: impl Into<String>) -> Splice {
        Splice::replace(at..at, text)
    }

    pub fn replace(range: Range<usize>, text: impl Into<String>) -> Splice {
        Splice { range, text: text.into(), tag: Tag::Plain }
    }

    pub fn tagged(self, tag: Tag) -> Splice {
        Splice { tag, ..self }
    }
}

/// One thing that the session is to know of the user's code: see `Facts::read` in the runtime for the kinds.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub kind: char,
    pub ranges: Vec<Range<usize>>,
    pub words: Vec<String>,
}

/// Where a position in generated source comes from.
#[derive(Debug)]
pub enum Provenance<'a> {
    User { text: &'a Arc<CellText>, at: usize },
    Generated(&'a Tag),
}

#[derive(Clone, Debug, Default)]
pub struct Source {
    pub text: String,
    pieces: Vec<Piece>,
    /// What the session is to know of the user's code, where it stands here.
    facts: Vec<Fact>,
}

impl Source {
    pub fn generated(&mut self, tag: Tag, text: &str) {
        self.add(text, Origin::Generated(tag));
    }

    pub fn plain(&mut self, text: &str) {
        self.generated(Tag::Plain, text);
    }

    /// Adds part of the user's text with edits applied; they must be sorted and may not overlap.
    pub fn user(&mut self, text: &Arc<CellText>, range: Range<usize>, edits: &[Splice]) {
        let mut from = range.start;
        for edit in edits.iter().filter(|e| e.range.start >= range.start && e.range.end <= range.end) {
            self.verbatim(text, from..edit.range.start);
            let stands_for = matches!(edit.tag, Tag::Mention(_)) && !edit.range.is_empty();
            match text.written(edit.range.clone()).into_iter().next().filter(|_| stands_for) {
                Some((part, of, start)) => {
                    let (tag, range) = (edit.tag.clone(), start..start + part.len());
                    self.add(&edit.text, Origin::Instead { tag, text: of.clone(), range });
                }
                None => self.generated(edit.tag.clone(), &edit.text),
            }
            from = edit.range.end;
        }
        self.verbatim(text, from..range.end);
    }

    fn add(&mut self, text: &str, origin: Origin) {
        self.pieces.push(Piece { at: self.text.len(), len: text.len(), origin });
        self.text.push_str(text);
    }

    fn verbatim(&mut self, text: &Arc<CellText>, range: Range<usize>) {
        let mut from = range.start;
        for (at, of, start) in text.written(range.clone()).into_iter().filter(|(at, ..)| !at.is_empty()) {
            self.between(&text.text[from..at.start]);
            self.add(&text.text[at.clone()], Origin::User { text: of.clone(), start });
            from = at.end;
        }
        self.between(&text.text[from..range.end]);
    }

    /// What a macro put between two copies.
    fn between(&mut self, text: &str) {
        if !text.is_empty() {
            self.plain(text);
        }
    }

    /// Says what is to be known of these parts of the user's text, which is in here already.
    pub fn tell(&mut self, text: &Arc<CellText>, facts: &[Fact]) {
        let here = |p: &&Piece| p.user().is_some_and(|(of, _)| Arc::ptr_eq(of, text));
        let start = |p: &Piece| p.user().map_or(0, |(_, range)| range.start);
        let mut pieces: Vec<&Piece> = self.pieces.iter().filter(here).collect();
        pieces.sort_by_key(|p| start(p));
        let place = |at: usize| {
            let piece = *pieces.get(pieces.partition_point(|p| start(p) <= at).checked_sub(1)?)?;
            piece.here(at).filter(|_| piece.user().is_some_and(|(_, range)| at < range.end))
        };
        // Behind the last byte; a cell may go on behind the part of it that is here.
        let end = |at: usize| pieces.get(pieces.partition_point(|p| start(p) < at).checked_sub(1)?)?.here(at);
        let range = |r: &Range<usize>| match place(r.start)? {
            start if r.is_empty() => Some(start..start),
            start => Some(start..end(r.end)?),
        };
        let found = facts.iter().filter_map(|f| {
            let ranges = f.ranges.iter().map(range).collect::<Option<Vec<_>>>()?;
            Some(Fact { kind: f.kind, ranges, words: f.words.clone() })
        });
        let found: Vec<Fact> = found.collect();
        self.facts.extend(found);
    }

    /// What the session is to know of the user's code, as `Facts::read` of the runtime takes it: a word for each fact.
    pub fn facts(&self) -> String {
        let lines = Lines::of(&self.text);
        let place = |byte: usize| {
            let (line, column) = lines.place(byte);
            format!("{line}:{column}")
        };
        let mut out = String::new();
        for f in &self.facts {
            let ranges: Vec<String> = f.ranges.iter().map(|r| format!("{}-{}", place(r.start), place(r.end))).collect();
            out += &format!(" {};{}", f.kind, ranges.join(","));
            f.words.iter().for_each(|w| out += &format!(";{w}"));
        }
        out
    }

    /// Without what only the compile was about: what each piece of generated text in a row was for, but for the last, which
    /// stands at the user's.
    pub(super) fn settled(&self) -> Source {
        let mut pieces: Vec<Piece> = Vec::new();
        let generated = |p: &Piece| p.user().is_none();
        for (i, p) in self.pieces.iter().enumerate() {
            let inside = generated(p) && self.pieces.get(i + 1).is_none_or(generated);
            match pieces.last_mut() {
                Some(last) if inside && generated(last) => last.len += p.len,
                _ if inside => pieces.push(Piece { origin: Origin::Generated(Tag::Plain), ..*p }),
                _ => pieces.push(p.clone()),
            }
        }
        Source { text: self.text.clone(), pieces, facts: Vec::new() }
    }

    /// Where the byte comes from. A position at the end of the user's text counts as the user's.
    pub fn provenance(&self, byte: usize) -> Provenance<'_> {
        let Some(piece) = self.piece(byte) else { return Provenance::Generated(&Tag::Plain) };
        match &piece.origin {
            Origin::User { text, start } => {
                Provenance::User { text, at: start + byte.saturating_sub(piece.at).min(piece.len) }
            }
            Origin::Generated(tag) | Origin::Instead { tag, .. } => Provenance::Generated(tag),
        }
    }

    fn piece(&self, byte: usize) -> Option<&Piece> {
        let index = self.pieces.partition_point(|p| p.at + p.len <= byte);
        self.pieces.get(index).or(self.pieces.last())
    }

    /// The user's bytes that a range of generated source covers, when both its ends are the user's own.
    pub fn user_range(&self, range: Range<usize>) -> Option<(&Arc<CellText>, Range<usize>)> {
        let last = if range.is_empty() { range.start } else { range.end - 1 };
        let users = |byte: usize| self.piece(byte)?.user_at(byte);
        match (users(range.start), users(last)) {
            (Some((text, from)), Some((other, to)))
                if Arc::ptr_eq(text, other) && from.start < to.end && self.rises(range.start..last) =>
            {
                let end = if range.is_empty() { from.start } else { to.end };
                Some((text, from.start..end.min(text.text.len())))
            }
            // An empty position right behind the user's text (an unexpected end, say).
            _ if range.is_empty() && range.start > 0 => match self.provenance(range.start - 1) {
                Provenance::User { text, at } => Some((text, at + 1..at + 1)),
                Provenance::Generated(_) => None,
            },
            _ => None,
        }
    }

    /// Whether the user's text stands here as it does in the cell. What a macro made goes to and fro between rules and call.
    fn rises(&self, range: Range<usize>) -> bool {
        let touched = self.pieces.iter().filter(|p| p.at <= range.end && range.start < p.at + p.len);
        let users = touched.filter_map(|p| p.user().map(|(text, range)| (p, text, range)));
        let lines = |text: &str| text.matches('\n').count();
        users.is_sorted_by(|(a, of, before), (b, text, next)| {
            let gap = of.text.get(before.end..next.start).filter(|_| Arc::ptr_eq(of, text));
            gap.is_some_and(|gap| lines(gap) == lines(&self.text[a.at + a.len..b.at]))
        })
    }

    /// As [`Source::user_range`], and where the range begins or ends in what was generated around the user's text, the
    /// part of it that is the user's.
    pub fn user_part(&self, range: Range<usize>) -> Option<(&Arc<CellText>, Range<usize>)> {
        self.user_range(range.clone()).or_else(|| {
            let user = |p: &&Piece| p.user().is_some();
            let touched = |p: &&Piece| p.at < range.end && range.start < p.at + p.len;
            let first = self.pieces.iter().filter(user).find(touched)?;
            let last = self.pieces.iter().filter(user).rfind(touched)?;
            let end = |p: &Piece| range.end.min(p.at + p.len);
            let from = range.start.max(first.at);
            // What a macro made may begin in one text and end in another.
            self.user_range(from..end(last)).or_else(|| self.user_range(from..end(first)))
        })
    }

    /// Where in the user's text a change to this range goes; one that is put in front of text that was generated right before
    /// the user's goes in front of that.
    pub fn user_place_of_change(&self, range: Range<usize>) -> Option<(&Arc<CellText>, Range<usize>)> {
        self.user_range(range.clone()).or_else(|| {
            let index = self.pieces.iter().position(|p| p.at == range.start && range.is_empty())?;
            let next = self.pieces.get(index + 1)?.user().filter(|_| index > 0 && self.pieces[index].user().is_none());
            next.map(|(text, range)| (text, range.start..range.start))
        })
    }

    /// The texts that parts of it are from.
    pub fn texts(&self) -> Vec<&Arc<CellText>> {
        let mut out: Vec<&Arc<CellText>> = Vec::new();
        for piece in &self.pieces {
            match &piece.origin {
                Origin::User { text, .. } if !out.iter().any(|t| Arc::ptr_eq(t, text)) => out.push(text),
                _ => {}
            }
        }
        out
    }

    /// The last cell that it has text of: what an earlier one defined is compiled again with what that one did.
    pub fn last_cell(&self) -> Option<u64> {
        self.texts().iter().map(|t| t.cell).max()
    }

    /// Where the user's text ends, if there is any: in the cell, and here.
    pub fn end_of_user(&self) -> Option<(&Arc<CellText>, usize, usize)> {
        self.pieces.iter().rev().find_map(|p| p.user().map(|(text, range)| (text, range.end, p.at + p.len)))
    }

    /// The user's text at a 1-based line and column. A place in what was generated around an expression means it.
    pub fn user_place(&self, line: u32, column: u32) -> Option<(Arc<CellText>, usize)> {
        let byte = self.byte_at(line, column)?;
        let index = self.pieces.partition_point(|p| p.at + p.len <= byte);
        let found = self.pieces.get(index..)?.iter().take(2).find_map(|p| p.user_at(byte))?;
        let found = (found.0.clone(), found.1.start);
        let same_line = self.text[byte..].find('\n').is_none_or(|n| n > 0);
        same_line.then_some(found)
    }

    /// Where each piece of the user's text begins: the line and column here, the cell, those there.
    fn users_places(&self) -> impl Iterator<Item = ((u32, u32), u64, (u32, u32))> {
        let here = Lines::of(&self.text);
        let mut there: HashMap<*const CellText, Lines> = HashMap::new();
        self.pieces.iter().filter_map(move |p| {
            let (text, range) = p.user()?;
            let lines = there.entry(Arc::as_ptr(text)).or_insert_with(|| Lines::of(&text.text));
            Some((here.place(p.at), text.cell, lines.place(range.start)))
        })
    }

    /// Where the user's text stands further right than in the cell: from this line and column on, by so much. Lines begin as
    /// they do there.
    pub fn shifts(&self) -> Vec<(u32, u32, u32)> {
        let mut out: Vec<(u32, u32, u32)> = Vec::new();
        for ((line, column), _, (_, there)) in self.users_places() {
            let by = column.saturating_sub(there);
            let before = out.last().filter(|last| last.0 == line).map_or(0, |last| last.2);
            if by != before {
                out.push((line, column, by));
            }
        }
        out
    }

    /// Where text of other cells begins: the line here, the cell, the line there.
    pub fn elsewhere(&self, cell: u64) -> Vec<(u32, u64, u32)> {
        let mut out: Vec<(u32, u64, u32)> = Vec::new();
        for ((here, _), of, (there, _)) in self.users_places() {
            let last = out.last().copied().unwrap_or((1, cell, 1));
            // Goes on where the piece before it ended.
            if (of, there) != (last.1, last.2 + (here - last.0)) {
                out.push((here, of, there));
            }
        }
        out
    }

    /// The byte at a 1-based line and column (in characters), as rustc and `Location` count.
    pub fn byte_at(&self, line: u32, column: u32) -> Option<usize> {
        let mut start = 0;
        for _ in 1..line {
            start += self.text[start..].find('\n')? + 1;
        }
        let rest = &self.text[start..];
        let column = (column.max(1) - 1) as usize;
        Some(start + rest.char_indices().nth(column).map_or(rest.len(), |(i, _)| i))
    }
}

/// Where the lines of a text begin, for who asks for many places in it.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Lines<'t> {
        Lines { text, starts: std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect() }
    }

    /// As [`line_column`].
    fn place(&self, byte: usize) -> (u32, u32) {
        let byte = self.text.floor_char_boundary(byte.min(self.text.len()));
        let line = self.starts.partition_point(|start| *start <= byte);
        (line as u32, self.text[self.starts[line - 1]..byte].chars().count() as u32 + 1)
    }
}

/// 1-based line and column (in characters) of a byte.
pub fn line_column(text: &str, byte: usize) -> (u32, u32) {
    let before = &text[..text.floor_char_boundary(byte.min(text.len()))];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    (line as u32, before[line_start..].chars().count() as u32 + 1)
}

/// As many blanks as the text is long, with its line breaks: what follows keeps its line and column.
pub fn blanked(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_find_their_way_back() {
        let cell = Arc::new(CellText::new(3, "let ä = 1;\nfor i in 0..2 { f(i) }"));
        let brace = cell.text.find('{').unwrap() + 1;
        let mut source = Source::default();
        source.plain("#![x] fn cell() {");
        source.user(&cell, 0..cell.text.len(), &[Splice::insert(brace, "check();")]);
        source.plain("\n}");
        let lines = Lines::of(&source.text);
        assert!((0..=source.text.len()).all(|byte| lines.place(byte) == line_column(&source.text, byte)));
        let byte = source.byte_at(2, 25).unwrap();
        assert!(source.text[byte..].starts_with("f(i)"), "{}", &source.text[byte..]);
        let Provenance::User { text, at } = source.provenance(byte) else { panic!() };
        assert_eq!(line_column(&text.text, at), (2, 17));
        assert!(matches!(source.provenance(3), Provenance::Generated(Tag::Plain)));
        let (_, range) = source.user_range(byte..byte + 4).unwrap();
        assert_eq!(&cell.text[range], "f(i)");
        let fact = |ranges: &[Range<usize>]| Fact { kind: 'D', ranges: ranges.to_vec(), words: vec!["f".into()] };
        source.tell(&cell, &[fact(&[14..18, 14..14]), fact(&[28..32, 14..99]), fact(&[99..100, 14..18])]);
        assert_eq!(source.facts(), " D;2:3-2:7,2:3-2:3;f D;2:25-2:29,2:3-2:31;f");
    }

    #[test]
    fn what_only_a_compile_was_about_goes() {
        let cell = Arc::new(CellText::new(1, "f(x)\ng()"));
        let mut source = Source::default();
        (0..100).for_each(|i| source.generated(Tag::Use(format!("::g::{i}")), "use g; "));
        source.user(&cell, 0..cell.text.len(), &[Splice::insert(5, "check();")]);
        (0..100).for_each(|_| source.plain("}"));
        let settled = source.settled();
        // The prologue but for its last piece, that piece, the user's two around an edit, the end.
        assert_eq!((source.pieces.len(), settled.pieces.len()), (203, 6));
        for byte in 0..source.text.len() {
            let user = |s: &Source| s.user_range(byte..byte + 1).map(|(text, range)| (text.cell, range));
            assert_eq!(user(&source), user(&settled), "{byte}");
        }
        for (line, column) in [(1, 1), (1, 695), (1, 701), (2, 9)] {
            assert_eq!(source.user_place(line, column), settled.user_place(line, column), "{line}:{column}");
        }
    }

    #[test]
    fn what_stands_for_a_variable_points_at_it() {
        let cell = Arc::new(CellText::new(2, "m + x.len();\nm?"));
        let mention = |at: usize, text: &str| Splice::replace(at..at + 1, text).tagged(Tag::Mention(0));
        let mut source = Source::default();
        source.plain("fn cell() {\n");
        source.user(&cell, 0..cell.text.len(), &[mention(0, "(*m)"), mention(4, "(*x)"), mention(13, "f.take(m)")]);
        source.plain("\n}");
        let column = |line, column| source.user_place(line, column).map(|(text, at)| line_column(&text.text, at));
        // The sum, the method, and the error that `?` returns.
        assert_eq!([column(2, 1), column(2, 13), column(3, 1)], [Some((1, 1)), Some((1, 7)), Some((2, 1))]);
        let sum = source.text.find("(*m) + (*x)").unwrap();
        assert_eq!(source.user_range(sum..sum + 11).map(|(_, range)| range), Some(0..5));
        assert!(matches!(source.provenance(sum), Provenance::Generated(Tag::Mention(0))));
        source.tell(&cell, &[Fact { kind: 'D', ranges: vec![0..5, 13..15], words: vec![] }]);
        assert_eq!(source.facts(), " D;2:1-2:12,3:1-3:11");
    }
}
