//! The arena of nodes. A node is an op on earlier nodes; creation order is a topological order.
//!
//! Reference counts are kept by hand under the arena's one lock: a node lives while a tensor or another node refers to it,
//! and chains of any length are freed by a loop, not by recursion.
use super::attr::Attr;
use super::heal::Healing;
use super::op::OpDef;
use super::placement::Placement;
use crate::device::DeviceData;
use crate::mesh;
use crate::thread::rank;
use crate::ty::{Type, TypeRef};
use smallvec::SmallVec;
use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

pub type NodeId = u32;

/// What stands behind a node.
#[derive(Clone, Debug, Default)]
pub enum Payload {
    /// Nothing yet: the op is to be run.
    #[default]
    Pending,
    /// The value, computed by a read; barriers still see the op, so that reading does not change the step's program.
    Cached(Arc<DeviceData>),
    /// The value; what made it is gone, unless the gradient tape keeps it.
    Data(Arc<DeviceData>),
    /// A number of user code: a parameter of every program that uses it. Bits of an f64, or an i64 for integer dtypes.
    Scalar(u64),
}

/// A gradient can flow through the node.
pub const REQUIRES_GRAD: u8 = 1;
/// Gradients accumulate here: the node of a tensor that the user marked.
pub const LEAF: u8 = 2;
/// `backward()` has been through: the tape no longer holds the node's operands.
pub const TAPE_FREED: u8 = 4;

/// The tensor that this was the value of has been written to in place: [`Graph::writes`].
pub const OVERWRITTEN: u8 = 8;
/// A read has run it.
pub const READ: u8 = 16;

/// What has written to a tensor in place.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    pub op: &'static str,
    pub at: &'static Location<'static>,
    pub statement: Option<&'static Location<'static>>,
    /// The last node that was traced before: what is later takes the value as it was on purpose.
    pub seq: u64,
}

/// What recorded a node, where that says more of it than its op does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A line of user code.
    #[default]
    Op,
    /// A walk of gradients, or a bucketing rule: it takes tensors as they are physically.
    Physically,
    /// Something of the type of another tensor, which is no operand.
    Like,
    /// A part that ends where its tensor does, or so many elements before.
    Relative,
}

/// A dimension whose physical size is a bucket: only the first `size` elements are real.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    pub dim: usize,
    pub size: usize,
}

#[derive(Debug)]
pub struct Node {
    pub op: &'static OpDef,
    pub inputs: SmallVec<[NodeId; 4]>,
    pub attrs: Box<[Attr]>,
    /// What it is physically.
    pub ty: TypeRef,
    /// Dimensions that show less than that; mostly none.
    buckets: Option<Box<[Bucket]>>,
    pub payload: Payload,
    pub at: &'static Location<'static>,
    /// The statement of the cell that ran when it was recorded.
    pub statement: Option<&'static Location<'static>>,
    /// Creation number: tells a node from a later one in the same slot. 0 marks a free slot.
    pub seq: u64,
    /// The creation number of the first node in a row of values of one tensor that is changed in place: a parameter, through
    /// all steps, is the same one.
    pub lineage: u64,
    /// Tensors and nodes that refer to this node.
    pub refs: u32,
    /// Tensors among them.
    pub handles: u32,
    pub flags: u8,
    /// Its tensor shows elements of its first operand: who writes to one of them writes to both.
    pub view: bool,
    pub origin: Origin,
    /// In how many bodies of loops and branches, one in another, it was recorded: they are parts of ops, and have no values.
    pub depth: u8,
    pub placement: Placement,
    /// Scratch of the cut in progress: the node's number in it, valid where `mark` is the cut's.
    pub pos: u32,
    pub mark: u32,
}

impl Node {
    pub fn data(&self) -> Option<&Arc<DeviceData>> {
        match &self.payload {
            Payload::Data(d) => Some(d),
            _ => None,
        }
    }

    pub fn value(&self) -> Option<&Arc<DeviceData>> {
        match &self.payload {
            Payload::Data(d) | Payload::Cached(d) => Some(d),
            _ => None,
        }
    }

    pub fn buckets(&self) -> &[Bucket] {
        self.buckets.as_deref().unwrap_or_default()
    }

