//! The table of ops. One file per theme; an op is one entry (type rule, lowering, gradient, samples) beside its `Tensor`
//! method. Composite methods are plain functions over other methods, in the same files.
mod activation;
mod arrange;
mod at;
mod barrier;
mod base;
mod binary;
mod bits;
mod bounds;
mod chebyshev;
pub(crate) mod collective;
mod compare;
mod complex;
mod contract;
mod control;
mod conv;
mod create;
mod custom;
mod device;
mod distribution;
mod dynamic;
mod extra;
mod fft;
mod function;
mod gamma;
mod heads;
mod histogram;
mod in_place;
mod index;
mod indexing;
mod linalg;
mod loss;
mod lu;
mod margin;
mod matrix;
mod names;
mod norm;
mod operators;
mod overwrite;
mod part;
mod piecewise;
mod place;
mod pool;
mod quantile;
mod random;
mod reduce;
mod reflect;
mod resample;
mod sample;
mod scan;
mod search;
mod second_names;
mod sharding;
mod slice;
mod sort;
mod special;
mod spectral;
mod spread;
mod statistics;
#[cfg(test)]
mod tests;
mod triangular;
mod unary;
mod view;
mod window;

use crate::tensor::Entry;
pub use arrange::{broadcast_tensors, cartesian_prod, column_stack, dstack, hstack, meshgrid, pad_sequence, vstack};
pub use at::{At, IndexArg};
pub use compare::where_;
pub use contract::einsum;
pub use control::{
    ScanOptions, Tensors, associative_scan, checkpoint, cond, fori_loop, map, scan, scan_with, switch, while_loop,
};
pub use control::{axis_index, manual};
pub(crate) use control::{filled, flat};
pub use conv::{ConvOptions, ConvTransposeOptions, Padding};
pub use create::{Literal, tensor};
pub use custom::{CustomOp, custom_call, custom_op};
pub use device::{To, devices};
pub use dynamic::Unique;
pub use fft::{FftNorm, StftOptions};
pub use function::{Context, Function};
pub use heads::MultiHeadOptions;
pub use histogram::HistogramOptions;
pub use indexing::ScatterReduce;
pub use loss::{CrossEntropyOptions, Reduction};
pub use matrix::{LeastSquares, MatrixNorm, multi_dot};
pub use norm::{AttentionOptions, BatchNormOptions};
pub use pool::{AvgPoolOptions, MaxPoolOptions};
pub use quantile::{QuantileInterpolation, QuantileOptions};
pub(crate) use random::Key;
pub use random::manual_seed;
pub(crate) use random::{generator, own_generator, set_generator};
pub use resample::{InterpolateOptions, Interpolation, PadMode};
pub use sample::{BagMode, EmbeddingBagOptions, GridMode, GridPadding, GridSampleOptions};
pub use search::block_diag;
pub use sharding::{Shard, mark_sharding};
pub use spread::PatchOptions;
use std::collections::HashMap;
use std::sync::LazyLock;
pub use view::{cat, stack};
use xlazy_core::ir::OpDef;

/// Every op there is, by theme.
pub(crate) fn table() -> impl Iterator<Item = &'static Entry> {
    let themes: [&[&'static Entry]; _] = [
        base::OPS,
        unary::OPS,
        unary::MORE,
        activation::OPS,
        piecewise::OPS,
        binary::OPS,
        bits::OPS,
        complex::OPS,
        fft::OPS,
        compare::OPS,
        reduce::OPS,
        view::OPS,
        slice::OPS,
        part::OPS,
        place::OPS,
        index::OPS,
        sort::OPS,
        scan::OPS,
        linalg::OPS,
        triangular::OPS,
        lu::OPS,
        reflect::OPS,
        spectral::OPS,
        loss::OPS,
        conv::OPS,
        pool::OPS,
        resample::OPS,
        create::OPS,
        device::OPS,
        random::OPS,
        bounds::OPS,
        gamma::OPS,
        barrier::OPS,
        control::OPS,
        custom::OPS,
        function::OPS,
        sharding::OPS,
        collective::OPS,
    ];
    themes.into_iter().chain(special::OPS.iter().copied()).flat_map(|t| t.iter().copied())
}

/// The entry of a node's op; data that an op found have none.
pub(crate) fn entry_of(op: &OpDef) -> Option<&'static Entry> {
    static BY_ID: LazyLock<HashMap<u32, &'static Entry>> = LazyLock::new(|| table().map(|e| (e.id, e)).collect());
    BY_ID.get(&op.id).copied()
}

/// The operand that an op is a result of, where it is a result of one with several.
pub(crate) fn result_of(op: &OpDef) -> Option<usize> {
    match op.id {
        id if id == xlazy_core::ir::RESULT.id => Some(0),
        id if id == function::RESULT.id => Some(1),
        _ => None,
    }
}

impl Entry {
    /// The entry of an op.
    pub(crate) fn of_op(op: &OpDef) -> Option<&'static Entry> {
        entry_of(op)
    }
}

/// What the table says of one op; for `%help` and the page of what is covered.
#[derive(Clone, Debug, PartialEq)]
pub struct OpInfo {
    /// The torch name.
    pub name: &'static str,
    /// The attributes' names: what is fixed when a program is compiled.
    pub attributes: Vec<&'static str>,
    /// Whether gradients flow.
    pub differentiable: bool,
}

/// Every op there is.
///
/// ```
/// assert!(xlazy::ops().iter().any(|op| op.name == "matmul" && op.differentiable));
/// ```
pub fn ops() -> Vec<OpInfo> {
    let attributes = |op: &Entry| op.attrs.iter().map(|a| a.name).collect();
    table().map(|op| OpInfo { name: op.name, attributes: attributes(op), differentiable: op.grad.is_some() }).collect()
}
