//! xlazy: lazy tensors on XLA. A cell needs only `use xlazy::prelude::*;`.
// A cell names the types of variables by the path that `type_name` gives: a module with public types is public, if
// hidden from the documentation where its types are exported above.
pub mod aot;
pub mod backends;
pub mod bench;
#[doc(hidden)]
pub mod bucket;
mod calls;
pub mod cell;
#[doc(hidden)]
pub mod changes;
#[cfg(test)]
#[path = "../../tests/support/corpus.rs"]
mod corpus;
pub mod data;
pub mod display;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
mod grad;
pub mod inside;
pub mod insight;
mod json;
#[doc(hidden)]
pub mod lesson;
#[doc(hidden)]
pub mod linked;
pub mod models;
pub mod nn;
mod ops;
pub mod optim;
pub mod prelude;
#[cfg(test)]
#[path = "../../tests/support/protobuf.rs"]
mod protobuf;
mod rng;
#[cfg(test)]
#[path = "../../tests/support/schema.rs"]
mod schema;
pub mod show;
pub mod spmd;
#[doc(hidden)]
pub mod tensor;
pub mod widget;
pub mod xm;

pub use bucket::Dynamic;
pub use calls::session_main;
pub use changes::Changes;
pub use grad::{GradOptions, Outputs, grad, grad_with, hessian, jacobian, jvp, vjp};
pub use inside::peek;
pub use insight::metrics;
pub use ops::{At, IndexArg, Literal, OpInfo, To, cat, devices, einsum, manual_seed, ops, stack, tensor, where_};
pub use ops::{
    AttentionOptions, AvgPoolOptions, BatchNormOptions, ConvOptions, ConvTransposeOptions, CrossEntropyOptions,
    InterpolateOptions, Interpolation, MaxPoolOptions, PadMode, Padding, Reduction, ScatterReduce,
};
pub use ops::{BagMode, EmbeddingBagOptions, FftNorm, GridMode, GridPadding, GridSampleOptions, StftOptions};
pub use ops::{Context, CustomOp, Function, custom_call, custom_op};
pub use ops::{
    HistogramOptions, LeastSquares, MatrixNorm, MultiHeadOptions, PatchOptions, QuantileInterpolation, QuantileOptions,
    Unique, block_diag, multi_dot,
};
pub use ops::{
    ScanOptions, Tensors, associative_scan, checkpoint, cond, fori_loop, map, scan, scan_with, switch, while_loop,
};
pub use ops::{Shard, mark_sharding};
pub use ops::{broadcast_tensors, cartesian_prod, column_stack, dstack, hstack, meshgrid, pad_sequence, vstack};
pub use tensor::{Arg, Hook, Tensor, autocast, is_grad_enabled, no_grad, sync};
pub use xlazy_core::device::{device_name, preload, probe, worker_main};
pub use xlazy_core::mesh::{Mesh, Sharding};
pub use xlazy_core::ty::{Category, DType, Dims, Element, Scalar, Shape};
pub use xlazy_core::{Error, Raised, Result};
pub use xlazy_mime as mime;
pub use xm::spawn;
