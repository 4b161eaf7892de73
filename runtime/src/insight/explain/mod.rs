//! Why a program is compiled again: the new program is compared with the nearest one there was. Runs on a miss only.
mod align;
mod fix;
mod inputs;
mod nearest;

use super::log::{ran_since, runs};
use super::mode;
use super::record::{LeafRecord, Read, Record, same_place};
use super::report::{Class, Difference, Explanation, Place};
use align::{Aligned, align, describe, roots_explain};
use inputs::{InputDifference, Kind, input_differences, kinds, shown, trained};
use nearest::nearest;
use std::collections::HashSet;
use std::sync::Arc;
use xlazy_core::device::name_of;
use xlazy_core::ir::{Input, OpDef, Step};
use xlazy_core::run::Cause;
use xlazy_core::text::{decides_rounds, may_decide};
use xlazy_core::ty::{DType, Type};
use xlazy_mime::count;

/// Differences that are shown at most.
const SHOWN: usize = 8;

/// The cause, if there was a program like this one.
pub(super) fn explain(new: &Record, known: &[Arc<Record>]) -> Option<Explanation> {
    if let Some(same) = known.iter().rev().find(|r| r.hash == new.hash && new.room.evicted) {
        return Some(evicted(new, same, known));
    }
    if let Some(same) = known.iter().rev().find(|r| r.anywhere == new.anywhere && r.device != new.device) {
        return Some(other_device(new, same));
    }
    let old = nearest(new, &comparable(new, known))?;
    let aligned = align(new, &old);
    let graph = aligned.graph(new, &old, SHOWN);
    // The second step was compared with the first, another with one of those.
    let before = |r: &&Arc<Record>| same_place(r.site, new.site) && !r.is_read() && r.device == new.device;
    let later = known.iter().filter(before).count() > 1;
    Some(Explanation { graph, later, ..compare(new, &old, known, &aligned) })
}

/// Programs of the same device: a sync of several runs one for each, which have nothing to do with one another. What moves to
/// another device is compared with what the same line moved, and with steps: any other read is other work.
fn comparable(new: &Record, known: &[Arc<Record>]) -> Vec<Arc<Record>> {
    let moves = |r: &Record| r.cause == Cause::DeviceChange;
    let other = |r: &Record| r.is_read() && new.is_read() && (moves(r) || moves(new)) && !same_place(r.site, new.site);
    known.iter().filter(|r| r.device == new.device && !other(r)).cloned().collect()
}

fn say(class: Class, at: Place, old: &Record, mut differences: Vec<Difference>, fix: String) -> Explanation {
    let hidden = differences.len().saturating_sub(SHOWN);
    differences.truncate(SHOWN);
    Explanation {
        class,
        at,
        differences,
        hidden,
        graph: vec![],
        fix,
        compared_with: old.number,
        healable: vec![],
        healed: false,
        warm_up: false,
        later: false,
    }
}

fn evicted(new: &Record, same: &Record, known: &[Arc<Record>]) -> Explanation {
    let difference = Difference {
        what: "program".into(),
        was: format!("compilation {}", same.number),
        now: "the same, compiled again".into(),
        was_at: Some(same.site),
        now_at: Some(new.site),
    };
    // The same work on data of another size.
    let parameters =
        |r: &'_ Record| -> Vec<Type> { r.leaves.iter().filter(|l| l.parameter).map(|l| l.ty.clone()).collect() };
    let padded = known.iter().any(|r| {
        let sized = r.hash != new.hash && same_place(r.site, new.site) && r.same_ops(new);
        sized && parameters(r) == parameters(new) && !r.same_inputs(new)
    });
    say(Class::Eviction, new.site, same, vec![difference], fix::evicted(new, ran_since(new.hash) + 1, padded))
}

fn other_device(new: &Record, same: &Record) -> Explanation {
    let difference = Difference {
        what: "device".into(),
        was: name_of(same.device).into(),
        now: name_of(new.device).into(),
        was_at: Some(same.site),
        now_at: Some(new.site),
    };
    let fix = "expected once for each device that runs it".into();
    say(Class::Device, new.site, same, vec![difference], fix)
}

