//! `xlazy plugins`: which PJRT plugins there are; ready ones fetched at the user's wish.
use super::report::{fail, fail_with, say};
use crate::eval::install::Installation;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use xlazy_mime::regular;

/// A plugin that somebody has built and put into a Python package: its library alone is kept, by its hash.
struct Ready {
    name: &'static str,
    /// What people call it.
    title: &'static str,
    package: &'static str,
    version: &'static str,
    size: &'static str,
    /// The platform that its wheel names.
    platform: &'static str,
    wheel: &'static str,
    wheel_sha256: &'static str,
    /// The library's own, as it is in the wheel: the same file may come from elsewhere.
    sha256: &'static str,
    /// The package's folder and what is taken of it, the library first.
    folder: &'static str,
    files: &'static [&'static str],
    licence: &'static str,
    /// What is said before anything is fetched, and when it is there.
    before: &'static str,
    after: &'static str,
}

/// Wheels are per Python version in name only: there is no Python in these libraries, so any Python may fetch them.
const PYTHON: &str = "3.11";

const READY: &[Ready] = &[
    Ready {
        name: "cpu",
        title: "XLA's CPU plugin",
        package: "fastatomstruct-xla-cpu",
        version: "2026.6.23",
        size: "63 MB, 274 MB when unpacked",
        platform: "manylinux_2_27_x86_64",
        wheel: "fastatomstruct_xla_cpu-2026.6.23-py3-none-manylinux_2_27_x86_64.whl",
        wheel_sha256: "88b1c430b341b4bea40a37420311c9c75db6e22b46d2ff95b6986577bee6afe9",
        sha256: "0a0fe56ca17be9efc7b942e89e534e5e0ad4a0f1e369b66d27b62184509015b9",
        folder: "fastatomstruct_xla_cpu",
        files: &["libpjrt_cpu.so"],
        licence: "Apache-2.0, https://github.com/openxla/xla",
        before: "XLA's CPU plugin as zml/pjrt-artifacts builds it (manual-2026-06-23T00-20-00Z), under Apache-2.0.",
        after: "it has no profiler; scripts/cpu-plugin.sh in xlazy's sources builds one that has",
    },
    Ready {
        name: "tpu",
        title: "libtpu",
        package: "libtpu",
        version: "0.0.51",
        size: "205 MB, 435 MB when unpacked",
        platform: "manylinux_2_31_x86_64",
        wheel: "libtpu-0.0.51-cp311-cp311-manylinux_2_31_x86_64.whl",
        wheel_sha256: "ba67ddbfdbac61c8da1fafc26cd51b93e9fe4d298016e2882eb986b1718cba34",
        sha256: "ad0b2a3bc5d4de96f653b3701aaed8769a691776ca0e14c791dcdca785d43e42",
        folder: "libtpu",
        files: &["libtpu.so", "LICENSE", "THIRD_PARTY_NOTICES.txt"],
        licence: "Google Cloud Platform Terms of Service, https://cloud.google.com/terms",
        before: "libtpu is Google's, under the Google Cloud Platform Terms of Service \
                 (https://cloud.google.com/terms); it is no part of xlazy, and by fetching it you accept its terms.",
        after: "compile for a TPU with %tpu v5e:1x1 EXPRESSION in a cell, or with `xlazy aot`",
    },
];

impl Ready {
    fn library(&self) -> &'static str {
        self.files[0]
    }
}

