//! `xlazy install` and `xlazy uninstall`: the kernelspec in Jupyter's data folder, and what its configuration should say.
use super::notebook::DISPLAY_NAME;
use super::report::{fail, say};
use super::transport;
use crate::eval::install::Installation;
use crate::home;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use serde_json::json;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const NAME: &str = "xlazy";

/// The logos, under the names Jupyter looks for.
const LOGOS: [(&str, &[u8]); 3] = [
    ("logo-svg.svg", include_bytes!("../../assets/logo.svg")),
    ("logo-32x32.png", include_bytes!("../../assets/logo-32x32.png")),
    ("logo-64x64.png", include_bytes!("../../assets/logo-64x64.png")),
];

pub fn command() -> Command {
    let ipc = "Also set KernelManager.transport = \"ipc\" in that Jupyter Server's configuration: all kernels on Unix \
               sockets that nobody but their user can open, and not on TCP ports that everybody on the machine can";
    with_places(Command::new("install").about("Tell Jupyter about xlazy (the kernelspec)")).arg(with_ipc(ipc))
}

fn with_ipc(help: &'static str) -> Arg {
    Arg::new("ipc").long("ipc").action(ArgAction::SetTrue).help(help)
}

pub fn uninstall_command() -> Command {
    let about = "Remove the kernelspec from Jupyter; nothing else is touched without --cache";
    let cache = "Also remove what is kept for later: compiled cells and programs, built dependencies";
    with_places(Command::new("uninstall").about(about))
        .arg(with_ipc("Also take away what `install --ipc` has set"))
        .arg(Arg::new("cache").long("cache").action(ArgAction::SetTrue).help(cache))
}

fn with_places(command: Command) -> Command {
    command
        .arg(
            Arg::new("user")
                .long("user")
                .action(ArgAction::SetTrue)
                .help("In the user's Jupyter folder: JUPYTER_DATA_DIR, or jupyter under XDG_DATA_HOME [default]"),
        )
        .arg(
            Arg::new("prefix")
                .long("prefix")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("In DIR/share/jupyter"),
        )
        .arg(
            Arg::new("sys-prefix")
                .long("sys-prefix")
                .action(ArgAction::SetTrue)
                .help("In the Python environment that is active (VIRTUAL_ENV, CONDA_PREFIX, or python3's prefix)"),
        )
        .group(ArgGroup::new("place").args(["user", "prefix", "sys-prefix"]))
}

pub fn run(matches: &ArgMatches) -> ExitCode {
    let installed = place(matches).and_then(|data| {
        let executable = std::env::current_exe().map_err(|e| format!("xlazy cannot tell where it is itself: {e}"))?;
        let home = std::env::var_os("XLAZY_HOME").map(PathBuf::from);
        write_kernelspec(&data, &executable, home.as_deref())
            .map_err(|e| format!("the kernelspec could not be written to {}: {e}", data.display()))
    });
    match installed {
        Ok(folder) => say(&format!("kernelspec xlazy: {}", folder.display())),
        Err(why) => return fail(&why),
    }
    configured(matches, "kernels on Unix sockets", transport::use_ipc)
}

/// Changes the configuration of the Jupyter that was meant, where that was asked for.
fn configured(matches: &ArgMatches, what: &str, change: fn(&Path) -> Result<PathBuf, String>) -> ExitCode {
    if !matches.get_flag("ipc") {
        return ExitCode::SUCCESS;
    }
    match config_folder(matches).and_then(|folder| change(&folder)) {
        Ok(file) => {
            say(&format!("{what}: {}", file.display()));
            ExitCode::SUCCESS
        }
        Err(why) => fail(&why),
    }
}

