//! Random numbers of the host for samples: those of a sample follow from the loader's seed, the epoch and the sample's number, so
//! that neither the number of workers nor their turns change them.
use crate::rng::SplitMix;
use std::cell::Cell;

/// Far apart for seeds that are near.
const FACTOR: u64 = 0xd134_2543_de82_ef95;

thread_local! {
    static EPOCH: Cell<u64> = const { Cell::new(0) };
    static STATE: Cell<u64> = const { Cell::new(0) };
    /// The sample that is being made.
    static SAMPLE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The seed of an epoch.
pub(super) fn of_epoch(seed: u64, epoch: u64) -> u64 {
    seed ^ epoch.wrapping_mul(FACTOR)
}

/// Samples that this thread makes from here on are of this epoch.
pub(super) fn enter(seed: u64) {
    EPOCH.set(seed);
}

/// Runs `f`, which makes a sample, with this sample's numbers.
pub(super) fn of_sample<R>(index: usize, f: impl FnOnce() -> R) -> R {
    let mixed = SplitMix(EPOCH.get() ^ (index as u64 + 1).wrapping_mul(FACTOR)).next();
    let before = (STATE.replace(mixed), SAMPLE.replace(Some(index)));
    let r = f();
    // Where it unwinds, the sample is known to have done so.
    STATE.set(before.0);
    SAMPLE.set(before.1);
    r
}

/// The sample whose making has not ended, on this thread.
pub(super) fn making() -> Option<usize> {
    SAMPLE.take()
}

/// A number from 0 up to and without 1, for a sample that is being made: the same for a loader's seed, an epoch and a sample.
///
/// ```
/// let u = xlazy::data::uniform();
/// assert!((0.0..1.0).contains(&u));
/// ```
pub fn uniform() -> f64 {
    let mut rng = SplitMix(STATE.get());
    let u = rng.uniform();
    STATE.set(rng.0);
    u
}

/// A whole number from 0 up to and without `n`, as [`uniform`].
pub fn below(n: usize) -> usize {
    (uniform() * n as f64) as usize
}

/// Fisher and Yates's shuffle.
pub(super) fn shuffle(order: &mut [usize], seed: u64) {
    let mut rng = SplitMix(seed);
    for i in (1..order.len()).rev() {
        // The high half of the product is uniform below i + 1 but for a bias of 2^-64 of it.
        order.swap(i, ((rng.next() as u128 * (i as u128 + 1)) >> 64) as usize);
    }
}
