//! A notebook's dependencies (`:dep`): one cargo project, built into one dylib that every cell links to.
use super::at_work::AtWork;
use super::errors::sentence;
use super::install::Installation;
use crate::engine::Failure;
use crate::trouble;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Dependencies that are built and in force.
#[derive(Debug, PartialEq)]
pub struct Deps {
    /// The crate that holds them all: their statics exist once, in it. Named by a hash of what is in it.
    pub crate_name: String,
    pub library: PathBuf,
    /// Extra arguments for every rustc.
    pub options: Vec<String>,
    /// What the user wrote: name and right-hand side, in TOML.
    pub wanted: BTreeMap<String, String>,
    /// tokio is among them, and its runtime is entered before a cell runs.
    pub tokio: bool,
}

impl Deps {
    /// Crates that are other ones in `later`, because of other features or another text: their types are others too.
    pub fn compiled_anew(&self, later: &Deps) -> Vec<String> {
        let of =
            |option: &str| option.strip_prefix("--extern=")?.split_once('=').map(|(n, f)| (n.to_owned(), f.to_owned()));
        let now: BTreeMap<String, String> = later.options.iter().filter_map(|o| of(o)).collect();
        let before = self.options.iter().filter_map(|o| of(o));
        before.filter(|(name, file)| now.get(name).is_some_and(|f| f != file)).map(|(name, _)| name).collect()
    }
}

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// One `:dep` line: `name`, `name = "1"` or `name = { … }`; several are separated by line breaks.
pub fn parse(line: &str) -> Result<(String, String), Failure> {
    let bad = |what: &str| {
        sentence(
            "DependencyError",
            format!("{what}: write `:dep name = \"1.2\"` or `:dep name = {{ version = \"1.2\", features = [\"…\"] }}`"),
        )
    };
    let (name, wanted) = match line.split_once('=') {
        Some((name, wanted)) => (name.trim(), wanted.trim()),
        None => (line.trim(), "\"*\""),
    };
    let name = name.trim_matches('"');
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') {
        return Err(bad(&format!("`{name}` is no crate's name")));
    }
    let closed = (wanted.starts_with('"') && wanted.ends_with('"') && wanted.len() > 1)
        || (wanted.starts_with('{') && wanted.ends_with('}'));
    if !closed || wanted.contains('\n') {
        return Err(bad(&format!("`{wanted}` is no version and no table")));
    }
    Ok((name.to_owned(), absolute_path(wanted)))
}

/// Paths are meant from the notebook's folder; the cargo project lies elsewhere.
fn absolute_path(wanted: &str) -> String {
    let Some(at) = wanted.find("path") else { return wanted.to_owned() };
    let rest = &wanted[at + 4..];
    let Some(open) = rest.find('"').filter(|i| rest[..*i].trim() == "=") else { return wanted.to_owned() };
    let Some(len) = rest[open + 1..].find('"') else { return wanted.to_owned() };
    let path = &rest[open + 1..open + 1 + len];
    let full = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    let start = at + 4 + open + 1;
    format!("{}{}{}", &wanted[..start], full.display(), &wanted[start + len..])
}

