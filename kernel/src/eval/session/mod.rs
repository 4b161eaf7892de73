//! The session: the process, what is known of it, and the engine in front of it.
mod channel;
mod checkpoint;
mod commands;
mod core;
pub mod engine;
mod journal;
mod process;
mod questions;
mod recover;
mod run;
mod shared;
mod variables;
