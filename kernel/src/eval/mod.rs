//! Rust cells: split, generate, compile, load. [`RustEngine`] is the engine that front ends run.
//!
//! From the ground up: `text`, `toolchain`, `deps`, `parse`, `generate`, `tell`, `build`, `typing`, `session`, `export`.
mod build;
mod deps;
pub mod export;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod generate;
mod parse;
mod session;
mod tell;
mod text;
mod toolchain;
mod typing;

pub use session::engine::RustEngine;
pub use toolchain::{install, remedy};
