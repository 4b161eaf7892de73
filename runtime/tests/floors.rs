//! The floors of ARCHITECTURE.md: within a crate no file names one of a floor above, no files name one another in a circle,
//! and none has grown past what one purpose needs.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// A crate's floors, from the ground up: each may name those before it. `lib` and `main` may name all. A floor inside of
/// another stands before it, and what is on none of those inside is on the one around them.
struct House {
    src: &'static str,
    floors: &'static [&'static str],
}

const HOUSES: &[House] = &[
    House {
        src: "runtime/core/src",
        floors: &[
            "host", "sys", "clock", "text", "thread", "error", "ty", "metrics", "options", "proto", "mesh", "emit",
            "pod", "device", "ir", "run",
        ],
    },
    House {
        src: "runtime/src",
        floors: &[
            "json", "rng", "backends", "insight", "tensor", "changes", "bucket", "ops", "spmd", "grad", "nn", "optim",
            "data", "xm", "models", "display", "cell", "widget", "aot", "show", "inside", "linked", "lesson",
            "prelude", "bench", "calls", "fuzz",
        ],
    },
    House {
        src: "kernel/src",
        floors: &[
            "home",
            "trouble",
            "guard",
            "folder",
            "engine",
            "footer",
            "terminal",
            "ctrl_c",
            "wire",
            "repl",
            "magics",
            "eval/text",
            "eval/toolchain",
            "eval/deps",
            "eval/parse",
            "eval/generate",
            "eval/tell",
            "eval/build",
            "eval/typing",
            "eval/session",
            "eval/export",
            "eval",
            "evcxr",
            "bench",
            "cli",
        ],
    },
];

/// Lines that a file has at most.
const LONGEST: usize = 600;

type Module = Vec<String>;

/// The files of one crate, by module path, with what each names.
struct Crate {
    files: BTreeMap<Module, String>,
    /// Names that a module has by `use`, public or not, with the path behind each.
    aliases: HashMap<Module, HashMap<String, Module>>,
}

impl Crate {
    fn read(src: &Path) -> Crate {
        let mut files = BTreeMap::new();
        let mut folders = vec![(src.to_owned(), Module::new())];
        while let Some((folder, module)) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
                let path = entry.expect("an entry").path();
                let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
                let mut inner = module.clone();
                if path.is_dir() {
                    inner.push(name);
                    folders.push((path, inner));
                } else if path.extension().is_some_and(|e| e == "rs") {
                    if name == "tests" {
                        continue;
                    }
                    if !matches!(name.as_str(), "mod" | "lib" | "main") {
                        inner.push(name);
                    }
                    files.insert(inner, code(&fs::read_to_string(&path).expect("text")));
                }
            }
        }
        let mut found = Crate { files, aliases: HashMap::new() };
        for (module, text) in &found.files {
            let uses = uses(text).into_iter().flat_map(|u| tree(&u.path));
            let named = uses.filter_map(|path| Some((path.last()?.clone(), found.absolute(module, &path)?)));
            found.aliases.insert(module.clone(), named.collect());
        }
        found
    }

    /// A path of this crate from its root; `None` for other crates' paths.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let mut out = module.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                out.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|p| p == "super") {
                    out.pop();
                    rest = &rest[1..];
                }
            }
            child => {
                let mut inner = module.clone();
                inner.push(child.to_owned());
                if !self.files.contains_key(&inner) {
                    return None;
                }
            }
        }
        out.extend(rest.iter().cloned());
        Some(out)
    }

    /// The file that a path leads to, through what modules on the way re-export.
    fn file(&self, path: &Module, depth: usize) -> Option<Module> {
        let known = (0..=path.len()).rev().map(|n| path[..n].to_vec()).find(|m| self.files.contains_key(m))?;
        let behind = path.get(known.len()).and_then(|name| self.aliases[&known].get(name));
        if let Some(behind) = behind.filter(|b| *b != path && depth < 8) {
            return self.file(&[behind.as_slice(), &path[known.len() + 1..]].concat(), depth + 1);
        }
        Some(known)
    }

    /// Paths that begin with a module in scope: an imported one, or a child.
    fn through_modules(&self, module: &Module, text: &str) -> Vec<Vec<String>> {
        let children = self.files.keys().filter(|m| m.len() == module.len() + 1 && m.starts_with(module));
        let children = children.map(|m| (m.last().expect("a name").clone(), m.clone()));
        let imported = self.aliases[module].iter().filter(|(_, path)| self.files.contains_key(*path));
        let scope: BTreeMap<String, Module> = children.chain(imported.map(|(n, p)| (n.clone(), p.clone()))).collect();
        let mut out = Vec::new();
        for (name, path) in &scope {
            for found in written(text, &format!("{name}::")) {
                let rest = found.into_iter().skip(1);
                out.push(["crate".to_owned()].into_iter().chain(path.iter().cloned()).chain(rest).collect());
            }
        }
        out
    }

    /// Which files each file names; what it re-exports to others it does not name itself.
    fn imports(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let one = |(module, text): (&Module, &String)| {
            let own = uses(text).into_iter().filter(|u| !u.public).flat_map(|u| tree(&u.path));
            let paths = own.chain(inline(text)).chain(self.through_modules(module, text));
            let named = paths.filter_map(|p| self.file(&self.absolute(module, &p)?, 0)).filter(|m| m != module);
            (module.clone(), named.collect())
        };
        self.files.iter().map(one).collect()
    }
}

struct Use {
    path: String,
    public: bool,
}

