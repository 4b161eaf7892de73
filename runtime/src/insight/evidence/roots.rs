//! The differences that nothing else explains, and how much follows from each: one pass over two programs in the order of the
//! new one's creation.
use super::align::{Aligned, NONE};
use super::follow::{self, Became, Own};
use super::leaves::Leaves;
use super::union::Union;
use super::what::{Ops, Root, What};
use crate::insight::mode::Derived;
use crate::insight::record::{LeafRecord, Record, same_place};
use foldhash::{HashMap, HashMapExt, HashSet};
use std::collections::BTreeSet;
use xlazy_core::ir::{Input, Step};
use xlazy_core::ty::Type;

/// What explains that a value is another one.
#[derive(Clone, Copy, PartialEq)]
enum Because {
    Nothing,
    /// Of that number among the roots.
    Root(u32),
    /// Ops that came or went, by their number in [`Union`].
    Ops(u32),
}

/// The pass over both programs.
pub(super) struct Pass<'a> {
    pub(super) new: &'a Record,
    pub(super) old: &'a Record,
    pub(super) aligned: &'a Aligned,
    leaves: &'a Leaves,
    pub(super) roots: Vec<Root>,
    union: Union,
    /// Numbers in [`Union`] of the ops that came and of those that went, or [`NONE`].
    came: Vec<u32>,
    went: Vec<u32>,
    /// Weight of ops by their number in [`Union`].
    weight: Vec<usize>,
    /// Why the value of each new op has another type.
    because: Vec<Because>,
    /// The root of an input, once it was met.
    of_leaf: HashMap<u32, u32>,
    gains: Vec<(u32, u32)>,
    loses: Vec<(u32, u32)>,
    given: Vec<(u32, u32, u32)>,
    /// The root of ops that belong together, by their number in [`Union`].
    of_ops: HashMap<u32, usize>,
}

impl<'a> Pass<'a> {
    pub fn over(new: &'a Record, old: &'a Record, aligned: &'a Aligned, leaves: &'a Leaves) -> Vec<Root> {
        let (mut came, mut went) = (vec![NONE; new.steps.len()], vec![NONE; old.steps.len()]);
        let first = aligned.only_new.len() as u32;
        (0..).zip(&aligned.only_new).for_each(|(k, &i)| came[i as usize] = k);
        (first..).zip(&aligned.only_old).for_each(|(k, &j)| went[j as usize] = k);
        let all = aligned.only_new.len() + aligned.only_old.len();
        let mut pass = Pass {
            new,
            old,
            aligned,
            leaves,
            roots: vec![],
            union: Union((0..all as u32).collect()),
            came,
            went,
            weight: vec![0; all],
            because: vec![Because::Nothing; new.steps.len()],
            of_leaf: HashMap::new(),
            gains: vec![],
            loses: vec![],
            given: vec![],
            of_ops: HashMap::new(),
        };
        pass.connect();
        pass.compare();
        pass.finish()
    }

    /// Ops that came or went belong together where one takes the other's result, where they are of one line, and where they
    /// take an input that nothing else takes.
    fn connect(&mut self) {
        let (new, old) = (self.new, self.old);
        let (only_new, only_old) = (&self.aligned.only_new, &self.aligned.only_old);
        for (r, all, mine, leaves, side) in [
            (new, only_new, &self.came, &self.leaves.of_new, true),
            (old, only_old, &self.went, &self.leaves.of_old, false),
        ] {
            let mut takers: HashMap<u32, u32> = HashMap::new();
            for &i in all {
                let k = mine[i as usize];
                for input in &r.steps[i as usize].inputs {
                    match input {
                        Input::Step(s) => {
                            if mine[*s as usize] != NONE {
                                self.union.join(k, mine[*s as usize]);
                            }
                        }
                        Input::Leaf(l) if leaves[*l as usize] == NONE && !r.leaves[*l as usize].scalar => {
                            if side {
                                self.gains.push((*l, k))
                            } else {
                                self.loses.push((*l, k))
                            }
                            match takers.get(l) {
                                Some(&other) => self.union.join(k, other),
                                None => drop(takers.insert(*l, k)),
                            }
                        }
                        Input::Leaf(_) => {}
                    }
                }
            }
        }
        let mut lines: HashMap<u64, u32> = HashMap::new();
        let of = |r: &'a Record, i: u32| r.derived(i).is_none().then_some(r.lines[i as usize]);
        let came = self.aligned.only_new.iter().map(|i| (of(new, *i), self.came[*i as usize]));
        let went = self.aligned.only_old.iter().map(|j| (of(old, *j), self.went[*j as usize]));
        let all: Vec<(Option<u64>, u32)> = came.chain(went).collect();
        for (line, k) in all.into_iter().filter_map(|(line, k)| Some((line?, k))) {
            match lines.get(&line) {
                Some(&other) => self.union.join(k, other),
                None => drop(lines.insert(line, k)),
            }
        }
    }

