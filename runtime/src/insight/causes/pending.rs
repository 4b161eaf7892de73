//! What was left pending runs here: rounds without a barrier, or what another line has set up.
use super::claim::{Claim, Fix};
use super::keep::{SYNC, end};
use crate::insight::evidence::{Evidence, Ops, words};
use crate::insight::record::{LeafRecord, Record, same_place};
use crate::insight::report::{Class, Difference, Place};
use foldhash::{HashMap, HashMapExt, HashSet};
use xlazy_core::ir::{Kind, Step};
use xlazy_core::run::Cause;
use xlazy_core::text::{Edit, Spot, callers, decides_rounds, function, insert_before, insert_behind, known, location};
use xlazy_core::ty::TypeRef;
use xlazy_mime::count;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.is_part() {
        return None;
    }
    let for_good = || ran_again(e).filter(|_| e.new.cause == Cause::UnendedRounds);
    for_good()
        .or_else(|| ends_rounds(e))
        .or_else(|| after_ended(e))
        .or_else(|| never_synced(e))
        .or_else(|| ran_again(e))
        // What ends a round has all that is pending, and picks nothing up.
        .or_else(|| picked_up(e).filter(|_| !e.new.cause.ends_rounds()))
}

/// A read or a step that ends the rounds of its loop, since nothing else does: what there was of earlier rounds, then each round by
/// itself.
fn ends_rounds(e: &Evidence) -> Option<Claim> {
    let here = |r: &Record| same_place(r.site, e.new.site);
    if !e.new.cause.ends_rounds() || !here(e.old) {
        return None;
    }
    // Behind a read that ran one round, too, what differs is between two rounds.
    if [e.new, e.old].iter().all(|r| r.cause == Cause::UnendedRounds && earlier(r) == 0) {
        return None;
    }
    // Another model's step, in the same function.
    let parameter = |l: &LeafRecord| l.parameter;
    if e.new.leaves.iter().any(parameter) && !e.new.shares(e.old, parameter) {
        return None;
    }
    let first = !e.known.iter().any(|r| r.cause.ends_rounds() && here(r));
    let ops = count(e.new.steps.len(), "op");
    let (now, fix) = if first {
        let (behind, needs) = match earlier(e.new) {
            0 => (", of several rounds".to_owned(), "runs earlier rounds".to_owned()),
            n => (from_before(n), format!("needs {} of earlier rounds", count(n, "op"))),
        };
        let fix = match e.new.cause {
            Cause::UnendedSteps => {
                "nothing was synced for many steps: the line runs what is pending, so that they are no longer"
                    .to_owned()
            }
            _ => format!(
                "nothing was synced since the last read, and this {needs} again: the line ends each round from now on, with all that is \
                 pending"
            ),
        };
        (ops + &behind, fix)
    } else {
        let fix = match (e.new.cause, e.old.cause) {
            (Cause::UnendedSteps, Cause::UnendedSteps) => {
                "the step ends each round, since nothing else does, and this is one round by itself"
            }
            (Cause::UnendedSteps, _) => "the step runs what many rounds have left pending, since nothing else does",
            _ => "the read ends each round, since nothing else does, and this is one round by itself",
        };
        (ops, fix.to_owned())
    };
    // What to do instead was said of the first.
    let fix = match (first, other_sizes(e.new, e.old)) {
        (true, _) => Fix::from(format!("{fix}. End each with {}, then {}", end(e.new), one_for_all(e.new, e.old)))
            .code(sync_of_rounds(e.new)),
        (false, Some((step, types))) => Fix::from(format!("{fix}; {}", each_size(e.new, step, &types))),
        (false, None) => Fix::from(format!("{fix}: expected once")),
    };
    let differences = resized(e, now);
    let covers = super::claim::with_results(e, super::claim::all_ops(e));
    Some(Claim::new(covers, Class::Structure, e.new.site, differences, fix))
}

