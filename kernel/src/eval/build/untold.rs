//! Variables whose numbers a cell needs as others than an earlier one has made them: where nothing there says of what type they are.
use super::compiler::{Behind, Compiler, Timing};
use super::otherwise::{about_types, otherwise};
use crate::engine::Failure;
use crate::eval::generate::code::{Loaded, OLDER, Plan};
use crate::eval::generate::numbers::{may_be_others, with_others};
use crate::eval::parse::parsed::Parsed;
use crate::eval::text::source::{Provenance, Source, Tag};
use crate::eval::toolchain::diagnostic::Diagnostic;
use crate::eval::toolchain::rustc::{Compiled, Needs};
use std::collections::BTreeSet;

impl Compiler {
    /// Has the plan take the variables for which that may mend these errors as of another type; false where there are none.
    pub(super) fn takes_otherwise(
        &mut self,
        (errors, sent): (&[Diagnostic], &Source),
        parsed: &Parsed,
        loaded: &[Loaded],
        needs: &Needs,
        plan: &mut Plan,
        timing: &mut Timing,
    ) -> Result<bool, Failure> {
        if plan.plain || plan.has_otherwise() || about_types(errors).next().is_none() {
            return Ok(false);
        }
        let open: BTreeSet<String> = otherwise(loaded).map(|v| v.name.clone()).collect();
        let named = named(errors, sent, parsed);
        for v in loaded.iter().filter(|v| named.contains(&v.name) && !open.contains(&v.name)) {
            if self.is_untold(v, needs, timing)? {
                plan.converted.insert(v.name.clone());
            }
        }
        plan.open = open;
        Ok(plan.has_otherwise())
    }

    /// Whether the cell that has made a variable would as well compile with other numbers in it: then nothing there says their type.
    fn is_untold(&mut self, v: &Loaded, needs: &Needs, timing: &mut Timing) -> Result<bool, Failure> {
        let own = !v.is_view() && v.views.is_none() && v.open.as_ref().is_none_or(|o| !o.pending);
        let made = v.made_in.as_ref().filter(|_| own && may_be_others(&v.written_type));
        let Some(source) = made.and_then(|file| self.sources.get(file)) else { return Ok(false) };
        let Some(text) = with_others(&source.text, &v.name, &v.written_type) else { return Ok(false) };
        let older = text.contains(&format!("/* edition {OLDER} */"));
        let needs = self.needs_of(&Plan { older, ..Plan::default() }, needs);
        let mut source = Source::default();
        source.plain(&text);
        let (.., compiled) = self.rustc(&needs, source, Behind::Anything, timing)?;
        let Compiled::Object(object, ..) = compiled else { return Ok(false) };
        // Nobody runs it.
        let _ = std::fs::remove_file(object);
        Ok(true)
    }
}

/// The variables that are mentioned in the statements which the errors are about, and in those that declare what is mentioned there.
fn named(errors: &[Diagnostic], sent: &Source, parsed: &Parsed) -> BTreeSet<String> {
    let places = &parsed.places;
    let at = |start: usize| match sent.provenance(start) {
        Provenance::User { at, .. } => Some(at),
        Provenance::Generated(Tag::Mention(i)) => Some(places.mentions[*i].range.start),
        _ => None,
    };
    let spans = about_types(errors).flat_map(|e| &e.spans).filter(|s| s.ours);
    let mut open: Vec<usize> = spans.filter_map(|s| parsed.statement(at(s.start)?)).collect();
    let (mut seen, mut named) = (BTreeSet::new(), BTreeSet::new());
    while let Some(statement) = open.pop() {
        if !seen.insert(statement) {
            continue;
        }
        for m in places.mentions.iter().filter(|m| parsed.statement(m.range.start) == Some(statement)) {
            let v = &places.variables[m.variable];
            open.extend(v.begins.and_then(|at| parsed.statement(at)));
            named.insert(v.name.clone());
        }
    }
    named
}
