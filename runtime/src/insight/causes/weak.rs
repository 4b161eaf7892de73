//! A number of the language's came where an array did, or the other way round: frameworks with weakly typed numbers convert it.
use super::claim::Claim;
use crate::insight::evidence::{Evidence, Ops};
use crate::insight::record::{LeafRecord, Record};
use crate::insight::report::{Class, Difference};
use xlazy_core::ir::{Input, Kind};

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let (leaf, now) = e.ops().find_map(|(_, ops)| of(e, ops))?;
    let covers = e.ops().filter(|(_, ops)| of(e, ops).is_some()).map(|(r, _)| r).collect();
    let what = leaf.name.as_ref().map_or("input".to_owned(), |name| format!("`{name}`"));
    let ty = |weak: bool| {
        format!("{}, {}", leaf.ty, if weak { "a number of the language (weakly typed)" } else { "an array" })
    };
    let same = |l: &&LeafRecord| l.lineage == leaf.lineage;
    let at = |r: &Record| r.leaves.iter().find(same).map(|l| l.at);
    let (was_at, now_at) = (at(e.old), at(e.new));
    let difference = Difference { what, was: ty(!now), now: ty(now), was_at, now_at };
    let fix = "give it the same way each time, as a number of the language or as an array of one dtype: the two are different programs";
    Some(Claim::new(covers, Class::Dtype, now_at.unwrap_or(leaf.at), vec![difference], fix.to_owned()))
}

/// The input that ops convert to the type that it has, which says that it is weakly typed; and whether it is so now.
fn of<'a>(e: &'a Evidence, ops: &Ops) -> Option<(&'a LeafRecord, bool)> {
    let (r, all, now): (&Record, &[u32], bool) = match (&ops.new[..], &ops.old[..]) {
        (all, []) => (e.new, all, true),
        ([], all) => (e.old, all, false),
        _ => return None,
    };
    let converted = |i: &u32| match (r.steps[*i as usize].op.kind, &r.steps[*i as usize].inputs[..]) {
        (Kind::Convert, [Input::Leaf(l)]) if *r.steps[*i as usize].ty == r.leaves[*l as usize].ty => Some(*l),
        _ => None,
    };
    let first = converted(all.first()?)?;
    all.iter().all(|i| converted(i) == Some(first)).then(|| (&r.leaves[first as usize], now))
}
