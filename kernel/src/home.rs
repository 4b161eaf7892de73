//! Where xlazy keeps what outlives a run: histories, output that was too much to show, caches.
use std::path::PathBuf;
use xlazy_mime::private;

/// `XLAZY_HOME`, or the folder that install.sh fills.
pub fn home() -> Option<PathBuf> {
    var("XLAZY_HOME").or_else(|| Some(var("HOME")?.join(".local/share/xlazy")))
}

/// The folder for compiled cells: `cells` in `XLAZY_CACHE`, or in the user's cache folder; none when
/// `XLAZY_CELL_CACHE` is `off`.
pub fn cell_cache() -> Option<PathBuf> {
    if is_off("XLAZY_CELL_CACHE") {
        return None;
    }
    Some(caches()?.join("cells"))
}

/// The folder for what XLA compiled: `programs` beside the cells, or the one that `XLAZY_PROGRAM_CACHE` names; none when
/// that is `off`.
pub fn program_cache() -> Option<PathBuf> {
    if is_off("XLAZY_PROGRAM_CACHE") {
        return None;
    }
    var("XLAZY_PROGRAM_CACHE").or_else(|| Some(caches()?.join("programs")))
}

/// The folder in which dependencies are built: `deps` beside the cells.
pub fn dependencies() -> Option<PathBuf> {
    Some(caches()?.join("deps"))
}

/// Where cargo keeps what it fetches, where it is ours and the user has none.
pub fn cargo() -> Option<PathBuf> {
    let of_the_user = var("CARGO_HOME").is_some() || var("HOME").is_some_and(|home| home.join(".cargo").is_dir());
    if of_the_user { None } else { Some(caches()?.join("cargo")) }
}

/// The folder that holds them all.
pub fn caches() -> Option<PathBuf> {
    var("XLAZY_CACHE")
        .or_else(|| var("XDG_CACHE_HOME").map(|d| d.join("xlazy")))
        .or_else(|| var("HOME").map(|d| d.join(".cache/xlazy")))
}

/// The folder for what has to be kept somewhere, where that one is not there, is full, or programs in it cannot be run.
pub fn temporary() -> std::io::Result<PathBuf> {
    Ok(std::env::temp_dir().join(format!("xlazy-{}", private::user()?)))
}

/// What is kept for later and can be had again: compiled cells and programs, dependencies, fetched headers. What else lies in that
/// folder stays.
pub fn clear_caches() -> std::io::Result<Vec<PathBuf>> {
    let mut gone = Vec::new();
    // Somebody else may have made a folder of that name.
    let temporary = temporary().ok().filter(|folder| private::safe_folder(folder).is_ok());
    for cache in caches().into_iter().chain(temporary) {
        for name in ["cells", "programs", "deps", "cargo", "link", "cpu-plugin", "wheels"] {
            let folder = cache.join(name);
            if folder.is_dir() {
                std::fs::remove_dir_all(&folder)?;
                gone.push(folder);
            }
        }
        // With whatever else is in it, it stays.
        let _ = std::fs::remove_dir(cache);
    }
    Ok(gone)
}

fn var(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

fn is_off(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|v| v == "off" || v == "0")
}
