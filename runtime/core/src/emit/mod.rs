//! StableHLO, written operation by operation. No I/O, and nothing of the graph: [`crate::ir`] writes programs through it.
mod builder;
mod checked;
mod flags;
mod read;
mod region;
mod sharded;
mod text;
mod work;

pub use builder::{Emit, Reducer, Val, array, mlir_type};
pub use checked::{Checked, FINE, GIVEN, Looking, Looks, MADE};
pub use read::{read_numbers, read_type};
pub use region::{Block, Region};
