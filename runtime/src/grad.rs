//! Gradients: a reverse walk over the recorded graph that reads each op's gradient from the table.
mod asked;
mod functional;

use crate::bucket;
use crate::changes::Changes;
use crate::insight::mode::{Derived, derives};
use crate::ops::{entry_of, result_of};
use crate::tensor::{Grad, Tensor, on_behalf, physically, refuse, through_hooks};
pub use asked::{GradOptions, Outputs, grad, grad_with};
pub use functional::{hessian, jacobian, jvp, vjp};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::panic::Location;
use std::sync::Weak;
use xlazy_core::ir::{
    ALIAS, ARGUMENT, AttrsExt, LEAF, Node, NodeId, OpDef, Origin, Owner, REQUIRES_GRAD, TAPE_FREED, graph,
};
use xlazy_core::text::told;
use xlazy_core::thread::thread;

impl Tensor {
    /// Computes the gradient of this one-element tensor with respect to every leaf that requires one, and adds it to
    /// their `grad()` (`torch.Tensor.backward`). The recorded history is then gone; keep it with [`Tensor::backward_with`].
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let w = tensor([3.0]).requires_grad_(true);
    /// (&w * &w).sum().backward();
    /// assert_eq!(w.grad().unwrap().to_vec::<f32>(), [6.0]);
    /// ```
    #[track_caller]
    pub fn backward(&self) {
        self.backward_with(None, false)
    }

    /// As [`Tensor::backward`], with the gradient of this tensor given (needed when it has several elements), and the
    /// history kept for another time where `retain_graph` is set.
    #[track_caller]
    pub fn backward_with(&self, gradient: Option<&Tensor>, retain_graph: bool) {
        let at = Location::caller();
        let seed = self.seed("backward", gradient);
        on_behalf(at, false, || {
            let _follows = derives(Derived::Gradient);
            let mut changes = Changes::new();
            let mut found = walk(&[(self.clone(), seed)], &[]);
            refuse_in_body(&found);
            for (_, leaf, dx) in found.leaves.drain(..) {
                leaf.refuse_shared("backward");
                let dx = dx.constrained_like(&leaf);
                let sum = match leaf.held_grad() {
                    Some(old) => &old + dx.placed_like(&old),
                    None => dx,
                };
                changes.set_grad(&leaf, Some(sum));
            }
            // The history goes with the gradients being there: where an interrupt came first, `backward()` can be called
            // again.
            changes.apply();
            if !retain_graph {
                found.free_history();
            }
        });
    }

    // The gradient that a walk starts with.
    #[track_caller]
    fn seed(&self, op: &'static str, gradient: Option<&Tensor>) -> Tensor {
        if !self.requires_grad() {
            let why = match follows_a_walk(self.id()) {
                true => {
                    "is made of gradients that were not recorded themselves: take these by `grad_with(&y, &[&x], true)` \
                     (torch's create_graph) to differentiate them again"
                }
                false => {
                    "does not require gradients: no tensor it was made from was marked with `requires_grad_(true)`, \
                     or it was made inside `no_grad`"
                }
            };
            refuse(op, &[self], why);
        }
        match gradient {
            Some(g) if g.shape() == self.shape() && crate::tensor::buckets_of(g) == crate::tensor::buckets_of(self) => {
                g.clone()
            }
            Some(g) => refuse(op, &[self, g], "the gradient given must have the tensor's shape and buckets"),
            None if self.numel() == 1 => self.ones_like(),
            None => refuse(
                op,
                &[self],
                "a gradient is created by itself only for one element; reduce with `.sum()` or `.mean()`, or give one",
            ),
        }
    }
}

/// Whether something that a walk recorded is near behind a node.
fn follows_a_walk(id: NodeId) -> bool {
    let g = graph();
    let (mut next, mut looked) = (vec![id], 0);
    while let Some(id) = next.pop() {
        let n = g.node(id);
        if n.origin == Origin::Physically {
            return true;
        }
        looked += 1;
        if looked < 100 {
            next.extend_from_slice(&n.inputs);
        }
    }
    false
}

/// What is recorded in the body of a loop has no value outside.
#[track_caller]
fn refuse_in_body(found: &Found) {
    let Some(body) = thread(|t| t.body.get()) else { return };
    let outside = |t: &Tensor| graph().node(t.id()).depth < body.depth;
    if let Some((_, leaf, _)) = found.leaves.iter().find(|(_, leaf, _)| outside(leaf)) {
        let why = format!(
            "would add to the gradient of a tensor from outside of the body of `{}`, which is recorded once: take gradients \
             there with `grad(&y, &[&x])`, and carry what they change",
            body.op
        );
        refuse("backward", &[leaf], why);
    }
}

