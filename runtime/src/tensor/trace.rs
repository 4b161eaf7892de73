//! Recording ops: the one place where a node is made of an op of the user's, and where a tensor's error ends the cell.
use super::body::elsewhere;
use super::entry::{Bucketed, BucketedOperand, Entry, Plan};
use super::thread::{is_grad_enabled, on_behalf, physically};
use super::{Arg, Tensor, marked, takes};
use crate::insight::INSIGHT;
use crate::{Error, Result};
use smallvec::SmallVec;
use std::panic::Location;
use xlazy_core::clock::Recording;
use xlazy_core::device::name_of;
use xlazy_core::ir::{
    Attr, Bucket, Graph, Locked, NodeId, Origin, Payload, Placement, REQUIRES_GRAD, SCALAR, Sig, graph, is_aside,
};
use xlazy_core::run::{self, Cause, is_eager, trim};
use xlazy_core::text::binding;
use xlazy_core::thread::{Thread, innermost, is_outermost, rank, thread};
use xlazy_core::ty::{DType, Scalar, Type, TypeRef};

/// Records one op; the one place where a tensor error becomes the end of the cell.
#[track_caller]
pub(crate) fn trace<const N: usize>(
    op: &'static Entry,
    args: [Arg; N],
    attrs: impl IntoIterator<Item = Attr>,
) -> Tensor {
    let at = Location::caller();
    match try_trace(op, &args, attrs.into_iter().collect(), at) {
        Ok(t) => t,
        Err(e) => e.raise(),
    }
}

/// As [`trace`], for any number of tensors.
#[track_caller]
pub(crate) fn trace_all(op: &'static Entry, inputs: &[&Tensor], attrs: impl IntoIterator<Item = Attr>) -> Tensor {
    let args: SmallVec<[Arg; 8]> = inputs.iter().map(|t| Arg::Tensor(t)).collect();
    match try_trace(op, &args, attrs.into_iter().collect(), Location::caller()) {
        Ok(t) => t,
        Err(e) => e.raise(),
    }
}

/// As [`trace`], but answers instead of unwinding.
///
/// The type rule is the op's code and may do anything, so it runs before the graph is held, on the types that the handles
/// know; where a value of another type has taken a tensor's place since, it runs again.
pub(crate) fn try_trace(
    op: &'static Entry,
    args: &[Arg],
    attrs: Box<[Attr]>,
    at: &'static Location<'static>,
) -> Result<Tensor> {
    xlazy_core::sys::check_interrupt();
    if let Some(args) = super::autocast::cast(op, args, at) {
        return try_trace(op, &args, attrs, at);
    }
    let on = thread(|t| t.next_op(at));
    let recording = Recording::begin(on.nth);
    let at = on.at;
    let tensors = || args.iter().enumerate().filter_map(|(i, a)| Some((i, a.tensor()?)));
    let mut types: SmallVec<[TypeRef; 4]> = SmallVec::with_capacity(args.len());
    for arg in args {
        types.push(arg.tensor().map_or_else(|| TypeRef::scalar(DType::F32), Tensor::known_type));
    }
    if is_outermost() {
        takes::check(op.name, tensors().map(|(i, _)| &types[i]))?;
    }
    loop {
        let numbers = || args.iter().enumerate().filter_map(|(i, a)| Some((i, a.scalar()?)));
        if numbers().next().is_some() {
            let common = tensors().map(|(i, _)| types[i].dtype).reduce(DType::promote);
            numbers().for_each(|(i, v)| types[i] = scalar_type(v, common));
        }
        let inferred = {
            let inputs: SmallVec<[&Type; 4]> = types.iter().map(|ty| ty.get()).collect();
            (op.infer)(&Sig { inputs: &inputs, attrs: &attrs })
        };

        let mut g = graph();
        let mut ids: SmallVec<[NodeId; 4]> = SmallVec::with_capacity(args.len());
        let (mut requires_grad, mut bucketed, mut changed, mut depth) = (false, false, false, 0);
        for (arg, ty) in args.iter().zip(&types) {
            let Some(t) = arg.tensor() else {
                ids.push(NodeId::MAX);
                continue;
            };
            let id = t.id();
            let n = g.node(id);
            requires_grad |= n.flags & REQUIRES_GRAD != 0;
            bucketed |= !n.buckets().is_empty();
            changed |= n.ty != *ty;
            depth = n.depth.max(depth);
            ids.push(id);
        }
        if depth > on.depth {
            drop(g);
            let operands = types.iter().map(|t| t.to_string()).collect();
            return Err(Error::Op { op: op.name, operands, message: elsewhere() });
        }
        if bucketed && !on.physical {
            drop((g, recording));
            return trace_bucketed(op, args, attrs, at);
        }
        if changed {
            tensors().for_each(|(i, t)| types[i] = g.node(t.id()).ty);
            continue;
        }
        let ty = match inferred {
            // Mostly it is an operand's.
            Ok(ty) => match types.iter().find(|operand| *operand.get() == ty) {
                Some(operand) => *operand,
                None => ty.into(),
            },
            Err(message) => {
                drop(g);
                let operands = types.iter().map(|t| t.to_string()).collect();
                return Err(Error::Op { op: op.name, operands, message });
            }
        };
        numbers().for_each(|(i, v)| ids[i] = push_scalar(&mut g, v, types[i], at));
        if g.apart(&ids) && rank().is_some() {
            drop(g);
            let operands = types.iter().map(|t| t.to_string()).collect();
            let message = "an operand is still to be computed by another rank: ranks hear of one another by collectives, and by \
                           `xm::rendezvous`";
            return Err(Error::Op { op: op.name, operands, message: message.into() });
        }
        if g.apart(&ids) {
            args.iter().zip(&ids).filter(|(a, _)| a.tensor().is_none()).for_each(|(_, &s)| g.discard(s));
            return Err(apart(g, op, &ids));
        }
        // What has no gradient is recorded as well, so that nobody takes it for a constant: the walk refuses it.
        let recorded = requires_grad && on.grad && (ty.dtype.is_differentiable() || op.several);
        let id = g.push(op, ids, attrs, ty, Payload::Pending, at);
        if recorded {
            g.node_mut(id).flags = REQUIRES_GRAD;
        }
        if on.physical {
            g.node_mut(id).origin = Origin::Physically;
        }
        if on.depth > 0 {
            g.node_mut(id).depth = on.depth;
        }
        // Ranks would not come to it together.
        let long = on.depth == 0 && g.pending.len() > trim() && rank().is_none();
        let out = Tensor::of_node(&mut g, id);
        drop(g);
        drop(recording);
        if is_eager() && on.depth == 0 && !is_aside() {
            run::barrier(&INSIGHT, Cause::Eager, at)?;
            return Ok(out);
        }
        if long && !is_aside() {
            run::barrier(&INSIGHT, Cause::Trim, at)?;
        }
        return Ok(out);
    }
}

