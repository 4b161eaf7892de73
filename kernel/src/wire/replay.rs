//! Messages that have been taken once are not taken again: the signature is as right in a copy.
use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// So many signatures are remembered, of all channels together; a front end sends a few messages per cell.
const REMEMBERED: usize = 1 << 20;

/// The signatures of the messages that came, of which each has a time and a number in its header.
///
/// Not their ids: Jupyter's own `Session.clone` counts from zero again in the same session, so two messages of one front
/// end may share one. Without the key nobody can make a message that differs, and with it nobody has to.
#[derive(Default)]
pub struct Seen(Mutex<Signatures>);

#[derive(Default)]
struct Signatures {
    all: HashSet<[u8; 16]>,
    in_order: VecDeque<[u8; 16]>,
}

impl Seen {
    /// Whether a signature comes for the first time. It must be right, so that strangers add nothing; of an empty one
    /// nothing is known.
    pub fn is_new(&self, signature: &[u8]) -> bool {
        // Half of it is still more than anybody can find a second message for.
        let Some(half) = signature.first_chunk() else { return true };
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.all.insert(*half) {
            return false;
        }
        seen.in_order.push_back(*half);
        if seen.in_order.len() > REMEMBERED
            && let Some(oldest) = seen.in_order.pop_front()
        {
            seen.all.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_new_once_and_the_memory_for_them_is_bounded() {
        let seen = Seen::default();
        let [a, b, c] = [[1u8; 32], [2; 32], [3; 32]];
        assert!(seen.is_new(&a) && seen.is_new(&b));
        assert!(!seen.is_new(&a) && !seen.is_new(&b));
        assert!(seen.is_new(&[]) && seen.is_new(&[]));
        let known = || seen.0.lock().unwrap();
        known().in_order.extend(std::iter::repeat_n([0; 16], REMEMBERED - 2));
        assert!(seen.is_new(&c));
        assert_eq!(known().in_order.len(), REMEMBERED);
        assert!(!seen.is_new(&b) && seen.is_new(&a), "the oldest is forgotten, and no other");
    }
}
