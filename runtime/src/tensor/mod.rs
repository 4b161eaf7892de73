//! The public handle: a tensor is a cheap, shared reference to a value that may not have been computed yet.
mod autocast;
pub(crate) mod body;
mod buckets;
pub(crate) mod entry;
mod gradient;
mod hooks;
mod layout;
mod mixed;
pub(crate) mod takes;
mod thread;
mod trace;
mod views;

pub use autocast::autocast;
pub(crate) use body::{Argument, Recorder, elsewhere, result, rounds};
pub(crate) use buckets::{buckets_of, marked, real_bytes};
pub(crate) use entry::{BucketRule, Bucketed, BucketedOperand, Entry, Grad, Plan, Sample};
pub use hooks::Hook;
pub(crate) use hooks::{hooked_since, through_hooks};
pub(crate) use layout::Step;
pub(crate) use thread::{called, is_physical, on_behalf, on_trial, physically, showing, shown_by};
pub use thread::{is_grad_enabled, no_grad};
pub use trace::sync;
pub(crate) use trace::{UNBUCKET, run_bucketed, stepped, sync_for, trace, trace_all, try_trace};
pub(crate) use views::{follow, write_of};

use crate::insight::mode::trained;
use crate::insight::{INSIGHT, waiting};
use crate::{Error, Result};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use xlazy_core::device::{self, DeviceData};
use xlazy_core::ir::{ALIAS, DATA, Graph, LEAF, NodeId, Payload, Placement, REQUIRES_GRAD, Write, graph};
use xlazy_core::run::{self, Cause, SyncEvent};
use xlazy_core::text::Place;
pub(crate) use xlazy_core::thread::caller_line;
use xlazy_core::thread::innermost;
use xlazy_core::ty::{DType, Dims, Element, Scalar, Shape, Type, TypeRef};

/// A lazy tensor. Ops on it are recorded, not run; showing or reading a value runs what it needs, and `sync()` runs all
/// that is pending. Clones share one value, as two names for one Python object do.
///
/// ```
/// use xlazy::prelude::*;
/// let x = tensor([[1.0, 2.0], [3.0, 4.0]]);
/// let y = (&x * 2.0).sum();          // nothing has run yet
/// assert_eq!(y.item(), 20.0);        // now it has
/// ```
#[derive(Clone)]
pub struct Tensor(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    node: AtomicU32,
    /// The type that it had when it was made, which it mostly keeps: what type rules see before the graph is held.
    ty: TypeRef,
    /// It has taken another shape in place since.
    reshaped: AtomicBool,
    meta: OnceLock<Arc<Meta>>,
}

/// What a tensor has beyond its value; made when first needed.
struct Meta {
    /// Of what is trained, the line that made it.
    made: OnceLock<Place>,
    grad: Mutex<Gradient>,
    this: Weak<Inner>,
    /// The tensor's type when this was made.
    ty: TypeRef,
    view: Option<View>,
    /// Of a base: its views, and views of these.
    views: Mutex<Vec<Weak<Inner>>>,
    /// What the tensor is since it took another shape in place (`t_`); this stays what it is for its views. The tensor's end
    /// takes it away.
    later: Mutex<Option<Arc<Meta>>>,
}

/// The gradient of a tensor.
#[derive(Default)]
enum Gradient {
    #[default]
    None,
    Of(Tensor),
    /// A step took it, at this line.
    Taken(Place),
}

#[derive(Clone)]
struct View {
    of: Arc<Meta>,
    base: Arc<Meta>,
    step: Step,
    /// The shape that the step starts from.
    from: Shape,
    /// Whether gradients were recorded when the view was made.
    recorded: bool,
    /// Its elements lie in row-major order.
    in_order: bool,
}

fn held<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In the place of a node that another tensor took over.
const HANDED_OVER: NodeId = NodeId::MAX;

impl Drop for Inner {
    fn drop(&mut self) {
        // Views of it know its description for longer.
        let mut next = self.meta.get().cloned();
        while let Some(meta) = next {
            drop(std::mem::take(&mut *held(&meta.grad)));
            next = held(&meta.later).take();
        }
        let node = *self.node.get_mut();
        if node != HANDED_OVER {
            graph().release(node);
        }
    }
}

/// An operand: a tensor, or a number, which becomes a parameter of the program and never a reason to compile again.
pub enum Arg<'a> {
    Tensor(&'a Tensor),
    Owned(Tensor),
    Scalar(Scalar),
}

