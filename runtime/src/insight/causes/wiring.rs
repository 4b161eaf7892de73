//! An op takes another operand than before: two tensors became one, or one two.
use super::claim::Claim;
use crate::insight::evidence::{Evidence, What, words};
use crate::insight::record::Record;
use crate::insight::report::{Class, Difference};
use xlazy_core::ir::Step;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let all: Vec<(u32, u32, usize)> = e
        .open()
        .filter_map(|(_, what)| match *what {
            What::Wiring(i, j, k) => Some((i, j, k)),
            _ => None,
        })
        .collect();
    let &(i, j, _) = all.first()?;
    let (a, b) = e.pair((i, j));
    let covers = e.numbered(|what| matches!(what, What::Wiring(..) | What::Donation(_)));
    let differences = all.iter().map(|&(i, j, k)| difference(e, (i, j), k)).collect();
    let fix = match super::shape::kinds(e.new) == super::shape::kinds(e.old) && twice(a).is_none() && twice(b).is_none()
    {
        true => "the same inputs in another order: hand them over in the same order in every step",
        false if e.new.session => "give each use a tensor of its own (`copy()`), or share it in every step",
        false => "give each use a tensor of its own, or share it in every step",
    };
    Some(Claim::new(covers, Class::Aliasing, a.at, differences, fix))
}

/// Two operands that are one.
fn twice(s: &Step) -> Option<(usize, usize)> {
    let at = |k: usize| s.inputs[..k].iter().position(|x| *x == s.inputs[k]).map(|first| (first, k));
    (1..s.inputs.len()).find_map(at)
}

fn difference(e: &Evidence, pair: (u32, u32), k: usize) -> Difference {
    let (a, b) = e.pair(pair);
    if let (Some((x, y)), None) | (None, Some((x, y))) = (twice(a), twice(b)) {
        let one = |s: &Step, r: &Record| match twice(s) {
            Some((x, _)) => format!("the same: {}", words::operand(Some(&s.inputs[x]), r)),
            None => "two".to_owned(),
        };
        let what = format!("operands {} and {} of {}", x + 1, y + 1, a.op.name);
        let (was, now) = (one(b, e.old), one(a, e.new));
        return Difference { what, was, now, was_at: Some(b.at), now_at: Some(a.at) };
    }
    let (was, mut now) = (words::operand(b.inputs.get(k), e.old), words::operand(a.inputs.get(k), e.new));
    if was == now {
        now = format!("another: {now}");
    }
    Difference { what: format!("operand {} of {}", k + 1, a.op.name), was, now, was_at: Some(b.at), now_at: Some(a.at) }
}
