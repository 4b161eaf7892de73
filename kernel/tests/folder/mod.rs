//! A place for files of one test.
use std::path::{Path, PathBuf};

/// A folder of its own, which goes with the test; nothing is there until somebody makes it.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let of = concat!(env!("CARGO_CRATE_NAME"), "-");
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{of}{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Folder(dir)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
