//! Advised changes of the cells' code as data: where each goes follows from how far statements and expressions are said to go.
use super::facts::{Extent, LoopFact, LoopKind, Somewhere, Spot, Statement, calls, facts, function, loops};
use super::{Point, column_of, find_line, kept};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

/// A change of a cell's text: what stands between two places becomes `text`. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub cell: u64,
    pub from: Point,
    pub to: Point,
    pub text: String,
}

/// A method called on what the expression at this place gives: `.to(F32)`.
pub fn append(at: &impl Somewhere, text: &str) -> Option<Vec<Edit>> {
    let (file, extent) = extent(at)?;
    let end = Edit::of(&file, extent.range.end..extent.range.end, text)?;
    match extent.operator {
        false => Some(vec![end]),
        true => {
            let start = Edit::of(&file, extent.range.start..extent.range.start, "(")?;
            Some(vec![start, Edit { text: format!("){text}"), ..end }])
        }
    }
}

/// Whether this is called already on what the expression at this place gives.
pub fn is_followed_by(at: &impl Somewhere, text: &str) -> bool {
    let behind = |(file, extent): (Arc<str>, Extent)| {
        let (cell, at) = in_cell(&file, extent.range.end)?;
        let behind: String = line(cell, at.0)?.chars().skip(at.1 as usize - 1).collect();
        Some(behind.starts_with(text))
    };
    extent(at).and_then(behind).unwrap_or_default()
}

/// Another expression in the place of the one here.
pub fn replace(at: &impl Somewhere, text: &str) -> Option<Vec<Edit>> {
    let (file, extent) = extent(at)?;
    Some(vec![Edit::of(&file, extent.range, text)?])
}

/// A statement before the one that this place is in.
pub fn insert_before(at: &impl Somewhere, text: &str) -> Option<Vec<Edit>> {
    let around = around(at)?;
    let start = match around.innermost() {
        Some(s) => s.range.start,
        // What a cell says before each of its statements stands right before it.
        None => {
            let (_, facts) = facts(at.file())?;
            let starts = facts.statements.iter().map(|s| s.range.start);
            starts.filter(|s| s.0 == at.point().0 && *s >= at.point()).min()?
        }
    };
    let gap = Gap::at(&around.file, start)?;
    Some(vec![Edit::of(&around.file, start..start, &format!("{text}{}", gap.0))?])
}

/// A statement behind the one that this place is in. Behind the value of a function none can stand: there the place is behind
/// the call of it, if there is one alone. It stands before `before`.
pub fn insert_behind(at: &impl Somewhere, text: &str, before: &impl Somewhere) -> Option<Vec<Edit>> {
    let mut at = Spot::new(&Arc::from(at.file()), at.point());
    for _ in 0..MOST_CALLERS {
        let around = around(&at)?;
        let here = around.innermost()?;
        if here.range.contains(&before.point()) && *around.file == *before.file() {
            return None;
        }
        if !here.tail {
            return Some(vec![around.behind(here, text)?]);
        }
        let [call] = &calls(&function(&at)?)[..] else { return None };
        at = call.clone();
    }
    None
}

/// How far callers are followed.
const MOST_CALLERS: usize = 6;

/// A statement at the end of each round of the innermost loop around this place, or around the one call that leads to it.
pub fn insert_in_each_round(at: &impl Somewhere, text: &str) -> Option<Vec<Edit>> {
    let mut at = Spot::new(&Arc::from(at.file()), at.point());
    for _ in 0..MOST_CALLERS {
        if let Some(around) = loops(&at).first() {
            return insert_in_each_round_of(around, text);
        }
        let [call] = &calls(&function(&at)?)[..] else { return None };
        at = call.clone();
    }
    None
}

