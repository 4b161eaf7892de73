//! Which ops of two programs correspond.
use super::renewed::renewed;
use super::shortest::shortest;
use crate::insight::marks::Marks;
use crate::insight::record::{LeafRecord, Record, token};
use foldhash::{HashMap, HashMapExt, HashSet};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::hash::Hash;
use xlazy_core::ir::Input;

/// Stands for no partner.
pub(crate) const NONE: u32 = u32::MAX;

/// Pairs of ops that are tried at most.
const TRIED: usize = 1 << 16;

/// The ops of a new program beside those of an old one.
pub(crate) struct Aligned {
    /// `(new, old)`, by the new one's order.
    pub pairs: Vec<(u32, u32)>,
    pub only_new: Vec<u32>,
    pub only_old: Vec<u32>,
    /// The partner of each op, or [`NONE`].
    pub of_new: Vec<u32>,
    pub of_old: Vec<u32>,
}

/// What tells ops of two programs apart: the op and its line, and the tensors that both programs know, by operand.
struct Tokens<'a> {
    new: Side<'a>,
    old: Side<'a>,
}

/// One of the two programs.
struct Side<'a> {
    of: &'a Record,
    ops: Cow<'a, Marks>,
    typed: Cow<'a, Marks>,
    /// The tensor that each leaf is, where it is one that tells; 0 stands for others.
    leaves: Vec<u64>,
}

/// The tensor that each of the first operands is, where it is one that tells.
type Takes = [u64; 4];

impl<'a> Tokens<'a> {
    fn of(new: &'a Record, old: &'a Record) -> Tokens<'a> {
        // Of a cell written anew no line is the same: then the ops alone tell.
        let lines = !new.strangers(old);
        let theirs: HashSet<u64> = old.leaves.iter().filter(|l| !l.scalar).map(|l| l.lineage).collect();
        let known: HashSet<u64> =
            new.leaves.iter().filter(|l| !l.scalar && theirs.contains(&l.lineage)).map(|l| l.lineage).collect();
        // The same lines on a mesh: the layers of one model correspond to those of another.
        let lasts = |r: &Record| r.leaves.iter().any(|l| l.lasts() && known.contains(&l.lineage));
        let share = new.device == old.device || lasts(new) || lasts(old);
        let lasting = |l: &LeafRecord| share && l.lasts() || !l.scalar && known.contains(&l.lineage);
        let renewed = renewed(new, old);
        let which = |l: &LeafRecord| renewed.get(&l.lineage).copied().unwrap_or(l.lineage);
        let side = |r: &'a Record| {
            let leaves = r.leaves.iter().map(|l| if lasting(l) { which(l) } else { 0 }).collect();
            if lines {
                return Side { of: r, ops: Cow::Borrowed(r.tokens()), typed: Cow::Borrowed(r.typed()), leaves };
            }
            let ops: Marks = r.steps.iter().map(|s| token(s.op, 0)).collect();
            Side { of: r, typed: Cow::Owned(r.with_types(&ops)), ops: Cow::Owned(ops), leaves }
        };
        Tokens { new: side(new), old: side(old) }
    }

    /// Whether the ops may correspond: where both take tensors that both programs have, these are the same.
    fn fit(&self, i: usize, j: usize) -> bool {
        self.new.ops[i] == self.old.ops[j] && self.take_alike(i, j)
    }

    fn take_alike(&self, i: usize, j: usize) -> bool {
        let (a, b) = (&self.new.of.steps[i].inputs, &self.old.of.steps[j].inputs);
        let both = a.iter().zip(b).take(Takes::default().len());
        both.map(|(x, y)| (self.new.tensor(x), self.old.tensor(y))).all(|(x, y)| x == y || x == 0 || y == 0)
    }

    /// With how many ops of the same types both programs begin, and with how many they end behind that.
    fn ends(&self) -> (usize, usize) {
        let (n, o) = (self.new.of.steps.len(), self.old.of.steps.len());
        let start = self.new.typed.start(&self.old.typed);
        let takers = self.new.of.takers();
        let other = takers.iter().map(|&i| i as usize).take_while(|&i| i < start).find(|&i| !self.take_alike(i, i));
        let start = other.unwrap_or(start);
        let end = self.new.typed.end(&self.old.typed, start);
        let mut last = takers.iter().rev().map(|&i| i as usize).take_while(|&i| i >= n - end);
        (start, last.find(|&i| !self.take_alike(i, i + o - n)).map_or(end, |i| n - 1 - i))
    }
}