/// How many programs this barrier had before.
fn programs(new: &Record, known: &[Arc<Record>]) -> usize {
    known.iter().filter(|r| same_place(r.site, new.site)).map(|r| r.hash).collect::<HashSet<_>>().len()
}

/// The comparison proper: inputs first, since what differs there explains what differs behind them.
fn compare(new: &Record, old: &Record, known: &[Arc<Record>], aligned: &Aligned) -> Explanation {
    let inputs = input_differences(new, old, aligned.same_ops());

    // A read that ran part of what a barrier computes.
    if new.is_read() && !old.is_read() {
        return early_read(new, old, aligned);
    }
    if !aligned.same_ops() {
        if let Some(read) = decided_by(new, old, aligned, &inputs) {
            let differences = aligned.differences(new, old);
            return say(Class::ControlFlow, read, old, differences, fix::control_flow(read));
        }
        if let Some((at, training)) = other_mode(new, old, aligned) {
            let differences = aligned.differences(new, old);
            return say(Class::Mode, at, old, differences, fix::mode(new, training));
        }
        if let Some(why) = frozen(new, old, aligned) {
            return why;
        }
    }
    if let Some(why) = never_synced(new, old, aligned, known) {
        return why;
    }
    if let Some(first) = inputs.iter().find(|d| d.kind == Kind::Dtype) {
        let mut fix = fix::dtype(first, known);
        if let (Some(was), Some(now)) = (&first.was, &first.now)
            && was.shape != now.shape
        {
            let seen = fix::Seen::of(new, first.at, first.name.as_deref(), known);
            fix += &format!(
                ". The shape differs, too: {}",
                fix::shape(Some(was), Some(now), new, old, &seen, Some(first.at))
            );
        }
        return say(Class::Dtype, first.at, old, shown(&inputs, Kind::Dtype), fix);
    }
    if let Some(first) = inputs.iter().find(|d| d.kind == Kind::Shape && d.parameter) {
        return say(
            Class::Structure,
            first.at,
            old,
            shown(&inputs, Kind::Shape),
            fix::another_model(new, programs(new, known) + 1),
        );
    }
    if let Some(first) = inputs.iter().find(|d| d.kind == Kind::Shape) {
        if kinds(new) == kinds(old) {
            return say(Class::Aliasing, first.at, old, shown(&inputs, Kind::Shape), fix::swapped());
        }
        let mut seen = fix::Seen::of(new, first.at, first.name.as_deref(), known);
        seen.depends_on_data |= first.finder.is_some();
        let fix = fix::shape(first.was.as_ref(), first.now.as_ref(), new, old, &seen, Some(first.at));
        return say(Class::Shape, first.at, old, shown(&inputs, Kind::Shape), fix);
    }
    if aligned.same_ops() {
        if let Some(why) = attributes(new, old, &aligned.pairs, known) {
            return why;
        }
        if let Some(why) = taken_up(new, old, &inputs, known) {
            return why;
        }
        if let Some((at, difference)) = wiring_difference(new, old, &aligned.pairs) {
            let fix = "give each use a tensor of its own (`copy()`), or share it in every step".into();
            return say(Class::Aliasing, at, old, vec![difference], fix);
        }
        if new.roots != old.roots {
            return roots(new, old);
        }
        if let Some(why) = types(new, old, &aligned.pairs) {
            return why;
        }
        if let Some(i) =
            (0..new.leaves.len().min(old.leaves.len())).find(|&i| new.leaves[i].donate != old.leaves[i].donate)
        {
            let held = |l: &&LeafRecord| !l.donate;
            let holder = Some(&new.leaves[i]).filter(held).and_then(|l| l.holder.as_ref());
            let mut why = say(
                Class::Aliasing,
                new.leaves[i].at,
                old,
                donation(new, old),
                fix::donation(new.leaves[i].donate, holder),
            );
            // The first step's inputs were made by the user, the second's by the first.
            why.warm_up = new.second_of(old) && new.leaves[i].donate;
            return why;
        }
        if new.precision != old.precision {
            return environment(new, old);
        }
        if new.device != old.device {
            return other_device(new, old);
        }
        if new.leaves.len() == old.leaves.len() {
            let fix = "the nodes are the same; please report this with `%compiles --json`".into();
            return say(Class::Unclassified, new.site, old, vec![], fix);
        }
    }
    // Ops that only differ in what asked for them: they were traced both times, but their results were dropped once.
    let (gained, lost) = (aligned.only_new.len() as u64, aligned.only_old.len() as u64);
    let dropped = gained == 0 && new.roots.len() < old.roots.len() && new.traced + lost > old.traced;
    let kept = lost == 0 && new.roots.len() > old.roots.len() && new.traced < old.traced + gained;
    if dropped || kept && roots_explain(new, aligned) {
        return roots(new, old);
    }
    if let Some(why) = converted(new, old, aligned) {
        return why;
    }
    let mut all = shown(&inputs, Kind::Count);
    all.extend(aligned.differences(new, old));
    if let Some(state) = carried_over(new, old, &inputs) {
        let fix = fix::warm_up(new, old, aligned, state.1, state.0);
        let mut why = say(Class::Structure, state.0, old, all, fix);
        why.warm_up = true;
        return why;
    }
    let at = aligned.fault(new, old, &inputs);
    // What is said first is what happened at this line.
    let here = |d: &Difference| d.now_at.or(d.was_at).is_some_and(|there| same_place(there, at));
    all.sort_by_key(|d| !here(d));
    say(Class::Structure, at, old, all, fix::structure(new, old, aligned, &inputs))
}

