//! The public handle: a tensor is a cheap, shared reference to a value that may not have been computed yet.
use crate::dtype::{DType, Element, Scalar};
use crate::insight::mode::trained;
use crate::insight::{Cause, Recording, SyncEvent, TIMED_ALONE, waiting};
use crate::ir::{Graph, LEAF, NodeId, Payload, REQUIRES_GRAD, graph, home};
use crate::op::{Attr, OpDef, Sig, Type};
use crate::session::{self, DeviceData};
use crate::shape::{Dims, Shape};
use crate::{Error, Result, bucket, ops};
use smallvec::SmallVec;
use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

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
    grad: OnceLock<Box<Mutex<Option<Tensor>>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        graph().release(*self.node.get_mut());
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

/// What tracing needs to know of its thread.
struct Thread {
    grad: Cell<bool>,
    /// The line of user code on whose behalf the runtime is tracing (`backward()`, an optimizer's step).
    at: Cell<Option<&'static Location<'static>>>,
    /// The line that is showing values.
    shows: Cell<Option<&'static Location<'static>>>,
    /// Ops it has recorded since the last sync, as long as there were few syncs.
    ops: Cell<u32>,
    /// Syncs of the cell.
    syncs: Cell<u32>,
    /// Tensors are taken as they are physically, their buckets out of sight.
    physical: Cell<bool>,
}

thread_local! {
    static THREAD: Thread = const { Thread { grad: Cell::new(true), at: Cell::new(None), shows: Cell::new(None), ops: Cell::new(0), syncs: Cell::new(0), physical: Cell::new(false) } };
}

/// Whether ops on this thread are recorded for gradients (`torch.is_grad_enabled`).
pub fn is_grad_enabled() -> bool {
    THREAD.with(|t| t.grad.get())
}

/// Puts a thread's state back when it goes.
pub(crate) struct Restore {
    grad: bool,
    at: Option<&'static Location<'static>>,
}

impl Drop for Restore {
    fn drop(&mut self) {
        THREAD.with(|t| {
            t.grad.set(self.grad);
            t.at.set(self.at);
        });
    }
}

/// Runs `f` without recording gradients (`with torch.no_grad()`).
///
/// ```
/// use xlazy::prelude::*;
/// let w = Tensor::ones([2]).requires_grad_(true);
/// let y = no_grad(|| &w * 2.0);
/// assert!(!y.requires_grad());
/// ```
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    let _restore = THREAD.with(|t| Restore { grad: t.grad.replace(false), at: t.at.get() });
    f()
}

/// Whether this thread takes tensors as they are physically.
pub(crate) fn is_physical() -> bool {
    THREAD.with(|t| t.physical.get())
}

/// Runs `f` with tensors taken as they are physically: bucketed dimensions are of their bucket's size and nothing else.
pub(crate) fn physically<R>(f: impl FnOnce() -> R) -> R {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            THREAD.with(|t| t.physical.set(self.0));
        }
    }
    let _back = Back(THREAD.with(|t| t.physical.replace(true)));
    f()
}

/// Runs `f` with all that it traces put down to the line `at` (unless a line is set already), gradients on or off.
pub(crate) fn on_behalf<R>(at: &'static Location<'static>, grad: bool, f: impl FnOnce() -> R) -> R {
    let _restore = THREAD.with(|t| {
        let restore = Restore { grad: t.grad.replace(grad), at: t.at.get() };
        t.at.set(Some(t.at.get().unwrap_or(at)));
        restore
    });
    f()
}

/// Puts all that this thread traces down to the caller's line (unless a line is set already) until the guard goes: for
/// methods that trace in closures, where `#[track_caller]` does not reach.
#[track_caller]
pub(crate) fn caller_line() -> Restore {
    let at = Location::caller();
    THREAD.with(|t| {
        let restore = Restore { grad: t.grad.get(), at: t.at.get() };
        t.at.set(Some(t.at.get().unwrap_or(at)));
        restore
    })
}