/// Builds these dependencies. `say` gets cargo's progress. Nothing changes for anybody when it fails.
pub fn build(
    install: &Installation,
    wanted: BTreeMap<String, String>,
    at_work: &AtWork,
    say: &mut dyn FnMut(String),
) -> Result<Deps, Failure> {
    let base = install.dependencies.as_ref();
    let base = base.ok_or_else(|| sentence("DependencyError", "there is no cache folder for dependencies"))?;
    let toolchain = short_hash(&install.toolchain.sysroot.to_string_lossy());
    let notebook = Notebook::find(install);
    let project = base.join(&notebook.id);
    let cargo = Cargo { install, project: &project, target: base.join(format!("target-{toolchain}")), at_work };
    let io = |e: std::io::Error| sentence("DependencyError", trouble::with_advice(&e.to_string(), base, "XLAZY_CACHE"));
    std::fs::create_dir_all(&project).map_err(io)?;
    // Kernels of one folder take turns.
    let turn = File::create(project.join("turn")).map_err(io)?;
    take_turn(&turn, at_work).map_err(io)?;
    let (manifest, lock) = (project.join("Cargo.toml"), project.join("Cargo.lock"));
    let built = project.join("built.json");
    let before = std::fs::read(&lock).ok();
    if let Some(kept) = notebook.lock.as_ref().and_then(|l| std::fs::read(l).ok()) {
        std::fs::write(&lock, kept).map_err(io)?;
    }
    let fingerprint = |lock: &Path| {
        let text = std::fs::read_to_string(lock).unwrap_or_default();
        short_hash(&format!("{wanted:?}{toolchain}{text}"))
    };
    let from_disk = !wanted.values().any(|w| w.contains("path"));
    if from_disk && let Some(known) = recall(&built, &fingerprint(&lock), &wanted) {
        return Ok(known);
    }
    let result = cargo.build(&manifest, &lock, &wanted, say);
    match &result {
        Ok(deps) => {
            if let Some(beside) = &notebook.lock {
                let _ = std::fs::copy(&lock, beside);
            }
            let known = serde_json::json!({
                "fingerprint": fingerprint(&lock), "crate": deps.crate_name, "library": deps.library,
                "options": deps.options, "tokio": deps.tokio,
            });
            let _ = std::fs::write(&built, known.to_string());
        }
        Err(_) => match before {
            Some(text) => drop(std::fs::write(&lock, text)),
            None => drop(std::fs::remove_file(&lock)),
        },
    }
    drop(turn);
    result
}

/// Waits for the kernel that has the turn, unless the cell is interrupted meanwhile.
fn take_turn(turn: &File, at_work: &AtWork) -> std::io::Result<()> {
    loop {
        match turn.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(e),
            Err(TryLockError::WouldBlock) if at_work.is_stopped() => return Err(ErrorKind::Interrupted.into()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// What an earlier build made, if all of it is still there: then cargo need not be asked.
fn recall(built: &Path, fingerprint: &str, wanted: &BTreeMap<String, String>) -> Option<Deps> {
    let json: Value = serde_json::from_slice(&std::fs::read(built).ok()?).ok()?;
    let text = |key: &str| json.get(key)?.as_str().map(str::to_owned);
    let library = PathBuf::from(text("library")?);
    let options: Option<Vec<String>> =
        json.get("options")?.as_array()?.iter().map(|o| o.as_str().map(str::to_owned)).collect();
    let options = options?;
    let there = |o: &String| o.splitn(3, '=').nth(2).is_none_or(|p| Path::new(p).exists());
    let fits = text("fingerprint")? == fingerprint && library.is_file() && options.iter().all(there);
    fits.then_some(Deps {
        crate_name: text("crate")?,
        library,
        options,
        wanted: wanted.clone(),
        tokio: json.get("tokio")?.as_bool()?,
    })
}

/// Whose dependencies they are: the notebook that `xlazy run` or Jupyter names, or the folder, where nobody says.
pub struct Notebook {
    id: String,
    /// The lock that stays beside the notebook, so that it builds the same tomorrow and on another machine. Notebooks
    /// without a name (VS Code, `jupyter console`, nbclient) share `xlazy.lock`, where somebody has put one into the
    /// folder; else the lock stays in the cache.
    pub lock: Option<PathBuf>,
}

impl Notebook {
    pub fn find(install: &Installation) -> Notebook {
        let dir = std::env::current_dir().unwrap_or_default();
        let var = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let named = install.notebook.clone().or_else(|| var("XLAZY_NOTEBOOK")).or_else(|| var("JPY_SESSION_NAME"));
        let named = named.filter(|p| p.extension().is_some_and(|e| e == "ipynb"));
        let path = named.as_ref().map(|n| dir.join(n.file_name().unwrap_or_default()));
        let id = short_hash(&path.as_ref().unwrap_or(&dir).to_string_lossy());
        let lock = match path {
            Some(path) => Some(path).filter(|p| p.is_file()).map(|p| p.with_extension("lock")),
            None => Some(dir.join("xlazy.lock")).filter(|p| p.is_file()),
        };
        Notebook { id, lock }
    }
}

/// The folder in which dependencies are built: `deps` in `XLAZY_CACHE`, or in the user's cache folder.
pub fn folder() -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = var("XLAZY_CACHE")
        .or_else(|| var("XDG_CACHE_HOME").map(|d| d.join("xlazy")))
        .or_else(|| var("HOME").map(|d| d.join(".cache/xlazy")))?;
    Some(cache.join("deps"))
}

fn short_hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|b| format!("{b:02x}")).collect()
}

