//! `xlazy kernel`: what Jupyter starts.
use super::report::fail;
use super::{engines, kernel};
use clap::{Arg, ArgMatches, Command, value_parser};
use std::path::PathBuf;
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("kernel")
        .about("Serve a Jupyter front end (Jupyter itself calls this)")
        .arg(
            Arg::new("connection-file")
                .value_name("CONNECTION_FILE")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The file in which Jupyter says where to listen"),
        )
        .arg(engines::argument())
}

pub fn run(matches: &ArgMatches) -> ExitCode {
    let path = matches.get_one::<PathBuf>("connection-file").expect("it is required");
    let asked = matches.clone();
    match kernel::run(path, env!("CARGO_PKG_RUST_VERSION"), move || engines::start_told(&asked, true)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => fail(&format!("{}: {e}", path.display())),
    }
}
