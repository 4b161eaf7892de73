//! A notebook as one program: `main.rs` with the cells' code in order, and what its Cargo.toml must name.
use crate::engine::Failure;
use crate::eval::deps::stages;
use crate::eval::generate::change::Change;
use crate::eval::generate::code::SHOW_EVCXR;
use crate::eval::generate::definitions::{Definitions, Group};
use crate::eval::parse::checks::included;
use crate::eval::parse::expand::Macro;
use crate::eval::parse::items::Item;
use crate::eval::parse::parsed::{Expanded, Parsed};
use crate::eval::parse::segments::{Segment, segments};
use crate::eval::parse::split;
use crate::eval::text::scan::{self, Kind, Token};
use crate::eval::text::source::{CellText, Source, Splice, Tag};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// A program made of cells.
pub struct Program {
    pub main: String,
    /// What `:dep` lines asked for: name and right-hand side, in TOML.
    pub dependencies: BTreeMap<String, String>,
    /// Lines that mean nothing outside of a notebook: cell and text.
    pub left_out: Vec<(u64, String)>,
    /// Where the output may be another one, in words.
    pub notes: Vec<String>,
    /// What may be the paths of files that it reads: every text of one line, with the cell that has it first.
    pub texts: Vec<(u64, String)>,
}

/// Puts cells (number and text) into one program with the same output. Values that a cell shows are printed.
///
/// Items stand at the program's root, but for those that a later cell defines anew, and what mentions them: such a cell begins a
/// block, inside which the new definition is in force, with copies of the items that follow it.
pub fn program(cells: &[(u64, String)]) -> Result<Program, Failure> {
    let cells: Vec<Arc<CellText>> = cells.iter().map(|(n, text)| Arc::new(CellText::new(*n, text.clone()))).collect();
    let parts: Vec<(usize, Segment)> =
        (0..cells.len()).flat_map(|i| segments(&cells[i].text, &|_| false).into_iter().map(move |s| (i, s))).collect();
    let awaits = |c: &Arc<CellText>| scan::mentions(&c.text).contains("await");
    let (head, tail) = if cells.iter().any(awaits) { (HEAD_ASYNC, TAIL_ASYNC) } else { ("fn main()", "") };
    let mut out = Program {
        main: String::new(),
        dependencies: BTreeMap::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
        texts: Vec::new(),
    };
    let needed = needed_after(parts.iter().map(|(index, s)| (&cells[*index], code_of(s))));
    let code = parts.iter().filter_map(|(index, s)| Some((&cells[*index], code_of(s)?)));
    let (defs, blocks, root, declared) = Default::default();
    let mut writer = Writer { defs, local: local_names(code), root, blocks, declared, drops: false, out: &mut out };
    let mut last = None;
    for (i, (index, segment)) in parts.iter().enumerate() {
        let cell = &cells[*index];
        if last.replace(index) != Some(index) {
            writer.out.main += &format!("\n    // {}\n", cell.label());
        }
        let line = |line: &Range<usize>| cell.text[line.clone()].trim().to_owned();
        match segment {
            Segment::Command(at) if line(at).starts_with(":dep ") => {
                writer.out.dependencies.extend(stages::parse(&line(at)[5..])?);
            }
            Segment::Magic { line: at, .. } if let Some(words) = device(&line(at)) => {
                writer.out.main += &format!("    println!(\"{{}}\", xlazy::aot::device({words:?}));\n");
            }
            Segment::Command(at) | Segment::Magic { line: at, .. } => writer.leave_out(cell.cell, &line(at)),
            Segment::Code(_) => {}
        }
        if let Some(range) = code_of(segment) {
            for text in texts(&cell.text[range.clone()]) {
                if !writer.out.texts.iter().any(|(_, known)| *known == text) {
                    writer.out.texts.push((cell.cell, text));
                }
            }
            writer.add(cell, range, needed[i].clone())?;
        }
    }
    let (blocks, root) = ("}".repeat(writer.blocks), writer.root.concat());
    let (last, end) = if writer.drops { (EXIT, "") } else { ("", "\n    Ok(())") };
    let (before, after) = SHOW_EVCXR;
    let show = format!(
        "/// Prints a value as a notebook shows it.\nmacro_rules! show {{\n    ($value:expr) => {{\n        {before}$value{after}\n    }};\n}}\n\n"
    );
    let start = format!("{HEAD}{show}{root}\n{head} -> Result<(), Box<dyn std::error::Error>> {{\n");
    out.main = format!("{start}{}{last}{blocks}{end}\n}}\n{tail}", out.main);
    Ok(out)
}

