//! Stores what a running cell has made so far, however it ends.
use super::held::{Ended, Held, Holds, Keep};
use super::store;
use std::cell::RefCell;

thread_local! {
    /// Those that no cell has at the moment.
    static FREE: RefCell<Vec<&'static mut Held>> = const { RefCell::new(Vec::new()) };
}

/// What it has is borrowed: how to drop it would be compiled again in every cell.
#[doc(hidden)]
pub struct Frame(Option<&'static mut Held>);

impl Frame {
    #[allow(clippy::new_without_default)]
    #[inline(never)]
    pub fn new() -> Frame {
        Frame(Some(FREE.with_borrow_mut(Vec::pop).unwrap_or_else(|| Box::leak(Box::default()))))
    }

    #[inline(never)]
    pub fn holds(&mut self) -> Holds<'_> {
        self.0.as_mut().expect("it is there until it is dropped").holds()
    }
}

impl Drop for Frame {
    #[inline(never)]
    fn drop(&mut self) {
        let Some(held) = self.0.take() else { return };
        let ended = held.ended();
        FREE.with_borrow_mut(|free| free.push(held));
        for (name, how) in ended {
            match how {
                Ended::Holds(value, Keep::Value(type_name)) => store::put(name, value, type_name),
                Ended::Holds(value, Keep::Handle(keep, _)) => keep(name, value),
                // What it shadows must not come back in its place.
                Ended::Moved(type_name) => store::lose(name, type_name),
                Ended::Borrowed => store::forget(name),
                Ended::Lent(loaned) => store::put_lent(name, loaned),
                Ended::Away(loaned) => store::put_away(name, loaned),
            }
        }
    }
}
