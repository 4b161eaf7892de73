//! xlazy: lazy tensors on XLA. A cell needs only `use xlazy::prelude::*;`.
pub mod cell;
mod error;
mod sys;

pub use error::{Error, Raised, Result};
pub use xlazy_mime as mime;
