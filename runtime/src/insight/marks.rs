//! The ops of a program as numbers, so that two programs are compared without looking at their ops.
use foldhash::{HashMap, HashMapExt};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A number for each op, in order. Equal numbers stand for ops that are alike.
pub(crate) struct Marks {
    all: Box<[u64]>,
    counts: OnceLock<HashMap<u64, usize>>,
    /// How often it was asked whether a number is there.
    asked: AtomicU32,
}

impl FromIterator<u64> for Marks {
    fn from_iter<I: IntoIterator<Item = u64>>(all: I) -> Marks {
        all.into_iter().collect::<Vec<u64>>().into()
    }
}

impl From<Vec<u64>> for Marks {
    fn from(all: Vec<u64>) -> Marks {
        Marks { all: all.into(), counts: OnceLock::new(), asked: AtomicU32::new(0) }
    }
}

impl Clone for Marks {
    fn clone(&self) -> Marks {
        self.all.to_vec().into()
    }
}

impl std::ops::Deref for Marks {
    type Target = [u64];
    fn deref(&self) -> &[u64] {
        &self.all
    }
}

/// Two numbers as one.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let wide = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xe703_7ed1_a0b4_28db);
    (wide >> 64) as u64 ^ wide as u64
}

impl Marks {
    /// With how many numbers both begin.
    pub fn start(&self, other: &Marks) -> usize {
        let (a, b) = (&self.all[..], &other.all[..]);
        same(a.len().min(b.len()), |from, to| a[from..to] == b[from..to])
    }

    /// With how many numbers both end, behind the first ones.
    pub fn end(&self, other: &Marks, behind: usize) -> usize {
        let (a, b) = (&self.all[behind..], &other.all[behind..]);
        let (n, m) = (a.len(), b.len());
        same(n.min(m), |from, to| a[n - to..n - from] == b[m - to..m - from])
    }

    /// How many ops of one have a partner of their own in the other.
    pub fn common(&self, other: &Marks) -> usize {
        // What both begin and end with is common; so is what is common to what lies between.
        let start = self.start(other);
        let end = self.end(other, start);
        let (a, b) = (&self.all[start..self.len() - end], &other.all[start..other.len() - end]);
        if a.is_empty() || b.is_empty() {
            return start + end;
        }
        match a.len() + b.len() < (self.len() + other.len()) / 4 {
            true => start + end + shared(&counts(a), &counts(b)),
            false => shared(self.counts(), other.counts()),
        }
    }

    /// The same of marks that say more than `by` and `others_by` do, which tell at the start and at the end which ops
    /// correspond.
    pub fn common_where(&self, by: &Marks, other: &Marks, others_by: &Marks) -> usize {
        let start = by.start(others_by);
        let end = by.end(others_by, start);
        let (a, b) = (&self.all[start..self.len() - end], &other.all[start..other.len() - end]);
        if 4 * (a.len() + b.len()) > self.len() + other.len() {
            return self.common(other);
        }
        let equal = |a: &[u64], b: &[u64]| match a == b {
            true => a.len(),
            false => a.iter().zip(b).filter(|(x, y)| x == y).count(),
        };
        let ends = equal(&self.all[self.len() - end..], &other.all[other.len() - end..]);
        equal(&self.all[..start], &other.all[..start]) + ends + shared(&counts(a), &counts(b))
    }

    /// Whether this is one of them.
    pub fn has(&self, mark: u64) -> bool {
        /// So often they are looked through before they are counted.
        const FEW: u32 = 32;
        match self.counts.get() {
            Some(counts) => counts.contains_key(&mark),
            None if self.asked.fetch_add(1, Ordering::Relaxed) < FEW => self.all.contains(&mark),
            None => self.counts().contains_key(&mark),
        }
    }

    /// Whether no op is in both.
    pub fn strangers(&self, other: &Marks) -> bool {
        let first = self.first().is_some_and(|mark| other.first() == Some(mark));
        !first && shared(self.counts(), other.counts()) == 0
    }

    fn counts(&self) -> &HashMap<u64, usize> {
        self.counts.get_or_init(|| counts(&self.all))
    }
}

/// How often each number is there: mostly there are few, since a program's lines are.
fn counts(all: &[u64]) -> HashMap<u64, usize> {
    let mut counts = HashMap::new();
    all.iter().for_each(|mark| *counts.entry(*mark).or_default() += 1);
    counts
}

/// For how many of `n` places from the first on this holds; it is asked of several at once.
fn same(n: usize, holds: impl Fn(usize, usize) -> bool) -> usize {
    const AT_ONCE: usize = 64;
    let mut from = 0;
    while from + AT_ONCE <= n && holds(from, from + AT_ONCE) {
        from += AT_ONCE;
    }
    from + (from..n).take_while(|&k| holds(k, k + 1)).count()
}

/// How many numbers two rows have in common, each as often as both have it.
fn shared(a: &HashMap<u64, usize>, b: &HashMap<u64, usize>) -> usize {
    let (few, many) = if a.len() < b.len() { (a, b) } else { (b, a) };
    few.iter().filter_map(|(mark, n)| Some(*n.min(many.get(mark)?))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_rows_have_in_common_is_counted_as_often_as_both_have_it() {
        let mut random = fastrand::Rng::with_seed(15);
        for _ in 0..2000 {
            let row = |r: &mut fastrand::Rng| -> Vec<u64> { (0..r.usize(..300)).map(|_| r.u64(..40)).collect() };
            let (mut a, mut b) = (row(&mut random), row(&mut random));
            // Mostly alike, as programs are: a long start and a long end.
            if random.bool() {
                let all = row(&mut random);
                a.splice(..a.len().min(3), all.iter().copied());
                b.splice(..b.len().min(3), all.iter().copied());
                a.extend(&all);
                b.extend(&all);
            }
            let mut rest = b.clone();
            let found = |x: &&u64| rest.iter().position(|y| y == *x).map(|i| rest.swap_remove(i)).is_some();
            let expected = a.iter().filter(found).count();
            let (a, b): (Marks, Marks) = (a.into_iter().collect(), b.into_iter().collect());
            assert_eq!((a.common(&b), a.strangers(&b)), (expected, expected == 0));
        }
    }
}
