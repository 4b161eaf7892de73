//! Recording what closures do as bodies of one op: loops and branches on the device.
//!
//! A closure runs once, on placeholders. What it records has no value of its own and is copied out of the graph when it is
//! done; tensors from outside that it uses, numbers among them, become operands of the op.
use super::thread::is_grad_enabled;
use super::{Tensor, refuse};
use crate::{Error, Result};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::panic::Location;
use xlazy_core::ir::{
    ARGUMENT, Attr, Bodies, Body, Elsewhere, NodeId, Payload, Placement, REQUIRES_GRAD, RESULT, RecordedBody, graph,
};
use xlazy_core::text::Place;
use xlazy_core::thread::{InBody, rank, thread};
use xlazy_core::ty::TypeRef;

/// The type of a placeholder, and where it is.
#[derive(Clone, Copy)]
pub(crate) struct Argument {
    pub ty: TypeRef,
    pub placement: Placement,
}

impl Argument {
    /// One that a tensor is given for.
    pub fn of(t: &Tensor) -> Argument {
        let g = graph();
        let n = g.node(t.id());
        Argument { ty: n.ty, placement: n.placement }
    }

    /// As [`Argument::of`], of one row of it.
    pub fn row_of(t: &Tensor) -> Argument {
        let mut row = Argument::of(t);
        let mut ty = row.ty.get().clone();
        ty.shape.remove(0);
        row.ty = ty.into();
        row
    }
}

/// Records the bodies of one op.
pub(crate) struct Recorder {
    op: &'static str,
    at: Place,
    bodies: Vec<Body>,
    captured: Vec<Tensor>,
}

thread_local! {
    /// The number of the round of each loop that is being recorded, the outermost first.
    static ROUNDS: RefCell<Vec<Tensor>> = const { RefCell::new(Vec::new()) };
}

/// The rounds of the loops that this thread records; none in no loop.
pub(crate) fn rounds() -> Vec<Tensor> {
    ROUNDS.with_borrow(Vec::clone)
}

/// Puts back what the thread recorded before.
struct Back {
    body: Option<InBody>,
    rounds: usize,
}

impl Drop for Back {
    fn drop(&mut self) {
        thread(|t| t.body.set(self.body));
        let gone = ROUNDS.with_borrow_mut(|r| r.split_off(self.rounds.min(r.len())));
        drop(gone);
    }
}

impl Recorder {
    pub fn new(op: &'static str, at: Place) -> Recorder {
        Recorder { op, at, bodies: vec![], captured: vec![] }
    }

    /// Runs a closure once; its first argument is the number of a loop's round where `round` says so.
    #[track_caller]
    pub fn record(
        &mut self,
        arguments: &[Argument],
        round: bool,
        body: impl FnOnce(&[Tensor]) -> Vec<Tensor>,
    ) -> &Body {
        let before = thread(|t| t.body.get());
        let depth = before.map_or(0, |b| b.depth).checked_add(1);
        let Some(depth) = depth else { refuse(self.op, &[], "more than 255 loops and branches in one another") };
        let since = graph().last_seq();
        let _back = Back { body: before, rounds: ROUNDS.with_borrow(Vec::len) };
        thread(|t| t.body.set(Some(InBody { op: self.op, depth, since })));
        let arguments: Vec<Tensor> = arguments.iter().map(|a| self.argument(a, depth)).collect();
        if round {
            ROUNDS.with_borrow_mut(|r| r.push(arguments[0].clone()));
        }
        // What is written to in place is another handle: these stay the placeholders.
        let given: Vec<Tensor> = {
            let mut g = graph();
            arguments.iter().map(|a| Tensor::of_node(&mut g, a.id())).collect()
        };
        let results = body(&given);
        let ids = |all: &[Tensor]| all.iter().map(Tensor::id).collect::<Vec<NodeId>>();
        let recorded = RecordedBody { arguments: &ids(&arguments), results: &ids(&results), depth, since, part: false };
        let taken = {
            let mut g = graph();
            let mut captured = ids(&self.captured);
            let known = captured.len();
            let body = g.body(&recorded, &mut captured);
            let bucketed = recorded.results.iter().any(|&id| !g.node(id).buckets().is_empty());
            let new: Vec<Tensor> = captured[known..].iter().map(|&id| Tensor::of_node(&mut g, id)).collect();
            body.map(|body| (body, new, bucketed))
        };
        match taken {
            Ok((_, _, true)) => {
                let of: Vec<&Tensor> = results.iter().collect();
                refuse(self.op, &of, "a result of the body has a bucketed dimension: `.unbucket()` it before the body")
            }
            Ok((body, new, false)) => {
                self.captured.extend(new);
                self.bodies.push(body);
                self.bodies.last().expect("just pushed")
            }
            Err(Elsewhere(id)) => {
                let t = Tensor::of_node(&mut graph(), id);
                refuse(self.op, &[&t], elsewhere())
            }
        }
    }

