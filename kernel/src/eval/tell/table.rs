//! The table of the page for people from torch, row by row.
use super::words::tokens;
use crate::eval::text::scan::Token;
use std::sync::LazyLock;

/// A table's rows are `| PyTorch | xlazy | note |`.
pub(super) const PAGE: &str = include_str!("../../../../docs/from-pytorch.md");

/// One row of the table.
#[derive(Debug)]
pub(super) struct Row {
    pub torch: String,
    pub xlazy: String,
    pub note: String,
    pub tokens: Vec<Token>,
    /// It is no Rust.
    pub python: bool,
}

/// The rows of the page's tables that have code in their first two columns.
pub(super) fn rows() -> &'static [Row] {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_long_enough_to_be_of_use_and_has_each_once() {
        let all = rows();
        assert!(all.len() > 140, "{}", all.len());
        for (i, row) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| other.torch != row.torch), "{row:?}");
        }
    }
}
