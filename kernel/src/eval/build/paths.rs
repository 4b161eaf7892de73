//! Where types are public. `std::any::type_name` says in which module a type is defined, and that may be a private one.
//! rustc knows the way out: an error about a private path names the re-export of that very type, unless it has another name there.
//! Those are found among the names that the notebook itself uses.
use crate::eval::text::scan::{self, Kind};
use crate::eval::text::sources::Sources;
use crate::eval::text::types::{Named, nameable, paths_in};
use crate::eval::toolchain::at_work::AtWork;
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};
use crate::eval::toolchain::install::Installation;
use crate::folder::run_somewhere;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::iter::successors;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// What is known about paths so far, as cells write them: `::crate::module::Type`.
#[derive(Default)]
pub struct Paths {
    known: HashMap<String, Found>,
    /// Types whose paths are known, or asked about.
    read: HashSet<String>,
    /// rustc is being asked, beside everything else.
    asked: Option<(BTreeSet<String>, JoinHandle<Answers>)>,
    /// The rustc that is.
    at_work: AtWork,
}

/// What rustc says of a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The path by which a cell can name the type.
    Public(String),
    /// There is none.
    Private,
    /// It is no type: a function's own type is written as the function is.
    Function,
}

type Answers = Vec<(String, Found)>;

/// What rustc is told when it is asked: where the crates are.
#[derive(Clone)]
pub struct Crates {
    pub install: Installation,
    pub dir: PathBuf,
    pub options: Vec<String>,
    /// The crate that holds the dependencies; without its name rustc would take them for other crates.
    pub deps: Option<String>,
    /// What the notebook's cells say.
    pub sources: Sources,
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
        let public = |p: &String| match self.known.get(p)? {
            Found::Public(path) => Some(path.clone()),
            _ => None,
        };
        paths.into_iter().filter_map(|p| Some((p.clone(), public(&p)?))).collect()
    }

    /// A path in `written` that no cell can write for a type.
    pub fn unwritable(&mut self, written: &str) -> Option<(String, Found)> {
        self.known(written);
        let mut found = paths_in(written).into_iter().filter_map(|p| Some((p.clone(), self.known.get(&p)?.clone())));
        found.find(|(_, found)| !matches!(found, Found::Public(_)))
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
    matches!(root, "std" | "core" | "alloc" | "xlazy")
        || root.starts_with("g_")
        || path.matches("::").count() < 3 && !is_lowercase(path)
}

/// As functions are called, and few types.
fn is_lowercase(path: &str) -> bool {
    path.rsplit("::").next().is_some_and(|name| name.starts_with(char::is_lowercase))
}

/// Asks rustc about each path: itself when it is public, a re-export that it names otherwise. No answer where it cannot be
/// asked.
fn ask(crates: &Crates, paths: BTreeSet<String>, at_work: &AtWork) -> Answers {
    let paths: Vec<String> = paths.into_iter().collect();
    let types = paths.iter().enumerate().map(|(i, path)| format!("type P{i} = {path};\n")).collect();
    let Some(errors) = compile(crates, types, at_work) else { return Vec::new() };
    let answer = |(i, path): (usize, &String)| {
        let about: Vec<&Diagnostic> = about_line(&errors, i).collect();
        let unresolved = about.iter().any(|e| matches!(&*e.code, "E0603" | "E0433" | "E0425" | "E0412" | "E0658"));
        let function = |e: &&Diagnostic| e.code == "E0573" || e.code == "E0603" && e.message.starts_with("function `");
        let found = match about.iter().find_map(|e| suggested(e)) {
            _ if about.iter().any(function) => Found::Function,
            // Of a private module rustc does not say what is in it.
            Some((_, true)) => Found::Function,
            Some((public, false)) if unresolved => Found::Public(public),
            _ if unresolved => Found::Private,
            _ => Found::Public(path.clone()),
        };
        (path.clone(), found)
    };
    let mut answers: Answers = paths.iter().enumerate().map(answer).collect();
    let private: BTreeSet<String> =
        answers.iter().filter(|(_, f)| *f == Found::Private).map(|(p, _)| p.clone()).collect();
    if !private.is_empty() {
        let renamed = renamed(crates, &private, at_work);
        for (path, found) in answers.iter_mut() {
            if let Some(public) = renamed.get(path) {
                *found = Found::Public(public.clone());
            }
        }
    }
    answers
}

