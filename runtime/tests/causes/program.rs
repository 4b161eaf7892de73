//! Programs as they are drawn: a model of modules, helper functions, loops and conditions, and the step that runs it.
use xlazy::prelude::*;

/// A layer as it is made.
#[derive(Clone, Debug)]
pub enum Spec {
    Linear(usize, usize),
    Norm(usize),
    Embedding(usize, usize),
    Conv(usize, usize),
    BatchNorm(usize),
    Dropout,
}

pub enum Layer {
    Linear(nn::Linear),
    Norm(nn::LayerNorm),
    Embedding(nn::Embedding),
    Conv(nn::Conv2d),
    BatchNorm(nn::BatchNorm2d),
    Dropout(nn::Dropout),
}

impl Layer {
    pub fn module(&self) -> &dyn Module {
        match self {
            Layer::Linear(l) => l,
            Layer::Norm(l) => l,
            Layer::Embedding(l) => l,
            Layer::Conv(l) => l,
            Layer::BatchNorm(l) => l,
            Layer::Dropout(l) => l,
        }
    }
}

/// The number of an attribute whose value the step may change.
pub type Attr = usize;

/// What a line does to the value that flows through the model.
#[derive(Clone, Debug)]
pub enum Op {
    Unary(u8),
    Scale,
    Shift,
    /// Times a tensor without dimensions, or a number: the number of the choice.
    Times(usize),
    Layer(usize),
    Float,
    Softmax(Attr),
    Cumsum(Attr),
    Flip(Attr),
    Center(Attr),
    Peak(Attr),
    Spread(Attr),
    Roll(Attr),
    Narrow(Attr, i64),
    Take(Attr),
    Pad(Attr),
    Threshold(Attr),
    Gelu(Attr),
    Sort(Attr),
    Twice,
    Attend,
    Positions,
    Select(Attr),
    Tril(Attr),
    Part(Attr, i64),
    /// With a state that begins as zeros, or otherwise.
    Start(Attr),
    MeanTime,
    MeanSpace,
    Mean,
    Norm,
    Max,
    Context,
    Loss(Attr),
    CrossEntropy(Attr),
}

impl Op {
    pub fn attr(&self) -> Option<Attr> {
        match *self {
            Op::Softmax(a) | Op::Cumsum(a) | Op::Flip(a) | Op::Center(a) | Op::Roll(a) | Op::Narrow(a, _) => Some(a),
            Op::Gelu(a) | Op::Sort(a) | Op::Peak(a) | Op::Spread(a) => Some(a),
            Op::Tril(a) | Op::Part(a, _) | Op::Start(a) => Some(a),
            Op::Take(a) | Op::Pad(a) | Op::Threshold(a) | Op::Select(a) | Op::Loss(a) | Op::CrossEntropy(a) => Some(a),
            _ => None,
        }
    }
}

/// A statement of a function's body; `at` is its place.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// `x = op(x)`; on the line of the statement before it where `beside`.
    Op { at: usize, op: Op, beside: bool },
    /// `x = x + { body }`
    Residual { at: usize, body: Vec<Stmt> },
    /// `x = helper(x)`
    Call { at: usize, helper: usize },
    /// `for l in layers { if skips { continue; } body }`, or of rounds of the same layers where `stride` is 0
    Loop { at: usize, skip_at: usize, id: usize, first: usize, stride: usize, body: Vec<Stmt> },
    /// `x = region(off, || { body })`, which records no gradients where it is off.
    Region { at: usize, id: usize, body: Vec<Stmt> },
    /// `if condition { then } else { other }`
    If { at: usize, id: usize, then: Vec<Stmt>, other: Vec<Stmt> },
    /// `x = x + second`, or the mean of something of another size.
    Join { at: usize, input: usize, context: bool },
    /// `let aux = x.mean(); if log { aux.item() }; if keep { kept.push(aux) }`
    Aux { at: usize, guard_at: usize, read_at: usize, keep_at: usize, id: usize, op: Op },
}

/// The shape of a value in the model: what its dimensions are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// batch, features
    Flat,
    /// batch, time, features
    Seq,
    /// batch, channels, height, width
    Img,
}

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Data {
    Flat(usize),
    Seq(usize),
    /// Indices for an embedding: batch, time.
    Ids,
    Img(usize),
    /// Rows of its own number.
    Context(usize),
    /// A class for each of the batch.
    Targets,
}

#[derive(Clone, Debug)]
pub struct Input {
    pub at: usize,
    /// Where the evaluation makes its own.
    pub evaluated_at: usize,
    pub data: Data,
}

#[derive(Clone, Debug)]
pub struct Helper {
    pub at: usize,
    pub body: Vec<Stmt>,
}

