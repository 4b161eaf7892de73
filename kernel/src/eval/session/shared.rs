//! What is asked and told while a cell runs, beside it.
use super::channel::{BetweenCells, Channel};
use crate::eval::toolchain::at_work::AtWork;
use crate::eval::typing::complete::Typist;
use crate::eval::typing::scope::InScope;
use std::sync::atomic::{AtomicBool, AtomicI32};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

/// What an interrupt, a completion or an inspection needs while a cell runs.
pub struct Shared {
    pub executing: AtomicBool,
    /// An interrupt came in during this cell.
    pub interrupted: AtomicBool,
    /// Held while an interrupt is delivered, and while a cell begins or ends: none hits the cell after the one that it
    /// was meant for.
    pub delivery: Mutex<()>,
    /// The session that runs a cell at the moment; 0 between cells.
    pub running_pid: AtomicI32,
    pub last_interrupt: Mutex<Option<Instant>>,
    pub forced: AtomicBool,
    pub at_work: AtWork,
    pub line: Mutex<Channel>,
    pub late: BetweenCells,
    /// Each sync and compilation is to be told as it happens.
    pub streams: AtomicBool,
    names: RwLock<Arc<InScope>>,
    /// Who answers while a cell is typed.
    pub typist: Typist,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Of a session that was just started and asks and answers here.
    pub fn new(at_work: AtWork, between: BetweenCells, line: Channel) -> Shared {
        Shared {
            executing: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            delivery: Mutex::new(()),
            running_pid: AtomicI32::new(0),
            last_interrupt: Mutex::new(None),
            forced: AtomicBool::new(false),
            at_work,
            line: Mutex::new(line),
            late: between,
            streams: AtomicBool::new(false),
            names: RwLock::default(),
            typist: Typist::default(),
        }
    }

    /// Completion and inspection know of these from now on.
    pub fn know(&self, names: InScope) {
        if let Some(context) = names.context.as_ref().filter(|_| self.typist.prober.is_used()) {
            self.typist.prober.warm_up(context);
        }
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(names);
    }

    pub fn names(&self) -> Arc<InScope> {
        self.names.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