/// A read of a line that has read before, with nothing synced since: what it needs of the earlier rounds is in it, too.
fn never_synced(new: &Record, old: &Record, aligned: &Aligned, known: &[Arc<Record>]) -> Option<Explanation> {
    let before = new.read_before?;
    let kept = new.steps.iter().filter(|s| s.seq <= before).count();
    let rounds = decides_rounds(new.site);
    if kept == 0 && !rounds || aligned.only_new.is_empty() || !same_place(new.site, old.site) {
        return None;
    }
    let earlier = if kept == 0 { String::new() } else { format!(", {kept} of them from before the last read") };
    let difference = Difference {
        what: "program".into(),
        was: count(old.steps.len(), "op"),
        now: count(new.steps.len(), "op") + &earlier,
        was_at: Some(old.site),
        now_at: Some(new.site),
    };
    let fix = if rounds {
        fix::control_flow(new.site)
    } else if grows(new, old, before) {
        fix::never_synced(kept, known.iter().any(|r| r.cause == Cause::OptimizerStep))
    } else {
        let earlier = |&&i: &&u32| new.steps[i as usize].seq <= before;
        let pending = aligned.only_new.iter().filter(earlier).max_by_key(|&&i| new.steps[i as usize].seq)?;
        let pending = &new.steps[*pending as usize];
        if !aligned.only_new.iter().all(|i| earlier(&i)) {
            return None;
        }
        let mut all = vec![Difference::gained("op", new.written(pending), pending.at)];
        all.extend(aligned.differences(new, old).into_iter().filter(|d| d.now_at != Some(pending.at)));
        return Some(say(Class::Structure, pending.at, old, all, fix::takes_up(new, pending)));
    };
    Some(say(Class::Structure, new.site, old, vec![difference], fix))
}

/// Whether rounds add up: a line that ran since the last read has run before it, too, and more often than it had last time.
fn grows(new: &Record, old: &Record, before: u64) -> bool {
    let runs = |r: &Record, op: (u32, u64)| r.steps.iter().zip(&r.lines).filter(|(s, l)| (s.op.id, **l) == op).count();
    let ran = |op: (u32, u64), then: bool| {
        new.steps.iter().zip(&new.lines).any(|(s, l)| (s.op.id, *l) == op && (s.seq <= before) == then)
    };
    new.steps
        .iter()
        .zip(&new.lines)
        .map(|(s, l)| (s.op.id, *l))
        .any(|op| ran(op, true) && ran(op, false) && runs(new, op) > runs(old, op))
}