struct Found {
    /// Leaves that are still alive, with what flows to them and when the walk met them.
    leaves: Vec<(Option<usize>, Tensor, Tensor)>,
    /// What flows to the tensors asked for.
    wanted: Vec<Option<Tensor>>,
    /// Nodes that the walk went through, and the tensors that keep them.
    visited: Vec<NodeId>,
    starts: Vec<(Tensor, Tensor)>,
}

impl Found {
    fn free_history(self) {
        let Found { visited, starts, .. } = self;
        let mut g = graph();
        for id in visited {
            g.node_mut(id).flags |= TAPE_FREED;
            if g.node(id).data().is_some() {
                g.cut_inputs(id);
            }
        }
        drop(g);
        // Until here they kept the nodes.
        drop(starts);
    }
}

#[track_caller]
fn walk(starts: &[(Tensor, Tensor)], wanted: &[&Tensor]) -> Found {
    // What was traced of bucketed tensors is a program of fixed shapes, and gradients are taken of that.
    let starts: Vec<(Tensor, Tensor)> = starts.iter().map(|(y, dy)| (y.clone(), bucket::masked_seed(y, dy))).collect();
    let mut found = physically(|| walk_physical(starts, wanted));
    let shown = |dx: &mut Tensor, x: &Tensor| match crate::tensor::buckets_of(x) {
        none if none.is_empty() => {}
        buckets => *dx = crate::tensor::marked(dx.detach(), buckets),
    };
    found.leaves.iter_mut().for_each(|(_, x, dx)| shown(dx, x));
    found.wanted.iter_mut().zip(wanted).for_each(|(dx, x)| {
        if let Some(dx) = dx {
            shown(dx, x);
        }
    });
    found
}

#[track_caller]
fn walk_physical(starts: Vec<(Tensor, Tensor)>, wanted: &[&Tensor]) -> Found {
    // Later nodes first: every consumer of a node has been seen when the node's turn comes.
    let mut queue: BinaryHeap<(u64, NodeId)> = BinaryHeap::new();
    let mut flowing: HashMap<NodeId, Tensor> = HashMap::new();
    // What flows to each of several results of an op.
    let mut several: HashMap<NodeId, BTreeMap<usize, Tensor>> = HashMap::new();
    for (output, dy) in &starts {
        let id = output.id();
        queue.push((graph().node(id).seq, id));
        add(&mut flowing, id, dy.clone());
    }
    let wanted_ids: Vec<NodeId> = wanted.iter().map(|t| t.id()).collect();
    let mut found = Found { leaves: Vec::new(), wanted: vec![None; wanted.len()], visited: Vec::new(), starts };
    // Leaves in the order in which the walk meets them: when they were made differs between a first step and a later one.
    let mut met: HashMap<NodeId, usize> = HashMap::new();
    let mut last = None;
    while let Some((seq, id)) = queue.pop() {
        if last == Some(seq) {
            continue;
        }
        last = Some(seq);
        let dys: Vec<(usize, Tensor)> = several.remove(&id).unwrap_or_default().into_iter().collect();
        let Some(dy) = flowing.remove(&id).or_else(|| Some(dys.first()?.1.clone())) else { continue };
        let (dy, retained) = through_hooks(id, dy);
        found.leaves.extend(retained.map(|t| (met.get(&id).copied(), t, dy.clone())));
        for (slot, _) in found.wanted.iter_mut().zip(&wanted_ids).filter(|(_, w)| **w == id) {
            *slot = Some(dy.clone());
        }
        let step = open(id);
        match step {
            Open::Leaf(owner) => {
                // A tensor that nobody holds any more needs no gradient.
                let alive = owner.and_then(|o| o.upgrade()).and_then(|o| o.downcast().ok());
                if let Some(inner) = alive {
                    found.leaves.push((met.get(&id).copied(), Tensor(inner), dy));
                }
            }
            Open::Freed(t) => refuse(
                "backward",
                &[&t],
                "its history was used up by an earlier backward(); call `backward_with(None, true)` there to keep it",
            ),
            Open::Constant(t, op) => {
                let instead = entry_of(op).and_then(|e| e.constant);
                let instead = instead.unwrap_or("`.detach()` its operands to take it for a constant");
                let why = format!("the derivative for '{}' is not implemented: {instead}", op.torch_name());
                refuse("backward", &[&t], why)
            }
            Open::Result { of, index } => {
                found.visited.push(id);
                queue.push((graph().node(of).seq, of));
                let flows = several.entry(of).or_default();
                let sum = match flows.remove(&index) {
                    Some(old) => &old + dy.placed_like(&old),
                    None => dy,
                };
                flows.insert(index, sum);
            }
            Open::Op { op, ids, inputs, output, attrs, wanted } => {
                found.visited.push(id);
                let walk = |starts: &[(Tensor, Tensor)], wanted: &[&Tensor]| walk(starts, wanted).wanted;
                let seen = vec![OnceCell::new(); inputs.len() + 1];
                let kind = graph().node(id).op.kind;
                let cx = Grad { inputs, output, seen, kind, dy, dys, attrs, wanted, walk };
                let since = graph().last_seq();
                let gradients = op(&cx);
                refuse_overwritten(id, &ids, since);
                for (i, dx) in gradients.into_iter().enumerate() {
                    if let (Some(dx), true) = (dx, cx.wanted[i]) {
                        let x = &cx.inputs[i];
                        let dx = dx.sum_to_shape(&x.shape()).to(x.dtype());
                        queue.push((graph().node(ids[i]).seq, ids[i]));
                        let turn = met.len();
                        met.entry(ids[i]).or_insert(turn);
                        add(&mut flowing, ids[i], dx);
                    }
                }
                // The handles go before the history is freed, outside the lock.
                drop(cx);
            }
        }
    }
    found.leaves.sort_by_key(|(turn, ..)| *turn);
    found
}