pub fn command() -> Command {
    let names = READY.iter().map(|r| r.name);
    let which = |help| {
        Arg::new("name").required(true).value_name("PLUGIN").value_parser(names.clone().collect::<Vec<_>>()).help(help)
    };
    let fetched = READY.iter().map(|r| format!("{}: {} {} ({}). {}", r.name, r.package, r.version, r.size, r.before));
    Command::new("plugins")
        .about("List the PJRT plugins, and install or remove ready ones: XLA's for the CPU, Google's libtpu")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list")
                .about("List each plugin's name and library; `xlazy doctor` says whether they load")
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print a JSON array")),
        )
        .subcommand(
            Command::new("install")
                .about("Fetch a plugin with pip: XLA's for the CPU, or libtpu, which compiles for TPUs on any machine")
                .arg(which("What to install: cpu or tpu"))
                .arg(
                    Arg::new("fetch")
                        .long("fetch")
                        .action(ArgAction::SetTrue)
                        .help("Fetch it even where there is one already, in a Python environment or built by you"),
                )
                .arg(
                    Arg::new("library")
                        .long("library")
                        .value_name("FILE")
                        .value_parser(value_parser!(PathBuf))
                        .help("Take the library from there: the very same file, fetched from elsewhere"),
                )
                .after_help(format!(
                    "Fetches a wheel from the package index that pip is set up for, checks its SHA-256 and keeps the \
                     library.\n\n{}",
                    fetched.collect::<Vec<_>>().join("\n\n")
                )),
        )
        .subcommand(
            Command::new("remove").about("Remove what install has fetched").arg(which("What to remove: cpu or tpu")),
        )
}

