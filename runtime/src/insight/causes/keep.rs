//! What is said by several causes: what becomes of programs that are needed again, promised only where the cache has room for
//! another one; and what is done is called as whoever wrote the program calls it.
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

/// What ends a round of this program.
pub(super) fn end(new: &Record) -> String {
    match new.optimizer() {
        Some(optimizer) => format!("`sync()`, or step with `optimizer_step(&mut {optimizer})`"),
        None => "`sync()`".into(),
    }
}

/// What only some steps need is done in all of them.
pub(super) fn mask(new: &Record) -> String {
    format!("mask what is too much (`{}`)", ours(new, "where_", "where"))
}

/// Written in place, whatever the position.
pub(super) fn write_at(new: &Record) -> String {
    format!("write at a position ({})", ours(new, "`index_copy`", "a dynamic update of a slice"))
}

/// How this library calls something, or how it is called where another framework wrote the program.
pub(super) fn ours(new: &Record, here: &'static str, elsewhere: &'static str) -> &'static str {
    if new.session { here } else { elsewhere }
}