/// Ops that convert, and nothing else, came or went: the same work in another dtype.
fn converted(new: &Record, old: &Record, aligned: &Aligned) -> Option<Explanation> {
    let all = aligned.only_new.iter().map(|&i| &new.steps[i as usize]);
    let mut all = all.chain(aligned.only_old.iter().map(|&j| &old.steps[j as usize]));
    if !all.all(|s| s.op.name == "to") {
        return None;
    }
    let differs = |&&(i, j): &&(u32, u32)| new.steps[i as usize].ty.dtype != old.steps[j as usize].ty.dtype;
    let &(i, j) = aligned.pairs.iter().find(differs)?;
    let mut why = other_type(new, old, i, j);
    let mut differences = aligned.differences(new, old);
    let first = differences.first()?;
    why.at = first.now_at.or(first.was_at)?;
    differences.append(&mut why.differences);
    let (was, now) = (old.steps[j as usize].ty.dtype, new.steps[i as usize].ty.dtype);
    Some(say(Class::Dtype, why.at, old, differences, fix::converted(new, was, now)))
}

/// The first op whose result has another type although its operands' ops and attributes are the same: an operand that is a
/// number came as another kind of number.
fn types(new: &Record, old: &Record, pairs: &[(u32, u32)]) -> Option<Explanation> {
    let differs = |&&(i, j): &&(u32, u32)| {
        let (a, b) = (&new.steps[i as usize], &old.steps[j as usize]);
        a.ty != b.ty || (0..a.inputs.len()).any(|k| number(a, k, new) != number(b, k, old))
    };
    let &(i, j) = pairs.iter().find(differs)?;
    Some(other_type(new, old, i, j))
}

/// The dtype of an operand that is a number.
fn number(step: &Step, operand: usize, of: &Record) -> Option<DType> {
    match step.inputs.get(operand)? {
        Input::Leaf(l) => of.leaves.get(*l as usize).filter(|l| l.scalar).map(|l| l.ty.dtype),
        Input::Step(_) => None,
    }
}

fn other_type(new: &Record, old: &Record, i: u32, j: u32) -> Explanation {
    let (a, b) = (&new.steps[i as usize], &old.steps[j as usize]);
    let operand = (0..a.inputs.len()).find(|&k| number(a, k, new) != number(b, k, old));
    let kind = |k: usize, s: &Step, r: &Record| match (number(s, k, r), s.inputs.get(k)) {
        (Some(dtype), _) => format!("a number ({})", dtype.name()),
        (None, Some(Input::Leaf(l))) => {
            let leaf = &r.leaves[*l as usize];
            leaf.name.as_ref().map_or(format!("a tensor ({})", leaf.ty), |n| format!("the tensor `{n}` ({})", leaf.ty))
        }
        _ => "a result".to_owned(),
    };
    let mut differences = Vec::new();
    let mut differs = |what: String, was: String, now: String| {
        differences.push(Difference { what, was, now, was_at: Some(b.at), now_at: Some(a.at) });
    };
    if let Some(k) = operand {
        differs(format!("operand {} of {}", k + 1, a.op.name), kind(k, b, old), kind(k, a, new));
    }
    if a.ty != b.ty {
        differs(format!("the result of {}", a.op.name), b.ty.to_string(), a.ty.to_string());
    }
    let both = operand.is_some_and(|k| number(a, k, new).is_some() && number(b, k, old).is_some());
    let class = match a.ty.dtype != b.ty.dtype || both {
        true => Class::Dtype,
        false if a.ty.shape != b.ty.shape => Class::Shape,
        false => Class::Structure,
    };
    let numbers = operand.and_then(|k| Some((number(a, k, new)?, number(b, k, old)?)));
    // A whole number goes with broken ones, not the other way round.
    let dtype = numbers.map_or(b.ty.dtype.promote(a.ty.dtype), |(now, was)| if now.is_float() { now } else { was });
    say(class, a.at, old, differences, fix::operand(class, both, dtype))
}

