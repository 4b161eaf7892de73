//! `xlazy explain`: why one program that was written down is not another, by the same causes as what cells compile.
use super::report::{fail, fail_with};
use crate::eval::install::Installation;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::process::ExitCode;

pub fn command() -> Command {
    let file = |name: &'static str, help: &'static str| Arg::new(name).required(true).value_name(name).help(help);
    Command::new("explain")
        .about("Tell why two programs differ, and so were compiled twice: the cause, the line, what to do")
        .arg(file("OLD", "StableHLO or HLO text of the program that was there"))
        .arg(file("NEW", "That of the program that was compiled in its place"))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object, null for equal programs"))
        .after_help(
            "Texts with locations name lines of source: in JAX `jax.jit(f).lower(…).as_text(debug_info=True)`, in torch_xla \
             what XLA_HLO_DEBUG=1 and XLA_SAVE_TENSORS_FILE write, of XLA what --xla_dump_to writes.",
        )
}

/// The runtime does it, in a process of its own: this one never loads it.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let installation = match Installation::find() {
        Ok(installation) => installation,
        Err(failure) => return fail_with(&failure),
    };
    let files = ["OLD", "NEW"].map(|name| matches.get_one::<String>(name).expect("clap asks for it"));
    let mut command = std::process::Command::new(&installation.session_exe);
    command
        .arg("--explain")
        .args(files)
        .args(matches.get_flag("json").then_some("--json"))
        .env("LD_LIBRARY_PATH", installation.library_path());
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => fail(&format!("{} could not be started: {e}", installation.session_exe.display())),
    }
}