/// The paths into these crates that a text has, such as `slab::Slab`: what begins with a capital there.
fn paths_into(roots: &BTreeSet<&str>, text: &str) -> BTreeSet<String> {
    let tokens: Vec<_> = scan::tokens(text).into_iter().filter(|t| t.kind != Kind::Comment).collect();
    let word = |i: usize| tokens.get(i).map_or("", |t| &text[t.range.clone()]);
    let mut out = BTreeSet::new();
    for start in (0..tokens.len()).filter(|i| roots.contains(word(*i))) {
        let (mut path, mut i) = (word(start).to_owned(), start);
        while word(i + 1) == ":" && word(i + 2) == ":" {
            i += 3;
            // All that a list has in it may be meant, and what a glob may bring.
            let meant = match word(i) {
                "{" => i..scan::close(&tokens, i),
                "*" => 0..tokens.len(),
                _ => i..i + 1,
            };
            let types = meant.map(word).filter(|w| w.starts_with(char::is_uppercase));
            out.extend(types.map(|name| format!("{path}::{name}")));
            path = format!("{path}::{}", word(i));
        }
    }
    out
}

/// The errors about a line of what rustc is asked about.
fn about_line(errors: &[Diagnostic], line: usize) -> impl Iterator<Item = &Diagnostic> {
    let written = move |s: &Span| successors(Some(s), |s| s.call.as_deref()).any(|s| s.ours && s.line == line + 2);
    errors.iter().filter(move |e| e.spans.iter().any(written))
}

/// What is wrong with a name is said before its type, and before what it is called.
const ROUNDS: usize = 3;

/// Of private paths those that the notebook names otherwise, as `pub use registry::Registry as Handlebars;` lets it: what a type is
/// called where it is defined rustc says of each name of that crate's that some cell has.
fn renamed(crates: &Crates, private: &BTreeSet<String>, at_work: &AtWork) -> BTreeMap<String, String> {
    let roots: BTreeSet<&str> =
        private.iter().filter_map(|path| path.trim_start_matches("::").split("::").next()).collect();
    let sources = crates.sources.all();
    let names: BTreeSet<String> = sources.iter().flat_map(|source| paths_into(&roots, &source.text)).collect();
    // A type may have parameters.
    let given = ["", "<()>", "<(), ()>"];
    let mut asked: Vec<(&String, &str)> = names.iter().flat_map(|name| given.map(|given| (name, given))).collect();
    let mut out = BTreeMap::new();
    // rustc says what the others are called when nothing is wrong with any.
    for _ in 0..ROUNDS {
        let line = |(name, given): &(&String, &str)| {
            format!("const _: () = panic!(\"{{}}\", core::any::type_name::<::{name}{given}>());\n")
        };
        let Some(errors) = compile(crates, asked.iter().map(line).collect(), at_work) else { break };
        let said = |i: usize| about_line(&errors, i).find_map(|e| e.message.strip_prefix("evaluation panicked: "));
        for (i, (name, _)) in asked.iter().enumerate() {
            let path = said(i).map(|said| format!("::{}", said.split('<').next().unwrap_or_default()));
            if let Some(path) = path.filter(|path| private.contains(path)) {
                out.insert(path, format!("::{name}"));
            }
        }
        let before = asked.len();
        let mut right = (0..before).map(|i| about_line(&errors, i).next().is_none());
        asked.retain(|_| right.next().unwrap_or_default());
        if asked.is_empty() || asked.len() == before {
            break;
        }
    }
    out
}

/// The re-export that an error about a private path suggests, and whether it is a function's.
fn suggested(error: &Diagnostic) -> Option<(String, bool)> {
    if error.code != "E0603" {
        return None;
    }
    let instead = || error.children.iter().filter(|c| c.message.starts_with("consider importing"));
    let function = instead().any(|c| c.message.starts_with("consider importing this function"));
    let is_path = |p: &&String| p.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    let paths = instead().flat_map(|c| &c.spans).filter_map(|s| s.replacement.as_ref()).filter(is_path);
    paths.min_by_key(|p| p.len()).map(|p| (format!("::{}", p.trim_start_matches("::")), function))
}

/// What rustc says of these lines, each by itself: an error's line says which one it is about.
fn compile(crates: &Crates, lines: String, at_work: &AtWork) -> Option<Vec<Diagnostic>> {
    let deps = crates.deps.iter().map(|d| format!(" extern crate {d};")).collect::<String>();
    let first = "#![crate_type=\"lib\"]#![allow(warnings)]#![feature(const_type_name)] extern crate xlazy;";
    let source = format!("{first}{deps}\n{lines}");
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
    let name = file.display().to_string();
    Some(errors.map(|v| Diagnostic::read(&v, &name)).collect())
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
        let crates = Crates { install, dir: dir.clone(), options: Vec::new(), deps: None, sources: Sources::default() };
        let mut paths = Paths::default();
        let mut find = |path: &str| paths.find(path, || crates.clone()).get(path).cloned();
        assert_eq!(find("::std::collections::hash::map::Iter"), Some("::std::collections::hash_map::Iter".into()));
        assert_eq!(find("::xlazy::nn::Module"), Some("::xlazy::nn::Module".into()));
        assert_eq!(find("::std::sys::nothing::There"), None);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
