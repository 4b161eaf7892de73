//! What an op is to the graph and the compiler: its name, attributes, type rule, lowering to StableHLO, and the form that
//! takes an attribute as an operand.
use crate::emit::{Emit, Val};
use crate::ty::{Category, DType, Shape, Type};

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

type HealFn = fn(&[Attr]) -> Option<Healed>;

/// What a node of an op is before it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An op on its operands.
    Computed,
    /// Data of the host's.
    Data,
    /// Positions or elements that an op found by looking at values: how many depends on these.
    Found,
}

/// One op, as far as tracing, cutting and lowering go.
pub struct OpDef {
    /// The torch name.
    pub name: &'static str,
    /// The name's hash: stands for the op in cache keys, the same in every process.
    pub id: u32,
    /// The attributes' names, in order.
    pub attrs: &'static [&'static str],
    pub kind: Kind,
    pub infer: fn(&Sig) -> Rule,
    pub lower: fn(&mut Lower) -> Val,
    /// How an attribute that keeps changing becomes a parameter; `None` where these attributes cannot.
    pub heal: Option<HealFn>,
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
        OpDef { name, id: name_id(name), attrs: &[], kind: Kind::Computed, infer, lower, heal: None }
    }
    pub const fn attrs(mut self, names: &'static [&'static str]) -> OpDef {
        self.attrs = names;
        self
    }
    pub const fn kind(mut self, kind: Kind) -> OpDef {
        self.kind = kind;
        self
    }
    pub const fn heal(mut self, heal: HealFn) -> OpDef {
        self.heal = Some(heal);
        self
    }
}

impl OpDef {
    const fn data(name: &'static str) -> OpDef {
        OpDef::new(name, |_| Err("data is not computed".into()), |_| unreachable!()).kind(Kind::Data)
    }
}

/// A value on the device.
pub const DEVICE_DATA: OpDef = OpDef::data("device_data");
/// A number of user code.
pub const NUMBER: OpDef = OpDef::data("scalar");
/// A second node for one value.
pub const SECOND_NAME: OpDef = OpDef::new("alias", rules::same, |l| l.x(0));

/// The ops of nodes that no op of the user's makes.
pub static DATA: OpDef = DEVICE_DATA;
pub static SCALAR: OpDef = NUMBER;
pub static ALIAS: OpDef = SECOND_NAME;

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
