//! A model has other parameters: a layer more or less, other sizes, or it is another model.
use super::claim::Claim;
use super::keep::stay;
use crate::insight::evidence::{Evidence, Ops, What, words};
use crate::insight::record::{LeafRecord, Record, same_place};
use crate::insight::report::{Class, Difference, Place};
use std::collections::HashSet;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.is_part() {
        return None;
    }
    in_turn(e).or_else(|| sized(e)).or_else(|| other(e)).or_else(|| layers(e))
}

/// A line that reads one tensor after the other, all of which are there, such as the parameters of one model, or their gradients.
fn in_turn(e: &Evidence) -> Option<Claim> {
    let (new, old) = (only_input(e.new)?, only_input(e.old)?);
    let there = e.old.steps.first().is_some_and(|s| new.lineage < s.seq);
    let stay_there = new.lasts() && old.lasts() || new.computed && old.computed;
    let another = new.lineage != old.lineage && new.ty.shape != old.ty.shape && stay_there;
    if !there || !another || !same_place(e.new.site, e.old.site) {
        return None;
    }
    let stay = stay(e.new, "all of them");
    let fix = format!(
        "another tensor, which is read at the same line: expected once for each shape, and {stay}; computed first and shown together \
         (a `Vec` of results), all of them are one program"
    );
    let (was_at, now_at) = (Some(e.old.site), Some(e.new.site));
    let difference = Difference { was_at, now_at, ..words::input(new, old) };
    Some(Claim::new(e.numbered(|_| true), Class::Shape, e.new.site, vec![difference], fix))
}

/// The tensor that a program takes, where it is the only one.
fn only_input(r: &Record) -> Option<&LeafRecord> {
    let mut all = r.leaves.iter().filter(|l| !l.scalar);
    all.next().filter(|_| all.next().is_none())
}

/// Parameters of other sizes.
fn sized(e: &Evidence) -> Option<Claim> {
    let parameter = |&(_, new, old): &(usize, &LeafRecord, &LeafRecord)| {
        (new.parameter || old.parameter)
            && new.ty.shape != old.ty.shape
            && new.ty.dtype == old.ty.dtype
            && !e.were_together(new, old)
    };
    let (_, first, _) = e.inputs().find(parameter)?;
    let shapes = |what: &What| match *what {
        What::Input(l, m) => e.new.leaves[l as usize].ty.shape != e.old.leaves[m as usize].ty.shape,
        What::Ops(_) | What::Attrs(_) => true,
        _ => false,
    };
    let covers = super::claim::with_results(e, e.numbered(shapes));
    let mut differences: Vec<Difference> =
        e.inputs().filter(|(_, n, o)| n.ty.shape != o.ty.shape).map(|(_, n, o)| words::input(n, o)).collect();
    differences.extend(e.ops().flat_map(|(_, ops)| words::ops(e, ops)));
    Some(Claim::new(covers, Class::Structure, first.at, differences, another_model(e.new, programs(e) + 1)))
}

/// How many programs this barrier had before.
fn programs(e: &Evidence) -> usize {
    e.known.iter().filter(|r| same_place(r.site, e.new.site)).map(|r| r.hash).collect::<HashSet<_>>().len()
}

fn another_model(new: &Record, programs: usize) -> String {
    let stay = match programs > new.room.programs {
        true => format!(
            "while the cache, of at most {} now, has room for all: `insight::set_cache_capacity({programs})`",
            new.room.programs
        ),
        false => format!("and {}", stay(new, "all of them")),
    };
    format!("another model, or the same built with other sizes: expected once for each, {stay}")
}

/// The same lines with other parameters throughout.
fn other(e: &Evidence) -> Option<Claim> {
    let lineages =
        |r: &Record| -> HashSet<u64> { r.leaves.iter().filter(|l| l.parameter).map(|l| l.lineage).collect() };
    let (new, old) = (lineages(e.new), lineages(e.old));
    // As many of the same types would be the same program, if that were all.
    let types = |r: &Record| {
        let mut all: Vec<String> = r.leaves.iter().filter(|l| l.parameter).map(|l| l.ty.to_string()).collect();
        all.sort_unstable();
        all
    };
    if new.is_empty() || old.is_empty() || !new.is_disjoint(&old) || types(e.new) == types(e.old) {
        return None;
    }
    let leaves = |r: &'_ Record, all: &[u32]| -> Vec<Place> {
        all.iter().map(|&l| &r.leaves[l as usize]).filter(|l| l.parameter).map(|l| l.at).collect()
    };
    let brings = |ops: &Ops| [leaves(e.new, &ops.gains), leaves(e.old, &ops.loses)].concat();
    let at = e.ops().find_map(|(_, ops)| brings(ops).first().copied())?;
    let covers = super::claim::with_results(e, super::claim::all_ops(e));
    let differences: Vec<Difference> = e.ops().flat_map(|(_, ops)| words::ops(e, ops)).collect();
    let fix = another_model(e.new, programs(e) + 1);
    Some(Claim::new(covers, Class::Structure, at, words::first_at(differences, at), fix))
}

/// Ops that come with parameters that were not there, or went with theirs.
fn layers(e: &Evidence) -> Option<Claim> {
    let fresh = |ops: &Ops| -> Vec<&LeafRecord> {
        let all = ops.gains.iter().map(|&l| &e.new.leaves[l as usize]);
        // Made since: a tensor that the other program could not have had.
        let last = e.old.steps.last().map_or(0, |s| s.seq);
        all.filter(|l| l.parameter && l.lineage > last).collect()
    };
    let found: Vec<(usize, &Ops)> = e.ops().filter(|(_, ops)| !fresh(ops).is_empty()).collect();
    let (_, first) = found.first()?;
    let leaf = fresh(first)[0];
    let at: Place = leaf.at;
    let covers = super::claim::with_results(e, found.iter().map(|f| f.0).collect());
    let differences: Vec<Difference> = found.iter().flat_map(|f| words::ops(e, f.1)).collect();
    let fix = super::other::fix(e, e.aligned.only_new.len(), e.aligned.only_old.len());
    Some(Claim::new(covers, Class::Structure, at, words::first_at(differences, at), fix))
}
