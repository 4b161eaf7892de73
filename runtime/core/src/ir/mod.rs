//! The graph of pending tensors: ops, nodes in one arena, cut at a sync into a [`Cut`] with its structured key, written out
//! as a program.
mod attr;
mod body;
mod cut;
mod graph;
mod heal;
mod input;
mod looks;
mod op;
mod placement;
mod program;
mod region;
mod worth;

pub use attr::{Attr, AttrDef, AttrsExt, Kept, Region, Role, attr};
pub use body::{Bodies, Body, BodyDifference, BodyStep};
pub use cut::{Cut, Key, Leaf, Scope, Step};
pub use graph::{
    Bucket, Graph, LEAF, Locked, Node, NodeId, OVERWRITTEN, Origin, Owner, Payload, READ, REQUIRES_GRAD, TAPE_FREED,
    Write, aside, graph, is_aside,
};
pub use heal::Healing;
pub use input::Input;
pub use op::{
    ALIAS, ARGUMENT, Check, DATA, DEVICE_DATA, Healed, Kind, Lower, NUMBER, OpDef, RESULT, Refused, Rule, SCALAR,
    SECOND_NAME, Sig, rules,
};
pub use placement::Placement;
pub use program::{LeafType, Mark, Params, Writing, Written, located, program};
pub use region::{Elsewhere, RecordedBody};
