//! Texts of cells: tokens, nesting, names and types, and generated source that remembers the user's places.
pub mod depth;
pub mod hash;
pub mod lifetimes;
pub mod patterns;
pub mod scan;
pub mod source;
pub mod sources;
pub mod types;
pub mod untrusted;