impl Side<'_> {
    fn tensor(&self, input: &Input) -> u64 {
        match input {
            Input::Leaf(l) => self.leaves[*l as usize],
            Input::Step(_) => 0,
        }
    }

    /// What tells this op apart where it takes tensors that tell.
    fn taking(&self, i: usize) -> Option<(u64, Takes)> {
        let mut takes = Takes::default();
        for (tensor, input) in takes.iter_mut().zip(&self.of.steps[i].inputs) {
            *tensor = self.tensor(input);
        }
        (takes != Takes::default()).then(|| (self.ops[i], takes))
    }
}

/// Common start and end; what lies between around the ops that are sure; what is left by op and line, in order.
pub(crate) fn align(new: &Record, old: &Record) -> Aligned {
    let (n, o) = (new.steps.len(), old.steps.len());
    let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(n.min(o));
    // The same ops from other lines are the same program: compare by op alone when that fits throughout.
    if new.same_ops(old) {
        let all = || (0..n as u32).collect();
        pairs.extend((0..n as u32).map(|i| (i, i)));
        return Aligned { pairs, only_new: vec![], only_old: vec![], of_new: all(), of_old: all() };
    }
    let tokens = Tokens::of(new, old);
    let (start, end) = tokens.ends();
    pairs.extend((0..start as u32).map(|i| (i, i)));
    // What follows from other ops is paired by what it takes; the others by their order.
    let own = |r: &Record, all: std::ops::Range<usize>| -> (Vec<usize>, Vec<usize>) {
        all.partition(|&i| r.derived(i as u32).is_none())
    };
    let (middle, follow) = own(new, start..n - end);
    let (middle_old, follow_old) = own(old, start..o - end);
    in_order(&tokens, &middle, &middle_old, &mut pairs);
    let tail: Vec<(u32, u32)> = (0..end).rev().map(|i| ((n - 1 - i) as u32, (o - 1 - i) as u32)).collect();
    if !follow.is_empty() && !follow_old.is_empty() {
        by_operands(new, old, &tokens, &follow, &follow_old, &tail, &mut pairs);
    }
    pairs.extend(tail);
    pairs.sort_unstable();
    let mut aligned = Aligned::of(pairs, n, o);
    aligned.pair_edited_lines(new, old);
    aligned
}

/// Pairs ops in order around those that are sure.
fn in_order(tokens: &Tokens, new: &[usize], old: &[usize], pairs: &mut Vec<(u32, u32)>) {
    /// Of long rows that differ in so few ops nothing else is tried.
    const FEW: usize = 32;
    if (new.len() + 1) * (old.len() + 1) > TRIED
        && let Some(few) = shortest(new.len(), old.len(), FEW, |x, y| tokens.fit(new[x], old[y]))
    {
        pairs.extend(few.into_iter().map(|(x, y)| (new[x] as u32, old[y] as u32)));
        return;
    }
    let (mut i, mut j) = (0, 0);
    for (x, y) in sure(tokens, new, old).into_iter().chain([(new.len(), old.len())]) {
        between(tokens, &new[i..x], &old[j..y], pairs);
        if x < new.len() {
            pairs.push((new[x] as u32, old[y] as u32));
        }
        (i, j) = (x + 1, y + 1);
    }
}

