//! Another value stands where one stood: two variables, each of one size, that go through the same lines in turn.
use super::claim::{Claim, Fix, with_results};
use super::keep::stay;
use super::shape::{in_buckets, one_bucket};
use crate::insight::evidence::Evidence;
use crate::insight::record::{LeafRecord, Record, same_place};
use crate::insight::report::{Class, Difference, Place};
use xlazy_core::ir::{Input, Step};
use xlazy_core::ty::Type;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    inputs(e).or_else(|| pending(e))
}

/// Data of other sizes, by other names. A name that has had several sizes is not one of two values, but one that changes.
fn inputs(e: &Evidence) -> Option<Claim> {
    let data = |l: &LeafRecord| !l.scalar && !l.parameter && !l.bucketed && l.batch.is_none() && l.finder.is_none();
    let here: Vec<&Record> = e.known.iter().map(|r| &**r).filter(|r| same_place(r.site, e.new.site)).collect();
    let always = |l: &LeafRecord| {
        let mut all = here.iter().flat_map(|r| &r.leaves).filter(|o| o.name == l.name);
        all.all(|o| o.ty == l.ty)
    };
    let all: Vec<(usize, &LeafRecord, &LeafRecord)> = e.inputs().collect();
    let another = |&(_, new, old): &(usize, &LeafRecord, &LeafRecord)| {
        let named = new.name.is_some() && old.name.is_some() && new.name != old.name;
        data(new) && data(old) && named && new.ty.dtype == old.ty.dtype && always(new) && always(old)
    };
    let &(_, new, old) = all.first()?;
    if !all.iter().all(another) {
        return None;
    }
    let differences = all.iter().map(|(_, n, o)| difference(input(n), input(o), (n.at, o.at))).collect();
    let (now, was) = (new.name.as_deref()?, old.name.as_deref()?);
    let fix = expected(e, now, was);
    let fix = match one_bucket(e, new, old) {
        Some((d, most, all)) => {
            Fix::from(format!("{}; `.dynamic({d}).buckets([{most}])` on both makes them one program", fix.say))
                .code(in_buckets(e, &all, &[most]))
        }
        None => fix,
    };
    let covers = with_results(e, all.iter().map(|a| a.0).collect());
    Some(Claim::new(covers, Class::Shape, new.at, differences, fix))
}

/// The same of what is computed within the programs: by ops of other lines, whose attributes differ.
fn pending(e: &Evidence) -> Option<Claim> {
    let (mut covers, mut differences, mut first) = (vec![], vec![], None);
    for (root, pairs) in e.attrs() {
        let (a, b) = e.pair(*pairs.first()?);
        let (now, was) = (e.new.named(a)?, e.old.named(b)?);
        if same_place(a.at, b.at) || now == was || a.op.id != b.op.id || !a.inputs.iter().any(|i| is_tensor(e.new, i)) {
            return None;
        }
        let text = |name: &str, s: &Step| value(name, &s.ty);
        differences.push(difference(text(&now, a), text(&was, b), (a.at, b.at)));
        covers.push(root);
        first = first.or(Some((a, b, now, was)));
    }
    let (a, b, now, was) = first?;
    let class = if a.ty == b.ty { Class::Index } else { Class::Shape };
    Some(Claim::new(covers, class, a.at, differences, expected(e, &now, &was)))
}

/// A part of what is there, and nothing that a program makes by itself.
fn is_tensor(r: &Record, input: &Input) -> bool {
    !matches!(*input, Input::Leaf(l) if r.leaves[l as usize].scalar)
}

fn expected(e: &Evidence, now: &str, was: &str) -> Fix {
    format!("`{now}` stands where `{was}` stood: expected once for each of them, and {}", stay(e.new, "all")).into()
}

fn input(l: &LeafRecord) -> String {
    value(l.name.as_deref().unwrap_or_default(), &l.ty)
}

fn value(name: &str, ty: &Type) -> String {
    format!("`{name}` ({ty})")
}

fn difference(now: String, was: String, (now_at, was_at): (Place, Place)) -> Difference {
    Difference { what: "input".into(), was, now, was_at: Some(was_at), now_at: Some(now_at) }
}
