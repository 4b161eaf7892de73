//! What the calls of other crates' macros make, items or statements: that is tried, and remembered by the macro's name.
use super::compile::Ready;
use super::compiler::{Compiler, Scope};
use super::makers::is_of_another_crate;
use super::refused::Refused;
use super::tried::{Calls, Try};
use crate::eval::parse::elsewhere::{Assumed, Makes, Seen};
use crate::eval::parse::parsed::Parsed;
use crate::eval::parse::split::{self, Unparsed};
use crate::eval::text::source::CellText;
use std::ops::Range;
use std::sync::Arc;

impl Compiler {
    /// The cell taken apart, with what is tried of its calls now.
    pub(super) fn taken_apart(
        &mut self,
        cell: &Arc<CellText>,
        range: &Range<usize>,
        scope: &Scope,
    ) -> Result<Parsed, Unparsed> {
        let parsed = split::parse_assuming(cell, range.clone(), &self.defs.macros, &self.defs.assumed)?;
        if parsed.elsewhere.is_empty() {
            return Ok(parsed);
        }
        if self.calls.tried.is_none() {
            let of_another = parsed.elsewhere.iter().filter(|s| is_of_another_crate(s, &parsed, &self.defs));
            let tries = of_another.map(|seen| {
                let ways = self.ways(seen, &parsed, scope);
                Try { seen: seen.clone(), settled: ways.len() == 1, ways }
            });
            self.calls.tried = Some(tries.collect());
        }
        let mut assumed = Assumed::clone(&self.defs.assumed);
        let tried = self.calls.tried.iter().flatten();
        assumed.extend(tried.map(|t| (t.seen.name.clone(), t.ways[0])));
        let tried = || self.calls.tried.iter().flatten();
        self.calls.quiet = tried().any(|t| !t.settled && t.ways[0] != t.seen.by_its_words());
        if assumed == *self.defs.assumed {
            return Ok(parsed);
        }
        split::parse_assuming(cell, range.clone(), &self.defs.macros, &Arc::new(assumed))
    }

    /// What is tried of a call, in this order: what mentions variables makes no items.
    fn ways(&self, seen: &Seen, parsed: &Parsed, scope: &Scope) -> Vec<Makes> {
        let known = self.defs.assumed.get(&seen.name).copied();
        let variable = |name: &String| {
            parsed.bindings.iter().any(|b| b.name == *name) || scope.vars.iter().any(|v| v.name == *name)
        };
        let like_items = seen.items || seen.like_items && !seen.mentions.iter().any(variable);
        let usual = match like_items {
            true => [Makes::Public, Makes::Beside, Makes::Statement],
            false => [Makes::Statement, Makes::Public, Makes::Beside],
        };
        let first = known.unwrap_or(usual[0]);
        // What was a statement, and looks like one, is no question any more.
        let settled = known == Some(Makes::Statement) && !like_items;
        let others = usual.into_iter().filter(|makes| *makes != first && !settled);
        [first].into_iter().chain(others).collect()
    }

    /// Compiles part of a cell, whatever its calls make.
    pub(super) fn compile_with_calls(
        &mut self,
        cell: &Arc<CellText>,
        range: &Range<usize>,
        scope: &Scope,
    ) -> Result<Ready, Refused> {
        self.calls = Calls::default();
        let mut told = None;
        loop {
            let mut done = self.compile_early(cell, range, scope);
            match &mut done {
                Err(Refused::Failure(_)) if self.calls.tried.iter().flatten().any(|t| t.ways.len() > 1) => {}
                Ok(ready) => {
                    self.remember_calls(ready);
                    return done;
                }
                _ if told.is_none() && !self.calls.quiet => return done,
                Err(Refused::Interrupted) => return done,
                _ => {}
            }
            if !self.calls.quiet {
                told = told.or(Some((done, self.explained.take())));
            }
            if !self.calls.go_on() {
                break;
            }
        }
        // What is wrong is told of it as it is written, and what is advised is tried so as well.
        for t in self.calls.tried.iter_mut().flatten().filter(|t| !t.settled) {
            t.ways = vec![t.seen.by_its_words()];
        }
        let Some((failed, explained)) = told else { return self.compile_early(cell, range, scope) };
        self.explained = explained;
        failed
    }

    /// What the cell's calls were taken for is what they make.
    fn remember_calls(&self, ready: &mut Ready) {
        for t in self.calls.tried.iter().flatten() {
            if ready.defs.assumed.get(&t.seen.name) != Some(&t.ways[0]) {
                Arc::make_mut(&mut ready.defs.assumed).insert(t.seen.name.clone(), t.ways[0]);
            }
        }
    }
}
