//! xlazy: lazy tensors on XLA. A cell needs only `use xlazy::prelude::*;`.
pub mod aot;
pub mod bench;
mod calls;
pub mod cell;
pub mod data;
pub mod display;
mod dtype;
mod emit;
mod error;
mod grad;
pub mod insight;
mod ir;
pub mod nn;
mod op;
mod ops;
pub mod optim;
mod platform;
pub mod prelude;
mod session;
mod shape;
pub mod show;
mod sys;
mod tensor;

pub use dtype::{Category, DType, Element, Scalar};
pub use error::{Error, Raised, Result};
pub use grad::grad;
pub use insight::metrics;
pub use ops::{At, IndexArg, OpInfo, ops, Literal, cat, einsum, manual_seed, stack, tensor, where_};
pub use ops::{
    AttentionOptions, AvgPoolOptions, BatchNormOptions, ConvOptions, ConvTransposeOptions, CrossEntropyOptions,
    InterpolateOptions, Interpolation, MaxPoolOptions, PadMode, Padding, Reduction, ScatterReduce,
};
pub use ops::{cartesian_prod, column_stack, dstack, hstack, meshgrid, vstack};
pub use session::{device_name, preload, probe};
pub use shape::{Dims, Shape};
pub use tensor::{Arg, Tensor, is_grad_enabled, no_grad, sync};
pub use xlazy_mime as mime;
