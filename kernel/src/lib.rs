//! Everything of the `xlazy` binary but its `main`, so that tests can reach it.
pub mod cli;
#[cfg(test)]
#[path = "../../tests/support/corpus.rs"]
mod corpus;
pub mod ctrl_c;
pub mod engine;
pub mod eval;
pub mod evcxr;
pub mod folder;
pub mod footer;
pub mod guard;
pub mod home;
pub mod magics;
pub mod repl;
pub mod terminal;
pub mod trouble;
pub mod wire;
