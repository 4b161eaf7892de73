//! What watching costs while cells run: how long recording takes, and the switch that the benchmark turns.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

pub(crate) fn watching() -> bool {
    ON.load(Ordering::Relaxed)
}

/// How many ops of a thread are timed one by one; of those after them one in sixteen stands for all.
const ALL: u32 = 32;
const OF: u32 = 16;

/// Times the recording of an op, from here until it is dropped. `nth` counts the ops of this thread.
pub(crate) struct Recording(Option<(Instant, u32)>);

impl Recording {
    pub fn begin(nth: u32) -> Recording {
        let weight = if nth <= ALL { 1 } else { OF };
        Recording(((nth <= ALL || nth.is_multiple_of(OF)) && watching()).then(|| (Instant::now(), weight)))
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
pub(crate) fn traced() -> Duration {
    Duration::from_nanos(TRACED.swap(0, Ordering::Relaxed))
}
