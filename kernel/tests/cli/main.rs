//! The subcommands: what they print, write and answer, against an engine that makes any event on demand.
mod explain;
mod install;
mod mock;
mod notebook;
mod real;
mod terminal;
