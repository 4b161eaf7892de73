//! Why a program is compiled again: the new program is compared with the nearest one there was. Runs on a miss only.
mod align;
mod fix;

use super::mode;
use super::record::{LeafRecord, Read, Record, nearest, same_place};
use super::report::{Class, Difference, Explanation, Place};
use crate::display::place::may_decide;
use crate::dtype::DType;
use crate::ir::{Input, Step};
use crate::op::{OpDef, Type};
use align::{Aligned, align};
use std::collections::HashSet;
use std::sync::Arc;

/// Differences that are shown at most.
const SHOWN: usize = 8;

/// The cause, if there was a program like this one.
pub(super) fn explain(new: &Record, known: &[Arc<Record>]) -> Option<Explanation> {
    if let Some(same) = known.iter().rev().find(|r| r.hash == new.hash && new.evicted) {
        return Some(evicted(new, same));
    }
    let old = nearest(new, known)?;
    let aligned = align(new, &old);
    let graph = aligned.graph(new, &old, SHOWN);
    Some(Explanation { graph, ..compare(new, &old, known, &aligned) })
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
    }
}

fn evicted(new: &Record, same: &Record) -> Explanation {
    let difference = Difference {
        what: "program".into(),
        was: format!("compilation {}", same.number),
        now: "the same, compiled again".into(),
        was_at: Some(same.site),
        now_at: Some(new.site),
    };
    say(Class::Eviction, new.site, same, vec![difference], fix::evicted(new))
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
            return say(Class::Mode, at, old, differences, fix::mode(training));
        }
    }
    if let Some(why) = never_synced(new, old, aligned) {
        return why;
    }
    if let Some(first) = inputs.iter().find(|d| d.kind == Kind::Dtype) {
        return say(Class::Dtype, first.at, old, shown(&inputs, Kind::Dtype), fix::dtype(first));
    }
    if let Some(first) = inputs.iter().find(|d| d.kind == Kind::Shape && d.parameter) {
        return say(Class::Structure, first.at, old, shown(&inputs, Kind::Shape), fix::another_model());
    }
    if let Some(first) = inputs.iter().find(|d| d.kind == Kind::Shape) {
        if kinds(new) == kinds(old) {
            return say(Class::Aliasing, first.at, old, shown(&inputs, Kind::Shape), fix::swapped());
        }
        let seen = fix::Seen::of(new, first.at, first.name.as_deref(), known);
        let fix = fix::shape(first.was.as_ref(), first.now.as_ref(), new, old, &seen, Some(first.at));
        return say(Class::Shape, first.at, old, shown(&inputs, Kind::Shape), fix);
    }
    if aligned.same_ops() {
        if let Some(why) = attributes(new, old, &aligned.pairs, known) {
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
            let mut why =
                say(Class::Aliasing, new.leaves[i].at, old, donation(new, old), fix::donation(new.leaves[i].donate));
            // The first step's inputs were made by the user, the second's by the first.
            why.warm_up = new.second_of(old) && new.leaves[i].donate;
            return why;
        }
        if new.precision != old.precision {
            return environment(new, old);
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
        let mut why = say(Class::Structure, state.0, old, all, fix::warm_up(state.1));
        why.warm_up = true;
        return why;
    }
    let at = aligned.fault(new, old, &inputs);
    // What is said first is what happened at this line.
    let here = |d: &Difference| d.now_at.or(d.was_at).is_some_and(|there| same_place(there, at));
    all.sort_by_key(|d| !here(d));
    say(Class::Structure, at, old, all, fix::structure(new, old, aligned, &inputs))
}

/// The data that a program starts from: the line of each, and its type.
fn kinds(r: &Record) -> Vec<(u64, String)> {
    let mut all: Vec<_> = r.leaves.iter().filter(|l| !l.scalar).map(|l| (l.line, l.ty.to_string())).collect();
    all.sort_unstable();
    all
}