/// Gradients and updates correspond where they take what corresponds: of the ops that take an operand's partner in the same
/// place the one with most operands in common. What is left is paired in order.
fn by_operands(
    new: &Record,
    old: &Record,
    tokens: &Tokens,
    follow: &[usize],
    follow_old: &[usize],
    tail: &[(u32, u32)],
    pairs: &mut Vec<(u32, u32)>,
) {
    /// Of what so many ops take nothing follows.
    const MANY: usize = 16;
    let mut of_new = vec![NONE; new.steps.len()];
    let mut taken = vec![false; old.steps.len()];
    for &(i, j) in pairs.iter().chain(tail) {
        of_new[i as usize] = j;
        taken[j as usize] = true;
    }
    let mut leaves: HashMap<u64, u32> = HashMap::new();
    for (m, leaf) in old.leaves.iter().enumerate().filter(|(_, l)| !l.scalar) {
        leaves.insert(leaf.lineage, m as u32);
    }
    let of_leaf: Vec<u32> = new.leaves.iter().map(|l| leaves.get(&l.lineage).copied().unwrap_or(NONE)).collect();
    let mut takers: HashMap<(bool, u32), Vec<u32>> = HashMap::new();
    for &j in follow_old {
        for input in &old.steps[j].inputs {
            let key = match input {
                Input::Step(s) => (true, *s),
                Input::Leaf(l) if !old.leaves[*l as usize].scalar => (false, *l),
                Input::Leaf(_) => continue,
            };
            takers.entry(key).or_default().push(j as u32);
        }
    }
    let partner = |of_new: &[u32], input: &Input| match input {
        Input::Step(s) => Some((true, of_new[*s as usize])).filter(|p| p.1 != NONE),
        Input::Leaf(l) => Some((false, of_leaf[*l as usize])).filter(|p| p.1 != NONE),
    };
    // Those first that take nothing else than their partner does.
    let mut left: Vec<usize> = follow.to_vec();
    for strict in [true, false] {
        left.retain(|&i| {
            let step = &new.steps[i];
            let wanted: Vec<Option<(bool, u32)>> = step.inputs.iter().map(|input| partner(&of_new, input)).collect();
            let same = |(w, t): (&Option<(bool, u32)>, &Input)| match (w, t) {
                (Some((true, s)), Input::Step(t)) => Some(s == t),
                (Some((false, l)), Input::Leaf(t)) => Some(l == t),
                (Some(_), _) => Some(false),
                (None, _) => None,
            };
            let operands = |j: u32| wanted.iter().zip(&old.steps[j as usize].inputs).filter_map(same);
            let common = |j: u32| operands(j).filter(|same| *same).count();
            let fits = |j: &u32| {
                !taken[*j as usize] && tokens.fit(i, *j as usize) && !(strict && operands(*j).any(|same| !same))
            };
            let all = wanted.iter().flatten().filter_map(|w| takers.get(w)).filter(|t| t.len() <= MANY).flatten();
            let best = all.copied().filter(fits).map(|j| (common(j), Reverse(j))).max();
            let Some((_, Reverse(j))) = best else { return true };
            of_new[i] = j;
            taken[j as usize] = true;
            pairs.push((i as u32, j));
            false
        });
    }
    // Those whose operands came or went have nobody to go by.
    let known = |i: &&usize| {
        new.steps[**i].inputs.iter().any(|input| matches!(input, Input::Step(s) if of_new[*s as usize] != NONE))
    };
    let open: Vec<usize> = left.iter().filter(|i| !known(i)).copied().collect();
    let rest: Vec<usize> = follow_old.iter().copied().filter(|&j| !taken[j]).collect();
    between(tokens, &open, &rest, pairs);
}

/// The longest row of ops that are the only ones of their kind in both, by the tensors that they take or by their type: in order
/// on both sides.
fn sure(tokens: &Tokens, new: &[usize], old: &[usize]) -> Vec<(usize, usize)> {
    let mut both = only(new, old, |i| tokens.new.taking(i), |j| tokens.old.taking(j));
    both.extend(only(new, old, |i| Some(tokens.new.typed[i]), |j| Some(tokens.old.typed[j])));
    both.retain(|&(x, y)| tokens.fit(new[x], old[y]));
    // Of several partners at most one is in an increasing row.
    both.sort_unstable_by_key(|&(x, y)| (x, Reverse(y)));
    both.dedup();
    increasing(&both)
}

/// The places of those that alone have their mark in each.
fn only<K: Hash + Eq>(
    new: &[usize],
    old: &[usize],
    of_new: impl Fn(usize) -> Option<K>,
    of_old: impl Fn(usize) -> Option<K>,
) -> Vec<(usize, usize)> {
    let mut places: HashMap<K, (usize, usize, usize, usize)> = HashMap::new();
    for (x, mark) in new.iter().enumerate().filter_map(|(x, &i)| Some((x, of_new(i)?))) {
        let p = places.entry(mark).or_default();
        (p.0, p.1) = (p.0 + 1, x);
    }
    for (y, mark) in old.iter().enumerate().filter_map(|(y, &j)| Some((y, of_old(j)?))) {
        let p = places.entry(mark).or_default();
        (p.2, p.3) = (p.2 + 1, y);
    }
    places.into_values().filter(|p| p.0 == 1 && p.2 == 1).map(|p| (p.1, p.3)).collect()
}

/// The longest increasing row of the second numbers.
fn increasing(both: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; both.len()];
    for (k, &(_, y)) in both.iter().enumerate() {
        let at = tails.partition_point(|&t| both[t].1 < y);
        before[k] = at.checked_sub(1).map(|t| tails[t]);
        if at == tails.len() { tails.push(k) } else { tails[at] = k }
    }
    let mut row = Vec::new();
    let mut next = tails.last().copied();
    while let Some(k) = next {
        row.push(both[k]);
        next = before[k];
    }
    row.reverse();
    row
}

