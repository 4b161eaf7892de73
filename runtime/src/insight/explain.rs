//! Why a program is compiled again: the new program is compared with the nearest one there was. Runs on a miss only.
use super::record::{Record, nearest, same_place};
use super::report::{Class, Difference, Explanation, Place};
use crate::display::place::location;
use crate::ir::{Input, Step};
use crate::op::{Attr, OpDef, Type};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// The cause, if there was a program like this one.
pub(super) fn explain(new: &Record, known: &[Arc<Record>]) -> Option<Explanation> {
    if let Some(same) = known.iter().rev().find(|r| r.hash == new.hash && new.evicted) {
        return Some(evicted(new, same));
    }
    let old = nearest(new, known)?;
    Some(compare(new, &old))
}

fn evicted(new: &Record, same: &Record) -> Explanation {
    let differences = vec![Difference {
        what: "program".into(),
        was: format!("compilation {}", same.number),
        now: "the same, compiled again".into(),
        was_at: Some(same.site),
        now_at: Some(new.site),
    }];
    let fix = format!(
        "the cache holds {}; raise it with `insight::set_cache_capacity(n)` (or XLAZY_COMPILATION_CACHE_SIZE), or pad the \
         inputs to one shape so that one program serves",
        new.capacity
    );
    Explanation {
        class: Class::Eviction,
        at: new.site,
        differences,
        fix,
        compared_with: same.number,
        healable: vec![],
        healed: false,
    }
}

/// The comparison proper: inputs first, since what differs there explains what differs behind them.
fn compare(new: &Record, old: &Record) -> Explanation {
    let make = |class: Class, at: Place, differences: Vec<Difference>, fix: String| Explanation {
        class,
        at,
        differences,
        fix,
        compared_with: old.number,
        healable: vec![],
        healed: false,
    };
    let inputs = input_differences(new, old);
    let aligned = align(new, old);
    let same_ops = aligned.only_new.is_empty() && aligned.only_old.is_empty();

    // A read that ran part of what a barrier computes.
    if new.is_read() && !old.is_read() {
        return early_read(new, old);
    }
    // Other ops after a value was read: the program followed the value.
    if !same_ops && !new.reads.is_empty() && inputs.iter().all(|d| d.kind == Kind::Count) {
        let mut differences = aligned.differences(new, old);
        differences.truncate(6);
        return make(Class::ControlFlow, new.reads[0], differences, control_flow_fix(new));
    }
    if let Some(first) = inputs.iter().find(|d| d.kind == Kind::Dtype) {
        let fix = dtype_fix(first);
        return make(Class::Dtype, first.at, shown(&inputs, Kind::Dtype), fix);
    }
    if let Some(first) = inputs.iter().find(|d| d.kind == Kind::Shape) {
        let fix = shape_fix(first.was.as_ref(), first.now.as_ref(), new, first.at);
        return make(Class::Shape, first.at, shown(&inputs, Kind::Shape), fix);
    }
    if same_ops {
        if let Some((class, at, difference, fix)) = attribute_difference(new, old, &aligned.pairs) {
            let healable = healable(new, old, &aligned.pairs);
            return Explanation { healable, ..make(class, at, vec![difference], fix) };
        }
        if let Some((at, difference)) = wiring_difference(new, old, &aligned.pairs) {
            let fix = "give each use a tensor of its own (`copy()`), or share it in every step".into();
            return make(Class::Aliasing, at, vec![difference], fix);
        }
        if new.roots != old.roots {
            return roots(new, old);
        }
        if let Some(i) =
            (0..new.leaves.len().min(old.leaves.len())).find(|&i| new.leaves[i].donate != old.leaves[i].donate)
        {
            return make(Class::Aliasing, new.leaves[i].at, donation(new, old), donation_fix(new, i));
        }
        if new.leaves.len() == old.leaves.len() {
            let fix = "the nodes are the same; please report this with `%compiles --json`".into();
            return make(Class::Unclassified, new.site, vec![], fix);
        }
    }
    // Ops that only differ in what asked for them: results of a read, dropped or kept tensors.
    if aligned.only_new.is_empty() && !aligned.only_old.is_empty() && new.roots.len() < old.roots.len() {
        return roots(new, old);
    }
    if aligned.only_old.is_empty() && new.roots.len() > old.roots.len() && roots_explain(new, &aligned) {
        return roots(new, old);
    }
    let differences = aligned.differences(new, old);
    let at = aligned.fault(new, old, &inputs);
    let mut all = shown(&inputs, Kind::Count);
    all.extend(differences);
    all.truncate(8);
    make(Class::Structure, at, all, structure_fix(new, old, &aligned))
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
    was: Option<Type>,
    now: Option<Type>,
    was_at: Option<Place>,
}

