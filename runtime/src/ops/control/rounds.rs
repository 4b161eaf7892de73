//! `while_loop` and `fori_loop`: loops whose number of rounds the device decides, or a number of the host's.
use super::scan::{BODY_ADVICE, How, check_carried, round, trace_scan};
use super::tree::{Tensors, check_alike, filled, flat};
use crate::tensor::{Arg, Argument, Entry, Recorder, Tensor, is_grad_enabled, on_behalf, refuse, result, try_trace};
use std::panic::Location;
use xlazy_core::emit::Val;
use xlazy_core::ir::Role::Body as Bodied;
use xlazy_core::ir::{Bodies, Kind, Lower, attr};
use xlazy_core::ty::{Category, DType, Scalar, TypeRef};

/// Operands: what is carried, what the bodies took from outside. The bodies: what a round does, and whether there is one more;
/// both get the number of the round and what is carried.
pub(super) static WHILE: Entry =
    Entry::new("while_loop", |s| Ok(Bodies::of(&s.attrs[0]).all[0].gives[0].get().clone()), lower)
        .kind(Kind::Control)
        .several()
        .attrs(&[attr("body_fn", Bodied).advice(BODY_ADVICE)])
        .constant(
            "nothing tells how much to keep of a loop whose number of rounds the device decides: use `scan`, or `fori_loop` with \
             numbers as its bounds, and mask what is too much (`where_`)",
        );

// The loop's state: what is carried, the number of the round, what was taken from outside.
fn lower(l: &mut Lower) -> Val {
    let [body, open] = &Bodies::of(&l.attrs[0]).all[..] else { unreachable!("two bodies") };
    let carries = body.gives.len();
    let mut state = l.inputs.to_vec();
    let zero = l.scalar(0.0, DType::I64);
    state.insert(carries, zero);
    let leaves = |seen: &[Val]| {
        let mut leaves = vec![seen[carries].clone()];
        leaves.extend_from_slice(&seen[..carries]);
        leaves.extend_from_slice(&seen[carries + 1..]);
        leaves
    };
    // What the condition finds leaves no loop: it is looked at as a part of the round, and of what comes behind the last one.
    let looked_at = open.is_looked_at(l.looking());
    let done = l.e.while_loop(
        &state,
        |e, seen| open.write(e, &leaves(seen)).remove(0),
        |e, seen| {
            if looked_at {
                open.write(e, &leaves(seen));
            }
            let mut next = body.write(e, &leaves(seen));
            next.push(e.with_const("add", &seen[carries], 1.0));
            next.extend_from_slice(&seen[carries + 1..]);
            next
        },
    );
    if looked_at {
        open.write(l.e, &leaves(&done));
    }
    done[0].clone()
}

/// Runs `body_fn` on what it carries as long as `cond_fn` gives true, in one program: the device decides
/// (`torch.while_loop` of `torch._higher_order_ops`, `jax.lax.while_loop`). No gradient flows back through it: that is
/// refused by `backward()`. StableHLO: while.
///
/// ```
/// use xlazy::prelude::*;
/// let x = while_loop(|x: Tensor| x.sum().lt(100.0), |x| x * 2.0, &tensor([1.0, 3.0]));
/// assert_eq!(x.to_vec::<f32>(), [32.0, 96.0]);
/// ```
#[track_caller]
pub fn while_loop<C: Tensors>(cond_fn: impl FnOnce(C) -> Tensor, body_fn: impl FnOnce(C) -> C, init: &C) -> C {
    let (op, at, start) = ("while_loop", Location::caller(), flat(init));
    let mut recorder = Recorder::new(op, at);
    let mut given = None;
    record_rounds(&mut recorder, op, &start, |_, carry| flat(given.insert(body_fn(filled(init, carry)))));
    check_alike(op, init, &given.expect("the body ran"));
    filled(init, &while_open(op, recorder, &start, |_, carry| cond_fn(filled(init, carry))))
}

