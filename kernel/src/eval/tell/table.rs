//! The table of the page for people from torch, row by row.
use super::words::{Words, in_rust, tokens};
use crate::eval::text::scan::Token;
use std::borrow::Cow;
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
    /// How many of its tokens stand for themselves.
    pub said: usize,
    /// The first one stands for any expression.
    pub of_any: bool,
}

impl Row {
    pub fn pattern(&self) -> Words<'_> {
        Words { text: &self.torch, tokens: Cow::Borrowed(&self.tokens) }
    }

    /// The first token that stands for itself; none where it may be written otherwise, as a list may be a tuple.
    pub fn anchor(&self) -> Option<&str> {
        let first = self.tokens.get(usize::from(self.of_any))?;
        Some(&self.torch[first.range.clone()]).filter(|first| *first != "[").map(in_rust)
    }
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
        let pattern = Words { text: &torch, tokens: Cow::Borrowed(&tokens) };
        let said = (0..pattern.len()).filter(|&i| pattern.meta(i).is_none()).count();
        let of_any = pattern.meta(0).is_some();
        Some(Row { torch, xlazy, note, tokens, python, said, of_any })
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
