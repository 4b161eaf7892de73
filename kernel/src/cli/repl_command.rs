//! `xlazy repl`: the terminal front end.
use super::engines;
use super::report::fail_with;
use crate::repl;
use clap::{ArgMatches, Command};
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("repl").about("Type cells in the terminal, or pipe them in").arg(engines::argument()).after_help(
        "Enter runs a complete cell and continues an unfinished one; Alt-Enter always starts a new line. Tab \
         completes, Ctrl-R searches the history, Ctrl-C interrupts a running cell or clears the line, Ctrl-D ends. \
         %help lists the magics.\n\nWhen standard input is not a terminal, cells are run as they come, without prompts; the first error \
         ends with exit code 1.",
    )
}

pub fn run(matches: &ArgMatches) -> ExitCode {
    match engines::start_told(matches, false) {
        Ok(engine) => repl::run(engine),
        Err(failure) => fail_with(&failure),
    }
}
