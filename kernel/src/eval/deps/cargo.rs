//! The cargo project of a notebook's dependencies: a workspace with one package for each stage, which links what a `:dep`
//! asked for, and the stage before it, into a dylib.
use super::scripts;
use super::stages::{Deps, Stage, Wanted};
use crate::engine::{Failure, sentence};
use crate::eval::text::hash::short_hash;
use crate::eval::text::untrusted::identifier;
use crate::eval::toolchain::at_work::AtWork;
use crate::eval::toolchain::install::Installation;
use crate::home;
use crate::trouble;
use cargo_metadata::{Artifact, Message, Metadata, MetadataCommand, PackageId, TargetKind};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xlazy_mime::regular;

const TARGET: &str = "x86_64-unknown-linux-gnu";
const METADATA: [&str; 4] = ["metadata", "--format-version=1", "--filter-platform", TARGET];

pub(super) struct Cargo<'a> {
    pub install: &'a Installation,
    pub project: &'a Path,
    pub target: PathBuf,
    pub lock: PathBuf,
    /// At which dependencies are optimised.
    pub level: u8,
    pub at_work: &'a AtWork,
}

/// The package of a stage; stages count from 1.
fn package(stage: usize) -> String {
    format!("xlazy_deps_{stage}")
}

/// Where the stages lie in the project. Notebooks in one folder share it, and do not write into each other's stages.
fn folders(wanted: &[Wanted]) -> Vec<String> {
    (1..=wanted.len()).map(|stages| short_hash(&format!("{:?}", &wanted[..stages]))).collect()
}