/// The read after which the two programs go different ways, if what is different was traced after a value that both read,
/// and the value may decide something.
fn decided_by(new: &Record, old: &Record, aligned: &Aligned, inputs: &[InputDifference]) -> Option<Place> {
    let first = |r: &'_ Record, only: &[u32]| -> Option<(u64, Place)> {
        only.iter().map(|&i| (r.steps[i as usize].seq, r.steps[i as usize].at)).min_by_key(|s| s.0)
    };
    let (first_new, first_old) = (first(new, &aligned.only_new), first(old, &aligned.only_old));
    let places: Vec<Place> = [first_new, first_old].into_iter().flatten().map(|s| s.1).collect();
    let (first_new, first_old) = (first_new.map(|s| s.0), first_old.map(|s| s.0));
    let after = |first: Option<u64>, read: &Read| first.is_none_or(|first| first > read.seq);
    let both = |read: &&Read| {
        let then = old.reads.iter().any(|r| same_place(r.at, read.at) && after(first_old, r));
        let fed = |d: &InputDifference| d.kind == Kind::Count && d.seq.is_none_or(|seq| seq > read.seq);
        then && after(first_new, read) && inputs.iter().all(fed) && may_decide(read.at, &places)
    };
    new.reads.iter().rev().find(both).map(|r| r.at)
}

/// Where the program was switched between training and evaluation, if lines that were run in both differ, each as its
/// mode has it.
fn other_mode(new: &Record, old: &Record, aligned: &Aligned) -> Option<(Place, bool)> {
    let line = |r: &Record, i: u32| mode::of(r.steps[i as usize].at).map(|training| (r.steps[i as usize].at, training));
    let found = aligned.only_old.iter().find_map(|&j| line(old, j));
    let (at, training) = found.or_else(|| aligned.only_new.iter().find_map(|&i| line(new, i)))?;
    Some((mode::switch_to(training).unwrap_or(at), training))
}

/// Parameters that are no longer trained, or are now: their gradients and updates are what went or came.
fn frozen(new: &Record, old: &Record, aligned: &Aligned) -> Option<Explanation> {
    let changed = trained(new, old)?;
    let (gone, came) = (aligned.only_old.len(), aligned.only_new.len());
    let one_way = match (changed.frozen.is_empty(), changed.thawed.is_empty()) {
        (false, true) => gone > came,
        (true, false) => came > gone,
        _ => true,
    };
    if !one_way {
        return None;
    }
    let difference = |on: bool, parameters: &[&LeafRecord]| {
        let there = parameters.iter().find_map(|l| l.frozen).filter(|_| !on);
        let at = there.or_else(|| mode::trained_at(on)).unwrap_or(new.site);
        let names: Vec<String> = parameters.iter().filter_map(|l| Some(format!("`{}`", l.name.as_ref()?))).collect();
        let who = match names.len() == parameters.len() {
            true => names.join(", "),
            false => {
                let types: Vec<String> = parameters.iter().map(|l| l.ty.to_string()).collect();
                format!("{} ({})", count(types.len(), "parameter"), types.join(", "))
            }
        };
        let (no, yes) = ("not computed", "computed");
        Difference {
            what: format!("gradients and updates of {who}"),
            was: if on { no } else { yes }.into(),
            now: if on { yes } else { no }.into(),
            was_at: Some(parameters[0].at),
            now_at: Some(at),
        }
    };
    let of = |on: bool, all: &[&LeafRecord]| (!all.is_empty()).then(|| difference(on, all));
    let mut all: Vec<Difference> = of(false, &changed.frozen).into_iter().chain(of(true, &changed.thawed)).collect();
    let at = all[0].now_at.unwrap_or(new.site);
    all.extend(aligned.differences(new, old));
    Some(say(Class::Structure, at, old, all, fix::frozen(new, gone, came)))
}

