//! rustc and what belongs to it: where it is, how it is run and stopped.
pub mod at_work;
pub mod diagnostic;
pub mod install;
pub mod link;
pub mod linker;
pub mod remedy;
pub mod rustc;
