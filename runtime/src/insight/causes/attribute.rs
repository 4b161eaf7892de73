//! A part of an op that is fixed when the program is compiled changed: a position, a size, a constant, an axis, a dtype.
use super::claim::Claim;
use super::keep::{mask, once, ours, stay};
use super::shape::{Seen, past};
use crate::insight::evidence::{Evidence, Ops, What, words};
use crate::insight::record::{Record, same_place};
use crate::insight::report::{Class, Difference, Place};
use xlazy_core::ir::{Attr, AttrDef, Bodies, BodyDifference, Kind, OpDef, Role, Step};
use xlazy_core::text::{called, location};

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let (first, pairs) = e.attrs().next()?;
    let (a, b) = e.pair(pairs[0]);
    if let Some(claim) = call(e, first, pairs, a, b) {
        return Some(claim);
    }
    if a.op.id != b.op.id {
        return Some(other_form(e, first, a, b));
    }
    let k = (0..a.attrs.len()).find(|&k| a.attrs[k] != b.attrs[k])?;
    let attr = &a.op.attrs[k];
    let class = match class_of(attr) {
        // A window over another dimension, say: what it gives is as large.
        Class::Shape if !e.new.session && a.ty.shape == b.ty.shape => Class::Index,
        // More or fewer numbers: what they are is not what is another program.
        Class::Constant if a.ty.shape != b.ty.shape && a.inputs.is_empty() => Class::Shape,
        class => class,
    };
    let past = past(e.new, pairs[0].0, e.known);
    let seen = Seen::of_step(e.new, a, &past);
    let fix = match class {
        Class::Shape if (0..a.inputs.len()).all(|k| super::number::number_of(a, k, e.new).is_some()) => {
            super::shape::made_here(e, pairs[0].0, &seen, &b.ty, &a.ty).into()
        }
        Class::Shape if a.op.kind == Kind::View && a.ty.shape.numel() != b.ty.shape.numel() => {
            super::shape::fix(e, &b.ty, &a.ty, &seen, None)
        }
        _ => fix(class, attr, a, b, k, &past, e.new).into(),
    };
    let all = changed(e);
    // All that change at once can become parameters at once; otherwise each is told with its own advice.
    if let Some(healable) = healable(e, &all) {
        let differences = e.attrs().flat_map(|(_, pairs)| pairs).filter_map(|&p| words::attribute(e, p)).collect();
        let covers = e.attrs().map(|(r, _)| r).collect();
        let class = inner(&a.attrs[k], &b.attrs[k]).map_or(class, class_of);
        return Some(Claim { healable, ..Claim::new(covers, class, a.at, differences, fix) });
    }
    let differences = pairs.iter().filter_map(|&p| words::attribute(e, p)).collect();
    Some(Claim::new(with_line(e, first, a.at), class, a.at, differences, fix))
}

/// The attribute of an op of a body that is all that differs of it first.
fn inner(now: &Attr, was: &Attr) -> Option<&'static AttrDef> {
    let (Attr::Region(_), Attr::Region(_)) = (now, was) else { return None };
    match Bodies::of(now).differs(Bodies::of(was))? {
        BodyDifference::Op(now, was) if now.op.id == was.op.id => {
            let k = now.attrs.iter().zip(&was.attrs).position(|(a, b)| a != b)?;
            now.op.attrs.get(k)
        }
        _ => None,
    }
}

/// In a text a call of the user's is several ops: what else differs between those of its line goes with it.
fn with_line(e: &Evidence, first: usize, at: Place) -> Vec<usize> {
    let here = |r: &Record, all: &[u32]| all.iter().all(|&i| r.steps[i as usize].at == at);
    let beside = |what: &What| match what {
        What::Wiring(i, ..) => e.new.steps[*i as usize].at == at,
        What::Ops(ops) => here(e.new, &ops.new) && here(e.old, &ops.old),
        _ => false,
    };
    let beside = if e.new.session { vec![] } else { e.numbered(beside) };
    std::iter::once(first).chain(beside).collect()
}