    fn compare(&mut self) {
        let aligned = self.aligned;
        let (typed, typed_old) = (&self.new.typed()[..], &self.old.typed()[..]);
        let (tokens, tokens_old) = (&self.new.tokens()[..], &self.old.tokens()[..]);
        let (forms, forms_old) = (&self.new.forms()[..], &self.old.forms()[..]);
        // The partners of inputs that are of the same type.
        let alike = |(l, &m): (&LeafRecord, &u32)| {
            let same = |old: &LeafRecord| l.ty == old.ty && l.scalar == old.scalar;
            if self.old.leaves.get(m as usize).is_some_and(same) { m } else { NONE }
        };
        let same: Vec<u32> = self.new.leaves.iter().zip(&self.leaves.of_new).map(alike).collect();
        for &(i, j) in &aligned.pairs {
            let a = &self.new.steps[i as usize];
            // Most ops take the same as their partner does: these are told by their marks alone.
            if forms[i as usize] == forms_old[j as usize]
                && let Some(known) = self.as_before(a, i.wrapping_sub(j), &same)
            {
                let other = typed[i as usize] != typed_old[j as usize];
                if other && (tokens[i as usize] == tokens_old[j as usize] || a.ty != self.old.steps[j as usize].ty) {
                    self.follows(known);
                    self.because[i as usize] = known;
                }
                continue;
            }
            let b = &self.old.steps[j as usize];
            let mut because = Because::Nothing;
            let same_attrs = a.op.id == b.op.id && (a.attrs.is_empty() && b.attrs.is_empty() || a.attrs == b.attrs);
            if same_attrs && let Some(known) = self.unchanged(a, b, &same) {
                if typed[i as usize] != typed_old[j as usize] && a.ty != b.ty {
                    self.follows(known);
                    self.because[i as usize] = known;
                }
                continue;
            }
            let (new, old) = (self.new, self.old);
            let number = |k: usize| match (a.inputs.get(k), b.inputs.get(k)) {
                (Some(Input::Leaf(l)), Some(Input::Leaf(m))) => {
                    new.leaves[*l as usize].scalar && old.leaves[*m as usize].scalar
                }
                _ => false,
            };
            // Another form of the op takes an attribute as its last operand.
            let operands = match a.op.id != b.op.id && a.op.base == b.op.base {
                true => a.inputs.len().min(b.inputs.len()),
                false => a.inputs.len().max(b.inputs.len()),
            };
            // A number takes its dtype from the tensors beside it: it is asked last, and not where these explain it.
            for numbers in [false, true] {
                for k in 0..operands {
                    if number(k) != numbers || numbers && because != Because::Nothing {
                        continue;
                    }
                    let found = self.operand((i, j), k, a.inputs.get(k).copied(), b.inputs.get(k).copied());
                    if because == Because::Nothing {
                        because = found;
                    }
                }
            }
            if same_attrs && a.ty == b.ty {
                continue;
            }
            match because {
                Because::Nothing if !same_attrs => because = self.attributes(i, j),
                _ if same_attrs => self.follows(because),
                // Of sizes it follows; which dimensions and which way, or where, hardly.
                _ => match follow::of_its_own(a, b, &self.operands(a, b)) {
                    Own::Attributes => drop(self.attributes(i, j)),
                    // It may also be that the position alone was changed.
                    Own::Moved => {
                        self.follows(because);
                        if let Because::Root(r) = because {
                            self.roots[r as usize].moved.push((i, j));
                        }
                    }
                    Own::Nothing => self.follows(because),
                },
            }
            if a.ty != b.ty {
                self.because[i as usize] = because;
            }
        }
    }

