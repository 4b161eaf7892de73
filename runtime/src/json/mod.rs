//! JSON, read and written: reports of another process, checkpoints, what front ends are told.
mod read;
mod write;

pub(crate) use read::Json;
pub(crate) use write::{bundle, list, string};
