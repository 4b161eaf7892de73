//! Options that several subcommands take.
use clap::{Arg, ArgAction};

/// `--json`: one object in place of what people read.
pub fn json_flag() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object")
}

/// `--rounds N`: how often something is measured.
pub fn rounds(default: &'static str, most: u64, help: &'static str) -> Arg {
    Arg::new("rounds")
        .long("rounds")
        .value_name("N")
        .default_value(default)
        .value_parser(clap::value_parser!(u64).range(1..=most))
        .help(help)
}