struct Cargo<'a> {
    install: &'a Installation,
    project: &'a Path,
    target: PathBuf,
    at_work: &'a AtWork,
}

impl Cargo<'_> {
    fn build(
        &self,
        manifest: &Path,
        lock: &Path,
        wanted: &BTreeMap<String, String>,
        say: &mut dyn FnMut(String),
    ) -> Result<Deps, Failure> {
        let io = |e: std::io::Error| {
            sentence("DependencyError", trouble::with_advice(&e.to_string(), self.project, "XLAZY_CACHE"))
        };
        let write = |crate_name: &str, root: &str| {
            let text = manifest_text(crate_name, wanted);
            std::fs::write(manifest, text).and_then(|()| std::fs::write(self.project.join("lib.rs"), root)).map_err(io)
        };
        write("xlazy_deps", "")?;
        // Without the network when everything is there; the second answer is the one that explains.
        let metadata = ["metadata", "--format-version=1", "--filter-platform", TARGET];
        let offline = self.run(&[&metadata[..], &["--offline"]].concat(), &mut |_| {});
        let (offline, metadata) = match offline {
            Ok(text) => (true, text),
            Err(_) => (false, self.run(&metadata, say)?),
        };
        let resolved = resolve(&metadata).ok_or_else(|| {
            sentence("DependencyError", "cargo metadata gave an answer that xlazy does not understand")
        })?;
        let text = std::fs::read_to_string(lock).unwrap_or_default();
        let changed: Vec<String> = wanted.values().filter_map(|w| newest_change(w)).collect();
        let crate_name = format!("xlazy_deps_{}", short_hash(&format!("{wanted:?}{text}{changed:?}")));
        write(&crate_name, &root_text(&resolved))?;
        let mut build = vec!["build", "--target", TARGET, "--message-format=json-render-diagnostics"];
        build.extend(offline.then_some("--offline"));
        let artifacts = self.run(&build, say)?;
        self.deps(crate_name, wanted, &resolved, &artifacts)
            .ok_or_else(|| sentence("DependencyError", "cargo did not say where it put the dependencies"))
    }

    fn deps(
        &self,
        crate_name: String,
        wanted: &BTreeMap<String, String>,
        resolved: &[Direct],
        artifacts: &str,
    ) -> Option<Deps> {
        let messages: Vec<Value> = artifacts.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
        let made = |wanted: &dyn Fn(&Value) -> bool| -> Option<Vec<PathBuf>> {
            let m = messages.iter().find(|m| m["reason"] == "compiler-artifact" && wanted(m))?;
            Some(m["filenames"].as_array()?.iter().filter_map(|f| f.as_str().map(PathBuf::from)).collect())
        };
        let is_lib = |m: &Value| {
            let kinds = m["target"]["kind"].as_array().cloned().unwrap_or_default();
            kinds.iter().any(|k| matches!(k.as_str(), Some("lib" | "rlib" | "proc-macro" | "dylib")))
        };
        let library = made(&|m| m["target"]["name"] == crate_name.as_str())?
            .into_iter()
            .find(|f| f.extension().is_some_and(|e| e == "so"))?;
        let mut options = vec![format!("--extern={crate_name}={}", library.display())];
        for direct in resolved {
            let files = made(&|m| m["package_id"] == direct.package.as_str() && is_lib(m))?;
            let file = files.iter().find(|f| f.extension().is_some_and(|e| e == "rlib" || e == "so"))?;
            options.push(format!("--extern={}={}", direct.name, file.display()));
        }
        // The rest of them by name too: a variable's type may be from a crate that nobody asked for. Of two versions
        // neither: the name would mean one of them.
        let inner = self.target.join(TARGET);
        let mut others: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for m in messages.iter().filter(|m| m["reason"] == "compiler-artifact" && is_lib(m)) {
            let files = m["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from);
            let name = m["target"]["name"].as_str().unwrap_or_default().replace('-', "_");
            let rlib = |f: &PathBuf| f.starts_with(&inner) && f.extension().is_some_and(|e| e == "rlib");
            others.entry(name).or_default().extend(files.filter(rlib));
        }
        others.retain(|name, files| files.len() == 1 && !resolved.iter().any(|d| d.name == *name));
        options.extend(others.iter().map(|(name, files)| format!("--extern={name}={}", files[0].display())));
        // Where rustc finds what they depend on, and the procedural macros among it.
        for dir in [self.target.join(TARGET).join("debug/deps"), self.target.join("debug/deps")] {
            options.push(format!("-Ldependency={}", dir.display()));
        }
        let tokio = resolved.iter().any(Direct::is_tokio_with_runtime);
        Some(Deps { crate_name, library, options, wanted: wanted.clone(), tokio })
    }

    /// Runs cargo; what it printed to its standard output.
    fn run(&self, args: &[&str], say: &mut dyn FnMut(String)) -> Result<String, Failure> {
        let cargo = self.install.toolchain.sysroot.join("bin/cargo");
        let cargo = if cargo.is_file() { cargo } else { PathBuf::from("cargo") };
        // A metadata of their own keeps the crates apart from those inside the runtime.
        let flags = "-Cprefer-dynamic\x1f-Cmetadata=xlazy-deps\x1f-Awarnings";
        let mut child = Command::new(&cargo)
            .args(args)
            .current_dir(self.project)
            .env("CARGO_ENCODED_RUSTFLAGS", flags)
            .env("RUSTC", &self.install.toolchain.rustc)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_TERM_COLOR", "never")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|e| sentence("DependencyError", format!("{} does not start: {e}", cargo.display())))?;
        if !self.at_work.begin(child.id()) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(sentence("DependencyError", "cargo was stopped"));
        }
        let _guard = crate::guard::Guard::of(child.id());
        let stdout = child.stdout.take();
        let answer = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stdout.map(|mut out| out.read_to_string(&mut text));
            text
        });
        let mut errors = String::new();
        for line in child.stderr.take().into_iter().flat_map(|e| BufReader::new(e).lines()).map_while(Result::ok) {
            // `   Compiling name v1.2.3`: one word, right-aligned in twelve columns.
            let word = line.get(..12).map(str::trim_start).unwrap_or_default();
            let aligned = line.get(12..13) == Some(" ") && word.chars().all(char::is_alphabetic);
            if aligned && word.starts_with(|c: char| c.is_uppercase()) {
                say(format!("{line}\n"));
            } else {
                errors += &format!("{line}\n");
            }
        }
        let answer = answer.join().unwrap_or_default();
        self.at_work.end();
        let status = child.wait();
        match status {
            Ok(status) if status.success() => Ok(answer),
            _ => {
                let first = errors.lines().find(|l| !l.trim().is_empty()).unwrap_or("cargo was stopped");
                let mut message = first.trim_start_matches("error: ").to_owned();
                if let Some(full) = errors.lines().find(|l| l.contains("No space left on device")) {
                    message = trouble::with_advice(full.trim(), self.project, "XLAZY_CACHE");
                }
                let mut failure = sentence("DependencyError", message);
                failure.traceback.extend(errors.lines().skip(1).map(str::to_owned));
                Err(failure)
            }
        }
    }
}

