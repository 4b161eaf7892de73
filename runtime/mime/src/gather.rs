//! What a value has in it that shows itself otherwise than by `Debug`: found while `Debug` writes the value, which knows all
//! of its parts, so that nothing has to be implemented or derived beyond it.
use std::any::Any;
use std::cell::RefCell;
use std::fmt::{Formatter, Result};

/// A part of a value: a tensor, or the bundle of what has a form of its own.
pub type Found = Box<dyn Any>;

thread_local! {
    /// The parts of the value that is being written on this thread; `None` while `Debug` means text.
    static FOUND: RefCell<Option<Vec<Found>>> = const { RefCell::new(None) };
}

/// In the text around a part's number. No `Debug` of a text has them in it: they are escaped as what no font has.
pub const OPEN: char = '\u{fdd0}';
pub const CLOSE: char = '\u{fdd1}';

/// Runs `f`, which writes a value by `Debug`, and gives the parts that are named by number in what it wrote.
pub fn gathering<R>(f: impl FnOnce() -> R) -> (R, Vec<Found>) {
    /// Put back when `Debug`, which may be the user's, unwinds.
    struct Around(Option<Vec<Found>>);
    impl Drop for Around {
        fn drop(&mut self) {
            FOUND.set(self.0.take());
        }
    }
    let around = Around(FOUND.replace(Some(Vec::new())));
    let out = f();
    let found = FOUND.take().unwrap_or_default();
    drop(around);
    (out, found)
}

/// Writes the number of a part where parts are gathered; `None` where text is wanted.
pub fn found(f: &mut Formatter, part: impl FnOnce() -> Found) -> Option<Result> {
    if !FOUND.with_borrow(Option::is_some) {
        return None;
    }
    // Made before the list is held: a part may be written by `Debug`, too.
    let part = part();
    let number = FOUND.with_borrow_mut(|all| {
        let all = all.get_or_insert_default();
        all.push(part);
        all.len() - 1
    });
    Some(write!(f, "{OPEN}{number}{CLOSE}"))
}
