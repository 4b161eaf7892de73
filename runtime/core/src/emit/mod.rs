//! StableHLO, written operation by operation. No I/O, and nothing of the graph: [`crate::ir`] writes programs through it.
mod builder;
mod text;

pub use builder::{Emit, Reducer, Val, array, mlir_type};
