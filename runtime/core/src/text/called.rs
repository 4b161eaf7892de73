//! Where a line of the user's was called from.
use super::{Somewhere, Spot, function};

/// Where what stands at `at` was called from, if that is another line: the statement of the cell that ran then.
pub fn called_from<'a, S: Somewhere>(at: &impl Somewhere, statement: Option<&'a S>) -> Option<&'a S> {
    // In one file only a closure of the cell's own has a caller; around it is the statement itself.
    let outside = |s: &S| {
        function(at).is_some_and(|f| {
            let s = Spot::from(s);
            s < f.from || f.to < s
        })
    };
    let other = |s: &&S| {
        (s.file() != at.file() || outside(s))
            && (super::cell(*s), super::line(*s)) != (super::cell(at), super::line(at))
    };
    statement.filter(other)
}

/// As [`super::location`], and where that was called from: `cell 1, line 19, called from cell 4, line 2`.
pub fn told(at: &impl Somewhere, statement: Option<&impl Somewhere>) -> String {
    with_caller(at, called_from(at, statement))
}

/// A place, and the one that it was called from.
pub fn with_caller(at: &impl Somewhere, from: Option<&impl Somewhere>) -> String {
    super::location(at) + &from.map(|s| format!(", called from {}", super::location(s))).unwrap_or_default()
}
