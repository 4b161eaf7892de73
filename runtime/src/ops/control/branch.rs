//! `cond` and `switch`: the device decides which of several branches runs.
use super::again::gradients;
use super::scan::BODY_ADVICE;
use super::tree::{Tensors, check_alike, filled, flat};
use crate::tensor::{Arg, Argument, Entry, Grad, Recorder, Tensor, refuse, result, try_trace};
use std::panic::Location;
use xlazy_core::emit::Val;
use xlazy_core::ir::Role::Body as Bodied;
use xlazy_core::ir::{Bodies, Body, Kind, Lower, Rule, Sig, attr};
use xlazy_core::ty::{Category, DType, TypeRef};

/// Operands: the number of the branch, what the branches took from outside.
pub(super) static SWITCH: Entry = Entry::new("switch", rule, |l| {
    let (index, n) = (l.x(0), Bodies::of(&l.attrs[0]).all.len());
    // What is large in uint64 is negative in int64.
    let index = match index.dtype().is_unsigned() {
        true => l.with_const("minimum", &index, (n as f64 - 1.0).min(255.0)),
        false => index,
    };
    let index = l.convert(&index, DType::I64);
    let index = l.with_const("maximum", &index, 0.0);
    let index = l.with_const("minimum", &index, n as f64 - 1.0);
    lower(l, &index)
})
.kind(Kind::Control)
.several()
.attrs(&[attr("branches", Bodied).advice(BODY_ADVICE)])
.grad(|g| gradient(&SWITCH, g));

/// The same of two, the first where the first operand is true.
pub(super) static COND: Entry = Entry::new("cond", rule, |l| {
    let pred = l.x(0);
    let other = l.unary("not", &pred);
    lower(l, &other)
})
.kind(Kind::Control)
.several()
.attrs(&[attr("branches", Bodied).advice(BODY_ADVICE)])
.grad(|g| gradient(&COND, g));

fn rule(s: &Sig) -> Rule {
    Ok(Bodies::of(&s.attrs[0]).all[0].gives[0].get().clone())
}

fn lower(l: &mut Lower, index: &Val) -> Val {
    let index = l.convert(index, DType::I32);
    let outside = l.inputs[1..].to_vec();
    let bodies = &Bodies::of(&l.attrs[0]).all;
    let done = l.e.case(&index, bodies.iter().map(|body| |e: &mut _| body.write(e, &outside)));
    done[0].clone()
}

/// The branch that ran is recorded again and differentiated, in a branch of its own.
fn gradient(op: &'static Entry, g: &Grad) -> Vec<Option<Tensor>> {
    let outside = &g.inputs[1..];
    let wanted: Vec<usize> = (0..outside.len()).filter(|&i| g.wanted[i + 1]).collect();
    let at = Location::caller();
    let mut recorder = Recorder::new(op.name, at);
    for body in &Bodies::of(&g.attrs[0]).all {
        recorder.record(&[], false, |_| gradients(g, body, outside, &wanted, &g.dys));
    }
    let types: Vec<TypeRef> = wanted.iter().map(|&i| Argument::of(&outside[i]).ty).collect();
    let given = traced(op, recorder, g.x(0), &types, at);
    let mut found = vec![None; g.inputs.len()];
    wanted.into_iter().zip(given).for_each(|(i, dx)| found[i + 1] = Some(dx));
    found
}

#[track_caller]
fn traced(
    op: &'static Entry,
    recorder: Recorder,
    index: &Tensor,
    types: &[TypeRef],
    at: &'static Location<'static>,
) -> Vec<Tensor> {
    let (bodies, captured) = recorder.finish();
    let args: Vec<Arg> = std::iter::once(index).chain(&captured).map(Arg::from).collect();
    let of = try_trace(op, &args, [bodies].into(), at).unwrap_or_else(|e| e.raise());
    types.iter().enumerate().map(|(k, ty)| result(&of, k, *ty)).collect()
}

