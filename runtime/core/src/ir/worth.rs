//! What takes work. A read keeps, besides what it was asked for, the values on its way that variables hold and that took work, so that
//! whatever is read next starts from them; and a barrier that has nothing else to do than what is cheap takes them as they are.
use super::graph::{Graph, Node, NodeId};
use super::op::Kind;
use std::collections::{HashMap, HashSet};

/// Products from which on a value is kept: what takes less is computed again sooner than another program is compiled.
const MUCH: u64 = 1 << 16;

/// Ops behind a value from which on it took work, however cheap they are: XLA would take long to compile them again.
const DEEP: u64 = 100;

/// Products for each element from which on it is kept: reading it back must be less than computing it, in which XLA fuses all but
/// products and loops.
const EACH: u64 = 16;

#[derive(Clone, Copy)]
struct Work {
    products: u64,
    ops: u64,
}

impl Work {
    fn is_much(self) -> bool {
        self.products >= MUCH || self.ops >= DEEP
    }
}

impl Graph {
    /// The pending nodes on the way to `roots` that are worth their place: of tensors that variables hold, and that no step changes.
    pub fn worth_keeping(&mut self, roots: &[NodeId]) -> Vec<NodeId> {
        let held = |n: &Node| n.is_wanted() && !n.is_changed();
        let needed = self.needed_by(roots);
        if !needed.iter().any(|id| held(self.node(*id)) && !roots.contains(id)) {
            return vec![];
        }
        let long = |n: &Node, work: u64| work >= MUCH && work >= EACH.saturating_mul(n.ty.shape.numel() as u64);
        let worth = |n: &Node, work: Work| long(n, work.products) || work.ops >= DEEP;
        let kept =
            |&(id, work): &(NodeId, Work)| held(self.node(id)) && worth(self.node(id), work) && !roots.contains(&id);
        needed.iter().copied().zip(self.work(&needed)).filter(kept).map(|(id, _)| id).collect()
    }

    /// Of a barrier's roots, those that it runs, and those that it takes as reads have computed them: all of these where nothing else
    /// is pending, and what took work where the rest is cheap and on the same device. Mostly none: what a step computes beside a value that was read has
    /// most of its work in common with it, and is the same program whether it was read or not.
    pub fn left_by_reads(&mut self, roots: Vec<NodeId>) -> (Vec<NodeId>, Vec<NodeId>) {
        let is_read = |r: &NodeId| self.node(*r).value().is_some();
        if !roots.iter().any(is_read) {
            return (roots, vec![]);
        }
        let (read, rest): (Vec<_>, Vec<_>) = roots.iter().partition(|r| is_read(r));
        if rest.is_empty() {
            return (rest, read);
        }
        let needed = self.needed_by(&rest);
        if self.work(&needed).iter().any(|work| work.is_much()) || self.by_device(roots.clone()).len() > 1 {
            return (roots, vec![]);
        }
        let behind = self.behind(&read);
        let took_work: HashSet<NodeId> =
            behind.iter().zip(self.work(&behind)).filter(|(_, work)| work.is_much()).map(|(&id, _)| id).collect();
        let takes = |r: &NodeId| read.contains(r) && took_work.contains(r);
        roots.into_iter().partition(|r| !takes(r))
    }

    /// The work behind each of the nodes, which are in creation order: at least so much, since what two operands have
    /// in common is counted once.
    fn work(&self, nodes: &[NodeId]) -> Vec<Work> {
        let mut work: HashMap<NodeId, Work> = HashMap::with_capacity(nodes.len());
        let one = |&id: &NodeId| {
            let n = self.node(id);
            let before = || n.inputs.iter().filter_map(|input| work.get(input));
            let products = before().map(|w| w.products).max().unwrap_or(0).saturating_add(self.products(n));
            let ops = before().map(|w| w.ops).max().unwrap_or(0) + 1;
            work.insert(id, Work { products, ops });
            Work { products, ops }
        };
        nodes.iter().map(one).collect()
    }

    /// How many products an op sums up, by the sizes alone: of a matrix product exactly, of a convolution too few.
    fn products(&self, n: &Node) -> u64 {
        match (n.op.kind, &n.inputs[..]) {
            (Kind::Control, _) => u64::MAX,
            (Kind::Contract, &[a, b, ..]) => {
                let size = |id: NodeId| self.node(id).ty.shape.numel() as f64;
                let out = n.ty.shape.numel() as f64;
                (out * (size(a) * size(b) / out.max(1.0)).sqrt()) as u64
            }
            _ => 0,
        }
    }
}
