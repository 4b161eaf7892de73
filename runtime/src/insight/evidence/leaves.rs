//! Which data of two programs correspond.
use super::align::{Aligned, NONE};
use super::renewed::renewed;
use crate::insight::record::{LeafRecord, Record};
use foldhash::{HashMap, HashMapExt, HashSet};
use std::hash::Hash;
use xlazy_core::ir::Input;

/// The parameters of a new program beside those of an old one.
pub(crate) struct Leaves {
    /// The partner of each, or [`NONE`].
    pub of_new: Vec<u32>,
    pub of_old: Vec<u32>,
}

impl Leaves {
    /// The same tensor is itself, and that of a model made anew the one in whose place it is; what a name stands for, or what a line
    /// made, is that in both programs where they have as many of it, but for lines that made what lasts, which is itself alone; else
    /// what the same operand of the same op takes corresponds.
    pub fn pair(new: &Record, old: &Record, aligned: &Aligned) -> Leaves {
        let mut all = Leaves { of_new: vec![NONE; new.leaves.len()], of_old: vec![NONE; old.leaves.len()] };
        let renewed = renewed(new, old);
        all.by(new, old, |l| Some(renewed.get(&l.lineage).copied().unwrap_or(l.lineage)));
        all.by(new, old, |l| l.name.clone().filter(|_| !l.computed));
        // Of a text no tensor is known: those of one line and one type are the same where there are as many.
        if !new.session {
            all.by(new, old, |l| Some((l.line, l.ty.clone())));
        }
        // In a text what is left of a line whose others correspond is another one.
        let paired = new.leaves.iter().zip(&all.of_new).filter(|(_, partner)| !new.session && **partner != NONE);
        let known: HashSet<u64> = paired.map(|(l, _)| l.line).filter(|line| *line != 0).collect();
        let line = |l: &LeafRecord| !l.computed && !l.lasts() && !known.contains(&l.line);
        all.by(new, old, |l| line(l).then_some(l.line));
        // What an op takes twice in one program and from two tensors in the other says nothing of either.
        for (i, j) in new.takers().iter().map(|&i| (i, aligned.of_new[i as usize])).filter(|p| p.1 != NONE) {
            let (a, b) = (&new.steps[i as usize], &old.steps[j as usize]);
            // Gradients and updates of other tensors are the same ops: of these two numbers correspond, and what is of one type.
            let any = new.session && new.derived(i).is_none();
            let alike = |l: &LeafRecord, m: &LeafRecord| any || l.scalar && m.scalar || l.ty == m.ty;
            for (x, y) in a.inputs.iter().zip(&b.inputs) {
                if let (Input::Leaf(l), Input::Leaf(m)) = (x, y)
                    && all.of_new[*l as usize] == NONE
                    && alike(&new.leaves[*l as usize], &old.leaves[*m as usize])
                {
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

    /// Pairs those with this mark in order, where both programs have as many of it.
    fn by<K: Hash + Eq>(&mut self, new: &Record, old: &Record, mark: impl Fn(&LeafRecord) -> Option<K>) {
        let mut marks: HashMap<K, (Vec<u32>, Vec<u32>)> = HashMap::new();
        let marked = |r: &'_ Record, partners: &[u32]| -> Vec<(u32, K)> {
            let tensors = r.leaves.iter().enumerate().filter(|(i, l)| !l.scalar && (r.session || partners[*i] == NONE));
            tensors.filter_map(|(i, l)| Some((i as u32, mark(l)?))).collect()
        };
        marked(new, &self.of_new).into_iter().for_each(|(i, mark)| marks.entry(mark).or_default().0.push(i));
        marked(old, &self.of_old).into_iter().for_each(|(i, mark)| marks.entry(mark).or_default().1.push(i));
        for (mut a, mut b) in marks.into_values().filter(|(a, b)| a.len() == b.len()) {
            a.sort_by_key(|&i| new.leaves[i as usize].seq);
            b.sort_by_key(|&i| old.leaves[i as usize].seq);
            a.into_iter().zip(b).for_each(|(l, m)| self.join(l, m));
        }
    }
}
