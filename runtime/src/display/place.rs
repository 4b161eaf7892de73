//! Source locations in the user's terms: cell and line.
use std::collections::HashMap;
use std::panic::Location;
use std::sync::Mutex;

/// For each file, from which line on it is which line of which cell.
type Files = HashMap<String, Vec<(u32, u64, u32)>>;

static CELLS: Mutex<Option<Files>> = Mutex::new(None);

/// Says that locations of `file` belong to a cell (`In [7]`); the generated source keeps the cell's line numbers.
pub(crate) fn register(file: &str, cell: u64) {
    register_lines(file, cell, &[]);
}

/// As [`register`], for a file with items of other cells in it: (line in the file, cell, line there), in order.
pub(crate) fn register_lines(file: &str, cell: u64, elsewhere: &[(u32, u64, u32)]) {
    if cell > 0 {
        let lines = std::iter::once((1, cell, 1)).chain(elsewhere.iter().copied()).collect();
        CELLS.lock().unwrap_or_else(|p| p.into_inner()).get_or_insert_default().insert(file.to_owned(), lines);
    }
}

fn find(at: &Location) -> Option<(u64, u32)> {
    let cells = CELLS.lock().unwrap_or_else(|p| p.into_inner());
    let lines = cells.as_ref()?.get(at.file())?;
    let (first, cell, there) = lines.iter().rev().find(|l| l.0 <= at.line())?;
    Some((*cell, there + (at.line() - first)))
}

/// The cell that a location is in, where it is known.
pub(crate) fn cell(at: &Location) -> Option<u64> {
    find(at).map(|(cell, _)| cell)
}

/// The line within its cell, or within its file.
pub(crate) fn line(at: &Location) -> u32 {
    find(at).map_or(at.line(), |(_, line)| line)
}

/// `cell 7, line 3`, or `main.rs:3` outside of cells.
pub(crate) fn location(at: &Location) -> String {
    match find(at) {
        Some((cell, line)) => format!("cell {cell}, line {line}"),
        None if at.file().starts_with("xlazy-cell-") => format!("line {}", at.line()),
        None => format!("{}:{}", at.file().rsplit('/').next().unwrap_or_default(), at.line()),
    }
}
