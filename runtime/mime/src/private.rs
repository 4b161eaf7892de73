//! Folders and files that are this user's alone. What lies on the disk is run as code or believed as an answer, so it is
//! looked at first: whoever else can write there could otherwise act in this user's name.
use std::collections::hash_map::RandomState;
use std::fs::{DirBuilder, Metadata, OpenOptions};
use std::hash::BuildHasher;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Rights of the group and of everybody to change something.
const OTHERS_WRITE: u32 = 0o022;
const ROOT: u32 = 0;

/// Who this process acts for. Linux gives a process's folder to its effective user.
pub fn user() -> Result<u32> {
    Ok(std::fs::metadata("/proc/self")?.uid())
}

/// Makes a folder that nobody else gets into, with those above it that are missing, or finds it there and safe.
///
/// Errors: it belongs to another user, or others may write to it.
pub fn folder(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    safe_folder(path)
}

/// Whether nobody but this user and root decides what is in a folder.
pub fn safe_folder(path: &Path) -> Result<()> {
    // A link is as good as what it leads to, unless somebody else has put it there.
    owned(path, &std::fs::symlink_metadata(path)?)?;
    let there = std::fs::metadata(path)?;
    if !there.is_dir() {
        return Err(Error::new(ErrorKind::NotADirectory, format!("{} is no folder", path.display())));
    }
    owned(path, &there)?;
    closed(path, &there)
}

/// The same of a file.
pub fn safe_file(path: &Path) -> Result<()> {
    let there = std::fs::symlink_metadata(path)?;
    regular(path, &there)?;
    owned(path, &there)?;
    closed(path, &there)
}

/// Whether a file is regular and belongs to this user or root. That says enough in a folder that is safe.
pub fn is_own_file(path: &Path) -> Result<()> {
    let there = std::fs::symlink_metadata(path)?;
    regular(path, &there)?;
    owned(path, &there)
}

/// Whether a library that was installed is what was installed: it and its folder are root's, this user's, or of whoever has
/// installed the program that asks, and not everybody's to change.
pub fn installed(library: &Path) -> Result<()> {
    let installer = std::env::current_exe()?.metadata()?.uid();
    let folder = library.parent().unwrap_or(Path::new("/"));
    for path in [library, folder] {
        let there = std::fs::metadata(path)?;
        if there.uid() != installer {
            owned(path, &there)?;
        }
        if there.mode() & 0o002 != 0 {
            closed(path, &there)?;
        }
    }
    Ok(())
}

/// What is in a file that nobody else can have written.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    safe_file(path)?;
    let mut file = crate::regular::open(path)?;
    // Again, of the very file that is read.
    let opened = file.metadata()?;
    owned(path, &opened)?;
    closed(path, &opened)?;
    let mut bytes = Vec::with_capacity(opened.len() as usize);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file that is not there yet.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

/// A new folder for temporary files, `prefix` and something that nobody can guess, as mkdtemp makes it: one that is there
/// already is never taken over.
pub fn temporary(inside: &Path, prefix: &str) -> Result<PathBuf> {
    loop {
        let path = inside.join(format!("{prefix}{:016x}", RandomState::new().hash_one(prefix)));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(e),
        }
    }
}

fn regular(path: &Path, there: &Metadata) -> Result<()> {
    let named = |e: Error| Error::new(e.kind(), format!("{}: {e}", path.display()));
    crate::regular::check(there.file_type()).map_err(named)
}

fn owned(path: &Path, there: &Metadata) -> Result<()> {
    match there.uid() {
        ROOT => Ok(()),
        uid if uid == user()? => Ok(()),
        uid => {
            let path = path.display();
            Err(unsafe_place(format!("{path} belongs to another user (number {uid}), who could put code there")))
        }
    }
}

fn closed(path: &Path, there: &Metadata) -> Result<()> {
    match there.mode() & OTHERS_WRITE {
        0 => Ok(()),
        _ => {
            let path = path.display();
            Err(unsafe_place(format!("other users may write to {path} and put code there: `chmod go-w {path}`")))
        }
    }
}

