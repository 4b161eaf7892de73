//! A notebook as one program: `main.rs` with the cells' code in order, and what its Cargo.toml must name.
use super::deps;
use super::generate::SHOW_EVCXR;
use super::groups::{Definitions, Group};
use super::source::CellText;
use super::split::{self, Parsed, Segment};
use crate::engine::Failure;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A program made of cells.
pub struct Program {
    pub main: String,
    /// What `:dep` lines asked for: name and right-hand side, in TOML.
    pub dependencies: BTreeMap<String, String>,
    /// Lines that mean nothing outside of a notebook: cell and text.
    pub left_out: Vec<(u64, String)>,
}

/// Puts cells (number and text) into one program with the same output. Values that a cell shows are printed.
///
/// An item that a later cell defines anew begins a block there: inside it the new definition is in force, with copies of
/// the items that follow it.
pub fn program(cells: &[(u64, String)]) -> Result<Program, Failure> {
    let mut out = Program { main: HEAD.to_owned(), dependencies: BTreeMap::new(), left_out: Vec::new() };
    let mut defs = Definitions::default();
    let mut blocks = 0;
    for (number, text) in cells {
        let cell = Arc::new(CellText { cell: *number, text: text.clone() });
        out.main += &format!("\n    // {}\n", cell.label());
        for segment in split::segments(text, &|_| false) {
            match segment {
                Segment::Code(range) => out.add(&cell, range, &mut defs, &mut blocks)?,
                Segment::Command(line) if text[line.clone()].trim().starts_with(":dep ") => {
                    let (name, wanted) = deps::parse(&text[line].trim()[5..])?;
                    out.dependencies.insert(name, wanted);
                }
                Segment::Magic { line, body } => {
                    out.leave_out(*number, &text[line]);
                    if let Some(body) = body {
                        out.add(&cell, body, &mut defs, &mut blocks)?;
                    }
                }
                Segment::Command(line) => out.leave_out(*number, &text[line]),
            }
        }
    }
    out.main += &format!("{}\n    Ok(())\n}}\n", "}".repeat(blocks));
    Ok(out)
}

const HEAD: &str = "\
#![allow(warnings)]
#[macro_use(print, println, eprint, eprintln, dbg, format)]
extern crate xlazy;
extern crate alloc;
use xlazy::cell::rt as xlazy_rt;
use xlazy::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
";

impl Program {
    fn leave_out(&mut self, cell: u64, line: &str) {
        self.main += &format!("    // {line}\n");
        self.left_out.push((cell, line.to_owned()));
    }

    fn add(
        &mut self,
        cell: &Arc<CellText>,
        range: Range<usize>,
        defs: &mut Definitions,
        blocks: &mut usize,
    ) -> Result<(), Failure> {
        let parsed = split::parse(cell, range.clone())
            .map_err(|e| super::errors::sentence("ExportError", format!("{} is not Rust: {e}", cell.label())))?;
        let change = defs.change(&parsed);
        let again = parsed.uses.iter().any(|u| defs.uses.iter().any(|old| old.binds == u.binds));
        if change.needed && defs.redefined_by(&parsed) || again {
            self.main += "    {\n";
            *blocks += 1;
            for item in &change.moved {
                self.main += &format!("{}\n", item.text());
            }
        }
        self.main += &body(cell, range, &parsed);
        let group = change.needed.then(|| {
            let items = parsed.items.iter().chain(&change.moved).cloned().collect();
            Group { crate_name: format!("g_{}", cell.cell), object: Default::default(), items }
        });
        *defs = change.rest.commit(group, &parsed);
        Ok(())
    }
}

/// The cell's text, with its last value printed and its `.await`s waited for.
fn body(cell: &Arc<CellText>, range: Range<usize>, parsed: &Parsed) -> String {
    let mut edits: Vec<(Range<usize>, String)> = parsed
        .edits
        .iter()
        .filter(|e| e.text == split::AWAIT || (e.text == ")" && !e.range.is_empty()))
        .map(|e| (e.range.clone(), e.text.clone()))
        .collect();
    if let Some(t) = &parsed.trailing {
        let first = edits.partition_point(|e| e.0.start < t.start);
        edits.insert(first, (t.start..t.start, SHOW_EVCXR.0.to_owned()));
        let last = edits.partition_point(|e| e.0.start <= t.end);
        edits.insert(last, (t.end..t.end, SHOW_EVCXR.1.to_owned()));
    }
    let mut out = String::new();
    let mut from = range.start;
    for (at, text) in edits {
        out.push_str(&cell.text[from..at.start]);
        out.push_str(&text);
        from = at.end;
    }
    out.push_str(cell.text[from..range.end].trim_end());
    if parsed.has_statements && !out.trim_end().ends_with([';', '}']) {
        out.push(';');
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn main_of(cells: &[&str]) -> String {
        let cells: Vec<(u64, String)> =
            cells.iter().enumerate().map(|(i, c)| (i as u64 + 1, (*c).to_owned())).collect();
        program(&cells).map(|p| p.main[HEAD.len()..].to_owned()).unwrap_or_else(|f| f.message)
    }

    #[test]
    fn cells_stand_one_after_the_other() {
        let main = main_of(&["let a = 1;", "%vars\na + 1"]);
        assert!(
            main.starts_with("\n    // cell 1\nlet a = 1;\n\n    // cell 2\n    // %vars\n{ match &(a + 1)"),
            "{main}"
        );
    }

    #[test]
    fn what_is_defined_anew_begins_a_block_with_what_depends_on_it() {
        let main = main_of(&["fn f() -> i32 { 1 }", "fn g() -> i32 { f() }", "fn f() -> i32 { 2 }", "g();"]);
        let block = main.find("    {\nfn g()").expect("a block");
        assert!(
            main[block..].contains("fn f() -> i32 { 2 }") && main.trim_end().ends_with("}\n    Ok(())\n}"),
            "{main}"
        );
    }
}