fn manifest_text(crate_name: &str, wanted: &BTreeMap<String, String>) -> String {
    let list: String = wanted.iter().map(|(name, what)| format!("{name} = {what}\n")).collect();
    format!(
        "[package]\nname = \"xlazy_deps\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[lib]\nname = \"{crate_name}\"\n\
         path = \"lib.rs\"\ncrate-type = [\"dylib\"]\n\n[workspace]\n\n[profile.dev]\ndebug = false\nincremental = false\n\n\
         [profile.dev.package.\"*\"]\nopt-level = 2\n\n[dependencies]\n{list}"
    )
}

/// A direct dependency as cargo resolved it.
struct Direct {
    /// As code names it.
    name: String,
    package: String,
    crate_of: String,
    features: Vec<String>,
}

impl Direct {
    fn is_tokio_with_runtime(&self) -> bool {
        self.crate_of == "tokio" && self.features.iter().any(|f| f == "rt")
    }
}

fn resolve(metadata: &str) -> Option<Vec<Direct>> {
    let json: Value = serde_json::from_str(metadata).ok()?;
    let nodes = json["resolve"]["nodes"].as_array()?;
    let node = |id: &str| nodes.iter().find(|n| n["id"] == id);
    let root = node(json["resolve"]["root"].as_str()?)?;
    let direct = |d: &Value| {
        let package = d["pkg"].as_str()?.to_owned();
        let features = node(&package)?["features"].as_array()?.iter().filter_map(|f| f.as_str().map(str::to_owned));
        let features = features.collect();
        let crate_of = json["packages"].as_array()?.iter().find(|p| p["id"] == package.as_str())?["name"].as_str()?;
        Some(Direct { name: d["name"].as_str()?.to_owned(), crate_of: crate_of.to_owned(), package, features })
    };
    root["deps"].as_array()?.iter().map(direct).collect()
}

