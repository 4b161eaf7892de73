//! Control flow in one program: loops and branches that the device decides about. Their bodies are closures over tensors that
//! are recorded once (`tensor/body.rs`), and an attribute of one op.
mod again;
mod branch;
mod checkpoint;
mod doubling;
mod manual;
mod rounds;
mod scan;
mod tree;

use crate::tensor::Entry;
pub use branch::{cond, switch};
pub use checkpoint::checkpoint;
pub use doubling::associative_scan;
pub use manual::{axis_index, manual};
pub use rounds::{fori_loop, while_loop};
pub use scan::{ScanOptions, map, scan, scan_with};
pub use tree::Tensors;
pub(crate) use tree::{filled, flat};

pub(super) static OPS: &[&Entry] = &[&scan::SCAN, &rounds::WHILE, &branch::COND, &branch::SWITCH, &manual::MANUAL];