const HEAD: &str = "\
#![allow(warnings)]
#[macro_use(print, println, eprint, eprintln, dbg, format)]
extern crate xlazy;
use xlazy::cell::rt as xlazy_rt;
use xlazy::prelude::*;

";
const HEAD_ASYNC: &str = "async fn cells()";
const TAIL_ASYNC: &str = "
fn main() -> Result<(), Box<dyn std::error::Error>> {
    xlazy_rt::block_on(cells())
}
";

const EXIT: &str = "
    // Like a notebook, it ends without dropping what is there.
    std::process::exit(0)";

/// The texts that stand in code, but for those that formats are made of.
fn texts(code: &str) -> impl Iterator<Item = String> {
    let literals = scan::tokens(code).into_iter().filter(|t| t.kind == Kind::Literal);
    let text = move |t: Token| Some(syn::parse_str::<syn::LitStr>(&code[t.range]).ok()?.value());
    literals.filter_map(text).filter(|t| !t.is_empty() && !t.contains(['\n', '{', '\0']))
}

/// What stands behind `%device`, which says where a program runs.
fn device(line: &str) -> Option<&str> {
    line.strip_prefix("%device").filter(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace)).map(str::trim)
}

/// The Rust in a part of a cell.
fn code_of(segment: &Segment) -> Option<Range<usize>> {
    match segment {
        Segment::Code(range) | Segment::Magic { body: Some(range), .. } => Some(range.clone()),
        _ => None,
    }
}

/// Names of items, macros and imports that are not the same from the first cell to the last, and of those that mention one.
fn local_names<'c>(cells: impl Iterator<Item = (&'c Arc<CellText>, Range<usize>)>) -> BTreeSet<String> {
    let mut defs = Definitions::default();
    // Names that the program itself has.
    let mut local = BTreeSet::from(["main".to_owned(), "cells".to_owned()]);
    let mut all: Vec<Parsed> = Vec::new();
    for (cell, range) in cells {
        let Ok(parsed) = split::parse(cell, range, &defs.macros) else { continue };
        let change = defs.change(&parsed);
        if change.needed && defs.redefined_by(&parsed) {
            let items = parsed.items.iter().chain(&change.moved);
            local.extend(items.flat_map(|i| i.names.iter().chain(i.header.as_ref().map(|h| &h.self_type))).cloned());
        }
        let other_use = |name: &str, text: &str| defs.uses.iter().any(|old| old.binds == name && old.text != text);
        let uses = parsed.uses.iter().filter(|u| defs.has(&u.binds) || other_use(&u.binds, &u.text));
        local.extend(uses.map(|u| u.binds.clone()));
        local.extend(parsed.items.iter().flat_map(|i| &i.names).filter(|n| other_use(n, "")).cloned());
        let other_macro = |m: &&Macro| defs.macros.iter().any(|old| old.name == m.name && old.text != m.text);
        local.extend(parsed.macros.iter().filter(other_macro).map(|m| m.name.clone()));
        defs = after(change, cell, &parsed);
        all.push(parsed);
    }
    loop {
        let before = local.len();
        for parsed in &all {
            let items = parsed.items.iter().filter(|i| !i.mentions.is_disjoint(&local)).flat_map(|i| &i.names);
            let uses = parsed.uses.iter().filter(|u| !scan::mentions(&u.text).is_disjoint(&local)).map(|u| &u.binds);
            let macros = parsed.macros.iter().filter(|m| !m.mentions.is_disjoint(&local)).map(|m| &m.name);
            let more: Vec<String> = items.chain(uses).chain(macros).cloned().collect();
            local.extend(more);
        }
        if local.len() == before {
            return local;
        }
    }
}