impl Arg<'_> {
    /// The same operand once more.
    pub(crate) fn again(&self) -> Arg<'_> {
        match self {
            Arg::Tensor(t) => Arg::Tensor(t),
            Arg::Owned(t) => Arg::Tensor(t),
            Arg::Scalar(v) => Arg::Scalar(*v),
        }
    }

    pub(crate) fn tensor(&self) -> Option<&Tensor> {
        match self {
            Arg::Tensor(t) => Some(t),
            Arg::Owned(t) => Some(t),
            Arg::Scalar(_) => None,
        }
    }

    fn scalar(&self) -> Option<Scalar> {
        match self {
            Arg::Scalar(v) => Some(*v),
            _ => None,
        }
    }
}

impl<'a> From<&'a &Tensor> for Arg<'a> {
    fn from(t: &'a &Tensor) -> Arg<'a> {
        Arg::Tensor(t)
    }
}

impl From<Tensor> for Arg<'_> {
    fn from(t: Tensor) -> Self {
        Arg::Owned(t)
    }
}

impl<'a> From<&'a Tensor> for Arg<'a> {
    fn from(t: &'a Tensor) -> Arg<'a> {
        Arg::Tensor(t)
    }
}

impl<T: Into<Scalar>> From<T> for Arg<'_> {
    fn from(v: T) -> Self {
        Arg::Scalar(v.into())
    }
}

impl Tensor {
    pub(crate) fn id(&self) -> NodeId {
        self.0.node.load(Ordering::Acquire)
    }

    /// A new tensor on a node; the arena must be locked, so that the node cannot go away.
    pub(crate) fn of_node(g: &mut Graph, id: NodeId) -> Tensor {
        g.hold(id);
        let ty = g.node(id).ty;
        Tensor(Arc::new(Inner {
            node: AtomicU32::new(id),
            ty,
            reshaped: AtomicBool::new(false),
            meta: OnceLock::new(),
        }))
    }

    /// A tensor of a value, somewhere.
    pub(crate) fn of_data(data: Arc<DeviceData>, place: Placement, at: &'static Location<'static>) -> Tensor {
        let mut g = graph();
        let ty = data.ty;
        let id = g.push(&DATA, SmallVec::new(), Box::default(), ty, Payload::Data(data), at);
        g.place(id, place);
        Tensor::of_node(&mut g, id)
    }

    /// Bytes of user code, on the first device, or on that of a rank.
    #[track_caller]
    pub(crate) fn of_bytes(bytes: &[u8], ty: Type) -> Tensor {
        Tensor::of_bytes_on(Placement::here(), bytes, ty)
    }

    /// Bytes as a tensor that is where another one is: [`Tensor::place`] of it.
    #[track_caller]
    pub(crate) fn of_bytes_on(place: Placement, bytes: &[u8], ty: Type) -> Tensor {
        let at = innermost(Location::caller());
        match device::upload(bytes, ty, place.home()) {
            Ok(data) => Tensor::of_data(data, place, at),
            Err(e) => e.raise(),
        }
    }

    pub(crate) fn ty(&self) -> Type {
        let (g, physical) = (graph(), is_physical());
        let n = g.node(self.id());
        if physical { Type::clone(&n.ty) } else { n.shown() }
    }

    /// The sizes of the dimensions (`torch.Tensor.shape`).
    /// `Tensor::zeros([2, 3]).shape()` is `[2,3]`.
    pub fn shape(&self) -> Shape {
        self.ty().shape
    }

    /// All sizes by name, where it is known how many there are: Python's `b, t, c = x.shape`. Ends the cell where there are more
    /// or fewer.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let [rows, columns] = Tensor::ones([2, 3]).dims();
    /// assert_eq!((rows, columns), (2, 3));
    /// ```
    #[track_caller]
    pub fn dims<const N: usize>(&self) -> [usize; N] {
        let shape = self.shape();
        shape.to_vec().try_into().unwrap_or_else(|_| refuse("dims", &[self], format!("{shape} has not {N} dimensions")))
    }

    /// The size of one dimension; negative dimensions count from the back (`torch.Tensor.size`).
    /// `Tensor::zeros([2, 3]).size(-1)` is `3`.
    #[track_caller]
    pub fn size(&self, dim: i64) -> usize {
        let d = self.dim_index("size", dim);
        match self.shape().get(d) {
            Some(&n) => n,
            None => refuse("size", &[self], format!("a tensor without dimensions has no dimension {dim}")),
        }
    }

    /// The number of dimensions (`torch.Tensor.dim`).
    ///
    /// `Tensor::zeros([2, 3]).dim()` is `2`.
    pub fn dim(&self) -> usize {
        graph().node(self.id()).ty.shape.len()
    }