    fn argument(&self, a: &Argument, depth: u8) -> Tensor {
        let mut g = graph();
        let id = g.push(&ARGUMENT, SmallVec::new(), Box::default(), a.ty, Payload::Pending, self.at);
        g.place(id, a.placement);
        let n = g.node_mut(id);
        n.depth = depth;
        if is_grad_enabled() && a.ty.dtype.is_differentiable() {
            n.flags = REQUIRES_GRAD;
        }
        Tensor::of_node(&mut g, id)
    }

    /// What was taken from outside so far.
    pub fn captured(&self) -> &[Tensor] {
        &self.captured
    }

    /// What was recorded, as an attribute, and what it took from outside.
    pub fn finish(self) -> (Attr, Vec<Tensor>) {
        (Bodies { all: self.bodies, captured: self.captured.len() }.attr(), self.captured)
    }
}

/// One of the results of an op that has several.
pub(crate) fn result(of: &Tensor, index: usize, ty: TypeRef) -> Tensor {
    let mut g = graph();
    let n = g.node(of.id());
    let (at, origin) = (n.at, n.origin);
    let flags = if ty.dtype.is_differentiable() { n.flags & REQUIRES_GRAD } else { 0 };
    let id = g.push(&RESULT, SmallVec::from_slice(&[of.id()]), [index.into()].into(), ty, Payload::Pending, at);
    let n = g.node_mut(id);
    (n.flags, n.origin) = (flags, origin);
    Tensor::of_node(&mut g, id)
}

impl Tensor {
    /// A copy that gradients are taken of inside of another gradient: they flow no further in that walk.
    pub(crate) fn as_leaf(&self) -> Tensor {
        let leaf = super::on_behalf(Location::caller(), true, || self.copy());
        graph().node_mut(leaf.id()).flags |= REQUIRES_GRAD | xlazy_core::ir::LEAF;
        leaf
    }

    /// Refuses to read what has no value: a tensor in the body of a loop or a branch.
    pub(crate) fn refuse_read(&self) -> Result<()> {
        if graph().node(self.id()).depth == 0 {
            return Ok(());
        }
        let operands = vec![self.ty().to_string()];
        Err(match thread(|t| t.body.get()) {
            Some(body) => Error::Op {
                op: body.op,
                operands,
                message:
                    "its body is recorded once, before anything runs, so there is no value to read in it: choose on \
                          the device with `where_` or `cond`, and read what the whole gives"
                        .into(),
            },
            None => Error::Op { op: "read", operands, message: elsewhere() },
        })
    }

    /// Refuses to write to what is outside of the body that is recorded.
    #[track_caller]
    pub(super) fn refuse_outside(&self, op: &'static str, body: InBody) {
        if graph().node(self.id()).lineage <= body.since {
            let why = format!(
                "is written to in the body of `{}`, which is recorded once, and is from outside: let the body give its new value \
                 back, carried from round to round where it is a loop",
                body.op
            );
            refuse(op, &[self], why);
        }
    }
}

impl Tensor {
    /// Refuses a change of a tensor that all ranks have together.
    #[track_caller]
    pub(crate) fn refuse_shared(&self, op: &'static str) {
        let Some(rank) = rank() else { return };
        if graph().node(self.id()).lineage <= rank.since {
            let why = "changes a tensor from outside of `spawn`, which all ranks have together: make it, or the model that it \
                       is of, in the closure (`.copy()` gives each rank one of its own)";
            refuse(op, &[self], why);
        }
    }
}

/// Why a tensor of a body cannot be used where it is.
pub(crate) fn elsewhere() -> String {
    "this tensor is from the body of a loop or a branch, and has a value only there: let the body give it back".into()
}
