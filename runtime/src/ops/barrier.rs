//! Values that XLA does not see through. StableHLO: optimization_barrier.
use crate::tensor::{Arg, Entry, Tensor, result, try_trace};
use std::panic::Location;
use xlazy_core::ir::{Kind, rules};

/// Its operands, once more: XLA does not see through it, so that what is computed of them again is not taken for what was computed
/// before, and is not begun before all of them are there.
static BARRIER: Entry = Entry::new("optimization_barrier", rules::same, |l| {
    let inputs = l.inputs.to_vec();
    l.optimization_barrier(&inputs).swap_remove(0)
})
.kind(Kind::Control)
.several()
.grad(|g| (0..g.inputs.len()).map(|k| g.dys.iter().find(|(i, _)| *i == k).map(|(_, dy)| dy.clone())).collect());

#[track_caller]
pub(super) fn barrier(tensors: &[Tensor]) -> Vec<Tensor> {
    let at = Location::caller();
    let args: Vec<Arg> = tensors.iter().map(Arg::from).collect();
    let of = try_trace(&BARRIER, &args, [].into(), at).unwrap_or_else(|e| e.raise());
    tensors.iter().enumerate().map(|(k, t)| result(&of, k, t.ty().into())).collect()
}

pub(super) static OPS: &[&Entry] = &[&BARRIER];
