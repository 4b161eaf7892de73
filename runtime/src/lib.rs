//! xlazy: lazy tensors on XLA. A cell needs only `use xlazy::prelude::*;`.
pub mod bench;
mod calls;
pub mod cell;
pub mod display;
mod dtype;
mod emit;
mod error;
mod grad;
pub mod insight;
mod ir;
mod op;
mod ops;
mod platform;
pub mod prelude;
mod session;
mod shape;
mod sys;
mod tensor;

pub use dtype::{Category, DType, Element, Scalar};
pub use error::{Error, Raised, Result};
pub use grad::grad;
pub use insight::metrics;
pub use ops::{Literal, cat, manual_seed, stack, tensor, where_};
pub use session::{device_name, preload};
pub use shape::{Dims, Shape};
pub use tensor::{Arg, Tensor, is_grad_enabled, no_grad, sync};
pub use xlazy_mime as mime;