    /// Why the operands of an op are of other types, which are where those of its partner are, so many ops before; `None` where
    /// one of them is not what it was.
    fn as_before(&self, a: &Step, moved: u32, same: &[u32]) -> Option<Because> {
        let mut because = Because::Nothing;
        for input in &a.inputs {
            match *input {
                Input::Leaf(l) if same[l as usize] == l => {}
                Input::Step(x) if self.aligned.of_new[x as usize] == x.wrapping_sub(moved) => {
                    if because == Because::Nothing {
                        because = self.because[x as usize];
                    }
                }
                _ => return None,
            }
        }
        Some(because)
    }

    /// Why the operands are of other types, where each is what it was: what is so for most ops of two programs.
    fn unchanged(&self, a: &Step, b: &Step, same: &[u32]) -> Option<Because> {
        let mut because = Because::Nothing;
        for (x, y) in a.inputs.iter().zip(&b.inputs) {
            match (*x, *y) {
                (Input::Leaf(l), Input::Leaf(m)) if same[l as usize] == m => {}
                (Input::Step(x), Input::Step(y)) if self.aligned.of_new[x as usize] == y => {
                    if because == Because::Nothing {
                        because = self.because[x as usize];
                    }
                }
                _ => return None,
            }
        }
        Some(because).filter(|_| a.inputs.len() == b.inputs.len())
    }

    /// One difference more that follows.
    fn follows(&mut self, because: Because) {
        match because {
            Because::Root(r) => self.roots[r as usize].weight += 1,
            Because::Ops(k) => self.weight[k as usize] += 1,
            Because::Nothing => {}
        }
    }

    /// The types of an op's operands in both programs.
    fn operands(&self, a: &Step, b: &Step) -> Vec<(&'a Type, &'a Type)> {
        a.inputs.iter().zip(&b.inputs).map(|(x, y)| (self.new.type_of(*x), self.old.type_of(*y))).collect()
    }

    /// Whether two inputs correspond: as paired, or as one tensor, of which a program may take two states.
    fn corresponds(&self, l: u32, m: u32) -> bool {
        let (a, b) = (&self.new.leaves[l as usize], &self.old.leaves[m as usize]);
        self.leaves.of_new[l as usize] == m || !a.scalar && !b.scalar && a.lineage == b.lineage
    }

    /// Why this operand is another one.
    fn operand(&mut self, (i, j): (u32, u32), k: usize, a: Option<Input>, b: Option<Input>) -> Because {
        let number = |k: u32| Some(k).filter(|k| *k != NONE);
        let came = |s: &Self, x: u32| number(s.came[x as usize]);
        let went = |s: &Self, y: u32| number(s.went[y as usize]);
        match (a, b) {
            (Some(Input::Leaf(l)), Some(Input::Leaf(m))) if self.corresponds(l, m) => self.input(l, m),
            (Some(Input::Step(x)), Some(Input::Step(y))) => match (came(self, x), went(self, y)) {
                (Some(c), Some(w)) => {
                    self.union.join(c, w);
                    Because::Ops(c)
                }
                (Some(c), None) => Because::Ops(c),
                (None, Some(w)) => Because::Ops(w),
                (None, None) if self.aligned.of_new[x as usize] == y => self.because[x as usize],
                _ => self.wiring(i, j, k),
            },
            (Some(Input::Leaf(l)), Some(Input::Step(y))) => match went(self, y) {
                Some(w) => {
                    if self.leaves.of_new[l as usize] == NONE {
                        self.gains.push((l, w));
                    }
                    let (leaf, step) = (&self.new.leaves[l as usize], &self.old.steps[y as usize]);
                    if leaf.made_by.base == step.op.base && leaf.line == self.old.lines[y as usize] {
                        self.given.push((l, y, w));
                    }
                    Because::Ops(w)
                }
                None => self.wiring(i, j, k),
            },
            (Some(Input::Step(x)), Some(Input::Leaf(m))) => match came(self, x) {
                Some(c) => {
                    if self.leaves.of_old[m as usize] == NONE {
                        self.loses.push((m, c));
                    }
                    Because::Ops(c)
                }
                None => self.wiring(i, j, k),
            },
            (Some(Input::Step(x)), None) if came(self, x).is_some() => Because::Ops(self.came[x as usize]),
            (None, Some(Input::Step(y))) if went(self, y).is_some() => Because::Ops(self.went[y as usize]),
            (None, None) => Because::Nothing,
            _ => self.wiring(i, j, k),
        }
    }

