//! What a subcommand tells whoever called it: lines, and how it ended.
use crate::engine::Failure;
use crate::terminal::{colours, failure_lines, plain_unless};
use std::io::{self, Write};
use std::process::ExitCode;

/// The exit code of something ended by Ctrl-C, as shells count it.
pub const INTERRUPTED: u8 = 130;

/// Prints a line. A reader that has gone (`xlazy doctor | head`) is not an error.
pub fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Says why a command could not do its work.
pub fn fail(message: &str) -> ExitCode {
    eprintln!("xlazy: {message}");
    ExitCode::FAILURE
}

pub fn fail_with(failure: &Failure) -> ExitCode {
    for line in failure_lines(failure) {
        eprintln!("{}", plain_unless(colours(&io::stderr()), &line));
    }
    ExitCode::FAILURE
}
