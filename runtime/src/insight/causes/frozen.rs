//! Parameters were frozen or thawed: their gradients and updates are what went or came.
use super::claim::Claim;
use super::keep::stay;
use crate::insight::evidence::{Evidence, Ops, What, words};
use crate::insight::mode::trained_at;
use crate::insight::record::{LeafRecord, Record};
use crate::insight::report::{Class, Difference};
use xlazy_mime::count;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    // With what is done to gradients and to updated values.
    let follows = |ops: &Ops| {
        let of = |r: &Record, all: &[u32]| all.iter().any(|&i| r.derived(i).is_some());
        of(e.new, &ops.new) || of(e.old, &ops.old)
    };
    let covers = e.numbered(|what| match what {
        What::Trained(..) => true,
        What::Ops(ops) => follows(ops),
        _ => false,
    });
    let leaves = || {
        e.open().filter_map(|(_, what)| match *what {
            What::Trained(l, m) => Some((&e.new.leaves[l as usize], &e.old.leaves[m as usize])),
            _ => None,
        })
    };
    let thawed: Vec<&LeafRecord> = leaves().filter(|(n, _)| n.parameter).map(|(n, _)| n).collect();
    let frozen: Vec<&LeafRecord> = leaves().filter(|(n, _)| !n.parameter).map(|(n, _)| n).collect();
    let of = |on: bool, all: &[&LeafRecord]| (!all.is_empty()).then(|| difference(e.new, on, all));
    let mut all: Vec<Difference> = of(false, &frozen).into_iter().chain(of(true, &thawed)).collect();
    let at = all.first()?.now_at.unwrap_or(e.new.site);
    all.extend(words::open(e));
    let fix = fix(e.new, e.aligned.only_old.len(), e.aligned.only_new.len());
    Some(Claim::new(super::claim::with_results(e, covers), Class::Structure, at, all, fix))
}

fn difference(new: &Record, on: bool, parameters: &[&LeafRecord]) -> Difference {
    let there = parameters.iter().find_map(|l| l.frozen).filter(|_| !on);
    let at = there.or_else(|| trained_at(on)).unwrap_or(new.site);
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
}

fn fix(new: &Record, gone: usize, came: usize) -> String {
    let ops = match (gone, came) {
        (0, came) => format!("{} more", count(came, "op")),
        (gone, 0) => format!("{} fewer", count(gone, "op")),
        (gone, came) => format!("{} new and {gone} gone", count(came, "op")),
    };
    format!(
        "expected once for each set of parameters that are trained ({ops}): say before the first step which ones \
         (`requires_grad_`) if it is to be one program; {}",
        stay(new, "sets that come by turns")
    )
}
