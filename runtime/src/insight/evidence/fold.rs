//! Differences that go by others where there are such: gradients, updates, conversions, parts of what has another size.
use super::roots::Pass;
use super::what::{Ops, Root, What};
use crate::insight::mode::Derived;
use crate::insight::record::Record;
use xlazy_core::ir::{Input, Kind, Step};

impl Pass<'_> {
    /// Takes each root that follows from another (its number, for each) to that one.
    pub(super) fn fold(&mut self, by: Vec<Option<usize>>) {
        for (r, by) in by.iter().enumerate() {
            if let Some(by) = by {
                self.roots[*by].weight += self.roots[r].weight;
            }
        }
        let mut by = by.into_iter();
        self.roots.retain(|_| by.next().flatten().is_none());
    }

    /// Where one program records gradients and the other does not: each of its ops whose operands have them in both.
    pub(super) fn regions(&mut self) {
        // It matters only where gradients were asked for.
        if !self.roots.iter().any(|r| matches!(&r.what, What::Ops(ops) if ops.derived)) {
            return;
        }
        let wanted = |r: &Record, s: &Step| {
            s.inputs.iter().any(|input| match *input {
                Input::Leaf(l) => r.leaves[l as usize].parameter,
                Input::Step(i) => r.steps[i as usize].recorded,
            })
        };
        let switched = |&&(i, j): &&(u32, u32)| {
            let (a, b) = (&self.new.steps[i as usize], &self.old.steps[j as usize]);
            a.recorded != b.recorded && a.ty.dtype == b.ty.dtype && wanted(self.new, a) && wanted(self.old, b)
        };
        let pairs: Vec<(u32, u32)> = self.aligned.pairs.iter().filter(switched).copied().collect();
        if !pairs.is_empty() {
            self.roots.push(Root::of(What::Recorded(pairs), 1));
        }
    }

    /// Whether an op surely takes another tensor: both are tensors that both programs have. What else it takes may have
    /// another place because ops came or went.
    fn rewired(&self, i: u32, j: u32, k: usize) -> bool {
        let (a, b) = (&self.new.steps[i as usize], &self.old.steps[j as usize]);
        let (Some(Input::Leaf(l)), Some(Input::Leaf(m))) = (a.inputs.get(k), b.inputs.get(k)) else { return false };
        let (l, m) = (&self.new.leaves[*l as usize], &self.old.leaves[*m as usize]);
        let both = |lineage: u64| {
            let has = |r: &Record| r.leaves.iter().any(|x| !x.scalar && x.lineage == lineage);
            has(self.new) && has(self.old)
        };
        both(l.lineage) && both(m.lineage)
    }

    /// What brings another input to what it was follows from that: conversions, where it has another dtype, and the part that is
    /// taken of it, where it has another size.
    pub(super) fn fold_adapters(&mut self) {
        let of =
            |r: &Record, all: &[u32], kinds: &[Kind]| all.iter().all(|&i| kinds.contains(&r.steps[i as usize].op.kind));
        let all = |ops: &Ops, kinds: &[Kind]| of(self.new, &ops.new, kinds) && of(self.old, &ops.old, kinds);
        let takes = |r: &Record, all: &[u32], leaf: u32| {
            all.iter().any(|&i| r.steps[i as usize].inputs.contains(&Input::Leaf(leaf)))
        };
        let adapts = |ops: &Ops, root: &Root| {
            let What::Input(l, m) = root.what else { return false };
            let (a, b) = (&self.new.leaves[l as usize], &self.old.leaves[m as usize]);
            let taken = || takes(self.new, &ops.new, l) || takes(self.old, &ops.old, m);
            match a.ty.dtype == b.ty.dtype {
                _ if a.scalar => false,
                true => all(ops, &[Kind::Select, Kind::View]) && taken(),
                false => all(ops, &[Kind::Convert]),
            }
        };
        let by = self.roots.iter().map(|r| match &r.what {
            What::Ops(ops) => self.roots.iter().position(|root| adapts(ops, root)),
            _ => None,
        });
        self.fold(by.collect());
    }

    /// Gradients and updates follow from other differences where there are such.
    pub(super) fn fold_derived(&mut self) {
        let ops = self.roots.iter().any(|r| matches!(r.what, What::Ops(_) | What::Trained(..) | What::Recorded(_)));
        let follows = |r: &Root| match &r.what {
            What::Ops(ops) => ops.derived,
            What::Attrs(pairs) => pairs.iter().all(|p| self.new.derived(p.0).is_some()),
            What::Wiring(i, j, k) => self.new.derived(*i).is_some() || ops && !self.rewired(*i, *j, *k),
            _ => false,
        };
        let rank = |r: &Root| match r.what {
            What::Trained(..) | What::Recorded(_) => 0,
            What::Ops(_) => 1,
            What::Attrs(_) => 2,
            What::Input(..) => 3,
            _ => 4,
        };
        let first = (0..self.roots.len()).filter(|&r| !follows(&self.roots[r])).min_by_key(|&r| rank(&self.roots[r]));
        // That one more tensor is updated, or one less, follows from no size and no attribute.
        let updates = |r: &Record, all: &[u32]| all.iter().filter(|&&i| r.derived(i) == Some(Derived::Update)).count();
        let steps = |r: &Root| match &r.what {
            What::Ops(ops) => updates(self.new, &ops.new) != updates(self.old, &ops.old),
            _ => false,
        };
        let of_ops = first.filter(|&r| rank(&self.roots[r]) <= 1);
        let by = self.roots.iter().map(|r| if steps(r) { of_ops } else { first }.filter(|_| follows(r))).collect();
        self.fold(by);
    }
}
