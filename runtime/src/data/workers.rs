//! Threads that make batches and send them to the device ahead of the loop. They record nothing: what is pending is the cell's.
use super::array::{Failure, Sent};
use super::dataset::Dataset;
use super::over::Over;
use super::random;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use xlazy_core::device::LOOK_UP;
use xlazy_core::ir::Placement;
use xlazy_core::metrics;

/// What an epoch is.
pub(super) struct Order<const N: usize> {
    pub dataset: Arc<dyn Dataset<N>>,
    /// The samples of each batch.
    pub plan: Arc<Vec<Vec<usize>>>,
    pub seed: u64,
    /// Batches are padded to so many rows.
    pub rows: Option<usize>,
    /// Where batches go that no dataset has a place for.
    pub place: Placement,
    /// Batches are split over an axis of a mesh.
    pub over: Option<Over>,
}

impl<const N: usize> Clone for Order<N> {
    fn clone(&self) -> Order<N> {
        let (dataset, plan, over) = (self.dataset.clone(), self.plan.clone(), self.over.clone());
        Order { dataset, plan, seed: self.seed, rows: self.rows, place: self.place, over }
    }
}

/// A batch on the device, or why there is none.
type Made<const N: usize> = Result<[Sent; N], String>;

/// Makes a batch on the host and sends it.
pub(super) fn send<const N: usize>(order: &Order<N>, batch: usize) -> Made<N> {
    random::enter(order.seed);
    let arrays = order.dataset.arrays(&order.plan[batch]).map_err(|e| e.to_string())?;
    let places = order.dataset.places().unwrap_or([order.place; N]);
    let sent: Result<Vec<Sent>, Failure> = arrays
        .into_iter()
        .zip(places)
        .map(|(array, place)| array.send(place, order.rows, order.over.as_ref()))
        .collect();
    let sent = sent.map_err(|e| e.to_string())?;
    Ok(sent.try_into().unwrap_or_else(|_| unreachable!("one for each of the N parts")))
}

struct State<const N: usize> {
    /// The next batch that nobody makes yet.
    next: usize,
    /// Batches that the loop has.
    taken: usize,
    ready: BTreeMap<usize, Made<N>>,
    /// Nobody wants any more.
    ended: bool,
}

struct Shared<const N: usize> {
    state: Mutex<State<N>>,
    changed: Condvar,
}

impl<const N: usize> Shared<N> {
    fn state(&self) -> MutexGuard<'_, State<N>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The threads of one epoch.
pub(super) struct Workers<const N: usize>(Arc<Shared<N>>);

impl<const N: usize> Workers<N> {
    /// `ahead` batches at most are made that the loop has not.
    pub fn start(order: &Order<N>, threads: usize, ahead: usize) -> Workers<N> {
        let state = State { next: 0, taken: 0, ready: BTreeMap::new(), ended: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        for n in 0..threads.min(order.plan.len()) {
            let (of, with) = (order.clone(), shared.clone());
            let begun = std::thread::Builder::new().name(format!("loader {n}")).spawn(move || work(&of, &with, ahead));
            if let (Err(e), 0) = (begun, n) {
                let mut state = shared.state();
                let why = format!("no thread can be started for a worker: {e}");
                (0..order.plan.len()).for_each(|k| drop(state.ready.insert(k, Err(why.clone()))));
            }
        }
        Workers(shared)
    }

    /// The batch of this number, when it is there. An interrupt ends the wait, and the batch can be asked for again; so can one that
    /// failed, which is the same failure.
    pub fn take(&self, batch: usize) -> Made<N> {
        let mut state = self.0.state();
        loop {
            match state.ready.get(&batch) {
                Some(Err(why)) => return Err(why.clone()),
                Some(Ok(_)) => break,
                None => {}
            }
            state = self.0.changed.wait_timeout(state, LOOK_UP).unwrap_or_else(PoisonError::into_inner).0;
            if xlazy_core::sys::interrupt_is_due() {
                drop(state);
                xlazy_core::sys::check_interrupt();
                state = self.0.state();
            }
        }
        let made = state.ready.remove(&batch).expect("it was there");
        state.taken = batch + 1;
        self.0.changed.notify_all();
        made
    }
}

impl<const N: usize> Drop for Workers<N> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.ended = true;
        let left = std::mem::take(&mut state.ready);
        self.0.changed.notify_all();
        drop(state);
        drop(left);
    }
}

fn work<const N: usize>(order: &Order<N>, with: &Shared<N>, ahead: usize) {
    loop {
        let batch = {
            let mut state = with.state();
            while !state.ended && state.next < order.plan.len() && state.next >= state.taken + ahead.max(1) {
                state = with.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.ended || state.next >= order.plan.len() {
                return;
            }
            state.next += 1;
            state.next - 1
        };
        let begun = Instant::now();
        // What a sample's code does is the user's: a panic there ends the batch, and is told where the loop asks for it.
        let made = catch_unwind(AssertUnwindSafe(|| send(order, batch))).unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            Err(format!("{}{said}", random::making().map(|i| format!("sample {i}: ")).unwrap_or_default()))
        });
        metrics::LOADER_BATCH_TIME.add_time(begun.elapsed());
        let mut state = with.state();
        match state.ended {
            true => {
                drop(state);
                drop(made);
                return;
            }
            false => drop(state.ready.insert(batch, made)),
        }
        with.changed.notify_all();
    }
}
