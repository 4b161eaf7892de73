//! What an import means where an item has the same name: only rustc knows whether it is a type, a value, or both.
use super::compiler::{Behind, Compiler, Timing};
use crate::engine::Failure;
use crate::eval::generate::code::{NAME_IN_TEXT, Plan, prologue};
use crate::eval::generate::definitions::Definitions;
use crate::eval::parse::items::Space;
use crate::eval::parse::parsed::{Parsed, Use};
use crate::eval::text::source::{CellText, Source};
use crate::eval::toolchain::diagnostic::Diagnostic;
use crate::eval::toolchain::rustc::Compiled;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Compiler {
    /// What `use`s import, where they and items have one name: rustc is asked, beside a function and a type of that name.
    pub(super) fn find_spaces(&mut self, cell: &Arc<CellText>, parsed: &mut Parsed) -> Result<(), Failure> {
        for u in &mut parsed.uses {
            // As in the cell before: it was asked then.
            let known = self.defs.uses.iter().find(|old| old.text == u.text);
            u.space = known.map_or(u.space, |old| old.space);
        }
        let there: BTreeSet<&str> = self.defs.items().flat_map(|(_, i)| &i.names).map(String::as_str).collect();
        let own: BTreeSet<&str> = parsed.items.iter().flat_map(|i| &i.names).map(String::as_str).collect();
        let new = parsed.uses.iter().filter(|u| there.contains(u.binds.as_str()));
        let old = self.defs.uses.iter().filter(|u| own.contains(u.binds.as_str()));
        let asked: Vec<Use> = new.chain(old).filter(|u| u.space == Space::default()).cloned().collect();
        if asked.is_empty() {
            return Ok(());
        }
        let source = imports(cell, &asked, &self.defs);
        let (_, _, compiled) = self.rustc(&self.needs(&self.defs), source, Behind::Anything, &mut Timing::default())?;
        let Compiled::Errors(errors) = compiled else { return Ok(()) };
        let clash = |line: usize| {
            let on_it = |e: &&Diagnostic| e.code == "E0255" && e.spans.iter().any(|s| s.primary && s.line == line);
            errors.iter().any(|e| on_it(&e))
        };
        for (i, name) in asked.iter().enumerate() {
            let space = Space { types: clash(line_of_import(i, 1)), values: clash(line_of_import(i, 2)) };
            let all = parsed.uses.iter_mut().chain(Arc::make_mut(&mut self.defs.uses));
            all.filter(|u| u.binds == name.binds && u.text == name.text).for_each(|u| u.space = space);
        }
        Ok(())
    }
}

/// Imports, each in a module of its own beside a type and a function of its name, on lines of their own.
fn imports(cell: &Arc<CellText>, asked: &[Use], defs: &Definitions) -> Source {
    let named = |name: &str| asked.iter().any(|u| u.binds == name);
    let mut defs = defs.clone();
    Arc::make_mut(&mut defs.uses).retain(|u| !named(&u.binds));
    for g in defs.groups.iter_mut().filter(|g| g.items.iter().flat_map(|i| &i.names).any(|n| named(n))) {
        Arc::make_mut(g).items.iter_mut().for_each(|i| i.names.retain(|n| !named(n)));
    }
    let mut out = Source::default();
    prologue(&mut out, "dylib", NAME_IN_TEXT, cell, &Parsed::default(), &defs, &Plan::default());
    out.plain("\n");
    for (i, u) in asked.iter().enumerate() {
        out.plain(&format!(
            "mod xlazy_{i} {{ use super::*; {}\nenum {} {{}}\nfn {}() {{}} }}\n",
            u.text, u.binds, u.binds
        ));
    }
    out
}

/// Where in [`imports`] the type (1) or the function (2) beside an import stands.
fn line_of_import(index: usize, which: usize) -> usize {
    2 + 3 * index + which
}
