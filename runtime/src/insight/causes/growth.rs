//! A value grows from step to step: what a step joins to it (`cat`, `stack`) is joined to again by the next.
use super::claim::Claim;
use super::keep::{ours, write_at};
use super::shape::{self, buckets, sorted};
use crate::insight::evidence::{Evidence, Ops, What, words};
use crate::insight::mode::Derived;
use crate::insight::record::{LeafRecord, Record, same_place};
use crate::insight::report::{Class, Difference, Place};
use xlazy_core::ir::{Attr, Input, Kind, Step};
use xlazy_core::text::{called, location};
use xlazy_core::ty::Type;
use xlazy_mime::count;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.is_part() {
        return None;
    }
    grown(e).or_else(|| begun(e)).or_else(|| joined_before(e)).or_else(|| list(e))
}

/// Inputs that an earlier step joined, larger by what that step added.
fn grown(e: &Evidence) -> Option<Claim> {
    let one = |&(_, new, old): &(usize, &LeafRecord, &LeafRecord)| {
        let longer = new.ty.dtype == old.ty.dtype
            && new.ty.shape.len() == old.ty.shape.len()
            && new.ty.shape.iter().zip(old.ty.shape.iter()).filter(|(a, b)| a != b).count() == 1;
        new.made_by.kind == Kind::Concat && longer && !new.scalar
    };
    let all: Vec<(usize, &LeafRecord, &LeafRecord)> = e.inputs().filter(one).collect();
    let &(_, new, old) = all.first()?;
    let d = changed(&new.ty, &old.ty)?;
    let sizes: Vec<usize> = e
        .known
        .iter()
        .filter(|r| same_place(r.site, e.new.site))
        .flat_map(|r| &r.leaves)
        .filter(|l| same_place(l.at, new.at))
        .filter_map(|l| l.ty.shape.get(d).copied())
        .chain([new.ty.shape[d], old.ty.shape[d]])
        .collect();
    let sizes = sorted(sizes);
    let differences: Vec<Difference> = all.iter().map(|(_, n, o)| words::input(n, o)).collect();
    let mut covers: Vec<usize> = all.iter().map(|a| a.0).collect();
    covers.extend(e.numbered(|what| matches!(what, What::Donation(_))));
    Some(Claim::new(covers, Class::Shape, new.at, differences, fix(e.new, new.made_by.name, new.at, d, &sizes, None)))
}

fn changed(a: &Type, b: &Type) -> Option<usize> {
    (0..a.shape.len()).find(|&d| a.shape.get(d) != b.shape.get(d))
}

/// The first step that joins: what an earlier one made is an operand, and the result is kept.
fn begun(e: &Evidence) -> Option<Claim> {
    let join = |ops: &Ops| {
        ops.new.iter().copied().find(|&i| {
            let s = &e.new.steps[i as usize];
            let state = |input: &Input| match input {
                Input::Leaf(l) => e.new.leaves[*l as usize].computed,
                Input::Step(_) => false,
            };
            s.op.kind == Kind::Concat && s.inputs.iter().any(state) && e.new.roots.contains(&i)
        })
    };
    let found: Vec<(usize, &Ops, u32)> = e.ops().filter_map(|(r, ops)| Some((r, ops, join(ops)?))).collect();
    let (_, _, first) = found.first()?;
    let s = &e.new.steps[*first as usize];
    let d = dim(s);
    let taken = s.inputs.iter().find_map(|i| match i {
        Input::Leaf(l) => e.new.leaves[*l as usize].ty.shape.get(d).copied(),
        Input::Step(_) => None,
    });
    let sizes: Vec<usize> = taken.into_iter().chain(s.ty.shape.get(d).copied()).collect();
    let mut covers: Vec<usize> = found.iter().map(|f| f.0).collect();
    covers = super::claim::with_results(e, covers);
    let mut differences: Vec<Difference> = vec![Difference::gained("op", words::describe(s), s.at)];
    let rest = found.iter().flat_map(|f| words::ops(e, f.1));
    differences.extend(rest.filter(|x| !(x.now_at == Some(s.at) && x.now == words::describe(s))));
    Some(Claim::new(covers, Class::Structure, s.at, differences, fix(e.new, s.op.name, s.at, d, &sizes, Some(s))))
}