pub fn run_uninstall(matches: &ArgMatches) -> ExitCode {
    let folder = match place(matches) {
        Ok(data) => spec_folder(&data),
        Err(why) => return fail(&why),
    };
    match std::fs::remove_dir_all(&folder) {
        Ok(()) => say(&format!("removed: {}", folder.display())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            say(&format!("nothing to remove: {}", folder.display()));
        }
        Err(e) => return fail(&format!("{} could not be removed: {e}", folder.display())),
    }
    if matches.get_flag("cache") {
        // Before: looking for the installation makes what the linker needs, in the caches.
        let fetched = Installation::find().map(|i| super::plugins::fetched(&i.plugins_dir)).unwrap_or_default();
        match home::clear_caches() {
            Ok(gone) => gone.iter().for_each(|folder| say(&format!("removed: {}", folder.display()))),
            Err(e) => return fail(&format!("the caches could not be removed: {e}")),
        }
        // Some are gigabytes, and without xlazy nobody knows of them.
        fetched.iter().for_each(|name| say(&format!("kept: the plugin {name}; xlazy plugins remove {name}")));
    }
    configured(matches, "kernels as before", transport::no_longer_use_ipc)
}

/// Writes kernel.json and the logos into a Jupyter data folder; the answer is the kernelspec's own folder.
pub fn write_kernelspec(data: &Path, executable: &Path, home: Option<&Path>) -> io::Result<PathBuf> {
    let folder = spec_folder(data);
    std::fs::create_dir_all(&folder)?;
    let mut spec = json!({
        "argv": [executable.to_string_lossy(), "kernel", "{connection_file}"],
        "display_name": DISPLAY_NAME,
        "language": "rust",
        "interrupt_mode": "message",
        "metadata": {"debugger": false, "supported_encryption": ["curve"]},
    });
    if let Some(home) = home {
        spec["env"] = json!({"XLAZY_HOME": std::path::absolute(home)?.to_string_lossy()});
    }
    for (name, bytes) in LOGOS {
        std::fs::write(folder.join(name), bytes)?;
    }
    // Last, since this file is what makes the folder a kernelspec.
    std::fs::write(folder.join("kernel.json"), format!("{spec:#}\n"))?;
    Ok(folder)
}

/// Where the kernelspec lies in a Jupyter data folder.
pub fn spec_folder(data: &Path) -> PathBuf {
    data.join("kernels").join(NAME)
}

/// The user's Jupyter data folder, as Jupyter itself finds it.
pub fn user_data_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|v: &OsString| !v.is_empty()).map(PathBuf::from);
    set("JUPYTER_DATA_DIR")
        .or_else(|| set("XDG_DATA_HOME").map(|d| d.join("jupyter")))
        .or_else(|| set("HOME").map(|d| d.join(".local/share/jupyter")))
}

fn place(matches: &ArgMatches) -> Result<PathBuf, String> {
    match prefix(matches)? {
        Some(prefix) => Ok(prefix.join("share/jupyter")),
        None => user_data_folder().ok_or_else(nowhere),
    }
}

fn config_folder(matches: &ArgMatches) -> Result<PathBuf, String> {
    match prefix(matches)? {
        Some(prefix) => Ok(prefix.join("etc/jupyter")),
        None => transport::user_config_folder().ok_or_else(nowhere),
    }
}

fn nowhere() -> String {
    "no HOME is set: say where with --prefix DIR".to_owned()
}

/// Of the Python environment that is meant; none for the user's own folders.
fn prefix(matches: &ArgMatches) -> Result<Option<PathBuf>, String> {
    match matches.get_one::<PathBuf>("prefix") {
        Some(prefix) => Ok(Some(prefix.clone())),
        None if matches.get_flag("sys-prefix") => sys_prefix().map(Some),
        None => Ok(None),
    }
}

fn sys_prefix() -> Result<PathBuf, String> {
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        if let Some(prefix) = std::env::var_os(name).filter(|v| !v.is_empty()) {
            return Ok(prefix.into());
        }
    }
    let asked = std::process::Command::new("python3").args(["-c", "import sys; print(sys.prefix)"]).output();
    match asked {
        Ok(answer) if answer.status.success() => {
            Ok(PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim().to_owned()))
        }
        _ => Err("there is no active Python environment and no python3: say where with --prefix DIR".to_owned()),
    }
}
