//! What differs between a program and the one that it is compared with: the differences that nothing else explains, and how
//! much follows from each.
//!
//! Ops are aligned, then one pass in the order of their creation finds where operands, attributes and types differ. A
//! difference whose operands differ already follows from what made these differ; what is left are the roots, which the causes
//! compete for.
pub(super) mod align;
mod fold;
mod follow;
mod leaves;
pub(super) mod nearest;
mod renewed;
mod roots;
mod shortest;
mod union;
mod what;
pub(super) mod words;

use super::log::ran_since;
use super::record::{LeafRecord, Record, same_place};
use super::report::Place;
pub(super) use align::NONE;
use align::{Aligned, align};
use foldhash::HashSet;
use leaves::Leaves;
use roots::Pass;
use std::sync::Arc;
use what::Root;
pub(super) use what::{Ops, What};
use xlazy_core::ir::Step;
use xlazy_core::ty::{DType, Type};

/// How much so many of a kind are to explain: one is something already, and of many each is less.
fn some(n: usize) -> f64 {
    if n == 0 { 0.0 } else { 2.0 + (n as f64).log2() }
}

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
        Evidence::aligned(new, old, known, align(new, old))
    }

    fn aligned(new: &'a Record, old: &'a Record, known: &'a [Arc<Record>], aligned: Aligned) -> Evidence<'a> {
        let leaves = Leaves::pair(new, old, &aligned);
        let roots = Pass::over(new, old, &aligned, &leaves);
        let explained = vec![false; roots.len()];
        Evidence { new, old, known, aligned, leaves, roots, explained }
    }

    /// Of programs that are as near the one with which there is least to explain; the one that ran last, if not much more.
    pub fn least(new: &'a Record, near: &'a [Arc<Record>], known: &'a [Arc<Record>]) -> Option<Evidence<'a>> {
        /// Another is taken where there is less than this part to explain of what there is with the one that ran last.
        const LAST: f64 = 0.75;
        if near.len() < 2 {
            return near.first().map(|old| Evidence::of(new, old, known));
        }
        let last = near.iter().map(|r| r.hash).min_by_key(|hash| ran_since(*hash));
        let part = |r: &Record| if Some(r.hash) == last { LAST } else { 1.0 };
        let mut order: Vec<(usize, &Arc<Record>)> = near.iter().enumerate().collect();
        order.sort_by_key(|(_, r)| Some(r.hash) != last);
        let mut least: Option<(f64, usize, Evidence)> = None;
        for (place, old) in order {
            // Of as much the nearer one is taken; what cannot be less is not looked at.
            let less = |amount: f64| least.as_ref().is_none_or(|l| (amount, place) < (l.0, l.1));
            if !less(part(old) * Evidence::at_least(new, old)) {
                continue;
            }
            let aligned = align(new, old);
            if !less(part(old) * (some(aligned.only_new.len()) + some(aligned.only_old.len()))) {
                continue;
            }
            let evidence = Evidence::aligned(new, old, known, aligned);
            let amount = part(old) * evidence.amount();
            if less(amount) {
                least = Some((amount, place, evidence));
            }
        }
        least.map(|l| l.2)
    }

    /// How much there is to explain at least, told without looking at each op: where one program is longer, ops came or
    /// went, and where a type differs, an input or something else is behind that.
    fn at_least(new: &Record, old: &Record) -> f64 {
        match new.steps.len().abs_diff(old.steps.len()) {
            0 if new.typed()[..] == old.typed()[..] => 0.0,
            0 if new.inputs_apart(old) > 0 => 1.0,
            // An attribute, or an op in the place of another.
            0 => some(1),
            longer => some(longer),
        }
    }

    /// How much there is to explain: ops that came and went, the data that they bring, attributes and wiring that differ, of each
    /// the less the fewer there are; and as one thing more every way in which inputs differ, and every difference that has
    /// nothing to do with the others.
    fn amount(&self) -> f64 {
        let count = |is: fn(&What) -> bool| self.roots.iter().filter(|root| is(&root.what)).count();
        let fresh = |r: &Record, all: &[u32]| all.iter().filter(|&&l| !r.leaves[l as usize].lasts()).count();
        let data: usize = (self.roots.iter())
            .map(|root| match &root.what {
                What::Ops(ops) => fresh(self.new, &ops.gains) + fresh(self.old, &ops.loses),
                _ => 0,
            })
            .sum();
        let ops = count(|what| matches!(what, What::Ops(_)));
        some(self.aligned.only_new.len())
            + some(self.aligned.only_old.len())
            + some(data)
            + self.types_apart() as f64
            + some(count(|what| matches!(what, What::Attrs(_))))
            + some(count(|what| matches!(what, What::Wiring(..))))
            + ops as f64
    }

    /// In how many ways inputs have other types: a dtype or a size that changed is one, of however many inputs.
    fn types_apart(&self) -> usize {
        /// One way in which types are apart: what is new, what was.
        #[derive(PartialEq, Eq, Hash)]
        enum Apart<'a> {
            /// A number for a tensor, or another number of dimensions.
            Type(&'a Type, &'a Type),
            Dtype(DType, DType),
            /// Of this dimension.
            Size(usize, usize, usize),
        }
        let mut apart = HashSet::default();
        for root in &self.roots {
            let What::Input(i, j) = root.what else { continue };
            let (new, old) = (&self.new.leaves[i as usize], &self.old.leaves[j as usize]);
            if new.scalar != old.scalar || new.ty.shape.len() != old.ty.shape.len() {
                apart.insert(Apart::Type(&new.ty, &old.ty));
                continue;
            }
            if new.ty.dtype != old.ty.dtype {
                apart.insert(Apart::Dtype(new.ty.dtype, old.ty.dtype));
            }
            let sizes = new.ty.shape.iter().zip(old.ty.shape.iter()).enumerate().filter(|(_, (a, b))| a != b);
            apart.extend(sizes.map(|(dim, (a, b))| Apart::Size(dim, *a, *b)));
        }
        apart.len()
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

    /// Whether no cause has claimed ops that came or went.
    pub fn all_ops_are_open(&self) -> bool {
        !self.roots.iter().zip(&self.explained).any(|(root, done)| *done && matches!(root.what, What::Ops(_)))
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
        Some(&self.old.leaves[self.partner_of(leaf as usize)?])
    }

    /// The number that a parameter had in the other program.
    pub fn partner_of(&self, leaf: usize) -> Option<usize> {
        let partner = self.leaves.of_new[leaf];
        (partner != NONE).then_some(partner as usize)
    }

    /// Whether an earlier program had this tensor, or what it was before it was changed in place.
    pub fn was_there(&self, leaf: &LeafRecord) -> bool {
        self.known.iter().any(|r| r.has(leaf))
    }

    /// Whether an earlier program had both of these tensors, or what they were before they were changed in place: two parts of
    /// one work.
    pub fn were_together(&self, a: &LeafRecord, b: &LeafRecord) -> bool {
        self.known.iter().any(|r| r.has(a) && r.has(b))
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
