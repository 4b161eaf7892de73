//! `xlazy plugins`: which PJRT plugins there are, and libtpu fetched at the user's wish.
use super::report::{fail, fail_with, say};
use crate::eval::install::Installation;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use xlazy_mime::regular;

pub fn command() -> Command {
    let which = |help| Arg::new("name").required(true).value_name("PLUGIN").value_parser(["tpu"]).help(help);
    Command::new("plugins")
        .about("List the PJRT plugins, and install or remove libtpu")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list")
                .about("List each plugin's name and library; `xlazy doctor` says whether they load")
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print a JSON array")),
        )
        .subcommand(
            Command::new("install")
                .about("Fetch Google's libtpu with pip, which compiles for TPUs on any machine")
                .arg(which("What to install: tpu"))
                .arg(
                    Arg::new("fetch")
                        .long("fetch")
                        .action(ArgAction::SetTrue)
                        .help("Fetch it even where a Python environment has one already"),
                )
                .after_help(format!(
                    "Fetches {PACKAGE}=={VERSION} ({SIZE}) from the package index that pip is set up for, checks its SHA-256 \
                     and keeps libtpu.so alone. {LICENCE}"
                )),
        )
        .subcommand(Command::new("remove").about("Remove what install has fetched").arg(which("What to remove: tpu")))
}

pub fn run(matches: &ArgMatches) -> ExitCode {
    let (name, matches) = matches.subcommand().expect("clap asks for one");
    let installation = match Installation::find() {
        Ok(installation) => installation,
        Err(failure) => return fail_with(&failure),
    };
    let done = match name {
        "list" => {
            list(&installation, matches.get_flag("json"));
            Ok(())
        }
        "install" => install(&installation, matches.get_flag("fetch")),
        _ => remove(&installation.plugins_dir),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => fail(&why),
    }
}

// ---- List

/// A plugin folder and the library in it that speaks PJRT.
pub struct Plugin {
    pub name: String,
    pub library: PathBuf,
}

