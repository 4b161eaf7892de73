//! The calls of a cell of which it is not certain what they make, and what comes next of each.
use crate::eval::parse::elsewhere::{Makes, Seen};
use crate::eval::text::source::{Provenance, Source};
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::iter::successors;

/// What is tried of the calls of the cell at hand.
#[derive(Default)]
pub struct Calls {
    pub tried: Option<Vec<Try>>,
    /// Nobody is told of this try.
    pub quiet: bool,
    /// Where in the cell something was wrong in it.
    wrong: Vec<usize>,
}

/// A call of which it is not certain what it makes.
pub struct Try {
    pub seen: Seen,
    /// What it is taken to make, and behind that what it may make besides.
    pub ways: Vec<Makes>,
    /// It is no question any more.
    pub settled: bool,
}

impl Calls {
    /// Takes down where errors are.
    pub fn hear(&mut self, errors: &[Diagnostic], source: &Source) {
        let place = |span: usize| match source.provenance(span) {
            Provenance::User { at, .. } => Some(at),
            Provenance::Generated(_) => None,
        };
        let spans = errors.iter().flat_map(|e| &e.spans).filter(|s| s.primary);
        // What is wrong in what a macro makes is wrong with its call.
        let all = spans.flat_map(|s| successors(Some(s), |s| s.call.as_deref())).filter(|s| s.ours);
        // A `pub` that was put in front of something is at that.
        self.wrong = all.filter_map(|s| [s.start, s.end + 1].into_iter().find_map(place)).collect();
    }

    /// Takes calls to make something else: those that something is wrong with, or those that made nothing that others could miss.
    pub fn go_on(&mut self) -> bool {
        let wrong = std::mem::take(&mut self.wrong);
        let Some(tried) = &mut self.tried else { return false };
        let blamed = |t: &Try| wrong.iter().any(|at| t.seen.at.contains(at));
        let unused = |t: &Try| t.ways[0] == Makes::Statement;
        let more = |t: &&mut Try| t.ways.len() > 1;
        let any = |of: &dyn Fn(&Try) -> bool, tried: &[Try]| tried.iter().any(|t| t.ways.len() > 1 && of(t));
        let of: &dyn Fn(&Try) -> bool = match () {
            () if any(&blamed, tried) => &blamed,
            () if any(&unused, tried) => &unused,
            () => &|_| true,
        };
        let mut changed = false;
        for t in tried.iter_mut().filter(more).filter(|t| of(t)) {
            t.ways.remove(0);
            changed = true;
        }
        changed
    }
}