/// Inputs are paired in order where their number is equal, by the lines that made them otherwise.
fn input_differences(new: &Record, old: &Record) -> Vec<InputDifference> {
    let data = |r: &Record| -> Vec<(Type, Place)> {
        r.leaves.iter().filter(|l| !l.scalar).map(|l| (l.ty.clone(), l.at)).collect()
    };
    let (n, o) = (data(new), data(old));
    let mut out = Vec::new();
    let mut pair = |n: &(Type, Place), o: &(Type, Place)| {
        if n.0 == o.0 {
            return;
        }
        let kind = if n.0.dtype != o.0.dtype { Kind::Dtype } else { Kind::Shape };
        out.push(InputDifference { kind, at: n.1, was: Some(o.0.clone()), now: Some(n.0.clone()), was_at: Some(o.1) });
    };
    if n.len() == o.len() {
        n.iter().zip(&o).for_each(|(n, o)| pair(n, o));
        return out;
    }
    let mut rest: Vec<Option<&(Type, Place)>> = o.iter().map(Some).collect();
    let mut unpaired = Vec::new();
    for x in &n {
        let exact = rest.iter().position(|r| r.is_some_and(|r| r.0 == x.0 && same_place(r.1, x.1)));
        let line = || rest.iter().position(|r| r.is_some_and(|r| same_place(r.1, x.1)));
        let alike = || rest.iter().position(|r| r.is_some_and(|r| r.0 == x.0));
        match exact.or_else(line).or_else(alike).and_then(|i| rest[i].take()) {
            Some(r) => pair(x, r),
            None => unpaired.push(x),
        }
    }
    out.extend(unpaired.into_iter().map(|x| InputDifference {
        kind: Kind::Count,
        at: x.1,
        was: None,
        now: Some(x.0.clone()),
        was_at: None,
    }));
    out.extend(rest.into_iter().flatten().map(|r| InputDifference {
        kind: Kind::Count,
        at: r.1,
        was: Some(r.0.clone()),
        now: None,
        was_at: Some(r.1),
    }));
    out
}

fn shown(inputs: &[InputDifference], kind: Kind) -> Vec<Difference> {
    let text = |t: &Option<Type>| t.as_ref().map_or("none".to_owned(), Type::to_string);
    inputs
        .iter()
        .filter(|d| d.kind == kind)
        .map(|d| Difference {
            what: "input".into(),
            was: text(&d.was),
            now: text(&d.now),
            was_at: d.was_at,
            now_at: d.now.is_some().then_some(d.at),
        })
        .collect()
}

/// Which steps of two programs correspond.
struct Aligned {
    /// `(new, old)`
    pairs: Vec<(u32, u32)>,
    only_new: Vec<u32>,
    only_old: Vec<u32>,
}

