//! What loaders handed out: whether a smaller batch is what is left at the end of an epoch, or of another loader.
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Batches that are remembered: those that a cell made and another one takes among them.
const KEPT: usize = 4096;

/// A batch, as its loader planned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The number of the loader.
    pub loader: u64,
    /// It is the last of an epoch and smaller than the others, which all have so many rows.
    pub short_of: Option<usize>,
}

impl Batch {
    /// The batch of that number in an epoch whose batches have so many rows.
    pub fn planned(loader: u64, number: usize, rows: &[impl AsRef<[usize]>]) -> Batch {
        let short_of = match rows.split_last() {
            Some((last, [first, others @ ..])) if number == others.len() + 1 => {
                let full = first.as_ref().len();
                let alike = others.iter().all(|o| o.as_ref().len() == full);
                (alike && last.as_ref().len() < full).then_some(full)
            }
            _ => None,
        };
        Batch { loader, short_of }
    }
}

/// By the creation number of each tensor; the least is the oldest.
static HANDED_OUT: Mutex<BTreeMap<u64, Batch>> = Mutex::new(BTreeMap::new());

fn handed_out() -> MutexGuard<'static, BTreeMap<u64, Batch>> {
    HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A loader hands out the tensor of that creation number.
pub(crate) fn hand_out(seq: u64, batch: Batch) {
    let mut all = handed_out();
    all.insert(seq, batch);
    if all.len() > KEPT {
        all.pop_first();
    }
}

/// The batch that a tensor is of, as far as that is remembered.
pub(super) fn of(seq: u64) -> Option<Batch> {
    handed_out().get(&seq).copied()
}

/// Forgets all batches; for tests that begin anew.
pub(super) fn forget() {
    handed_out().clear();
}
