//! The graph of pending tensors: nodes in one arena, cut at a sync into a [`Cut`] with its structured key.
mod cut;
mod graph;
mod heal;
pub(crate) mod print;

pub(crate) use cut::{Cut, Input, Key, Leaf, Scope, Step};
pub(crate) use graph::{
    ANYWHERE, Bucket, Graph, LEAF, Locked, NodeId, Payload, REQUIRES_GRAD, TAPE_FREED, graph, home,
};