/// A statement at the end of each round of this loop.
pub fn insert_in_each_round_of(around: &LoopFact, text: &str) -> Option<Vec<Edit>> {
    let (file, facts) = facts(&around.body.file)?;
    let body = around.body.point()..around.end.point();
    let inside = |s: &&Statement| body.start <= s.range.start && s.range.end <= body.end;
    let last = facts.statements.iter().filter(inside).max_by_key(|s| (s.range.end, Reverse(s.range.start)))?;
    let ends = match (last.tail, around.kind) {
        (true, LoopKind::Closure) => return None,
        // What a round ends in is no value.
        (true, _) => ";",
        _ => "",
    };
    let gap = Gap::at(&file, last.range.start)?;
    let end = last.range.end;
    Some(vec![Edit::of(&file, end..end, &format!("{ends}{}{text}", gap.0))?])
}

/// The statement of a place, moved behind the one of another place further down in the same block, where nothing between the
/// two has to do with it.
pub fn move_behind(what: &impl Somewhere, behind: &impl Somewhere) -> Option<Vec<Edit>> {
    let (mine, theirs) = (around(what)?, around(behind)?);
    if *mine.file != *theirs.file {
        return None;
    }
    let outermost = |all: &Around, other: Point| all.all.iter().find(|s| !s.range.contains(&other)).cloned();
    let moved = outermost(&mine, behind.point())?;
    let last = outermost(&theirs, what.point())?;
    moved.passes.as_ref().filter(|p| moved.range.end <= last.range.start && last.range.end <= p.end)?;
    let place = Edit::of(&mine.file, moved.range.clone(), "")?;
    let text = cut(place.cell, &(place.from..place.to))?;
    let insert = theirs.behind(&last, &text)?;
    // With its lines, where it has them for itself.
    let begins = line(place.cell, place.from.0)?.chars().take(place.from.1 as usize - 1).all(char::is_whitespace);
    let ends = line(place.cell, place.to.0)?.chars().skip(place.to.1 as usize - 1).all(char::is_whitespace);
    let gone = match begins && ends {
        true => Edit { from: (place.from.0, 1), to: (place.to.0 + 1, 1), ..place },
        false => place,
    };
    Some(vec![gone, insert])
}

/// Whether the code around a place is called from several places, or not at all as far as is known: then a change of it is one
/// for all of them.
pub fn is_shared(at: &impl Somewhere) -> bool {
    function(at).is_some_and(|f| calls(&f).len() != 1)
}

fn extent(at: &impl Somewhere) -> Option<(Arc<str>, Extent)> {
    let (file, facts) = facts(at.file())?;
    // What a loop goes through is called at its head in each round, and is no value there.
    if facts.loops.iter().any(|l| l.head.start == at.point()) {
        return None;
    }
    let mut here = facts.extents.iter().filter(|e| e.at == at.point());
    match (here.next(), here.next()) {
        (Some(extent), None) => Some((file, extent.clone())),
        _ => None,
    }
}

/// The statements around a place, outermost first.
struct Around {
    file: Arc<str>,
    all: Vec<Statement>,
}

fn around(at: &impl Somewhere) -> Option<Around> {
    let (file, facts) = facts(at.file())?;
    let mut all: Vec<Statement> = facts.statements.iter().filter(|s| s.range.contains(&at.point())).cloned().collect();
    all.sort_by_key(|s| (s.range.start, Reverse(s.range.end)));
    Some(Around { file, all })
}

impl Around {
    fn innermost(&self) -> Option<&Statement> {
        self.all.last()
    }

    fn behind(&self, s: &Statement, text: &str) -> Option<Edit> {
        let gap = Gap::at(&self.file, s.range.start)?;
        Edit::of(&self.file, s.range.end..s.range.end, &format!("{}{text}", gap.0))
    }
}

/// What stands between two statements: a line break and the indentation, or a blank where the first begins no line.
struct Gap(String);

impl Gap {
    fn at(file: &str, start: Point) -> Option<Gap> {
        let (cell, at) = in_cell(file, start)?;
        let before: String = line(cell, at.0)?.chars().take(at.1 as usize - 1).collect();
        Some(Gap(if before.trim().is_empty() { format!("\n{before}") } else { " ".into() }))
    }
}