impl Cargo<'_> {
    /// Builds the stages there are, and another one for what they lack. Where that would change what is in them, all of it
    /// becomes one new stage.
    pub fn build(
        &self,
        known: &[Stage],
        wanted: &Wanted,
        lock: &str,
        say: &mut dyn FnMut(String),
    ) -> Result<Deps, Failure> {
        let new = |known: &[Stage]| -> Wanted {
            let has = |name: &String, what: &String| known.iter().any(|s| s.wanted.get(name) == Some(what));
            wanted.iter().filter(|(n, w)| !has(n, w)).map(|(n, w)| (n.clone(), w.clone())).collect()
        };
        // Asked for in another way, a crate cannot stay where it is.
        let changed = new(known).keys().any(|n| known.iter().any(|s| s.wanted.contains_key(n)));
        let known = if changed { &[] } else { known };
        let before = regular::read(&self.lock).ok();
        let built = match self.build_stages(known, new(known), lock, say) {
            Ok(None) => self.build_stages(&[], wanted.clone(), lock, say),
            other => other,
        };
        if built.is_err() {
            match before {
                Some(text) => drop(regular::write(&self.lock, text)),
                None => drop(std::fs::remove_file(&self.lock)),
            }
        }
        built?.ok_or_else(|| sentence("DependencyError", "cargo did not say where it put the dependencies"))
    }

    /// `None` where the stages that are known would change.
    fn build_stages(
        &self,
        known: &[Stage],
        new: Wanted,
        lock: &str,
        say: &mut dyn FnMut(String),
    ) -> Result<Option<Deps>, Failure> {
        let mut wanted: Vec<Wanted> = known.iter().map(|s| s.wanted.clone()).collect();
        if !new.is_empty() || wanted.is_empty() {
            wanted.push(new);
        }
        let mut names: Vec<String> = known.iter().map(|s| s.crate_name.clone()).collect();
        if names.len() < wanted.len() {
            // Rather the name that it had in an earlier session: what is written as it is there is not built again.
            let there = folders(&wanted).last().and_then(|f| self.name_there(f));
            names.push(there.unwrap_or_else(|| package(wanted.len())));
        }
        self.write(&wanted, &names, &[], None, lock)?;
        // Without the network when everything is there; the second answer is the one that explains.
        let offline = self.run(&[&METADATA[..], &["--offline"]].concat(), &mut |_| {});
        let (offline, metadata) = match offline {
            Ok(text) => (true, text),
            Err(_) => (false, self.run(&METADATA, say)?),
        };
        let read = |metadata: &str| {
            let mut resolved = Resolved::read(metadata, wanted.len()).ok_or_else(|| {
                sentence("DependencyError", "cargo metadata gave an answer that xlazy does not understand")
            })?;
            self.see_tokio(&mut resolved)?;
            Ok(resolved)
        };
        let mut resolved = read(&metadata)?;
        let runtimes = runtimes(&resolved);
        if runtimes.iter().any(Option::is_some) {
            self.write(&wanted, &names, &runtimes, None, lock)?;
            resolved = read(&self.run(&METADATA, &mut |_| {})?)?;
        }
        let mut name = self.project.to_string_lossy().into_owned();
        for (i, stage) in resolved.iter().enumerate() {
            let changed: Vec<String> = stage.folders.iter().map(|f| newest_change(f)).collect();
            name = format!(
                "xlazy_deps_{}",
                short_hash(&format!("{name}{:?}{}{}{changed:?}", wanted[i], self.level, stage.all))
            );
            if known.get(i).is_some_and(|s| s.crate_name != name) {
                return Ok(None);
            }
            names[i].clone_from(&name);
        }
        let lock = regular::read_to_string(&self.lock).unwrap_or_default();
        self.write(&wanted, &names, &runtimes, Some(&resolved), &lock)?;
        let last = package(wanted.len());
        let mut build = vec!["build", "-p", &last, "--target", TARGET, "--message-format=json-render-diagnostics"];
        build.extend(offline.then_some("--offline"));
        let artifacts = self.run(&build, say)?;
        Ok(self.deps(wanted, names, &resolved, &artifacts))
    }

    /// Metadata names features and crates that nothing builds (of build scripts, of `tokio?/rt` where tokio is not asked for):
    /// cargo's tree has what is built.
    fn see_tokio(&self, resolved: &mut [Resolved]) -> Result<(), Failure> {
        for (i, stage) in resolved.iter_mut().enumerate().filter(|(_, stage)| stage.tokio.is_some()) {
            let of = package(i + 1);
            let tree = ["tree", "-p", &of, "--target", TARGET, "-e", "normal,no-proc-macro", "--prefix", "none", "-f"];
            let tree = self.run(&[&tree[..], &["{p}|{f}", "--offline"]].concat(), &mut |_| {})?;
            let built: Vec<String> = features_in(&tree, "tokio");
            stage.direct.iter_mut().filter(|d| d.crate_of == "tokio").for_each(|d| d.features.clone_from(&built));
            stage.tokio.take_if(|_| !built.iter().any(|f| f == "rt"));
        }
        Ok(())
    }

    fn name_there(&self, folder: &str) -> Option<String> {
        let manifest = regular::read_to_string(self.project.join(folder).join("Cargo.toml")).ok()?;
        let name = manifest.split_once("[lib]\nname = \"")?.1.split('"').next()?;
        identifier(name).map(|name| name.to_string())
    }

    fn write(
        &self,
        wanted: &[Wanted],
        names: &[String],
        runtimes: &[Option<String>],
        resolved: Option<&[Resolved]>,
        lock: &str,
    ) -> Result<(), Failure> {
        let members = folders(wanted);
        // What runs while they are built, macros and build scripts, keeps cargo's level of 0: optimising `syn` takes longer
        // than all that it does. `[profile.dev.package."*"]` would be for those, too.
        let mut workspace = format!(
            "[workspace]\nmembers = {members:?}\nresolver = \"3\"\n\n\
             [profile.dev]\ndebug = false\nincremental = false\nopt-level = {}\n",
            self.level
        );
        for i in 1..=wanted.len() {
            workspace += &format!("\n[profile.dev.package.{}]\nopt-level = 0\n", package(i));
        }
        let write = || {
            write_changed(&self.project.join("Cargo.toml"), &workspace)?;
            if !lock.is_empty() {
                write_changed(&self.lock, lock)?;
            }
            for (i, wanted) in wanted.iter().enumerate() {
                let folder = self.project.join(&members[i]);
                std::fs::create_dir_all(&folder)?;
                let before = i.checked_sub(1);
                let linked = before.map(|b| format!("{} = {{ path = \"../{}\" }}\n", package(b + 1), members[b]));
                let runtime = runtimes.get(i).into_iter().flatten().map(|version| {
                    format!("xlazy_tokio = {{ package = \"tokio\", version = \"={version}\", features = [\"rt\"] }}\n")
                });
                let first: String = linked.into_iter().chain(runtime).collect();
                let manifest = manifest_text(&package(i + 1), &names[i], &first, wanted);
                write_changed(&folder.join("Cargo.toml"), &manifest)?;
                let (root, before) = (folder.join("lib.rs"), before.map(|b| &*names[b]));
                match resolved {
                    Some(resolved) => write_changed(&root, &root_text(&resolved[i].direct, before))?,
                    None if !root.is_file() => regular::write(root, "")?,
                    None => {}
                }
            }
            Ok(())
        };
        write().map_err(|e: std::io::Error| {
            sentence("DependencyError", trouble::with_advice(&e.to_string(), self.project, "XLAZY_CACHE"))
        })
    }

    fn deps(&self, wanted: Vec<Wanted>, names: Vec<String>, resolved: &[Resolved], artifacts: &str) -> Option<Deps> {
        let artifact = |m| match m {
            Ok(Message::CompilerArtifact(a)) => Some(a),
            _ => None,
        };
        let artifacts: Vec<Artifact> = Message::parse_stream(artifacts.as_bytes()).filter_map(artifact).collect();
        let files = |a: &Artifact| -> Vec<PathBuf> { a.filenames.iter().map(|f| f.clone().into()).collect() };
        let made = |wanted: &dyn Fn(&Artifact) -> bool| artifacts.iter().find(|a| wanted(a)).map(files);
        let is_lib = |a: &Artifact| {
            use TargetKind::{DyLib, Lib, ProcMacro, RLib};
            a.target.kind.iter().any(|k| matches!(k, Lib | RLib | ProcMacro | DyLib))
        };
        let inner = self.target.join(TARGET).join("debug/deps");
        let mut stages = Vec::new();
        for (crate_name, wanted) in names.iter().zip(wanted) {
            let files = made(&|a| a.target.name == *crate_name)?;
            let library = files.into_iter().find(|f| f.extension().is_some_and(|e| e == "so"))?;
            // The last one has a second name beside the first, which it loses when another one comes after it.
            let lasting = inner.join(library.file_name()?);
            let library = if lasting.is_file() { lasting } else { library };
            stages.push(Stage { crate_name: crate_name.clone(), library, wanted });
        }
        let mut options: Vec<String> =
            stages.iter().map(|s| format!("--extern={}={}", s.crate_name, s.library.display())).collect();
        let direct: Vec<&Direct> = resolved.iter().flat_map(|r| &r.direct).collect();
        for direct in &direct {
            let of = |a: &Artifact| a.package_id == direct.package && is_lib(a);
            // What macros and build scripts run with is compiled for them, perhaps with fewer features.
            let for_cells = made(&|a| of(a) && files(a).iter().any(|f| f.starts_with(&inner)));
            let files = for_cells.or_else(|| made(&of))?;
            let file = files.iter().find(|f| f.extension().is_some_and(|e| e == "rlib" || e == "so"))?;
            options.push(format!("--extern={}={}", direct.name, file.display()));
        }
        // The rest of them by name too: a variable's type may be from a crate that nobody asked for. Of two versions
        // neither: the name would mean one of them.
        let mut others: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for a in artifacts.iter().filter(|a| is_lib(a)) {
            let (name, files) = (a.target.name.replace('-', "_"), files(a).into_iter());
            let rlib = |f: &PathBuf| f.starts_with(&inner) && f.extension().is_some_and(|e| e == "rlib");
            others.entry(name).or_default().extend(files.filter(rlib));
        }
        others.retain(|name, files| !files.is_empty() && !direct.iter().any(|d| d.name == *name));
        let several = others.extract_if(.., |_, files| files.len() > 1).map(|(name, _)| name).collect();
        options.extend(others.iter().map(|(name, files)| format!("--extern={name}={}", files[0].display())));
        // Where rustc finds what they depend on, and the procedural macros among it.
        for dir in [inner, self.target.join("debug/deps")] {
            options.push(format!("-Ldependency={}", dir.display()));
        }
        let with_tokio = |r: &Resolved| r.direct.iter().any(Direct::is_tokio_with_runtime);
        let tokio = resolved.iter().position(with_tokio).map(|i| names[i].clone());
        Some(Deps { stages, options, several, tokio, level: self.level })
    }

    /// Runs cargo; what it printed to its standard output.
    fn run(&self, args: &[&str], say: &mut dyn FnMut(String)) -> Result<String, Failure> {
        let cargo = self.install.toolchain.sysroot.join("bin/cargo");
        let own = cargo.is_file().then(home::cargo).flatten();
        let cargo = if cargo.is_file() { cargo } else { PathBuf::from("cargo") };
        // A metadata of their own keeps the crates apart from those inside the runtime.
        // A stage is found beside the one that is linked to it.
        let linker = self.install.toolchain.lld.as_ref().and_then(|l| l.by_name.as_ref());
        let beside = if linker.is_some() { "-rpath=$ORIGIN" } else { "-Wl,-rpath,$ORIGIN" };
        let flags = format!("-Cprefer-dynamic\x1f-Cmetadata=xlazy-deps\x1f-Awarnings\x1f-Clink-arg={beside}");
        let mut child = Command::new(&cargo)
            .args(args)
            .envs(linker.map(|l| ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", l)))
            .envs(own.map(|folder| ("CARGO_HOME", folder)))
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
                // The stages are nothing that the user has asked for.
                if !line.contains(" xlazy_deps_") {
                    say(format!("{line}\n"));
                }
            } else {
                errors += &format!("{line}\n");
            }
        }
        let answer = answer.join().unwrap_or_default();
        self.at_work.end(child.id());
        let status = child.wait();
        match status {
            Ok(status) if status.success() => Ok(answer),
            _ => {
                let errors = in_the_notebooks_terms(&errors);
                let first = errors.lines().find(|l| !l.trim().is_empty()).unwrap_or("cargo was stopped");
                let mut message = first.trim_start_matches("error: ").to_owned();
                if let Some(full) = errors.lines().find(|l| l.contains("No space left on device")) {
                    message = trouble::with_advice(full.trim(), self.project, "XLAZY_CACHE");
                }
                message = scripts::advice(&errors).unwrap_or(message);
                let mut failure = sentence("DependencyError", message);
                failure.traceback.extend(scripts::for_people(&errors).lines().skip(1).map(str::to_owned));
                Err(failure)
            }
        }
    }
}

