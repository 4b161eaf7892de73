//! Links a cell's object, beside the compiler. rust-lld starts with rustc, before there is a cell, reads the libraries, and waits
//! for the object on its standard input: what is left to do then takes 2 ms, of the 16 that it takes as rustc starts it. Of the
//! groups of earlier cells it reads those alone that the last cell was linked to, unless they are few; where the next one needs
//! others, it starts anew.
use super::linker::Lld;
use std::ffi::OsString;
use std::io::{Result, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where it finds the object.
const STDIN: &str = "/dev/stdin";

/// What is told as rustc tells it. Symbols of archives stay inside.
const FLAGS: &[&str] = &[
    "-flavor",
    "gnu",
    "-shared",
    "--as-needed",
    "--eh-frame-hdr",
    "--gc-sections",
    "--exclude-libs=ALL",
    // So little is linked that starting threads takes longer than what they do.
    "--threads=1",
    "-znoexecstack",
    "-zrelro",
    "-znow",
    // What rustc would have linked to besides is missed here, and not when the cell is loaded.
    "-zdefs",
];
const SYSTEM: &[&str] = &["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"];

/// A linker for one object.
pub struct Link {
    exe: PathBuf,
    args: Vec<OsString>,
    /// What rustc makes.
    pub object: PathBuf,
    waiting: Option<Child>,
    /// The groups that it is linked to, with what those are.
    groups: Vec<PathBuf>,
}

impl Link {
    /// What links to these libraries and groups, and exports what that list names, where the object does not say so itself. None
    /// where the toolchain's own libraries are not found.
    pub fn new(
        lld: &Lld,
        target: &Path,
        dir: &Path,
        libraries: &[&Path],
        groups: Vec<PathBuf>,
        exports: Option<&Path>,
    ) -> Option<Link> {
        let mut args: Vec<OsString> = FLAGS.iter().map(OsString::from).collect();
        args.extend(exports.map(|list| with("--version-script=", list)));
        args.extend(lld.search.iter().map(|folder| with("-L", folder)));
        args.extend(libraries.iter().map(OsString::from));
        for (begin, end) in [("libstd-", ".so"), ("libcompiler_builtins-", ".rlib")] {
            args.push(lld.library(begin, end)?.into());
        }
        args.extend(SYSTEM.iter().map(OsString::from));
        args.extend([with("-rpath=", dir), "-o".into(), target.into()]);
        let mut link =
            Link { exe: lld.exe.clone(), args, object: target.with_extension("o"), waiting: None, groups: Vec::new() };
        link.begin(groups);
        Some(link)
    }

    /// Starts it, unless one waits already that has read these groups.
    pub fn begin(&mut self, groups: Vec<PathBuf>) {
        if self.waiting.is_some() && groups.iter().all(|group| self.groups.contains(group)) {
            return;
        }
        self.stop();
        self.groups = groups;
        let mut command = self.command(Path::new(STDIN));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        self.waiting = command.spawn().ok();
    }

    fn stop(&mut self) {
        if let Some(mut waiting) = self.waiting.take() {
            let _ = waiting.kill();
            let _ = waiting.wait();
        }
    }

    /// Links what rustc has made, which goes; or says why that cannot be.
    pub fn link(mut self) -> std::result::Result<(), String> {
        let done = self.waiting.take().map(|waiting| hand(waiting, &self.object));
        if matches!(done, Some(Ok(true))) {
            return Ok(());
        }
        // Somebody has killed it, or it has something to say.
        let out = self.command(&self.object).stdin(Stdio::null()).output();
        let out = out.map_err(|e| format!("{}: {e}", self.exe.display()))?;
        let said = || format!("rust-lld: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
        out.status.success().then_some(()).ok_or_else(said)
    }

    fn command(&self, object: &Path) -> Command {
        let mut command = Command::new(&self.exe);
        // As with rustc, Ctrl-C in a terminal is for the cell.
        command.args(&self.args).args(&self.groups).arg(object).process_group(0);
        command
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_file(&self.object);
    }
}

/// Hands the object to a linker that waits; whether it has linked it.
fn hand(mut waiting: Child, object: &Path) -> Result<bool> {
    let written = std::fs::read(object).and_then(|bytes| match waiting.stdin.take() {
        Some(mut stdin) => stdin.write_all(&bytes),
        None => Ok(()),
    });
    let status = waiting.wait()?;
    written.map(|()| status.success())
}

fn with(option: &str, path: &Path) -> OsString {
    let mut arg = OsString::from(option);
    arg.push(path);
    arg
}