/// The input of a second step that the first one made: state which was not there before.
fn carried_over<'a>(new: &Record, old: &Record, inputs: &'a [InputDifference]) -> Option<(Place, &'a Type)> {
    let made: HashSet<u64> = old.lines.iter().copied().collect();
    let state = |d: &'a InputDifference| Some((d.at, d.now.as_ref().filter(|_| made.contains(&d.line))?));
    inputs.iter().filter(|d| d.kind == Kind::Count && new.second_of(old)).find_map(state)
}

/// The same ops on state that an earlier step made, where the old program had one of its other inputs in that place.
fn taken_up(new: &Record, old: &Record, inputs: &[InputDifference], known: &[Arc<Record>]) -> Option<Explanation> {
    let made = |line: u64| {
        let by = |r: &Arc<Record>| r.device == new.device && r.lines.contains(&line);
        if new.is_read() { known.iter().any(by) } else { old.lines.contains(&line) }
    };
    // Nothing of what the old program took was made by a step.
    if !same_place(new.site, old.site) || old.leaves.iter().any(|l| !l.scalar && made(l.line)) {
        return None;
    }
    let fresh = |d: &&InputDifference| d.kind == Kind::Count && d.now.is_some();
    let state = inputs.iter().find(fresh).filter(|d| d.computed && made(d.line))?;
    let mut why = say(Class::Structure, state.at, old, shown(inputs, Kind::Count), fix::taken_up());
    why.warm_up = runs(old.hash) == 1;
    Some(why)
}

/// The first attribute that differs although all operands of its op are alike: later ones follow from it.
fn attributes(new: &Record, old: &Record, pairs: &[(u32, u32)], known: &[Arc<Record>]) -> Option<Explanation> {
    let differs = |&&(i, j): &&(u32, u32)| {
        let (a, b) = (&new.steps[i as usize], &old.steps[j as usize]);
        (0..a.attrs.len().min(b.attrs.len())).any(|k| a.attrs[k] != b.attrs[k])
    };
    let &(i, j) = pairs.iter().find(differs)?;
    let (a, b) = (&new.steps[i as usize], &old.steps[j as usize]);
    let k = (0..a.attrs.len()).find(|&k| a.attrs[k] != b.attrs[k])?;
    let name = a.op.attrs.get(k).copied().unwrap_or("attribute");
    let class = match name {
        "size" | "shape" | "steps" => Class::Shape,
        // How much of it is taken.
        "length" => Class::Shape,
        "dtype" => Class::Dtype,
        "dim" | "dims" | "start" | "end" | "step" | "index" | "low" | "high" | "interior" | "diagonal" | "shift" => {
            Class::Index
        }
        _ => Class::Constant,
    };
    let past = past(new, i, known);
    let seen = fix::Seen::of_step(new, a, &past);
    let fix = match class {
        Class::Shape if (0..a.inputs.len()).all(|k| number(a, k, new).is_some()) => fix::made_here(&seen, &b.ty, &a.ty),
        Class::Shape if name != "length" && a.ty.shape.numel() != b.ty.shape.numel() => {
            fix::shape(Some(&b.ty), Some(&a.ty), new, old, &seen, Some(a.at))
        }
        _ => fix::attribute(class, name, a, b, k, &past, new),
    };
    let told = |a: &Step, b: &Step, k: usize| Difference {
        what: format!(
            "attribute `{}` of {}",
            a.op.attrs.get(k).copied().unwrap_or("attribute"),
            fix::as_users_say(a.op.name)
        ),
        was: b.attrs[k].to_string(),
        now: a.attrs[k].to_string(),
        was_at: Some(b.at),
        now_at: Some(a.at),
    };
    // Others that do not follow from it: the types are the same.
    let typed = |&(i, j): &(u32, u32)| new.steps[i as usize].ty == old.steps[j as usize].ty;
    let others =
        pairs.iter().filter(|&p| *p != (i, j) && typed(&(i, j)) && typed(p) && !healable(new, old, &[*p]).is_empty());
    let other = |&(i, j): &(u32, u32)| {
        let (a, b) = (&new.steps[i as usize], &old.steps[j as usize]);
        Some(told(a, b, (0..a.attrs.len()).find(|&k| a.attrs[k] != b.attrs[k])?))
    };
    let differences = std::iter::once(told(a, b, k)).chain(others.filter_map(other)).collect();
    let why = say(class, a.at, old, differences, fix);
    // Healing one of them is of use only where no other would still make another program.
    let all = pairs.iter().filter(differs).count();
    let healable = Some(healable(new, old, pairs)).filter(|h| h.len() == all).unwrap_or_default();
    Some(Explanation { healable, ..why })
}