/// Refuses a gradient that was made, since so many nodes had been traced, of what an op took or gave and an in-place op has
/// written to since. An in-place op's own gradient knows what it started from, and an op of a gradient what it takes.
#[track_caller]
fn refuse_overwritten(of: NodeId, operands: &[NodeId], since: u64) {
    let why = {
        let g = graph();
        if g.writes.is_empty() {
            return;
        }
        let n = g.node(of);
        let used = |id: NodeId| {
            let new = g.pending.iter().rev().take_while(|(_, seq)| *seq > since);
            // A second name says that it is wanted as it was: nobody can have changed what sorting found.
            let uses = |n: &Node, seq| n.seq == seq && n.op.id != ALIAS.id && n.inputs.contains(&id);
            new.map(|&(i, seq)| (g.node(i), seq)).any(|(n, seq)| uses(n, seq))
        };
        let mut stale = operands.iter().chain([&of]).filter_map(|&id| Some((id, g.written(id)?)));
        let Some((id, write)) = stale.find(|(id, w)| n.seq <= w.seq && w.at != n.at && used(*id)) else { return };
        format!(
            "one of the variables needed for gradient computation has been modified by an inplace operation: {}, which `{}` \
             ({}) {} and its gradient needs, has been written to by `{}` ({}): write to a `.copy()` of it, or make a new \
             tensor of it there",
            g.node(id).described(),
            n.op.torch_name(),
            told(n.at, n.statement),
            if id == of { "gave" } else { "took" },
            write.op,
            told(write.at, write.statement),
        )
    };
    refuse("backward", &[], why);
}

fn add(flowing: &mut HashMap<NodeId, Tensor>, id: NodeId, dx: Tensor) {
    let sum = match flowing.remove(&id) {
        // What is on no device gets gradients from all that it was used on.
        Some(old) => &old + dx.placed_like(&old),
        None => dx,
    };
    flowing.insert(id, sum);
}

/// One node of the walk, with handles on its operands.
enum Open {
    Leaf(Option<Weak<Owner>>),
    Freed(Tensor),
    /// One of the results of an op that has several.
    Result {
        of: NodeId,
        index: usize,
    },
    /// An op without a gradient.
    Constant(Tensor, &'static OpDef),
    Op {
        op: fn(&Grad) -> Vec<Option<Tensor>>,
        ids: Vec<NodeId>,
        inputs: Vec<Tensor>,
        output: Tensor,
        attrs: Box<[xlazy_core::ir::Attr]>,
        wanted: Vec<bool>,
    },
}

fn open(id: NodeId) -> Open {
    let mut g = graph();
    let n = g.node(id);
    if n.flags & LEAF != 0 {
        return Open::Leaf(g.owners.get(&id).cloned());
    }
    if n.op.id == ARGUMENT.id {
        return Open::Leaf(None);
    }
    if let Some(of) = result_of(n.op)
        && n.flags & TAPE_FREED == 0
    {
        return Open::Result { of: n.inputs[of], index: n.attrs.index(0) };
    }
    let (op, attrs, flags, ids) = (n.op, n.attrs.clone(), n.flags, n.inputs.to_vec());
    match entry_of(op).and_then(|e| e.grad) {
        Some(grad) if flags & TAPE_FREED == 0 => {
            let wanted = ids.iter().map(|&i| g.node(i).flags & REQUIRES_GRAD != 0).collect();
            let inputs = ids.iter().map(|&i| Tensor::of_node(&mut g, i)).collect();
            let output = Tensor::of_node(&mut g, id);
            Open::Op { op: grad, ids, inputs, output, attrs, wanted }
        }
        None if flags & TAPE_FREED == 0 => Open::Constant(Tensor::of_node(&mut g, id), op),
        _ => Open::Freed(Tensor::of_node(&mut g, id)),
    }
}