/// Common start and end by op and line; what lies between by op and line again, in order.
fn align(new: &Record, old: &Record) -> Aligned {
    let same = |a: &Step, b: &Step| a.op.id == b.op.id && same_place(a.at, b.at);
    let (n, o) = (&new.steps, &old.steps);
    // The same ops from other lines are the same program: compare by op alone when that fits throughout.
    if n.len() == o.len() && n.iter().zip(o).all(|(a, b)| a.op.id == b.op.id) {
        let pairs = (0..n.len() as u32).map(|i| (i, i)).collect();
        return Aligned { pairs, only_new: vec![], only_old: vec![] };
    }
    let shorter = n.len().min(o.len());
    let start = (0..shorter).take_while(|&i| same(&n[i], &o[i])).count();
    let end = (0..shorter - start).take_while(|&i| same(&n[n.len() - 1 - i], &o[o.len() - 1 - i])).count();
    let mut aligned =
        Aligned { pairs: (0..start as u32).map(|i| (i, i)).collect(), only_new: vec![], only_old: vec![] };
    let mut waiting: HashMap<(u32, u32, &str), VecDeque<u32>> = HashMap::new();
    for (j, step) in o.iter().enumerate().take(o.len() - end).skip(start) {
        waiting.entry((step.op.id, step.at.line(), step.at.file())).or_default().push_back(j as u32);
    }
    for (i, step) in n.iter().enumerate().take(n.len() - end).skip(start) {
        match waiting.get_mut(&(step.op.id, step.at.line(), step.at.file())).and_then(VecDeque::pop_front) {
            Some(j) => aligned.pairs.push((i as u32, j)),
            None => aligned.only_new.push(i as u32),
        }
    }
    aligned.only_old = waiting.into_values().flatten().collect();
    aligned.only_old.sort_unstable();
    aligned.pairs.extend((0..end).map(|i| ((n.len() - 1 - i) as u32, (o.len() - 1 - i) as u32)));
    aligned.pairs.sort_unstable();
    aligned
}

/// `1 result`, `2 results`.
fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn describe(step: &Step) -> String {
    format!("{} → {}", step.op.name, step.ty)
}

impl Aligned {
    fn differences(&self, new: &Record, old: &Record) -> Vec<Difference> {
        let mut out = Vec::new();
        for &i in &self.only_new {
            let s = &new.steps[i as usize];
            let difference = Difference {
                what: "op".into(),
                was: "none".into(),
                now: describe(s),
                was_at: None,
                now_at: Some(s.at),
            };
            out.push(difference);
        }
        for &j in &self.only_old {
            let s = &old.steps[j as usize];
            let difference = Difference {
                what: "op".into(),
                was: describe(s),
                now: "none".into(),
                was_at: Some(s.at),
                now_at: None,
            };
            out.push(difference);
        }
        out
    }

    /// The line behind a difference of structure: where a new input was made, else the first op that is new.
    fn fault(&self, new: &Record, old: &Record, inputs: &[InputDifference]) -> Place {
        let known: HashSet<(u32, &str)> = old.leaves.iter().map(|l| (l.at.line(), l.at.file())).collect();
        let fresh = inputs.iter().find(|d| d.now.is_some() && !known.contains(&(d.at.line(), d.at.file())));
        fresh
            .map(|d| d.at)
            .or_else(|| self.only_new.first().map(|&i| new.steps[i as usize].at))
            .or_else(|| self.only_old.first().map(|&j| old.steps[j as usize].at))
            .unwrap_or(new.site)
    }
}

