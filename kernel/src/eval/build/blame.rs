//! Whose fault an error in a group is: the cell's, or that of an item of an earlier cell that is compiled with it.
use crate::eval::generate::change::Change;
use crate::eval::parse::parsed::Parsed;
use crate::eval::tell::texts::Texts;
use crate::eval::text::source::{CellText, Source};
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An item that did not go along with a change.
pub struct Left {
    pub names: Vec<String>,
    pub note: String,
    /// What became of it, for whoever misses it.
    pub how: String,
}

impl Change {
    /// The item of an earlier cell that an error is about.
    fn moved_at_fault(&self, error: &Diagnostic, source: &Source, cell: &Arc<CellText>) -> Option<usize> {
        let texts = Texts::new(source);
        let (text, range) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
        // What a macro of this cell makes of an earlier call is this cell's fault.
        self.moved.iter().position(|i| !Arc::ptr_eq(text, cell) && i.holds(text, &range))
    }

    /// Errors about the cell itself, where there are any: what else is wrong need not go along.
    pub fn of_the_cell(&self, errors: Vec<Diagnostic>, source: &Source, cell: &Arc<CellText>) -> Vec<Diagnostic> {
        let own = |e: &&Diagnostic| !e.spans.is_empty() && self.moved_at_fault(e, source, cell).is_none();
        let found: Vec<Diagnostic> = errors.iter().filter(own).cloned().collect();
        if found.is_empty() || !self.may_leave { errors } else { found }
    }

    /// Says which call of a macro made what an error points into, where that is in another cell.
    pub fn name_calls(&self, errors: &mut [Diagnostic], source: &Source, parsed: &Parsed) {
        let texts = Texts::new(source);
        for error in errors {
            let Some((text, range)) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s)) else {
                continue;
            };
            let made = parsed.items.iter().chain(&self.moved).filter(|i| i.holds(text, &range));
            let Some(call) = made.filter_map(|i| i.call.as_ref()).find(|c| !Arc::ptr_eq(&c.cell, text)) else {
                continue;
            };
            let message = format!("{} makes it", call.in_words());
            error.children.push(Diagnostic { level: "note".to_owned(), message, ..Diagnostic::default() });
        }
    }

    /// The same without the items of earlier cells that do not fit the new definitions, and those that need them; and
    /// what to say about each. `None` when the cell's own text is at fault.
    pub fn leaving_behind(
        &self,
        errors: &[Diagnostic],
        source: &Source,
        cell: &Arc<CellText>,
    ) -> Option<(Change, Vec<Left>)> {
        let mut unfit: Vec<(usize, String)> = Vec::new();
        for e in errors.iter().filter(|e| self.may_leave && !e.spans.is_empty()) {
            unfit.push((self.moved_at_fault(e, source, cell)?, e.message.clone()));
        }
        let mut left = Change { moved: Vec::new(), ..self.clone() };
        let mut gone: BTreeSet<&str> = BTreeSet::new();
        let mut behind = Vec::new();
        unfit.reverse();
        let why: BTreeMap<usize, String> = unfit.into_iter().collect();
        gone.extend(why.keys().flat_map(|at| &self.moved[*at].names).map(String::as_str));
        for (at, item) in self.moved.iter().enumerate() {
            let needs = || item.mentions.iter().find(|m| gone.contains(m.as_str()));
            let why = why.get(&at).cloned().or_else(|| Some(format!("it needs `{}`", needs()?)));
            match why {
                Some(why) => {
                    let (what, cell) = (item.in_words(), item.source.label());
                    let note = format!("{what} of {cell} no longer fits, and is gone until its cell runs again: {why}");
                    let how = format!("did not fit what was defined anew: run {cell} again, or mend it there");
                    behind.push(Left { names: item.names.clone(), note, how });
                    gone.extend(item.names.iter().map(String::as_str));
                }
                None => left.moved.push(item.clone()),
            }
        }
        (!behind.is_empty()).then_some((left, behind))
    }
}