/// Runs `body_fn` for each number from `lower` up to and without `upper`, on what it carries (`jax.lax.fori_loop`,
/// `torch_xla.experimental.fori_loop`). How often is no part of the program: another number, or a tensor of an integer,
/// compiles nothing. Where gradients are recorded the bounds must be numbers for gradients to flow, and the number of rounds is a
/// part of the program. StableHLO: while.
///
/// ```
/// use xlazy::prelude::*;
/// let x = fori_loop(0, 5, |i, x: Tensor| x + i, &tensor(0));
/// assert_eq!(x.item(), 10.0);
/// ```
#[track_caller]
pub fn fori_loop<'a, C: Tensors>(
    lower: impl Into<Arg<'a>>,
    upper: impl Into<Arg<'a>>,
    body_fn: impl FnOnce(Tensor, C) -> C,
    init: &C,
) -> C {
    let (op, at, start) = ("fori_loop", Location::caller(), flat(init));
    let (lower, upper) = (bound(op, lower.into()), bound(op, upper.into()));
    let mut recorder = Recorder::new(op, at);
    let mut given = None;
    record_rounds(&mut recorder, op, &start, |round, carry| {
        let number = on_behalf(at, is_grad_enabled(), || lower.added_to(round));
        flat(given.insert(body_fn(number, filled(init, carry))))
    });
    check_alike(op, init, &given.expect("the body ran"));
    if start.is_empty() {
        return filled(init, &[]);
    }
    let recorded = is_grad_enabled() && start.iter().chain(recorder.captured()).any(Tensor::requires_grad);
    if let (true, Bound::Number(a), Bound::Number(b)) = (recorded, &lower, &upper) {
        let length = usize::try_from(b.saturating_sub(*a)).unwrap_or(0);
        if length == 0 {
            return filled(init, &start.iter().map(Tensor::copy).collect::<Vec<_>>());
        }
        let (bodies, captured) = recorder.finish();
        let how = How { op, at, length, reverse: false };
        return filled(init, &trace_scan(&how, bodies, &start, &[], &captured).0);
    }
    let rounds = on_behalf(at, false, || upper.less(&lower));
    let open = |round: &Tensor, _: &[Tensor]| on_behalf(at, false, || rounds.is_above(round));
    filled(init, &while_open(op, recorder, &start, open))
}

/// A bound of a loop.
enum Bound {
    Number(i64),
    Tensor(Tensor),
}

/// An integer, or a tensor of one.
#[track_caller]
fn bound(op: &'static str, of: Arg) -> Bound {
    let tensor = |t: &Tensor| match t.numel() == 1 && t.dtype().category() == Category::Int {
        true => Bound::Tensor(t.reshape(()).to(DType::I64)),
        false => refuse(op, &[t], "a bound is an integer, or a tensor of one"),
    };
    match of {
        Arg::Scalar(Scalar::Int(n)) => Bound::Number(n),
        Arg::Scalar(other) => refuse(op, &[], format!("a bound is an integer, or a tensor of one, not {other:?}")),
        Arg::Tensor(t) => tensor(t),
        Arg::Owned(t) => tensor(&t),
    }
}

impl Bound {
    #[track_caller]
    fn added_to(&self, round: &Tensor) -> Tensor {
        match self {
            Bound::Number(n) => round + *n,
            Bound::Tensor(t) => round + t,
        }
    }

    #[track_caller]
    fn less(&self, other: &Bound) -> Bound {
        match (self, other) {
            (Bound::Number(a), Bound::Number(b)) => Bound::Number(a.saturating_sub(*b)),
            (Bound::Tensor(a), Bound::Number(b)) => Bound::Tensor(a - *b),
            (Bound::Tensor(a), Bound::Tensor(b)) => Bound::Tensor(a - b),
            (Bound::Number(a), Bound::Tensor(b)) => Bound::Tensor(b * -1 + *a),
        }
    }

    #[track_caller]
    fn is_above(&self, round: &Tensor) -> Tensor {
        match self {
            Bound::Number(n) => round.lt(*n),
            Bound::Tensor(t) => round.lt(t),
        }
    }
}

/// Records what a round does.
#[track_caller]
fn record_rounds(
    recorder: &mut Recorder,
    op: &'static str,
    start: &[Tensor],
    body: impl FnOnce(&Tensor, &[Tensor]) -> Vec<Tensor>,
) {
    let recorded = recorder.record(&arguments(start), true, |a| body(&a[0], &a[1..]));
    check_carried(op, start, &recorded.gives);
}

fn arguments(start: &[Tensor]) -> Vec<Argument> {
    std::iter::once(round()).chain(start.iter().map(Argument::of)).collect()
}

/// Records whether there is one more round, and the loop.
#[track_caller]
fn while_open(
    op: &'static str,
    mut recorder: Recorder,
    start: &[Tensor],
    open: impl FnOnce(&Tensor, &[Tensor]) -> Tensor,
) -> Vec<Tensor> {
    if start.is_empty() {
        return vec![];
    }
    let at = Location::caller();
    let recorded = recorder.record(&arguments(start), true, |a| {
        let open = open(&a[0], &a[1..]);
        vec![if open.numel() == 1 { on_behalf(at, false, || open.reshape(())) } else { open }]
    });
    if recorded.gives[0] != TypeRef::scalar(DType::Bool) {
        let why = "whether there is one more round is a bool tensor of one element: compare, as in `x.lt(1.0)`";
        refuse(op, &start.iter().collect::<Vec<_>>(), format!("{why}; it is {}", recorded.gives[0]));
    }
    let (bodies, captured) = recorder.finish();
    let args: Vec<Arg> = start.iter().chain(&captured).map(Arg::from).collect();
    let of = try_trace(&WHILE, &args, [bodies].into(), at).unwrap_or_else(|e| e.raise());
    start.iter().enumerate().map(|(k, t)| result(&of, k, Argument::of(t).ty)).collect()
}