/// What a step does with the model.
#[derive(Clone, Debug, Default)]
pub struct Train {
    pub on: bool,
    /// 0: SGD, 1: with momentum, 2: Adam
    pub optimizer: u8,
    /// The later half of the parameters has an optimizer of its own.
    pub second: bool,
    pub ema: bool,
    /// Gradients can be clipped.
    pub clips: bool,
    /// Gradients of so many batches are summed up.
    pub micro: usize,
}

/// Places of the step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Places {
    pub optimizer: usize,
    pub second: usize,
    pub second_guard: usize,
    pub second_step: usize,
    pub shadow: usize,
    pub scale: usize,
    pub micro: usize,
    pub call: usize,
    pub loss: usize,
    pub backward: usize,
    pub between_guard: usize,
    pub between: usize,
    pub clip_guard: usize,
    pub clip: usize,
    pub step: usize,
    pub ema: usize,
    pub assign: usize,
    pub hold_guard: usize,
    pub hold: usize,
    pub barrier: usize,
    pub read: usize,
    pub state: usize,
    pub history: usize,
    /// The call of the evaluation, its result, its barrier, its read.
    pub evaluate: usize,
    pub accuracy: usize,
    pub evaluated: usize,
    pub accuracy_read: usize,
    /// Lines of other cells.
    pub freeze: usize,
    pub init: usize,
    pub init_sync: usize,
    pub mode: usize,
    pub precision: usize,
    pub moves: usize,
    pub alias: usize,
    pub validation: usize,
    pub leftover: usize,
    pub other: usize,
    pub other_sync: usize,
}

/// A drawn program. `places` and those of the statements are given by `layout`.
#[derive(Clone, Debug)]
pub struct Program {
    pub inputs: Vec<Input>,
    pub layers: Vec<(usize, Spec)>,
    pub helpers: Vec<Helper>,
    pub model: Vec<Stmt>,
    /// The attributes' values, and others that they may have.
    pub attrs: Vec<(i64, i64)>,
    pub rounds: Vec<usize>,
    pub conditions: usize,
    pub regions: usize,
    pub auxes: usize,
    pub times: usize,
    pub train: Train,
    pub loss: Op,
    /// State that each step changes in place.
    pub state: bool,
    /// After each step the model is evaluated on other data; with a barrier or only with a read.
    pub evaluates: Option<bool>,
    /// What is read after the barrier.
    pub reads_loss: bool,
    pub places: Places,
}

impl Program {
    /// The statements that run as the program is drawn, those of helpers once.
    pub fn live(&self) -> Vec<&Stmt> {
        fn walk<'a>(p: &'a Program, body: &'a [Stmt], called: &mut Vec<usize>, out: &mut Vec<&'a Stmt>) {
            for s in body {
                out.push(s);
                match s {
                    Stmt::Residual { body, .. } | Stmt::Loop { body, .. } | Stmt::Region { body, .. } => {
                        walk(p, body, called, out)
                    }
                    Stmt::If { then, .. } => walk(p, then, called, out),
                    Stmt::Call { helper, .. } if !called.contains(helper) => {
                        called.push(*helper);
                        walk(p, &p.helpers[*helper].body, called, out);
                    }
                    _ => {}
                }
            }
        }
        let mut out = Vec::new();
        walk(self, &self.model, &mut Vec::new(), &mut out);
        out
    }

    /// All statements with those inside them, in order.
    pub fn statements(&self) -> Vec<&Stmt> {
        fn walk<'a>(body: &'a [Stmt], out: &mut Vec<&'a Stmt>) {
            for s in body {
                out.push(s);
                match s {
                    Stmt::Residual { body, .. } | Stmt::Loop { body, .. } | Stmt::Region { body, .. } => {
                        walk(body, out)
                    }
                    Stmt::If { then, other, .. } => {
                        walk(then, out);
                        walk(other, out);
                    }
                    _ => {}
                }
            }
        }
        let mut out = Vec::new();
        self.helpers.iter().for_each(|h| walk(&h.body, &mut out));
        walk(&self.model, &mut out);
        out
    }

    /// The loops that are inside of others.
    pub fn inner_loops(&self) -> Vec<usize> {
        fn walk(body: &[Stmt], inside: bool, out: &mut Vec<usize>) {
            for s in body {
                match s {
                    Stmt::Loop { id, body, .. } => {
                        out.extend(inside.then_some(*id));
                        walk(body, true, out);
                    }
                    Stmt::Residual { body, .. } | Stmt::Region { body, .. } => walk(body, inside, out),
                    Stmt::If { then, other, .. } => [then, other].into_iter().for_each(|body| walk(body, inside, out)),
                    _ => {}
                }
            }
        }
        let mut out = Vec::new();
        self.helpers.iter().for_each(|h| walk(&h.body, false, &mut out));
        walk(&self.model, false, &mut out);
        out
    }

    pub fn trains(&self) -> bool {
        self.train.on
    }
}