    fn root(&mut self, what: What) -> Because {
        self.roots.push(Root::of(what, 1));
        Because::Root(self.roots.len() as u32 - 1)
    }

    fn wiring(&mut self, i: u32, j: u32, k: usize) -> Because {
        self.root(What::Wiring(i, j, k))
    }

    fn input(&mut self, l: u32, m: u32) -> Because {
        let (a, b) = (&self.new.leaves[l as usize], &self.old.leaves[m as usize]);
        if a.ty == b.ty && a.scalar == b.scalar && a.sharding == b.sharding {
            return Because::Nothing;
        }
        if let Some(&r) = self.of_leaf.get(&l) {
            return Because::Root(r);
        }
        // Numbers of one line that are others for one reason.
        let same = |r: &Root| match r.what {
            What::Input(x, y) if a.scalar && b.scalar => {
                let (x, y) = (&self.new.leaves[x as usize], &self.old.leaves[y as usize]);
                x.scalar && y.scalar && same_place(x.at, a.at) && x.ty == a.ty && y.ty == b.ty
            }
            _ => false,
        };
        let because = match self.roots.iter().position(same) {
            Some(r) => Because::Root(r as u32),
            None => self.root(What::Input(l, m)),
        };
        if let Because::Root(r) = because {
            self.of_leaf.insert(l, r);
        }
        because
    }

    /// Attributes that differ although no operand does; those of one call are one difference.
    fn attributes(&mut self, i: u32, j: u32) -> Because {
        let at = self.new.steps[i as usize].at;
        let of = |root: &Root| match &root.what {
            What::Attrs(pairs) => same_place(self.new.steps[pairs[0].0 as usize].at, at),
            _ => false,
        };
        match self.roots.iter().position(of) {
            Some(r) => {
                let Root { what: What::Attrs(pairs), weight, .. } = &mut self.roots[r] else { unreachable!() };
                pairs.push((i, j));
                *weight += 1;
                Because::Root(r as u32)
            }
            None => self.root(What::Attrs(vec![(i, j)])),
        }
    }

    fn finish(mut self) -> Vec<Root> {
        // Inputs that only ops take which came or went.
        for l in 0..self.new.leaves.len() as u32 {
            let m = self.leaves.of_new[l as usize];
            if m != NONE && !self.new.leaves[l as usize].scalar {
                self.input(l, m);
            }
        }
        self.ops();
        self.sizes();
        self.trained();
        self.results();
        self.donations();
        if self.new.options != self.old.options {
            self.root(What::Options);
        }
        self.fold_adapters();
        self.regions();
        self.fold_derived();
        self.roots
    }

