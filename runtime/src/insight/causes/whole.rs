//! A part of a tensor where all of it was taken before, or the other way round: all of it is no op, and a part is one.
use super::claim::Claim;
use super::keep::{mask, stay};
use crate::insight::evidence::{Evidence, Ops};
use crate::insight::record::Record;
use crate::insight::report::{Class, Difference};
use xlazy_core::ir::{Input, Kind, Step};
use xlazy_core::ty::Type;

/// What takes a part in one of two programs, and how large what it takes it of is, which the other one goes on with.
struct Part<'a> {
    step: &'a Step,
    whole: &'a Type,
    now: bool,
}

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let found: Vec<(usize, Part)> = e.ops().filter_map(|(root, ops)| Some((root, part(e, ops)?))).collect();
    let &(_, Part { step, whole, now }) = found.first()?;
    let (takes, all) = (step.ty.to_string(), format!("all of {whole}"));
    let (now, was) = if now { (takes, all) } else { (all, takes) };
    let what = format!("what {} takes", step.op.torch_name());
    let difference = Difference { what, was, now, was_at: Some(step.at), now_at: Some(step.at) };
    let fix = format!(
        "a part of each size is a program of its own, and so is the whole: expected once for each, and {}. Where the sizes are many, \
         take all of it, {}, in every step and {}",
        stay(e.new, "all"),
        whole.shape,
        mask(e.new)
    );
    let covers = super::claim::with_results(e, found.iter().map(|f| f.0).collect());
    Some(Claim::new(covers, Class::Shape, step.at, vec![difference], fix))
}

fn part<'a>(e: &Evidence<'a>, ops: &Ops) -> Option<Part<'a>> {
    let (r, other, all, now) = match (&ops.new[..], &ops.old[..]) {
        (all, []) => (e.new, e.old, all, true),
        ([], all) => (e.old, e.new, all, false),
        _ => return None,
    };
    // Who goes on with it in one program goes on with what it is a part of in the other one, and gives something of another size.
    e.aligned.pairs.iter().find_map(|&(i, j)| {
        let (i, j) = if now { (i, j) } else { (j, i) };
        let (takes, otherwise) = (&r.steps[i as usize], &other.steps[j as usize]);
        let apart = takes.ty.shape != otherwise.ty.shape;
        let mut operands = takes.inputs.iter().zip(&otherwise.inputs).filter(|_| apart);
        operands.find_map(|(of, instead)| {
            let Input::Step(last) = *of else { return None };
            let whole = base(r, all, last)?;
            let step = &r.steps[last as usize];
            let smaller = step.ty.shape.len() == whole.shape.len() && step.ty.shape.numel() < whole.shape.numel();
            (smaller && whole == other.type_of(*instead)).then_some(Part { step, whole, now })
        })
    })
}

/// What some views, all of which are in one of the programs alone, show a part of.
fn base<'a>(r: &'a Record, alone: &[u32], last: u32) -> Option<&'a Type> {
    let mut at = last;
    loop {
        let step = &r.steps[at as usize];
        if !matches!(step.op.kind, Kind::Select | Kind::View) || !alone.contains(&at) {
            return None;
        }
        match *step.inputs.first()? {
            Input::Step(before) if alone.contains(&before) => at = before,
            whole => return Some(r.type_of(whole)),
        }
    }
}
