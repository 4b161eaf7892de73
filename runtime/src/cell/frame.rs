//! Stores what a running cell has made so far, however it ends.
use super::held::{Ended, Held, Holds, Keep};
use super::store;

#[doc(hidden)]
#[derive(Default)]
pub struct Frame(Held);

impl Frame {
    #[inline(never)]
    pub fn holds(&mut self) -> Holds<'_> {
        self.0.holds()
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        for (name, how) in self.0.ended() {
            match how {
                Ended::Holds(value, Keep::Value(type_name)) => store::put(name, value, type_name),
                Ended::Holds(value, Keep::Handle(keep)) => keep(name, value),
                // What it shadows must not come back in its place.
                Ended::Moved => store::lose(name),
                Ended::Borrowed => store::forget(name),
                Ended::Lent(lent, type_name) => store::put_lent(name, lent, type_name),
            }
        }
    }
}