    /// The number of elements (`torch.Tensor.numel`).
    ///
    /// `Tensor::zeros([2, 3]).numel()` is `6`.
    pub fn numel(&self) -> usize {
        self.ty().shape.numel()
    }

    /// The element type (`torch.Tensor.dtype`).
    ///
    /// `tensor([1, 2]).dtype()` is `I64`.
    pub fn dtype(&self) -> DType {
        mixed::seen(self.stored())
    }

    /// A dimension as an index, or the end of the cell.
    #[track_caller]
    pub(crate) fn dim_index(&self, op: &'static str, dim: i64) -> usize {
        match Shape::dim_of(self.dim(), dim, 0) {
            Ok(d) => d,
            Err(message) => refuse(op, &[self], message),
        }
    }

    /// Several dimensions as sorted indices without repeats; none means all.
    #[track_caller]
    pub(crate) fn dim_indices(&self, op: &'static str, dims: &Dims) -> Vec<usize> {
        if dims.0.is_empty() {
            return (0..self.dim()).collect();
        }
        let mut out = self.each_dim(op, dims);
        if self.dim() == 0 {
            // dimension 0 of a scalar may be named, and is none
            return vec![];
        }
        out.sort_unstable();
        if out.windows(2).any(|w| w[0] == w[1]) {
            refuse(op, &[self], format!("a dimension appears twice in {:?}", dims.0));
        }
        out
    }

    /// The tensor's value on the device, computed if need be.
    pub(crate) fn value(
        &self,
        cause: Cause,
        at: &'static Location<'static>,
    ) -> Result<(Arc<DeviceData>, Option<SyncEvent>)> {
        xlazy_core::sys::check_interrupt();
        self.refuse_read()?;
        run::read(&INSIGHT, self.id(), cause, innermost(at))
    }

    /// Has the values of several tensors computed, by one program where they are on one device.
    pub(crate) fn compute(tensors: &[Tensor], cause: Cause, at: &'static Location<'static>) -> Result<()> {
        xlazy_core::sys::check_interrupt();
        tensors.iter().try_for_each(Tensor::refuse_read)?;
        let ids: Vec<NodeId> = tensors.iter().map(Tensor::id).collect();
        run::read_all(&INSIGHT, &ids, cause, innermost(at)).map(|_| ())
    }

    /// The value as row-major bytes.
    pub(crate) fn bytes(&self, cause: Cause, at: &'static Location<'static>) -> Result<Vec<u8>> {
        let (data, _) = self.value(cause, at)?;
        let working = waiting();
        let bytes = run::download(&data).inspect_err(|_| graph().uncache(self.id()))?;
        drop(working);
        let buckets = buckets_of(self);
        Ok(if buckets.is_empty() { bytes } else { real_bytes(bytes, &data.ty, &buckets) })
    }

