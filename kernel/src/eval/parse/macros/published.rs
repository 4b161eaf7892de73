//! Macros of published crates: their calls are written out as a cell's are, the crate is compiled with and without, and
//! rustc must find the same in both. MIR is compared, so that every name must mean what it meant and every literal stay.
//!
//! The crates are those that this workspace is built of, as cargo has them here; nothing is fetched. Two of them are a test
//! among others; XLAZY_LONG=1 takes all, some two hundred macros.
use super::*;
use crate::eval::parse::syntax::{arguments, bytes};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use syn::spanned::Spanned;

/// With the features that have more of their macros compiled. The first two are quick.
const CRATES: &[(&str, &str)] = &[
    ("num-traits", "std,i128"),
    ("itoa", ""),
    ("bytemuck", ""),
    ("libc", "std"),
    ("serde_core", "std"),
    ("syn", "full,parsing,printing,visit,fold,extra-traits,derive,clone-impls"),
    ("rustix", "std,process,fs,net"),
    ("winnow", "std"),
    ("tokio", "rt,sync,time,net,io-util,macros,signal,fs,process"),
    ("nix", "signal,fs,resource,process"),
    ("cmov", ""),
    ("ctutils", ""),
    ("rand", ""),
    ("indexmap", "std"),
    ("generic-array", ""),
    ("hybrid-array", ""),
    ("uuid", ""),
    ("bytes", "std"),
    ("plotters", ""),
    ("zeroize", ""),
    ("subtle", ""),
    ("quote", ""),
    ("crossbeam-utils", "std"),
    ("zlib-rs", ""),
    ("cipher", ""),
    ("hashbrown", ""),
];
const QUICK: usize = 2;

/// A crate's macros by name, and how often a call of each was written out.
#[derive(Default)]
struct WrittenOut {
    macros: BTreeMap<String, usize>,
    left: BTreeMap<String, usize>,
}

/// Every macro that a file defines among its items.
fn definitions(cell: &Arc<CellText>, base: usize, items: &[syn::Item], out: &mut Vec<Macro>) {
    for item in items {
        match item {
            syn::Item::Macro(m) if m.ident.is_some() => {
                let range = bytes(m.mac.path.span(), base).start..bytes(m.span(), base).end;
                let name = m.ident.as_ref().map(ToString::to_string).unwrap_or_default();
                let text = cell.text[range.clone()].to_owned();
                let mentions = scan::mentions(&text);
                out.push(Macro { name, text, mentions, source: cell.clone(), range });
            }
            syn::Item::Mod(m) => m.content.iter().for_each(|(_, inner)| definitions(cell, base, inner, out)),
            _ => {}
        }
    }
}

fn is_conditional(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| a.path().is_ident("cfg") || a.path().is_ident("cfg_attr"))
}

/// Calls where items stand, and whether the crate may be compiled without them.
fn calls<'i>(items: &'i [syn::Item], conditional: bool, out: &mut Vec<(&'i syn::ItemMacro, bool)>) {
    for item in items {
        match item {
            syn::Item::Macro(m) if m.ident.is_none() => out.push((m, conditional || is_conditional(&m.attrs))),
            syn::Item::Mod(m) => {
                let conditional = conditional || is_conditional(&m.attrs);
                m.content.iter().for_each(|(_, inner)| calls(inner, conditional, out));
            }
            _ => {}
        }
    }
}

/// What is said of the call is said of each item.
fn only_where(mut made: String, text: &str, attributes: &[syn::Attribute]) -> Option<String> {
    let items = syn::parse_file(&made).ok()?.items;
    let attributes: String = attributes
        .iter()
        .filter(|a| !a.path().is_ident("doc"))
        .map(|a| format!("{} ", &text[bytes(a.span(), 0)]))
        .collect();
    items.iter().rev().for_each(|i| made.insert_str(bytes(i.span(), 0).start, &attributes));
    Some(made)
}