    pub fn set_buckets(&mut self, buckets: Vec<Bucket>) {
        self.buckets = (!buckets.is_empty()).then(|| buckets.into_boxed_slice());
    }

    /// The type that tensors of this node show.
    pub fn shown(&self) -> Type {
        let mut ty = Type::clone(&self.ty);
        self.buckets().iter().for_each(|b| ty.shape[b.dim] = b.size);
        ty
    }

    /// The type as text; `20≤32` is a size of 20 in a bucket of 32.
    pub fn described(&self) -> String {
        let size = |(d, n): (usize, &usize)| match self.buckets().iter().find(|b| b.dim == d) {
            Some(b) => format!("{}≤{n}", b.size),
            None => n.to_string(),
        };
        let sizes: Vec<String> = self.ty.shape.iter().enumerate().map(size).collect();
        format!("{}[{}]", self.ty.dtype, sizes.join(","))
    }

    /// Whether a variable holds it, so that a barrier gives it its value.
    pub fn is_wanted(&self) -> bool {
        self.handles > 0 && self.depth == 0 && !self.op.several
    }

    /// Whether it is one of the later values of a tensor that is changed in place.
    pub fn is_changed(&self) -> bool {
        self.lineage != self.seq
    }

    /// Whether the gradient tape still needs this node's operands.
    pub fn on_tape(&self) -> bool {
        self.flags & REQUIRES_GRAD != 0 && self.flags & (TAPE_FREED | LEAF) == 0
    }
}

/// A tensor, which this floor knows nothing of.
pub type Owner = dyn Any + Send + Sync;

#[derive(Default)]
pub struct Graph {
    nodes: Vec<Node>,
    free: Vec<NodeId>,
    seq: u64,
    /// Nodes that a barrier must look at, in creation order; entries of freed or finished nodes are skipped.
    pub pending: Vec<(NodeId, u64)>,
    pub(super) mark: u32,
    /// Tensors that gradients accumulate in, by their node.
    pub owners: HashMap<NodeId, Weak<Owner>>,
    /// Values that the tape or pending ops hold, of tensors that have been written to since.
    pub writes: HashMap<NodeId, Write>,
    /// Nodes to free; kept to reuse its memory.
    doomed: Vec<NodeId>,
    pub created: u64,
    pub destroyed: u64,
    pub healing: Healing,
    /// Values of freed nodes, until the lock is given back.
    gone: Vec<Arc<DeviceData>>,
    /// What the host kept with freed nodes, which may hold tensors.
    kept: Vec<Box<[Attr]>>,
    /// Something is on another device than the first.
    several: bool,
    /// Something is on a mesh.
    meshes: bool,
}