/// A read that needs what earlier rounds joined: to what the program before took as it was, or to what such a join gives.
fn joined_before(e: &Evidence) -> Option<Claim> {
    let (new, old) = (e.new, e.old);
    if !same_place(new.site, old.site) {
        return None;
    }
    let joins =
        |r: &Record, at: Place| r.steps.iter().filter(|s| s.op.kind == Kind::Concat && same_place(s.at, at)).count();
    let taken = |input: &Input, at: Place| match input {
        Input::Leaf(l) => {
            let leaf = &new.leaves[*l as usize];
            old.leaves.iter().any(|m| m.ty == leaf.ty && same_place(m.at, leaf.at))
        }
        Input::Step(j) => {
            let s = &new.steps[*j as usize];
            s.op.kind == Kind::Concat && same_place(s.at, at)
        }
    };
    let before = new.read_before.unwrap_or(0);
    // What the program before gave is joined.
    let given = |input: &Input| match input {
        Input::Leaf(l) => {
            let leaf = &new.leaves[*l as usize];
            leaf.computed && old.roots.iter().any(|&r| same_place(old.steps[r as usize].at, leaf.at))
        }
        Input::Step(_) => false,
    };
    let joins_on = |s: &&Step| {
        let earlier = s.seq <= before || s.inputs.iter().any(given);
        s.op.kind == Kind::Concat && earlier && s.inputs.iter().any(|input| taken(input, s.at))
    };
    let all: Vec<&Step> = new.steps.iter().filter(joins_on).collect();
    let last = *all.last().filter(|s| joins(new, s.at) > joins(old, s.at))?;
    let d = dim(last);
    // How long it was, and is.
    let first = all.iter().find(|s| same_place(s.at, last.at)).unwrap_or(&last);
    let size = |input: &Input| match input {
        Input::Leaf(l) => new.leaves[*l as usize].ty.shape.get(d).copied(),
        Input::Step(j) => new.steps[*j as usize].ty.shape.get(d).copied(),
    };
    let was = first.inputs.iter().filter(|input| taken(input, first.at)).filter_map(size).max();
    let sizes: Vec<usize> = was.into_iter().chain(last.ty.shape.get(d).copied()).collect();
    let covers = super::claim::with_results(e, super::claim::all_ops(e));
    let differences: Vec<Difference> = e.ops().flat_map(|(_, ops)| words::ops(e, ops)).collect();
    let differences = words::first_at(differences, last.at);
    let fix = fix(new, last.op.name, last.at, d, &sizes, Some(last));
    Some(Claim::new(covers, Class::Structure, last.at, differences, fix))
}

/// The dimension along which it joins: where the result is longer than an operand.
fn dim(s: &Step) -> usize {
    s.attrs.first().and_then(|a| if let Attr::Int(d) = a { usize::try_from(*d).ok() } else { None }).unwrap_or(0)
}

