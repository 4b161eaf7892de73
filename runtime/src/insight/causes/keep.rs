//! What is said by several causes: what becomes of programs that are needed again, promised only where the cache has room for
//! another one; and what is done is called as whoever wrote the program calls it.
use crate::insight::record::Record;
use xlazy_core::run::Cause;

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

/// What ends a round of this program, in front of what is read of it: that is computed with it then.
pub(super) fn end(new: &Record) -> String {
    let place = if new.cause == Cause::UnendedSteps { "right behind the step" } else { "in front of what is read" };
    match new.optimizer() {
        Some(optimizer) => format!("`sync()` {place}, or step with `optimizer_step` instead of `{optimizer}.step()`"),
        None => format!("`sync()` {place}"),
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
