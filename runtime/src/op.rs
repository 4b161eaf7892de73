//! What an op is: its name, type rule, lowering to StableHLO and gradient, as one value. `ops/` holds the table of them.
use crate::bucket::BucketRule;
use crate::dtype::{Category, DType};
use crate::emit::{Emit, Val};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Dtype and shape of one tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    pub dtype: DType,
    pub shape: Shape,
}

impl Type {
    pub fn new(dtype: DType, shape: Shape) -> Type {
        Type { dtype, shape }
    }

    pub fn bytes(&self) -> usize {
        self.dtype.size() * self.shape.numel()
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

/// An attribute: part of an op that is fixed when the graph is compiled.
#[derive(Clone, Debug, PartialEq)]
pub enum Attr {
    Int(i64),
    Float(f64),
    Bool(bool),
    Ints(Box<[i64]>),
    Floats(Box<[f64]>),
    DType(DType),
}

impl std::fmt::Display for Attr {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Attr::Int(v) => write!(f, "{v}"),
            Attr::Float(v) => write!(f, "{v}"),
            Attr::Bool(v) => write!(f, "{v}"),
            Attr::DType(v) => write!(f, "{v}"),
            Attr::Ints(v) => list(f, v),
            Attr::Floats(v) => list(f, v),
        }
    }
}

fn list<T: ToString>(f: &mut std::fmt::Formatter, items: &[T]) -> std::fmt::Result {
    let parts: Vec<String> = items.iter().map(T::to_string).collect();
    write!(f, "[{}]", parts.join(","))
}

macro_rules! attr_from {
    ($($t:ty => $variant:ident),*) => {$(
        impl From<$t> for Attr {
            fn from(v: $t) -> Attr {
                Attr::$variant(v.into())
            }
        }
    )*};
}
attr_from!(i64 => Int, f64 => Float, bool => Bool, DType => DType, Vec<i64> => Ints, Vec<f64> => Floats);

impl From<usize> for Attr {
    fn from(v: usize) -> Attr {
        Attr::Int(v as i64)
    }
}

impl From<&Shape> for Attr {
    fn from(v: &Shape) -> Attr {
        Attr::Ints(v.iter().map(|&d| d as i64).collect())
    }
}

/// Typed access to an op's attributes by position; the order is that of [`OpDef::attrs`].
pub trait AttrsExt {
    fn int(&self, i: usize) -> i64;
    fn index(&self, i: usize) -> usize;
    fn float(&self, i: usize) -> f64;
    fn flag(&self, i: usize) -> bool;
    fn ints(&self, i: usize) -> &[i64];
    fn dims(&self, i: usize) -> Vec<usize>;
    fn dtype(&self, i: usize) -> DType;
}

impl AttrsExt for [Attr] {
    fn int(&self, i: usize) -> i64 {
        match self[i] {
            Attr::Int(v) => v,
            ref a => unreachable!("attribute {i} is {a:?}"),
        }
    }
    fn index(&self, i: usize) -> usize {
        self.int(i) as usize
    }
    fn float(&self, i: usize) -> f64 {
        match self[i] {
            Attr::Float(v) => v,
            ref a => unreachable!("attribute {i} is {a:?}"),
        }
    }
    fn flag(&self, i: usize) -> bool {
        match self[i] {
            Attr::Bool(v) => v,
            ref a => unreachable!("attribute {i} is {a:?}"),
        }
    }
    fn ints(&self, i: usize) -> &[i64] {
        match &self[i] {
            Attr::Ints(v) => v,
            a => unreachable!("attribute {i} is {a:?}"),
        }
    }
    fn dims(&self, i: usize) -> Vec<usize> {
        self.ints(i).iter().map(|&d| d as usize).collect()
    }
    fn dtype(&self, i: usize) -> DType {
        match self[i] {
            Attr::DType(v) => v,
            ref a => unreachable!("attribute {i} is {a:?}"),
        }
    }
}

/// What a type rule sees: the operands' types and the attributes, already normalised by the method.
pub struct Sig<'a> {
    pub inputs: &'a [&'a Type],
    pub attrs: &'a [Attr],
}