    /// All elements in row-major order. Runs what the tensor needs. The element type must be the tensor's; halves
    /// (`f16`, `bf16`) are read as `f32`.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let v: Vec<f32> = (Tensor::ones([2, 2]) + 1.0).to_vec();
    /// assert_eq!(v, [2.0; 4]);
    /// ```
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        let dtype = self.stored();
        let halves = dtype.is_half() && T::DTYPE == DType::F32;
        if T::DTYPE != dtype && !halves {
            refuse(
                "to_vec",
                &[self],
                format!(
                    "holds {dtype}, asked for {0}: `.to_vec::<{1}>()` reads it as it is, `.to({0:?})` before it converts",
                    T::DTYPE,
                    if dtype.is_half() { DType::F32 } else { dtype }
                ),
            );
        }
        let bytes = match self.bytes(Cause::Read, Location::caller()) {
            Ok(b) => b,
            Err(e) => e.raise(),
        };
        if halves {
            let wide = |b: &[u8]| T::read(&(dtype.read(b).as_f64() as f32).to_le_bytes());
            return bytes.chunks_exact(dtype.size()).map(wide).collect();
        }
        T::read_all(&bytes)
    }

    /// The one element of a tensor as f64 (`torch.Tensor.item`). Runs what the tensor needs.
    /// `tensor(2.5).item()` is `2.5`.
    #[track_caller]
    pub fn item(&self) -> f64 {
        match self.try_item(Location::caller()) {
            Ok((dtype, bytes)) => dtype.number(&bytes),
            Err(e) => e.raise(),
        }
    }

    /// The one element of an integer tensor as i64. Refuses what no i64 is: numbers of u64 from 2⁶³ on.
    #[track_caller]
    pub fn item_i64(&self) -> i64 {
        match self.try_item(Location::caller()) {
            Ok((dtype, bytes)) => i64::try_from(dtype.integer(&bytes)).unwrap_or_else(|_| {
                let why = format!("{} is no i64: `.to_vec::<u64>()` reads it as it is", dtype.integer(&bytes));
                refuse("item_i64", &[self], why)
            }),
            Err(e) => e.raise(),
        }
    }

    fn try_item(&self, at: &'static Location<'static>) -> Result<(DType, Vec<u8>)> {
        let ty = self.ty();
        if ty.shape.numel() != 1 {
            let message = format!("needs a tensor of one element, this one has {}", ty.shape.numel());
            return Err(Error::Op { op: "item", operands: vec![ty.to_string()], message });
        }
        Ok((ty.dtype, self.bytes(Cause::Read, at)?))
    }

    /// Runs all that is pending up to here and waits until this tensor's value is on the device.
    #[track_caller]
    pub fn wait(&self) {
        let done = self.value(Cause::Sync, Location::caller()).and_then(|(d, _)| {
            let _working = waiting();
            run::wait(&d).inspect_err(|_| graph().uncache(self.id()))
        });
        if let Err(e) = done {
            e.raise()
        }
    }

    /// Whether gradients flow to this tensor (`torch.Tensor.requires_grad`).
    ///
    /// `tensor([1.0]).requires_grad()` is `false`.
    pub fn requires_grad(&self) -> bool {
        graph().node(self.id()).flags & REQUIRES_GRAD != 0
    }

    /// Whether gradients accumulate in this tensor, or none flow at all (`torch.Tensor.is_leaf`).
    ///
    /// `tensor([1.0]).requires_grad_(true).exp().is_leaf()` is `false`.
    pub fn is_leaf(&self) -> bool {
        let flags = graph().node(self.id()).flags;
        flags & REQUIRES_GRAD == 0 || flags & LEAF != 0
    }

    /// Starts or stops recording gradients for this tensor, and gives it back (`torch.Tensor.requires_grad_`).
    /// Only float tensors that no recorded op made can be told so.
    ///
    /// `tensor([1.0]).requires_grad_(true).requires_grad()` is `true`.
    #[track_caller]
    pub fn requires_grad_(&self, on: bool) -> Tensor {
        if on && !self.dtype().is_differentiable() {
            refuse("requires_grad_", &[self], "only float and complex tensors can require gradients");
        }
        if !self.is_leaf() && on != self.requires_grad() {
            refuse("requires_grad_", &[self], "this tensor is a result of recorded ops; use `.detach()` first");
        }
        match on {
            true if !self.requires_grad() => {
                self.become_leaf(self.id());
                trained(innermost(Location::caller()), true, None);
            }
            false if self.requires_grad() => {
                let plain = self.unrecorded();
                let number = graph().node(plain.id()).seq;
                self.point_at(plain.id(), false);
                trained(innermost(Location::caller()), false, Some(number));
            }
            _ => {}
        }
        self.clone()
    }

    // Puts the tensor on a node of its own that gradients accumulate at; `id` holds the value.
    fn become_leaf(&self, id: NodeId) {
        // What trains it gives it other values, from other lines.
        let at = self.location();
        self.meta().made.get_or_init(|| at);
        let alias = {
            let mut g = graph();
            let only_ours = g.node(id).refs == 1 && g.node(id).flags == 0;
            if only_ours { None } else { Some(alias(&mut g, id, None)) }
        };
        // The alias holds its node until the tensor does.
        self.point_at(alias.as_ref().map_or(id, Tensor::id), true);
    }

    // Moves the tensor to another node, which something else must hold during the call or which is its own already.
    fn point_at(&self, id: NodeId, leaf: bool) {
        let mut g = graph();
        g.hold(id);
        let old = self.swap_node(&mut g, id, leaf);
        g.release(old);
    }

    // Moves the tensor to another node, which is held for it: the one that it leaves.
    fn swap_node(&self, g: &mut Graph, id: NodeId, leaf: bool) -> NodeId {
        g.node_mut(id).lineage = g.node(self.id()).lineage;
        if leaf {
            g.node_mut(id).flags |= REQUIRES_GRAD | LEAF;
            let weak = Arc::downgrade(&self.0);
            g.owners.insert(id, weak);
        }
        self.0.node.swap(id, Ordering::AcqRel)
    }

    /// The same value without its history of gradients (`torch.Tensor.detach`): a view, so what is written to one of the two
    /// is seen by the other. `.detach().copy()` is a value of its own.
    /// `tensor([1.0]).requires_grad_(true).detach().requires_grad()` is `false`.
    #[track_caller]
    pub fn detach(&self) -> Tensor {
        self.unrecorded().viewing(self, Step::Detach)
    }

    #[track_caller]
    fn unrecorded(&self) -> Tensor {
        let at = innermost(Location::caller());
        alias(&mut graph(), self.id(), Some(at))
    }

    /// The line that made the tensor, whatever has given it other values since.
    pub(crate) fn made_at(&self) -> Place {
        let made = self.known().and_then(|meta| meta.made.get().copied());
        made.unwrap_or_else(|| self.location())
    }

    /// The line of user code that made the tensor's value.
    pub fn location(&self) -> &'static Location<'static> {
        graph().node(self.id()).at
    }
}