/// What is in force when a cell has run.
fn after(change: Change, cell: &CellText, parsed: &Parsed) -> Definitions {
    let group = change.needed.then(|| {
        let items = parsed.items.iter().chain(&change.moved).cloned().collect();
        Group { crate_name: format!("g_{}", cell.cell), object: Default::default(), items }
    });
    change.rest.commit(group, parsed)
}

struct Writer<'a> {
    defs: Definitions,
    /// What does not go to the root.
    local: BTreeSet<String>,
    /// The program's root, each item once.
    root: Vec<String>,
    blocks: usize,
    /// Variables so far.
    declared: BTreeSet<String>,
    /// There is an `impl Drop`.
    drops: bool,
    out: &'a mut Program,
}

impl Writer<'_> {
    /// Puts at the root what may stand there; the parts of the cell that it was.
    fn hoist(&mut self, cell: &Arc<CellText>, parsed: &Parsed) -> Vec<Range<usize>> {
        let local = |mentions: &BTreeSet<String>| !mentions.is_disjoint(&self.local);
        let mut ranges: Vec<Range<usize>> =
            parsed.items.iter().filter(|i| i.call.is_none() && !local(&i.mentions)).map(|i| i.range.clone()).collect();
        ranges.extend(parsed.macros_in(cell).filter(|m| !local(&m.mentions)).map(|m| m.range.clone()));
        let of = |c: &Expanded| -> bool {
            let made = parsed.items.iter().filter(|i| i.call.as_ref().is_some_and(|of| Arc::ptr_eq(of, &c.call)));
            local(&c.call.macros) || made.into_iter().any(|i| local(&i.mentions))
        };
        ranges.extend(parsed.calls.iter().filter(|c| !of(c)).map(|c| c.call.range.clone()));
        ranges.sort_by_key(|r| r.start);
        let text = |r: &Range<usize>| {
            let mut text = Source::default();
            let mut edits = included(&cell.text, r.clone());
            edits.extend(
                shows(&self.defs, parsed).filter(|e| r.start <= e.range.start && e.range.end <= r.end).cloned(),
            );
            edits.sort_by_key(|e| e.range.start);
            text.user(cell, r.clone(), &edits);
            text.text + "\n"
        };
        let mut texts: Vec<String> = ranges.iter().map(text).collect();
        if !parsed.uses.iter().any(|u| local(&scan::mentions(&u.text))) {
            let own = parsed.uses.iter().filter(|u| !parsed.calls.iter().any(|c| c.makes(u)));
            texts.extend(own.map(|u| format!("{}\n", u.text)));
            ranges.extend(parsed.use_ranges.iter().cloned());
        }
        for text in texts {
            if !self.root.contains(&text) {
                self.root.push(text);
            }
        }
        ranges
    }

    fn leave_out(&mut self, cell: u64, line: &str) {
        self.out.main += &format!("    // {line}\n");
        self.out.left_out.push((cell, line.to_owned()));
    }

    fn add(&mut self, cell: &Arc<CellText>, range: Range<usize>, mut needed: BTreeSet<String>) -> Result<(), Failure> {
        let parsed = split::parse(cell, range.clone(), &self.defs.macros)
            .map_err(|e| crate::engine::sentence("ExportError", format!("{} is not Rust: {e}", cell.label())))?;
        let change = self.defs.change(&parsed);
        let defs = &self.defs;
        let old_use = |name: &str| self.local.contains(name) && defs.uses.iter().any(|old| old.binds == name);
        let again = parsed.uses.iter().any(|u| defs.has(&u.binds) || old_use(&u.binds));
        if change.needed && defs.redefined_by(&parsed) || again {
            self.out.main += "    {\n";
            self.blocks += 1;
            for item in &change.moved {
                self.out.main += &format!("{}\n", item.text());
            }
            let types = change.moved.iter().filter(|i| i.is_type).flat_map(|i| &i.names);
            let types: Vec<String> = types.map(|n| format!("`{n}`")).collect();
            if !types.is_empty() {
                self.out.notes.push(format!(
                    "{} changes what is implemented for {}: in the program, values made before keep to what was there before",
                    cell.label(),
                    types.join(", ")
                ));
            }
        }
        let hoisted = self.hoist(cell, &parsed);
        let from_root = |i: &&Item| ["super", "crate"].iter().any(|word| i.mentions.contains(*word));
        for item in parsed.items.iter().filter(|i| !hoisted.contains(&i.in_cell().1)).filter(from_root) {
            self.out.notes.push(format!(
                "{} of {} names things by `super` or `crate` of which one is defined anew: in the program it does not find them",
                item.in_words(),
                cell.label()
            ));
        }
        let kept = parsed.bindings.iter().any(|b| needed.contains(&b.name));
        if kept && !parsed.returns.is_empty() {
            self.out.notes.push(format!(
                "{} may end early, which ends the program: later cells need what it declares",
                cell.label()
            ));
        }
        self.drops |=
            parsed.items.iter().any(|i| i.header.as_ref().is_some_and(|h| h.of_trait.as_deref() == Some("Drop")));
        let binds: BTreeSet<String> = parsed.bindings.iter().map(|b| b.name.clone()).collect();
        let again: Vec<String> = binds.intersection(&self.declared).map(|n| format!("`{n}`")).collect();
        if self.drops && !again.is_empty() {
            self.out.notes.push(format!(
                "{} declares {} again: a notebook drops the value of before then, the program does not",
                cell.label(),
                again.join(", ")
            ));
        }
        self.declared.extend(binds);
        // A later mention of what is declared here means that.
        needed.retain(|n| !parsed.bindings.iter().any(|b| b.name == *n));
        self.out.main += &body(cell, range, (&self.defs, &parsed), &hoisted, &needed, !kept);
        self.defs = after(change, cell, &parsed);
        Ok(())
    }
}

