//! Variables that were moved away or lost and that a cell assigns to: they are there again, of the type that they had. And those
//! that an earlier cell has declared without a value.
use super::compiler::Scope;
use crate::eval::generate::definitions::Definitions;
use crate::eval::parse::open::Kind;
use crate::eval::parse::parsed::{Binding, Parsed};
use crate::eval::parse::places::{Places, Variable};
use crate::eval::text::source::{CellText, Splice};
use crate::eval::text::types::{Named, nameable};
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::collections::BTreeSet;

/// Makes declarations of assignments to variables that are gone. An assignment that comes before all else that names the variable
/// is its `let`; for any other, it is declared without a value, and rustc says where it has none.
pub fn assigned(parsed: &mut Parsed, cell: &CellText, scope: &Scope, defs: &Definitions) -> Vec<String> {
    let gone = |name: &str| {
        let mutable = scope.declared.get(name).is_some_and(|d| !d.fixed && !d.is_pending());
        mutable && scope.gone.contains_key(name) && !defs.has(name) && !scope.vars.iter().any(|v| v.name == name)
    };
    let unset = |name: &str| scope.declared.get(name).filter(|d| d.is_unset());
    let variables = parsed.places.variables.iter().enumerate();
    let made =
        |v: &Variable| v.declared.is_none() && v.changed.is_some() && (gone(&v.name) || unset(&v.name).is_some());
    let found: Vec<usize> = variables.filter(|(_, v)| made(v)).map(|(n, _)| n).collect();
    let mut names = Vec::new();
    for n in found {
        let name = parsed.places.variables[n].name.clone();
        let known = scope.declared.get(&name).and_then(|d| d.lost.as_deref());
        let written = |crate_name: &str, path: &str| Some(defs.current_path(crate_name, path)?.0);
        let ty = match known.map(|known| nameable(known, &mut { written })) {
            Some(Named::Type(ty)) => format!(": {ty}"),
            _ => unset(&name).and_then(|d| d.said(&name)).map(|ty| format!(": {ty}")).unwrap_or_default(),
        };
        let fixed = unset(&name).is_some_and(|d| d.fixed);
        let binding = if fixed { "let " } else { "let mut " };
        match first(parsed, cell, n) {
            Some((number, end)) => {
                let assignment = &mut parsed.places.assignments[number];
                assignment.declares = true;
                let start = assignment.whole.start;
                parsed.edits.push(Splice::insert(start, binding));
                parsed.edits.push(Splice::insert(start + name.len(), ty));
                let v = &mut parsed.places.variables[n];
                (v.declared, v.begins, v.has_value, v.fixed) = (Some(end), Some(start), true, fixed);
            }
            None if assigned_only_after_all(parsed, n) => continue,
            None => {
                let start = parsed.statements.first().copied().unwrap_or_default();
                parsed.later.push(format!("{binding}{name}{ty};"));
                (parsed.places.variables[n].declared, parsed.places.variables[n].fixed) = (Some(start), fixed);
            }
        }
        parsed.rebound.insert(name.clone());
        parsed.moved.remove(&name);
        if !parsed.bindings.iter().any(|b| b.name == name) {
            parsed.bindings.push(Binding { name: name.clone(), closure: None });
        }
        // Of one that has never had a value, rustc says where that is missing.
        names.extend(Some(name).filter(|name| unset(name).is_none()));
    }
    parsed.edits.sort_by_key(|e| e.range.start);
    names
}

/// The assignment that is a statement of the cell's, before all that mentions the variable, and where that statement ends.
fn first(parsed: &Parsed, cell: &CellText, n: usize) -> Option<(usize, usize)> {
    let places = &parsed.places;
    let (number, a) = places.assignments.iter().enumerate().find(|(_, a)| a.variable == n)?;
    let later = places.mentions_of(n).all(|m| m.range.start > a.whole.end);
    let behind = cell.text.get(a.whole.end..)?;
    let rest = behind.trim_start();
    let statement = a.leaf.is_none() && parsed.statements.contains(&a.whole.start) && rest.starts_with(';');
    (later && statement && !places.variables[n].odd).then(|| (number, a.whole.end + behind.len() - rest.len() + 1))
}

/// Whether rustc says that some of them are looked at before they have their values: they are what they were, gone.
pub fn have_no_value(names: &[String], errors: &[Diagnostic]) -> bool {
    let early = |e: &&Diagnostic| matches!(&*e.code, "E0381" | "E0425" | "E0423" | "E0282");
    let texts =
        errors.iter().filter(early).flat_map(|e| [&e.message].into_iter().chain(e.children.iter().map(|c| &c.message)));
    let mut said = texts.filter_map(|text| text.split('`').nth(1));
    said.any(|name| names.iter().any(|n| n == name))
}

/// What is changed in place, and never assigned as a whole, is not made by that.
fn assigned_only_after_all(parsed: &Parsed, n: usize) -> bool {
    !parsed.places.assignments.iter().any(|a| a.variable == n)
}

/// The variables that a cell declares without a value and mentions no more: `let r;`.
pub fn without_value(places: &Places) -> BTreeSet<usize> {
    let nowhere = |v: &Variable| !v.mentioned && !v.odd && v.open.as_ref().is_some_and(|o| o.kind == Kind::Unset);
    let waits = |(n, v): (usize, &Variable)| (nowhere(v) && places.declared(&v.name) == Some(n)).then_some(n);
    places.variables.iter().enumerate().filter_map(waits).collect()
}
