//! `xlazy plugins`: which PJRT plugins there are; ready ones fetched, and xlazy's own built, at the user's wish.
mod built;
mod fetch;
mod ready;

use super::options::json_flag;
use super::report::{fail, fail_with, say};
use crate::eval::install::Installation;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use fetch::{Stage, check, strip};
use ready::{READY, Ready};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use xlazy_mime::regular;

pub fn command() -> Command {
    let which = |help| {
        Arg::new("name").required(true).value_name("PLUGIN").value_parser(names().collect::<Vec<_>>()).help(help)
    };
    let fetched = READY
        .iter()
        .map(|r| format!("{}: {} {} ({}). {}", r.name, r.wheels[0].package, r.version(), r.size(), r.before));
    Command::new("plugins")
        .about("List the PJRT plugins, and install or remove some: XLA's for the CPU and CUDA, Google's libtpu, xlazy's own")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list")
                .about("List each plugin's name and library; `xlazy doctor` says whether they load")
                .arg(json_flag().help("Print a JSON array")),
        )
        .subcommand(
            Command::new("install")
                .about(
                    "Fetch a plugin with pip: XLA's for the CPU or CUDA, or libtpu, which compiles for TPUs on any machine; or build \
                     xlazy's own for the CPU",
                )
                .arg(which("What to install: cpu, tpu, cuda12 or cpu-multi"))
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
                    "Fetches wheels from the package index that pip is set up for, checks their SHA-256 and keeps the \
                     libraries.\n\n{}\n\n{}: {}.",
                    fetched.collect::<Vec<_>>().join("\n\n"),
                    built::NAME,
                    built::ABOUT
                )),
        )
        .subcommand(
            Command::new("remove").about("Remove what install has put there").arg(which("What to remove: cpu, tpu, cuda12 or cpu-multi")),
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
    let done = match (name, READY.iter().find(|r| r.name == wanted)) {
        ("install", Some(ready)) => {
            let library = matches.get_one::<PathBuf>("library").map(PathBuf::as_path);
            install(ready, &installation, matches.get_flag("fetch"), library)
        }
        ("install", None) => built::install(&installation),
        _ => remove(wanted, &installation.plugins_dir),
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

/// The plugins of an installation, by name: each has a folder of its own, with the PJRT library beside what it needs. A CPU plugin that
/// is named, or lies elsewhere, comes before what lies there.
pub fn installed(installation: &Installation) -> Vec<Plugin> {
    let folders = fs::read_dir(&installation.plugins_dir).into_iter().flatten().flatten();
    let mut found: Vec<Plugin> = folders
        .filter_map(|folder| {
            let name = folder.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                return None;
            }
            let known = READY.iter().find(|r| r.name == name).map(|r| folder.path().join(r.library));
            let library = known.filter(|l| l.is_file()).or_else(|| {
                let files = fs::read_dir(folder.path()).ok()?.flatten().map(|f| f.path());
                files.filter(|p| is_pjrt(p)).min()
            })?;
            Some(Plugin { name, library })
        })
        .collect();
    if let Some(library) = installation.cpu_plugin() {
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
    let mut all: Vec<Listed> = installed(installation)
        .into_iter()
        .map(|p| Listed { version: version(&p.library), name: p.name, library: p.library, from: "xlazy".into() })
        .collect();
    let ours: Vec<PathBuf> = all.iter().filter_map(|p| p.library.canonicalize().ok()).collect();
    for (ready, (library, from)) in brought(installation) {
        if library.canonicalize().is_ok_and(|l| !ours.contains(&l)) {
            let name = cuda(&library).unwrap_or(ready.into());
            all.push(Listed { name, version: version(&library), library, from });
        }
    }
    if as_json {
        let one = |p: &Listed| json!({"name": p.name, "library": p.library, "version": p.version, "from": p.from});
        return say(&format!("{:#}", all.iter().map(one).collect::<Value>()));
    }
    for p in &all {
        let from = if p.from == "xlazy" { String::new() } else { format!("  (from {})", p.from) };
        say(&format!("{:10}{:12}{}{from}", p.name, p.version, p.library.display()));
    }
    if all.is_empty() {
        say(&format!("no plugins in {}", installation.plugins_dir.display()));
    }
    if !all.iter().any(|p| p.name == "tpu") {
        say(
            "tpu       -           not here: `xlazy plugins install tpu` fetches libtpu, to compile for TPUs without one",
        );
    }
    if !all.iter().any(|p| is_own(&p.library)) {
        say(
            "cpu-multi -           not here: `xlazy plugins install cpu-multi` builds xlazy's own for the CPU, for meshes over a \
             pod's workers and for %%profile",
        );
    }
}

/// Whether a plugin was built of xlazy's own sources.
fn is_own(library: &Path) -> bool {
    let note = library.parent().and_then(|d| regular::read_to_string(d.join("plugin.json")).ok());
    library.is_file() && note.is_some_and(|text| text.contains("\"source_sha256\""))
}

/// The name of JAX's plugin for a version of CUDA, by the folder that it lies in.
fn cuda(library: &Path) -> Option<String> {
    let folder = library.parent()?.file_name()?.to_string_lossy();
    Some(folder.strip_prefix("xla_").filter(|n| n.starts_with("cuda"))?.to_owned())
}

/// The version that the note in a plugin's folder gives, or the one of its Python package.
fn version(library: &Path) -> String {
    let note = |folder: &Path| {
        let text = regular::read_to_string(folder.join("plugin.json")).ok()?;
        let note: Value = serde_json::from_str(&text).ok()?;
        let version = note.get("version").or_else(|| note.get("plugin_version"))?;
        Some(version.as_str()?.to_owned())
    };
    if let Some(version) = library.ancestors().skip(1).take(3).find_map(note) {
        return version;
    }
    let packages = match cuda(library) {
        // Several may lie side by side.
        Some(cuda) => vec![format!("jax_{cuda}_pjrt-")],
        None => READY.iter().map(|r| r.wheels[0].package.replace('-', "_") + "-").collect(),
    };
    let of = |n: String| {
        packages.iter().find_map(|p| Some(n.strip_prefix(p.as_str())?.strip_suffix(".dist-info")?.to_owned()))
    };
    let beside = |folder: &Path| {
        let mut entries = fs::read_dir(folder).ok()?.flatten();
        entries.find_map(|e| of(e.file_name().to_string_lossy().into_owned()))
    };
    library.ancestors().skip(2).take(2).find_map(beside).unwrap_or_else(|| "-".into())
}

/// The libraries that the runtime would use of platforms that others bring plugins for, too, the first one first: the
/// platform's plugin here, where its library is, and what names it.
pub fn brought(installation: &Installation) -> Vec<(&'static str, (PathBuf, String))> {
    let asked = installation.session().arg("--places").stderr(Stdio::null()).output();
    let places: Value = asked.ok().and_then(|o| serde_json::from_slice(&o.stdout).ok()).unwrap_or_default();
    let place = |p: &Value| {
        let name = match p.get("platform")?.as_str()? {
            "CUDA" => "cuda12",
            _ => "tpu",
        };
        Some((name, (p.get("library")?.as_str()?.into(), p.get("from")?.as_str()?.to_owned())))
    };
    places.as_array().into_iter().flatten().filter_map(place).collect()
}

/// The names of all that can be installed.
fn names() -> impl Iterator<Item = &'static str> {
    READY.iter().map(|r| r.name).chain([built::NAME])
}

/// The names of the plugins that were put into a folder of plugins.
pub fn fetched(plugins: &Path) -> Vec<&'static str> {
    names().filter(|name| plugins.join(name).join("plugin.json").is_file()).collect()
}