/// What this op was in the earlier programs of this sync, oldest first: of the same line, and as often run there before it.
fn past<'a>(new: &Record, i: u32, known: &'a [Arc<Record>]) -> Vec<&'a Step> {
    let step = &new.steps[i as usize];
    let alike = |s: &&Step| s.op.id == step.op.id && same_place(s.at, step.at);
    let nth = new.steps[..i as usize].iter().filter(alike).count();
    let here = known.iter().filter(|r| same_place(r.site, new.site));
    here.filter_map(|r| r.steps.iter().filter(alike).nth(nth)).collect()
}

/// Every op whose attributes differ and that can take the difference as a parameter.
fn healable(new: &Record, old: &Record, pairs: &[(u32, u32)]) -> Vec<(&'static OpDef, Place)> {
    let one = |&(i, j): &(u32, u32)| {
        let (a, b) = (&new.steps[i as usize], &old.steps[j as usize]);
        let heal = a.op.heal.filter(|_| a.attrs != b.attrs)?;
        let (ha, hb) = (heal(&a.attrs)?, heal(&b.attrs)?);
        (std::ptr::eq(ha.op, hb.op) && ha.attrs == hb.attrs && ha.value != hb.value).then_some((a.op, a.at))
    };
    pairs.iter().filter_map(one).collect()
}

/// The first op that takes another operand than before.
fn wiring_difference(new: &Record, old: &Record, pairs: &[(u32, u32)]) -> Option<(Place, Difference)> {
    let name = |i: &Input, r: &Record| match *i {
        Input::Leaf(l) => {
            let leaf = &r.leaves[l as usize];
            leaf.name
                .as_ref()
                .map_or_else(|| format!("input {} ({})", l + 1, leaf.ty), |n| format!("`{n}` ({})", leaf.ty))
        }
        Input::Step(s) => describe(&r.steps[s as usize]),
    };
    // An input of the same line has another number where inputs before it are others: that follows from those.
    let line = |i: Option<&Input>, r: &Record| match i? {
        Input::Leaf(l) => r.leaves.get(*l as usize).map(|leaf| leaf.line),
        Input::Step(_) => None,
    };
    let other = |a: &Step, b: &Step, k: usize| {
        a.inputs.get(k) != b.inputs.get(k)
            && line(a.inputs.get(k), new).is_none_or(|l| line(b.inputs.get(k), old) != Some(l))
    };
    let operands = |a: &Step, b: &Step| 0..a.inputs.len().max(b.inputs.len());
    let steps = |&(i, j): &(u32, u32)| (&new.steps[i as usize], &old.steps[j as usize]);
    let surely = pairs.iter().map(steps).any(|(a, b)| operands(a, b).any(|k| other(a, b, k)));
    pairs.iter().map(steps).find_map(|(a, b)| {
        let differs = |&k: &usize| if surely { other(a, b, k) } else { a.inputs.get(k) != b.inputs.get(k) };
        let k = operands(a, b).find(differs)?;
        let text = |x: Option<&Input>, r: &Record| x.map_or("none".to_owned(), |x| name(x, r));
        let twice = |s: &'_ Step| -> Option<(usize, usize)> {
            let at = |k: usize| s.inputs[..k].iter().position(|x| *x == s.inputs[k]).map(|first| (first, k));
            (1..s.inputs.len()).find_map(at)
        };
        if let (Some((x, y)), None) | (None, Some((x, y))) = (twice(a), twice(b)) {
            let one = |s: &Step, r: &Record| match twice(s) {
                Some((x, _)) => format!("the same: {}", name(&s.inputs[x], r)),
                None => "two".to_owned(),
            };
            let what = format!("operands {} and {} of {}", x + 1, y + 1, a.op.name);
            let (was, now) = (one(b, old), one(a, new));
            return Some((a.at, Difference { what, was, now, was_at: Some(b.at), now_at: Some(a.at) }));
        }
        let (was, mut now) = (text(b.inputs.get(k), old), text(a.inputs.get(k), new));
        if was == now {
            now = format!("another: {now}");
        }
        let difference = Difference {
            what: format!("operand {} of {}", k + 1, a.op.name),
            was,
            now,
            was_at: Some(b.at),
            now_at: Some(a.at),
        };
        Some((a.at, difference))
    })
}