/// The line that this thread traces on behalf of, if one is set.
pub(crate) fn line() -> Option<&'static Location<'static>> {
    THREAD.with(|t| t.at.get())
}

/// Runs `f`, which shows values, on behalf of the line `at`: what it reads is put down to it.
pub(crate) fn showing<R>(at: &'static Location<'static>, f: impl FnOnce() -> R) -> R {
    struct Before(Option<&'static Location<'static>>);
    impl Drop for Before {
        fn drop(&mut self) {
            THREAD.with(|t| t.shows.set(self.0));
        }
    }
    let _before = Before(THREAD.with(|t| t.shows.replace(Some(at))));
    f()
}

/// The line that shows values, if it is known.
pub(crate) fn shown_by() -> Option<&'static Location<'static>> {
    THREAD.with(|t| t.shows.get())
}

/// A cell begins on this thread: what it does first is timed.
pub(crate) fn begin_cell() {
    THREAD.with(|t| {
        t.ops.set(0);
        t.syncs.set(0);
    });
}

/// Longest pending graph; 0 until it is asked for.
static TRIM: AtomicUsize = AtomicUsize::new(0);

/// How long the pending graph may grow, in ops and numbers; beyond it the runtime syncs by itself, with the cause "trim".
/// The default is 500,000, or what `XLAZY_TRIM_GRAPH_SIZE` says (torch_xla: `XLA_TRIM_GRAPH_SIZE`).
pub fn set_trim(nodes: usize) {
    TRIM.store(nodes.max(1), Ordering::Relaxed);
}

fn trim() -> usize {
    match TRIM.load(Ordering::Relaxed) {
        0 => {
            let set = std::env::var("XLAZY_TRIM_GRAPH_SIZE").ok().and_then(|v| v.parse().ok());
            set_trim(set.unwrap_or(500_000));
            TRIM.load(Ordering::Relaxed)
        }
        set => set,
    }
}