/// Not `PermissionDenied`: that is what Linux refuses, and its remedy is another one.
fn unsafe_place(what: String) -> Error {
    Error::other(what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir, read_to_string, set_permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    struct Temporary(PathBuf);

    impl Temporary {
        fn new() -> Temporary {
            Temporary(temporary(&std::env::temp_dir(), "xlazy-private-").unwrap())
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().mode() & 0o7777
    }

    fn allow(path: &Path, mode: u32) {
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_temporary_folder_is_new_and_nobody_elses() {
        let outer = Temporary::new();
        let made: Vec<PathBuf> = (0..50).map(|_| temporary(&outer.0, "x-").unwrap()).collect();
        assert!(made.iter().all(|m| mode(m) == 0o700));
        assert_eq!(made.iter().collect::<std::collections::HashSet<_>>().len(), 50);
        assert_eq!(temporary(&outer.0.join("missing"), "x-").unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_folder_is_made_closed_and_found_closed() {
        let outer = Temporary::new();
        let inner = outer.0.join("a/b");
        folder(&inner).unwrap();
        assert_eq!((mode(&inner), mode(&outer.0.join("a"))), (0o700, 0o700));
        for (given, good) in
            [(0o755, true), (0o700, true), (0o775, false), (0o777, false), (0o1777, false), (0o702, false)]
        {
            allow(&inner, given);
            assert_eq!(folder(&inner).is_ok(), good, "{given:o}");
            assert_eq!(mode(&inner), given, "what is there is left as it is");
        }
        let said = folder(&inner).unwrap_err().to_string();
        assert!(said.contains("other users may write") && said.contains("chmod go-w"), "{said}");
        // A link of one's own is a way of moving a cache to a larger disk.
        allow(&inner, 0o700);
        symlink(&inner, outer.0.join("link")).unwrap();
        folder(&outer.0.join("link")).unwrap();
        std::fs::write(outer.0.join("file"), "").unwrap();
        assert!(folder(&outer.0.join("file")).is_err() && safe_folder(&outer.0.join("file")).is_err());
    }

    #[test]
    fn a_file_is_written_once_and_read_when_it_is_ones_own() {
        let outer = Temporary::new();
        let file = outer.0.join("file");
        write(&file, b"text").unwrap();
        assert_eq!((mode(&file), read(&file).unwrap()), (0o600, b"text".to_vec()));
        assert_eq!(write(&file, b"other").unwrap_err().kind(), ErrorKind::AlreadyExists);
        for (given, good) in [(0o644, true), (0o400, true), (0o664, false), (0o646, false)] {
            allow(&file, given);
            assert_eq!(read(&file).is_ok(), good, "{given:o}");
        }
        allow(&file, 0o600);
        let link = outer.0.join("link");
        symlink(&file, &link).unwrap();
        assert!(read(&link).unwrap_err().to_string().ends_with("link: it is a link, and only a regular file will do"));
        assert_eq!(write(&link, b"other").unwrap_err().kind(), ErrorKind::AlreadyExists, "nor is one written through");
        symlink(outer.0.join("nowhere"), outer.0.join("dangling")).unwrap();
        assert!(write(&outer.0.join("dangling"), b"other").is_err() && !outer.0.join("nowhere").exists());
        // Whoever opened it would wait for ever.
        let fifo = outer.0.join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert!(read(&fifo).unwrap_err().to_string().contains("fifo: it is a named pipe") && read(&outer.0).is_err());
        assert_eq!(read_to_string(&file).unwrap(), "text");
    }

    #[test]
    fn a_library_is_its_installers_alone() {
        let outer = Temporary::new();
        let library = outer.0.join("lib.so");
        std::fs::write(&library, "").unwrap();
        for (of_folder, of_file, good) in [
            (0o755, 0o644, true),
            (0o775, 0o664, true),
            (0o777, 0o644, false),
            (0o755, 0o646, false),
            (0o1777, 0o644, false),
        ] {
            allow(&outer.0, of_folder);
            allow(&library, of_file);
            assert_eq!(installed(&library).is_ok(), good, "{of_folder:o} {of_file:o}");
        }
        allow(&outer.0, 0o755);
        allow(&library, 0o644);
        if chown(&library, Some(54321), None).is_ok() {
            assert!(installed(&library).unwrap_err().to_string().contains("another user"));
        }
    }

    #[test]
    fn what_another_user_owns_is_refused() {
        let outer = Temporary::new();
        let (inner, file, link) = (outer.0.join("inner"), outer.0.join("file"), outer.0.join("link"));
        create_dir(&inner).unwrap();
        std::fs::write(&file, "").unwrap();
        symlink(&outer.0, &link).unwrap();
        const SOMEBODY: u32 = 54321;
        if chown(&inner, Some(SOMEBODY), None).is_err() {
            // Only root can give things away; what others own already serves as well, where there is some.
            return println!("skipped: it takes root to make another user's files");
        }
        chown(&file, Some(SOMEBODY), None).unwrap();
        std::os::unix::fs::lchown(&link, Some(SOMEBODY), None).unwrap();
        for refused in [folder(&inner), safe_folder(&link), safe_file(&file), read(&file).map(drop)] {
            let said = refused.unwrap_err().to_string();
            assert!(said.contains("another user (number 54321)"), "{said}");
        }
    }
}
