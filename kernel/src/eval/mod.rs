//! Rust cells: split, generate, compile, load.