/// Writes a file, unless that is what it says already: cargo goes by the time of the last change.
pub(super) fn write_changed(file: &Path, text: &str) -> std::io::Result<()> {
    match regular::read_to_string(file) {
        Ok(there) if there == text => Ok(()),
        _ => regular::write(file, text),
    }
}

/// What cargo said, without the packages and folders that only xlazy knows of.
fn in_the_notebooks_terms(errors: &str) -> String {
    const MEMBER: &str = "failed to load manifest for workspace member";
    let mut lines: Vec<String> = Vec::new();
    let mut all = errors.lines().peekable();
    while let Some(line) = all.next() {
        if line.contains("spurious network error") {
            continue;
        }
        if line.contains(MEMBER) {
            // Two lines, and where there is a cause, its heading.
            all.next();
            while all.next_if(|l| l.trim().is_empty() || l.starts_with("Caused by:")).is_some() {}
            continue;
        }
        lines.push(match (line.find("package `xlazy_deps_"), line.find(" --> ")) {
            (Some(at), _) => {
                let rest = line[at + 9..].split_once('`').map_or("", |(_, rest)| rest);
                format!("{}this notebook{rest}", &line[..at])
            }
            // The place in a manifest that the user has never seen; the line itself follows.
            (None, Some(_)) => continue,
            _ => line.to_owned(),
        });
    }
    let text = lines.join("\n");
    text.strip_prefix("  ").unwrap_or(&text).trim_end().to_owned()
}