impl Sig<'_> {
    pub fn shape(&self, i: usize) -> &Shape {
        &self.inputs[i].shape
    }
    pub fn dtype(&self, i: usize) -> DType {
        self.inputs[i].dtype
    }
    pub fn rank(&self, i: usize) -> usize {
        self.inputs[i].shape.len()
    }
    pub fn attrs_dtype(&self, i: usize) -> DType {
        self.attrs.dtype(i)
    }
    pub fn attrs_ints(&self, i: usize) -> &[i64] {
        self.attrs.ints(i)
    }
    /// The attribute as a shape; the method has checked that no size is negative.
    pub fn attrs_shape(&self, i: usize) -> Shape {
        Shape::new(&self.attrs.dims(i))
    }
}

/// A type rule's answer: the output's type, or a sentence on what was expected.
pub type Rule = std::result::Result<Type, String>;

/// What a lowering sees: the operands as values of the program being written. Derefs to the [`Emit`] builder.
pub struct Lower<'a> {
    pub e: &'a mut Emit,
    pub inputs: &'a [Val],
    pub attrs: &'a [Attr],
    pub out: &'a Type,
}

impl std::ops::Deref for Lower<'_> {
    type Target = Emit;
    fn deref(&self) -> &Emit {
        self.e
    }
}

impl std::ops::DerefMut for Lower<'_> {
    fn deref_mut(&mut self) -> &mut Emit {
        self.e
    }
}

impl Lower<'_> {
    pub fn x(&self, i: usize) -> Val {
        self.inputs[i].clone()
    }

    /// Operand `i` converted to the output's dtype.
    pub fn cast(&mut self, i: usize) -> Val {
        let v = self.x(i);
        let dtype = self.out.dtype;
        self.convert(&v, dtype)
    }

    /// Operand `i` converted to the output's dtype and broadcast to its shape.
    pub fn fit(&mut self, i: usize) -> Val {
        let v = self.cast(i);
        let shape = self.out.shape.clone();
        self.broadcast(&v, &shape)
    }
}

/// What a gradient sees; its methods give tensors, and it answers with one gradient per operand (`None` where none flows).
pub struct Grad {
    pub inputs: Vec<Tensor>,
    pub output: Tensor,
    /// The gradient of the output.
    pub dy: Tensor,
    pub attrs: Box<[Attr]>,
    /// Which operands want a gradient.
    pub wanted: Vec<bool>,
}

impl Grad {
    pub fn x(&self, i: usize) -> &Tensor {
        &self.inputs[i]
    }

    /// `dx` if operand `i` wants it; saves tracing what nobody uses.
    pub fn want(&self, i: usize, dx: impl FnOnce() -> Tensor) -> Option<Tensor> {
        self.wanted[i].then(dx)
    }
}

type GradFn = fn(&Grad) -> Vec<Option<Tensor>>;
type HealFn = fn(&[Attr]) -> Option<Healed>;

/// One op: everything xlazy knows of it.
pub struct OpDef {
    /// The torch name.
    pub name: &'static str,
    /// The name's hash: stands for the op in cache keys, the same in every process.
    pub id: u32,
    /// The attributes' names, in order.
    pub attrs: &'static [&'static str],
    pub infer: fn(&Sig) -> Rule,
    pub lower: fn(&mut Lower) -> Val,
    pub grad: Option<GradFn>,
    /// Operands to try the op on: every sample is compiled and, where there is a gradient, checked against differences.
    pub samples: fn() -> Vec<Sample>,
    /// How an attribute that keeps changing becomes a parameter; `None` where these attributes cannot.
    pub heal: Option<HealFn>,
    /// What the op does with padded dimensions; `None` refuses them.
    pub bucket: Option<BucketRule>,
}

/// An op with one attribute turned into a parameter: another op of the same meaning that takes it as its last operand.
pub struct Healed {
    pub op: &'static OpDef,
    /// The attributes that stay.
    pub attrs: Box<[Attr]>,
    /// The attribute's value, now data: a number or a vector; integers as int64, floats in the output's dtype.
    pub value: Attr,
}