/// Runs `true_fn` on the operands where `pred`, a bool tensor of one element, is true, else `false_fn`: the device decides, so
/// one program serves both ways, and only the one that is taken is computed (`torch.cond`, `jax.lax.cond`). Both must give
/// tensors of the same types. Gradients flow. StableHLO: case.
///
/// ```
/// use xlazy::prelude::*;
/// let x = tensor([1.0, 4.0]);
/// let y = cond(&x.sum().gt(0.0), |x| x.sqrt(), |x| x * 0.0, &x);
/// assert_eq!(y.to_vec::<f32>(), [1.0, 2.0]);
/// ```
#[track_caller]
pub fn cond<T: Tensors, R: Tensors>(
    pred: &Tensor,
    true_fn: impl FnOnce(T) -> R,
    false_fn: impl FnOnce(T) -> R,
    operands: &T,
) -> R {
    if pred.numel() != 1 || pred.dtype() != DType::Bool {
        refuse("cond", &[pred], "the condition is a bool tensor of one element: compare, as in `x.sum().gt(0.0)`");
    }
    let mut branches = Branches::new(&COND);
    let taken = flat(operands);
    branches.record(|| true_fn(filled(operands, &taken)));
    branches.record(|| false_fn(filled(operands, &taken)));
    branches.run(&pred.reshape(()))
}

/// Runs one of several branches on the operands, by the number that `index`, an integer tensor of one element, holds; the first
/// or the last where it is none of theirs (`jax.lax.switch`). As [`cond`] otherwise.
///
/// ```
/// use xlazy::prelude::*;
/// let (which, x) = (tensor(1), tensor([0.5]));
/// let y = switch(&which, &[&|x: Tensor| x.sin(), &|x: Tensor| x * 4.0], &x);
/// assert_eq!(y.to_vec::<f32>(), [2.0]);
/// ```
#[track_caller]
pub fn switch<T: Tensors, R: Tensors>(index: &Tensor, branches: &[&dyn Fn(T) -> R], operands: &T) -> R {
    if index.numel() != 1 || index.dtype().category() != Category::Int {
        refuse("switch", &[index], "the number of the branch is an integer tensor of one element");
    }
    if branches.is_empty() {
        refuse("switch", &[index], "needs a branch at least");
    }
    let mut recorded = Branches::new(&SWITCH);
    let taken = flat(operands);
    branches.iter().for_each(|branch| recorded.record(|| branch(filled(operands, &taken))));
    recorded.run(&index.reshape(()))
}

/// Branches on their way to become one op.
struct Branches<R> {
    op: &'static Entry,
    recorder: Recorder,
    like: Option<R>,
    types: Vec<TypeRef>,
    at: &'static Location<'static>,
}

impl<R: Tensors> Branches<R> {
    #[track_caller]
    fn new(op: &'static Entry) -> Branches<R> {
        let at = Location::caller();
        Branches { op, recorder: Recorder::new(op.name, at), like: None, types: vec![], at }
    }

    #[track_caller]
    fn record(&mut self, branch: impl FnOnce() -> R) {
        let mut given = None;
        let recorded: &Body = self.recorder.record(&[], false, |_| flat(given.insert(branch())));
        let types = recorded.gives.clone();
        if !self.types.is_empty() && self.types != types {
            let all = |types: &[TypeRef]| types.iter().map(|t| t.to_string()).collect::<Vec<_>>().join(", ");
            let why = format!(
                "every branch must give tensors of the same types: one gives {}, another {}",
                all(&self.types),
                all(&types)
            );
            refuse(self.op.name, &[], why);
        }
        self.types = types;
        let given = given.expect("the branch was recorded");
        check_alike(self.op.name, self.like.get_or_insert_with(|| given.each(&mut Tensor::clone)), &given);
    }

    #[track_caller]
    fn run(self, index: &Tensor) -> R {
        let like = self.like.expect("a branch was recorded");
        if self.types.is_empty() {
            return filled(&like, &[]);
        }
        filled(&like, &traced(self.op, self.recorder, index, &self.types, self.at))
    }
}
