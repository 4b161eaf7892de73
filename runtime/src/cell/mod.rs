//! What a running cell needs of its session: the variable store, displays, streams, input, the worker loop.

/// Whether a cell is running in this process (and not, say, a test or a plain program that uses the crate).
pub fn running() -> bool {
    false
}