impl OpDef {
    pub const fn new(name: &'static str, infer: fn(&Sig) -> Rule, lower: fn(&mut Lower) -> Val) -> OpDef {
        OpDef {
            name,
            id: name_id(name),
            attrs: &[],
            infer,
            lower,
            grad: None,
            samples: Vec::new,
            heal: None,
            bucket: None,
        }
    }
    pub const fn attrs(mut self, names: &'static [&'static str]) -> OpDef {
        self.attrs = names;
        self
    }
    pub const fn grad(mut self, grad: GradFn) -> OpDef {
        self.grad = Some(grad);
        self
    }
    pub const fn heal(mut self, heal: HealFn) -> OpDef {
        self.heal = Some(heal);
        self
    }
    pub const fn bucket(mut self, rule: BucketRule) -> OpDef {
        self.bucket = Some(rule);
        self
    }
    pub const fn samples(mut self, samples: fn() -> Vec<Sample>) -> OpDef {
        self.samples = samples;
        self
    }
}

impl std::fmt::Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// FNV-1a of the name, at compile time.
const fn name_id(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let mut h: u32 = 0x811c_9dc5;
    let mut i = 0;
    while i < bytes.len() {
        h = (h ^ bytes[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    h
}

/// One operand of a try.
#[cfg_attr(not(test), allow(dead_code))] // the table's test reads it
#[derive(Clone)]
pub struct Operand {
    /// A fixed dtype (indices, conditions); otherwise the operand is of the dtype tried.
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

/// Type rules that many ops share.
pub mod rules {
    use super::*;

    /// The first operand's type.
    pub fn same(s: &Sig) -> Rule {
        Ok(s.inputs[0].clone())
    }

    /// The first operand's shape; integers become the default float dtype.
    pub fn float(s: &Sig) -> Rule {
        Ok(Type::new(s.dtype(0).to_float(), s.shape(0).clone()))
    }

    /// The first operand's shape, bool.
    pub fn test(s: &Sig) -> Rule {
        Ok(Type::new(DType::Bool, s.shape(0).clone()))
    }

    /// All operands broadcast together.
    pub fn broadcast_shapes(s: &Sig) -> std::result::Result<Shape, String> {
        let mut shape = s.shape(0).clone();
        for other in &s.inputs[1..] {
            if shape != other.shape {
                shape = shape.broadcast(&other.shape).ok_or_else(|| mismatch(&shape, &other.shape))?;
            }
        }
        Ok(shape)
    }

    /// Why two shapes do not broadcast, in torch's terms.
    fn mismatch(a: &Shape, b: &Shape) -> String {
        let (ra, rb) = (a.len() as i64, b.len() as i64);
        for back in 1..=ra.min(rb) {
            let (x, y) = (a[(ra - back) as usize], b[(rb - back) as usize]);
            if x != y && x != 1 && y != 1 {
                return format!(
                    "shapes {a} and {b} do not broadcast: at dimension -{back} there is {x} against {y}; \
                     sizes must be equal, or one of them 1"
                );
            }
        }
        format!("shapes {a} and {b} do not broadcast")
    }

    /// The dtype that operands compute in: as torch, a tensor without dimensions only counts by its category.
    pub fn promote(inputs: &[&Type]) -> DType {
        let of =
            |keep: &dyn Fn(&Type) -> bool| inputs.iter().filter(|t| keep(t)).map(|t| t.dtype).reduce(DType::promote);
        match (of(&|t| !t.shape.is_empty()), of(&|t| t.shape.is_empty())) {
            (Some(dims), Some(zero)) if zero.category() > dims.category() => zero,
            (Some(dims), _) => dims,
            (None, zero) => zero.unwrap_or(DType::F32),
        }
    }

    /// Broadcast and promoted; the usual binary op.
    pub fn binary(s: &Sig) -> Rule {
        if s.inputs[0] == s.inputs[1] {
            return Ok(s.inputs[0].clone());
        }
        Ok(Type::new(promote(s.inputs), broadcast_shapes(s)?))
    }

    /// Broadcast, promoted, and at least float: true division, `atan2`.
    pub fn binary_float(s: &Sig) -> Rule {
        Ok(Type::new(promote(s.inputs).to_float(), broadcast_shapes(s)?))
    }

    /// Broadcast, bool: comparisons.
    pub fn compare(s: &Sig) -> Rule {
        Ok(Type::new(DType::Bool, broadcast_shapes(s)?))
    }

    /// Refuses dtypes that an op has no meaning for.
    pub fn refuse_bool(s: &Sig, instead: &str) -> std::result::Result<(), String> {
        match s.inputs.iter().all(|t| t.dtype.category() == Category::Bool) {
            true => Err(format!("not defined for bool tensors; {instead}")),
            false => Ok(()),
        }
    }
}
