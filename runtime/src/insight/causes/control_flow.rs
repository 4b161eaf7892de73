//! User code went another way after it had read a value.
use super::claim::{Claim, Fix};
use super::keep::SYNC;
use crate::insight::evidence::{Evidence, What, words};
use crate::insight::record::{Read, Record, same_place};
use crate::insight::report::{Class, Place};
use xlazy_core::text::{decides_rounds, insert_in_each_round, location, may_decide};

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.is_part() || e.aligned.same_ops() || e.ops().next().is_none() {
        return None;
    }
    let read = decided_by(e)?;
    let covers = super::claim::with_results(e, super::claim::all_ops(e));
    let fix = if e.new.session { fix(read) } else { elsewhere(read) };
    Some(Claim::new(covers, Class::ControlFlow, read, words::open(e), fix))
}

/// The read after which the two programs go different ways, if what is different was traced after a value that both read,
/// and the value may decide something.
fn decided_by(e: &Evidence) -> Option<Place> {
    let (new, old) = (e.new, e.old);
    let first = |r: &'_ Record, only: &[u32]| -> Option<(u64, Place)> {
        only.iter().map(|&i| (r.steps[i as usize].seq, r.steps[i as usize].at)).min_by_key(|s| s.0)
    };
    let (first_new, first_old) = (first(new, &e.aligned.only_new), first(old, &e.aligned.only_old));
    let places: Vec<Place> = [first_new, first_old].into_iter().flatten().map(|s| s.1).collect();
    let (first_new, first_old) = (first_new.map(|s| s.0), first_old.map(|s| s.0));
    let after = |first: Option<u64>, read: &Read| first.is_none_or(|first| first > read.seq);
    let both = |read: &&Read| {
        let then = old.reads.iter().any(|r| same_place(r.at, read.at) && after(first_old, r));
        let fed = e.open().all(|(_, what)| match what {
            What::Ops(ops) => ops.gains.iter().all(|&l| new.leaves[l as usize].seq > read.seq),
            _ => true,
        });
        then && after(first_new, read) && fed && may_decide(read.at, &places) && (new.session || behind(read.at, e))
    };
    new.reads.iter().rev().find(both).map(|r| r.at)
}

/// Of texts no more is known than where things are: what is different comes after the read, in its file.
fn behind(read: Place, e: &Evidence) -> bool {
    let own = |r: &Record, only: &[u32]| {
        only.iter().filter(|&&i| r.derived(i).is_none()).all(|&i| {
            let at = r.steps[i as usize].at;
            at.file() == read.file() && at.line() > read.line()
        })
    };
    own(e.new, &e.aligned.only_new) && own(e.old, &e.aligned.only_old)
}

/// In nobody's words.
fn elsewhere(read: Place) -> Fix {
    format!(
        "the ops depend on the value read at {}: choose on the device (`where`), so that one program serves both ways",
        location(read)
    )
    .into()
}

pub(super) fn fix(read: Place) -> Fix {
    if decides_rounds(read) {
        return Fix::from(format!(
            "the value read at {} decides how many rounds the loop has: `sync()` at the end of each, so that every round is the \
             same program, or always run as many and mask what is too much (`where_`), or, where no gradient is taken through \
             it, let the device decide (`while_loop`)",
            location(read)
        ))
        .code(insert_in_each_round(read, SYNC));
    }
    format!(
        "the ops depend on the value read at {}: choose on the device with `where_(&condition, &a, &b)`, or with `cond`, which \
         computes one of both only, so that one program serves both ways",
        location(read)
    )
    .into()
}

/// The read that decides how many rounds a loop has, some of which are in the program.
pub(super) fn rounds(new: &Record) -> Option<Place> {
    let decides = |r: &&Read| decides_rounds(r.at);
    let made = |last: &&Read| {
        let first = new.reads.iter().find(|r| same_place(r.at, last.at));
        first.is_some_and(|first| new.steps.iter().any(|s| first.seq < s.seq && s.seq <= last.seq))
    };
    new.reads.iter().rev().filter(decides).find(made).map(|r| r.at)
}
