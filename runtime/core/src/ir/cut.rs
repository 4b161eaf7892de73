//! Cutting the graph: which nodes a sync runs, what it feeds in, and the structured key that identifies the program.
use super::attr::Attr;
use super::graph::{Graph, Node, NodeId, Origin, Payload, REQUIRES_GRAD, graph};
use super::heal::Form;
use super::input::{Input, LEAF_BIT};
use super::op::OpDef;
use super::placement::Placement;
use crate::device::DeviceData;
use crate::mesh::{Mesh, Sharding};
use crate::options::{Options, options};
use crate::text::{Source, sources};
use crate::ty::{DType, Shape, Type, TypeRef};
use smallvec::{SmallVec, smallvec};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Which values of earlier reads a cut may start from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scope {
    /// A barrier: values cached by reads are computed again, so that reading never changes the step's program; buffers
    /// that nothing else holds are donated.
    Barrier,
    /// One device's part of a barrier over several: the same, but what other parts may start from, too, is not donated.
    Part,
    /// A barrier that takes what reads have computed as it is, and starts from it.
    Rest,
    /// A read: starts from whatever value is there.
    Read,
}

/// What feeds a parameter of the program.
#[derive(Clone, Debug)]
pub enum Leaf {
    Data {
        data: Arc<DeviceData>,
        donate: bool,
    },
    Scalar(u64),
    /// An attribute of the node that healing made a parameter.
    Lifted(Lifted),
}

/// A number or a vector of them, in bits as those of [`Payload::Scalar`].
#[derive(Clone, Debug)]
pub struct Lifted {
    ty: TypeRef,
    bits: Box<[u64]>,
}

impl Lifted {
    /// `value` as an operand of an op that gives `dtype`.
    fn new(value: &Attr, dtype: DType) -> Lifted {
        let (ints, floats) =
            (|v: &[i64]| v.iter().map(|&i| i as u64).collect(), |v: &[f64]| v.iter().map(|f| f.to_bits()).collect());
        let vector = |n: usize| Shape::new(&[n]);
        let (dtype, shape, bits) = match value {
            Attr::Int(v) => (DType::I64, Shape::default(), ints(&[*v])),
            Attr::Ints(v) => (DType::I64, vector(v.len()), ints(v)),
            Attr::Float(v) => (dtype, Shape::default(), floats(&[*v])),
            Attr::Floats(v) => (dtype, vector(v.len()), floats(v)),
            Attr::Bool(_) | Attr::DType(_) | Attr::Name(_) | Attr::Region(_) | Attr::Kept(_) => {
                unreachable!("no number: {value}")
            }
        };
        Lifted { ty: Type::new(dtype, shape).into(), bits }
    }
}

impl Leaf {
    /// The type of the parameter; `node` is the leaf's.
    pub fn ty(&self, node: &Node) -> TypeRef {
        match self {
            Leaf::Lifted(l) => l.ty,
            _ => node.ty,
        }
    }

    /// How data lie on a mesh, or will when they have been copied to it.
    pub fn sharding(&self, mesh: Mesh) -> Option<Sharding> {
        match self {
            Leaf::Data { data, .. } => Some(data.sharding_on(mesh)),
            Leaf::Scalar(_) | Leaf::Lifted(_) => None,
        }
    }

    /// What travels in a pack of scalars.
    pub fn bits(&self) -> Option<&[u64]> {
        match self {
            Leaf::Scalar(bits) => Some(std::slice::from_ref(bits)),
            Leaf::Lifted(l) => Some(&l.bits),
            Leaf::Data { .. } => None,
        }
    }
}

/// One op of the program.
#[derive(Clone)]
pub struct Step {
    pub op: &'static OpDef,
    pub attrs: Box<[Attr]>,
    pub ty: TypeRef,
    pub inputs: SmallVec<[Input; 2]>,
    pub at: &'static Source,
    /// The statement of the cell that ran when it was traced.
    pub statement: Option<&'static Source>,
    /// Counts nodes as they are traced.
    pub seq: u64,
    /// What recorded it.
    pub origin: Origin,
    /// Gradients flow through it: it was recorded for them.
    pub recorded: bool,
}

