//! `xlazy bench`: what recording, syncing, launching and cells cost on this machine.
use super::report::{fail, fail_with};
use crate::eval::install::Installation;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::path::PathBuf;
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("bench")
        .about("Measure on this machine")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("host")
                .about("What the host pays per traced op, cached sync and launch")
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object")),
        )
        .subcommand(super::bench_models::command())
        .subcommand(super::bench_pods::command())
        .subcommand(
            Command::new("typing")
                .about("How long completion takes: the first time at a place, and while the word is typed on")
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object"))
                .arg(
                    Arg::new("rounds")
                        .long("rounds")
                        .value_name("N")
                        .default_value("9")
                        .value_parser(clap::value_parser!(u64).range(1..=99))
                        .help("Times every place is asked for"),
                ),
        )
        .subcommand(
            Command::new("cells")
                .about("How long cells take over the Jupyter protocol; beside evcxr_jupyter where that is installed")
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object"))
                .arg(
                    Arg::new("rounds")
                        .long("rounds")
                        .value_name("N")
                        .default_value("15")
                        .value_parser(clap::value_parser!(u64).range(1..=99))
                        .help("Runs of every cell"),
                )
                .arg(
                    Arg::new("notebooks")
                        .long("notebooks")
                        .value_name("FOLDER")
                        .default_value("notebooks")
                        .value_parser(clap::value_parser!(PathBuf))
                        .help("Where the lessons are, whose cells are one row"),
                ),
        )
}

/// The host's measurement runs in the session executable: that process has the runtime, this one never loads it.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let (what, matches) = matches.subcommand().expect("clap asks for one");
    if what == "cells" {
        let rounds = *matches.get_one::<u64>("rounds").expect("it has a default") as usize;
        let notebooks = matches.get_one::<PathBuf>("notebooks").expect("it has a default");
        return match super::bench_cells::run(matches.get_flag("json"), rounds, notebooks) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => fail(&why),
        };
    }
    if what == "models" || what == "pods" {
        let of = if what == "pods" { super::bench_pods::run } else { super::bench_models::run };
        return match of(matches) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => fail(&why),
        };
    }
    if what == "typing" {
        let rounds = *matches.get_one::<u64>("rounds").expect("it has a default");
        return match super::bench_typing::run(matches.get_flag("json"), rounds) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => fail_with(&failure),
        };
    }
    let installation = match Installation::find() {
        Ok(installation) => installation,
        Err(failure) => return fail_with(&failure),
    };
    let mut command = installation.session();
    command.args(["--bench", what]);
    if matches.get_flag("json") {
        command.arg("--json");
    }
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(status) => fail(&format!("the benchmark ended with {status}")),
        Err(e) => fail(&format!("{} could not be started: {e}", installation.session_exe.display())),
    }
}
