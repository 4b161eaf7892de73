//! The `xlazy` binary.
fn main() {}
