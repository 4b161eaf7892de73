//! A value was read before the step's barrier, which runs a part of the step as a program of its own.
use super::claim::{Claim, Fix};
use super::keep::{SYNC, end};
use crate::insight::evidence::Evidence;
use crate::insight::record::Record;
use crate::insight::report::{Class, Difference};
use xlazy_core::run::Cause;
use xlazy_core::text::{insert_before, location, move_behind};
use xlazy_mime::count;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if !e.is_part() {
        return None;
    }
    let (new, old, shared) = (e.new, e.old, e.aligned.pairs.len());
    let difference = Difference {
        what: "program".into(),
        was: format!(
            "{} and {} at the {}",
            count(old.steps.len(), "op"),
            count(old.roots.len(), "result"),
            old.cause.name()
        ),
        now: match new.steps.len() {
            all if all == shared => format!("{} for the one value read", count(all, "op")),
            all => format!("{} for the one value read, {shared} of them the step's", count(all, "op")),
        },
        was_at: Some(old.site),
        now_at: Some(new.site),
    };
    let all = e.numbered(|_| true);
    Some(Claim::new(all, Class::EarlyRead, new.site, vec![difference], fix(new, old, shared)))
}

/// `shared` of the ops that the read runs are the step's.
fn fix(new: &Record, old: &Record, shared: usize) -> Fix {
    if new.site.file() == old.site.file()
        && new.site.line() > old.site.line()
        && let Some(last) = new.steps.last()
        && last.at.file() == old.site.file()
        && last.at.line() > old.site.line()
    {
        return Fix::from(format!(
            "the value comes from the line at {}, behind the {} at {}: move that line before it, then the value is there \
             when it is read",
            location(last.at),
            old.cause.name(),
            location(old.site)
        ))
        .code(move_behind(old.site, last.at));
    }
    let left = match new.left_pending {
        0 => String::new(),
        1 => " (1 other result stays pending)".into(),
        n => format!(" ({n} other results stay pending)"),
    };
    let ops = count(new.steps.len(), "op");
    if !new.session {
        return format!(
            "read after the barrier, when the value is there already; compiled once, the read costs {ops} each time"
        )
        .into();
    }
    if new.cause == Cause::DeviceChange {
        return format!(
            "move what has its value, data before the step or a result after `sync()`: that runs nothing{left}; compiled once, the \
             move costs {ops} each time"
        )
        .into();
    }
    // No barrier of the code's: a line that ends rounds since nothing else does.
    if old.cause.ends_rounds() {
        let fix = format!(
            "nothing ends the round before it is read: end each with {}, then the value is there already{left}; compiled once, the read \
             costs {ops} each time",
            end(old)
        );
        return Fix::from(fix).code(insert_before(new.site, SYNC));
    }
    if shared < new.steps.len() {
        return format!(
            "compute it in every step and read it after the barrier: keep it in a variable before `sync()`{left}; compiled once, \
             the read costs {ops} each time, {shared} of which the step runs anyway"
        )
        .into();
    }
    Fix::from(format!(
        "read after the barrier, when the value is there already: move this line behind `sync()`{left}; compiled once, the \
         read costs {ops} each time"
    ))
    .code(move_behind(new.site, old.site))
}
