//! What happened and why: metrics with torch_xla's names, sync causes, the log of syncs and compilations.
mod log;
pub mod metrics;

pub(crate) use log::record;
pub use log::{Cause, SyncEvent, events};
