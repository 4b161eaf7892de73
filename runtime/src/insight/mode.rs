//! Which lines ran in training and which in evaluation mode: what `model.eval()` changes in a program is told from other
//! changes of its ops.
use super::report::Place;
use foldhash::HashMap;
use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;
use std::sync::{Mutex, MutexGuard};
use xlazy_core::ir::graph;
use xlazy_core::text::{self, Source};

#[derive(Default)]
struct Modes {
    /// Lines of dropout and batch normalisation: whether the last call trained.
    lines: HashMap<Place, bool>,
    /// The last `train(…)` or `eval()` that changed something.
    switch: Option<(Place, bool)>,
    /// The last `requires_grad_` that changed something.
    trains: Option<(Place, bool)>,
    /// Where parameters were frozen, by the number of the node that each has since.
    frozen: BTreeMap<u64, Place>,
}

static MODES: Mutex<Option<Modes>> = Mutex::new(None);

fn modes() -> MutexGuard<'static, Option<Modes>> {
    MODES.lock().unwrap_or_else(|p| p.into_inner())
}

/// The caller's line does what it does in training, or what it does in evaluation.
#[track_caller]
pub(crate) fn note(training: bool) {
    let at = Source::of(xlazy_core::thread::innermost(Location::caller()));
    modes().get_or_insert_default().lines.insert(at, training);
}

/// A module was switched to training or to evaluation.
pub(crate) fn switched(at: text::Place, training: bool) {
    modes().get_or_insert_default().switch = Some((Source::of(at), training));
}

/// A tensor was told to require gradients, or not to: then it goes on as the node of this number.
pub(crate) fn trained(at: text::Place, on: bool, frozen: Option<u64>) {
    let at = Source::of(at);
    let mut m = modes();
    let m = m.get_or_insert_default();
    m.trains = Some((at, on));
    if let Some(number) = frozen {
        m.frozen.insert(number, at);
        while m.frozen.len() > REMEMBERED {
            m.frozen.pop_first();
        }
    }
}

/// Forgets all modes; for tests that begin anew.
pub(super) fn forget() {
    *modes() = None;
}

/// Frozen parameters that are remembered.
const REMEMBERED: usize = 1 << 16;

/// Where the tensor of this node was frozen.
pub(crate) fn frozen_at(seq: u64) -> Option<Place> {
    modes().as_ref()?.frozen.get(&seq).copied()
}

/// Where parameters were thawed (`on`) or frozen, if that was the last thing done to one.
pub(super) fn trained_at(on: bool) -> Option<Place> {
    modes().as_ref()?.trains.filter(|(_, to)| *to == on).map(|(at, _)| at)
}

/// The mode in which each line ran last, if it has one.
pub(super) fn of_lines() -> HashMap<Place, bool> {
    modes().as_ref().map(|m| m.lines.clone()).unwrap_or_default()
}

/// Where the mode was switched to this one.
pub(super) fn switch_to(training: bool) -> Option<Place> {
    modes().as_ref()?.switch.filter(|(_, to)| *to == training).map(|(at, _)| at)
}

/// What library code records that follows from other ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Derived {
    Gradient,
    Update,
}

/// Ranges of creation numbers, in order.
static DERIVED: Mutex<VecDeque<(u64, u64, Derived)>> = Mutex::new(VecDeque::new());

/// Says that what is recorded while the guard lives follows from other ops.
pub(crate) struct Derives(u64, Derived);

pub(crate) fn derives(kind: Derived) -> Derives {
    Derives(graph().last_seq(), kind)
}

impl Drop for Derives {
    fn drop(&mut self) {
        let last = graph().last_seq();
        if last > self.0 {
            let mut all = DERIVED.lock().unwrap_or_else(|p| p.into_inner());
            all.push_back((self.0 + 1, last, self.1));
            if all.len() > REMEMBERED {
                all.pop_front();
            }
        }
    }
}

/// Which of the ops with these creation numbers follow from others; quick where the numbers rise.
pub(crate) fn derived_of(numbers: impl IntoIterator<Item = u64>) -> Vec<Option<Derived>> {
    let all = DERIVED.lock().unwrap_or_else(|p| p.into_inner());
    let mut next = usize::MAX;
    let mut one = |seq: u64| {
        let here = |i: usize| all.get(i).is_none_or(|(_, last, _)| seq <= *last) && (i == 0 || all[i - 1].1 < seq);
        if !(next <= all.len() && here(next)) {
            next = all.partition_point(|(_, last, _)| *last < seq);
        }
        all.get(next).filter(|(first, _, _)| *first <= seq).map(|(_, _, kind)| *kind)
    };
    numbers.into_iter().map(&mut one).collect()
}