/// Type and state, without running anything; `{}` shows the values, and so does showing what the tensor is a part of.
impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        if let Some(written) = xlazy_mime::gather::found(f, || Box::new(self.clone())) {
            return written;
        }
        let (ty, state) = {
            let g = graph();
            let n = g.node(self.id());
            let state = match n.payload {
                Payload::Pending => "pending",
                _ => "on device",
            };
            (n.described(), state)
        };
        write!(f, "Tensor({ty}, {state})")
    }
}

/// Puts values in the place of tensors, all at once: whoever looks at the graph sees all of them or none. Records nothing and
/// cannot fail, so that nothing ends it half way. `write`: which in-place op of the user's this is, where it is one.
pub(crate) fn set_all(values: &mut [(Tensor, Tensor)], write: Option<Write>) {
    let mut aliases = Vec::new();
    let mut g = graph();
    let look = |(tensor, value): &(Tensor, Tensor)| {
        let leaf = g.node(tensor.id()).flags & LEAF != 0;
        // A leaf needs a node of its own, and `value` is ours alone unless user code holds it, too.
        let n = g.node(value.id());
        let its_own = g.owners.get(&value.id()).is_some_and(|o| std::ptr::addr_eq(o.as_ptr(), Arc::as_ptr(&tensor.0)));
        if leaf && !its_own && !(n.refs == 1 && n.flags == 0 && Arc::strong_count(&value.0) == 1) {
            aliases.push(alias(&mut g, value.id(), None));
            return (aliases[aliases.len() - 1].id(), leaf);
        }
        (value.id(), leaf)
    };
    // All are looked at before the first changes: one's value may be another's tensor.
    let nodes: SmallVec<[(NodeId, bool); 1]> = values.iter().map(look).collect();
    let mut left: SmallVec<[NodeId; 1]> = SmallVec::with_capacity(nodes.len());
    for ((tensor, value), (id, leaf)) in values.iter_mut().zip(nodes) {
        // What nobody else holds hands its node over, and nothing is left to let go of.
        match Arc::get_mut(&mut value.0).map(|v| v.node.get_mut()).filter(|node| **node == id) {
            Some(node) => *node = HANDED_OVER,
            None => g.hold(id),
        }
        left.push(tensor.swap_node(&mut g, id, leaf));
    }
    left.into_iter().for_each(|old| match write {
        Some(write) => g.release_written(old, write),
        None => g.release(old),
    });
    drop(g);
}

/// Ends the cell with an op's refusal, at the caller's line.
#[track_caller]
pub(crate) fn refuse(op: &'static str, operands: &[&Tensor], message: impl Into<String>) -> ! {
    let operands = operands.iter().map(|t| t.ty().to_string()).collect();
    Error::Op { op, operands, message: message.into() }.raise()
}

/// A second node for one value, with flags of its own. Data are from where they were made; an op is from `at`, or from there,
/// too.
fn alias(g: &mut Graph, id: NodeId, at: Option<Place>) -> Tensor {
    let n = g.node(id);
    let (ty, made_at, buckets, place) = (n.ty, n.at, n.buckets().to_vec(), n.placement);
    let alias = match n.data().cloned() {
        Some(data) => g.push(&DATA, SmallVec::new(), Box::default(), ty, Payload::Data(data), made_at),
        None => {
            let inputs = SmallVec::from_slice(&[id]);
            g.push(&ALIAS, inputs, Box::default(), ty, Payload::Pending, at.unwrap_or(made_at))
        }
    };
    g.node_mut(alias).set_buckets(buckets);
    g.place(alias, place);
    Tensor::of_node(g, alias)
}

#[cfg(test)]
mod tests;
