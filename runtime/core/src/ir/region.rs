//! What closures recorded, taken out of the graph to be bodies of one op.
use super::body::{Body, BodyStep};
use super::graph::{Graph, LEAF, NodeId, Payload, REQUIRES_GRAD};
use super::input::{Input, LEAF_BIT};
use super::op::ARGUMENT;
use crate::text::sources;

/// The nodes of one closure, still in the graph.
pub struct RecordedBody<'a> {
    pub arguments: &'a [NodeId],
    pub results: &'a [NodeId],
    /// In how many bodies they were recorded, this one included, and how many nodes there had been when it began.
    pub depth: u8,
    pub since: u64,
    /// They are no body but a part of what is recorded: what is older, or has a value, is from outside.
    pub part: bool,
}

/// A tensor of another body: it has a value only there.
pub struct Elsewhere(pub NodeId);

impl Graph {
    /// Copies a body out of the graph. What it takes from outside is added to `captured`, each once.
    pub fn body(&mut self, of: &RecordedBody, captured: &mut Vec<NodeId>) -> Result<Body, Elsewhere> {
        self.mark += 1;
        let mark = self.mark;
        let own = of.arguments.len() as u32;
        let leaves = (0..).zip(of.arguments.iter().chain(captured.iter()));
        let numbered: Vec<(u32, NodeId)> = leaves.map(|(k, &id)| (k, id)).collect();
        for (k, id) in numbered {
            let n = self.node_mut(id);
            (n.mark, n.pos) = (mark, LEAF_BIT | k);
        }
        let mut nodes: Vec<NodeId> = Vec::new();
        let mut open: Vec<NodeId> = of.results.to_vec();
        while let Some(id) = open.pop() {
            let n = self.node_mut(id);
            let valued = !matches!(n.payload, Payload::Pending | Payload::Cached(_));
            let given = valued || n.seq <= of.since || n.flags & LEAF != 0;
            if n.mark == mark || n.depth < of.depth || of.part && given {
                continue;
            }
            if n.depth > of.depth || n.seq <= of.since || n.op.id == ARGUMENT.id {
                return Err(Elsewhere(id));
            }
            n.mark = mark;
            open.extend_from_slice(&n.inputs);
            nodes.push(id);
        }
        nodes.sort_unstable_by_key(|&id| self.node(id).seq);
        nodes.iter().enumerate().for_each(|(i, &id)| self.node_mut(id).pos = i as u32);
        let mut sources = sources();
        let mut operand = |g: &mut Graph, id: NodeId| {
            let n = g.node_mut(id);
            if n.mark != mark {
                (n.mark, n.pos) = (mark, LEAF_BIT | (own + captured.len() as u32));
                captured.push(id);
            }
            match n.pos & LEAF_BIT == 0 {
                true => Input::Step(n.pos),
                false => Input::Leaf(n.pos & !LEAF_BIT),
            }
        };
        let mut steps = Vec::with_capacity(nodes.len());
        for id in nodes {
            let inputs = self.node(id).inputs.clone().into_iter().map(|i| operand(self, i)).collect();
            let n = self.node(id);
            let recorded = n.flags & REQUIRES_GRAD != 0;
            let (op, attrs, ty, at) = (n.op, n.attrs.clone(), n.ty, sources.of(n.at));
            steps.push(BodyStep { op, attrs, ty, inputs, at, line: n.at, statement: n.statement, recorded });
        }
        let results = of.results.iter().map(|&id| operand(self, id)).collect();
        let types = |ids: &[NodeId]| ids.iter().map(|&id| self.node(id).ty).collect();
        let numbers = captured.iter().map(|&id| matches!(self.node(id).payload, Payload::Scalar(_))).collect();
        Ok(Body { number: 0, arguments: types(of.arguments), steps, results, gives: types(of.results), numbers })
    }
}
