//! Whether an input of a program could be bucketed, before it is advised: the program is recorded again on placeholders, where
//! nothing runs and nothing stays, and the bucketing rules of all its ops are asked.
use super::{each, ends_with};
use crate::insight::bucketing::{Beside, Feed, InputDim, Proposal, Refusal};
use crate::tensor::{Arg, BucketRule, Entry, Tensor, marked, on_trial, try_trace};
use foldhash::HashMap;
use smallvec::SmallVec;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::Location;
use std::rc::Rc;
use xlazy_core::Error;
use xlazy_core::ir::{AttrsExt, Bucket, DATA, Graph, Input, NodeId, Origin, Payload, Step, graph};
use xlazy_core::ty::{Shape, Type};

impl Proposal<'_> {
    /// All that must be bucketed together, the inputs asked for first, or the first op that refuses it.
    pub(crate) fn applicable(&self) -> Result<Vec<InputDim>, Refusal> {
        let mut together = self.inputs.clone();
        let mut first: Option<Refusal> = None;
        loop {
            let replay = || Replay::new(self.steps, &self.feeds, &together, self.buckets).run();
            let refusal = match on_trial(replay) {
                Ok(()) => return Ok(together),
                Err(refusal) => refusal,
            };
            // What refuses with more inputs bucketed may be another thing: the first refusal is that of what was asked.
            let (beside, further) = (refusal.beside, first.as_ref().is_none_or(|f| refusal.step > f.step));
            let first = first.get_or_insert(refusal);
            match beside {
                Some(Beside::Input(spot)) if further && !self.feeds[spot.0].fixed && !together.contains(&spot) => {
                    together.push(spot);
                }
                _ => return Err(first.clone()),
            }
        }
    }

    /// Which of the steps `made`, that make tensors of the size that is to be bucketed, keeps it: what is computed of it is not the
    /// same program as `was` is, of another size, with both in one bucket. Positions and constants that meet what is bucketed become as
    /// large as that. `before` is the step's number in the other program.
    pub(crate) fn left_as_made(
        &self,
        was: &Proposal,
        made: &[u32],
        roots: &[u32],
        before: impl Fn(usize) -> Option<usize>,
    ) -> Option<u32> {
        let size = |p: &Proposal| p.inputs.iter().map(|&(leaf, d)| p.feeds[leaf].ty.shape[d]).max().unwrap_or(1);
        let one = [2 * size(self).max(size(was)).max(1)];
        let became =
            |p: &Proposal| Proposal { buckets: &one, feeds: p.feeds.clone(), inputs: vec![], ..*p }.with(&p.inputs);
        let (Ok(now), Ok(was)) = (became(self), became(was)) else { return made.first().copied() };
        // What each step takes of these, by itself or through what is plain.
        let mut of: Vec<Option<u32>> = vec![None; now.len()];
        for (i, s) in self.steps.iter().enumerate() {
            let taken = s.inputs.iter().find_map(|input| match *input {
                Input::Step(k) => of[k as usize],
                Input::Leaf(_) => None,
            });
            match now[i] {
                Became::Plain => {
                    of[i] = if made.contains(&(i as u32)) { Some(i as u32) } else { taken };
                    if of[i].is_some() && roots.contains(&(i as u32)) {
                        return of[i];
                    }
                }
                Became::Elementwise if taken.is_some() => return taken,
                Became::Padded(_) if taken.is_some() && before(i).is_none_or(|j| was[j] != now[i]) => return taken,
                _ => {}
            }
        }
        None
    }

    /// What each step becomes with just these inputs bucketed.
    fn with(&self, inputs: &[InputDim]) -> Result<Vec<Became>, Refusal> {
        on_trial(|| {
            let mut replay = Replay::new(self.steps, &self.feeds, inputs, self.buckets);
            replay.run()?;
            let mut known = HashMap::default();
            Ok((0..self.steps.len()).map(|i| replay.became(i, &mut known)).collect())
        })
    }
}

