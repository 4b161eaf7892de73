//! The programs that a framework wrote down while it ran: which files have them, and in which order they were compiled.
use super::module::Line;
use super::{lazy, torch_trace};
use std::path::{Path, PathBuf};
use xlazy_core::run::Cause;
use xlazy_mime::regular;

/// A program's text, with what the framework wrote beside it.
pub(super) struct Written {
    /// Its file, and which of its graphs where it has several.
    pub name: String,
    pub file: PathBuf,
    pub text: String,
    /// Lines of the file before it.
    pub before: u32,
    /// The calls that led to its compilation, from the innermost on, where they are told.
    pub frames: Vec<Line>,
    pub cause: Cause,
    /// What the framework's cache knows it by. Where that is told, a text stands for a run and not for a compilation.
    pub hash: Option<String>,
}

pub(super) struct Folder {
    pub programs: Vec<Written>,
    /// Files that are no programs.
    pub others: usize,
}

/// The programs of files and folders, in the order of the numbers that frameworks give their files.
///
/// Errors: a path that is not there or can't be read.
pub(super) fn programs(paths: &[&str]) -> Result<Folder, String> {
    let mut files = Vec::new();
    for path in paths.iter().map(Path::new) {
        let mut of_path = Vec::new();
        collect(path, &mut of_path, DEEPEST).map_err(|e| format!("{} could not be read: {e}", path.display()))?;
        of_path.sort_by_cached_key(|file| in_order(&file.to_string_lossy()));
        files.extend(of_path);
    }
    let found = files.len();
    let files = first_stages(files);
    let mut programs = Vec::new();
    for file in &files {
        match of_file(file) {
            Ok(found) => programs.extend(found),
            // Beside programs there is much else in a folder; a file that is named is meant.
            Err(why) if paths.iter().any(|p| Path::new(p) == file) => return Err(why),
            Err(_) => {}
        }
    }
    let with_some = files.iter().filter(|f| programs.iter().any(|p: &Written| p.file == **f)).count();
    // What JAX lowers and what XLA makes of it are one program in two files: the first has the arguments' names.
    let lowered = |p: &Written| p.file.file_name().is_some_and(|n| n.to_string_lossy().starts_with("jax_ir"));
    if programs.iter().any(lowered) {
        programs.retain(lowered);
    }
    Ok(Folder { programs, others: found - with_some })
}

/// How deep folders may lie in one another.
const DEEPEST: usize = 16;

fn collect(path: &Path, files: &mut Vec<PathBuf>, depth: usize) -> std::io::Result<()> {
    if !path.is_dir() {
        path.metadata()?;
        files.push(path.to_owned());
        return Ok(());
    }
    if depth > 0 {
        for entry in std::fs::read_dir(path)? {
            collect(&entry?.path(), files, depth - 1)?;
        }
    }
    Ok(())
}

/// Names as people order them: `ir9` before `ir10`.
fn in_order(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let end = rest[digits..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| digits + n);
        parts.push((rest[..digits].to_owned(), rest[digits..end].parse().unwrap_or(0)));
        rest = &rest[end..];
    }
    parts
}

/// XLA writes a module at several stages (`module_0007.jit_step.before_optimizations.txt`), and may write down otherwise what it was
/// given; that says why there is one, and once is enough.
fn first_stages(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let name = |file: &Path| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let given = |name: &str| name.contains(".before_optimizations.");
    let has_given = files.iter().any(|f| given(&name(f)));
    let other = |name: &str| name.starts_with("jax_ir") || !name.contains("module");
    files.into_iter().filter(|f| !has_given || given(&name(f)) || other(&name(f))).collect()
}

fn of_file(file: &Path) -> Result<Vec<Written>, String> {
    let bytes = regular::read(file).map_err(|e| format!("{} could not be read: {e}", file.display()))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        format!(
            "{} is no text: StableHLO and HLO are read as text (of bytecode, `stablehlo-translate --deserialize` makes it)",
            file.display()
        )
    })?;
    let shown = file.to_string_lossy().into_owned();
    let graphs = lazy::graphs(&text);
    if !graphs.is_empty() {
        let one = |(k, g): (usize, lazy::Graph)| Written {
            name: format!("{shown}, graph {}", k + 1),
            file: file.to_owned(),
            text: g.text.to_owned(),
            before: g.before,
            frames: g.frames,
            cause: g.cause,
            hash: Some(g.hash.to_owned()).filter(|hash| !hash.is_empty()),
        };
        return Ok(graphs.into_iter().enumerate().map(one).collect());
    }
    let traced = torch_trace::programs(&text);
    if !traced.is_empty() {
        let one = |p: torch_trace::Traced| Written {
            name: format!("{shown}, compilation {}", p.id),
            file: file.to_owned(),
            text: p.text,
            before: p.before,
            frames: p.frames,
            cause: Cause::Sync,
            hash: None,
        };
        return Ok(traced.into_iter().map(one).collect());
    }
    match super::language(&text) {
        Some(_) => {
            let (file, frames, cause) = (file.to_owned(), vec![], Cause::Sync);
            Ok(vec![Written { name: shown, file, text, before: 0, frames, cause, hash: None }])
        }
        None => Err(super::no_program(&shown)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_as_numbers() {
        let mut names = ["jax_ir10_f.mlir", "jax_ir9_g.mlir", "jax_ir9_f.mlir", "module_0002.a", "module_10.a"];
        names.sort_by_cached_key(|name| in_order(name));
        assert_eq!(names, ["jax_ir9_f.mlir", "jax_ir9_g.mlir", "jax_ir10_f.mlir", "module_0002.a", "module_10.a"]);
    }
}
