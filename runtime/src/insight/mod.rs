//! What happened and why: metrics with torch_xla's names, sync causes, the log of syncs and compilations, and the
//! explanation of every compilation that had a forerunner.
// Variables are named by the path that `type_name` gives, so modules with public types are public.
#[doc(hidden)]
pub mod cell;
mod explain;
mod live;
#[doc(hidden)]
pub mod log;
pub mod metrics;
pub(crate) mod mode;
mod record;
mod render;
#[doc(hidden)]
pub mod report;
mod watch;

pub use crate::session::set_cache_capacity;
pub use crate::tensor::set_trim;
pub use cell::{
    NextSync, Pending, budget, budget_bundle, budget_json, pending, pending_bundle, pending_json, set_budget,
};
pub(crate) use live::{Work, compiling, waiting};
pub(crate) use log::record;
pub use log::{Cause, Origin, SyncEvent, events};
pub(crate) use record::{LeafRecord, Lines, Read, Record, compiled, keep_healings, refuse, refused, same_place, why};
pub use record::{compilations, healed, healing, set_healing};
pub use render::{compiles_bundle, compiles_json, healed_bundle, healed_json};
pub(crate) use report::Costs;
pub use report::{Class, Compilation, Difference, Explanation, Healing, Memory, Place};
pub use watch::set_watching;
pub(crate) use watch::{Recording, TIMED_ALONE, Took, clock, traced, watching};
