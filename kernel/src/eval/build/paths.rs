//! Where types are public. `std::any::type_name` says in which module a type is defined, and that may be a private one.
//! rustc knows the way out: an error about a private path names the re-export of that very type.
use crate::eval::text::types::{Named, nameable, paths_in};
use crate::eval::toolchain::at_work::AtWork;
use crate::eval::toolchain::diagnostic::Diagnostic;
use crate::eval::toolchain::install::Installation;
use crate::folder::run_somewhere;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// What is known about paths so far, as cells write them: `::crate::module::Type`.
#[derive(Default)]
pub struct Paths {
    /// The path by which a cell can name the type; `None` when there is none.
    known: HashMap<String, Option<String>>,
    /// Types whose paths are known, or asked about.
    read: HashSet<String>,
    /// rustc is being asked, beside everything else.
    asked: Option<(BTreeSet<String>, JoinHandle<Answers>)>,
    /// The rustc that is.
    at_work: AtWork,
}

/// Paths, and where each is public.
type Answers = Vec<(String, Option<String>)>;

/// What rustc is told when it is asked: where the crates are.
#[derive(Clone)]
pub struct Crates {
    pub install: Installation,
    pub dir: PathBuf,
    pub options: Vec<String>,
    /// The crate that holds the dependencies; without its name rustc would take them for other crates.
    pub deps: Option<String>,
}

impl Paths {
    /// Other dependencies: another crate may have the same name now.
    pub fn forget(&mut self) {
        *self = Paths::default();
    }

    /// Asks nothing any more.
    pub fn end(&mut self) {
        self.at_work.stop();
        self.asked.take().map(|(_, thread)| thread.join());
    }

    /// Finds out about the types of variables before a cell mentions them.
    pub fn prepare<'a>(&mut self, types: impl Iterator<Item = &'a str>, crates: impl FnOnce() -> Crates) {
        if self.asked.is_some() {
            return;
        }
        let unread: BTreeSet<&str> = types.filter(|t| !self.read.contains(*t)).collect();
        let all: BTreeSet<String> = unread.iter().filter_map(|t| written(t)).flat_map(|w| paths_in(&w)).collect();
        self.read.extend(unread.into_iter().map(str::to_owned));
        let new: BTreeSet<String> = all.into_iter().filter(|p| !certain(p) && !self.known.contains_key(p)).collect();
        if !new.is_empty() {
            let (crates, paths, at_work) = (crates(), new.clone(), self.at_work.clone());
            let thread = std::thread::Builder::new().name("xlazy-paths".into());
            self.asked = thread.spawn(move || ask(&crates, paths, &at_work)).ok().map(|t| (new, t));
        }
    }

    /// The public paths of what stands in `written`, as far as they are known by now; waits for an answer that is on
    /// its way.
    pub fn known(&mut self, written: &str) -> BTreeMap<String, String> {
        let paths = paths_in(written);
        if self.asked.as_ref().is_some_and(|(asked, _)| paths.iter().any(|p| asked.contains(p)))
            && let Some((_, thread)) = self.asked.take()
        {
            self.known.extend(thread.join().unwrap_or_default());
        }
        paths.into_iter().filter_map(|p| Some((p.clone(), self.known.get(&p)?.clone()?))).collect()
    }

    /// A path in `written` that is public nowhere.
    pub fn private(&mut self, written: &str) -> Option<String> {
        self.known(written);
        paths_in(written).into_iter().find(|p| self.known.get(p).is_some_and(Option::is_none))
    }

    /// As [`Paths::known`], after rustc was asked about what is not known.
    pub fn find(&mut self, written: &str, crates: impl FnOnce() -> Crates) -> BTreeMap<String, String> {
        self.known(written);
        let unknown = |p: &String| !self.known.contains_key(p);
        let new: BTreeSet<String> = paths_in(written).into_iter().filter(unknown).collect();
        if !new.is_empty() {
            self.known.extend(ask(&crates(), new, &self.at_work));
        }
        self.known(written)
    }
}

/// A variable's type as a cell writes it, whatever became of definitions since.
pub(super) fn written(type_name: &str) -> Option<String> {
    match nameable(type_name, &mut |g, p| Some(format!("::{g}::{p}"))) {
        Named::Type(written) => Some(written),
        Named::Refused(_) => None,
    }
}

