//! What `%autosave` was told, and where it saves.
use super::files;
use crate::eval::toolchain::install::Installation;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// What `%autosave` was told, and what was saved last.
#[derive(Default)]
pub struct Autosave {
    pub every: Option<Duration>,
    pub last: Option<Instant>,
    /// The runs that there had been then: without another one nothing has changed.
    pub runs: u64,
    /// What could not be kept the last time; it is said once.
    pub told: Vec<(String, String)>,
    /// Why it waits; it is said once.
    pub waits: String,
    /// Where it saves, and the lock that keeps others from doing so.
    place: Option<(PathBuf, Option<File>)>,
    /// It may take the place of what has more than there is now, once.
    pub force: bool,
    /// Lost variables that the user does without.
    pub without: BTreeSet<String>,
    /// Checkpoints that were written since this session began: what is not in them was let go.
    pub mine: BTreeSet<PathBuf>,
    /// The newest file of this session, for the report of a crash.
    pub newest: Option<(PathBuf, SystemTime)>,
}

impl Autosave {
    pub fn path(&mut self, install: &Installation) -> PathBuf {
        let place = || files::autosave_place(install.named_notebook().as_deref());
        self.place.get_or_insert_with(place).0.clone()
    }

    /// The session is another one now.
    pub fn begin_again(&mut self) {
        self.mine.clear();
        self.without.clear();
    }
}
