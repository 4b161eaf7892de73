//! What becomes of programs that are needed again: promised only where the cache has room for another one.
use crate::insight::record::Record;

/// The statement that ends a round.
pub(super) const SYNC: &str = "sync();";

pub(super) fn stay(new: &Record, which: &str) -> String {
    match new.room.full {
        false => format!("{which} stay in the cache"),
        true => format!(
            "the cache, which holds {}, is full: `insight::set_cache_capacity({})` (or XLAZY_CACHE_BYTES) has room for {which}",
            new.room.capacity,
            2 * new.room.programs
        ),
    }
}

pub(super) fn once(new: &Record, which: &str) -> String {
    let stay = stay(new, which);
    if new.room.full { stay } else { format!("compiled once, and {stay}") }
}
