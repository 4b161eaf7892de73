//! Source locations in the user's terms: cell and line; what the cells' texts say of them.
mod behalf;

pub use behalf::{Behalf, behalf, line_of_thread};

use std::collections::HashMap;
use std::ops::Range;
use std::panic::Location;
use std::sync::{Arc, Mutex};

/// A line of source text.
pub type Place = &'static Location<'static>;

/// How the files begin that cells' locations name, where nothing says which cell that is.
pub const CELL_FILE: &str = "xlazy-cell-";

/// For each file, from which line on it is which line of which cell.
type Files = HashMap<String, Vec<(u32, u64, u32)>>;

static CELLS: Mutex<Option<Files>> = Mutex::new(None);

/// Says that locations of `file` belong to a cell (`In [7]`); the generated source keeps the cell's line numbers. Of items of
/// other cells in it: (line in the file, cell, line there), in order.
pub fn register_lines(file: &str, cell: u64, elsewhere: &[(u32, u64, u32)]) {
    if cell > 0 {
        let lines = std::iter::once((1, cell, 1)).chain(elsewhere.iter().copied()).collect();
        CELLS.lock().unwrap_or_else(|p| p.into_inner()).get_or_insert_default().insert(file.to_owned(), lines);
    }
}

/// The cells' texts, by number.
static TEXTS: Mutex<Option<HashMap<u64, Arc<str>>>> = Mutex::new(None);

/// Keeps a cell's text, so that reports can quote its lines.
pub fn keep(cell: u64, text: &str) {
    if cell > 0 && !text.is_empty() {
        TEXTS.lock().unwrap_or_else(|p| p.into_inner()).get_or_insert_default().insert(cell, text.into());
    }
}

/// For each file, from which line and column on its text stands how much further right than in the cell.
static SHIFTS: Mutex<Option<Shifts>> = Mutex::new(None);

type Shifts = HashMap<String, Vec<(u32, u32, u32)>>;

pub fn register_shifts(file: &str, shifts: Vec<(u32, u32, u32)>) {
    if !shifts.is_empty() {
        SHIFTS.lock().unwrap_or_else(|p| p.into_inner()).get_or_insert_default().insert(file.to_owned(), shifts);
    }
}

/// The column in the cell, from 1.
fn column(at: &Location) -> u32 {
    column_of(at.file(), (at.line(), at.column()))
}

fn column_of(file: &str, (line, column): Point) -> u32 {
    let shifts = SHIFTS.lock().unwrap_or_else(|p| p.into_inner());
    let of_file = shifts.as_ref().and_then(|s| s.get(file)).map_or(&[][..], Vec::as_slice);
    let before = of_file.iter().rfind(|shift| shift.0 == line && shift.1 <= column);
    column.saturating_sub(before.map_or(0, |shift| shift.2)).max(1)
}

fn source_line(at: &Location) -> Option<String> {
    let (cell, line) = find(at)?;
    let text = TEXTS.lock().unwrap_or_else(|p| p.into_inner()).as_ref()?.get(&cell)?.clone();
    Some(text.lines().nth(line as usize - 1)?.to_owned())
}

/// The line of the cell, without its indentation.
pub fn quote(at: &Location) -> Option<String> {
    source_line(at).map(|l| l.trim().to_owned())
}

/// The line as [`quote`] gives it and the column: what tells lines of edited cells apart.
pub fn identity(at: &Location) -> Option<(String, u32)> {
    quote(at).map(|text| (text, column(at)))
}

/// The name that the line gives to what is made there: `x` where it reads `let x = …;`.
pub fn binding(at: &Location) -> Option<String> {
    bound(&source_line(at)?, column(at) as usize - 1)
}

/// The name in `let NAME = CALL;` or `NAME = CALL;`, if it is the last call of CALL that starts at this column.
fn bound(line: &str, column: usize) -> Option<String> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let at = line.char_indices().nth(column)?.0;
    // Only the expression's last call makes the value that gets the name.
    let name_end = line[at..].find(|c| !word(c) && c != ':')?;
    let mut depth = 0;
    let close = line[at + name_end..].starts_with('(').then(|| {
        line[at + name_end..].find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        })
    })??;
    let after = line[at + name_end + close + 1..].trim_start_matches('?').trim();
    if !(after.starts_with(';') || after.is_empty()) {
        return None;
    }
    let (left, receiver) = line[..at].split_once('=')?;
    let plain = |c: char| word(c) || ":.&?()[],\"' ".contains(c);
    let receiver = receiver.trim();
    if !(receiver.is_empty() || receiver.ends_with('.') && receiver.chars().all(plain)) {
        return None;
    }
    let left = left.trim().trim_start_matches('*').trim_start_matches("let ").trim_start().trim_start_matches("mut ");
    let name = left.split(':').next()?.trim();
    (!name.is_empty() && name.chars().all(word)).then(|| name.to_owned())
}