/// Where in the last word of the work the placement begins.
const PLACEMENT: u32 = 8;

/// The identity of a program: compared in full at a hit, hashed for the look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The last ones are those of the donations.
    pub words: Vec<u64>,
    /// How many words say what is computed; the last of them has the placement above [`PLACEMENT`].
    work: usize,
    /// How many words before that last one say how data lie on a mesh.
    laid: usize,
    pub hash: u128,
}

impl Key {
    pub fn new(words: Vec<u64>, donations: Vec<u64>) -> Key {
        Key::laid(words, 0, donations)
    }

    fn laid(mut words: Vec<u64>, laid: usize, donations: Vec<u64>) -> Key {
        let work = words.len();
        words.extend(donations);
        let hash = xxhash_rust::xxh3::xxh3_128(bytemuck::cast_slice(&words));
        Key { words, work, laid, hash }
    }

    /// The hash that the same program has for the first device: tells programs apart by all but their placement, and how
    /// their data lie on a mesh.
    pub fn anywhere(&self) -> u128 {
        let mut words = self.words.clone();
        words[self.work - 1] &= (1 << PLACEMENT) - 1;
        words.drain(self.work - 1 - self.laid..self.work - 1);
        xxhash_rust::xxh3::xxh3_128(bytemuck::cast_slice(&words))
    }

    /// Which leaves are donated, 64 to a word.
    fn donations(&self) -> &[u64] {
        &self.words[self.work..]
    }

    pub fn donates(&self, leaf: usize) -> bool {
        self.donations()[leaf / 64] >> (leaf % 64) & 1 == 1
    }

    /// The leaves that are donated.
    pub fn donated(&self) -> impl Iterator<Item = usize> + '_ {
        (0..64 * self.donations().len()).filter(|&leaf| self.donates(leaf))
    }

    /// The key of the same work that donates these leaves.
    fn donating(&self, leaves: impl Iterator<Item = bool>) -> Key {
        let mut donations = vec![0u64; self.donations().len()];
        leaves.enumerate().for_each(|(i, donated)| donations[i / 64] |= (donated as u64) << (i % 64));
        Key::laid(self.words[..self.work].to_vec(), self.laid, donations)
    }

    /// Whether both compute the same and this one gives as many buffers away at least: then its program can run for the
    /// other, which keeps some of them.
    pub fn gives_more_than(&self, other: &Key) -> bool {
        let count = |k: &Key| k.donations().iter().map(|w| w.count_ones()).sum::<u32>();
        self.words[..self.work] == other.words[..other.work] && count(self) >= count(other).max(1)
    }
}

/// A part of the graph, ready to be looked up and, on a miss, lowered.
pub struct Cut {
    pub nodes: Vec<NodeId>,
    pub leaves: Vec<(NodeId, Leaf)>,
    /// Nodes that healing gave another form, by their positions in `nodes`, and the first leaf that carries a value.
    lifted: HashMap<u32, (Form, u32)>,
    pub roots: Vec<NodeId>,
    pub root_types: Vec<TypeRef>,
    /// As it was when the graph was cut: a part of the key.
    pub options: Options,
    /// Where it runs: a part of the key, too.
    pub placement: Placement,
    pub key: Key,
    /// Where ranks run it: the cuts of all but the first, in their order.
    pub ranks: Vec<Cut>,
}

impl Cut {
    /// What feeds a program that is no part of the graph.
    pub fn feeding(leaves: Vec<(NodeId, Leaf)>, root_types: Vec<TypeRef>, options: Options) -> Cut {
        let key = Key::new(vec![], vec![]);
        let (nodes, lifted, roots, placement) = (vec![], HashMap::new(), vec![], Placement::Anywhere);
        Cut { nodes, leaves, lifted, roots, root_types, options, placement, key, ranks: vec![] }
    }

