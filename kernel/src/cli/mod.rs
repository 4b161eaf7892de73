//! The subcommands of the `xlazy` binary: one file per subcommand, one table.
use clap::{ArgMatches, Command};
use std::process::ExitCode;

mod aot;
mod bench;
mod bench_cells;
mod bench_models;
mod bench_pods;
mod bench_typing;
pub mod bundle;
mod chips;
mod describe_toolchain;
mod doctor;
mod engines;
pub mod eval;
pub mod events;
mod export;
pub mod html;
pub mod install;
pub mod kernel;
mod kernel_command;
mod lessons;
pub mod notebook;
mod options;
mod plugins;
mod printed;
mod repl_command;
mod report;
pub mod run;

mod transport;
mod why;
mod widgets;
mod worker;

type Subcommand = (fn() -> Command, fn(&ArgMatches) -> ExitCode);

/// Every subcommand, in the order that `--help` lists them.
const SUBCOMMANDS: &[Subcommand] = &[
    (repl_command::command, repl_command::run),
    (eval::command, eval::run),
    (run::command, run::run),
    (export::command, export::run),
    (lessons::command, lessons::run),
    (install::command, install::run),
    (install::uninstall_command, install::run_uninstall),
    (doctor::command, doctor::run),
    (plugins::command, plugins::run),
    (aot::command, aot::run),
    (why::command, why::run),
    (bench::command, bench::run),
    (worker::command, worker::run),
    (kernel_command::command, kernel_command::run),
    (describe_toolchain::command, describe_toolchain::run),
];

/// The whole command line.
pub fn command() -> Command {
    Command::new("xlazy")
        .about("Rust with lazy tensors on XLA: a Jupyter kernel, a REPL and a notebook runner")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(110)
        .subcommands(SUBCOMMANDS.iter().map(|(command, _)| command()))
}

/// Runs what the command line asks for.
pub fn main() -> ExitCode {
    let matches = command().get_matches();
    let (name, matches) = matches.subcommand().expect("clap asks for a subcommand");
    let (_, run) = SUBCOMMANDS.iter().find(|(command, _)| command().get_name() == name).expect("clap knows no others");
    run(matches)
}
