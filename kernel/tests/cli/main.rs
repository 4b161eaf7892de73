//! The subcommands: what they print, write and answer, against an engine that makes any event on demand.
mod install;
mod mock;
mod notebook;
mod real;
mod terminal;
mod why;
