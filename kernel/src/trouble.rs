//! What the machine refuses - a full disk, a folder that cannot be written to, no descriptor, no memory - in a sentence
//! that says what to do. Programs say it in their own words but with the same names, so names are what is looked for.
use nix::sys::resource::{Resource, getrlimit};
use std::path::Path;

/// What to do about a refusal that `what` tells of, in `folder`, which this environment variable moves elsewhere.
pub fn advice(what: &str, folder: &Path, variable: &str) -> Option<String> {
    let says = |names: &[&str]| names.iter().any(|n| what.contains(n));
    let folder = folder.display();
    if says(&["No space left on device", "Disk quota exceeded"]) {
        let room = "make room there and run the cell again, or start the kernel with";
        return Some(format!("{folder} is full: {room} {variable} set to a folder that has room"));
    }
    if says(&["Read-only file system", "Permission denied"]) {
        return Some(format!(
            "{folder} cannot be written to: start the kernel with {variable} set to a folder that can"
        ));
    }
    if says(&["Too many open files"]) {
        let most = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
        return Some(format!(
            "a process may hold {most} files open here: `ulimit -n 4096` before the kernel starts helps"
        ));
    }
    if says(&["Cannot allocate memory", "Resource temporarily unavailable"]) {
        return Some("the machine has no room for another process: end some that are not needed".into());
    }
    None
}

/// The same after what went wrong, as one sentence.
pub fn with_advice(what: &str, folder: &Path, variable: &str) -> String {
    match advice(what, folder, variable) {
        Some(advice) => format!("{what}; {advice}"),
        None => what.to_owned(),
    }
}
