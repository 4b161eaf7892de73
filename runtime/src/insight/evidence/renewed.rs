//! A model that was made anew: other tensors, but of the same types, one by one.
use crate::insight::record::{LeafRecord, Record};
use foldhash::{HashMap, HashMapExt, HashSet};

/// For each tensor of the new program that lasts the one of the old program in whose place it is, where none is in both.
pub(super) fn renewed(new: &Record, old: &Record) -> HashMap<u64, u64> {
    fn lasting(r: &Record) -> Vec<&LeafRecord> {
        let mut all: Vec<&LeafRecord> = r.leaves.iter().filter(|l| l.lasts()).collect();
        all.sort_by_key(|l| l.lineage);
        all
    }
    let (now, was) = (lasting(new), lasting(old));
    let there: HashSet<u64> = was.iter().map(|l| l.lineage).collect();
    let alike = now.iter().zip(&was).all(|(a, b)| a.ty == b.ty && a.parameter == b.parameter);
    if now.len() != was.len() || !alike || now.iter().any(|l| there.contains(&l.lineage)) {
        return HashMap::new();
    }
    now.iter().zip(&was).map(|(a, b)| (a.lineage, b.lineage)).collect()
}
