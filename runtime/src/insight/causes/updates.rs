//! What an optimizer's step does is other, and nothing else is: another optimizer, or other options.
use super::claim::{Claim, with_results};
use super::keep::stay;
use crate::insight::evidence::{Evidence, Ops, What, words};
use crate::insight::mode::Derived;
use crate::insight::report::{Class, Difference, Place};
use xlazy_core::text::location;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.is_part() || e.ops().any(|(_, ops)| !ops.derived) {
        return None;
    }
    // What an earlier step made is taken up, which is told as that.
    let taken_up =
        |ops: &Ops| ops.gains.iter().map(|&l| &e.new.leaves[l as usize]).any(|l| l.computed && e.old.lines.has(l.line));
    let one = |(_, ops): &(usize, &Ops)| update(e, ops).is_some() && !taken_up(ops);
    let found: Vec<(usize, &Ops)> = e.ops().filter(one).collect();
    let at = update(e, found.first()?.1)?;
    let differences: Vec<Difference> = found.iter().flat_map(|f| words::ops(e, f.1)).collect();
    let fix = format!(
        "the step at {} does other things than before: another optimizer, or other options (weight decay, momentum, clipping); expected \
         once for each, and {}",
        location(at),
        stay(e.new, "all")
    );
    let mut covers = with_results(e, found.iter().map(|f| f.0).collect());
    // What they are made of goes with them.
    covers.extend(e.numbered(|what| matches!(what, What::Wiring(i, ..) if e.new.derived(*i).is_some())));
    Some(Claim::new(covers, Class::Structure, at, words::first_at(differences, at), fix))
}

/// The line whose update it is of which ops came or went.
fn update(e: &Evidence, ops: &Ops) -> Option<Place> {
    let is_update = |derived: Option<Derived>| derived == Some(Derived::Update);
    let new = ops.new.iter().find(|i| is_update(e.new.derived(**i))).map(|i| e.new.steps[*i as usize].at);
    new.or_else(|| ops.old.iter().find(|j| is_update(e.old.derived(**j))).map(|j| e.old.steps[*j as usize].at))
}
