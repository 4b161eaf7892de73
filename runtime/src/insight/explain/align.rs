//! Which ops of two programs correspond.
use super::super::record::Record;
use super::super::report::{Difference, Place};
use super::inputs::InputDifference;
use std::collections::{HashMap, HashSet, VecDeque};
use xlazy_core::ir::{Input, Step};

pub(super) struct Aligned {
    /// `(new, old)`
    pub pairs: Vec<(u32, u32)>,
    pub only_new: Vec<u32>,
    pub only_old: Vec<u32>,
}

/// Common start and end by op and line; what lies between by op and line again, in order.
pub(super) fn align(new: &Record, old: &Record) -> Aligned {
    // Of a cell written anew no line is the same: then the ops alone tell.
    let rewritten = new.strangers(old);
    let line = |r: &Record, i: usize| if rewritten { 0 } else { r.lines[i] };
    let same = |i: usize, j: usize| new.steps[i].op.id == old.steps[j].op.id && line(new, i) == line(old, j);
    let (n, o) = (new.steps.len(), old.steps.len());
    // The same ops from other lines are the same program: compare by op alone when that fits throughout.
    if new.same_ops(old) {
        return Aligned { pairs: (0..n as u32).map(|i| (i, i)).collect(), only_new: vec![], only_old: vec![] };
    }
    let shorter = n.min(o);
    let start = (0..shorter).take_while(|&i| same(i, i)).count();
    let end = (0..shorter - start).take_while(|&i| same(n - 1 - i, o - 1 - i)).count();
    let mut aligned =
        Aligned { pairs: (0..start as u32).map(|i| (i, i)).collect(), only_new: vec![], only_old: vec![] };
    let mut waiting: HashMap<(u32, u64), VecDeque<u32>> = HashMap::new();
    for j in start..o - end {
        waiting.entry((old.steps[j].op.id, line(old, j))).or_default().push_back(j as u32);
    }
    for i in start..n - end {
        match waiting.get_mut(&(new.steps[i].op.id, line(new, i))).and_then(VecDeque::pop_front) {
            Some(j) => aligned.pairs.push((i as u32, j)),
            None => aligned.only_new.push(i as u32),
        }
    }
    aligned.only_old = waiting.into_values().flatten().collect();
    aligned.only_old.sort_unstable();
    aligned.pair_edited_lines(new, old);
    aligned.pairs.extend((0..end).map(|i| ((n - 1 - i) as u32, (o - 1 - i) as u32)));
    aligned.pairs.sort_unstable();
    aligned
}

impl Aligned {
    /// Of lines that only one of both has, an edited one is the other's: their ops correspond in order.
    fn pair_edited_lines(&mut self, new: &Record, old: &Record) {
        let lines = |r: &Record| -> HashSet<u64> { r.lines.iter().copied().collect() };
        let (of_new, of_old) = (lines(new), lines(old));
        let mut waiting: HashMap<u32, VecDeque<u32>> = HashMap::new();
        for &j in self.only_old.iter().filter(|&&j| !of_new.contains(&old.lines[j as usize])) {
            waiting.entry(old.steps[j as usize].op.id).or_default().push_back(j);
        }
        let (mut next, mut paired) = (0, HashSet::new());
        self.only_new.retain(|&i| {
            let (op, line) = (new.steps[i as usize].op.id, new.lines[i as usize]);
            let Some(alike) = waiting.get_mut(&op).filter(|_| !of_old.contains(&line)) else { return true };
            while alike.front().is_some_and(|&j| j < next) {
                alike.pop_front();
            }
            let Some(j) = alike.pop_front() else { return true };
            next = j + 1;
            paired.insert(j);
            self.pairs.push((i, j));
            false
        });
        self.only_old.retain(|j| !paired.contains(j));
    }

    pub fn same_ops(&self) -> bool {
        self.only_new.is_empty() && self.only_old.is_empty()
    }

    /// The ops that only one of them has.
    pub fn differences(&self, new: &Record, old: &Record) -> Vec<Difference> {
        let gained = self.only_new.iter().map(|&i| &new.steps[i as usize]);
        let lost = self.only_old.iter().map(|&j| &old.steps[j as usize]);
        let gained = gained.map(|s| Difference::gained("op", describe(s), s.at));
        gained.chain(lost.map(|s| Difference::lost("op", describe(s), s.at))).collect()
    }

    /// The graph's difference: ops that came or went, and those whose type or attributes are others; at most so many, since
    /// only what is shown is described.
    pub fn graph(&self, new: &Record, old: &Record, most: usize) -> Vec<Difference> {
        let changed = self.pairs.iter().filter_map(|&(i, j)| {
            let (a, b) = (&new.steps[i as usize], &old.steps[j as usize]);
            (a.ty != b.ty || a.attrs != b.attrs).then(|| Difference {
                what: "op".into(),
                was: new.written(b),
                now: new.written(a),
                was_at: Some(b.at),
                now_at: Some(a.at),
            })
        });
        self.differences(new, old).into_iter().chain(changed).take(most).collect()
    }

    /// The line behind a difference of structure: where a new input was made, else the first op that is new.
    pub fn fault(&self, new: &Record, old: &Record, inputs: &[InputDifference]) -> Place {
        let known: HashSet<u64> = old.leaves.iter().map(|l| l.line).collect();
        let fresh = inputs.iter().find(|d| d.now.is_some() && !known.contains(&d.line));
        fresh
            .map(|d| d.at)
            .or_else(|| self.only_new.first().map(|&i| new.steps[i as usize].at))
            .or_else(|| self.only_old.first().map(|&j| old.steps[j as usize].at))
            .unwrap_or(new.site)
    }
}

/// A step in a few words.
pub(super) fn describe(step: &Step) -> String {
    format!("{} → {}", step.op.name, step.ty)
}

/// Whether only results differ: what is new is used by nothing else.
pub(super) fn roots_explain(new: &Record, aligned: &Aligned) -> bool {
    let extra: HashSet<u32> = aligned.only_new.iter().copied().collect();
    let mut used: HashSet<u32> = HashSet::new();
    for (i, s) in new.steps.iter().enumerate() {
        if !extra.contains(&(i as u32)) {
            used.extend(s.inputs.iter().filter_map(|i| if let Input::Step(s) = i { Some(*s) } else { None }));
        }
    }
    extra.is_disjoint(&used) && !extra.is_empty()
}
