//! Source locations in the user's terms: cell and line; what the cells' code says of them.
mod called;
mod edit;
mod facts;
mod source;

pub use called::{called_from, told, with_caller};
pub use edit::{
    Change, Edit, append, changes, edited, insert_before, insert_behind, insert_in_each_round, insert_in_each_round_of,
    is_followed_by, is_shared, move_behind, replace,
};
pub use facts::{
    Branch, Call, Condition, Facts, FlowFact, Function, FunctionFact, Goes, Guard, GuardFact, Loop, LoopFact, LoopKind,
    Somewhere, Spot, Terms, binding, called, callers, calls, decides, decides_rounds, flows, function, guards,
    guards_deep, known, loops, may_decide, register_facts,
};

pub use source::{Held, Source, sources};

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

/// Files that are no cells and whose lines are quoted.
static FILES: Mutex<Option<HashMap<String, Arc<str>>>> = Mutex::new(None);

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
fn column(at: &impl Somewhere) -> u32 {
    column_of(at.file(), at.point())
}

fn column_of(file: &str, (line, column): Point) -> u32 {
    let shifts = SHIFTS.lock().unwrap_or_else(|p| p.into_inner());
    let of_file = shifts.as_ref().and_then(|s| s.get(file)).map_or(&[][..], Vec::as_slice);
    let before = of_file.iter().rfind(|shift| shift.0 == line && shift.1 <= column);
    column.saturating_sub(before.map_or(0, |shift| shift.2)).max(1)
}

/// The text of a cell.
pub fn kept(cell: u64) -> Option<Arc<str>> {
    TEXTS.lock().unwrap_or_else(|p| p.into_inner()).as_ref()?.get(&cell).cloned()
}

/// Whether a file that a text names is a framework's: what this does for the user is nobody's line.
pub fn is_library(file: &str) -> bool {
    ["site-packages/", "dist-packages/", "<frozen ", "/lib/python3"].iter().any(|part| file.contains(part))
}

/// Makes the lines of a file that is no cell known, so that they can be quoted.
pub fn register_file(file: &str, text: &str) {
    FILES.lock().unwrap_or_else(|p| p.into_inner()).get_or_insert_default().insert(file.to_owned(), text.into());
}

fn line_of(file: &str, line: u32) -> Option<String> {
    let (text, line) = match find_line(file, line) {
        Some((cell, line)) => (kept(cell)?, line),
        None => (FILES.lock().unwrap_or_else(|p| p.into_inner()).as_ref()?.get(file).cloned()?, line),
    };
    Some(text.lines().nth(line.checked_sub(1)? as usize)?.to_owned())
}

/// The line of the cell, without its indentation.
pub fn quote(at: &impl Somewhere) -> Option<String> {
    line_of(at.file(), at.point().0).map(|l| l.trim().to_owned())
}

/// The line as [`quote`] gives it and the column: what tells lines of edited cells apart.
pub fn identity(at: &impl Somewhere) -> Option<(String, u32)> {
    quote(at).map(|text| (text, column(at)))
}

/// Whether two places are one, or the same line of two cells.
pub fn same_line(a: &impl Somewhere, b: &impl Somewhere) -> bool {
    let (from, to) = ((a.file(), a.point()), (b.file(), b.point()));
    from == to || from.0 != to.0 && identity(a).is_some_and(|line| identity(b).as_ref() == Some(&line))
}

/// Whether the cell of another place has this line, too, as that of a copy.
pub fn is_in_cell_of(at: &impl Somewhere, other: &impl Somewhere) -> bool {
    let there = |line: String| Some(kept(cell(other)?)?.lines().any(|l| l.trim() == line));
    quote(at).and_then(there).unwrap_or(false)
}

/// The place whose method is called here, as it is written before the name: `trainer.opt` for `trainer.opt.step()`.
pub fn receiver(at: &impl Somewhere) -> Option<String> {
    let text = line_of(at.file(), at.point().0)?;
    let before: String = text.chars().take(column(at) as usize - 1).collect();
    let before = before.strip_suffix('.')?;
    let begins = before.rfind(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.')).map_or(0, |i| i + 1);
    // What begins after a bracket is a part of a longer one.
    let place = &before[begins..];
    let whole =
        !before[..begins].ends_with([')', ']', '?', '}']) && place.starts_with(|c: char| c.is_alphabetic() || c == '_');
    whole.then(|| place.to_owned())
}

/// Line and column.
pub type Point = (u32, u32);

/// The text of a condition, whole lines where it is longer than one.
fn text_of(file: &str, Range { start: from, end: to }: &Range<Point>) -> Option<String> {
    let (cell, first) = find_line(file, from.0)?;
    let cell = kept(cell)?;
    let lines = cell.lines().skip(first as usize - 1).take((to.0 - from.0) as usize + 1);
    let lines: Vec<&str> = lines.collect();
    if lines.len() != 1 {
        return Some(lines.join("\n"));
    }
    let [from, to] = [from, to].map(|point| column_of(file, *point) as usize - 1);
    Some(lines[0].chars().skip(from).take(to.saturating_sub(from)).collect())
}

fn find(at: &impl Somewhere) -> Option<(u64, u32)> {
    find_line(at.file(), at.point().0)
}

fn find_line(file: &str, line: u32) -> Option<(u64, u32)> {
    let cells = CELLS.lock().unwrap_or_else(|p| p.into_inner());
    let lines = cells.as_ref()?.get(file)?;
    let (first, cell, there) = lines.iter().rev().find(|l| l.0 <= line)?;
    Some((*cell, there + (line - first)))
}

/// The cell that a location is in, where it is known.
pub fn cell(at: &impl Somewhere) -> Option<u64> {
    find(at).map(|(cell, _)| cell)
}

/// The line within its cell, or within its file.
pub fn line(at: &impl Somewhere) -> u32 {
    find(at).map_or(at.point().0, |(_, line)| line)
}

/// `cell 7, line 3`, or `main.rs:3` outside of cells.
pub fn location(at: &impl Somewhere) -> String {
    location_of(at.file(), at.point().0)
}

fn location_of(file: &str, line: u32) -> String {
    match find_line(file, line) {
        Some((cell, line)) => format!("cell {cell}, line {line}"),
        None if file.starts_with(CELL_FILE) => format!("line {line}"),
        None => format!("{}:{line}", file.rsplit('/').next().unwrap_or_default()),
    }
}