    /// What the ranks of a mesh have cut, each on its device, as one program. Buffers are given away where all of them give
    /// theirs.
    ///
    /// Errors: the first that computes something else than rank 0.
    pub fn of_ranks(mut cuts: Vec<Cut>, mesh: Mesh) -> Result<Cut, (Vec<Cut>, usize)> {
        let end = cuts[0].key.work - 1;
        let same = |c: &Cut| c.key.work == end + 1 && c.key.words[..end] == cuts[0].key.words[..end];
        if let Some(other) = cuts.iter().position(|c| !same(c)) {
            return Err((cuts, other));
        }
        for leaf in 0..cuts[0].leaves.len() {
            let gives = |c: &Cut| matches!(c.leaves[leaf].1, Leaf::Data { donate: true, .. });
            let all = cuts.iter().all(gives);
            for cut in &mut cuts {
                if let Leaf::Data { donate, .. } = &mut cut.leaves[leaf].1 {
                    *donate = all;
                }
            }
        }
        let mut first = cuts.remove(0);
        first.placement = Placement::Device(mesh.place());
        let mut words = first.key.words[..end].to_vec();
        words.push(first.options.word() | first.placement.word() << PLACEMENT);
        let none = Key::new(words, vec![0; first.leaves.len().div_ceil(64)]);
        let donated = first.leaves.iter().map(|(_, leaf)| matches!(leaf, Leaf::Data { donate: true, .. }));
        first.key = none.donating(donated);
        first.ranks = cuts;
        Ok(first)
    }

    /// Those of all ranks, in order.
    pub fn all_roots(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.roots.iter().chain(self.ranks.iter().flat_map(|c| &c.roots)).copied()
    }
}

/// Ends the hold on the nodes, however the sync ended; so a cut must not be dropped while the arena is locked.
impl Drop for Cut {
    fn drop(&mut self) {
        let mut g = graph();
        self.roots.iter().for_each(|&r| g.unref(r));
    }
}

impl Graph {
    /// The roots of a barrier: every live tensor that has no value yet, in creation order. What is in the body of a loop has
    /// none by itself, and of an op with several results each stands for itself.
    pub fn barrier_roots(&self) -> Vec<NodeId> {
        self.pending_nodes().filter(|&id| self.node(id).is_wanted()).collect()
    }

    /// The roots of each device that has some, by device.
    pub fn by_device(&self, roots: Vec<NodeId>) -> SmallVec<[Vec<NodeId>; 1]> {
        let of = |r: &NodeId| self.node(*r).placement.home();
        if roots.windows(2).all(|w| of(&w[0]) == of(&w[1])) {
            return if roots.is_empty() { SmallVec::new() } else { smallvec![roots] };
        }
        let mut all: BTreeMap<u8, Vec<NodeId>> = BTreeMap::new();
        roots.into_iter().for_each(|r| all.entry(of(&r)).or_default().push(r));
        all.into_values().collect()
    }