/// A number of user code as a node.
fn push_scalar(g: &mut Graph, value: Scalar, ty: TypeRef, at: &'static Location<'static>) -> NodeId {
    let bits = if ty.dtype.is_differentiable() { value.as_f64().to_bits() } else { value.as_i64() as u64 };
    g.push(&SCALAR, SmallVec::new(), Box::default(), ty, Payload::Scalar(bits), at)
}

/// Records an op that has bucketed operands.
fn trace_bucketed(
    op: &'static Entry,
    args: &[Arg],
    attrs: Box<[Attr]>,
    at: &'static Location<'static>,
) -> Result<Tensor> {
    let tensors = || args.iter().filter_map(Arg::tensor);
    let common = tensors().map(Tensor::dtype).reduce(DType::promote);
    let operand = |arg: &Arg| match arg {
        Arg::Scalar(v) => BucketedOperand { ty: Type::clone(&scalar_type(*v, common)), buckets: vec![] },
        Arg::Tensor(t) => BucketedOperand::of(t),
        Arg::Owned(t) => BucketedOperand::of(t),
    };
    let operands: Vec<BucketedOperand> = args.iter().map(operand).collect();
    let refused = |message: String| Error::Op {
        op: op.name,
        operands: tensors().map(|t| graph().node(t.id()).described()).collect(),
        message,
    };
    let types: Vec<&Type> = operands.iter().map(|o| &o.ty).collect();
    let out = (op.infer)(&Sig { inputs: &types, attrs: &attrs }).map_err(refused)?;
    let args = args.iter().map(Arg::again).collect();
    let mut b = Bucketed { op, args, operands, attrs: attrs.into_vec(), out, at };
    let Some(rule) = op.bucket else {
        return Err(refused("not defined for a bucketed dimension".to_owned() + UNBUCKET));
    };
    on_behalf(at, is_grad_enabled(), || match rule(&mut b).map_err(refused)? {
        Plan::Instead(t) => Ok(t),
        Plan::Trace(dims) => run_bucketed(&b, &dims),
    })
}