/// The first attribute that differs although all operands of its op are alike: later ones follow from it.
fn attribute_difference(
    new: &Record,
    old: &Record,
    pairs: &[(u32, u32)],
) -> Option<(Class, Place, Difference, String)> {
    for &(i, j) in pairs {
        let (a, b) = (&new.steps[i as usize], &old.steps[j as usize]);
        let Some(k) = (0..a.attrs.len().min(b.attrs.len())).find(|&k| a.attrs[k] != b.attrs[k]) else { continue };
        let name = a.op.attrs.get(k).copied().unwrap_or("attribute");
        let class = match name {
            "size" | "shape" | "steps" => Class::Shape,
            "dtype" => Class::Dtype,
            "dim" | "dims" | "start" | "end" | "step" | "index" | "low" | "high" | "interior" | "diagonal" => {
                Class::Index
            }
            _ => Class::Constant,
        };
        let fix = match class {
            Class::Shape => {
                let ty = |s: &Step| Some(s.ty.clone());
                shape_fix(ty(b).as_ref(), ty(a).as_ref(), new, a.at)
            }
            Class::Dtype => format!("keep the dtype: convert once, before the step, with `.to({})`", b.attrs[k]),
            Class::Index => format!(
                "`{name}` of {} is part of the program: keep it fixed, or select by a tensor of positions (`index_select`), \
                 which is data",
                a.op.name
            ),
            _ => format!(
                "`{name}` of {} is part of the program: keep it fixed, or pass the number as a tensor",
                a.op.name
            ),
        };
        let difference = Difference {
            what: format!("attribute `{name}` of {}", a.op.name),
            was: attr(&b.attrs[k]),
            now: attr(&a.attrs[k]),
            was_at: Some(b.at),
            now_at: Some(a.at),
        };
        return Some((class, a.at, difference, fix));
    }
    None
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

fn attr(a: &Attr) -> String {
    a.to_string()
}

/// The first op that takes another operand than before.
fn wiring_difference(new: &Record, old: &Record, pairs: &[(u32, u32)]) -> Option<(Place, Difference)> {
    let name = |i: &Input, r: &Record| match *i {
        Input::Leaf(l) => format!("input {} ({})", l + 1, r.leaves[l as usize].ty),
        Input::Step(s) => describe(&r.steps[s as usize]),
    };
    pairs.iter().find_map(|&(i, j)| {
        let (a, b) = (&new.steps[i as usize], &old.steps[j as usize]);
        let k = (0..a.inputs.len().max(b.inputs.len())).find(|&k| a.inputs.get(k) != b.inputs.get(k))?;
        let text = |x: Option<&Input>, r: &Record| x.map_or("none".to_owned(), |x| name(x, r));
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
    new.leaves
        .iter()
        .zip(&old.leaves)
        .filter(|(n, o)| n.donate != o.donate)
        .map(|(n, o)| Difference {
            what: format!("buffer of input {}", n.ty),
            was: say(o.donate),
            now: say(n.donate),
            was_at: Some(o.at),
            now_at: Some(n.at),
        })
        .collect()
}

fn donation_fix(new: &Record, leaf: usize) -> String {
    match new.leaves[leaf].donate {
        true => "nothing holds the old value any more, so its buffer is reused: expected once".into(),
        false => "something still holds the old value (a variable, a kept result that needs gradients): drop it, or \
                  `detach()` what you keep"
            .into(),
    }
}

fn roots(new: &Record, old: &Record) -> Explanation {
    let results = |r: &Record| -> Vec<(String, Place)> {
        r.roots.iter().map(|&i| (describe(&r.steps[i as usize]), r.steps[i as usize].at)).collect()
    };
    let (n, o) = (results(new), results(old));
    let missing = |from: &[(String, Place)], of: &[(String, Place)]| -> Vec<(String, Place)> {
        let mut rest: Vec<&(String, Place)> = of.iter().collect();
        from.iter()
            .filter(|x| match rest.iter().position(|r| r.0 == x.0 && same_place(r.1, x.1)) {
                Some(i) => {
                    rest.swap_remove(i);
                    false
                }
                None => true,
            })
            .cloned()
            .collect()
    };
    let (gained, lost) = (missing(&n, &o), missing(&o, &n));
    let mut differences: Vec<Difference> = Vec::new();
    for (text, at) in &lost {
        differences.push(Difference {
            what: "result".into(),
            was: text.clone(),
            now: "not asked for".into(),
            was_at: Some(at),
            now_at: None,
        });
    }
    for (text, at) in &gained {
        differences.push(Difference {
            what: "result".into(),
            was: "not asked for".into(),
            now: text.clone(),
            was_at: None,
            now_at: Some(at),
        });
    }
    let at = lost.first().or(gained.first()).map_or(new.site, |x| x.1);
    let fix = format!(
        "the last sync gave {}, this one {}: keep the same tensors alive at every sync, and read values after it",
        count(o.len(), "result"),
        count(n.len(), "result")
    );
    Explanation {
        class: Class::Roots,
        at,
        differences,
        fix,
        compared_with: old.number,
        healable: vec![],
        healed: false,
    }
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

fn early_read(new: &Record, old: &Record) -> Explanation {
    let differences = vec![Difference {
        what: "program".into(),
        was: format!("{} ops, {} results, at the {}", old.steps.len(), old.roots.len(), old.cause.name()),
        now: format!("{} ops for the one value read", new.steps.len()),
        was_at: Some(old.site),
        now_at: Some(new.site),
    }];
    let left = match new.left_pending {
        0 => String::new(),
        n => format!(" ({} stay pending)", count(n, "other result")),
    };
    let fix = format!(
        "read after the barrier, when the value is there already: move this line behind `sync()`{left}; compiled once, the \
         read costs {} ops each time",
        new.steps.len()
    );
    Explanation {
        class: Class::EarlyRead,
        at: new.site,
        differences,
        fix,
        compared_with: old.number,
        healable: vec![],
        healed: false,
    }
}

fn control_flow_fix(new: &Record) -> String {
    format!(
        "the ops depend on the value read at {}: choose on the device with `where_(&condition, &a, &b)`, so that one program \
         serves both ways",
        location(new.reads[0])
    )
}

fn dtype_fix(d: &InputDifference) -> String {
    match &d.was {
        Some(was) => format!(
            "convert where the data come in: `.to({})` on what was made at {}",
            was.dtype.name().to_uppercase(),
            location(d.at)
        ),
        None => "convert where the data come in".into(),
    }
}

fn shape_fix(was: Option<&Type>, now: Option<&Type>, new: &Record, at: Place) -> String {
    let (Some(was), Some(now)) = (was, now) else { return "pad to one shape".into() };
    let concrete = new.steps.iter().any(|s| s.op.name == "nonzero" || s.op.name == "masked_select")
        || new.reads.iter().any(|r| same_place(r, at));
    if concrete {
        return format!(
            "the size depends on the data ({} became {}): keep the shape with `where_(&mask, &x, 0.0)` or multiply by the mask",
            was.shape, now.shape
        );
    }
    if was.shape.len() != now.shape.len() {
        return format!("the number of dimensions changed ({} to {}): reshape before the step", was.shape, now.shape);
    }
    let Some(d) = (0..was.shape.len()).find(|&d| was.shape[d] != now.shape[d]) else {
        return "pad to one shape".into();
    };
    let (a, b) = (was.shape[d], now.shape[d]);
    match d == 0 && b < a {
        true => format!(
            "a short last batch: `drop_last: true` in the loader's options, or pad {b} rows to {a} and mask them out of the loss"
        ),
        false => {
            let bucket = a.max(b).next_power_of_two();
            format!(
                "dimension {d} changed from {a} to {b}: pad to a few sizes (such as {bucket}) and mask, one program each"
            )
        }
    }
}

fn structure_fix(new: &Record, old: &Record, aligned: &Aligned) -> String {
    let line = |s: &Step| (s.at.line(), s.at.file());
    // One line that was run another number of times: a loop, or a cell run again.
    if let Some(&i) = aligned.only_new.first().or(aligned.only_old.first()) {
        let step = if aligned.only_new.is_empty() { &old.steps[i as usize] } else { &new.steps[i as usize] };
        let runs = |r: &Record| r.steps.iter().filter(|s| s.op.id == step.op.id && line(s) == line(step)).count();
        let (now, was) = (runs(new), runs(old));
        if now != was && now > 0 && was > 0 {
            return format!(
                "the line at {} ran {} before this sync, {} before the last one: `sync()` at the end of each \
                 round, so that every round is the same program",
                location(step.at),
                count(now, "time"),
                count(was, "time")
            );
        }
    }
    let (more, fewer) = (aligned.only_new.len(), aligned.only_old.len());
    format!(
        "{} new and {fewer} gone: expected once if you changed the model; do all such changes before training",
        count(more, "op")
    )
}