    /// Cuts out what `roots` need. `roots` are of one device, pending and in creation order. The cut holds its roots, and so all of its
    /// nodes, as long as it lives.
    pub fn cut(&mut self, roots: Vec<NodeId>, scope: Scope) -> Cut {
        self.mark += 1;
        let mark = self.mark;
        for &r in &roots {
            self.node_mut(r).mark = mark;
            self.node_mut(r).refs += 1;
        }
        let nodes = match scope {
            Scope::Barrier | Scope::Part => self.reach_backwards(mark),
            Scope::Read | Scope::Rest => self.reach_from(&roots, mark),
        };
        let mut leaves: Vec<(NodeId, Leaf)> = Vec::new();
        let mut lifted = HashMap::new();
        let mut words: Vec<u64> = Vec::with_capacity(nodes.len() * 4 + 64);
        for (i, &id) in nodes.iter().enumerate() {
            self.node_mut(id).pos = i as u32;
            let n = self.node(id);
            let form = if self.healing.is_idle() { None } else { self.healing.of(n.op, &n.attrs, n.ty, n.at) };
            let (op, attrs) = form.as_ref().map_or((n.op, &n.attrs), |h| (h.op, &h.attrs));
            words.push(op.id as u64 | (n.inputs.len() as u64) << 32 | (attrs.len() as u64) << 48);
            attrs.iter().for_each(|a| a.words(&mut words));
            let mut pair = 0u64;
            for k in 0..n.inputs.len() {
                let input = self.node(id).inputs[k];
                let word = match self.node(input).mark == mark {
                    true => self.node(input).pos,
                    false => {
                        let leaf = self.leaf(input);
                        let n = self.node_mut(input);
                        n.mark = mark;
                        n.pos = LEAF_BIT | leaves.len() as u32;
                        let pos = n.pos;
                        leaves.push((input, leaf));
                        pos
                    }
                };
                if k % 2 == 0 {
                    pair = word as u64;
                } else {
                    words.push(pair | (word as u64) << 32);
                }
            }
            if self.node(id).inputs.len() % 2 == 1 {
                words.push(pair);
            }
            if let Some(form) = form {
                let first = leaves.len() as u32;
                for (value, dtype) in &form.values {
                    words.push((LEAF_BIT | leaves.len() as u32) as u64);
                    leaves.push((id, Leaf::Lifted(Lifted::new(value, *dtype))));
                }
                lifted.insert(i as u32, (form, first));
            }
        }
        if scope != Scope::Read {
            self.donations(&nodes, &roots, &mut leaves, scope == Scope::Part);
        }
        words.push(u64::MAX);
        for (id, leaf) in &leaves {
            let ty = leaf.ty(self.node(*id));
            let kind = match leaf {
                Leaf::Scalar(_) | Leaf::Lifted(_) => 1,
                Leaf::Data { .. } => 2,
            };
            words.push(kind | (ty.dtype as u64) << 8 | (ty.shape.len() as u64) << 16);
            words.extend(ty.shape.iter().map(|&d| d as u64));
        }
        words.push(u64::MAX);
        words.extend(roots.iter().map(|&r| self.node(r).pos as u64));
        let options = options();
        let placement = roots.iter().map(|&r| self.node(r).placement).fold(Placement::Anywhere, Placement::meet);
        let laid = placement.mesh().map_or(0, |mesh| {
            let before = words.len();
            for (i, (_, leaf)) in leaves.iter().enumerate() {
                if let Some(sharding) = leaf.sharding(mesh).filter(|s| !s.is_replicated()) {
                    words.push(i as u64);
                    sharding.words(&mut words);
                }
            }
            words.len() - before
        });
        words.push(options.word() | placement.word() << PLACEMENT);
        let mut donations = vec![0u64; leaves.len().div_ceil(64)];
        for (i, (_, leaf)) in leaves.iter().enumerate() {
            donations[i / 64] |= (matches!(leaf, Leaf::Data { donate: true, .. }) as u64) << (i % 64);
        }
        let root_types = roots.iter().map(|&r| self.node(r).ty).collect();
        let key = Key::laid(words, laid, donations);
        Cut { nodes, leaves, lifted, roots, root_types, options, placement, key, ranks: vec![] }
    }

    /// The pending ops that these need, themselves included.
    pub fn needed_by(&mut self, ids: &[NodeId]) -> Vec<NodeId> {
        self.mark += 1;
        let mark = self.mark;
        ids.iter().for_each(|&id| self.node_mut(id).mark = mark);
        self.reach_from(ids, mark)
    }

    /// The ops that a cut of that scope runs for these.
    pub fn run_for(&mut self, ids: &[NodeId], scope: Scope) -> Vec<NodeId> {
        match scope {
            Scope::Barrier | Scope::Part => self.behind(ids),
            Scope::Rest | Scope::Read => self.needed_by(ids),
        }
    }

    /// The ops that values were computed by, their own included, also where a read has been.
    pub(super) fn behind(&mut self, ids: &[NodeId]) -> Vec<NodeId> {
        self.mark += 1;
        let mark = self.mark;
        ids.iter().for_each(|&id| self.node_mut(id).mark = mark);
        self.reach_through(ids, mark, |payload| matches!(payload, Payload::Pending | Payload::Cached(_)))
    }

