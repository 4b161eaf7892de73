//! Source locations in the user's terms: cell and line.
use std::collections::HashMap;
use std::panic::Location;
use std::sync::Mutex;

static CELLS: Mutex<Option<HashMap<String, u64>>> = Mutex::new(None);

/// Says that locations of `file` belong to a cell (`In [7]`); the generated source keeps the cell's line numbers.
pub(crate) fn register(file: &str, cell: u64) {
    if cell > 0 {
        CELLS.lock().unwrap_or_else(|p| p.into_inner()).get_or_insert_default().insert(file.to_owned(), cell);
    }
}

/// The cell that a location is in, where it is known.
pub(crate) fn cell(at: &Location) -> Option<u64> {
    CELLS.lock().unwrap_or_else(|p| p.into_inner()).as_ref()?.get(at.file()).copied()
}

/// `cell 7, line 3`, or `main.rs:3` outside of cells.
pub(crate) fn location(at: &Location) -> String {
    match cell(at) {
        Some(cell) => format!("cell {cell}, line {}", at.line()),
        None if at.file().starts_with("xlazy-cell-") => format!("line {}", at.line()),
        None => format!("{}:{}", at.file().rsplit('/').next().unwrap_or_default(), at.line()),
    }
}
