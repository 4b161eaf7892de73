//! What was left pending runs here: rounds without a barrier, or what another line has set up.
use super::claim::{Claim, Fix};
use super::keep::SYNC;
use crate::insight::evidence::{Evidence, Ops, words};
use crate::insight::record::{Record, same_place};
use crate::insight::report::{Class, Difference, Place};
use foldhash::{HashMap, HashMapExt};
use xlazy_core::ir::Step;
use xlazy_core::run::Cause;
use xlazy_core::text::{
    Edit, Spot, callers, decides_rounds, function, insert_before, insert_behind, insert_in_each_round, known, location,
    loops,
};
use xlazy_mime::count;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.is_part() {
        return None;
    }
    ends_rounds(e).or_else(|| never_synced(e)).or_else(|| picked_up(e))
}

/// A read that ends the rounds of its loop, since nothing else does: what it needed of earlier rounds, then each round by itself.
fn ends_rounds(e: &Evidence) -> Option<Claim> {
    let here = |r: &Record| same_place(r.site, e.new.site);
    if e.new.cause != Cause::UnendedRounds || !here(e.old) {
        return None;
    }
    let first = !e.known.iter().any(|r| r.cause == Cause::UnendedRounds && here(r));
    let ops = count(e.new.steps.len(), "op");
    let (now, fix) = if first {
        let (behind, needs) = match earlier(e.new) {
            0 => (", of several rounds".to_owned(), "runs earlier rounds".to_owned()),
            n => (from_before(n), format!("needs {} of earlier rounds", count(n, "op"))),
        };
        let from_now_on = "the line ends each round from now on, with all that is pending";
        (ops + &behind, format!("nothing was synced since the last read, and this {needs} again: {from_now_on}"))
    } else {
        let fix = "the read ends each round, since nothing else does, and this is one round by itself: expected once";
        (ops, fix.to_owned())
    };
    let end = end(e.new);
    let fix =
        Fix::from(format!("{fix}. End each with {end}, then all rounds are one program")).code(sync_of_rounds(e.new));
    let difference = resized(e, now);
    let covers = super::claim::with_results(e, super::claim::all_ops(e));
    Some(Claim::new(covers, Class::Structure, e.new.site, vec![difference], fix))
}

/// How many ops of a program a line needed the last time that it read, too.
fn earlier(r: &Record) -> usize {
    r.read_before.map_or(0, |before| r.steps.iter().filter(|s| s.seq <= before).count())
}

fn from_before(earlier: usize) -> String {
    if earlier == 0 { String::new() } else { format!(", {earlier} of them from before the last read") }
}

fn resized(e: &Evidence, now: String) -> Difference {
    Difference {
        what: "program".into(),
        was: count(e.old.steps.len(), "op"),
        now,
        was_at: Some(e.old.site),
        now_at: Some(e.new.site),
    }
}

/// A read of a line that has read before, with nothing synced since: what it needs of the earlier rounds is in it, too.
fn never_synced(e: &Evidence) -> Option<Claim> {
    let (new, old) = (e.new, e.old);
    let before = new.read_before?;
    let kept = earlier(new);
    let rounds = decides_rounds(new.site);
    if kept == 0 && !rounds || e.aligned.only_new.is_empty() || !same_place(new.site, old.site) {
        return None;
    }
    let difference = resized(e, count(new.steps.len(), "op") + &from_before(kept));
    let fix = if rounds {
        super::control_flow::fix(new.site)
    } else if grows(new, old, before) {
        fix_rounds(new, kept)
    } else {
        return None;
    };
    let covers = super::claim::with_results(e, super::claim::all_ops(e));
    Some(Claim::new(covers, Class::Structure, new.site, vec![difference], fix))
}

/// Whether rounds add up: a line that ran since the last read has run before it, too, and more often than it had last time.
fn grows(new: &Record, old: &Record, before: u64) -> bool {
    let runs =
        |r: &Record, op: (u32, u64)| r.steps.iter().zip(r.lines.iter()).filter(|(s, l)| (s.op.id, **l) == op).count();
    let ran = |op: (u32, u64), then: bool| {
        new.steps.iter().zip(new.lines.iter()).any(|(s, l)| (s.op.id, *l) == op && (s.seq <= before) == then)
    };
    new.steps
        .iter()
        .zip(new.lines.iter())
        .map(|(s, l)| (s.op.id, *l))
        .any(|op| ran(op, true) && ran(op, false) && runs(new, op) > runs(old, op))
}

