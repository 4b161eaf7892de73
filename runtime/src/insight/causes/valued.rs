//! A read begins with what has its value by now, where the read of that line before computed it itself.
use super::claim::{Claim, with_results};
use crate::insight::evidence::{Evidence, Ops, words};
use crate::insight::record::{LeafRecord, same_place};
use crate::insight::report::{Class, Difference};
use xlazy_core::text::location;
use xlazy_mime::count;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if !e.new.is_read() || !e.old.is_read() || !same_place(e.new.site, e.old.site) {
        return None;
    }
    let leaf = |l: u32| &e.new.leaves[l as usize];
    let takes = |ops: &Ops| -> Vec<u32> { ops.given.iter().map(|g| g.0).chain(ops.gains.iter().copied()).collect() };
    let computed = |l: &u32| leaf(*l).computed && !leaf(*l).scalar && !leaf(*l).parameter;
    let only_gone = |ops: &Ops| ops.new.is_empty() && !ops.old.is_empty() && !ops.derived;
    let one = |(_, ops): &(usize, &Ops)| only_gone(ops) && !takes(ops).is_empty() && takes(ops).iter().all(computed);
    let found: Vec<(usize, &Ops)> = e.ops().filter(one).collect();
    let first: &LeafRecord = leaf(*takes(found.first()?.1).first()?);
    let what = match &first.name {
        Some(name) => format!("`{name}`"),
        None => format!("what the line at {} made", location(first.at)),
    };
    let gone: usize = found.iter().map(|f| f.1.old.len()).sum();
    let fix = format!(
        "{what} has its value here, where the read before began {} earlier: expected once, and reads that begin with a value are one \
         program",
        count(gone, "op")
    );
    let differences: Vec<Difference> = found.iter().flat_map(|f| words::ops(e, f.1)).collect();
    let covers = with_results(e, found.iter().map(|f| f.0).collect());
    Some(Claim::new(covers, Class::Structure, first.at, words::first_at(differences, first.at), fix))
}