/// The manifest of a library that depends on these.
pub fn manifest_text(package: &str, crate_name: &str, before: &str, wanted: &Wanted) -> String {
    let list: String = wanted.iter().map(|(name, what)| format!("{name} = {what}\n")).collect();
    format!(
        "[package]\nname = \"{package}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[lib]\nname = \"{crate_name}\"\n\
         path = \"lib.rs\"\ncrate-type = [\"dylib\"]\n\n[dependencies]\n{before}{list}"
    )
}

/// A direct dependency as cargo resolved it.
struct Direct {
    /// As code names it.
    name: String,
    package: PackageId,
    crate_of: String,
    features: Vec<String>,
}

impl Direct {
    fn is_tokio_with_runtime(&self) -> bool {
        self.crate_of == "tokio" && self.features.iter().any(|f| f == "rt")
    }
}

/// What cargo takes for a stage.
struct Resolved {
    direct: Vec<Direct>,
    /// Every package that its dependencies lead to, with its features.
    all: String,
    /// Where those of them lie that are the user's own.
    folders: Vec<PathBuf>,
    /// The version of tokio, with its runtime, among them.
    tokio: Option<String>,
}

impl Resolved {
    /// Of each of so many stages.
    fn read(metadata: &str, stages: usize) -> Option<Vec<Resolved>> {
        let metadata = MetadataCommand::parse(metadata).ok()?;
        let of_stage = |stage: usize| {
            let stage = metadata.packages.iter().find(|p| p.name == package(stage) && p.source.is_none())?;
            Resolved::of(&metadata, &stage.id)
        };
        (1..=stages).map(of_stage).collect()
    }

