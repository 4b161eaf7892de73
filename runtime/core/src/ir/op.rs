//! What an op is to the graph and the compiler: its name, attributes, type rule, lowering to StableHLO, and the form that
//! takes an attribute as an operand.
use super::attr::{Attr, AttrDef, AttrsExt, Role, attr};
use crate::emit::{Emit, Val};
use crate::ty::{Category, DType, Shape, Type};

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

/// Elements of an operand that an op refuses. A program that runs the op looks for them and gives what it found as one result
/// more (`program`).
pub struct Check {
    pub operand: usize,
    pub refused: Refused,
    /// Why, as torch says it; `{}` stands for the element.
    pub why: String,
}

/// Which elements an op has no meaning for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refused {
    /// All but those from `low` up to and without `high`.
    Outside {
        low: i64,
        high: i64,
    },
    Zero,
    /// Floats that are not from `low` to `high`, NaN among them; an infinite bound is outside itself.
    Beyond {
        low: f64,
        high: f64,
    },
}

impl Refused {
    /// Whether all that this refuses is refused by the other, too.
    pub(super) fn is_within(self, other: Refused) -> bool {
        match (self, other) {
            (Refused::Outside { low, high }, Refused::Outside { low: from, high: to }) => low <= from && to <= high,
            (a, b) => a == b,
        }
    }
}

/// What an op does with the elements of its operands. Whoever explains a difference goes by this, and not by the op's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Data of the host's.
    Data,
    /// Positions that an op found by looking at values: how many depends on these. They are its result.
    Found,
    /// The same, and the op's result are the elements there; the positions are nobody's.
    Chosen,
    /// Made of nothing but numbers: zeros, ranges, constants.
    Made,
    /// Made of a number: which elements of a bucket are real.
    Mask,
    /// Drawn from a key.
    Random,
    /// Each element is computed of those in the same place.
    Elementwise,
    /// Elementwise, the sum: begun with zeros it is the other operand.
    Add,
    /// Elementwise, the product.
    Mul,
    /// The same elements in another dtype.
    Convert,
    /// The same elements on another device.
    Transfer,
    /// The operand's elements in another shape or order, none computed: reshapes, transposes, expansions.
    View,
    /// Some of the operand's elements, by their positions: slices, gathers.
    Select,
    /// The operand's elements with others around or between them.
    Pad,
    /// The operands one behind the other: the result grows with each.
    Concat,
    /// The first operand with others written to, or added at, positions of it.
    Update,
    /// Fewer elements, each of many along some dimensions: sums, means, extremes.
    Reduce,
    /// As many elements, each of many along one dimension: softmax, running sums, sorting.
    Along,
    /// Sums of products: matrix products, convolutions.
    Contract,
    /// Of windows that slide over the operand.
    Window,
    /// What closures recorded is run, in rounds or in one of several ways, or a text of the user's.
    Control,
}

impl Kind {
    /// It has its value from the start, without a program.
    pub fn is_data(self) -> bool {
        matches!(self, Kind::Data) || self.is_found()
    }

    /// How large it is was found by looking at values.
    pub fn is_found(self) -> bool {
        matches!(self, Kind::Found | Kind::Chosen)
    }

    /// Made without a tensor.
    pub fn is_source(self) -> bool {
        matches!(self, Kind::Made | Kind::Mask | Kind::Random)
    }

    pub fn is_elementwise(self) -> bool {
        matches!(self, Kind::Elementwise | Kind::Add | Kind::Mul | Kind::Convert)
    }
}

/// One op, as far as tracing, cutting and lowering go.
pub struct OpDef {
    /// The torch name; for the form that healing chose with the attribute behind a dot.
    pub name: &'static str,
    /// The name's hash: stands for the op in cache keys, the same in every process.
    pub id: u32,
    /// The torch name's hash: the same for all forms of an op.
    pub base: u32,
    /// The attributes, in order.
    pub attrs: &'static [AttrDef],
    pub kind: Kind,
    /// What to write instead where the result's size keeps changing and more can be said than the kind tells; `{buckets}`
    /// stands for sizes to pad to.
    pub advice: Option<&'static str>,
    /// Whether there is a rule for padded dimensions of its operands.
    pub bucketed: bool,
    pub infer: fn(&Sig) -> Rule,
    pub lower: fn(&mut Lower) -> Val,
    /// How an attribute that keeps changing becomes a parameter; `None` where these attributes cannot.
    pub heal: Option<HealFn>,
    /// What it refuses of values that only the device knows.
    pub checks: Option<fn(&Sig) -> Vec<Check>>,
    /// It has several results, each a node of its own behind it ([`RESULT`]): all those of the operation that it is lowered to,
    /// from the first on, whose value and type are those of its own node.
    pub several: bool,
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
            id: name_id(name, name.len()),
            base: name_id(name, torch_name_len(name)),
            attrs: &[],
            kind: Kind::Elementwise,
            advice: None,
            bucketed: false,
            infer,
            lower,
            heal: None,
            checks: None,
            several: false,
        }
    }
    pub const fn attrs(mut self, attrs: &'static [AttrDef]) -> OpDef {
        self.attrs = attrs;
        self
    }
    pub const fn kind(mut self, kind: Kind) -> OpDef {
        self.kind = kind;
        self
    }
    pub const fn advice(mut self, advice: &'static str) -> OpDef {
        self.advice = Some(advice);
        self
    }
    pub const fn bucketed(mut self) -> OpDef {
        self.bucketed = true;
        self
    }
    pub const fn heal(mut self, heal: HealFn) -> OpDef {
        self.heal = Some(heal);
        self
    }
    pub const fn checks(mut self, checks: fn(&Sig) -> Vec<Check>) -> OpDef {
        self.checks = Some(checks);
        self
    }
    pub const fn several(mut self) -> OpDef {
        self.several = true;
        self
    }
}

