//! `xlazy plugins`: the PJRT plugins that are installed.
use clap::{ArgMatches, Command};
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("plugins")
        .about("The PJRT plugins that are installed")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Command::new("list").about("List each plugin's name and path"))
}

pub fn run(_matches: &ArgMatches) -> ExitCode {
    super::fail("not here yet")
}
