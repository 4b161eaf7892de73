//! What differs between a program and the one that it is compared with: the differences that nothing else explains, and how
//! much follows from each.
//!
//! Ops are aligned, then one pass in the order of their creation finds where operands, attributes and types differ. A
//! difference whose operands differ already follows from what made these differ; what is left are the roots, which the causes
//! compete for.
pub(super) mod align;
mod follow;
mod leaves;
pub(super) mod nearest;
mod roots;
pub(super) mod words;

use super::record::{LeafRecord, Record, same_place};
use super::report::Place;
use align::{Aligned, align};
use leaves::Leaves;
pub(super) use roots::{Ops, What};
use roots::{Pass, Root};
use std::collections::HashMap;
use std::sync::Arc;
use xlazy_core::ir::Step;

pub(super) struct Evidence<'a> {
    pub new: &'a Record,
    pub old: &'a Record,
    pub known: &'a [Arc<Record>],
    pub aligned: Aligned,
    leaves: Leaves,
    roots: Vec<Root>,
    /// Which of them a cause has claimed.
    explained: Vec<bool>,
}

impl<'a> Evidence<'a> {
    pub fn of(new: &'a Record, old: &'a Record, known: &'a [Arc<Record>]) -> Evidence<'a> {
        let aligned = align(new, old);
        let leaves = Leaves::pair(new, old, &aligned);
        let roots = Pass::over(new, old, &aligned, &leaves);
        let explained = vec![false; roots.len()];
        Evidence { new, old, known, aligned, leaves, roots, explained }
    }

    /// How much there is to explain: few differences are less than many, and those of few ops less than those of many. A size
    /// that changed is one thing to say, of however many inputs.
    pub fn amount(&self) -> f64 {
        let mut sizes: HashMap<Vec<(usize, usize, usize)>, usize> = HashMap::new();
        let mut others = Vec::new();
        for root in &self.roots {
            match self.resized(&root.what) {
                Some(sizes_of) => *sizes.entry(sizes_of).or_default() += root.weight,
                None => others.push(root.weight),
            }
        }
        sizes.into_values().chain(others).map(|weight| 2.0 + (weight.max(1) as f64).log2()).sum()
    }

    /// The dimensions in which an input has another size, where that is all that differs: `(dimension, new, old)`.
    fn resized(&self, what: &What) -> Option<Vec<(usize, usize, usize)>> {
        let &What::Input(i, j) = what else { return None };
        let (new, old) = (&self.new.leaves[i as usize].ty, &self.old.leaves[j as usize].ty);
        if new.dtype != old.dtype || new.shape.len() != old.shape.len() {
            return None;
        }
        let sizes = new.shape.iter().zip(old.shape.iter()).enumerate();
        Some(sizes.filter(|(_, (a, b))| a != b).map(|(d, (a, b))| (d, *a, *b)).collect())
    }

    /// The differences that no cause has claimed yet, with their numbers.
    pub fn open(&self) -> impl Iterator<Item = (usize, &What)> {
        self.roots.iter().enumerate().filter(|(r, _)| !self.explained[*r]).map(|(r, root)| (r, &root.what))
    }

    pub fn is_explained(&self) -> bool {
        self.open().next().is_none()
    }

    /// A cause has claimed these.
    pub fn explained(&mut self, covers: &[usize]) {
        covers.iter().for_each(|&r| self.explained[r] = true);
    }

    /// How much these explain that is not explained yet.
    pub fn weight(&self, covers: &[usize]) -> usize {
        covers.iter().filter(|r| !self.explained[**r]).map(|r| self.roots[*r].weight).sum()
    }

    pub fn numbered(&self, of: impl Fn(&What) -> bool) -> Vec<usize> {
        self.open().filter(|(_, what)| of(what)).map(|(r, _)| r).collect()
    }

    pub fn ops(&self) -> impl Iterator<Item = (usize, &Ops)> {
        self.open().filter_map(|(r, what)| match what {
            What::Ops(ops) => Some((r, ops)),
            _ => None,
        })
    }

    /// Inputs of another type: the number of the root, the new one, the old one.
    pub fn inputs(&self) -> impl Iterator<Item = (usize, &LeafRecord, &LeafRecord)> {
        self.open().filter_map(|(r, what)| match *what {
            What::Input(l, m) => Some((r, &self.new.leaves[l as usize], &self.old.leaves[m as usize])),
            _ => None,
        })
    }

    pub fn attrs(&self) -> impl Iterator<Item = (usize, &[(u32, u32)])> {
        self.open().filter_map(|(r, what)| match what {
            What::Attrs(pairs) => Some((r, &pairs[..])),
            _ => None,
        })
    }

    pub fn partner(&self, leaf: u32) -> Option<&LeafRecord> {
        self.old.leaves.get(self.leaves.of_new[leaf as usize] as usize)
    }

    /// Whether an earlier program had this tensor, or what it was before it was changed in place.
    pub fn was_there(&self, leaf: &LeafRecord) -> bool {
        self.known.iter().any(|r| r.leaves.iter().any(|l| l.lineage == leaf.lineage))
    }

    pub fn pair(&self, (i, j): (u32, u32)) -> (&'a Step, &'a Step) {
        (&self.new.steps[i as usize], &self.old.steps[j as usize])
    }

    /// Positions that moved with a size that these explain: pairs of ops.
    pub fn moved(&self, covers: &[usize]) -> impl Iterator<Item = (u32, u32)> {
        covers.iter().flat_map(|&r| &self.roots[r].moved).copied()
    }

    /// A read that is compared with the step that it ran a part of.
    pub fn is_part(&self) -> bool {
        self.new.is_read() && !self.old.is_read()
    }

    /// The line behind ops that came or went: where they begin.
    pub fn begins(&self, ops: &Ops) -> Option<(Place, u64)> {
        let first = |r: &Record, heads: &[u32]| heads.first().map(|&i| (r.steps[i as usize].at, r.lines[i as usize]));
        first(self.new, &ops.heads_new).or_else(|| first(self.old, &ops.heads_old))
    }

    /// What a call of user code gives to what is behind it: the last op of that line and its type.
    pub fn result_of(r: &'a Record, at: Place) -> Option<&'a Step> {
        r.steps.iter().rev().find(|s| same_place(s.at, at))
    }
}
