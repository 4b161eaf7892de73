//! The table of ops. One file per theme; an op is one entry (type rule, lowering, gradient, samples) beside its `Tensor`
//! method. Composite methods are plain functions over other methods, in the same files.
mod activation;
mod arrange;
mod at;
mod base;
mod binary;
mod compare;
mod contract;
mod conv;
mod create;
mod dynamic;
mod index;
mod linalg;
mod loss;
mod norm;
mod operators;
mod piecewise;
mod pool;
mod random;
mod reduce;
mod resample;
mod sort;
#[cfg(test)]
mod tests;
mod unary;
mod view;

use crate::op::OpDef;

pub(crate) use base::{ALIAS, DATA, SCALAR};
pub use arrange::{cartesian_prod, column_stack, dstack, hstack, meshgrid, vstack};
pub use at::{At, IndexArg};
pub use compare::where_;
pub use contract::einsum;
pub use conv::{ConvOptions, ConvTransposeOptions, Padding};
pub use create::{Literal, tensor};
pub use index::ScatterReduce;
pub use loss::{CrossEntropyOptions, Reduction};
pub use norm::{AttentionOptions, BatchNormOptions};
pub use pool::{AvgPoolOptions, MaxPoolOptions};
pub use random::manual_seed;
pub use resample::{InterpolateOptions, Interpolation, PadMode};
pub use view::{cat, stack};

/// Every op there is, by theme.
pub fn table() -> impl Iterator<Item = &'static OpDef> {
    let themes: [&[&'static OpDef]; _] = [
        base::OPS,
        unary::OPS,
        unary::MORE,
        activation::OPS,
        binary::OPS,
        compare::OPS,
        reduce::OPS,
        view::OPS,
        index::OPS,
        sort::OPS,
        linalg::OPS,
        conv::OPS,
        pool::OPS,
        resample::OPS,
        create::OPS,
        random::OPS,
    ];
    themes.into_iter().flat_map(|t| t.iter().copied())
}