    fn of(metadata: &Metadata, stage: &PackageId) -> Option<Resolved> {
        let nodes = &metadata.resolve.as_ref()?.nodes;
        let node = |id: &PackageId| nodes.iter().find(|n| n.id == *id);
        let features = |id: &PackageId| -> Option<Vec<String>> {
            Some(node(id)?.features.iter().map(|f| f.to_string()).collect())
        };
        let package_of = |id: &PackageId| metadata.packages.iter().find(|p| p.id == *id);
        let folder_of = |id: &PackageId| {
            let package = package_of(id).filter(|p| p.source.is_none())?;
            Some(package.manifest_path.parent()?.to_owned().into())
        };
        let mut direct = Vec::new();
        for d in node(stage)?.deps.iter().filter(|d| !d.name.starts_with("xlazy_deps")) {
            let (package, crate_of) = (d.pkg.clone(), package_of(&d.pkg)?.name.to_string());
            // It is written into the stage's source.
            let name = identifier(&d.name)?.to_string();
            direct.push(Direct { name, crate_of, features: features(&package)?, package });
        }
        let mut all: BTreeMap<PackageId, Vec<String>> = BTreeMap::new();
        let mut next: BTreeSet<PackageId> = direct.iter().map(|d| d.package.clone()).collect();
        while let Some(id) = next.pop_first() {
            next.extend(node(&id)?.dependencies.iter().filter(|d| !all.contains_key(d)).cloned());
            let features = features(&id)?;
            all.insert(id, features);
        }
        let folders = all.keys().filter_map(folder_of).collect();
        let runs = |(id, features): (&PackageId, &Vec<String>)| {
            let package = package_of(id).filter(|p| p.name == "tokio" && features.iter().any(|f| f == "rt"))?;
            Some(package.version.to_string())
        };
        let tokio = all.iter().find_map(runs);
        let all: BTreeMap<&str, &Vec<String>> = all.iter().map(|(id, features)| (&*id.repr, features)).collect();
        Some(Resolved { direct, folders, tokio, all: format!("{all:?}") })
    }
}

/// The features of a crate in what `cargo tree` prints as `name v1.2.3|feature,feature`, of all of its versions.
fn features_in(tree: &str, name: &str) -> Vec<String> {
    let of = |line: &str| {
        let (package, features) = line.split_once('|')?;
        // A crate that was named before has ` (*)` behind its features.
        let features = features.split(' ').next()?.split(',').map(str::to_owned);
        (package.split(' ').next() == Some(name)).then(|| features.collect::<Vec<_>>())
    };
    tree.lines().filter_map(of).flatten().collect()
}

/// The stages that are to name tokio, by its version, because what they depend on needs its runtime and no stage up to them names
/// it. What comes later changes nothing of that.
fn runtimes(resolved: &[Resolved]) -> Vec<Option<String>> {
    let mut named = false;
    let mut of_stage = |stage: &Resolved| {
        let direct = stage.direct.iter().any(Direct::is_tokio_with_runtime);
        let version = stage.tokio.clone().filter(|_| !named && !direct);
        named |= direct || version.is_some();
        version
    };
    resolved.iter().map(&mut of_stage).collect()
}

