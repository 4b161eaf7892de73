//! `xlazy doctor`: what is installed, whether it works, and what to do about what does not.
use clap::{ArgMatches, Command};
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("doctor").about("Check the installation")
}

pub fn run(_matches: &ArgMatches) -> ExitCode {
    super::fail("not here yet")
}