/// Ops that were traced before all that both programs have, and by lines that the other one has not: something else left them.
fn picked_up(e: &Evidence) -> Option<Claim> {
    let elsewhere = |ops: &Ops| {
        let alone = ops.old.is_empty() && !ops.new.is_empty();
        alone && ops.new.iter().all(|&i| !e.old.lines.has(e.new.lines[i as usize]))
    };
    let found: Vec<(usize, &Ops)> = e.ops().filter(|(_, ops)| elsewhere(ops)).collect();
    if found.is_empty() {
        return None;
    }
    // What the function around the sync does itself begins there.
    let mut asked: HashMap<Place, bool> = HashMap::new();
    let mut own_work = |at: Place| *asked.entry(at).or_insert_with(|| calls_into(e.new.site, at));
    let shared = || e.aligned.pairs.iter().map(|p| &e.new.steps[p.0 as usize]);
    let own = shared().filter(|s| own_work(s.at)).map(|s| s.seq).min();
    let first = own.or_else(|| shared().map(|s| s.seq).min())?;
    let left = |ops: &&(usize, &Ops)| {
        let earlier = ops.1.new.iter().all(|&i| e.new.steps[i as usize].seq < first);
        // What the sync's own function calls is its own work.
        let left = ops.1.heads_new.iter().all(|&i| !calls_into(e.new.site, e.new.steps[i as usize].at));
        earlier && left
    };
    let found: Vec<&(usize, &Ops)> = found.iter().filter(left).collect();
    let last = found.iter().flat_map(|f| &f.1.new).max_by_key(|&&i| e.new.steps[i as usize].seq)?;
    let pending = &e.new.steps[*last as usize];
    let mut all = vec![Difference::gained("op", e.new.written(pending), pending.at)];
    let rest = found.iter().flat_map(|f| words::ops(e, f.1));
    all.extend(rest.filter(|d| !(d.now_at == Some(pending.at) && d.now == words::describe(pending))));
    let ops: usize = found.iter().map(|f| f.1.new.len()).sum();
    let fix = match e.new.is_read() {
        true => fix_read(e.new, pending),
        false => fix_barrier(e.new, pending, ops),
    };
    let covers = super::claim::with_results(e, found.iter().map(|f| f.0).collect());
    Some(Claim::new(covers, Class::Structure, pending.at, all, fix))
}

fn what(new: &Record, pending: &Step) -> String {
    let of = format!("the line at {}", location(pending.at));
    match new.named(pending) {
        Some(name) => format!("`{name}`, which {of} left pending"),
        None => format!("what {of} left pending"),
    }
}

fn fix_read(new: &Record, pending: &Step) -> Fix {
    Fix::from(format!("the read runs {}: `sync()` after making it, then it is data here", what(new, pending)))
        .code(behind(new, pending))
}

/// A barrier behind what was left pending.
fn behind(new: &Record, pending: &Step) -> Option<Vec<Edit>> {
    insert_behind(pending.at, SYNC, new.site)
}

fn fix_barrier(new: &Record, pending: &Step, ops: usize) -> Fix {
    Fix::from(format!(
        "{} of the {} that this {} runs are {}: `sync()` behind that line, so that every round is the same program",
        ops,
        count(new.steps.len(), "op"),
        new.cause.name(),
        what(new, pending)
    ))
    .code(behind(new, pending))
}

fn fix_rounds(new: &Record, kept: usize) -> Fix {
    Fix::from(format!(
        "nothing was synced since the last read, so this runs {} of earlier rounds again, and grows with every round: end each \
         with {}, then all rounds are one program",
        count(kept, "op"),
        end(new)
    ))
    .code(sync_of_rounds(new))
}

fn end(new: &Record) -> &'static str {
    if new.stepped() { "`optimizer_step(&mut optimizer)` or `sync()`" } else { "`sync()`" }
}

/// Where the round is a loop's, at its end; where it is a cell that runs again, before the value is read.
fn sync_of_rounds(new: &Record) -> Option<Vec<Edit>> {
    match loops(new.site).is_empty() {
        false => insert_in_each_round(new.site, SYNC),
        true => insert_before(new.site, SYNC),
    }
}

/// Whether a line belongs to what the function around `from` does: it is in it, or in what that calls, by name. No where
/// nothing is known of the code.
fn calls_into(from: Place, at: Place) -> bool {
    let home = function(from).map(|f| (f.from, f.to));
    let here = |at: &Spot| function(at).map(|f| (f.from, f.to)) == home && (home.is_some() || *at.file == *from.file());
    known(from) && known(at) && (here(&at.into()) || callers(at).iter().any(here))
}
