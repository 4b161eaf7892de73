//! The kernel's temporary folders: made for it alone, locked for as long as it lives, and made again when somebody has
//! deleted them.
use crate::trouble;
use nix::sys::statvfs::{FsFlags, statvfs};
use std::fs::File;
use std::io::{Error, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use xlazy_mime::private;

/// What compiled cells may need; a smaller `XDG_RUNTIME_DIR`, which is memory, is left to others.
const ROOM: u64 = 256 << 20;
/// A folder without a lock is removed when nothing was made in it for so long, if what a person reads later is in it, or if it may be
/// of another machine, whose locks do not always reach this one.
const FORGOTTEN: Duration = Duration::from_secs(24 * 60 * 60);
/// One that is of this machine, and whose process is gone: it has no lock yet when it is this young.
const JUST_MADE: Duration = Duration::from_secs(60);
/// How the names of these folders begin; the number of their process and something that nobody can guess follow.
const KINDS: [&str; 3] = ["xlazy-", "xlazy-output-", "xlazy-libtpu-"];

/// A folder that is removed with its last owner. Clones are the same.
#[derive(Clone)]
pub struct Folder(Arc<Mutex<Held>>);

struct Held {
    path: PathBuf,
    /// Held so that no other kernel, nor systemd-tmpfiles, takes it for something that was left behind.
    lock: File,
    variable: &'static str,
}

impl Folder {
    /// Makes one where objects can be loaded from.
    ///
    /// Errors: why there is none, with what to do.
    pub fn new() -> std::result::Result<Folder, String> {
        let (place, variable) = place();
        let refused = |what: &str| trouble::with_advice(what, &place, variable);
        if let Some(why) = runs_nothing(&place, "cell", variable) {
            return Err(why);
        }
        // Somebody may have deleted that one, too; why there can be none is said below.
        let _ = std::fs::create_dir_all(&place);
        sweep(&place);
        let made = Held::new(&place, KINDS[0], variable).map_err(|e| refused(&e.to_string()))?;
        Ok(Folder(Arc::new(Mutex::new(made))))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it is now.
    pub fn path(&self) -> PathBuf {
        self.held().path.clone()
    }

    /// Makes it again, elsewhere, if it is gone; whether it was. What was in it is gone, too.
    pub fn renew(&self) -> std::result::Result<bool, String> {
        let mut made = self.held();
        if made.is_there() {
            return Ok(false);
        }
        let fresh = Folder::new()?;
        std::mem::swap(&mut *made, &mut fresh.held());
        Ok(true)
    }

    /// What to do about a refusal that `what` tells of.
    pub fn advice(&self, what: &str) -> Option<String> {
        let made = self.held();
        trouble::advice(what, &made.path, made.variable)
    }

    /// The same after what went wrong, as one sentence.
    pub fn with_advice(&self, what: &str) -> String {
        let made = self.held();
        trouble::with_advice(what, &made.path, made.variable)
    }

    /// Removes it, with all that is in it.
    pub fn remove(&self) {
        self.held().remove();
    }
}

impl Held {
    fn new(inside: &Path, kind: &str, variable: &'static str) -> Result<Held> {
        let path = private::temporary(inside, &format!("{kind}{}-", std::process::id()))?;
        let lock = File::open(&path)?;
        // A file system without locks costs only what the lock is for.
        let _ = lock.try_lock();
        Ok(Held { path, lock, variable })
    }

    fn is_there(&self) -> bool {
        let (here, ours) = (std::fs::symlink_metadata(&self.path), self.lock.metadata());
        here.and_then(|h| Ok((h, ours?))).is_ok_and(|(h, o)| (h.dev(), h.ino()) == (o.dev(), o.ino()))
    }

    fn remove(&self) {
        // A compiler that was just killed may still be writing the first time.
        for _ in 0..10 {
            if !self.is_there() || std::fs::remove_dir_all(&self.path).is_ok() {
                return;
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A folder for what a person reads later. It stays when the process ends, for a day at least.
pub fn to_stay() -> Result<PathBuf> {
    static MADE: Mutex<Option<Held>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if !made.as_ref().is_some_and(Held::is_there) {
        *made = Some(Held::new(&std::env::temp_dir(), KINDS[1], "TMPDIR")?);
    }
    made.as_ref().map(|m| m.path.clone()).ok_or_else(|| Error::other("it was made"))
}

/// Has a program run in `instead` where somebody has deleted the folder that this one runs in: rustc and cargo end at once where there is
/// none.
pub fn run_somewhere<'a>(command: &'a mut Command, instead: &Path) -> &'a mut Command {
    if std::env::current_dir().is_err() {
        command.current_dir(instead);
    }
    command
}

/// The folder that temporary ones are made in, and the variable that moves them elsewhere: `XDG_RUNTIME_DIR`, which nobody
/// else gets into, where there is one that will do; otherwise the one of everybody.
fn place() -> (PathBuf, &'static str) {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match named.filter(|d| will_do(d)) {
        Some(dir) => (dir, "XDG_RUNTIME_DIR"),
        None => (std::env::temp_dir(), "TMPDIR"),
    }
}

/// Whether it is what the specification says it is, with room, and objects can be loaded from it: some systems mount it
/// without.
fn will_do(runtime_dir: &Path) -> bool {
    let Ok(there) = runtime_dir.metadata() else { return false };
    let ours = runtime_dir.is_absolute() && there.is_dir() && private::user().is_ok_and(|u| u == there.uid());
    let closed = there.mode() & 0o077 == 0;
    let room = statvfs(runtime_dir).is_ok_and(|s| s.blocks_available() * s.fragment_size() >= ROOM);
    ours && closed && room && !has_flag(runtime_dir, FsFlags::ST_NOEXEC) && !has_flag(runtime_dir, FsFlags::ST_RDONLY)
}

/// Why what was compiled can neither be loaded nor run from a folder, and what to do.
pub fn runs_nothing(folder: &Path, compiled: &str, variable: &str) -> Option<String> {
    has_flag(folder, FsFlags::ST_NOEXEC).then(|| {
        let what = format!("is mounted `noexec`, so that no compiled {compiled} can be loaded from it");
        format!("{} {what}: start the kernel with {variable} set to a folder on another disk", folder.display())
    })
}

fn has_flag(path: &Path, flag: FsFlags) -> bool {
    statvfs(path).is_ok_and(|s| s.flags().contains(flag))
}

/// Removes what kernels that were killed have left behind: it is this user's, has such a name, and nobody holds its lock. Where the
/// process may be one of another machine, and what is to stay, only when nothing has come into it for a day.
fn sweep(place: &Path) {
    let Ok(user) = private::user() else { return };
    let here = is_of_this_machine(place);
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some((kind, process)) = kind_and_process(&name.to_string_lossy()) else { continue };
        let dead = || here && kind == KINDS[0] && !is_alive(process);
        let ours = |m: &std::fs::Metadata| m.is_dir() && m.uid() == user;
        let age = |m: &std::fs::Metadata| m.modified().ok()?.elapsed().ok();
        let old = |m: &_| age(m).is_some_and(|age| age > FORGOTTEN || (age > JUST_MADE && dead()));
        let due = entry.metadata().is_ok_and(|m| ours(&m) && old(&m))
            && File::open(entry.path()).is_ok_and(|f| f.try_lock().is_ok());
        if due {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether only processes of this machine make something there, whose locks all are seen here.
fn is_of_this_machine(place: &Path) -> bool {
    use nix::sys::statfs::{BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC, statfs};
    const OVERLAYFS: nix::sys::statfs::FsType = nix::sys::statfs::FsType(0x794c_7630);
    let local = [BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC, OVERLAYFS];
    statfs(place).is_ok_and(|s| local.contains(&s.filesystem_type()))
}

/// In another container its number says nothing, and its lock does.
fn is_alive(process: i32) -> bool {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(process), None) != Err(nix::errno::Errno::ESRCH)
}

/// Nobody else's folder has such a name, however it begins.
fn kind_and_process(name: &str) -> Option<(&'static str, i32)> {
    let kinds = KINDS.iter().filter_map(|kind| Some((*kind, name.strip_prefix(kind)?)));
    let (kind, rest) = kinds.min_by_key(|(_, rest)| rest.len())?;
    let (process, random) = rest.split_once('-')?;
    let ours = process.bytes().all(|b| b.is_ascii_digit())
        && random.len() == 16
        && random.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    Some((kind, process.parse().ok().filter(|process| ours && *process > 0)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn age(path: &Path, by: Duration) {
        File::open(path).unwrap().set_modified(SystemTime::now() - by).unwrap();
    }

    fn make_old(path: &Path) {
        age(path, 2 * FORGOTTEN);
    }

    #[test]
    fn what_a_kernel_of_this_machine_left_is_swept_as_soon_as_it_is_dead() {
        let place = private::temporary(&std::env::temp_dir(), "xlazy-sweep-").unwrap();
        let mut process = std::process::Command::new("true").spawn().unwrap();
        process.wait().unwrap();
        let dead = process.id();
        let made = |kind: &str, process: u32, by: Duration| {
            let path = private::temporary(&place, &format!("{kind}{process}-")).unwrap();
            age(&path, by);
            path
        };
        let (minutes, seconds) = (2 * JUST_MADE, JUST_MADE / 2);
        let left = made("xlazy-", dead, minutes);
        let stay = [
            made("xlazy-", dead, seconds),
            made("xlazy-output-", dead, minutes),
            made("xlazy-", std::process::id(), minutes),
        ];
        // As in a container beside this one: nobody has this number here, and somebody holds the lock.
        let held = made("xlazy-", dead, minutes);
        let lock = File::open(&held).unwrap();
        lock.lock().unwrap();
        sweep(&place);
        assert_eq!(left.exists(), !is_of_this_machine(&place));
        assert!(stay.iter().all(|s| s.exists()) && held.exists());
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn only_what_a_dead_kernel_left_is_swept() {
        let place = private::temporary(&std::env::temp_dir(), "xlazy-sweep-").unwrap();
        let made = |name: &str| {
            let path = place.join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("file"), "").unwrap();
            make_old(&path);
            path
        };
        let living = Held::new(&place, KINDS[0], "TMPDIR").unwrap();
        make_old(&living.path);
        let young = private::temporary(&place, "xlazy-1-").unwrap();
        let foreign = ["xlazy", "xlazy-checkout", "xlazy-1-0", "xlazy-1-0123456789abcdeg", "xlazy--0123456789abcdef"];
        let foreign = foreign.map(made);
        let left = ["xlazy-1-0123456789abcdef", "xlazy-output-1-0123456789abcdef", "xlazy-libtpu-1-0123456789abcdef"];
        let left = left.map(made);
        let (target, link) = (made("target"), place.join("xlazy-2-0123456789abcdef"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        sweep(&place);
        assert!(left.iter().all(|l| !l.exists()), "{left:?}");
        assert!(foreign.iter().all(|f| f.join("file").exists()), "{foreign:?}");
        assert!(living.path.exists() && young.exists() && link.exists() && target.join("file").exists());
        let path = living.path.clone();
        drop(living);
        assert!(!path.exists());
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_folder_that_is_gone_is_made_again_and_no_other_is_removed() {
        let folder = Folder::new().unwrap();
        let first = folder.path();
        assert_eq!(first.metadata().unwrap().mode() & 0o777, 0o700);
        assert_eq!(folder.renew(), Ok(false));
        std::fs::remove_dir_all(&first).unwrap();
        // Somebody else has made it anew.
        std::fs::create_dir(&first).unwrap();
        assert_eq!(folder.renew(), Ok(true));
        let second = folder.path();
        assert!(second != first && second.is_dir());
        drop(folder);
        assert!(first.is_dir() && !second.exists());
        std::fs::remove_dir(first).unwrap();
    }

    #[test]
    fn a_runtime_folder_must_be_this_users_alone() {
        let dir = private::temporary(&std::env::temp_dir(), "xlazy-runtime-").unwrap();
        let allow = |mode| std::fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        let room = statvfs(&dir).unwrap();
        let enough = room.blocks_available() * room.fragment_size() >= ROOM && !has_flag(&dir, FsFlags::ST_NOEXEC);
        assert_eq!(will_do(&dir), enough);
        allow(0o755);
        assert!(!will_do(&dir));
        allow(0o700);
        assert!(!will_do(&dir.join("missing")) && !will_do(Path::new("relative")));
        std::fs::remove_dir(dir).unwrap();
    }
}