/// For each part, the variables that later ones mention before they bind them.
fn needed_after<'c>(
    parts: impl DoubleEndedIterator<Item = (&'c Arc<CellText>, Option<Range<usize>>)>,
) -> Vec<BTreeSet<String>> {
    let mut needed = BTreeSet::new();
    let mut all: Vec<BTreeSet<String>> = Vec::new();
    for (cell, range) in parts.rev() {
        all.push(needed.clone());
        let Some(parsed) = range.and_then(|range| split::parse(cell, range, &[]).ok()) else { continue };
        needed.retain(|n| !parsed.bindings.iter().any(|b| b.name == *n));
        needed.extend(parsed.mentions.into_iter().filter(|n| !parsed.rebound.contains(n)));
    }
    all.reverse();
    all
}

/// Calls that show what is not `Rich`, too.
fn shows<'a>(defs: &'a Definitions, parsed: &'a Parsed) -> impl Iterator<Item = &'a Splice> {
    let all = parsed.edits.iter().chain(parsed.items.iter().filter(|i| i.call.is_none()).flat_map(|i| &i.edits));
    // Nobody has asked rustc whose they are: the notebook's, where a module of it has one.
    let declares = |i: &Item| i.source.text[i.range.clone()].contains("fn display");
    let globs = defs.items().map(|(_, i)| i).chain(&parsed.items).any(declares);
    all.filter(move |e| matches!(e.tag, Tag::Show(..)) && !defs.takes(e, parsed, !globs))
}