/// The plugins below a folder, by name: each has a folder of its own, with the PJRT library beside what it needs.
pub fn installed(plugins: &Path) -> Vec<Plugin> {
    let folders = fs::read_dir(plugins).into_iter().flatten().flatten();
    let mut found: Vec<Plugin> = folders
        .filter_map(|folder| {
            let name = folder.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                return None;
            }
            let files = fs::read_dir(folder.path()).ok()?.flatten().map(|f| f.path());
            let library = files.filter(|p| is_pjrt(p)).min()?;
            Some(Plugin { name, library })
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn is_pjrt(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".so") && (name.contains("pjrt") || name == "libtpu.so")
}

/// One line of the list.
struct Listed {
    name: String,
    library: PathBuf,
    version: String,
    from: String,
}

fn list(installation: &Installation, as_json: bool) {
    let mut all: Vec<Listed> = installed(&installation.plugins_dir)
        .into_iter()
        .map(|p| Listed { version: version(&p.library), name: p.name, library: p.library, from: "xlazy".into() })
        .collect();
    let ours: Vec<PathBuf> = all.iter().filter_map(|p| p.library.canonicalize().ok()).collect();
    let others = libtpus(installation);
    for (library, from) in others.into_iter().filter(|(l, _)| l.canonicalize().is_ok_and(|l| !ours.contains(&l))) {
        all.push(Listed { name: "tpu".into(), version: version(&library), library, from });
    }
    if as_json {
        let one = |p: &Listed| json!({"name": p.name, "library": p.library, "version": p.version, "from": p.from});
        return say(&format!("{:#}", all.iter().map(one).collect::<Value>()));
    }
    for p in &all {
        let from = if p.from == "xlazy" { String::new() } else { format!("  (from {})", p.from) };
        say(&format!("{:6}{:10}{}{from}", p.name, p.version, p.library.display()));
    }
    if all.is_empty() {
        say(&format!("no plugins in {}", installation.plugins_dir.display()));
    }
    if !all.iter().any(|p| p.name == "tpu") {
        say("tpu   -         not here: `xlazy plugins install tpu` fetches libtpu, to compile for TPUs without one");
    }
}

/// The version that the note beside a library gives, or the one of its Python package.
fn version(library: &Path) -> String {
    let folder = library.parent().unwrap_or(Path::new("."));
    let noted = regular::read_to_string(folder.join("plugin.json")).ok();
    let noted = noted.and_then(|t| serde_json::from_str::<Value>(&t).ok());
    if let Some(version) = noted.as_ref().and_then(|j| j.get("version")).and_then(Value::as_str) {
        return version.to_owned();
    }
    let beside = fs::read_dir(folder.join("..")).into_iter().flatten().flatten();
    let package = |n: String| Some(n.strip_prefix("libtpu-")?.strip_suffix(".dist-info")?.to_owned());
    beside.filter_map(|e| package(e.file_name().to_string_lossy().into_owned())).next().unwrap_or_else(|| "-".into())
}

/// Every libtpu that the runtime would use, the first one first, and what names it.
fn libtpus(installation: &Installation) -> Vec<(PathBuf, String)> {
    let asked = std::process::Command::new(&installation.session_exe)
        .arg("--aot-places")
        .env("LD_LIBRARY_PATH", installation.library_path())
        .env("XLAZY_PLUGIN_DIR", &installation.plugins_dir)
        .stderr(Stdio::null())
        .output();
    let places: Value = asked.ok().and_then(|o| serde_json::from_slice(&o.stdout).ok()).unwrap_or_default();
    let place = |p: &Value| Some((p.get("library")?.as_str()?.into(), p.get("from")?.as_str()?.to_owned()));
    places.as_array().into_iter().flatten().filter_map(place).collect()
}

// ---- Install

const PACKAGE: &str = "libtpu";
const VERSION: &str = "0.0.51";
const SIZE: &str = "205 MB, 435 MB when unpacked";
/// The wheel is per Python version in name only: libtpu.so has no Python in it, so any Python may fetch this one.
const PYTHON: &str = "3.11";
const PLATFORM: &str = "manylinux_2_31_x86_64";
const WHEEL: &str = "libtpu-0.0.51-cp311-cp311-manylinux_2_31_x86_64.whl";
const SHA256: &str = "ba67ddbfdbac61c8da1fafc26cd51b93e9fe4d298016e2882eb986b1718cba34";
const LICENCE: &str = "libtpu is Google's, under the Google Cloud Platform Terms of Service \
                       (https://cloud.google.com/terms); it is no part of xlazy, and by fetching it you accept its terms.";

fn install(installation: &Installation, fetch: bool) -> Result<(), String> {
    let folder = installation.plugins_dir.join("tpu");
    let ours = folder.join("libtpu.so");
    if ours.is_file() && version(&ours) == VERSION {
        say(&format!("libtpu {VERSION} is installed already: {}", ours.display()));
        return Ok(());
    }
    let theirs = libtpus(installation).into_iter().find(|(l, _)| !l.starts_with(&folder));
    if let (Some((library, from)), false) = (&theirs, fetch) {
        say(&format!(
            "there is a libtpu already, and xlazy uses it: {} (from {from}). --fetch fetches {VERSION} all the same.",
            library.display()
        ));
        return Ok(());
    }
    say(LICENCE);
    let failed = |what: &str, e: std::io::Error| format!("{what}: {e}");
    fs::create_dir_all(&installation.plugins_dir)
        .map_err(|e| failed(&installation.plugins_dir.display().to_string(), e))?;
    let stage = Stage::new(&installation.plugins_dir)?;
    let python = Python::find(&stage.0)?;
    say(&format!("fetching {PACKAGE} {VERSION} ({SIZE})"));
    let wheel = python.download(&stage.0)?;
    check(&wheel)?;
    let made = stage.0.join("tpu");
    fs::create_dir_all(&made).map_err(|e| failed("unpacking", e))?;
    python.unpack(&wheel, &made)?;
    strip(&made.join("libtpu.so"));
    let note = json!({
        "name": "tpu", "package": PACKAGE, "version": VERSION, "wheel": WHEEL, "wheel_sha256": SHA256,
        "licence": "Google Cloud Platform Terms of Service, https://cloud.google.com/terms",
    });
    fs::write(made.join("plugin.json"), format!("{note:#}\n")).map_err(|e| failed("plugin.json", e))?;
    if folder.exists() {
        fs::rename(&folder, stage.0.join("old")).map_err(|e| failed(&folder.display().to_string(), e))?;
    }
    fs::rename(&made, &folder).map_err(|e| failed(&folder.display().to_string(), e))?;
    say(&format!("libtpu {VERSION} is in {}", folder.display()));
    say("compile for a TPU with %tpu v5e:1x1 EXPRESSION in a cell, or with `xlazy aot`");
    Ok(())
}

/// A folder to work in, on the disk that the plugin is to lie on; gone at the end, however it comes.
struct Stage(PathBuf);

impl Stage {
    fn new(plugins: &Path) -> Result<Stage, String> {
        let folder = plugins.join(format!(".new-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Stage(folder))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A Python with pip, the ordinary way to what the package index has.
struct Python(PathBuf);

impl Python {
    fn find(stage: &Path) -> Result<Python, String> {
        let python = Python("python3".into());
        if python.runs(&["-m", "pip", "--version"]) {
            return Ok(python);
        }
        if !python.runs(&["--version"]) {
            return Err("python3 is needed to fetch it: sudo apt-get install -y python3 python3-pip".into());
        }
        // Some systems' Python comes without pip, and its venv module brings one.
        let venv = stage.join("pip");
        if python.runs(&["-m", "venv", &venv.to_string_lossy()]) {
            return Ok(Python(venv.join("bin/python")));
        }
        Err("python3 has no pip: sudo apt-get install -y python3-pip".into())
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(&self.0);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    fn runs(&self, arguments: &[&str]) -> bool {
        let quiet = self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet.is_ok_and(|s| s.success())
    }

    fn download(&self, to: &Path) -> Result<PathBuf, String> {
        let to = to.join("wheel");
        let (folder, package) = (to.to_string_lossy(), format!("{PACKAGE}=={VERSION}"));
        let arguments = ["-m", "pip", "download", "--disable-pip-version-check", "--no-cache-dir", "--no-deps"];
        let which =
            ["--only-binary=:all:", "--python-version", PYTHON, "--platform", PLATFORM, "--dest", &folder, &package];
        let fetched = self.command(&arguments).args(which).status();
        if !fetched.is_ok_and(|s| s.success()) {
            return Err(format!(
                "pip could not fetch {package}: check the network and pip's settings, then run this again"
            ));
        }
        let wheel = to.join(WHEEL);
        if !wheel.is_file() {
            return Err(format!("pip fetched something else than {WHEEL}"));
        }
        Ok(wheel)
    }

    fn unpack(&self, wheel: &Path, to: &Path) -> Result<(), String> {
        const SCRIPT: &str = "\
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in ('libtpu.so', 'LICENSE', 'THIRD_PARTY_NOTICES.txt'):
        with wheel.open('libtpu/' + name) as member, open(sys.argv[2] + '/' + name, 'wb') as out:
            shutil.copyfileobj(member, out, 1 << 20)
";
        let (wheel, to) = (wheel.to_string_lossy(), to.to_string_lossy());
        match self.command(&["-c", SCRIPT, &wheel, &to]).status() {
            Ok(status) if status.success() => Ok(()),
            _ => Err("the wheel could not be unpacked: is there room for 1 GB on the disk?".into()),
        }
    }
}

/// Compares the wheel with the one that xlazy was tested with.
fn check(wheel: &Path) -> Result<(), String> {
    let came = sha256(wheel).map_err(|e| format!("{}: {e}", wheel.display()))?;
    if came == SHA256 {
        return Ok(());
    }
    Err(format!(
        "{WHEEL} has the wrong SHA-256 and was deleted\n  expected {SHA256}\n  came     {came}\nRun this again; if it \
         happens again, the package index does not serve the file that xlazy was tested with."
    ))
}

fn sha256(file: &Path) -> std::io::Result<String> {
    let mut file = regular::open(file)?;
    let mut hash = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block)? {
            0 => break,
            n => hash.update(&block[..n]),
        }
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

/// Takes off the symbols, a quarter of the file; without binutils it stays as it is.
fn strip(library: &Path) {
    let _ = std::process::Command::new("strip").arg(library).stderr(Stdio::null()).status();
}

// ---- Remove

fn remove(plugins: &Path) -> Result<(), String> {
    let folder = plugins.join("tpu");
    if !folder.exists() {
        say(&format!("nothing to remove: there is no {}", folder.display()));
        return Ok(());
    }
    fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    say(&format!("removed {}", folder.display()));
    Ok(())
}
