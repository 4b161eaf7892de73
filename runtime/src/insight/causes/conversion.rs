//! Ops that convert, and nothing else, came or went: the same work in another dtype.
use super::claim::Claim;
use super::keep::once;
use crate::insight::evidence::{Evidence, Ops, words};
use crate::insight::record::Record;
use crate::insight::report::Class;
use xlazy_core::ir::{Kind, Step};
use xlazy_core::ty::DType;

fn converts(s: &Step) -> bool {
    s.op.kind == Kind::Convert
}

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let only = |ops: &Ops| {
        let all = ops.new.iter().map(|&i| &e.new.steps[i as usize]);
        let mut all = all.chain(ops.old.iter().map(|&j| &e.old.steps[j as usize]));
        all.all(converts)
    };
    let found: Vec<(usize, &Ops)> = e.ops().filter(|(_, ops)| only(ops)).collect();
    let (_, first) = found.first()?;
    let (was, now) = match (first.new.first(), first.old.first()) {
        (Some(&i), None) => {
            let s = &e.new.steps[i as usize];
            (operand(e.new, s), s.ty.dtype)
        }
        (_, Some(&j)) => {
            let s = &e.old.steps[j as usize];
            let now = first.new.first().map(|&i| e.new.steps[i as usize].ty.dtype);
            (s.ty.dtype, now.unwrap_or_else(|| operand(e.old, s)))
        }
        (None, None) => return None,
    };
    if was == now {
        return None;
    }
    let at = e.begins(first)?.0;
    let differences = found.iter().flat_map(|f| words::ops(e, f.1)).collect();
    let fix = format!(
        "convert in every step or in none: {} and {} are a program each, {}",
        was.name(),
        now.name(),
        once(e.new, "both")
    );
    let covers = found.iter().map(|f| f.0).collect();
    Some(Claim::new(super::claim::with_results(e, covers), Class::Dtype, at, differences, fix))
}

/// What a conversion converts.
fn operand(r: &Record, s: &Step) -> DType {
    r.type_of(s.inputs[0]).dtype
}
