//! Messages that have been taken once are not taken again: the signature is as right in a copy.
use sha2::{Digest, Sha256};
use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// So many ids are remembered, of all channels together; a front end sends a few per cell.
const REMEMBERED: usize = 1 << 20;

/// The ids of the messages that came; only of those whose signature is right.
#[derive(Default)]
pub struct Seen(Mutex<Ids>);

#[derive(Default)]
struct Ids {
    all: HashSet<u128>,
    in_order: VecDeque<u128>,
}

impl Seen {
    /// Whether an id comes for the first time. An id takes 16 bytes, however long it is.
    pub fn is_new(&self, id: &str) -> bool {
        let hash = Sha256::digest(id.as_bytes());
        let short = u128::from_be_bytes(*hash.first_chunk().expect("SHA-256 has 32 bytes"));
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !ids.all.insert(short) {
            return false;
        }
        ids.in_order.push_back(short);
        if ids.in_order.len() > REMEMBERED
            && let Some(oldest) = ids.in_order.pop_front()
        {
            ids.all.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_and_the_memory_for_them_is_bounded() {
        let seen = Seen::default();
        assert!(seen.is_new("a") && seen.is_new("b") && seen.is_new(""));
        assert!(!seen.is_new("a") && !seen.is_new("b") && !seen.is_new(""));
        let ids = || seen.0.lock().unwrap();
        let first = ids().in_order[0];
        ids().in_order.extend(std::iter::repeat_n(0, REMEMBERED - 3));
        assert!(seen.is_new("c"));
        assert_eq!(ids().in_order.len(), REMEMBERED);
        assert!(!ids().all.contains(&first) && !seen.is_new("b"), "the oldest is forgotten, and no other");
    }
}
