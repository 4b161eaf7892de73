//! Compilations, each on a thread of its own: PJRT cannot stop one, so an interrupted cell leaves it to itself, and whoever
//! needs the same program meanwhile joins it.
use super::cache::{self, Program};
use super::run::Missed;
use super::session;
use super::wait::LOOK_UP;
use crate::insight::cell::within_budget;
use crate::insight::{compiled as keep_record, metrics};
use crate::ir::{Cut, Key};
use crate::{Error, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};
use xlazy_pjrt::CompileOptions;

/// The program, and how long lowering and compiling took.
pub(super) type Compiled = Result<(Arc<Program>, (Duration, Duration))>;

struct Job {
    key: Key,
    outcome: Mutex<Option<Compiled>>,
    ended: Condvar,
}

static JOBS: Mutex<Vec<Arc<Job>>> = Mutex::new(Vec::new());
/// How many there are, so that a launch need not take the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// XLA recurses deeply over long programs.
const STACK: usize = 64 << 20;

fn jobs() -> MutexGuard<'static, Vec<Arc<Job>>> {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for this program if it is being compiled. To be asked before the cache is: a program is there before its
/// compilation has ended.
pub(super) fn join(key: &Key) -> Option<Compiled> {
    if COUNT.load(Ordering::SeqCst) == 0 {
        return None;
    }
    let job = jobs().iter().find(|j| j.key == *key).cloned()?;
    Some(job.wait())
}

/// What a miss costs: XLA's compilation. Puts the program into the cache.
pub(super) fn compile(cut: &Cut, missed: Missed) -> Compiled {
    within_budget(missed.why.0.as_ref())?;
    // Here, where it can be waited for, and not on the other thread.
    session()?;
    let job = Arc::new(Job { key: cut.key.clone(), outcome: Mutex::new(None), ended: Condvar::new() });
    let (key, root_types, nodes) = (cut.key.clone(), cut.root_types.clone(), cut.nodes.len());
    let work = {
        let job = job.clone();
        move || {
            let _end = End(&job);
            job.set(run(missed, key, root_types, nodes));
        }
    };
    jobs().push(job.clone());
    COUNT.fetch_add(1, Ordering::SeqCst);
    match Builder::new().name("compile".into()).stack_size(STACK).spawn(work) {
        Ok(_) => job.wait(),
        Err(e) => {
            drop(End(&job));
            Err(Error::Usage { message: format!("no thread for a compilation: {e}") })
        }
    }
}

fn run(missed: Missed, key: Key, root_types: Vec<crate::op::Type>, nodes: usize) -> Compiled {
    let Missed { text, marks, params, donated, lower, record, why } = missed;
    metrics::LOWER_TIME.add_time(lower);
    let start = Instant::now();
    let code = xlazy_pjrt::Program { format: "mlir", code: text.as_bytes() };
    let executable = session()?.client.compile(&code, &CompileOptions::default())?;
    let compile = start.elapsed();
    metrics::COMPILE_TIME.add_time(compile);
    metrics::UNCACHED_COMPILE.add(1);
    keep_record(record, why, params.count(), lower, compile);
    let mut built = Program::new(key, executable, params, root_types, text, nodes, donated);
    built.marks = marks;
    Ok((cache::insert(built), (lower, compile)))
}

impl Job {
    fn set(&self, outcome: Compiled) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        self.ended.notify_all();
    }

    /// Unwinds at an interrupt; the compilation goes on.
    fn wait(&self) -> Compiled {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            outcome = self.ended.wait_timeout(outcome, LOOK_UP).unwrap_or_else(PoisonError::into_inner).0;
            if outcome.is_none() {
                crate::sys::check_interrupt();
            }
        }
    }
}

/// Ends a job, also one whose thread panicked.
struct End<'a>(&'a Arc<Job>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        jobs().retain(|j| !Arc::ptr_eq(j, self.0));
        COUNT.fetch_sub(1, Ordering::SeqCst);
        let mut outcome = self.0.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.get_or_insert_with(|| Err(Error::Usage { message: "the compilation ended without a program".into() }));
        self.0.ended.notify_all();
    }
}