/// The arena, locked. Nothing that can panic, block or call user code runs while it is held: what nothing refers to any more
/// is dropped behind the lock, since the last handle of a buffer calls the plugin.
pub struct Locked(Option<MutexGuard<'static, Graph>>);

impl std::ops::Deref for Locked {
    type Target = Graph;
    fn deref(&self) -> &Graph {
        self.0.as_ref().expect("held until it is dropped")
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Graph {
        self.0.as_mut().expect("held until it is dropped")
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Mostly there is nothing.
        if !self.gone.is_empty() || !self.kept.is_empty() {
            let gone = (std::mem::take(&mut self.gone), std::mem::take(&mut self.kept));
            drop(self.0.take());
            drop(gone);
        }
    }
}

pub fn graph() -> Locked {
    static GRAPH: LazyLock<Mutex<Graph>> = LazyLock::new(Mutex::default);
    let arena: &'static Mutex<Graph> = if is_aside() { &SCRATCH } else { &GRAPH };
    Locked(Some(arena.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// What is recorded on trial.
static SCRATCH: LazyLock<Mutex<Graph>> = LazyLock::new(Mutex::default);

thread_local! {
    static ASIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether any thread records on trial: a look at it costs less than one at this thread's.
static ANY_ASIDE: AtomicBool = AtomicBool::new(false);

/// Whether this thread records on trial.
pub fn is_aside() -> bool {
    ANY_ASIDE.load(Ordering::Relaxed) && ASIDE.with(Cell::get)
}

/// Runs `f` with an empty graph in place of the session's, on this thread: what it records is gone afterwards and was never
/// in the session's graph. No tensor may come out of it or go into it.
pub fn aside<R>(f: impl FnOnce() -> R) -> R {
    static TURN: Mutex<()> = Mutex::new(());
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            let scratch = std::mem::take(&mut *graph());
            ASIDE.with(|a| a.set(false));
            ANY_ASIDE.store(false, Ordering::Relaxed);
            drop(scratch);
        }
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    ASIDE.with(|a| a.set(true));
    ANY_ASIDE.store(true, Ordering::Relaxed);
    let _back = Back;
    f()
}

impl Graph {
    /// The number of the node that was traced last.
    pub fn last_seq(&self) -> u64 {
        self.seq
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    /// Adds a node with no reference yet, on the device of its operands; each of them gains one.
    pub fn push(
        &mut self,
        op: &'static OpDef,
        inputs: SmallVec<[NodeId; 4]>,
        attrs: Box<[Attr]>,
        ty: TypeRef,
        payload: Payload,
        at: &'static Location<'static>,
    ) -> NodeId {
        let (mut placement, mut depth) = (Placement::Anywhere, 0);
        for &i in &inputs {
            let n = &mut self.nodes[i as usize];
            n.refs += 1;
            depth = n.depth.max(depth);
            placement = placement.meet(n.placement);
        }
        if let Some(rank) = rank() {
            // Whatever it is made of: what is from outside is copied there.
            placement = Placement::Device(rank.device);
            self.several = true;
        }
        self.seq += 1;
        let pending = matches!(payload, Payload::Pending);
        let node = Node {
            op,
            inputs,
            attrs,
            ty,
            buckets: None,
            payload,
            at,
            statement: crate::sys::statement(),
            seq: self.seq,
            lineage: self.seq,
            refs: 0,
            handles: 0,
            flags: 0,
            view: false,
            origin: Origin::Op,
            depth,
            placement,
            pos: 0,
            mark: 0,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as NodeId
            }
        };
        if pending {
            self.pending.push((id, self.seq));
        }
        id
    }

    /// Puts a node somewhere.
    pub fn place(&mut self, id: NodeId, placement: Placement) {
        self.nodes[id as usize].placement = placement;
        self.several |= !placement.is_default();
        self.meshes |= placement.home() >= mesh::FIRST;
    }

    /// Whether anything is on another device than the first.
    pub fn on_several_devices(&self) -> bool {
        self.several
    }

    /// Whether nodes are on more than one device. Asked for every op, so that it costs nothing where there is but one.
    pub fn apart(&self, nodes: &[NodeId]) -> bool {
        if !self.several {
            return false;
        }
        if let Some(rank) = rank() {
            // A value is copied to where it is wanted.
            let foreign = |n: &Node| n.placement != Placement::Device(rank.device) && n.value().is_none();
            return nodes.iter().map(|&id| self.node(id)).any(|n| n.placement != Placement::Anywhere && foreign(n));
        }
        let mut all = Placement::Anywhere;
        nodes.iter().map(|&id| self.node(id).placement).any(|p| {
            let apart = !all.together(p);
            all = all.meet(p);
            apart
        })
    }

    /// Whether anything is on a mesh.
    pub fn has_meshes(&self) -> bool {
        self.meshes
    }

    /// A tensor now refers to the node.
    pub fn hold(&mut self, id: NodeId) {
        let n = &mut self.nodes[id as usize];
        n.refs += 1;
        n.handles += 1;
        self.created += 1;
    }

    /// A tensor no longer refers to the node.
    pub fn release(&mut self, id: NodeId) {
        self.nodes[id as usize].handles -= 1;
        self.destroyed += 1;
        self.unref(id);
    }

    /// As [`Graph::release`], since another value was put in the tensor's place.
    pub fn release_written(&mut self, id: NodeId, write: Write) {
        self.nodes[id as usize].refs += 1;
        self.release(id);
        let n = &mut self.nodes[id as usize];
        // A value that another tensor has as well is still there.
        if n.refs > 1 && n.handles == 0 {
            n.flags |= OVERWRITTEN;
            let seq = self.last_seq();
            self.writes.insert(id, Write { seq, ..write });
        }
        self.unref(id);
    }

    /// What has written to the tensor of a node, or to one that it shows elements of.
    pub fn written(&self, mut id: NodeId) -> Option<&Write> {
        loop {
            if let Some(write) = self.writes.get(&id) {
                return Some(write);
            }
            let n = self.node(id);
            id = *n.inputs.first().filter(|_| n.view)?;
        }
    }

    /// Frees a node that nothing came to refer to.
    pub fn discard(&mut self, id: NodeId) {
        self.nodes[id as usize].refs += 1;
        self.unref(id);
    }

    /// One reference less; frees what nothing refers to any more.
    pub fn unref(&mut self, id: NodeId) {
        let mut doomed = std::mem::take(&mut self.doomed);
        doomed.push(id);
        while let Some(id) = doomed.pop() {
            let n = &mut self.nodes[id as usize];
            n.refs -= 1;
            if n.refs > 0 {
                continue;
            }
            n.seq = 0;
            if let Payload::Data(d) | Payload::Cached(d) = std::mem::take(&mut n.payload) {
                self.gone.push(d);
            }
            match n.op.several {
                true => self.kept.push(std::mem::take(&mut n.attrs)),
                false => n.attrs = Box::default(),
            }
            n.buckets = None;
            doomed.extend_from_slice(&n.inputs);
            n.inputs = SmallVec::new();
            if n.flags & LEAF != 0 {
                self.owners.remove(&id);
            }
            if n.flags & OVERWRITTEN != 0 {
                self.writes.remove(&id);
            }
            self.free.push(id);
        }
        self.doomed = doomed;
        self.compact();
    }

    // Without barriers (a session that only reads) freed nodes would pile up in the pending list.
    fn compact(&mut self) {
        if self.pending.len() > 1024 && self.pending.len() > 4 * self.live() {
            let nodes = &self.nodes;
            self.pending.retain(|&(id, seq)| nodes[id as usize].seq == seq);
        }
    }

    /// Gives the node its value and, unless the tape wants them, drops its operands.
    pub fn finish(&mut self, id: NodeId, data: Arc<DeviceData>) {
        let n = &mut self.nodes[id as usize];
        if let Payload::Data(d) | Payload::Cached(d) = std::mem::replace(&mut n.payload, Payload::Data(data)) {
            self.gone.push(d);
        }
        if !n.on_tape() {
            self.cut_inputs(id);
        }
    }

    /// Gives nodes the values that reads have computed, for good.
    pub fn take_as_read(&mut self, ids: &[NodeId]) {
        for &id in ids {
            if let Some(value) = self.node(id).value().cloned() {
                self.finish(id, value);
            }
        }
        self.prune_pending();
    }

    /// Forgets what a read has computed: it is computed again.
    pub fn uncache(&mut self, id: NodeId) {
        let n = &mut self.nodes[id as usize];
        if let Payload::Cached(d) = &mut n.payload {
            self.gone.push(d.clone());
            n.payload = Payload::Pending;
        }
    }

    /// Drops a finished node's operands.
    pub fn cut_inputs(&mut self, id: NodeId) {
        for i in std::mem::take(&mut self.nodes[id as usize].inputs) {
            self.unref(i);
        }
    }

    /// Forgets pending entries whose nodes are gone or have their value.
    pub fn prune_pending(&mut self) {
        let nodes = &self.nodes;
        self.pending.retain(|&(id, seq)| {
            let n = &nodes[id as usize];
            n.seq == seq && !matches!(n.payload, Payload::Data(_))
        });
    }

    /// All nodes that are there, whatever their state.
    pub fn alive(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.nodes.len() as NodeId).filter(|&id| self.nodes[id as usize].seq != 0)
    }

    /// Nodes alive.
    pub fn live(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Pending nodes alive, in creation order.
    pub fn pending_nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        let alive = |&&(id, seq): &&(NodeId, u64)| {
            let n = &self.nodes[id as usize];
            n.seq == seq && matches!(n.payload, Payload::Pending | Payload::Cached(_))
        };
        self.pending.iter().filter(alive).map(|&(id, _)| id)
    }
}
