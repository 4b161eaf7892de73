//! A cut graph as StableHLO, with what feeds it.
use super::checks::are_on;
use super::witness::LeafOrigin;
use crate::emit::Checked;
use crate::ir::{
    Cut, LEAF, Leaf, LeafType, Mark, NodeId, Params, REQUIRES_GRAD, Step, Writing, Written, graph, program,
};
use crate::options::Options;
use crate::text::Source;
use std::collections::HashMap;
use std::sync::Arc;

/// A cut as StableHLO, and how to feed it.
pub struct Lowered {
    pub text: String,
    /// Where the parts of the text are from, one for each step.
    pub marks: Vec<Mark>,
    pub checks: Vec<Checked>,
    /// Floating-point operations of one run, as written.
    pub flops: f64,
    pub params: Params,
    pub donated: usize,
    pub steps: Arc<[Step]>,
    pub leaves: Vec<LeafOrigin>,
    pub roots: Vec<u32>,
    /// Which device it is for, or the number of the mesh.
    pub device: u8,
}

pub(super) fn lower(cut: &Cut) -> Lowered {
    lower_for(cut, cut.options, are_on())
}

/// As [`lower`], with options of one's own.
pub(super) fn lower_for(cut: &Cut, options: Options, checked: bool) -> Lowered {
    let mesh = cut.placement.mesh();
    let split = mesh.filter(|m| !m.is_ranks());
    let (steps, leaves) = {
        let g = graph();
        let origin = |(id, leaf): &(NodeId, Leaf)| {
            let node = g.node(*id);
            let (donate, data) = match leaf {
                Leaf::Data { donate: true, .. } => (true, None),
                Leaf::Data { data, .. } => (false, Some(data.clone())),
                Leaf::Scalar(_) | Leaf::Lifted(_) => (false, None),
            };
            LeafOrigin {
                node: *id,
                op: node.op,
                ty: leaf.ty(node).get().clone(),
                scalar: leaf.bits().is_some(),
                donate,
                at: Source::of(node.at),
                statement: node.statement.map(Source::of),
                seq: node.seq,
                lineage: node.lineage,
                bucketed: !node.buckets().is_empty(),
                parameter: node.flags & REQUIRES_GRAD != 0 && node.flags & LEAF != 0,
                sharding: split.and_then(|mesh| leaf.sharding(mesh)),
                data,
            }
        };
        (g.steps(cut), cut.leaves.iter().map(origin).collect::<Vec<_>>())
    };
    let params = Params::lay_out(leaves.iter().map(|l| (&l.ty, l.scalar)));
    let at: HashMap<NodeId, u32> = cut.nodes.iter().enumerate().map(|(i, &n)| (n, i as u32)).collect();
    let roots: Vec<u32> = cut.roots.iter().map(|r| at[r]).collect();
    let leaf = |l: &LeafOrigin| LeafType {
        ty: l.ty.clone(),
        scalar: l.scalar,
        donate: l.donate,
        sharding: l.sharding.clone(),
    };
    let types: Vec<LeafType> = leaves.iter().map(leaf).collect();
    let Written { text, marks, checks, flops } =
        program(&steps, &types, &params, &roots, Writing { options, checked, mesh });
    let donated = leaves.iter().filter(|l| l.donate).count();
    let device = cut.placement.home();
    Lowered { text, marks, checks, flops, params, donated, steps: steps.into(), leaves, roots, device }
}
