//! `xlazy describe-toolchain`: prints `runtime.json`, in which install.sh keeps what built the runtime.
use super::report::{fail, fail_with, say};
use crate::eval::install::Toolchain;
use clap::{ArgMatches, Command};
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("describe-toolchain").hide(true).about("Print which compiler and linker cells are to use, as JSON")
}

pub fn run(_matches: &ArgMatches) -> ExitCode {
    match Toolchain::find() {
        Ok(toolchain) => match describe(&toolchain) {
            Some(description) => {
                say(&format!("{description:#}"));
                ExitCode::SUCCESS
            }
            None => fail(&format!("{} does not say its version", toolchain.rustc.display())),
        },
        Err(failure) => fail_with(&failure),
    }
}

fn describe(toolchain: &Toolchain) -> Option<Value> {
    let rustc = RustcVersion::of(&toolchain.rustc)?;
    Some(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "rustc": rustc.release,
        "rustc_commit": rustc.commit,
        "toolchain": toolchain.to_json(),
    }))
}

/// What tells one rustc from another: only the very same one can compile cells for a runtime.
pub struct RustcVersion {
    pub release: String,
    pub commit: String,
}

impl RustcVersion {
    /// Asks the compiler; nothing if it does not run.
    pub fn of(rustc: &std::path::Path) -> Option<RustcVersion> {
        let done = std::process::Command::new(rustc).arg("-vV").output().ok().filter(|done| done.status.success())?;
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let field = |name: &str| Some(text.lines().find_map(|l| l.strip_prefix(name))?.trim().to_owned());
        Some(RustcVersion { release: field("release:")?, commit: field("commit-hash:")? })
    }
}
