//! Attributes: what of an op is fixed when a program is compiled, and what each of them says.
use crate::ty::{DType, Shape};
use std::any::Any;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// What an attribute says of its op. Whoever explains a difference goes by this, and not by the attribute's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Where something is: an index, a start, an end, a shift, a diagonal.
    Position,
    /// How large something is, or how many: a shape, a length, a window, padding, groups.
    Size,
    /// How far apart: a step, a stride, a dilation.
    Stride,
    /// Along which dimensions: their numbers, their order.
    Axis,
    /// The dtype of the result.
    Dtype,
    /// A number, or numbers, that the program has in itself.
    Constant,
    /// One of a few ways to do it: a direction, a reduction, whether a dimension is kept.
    Mode,
    /// The device of the result.
    Device,
    /// How the result lies on the devices of a mesh, or which groups of these an op goes over.
    Sharding,
    /// What an op runs: the body of a loop, branches.
    Body,
}

/// An attribute as an op declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttrDef {
    /// torch's name of the argument, where it has one.
    pub name: &'static str,
    pub role: Role,
    /// What to write so that it stays the same, where more can be said than its role tells.
    pub advice: Option<&'static str>,
}

/// Declares an attribute.
pub const fn attr(name: &'static str, role: Role) -> AttrDef {
    AttrDef { name, role, advice: None }
}

impl AttrDef {
    pub const fn advice(mut self, advice: &'static str) -> AttrDef {
        self.advice = Some(advice);
        self
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
    /// One of a few words, or what is said in no other way.
    Name(Box<str>),
    /// What the op runs.
    Region(Region),
    /// What the host knows of the op and no program does.
    Kept(Kept),
}

/// What the host keeps with an op, such as how its gradient is made: in no key, since no program knows of it.
#[derive(Clone)]
pub struct Kept {
    says: Arc<str>,
    of: Arc<dyn Recorded>,
}

impl Kept {
    /// `says` names it in texts.
    pub fn new(says: &str, of: impl Any + Send + Sync) -> Kept {
        Kept { says: says.into(), of: Arc::new(AssertUnwindSafe(of)) }
    }

    /// What is kept, of the type that it was made of.
    pub fn get<T: Any>(&self) -> &T {
        let of: &dyn Any = &*self.of;
        &of.downcast_ref::<AssertUnwindSafe<T>>().expect("made of one kind").0
    }
}

impl PartialEq for Kept {
    fn eq(&self, _: &Kept) -> bool {
        true
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.says)
    }
}

/// What stands behind a region: never changed.
trait Recorded: Any + Send + Sync + UnwindSafe + RefUnwindSafe {}

impl<T: Any + Send + Sync + UnwindSafe + RefUnwindSafe> Recorded for T {}

/// What closures recorded for an op that runs it: told apart by its words alone, which say all that is computed.
#[derive(Clone)]
pub struct Region {
    words: Arc<[u64]>,
    says: Arc<str>,
    of: Arc<dyn Recorded>,
}

impl Region {
    pub(super) fn new(
        words: Vec<u64>,
        says: String,
        of: impl Any + Send + Sync + UnwindSafe + RefUnwindSafe,
    ) -> Region {
        Region { words: words.into(), says: says.into(), of: Arc::new(of) }
    }

    /// All that is computed.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn get<T: Any>(&self) -> &T {
        let of: &dyn Any = &*self.of;
        of.downcast_ref().expect("made of one kind")
    }
}

impl PartialEq for Region {
    fn eq(&self, other: &Region) -> bool {
        self.words == other.words
    }
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.says)
    }
}

impl Attr {
    /// Whether they are as many numbers: as parameters they have one type then.
    pub(super) fn is_as_long(&self, other: &Attr) -> bool {
        match (self, other) {
            (Attr::Ints(a), Attr::Ints(b)) => a.len() == b.len(),
            (Attr::Floats(a), Attr::Floats(b)) => a.len() == b.len(),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// The attribute as a part of a program's key.
    pub(super) fn words(&self, words: &mut Vec<u64>) {
        match self {
            Attr::Int(v) => words.extend([1, *v as u64]),
            Attr::Float(v) => words.extend([2, v.to_bits()]),
            Attr::Bool(v) => words.push(3 | (*v as u64) << 8),
            Attr::DType(v) => words.push(4 | (*v as u64) << 8),
            Attr::Name(v) => {
                words.push(7 | (v.len() as u64) << 8);
                words.extend(v.as_bytes().chunks(8).map(|c| c.iter().fold(0, |word, b| word << 8 | u64::from(*b))));
            }
            Attr::Ints(v) => {
                words.push(5 | (v.len() as u64) << 8);
                words.extend(v.iter().map(|&i| i as u64));
            }
            Attr::Floats(v) => {
                words.push(6 | (v.len() as u64) << 8);
                words.extend(v.iter().map(|f| f.to_bits()));
            }
            Attr::Region(v) => {
                words.push(8 | (v.words.len() as u64) << 8);
                words.extend_from_slice(&v.words);
            }
            Attr::Kept(_) => words.push(9),
        }
    }
}

impl std::fmt::Display for Attr {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Attr::Int(v) => write!(f, "{v}"),
            Attr::Float(v) => write!(f, "{v}"),
            Attr::Bool(v) => write!(f, "{v}"),
            Attr::DType(v) => write!(f, "{v}"),
            Attr::Name(v) => f.write_str(v),
            Attr::Ints(v) => list(f, v),
            Attr::Floats(v) => list(f, v),
            Attr::Region(v) => f.write_str(&v.says),
            Attr::Kept(v) => f.write_str(&v.says),
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

/// Typed access to an op's attributes by position; the order is that of [`OpDef::attrs`](super::OpDef::attrs).
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
