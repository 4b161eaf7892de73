//! The seam to those who watch: what they are told, and what they are asked.
use super::cache::Room;
use super::event::{Cause, Costs, SyncEvent, Work};
use super::written::Rounds;
use crate::Result;
use crate::device::DeviceData;
use crate::ir::{NodeId, OpDef, Step};
use crate::mesh::Sharding;
use crate::options::Options;
use crate::text::{Place, Source};
use crate::ty::Type;
use std::any::Any;
use std::sync::Arc;

/// Who is told what runs. Nothing that it does changes what is computed.
pub trait Witness: Sync {
    /// The device works on a program from now on, or on what was started before (`None`), and is waited for.
    fn works(&self, work: Option<Work>);
    /// The host goes on.
    fn rests(&self);
    /// A program is wanted for these nodes, by a barrier or a read; nothing of them has been cut yet.
    fn begins(&self, roots: &[NodeId], barrier: bool);
    /// A sync ran a program; the answer is the event with its number.
    fn ran(&self, event: SyncEvent) -> SyncEvent;
    /// A line read a value; `seq` nodes had been traced by then.
    fn read(&self, at: Place, seq: u64);
    /// A barrier gave all that was pending its value.
    fn cut_off(&self);
    /// The barrier that begins takes these as reads have computed them.
    fn takes(&self, read: &[NodeId]);
    /// A program is needed that is not in the cache. On the thread that syncs.
    fn missed(&self, miss: Miss) -> Box<dyn Case>;
}

/// Who is asked what may be done about a miss.
pub trait Policy {
    /// The ops, by their lines, of which a changing attribute should become a parameter; `on`: whether that is allowed.
    fn lifts(&mut self, on: bool) -> Vec<(&'static OpDef, &'static Source)>;
    /// Whether XLA may compile the program.
    fn permits(&self) -> Result<()>;
}

/// One miss, until its program is there. It goes along to the thread that compiles.
pub trait Case: Policy + Send {
    /// What [`Policy::lifts`] named are parameters now; this is what the graph became.
    fn lifted(&mut self);
    /// The graph was cut again, and this program is needed instead; `next`: what the next round will find.
    fn recut(&mut self, miss: Miss, next: Next);
    /// No compilation came of it: the program that the graph became was there.
    fn was_there(self: Box<Self>);
    /// XLA compiles, until what this gives is dropped.
    fn compiling(&self) -> Box<dyn Any>;
    /// It was not permitted.
    fn refused(self: Box<Self>, costs: Costs);
    /// The program is there.
    fn compiled(self: Box<Self>, costs: Costs);
}

/// Whether the program that is compiled now serves the next round of the same step, as far as the graph tells.
#[derive(Default)]
pub struct Next {
    /// The parameters, by number, that something holds in this round and nothing will in the next one, which gives their
    /// buffers away and so is another program.
    pub held: Vec<usize>,
    /// The cache holds so few programs that this one may be gone by then.
    pub evicted: bool,
}

/// A program that is not in the cache, with all that the graph says of it.
pub struct Miss {
    pub cause: Cause,
    pub at: Place,
    pub hash: u128,
    /// The hash that the program has wherever it is placed.
    pub anywhere: u128,
    /// Which of the client's devices would run it.
    pub device: u8,
    pub options: Options,
    pub steps: Arc<[Step]>,
    pub leaves: Vec<LeafOrigin>,
    /// The steps that give the results.
    pub roots: Vec<u32>,
    /// Their nodes.
    pub results: Vec<NodeId>,
    pub parameters: usize,
    /// How many nodes had been traced at the last barrier.
    pub since: u64,
    /// Ops traced since then, in the cut or not.
    pub traced: u64,
    /// Pending results that the program neither gives nor needs.
    pub left_pending: usize,
    /// The rounds that it is one or a few of, or comes before, where these run one after another.
    pub rounds: Option<Arc<Rounds>>,
    /// What there is for it in the cache.
    pub room: Room,
}

/// A parameter of a program, and what made it.
pub struct LeafOrigin {
    pub node: NodeId,
    pub op: &'static OpDef,
    pub ty: Type,
    pub scalar: bool,
    pub donate: bool,
    pub at: &'static Source,
    /// The statement of the cell that ran when it was made.
    pub statement: Option<&'static Source>,
    pub seq: u64,
    /// The same for all values that a tensor is given in place.
    pub lineage: u64,
    /// Some of it is padding up to a bucket's size.
    pub bucketed: bool,
    /// Gradients accumulate in it.
    pub parameter: bool,
    /// Of data in a program for a mesh: how they lie on it.
    pub sharding: Option<Sharding>,
    /// The value, where the program does not use its buffer up.
    pub data: Option<Arc<DeviceData>>,
}

/// Tells a witness of a wait, however it ends.
pub(super) struct Working(&'static dyn Witness);

impl Working {
    pub fn on(by: &'static dyn Witness, work: Work) -> Working {
        by.works(Some(work));
        Working(by)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.rests();
    }
}
