//! What is timed while cells run, how often, and the switch with which the benchmark turns all of it off.
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

static ON: AtomicBool = AtomicBool::new(true);
/// Nanoseconds of recording since the last sync.
static TRACED: AtomicU64 = AtomicU64::new(0);

/// Turns the log of syncs, metrics and times off or on: the benchmark tells by it what watching costs. Source lines stay,
/// one pointer per op.
#[doc(hidden)]
pub fn set_watching(on: bool) {
    ON.store(on, Ordering::Relaxed);
}

pub fn watching() -> bool {
    ON.load(Ordering::Relaxed)
}

/// How many ops after a sync, and how many syncs, are timed one by one; of those after them one in so many stands for all.
pub const TIMED_ALONE: u32 = 32;
const OF: u32 = 64;

fn is_timed(nth: u32) -> bool {
    nth <= TIMED_ALONE || nth.is_multiple_of(OF)
}

/// Times the recording of an op, from here until it is dropped. `nth` counts the ops of this thread since its last sync.
pub struct Recording(Option<(Instant, u32)>);

impl Recording {
    pub fn begin(nth: u32) -> Recording {
        let weight = if nth <= TIMED_ALONE { 1 } else { OF };
        Recording((is_timed(nth) && watching()).then(|| (Instant::now(), weight)))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some((start, weight)) = self.0 {
            TRACED.fetch_add(start.elapsed().as_nanos() as u64 * weight as u64, Ordering::Relaxed);
        }
    }
}

/// How long ops took to be recorded since this was asked last.
pub fn traced() -> Duration {
    Duration::from_nanos(TRACED.swap(0, Ordering::Relaxed))
}

/// Runs `f`, which records on trial: its ops are not those of the next sync.
pub fn untimed<R>(f: impl FnOnce() -> R) -> R {
    struct Back(Duration);
    impl Drop for Back {
        fn drop(&mut self) {
            TRACED.store(self.0.as_nanos() as u64, Ordering::Relaxed);
        }
    }
    let _back = Back(traced());
    f()
}

/// The clock, for a cut that is worth asking it: all that may take long, and some of the others. Asking takes longer than
/// cutting one op out of the graph.
pub fn clock(long: bool) -> Option<Instant> {
    static NTH: AtomicU32 = AtomicU32::new(0);
    timed(&NTH, long)
}

fn timed(count: &AtomicU32, always: bool) -> Option<Instant> {
    let nth = count.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    (watching() && (always || is_timed(nth))).then(Instant::now)
}

/// How long a program took when it was timed last: that stands for the runs that were not.
#[derive(Default)]
pub struct Took {
    runs: AtomicU32,
    cut: AtomicU64,
    execute: AtomicU64,
}

/// Programs that take longer (in ns) are timed each time.
const SHORT: u64 = 20_000;

impl Took {
    /// The clock, for an execution that is worth asking it.
    pub fn clock(&self, long: bool) -> Option<Instant> {
        timed(&self.runs, long || self.execute.load(Ordering::Relaxed) > SHORT)
    }

    /// How often the program ran.
    pub fn runs(&self) -> u32 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Cutting the graph and looking the program up, since the clock was asked.
    pub fn cut(&self, since: Option<Instant>) -> Duration {
        last(&self.cut, since.map(|s| s.elapsed()))
    }

    pub fn execute(&self, took: Option<Duration>) -> Duration {
        last(&self.execute, took)
    }
}

fn last(kept: &AtomicU64, took: Option<Duration>) -> Duration {
    match took {
        Some(took) => {
            kept.store(took.as_nanos() as u64, Ordering::Relaxed);
            took
        }
        None => Duration::from_nanos(kept.load(Ordering::Relaxed)),
    }
}
