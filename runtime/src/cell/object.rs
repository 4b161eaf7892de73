//! The objects that the kernel has compiled, opened by the descriptor of a folder that was looked at: nobody else can have put
//! one there, and whatever its path leads to a moment later is not loaded.
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use xlazy_core::sys;
use xlazy_mime::private;

/// The folder of the object that was loaded last.
static FOLDER: Mutex<Option<File>> = Mutex::new(None);
/// A descriptor that is kept back. A cell that opened files until there were no more needs one, or the cell that closes
/// them could not be loaded.
static SPARE: Mutex<Option<File>> = Mutex::new(None);

/// Keeps a descriptor back from now on.
pub(super) fn keep_spare() {
    *SPARE.lock().unwrap_or_else(PoisonError::into_inner) = File::open("/dev/null").ok();
}

/// Loads a cell's object and finds its entry.
pub(super) fn load(object: &str, symbol: &str) -> Result<sys::Entry, String> {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    let load = || {
        let path = by_descriptor(Path::new(object))?;
        sys::load(&path, symbol).map_err(|why| why.replace(&path, object))
    };
    let loaded = match load() {
        Err(why) if why.contains("Too many open files") && spare.take().is_some() => load().map_err(|why| {
            format!("{why}: the session holds as many files open as it may; restart it, with a larger `ulimit -n`")
        }),
        loaded => loaded,
    };
    // Again, where one has become free.
    if spare.is_none() {
        *spare = File::open("/dev/null").ok();
    }
    loaded
}

/// Loads libraries that cells are linked to, one path behind the other. What cannot be loaded is missed by the cell that
/// needs it.
pub(super) fn preload(objects: &str) {
    for object in objects.split('\0').filter(|o| !o.is_empty()) {
        let _ = by_descriptor(Path::new(object)).and_then(|path| sys::load_library(&path));
    }
}

/// A path to the object that begins at the descriptor of its folder. Each object has a name of its own, and the loader knows
/// it by that; by a descriptor of its own it would take it for another that had the same number once.
fn by_descriptor(object: &Path) -> Result<String, String> {
    let (Some(folder), Some(name)) = (object.parent(), object.file_name().and_then(|n| n.to_str())) else {
        return Err(format!("{} is no path of an object", object.display()));
    };
    let refused = |e: std::io::Error| format!("{}: {e}", object.display());
    let mut held = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    let path = match held.as_ref().filter(|held| is_folder(held, folder)) {
        Some(held) => through(held),
        None => {
            let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
            let opened = OpenOptions::new().read(true).custom_flags(flags).open(folder).map_err(refused)?;
            through(held.insert(opened))
        }
    };
    // Behind the descriptor there is the folder itself, however it is called by now.
    private::safe_folder(&path.join(".")).and_then(|()| private::is_own_file(&path.join(name))).map_err(refused)?;
    Ok(path.join(name).to_string_lossy().into_owned())
}

fn through(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

/// Whether the descriptor is still what it was, which a cell may have closed, and the path leads to the same folder.
fn is_folder(held: &File, path: &Path) -> bool {
    let (held, there) = (held.metadata(), std::fs::symlink_metadata(path));
    held.and_then(|h| Ok((h, there?))).is_ok_and(|(h, t)| (h.dev(), h.ino()) == (t.dev(), t.ino()))
}