/// The source of the crate that holds the dependencies.
fn root_text(resolved: &[Direct]) -> String {
    let mut text: String = resolved.iter().map(|d| format!("pub extern crate {};\n", d.name)).collect();
    if let Some(tokio) = resolved.iter().find(|d| d.is_tokio_with_runtime()) {
        let name = &tokio.name;
        let kind = match tokio.features.iter().any(|f| f == "rt-multi-thread") {
            true => "new_multi_thread",
            false => "new_current_thread",
        };
        text += &format!(
            "static RUNTIME: std::sync::LazyLock<{name}::runtime::Handle> = std::sync::LazyLock::new(|| {{\n\
             let runtime = {name}::runtime::Builder::{kind}().enable_all().build().expect(\"tokio's runtime starts\");\n\
             let handle = runtime.handle().clone();\n\
             std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));\n\
             handle\n}});\n\
             pub fn xlazy_enter() -> {name}::runtime::EnterGuard<'static> {{ RUNTIME.enter() }}\n"
        );
    }
    text
}

/// When a crate in a folder changed last, so that what is built of it gets another name.
fn newest_change(wanted: &str) -> Option<String> {
    let path = wanted.split_once("path")?.1.split('"').nth(1)?;
    let mut newest = std::time::SystemTime::UNIX_EPOCH;
    let mut folders = vec![PathBuf::from(path)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            let name = entry.file_name();
            if meta.is_dir() && name != "target" && name != ".git" {
                folders.push(entry.path());
            } else if let Ok(time) = meta.modified() {
                newest = newest.max(time);
            }
        }
    }
    Some(format!("{newest:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood_or_refused() {
        let ok = |line: &str| parse(line).map_err(|f| f.message);
        assert_eq!(ok("serde_json = \"1\""), Ok(("serde_json".into(), "\"1\"".into())));
        assert_eq!(ok("regex"), Ok(("regex".into(), "\"*\"".into())));
        let table = "{ version = \"1\", features = [\"derive\"] }";
        assert_eq!(ok(&format!("serde = {table}")), Ok(("serde".into(), table.into())));
        assert!(ok("se rde = \"1\"").unwrap_err().contains("no crate's name"));
        assert!(ok("serde = 1").unwrap_err().contains("no version"));
    }
}