/// What a line reads by itself, behind the round that it has ended.
fn after_ended(e: &Evidence) -> Option<Claim> {
    let new = e.new;
    let last = e.known.iter().filter(|r| same_place(r.site, new.site)).max_by_key(|r| r.number)?;
    if !last.cause.ends_rounds() || !new.is_read() || new.cause.ends_rounds() {
        return None;
    }
    let then = match other_sizes(new, last) {
        Some((step, types)) => each_size(new, step, &types),
        None => "expected once".into(),
    };
    let fix =
        format!("the line has run what earlier rounds had left pending, and this is what it reads behind that: {then}");
    let differences = resized(e, count(new.steps.len(), "op"));
    let covers = super::claim::with_results(e, super::claim::all_ops(e));
    Some(Claim::new(covers, Class::Structure, new.site, differences, Fix::from(fix)))
}

/// How many ops of a program are from before the line read last.
fn earlier(r: &Record) -> usize {
    r.read_before.map_or(0, |before| r.steps.iter().filter(|s| s.seq <= before).count())
}

fn from_before(earlier: usize) -> String {
    if earlier == 0 { String::new() } else { format!(", {earlier} of them from before the last read") }
}

/// How many ops the programs have; where both have as many, what differs says more.
fn resized(e: &Evidence, now: String) -> Vec<Difference> {
    let was = count(e.old.steps.len(), "op");
    let (was, now) = match (was == now, words::open(e)) {
        (true, open) if !open.is_empty() => return words::first_at(open, e.new.site),
        (true, _) => {
            let all = |ops: &str, r: &Record| format!("{ops} and {}", count(r.roots.len(), "result"));
            (all(&was, e.old), all(&now, e.new))
        }
        (false, _) => (was, now),
    };
    vec![Difference { what: "program".into(), was, now, was_at: Some(e.old.site), now_at: Some(e.new.site) }]
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
    // Where nothing but what is joined is from before, nothing else runs again: it grows.
    let joined = |s: &Step| s.seq > before || s.op.kind == Kind::Concat;
    if !rounds && new.steps.iter().all(joined) {
        return None;
    }
    let differences = resized(e, count(new.steps.len(), "op") + &from_before(kept));
    let fix = if rounds {
        super::control_flow::fix(new.site)
    } else if grows(new, old, before) {
        fix_rounds(new, old, kept)
    } else {
        return None;
    };
    let covers = super::claim::with_results(e, super::claim::all_ops(e));
    Some(Claim::new(covers, Class::Structure, new.site, differences, fix))
}

/// A read that needs what the read before needed, too, of which nothing was kept: gradients that are looked at one by one.
fn ran_again(e: &Evidence) -> Option<Claim> {
    let (new, old) = (e.new, e.old);
    if !new.is_read() || !old.is_read() {
        return None;
    }
    let ran: HashSet<u64> = old.steps.iter().map(|s| s.seq).collect();
    let (again, first): (Vec<usize>, Vec<usize>) = (0..new.steps.len()).partition(|&i| ran.contains(&new.steps[i].seq));
    let (ops, count_again) = (count(new.steps.len(), "op"), again.len());
    // What the same lines add is a round more; gradients are all from one.
    let lines: HashSet<u64> = again.iter().map(|&i| new.lines[i]).collect();
    let round = |&i: &usize| new.derived(i as u32).is_none() && lines.contains(&new.lines[i]);
    // What is run for good brings along all that is pending.
    let most = new.cause == Cause::UnendedRounds || count_again * 2 >= new.steps.len();
    if count_again < 2 || !most || first.iter().any(round) {
        return None;
    }
    let last = again.iter().map(|&i| &new.steps[i]).max_by_key(|s| s.seq)?;
    let differences = resized(e, format!("{ops}, {count_again} of which ran for the read before"));
    let sync = format!("`sync()` behind the line at {}", location(last.at));
    let fix = match new.cause {
        Cause::UnendedRounds => format!(
            "each read of the line has run and compiled it again, so it is run for good now, with all that is pending, and what is read then is \
             made of data: {sync} does so from the start"
        ),
        _ => format!(
            "each value that is read runs what it needs, and keeps nothing else: {sync} runs that once, and what is read then is made of \
             data"
        ),
    };
    let fix = Fix::from(fix).code(behind(new, last));
    Some(Claim::new(e.numbered(|_| true), Class::EarlyRead, new.site, differences, fix))
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
    let here = same_place(e.new.site, e.old.site);
    swept_in(e, true).or_else(|| Some(Claim { passing: true, ..swept_in(e, false).filter(|_| here)? }))
}

