//! Definitions in force, and the source of crates.
pub mod change;
pub mod code;
pub mod declared;
pub mod definitions;
pub mod held;
mod kept;
pub mod numbers;
pub mod plan;
pub mod reach;
mod waiting;