fn donation(new: &Record, old: &Record) -> Vec<Difference> {
    let say = |d: bool| if d { "reused for a result" } else { "kept" }.to_owned();
    let pairs = new.leaves.iter().zip(&old.leaves).filter(|(n, o)| n.donate != o.donate);
    pairs
        .map(|(n, o)| Difference {
            what: match &n.name {
                Some(name) => format!("the buffer of `{name}` ({})", n.ty),
                None => format!("the buffer of input {}", n.ty),
            },
            was: say(o.donate),
            now: say(n.donate),
            was_at: Some(o.at),
            now_at: Some(n.at),
        })
        .collect()
}

fn environment(new: &Record, old: &Record) -> Explanation {
    let at = xlazy_core::precision::set_at().unwrap_or(new.site);
    let difference = Difference {
        what: "the precision of matrix products".into(),
        was: old.precision.name().into(),
        now: new.precision.name().into(),
        was_at: None,
        now_at: Some(at),
    };
    let fix = "set it once, before the first step: every program is compiled anew for it".into();
    say(Class::Environment, at, old, vec![difference], fix)
}

fn roots(new: &Record, old: &Record) -> Explanation {
    let results = |r: &Record| -> Vec<(String, u64, Place)> {
        let one = |&i: &u32| {
            let s = &r.steps[i as usize];
            (r.written(s), r.lines[i as usize], s.at)
        };
        r.roots.iter().map(one).collect()
    };
    let (n, o) = (results(new), results(old));
    let missing = |from: &[(String, u64, Place)], of: &[(String, u64, Place)]| -> Vec<(String, Place)> {
        let mut rest: Vec<&(String, u64, Place)> = of.iter().collect();
        let gone = |x: &&(String, u64, Place)| match rest.iter().position(|r| r.0 == x.0 && r.1 == x.1) {
            Some(i) => {
                rest.swap_remove(i);
                false
            }
            None => true,
        };
        from.iter().filter(gone).map(|x| (x.0.clone(), x.2)).collect()
    };
    let (gained, lost) = (missing(&n, &o), missing(&o, &n));
    let at = lost.first().or(gained.first()).map_or(new.site, |x| x.1);
    let lost = lost.into_iter().map(|(text, at)| Difference::lost("result", text, at));
    let gained = gained.into_iter().map(|(text, at)| Difference::gained("result", text, at));
    say(Class::Roots, at, old, lost.chain(gained).collect(), fix::roots(new, old))
}

/// Whether the ops that are new all lead to results that are new.
fn early_read(new: &Record, old: &Record, aligned: &Aligned) -> Explanation {
    let shared = aligned.pairs.len();
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
    say(Class::EarlyRead, new.site, old, vec![difference], fix::early_read(new, old, shared))
}
