//! An entry of the table of ops: an op with its gradient, its samples, and what it does with padded dimensions.
use super::{Arg, Tensor};
use std::cell::OnceCell;
use std::panic::Location;
use xlazy_core::emit::Val;
use xlazy_core::ir::{Attr, AttrDef, Bucket, Check, Healed, Kind, Lower, OpDef, Rule, Sig, graph};
use xlazy_core::ty::{DType, Shape, Type};

/// What a gradient sees; its methods give tensors, and it answers with one gradient per operand (`None` where none flows).
///
/// Of complex numbers, [`Grad::x`] and [`Grad::y`] are the conjugates: what is written for real numbers is torch's gradient
/// then, wherever the op is holomorphic. Of halves they are float32 where many operations follow one another, so that the
/// gradient is rounded once, as torch's is.
pub struct Grad {
    /// The operands and the result as they are.
    pub inputs: Vec<Tensor>,
    pub output: Tensor,
    /// What is seen of operands, and behind them of the result, where that is not what they are; made where it is asked for.
    pub seen: Vec<OnceCell<Tensor>>,
    pub kind: Kind,
    /// The gradient of the output.
    pub dy: Tensor,
    /// Of an op with several results the gradients of those that have one, by their numbers.
    pub dys: Vec<(usize, Tensor)>,
    pub attrs: Box<[Attr]>,
    /// Which operands want a gradient.
    pub wanted: Vec<bool>,
    /// Takes gradients inside of this one: of each first tensor, given the second, with respect to others.
    pub walk: Walk,
}

pub(crate) type Walk = fn(&[(Tensor, Tensor)], &[&Tensor]) -> Vec<Option<Tensor>>;

impl Grad {
    /// Operand `i`; of complex numbers the conjugates, of halves float32.
    #[track_caller]
    pub fn x(&self, i: usize) -> &Tensor {
        self.seen(&self.inputs[i], i)
    }

    /// The result; of complex numbers the conjugates, of halves float32.
    #[track_caller]
    pub fn y(&self) -> &Tensor {
        self.seen(&self.output, self.inputs.len())
    }

    #[track_caller]
    fn seen<'a>(&'a self, t: &'a Tensor, i: usize) -> &'a Tensor {
        // what moves elements only asks for their shape, which needs none of their values
        let moves = matches!(
            self.kind,
            Kind::View | Kind::Select | Kind::Pad | Kind::Concat | Kind::Update | Kind::Convert | Kind::Transfer
        );
        let rounds = matches!(self.kind, Kind::Elementwise | Kind::Mul | Kind::Along | Kind::Reduce);
        match t.dtype() {
            dtype if dtype.is_complex() && !moves => self.seen[i].get_or_init(|| t.conj()),
            dtype if dtype.is_half() && rounds => self.seen[i].get_or_init(|| t.float()),
            _ => t,
        }
    }

    /// `dx` if operand `i` wants it; saves tracing what nobody uses.
    pub fn want(&self, i: usize, dx: impl FnOnce() -> Tensor) -> Option<Tensor> {
        self.wanted[i].then(dx)
    }
}

type GradFn = fn(&Grad) -> Vec<Option<Tensor>>;

/// One op: everything xlazy knows of it.
pub struct Entry {
    pub op: OpDef,
    pub grad: Option<GradFn>,
    /// Why there is none and what to write instead, where more can be said than that there is none.
    pub constant: Option<&'static str>,
    /// Operands to try the op on: every sample is compiled and, where there is a gradient, checked against differences.
    #[cfg_attr(not(test), allow(dead_code))] // the table's test reads it
    pub samples: fn() -> Vec<Sample>,
    /// What the op does with padded dimensions; `None` refuses them.
    pub bucket: Option<BucketRule>,
}

impl std::ops::Deref for Entry {
    type Target = OpDef;
    fn deref(&self) -> &OpDef {
        &self.op
    }
}