/// Line and column.
type Point = (u32, u32);

/// What code decides by, and what is run or not, or how often, by it.
#[derive(Clone)]
pub struct Condition {
    pub at: Range<Point>,
    /// It begins before the condition where rounds of a loop go by it.
    pub guards: Range<Point>,
}

impl Condition {
    fn rounds(&self) -> bool {
        self.guards.start < self.at.start
    }
}

/// The conditions of each file.
static CONDITIONS: Mutex<Option<HashMap<String, Vec<Condition>>>> = Mutex::new(None);

/// Says where the conditions of `file` stand: `if`, `while`, `match`, assertions.
pub fn register_conditions(file: &str, conditions: Vec<Condition>) {
    if !conditions.is_empty() {
        let mut all = CONDITIONS.lock().unwrap_or_else(|p| p.into_inner());
        all.get_or_insert_default().insert(file.to_owned(), conditions);
    }
}

fn conditions_of(file: &str) -> Vec<Condition> {
    let all = CONDITIONS.lock().unwrap_or_else(|p| p.into_inner());
    all.as_ref().and_then(|all| all.get(file).cloned()).unwrap_or_default()
}

fn point(at: &Location) -> Point {
    (at.line(), at.column())
}

/// Whether a value that is read here decides which way the code goes.
pub fn decides(at: &Location) -> bool {
    conditions_of(at.file()).iter().any(|c| c.at.contains(&point(at)))
}

/// Whether a value that is read here decides whether a loop has another round.
pub fn decides_rounds(at: &Location) -> bool {
    conditions_of(at.file()).iter().any(|c| c.at.contains(&point(at)) && c.rounds())
}

/// Whether a value that is read here may decide what is run at one of those places, as far as the cells' texts tell: it
/// stands in a condition, goes into a variable that some condition mentions, or leaves the function as its result; and the
/// place is what the condition guards, or no other condition does.
pub fn may_decide(at: &Location, places: &[&Location]) -> bool {
    let Some(line) = source_line(at) else { return true };
    let names = receivers(&line, column(at) as usize - 1);
    let (file, here) = (at.file(), point(at));
    let named = |c: &Condition| {
        let text = || text_of(file, c).unwrap_or_default();
        names.as_ref().is_some_and(|names| names.iter().any(|name| mentions(&text(), name)))
    };
    let (by_it, others): (Vec<Condition>, Vec<Condition>) =
        conditions_of(file).into_iter().partition(|c| c.at.contains(&here) || named(c));
    let guarding = |place: &Location| -> Vec<(String, Condition)> {
        let all = if place.file() == file { others.clone() } else { conditions_of(place.file()) };
        let beside =
            |c: &Condition| c.guards.contains(&point(place)) && !(place.file() == file && c.guards.contains(&here));
        let texts = all.into_iter().filter(beside).map(|c| (text_of(place.file(), &c).unwrap_or_default(), c));
        texts.collect()
    };
    if by_it.is_empty() && names.is_none() {
        // Only a condition that calls something can have got the value, and not one that reads a value of its own.
        let other = |(text, _): &(String, Condition)| !text.contains('(') || text.contains(".item(");
        return places.iter().any(|place| !guarding(place).iter().any(other));
    }
    let effective: Vec<&Condition> = by_it.iter().filter(|c| !c.guards.is_empty()).collect();
    !effective.is_empty()
        && places.iter().any(|place| {
            let others = guarding(place);
            let within = |c: &&&Condition| place.file() == file && c.guards.contains(&point(place));
            let nearer = |c: &Condition| {
                others.iter().any(|(_, o)| c.guards.start <= o.guards.start && o.guards.end <= c.guards.end)
            };
            match effective.iter().find(within) {
                Some(c) => !c.rounds() || !nearer(c),
                None => others.is_empty(),
            }
        })
}

/// The names to which the statement around a column gives its value; none for a statement that keeps it to itself, `None`
/// for an expression without an end, which hands it on.
fn receivers(line: &str, column: usize) -> Option<Vec<String>> {
    let mut inside = false;
    let blank = |c: char| {
        inside ^= c == '"';
        if inside { ' ' } else { c }
    };
    let line: String = line.chars().map(blank).collect();
    let at = line.char_indices().nth(column).map_or(line.len(), |(i, _)| i);
    let start = line[..at].rfind([';', '{', '}']).map_or(0, |i| i + 1);
    let rest = line[at..].find([';', '}']).map_or("", |i| &line[at + i..]);
    let left = &line[start..at];
    let assigns = |(i, _): &(usize, &str)| {
        let beside = |c: Option<char>| c.is_some_and(|c| "=<>!".contains(c));
        !beside(left[..*i].chars().next_back()) && !beside(left[i + 1..].chars().next())
    };
    if let Some((i, _)) = left.match_indices('=').find(assigns) {
        let names = left[..i].split(|c: char| !c.is_alphanumeric() && c != '_');
        return Some(
            names.filter(|n| !n.is_empty() && !matches!(*n, "let" | "mut" | "_")).map(str::to_owned).collect(),
        );
    }
    let macro_call = left.trim_start().split(['!', '(']).next().is_some_and(|m| m.starts_with("print") || m == "dbg");
    (rest.starts_with(';') || macro_call).then(Vec::new)
}