/// The text without comments, strings, and tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().map(|l| {
        let mut out = String::new();
        let mut quoted = false;
        let mut chars = l.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' if quoted => drop(chars.next()),
                '"' => quoted = !quoted,
                '/' if !quoted && chars.peek() == Some(&'/') => break,
                _ if !quoted => out.push(c),
                _ => {}
            }
        }
        out
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn uses(text: &str) -> Vec<Use> {
    let mut out = Vec::new();
    for (i, _) in text.match_indices("use ") {
        let before = text[..i].rsplit('\n').next().unwrap_or_default().trim();
        if before.is_empty() || before.starts_with("pub") {
            let path = text[i + 4..].split(';').next().unwrap_or_default();
            out.push(Use { path: path.split_whitespace().collect::<Vec<_>>().join(" "), public: !before.is_empty() });
        }
    }
    out
}

/// `a::{b, c::d as e}` as its paths. `as` gives the last name; a glob ends before it.
fn tree(text: &str) -> Vec<Vec<String>> {
    let text = text.trim();
    let Some(open) = text.find('{') else {
        let path = text.split(" as ").next().unwrap_or_default().trim().trim_end_matches("::*");
        return vec![path.split("::").map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()).collect()];
    };
    let head: Vec<String> =
        text[..open].split("::").map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect();
    let inner = &text[open + 1..text.rfind('}').unwrap_or(text.len())];
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (i, c) in inner.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            parts.push(&inner[start..i]);
            start = i + 1;
        }
    }
    parts.push(&inner[start..]);
    let paths = parts.into_iter().filter(|p| !p.trim().is_empty()).flat_map(tree);
    paths.map(|p| head.iter().cloned().chain(p.into_iter().filter(|s| s != "self")).collect()).collect()
}

/// Paths that are written out where they are used.
fn inline(text: &str) -> Vec<Vec<String>> {
    ["crate::", "super::"].into_iter().flat_map(|start| written(text, start)).collect()
}

/// The paths in code that begin so; declarations have been looked at.
fn written(text: &str, start: &str) -> Vec<Vec<String>> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = Vec::new();
    for (i, _) in text.match_indices(start) {
        let line = text[..i].rsplit('\n').next().unwrap_or_default().trim_start();
        if text[..i].ends_with(|c: char| word(c) || c == ':')
            || line.starts_with("pub") && line.contains(" use ")
            || line.starts_with("use ")
        {
            continue;
        }
        let end = text[i..].find(|c| !word(c) && c != ':').map_or(text.len(), |n| i + n);
        out.push(text[i..end].split("::").filter(|s| !s.is_empty()).map(str::to_owned).collect());
    }
    out
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn name(module: &Module) -> String {
    if module.is_empty() { "lib".into() } else { module.join("/") }
}

/// Pairs of modules that reach one another.
fn circles(imports: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<(Module, Module)> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = imports
        .keys()
        .map(|from| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
            while let Some(at) = next.pop() {
                next.extend(imports[at].iter().filter(|to| seen.insert(*to)));
            }
            (from, seen)
        })
        .collect();
    let direct = imports.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to)));
    direct.filter(|(from, to)| reach[to].contains(from)).map(|(a, b)| (a.clone(), b.clone())).collect()
}

#[test]
fn no_import_runs_up_and_none_in_a_circle() {
    let mut wrong = Vec::new();
    for house in HOUSES {
        let imports = Crate::read(&root().join(house.src)).imports();
        let floor = |m: &Module| {
            let within = |f: &&str| (1..=m.len()).any(|n| m[..n].join("/") == **f);
            let at = house.floors.iter().position(within);
            m.first().map(|_| at.unwrap_or_else(|| panic!("{}: `{}` stands on no floor", house.src, name(m))))
        };
        let up = imports.iter().flat_map(|(from, all)| all.iter().map(move |to| (from.clone(), to.clone())));
        let up = up.filter(|(from, to)| floor(from) < floor(to) && !from.is_empty());
        let one = |(from, to): (Module, Module), what| format!("{}: {} → {} {what}", house.src, name(&from), name(&to));
        wrong.extend(circles(&imports).into_iter().map(|pair| one(pair, "is a part of a circle")));
        wrong.extend(up.map(|pair| one(pair, "runs up")));
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{} imports:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_file_is_long() {
    for folder in ["runtime", "kernel", "session"] {
        let mut folders = vec![root().join(folder)];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(&folder).expect("a folder").map(|e| e.expect("an entry").path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    let lines = fs::read_to_string(&path).expect("text").lines().count();
                    let long = format!("{} has {lines} lines: what second thing has it started?", path.display());
                    assert!(lines <= LONGEST, "{long}");
                }
            }
        }
    }
}

/// `a/{b,c}.rs` as its paths.
fn braces(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?))) {
        Some((head, (inner, tail))) => inner.split(',').flat_map(|i| braces(&format!("{head}{i}{tail}"))).collect(),
        None => vec![path.to_owned()],
    }
}

/// ARCHITECTURE.md is what a newcomer goes by: a path in it begins at the root, or where its crate's files begin.
#[test]
fn every_path_on_the_map_is_there() {
    let from = ["", "kernel", "kernel/src", "kernel/src/eval", "runtime", "runtime/src", "runtime/core/src"];
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map");
    let quoted = map.split('`').skip(1).step_by(2).filter(|q| q.contains('/') && !q.contains(char::is_whitespace));
    let paths: Vec<String> = quoted.map(|q| q.trim_start_matches("…/")).flat_map(braces).collect();
    let is_there = |path: &String| {
        let named = |folder| [path.clone(), format!("{path}.rs")].map(|p| root().join(folder).join(p));
        path.starts_with('*') || from.iter().flat_map(named).any(|p| p.exists())
    };
    let gone: Vec<&String> = paths.iter().filter(|p| !is_there(p)).collect();
    assert!(gone.is_empty() && paths.len() > 80, "of {} paths these lead nowhere: {gone:?}", paths.len());
}
