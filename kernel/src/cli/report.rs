//! What a subcommand tells whoever called it: lines, and how it ended.
use crate::engine::Failure;
use crate::terminal::{colours, failure_lines, plain_unless};
use serde_json::Value;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

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

/// What a process prints last, as JSON.
pub fn last_line(mut command: Command, program: &Path) -> Result<Value, String> {
    let failed = |why: String| format!("{}: {why}", program.display());
    let done = command.stderr(Stdio::piped()).output().map_err(|e| failed(e.to_string()))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(failed(format!("ended with {}: {}", done.status, said.lines().last().unwrap_or_default())));
    }
    let text = String::from_utf8_lossy(&done.stdout);
    serde_json::from_str(text.lines().last().unwrap_or_default()).map_err(|e| failed(format!("{e}: {text}")))
}
