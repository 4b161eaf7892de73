//! Graph → StableHLO text. No I/O: [`program`] takes a cut graph and gives the module's text.
mod builder;
mod program;

pub(crate) use builder::array;
pub use builder::{Emit, Reducer, Val};
pub(crate) use program::{LeafType, Mark, Params, program};