/// Every op of which only attributes differ, gradients among them: if these become parameters, nothing differs any more.
fn changed(e: &Evidence) -> Vec<(u32, u32)> {
    let differs = |&&p: &&(u32, u32)| {
        let (a, b) = e.pair(p);
        !a.attrs.is_empty() && a.attrs != b.attrs
    };
    e.aligned.pairs.iter().filter(differs).copied().collect()
}

/// Whether an attribute differs between ops of two lines.
pub(super) fn changed_elsewhere(e: &Evidence) -> bool {
    changed(e).into_iter().map(|pair| e.pair(pair)).any(|(a, b)| !same_place(a.at, b.at))
}

/// What was a part of the program is a parameter now, or the other way round.
fn other_form(e: &Evidence, root: usize, a: &Step, b: &Step) -> Claim {
    let now = a.inputs.len() > b.inputs.len();
    let missing = if now { b.op.attrs.iter().find(|x| !a.op.attrs.iter().any(|y| x.name == y.name)) } else { None };
    let name = missing.map_or("attribute", |attr| attr.name);
    let say = |parameter: bool| if parameter { "a parameter" } else { "a part of the program" }.to_owned();
    let difference = Difference {
        what: format!("attribute `{name}` of {}", a.op.torch_name()),
        was: say(!now),
        now: say(now),
        was_at: Some(b.at),
        now_at: Some(a.at),
    };
    let class = missing.map_or(Class::Index, class_of);
    let fix = "healed: this program takes it as a parameter, too; expected once, and then it compiles nothing more";
    let mut covers = vec![root];
    covers.extend(
        e.attrs().filter(|(_, pairs)| pairs.iter().all(|&p| e.pair(p).0.op.id != e.pair(p).1.op.id)).map(|(r, _)| r),
    );
    Claim::new(covers, class, a.at, vec![difference], fix)
}

/// What the role of an attribute makes of its change.
fn class_of(attr: &AttrDef) -> Class {
    match attr.role {
        Role::Size => Class::Shape,
        Role::Dtype => Class::Dtype,
        Role::Position | Role::Axis | Role::Stride => Class::Index,
        Role::Constant | Role::Mode => Class::Constant,
        Role::Device => Class::Device,
        Role::Sharding => Class::Sharding,
        Role::Body => Class::Structure,
    }
}

/// Several ops of one call of user code: the call is told, by its name and what it gives.
fn call(e: &Evidence, root: usize, pairs: &[(u32, u32)], a: &Step, b: &Step) -> Option<Claim> {
    let line = |r: &'_ Record, at: Place| r.steps.iter().filter(|s| same_place(s.at, at)).count();
    if line(e.new, a.at) < 2
        || pairs.len() < 2 && line(e.new, a.at) == line(e.old, b.at) && healable(e, pairs).is_some()
    {
        return None;
    }
    let name = called(a.at)?;
    let (now, was) = (Evidence::result_of(e.new, a.at)?, Evidence::result_of(e.old, b.at)?);
    if now.ty == was.ty || name == a.op.torch_name() {
        return None;
    }
    let (class, differs) = match (now.ty.shape == was.ty.shape, now.ty.dtype == was.ty.dtype) {
        (false, _) => (Class::Shape, "size"),
        (true, false) => (Class::Dtype, "dtype"),
        _ => (Class::Constant, "value"),
    };
    // Ops of the same call that came or went go with it.
    let of_call = |ops: &Ops| e.begins(ops).is_some_and(|(at, _)| same_place(at, a.at));
    let covers = e.ops().filter(|(_, ops)| of_call(ops)).map(|(r, _)| r).chain([root]).collect();
    let mut seen: Vec<String> = Vec::new();
    let here = e.known.iter().filter(|r| same_place(r.site, e.new.site));
    for ty in here
        .filter_map(|r| Evidence::result_of(r, a.at))
        .map(|s| s.ty.to_string())
        .chain([was.ty.to_string(), now.ty.to_string()])
    {
        if !seen.contains(&ty) {
            seen.push(ty);
        }
    }
    let difference = Difference {
        what: format!("the result of `{name}`"),
        was: was.ty.to_string(),
        now: now.ty.to_string(),
        was_at: Some(b.at),
        now_at: Some(a.at),
    };
    let fix = format!(
        "`{name}` at {} has had {} of {differs} ({}): each is a program, compiled once, and {}; if there are many, make one \
         size, the largest, in every step and mask what is too much, or do it on the host",
        location(a.at),
        xlazy_mime::count(seen.len(), "form"),
        seen.join(", "),
        stay(e.new, "all")
    );
    Some(Claim::new(covers, class, a.at, vec![difference], fix))
}

