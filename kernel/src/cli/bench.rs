//! `xlazy bench`: what recording, syncing and launching cost on this machine.
use clap::{ArgMatches, Command};
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("bench").about("Measure").subcommand_required(true).arg_required_else_help(true)
}

pub fn run(_matches: &ArgMatches) -> ExitCode {
    super::fail("not here yet")
}
