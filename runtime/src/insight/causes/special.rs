//! A number was part of the program and is an input now, or the other way round: frameworks treat some numbers, such as 0 and 1, so.
use super::claim::Claim;
use crate::insight::evidence::{Evidence, Ops};
use crate::insight::record::Record;
use crate::insight::report::{Class, Difference, Place};
use xlazy_core::ir::Kind;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let (at, now) = e.ops().find_map(|(_, ops)| of(e, ops))?;
    let covers = e.ops().filter(|(_, ops)| of(e, ops).is_some_and(|o| o.1 == now)).map(|(r, _)| r).collect();
    let side = |part: bool| if part { "part of the program" } else { "an input" }.to_owned();
    let what = "a number".to_owned();
    let difference = Difference { what, was: side(!now), now: side(now), was_at: Some(at), now_at: Some(at) };
    let fix = "some numbers, such as 0 and 1, become part of the program where others are data: give it as a tensor each time";
    Some(Claim::new(covers, Class::Constant, at, vec![difference], fix.to_owned()))
}

/// Where constants gave way to inputs that are numbers, or came in their place; and whether they are there now.
fn of(e: &Evidence, ops: &Ops) -> Option<(Place, bool)> {
    let (r, all, inputs, other, now): (&Record, &[u32], &[u32], &Record, bool) =
        match (&ops.new[..], &ops.old[..], &ops.gains[..], &ops.loses[..]) {
            (all, [], [], inputs) => (e.new, all, inputs, e.old, true),
            ([], all, inputs, []) => (e.old, all, inputs, e.new, false),
            _ => return None,
        };
    let made = |i: &u32| r.steps[*i as usize].op.kind == Kind::Made && r.steps[*i as usize].inputs.is_empty();
    let number = |l: &u32| other.leaves[*l as usize].ty.shape.is_empty();
    let all_are = !all.is_empty() && !inputs.is_empty() && all.iter().all(made) && inputs.iter().all(number);
    all_are.then(|| (r.steps[all[0] as usize].at, now))
}
