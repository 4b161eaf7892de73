//! Whose turn it is to run a cell, and which cells an interrupt is meant for: those that were asked for before it.
use crate::engine::Engine;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

#[derive(Default)]
pub struct Turns {
    /// Held while the engine runs a cell.
    turn: Mutex<()>,
    /// How many interrupts there were.
    interrupts: AtomicU64,
    /// How many there were when the cell was asked for that has the turn, or had it last. Held while an interrupt is
    /// delivered, so that the next cell does not begin meanwhile.
    begun: Mutex<u64>,
}

/// An interrupt on its way.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt(u64);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Turns {
    /// To be taken when a cell is asked for, and shown when it begins.
    pub fn asked(&self) -> u64 {
        self.interrupts.load(Ordering::SeqCst)
    }

    /// The turn, if nobody has it.
    pub fn try_take(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub fn take(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// Begins a cell that has the turn; false when it was interrupted while it waited.
    pub fn begin(&self, asked: u64) -> bool {
        let mut begun = lock(&self.begun);
        let goes_on = self.asked() == asked;
        if goes_on {
            *begun = asked;
        }
        goes_on
    }

    /// Begins what has the turn and is not meant by any interrupt so far.
    pub fn begin_anew(&self) {
        let mut begun = lock(&self.begun);
        *begun = self.asked();
    }

    /// An interrupt has come.
    pub fn interrupt(&self) -> Interrupt {
        Interrupt(self.interrupts.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// Hands it to the engine, unless the cell that runs by now was asked for later.
    pub fn deliver(&self, interrupt: Interrupt, engine: &dyn Engine) {
        loop {
            let begun = lock(&self.begun);
            if *begun >= interrupt.0 || engine.interrupt() || self.try_take().is_some() {
                return;
            }
            drop(begun);
            // The cell has begun here and not yet there: in a moment it has, or is over.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Completeness, Completions, Event, Failure, Reply, Request};
    use std::sync::atomic::AtomicUsize;
    use xlazy_mime::Bundle;

    /// Takes interrupts from the second one on, as an engine does that has yet to begin.
    #[derive(Default)]
    struct Slow(AtomicUsize);

    impl Engine for Slow {
        fn execute(&self, _: &Request, _: &mut dyn FnMut(Event)) -> Reply {
            Reply::Ok
        }
        fn evaluate(&self, _: &str) -> Result<Bundle, Failure> {
            Ok(Bundle::default())
        }
        fn complete(&self, _: &str, _: usize) -> Completions {
            Completions::default()
        }
        fn inspect(&self, _: &str, _: usize, _: u8) -> Option<Bundle> {
            None
        }
        fn is_complete(&self, _: &str) -> Completeness {
            Completeness::Complete
        }
        fn interrupt(&self) -> bool {
            self.0.fetch_add(1, Ordering::SeqCst) > 0
        }
        fn restart(&self) -> Result<(), Failure> {
            Ok(())
        }
        fn shutdown(&self) {}
    }

    #[test]
    fn an_interrupt_that_is_delivered_late_does_not_hit_the_cell_after_its_own() {
        let (turns, engine) = (Turns::default(), Slow::default());
        let first = turns.asked();
        let interrupt = turns.interrupt();
        assert!(!turns.begin(first), "the first cell has not begun: it is interrupted");
        let _turn = turns.take();
        assert!(turns.begin(turns.asked()), "the second was asked for later");
        turns.deliver(interrupt, &engine);
        assert_eq!(engine.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_cell_that_is_about_to_begin_is_interrupted_once_it_has() {
        let (turns, engine) = (Turns::default(), Slow::default());
        let _turn = turns.take();
        assert!(turns.begin(turns.asked()));
        turns.deliver(turns.interrupt(), &engine);
        assert_eq!(engine.0.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn an_interrupt_between_cells_waits_for_none() {
        let (turns, engine) = (Turns::default(), Slow::default());
        turns.deliver(turns.interrupt(), &engine);
        assert_eq!(engine.0.load(Ordering::SeqCst), 1);
    }
}