/// One join of more tensors than before.
fn list(e: &Evidence) -> Option<Claim> {
    if !e.open().any(|(_, what)| matches!(what, What::Wiring(..) | What::Ops(_))) {
        return None;
    }
    let longer = |&&p: &&(u32, u32)| {
        let (a, b) = e.pair(p);
        a.op.kind == Kind::Concat && a.inputs.len() != b.inputs.len()
    };
    let &p = e.aligned.pairs.iter().find(longer)?;
    let (a, b) = e.pair(p);
    // Of as many more, with what makes each of them.
    let takes = |what: &What| match what {
        What::Wiring(i, ..) => *i == p.0,
        What::Ops(ops) => {
            let into = |i: &u32| a.inputs.contains(&Input::Step(*i));
            let from = |j: &u32| b.inputs.contains(&Input::Step(*j));
            ops.new.iter().any(into) || ops.old.iter().any(from) || ops.derived
        }
        _ => false,
    };
    let mut covers = e.numbered(takes);
    // What is as long as the list goes with it.
    let (now, was) = (a.inputs.len(), b.inputs.len());
    let as_long = |new: &LeafRecord, old: &LeafRecord| {
        changed(&new.ty, &old.ty).is_some_and(|d| new.ty.shape[d] == now && old.ty.shape.get(d) == Some(&was))
    };
    covers.extend(e.inputs().filter(|(_, new, old)| as_long(new, old)).map(|(r, ..)| r));
    let covers = super::claim::with_results(e, covers);
    if e.weight(&covers) == 0 {
        return None;
    }
    let mut differences = vec![Difference {
        what: format!("the list that {} joins", called(a.at).unwrap_or_else(|| a.op.torch_name().to_owned())),
        was: count(b.inputs.len(), "tensor"),
        now: count(a.inputs.len(), "tensor"),
        was_at: Some(b.at),
        now_at: Some(a.at),
    }];
    differences.extend(e.ops().filter(|(r, _)| covers.contains(r)).flat_map(|(_, ops)| words::ops(e, ops)));
    let all = format!(
        "the list that is joined at {} has {}, had {}",
        location(a.at),
        count(a.inputs.len(), "tensor"),
        b.inputs.len()
    );
    let otherwise = || {
        let write = write_at(e.new);
        let read = ours(e.new, "read each after `sync()` and ", "");
        format!("{all}: allocate one tensor at its largest size and {write}, or {read}join the values on the host")
    };
    let fix = in_one_call(e, a, b).map_or_else(otherwise, |call| format!("{all}, and {call}"));
    Some(Claim::new(covers, Class::Structure, a.at, differences, fix))
}

/// What to do where gradients go through each tensor of a list: neither can those be written to a place nor joined on the host.
fn in_one_call(e: &Evidence, a: &Step, b: &Step) -> Option<String> {
    let trains = (0..e.new.steps.len() as u32).any(|i| e.new.derived(i) == Some(Derived::Gradient));
    let computed = a.inputs.iter().any(|input| matches!(input, Input::Step(_)));
    if !(e.new.session && trains && computed) {
        return None;
    }
    let joined = |s: &&Step| s.op.kind == Kind::Concat && same_place(s.at, a.at);
    let earlier = e.known.iter().flat_map(|r| r.steps.iter().filter(joined)).map(|s| s.inputs.len());
    let sizes = sorted(earlier.chain([a.inputs.len(), b.inputs.len()]).collect());
    let pad = shape::list(&buckets(&sizes));
    // What goes into each of them.
    let given = e.ops().flat_map(|(_, ops)| &ops.gains).map(|l| &e.new.leaves[*l as usize]).find(|l| !l.scalar);
    let given = given.map_or("it is made of".to_owned(), |l| format!("goes in at {}", location(l.at)));
    let reads = e.known.iter().any(|r| r.is_read() && r.site.file() == e.new.site.file());
    let decided = if reads { "; what is read on the way, to decide by it, comes of `no_grad(|| …)`" } else { "" };
    Some(format!(
        "gradients go through each of them, so that each length is a program: collect what {given} on the host, make one tensor of \
         all with `.dynamic(0).buckets([{pad}])`, and compute the list in one call{decided}"
    ))
}

fn fix(new: &Record, op: &str, at: Place, d: usize, sizes: &[usize], first: Option<&Step>) -> String {
    let sizes = shape::list(sizes);
    let so_far = match first {
        Some(_) => format!("it will be longer at every step, and each length is a program (dimension {d}: {sizes}, …)"),
        None => format!("dimension {d} has been {sizes}"),
    };
    format!(
        "it grows by `{op}` at {} ({so_far}): allocate it once at its largest size, {}, and mask what is not filled; then every step \
         is the same program",
        location(at),
        write_at(new)
    )
}