impl Edit {
    fn of(file: &str, range: Range<Point>, text: &str) -> Option<Edit> {
        let ((cell, from), (other, to)) = (in_cell(file, range.start)?, in_cell(file, range.end)?);
        kept(cell).filter(|_| cell == other && from <= to)?;
        Some(Edit { cell, from, to, text: text.to_owned() })
    }
}

fn in_cell(file: &str, at: Point) -> Option<(u64, Point)> {
    let (cell, line) = find_line(file, at.0)?;
    Some((cell, (line, column_of(file, at))))
}

fn line(cell: u64, line: u32) -> Option<String> {
    Some(kept(cell)?.lines().nth(line as usize - 1)?.to_owned())
}

fn cut(cell: u64, range: &Range<Point>) -> Option<String> {
    let text = kept(cell)?;
    Some(text.get(byte(&text, range.start)..byte(&text, range.end))?.to_owned())
}

/// Where a line and column stand in a text.
fn byte(text: &str, (line, column): Point) -> usize {
    let start: usize = text.split_inclusive('\n').take(line as usize - 1).map(str::len).sum();
    let rest = &text[start..];
    start + rest.char_indices().nth(column as usize - 1).map_or(rest.len(), |(i, _)| i)
}

/// The text with its changes.
fn applied(text: &str, edits: &[Edit]) -> String {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by_key(|e| Reverse((e.from, e.to)));
    edits.into_iter().fold(text.to_owned(), |mut text, e| {
        let range = byte(&text, e.from)..byte(&text, e.to);
        text.replace_range(range, &e.text);
        text
    })
}

/// The cells that edits change, each as a whole, by number.
pub fn edited(edits: &[Edit]) -> Vec<(u64, String)> {
    let mut edits = edits.to_vec();
    edits.sort_by_key(|e| e.cell);
    let cell = |of: &[Edit]| Some((of[0].cell, applied(&kept(of[0].cell)?, of)));
    edits.chunk_by(|a, b| a.cell == b.cell).filter_map(cell).collect()
}

/// Lines that change: of which cell, the first of them, as they are and as they become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub cell: u64,
    pub line: u32,
    pub was: Vec<String>,
    pub now: Vec<String>,
}

/// What changes, line by line.
pub fn changes(edits: &[Edit]) -> Vec<Change> {
    let mut edits = edits.to_vec();
    edits.sort_by_key(|e| (e.cell, e.from, e.to));
    let together = |a: &Edit, b: &Edit| a.cell == b.cell && b.from.0 <= a.to.0;
    edits.chunk_by(together).filter_map(change).collect()
}

fn change(edits: &[Edit]) -> Option<Change> {
    let (cell, first) = (edits[0].cell, edits[0].from.0);
    let last = edits.iter().map(|e| e.to.0).max()?;
    let text = kept(cell)?;
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<String>>();
    let text: String =
        text.lines().skip(first as usize - 1).take((last - first) as usize + 1).map(|l| format!("{l}\n")).collect();
    let below = |at: Point| (at.0 - first + 1, at.1);
    let moved: Vec<Edit> = edits.iter().map(|e| Edit { from: below(e.from), to: below(e.to), ..e.clone() }).collect();
    let (mut was, mut now) = (lines(&text), lines(&applied(&text, &moved)));
    let mut line = first;
    while !was.is_empty() && was.first() == now.first() {
        was.remove(0);
        now.remove(0);
        line += 1;
    }
    while !was.is_empty() && was.last() == now.last() {
        was.pop();
        now.pop();
    }
    Some(Change { cell, line, was, now })
}

#[cfg(test)]
mod tests {
    use super::super::{Facts, keep, register_facts, register_lines};
    use super::*;

    fn at(file: &str, line: u32, column: u32) -> Spot {
        Spot { file: file.into(), line, column }
    }

    /// The cell with the change.
    fn after(cell: u64, edits: Option<Vec<Edit>>) -> String {
        applied(&kept(cell).expect("a cell"), &edits.expect("an edit"))
    }

