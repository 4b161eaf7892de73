//! A value was read before the barrier of one step and not of another: what the read ran is no part of the step any more.
use super::claim::Claim;
use crate::insight::evidence::{Evidence, What};
use crate::insight::record::{Read, Record, same_place};
use crate::insight::report::{Class, Difference};
use xlazy_mime::count;

/// What is known of programs that others wrote down, whose reads take their part of the step away.
pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let (new, old) = (e.new, e.old);
    if new.is_read() || old.is_read() {
        return None;
    }
    let only = |r: &'_ Record, other: &Record| -> Option<Read> {
        r.reads.iter().find(|read| !other.reads.iter().any(|o| same_place(o.at, read.at))).copied()
    };
    let (read, now) = only(new, old).map(|r| (r, true)).or_else(|| only(old, new).map(|r| (r, false)))?;
    let covers = e.numbered(|what| matches!(what, What::Ops(_) | What::Wiring(..) | What::Results | What::Donation(_)));
    let step = |r: &Record, split: bool| {
        format!(
            "{} {}",
            count(r.steps.len(), "op"),
            if split { "behind a value that was read" } else { "in one program" }
        )
    };
    let difference = Difference {
        what: "the step".into(),
        was: step(old, !now),
        now: step(new, now),
        was_at: Some(if now { old.site } else { read.at }),
        now_at: Some(if now { read.at } else { new.site }),
    };
    let fix = "the read runs a part of the step as a program of its own, and the step goes on from its value as another program: read after \
               the barrier, or in every step";
    Some(Claim::new(covers, Class::EarlyRead, read.at, vec![difference], fix.to_owned()))
}