    /// The ops that belong together, as roots.
    fn ops(&mut self) {
        let mut groups: HashMap<u32, (Ops, usize)> = HashMap::new();
        let came: Vec<(u32, u32)> = self.aligned.only_new.iter().map(|&i| (i, self.came[i as usize])).collect();
        let went: Vec<(u32, u32)> = self.aligned.only_old.iter().map(|&j| (j, self.went[j as usize])).collect();
        let (new, old) = (self.new, self.old);
        // Gradients and updates are no beginning where there is another.
        let own = |r: &Record, i: u32| r.derived(i).is_none();
        let takes = |s: &Step, mine: &[u32], of: &dyn Fn(u32) -> bool| {
            s.inputs.iter().any(|input| matches!(input, Input::Step(s) if mine[*s as usize] != NONE && of(*s)))
        };
        for (i, k) in came {
            let weight = self.weight[k as usize];
            let group = groups.entry(self.union.find(k)).or_default();
            group.0.new.push(i);
            group.1 += 1 + weight;
            if own(new, i) && !takes(&new.steps[i as usize], &self.came, &|_| true) {
                group.0.heads_new.push(i);
            }
        }
        for (j, k) in went {
            let weight = self.weight[k as usize];
            let group = groups.entry(self.union.find(k)).or_default();
            group.0.old.push(j);
            group.1 += 1 + weight;
            if own(old, j) && !takes(&old.steps[j as usize], &self.went, &|_| true) {
                group.0.heads_old.push(j);
            }
        }
        // What takes gradients or updated values begins where nothing else does.
        for (ops, _) in groups.values_mut().filter(|g| g.0.heads_new.is_empty() && g.0.heads_old.is_empty()) {
            let first = |r: &Record, all: &[u32], mine: &[u32]| -> Vec<u32> {
                let begins = |i: &u32| own(r, *i) && !takes(&r.steps[*i as usize], mine, &|s| own(r, s));
                all.iter().copied().filter(begins).collect()
            };
            ops.heads_new = first(new, &ops.new, &self.came);
            ops.heads_old = first(old, &ops.old, &self.went);
        }
        for (leaf, k) in std::mem::take(&mut self.gains) {
            let k = self.union.find(k);
            let gains = &mut groups.get_mut(&k).expect("ops of this number").0.gains;
            if !gains.contains(&leaf) {
                gains.push(leaf);
            }
        }
        for (leaf, k) in std::mem::take(&mut self.loses) {
            let k = self.union.find(k);
            let loses = &mut groups.get_mut(&k).expect("ops of this number").0.loses;
            if !loses.contains(&leaf) {
                loses.push(leaf);
            }
        }
        for (leaf, step, k) in std::mem::take(&mut self.given) {
            let k = self.union.find(k);
            groups.get_mut(&k).expect("ops of this number").0.given.push((leaf, step));
        }
        let mut groups: Vec<(u32, (Ops, usize))> = groups.into_iter().collect();
        groups.sort_by_key(|(_, (ops, _))| (ops.new.is_empty(), ops.new.first().copied(), ops.old.first().copied()));
        for (k, (mut ops, weight)) in groups {
            self.of_ops.insert(k, self.roots.len());
            ops.derived = ops.heads_new.is_empty() && ops.heads_old.is_empty();
            if ops.derived {
                // Gradients that nothing else asks for are there for the updates.
                let updates = |r: &Record, all: &[u32]| -> Vec<u32> {
                    all.iter().copied().filter(|&i| r.derived(i) == Some(Derived::Update)).collect()
                };
                (ops.heads_new, ops.heads_old) = (updates(new, &ops.new), updates(old, &ops.old));
                if ops.heads_new.is_empty() && ops.heads_old.is_empty() {
                    (ops.heads_new, ops.heads_old) = (ops.new.clone(), ops.old.clone());
                }
            }
            self.roots.push(Root::of(What::Ops(ops), weight));
        }
    }

    /// A size that user code takes from an input whose size has changed follows from that, and so does one that goes with what
    /// ops give that came or went.
    fn sizes(&mut self) {
        let mut became = Became::default();
        for (r, root) in self.roots.iter().enumerate() {
            if let What::Input(l, m) = root.what {
                let (a, b) = (&self.new.leaves[l as usize].ty, &self.old.leaves[m as usize].ty);
                became.sizes.extend(follow::changes(a, b).map(|(x, y)| (x, y, r)));
                if a.dtype != b.dtype {
                    became.dtypes.push((a.dtype, b.dtype, r));
                }
                became.amounts.push((a.shape.numel() as f64, b.shape.numel() as f64, r));
                let (x, y) = follow::changes(a, b).fold((1, 1), |(x, y), (a, b)| (x * a, y * b));
                became.amounts.push((x as f64, y as f64, r));
            }
        }
        // What comes out of ops that are not in both.
        let attrs = |root: &Root| matches!(root.what, What::Attrs(_));
        let mut from: BTreeSet<(i64, i64, usize)> = BTreeSet::new();
        for &(i, j) in self.aligned.pairs.iter().filter(|_| self.roots.iter().any(attrs)) {
            if let Because::Ops(k) = self.because[i as usize] {
                let r = self.of_ops[&self.union.find(k)];
                let (a, b) = (&self.new.steps[i as usize].ty, &self.old.steps[j as usize].ty);
                from.extend(follow::changes(a, b).map(|(x, y)| (x, y, r)));
            }
        }
        became.sizes.extend(from);
        if became.sizes.is_empty() && became.amounts.is_empty() {
            return;
        }
        let explains = |root: &Root| match &root.what {
            What::Attrs(pairs) => {
                let mut by = None;
                let all = pairs.iter().all(|&(i, j)| {
                    let (a, b) = (&self.new.steps[i as usize], &self.old.steps[j as usize]);
                    let r = follow::resized(a, b, &self.operands(a, b), &became);
                    by = by.or(r);
                    r.is_some()
                });
                by.filter(|_| all)
            }
            _ => None,
        };
        let by = self.roots.iter().map(explains).collect();
        self.fold(by);
    }