/// A text's items, with the calls among them written out.
fn written_out(cell: &Arc<CellText>, macros: &[Macro], deep: usize, found: &mut WrittenOut) -> Option<String> {
    let file = syn::parse_file(&cell.text).ok()?;
    let mut known: Vec<Macro> = macros.to_vec();
    definitions(cell, 0, &file.items, &mut known);
    let mut all = Vec::new();
    calls(&file.items, false, &mut all);
    let (mut text, mut from) = (String::new(), 0);
    for (call, conditional) in all {
        let at = bytes(call.span(), 0);
        let name = call.mac.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        // The one before it in its own file; else the only one of that name.
        let before =
            known.iter().rev().find(|m| m.name == name && Arc::ptr_eq(&m.source, cell) && m.range.end <= at.start);
        let rules = before.or_else(|| {
            let mut of_name = known.iter().filter(|m| m.name == name);
            of_name.next().filter(|first| of_name.all(|m| m.text == first.text))
        });
        let Some(rules) = rules else { continue };
        let of_name = |n: &str| if n == name { Some(rules) } else { known.iter().rev().find(|m| m.name == n) };
        let made = made_by_rules(rules, cell, arguments(&call.mac, 0)).filter(|made| deep < 64 && made.fits());
        let made = made.map(|made| made.told_apart(&name, &of_name, 1));
        let made = made.and_then(|made| written_out(&made, &known, deep + 1, found));
        let made = made.and_then(|made| only_where(made, &cell.text, &call.attrs));
        let Some(made) = made else {
            *found.left.entry(name).or_default() += 1;
            continue;
        };
        *found.macros.entry(name).or_default() += usize::from(!conditional);
        text.push_str(&cell.text[from..at.start]);
        text.push_str(&made);
        from = at.end;
    }
    text.push_str(&cell.text[from..]);
    Some(text)
}

/// This workspace's dependencies, as cargo has them here: those of other platforms it need not have fetched.
fn packages() -> Vec<cargo_metadata::Package> {
    let mut cargo = cargo_metadata::MetadataCommand::new();
    let platform = format!("--filter-platform={}-unknown-linux-gnu", std::env::consts::ARCH);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.other_options(["--locked".to_owned(), "--offline".to_owned(), platform]);
    cargo.exec().unwrap().packages
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// The MIR of each crate, in which nothing says where in a text it stands or what a variable is called.
fn mir(project: &Path, target: &Path) -> BTreeMap<String, Vec<String>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["check", "--offline", "--quiet", "--target-dir"]).arg(target).current_dir(project);
    let checked = cargo.env("RUSTFLAGS", "--emit=mir --cap-lints=allow").output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let mut out = BTreeMap::new();
    for entry in std::fs::read_dir(target.join("debug/deps")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Some((name, _)) = name.strip_suffix(".mir").and_then(|n| n.rsplit_once('-')) {
            out.insert(name.to_owned(), bodies(&std::fs::read_to_string(&path).unwrap()));
        }
    }
    out
}

/// Functions and constants in no order, since rustc numbers what macros make after everything else.
fn bodies(mir: &str) -> Vec<String> {
    let (mut all, mut body) = (Vec::new(), String::new());
    for line in mir.lines().filter(|l| !l.trim_start().starts_with("debug ") && !l.is_empty()) {
        body.push_str(&without_places(&without_numbers(line)));
        body.push('\n');
        // Of a constant that is empty or a function there is one line.
        if line == "}" || line.starts_with("alloc") && !line.ends_with('{') {
            all.push(std::mem::take(&mut body));
        }
    }
    all.push(body);
    all.sort();
    all
}

/// Constants are numbered through.
fn without_numbers(line: &str) -> String {
    let mut parts = line.split("alloc");
    let first = parts.next().unwrap_or_default().to_owned();
    let out = parts.fold(first, |out, part| out + "alloc" + part.trim_start_matches(|c: char| c.is_ascii_digit()));
    // A pointer's number stands between as many dashes as there is room for.
    out.replace('─', "")
}

/// Without such as `src/int.rs:10:1: 10:20`.
fn without_places(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find(".rs:") {
        let start = rest[..at].rfind([' ', '@']).map_or(0, |i| i + 1);
        let numbers = |c: char| !c.is_ascii_digit() && c != ':' && c != ' ';
        let end = at + 4 + rest[at + 4..].find(numbers).unwrap_or(rest.len() - at - 4);
        out.push_str(&rest[..start]);
        rest = &rest[end..];
    }
    out + rest
}

