//! What hands have done to widgets and is not over yet: on its way to the session, or waiting for its turn there. It waits behind no cell,
//! and the cells that came after it wait for it.
use super::comms::Place;
use super::subshells::Arrival;
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub struct Hands {
    moves: Sender<Arrival>,
    under_way: Mutex<UnderWay>,
    changed: Condvar,
}

#[derive(Default)]
struct UnderWay {
    /// Arrivals that the session has yet to hear of.
    unheard: BTreeSet<u64>,
    /// Those that it knows, and that code waits for.
    uncalled: BTreeSet<u64>,
    waiting: VecDeque<Call>,
}

/// Code is to hear of what happened to a widget.
pub struct Call {
    pub id: String,
    /// The arrivals that it is for.
    pub numbers: Vec<u64>,
    /// The headers whose messages are over when it is.
    pub untold: Vec<Arc<Value>>,
    pub place: Place,
}

impl Hands {
    /// Also returns what is to be told to the session, in order.
    pub fn new() -> (Hands, Receiver<Arrival>) {
        let (moves, told) = channel();
        (Hands { moves, under_way: Mutex::default(), changed: Condvar::new() }, told)
    }

    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn moved(&self, arrival: Arrival) {
        self.under_way().unheard.insert(arrival.number);
        let _ = self.moves.send(arrival);
    }

    /// What these arrivals brought is over.
    pub fn done(&self, numbers: &[u64]) {
        let mut all = self.under_way();
        for number in numbers {
            all.unheard.remove(number);
            all.uncalled.remove(number);
        }
        self.changed.notify_all();
    }

    /// The session knows of it, and code waits for it. Of one widget that waits already there is one call for all.
    pub fn call(&self, mut call: Call) {
        let mut all = self.under_way();
        for number in &call.numbers {
            all.unheard.remove(number);
            all.uncalled.insert(*number);
        }
        match all.waiting.iter_mut().find(|waiting| waiting.id == call.id) {
            Some(waiting) => {
                call.numbers.append(&mut waiting.numbers);
                call.untold.append(&mut waiting.untold);
                *waiting = call;
            }
            None => all.waiting.push_back(call),
        }
        self.changed.notify_all();
    }

    /// The next call, waited for.
    pub fn next(&self) -> Call {
        let mut all = self.under_way();
        loop {
            match all.waiting.pop_front() {
                Some(call) => return call,
                None => all = self.changed.wait(all).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn wait_while(&self, which: impl Fn(&UnderWay) -> bool) {
        let all = self.under_way();
        drop(self.changed.wait_while(all, |all| which(all)).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until the session has heard of all that was done before this arrival.
    pub fn heard_before(&self, number: u64) {
        self.wait_while(|all| all.unheard.first().is_some_and(|first| *first < number));
    }

    /// Whether code waits for something that was done before this arrival.
    pub fn waits_before(&self, number: u64) -> bool {
        self.under_way().uncalled.first().is_some_and(|first| *first < number)
    }

    /// Waits until none does.
    pub fn called_before(&self, number: u64) {
        self.wait_while(|all| all.uncalled.first().is_some_and(|first| *first < number));
    }
}