/// A read of a line that has read before, with nothing synced since: what it needs of the earlier rounds is in it, too.
fn never_synced(new: &Record, old: &Record, aligned: &Aligned) -> Option<Explanation> {
    let before = new.read_before?;
    let kept = new.steps.iter().filter(|s| s.seq <= before).count();
    if kept == 0 || aligned.only_new.is_empty() || !same_place(new.site, old.site) {
        return None;
    }
    let difference = Difference {
        what: "program".into(),
        was: count(old.steps.len(), "op"),
        now: format!("{}, {kept} of them from before the last read", count(new.steps.len(), "op")),
        was_at: Some(old.site),
        now_at: Some(new.site),
    };
    Some(say(Class::Structure, new.site, old, vec![difference], fix::never_synced(kept)))
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
    Some(say(Class::Dtype, why.at, old, differences, fix::converted(was, now)))
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
    let dtype = numbers.map_or(b.ty.dtype, |(now, was)| if now.is_float() { now } else { was });
    say(class, a.at, old, differences, fix::operand(class, both, dtype))
}

/// The read after which the two programs go different ways, if what is different was traced after a value that both read,
/// and the value may decide something.
fn decided_by(new: &Record, old: &Record, aligned: &Aligned, inputs: &[InputDifference]) -> Option<Place> {
    let ops = |r: &Record, only: &[u32]| only.iter().map(|&i| r.steps[i as usize].seq).min();
    let (first_new, first_old) = (ops(new, &aligned.only_new), ops(old, &aligned.only_old));
    let after = |first: Option<u64>, read: &Read| first.is_none_or(|first| first > read.seq);
    let both = |read: &&Read| {
        let then = old.reads.iter().any(|r| same_place(r.at, read.at) && after(first_old, r));
        let fed = |d: &InputDifference| d.kind == Kind::Count && d.seq.is_none_or(|seq| seq > read.seq);
        then && after(first_new, read) && inputs.iter().all(fed) && may_decide(read.at)
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

/// The input of a second step that the first one made: state which was not there before.
fn carried_over<'a>(new: &Record, old: &Record, inputs: &'a [InputDifference]) -> Option<(Place, &'a Type)> {
    let made: HashSet<u64> = old.lines.iter().copied().collect();
    let state = |d: &'a InputDifference| Some((d.at, d.now.as_ref().filter(|_| made.contains(&d.line))?));
    inputs.iter().filter(|d| d.kind == Kind::Count && new.second_of(old)).find_map(state)
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Shape,
    Dtype,
    /// There are more or fewer inputs.
    Count,
}

struct InputDifference {
    kind: Kind,
    at: Place,
    line: u64,
    name: Option<String>,
    was: Option<Type>,
    now: Option<Type>,
    was_at: Option<Place>,
    parameter: bool,
    /// When the new input was made.
    seq: Option<u64>,
}

/// Inputs are paired by line and type, then by name, where there are more or fewer of them by type, then by line; what is left
/// is paired in order where there are as many.
fn input_differences(new: &Record, old: &Record, same_ops: bool) -> Vec<InputDifference> {
    let data = |r: &'_ Record| -> Vec<LeafRecord> { r.leaves.iter().filter(|l| !l.scalar).cloned().collect() };
    let (n, o) = (data(new), data(old));
    let mut out = Vec::new();
    let difference = |kind: Kind, now: Option<&LeafRecord>, was: Option<&LeafRecord>| {
        let l = now.or(was).expect("one of both");
        InputDifference {
            kind,
            at: l.at,
            line: l.line,
            name: l.name.clone(),
            was: was.map(|l| l.ty.clone()),
            now: now.map(|l| l.ty.clone()),
            was_at: was.map(|l| l.at),
            parameter: l.parameter,
            seq: now.map(|l| l.seq),
        }
    };
    let mut pair = |n: &LeafRecord, o: &LeafRecord| {
        if n.ty != o.ty {
            let kind = if n.ty.dtype != o.ty.dtype { Kind::Dtype } else { Kind::Shape };
            out.push(difference(kind, Some(n), Some(o)));
        }
    };
    let in_order = n.len() == o.len() && n.iter().zip(&o).all(|(n, o)| n.ty == o.ty);
    // The same inputs in another order differ in their wiring.
    if n.len() == o.len() && kinds(new) == kinds(old) && (in_order || !same_ops) {
        return out;
    }
    let mut partners: Vec<Option<usize>> = vec![None; n.len()];
    let mut rest: Vec<Option<&LeafRecord>> = o.iter().map(Some).collect();
    let rank = |l: &LeafRecord| l.ty.shape.len();
    type Fits<'a> = &'a dyn Fn(&LeafRecord, &LeafRecord) -> bool;
    let exact: Fits = &|a, b| a.line == b.line && a.ty == b.ty;
    let name: Fits = &|a, b| a.name.is_some() && a.name == b.name;
    // A line that makes more of them than before has made another one.
    let made = |all: &[LeafRecord], line: u64| all.iter().filter(|l| l.line == line).count();
    let line: Fits = &|a, b| a.line == b.line && rank(a) == rank(b) && made(&n, a.line) == made(&o, a.line);
    let alike: Fits = &|a, b| n.len() != o.len() && a.ty == b.ty;
    // The same ops take the same inputs at the same places, whatever made them.
    let phases: &[Fits] = if same_ops && n.len() == o.len() { &[] } else { &[exact, name, alike, line] };
    for fits in phases {
        for (x, partner) in n.iter().zip(&mut partners).filter(|(_, p)| p.is_none()) {
            *partner = rest.iter().position(|r| r.is_some_and(|r| fits(x, r)));
            if let Some(i) = *partner {
                rest[i] = None;
            }
        }
    }
    if n.len() == o.len() {
        let mut left = (0..o.len()).filter(|&i| rest[i].take().is_some()).collect::<Vec<_>>().into_iter();
        partners.iter_mut().filter(|p| p.is_none()).for_each(|p| *p = left.next());
    }
    let mut unpaired = Vec::new();
    for (x, partner) in n.iter().zip(partners) {
        match partner {
            Some(i) => pair(x, &o[i]),
            None => unpaired.push(x),
        }
    }
    out.extend(unpaired.into_iter().map(|x| difference(Kind::Count, Some(x), None)));
    out.extend(rest.into_iter().flatten().map(|r| difference(Kind::Count, None, Some(r))));
    out
}

fn shown(inputs: &[InputDifference], kind: Kind) -> Vec<Difference> {
    let text = |t: &Option<Type>| t.as_ref().map_or("none".to_owned(), Type::to_string);
    inputs
        .iter()
        .filter(|d| d.kind == kind)
        .map(|d| Difference {
            what: d.name.as_ref().map_or("input".into(), |n| format!("`{n}`")),
            was: text(&d.was),
            now: text(&d.now),
            was_at: d.was_at,
            now_at: d.now.is_some().then_some(d.at),
        })
        .collect()
}

/// `1 result`, `2 results`.
pub(super) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn describe(step: &Step) -> String {
    format!("{} → {}", step.op.name, step.ty)
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
        _ => fix::attribute(class, name, a, b, k, &past),
    };
    let difference = Difference {
        what: format!("attribute `{name}` of {}", a.op.name),
        was: b.attrs[k].to_string(),
        now: a.attrs[k].to_string(),
        was_at: Some(b.at),
        now_at: Some(a.at),
    };
    let why = say(class, a.at, old, vec![difference], fix);
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
    pairs.iter().find_map(|&(i, j)| {
        let (a, b) = (&new.steps[i as usize], &old.steps[j as usize]);
        let k = (0..a.inputs.len().max(b.inputs.len())).find(|&k| a.inputs.get(k) != b.inputs.get(k))?;
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
        let difference = Difference {
            what: format!("operand {} of {}", k + 1, a.op.name),
            was: text(b.inputs.get(k), old),
            now: text(a.inputs.get(k), new),
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
    let at = crate::backends::set_at().unwrap_or(new.site);
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
fn roots_explain(new: &Record, aligned: &Aligned) -> bool {
    let extra: HashSet<u32> = aligned.only_new.iter().copied().collect();
    let mut used: HashSet<u32> = HashSet::new();
    for (i, s) in new.steps.iter().enumerate() {
        if !extra.contains(&(i as u32)) {
            used.extend(s.inputs.iter().filter_map(|i| if let Input::Step(s) = i { Some(*s) } else { None }));
        }
    }
    extra.is_disjoint(&used) && !extra.is_empty()
}

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
    say(Class::EarlyRead, new.site, old, vec![difference], fix::early_read(new, shared))
}