    // What a node outside the cut feeds in.
    fn leaf(&self, id: NodeId) -> Leaf {
        match &self.node(id).payload {
            Payload::Scalar(bits) => Leaf::Scalar(*bits),
            Payload::Data(d) | Payload::Cached(d) => Leaf::Data { data: d.clone(), donate: false },
            Payload::Pending => unreachable!("a pending operand is part of the cut"),
        }
    }

    // One pass over the pending list from its end: every consumer comes after what it consumes.
    fn reach_backwards(&mut self, mark: u32) -> Vec<NodeId> {
        let pending = std::mem::take(&mut self.pending);
        let mut nodes = Vec::with_capacity(pending.len());
        for &(id, seq) in pending.iter().rev() {
            let n = self.node(id);
            if n.seq != seq || n.mark != mark {
                continue;
            }
            nodes.push(id);
            for k in 0..n.inputs.len() {
                let input = self.node(id).inputs[k];
                let n = self.node_mut(input);
                if matches!(n.payload, Payload::Pending | Payload::Cached(_)) {
                    n.mark = mark;
                }
            }
        }
        nodes.reverse();
        self.pending = pending;
        nodes
    }

    // From the roots alone, so that a read costs what it reads and not what is pending.
    fn reach_from(&mut self, roots: &[NodeId], mark: u32) -> Vec<NodeId> {
        self.reach_through(roots, mark, |payload| matches!(payload, Payload::Pending))
    }

    fn reach_through(&mut self, roots: &[NodeId], mark: u32, through: impl Fn(&Payload) -> bool) -> Vec<NodeId> {
        let mut nodes = roots.to_vec();
        let mut next = 0;
        while next < nodes.len() {
            let id = nodes[next];
            next += 1;
            for k in 0..self.node(id).inputs.len() {
                let input = self.node(id).inputs[k];
                let n = self.node_mut(input);
                if n.mark != mark && through(&n.payload) {
                    n.mark = mark;
                    nodes.push(input);
                }
            }
        }
        nodes.sort_unstable_by_key(|&id| self.node(id).seq);
        nodes
    }

    // A buffer is donated when all that refers to it are nodes of this cut that will let go of it.
    fn donations(&self, nodes: &[NodeId], roots: &[NodeId], leaves: &mut [(NodeId, Leaf)], part: bool) {
        // A node stays with its operands when something outside the cut refers to it, or the tape wants them.
        let mut edges = vec![0u32; nodes.len()];
        for input in nodes.iter().flat_map(|&id| &self.node(id).inputs) {
            let pos = self.node(*input).pos;
            if pos & LEAF_BIT == 0 {
                edges[pos as usize] += 1;
            }
        }
        let mut kept: Vec<bool> = nodes.iter().zip(&edges).map(|(&id, &e)| self.node(id).refs != e).collect();
        for &r in roots {
            kept[self.node(r).pos as usize] = self.node(r).on_tape();
        }
        let mut uses = vec![0u32; leaves.len()];
        for (i, &id) in nodes.iter().enumerate().rev() {
            // An operand of a kept node is kept, too; a node that is no root goes when its consumers let go.
            for &input in &self.node(id).inputs {
                let pos = self.node(input).pos;
                if pos & LEAF_BIT == 0 {
                    kept[pos as usize] |= kept[i];
                } else if !kept[i] {
                    uses[(pos & !LEAF_BIT) as usize] += 1;
                }
            }
        }
        // Only what a result can take the place of: otherwise a program would be another one for nothing.
        let mut wanting: Vec<Option<TypeRef>> = roots.iter().map(|&r| Some(self.node(r).ty)).collect();
        for (i, (id, leaf)) in leaves.iter_mut().enumerate() {
            if let Leaf::Data { data, donate } = leaf {
                let n = self.node(*id);
                // two owners: the node, and this cut
                // Padded or of the bucket's size already, data make one program: neither is donated.
                let free =
                    n.buckets().is_empty() && n.handles == 0 && n.refs == uses[i] && Arc::strong_count(data) == 2;
                // A root that is on no device may be computed in the other parts as well, and one of the first device in
                // that of a mesh.
                let everywhere = n.placement == Placement::Anywhere || self.has_meshes() && n.placement.is_default();
                let free = free && !(part && everywhere);
                let place = wanting.iter_mut().find(|w| free && **w == Some(n.ty));
                *donate = place.is_some_and(|w| w.take().is_some());
            }
        }
    }