/// A project that depends on copies of the crates: where each copy is.
fn copies(project: &Path, crates: &[(&str, &str)]) -> Vec<(String, PathBuf)> {
    let packages = packages();
    let (mut dependencies, mut patches, mut folders) = (String::new(), String::new(), Vec::new());
    for (name, features) in crates {
        let package = packages.iter().filter(|p| p.name == *name).max_by_key(|p| p.version.clone());
        let package = package.unwrap_or_else(|| panic!("the workspace is built without {name} by now"));
        let (version, folder) = (&package.version, package.manifest_path.parent().unwrap());
        let to = project.join("crates").join(name);
        copy(folder.as_std_path(), &to);
        let features: Vec<&str> = features.split(',').filter(|f| !f.is_empty()).collect();
        dependencies.push_str(&format!(
            "{name} = {{ version = \"={version}\", default-features = false, features = {features:?} }}\n"
        ));
        patches.push_str(&format!("{name} = {{ path = \"crates/{name}\" }}\n"));
        folders.push(((*name).to_owned(), to));
    }
    let manifest = format!(
        "[package]\nname = \"published\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\n{dependencies}\n[patch.crates-io]\n{patches}"
    );
    std::fs::create_dir_all(project.join("src")).unwrap();
    std::fs::write(project.join("src/lib.rs"), "").unwrap();
    std::fs::write(project.join("Cargo.toml"), manifest).unwrap();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for file in ["Cargo.lock", "rust-toolchain.toml"] {
        std::fs::copy(workspace.join(file), project.join(file)).unwrap();
    }
    folders
}

/// Writes out the calls in a crate's files.
fn write_out(files: Vec<PathBuf>) -> WrittenOut {
    let cell = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).ok()?;
        Some((path, Arc::new(CellText::new(1, text))))
    };
    let cells: Vec<(PathBuf, Arc<CellText>)> = files.into_iter().filter_map(cell).collect();
    let mut macros = Vec::new();
    for (_, cell) in &cells {
        let of_file = || syn::parse_file(&cell.text).map(|f| definitions(cell, 0, &f.items, &mut macros)).ok();
        depth::Depth::of(&cell.text).apart(of_file).unwrap();
    }
    let mut found = WrittenOut::default();
    for (path, cell) in &cells {
        let text = depth::Depth::of(&cell.text).apart(|| written_out(cell, &macros, 0, &mut found)).unwrap();
        if let Some(text) = text.filter(|text| *text != cell.text) {
            std::fs::write(path, text).unwrap();
        }
    }
    found
}

#[test]
fn published_macros_do_what_they_do_in_their_crates() {
    let (crates, least) = match std::env::var_os("XLAZY_LONG") {
        Some(_) => (CRATES, 200),
        None => (&CRATES[..QUICK], 35),
    };
    let project = std::env::temp_dir().join(format!("xlazy-published-{}", std::process::id()));
    let folders = copies(&project, crates);
    let target = project.join("target");
    let wanted = mir(&project, &target);
    let mut count = 0;
    for (name, folder) in &folders {
        let found = write_out(compiled_files(&project, name, folder));
        println!("{name}: {:?}; left {:?}", found.macros, found.left);
        count += found.macros.values().filter(|n| **n > 0).count();
    }
    println!("{count} macros");
    let found = mir(&project, &target);
    for (name, _) in &folders {
        let name = name.replace('-', "_");
        let (wanted, found) = (&wanted[&name], &found[&name]);
        if let Some((wanted, found)) = wanted.iter().zip(found).find(|(w, f)| w != f) {
            panic!("{name}:\n{wanted}\n---- written out:\n{found}");
        }
        assert_eq!(wanted.len(), found.len(), "{name}");
    }
    assert!(count >= least, "{count} macros");
    std::fs::remove_dir_all(&project).unwrap();
}

/// The files of a crate that were compiled.
fn compiled_files(project: &Path, name: &str, folder: &Path) -> Vec<PathBuf> {
    let prefix = format!("{}-", name.replace('-', "_"));
    let mut out = Vec::new();
    for entry in std::fs::read_dir(project.join("target/debug/deps")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        if file.starts_with(&prefix) && file.ends_with(".d") {
            let text = std::fs::read_to_string(&path).unwrap();
            let of_crate = text.lines().filter_map(|l| l.strip_suffix(':')).map(|f| project.join(f));
            out.extend(of_crate.filter(|f| f.starts_with(folder) && f.extension().is_some_and(|e| e == "rs")));
        }
    }
    out.sort();
    out.dedup();
    out
}