pub fn run(matches: &ArgMatches) -> ExitCode {
    let (name, matches) = matches.subcommand().expect("clap asks for one");
    let installation = match Installation::find() {
        Ok(installation) => installation,
        Err(failure) => return fail_with(&failure),
    };
    if name == "list" {
        list(&installation, matches.get_flag("json"));
        return ExitCode::SUCCESS;
    }
    let wanted = matches.get_one::<String>("name").expect("it is required");
    let ready = READY.iter().find(|r| r.name == wanted).expect("clap knows no others");
    let done = match name {
        "install" => {
            let library = matches.get_one::<PathBuf>("library").map(PathBuf::as_path);
            install(ready, &installation, matches.get_flag("fetch"), library)
        }
        _ => remove(ready, &installation.plugins_dir),
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

/// The plugins below a folder, by name: each has a folder of its own, with the PJRT library beside what it needs. A CPU plugin that
/// the environment names comes before what lies there.
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
    if let Some(library) = std::env::var_os("XLAZY_CPU_PLUGIN").map(PathBuf::from) {
        found.retain(|p| p.name != "cpu");
        found.push(Plugin { name: "cpu".into(), library });
    }
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
    let package = folder.file_name().unwrap_or_default().to_string_lossy().into_owned() + "-";
    let package = |n: String| Some(n.strip_prefix(&package)?.strip_suffix(".dist-info")?.to_owned());
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

fn install(ready: &Ready, installation: &Installation, fetch: bool, library: Option<&Path>) -> Result<(), String> {
    let folder = installation.plugins_dir.join(ready.name);
    let ours = folder.join(ready.library());
    let (title, there) = (ready.title, version(&ours));
    if ours.is_file() && there == ready.version {
        say(&format!("{title} {there} is installed already: {}", ours.display()));
        return Ok(());
    }
    if let (Some((library, from)), false) = (instead(ready, installation), fetch || library.is_some()) {
        say(&format!(
            "there is {title} already, and xlazy uses it: {} (from {from}). --fetch fetches {} all the same.",
            library.display(),
            ready.version
        ));
        return Ok(());
    }
    say(ready.before);
    let failed = |what: &str, e: std::io::Error| format!("{what}: {e}");
    fs::create_dir_all(&installation.plugins_dir)
        .map_err(|e| failed(&installation.plugins_dir.display().to_string(), e))?;
    let stage = Stage::new(&installation.plugins_dir)?;
    let made = stage.0.join(ready.name);
    fs::create_dir_all(&made).map_err(|e| failed("unpacking", e))?;
    let taken = made.join(ready.library());
    match library {
        Some(file) => drop(fs::copy(file, &taken).map_err(|e| failed(&file.display().to_string(), e))?),
        None => {
            let python = Python::find(&stage.0)?;
            say(&format!("fetching {} {} ({})", ready.package, ready.version, ready.size));
            let wheel = python.download(ready, &stage.0)?;
            check(&wheel, ready.wheel, ready.wheel_sha256)?;
            python.unpack(ready, &wheel, &made)?;
        }
    }
    check(&taken, ready.library(), ready.sha256)?;
    strip(&taken);
    let note = json!({
        "name": ready.name, "package": ready.package, "version": ready.version, "wheel": ready.wheel,
        "wheel_sha256": ready.wheel_sha256, "library_sha256": ready.sha256, "licence": ready.licence,
    });
    fs::write(made.join("plugin.json"), format!("{note:#}\n")).map_err(|e| failed("plugin.json", e))?;
    if folder.exists() {
        fs::rename(&folder, stage.0.join("old")).map_err(|e| failed(&folder.display().to_string(), e))?;
    }
    fs::rename(&made, &folder).map_err(|e| failed(&folder.display().to_string(), e))?;
    say(&format!("{title} {} is in {}", ready.version, folder.display()));
    say(ready.after);
    Ok(())
}

/// What is used without fetching anything, and who has brought it.
fn instead(ready: &Ready, installation: &Installation) -> Option<(PathBuf, String)> {
    let folder = installation.plugins_dir.join(ready.name);
    if ready.name == "tpu" {
        return libtpus(installation).into_iter().find(|(l, _)| !l.starts_with(&folder));
    }
    // One that was built here is no earlier version of the one that is fetched.
    let note = regular::read_to_string(folder.join("plugin.json")).ok()?;
    let note: Value = serde_json::from_str(&note).ok()?;
    let built = folder.join(ready.library());
    (built.is_file() && note.get("source_sha256").is_some()).then(|| (built, "scripts/cpu-plugin.sh".to_owned()))
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

    fn download(&self, ready: &Ready, to: &Path) -> Result<PathBuf, String> {
        let to = to.join("wheel");
        let (folder, package) = (to.to_string_lossy(), format!("{}=={}", ready.package, ready.version));
        let arguments = ["-m", "pip", "download", "--disable-pip-version-check", "--no-cache-dir", "--no-deps"];
        let which = [
            "--only-binary=:all:",
            "--python-version",
            PYTHON,
            "--platform",
            ready.platform,
            "--dest",
            &folder,
            &package,
        ];
        let fetched = self.command(&arguments).args(which).status();
        if !fetched.is_ok_and(|s| s.success()) {
            return Err(format!(
                "pip could not fetch {package}: check the network and pip's settings, then run this again"
            ));
        }
        let wheel = to.join(ready.wheel);
        if !wheel.is_file() {
            return Err(format!("pip fetched something else than {}", ready.wheel));
        }
        Ok(wheel)
    }

    fn unpack(&self, ready: &Ready, wheel: &Path, to: &Path) -> Result<(), String> {
        const SCRIPT: &str = "\
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in sys.argv[4:]:
        with wheel.open(sys.argv[3] + '/' + name) as member, open(sys.argv[2] + '/' + name, 'wb') as out:
            shutil.copyfileobj(member, out, 1 << 20)
";
        let (wheel, to) = (wheel.to_string_lossy(), to.to_string_lossy());
        match self.command(&["-c", SCRIPT, &wheel, &to, ready.folder]).args(ready.files).status() {
            Ok(status) if status.success() => Ok(()),
            _ => Err("the wheel could not be unpacked: is there room for 1 GB on the disk?".into()),
        }
    }
}

/// Compares a file with the one that xlazy was tested with.
fn check(file: &Path, name: &str, expected: &str) -> Result<(), String> {
    let came = sha256(file).map_err(|e| format!("{}: {e}", file.display()))?;
    if came == expected {
        return Ok(());
    }
    Err(format!(
        "{name} has the wrong SHA-256 and was deleted\n  expected {expected}\n  came     {came}\nRun this again; if it \
         happens again, what you fetch it from does not serve the file that xlazy was tested with."
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

fn remove(ready: &Ready, plugins: &Path) -> Result<(), String> {
    let folder = plugins.join(ready.name);
    if !folder.exists() {
        say(&format!("nothing to remove: there is no {}", folder.display()));
        return Ok(());
    }
    fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    say(&format!("removed {}", folder.display()));
    Ok(())
}
