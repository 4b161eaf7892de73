//! The lessons: what readers of whole notebooks wait for, every cell new, and all of them again from the cell cache.
use super::super::notebook::{CodeCell, Notebook};
use super::client::{Kernel, PAUSE, Took};
use crate::folder::Folder;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All cells of all notebooks in the folder, each of which has a kernel of its own: new, and again.
pub(super) fn measure(exe: &Path, folder: &Path) -> Result<[Vec<Took>; 2], String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    let entries = folder.read_dir().map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|e| e.path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "ipynb"));
    files.sort_unstable();
    // Nothing in it has been compiled before.
    let cache = Folder::new()?;
    let mut times = [Vec::new(), Vec::new()];
    for file in &files {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let cells = Notebook::parse(&text).map_err(|e| format!("{}: {e}", file.display()))?.code_cells();
        for times in &mut times {
            let mut command = Command::new(exe);
            command.arg("kernel").current_dir(folder);
            command.env("XLAZY_CACHE", cache.path()).env_remove("XLAZY_CELL_CACHE");
            // Lessons count what XLA compiles.
            command.env("XLAZY_PROGRAM_CACHE", "off");
            // One of them is about eight devices.
            command.env("XLAZY_CPU_DEVICES", "8");
            times.extend(run(&mut Kernel::start("xlazy", &mut command)?, file, &cells)?);
        }
    }
    match times[0].is_empty() {
        true => Err(format!("{} has no notebooks with cells", folder.display())),
        false => Ok(times),
    }
}

/// The cells of a notebook, up to the first that fails and should not: it may want what this machine lacks.
fn run(kernel: &mut Kernel, file: &Path, cells: &[CodeCell]) -> Result<Vec<Took>, String> {
    let mut times = Vec::new();
    for cell in cells {
        std::thread::park_timeout(PAUSE);
        let took = kernel.attempt(&cell.code)?;
        if let Some(failure) = took.failure.as_ref().filter(|_| !cell.may_fail) {
            eprintln!("left out, {} from cell {} on: {failure}", file.display(), cell.index + 1);
            break;
        }
        times.push(took);
    }
    Ok(times)
}