/// Paths that `types::nameable` gets right, which its tests show.
fn certain(path: &str) -> bool {
    let root = path.trim_start_matches("::").split("::").next().unwrap_or_default();
    matches!(root, "std" | "core" | "alloc" | "xlazy") || root.starts_with("g_") || path.matches("::").count() < 3
}

/// Asks rustc about each path: itself when it is public, a re-export that it names otherwise. No answer where it cannot be
/// asked.
fn ask(crates: &Crates, paths: BTreeSet<String>, at_work: &AtWork) -> Answers {
    let paths: Vec<String> = paths.into_iter().collect();
    let Some(errors) = compile(crates, &source(crates, &paths), at_work) else { return Vec::new() };
    let answer = |(i, path): (usize, &String)| {
        let about: Vec<&Diagnostic> = errors.iter().filter(|e| e.spans.iter().any(|s| s.line == i + 2)).collect();
        let unresolved = about.iter().any(|e| matches!(&*e.code, "E0603" | "E0433" | "E0425" | "E0412" | "E0658"));
        let public = if unresolved { about.iter().find_map(|e| suggested(e)) } else { Some(path.clone()) };
        (path.clone(), public)
    };
    paths.iter().enumerate().map(answer).collect()
}

/// One line for each path, so that an error's line says which one it is about.
fn source(crates: &Crates, paths: &[String]) -> String {
    let deps = crates.deps.iter().map(|d| format!(" extern crate {d};")).collect::<String>();
    let mut text = format!("#![crate_type=\"lib\"]#![allow(warnings)] extern crate xlazy;{deps}\n");
    for (i, path) in paths.iter().enumerate() {
        text += &format!("type P{i} = {path};\n");
    }
    text
}

/// The re-export that an error about a private path suggests.
fn suggested(error: &Diagnostic) -> Option<String> {
    if error.code != "E0603" {
        return None;
    }
    let instead = error.children.iter().filter(|c| c.message.starts_with("consider importing"));
    let is_path = |p: &&String| p.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    let paths = instead.flat_map(|c| &c.spans).filter_map(|s| s.replacement.as_ref()).filter(is_path);
    paths.min_by_key(|p| p.len()).map(|p| format!("::{}", p.trim_start_matches("::")))
}

fn compile(crates: &Crates, source: &str, at_work: &AtWork) -> Option<Vec<Diagnostic>> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let file = crates.dir.join(format!("paths_{}.rs", COUNT.fetch_add(1, Ordering::Relaxed)));
    let metadata = file.with_extension("rmeta");
    std::fs::write(&file, source).ok()?;
    let with = |option: &str, path: &Path| format!("{option}{}", path.display());
    let child = run_somewhere(&mut Command::new(&crates.install.toolchain.rustc), &crates.dir)
        .arg(&file)
        .args(["--edition=2024", "--error-format=json"])
        .arg(with("--out-dir=", &crates.dir))
        .arg(with("--emit=metadata=", &metadata))
        .arg(with("--extern=xlazy=", &crates.install.runtime_so))
        .arg(with("-Ldependency=", &crates.install.deps_dir))
        .args(&crates.options)
        // A stable rustc suggests no paths in crates other than its own. This one compiles nothing that runs.
        .env("RUSTC_BOOTSTRAP", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn();
    let out = child.and_then(|mut child| {
        if !at_work.begin(child.id()) {
            child.kill()?;
        }
        let pid = child.id();
        let out = child.wait_with_output();
        at_work.end(pid);
        out
    });
    let _ = std::fs::remove_file(&file);
    let _ = std::fs::remove_file(&metadata);
    let out = out.ok().filter(|out| out.status.code().is_some())?;
    let lines = String::from_utf8_lossy(&out.stderr);
    let errors = lines.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
    Some(errors.map(|v| Diagnostic::read(&v, "")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rustc_names_the_re_export_of_the_very_type() {
        let install = match Installation::find() {
            Ok(install) => install,
            Err(failure) => panic!("{}", failure.message),
        };
        let dir = std::env::temp_dir().join(format!("xlazy-test-paths-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let crates = Crates { install, dir: dir.clone(), options: Vec::new(), deps: None };
        let mut paths = Paths::default();
        let mut find = |path: &str| paths.find(path, || crates.clone()).get(path).cloned();
        assert_eq!(find("::std::collections::hash::map::Iter"), Some("::std::collections::hash_map::Iter".into()));
        assert_eq!(find("::xlazy::nn::Module"), Some("::xlazy::nn::Module".into()));
        assert_eq!(find("::std::sys::nothing::There"), None);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