impl Entry {
    pub const fn new(name: &'static str, infer: fn(&Sig) -> Rule, lower: fn(&mut Lower) -> Val) -> Entry {
        Entry::of(OpDef::new(name, infer, lower))
    }
    pub const fn of(op: OpDef) -> Entry {
        Entry { op, grad: None, constant: None, samples: Vec::new, bucket: None }
    }
    pub const fn attrs(mut self, attrs: &'static [AttrDef]) -> Entry {
        self.op = self.op.attrs(attrs);
        self
    }
    pub const fn grad(mut self, grad: GradFn) -> Entry {
        self.grad = Some(grad);
        self
    }
    pub const fn constant(mut self, why: &'static str) -> Entry {
        self.constant = Some(why);
        self
    }
    pub const fn checks(mut self, checks: fn(&Sig) -> Vec<Check>) -> Entry {
        self.op = self.op.checks(checks);
        self
    }
    pub const fn several(mut self) -> Entry {
        self.op = self.op.several();
        self
    }
    pub const fn heal(mut self, heal: fn(&[Attr]) -> Option<Healed>) -> Entry {
        self.op = self.op.heal(heal);
        self
    }
    pub const fn kind(mut self, kind: Kind) -> Entry {
        self.op = self.op.kind(kind);
        self
    }
    pub const fn advice(mut self, advice: &'static str) -> Entry {
        self.op = self.op.advice(advice);
        self
    }
    pub const fn bucket(mut self, rule: BucketRule) -> Entry {
        self.op = self.op.bucketed();
        self.bucket = Some(rule);
        self
    }
    pub const fn samples(mut self, samples: fn() -> Vec<Sample>) -> Entry {
        self.samples = samples;
        self
    }
}

/// One operand as a rule sees it.
pub(crate) struct BucketedOperand {
    /// What it shows.
    pub ty: Type,
    /// Its bucketed dimensions, with the bucket's size.
    pub buckets: Vec<(Bucket, usize)>,
}

/// An op on bucketed operands, on its way to becoming one on what they are physically.
pub(crate) struct Bucketed<'a> {
    pub op: &'static Entry,
    pub args: Vec<Arg<'a>>,
    pub operands: Vec<BucketedOperand>,
    pub attrs: Vec<Attr>,
    /// The type that the result shows.
    pub out: Type,
    pub at: &'static Location<'static>,
}

/// A rule's answer.
pub(crate) enum Plan {
    /// The op on the operands, masked by the rule as they need be; these dimensions of the result are bucketed.
    Trace(Vec<usize>),
    /// Other ops that do the same.
    Instead(Tensor),
}

/// How an op treats bucketed operands: a plan, or a sentence on why it cannot.
pub(crate) type BucketRule = fn(&mut Bucketed) -> std::result::Result<Plan, String>;

impl BucketedOperand {
    pub fn of(t: &Tensor) -> BucketedOperand {
        let g = graph();
        let n = g.node(t.id());
        BucketedOperand { ty: n.shown(), buckets: n.buckets().iter().map(|&b| (b, n.ty.shape[b.dim])).collect() }
    }
}

/// One operand of a try.
#[cfg_attr(not(test), allow(dead_code))] // the table's test reads it
#[derive(Clone)]
pub struct Operand {
    /// A fixed dtype (indices, conditions); otherwise the operand is of the dtype tried.
    ///
    /// `tensor([1.5]).dtype()` is `F32`.
    pub dtype: Option<DType>,
    pub shape: Shape,
    /// Integers from 0 up to and without this, instead of the sample's range.
    pub below: Option<usize>,
}

/// Operands for one try of an op: uniform in `low..high`, floats unless a dtype is given.
#[cfg_attr(not(test), allow(dead_code))] // the table's test reads it
#[derive(Clone)]
pub struct Sample {
    pub inputs: Vec<Operand>,
    pub attrs: Vec<Attr>,
    pub low: f64,
    pub high: f64,
}

impl Sample {
    /// Float operands of these shapes, between -1 and 1.
    pub fn of(shapes: &[&[usize]]) -> Sample {
        let inputs = shapes.iter().map(|s| Operand { dtype: None, shape: Shape::new(s), below: None }).collect();
        Sample { inputs, attrs: vec![], low: -1.0, high: 1.0 }
    }
    /// Appends an operand of a fixed dtype (conditions, keys).
    pub fn and(mut self, dtype: DType, shape: &[usize]) -> Sample {
        self.inputs.push(Operand { dtype: Some(dtype), shape: Shape::new(shape), below: None });
        self
    }
    /// Appends int64 indices below `n`.
    pub fn index(mut self, shape: &[usize], n: usize) -> Sample {
        self.inputs.push(Operand { dtype: Some(DType::I64), shape: Shape::new(shape), below: Some(n) });
        self
    }
    /// Appends operands of the dtype tried.
    pub fn then(mut self, shapes: &[&[usize]]) -> Sample {
        self.inputs.extend(Sample::of(shapes).inputs);
        self
    }
    pub fn attrs(mut self, attrs: Vec<Attr>) -> Sample {
        self.attrs = attrs;
        self
    }
    pub fn range(mut self, low: f64, high: f64) -> Sample {
        (self.low, self.high) = (low, high);
        self
    }
}