fn mentions(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// The text of a condition, whole lines where it is longer than one.
fn text_of(file: &str, Condition { at: Range { start: from, end: to }, .. }: &Condition) -> Option<String> {
    let (cell, first) = find_line(file, from.0)?;
    let cell = TEXTS.lock().unwrap_or_else(|p| p.into_inner()).as_ref()?.get(&cell)?.clone();
    let lines = cell.lines().skip(first as usize - 1).take((to.0 - from.0) as usize + 1);
    let lines: Vec<&str> = lines.collect();
    if lines.len() != 1 {
        return Some(lines.join("\n"));
    }
    let [from, to] = [from, to].map(|point| column_of(file, *point) as usize - 1);
    Some(lines[0].chars().skip(from).take(to.saturating_sub(from)).collect())
}

fn find(at: &Location) -> Option<(u64, u32)> {
    find_line(at.file(), at.line())
}

fn find_line(file: &str, line: u32) -> Option<(u64, u32)> {
    let cells = CELLS.lock().unwrap_or_else(|p| p.into_inner());
    let lines = cells.as_ref()?.get(file)?;
    let (first, cell, there) = lines.iter().rev().find(|l| l.0 <= line)?;
    Some((*cell, there + (line - first)))
}

/// The cell that a location is in, where it is known.
pub fn cell(at: &Location) -> Option<u64> {
    find(at).map(|(cell, _)| cell)
}

/// The line within its cell, or within its file.
pub fn line(at: &Location) -> u32 {
    find(at).map_or(at.line(), |(_, line)| line)
}

/// `cell 7, line 3`, or `main.rs:3` outside of cells.
pub fn location(at: &Location) -> String {
    match find(at) {
        Some((cell, line)) => format!("cell {cell}, line {line}"),
        None if at.file().starts_with(CELL_FILE) => format!("line {}", at.line()),
        None => format!("{}:{}", at.file().rsplit('/').next().unwrap_or_default(), at.line()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_names_what_its_last_call_makes() {
        let bound = |line: &str, call: &str| super::bound(line, line[..line.find(call).unwrap()].chars().count());
        assert_eq!(bound("let x = Tensor::ones([2, 3]);", "Tensor").as_deref(), Some("x"));
        assert_eq!(bound("    let mut ä: Tensor = a.b(1).narrow(0, (i), 10);", "narrow").as_deref(), Some("ä"));
        assert_eq!(bound("y = x.to(F32)", "to(").as_deref(), Some("y"));
        assert_eq!(bound("*kept = cat(&[&*kept, &x], 0);", "cat").as_deref(), Some("kept"));
        assert_eq!(bound("let y = x.narrow(0, i, 10).sum();", "narrow"), None, "another call makes y");
        assert_eq!(bound("let y = 1.0 + Tensor::ones([2]);", "Tensor"), None, "the sum is y");
        assert_eq!(bound("let y = f(Tensor::ones([2]));", "Tensor"), None, "an argument");
        assert_eq!(bound("let (x, y) = pair(2);", "pair"), None);
        assert_eq!(bound("step(Tensor::ones([2]));", "Tensor"), None);
        assert_eq!(super::bound("short", 99), None);
    }

    #[test]
    fn a_line_tells_where_a_value_goes() {
        let goes = |line: &str| super::receivers(line, line[..line.find("item").unwrap()].chars().count());
        let names = |all: &[&str]| Some(all.iter().map(|n| n.to_string()).collect::<Vec<_>>());
        assert_eq!(goes("let mut loss = x.item();"), names(&["loss"]));
        assert_eq!(goes("a = 1; best = best.min(x.item());"), names(&["best"]));
        assert_eq!(goes("total += x.item() / 2.0;"), names(&["total"]));
        assert_eq!(goes("let _ = x.item();"), names(&[]));
        assert_eq!(goes("history.push(x.item());"), names(&[]));
        assert_eq!(goes("println!(\"{}\", x.item() > 1.0)"), names(&[]));
        assert_eq!(goes("fn f(x: &Tensor) -> f64 { x.item() }"), None);
        assert_eq!(goes("    x.item()"), None);
    }
}