/// Those of the new program, or those that the old one ran and the new one does not.
fn swept_in(e: &Evidence, now: bool) -> Option<Claim> {
    let (r, other) = if now { (e.new, e.old) } else { (e.old, e.new) };
    fn of(ops: &Ops, now: bool) -> (&[u32], &[u32]) {
        if now { (&ops.new, &ops.old) } else { (&ops.old, &ops.new) }
    }
    let elsewhere = |ops: &Ops| {
        let (all, others) = of(ops, now);
        others.is_empty() && !all.is_empty() && all.iter().all(|&i| !other.lines.has(r.lines[i as usize]))
    };
    let found: Vec<(usize, &Ops)> = e.ops().filter(|(_, ops)| elsewhere(ops)).collect();
    if found.is_empty() {
        return None;
    }
    // What the function around the sync does itself begins there.
    let mut asked: HashMap<Place, bool> = HashMap::new();
    let mut own_work = |at: Place| *asked.entry(at).or_insert_with(|| calls_into(r.site, at));
    let shared = || e.aligned.pairs.iter().map(|p| &r.steps[if now { p.0 } else { p.1 } as usize]);
    let own = shared().filter(|s| own_work(s.at)).map(|s| s.seq).min();
    let first = own.or_else(|| shared().map(|s| s.seq).min())?;
    let left = |ops: &&(usize, &Ops)| {
        let earlier = of(ops.1, now).0.iter().all(|&i| r.steps[i as usize].seq < first);
        let heads = if now { &ops.1.heads_new } else { &ops.1.heads_old };
        // What the sync's own function calls is its own work.
        earlier && heads.iter().all(|&i| !calls_into(r.site, r.steps[i as usize].at))
    };
    let found: Vec<&(usize, &Ops)> = found.iter().filter(left).collect();
    let last = *found.iter().flat_map(|f| of(f.1, now).0).max_by_key(|&&i| r.steps[i as usize].seq)?;
    let pending = &r.steps[last as usize];
    let change = if now { Difference::gained } else { Difference::lost };
    let mut all = vec![change("op", r.written(pending), pending.at)];
    let (again, rest) =
        (change("op", words::describe(pending), pending.at), found.iter().flat_map(|f| words::ops(e, f.1)));
    all.extend(rest.filter(|d| *d != again));
    let ops: usize = found.iter().map(|f| of(f.1, now).0.len()).sum();
    let fix = match (now, r.is_read()) {
        (false, _) => fix_before(r, pending, ops),
        (true, true) => fix_read(r, pending),
        (true, false) => fix_barrier(r, pending, ops),
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

fn fix_before(old: &Record, pending: &Step, ops: usize) -> Fix {
    Fix::from(format!(
        "{} of the {} of the program before were {}: expected once, and with `sync()` behind that line they are a program of their own",
        ops,
        count(old.steps.len(), "op"),
        what(old, pending)
    ))
}

fn fix_rounds(new: &Record, old: &Record, kept: usize) -> Fix {
    Fix::from(format!(
        "nothing was synced since the last read, so this runs {} of earlier rounds again, and grows with every round: end each \
         with {}, then {}",
        count(kept, "op"),
        end(new),
        once_ended(new, old)
    ))
    .code(sync_of_rounds(new))
}

const ONE: &str = "all rounds are one program";

/// Types that an op of the last round has had, oldest first, where it is not the same in every round; and the op. Earlier rounds are
/// the program's own where they are in it, else those of the one before. Where something is joined, that is what grows.
fn other_sizes<'a>(new: &'a Record, old: &'a Record) -> Option<(&'a Step, Vec<TypeRef>)> {
    let last = |i: usize| new.read_before.is_none_or(|before| new.steps[i].seq > before);
    /// What an op of a line gave in the one program and in the other, and how often in the last round.
    #[derive(Default)]
    struct Given {
        before: Vec<TypeRef>,
        now: Vec<TypeRef>,
        in_round: usize,
    }
    let mut given: HashMap<(u32, u64), Given> = HashMap::new();
    for (step, line) in old.steps.iter().zip(old.lines.iter()) {
        given.entry((step.op.id, *line)).or_default().before.push(step.ty);
    }
    for (i, (step, line)) in new.steps.iter().zip(new.lines.iter()).enumerate() {
        let op = given.entry((step.op.id, *line)).or_default();
        op.now.push(step.ty);
        op.in_round += usize::from(last(i));
    }
    let differs = |i: usize| {
        let step = &new.steps[i];
        let Given { before, now, in_round } = &given[&(step.op.id, new.lines[i])];
        // Of as many in each round the one that was as often before.
        let before = if now.len() > *in_round { &[] } else { &before[..] };
        let mut of_rounds: Vec<TypeRef> = before.iter().chain(now).rev().step_by(*in_round).copied().collect();
        of_rounds.reverse();
        of_rounds.dedup();
        // Of another dtype it is another op.
        let same = of_rounds.iter().all(|ty| ty.dtype == step.ty.dtype);
        (of_rounds.len() > 1 && same).then_some((step, of_rounds))
    };
    let mut seen: HashSet<(u32, u64)> = HashSet::default();
    let mut first = |i: &usize| last(*i) && seen.insert((new.steps[*i].op.id, new.lines[*i]));
    let all: Vec<(&Step, Vec<TypeRef>)> = (0..new.steps.len()).filter(|i| first(i)).filter_map(differs).collect();
    all.iter().find(|(step, _)| step.op.kind == Kind::Concat).or(all.first()).cloned()
}

fn each_size(new: &Record, step: &Step, types: &[TypeRef]) -> String {
    let longer = |w: &[TypeRef]| {
        let (was, now) = (&w[0].shape, &w[1].shape);
        was.len() == now.len() && (0..was.len()).all(|d| was[d] <= now[d]) && was != now
    };
    let what = format!("{} at {}", step.op.torch_name(), location(step.at));
    let [.., was, now] = types else { return ONE.to_owned() };
    let advice =
        format!("allocate it once at its largest size, {}, and mask what is not filled", super::keep::write_at(new));
    match types.windows(2).all(longer) && (step.op.kind == Kind::Concat || types.len() > 2) {
        true => format!(
            "each size is a program, and this one grows with every round ({what} is {now}, was {was}): {advice}"
        ),
        false => format!("each size is a program ({what} is {now}, was {was})"),
    }
}

/// What rounds are once something ends each of them: as the last one of both programs differs.
fn once_ended(new: &Record, old: &Record) -> String {
    let last = |r: &Record| -> Vec<usize> {
        (0..r.steps.len()).filter(|&i| r.read_before.is_none_or(|before| r.steps[i].seq > before)).collect()
    };
    let (now, all) = (last(new), last(old));
    // Before the first one is what it began with.
    let was = &all[all.len().saturating_sub(now.len())..];
    let pairs = || now.iter().zip(was).map(|(&i, &j)| (i, j));
    if now.len() != was.len()
        || !pairs().all(|(i, j)| (new.steps[i].op.id, new.lines[i]) == (old.steps[j].op.id, old.lines[j]))
    {
        return format!(
            "a round is a program of its own where it has other ops than the one before ({}, {} before): {}",
            now.len(),
            all.len(),
            super::keep::ours(
                new,
                "`fori_loop` and `scan` are one program for any number of rounds",
                "a loop of the device's is one"
            )
        );
    }
    one_for_all(new, old)
}

fn one_for_all(new: &Record, old: &Record) -> String {
    other_sizes(new, old).map_or_else(|| ONE.to_owned(), |(step, types)| each_size(new, step, &types))
}

/// Before the value is read: behind it, what is read would be computed for itself.
fn sync_of_rounds(new: &Record) -> Option<Vec<Edit>> {
    insert_before(new.site, SYNC)
}

/// Whether a line belongs to what the function around `from` does: it is in it, or in what that calls, by name. No where
/// nothing is known of the code.
fn calls_into(from: Place, at: Place) -> bool {
    let home = function(from).map(|f| (f.from, f.to));
    let here = |at: &Spot| function(at).map(|f| (f.from, f.to)) == home && (home.is_some() || *at.file == *from.file());
    known(from) && known(at) && (here(&at.into()) || callers(at).iter().any(here))
}
