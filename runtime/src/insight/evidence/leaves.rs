//! Which data of two programs correspond.
use super::align::{Aligned, NONE};
use crate::insight::record::{LeafRecord, Record};
use std::collections::HashMap;
use std::hash::Hash;
use xlazy_core::ir::Input;

/// The parameters of a new program beside those of an old one.
pub(crate) struct Leaves {
    /// The partner of each, or [`NONE`].
    pub of_new: Vec<u32>,
    pub of_old: Vec<u32>,
}

impl Leaves {
    /// The same tensor is itself; a name or a line that stands for one thing in both programs stands for that; else what the same
    /// operand of the same op takes corresponds.
    pub fn pair(new: &Record, old: &Record, aligned: &Aligned) -> Leaves {
        let mut all = Leaves { of_new: vec![NONE; new.leaves.len()], of_old: vec![NONE; old.leaves.len()] };
        all.by(new, old, |l| Some(l.lineage));
        all.by(new, old, |l| l.name.clone().filter(|_| !l.computed));
        all.by(new, old, |l| (!l.computed).then_some(l.line));
        // What an op takes twice in one program and from two tensors in the other says nothing of either.
        for &(i, j) in &aligned.pairs {
            let (a, b) = (&new.steps[i as usize], &old.steps[j as usize]);
            for (x, y) in a.inputs.iter().zip(&b.inputs) {
                if let (Input::Leaf(l), Input::Leaf(m)) = (x, y) {
                    all.join(*l, *m);
                }
            }
        }
        all
    }

    fn join(&mut self, l: u32, m: u32) {
        let (x, y) = (&mut self.of_new[l as usize], &mut self.of_old[m as usize]);
        if *x == NONE && *y == NONE {
            (*x, *y) = (m, l);
        }
    }

    /// Pairs those of which one alone in each program has this mark.
    fn by<K: Hash + Eq>(&mut self, new: &Record, old: &Record, mark: impl Fn(&LeafRecord) -> Option<K>) {
        let mut marks: HashMap<K, (u32, u32, u32, u32)> = HashMap::new();
        let free = |r: &'_ Record, taken: &[u32]| -> Vec<u32> {
            let open = |&i: &usize| !r.leaves[i].scalar && taken[i] == NONE;
            (0..r.leaves.len()).filter(open).map(|i| i as u32).collect()
        };
        for i in free(new, &self.of_new) {
            if let Some(mark) = mark(&new.leaves[i as usize]) {
                let m = marks.entry(mark).or_default();
                (m.0, m.1) = (m.0 + 1, i);
            }
        }
        for i in free(old, &self.of_old) {
            if let Some(mark) = mark(&old.leaves[i as usize]) {
                let m = marks.entry(mark).or_default();
                (m.2, m.3) = (m.2 + 1, i);
            }
        }
        marks.into_values().filter(|m| m.0 == 1 && m.2 == 1).for_each(|m| self.join(m.1, m.3));
    }
}
