//! `xlazy aot`: compiles a StableHLO file for TPUs that need not be there.
use super::options::json_flag;
use super::report::{fail, fail_with};
use crate::eval::install::Installation;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("aot")
        .about("Compile a StableHLO program for TPUs that need not be there: does it fit, what would it take?")
        .arg(Arg::new("program").required(true).value_name("FILE").help("StableHLO text or bytecode; - is stdin"))
        .arg(
            Arg::new("topology")
                .long("topology")
                .short('t')
                .required(true)
                .action(ArgAction::Append)
                .value_name("TPU")
                .help("Such as v5e:2x2, or a slice's name such as v5e-256; several give a table that compares them"),
        )
        .arg(
            Arg::new("partitions")
                .long("partitions")
                .value_parser(value_parser!(u32).range(1..))
                .default_value("1")
                .value_name("N")
                .help("Parts that the program's shardings split it into; 1 stands for what it says"),
        )
        .arg(
            Arg::new("slices")
                .long("slices")
                .value_parser(value_parser!(u32).range(1..=256))
                .default_value("1")
                .value_name("N")
                .help("Slices that the program goes over, with the data centre's network between them"),
        )
        .arg(Arg::new("mesh").long("mesh").value_name("AXIS=N,…").help("Other sizes of the axes of its mesh"))
        .arg(
            Arg::new("level")
                .short('O')
                .value_parser(value_parser!(u8).range(0..=3))
                .default_value("2")
                .value_name("LEVEL")
                .help("Optimisation level, 0 to 3; real runs are at 2"),
        )
        .arg(Arg::new("quick").long("quick").action(ArgAction::SetTrue).conflicts_with("level").help(
            "Level 1: big programs take a tenth of the time, but what is fast and what is slow may change places",
        ))
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_parser(value_parser!(u32).range(1..))
                .default_value("600")
                .value_name("SECONDS")
                .help("How long the compiler may take"),
        )
        .arg(
            Arg::new("largest-batch").long("largest-batch").action(ArgAction::SetTrue).help(
                "Look for the largest batch that fits: of a program that xlazy wrote, by compiling it for others",
            ),
        )
        .arg(
            Arg::new("roofline")
                .long("roofline")
                .action(ArgAction::SetTrue)
                .help("How far the program and its kernels are from the chip's peak rates, and what it costs"),
        )
        .arg(json_flag().help("Print the report as JSON"))
        .after_help(
            "All figures are the compiler's estimates; nothing runs. Needs libtpu: `xlazy plugins install tpu`.",
        )
}

/// The runtime does it, in a process of its own: this one never loads a plugin.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let installation = match Installation::find() {
        Ok(installation) => installation,
        Err(failure) => return fail_with(&failure),
    };
    let topologies: Vec<&String> = matches.get_many("topology").expect("clap asks for one").collect();
    let mut command = installation.session();
    command
        .arg("--aot")
        .arg(matches.get_one::<String>("program").expect("clap asks for it"))
        .arg(match matches.get_flag("quick") {
            true => "--quick".to_owned(),
            false => format!("-O{}", matches.get_one::<u8>("level").expect("it has a default")),
        })
        .args(["--partitions", &matches.get_one::<u32>("partitions").expect("it has a default").to_string()])
        .args(["--timeout", &matches.get_one::<u32>("timeout").expect("it has a default").to_string()])
        .args(["--slices", &matches.get_one::<u32>("slices").expect("it has a default").to_string()])
        .args(matches.get_one::<String>("mesh").into_iter().flat_map(|mesh| ["--mesh", mesh]))
        .args(matches.get_flag("largest-batch").then_some("--largest-batch"))
        .args(matches.get_flag("roofline").then_some("--roofline"))
        .args(matches.get_flag("json").then_some("--json"))
        .args((topologies.len() > 1).then_some("compare"))
        .args(topologies);
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => fail(&format!("{} could not be started: {e}", installation.session_exe.display())),
    }
}
