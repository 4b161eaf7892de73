//! Bodies recorded again, and differentiated: what gradients of loops and branches are made of.
use crate::tensor::{Arg, Entry, Grad, Tensor, no_grad, on_behalf, result, try_trace};
use smallvec::SmallVec;
use std::panic::Location;
use xlazy_core::ir::{AttrsExt, Body, LEAF, RESULT, graph};

/// What a body gives of other tensors: its own arguments, and behind them what was taken from outside. Gradients flow where
/// they did when it was recorded.
#[track_caller]
fn again(body: &Body, leaves: &[Tensor]) -> Vec<Tensor> {
    let at = Location::caller();
    let mut values: Vec<Tensor> = Vec::with_capacity(body.steps.len());
    for step in &body.steps {
        let inputs: SmallVec<[Tensor; 4]> = step.inputs.iter().map(|i| i.of(leaves, &values)).collect();
        if step.op.id == RESULT.id {
            values.push(result(&inputs[0], step.attrs.index(0), step.ty));
            continue;
        }
        let entry = Entry::of_op(step.op).expect("what is recorded is in the table");
        let args: SmallVec<[Arg; 4]> = inputs.iter().map(Arg::from).collect();
        let traced = || try_trace(entry, &args, step.attrs.clone(), at).unwrap_or_else(|e| e.raise());
        values.push(if step.recorded { traced() } else { no_grad(traced) });
    }
    body.results.iter().map(|r| r.of(leaves, &values)).collect()
}

/// The gradients of what a body gives with respect to some of its leaves, zeros where none flows; `dys` are those of its
/// results that have one.
#[track_caller]
pub(super) fn gradients(
    g: &Grad,
    body: &Body,
    leaves: &[Tensor],
    wanted: &[usize],
    dys: &[(usize, Tensor)],
) -> Vec<Tensor> {
    let mut leaves = leaves.to_vec();
    wanted.iter().for_each(|&k| leaves[k] = leaves[k].as_leaf());
    let results = on_behalf(Location::caller(), true, || again(body, &leaves));
    let flows = dys.iter().map(|(k, dy)| (results[*k].clone(), dy.clone()));
    let starts: Vec<(Tensor, Tensor)> = flows.filter(|(y, _)| y.requires_grad()).collect();
    let of: Vec<&Tensor> = wanted.iter().map(|&k| &leaves[k]).collect();
    let found = if starts.is_empty() { vec![None; of.len()] } else { (g.walk)(&starts, &of) };
    // They end this walk and no later one, which may be of what it has recorded.
    wanted.iter().for_each(|&k| graph().node_mut(leaves[k].id()).flags &= !LEAF);
    found.into_iter().zip(of).map(|(dx, x)| dx.unwrap_or_else(|| x.zeros_like())).collect()
}
