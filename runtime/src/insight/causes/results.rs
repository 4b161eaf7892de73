//! Other tensors were alive, so other results were asked for.
use super::branch;
use super::claim::Claim;
use super::keep::stay;
use crate::insight::evidence::{Evidence, Ops, What};
use crate::insight::record::{Record, token};
use crate::insight::report::{Class, Difference, Place};
use xlazy_core::ir::Input;
use xlazy_core::text;
use xlazy_mime::count;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.new.is_read() != e.old.is_read() {
        return None;
    }
    let (gained, lost) = (e.aligned.only_new.len() as u64, e.aligned.only_old.len() as u64);
    // Ops that only differ in what asked for them: they were traced both times, but their results were dropped once. Where the
    // code is not known, the number of ops that were traced tells.
    let fewer = gained == 0 && e.new.roots.len() < e.old.roots.len();
    let more = lost == 0 && e.new.roots.len() > e.old.roots.len();
    let as_many = fewer && e.new.traced + lost > e.old.traced || more && e.new.traced < e.old.traced + gained;
    let ends = |ops: &Ops| {
        let into =
            |i: &u32| e.aligned.pairs.iter().any(|p| e.new.steps[p.0 as usize].inputs.contains(&Input::Step(*i)));
        !ops.derived && !ops.new.iter().any(into)
    };
    let asked = |ops: &Ops| {
        let known = ops.heads_new.iter().map(|&i| e.new.steps[i as usize].at);
        let mut known = known.chain(ops.heads_old.iter().map(|&j| e.old.steps[j as usize].at));
        let told = if known.all(text::known) { branch::ran_both_times(e, ops) } else { as_many };
        (fewer || more) && ends(ops) && told
    };
    let covers = e.numbered(|what| match what {
        What::Results | What::Donation(_) => true,
        What::Ops(ops) => asked(ops),
        _ => false,
    });
    if !e.open().any(|(r, what)| covers.contains(&r) && !matches!(what, What::Donation(_))) {
        return None;
    }
    let (at, lost, gained) = told(e);
    let was_read = |of: &Record, partner: &[u32], others: &Record| {
        let token = |i: usize| token(of.steps[i].op, of.lines[i]);
        only(of, partner, others).all(|i| others.taken.contains(&token(i)))
    };
    let read = was_read(e.new, &e.aligned.of_new, e.old) && was_read(e.old, &e.aligned.of_old, e.new);
    let fix = match (lost.first(), gained.first()) {
        _ if e.new.is_read() => of_a_read(e.new, e.old),
        (Some((was, _)), Some((now, _))) if e.new.roots.len() == e.old.roots.len() => others(was, now, e.new),
        _ if read => read_before(e.new, gained.len(), lost.len()),
        _ => fix(e.new, e.old),
    };
    let lost = lost.into_iter().map(|(text, at)| Difference::lost("result", text, at));
    let gained = gained.into_iter().map(|(text, at)| Difference::gained("result", text, at));
    Some(Claim::new(covers, Class::Roots, at, lost.chain(gained).collect(), fix))
}

type Result = (String, Place);

/// The results that the other one has not.
fn only<'a>(of: &'a Record, partner: &'a [u32], others: &'a Record) -> impl Iterator<Item = usize> + 'a {
    of.roots.iter().map(|&i| i as usize).filter(|&i| !others.roots.contains(&partner[i]))
}

/// Where it shows, and the results that only one of the two has.
fn told(e: &Evidence) -> (Place, Vec<Result>, Vec<Result>) {
    let missing = |of: &Record, partner: &[u32], others: &Record| -> Vec<Result> {
        only(of, partner, others).map(|i| &of.steps[i]).map(|step| (of.written(step), step.at)).collect()
    };
    let gained = missing(e.new, &e.aligned.of_new, e.old);
    let lost = missing(e.old, &e.aligned.of_old, e.new);
    let at = lost.first().or(gained.first()).map_or(e.new.site, |x| x.1);
    (at, lost, gained)
}

/// As many as before, but not the same.
fn others(was: &str, now: &str, new: &Record) -> String {
    let shape = |text: &str| text.rsplit(" → ").next().map(str::to_owned);
    // What was a result by itself is now added to one: a gradient that nobody took away.
    let adds_up = now.starts_with("add ") && shape(was) == shape(now);
    let advice = match adds_up {
        true => "where these are gradients, they add up: call `zero_grad()` before or after each step",
        false => "keep the same tensors alive at every sync, and read values after it",
    };
    format!(
        "as many results as before, but others, {was} then and {now} now: {advice}; sets of results that come by turns are expected once \
         each, and {}",
        stay(new, "all")
    )
}

/// What one of the two left out had been read, and was not computed again.
fn read_before(new: &Record, gained: usize, lost: usize) -> String {
    let which = match (gained, lost) {
        (_, 0) => {
            "a read had computed these before the last sync, which took their values as they were; here nothing read them"
        }
        (0, _) => {
            "a read has computed these by now, and this sync takes their values as they are; before the last one nothing read them"
        }
        _ => {
            "before each of the two syncs a read had computed what the other one has, and what was read is taken as it is"
        }
    };
    format!("{which}: expected once for each, and {}", stay(new, "all"))
}

/// Two reads of as much the same, which keep more or less.
fn of_a_read(new: &Record, old: &Record) -> String {
    let (was, now) = (count(old.roots.len(), "result"), new.roots.len());
    format!(
        "a read gives what it was asked for, and what took work on the way and a variable holds at the time: {was} then, {now} now; expected \
         once for each, and {}",
        stay(new, "all")
    )
}

fn fix(new: &Record, old: &Record) -> String {
    let (was, now) = (count(old.roots.len(), "result"), count(new.roots.len(), "result"));
    let what = match new.session {
        true => format!(
            "the last sync gave {was}, this one {now}: keep the same tensors alive at every sync, and read values after it"
        ),
        false => format!("{now}, and {was} before: ask every step for the same ones"),
    };
    format!("{what}; sets of results that come by turns are expected once each, and {}", stay(new, "all"))
}