/// What a step is once inputs are bucketed.
#[derive(Clone, Copy, PartialEq)]
enum Became {
    /// Nothing bucketed comes to it.
    Plain,
    /// Of what is bucketed and what broadcasts to that, as it is.
    Elementwise,
    /// This program, as one number: the same for two sizes that one bucket holds, unless some of it keeps its size.
    Padded(u64),
    /// A gradient, of whatever there is.
    Derived,
}

struct Replay<'a> {
    steps: &'a [Step],
    feeds: &'a [Feed<'a>],
    /// The buckets of inputs, with their sizes.
    padded: Vec<(usize, Bucket, usize)>,
    fed: Vec<Option<Tensor>>,
    values: Vec<Option<Tensor>>,
    /// Which values a rule has given.
    traced: Vec<bool>,
    /// The buckets of what a step makes.
    shown: Vec<Option<Rc<Buckets>>>,
    /// The buckets that a shape had last.
    likes: Vec<(Shape, Buckets)>,
}

type Buckets = Vec<(Bucket, usize)>;

/// How many ops back what is plain is told to the rules.
const DEPTH: usize = 8;

impl<'a> Replay<'a> {
    fn new(steps: &'a [Step], feeds: &'a [Feed<'a>], inputs: &[InputDim], buckets: &[usize]) -> Replay<'a> {
        let bucket = |&(leaf, dim): &InputDim| {
            let size = feeds[leaf].ty.shape[dim];
            // A bucket that is full hides what the rules would do with the padding.
            let larger = buckets.iter().copied().filter(|&b| b > size).min();
            (leaf, Bucket { dim, size }, larger.unwrap_or(2 * size.max(1)))
        };
        Replay {
            steps,
            feeds,
            padded: inputs.iter().map(bucket).collect(),
            fed: vec![None; feeds.len()],
            values: vec![None; steps.len()],
            traced: vec![false; steps.len()],
            shown: vec![None; steps.len()],
            likes: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), Refusal> {
        for i in 0..self.steps.len() {
            self.step(i)?;
        }
        Ok(())
    }

    fn step(&mut self, i: usize) -> Result<(), Refusal> {
        let steps = self.steps;
        let step = &steps[i];
        match step.origin {
            // Gradients are taken of what there is physically, whatever it shows.
            Origin::Physically => return Ok(()),
            Origin::Like => {
                self.shown[i] = self.like(&step.ty.shape).map(Rc::new);
                return Ok(());
            }
            Origin::Op | Origin::Relative => {}
        }
        if !step.inputs.iter().any(|input| self.is_bucketed(input)) {
            return Ok(());
        }
        let entry = Entry::of_op(step.op);
        if let Some(buckets) = entry.and_then(|entry| self.alike(entry, step)) {
            self.shown[i] = Some(buckets);
            return Ok(());
        }
        let operands: SmallVec<[Tensor; 4]> = step.inputs.iter().map(|input| self.operand(input, DEPTH)).collect();
        let ends = || match step.origin {
            Origin::Relative if step.op.name == "slice" => {
                ends_with(&operands[0], step.attrs.index(0), [1, 2, 3].map(|k| step.attrs.int(k)))
            }
            _ => None,
        };
        let traced = match (ends(), entry) {
            (Some(part), _) => Ok(part),
            (None, Some(entry)) => {
                let args: SmallVec<[Arg; 4]> = operands.iter().map(Arg::from).collect();
                try_trace(entry, &args, step.attrs.clone(), Location::caller())
            }
            (None, None) => return Ok(()),
        };
        match traced {
            Ok(y) => {
                self.set(i, y);
                Ok(())
            }
            Err(e) => {
                let message = match e {
                    Error::Op { message, .. } => message,
                    other => other.to_string(),
                };
                Err(Refusal { op: step.op.torch_name(), at: step.at, step: i, message, beside: self.beside(step) })
            }
        }
    }

    fn became(&self, i: usize, known: &mut HashMap<NodeId, u64>) -> Became {
        match (&self.shown[i], &self.values[i]) {
            _ if self.steps[i].origin == Origin::Physically => Became::Derived,
            (_, Some(y)) if self.traced[i] => Became::Padded(program(&graph(), y.id(), known)),
            (Some(_), _) => Became::Elementwise,
            (None, _) => Became::Plain,
        }
    }

    fn set(&mut self, i: usize, y: Tensor) {
        let buckets: Buckets = {
            let g = graph();
            let n = g.node(y.id());
            n.buckets().iter().map(|&b| (b, n.ty.shape[b.dim])).collect()
        };
        if !buckets.is_empty() && self.like(&self.steps[i].ty.shape).as_ref() != Some(&buckets) {
            self.likes.retain(|(shape, _)| *shape != self.steps[i].ty.shape);
            self.likes.push((self.steps[i].ty.shape.clone(), buckets.clone()));
        }
        self.shown[i] = (!buckets.is_empty()).then(|| Rc::new(buckets));
        self.traced[i] = true;
        self.values[i] = Some(y);
    }

    /// The buckets of an elementwise op on operands that are bucketed as its result is, or broadcast to it: most ops are such,
    /// and need no rule.
    fn alike(&self, entry: &Entry, step: &Step) -> Option<Rc<Buckets>> {
        if !entry.bucket.is_some_and(|rule| std::ptr::fn_addr_eq(rule, each as BucketRule)) {
            return None;
        }
        let shape = |input: &Input| match *input {
            Input::Leaf(l) => &self.feeds[l as usize].ty.shape,
            Input::Step(s) => &self.steps[s as usize].ty.shape,
        };
        let mut found: Option<Rc<Buckets>> = None;
        for input in &step.inputs {
            let buckets = match *input {
                Input::Step(s) => self.shown[s as usize].clone(),
                Input::Leaf(l) => Some(self.buckets_of_input(l as usize)).filter(|b| !b.is_empty()).map(Rc::new),
            };
            let Some(buckets) = buckets else { continue };
            if *shape(input) != step.ty.shape || found.as_ref().is_some_and(|f| **f != *buckets) {
                return None;
            }
            found = Some(buckets);
        }
        let found = found?;
        let rank = step.ty.shape.len();
        let broadcast = |input: &&Input| {
            let shape = shape(input);
            found.iter().all(|(k, _)| (k.dim + shape.len()).checked_sub(rank).is_none_or(|e| shape[e] == 1))
        };
        step.inputs.iter().filter(|input| !self.is_bucketed(input)).all(|input| broadcast(&input)).then_some(found)
    }

    /// The buckets that a tensor of this shape has, if there was one.
    fn like(&self, shape: &Shape) -> Option<Buckets> {
        let made = self.likes.iter().find(|(s, _)| s == shape).map(|(_, buckets)| buckets.clone());
        made.or_else(|| {
            let leaf = self.padded.iter().find(|(leaf, ..)| self.feeds[*leaf].ty.shape == *shape)?.0;
            Some(self.buckets_of_input(leaf))
        })
    }

    fn buckets_of_input(&self, leaf: usize) -> Buckets {
        self.padded.iter().filter(|(l, ..)| *l == leaf).map(|&(_, b, size)| (b, size)).collect()
    }

    fn is_bucketed(&self, input: &Input) -> bool {
        match input {
            Input::Leaf(l) => self.padded.iter().any(|(leaf, ..)| *leaf == *l as usize),
            Input::Step(s) => self.shown[*s as usize].is_some(),
        }
    }

    fn operand(&mut self, input: &Input, depth: usize) -> Tensor {
        match *input {
            Input::Leaf(l) => {
                let l = l as usize;
                if self.fed[l].is_none() {
                    self.fed[l] = Some(padded(self.feeds[l].ty, &self.buckets_of_input(l)));
                }
                self.fed[l].clone().expect("just made")
            }
            Input::Step(s) => {
                let s = s as usize;
                if self.values[s].is_none() {
                    self.values[s] = Some(match self.shown[s].clone() {
                        Some(buckets) => padded(&self.steps[s].ty, &buckets),
                        None => self.plain(s, depth),
                    });
                }
                self.values[s].clone().expect("just made")
            }
        }
    }

    /// What a step makes that has nothing bucketed to it: with the ops behind it, by which a rule may want more of it.
    fn plain(&mut self, s: usize, depth: usize) -> Tensor {
        let steps = self.steps;
        let step = &steps[s];
        if step.origin == Origin::Physically {
            // The gradient of an input has that input's buckets.
            let of =
                self.padded.iter().find(|(leaf, ..)| self.feeds[*leaf].ty == step.ty.get()).map(|(leaf, ..)| *leaf);
            return padded(&step.ty, &of.map_or(Vec::new(), |leaf| self.buckets_of_input(leaf)));
        }
        if depth == 0 {
            return padded(&step.ty, &[]);
        }
        let inputs: Vec<Tensor> = step.inputs.iter().map(|input| self.operand(input, depth - 1)).collect();
        let ids = inputs.iter().map(Tensor::id).collect();
        let mut g = graph();
        let id = g.push(step.op, ids, step.attrs.clone(), step.ty, Payload::Pending, Location::caller());
        Tensor::of_node(&mut g, id)
    }

    /// The plain operand of a step that has the size of a bucketed one.
    fn beside(&self, step: &Step) -> Option<Beside> {
        let sizes: Vec<usize> = self.padded.iter().map(|(_, b, _)| b.size).filter(|&n| n != 1).collect();
        let dim = |ty: &Type| ty.shape.iter().position(|n| sizes.contains(n));
        let plain = step.inputs.iter().filter(|input| !self.is_bucketed(input));
        let of = |input: &Input| match *input {
            Input::Leaf(l) => dim(self.feeds[l as usize].ty).map(|d| Beside::Input((l as usize, d))),
            Input::Step(s) => {
                dim(&self.steps[s as usize].ty)?;
                Some(self.source(s as usize, &dim).map_or(Beside::Step(s as usize), Beside::Input))
            }
        };
        plain.filter_map(of).next()
    }

    /// The input that a plain step has its size from.
    fn source(&self, s: usize, dim: &impl Fn(&Type) -> Option<usize>) -> Option<InputDim> {
        let (mut open, mut seen) = (vec![s], 0);
        while let Some(s) = open.pop() {
            seen += 1;
            for input in &self.steps[s].inputs {
                match *input {
                    Input::Leaf(l) => {
                        if let Some(d) = dim(self.feeds[l as usize].ty) {
                            return Some((l as usize, d));
                        }
                    }
                    Input::Step(k) if seen < 64 && dim(&self.steps[k as usize].ty).is_some() => open.push(k as usize),
                    Input::Step(_) => {}
                }
            }
        }
        None
    }
}

/// A placeholder that shows `ty`.
fn padded(ty: &Type, buckets: &[(Bucket, usize)]) -> Tensor {
    let mut physical = ty.clone();
    buckets.iter().for_each(|(b, size)| physical.shape[b.dim] = *size);
    let placeholder = {
        let mut g = graph();
        let id =
            g.push(&DATA, SmallVec::new(), Box::default(), physical.into(), Payload::Scalar(0), Location::caller());
        Tensor::of_node(&mut g, id)
    };
    marked(placeholder, buckets.iter().map(|(b, _)| *b).collect())
}

/// What is computed behind a node down to the placeholders, as one number: ops, attributes, types and wiring, as in a program's key.
fn program(g: &Graph, id: NodeId, known: &mut HashMap<NodeId, u64>) -> u64 {
    if let Some(&mark) = known.get(&id) {
        return mark;
    }
    let n = g.node(id);
    let mut h = DefaultHasher::new();
    (n.op.id, n.ty.get()).hash(&mut h);
    n.attrs.iter().for_each(|a| a.to_string().hash(&mut h));
    n.inputs.iter().for_each(|&input| program(g, input, known).hash(&mut h));
    *known.entry(id).or_insert(h.finish())
}
