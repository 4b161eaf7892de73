//! A home of its own for a program under test, which finds the compiler all the same.
use std::path::{Path, PathBuf};
use std::process::Command;

/// rustup and cargo keep the places that they have in the real home.
pub fn at_home<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    let real = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    for (name, place) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
        if std::env::var_os(name).is_none() {
            command.env(name, real.join(place));
        }
    }
    command.env("HOME", home)
}
