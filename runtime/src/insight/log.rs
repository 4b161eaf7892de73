//! The log of syncs: what caused each, where, and whether it compiled.
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use xlazy_core::clock::watching;
use xlazy_core::run::SyncEvent;

const KEPT: usize = 4096;

static LOG: Mutex<Log> = Mutex::new(Log { count: 0, trace: Duration::ZERO, events: VecDeque::new() });

struct Log {
    count: u64,
    /// Of all syncs so far.
    trace: Duration,
    /// Each stands for itself and for as many before it that were the same in all but their number: writing down the same
    /// again costs a run of a small program less than new memory would.
    events: VecDeque<(SyncEvent, u64)>,
}

impl Log {
    /// From the latest on, at most as many as are kept.
    fn latest(&self) -> impl Iterator<Item = SyncEvent> {
        let numbered = |e: &SyncEvent, before: u64| SyncEvent { number: e.number - before, ..e.clone() };
        let all = self.events.iter().rev().flat_map(move |(e, times)| (0..=*times).map(move |i| numbered(e, i)));
        all.take(KEPT)
    }
}

fn log() -> MutexGuard<'static, Log> {
    LOG.lock().unwrap_or_else(|p| p.into_inner())
}

pub(crate) fn record(mut event: SyncEvent) -> SyncEvent {
    if !watching() {
        return event;
    }
    let mut log = log();
    log.count += 1;
    log.trace += event.trace;
    event.number = log.count;
    if let Some((last, times)) = log.events.back_mut() {
        last.number = event.number;
        if *last == event {
            *times += 1;
            return event;
        }
        last.number -= 1;
    }
    if log.events.len() == KEPT {
        log.events.pop_front();
    }
    log.events.push_back((event.clone(), 0));
    event
}

/// The syncs after the one of that number (0 for all that are kept).
pub(crate) fn events_since(number: u64) -> Vec<SyncEvent> {
    let mut events: Vec<SyncEvent> = log().latest().take_while(|e| e.number > number).collect();
    events.reverse();
    events
}

/// How often a program has run, as far as the log goes back.
pub(crate) fn runs(hash: u128) -> u64 {
    log().events.iter().filter(|(e, _)| e.hash == hash).map(|(_, times)| times + 1).sum()
}

/// Forgets all syncs; for tests that begin anew.
pub(super) fn forget() {
    log().events.clear();
}

/// How many other programs ran since this one did last.
pub(crate) fn ran_since(hash: u128) -> usize {
    let log = log();
    let since = log.events.iter().rev().map(|(e, _)| e.hash).take_while(|h| *h != hash);
    since.collect::<std::collections::HashSet<_>>().len()
}

/// The program that ran last.
pub(crate) fn last_program() -> Option<u128> {
    log().events.back().map(|(e, _)| e.hash)
}

/// How many syncs there were, and how long their tracing took in all.
pub(crate) fn syncs_so_far() -> (u64, Duration) {
    let log = log();
    (log.count, log.trace)
}

/// The last syncs that ran something, oldest first (at most 4096).
pub fn events() -> Vec<SyncEvent> {
    events_since(0)
}
