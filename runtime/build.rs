//! Lists the source files whose documentation comments the runtime shows (`src/display/names.rs`): a new file of ops or
//! layers is found by itself.
use std::fmt::Write;
use std::path::Path;

/// Folders of public items with the module they are reached through; none: the prelude, or methods.
const FOLDERS: [(&str, &str); 5] =
    [("ops", ""), ("nn", "nn"), ("optim", "optim"), ("data", "data"), ("models", "models")];
/// Files in those folders that are reached through a module of their own.
const APART: [(&str, &str); 3] =
    [("ops/collective.rs", "spmd"), ("ops/control/manual.rs", "spmd"), ("nn/spread.rs", "nn::parallel")];
const FILES: [(&str, &str); 28] = [
    ("tensor/mod.rs", ""),
    ("tensor/autocast.rs", ""),
    ("tensor/gradient.rs", ""),
    ("tensor/hooks.rs", ""),
    ("tensor/thread.rs", ""),
    ("tensor/trace.rs", ""),
    ("tensor/views.rs", ""),
    ("grad.rs", ""),
    ("grad/asked.rs", ""),
    ("grad/functional.rs", ""),
    ("cell/progress.rs", ""),
    ("cell/show.rs", ""),
    ("cell/streams.rs", ""),
    ("display/image.rs", ""),
    ("display/plot.rs", ""),
    ("show.rs", "show"),
    ("xm.rs", "xm"),
    ("insight/metrics.rs", "metrics"),
    ("inside/peek.rs", ""),
    ("lesson.rs", ""),
    ("backends.rs", "backends"),
    ("bucket/mod.rs", ""),
    ("widget/mod.rs", ""),
    ("widget/controls.rs", ""),
    ("../core/src/mesh/mod.rs", ""),
    ("../core/src/ty/shape.rs", ""),
    ("../core/src/ty/dtype.rs", ""),
    ("../mime/src/bundle.rs", ""),
];

fn main() {
    let src = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("src");
    let mut found: Vec<(String, String)> = FILES.iter().map(|(f, m)| (f.to_string(), m.to_string())).collect();
    for (folder, module) in FOLDERS {
        println!("cargo::rerun-if-changed=src/{folder}");
        let public = std::fs::read_to_string(src.join(folder).join("mod.rs")).unwrap_or_default();
        for name in files(&src.join(folder)) {
            // A folder in it is a module like the files in it.
            let stem = name.split('/').next().unwrap_or_default().trim_end_matches(".rs");
            let alone = public.contains(&format!("pub mod {stem};")) && !public.contains(&format!("pub use {stem}::"));
            let of = if alone { format!("{module}::{stem}") } else { module.to_owned() };
            let apart = APART.iter().find(|(file, _)| *file == format!("{folder}/{name}"));
            let of = apart.map_or(of, |(_, module)| module.to_string());
            // The table of ops is not public.
            if (folder, &*name) != ("ops", "mod.rs") {
                found.push((format!("{folder}/{name}"), of));
            }
        }
    }
    found[FILES.len()..].sort();
    let mut out = String::from("&[\n");
    for (file, module) in &found {
        println!("cargo::rerun-if-changed=src/{file}");
        let _ = writeln!(out, "    ({module:?}, {file:?}, include_str!({:?})),", src.join(file).display().to_string());
    }
    out.push_str("]\n");
    let to = Path::new(&std::env::var("OUT_DIR").unwrap_or_default()).join("sources.rs");
    if let Err(e) = std::fs::write(&to, out) {
        println!("cargo::error=cannot write {}: {e}", to.display());
    }
}

/// The sources in a folder and in those in it, but for what tests them.
fn files(folder: &Path) -> Vec<String> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.ends_with(".rs") {
            out.push(name);
        } else if name != "tests" {
            out.extend(files(&entry.path()).into_iter().map(|inner| format!("{name}/{inner}")));
        }
    }
    out
}