/// The source of a stage.
fn root_text(resolved: &[Direct], before: Option<&str>) -> String {
    let mut text: String = before.map(|b| format!("pub extern crate {b};\n")).unwrap_or_default();
    text += &resolved.iter().map(|d| format!("pub extern crate {};\n", d.name)).collect::<String>();
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
fn newest_change(folder: &Path) -> String {
    let mut newest = std::time::SystemTime::UNIX_EPOCH;
    let mut folders = vec![folder.to_owned()];
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
    format!("{newest:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_no_package_of_ours() {
        let said = "error: failed to load manifest for workspace member `/c/1`\nreferenced by workspace at `/c/Cargo.toml`\n\n\
                    Caused by:\n  failed to load manifest for dependency `x`\n\nCaused by:\n  failed to read `/x`\n";
        let plain = "failed to load manifest for dependency `x`\n\nCaused by:\n  failed to read `/x`";
        assert_eq!(in_the_notebooks_terms(said), plain);
        let said = "warning: spurious network error (3 tries remaining): no\nerror: no matching package named `x` found\n\
                    location searched: crates.io index\nrequired by package `xlazy_deps_1 v0.0.0 (/c/1)`";
        let plain =
            "error: no matching package named `x` found\nlocation searched: crates.io index\nrequired by this notebook";
        assert_eq!(in_the_notebooks_terms(said), plain);
    }

    #[test]
    fn a_tree_has_the_features_of_what_is_built() {
        let tree = "mio v1.0.4|net\ntokio v1.48.0|default,rt\ntokio-util v0.7.0|rt-multi-thread\ntokio v1.48.0|default,rt (*)\n";
        assert_eq!(features_in(tree, "tokio"), ["default", "rt", "default", "rt"]);
        assert!(features_in("lean v0.1.0 (/a b/lean)|default,served\n", "tokio").is_empty());
    }

    #[test]
    fn tokio_is_named_where_what_is_asked_for_needs_it() {
        let stage = |direct: &[&str], tokio: Option<&str>| {
            let named = |name: &&str| Direct {
                name: (*name).to_owned(),
                package: PackageId { repr: (*name).to_owned() },
                crate_of: (*name).to_owned(),
                features: vec!["rt".to_owned()],
            };
            let (all, folders, tokio) = (String::new(), Vec::new(), tokio.map(str::to_owned));
            Resolved { direct: direct.iter().map(named).collect(), all, folders, tokio }
        };
        let with =
            |stages: &[Resolved]| runtimes(stages).into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>();
        assert_eq!(with(&[stage(&["reqwest"], Some("1.48.0"))]), ["1.48.0"]);
        assert_eq!(with(&[stage(&["rand"], None), stage(&["reqwest"], Some("1.48.0"))]), ["", "1.48.0"]);
        assert_eq!(with(&[stage(&["reqwest", "tokio"], Some("1.48.0"))]), [""]);
        let three = [stage(&["a"], Some("1.48.0")), stage(&["b"], Some("1.48.0")), stage(&["tokio"], Some("1.48.0"))];
        assert_eq!(with(&three), ["1.48.0", "", ""]);
    }

    /// A name that is code, a package or a stage that is not there, another type.
    #[test]
    fn an_answer_of_another_shape_is_refused() {
        let package = |name: &str, id: &str| {
            serde_json::json!({ "name": name, "version": "0.0.0", "id": id, "source": null, "dependencies": [],
                "targets": [], "features": {}, "manifest_path": format!("/{id}/Cargo.toml"), "edition": "2024" })
        };
        let answer = |name: &str, pkg: &str| {
            serde_json::json!({ "packages": [package("xlazy_deps_1", "s"), package("a", "a")], "version": 1,
                "workspace_members": ["s"], "workspace_root": "/", "target_directory": "/target",
                "resolve": { "root": null, "nodes": [
                    { "id": "s", "dependencies": [pkg], "deps": [{ "name": name, "pkg": pkg }], "features": [] },
                    { "id": "a", "dependencies": [], "deps": [], "features": ["f"] },
                ] } })
        };
        let read = |answer: &serde_json::Value| Resolved::read(&answer.to_string(), 1);
        let good = read(&answer("a", "a")).expect("an answer as cargo gives it");
        assert_eq!(good[0].all, "{\"a\": [\"f\"]}");
        assert_eq!(good[0].folders, [Path::new("/a")]);
        assert!(Resolved::read(&answer("a", "a").to_string(), 2).is_none(), "there is one stage");
        for (name, pkg) in [("a; fn f() {}", "a"), ("a b", "a"), ("", "a"), ("a", "b"), ("a\n", "a")] {
            assert!(read(&answer(name, pkg)).is_none(), "{name} {pkg}");
        }
        for part in ["packages", "resolve", "workspace_root"] {
            for other in [serde_json::json!(7), serde_json::json!(["x"]), serde_json::Value::Null] {
                let mut answer = answer("a", "a");
                answer[part] = other;
                assert!(read(&answer).is_none(), "{part}");
            }
        }
    }
}
