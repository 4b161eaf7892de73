//! `xlazy worker`: what a pod's controller starts on each host.
use super::report::{fail, fail_with};
use crate::eval::install::Installation;
use clap::{ArgMatches, Command};
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("worker").about("Serve a pod: run a notebook's programs on this machine's devices").after_help(
        "A notebook on another machine starts it (`%pod start --hosts a,b`) and talks to it on its standard input and output. It \
         ends with the notebook.",
    )
}

/// The runtime does it, in place of this process: what started it holds its ends.
pub fn run(_: &ArgMatches) -> ExitCode {
    let installation = match Installation::find() {
        Ok(installation) => installation,
        Err(failure) => return fail_with(&failure),
    };
    let e = installation.session().arg("--worker").exec();
    fail(&format!("{} could not be started: {e}", installation.session_exe.display()))
}