/// What to do where an op is not defined.
pub(crate) const UNBUCKET: &str =
    "; use `.unbucket()` before it (compiled for each size), or do it before `.dynamic(…)`";

/// The type of a number beside tensors of `common`.
fn scalar_type(v: Scalar, common: Option<DType>) -> TypeRef {
    TypeRef::scalar(scalar_dtype(v, common))
}

/// The dtype that a number takes beside tensors of `common`.
fn scalar_dtype(v: Scalar, common: Option<DType>) -> DType {
    common.map_or(v.default_dtype(), |d| v.promote_with(d))
}

/// The op on what the operands are physically.
pub(crate) fn run_bucketed(b: &Bucketed, dims: &[usize]) -> Result<Tensor> {
    let attrs = b.attrs.clone().into_boxed_slice();
    let y = physically(|| try_trace(b.op, &b.args, attrs, b.at))?;
    let physical = physically(|| y.shape());
    let shown = &b.out.shape;
    let fits = |d: usize| if dims.contains(&d) { physical[d] >= shown[d] } else { physical[d] == shown[d] };
    if physical.len() != shown.len() || !(0..shown.len()).all(fits) {
        // A rule that forgot an attribute: better refused than wrong.
        let message = format!("not defined for a bucketed dimension: {shown} would be {physical}{UNBUCKET}");
        return Err(Error::Op { op: b.op.name, operands: vec![], message });
    }
    Ok(marked(y, dims.iter().map(|&dim| Bucket { dim, size: shown[dim] }).collect()))
}

/// Why an op does not take operands of two devices.
#[cold]
#[inline(never)]
fn apart(g: Locked, op: &'static Entry, operands: &[NodeId]) -> Error {
    drop(g);
    let variables = xlazy_core::host::variables();
    let (all, types): (Vec<(Placement, Option<String>)>, Vec<String>) = {
        let g = graph();
        let one = |&id: &NodeId| {
            let n = g.node(id);
            let variable = variables.iter().find(|(_, v)| *v == id).map(|(name, _)| name.clone());
            ((n.placement, variable.or_else(|| binding(n.at))), n.described())
        };
        operands.iter().map(one).unzip()
    };
    let pairs = (0..all.len()).flat_map(|i| (i + 1..all.len()).map(move |j| (i, j)));
    let (i, j) = { pairs }.find(|&(i, j)| !all[i].0.together(all[j].0)).expect("two operands are on two devices");
    let ((a, first), (b, other)) = (&all[i], &all[j]);
    let named = |i: usize, name: &Option<String>| match name {
        Some(name) => format!("`{name}`"),
        None => format!("operand {}", i + 1),
    };
    let (here, there) = (name_of(a.home()), name_of(b.home()));
    let fix = match a.mesh().or(b.mesh()) {
        Some(_) => "lay both out on one mesh with `mark_sharding`".to_owned(),
        None => format!("move one of them: `{}.to({here:?})`", other.as_deref().unwrap_or_default()),
    };
    let message = format!(
        "expected all tensors to be on the same device: {} is on {here}, {} on {there}; {fix}",
        named(i, first),
        named(j, other),
    );
    Error::Op { op: op.name, operands: types, message }
}

/// Runs all that is pending on live tensors and cuts the graph there (`torch_xla.sync`). Buffers that nothing holds any
/// more are reused for the results.
///
/// ```
/// use xlazy::prelude::*;
/// let x = Tensor::ones([3]) * 2.0;
/// sync();
/// assert_eq!(x.to_vec::<f32>(), [2.0; 3]);
/// ```
#[track_caller]
pub fn sync() {
    sync_for(Cause::Sync)
}

#[track_caller]
pub(crate) fn sync_for(cause: Cause) {
    xlazy_core::sys::check_interrupt();
    if let Some(body) = thread(|t| t.body.get()) {
        let message = "nothing can be run in its body, which is recorded once: `sync()` behind it".into();
        Error::Op { op: body.op, operands: vec![], message }.raise();
    }
    let done = run::barrier(&INSIGHT, cause, innermost(Location::caller()));
    thread(Thread::synced);
    if let Err(e) = done {
        e.raise()
    }
}

/// An optimizer has stepped: what is pending runs where too many steps of that line are.
#[track_caller]
pub(crate) fn stepped() {
    if thread(|t| t.body.get()).is_some() {
        return;
    }
    match run::step(&INSIGHT, innermost(Location::caller())) {
        Ok(None) => {}
        Ok(Some(_)) => thread(Thread::synced),
        Err(e) => e.raise(),
    }
}