/// The ops whose attributes can become parameters, where those of all of these can.
fn healable(e: &Evidence, pairs: &[(u32, u32)]) -> Option<Vec<(&'static OpDef, Place)>> {
    let one = |&p: &(u32, u32)| {
        let (a, b) = e.pair(p);
        match a.op.id == b.op.id {
            true if a.op.heals(&b.attrs, &a.attrs) => Some(vec![(a.op, a.at)]),
            true => Bodies::lifted(&a.attrs, &b.attrs),
            false => None,
        }
    };
    let all: Option<Vec<_>> = pairs.iter().map(one).collect();
    all.map(|lifts| lifts.concat())
}

/// The attribute at `k`; `past` is what the op was in earlier programs.
fn fix(class: Class, attr: &AttrDef, step: &Step, old: &Step, k: usize, past: &[&Step], new: &Record) -> String {
    let name = attr.name;
    let (op, was) = (step.op.torch_name(), old.attrs[k].to_string());
    let mut values: Vec<String> = Vec::new();
    for s in past.iter().copied().chain([old, step]) {
        let value = s.attrs.get(k).map(ToString::to_string).unwrap_or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    // A second value may be the last one; a third tells that there will be more.
    let been = match values.len() {
        0..=2 => String::new(),
        3 => format!(" and has a third value ({})", values.join(", ")),
        n => format!(" and has a {n}th value ({})", values.join(", ")),
    };
    match class {
        _ if attr.advice.is_some() => {
            format!("`{name}` of {op} is part of the program: {}", attr.advice.unwrap_or_default())
        }
        _ if attr.role == Role::Axis => {
            format!("{op} along another dimension is another program: expected once for each, and {}", stay(new, "all"))
        }
        Class::Index | Class::Shape if step.op.kind != Kind::View && step.ty.shape != old.ty.shape => {
            let all = past.iter().map(|s| &s.ty).filter(|t| t.shape.len() == step.ty.shape.len());
            let largest = [&old.ty].into_iter().chain(all).fold(step.ty.shape.to_vec(), |most, t| {
                most.iter().zip(t.shape.iter()).map(|(a, b)| *a.max(b)).collect()
            });
            let differ = (0..step.attrs.len()).filter(|&k| step.attrs[k] != old.attrs[k]);
            let names: Vec<String> = differ.map(|k| format!("`{}`", step.op.attrs[k].name)).collect();
            let (what, been) = match &names[..] {
                [one] => (format!("{one} of {op} decides"), been),
                several => (format!("{} of {op} decide", several.join(" and ")), String::new()),
            };
            format!(
                "{what} how large the result is{been}: take the largest, {largest:?}, in every step and {}",
                mask(new)
            )
        }
        Class::Dtype => {
            let (was, now) = (old.ty.dtype, step.ty.dtype);
            format!(
                "the dtype is part of the program: keep one in every step; {} holds the values of {} and {}",
                was.promote(now).name(),
                was.name(),
                now.name()
            )
        }
        Class::Index => format!(
            "`{name}` of {op} is part of the program{been}: keep it fixed, or select by a tensor of positions \
             ({}), which is data",
            ours(new, "`index_select`", "a gather")
        ),
        _ => format!(
            "`{name}` of {op} is part of the program{been}: keep it at {was}; values that come by turns are a program each, \
             {}",
            once(new, "all")
        ),
    }
}
