//! `xlazy why`: why programs that somebody's run wrote down were compiled again, by the same causes as what cells compile.
use super::report::{fail, fail_with};
use crate::eval::install::Installation;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::process::ExitCode;

pub fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    let limit = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("N").value_parser(value_parser!(usize)).help(help)
    };
    Command::new("why")
        .visible_alias("explain")
        .about("Tell why the programs of a JAX or torch_xla run were compiled again: the cause, the line, what to do")
        .arg(
            Arg::new("PATH")
                .required(true)
                .num_args(1..)
                .help("A folder of programs as StableHLO or HLO text, files of that, or two files to be compared"),
        )
        .arg(flag("json", "Print one JSON object"))
        .arg(flag("html", "Print one HTML page").conflicts_with("json"))
        .arg(limit("max-programs", "End with status 3 where there are more programs than this"))
        .arg(limit("fail-after-warmup", "End with status 3 where a program behind the first N was compiled again"))
        .after_help(
            "JAX writes its programs with JAX_DUMP_IR_TO=DIR, XLA with XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\", \
             torch_xla with XLA_SAVE_TENSORS_FILE=FILE, XLA_SAVE_TENSORS_FMT=hlo (or text), XLA_IR_DEBUG=1 and XLA_HLO_DEBUG=1. Texts \
             with locations name lines of source.",
        )
}

/// The runtime does it, in a process of its own: this one never loads it.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let installation = match Installation::find() {
        Ok(installation) => installation,
        Err(failure) => return fail_with(&failure),
    };
    let mut command = installation.session();
    command.arg("--why");
    for flag in ["json", "html"].into_iter().filter(|flag| matches.get_flag(flag)) {
        command.arg(format!("--{flag}"));
    }
    for limit in ["max-programs", "fail-after-warmup"] {
        if let Some(n) = matches.get_one::<usize>(limit) {
            command.args([format!("--{limit}"), n.to_string()]);
        }
    }
    command.args(matches.get_many::<String>("PATH").expect("clap asks for it"));
    match command.status() {
        Ok(status) => ExitCode::from(status.code().map_or(1, |code| code as u8)),
        Err(e) => fail(&format!("{} could not be started: {e}", installation.session_exe.display())),
    }
}
