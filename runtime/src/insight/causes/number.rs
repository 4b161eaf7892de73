//! A number came as another kind of number, or as a tensor, or a tensor as a number; or numbers of a healed attribute are more or fewer.
use super::claim::Claim;
use super::shape::{Seen, made_here, past};
use crate::insight::evidence::{Evidence, What, words};
use crate::insight::record::{LeafRecord, Record};
use crate::insight::report::{Class, Difference};
use xlazy_core::ir::{Input, Step};
use xlazy_core::ty::DType;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let number = |&(_, new, old): &(usize, &LeafRecord, &LeafRecord)| new.scalar || old.scalar;
    let (first, ..) = e.inputs().find(number)?;
    let (_, What::Input(l, m)) = e.open().find(|(r, _)| *r == first)? else { return None };
    let takes = |&&(i, j): &&(u32, u32)| {
        let (a, b) = e.pair((i, j));
        (0..a.inputs.len()).any(|k| a.inputs[k] == Input::Leaf(*l) && b.inputs.get(k) == Some(&Input::Leaf(*m)))
    };
    let &(i, j) = e.aligned.pairs.iter().find(takes)?;
    let (a, b) = e.pair((i, j));
    let k =
        (0..a.inputs.len()).find(|&k| a.inputs[k] == Input::Leaf(*l) && b.inputs.get(k) == Some(&Input::Leaf(*m)))?;
    // All numbers of that line which changed in the same way.
    let alike = |(_, x, y): &(usize, &LeafRecord, &LeafRecord)| {
        let (n, o) = (&e.new.leaves[*l as usize], &e.old.leaves[*m as usize]);
        let kind = |l: &LeafRecord| (l.scalar, l.ty.dtype, l.ty.shape.is_empty());
        kind(x) == kind(n) && kind(y) == kind(o)
    };
    let covers = e.inputs().filter(alike).map(|x| x.0).collect();
    let mut differences = vec![Difference {
        what: format!("operand {} of {}", k + 1, a.op.torch_name()),
        was: kind(b, k, e.old),
        now: kind(a, k, e.new),
        was_at: Some(b.at),
        now_at: Some(a.at),
    }];
    if a.ty != b.ty {
        differences.push(Difference {
            what: format!("the result of {}", a.op.torch_name()),
            was: b.ty.to_string(),
            now: a.ty.to_string(),
            was_at: Some(b.at),
            now_at: Some(a.at),
        });
    }
    let numbers = number_of(a, k, e.new).zip(number_of(b, k, e.old));
    if numbers.is_some_and(|(now, was)| now == was) {
        let seen = Seen::of_step(e.new, a, &past(e.new, i, e.known));
        return Some(Claim::new(covers, Class::Shape, a.at, differences, made_here(e, i, &seen, &b.ty, &a.ty)));
    }
    let class = match a.ty.dtype != b.ty.dtype || numbers.is_some() {
        true => Class::Dtype,
        false if a.ty.shape != b.ty.shape => Class::Shape,
        false => Class::Structure,
    };
    // A whole number goes with broken ones, not the other way round.
    let dtype = numbers.map_or(b.ty.dtype.promote(a.ty.dtype), |(now, was)| if now.is_float() { now } else { was });
    Some(Claim::new(covers, class, a.at, differences, fix(class, numbers.is_some(), dtype)))
}

/// The dtype of an operand that is a number.
pub(super) fn number_of(step: &Step, operand: usize, of: &Record) -> Option<DType> {
    match step.inputs.get(operand)? {
        Input::Leaf(l) => of.leaves.get(*l as usize).filter(|l| l.scalar).map(|l| l.ty.dtype),
        Input::Step(_) => None,
    }
}

fn kind(s: &Step, k: usize, r: &Record) -> String {
    match (number_of(s, k, r), s.inputs.get(k)) {
        (Some(_), Some(Input::Leaf(l))) => words::number(&r.leaves[*l as usize]),
        (None, Some(Input::Leaf(l))) => {
            let leaf = &r.leaves[*l as usize];
            leaf.name.as_ref().map_or(format!("a tensor ({})", leaf.ty), |n| format!("the tensor `{n}` ({})", leaf.ty))
        }
        _ => "a result".to_owned(),
    }
}

fn fix(class: Class, both_numbers: bool, was: DType) -> String {
    match (class, both_numbers) {
        (_, true) => format!(
            "write the number alike in every step, `2.0` or `2`, or make the tensor {} (`.to({was:?})`), which takes both alike",
            was.name()
        ),
        (Class::Dtype, false) => format!("keep the dtype: convert with `.to({was:?})` before the step"),
        _ => "hand it over as the same in every step: always a number, or always a tensor".into(),
    }
}
