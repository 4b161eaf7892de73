//! `xlazy bench`: what recording, syncing, launching and cells cost on this machine.
use super::options::json_flag;
use super::report::{fail, fail_with};
use super::{bench_cells, bench_models, bench_pods, bench_typing};
use crate::engine::{Failure, sentence};
use crate::eval::install::Installation;
use clap::{ArgMatches, Command};
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("bench")
        .about("Measure on this machine")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("host").about("What the host pays per traced op, cached sync and launch").arg(json_flag()),
        )
        .subcommand(bench_models::command())
        .subcommand(bench_pods::command())
        .subcommand(bench_typing::command())
        .subcommand(bench_cells::command())
}

pub fn run(matches: &ArgMatches) -> ExitCode {
    let (what, matches) = matches.subcommand().expect("clap asks for one");
    let done = match what {
        "cells" => bench_cells::run(matches),
        "models" => bench_models::run(matches),
        "pods" => bench_pods::run(matches),
        "typing" => return bench_typing::run(matches).map_or_else(|why| fail_with(&why), |()| ExitCode::SUCCESS),
        _ => return host(what, matches).map_or_else(|why| fail_with(&why), |()| ExitCode::SUCCESS),
    };
    done.map_or_else(|why| fail(&why), |()| ExitCode::SUCCESS)
}

/// Runs in the session executable: that process has the runtime, this one never loads it.
fn host(what: &str, matches: &ArgMatches) -> Result<(), Failure> {
    let installation = Installation::find()?;
    let mut command = installation.session();
    command.args(["--bench", what]);
    if matches.get_flag("json") {
        command.arg("--json");
    }
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(sentence("Benchmark", format!("it ended with {status}"))),
        Err(e) => {
            Err(sentence("Benchmark", format!("{} could not be started: {e}", installation.session_exe.display())))
        }
    }
}