/// The cell's text, with its last value printed. What a later cell needs is cloned where it is taken: in a notebook a text or a
/// tensor stays when it is handed on, and anything else that a later cell mentions was `Copy`.
fn body(
    cell: &Arc<CellText>,
    range: Range<usize>,
    (defs, parsed): (&Definitions, &Parsed),
    hoisted: &[Range<usize>],
    needed: &BTreeSet<String>,
    apart: bool,
) -> String {
    const CLONE: &str = "::core::clone::Clone::clone(&";
    let mut edits: Vec<Splice> = hoisted.iter().map(|at| Splice::replace(at.clone(), "")).collect();
    let apart = apart && !parsed.returns.is_empty();
    edits.extend(parsed.edits.iter().filter(|e| e.tag == Tag::Program).cloned());
    let outside = |e: &&Splice| !hoisted.iter().any(|r| r.start <= e.range.start && e.range.end <= r.end);
    edits.extend(shows(defs, parsed).filter(outside).cloned());
    for (name, at) in parsed.taken.iter().filter(|(name, _)| needed.contains(name)) {
        edits.push(Splice::replace(at.clone(), format!("{CLONE}{name})")));
    }
    for (at, names) in &parsed.captures {
        let copies: String = names.intersection(needed).map(|name| format!("let {name} = {CLONE}{name}); ")).collect();
        if !copies.is_empty() {
            edits.push(Splice::insert(at.start, format!("{{ {copies}")));
            edits.push(Splice::insert(at.end, " }"));
        }
    }
    if apart {
        // One in the value of another goes with it, and so does whatever else changes there.
        let inside = |at: &Range<usize>, of: &Range<usize>| of.start <= at.start && at.end <= of.end;
        let mut outermost: Vec<&Range<usize>> = vec![];
        for at in &parsed.returns {
            if !outermost.iter().any(|of| inside(at, of)) {
                outermost.retain(|of| !inside(of, at));
                outermost.push(at);
            }
        }
        edits.retain(|e| !outermost.iter().any(|of| inside(&e.range, of)));
        edits.extend(outermost.iter().map(|at| Splice::replace((*at).clone(), "break 'cell")));
    }
    edits.sort_by_key(|e| e.range.start);
    if let Some(t) = &parsed.trailing {
        let first = edits.partition_point(|e| e.range.start < t.start);
        edits.insert(first, Splice::insert(t.start, "show!("));
        let last = edits.partition_point(|e| e.range.start <= t.end);
        edits.insert(last, Splice::insert(t.end, ")"));
    }
    let mut source = Source::default();
    source.user(cell, range, &edits);
    let mut out = source.text.trim_end().to_owned();
    if apart {
        return format!("'cell: {{\n{out}\n;}}\n");
    }
    if parsed.has_statements && !out.ends_with([';', '}']) {
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
        let body = |p: Program| p.main.split_once("Error>> {\n").map_or(String::new(), |(_, body)| body.to_owned());
        program(&cells).map(body).unwrap_or_else(|f| f.message)
    }

    #[test]
    fn cells_stand_one_after_the_other() {
        let main = main_of(&["let a = 1;", "%vars\na + 1"]);
        assert!(main.starts_with("\n    // cell 1\nlet a = 1;\n\n    // cell 2\n    // %vars\nshow!(a + 1)"), "{main}");
    }

    #[test]
    fn what_a_later_cell_needs_is_cloned_where_it_is_taken() {
        let main = main_of(&["let s = String::new(); let v = vec![1];", "let t = s; f(v);", "s", "let v = 2;", "v"]);
        assert!(main.contains("let t = ::core::clone::Clone::clone(&s); f(v);"), "{main}");
        let main = main_of(&["let f = move |x: i32| s.len() + x;", "s"]);
        assert!(
            main.contains("let f = { let s = ::core::clone::Clone::clone(&s); move |x: i32| s.len() + x };"),
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
