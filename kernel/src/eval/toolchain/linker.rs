//! What links cells: rust-lld, with the folders of the machine's C compiler, or with what stands for it where there is none.
//!
//! That is a folder with what linking takes of a C library's -dev package. The libraries are those that this process has loaded
//! itself, so they are there and fit. What every program and library gets of its own, a first instruction and a few functions,
//! rustc makes of `assets/link`. Only cargo needs a linker by name, for build scripts and procedural macros: a shell script that
//! adds what `cc` would.
use crate::folder::{run_somewhere, runs_nothing};
use crate::home;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xlazy_mime::private;

const START: &str = include_str!("../../../assets/link/start.rs");
const NONSHARED: &str = include_str!("../../../assets/link/nonshared.rs");

/// What rustc and crates link to, under the names that linkers look for; parts of the C library where it has them as files.
const LIBRARIES: [(&str, &str); 6] = [
    ("libgcc_s.so", "libgcc_s.so.1"),
    ("libm.so", "libm.so.6"),
    ("libpthread.so", "libpthread.so.0"),
    ("libdl.so", "libdl.so.2"),
    ("librt.so", "librt.so.1"),
    ("libutil.so", "libutil.so.1"),
];

pub const TARGET: &str = "x86_64-unknown-linux-gnu";

#[derive(Clone, Debug, PartialEq)]
pub struct Lld {
    pub exe: PathBuf,
    pub search: Vec<PathBuf>,
    /// What cargo is to link by where there is no `cc`.
    pub by_name: Option<PathBuf>,
}

impl Lld {
    /// A library of the toolchain, which has a hash in its name.
    pub fn library(&self, begin: &str, end: &str) -> Option<PathBuf> {
        let folder = self.exe.parent()?.with_file_name("lib");
        let mut names = fs::read_dir(&folder).ok()?.filter_map(|e| e.ok()?.file_name().into_string().ok());
        let name = names.find(|name| name.starts_with(begin) && name.ends_with(end))?;
        Some(folder.join(name))
    }
}

/// The rust-lld of a toolchain. Without one rustc links through `cc`.
pub fn find(sysroot: &Path) -> Option<Lld> {
    let exe = sysroot.join("lib/rustlib").join(TARGET).join("bin/rust-lld");
    if !exe.is_file() {
        return None;
    }
    match folders_of_cc() {
        Some(search) => Some(Lld { exe, search, by_name: None }),
        // Cells then tell of a linker that is not there; `xlazy doctor` says the same.
        None => without_cc(sysroot, exe).ok(),
    }
}

/// Where a C compiler finds libc and libgcc_s.
fn folders_of_cc() -> Option<Vec<PathBuf>> {
    let mut search = Vec::new();
    for library in ["libgcc_s.so", "libgcc_s.so.1", "libc.so"] {
        let path = PathBuf::from(output(Command::new("cc").arg(format!("-print-file-name={library}")))?);
        let dir = path.canonicalize().ok().and_then(|p| Some(p.parent()?.to_owned()));
        let dir = if path.is_absolute() { path.parent().map(Path::to_owned).or(dir) } else { None };
        search.extend(dir.filter(|d| !search.contains(d)));
    }
    (!search.is_empty()).then_some(search)
}