/// Records one op; the one place where a tensor error becomes the end of the cell.
#[track_caller]
pub(crate) fn trace<const N: usize>(
    op: &'static OpDef,
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
pub(crate) fn trace_all(op: &'static OpDef, inputs: &[&Tensor], attrs: impl IntoIterator<Item = Attr>) -> Tensor {
    let args: SmallVec<[Arg; 8]> = inputs.iter().map(|t| Arg::Tensor(t)).collect();
    match try_trace(op, &args, attrs.into_iter().collect(), Location::caller()) {
        Ok(t) => t,
        Err(e) => e.raise(),
    }
}

/// Ends the cell with an op's refusal, at the caller's line.
#[track_caller]
pub(crate) fn refuse(op: &'static str, operands: &[&Tensor], message: impl Into<String>) -> ! {
    let operands = operands.iter().map(|t| t.ty().to_string()).collect();
    Error::Op { op, operands, message: message.into() }.raise()
}

pub(crate) fn try_trace(
    op: &'static OpDef,
    args: &[Arg],
    attrs: Box<[Attr]>,
    at: &'static Location<'static>,
) -> Result<Tensor> {
    crate::sys::check_interrupt();
    let (grad, behalf, physical, nth) = THREAD.with(|t| {
        t.ops.set(t.ops.get().wrapping_add(1));
        (t.grad.get(), t.at.get(), t.physical.get(), t.ops.get())
    });
    let recording = Recording::begin(nth);
    let at = behalf.unwrap_or(at);
    let mut g = graph();
    if !physical && args.iter().filter_map(Arg::tensor).any(|t| !g.node(t.id()).buckets().is_empty()) {
        drop((g, recording));
        return bucket::trace(op, args, attrs, at);
    }
    let mut ids: SmallVec<[NodeId; 4]> = SmallVec::with_capacity(args.len());
    let mut scalars: SmallVec<[NodeId; 2]> = SmallVec::new();
    for arg in args {
        match arg {
            Arg::Tensor(t) => ids.push(t.id()),
            Arg::Owned(t) => ids.push(t.id()),
            Arg::Scalar(value) => {
                let tensors = args.iter().filter_map(Arg::tensor);
                let dtype = tensors.map(|t| g.node(t.id()).ty.dtype).reduce(DType::promote);
                let id = push_scalar(&mut g, *value, dtype, at);
                scalars.push(id);
                ids.push(id);
            }
        }
    }
    let mut requires_grad = false;
    let inferred = {
        let types: SmallVec<[&Type; 4]> = ids
            .iter()
            .map(|&id| {
                let n = g.node(id);
                requires_grad |= n.flags & REQUIRES_GRAD != 0;
                &n.ty
            })
            .collect();
        (op.infer)(&Sig { inputs: &types, attrs: &attrs }).map_err(|message| Error::Op {
            op: op.name,
            operands: types.iter().map(|t| t.to_string()).collect(),
            message,
        })
    };
    let ty = match inferred {
        Ok(ty) => ty,
        Err(e) => {
            scalars.iter().for_each(|&s| g.discard(s));
            return Err(e);
        }
    };
    if g.apart(&ids) {
        scalars.iter().for_each(|&s| g.discard(s));
        return Err(ops::apart(g, op, &ids));
    }
    let recorded = requires_grad && grad && op.grad.is_some() && ty.dtype.is_differentiable();
    let id = g.push(op, ids, attrs, ty, Payload::Pending, at);
    if recorded {
        g.node_mut(id).flags = REQUIRES_GRAD;
    }
    let long = g.pending.len() > trim();
    let out = Tensor::of_node(&mut g, id);
    drop(g);
    drop(recording);
    if long {
        session::barrier(Cause::Trim, at)?;
    }
    Ok(out)
}

/// A number of user code as a node: of the dtype it takes beside a tensor of `dtype`.
fn push_scalar(g: &mut Graph, value: Scalar, dtype: Option<DType>, at: &'static Location<'static>) -> NodeId {
    let dtype = dtype.map_or(value.default_dtype(), |d| value.promote_with(d));
    let bits = if dtype.is_differentiable() { value.as_f64().to_bits() } else { value.as_i64() as u64 };
    g.push(&ops::SCALAR, SmallVec::new(), Box::default(), Type::new(dtype, Shape::default()), Payload::Scalar(bits), at)
}

impl Tensor {
    pub(crate) fn id(&self) -> NodeId {
        self.0.node.load(Ordering::Acquire)
    }

    /// A new tensor on a node; the arena must be locked, so that the node cannot go away.
    pub(crate) fn of_node(g: &mut Graph, id: NodeId) -> Tensor {
        g.hold(id);
        Tensor(Arc::new(Inner { node: AtomicU32::new(id), grad: OnceLock::new() }))
    }

    /// A tensor of a value, on `device`; `ANYWHERE` lets it follow what it meets.
    pub(crate) fn of_data(data: Arc<DeviceData>, device: u8, at: &'static Location<'static>) -> Tensor {
        let mut g = graph();
        let ty = data.ty.clone();
        let id = g.push(&ops::DATA, SmallVec::new(), Box::default(), ty, Payload::Data(data), at);
        g.place(id, device);
        Tensor::of_node(&mut g, id)
    }

    /// Bytes of user code, on the first device.
    #[track_caller]
    pub(crate) fn of_bytes(bytes: &[u8], ty: Type) -> Tensor {
        Tensor::of_bytes_on(0, bytes, ty)
    }

    /// Bytes as a tensor that is where another one is: [`Tensor::place`] of it.
    #[track_caller]
    pub(crate) fn of_bytes_on(device: u8, bytes: &[u8], ty: Type) -> Tensor {
        let at = THREAD.with(|t| t.at.get()).unwrap_or(Location::caller());
        match session::upload(bytes, ty, home(device)) {
            Ok(data) => Tensor::of_data(data, device, at),
            Err(e) => e.raise(),
        }
    }

    pub(crate) fn ty(&self) -> Type {
        let (g, physical) = (graph(), is_physical());
        let n = g.node(self.id());
        if physical { n.ty.clone() } else { n.shown() }
    }

    /// The sizes of the dimensions (`torch.Tensor.shape`).
    pub fn shape(&self) -> Shape {
        self.ty().shape
    }

    /// The size of one dimension; negative dimensions count from the back (`torch.Tensor.size`).
    #[track_caller]
    pub fn size(&self, dim: i64) -> usize {
        let d = self.dim_index("size", dim);
        self.shape()[d]
    }

    /// The number of dimensions (`torch.Tensor.dim`).
    pub fn dim(&self) -> usize {
        graph().node(self.id()).ty.shape.len()
    }

    /// The number of elements (`torch.Tensor.numel`).
    pub fn numel(&self) -> usize {
        self.ty().shape.numel()
    }

    /// The element type (`torch.Tensor.dtype`).
    pub fn dtype(&self) -> DType {
        graph().node(self.id()).ty.dtype
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
        let mut out: Vec<usize> = dims.0.iter().map(|&d| self.dim_index(op, d)).collect();
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
        crate::sys::check_interrupt();
        session::read(self.id(), cause, at)
    }

    /// The value as row-major bytes.
    pub(crate) fn bytes(&self, cause: Cause, at: &'static Location<'static>) -> Result<Vec<u8>> {
        let (data, _) = self.value(cause, at)?;
        let (bytes, buckets) = (session::download(&data)?, bucket::buckets_of(self));
        Ok(if buckets.is_empty() { bytes } else { bucket::real_bytes(bytes, &data.ty, &buckets) })
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
        let dtype = self.dtype();
        let halves = matches!(dtype, DType::F16 | DType::BF16) && T::DTYPE == DType::F32;
        if T::DTYPE != dtype && !halves {
            refuse(
                "to_vec",
                &[self],
                format!("holds {dtype}, asked for {}: convert with `.to({:?})`", T::DTYPE, T::DTYPE),
            );
        }
        let bytes = match self.bytes(Cause::Read, Location::caller()) {
            Ok(b) => b,
            Err(e) => e.raise(),
        };
        if halves {
            let wide = |b: &[u8]| T::read(&half(dtype, b).to_le_bytes());
            return bytes.chunks_exact(2).map(wide).collect();
        }
        bytes.chunks_exact(dtype.size()).map(T::read).collect()
    }

    /// The one element of a tensor as f64 (`torch.Tensor.item`). Runs what the tensor needs.
    #[track_caller]
    pub fn item(&self) -> f64 {
        match self.try_item(Location::caller()) {
            Ok(v) => v.as_f64(),
            Err(e) => e.raise(),
        }
    }

    /// The one element of an integer tensor as i64.
    #[track_caller]
    pub fn item_i64(&self) -> i64 {
        match self.try_item(Location::caller()) {
            Ok(v) => v.as_i64(),
            Err(e) => e.raise(),
        }
    }

    fn try_item(&self, at: &'static Location<'static>) -> Result<Scalar> {
        let ty = self.ty();
        if ty.shape.numel() != 1 {
            let message = format!("needs a tensor of one element, this one has {}", ty.shape.numel());
            return Err(Error::Op { op: "item", operands: vec![ty.to_string()], message });
        }
        Ok(element(ty.dtype, &self.bytes(Cause::Read, at)?))
    }

    /// Runs all that is pending up to here and waits until this tensor's value is on the device.
    #[track_caller]
    pub fn wait(&self) {
        let done = self.value(Cause::Sync, Location::caller()).and_then(|(d, _)| {
            let _working = waiting(None);
            session::wait(&d.buffer.ready_event()?)
        });
        if let Err(e) = done {
            e.raise()
        }
    }

    /// The gradient that `backward()` accumulated, if any (`torch.Tensor.grad`).
    pub fn grad(&self) -> Option<Tensor> {
        self.0.grad.get()?.lock().unwrap_or_else(|p| p.into_inner()).clone()
    }

    /// Sets or clears the gradient.
    pub fn set_grad(&self, grad: Option<Tensor>) {
        let slot = self.0.grad.get_or_init(Box::default);
        let old = std::mem::replace(&mut *slot.lock().unwrap_or_else(|p| p.into_inner()), grad);
        drop(old);
    }

    /// Whether gradients flow to this tensor (`torch.Tensor.requires_grad`).
    pub fn requires_grad(&self) -> bool {
        graph().node(self.id()).flags & REQUIRES_GRAD != 0
    }

    /// Whether gradients accumulate in this tensor, or none flow at all (`torch.Tensor.is_leaf`).
    pub fn is_leaf(&self) -> bool {
        let flags = graph().node(self.id()).flags;
        flags & REQUIRES_GRAD == 0 || flags & LEAF != 0
    }

    /// Starts or stops recording gradients for this tensor, and gives it back (`torch.Tensor.requires_grad_`).
    /// Only float tensors that no recorded op made can be told so.
    #[track_caller]
    pub fn requires_grad_(&self, on: bool) -> Tensor {
        if on && !self.dtype().is_differentiable() {
            refuse("requires_grad_", &[self], "only float and complex tensors can require gradients");
        }
        if !self.is_leaf() {
            refuse("requires_grad_", &[self], "this tensor is a result of recorded ops; use `.detach()` first");
        }
        match on {
            true if !self.requires_grad() => {
                self.become_leaf(self.id());
                trained(line().unwrap_or(Location::caller()), true, None);
            }
            false if self.requires_grad() => {
                let plain = self.detach();
                let number = graph().node(plain.id()).seq;
                self.point_at(plain.id(), false);
                trained(line().unwrap_or(Location::caller()), false, Some(number));
            }
            _ => {}
        }
        self.clone()
    }

    // Puts the tensor on a node of its own that gradients accumulate at; `id` holds the value.
    fn become_leaf(&self, id: NodeId) {
        let alias = {
            let mut g = graph();
            let only_ours = g.node(id).refs == 1 && g.node(id).flags == 0;
            if only_ours { None } else { Some(alias(&mut g, id)) }
        };
        self.point_at(alias.map_or(id, |t| t.id()), true);
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
        if leaf {
            g.node_mut(id).flags |= REQUIRES_GRAD | LEAF;
            let weak = Arc::downgrade(&self.0);
            g.owners.insert(id, weak);
        }
        self.0.node.swap(id, Ordering::AcqRel)
    }

    /// Makes this tensor (and all its clones) have another value of the same shape; what in-place methods do.
    #[track_caller]
    pub(crate) fn assign(&self, op: &'static str, value: Tensor) {
        let value = self.fitted(op, value);
        self.set_data(value)
    }

    /// A value as it can take this tensor's place, or a refusal; nothing has changed yet.
    #[track_caller]
    pub(crate) fn fitted(&self, op: &'static str, value: Tensor) -> Tensor {
        let (mine, new) = (self.ty(), value.ty());
        if mine.shape != new.shape {
            refuse(op, &[self, &value], "an in-place op cannot change the shape of its tensor");
        }
        if bucket::buckets_of(self) != bucket::buckets_of(&value) {
            refuse(op, &[self, &value], "an in-place op cannot change which dimensions of its tensor are bucketed");
        }
        let value = if mine.dtype == new.dtype { value } else { value.to(mine.dtype) };
        let value = value.beside(self);
        let leaf = graph().node(self.id()).flags & LEAF != 0;
        if leaf && is_grad_enabled() {
            refuse(op, &[self], "a leaf that requires gradients is changed in place; do it inside `no_grad(|| …)`");
        }
        value
    }

    /// Puts another value in this tensor's place, whatever its type; a leaf stays one.
    pub(crate) fn set_data(&self, value: Tensor) {
        set_all(vec![(self.clone(), value)]);
    }

    /// The same value without its history of gradients (`torch.Tensor.detach`).
    pub fn detach(&self) -> Tensor {
        let mut g = graph();
        alias(&mut g, self.id())
    }

    /// Whether both are handles of one tensor.
    pub fn is_same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The line of user code that made the tensor's value.
    pub fn location(&self) -> &'static Location<'static> {
        graph().node(self.id()).at
    }
}

/// Type and state, without running anything; `{}` shows the values.
impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
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

/// A second node for one value, with flags of its own.
fn alias(g: &mut Graph, id: NodeId) -> Tensor {
    let n = g.node(id);
    let (ty, at, buckets, device) = (n.ty.clone(), n.at, n.buckets().to_vec(), n.device);
    let alias = match n.data().cloned() {
        Some(data) => g.push(&ops::DATA, SmallVec::new(), Box::default(), ty, Payload::Data(data), at),
        None => g.push(&ops::ALIAS, SmallVec::from_slice(&[id]), Box::default(), ty, Payload::Pending, at),
    };
    g.node_mut(alias).set_buckets(buckets);
    g.place(alias, device);
    Tensor::of_node(g, alias)
}

/// Puts values in the place of tensors, all at once: whoever looks at the graph sees all of them or none. Records nothing and
/// cannot fail, so that nothing ends it half way.
pub(crate) fn set_all(values: Vec<(Tensor, Tensor)>) {
    let mut aliases = Vec::new();
    let mut g = graph();
    let node = |(tensor, value): &(Tensor, Tensor)| {
        let leaf = g.node(tensor.id()).flags & LEAF != 0;
        // A leaf needs a node of its own, and `value` is ours alone unless user code holds it, too.
        let n = g.node(value.id());
        let taken = leaf && !(n.refs == 1 && n.flags == 0 && Arc::strong_count(&value.0) == 1);
        let id = match taken {
            false => value.id(),
            true => {
                aliases.push(alias(&mut g, value.id()));
                aliases[aliases.len() - 1].id()
            }
        };
        g.hold(id);
        (id, leaf)
    };
    let nodes: Vec<(NodeId, bool)> = values.iter().map(node).collect();
    let swap = |((tensor, _), (id, leaf)): (&(Tensor, Tensor), (NodeId, bool))| tensor.swap_node(&mut g, id, leaf);
    let left: Vec<NodeId> = values.iter().zip(nodes).map(swap).collect();
    left.into_iter().for_each(|old| g.release(old));
    drop(g);
}

/// A half's value from its two bytes.
pub(crate) fn half(dtype: DType, b: &[u8]) -> f32 {
    let bits = u16::from_le_bytes([b[0], b[1]]);
    if dtype == DType::BF16 { crate::dtype::bf16_to_f32(bits) } else { crate::dtype::f16_to_f32(bits) }
}

/// One element's value from its bytes; of a complex number the real part.
pub(crate) fn element(dtype: DType, b: &[u8]) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(b[0] != 0),
        DType::U8 => Scalar::Int(b[0] as i64),
        DType::I8 => Scalar::Int(b[0] as i8 as i64),
        DType::I32 => Scalar::Int(i32::read(b) as i64),
        DType::I64 => Scalar::Int(i64::read(b)),
        DType::F16 | DType::BF16 => Scalar::Float(half(dtype, b) as f64),
        DType::F32 => Scalar::Float(f32::read(b) as f64),
        DType::F64 => Scalar::Float(f64::read(b)),
        DType::C64 => Scalar::Float(f32::read(&b[..4]) as f64),
    }
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
    crate::sys::check_interrupt();
    let done = session::barrier(cause, Location::caller());
    THREAD.with(|t| {
        t.syncs.set(t.syncs.get().saturating_add(1));
        if t.syncs.get() <= TIMED_ALONE {
            t.ops.set(0);
        }
    });
    if let Err(e) = done {
        e.raise()
    }
}