    fn cell(file: &str, cell: u64, text: &str, facts: &str) {
        register_lines(file, cell, &[]);
        keep(cell, text);
        register_facts(file, Facts::read(facts.split_whitespace()).expect("facts"));
    }

    #[test]
    fn expressions_get_methods_and_others_take_their_place() {
        cell("edit-1", 9001, "let ä = a.b(1);\nlet y = a + b;\n", "E;1:11-1:12,1:9-1:15; E;2:9-2:14;o");
        assert_eq!(after(9001, append(&at("edit-1", 1, 11), ".c()")), "let ä = a.b(1).c();\nlet y = a + b;\n");
        assert_eq!(after(9001, append(&at("edit-1", 2, 9), ".c()")), "let ä = a.b(1);\nlet y = (a + b).c();\n");
        assert_eq!(after(9001, replace(&at("edit-1", 1, 11), "c")), "let ä = c;\nlet y = a + b;\n");
        assert!(append(&at("edit-1", 3, 1), ".c()").is_none());
        let followed = |by: &str| is_followed_by(&at("edit-1", 1, 11), by);
        assert!(followed(";") && !followed(".c()"));
        let edits = append(&at("edit-1", 2, 9), ".c()").unwrap();
        let change = |line, was: &[&str], now: &[&str]| {
            let [was, now] = [was, now].map(|all| all.iter().map(|l| (*l).to_owned()).collect());
            Change { cell: 9001, line, was, now }
        };
        assert_eq!(changes(&edits), [change(2, &["let y = a + b;"], &["let y = (a + b).c();"])]);
    }

    #[test]
    fn statements_are_put_in_and_moved() {
        let text = "for i in v {\n    f(i);\n    g(i)\n}\nfn h() { k() }\nh();\nread();\nb(); x";
        let facts = "L;1:10-1:11,1:12-4:2;for S;1:1-4:2; S;2:5-2:10; S;3:5-3:9;t F;5:1-5:15;h;;f S;5:10-5:13;t \
                     C;6:1-6:4;h;in S;6:1-6:5;,; S;7:1-7:8,8:1-8:5; S;8:1-8:5; S;8:6-8:7;t";
        let facts = facts.replace("S;6:1-6:5;,;", "S;6:1-6:5,8:1-8:5;");
        cell("edit-2", 9002, text, &facts);
        let (top, end) = (at("edit-2", 1, 1), "\nfn h() { k() }\nh();\nread();\nb(); x");
        let rounds = after(9002, insert_in_each_round(&at("edit-2", 2, 5), "sync();"));
        assert_eq!(rounds, format!("for i in v {{\n    f(i);\n    g(i);\n    sync();\n}}{end}"));
        let behind = after(9002, insert_behind(&at("edit-2", 2, 5), "s();", &at("edit-2", 7, 1)));
        assert_eq!(behind, format!("for i in v {{\n    f(i);\n    s();\n    g(i)\n}}{end}"));
        // The value of a function: behind the call of it.
        let behind = after(9002, insert_behind(&at("edit-2", 5, 10), "s();", &at("edit-2", 7, 1)));
        assert!(behind.ends_with("\nh();\ns();\nread();\nb(); x"), "{behind}");
        assert!(insert_behind(&at("edit-2", 7, 1), "s();", &at("edit-2", 7, 1)).is_none());
        assert!(after(9002, insert_before(&at("edit-2", 8, 6), "s();")).ends_with("\nb(); s(); x"));
        assert!(after(9002, insert_before(&top, "s();")).starts_with("s();\nfor i"));
        let moved = move_behind(&at("edit-2", 6, 1), &at("edit-2", 8, 1)).unwrap();
        assert!(applied(text, &moved).ends_with("{ k() }\nread();\nb();\nh(); x"), "{}", applied(text, &moved));
        assert!(move_behind(&at("edit-2", 2, 5), &at("edit-2", 8, 1)).is_none(), "it does not pass the other");
        assert!(!is_shared(&at("edit-2", 9, 1)) && !is_shared(&at("edit-2", 5, 10)));
    }
}
