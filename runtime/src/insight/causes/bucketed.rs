//! An input that had one size is padded to a bucket now, or the other way round: the ops that hide the padding came or went.
use super::claim::{Claim, with_results};
use crate::insight::evidence::{Evidence, Ops, What, words};
use crate::insight::record::LeafRecord;
use crate::insight::report::Class;
use xlazy_core::ir::{Kind, Step};
use xlazy_core::text::location;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let partners = (0..).zip(e.new.leaves.iter()).filter_map(|(l, new)| Some((new, e.partner(l)?)));
    let other = |(new, old): &(&LeafRecord, &LeafRecord)| new.bucketed != old.bucketed;
    let all: Vec<(&LeafRecord, &LeafRecord)> = partners.filter(other).collect();
    let &(new, old) = all.first()?;
    let masks = |ops: &Ops| {
        let of = |steps: &[Step], all: &[u32]| all.iter().any(|&i| steps[i as usize].op.kind == Kind::Mask);
        of(&e.new.steps, &ops.new) || of(&e.old.steps, &ops.old)
    };
    let covers = e.numbered(|what| match *what {
        What::Ops(ref ops) => masks(ops),
        What::Input(l, m) => e.new.leaves[l as usize].bucketed != e.old.leaves[m as usize].bucketed,
        _ => false,
    });
    let differences = all.iter().map(|(new, old)| {
        let mut said = words::input(new, old);
        let padded = if new.bucketed { &mut said.now } else { &mut said.was };
        *padded += " in a bucket";
        said
    });
    let fix = match new.bucketed {
        true => "one program for all sizes that fit the bucket, expected once for each bucket; each plain size is one more, so do this \
                 wherever it is made"
            .to_owned(),
        false => format!(
            "each size is a program again, where a bucket's served all that fit it: `.dynamic(…).buckets(…)` here, too, as {} has it",
            location(old.at)
        ),
    };
    Some(Claim::new(with_results(e, covers), Class::Shape, new.at, differences.collect(), fix))
}
