//! Builds a notebook's dependencies, unless they are there already, and keeps the lock beside it.
use super::cargo::{Cargo, write_changed};
use super::lockfile;
use super::notebook::Notebook;
use super::rooms::{self, Room};
use super::stages::{Deps, Wanted, is_in_a_folder, of_json, to_json};
use crate::engine::{Failure, sentence};
use crate::eval::text::hash::short_hash;
use crate::eval::toolchain::at_work::AtWork;
use crate::eval::toolchain::install::Installation;
use crate::folder::runs_nothing;
use crate::trouble;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;
use xlazy_mime::{private, regular};

/// What computes in a crate should be fast, and a cell cannot make up for it.
const OPTIMISED: u8 = 2;

/// Builds what `before` has and what else is wanted, at its level or, where there is nothing yet, at this one. `say` gets cargo's
/// progress. Nothing changes for anybody when it fails.
pub fn build(
    install: &Installation,
    before: Option<&Deps>,
    wanted: Wanted,
    level: Option<u8>,
    at_work: &AtWork,
    say: &mut dyn FnMut(String),
) -> Result<Deps, Failure> {
    let base = install.dependencies.as_ref();
    let base = base.ok_or_else(|| sentence("DependencyError", "there is no cache folder for dependencies"))?;
    let toolchain = short_hash(&install.toolchain.sysroot.to_string_lossy());
    let notebook = Notebook::find(install);
    let project = base.join(&notebook.id);
    let io = |e: std::io::Error| sentence("DependencyError", trouble::with_advice(&e.to_string(), base, "XLAZY_CACHE"));
    for folder in [base, &project, &project.join("built")] {
        private::folder(folder).map_err(io)?;
    }
    if let Some(why) = runs_nothing(base, "crate", "XLAZY_CACHE") {
        return Err(sentence("DependencyError", why));
    }
    // Kernels of one folder take turns.
    let _turn = rooms::turn_in(&project, at_work).map_err(io)?;
    let kept_here = project.join("kept.lock");
    let kept = match notebook.lock.as_deref().map(lock_beside).transpose()?.flatten() {
        Some(kept) => kept,
        None => regular::read_to_string(&kept_here).ok().filter(|l| lockfile::check(l).is_ok()).unwrap_or_default(),
    };
    let known = before.map(|d| &d.stages[..]).unwrap_or_default();
    let level = before.map(|b| b.level).or(level).unwrap_or(OPTIMISED);
    let built = |lock: &str| {
        let names: Vec<&str> = known.iter().map(|s| &*s.crate_name).collect();
        project.join("built").join(short_hash(&format!("{names:?}{wanted:?}{level}{toolchain}{lock}")) + ".json")
    };
    let keep = |lock: &str| {
        for file in [Some(&kept_here), notebook.lock.as_ref()].into_iter().flatten() {
            let _ = write_changed(file, lock);
        }
    };
    let from_disk = !wanted.values().any(|w| is_in_a_folder(w));
    if from_disk && let Some(deps) = recall(&built(&kept)) {
        keep(&kept);
        return Ok(deps);
    }
    let there = known.first().map(|s| &*s.library);
    let room = Room::find(base, &toolchain, there, &project.join("room"), at_work).map_err(io)?;
    let target = room.target.clone();
    let cargo = Cargo { install, project: &project, target, lock: project.join("Cargo.lock"), level, at_work };
    let deps = cargo.build(known, &wanted, &kept, say)?;
    let lock = lockfile::union(&regular::read_to_string(&cargo.lock).unwrap_or_default(), &kept);
    keep(&lock);
    let _ = regular::write(built(&lock), to_json(&deps).to_string());
    Ok(deps)
}

/// The lock beside a notebook, if there is one. What is called like one and is none belongs to somebody else.
fn lock_beside(lock: &Path) -> Result<Option<String>, Failure> {
    let read = match regular::read_to_string(lock) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|e| e.to_string()),
    };
    let checked = read.and_then(|text| lockfile::check(&text).map(|()| text));
    checked.map(Some).map_err(|why| {
        let what = "the versions of this notebook's dependencies are kept there, so move it away or mend it";
        sentence("DependencyError", format!("{} is no lock file of cargo: {why}; {what}", lock.display()))
    })
}

/// What an earlier build made, if all of it is still there: then cargo need not be asked.
fn recall(built: &Path) -> Option<Deps> {
    let json: Value = serde_json::from_slice(&private::read(built).ok()?).ok()?;
    of_json(&json).filter(|deps| {
        let there = |o: &String| o.splitn(3, '=').nth(2).is_none_or(|p| Path::new(p).exists());
        deps.stages.iter().all(|s| s.library.is_file()) && deps.options.iter().all(there)
    })
}