    fn trained(&mut self) {
        let mut theirs: HashMap<u64, u32> = HashMap::new();
        for (m, old) in self.old.leaves.iter().enumerate().filter(|(_, l)| !l.scalar) {
            theirs.insert(old.lineage, m as u32);
        }
        for (l, new) in self.new.leaves.iter().enumerate().filter(|(_, l)| !l.scalar) {
            // A result that is data now is no parameter that was frozen.
            let Some(&m) = theirs.get(&new.lineage) else { continue };
            if new.parameter != self.old.leaves[m as usize].parameter {
                self.roots.push(Root::of(What::Trained(l as u32, m), 1));
            }
        }
    }

    fn results(&mut self) {
        if self.new.is_read() != self.old.is_read() {
            return;
        }
        let only = |of: &[u32], partner: &[u32], others: &[u32]| -> Vec<u32> {
            let theirs: HashSet<u32> = others.iter().copied().collect();
            of.iter()
                .copied()
                .filter(|&i| partner[i as usize] != NONE && !theirs.contains(&partner[i as usize]))
                .collect()
        };
        let gained = only(&self.new.roots, &self.aligned.of_new, &self.old.roots);
        let lost = only(&self.old.roots, &self.aligned.of_old, &self.new.roots);
        if gained.is_empty() && lost.is_empty() {
            return;
        }
        // What an op that came takes, or one that went no longer does, is or was kept for that.
        let beside =
            |r: &Record, ops: &[u32], i: u32| ops.iter().any(|&x| r.steps[x as usize].inputs.contains(&Input::Step(i)));
        let pairs = (gained.iter().map(|&i| (i, self.aligned.of_new[i as usize])))
            .chain(lost.iter().map(|&j| (self.aligned.of_old[j as usize], j)));
        let by = pairs.map(|(i, j)| {
            let follows = |ops: &Ops| beside(self.new, &ops.new, i) || beside(self.old, &ops.old, j);
            self.roots.iter().position(|root| matches!(&root.what, What::Ops(ops) if follows(ops)))
        });
        let by: Vec<Option<usize>> = by.collect();
        by.iter().flatten().for_each(|&r| self.roots[r].weight += 1);
        let rest = by.iter().filter(|r| r.is_none()).count();
        if rest > 0 {
            self.roots.push(Root::of(What::Results, rest));
        }
    }

    fn donations(&mut self) {
        if self.new.is_read() || self.old.is_read() {
            return;
        }
        let of = |l: u32| -> Option<(u32, u32)> {
            let m = self.leaves.of_new[l as usize];
            let old = self.old.leaves.get(m as usize)?;
            let new = &self.new.leaves[l as usize];
            (new.donate != old.donate && new.ty == old.ty).then_some((l, m))
        };
        let pairs: Vec<(u32, u32)> = (0..self.new.leaves.len() as u32).filter_map(of).collect();
        if pairs.is_empty() {
            return;
        }
        // Other results, other ops or other operands leave other buffers over, and so do inputs as large as these.
        let as_large = |l: u32, m: u32| {
            let (new, old) = (&self.new.leaves[l as usize].ty, &self.old.leaves[m as usize].ty);
            pairs.iter().map(|p| &self.new.leaves[p.0 as usize].ty).any(|ty| ty == new || ty == old)
        };
        let other = |root: &Root| match root.what {
            What::Attrs(_) | What::Options => false,
            What::Input(l, m) => as_large(l, m),
            _ => true,
        };
        match self.roots.iter().position(other) {
            Some(r) => self.roots[r].weight += pairs.len(),
            None => {
                self.root(What::Donation(pairs));
            }
        }
    }
}
