//! The line of user code on whose behalf a thread traces: library code is never where something is said to come from.
use super::Place;
use std::cell::Cell;

thread_local! {
    static LINE: Cell<Option<Place>> = const { Cell::new(None) };
}

/// The line that this thread traces on behalf of (`backward()`, an optimizer's step), if one is set.
pub fn line_of_thread() -> Option<Place> {
    LINE.get()
}

/// Puts the thread's line back when it goes.
pub struct Behalf(Option<Place>);

impl Drop for Behalf {
    fn drop(&mut self) {
        LINE.set(self.0);
    }
}

/// Puts all that this thread traces down to `at`, unless a line is set already, until the guard goes.
pub fn behalf(at: Place) -> Behalf {
    let before = LINE.get();
    LINE.set(before.or(Some(at)));
    Behalf(before)
}