/// Pairs what lies between two sure ops: as many as there can be in order, and of these as many as can be of one type; where
/// that are too many to try, from the start, then from the end, then what is left by op and line.
fn between(tokens: &Tokens, new: &[usize], old: &[usize], pairs: &mut Vec<(u32, u32)>) {
    if (new.len() + 1) * (old.len() + 1) <= TRIED {
        return best(tokens, new, old, pairs);
    }
    let shorter = new.len().min(old.len());
    let start = (0..shorter).take_while(|&k| tokens.fit(new[k], old[k])).count();
    let (n, o) = (new.len(), old.len());
    let end = (0..shorter - start).take_while(|&k| tokens.fit(new[n - 1 - k], old[o - 1 - k])).count();
    let ends = (n - end..n).map(|x| (new[x] as u32, old[o + x - n] as u32));
    pairs.extend((0..start).map(|k| (new[k] as u32, old[k] as u32)).chain(ends));
    let (new, old) = (&new[start..n - end], &old[start..o - end]);
    let mut waiting: HashMap<u64, VecDeque<usize>> = HashMap::new();
    for (y, &j) in old.iter().enumerate() {
        waiting.entry(tokens.old.ops[j]).or_default().push_back(y);
    }
    let mut next = 0;
    for &i in new {
        let Some(alike) = waiting.get_mut(&tokens.new.ops[i]) else { continue };
        while alike.front().is_some_and(|&y| y < next) {
            alike.pop_front();
        }
        if let Some(&y) = alike.front().filter(|&&y| tokens.fit(i, old[y])) {
            alike.pop_front();
            next = y + 1;
            pairs.push((i as u32, old[y] as u32));
        }
    }
}

/// The longest common row of ops; of such rows the one with most types in common.
fn best(tokens: &Tokens, new: &[usize], old: &[usize], pairs: &mut Vec<(u32, u32)>) {
    let width = old.len() + 1;
    let score = |x: usize, y: usize| match tokens.fit(new[x], old[y]) {
        // A type is worth less than any op.
        true => Some((1 << 16) + u32::from(tokens.new.typed[new[x]] == tokens.old.typed[old[y]])),
        false => None,
    };
    // What can be reached from each pair on.
    let mut rest = vec![0u32; (new.len() + 1) * width];
    for x in (0..new.len()).rev() {
        for y in (0..old.len()).rev() {
            let without = rest[(x + 1) * width + y].max(rest[x * width + y + 1]);
            let with = score(x, y).map_or(0, |score| score + rest[(x + 1) * width + y + 1]);
            rest[x * width + y] = without.max(with);
        }
    }
    let (mut x, mut y) = (0, 0);
    while x < new.len() && y < old.len() {
        let here = rest[x * width + y];
        if score(x, y).is_some_and(|score| score + rest[(x + 1) * width + y + 1] == here) {
            pairs.push((new[x] as u32, old[y] as u32));
            (x, y) = (x + 1, y + 1);
        } else if rest[(x + 1) * width + y] == here {
            x += 1;
        } else {
            y += 1;
        }
    }
}

impl Aligned {
    fn of(pairs: Vec<(u32, u32)>, n: usize, o: usize) -> Aligned {
        let (mut of_new, mut of_old) = (vec![NONE; n], vec![NONE; o]);
        for &(i, j) in &pairs {
            of_new[i as usize] = j;
            of_old[j as usize] = i;
        }
        let alone = |all: &[u32]| (0..all.len() as u32).filter(|&i| all[i as usize] == NONE).collect();
        Aligned { only_new: alone(&of_new), only_old: alone(&of_old), pairs, of_new, of_old }
    }

    /// Of lines of an edited cell that only one of both has, one is what the other became: their ops correspond in order.
    fn pair_edited_lines(&mut self, new: &Record, old: &Record) {
        if self.only_new.is_empty() || self.only_old.is_empty() {
            return;
        }
        let mut waiting: HashMap<u32, VecDeque<u32>> = HashMap::new();
        for &j in self.only_old.iter().filter(|&&j| !new.lines.has(old.lines[j as usize])) {
            waiting.entry(old.steps[j as usize].op.id).or_default().push_back(j);
        }
        let mut next = 0;
        let mut more = Vec::new();
        for &i in &self.only_new {
            let (op, line) = (new.steps[i as usize].op.id, new.lines[i as usize]);
            let Some(alike) = waiting.get_mut(&op).filter(|_| !old.lines.has(line)) else { continue };
            while alike.front().is_some_and(|&j| j < next) {
                alike.pop_front();
            }
            // Lines of one file are there side by side.
            let edited = |j: &&u32| old.steps[**j as usize].at.file() != new.steps[i as usize].at.file();
            let Some(&j) = alike.front().filter(edited) else { continue };
            alike.pop_front();
            next = j + 1;
            more.push((i, j));
        }
        if more.is_empty() {
            return;
        }
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.extend(more);
        pairs.sort_unstable();
        *self = Aligned::of(pairs, new.steps.len(), old.steps.len());
    }

    pub fn same_ops(&self) -> bool {
        self.only_new.is_empty() && self.only_old.is_empty()
    }
}
