//! `checkpoint`: a part of the work whose values are not kept for its gradient but computed again.
use super::again::gradients;
use super::tree::{Tensors, filled, flat};
use crate::ops::barrier::barrier;
use crate::ops::function::{Backward, with_backward};
use crate::tensor::{Grad, Tensor, hooked_since, is_grad_enabled, physically, refuse};
use xlazy_core::ir::{Body, LEAF, Node, NodeId, Payload, RecordedBody, graph};
use xlazy_core::thread::thread;
use xlazy_core::ty::DType;

/// Something that is true whatever `dy` holds, which XLA does not know before it has `dy`. XLA for CPUs takes barriers out before it looks for
/// what is computed twice.
#[track_caller]
fn true_behind(dy: &Tensor) -> Option<Tensor> {
    let e = (dy.numel() > 0 && dy.dtype().is_float()).then(|| dy.flatten().narrow(0, 0, 1).reshape(()))?;
    // A NaN is not itself, and is no number.
    Some(e.eq(&e).logical_or(e.ne(1.0)))
}

/// What was recorded, and how many results it has. The operands behind these are what it took from outside.
struct Again {
    body: Body,
    results: usize,
    /// Which of these it was given, or other parts of the work had computed: what is made of them is not to be found again.
    apart: Vec<bool>,
}

impl Backward for Again {
    fn gradients(&self, g: &Grad) -> Vec<Option<Tensor>> {
        let outside = &g.inputs[self.results..];
        let wanted: Vec<usize> = (0..outside.len()).filter(|k| g.wanted[self.results + k]).collect();
        // Numbers cost nothing to keep.
        let is_number = |t: &Tensor| matches!(graph().node(t.id()).payload, Payload::Scalar(_));
        let behind: Vec<usize> = (0..outside.len()).filter(|&k| !is_number(&outside[k])).collect();
        let mut all: Vec<Tensor> = behind.iter().map(|&k| outside[k].clone()).collect();
        all.extend(g.dys.iter().map(|(_, dy)| dy.clone()));
        let mut all = barrier(&all);
        let dys: Vec<(usize, Tensor)> = g.dys.iter().map(|(k, _)| *k).zip(all.split_off(behind.len())).collect();
        let mut leaves = outside.to_vec();
        behind.iter().zip(all).for_each(|(&k, t)| leaves[k] = t);
        if let Some(yes) = dys.iter().find_map(|(_, dy)| true_behind(dy)) {
            // Parameters stay as they are: what is made of them alone is small. A key that random numbers are drawn from is not.
            let apart = |k: usize| self.apart[k] || is_number(&outside[k]) && outside[k].dtype() == DType::I64;
            (0..leaves.len())
                .filter(|&k| apart(k))
                .for_each(|k| leaves[k] = leaves[k].where_(&yes, leaves[k].zeros_like()));
        }
        let mut found = vec![None; g.inputs.len()];
        let given = gradients(g, &self.body, &leaves, &wanted, &dys);
        wanted.into_iter().zip(given).for_each(|(k, dx)| found[self.results + k] = Some(dx));
        found
    }
}

/// Runs `f` on the tensors without keeping what it computes on the way: its gradient computes that again, from what `f` took
/// (`torch.utils.checkpoint.checkpoint`, `jax.checkpoint`). A step needs less memory so and more time; values and gradients are the
/// same. Random ops give the same numbers both times, and what `f` writes in place, such as a batch norm's statistics, is written
/// once. `f` itself runs once: it may read values and branch on them. StableHLO: optimization_barrier.
///
/// ```
/// use xlazy::prelude::*;
/// let block = nn::Sequential::new((nn::Linear::new(4, 64), nn::GELU::default(), nn::Linear::new(64, 4)));
/// let x = Tensor::ones([2, 4]).requires_grad_(true);
/// let y = checkpoint(|x: Tensor| block.forward(&x), &x);
/// y.sum().backward();
/// assert_eq!(x.grad().unwrap().shape(), [2, 4]);
/// ```
#[track_caller]
pub fn checkpoint<T: Tensors, R: Tensors>(f: impl FnOnce(T) -> R, args: &T) -> R {
    let since = graph().last_seq();
    let taken = flat(args);
    let given: Vec<NodeId> = taken.iter().map(Tensor::id).collect();
    let out = f(filled(args, &taken));
    let results = flat(&out);
    if !is_grad_enabled() || !results.iter().any(Tensor::requires_grad) {
        return out;
    }
    if hooked_since(since) {
        refuse(
            "checkpoint",
            &[],
            "a hook on a tensor that is computed again is not called: hook what goes in or comes out",
        );
    }
    let ids: Vec<NodeId> = results.iter().map(Tensor::id).collect();
    let depth = thread(|t| t.body.get()).map_or(0, |b| b.depth);
    let recorded = RecordedBody { arguments: &[], results: &ids, depth, since, part: true };
    let (body, captured, apart) = {
        let (mut g, mut captured) = (graph(), Vec::new());
        let body = g.body(&recorded, &mut captured);
        let pending = |n: &Node| matches!(n.payload, Payload::Pending | Payload::Cached(_)) && n.flags & LEAF == 0;
        let apart: Vec<bool> = captured.iter().map(|id| given.contains(id) || pending(g.node(*id))).collect();
        let captured: Vec<Tensor> = captured.into_iter().map(|id| Tensor::of_node(&mut g, id)).collect();
        (body, captured, apart)
    };
    let Ok(body) = body else { refuse("checkpoint", &[], crate::tensor::elsewhere()) };
    let again = Box::new(Again { body, results: results.len(), apart });
    // Buckets are seen through: what was recorded has masked what they hold.
    let wrapped = physically(|| with_backward("checkpoint", again, &results, &captured, &[]));
    let wrapped: Vec<Tensor> = wrapped
        .into_iter()
        .zip(&results)
        .map(|(y, was)| crate::tensor::marked(y, crate::tensor::buckets_of(was)))
        .collect();
    filled(&out, &wrapped)
}
