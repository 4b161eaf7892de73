//! Where a line of the user's was called from.
use super::{Place, Spot, function};
use std::panic::Location;

/// Where what stands at `at` was called from, if that is another line: the statement of the cell that ran then.
pub fn called_from(at: &Location, statement: Option<Place>) -> Option<Place> {
    // In one file only a closure of the cell's own has a caller; around it is the statement itself.
    let outside = |s: Place| {
        function(at).is_some_and(|f| {
            let s = Spot::from(s);
            s < f.from || f.to < s
        })
    };
    let other = |s: &Place| {
        (s.file() != at.file() || outside(s)) && (super::cell(s), super::line(s)) != (super::cell(at), super::line(at))
    };
    statement.filter(other)
}

/// As [`super::location`], and where that was called from: `cell 1, line 19, called from cell 4, line 2`.
pub fn told(at: &Location, statement: Option<Place>) -> String {
    with_caller(at, called_from(at, statement))
}

/// A place, and the one that it was called from.
pub fn with_caller(at: &Location, from: Option<Place>) -> String {
    super::location(at) + &from.map(|s| format!(", called from {}", super::location(s))).unwrap_or_default()
}