// ---- Install

fn install(ready: &Ready, installation: &Installation, fetch: bool, library: Option<&Path>) -> Result<(), String> {
    let folder = installation.plugins_dir.join(ready.name);
    let ours = folder.join(ready.library);
    let (title, there) = (ready.title, version(&ours));
    if ours.is_file() && there == ready.version() {
        say(&format!("{title} {there} is installed already: {}", ours.display()));
        return Ok(());
    }
    if library.is_some() && ready.wheels.len() > 1 {
        return Err(format!(
            "{title} is more than one library: where its {} wheels are on this machine, PIP_FIND_LINKS=FOLDER names them to pip",
            ready.wheels.len()
        ));
    }
    if let (Some((library, from)), false) = (instead(ready, installation), fetch || library.is_some()) {
        say(&format!(
            "there is {title} already, and xlazy uses it: {} (from {from}). --fetch fetches {} all the same.",
            library.display(),
            ready.version()
        ));
        return Ok(());
    }
    say(ready.before);
    let failed = |what: &str, e: std::io::Error| format!("{what}: {e}");
    fs::create_dir_all(&installation.plugins_dir)
        .map_err(|e| failed(&installation.plugins_dir.display().to_string(), e))?;
    fetch::room(ready, &installation.plugins_dir)?;
    let stage = Stage::new(&installation.plugins_dir)?;
    let made = stage.0.join(ready.name);
    fs::create_dir_all(&made).map_err(|e| failed("unpacking", e))?;
    let taken = made.join(ready.library);
    match library {
        Some(file) => drop(fs::copy(file, &taken).map_err(|e| failed(&file.display().to_string(), e))?),
        None => fetch::wheels(ready, &stage.0, &made)?,
    }
    check(&taken, ready.library, ready.sha256)?;
    strip(&taken);
    for (link, to) in ready.links {
        std::os::unix::fs::symlink(to, made.join(link)).map_err(|e| failed(link, e))?;
    }
    let wheels = ready.wheels.iter().map(|w| json!({"file": w.file, "sha256": w.sha256})).collect::<Value>();
    let note = json!({
        "name": ready.name, "package": ready.wheels[0].package, "version": ready.version(), "wheels": wheels,
        "library_sha256": ready.sha256, "licence": ready.licence,
    });
    fs::write(made.join("plugin.json"), format!("{note:#}\n")).map_err(|e| failed("plugin.json", e))?;
    if folder.exists() {
        fs::rename(&folder, stage.0.join("old")).map_err(|e| failed(&folder.display().to_string(), e))?;
    }
    fs::rename(&made, &folder).map_err(|e| failed(&folder.display().to_string(), e))?;
    say(&format!("{title} {} is in {}", ready.version(), folder.display()));
    say(ready.after);
    Ok(())
}

/// What is used without fetching anything, and who has brought it.
fn instead(ready: &Ready, installation: &Installation) -> Option<(PathBuf, String)> {
    let folder = installation.plugins_dir.join(ready.name);
    let others = brought(installation).into_iter().filter(|(name, _)| *name == ready.name).map(|(_, place)| place);
    if let Some(other) = others.into_iter().find(|(l, _)| !l.starts_with(&folder)) {
        return Some(other);
    }
    // One that was built here is no earlier version of the one that is fetched.
    let built = folder.join(ready.library);
    is_own(&built).then(|| (built, "scripts/cpu-plugin.sh".to_owned()))
}

// ---- Remove

fn remove(name: &str, plugins: &Path) -> Result<(), String> {
    let folder = plugins.join(name);
    if !folder.exists() {
        say(&format!("nothing to remove: there is no {}", folder.display()));
        return Ok(());
    }
    fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    say(&format!("removed {}", folder.display()));
    Ok(())
}
