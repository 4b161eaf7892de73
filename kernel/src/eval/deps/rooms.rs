//! Where dependencies are built: what one notebook builds lets no other one wait. All build in one folder, so that a crate is
//! compiled once for everybody; whoever comes while somebody is at work there goes to the next.
use crate::eval::toolchain::at_work::AtWork;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;
use xlazy_mime::{private, regular};

/// More would compile the same crates again and again, on a machine that is busy already.
const MOST: usize = 8;
const TURN: &str = "turn";

/// A folder for cargo's, which nobody else has until this is dropped.
pub struct Room {
    pub target: PathBuf,
    _turn: File,
}

impl Room {
    /// The one that has `stages` in it, when it is free; or else `last`, where this notebook was last, or the first that is free.
    pub fn find(base: &Path, toolchain: &str, stages: Option<&Path>, last: &Path, at_work: &AtWork) -> Result<Room> {
        let all = || (1..=MOST).map(|n| base.join(folder(toolchain, n)));
        // What is linked to what is there already is built beside it.
        if let Some(target) = stages.and_then(|library| all().find(|target| library.starts_with(target))) {
            return Room::enter(target, at_work);
        }
        let known = regular::read_to_string(last).ok();
        let known = known.and_then(|name| all().find(|target| target.ends_with(name.trim())));
        for target in known.into_iter().chain(all()) {
            if let Some(room) = Room::free(&target)? {
                let name = target.file_name().unwrap_or_default().to_string_lossy();
                let _ = regular::write(last, name.as_bytes());
                return Ok(room);
            }
        }
        Room::enter(base.join(folder(toolchain, 1)), at_work)
    }

    fn free(target: &Path) -> Result<Option<Room>> {
        let turn = turn_of(target)?;
        match turn.try_lock() {
            Ok(()) => Ok(Some(Room { target: target.to_owned(), _turn: turn })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    fn enter(target: PathBuf, at_work: &AtWork) -> Result<Room> {
        let turn = turn_of(&target)?;
        take_turn(&turn, at_work)?;
        Ok(Room { target, _turn: turn })
    }
}

fn folder(toolchain: &str, n: usize) -> String {
    if n == 1 { format!("target-{toolchain}") } else { format!("target-{toolchain}-{n}") }
}

/// What is built there runs, and build scripts and macros of it do so while it is built: it must be this user's alone.
fn turn_of(folder: &Path) -> Result<File> {
    private::folder(folder)?;
    regular::open_with(File::options().write(true).create(true).truncate(false), folder.join(TURN))
}

/// A kernel's turn in a folder, which it waits for.
pub fn turn_in(folder: &Path, at_work: &AtWork) -> Result<File> {
    let turn = turn_of(folder)?;
    take_turn(&turn, at_work)?;
    Ok(turn)
}

/// Waits for the kernel that has the turn, unless the cell is interrupted meanwhile.
fn take_turn(turn: &File, at_work: &AtWork) -> Result<()> {
    loop {
        match turn.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(e),
            Err(TryLockError::WouldBlock) if at_work.is_stopped() => return Err(ErrorKind::Interrupted.into()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_another_notebook() {
        let base = private::temporary(&std::env::temp_dir(), "xlazy-rooms-").unwrap();
        let at_work = AtWork::default();
        let find = |stages: Option<&Path>, notebook: &str| {
            Room::find(&base, "t", stages, &base.join(notebook), &at_work).unwrap()
        };
        let name = |room: &Room| room.target.file_name().unwrap().to_string_lossy().into_owned();
        let one = find(None, "one");
        let other = find(None, "other");
        assert_eq!((name(&one), name(&other)), ("target-t".into(), "target-t-2".into()));
        drop((one, other));
        // What it has built there is there.
        let other = find(None, "other");
        assert_eq!(name(&other), "target-t-2");
        let third = find(None, "third");
        assert_eq!(name(&third), "target-t");
        drop(other);
        let library = base.join("target-t-2/x86_64/debug/deps/libstage.so");
        assert_eq!(name(&find(Some(&library), "third")), "target-t-2");
        drop(third);
        std::fs::remove_dir_all(base).unwrap();
    }
}
