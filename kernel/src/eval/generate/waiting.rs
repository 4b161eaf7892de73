//! `let`s whose types a later cell says: their own cell leaves them out.
use super::held::Held;
use crate::eval::parse::parsed::Parsed;
use crate::eval::parse::places::Variable;
use crate::eval::text::source::{CellText, Splice, blanked};
use std::ops::Range;

/// The edits without those of what waits, which is left out; how long it is to be is computed all the same.
pub fn left_out(cell: &CellText, parsed: &Parsed, held: &Held, mut edits: Vec<Splice>) -> Vec<Splice> {
    // The store must not have an earlier one of that name, of whatever cell.
    let gone = |(n, v): (usize, &Variable)| match held.any() {
        true => format!("xlazy_f.inside({n}, \"{}\", true);", v.name),
        false => format!("xlazy_rt::forget(\"{}\");", v.name),
    };
    for open in held.waiting().filter_map(|v| v.open.as_ref()) {
        let lengths: &[Range<usize>] = if open.measured { &open.lengths.at } else { &[] };
        let stays = |r: &Range<usize>| lengths.iter().any(|at| at.start <= r.start && r.end <= at.end);
        let apart = |r: &Range<usize>, whole: &Range<usize>| r.end <= whole.start || whole.end <= r.start;
        edits.retain(|e| apart(&e.range, &open.whole) || stays(&e.range));
        let (mut from, mut text) = (open.whole.start, parsed.places.beside(open).map(gone).collect::<String>());
        for at in lengths {
            text += &blanked(&cell.text[from..at.start]);
            edits.push(Splice::replace(from..at.start, format!("{text}xlazy_rt::length({}, ", at.start)));
            (from, text) = (at.end, ");".to_owned());
        }
        edits.push(Splice::replace(from..open.whole.end, text + &blanked(&cell.text[from..open.whole.end])));
    }
    edits.sort_by_key(|e| e.range.start);
    edits
}
