//! What traces and runs programs: values' types, the graph, StableHLO, devices, the executable cache. From the ground up,
//! and no floor names one above it:
//!
//! `sys`, `host`, `clock`, `text`, `thread` · `ty`, `error` · `metrics`, `options` · `proto`, `mesh` · `emit` · `pod` · `device` · `ir` · `run`
//!
//! Nobody who watches is known here: `run` tells a [`run::Witness`] what happens and asks a [`run::Policy`] what it may do.
pub mod clock;
pub mod device;
pub mod emit;
mod error;
pub mod host;
pub mod ir;
pub mod mesh;
pub mod metrics;
pub mod options;
pub mod pod;
pub mod proto;
pub mod run;
pub mod sys;
pub mod text;
pub mod thread;
pub mod ty;

pub use error::{Error, Raised, Result};