    /// The key that the same step has in its next round, as far as the graph tells: where it took up data of the host's that
    /// something else holds, and no tensor stands for them any more, a result has taken their place, which nothing holds.
    pub fn next_key(&self, cut: &Cut) -> Key {
        let donated = |leaf: &Leaf| matches!(leaf, Leaf::Data { donate: true, .. });
        let mut wanting: Vec<TypeRef> = cut.roots.iter().map(|&r| self.node(r).ty).collect();
        let mut take = |ty: TypeRef| match wanting.iter().position(|w| *w == ty) {
            Some(i) => wanting.swap_remove(i) == ty,
            None => false,
        };
        cut.leaves.iter().filter(|(_, leaf)| donated(leaf)).for_each(|(id, _)| {
            take(self.node(*id).ty);
        });
        let mut next = |(id, leaf): &(NodeId, Leaf)| {
            let n = self.node(*id);
            let replaced = |leaf: &Leaf| match leaf {
                Leaf::Data { data, .. } => !data.computed && n.handles == 0,
                _ => false,
            };
            donated(leaf) || replaced(leaf) && n.buckets().is_empty() && take(n.ty)
        };
        let donations: Vec<bool> = cut.leaves.iter().map(&mut next).collect();
        cut.key.donating(donations.into_iter())
    }

    /// The steps of a cut, copied out of the arena for lowering: only a miss pays for it.
    pub fn steps(&self, cut: &Cut) -> Vec<Step> {
        let leaf_at: HashMap<NodeId, u32> = cut.leaves.iter().enumerate().map(|(i, (id, _))| (*id, i as u32)).collect();
        let step_at: HashMap<NodeId, u32> = cut.nodes.iter().enumerate().map(|(i, id)| (*id, i as u32)).collect();
        let mut sources = sources();
        let step = |(i, &id): (usize, &NodeId)| {
            let n = self.node(id);
            let (at, statement) = (sources.of(n.at), n.statement.map(|s| sources.of(s)));
            let operand = |i: &NodeId| match step_at.get(i) {
                Some(&s) => Input::Step(s),
                None => Input::Leaf(leaf_at[i]),
            };
            let mut inputs: SmallVec<[Input; 2]> = n.inputs.iter().map(operand).collect();
            let (mut op, mut attrs) = (n.op, n.attrs.clone());
            if let Some((form, first)) = cut.lifted.get(&(i as u32)) {
                inputs.extend((0..form.values.len() as u32).map(|k| Input::Leaf(first + k)));
                (op, attrs) = (form.op, form.attrs.clone());
            }
            let recorded = n.flags & REQUIRES_GRAD != 0;
            Step { op, attrs, ty: n.ty, inputs, at, statement, seq: n.seq, origin: n.origin, recorded }
        };
        cut.nodes.iter().enumerate().map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::Location;

    static OP: OpDef = OpDef::new("op", |_| unreachable!("never traced"), |_| unreachable!("never lowered"));

    #[test]
    fn a_cut_lets_go_of_its_nodes_when_a_sync_unwinds() {
        let id = {
            let (mut g, ty) = (graph(), TypeRef::scalar(DType::F32));
            let id = g.push(&OP, SmallVec::new(), Box::default(), ty, Payload::Pending, Location::caller());
            g.hold(id);
            id
        };
        let refs = || graph().node(id).refs;
        let before = refs();
        let interrupted = std::panic::catch_unwind(|| {
            let _cut = graph().cut(vec![id], Scope::Read);
            assert_eq!(refs(), before + 1);
            std::panic::resume_unwind(Box::new("an interrupt"));
        });
        assert!(interrupted.is_err());
        assert_eq!(refs(), before);
    }
}