impl OpDef {
    /// Writes one op into a program: its value.
    pub(super) fn write(&self, e: &mut Emit, inputs: &[Val], attrs: &[Attr], out: &Type) -> Val {
        let v = (self.lower)(&mut Lower { e, inputs, attrs, out });
        debug_assert_eq!(v.ty, *out, "the lowering of {} gives another type than its rule", self.name);
        v
    }

    /// The name that users know, also of a form that healing chose.
    pub fn torch_name(&self) -> &'static str {
        self.name.split('.').next().unwrap_or(self.name)
    }

    /// Whether its result is its operand, under another name or as a copy.
    pub fn is_identity(&self) -> bool {
        self.kind == Kind::View && self.attrs.is_empty()
    }

    /// The attribute of a name.
    pub fn attr(&self, name: &str) -> Option<&'static AttrDef> {
        self.attrs.iter().find(|a| a.name == name)
    }

    /// Whether an attribute of it can become a parameter of the program.
    pub fn has_dynamic_form(&self) -> bool {
        self.heal.is_some()
    }

    /// Whether it is one and the same program with either attributes once that attribute is a parameter.
    pub fn heals(&self, was: &[Attr], now: &[Attr]) -> bool {
        let Some(heal) = self.heal.filter(|_| was != now) else { return false };
        match (heal(was), heal(now)) {
            (Some(a), Some(b)) => {
                let same = std::ptr::eq(a.op, b.op) && a.attrs == b.attrs;
                same && a.value != b.value && a.value.is_as_long(&b.value)
            }
            _ => false,
        }
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
pub const SECOND_NAME: OpDef = OpDef::new("alias", rules::same, |l| l.x(0)).kind(Kind::View);

/// What the body of a loop is given in each round.
pub static ARGUMENT: OpDef = OpDef::data("argument");
/// One of the results of an op that has several.
pub static RESULT: OpDef = OpDef::new(
    "result",
    |_| Err("is made with the op that it is a result of".into()),
    |l| l.inputs[0].nth(l.attrs.index(0), l.out),
)
.attrs(&[attr("index", Role::Position)])
.kind(Kind::View);

/// The ops of nodes that no op of the user's makes.
pub static DATA: OpDef = DEVICE_DATA;
pub static SCALAR: OpDef = NUMBER;
pub static ALIAS: OpDef = SECOND_NAME;

impl std::fmt::Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Where the torch name ends.
const fn torch_name_len(name: &str) -> usize {
    let bytes = name.as_bytes();
    let mut i = 0;
    while i < bytes.len() && bytes[i] != b'.' {
        i += 1;
    }
    i
}

/// FNV-1a of the name's first `len` bytes, at compile time.
const fn name_id(name: &str, len: usize) -> u32 {
    let bytes = name.as_bytes();
    let mut h: u32 = 0x811c_9dc5;
    let mut i = 0;
    while i < len {
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

    /// As [`promote`], without refusing what torch refuses.
    fn common(inputs: &[&Type]) -> DType {
        let of =
            |keep: &dyn Fn(&Type) -> bool| inputs.iter().filter(|t| keep(t)).map(|t| t.dtype).reduce(DType::promote);
        match (of(&|t| !t.shape.is_empty()), of(&|t| t.shape.is_empty())) {
            // A number of another kind: of the precision that the dimensions have.
            (Some(dims), Some(zero)) if zero.is_complex() && dims.is_float() => dims.complex().unwrap_or(DType::C64),
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
        Ok(Type::new(promote(s.inputs)?, broadcast_shapes(s)?))
    }

    /// The dtype that operands compute in: as torch, a tensor without dimensions only counts by its category, and wide unsigned
    /// integers meet nothing but themselves and floats.
    pub fn promote(inputs: &[&Type]) -> std::result::Result<DType, String> {
        // Without dimensions a tensor counts by its category, as a number does.
        let counts = |t: &&&Type| t.shape.is_empty() == inputs.iter().all(|t| t.shape.is_empty());
        let mut all = inputs.iter().filter(counts).map(|t| t.dtype);
        let first = all.next().unwrap_or(DType::F32);
        match all.find_map(|d| first.refuses_promotion(d)) {
            Some(why) => Err(why),
            None => Ok(common(inputs)),
        }
    }

    /// Broadcast, promoted, and at least float: true division, `atan2`.
    pub fn binary_float(s: &Sig) -> Rule {
        Ok(Type::new(promote(s.inputs)?.to_float(), broadcast_shapes(s)?))
    }

    /// Broadcast, bool: comparisons.
    pub fn compare(s: &Sig) -> Rule {
        promote(s.inputs)?;
        Ok(Type::new(DType::Bool, broadcast_shapes(s)?))
    }

    /// What is said of numbers none of which is larger than another.
    pub fn unordered(dtype: DType) -> String {
        format!("not defined for complex numbers ({dtype}), which have no order: take `.abs()`, `.real()` or `.imag()`")
    }

    /// Refuses complex numbers.
    pub fn ordered(s: &Sig) -> std::result::Result<(), String> {
        match s.inputs.iter().find(|t| t.dtype.is_complex()) {
            Some(t) => Err(unordered(t.dtype)),
            None => Ok(()),
        }
    }

    /// Refuses dtypes that an op has no meaning for.
    pub fn refuse_bool(s: &Sig, instead: &str) -> std::result::Result<(), String> {
        match s.inputs.iter().all(|t| t.dtype.category() == Category::Bool) {
            true => Err(format!("not defined for bool tensors; {instead}")),
            false => Ok(()),
        }
    }
}
