//! Files that are written whole or not at all: beside their place first, then put there. What a killed writer left beside
//! it is swept by the next one.
use crate::regular;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file that is being written. Nobody sees it under its name before it is whole; dropped, it is gone.
pub struct Unfinished {
    pub file: File,
    path: PathBuf,
    target: PathBuf,
}

impl Unfinished {
    /// Begins a file that will take the place of what is there. A link stays, and what it leads to is replaced.
    pub fn create(target: &Path) -> Result<Unfinished> {
        let is_link = target.symlink_metadata().is_ok_and(|m| m.is_symlink());
        let target = if is_link { target.canonicalize()? } else { target.to_owned() };
        let there = target.metadata().ok();
        if let Some(there) = &there {
            regular::check(there.file_type())?;
        }
        loop {
            let path = beside(&target);
            let file = File::create_new(&path)?;
            let unfinished = Unfinished { file, path, target: target.clone() };
            // Held as long as somebody writes. Where there are no locks, nothing is swept either.
            let _ = unfinished.file.try_lock();
            if let Some(there) = &there {
                unfinished.file.set_permissions(there.permissions())?;
            }
            // A sweep that came between the two has taken it.
            if unfinished.path.exists() {
                return Ok(unfinished);
            }
        }
    }

    /// Puts it in its place, also for when the power goes. What was there is found under `keep` then, if that is wanted:
    /// at no moment is there nothing.
    pub fn finish(mut self, keep: Option<&Path>) -> Result<()> {
        self.file.sync_all()?;
        if let Some(keep) = keep.filter(|_| self.target.exists()) {
            let link = beside(keep);
            // A file system without links has at least the one of before.
            match std::fs::hard_link(&self.target, &link).and_then(|()| std::fs::rename(&link, keep)) {
                Ok(()) => {}
                Err(_) => std::fs::rename(&self.target, keep)?,
            }
        }
        std::fs::rename(&self.path, &self.target)?;
        self.path.clear();
        // The name, too, must be on the disk.
        let folder = self.target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let _ = File::open(folder).and_then(|f| f.sync_all());
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

const ENDING: &str = ".part";

/// A name that nobody else uses: `NAME.PROCESS-COUNT.part`.
fn beside(target: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut name = target.as_os_str().to_owned();
    name.push(format!(".{}-{}{ENDING}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    name.into()
}

/// Whether a name is that of an unfinished file with this extension.
fn is_part(name: &str, extension: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some((name, number)) = name.strip_suffix(ENDING).and_then(|n| n.rsplit_once('.')) else { return false };
    let (process, count) = number.split_once('-').unwrap_or((number, "0"));
    digits(process) && digits(count) && Path::new(name).extension().is_some_and(|e| e == extension)
}

/// Removes the unfinished files with this extension in a folder that nobody writes any more.
pub fn sweep(folder: &Path, extension: &str) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(|name| is_part(name, extension)) {
            continue;
        }
        // Whoever writes holds the lock, in whatever container; it ends with the process.
        if let Ok(file) = regular::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Writes a text or bytes as a whole.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let mut unfinished = Unfinished::create(path)?;
    std::io::Write::write_all(&mut unfinished.file, bytes.as_ref())?;
    unfinished.finish(None)
}

/// Takes a name for as long as the answer lives, among all processes that ask in this folder; none where it is taken.
pub fn claim(folder: &Path, name: &str) -> Result<Option<File>> {
    std::fs::create_dir_all(folder)?;
    let mut options = File::options();
    let file = regular::open_with(options.write(true).create(true).truncate(false), folder.join(name))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => Ok(Some(file)),
        Err(std::fs::TryLockError::Error(e)) => Err(Error::new(e.kind(), format!("{name}: {e}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("xlazy-whole-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut all: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        all.sort();
        all
    }

    #[test]
    fn a_file_is_there_whole_or_as_before() {
        let dir = folder("there");
        let (file, previous, link) = (dir.join("a.x"), dir.join("a-previous.x"), dir.join("link.x"));
        write(&file, "one").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut second = Unfinished::create(&file).unwrap();
        second.file.write_all(b"two").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"one");
        second.finish(Some(&previous)).unwrap();
        assert_eq!((std::fs::read(&file).unwrap(), std::fs::read(&previous).unwrap()), (b"two".into(), b"one".into()));
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        drop(Unfinished::create(&file).unwrap());
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, "three").unwrap();
        assert!(link.is_symlink() && std::fs::read(&file).unwrap() == b"three");
        assert_eq!(names(&dir), ["a-previous.x", "a.x", "link.x"], "nothing unfinished");
        assert!(std::process::Command::new("mkfifo").arg(dir.join("pipe.x")).status().unwrap().success());
        assert!(write(&dir.join("pipe.x"), "").unwrap_err().to_string().contains("a named pipe"));
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_a_killed_writer_left_is_swept_and_nothing_else() {
        let dir = folder("sweep");
        let alive = Unfinished::create(&dir.join("b.x")).unwrap();
        let others =
            ["a.x.12-0.part", "a.x.7.part", "a.y.7.part", "a.x.part", "x.7.part", "a.x.7", "a.x.7-.part", "a.x.b.part"];
        others.iter().for_each(|name| std::fs::write(dir.join(name), "").unwrap());
        sweep(&dir, "x");
        assert!(alive.path.exists(), "somebody writes it");
        drop(alive);
        assert_eq!(names(&dir), ["a.x.7", "a.x.7-.part", "a.x.b.part", "a.x.part", "a.y.7.part", "x.7.part"]);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_name_is_taken_once_at_a_time() {
        let dir = folder("claim");
        let first = claim(&dir, "n").unwrap();
        assert!(first.is_some() && claim(&dir, "n").unwrap().is_none() && claim(&dir, "m").unwrap().is_some());
        drop(first);
        assert!(claim(&dir, "n").unwrap().is_some());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