/// What a program prints, if it succeeds.
pub fn output(command: &mut Command) -> Option<String> {
    let out = run_somewhere(command, Path::new("/")).stderr(Stdio::null()).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// rust-lld with all that it needs to link without `cc`, made the first time.
fn without_cc(sysroot: &Path, exe: PathBuf) -> Result<Lld> {
    let system = System::of_this_process()?;
    let rustc = sysroot.join("bin/rustc");
    let mut hash = Sha256::new();
    // A compiler of another version lies elsewhere, or is newer than what it made.
    let made = |p: &Path| fs::metadata(p).and_then(|m| m.modified()).ok();
    hash.update(format!("{START}{NONSHARED}{SCRIPT}{system:?}{exe:?}{:?}", made(&rustc)));
    let name: String = hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect();
    // Who has no home, or one that is full, or may not write to it or run what lies there, has a temporary folder.
    let in_cache = home::caches().map(|caches| system.made(&caches, &name, &rustc, &exe));
    let folder = match in_cache {
        Some(Ok(folder)) => folder,
        _ => system.made(&home::temporary()?, &name, &rustc, &exe)?,
    };
    let mut search = vec![folder.clone()];
    for library in [&system.libc, &system.libgcc] {
        search.extend(library.parent().map(Path::to_owned).filter(|d| !search.contains(d)));
    }
    Ok(Lld { exe, search, by_name: Some(folder.join("ld.lld")) })
}

/// The system's libraries.
#[derive(Debug)]
struct System {
    libc: PathBuf,
    libgcc: PathBuf,
    loader: PathBuf,
}

impl System {
    fn of_this_process() -> Result<System> {
        let maps = fs::read_to_string("/proc/self/maps")?;
        let loaded = |name: &str| {
            let paths = maps.lines().filter_map(|l| l.find('/').map(|at| Path::new(&l[at..])));
            let mut found = paths.filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(name)));
            found
                .next()
                .map(Path::to_owned)
                .ok_or_else(|| missing(&format!("{name} among what xlazy itself has loaded")))
        };
        Ok(System {
            libc: loaded("libc.so.6")?,
            libgcc: loaded("libgcc_s.so.1")?,
            loader: loaded("ld-linux-x86-64.so")?,
        })
    }

    /// The folder of that name among those of a place, made if it is not there.
    fn made(&self, place: &Path, name: &str, rustc: &Path, lld: &Path) -> Result<PathBuf> {
        let base = place.join("link");
        private::folder(&base)?;
        if let Some(why) = runs_nothing(&base, "program", "XLAZY_CACHE") {
            return Err(Error::other(why));
        }
        let folder = base.join(name);
        if !folder.is_dir() {
            let work = private::temporary(&base, ".new-")?;
            let done = self.fill(&work, &folder, rustc, lld).and_then(|()| match fs::rename(&work, &folder) {
                // Another kernel was quicker, and made the same.
                Err(_) if folder.is_dir() => Ok(()),
                done => done,
            });
            let _ = fs::remove_dir_all(&work);
            done?;
        }
        Ok(folder)
    }

    /// Makes what `folder` is to have, in another one.
    fn fill(&self, work: &Path, folder: &Path, rustc: &Path, lld: &Path) -> Result<()> {
        for (name, file) in LIBRARIES {
            let beside = [&self.libgcc, &self.libc].map(|l| l.with_file_name(file));
            // The C library has in itself what it has no file for.
            symlink(beside.iter().find(|p| p.is_file()).unwrap_or(&self.libc), work.join(name))?;
        }
        compile(rustc, work, NONSHARED, "nonshared", &["--crate-type=rlib", "--emit=link=libc_nonshared.a"])?;
        compile(rustc, work, START, "start", &["--crate-type=lib", "--emit=obj=start.o"])?;
        let (libc, loader) = (self.libc.display(), self.loader.display());
        let nonshared = folder.join("libc_nonshared.a");
        let group = format!("GROUP ( \"{libc}\" \"{}\" AS_NEEDED ( \"{loader}\" ) )\n", nonshared.display());
        fs::write(work.join("libc.so"), group)?;
        let mut script = String::from(SCRIPT);
        for (name, path) in [("LLD", lld), ("LOADER", &self.loader), ("FOLDER", folder)] {
            script = script.replace(&format!("{{{name}}}"), &quoted(path));
        }
        fs::write(work.join("ld.lld"), script)?;
        fs::set_permissions(work.join("ld.lld"), fs::Permissions::from_mode(0o700))
    }
}

const SCRIPT: &str = "\
#!/bin/sh
# What `cc` adds when it links: where a program begins, who loads it, and where the system's libraries are.
case \" $* \" in
*' -shared '*) ;;
*) set -- {FOLDER}/start.o -dynamic-linker {LOADER} \"$@\" ;;
esac
exec {LLD} -flavor gnu \"$@\" -L {FOLDER}
";

/// As one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// In that folder: where it runs rustc leaves files for a moment, under the same names each time.
fn compile(rustc: &Path, folder: &Path, source: &str, name: &str, options: &[&str]) -> Result<()> {
    let mut command = Command::new(rustc);
    command.args(["--edition=2024", "-Copt-level=2", "-Cpanic=abort", "-", "--crate-name", name]).args(options);
    command.current_dir(folder);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        std::io::Write::write_all(&mut stdin, source.as_bytes())?;
    }
    let done = child.wait_with_output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(Error::other(String::from_utf8_lossy(&done.stderr).into_owned())),
    }
}

fn missing(what: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("linking without cc needs {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysroot() -> PathBuf {
        let said = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap().stdout;
        PathBuf::from(String::from_utf8(said).unwrap().trim())
    }

    /// A program as build scripts are, and as rustc can make it otherwise: its constructors run before it with its arguments,
    /// what it leaves for the end runs there, panics unwind, threads have their own.
    #[test]
    fn programs_begin_and_end_as_with_cc() {
        const PROGRAM: &str = include_str!("../../../tests/without_cc/program.rs");
        let sysroot = sysroot();
        let folder = private::temporary(&std::env::temp_dir(), "xlazy-without-cc' ").unwrap();
        let lld = without_cc(&sysroot, sysroot.join("lib/rustlib").join(TARGET).join("bin/rust-lld")).unwrap();
        // No program at all can be found by its name.
        let nothing = folder.join("nothing");
        for options in [&["-Copt-level=0"][..], &["-Cprefer-dynamic"], &["-Crelocation-model=static"]] {
            let mut linker = std::ffi::OsString::from("-Clinker=");
            linker.push(lld.by_name.as_ref().unwrap());
            let program = folder.join("program");
            let mut rustc = Command::new(sysroot.join("bin/rustc"));
            rustc.args(["--edition=2024", "-", "-o"]).arg(&program).arg(&linker).args(options).env("PATH", &nothing);
            let mut child = rustc.stdin(Stdio::piped()).spawn().unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), PROGRAM.as_bytes()).unwrap();
            assert!(child.wait().unwrap().success(), "{options:?}");
            let libraries = sysroot.join("lib/rustlib").join(TARGET).join("lib");
            let ran = Command::new(&program).args(["a", "b"]).env("LD_LIBRARY_PATH", libraries).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&ran.stdout), "3 2 1 true 1\nlast\n", "{options:?}: {ran:?}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
