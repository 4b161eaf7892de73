//! The StableHLO builder that lowerings write through: one method per operation they need, each returns the new value.
use super::checked::{Checked, Looking};
use super::text::{list, literal, mlir};
use super::work::flops;
use crate::mesh::Mesh;
use crate::options::Precision;
use crate::ty::{DType, Shape, Type};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What floats become on their way to narrow and unsigned integers, which wrap around as in torch, where XLA would stop at the
/// least and the largest.
fn wrapping(dtype: DType) -> Option<DType> {
    match dtype {
        DType::U8 | DType::I8 | DType::U16 | DType::I16 => Some(DType::I32),
        DType::U32 => Some(DType::I64),
        _ => None,
    }
}

/// A value of the program being written.
#[derive(Clone, Debug)]
pub struct Val {
    id: u32,
    /// Which result of an operation with several.
    result: Option<u16>,
    pub ty: Type,
}

impl Val {
    pub fn shape(&self) -> &Shape {
        &self.ty.shape
    }
    pub fn dtype(&self) -> DType {
        self.ty.dtype
    }
    pub fn rank(&self) -> usize {
        self.ty.shape.len()
    }

    /// That of a number in the text, or one of its operation's results.
    pub(super) fn of(id: u32, result: Option<u16>, ty: Type) -> Val {
        Val { id, result, ty }
    }

    /// Another result of the same operation, which has several.
    pub fn nth(&self, result: usize, ty: &Type) -> Val {
        Val { id: self.id, result: Some(result as u16), ty: ty.clone() }
    }

    /// The name that all results of its operation share.
    pub(super) fn name(&self) -> String {
        format!("%{}", self.id)
    }
}

impl std::fmt::Display for Val {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.result {
            None => write!(f, "%{}", self.id),
            Some(r) => write!(f, "%{}#{r}", self.id),
        }
    }
}

/// The operations a reduction or a scatter combines elements with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reducer {
    Add,
    Mul,
    Max,
    Min,
    And,
    Or,
}

impl Reducer {
    pub fn name(self) -> &'static str {
        match self {
            Reducer::Add => "add",
            Reducer::Mul => "multiply",
            Reducer::Max => "maximum",
            Reducer::Min => "minimum",
            Reducer::And => "and",
            Reducer::Or => "or",
        }
    }
}

/// Writes the body of one program.
pub struct Emit {
    text: String,
    next: u32,
    precision: Precision,
    /// Functions beside the program's own, by their names.
    functions: BTreeMap<String, String>,
    /// The mesh that the program is for.
    mesh: Option<Mesh>,
    /// What the operations so far compute.
    pub(super) flops: f64,
    /// Collectives so far: each has a channel of its own.
    pub(super) channels: u32,
    pub(super) looking: Looking,
    /// The step that is written: see [`Checked::way`].
    pub(super) way: Vec<(u32, u32)>,
    /// What checks found in the region that is written.
    pub(super) found: Vec<(Val, Checked)>,
}

impl Emit {
    pub fn new(precision: Precision) -> Emit {
        Emit {
            text: String::new(),
            next: 0,
            precision,
            functions: BTreeMap::new(),
            mesh: None,
            flops: 0.0,
            channels: 0,
            looking: Looking::FOR_NOTHING,
            way: vec![],
            found: vec![],
        }
    }

    /// The same with names behind that of this number.
    pub(super) fn numbered_from(self, next: u32) -> Emit {
        Emit { next, ..self }
    }

    /// The same for a mesh.
    pub fn on(self, mesh: Option<Mesh>) -> Emit {
        Emit { mesh, ..self }
    }

    /// The mesh that the program is for; none where one device runs it.
    pub fn mesh(&self) -> Option<Mesh> {
        self.mesh
    }

    /// How many floating-point operations were written so far.
    pub fn flops(&self) -> f64 {
        self.flops
    }

    /// What was written so far.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Emit {
    /// A function of the module that can be called, once however often it is asked for.
    pub fn function(&mut self, name: &str, text: &str) {
        if !self.functions.contains_key(name) {
            self.functions.insert(name.to_owned(), text.to_owned());
        }
    }

    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.values().map(String::as_str)
    }

    /// Calls a function: its results, one at least.
    pub fn call(&mut self, name: &str, inputs: &[Val], gives: &[Type]) -> Vec<Val> {
        let results = self.several(gives.to_vec());
        let types = |all: &mut dyn Iterator<Item = &Type>| list(all.map(|t| mlir(t).to_string()));
        let (takes, gives) = (types(&mut inputs.iter().map(|v| &v.ty)), types(&mut gives.iter()));
        let (made, n) = (results[0].name(), results.len());
        self.line(&format!("{made}:{n} = func.call @{name}({}) : ({takes}) -> ({gives})", list(inputs)));
        results
    }

    /// A value of its own: a parameter, or what is written next.
    pub fn fresh(&mut self, ty: Type) -> Val {
        self.next += 1;
        Val { id: self.next, result: None, ty }
    }

    /// The results of one operation.
    pub(super) fn results<const N: usize>(&mut self, types: [Type; N]) -> [Val; N] {
        self.next += 1;
        let (id, mut nth) = (self.next, 0..);
        types.map(|ty| Val { id, result: nth.next().filter(|_| N > 1), ty })
    }

    /// As many results of one operation, two or more.
    pub(super) fn several(&mut self, types: Vec<Type>) -> Vec<Val> {
        self.next += 1;
        let id = self.next;
        (0..).zip(types).map(|(nth, ty)| Val { id, result: Some(nth), ty }).collect()
    }

    /// Where lines go: taken out while a region of several lines is written.
    pub(super) fn text_mut(&mut self) -> &mut String {
        &mut self.text
    }

    /// One line of the program.
    pub(super) fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "    {line}");
    }

    /// An operation on values of types that are no dtypes of ours; `results` is `:n` where there are several.
    fn raw(&mut self, results: &str, operation: &str) -> String {
        self.next += 1;
        let name = format!("%{}", self.next);
        self.line(&format!("{name}{results} = {operation}"));
        name
    }

    /// Any operation in the generic form: `"stablehlo.op"(…) {attributes} : (…) -> …`; a name with a dot brings its dialect.
    pub fn op(&mut self, op: &str, inputs: &[&Val], attributes: &str, out: Type) -> Val {
        self.flops += flops(op, |n| inputs.get(n).map(|v| &v.ty), attributes, &out);
        let v = self.fresh(out);
        let t = &mut self.text;
        let dialect = if op.contains('.') { "" } else { "stablehlo." };
        let _ = write!(t, "    {v} = \"{dialect}{op}\"(");
        for (i, x) in inputs.iter().enumerate() {
            let _ = write!(t, "{}{x}", if i > 0 { ", " } else { "" });
        }
        t.push(')');
        if !attributes.is_empty() {
            let _ = write!(t, " {attributes}");
        }
        t.push_str(" : (");
        for (i, x) in inputs.iter().enumerate() {
            let _ = write!(t, "{}{}", if i > 0 { ", " } else { "" }, mlir(&x.ty));
        }
        let _ = writeln!(t, ") -> {}", mlir(&v.ty));
        v
    }

    /// An elementwise operation that keeps its operand's type.
    pub fn unary(&mut self, op: &str, x: &Val) -> Val {
        self.op(op, &[x], "", x.ty.clone())
    }

    /// An elementwise operation on two operands of one type.
    pub fn binary(&mut self, op: &str, a: &Val, b: &Val) -> Val {
        match op {
            "maximum" if a.dtype().is_float() => self.extreme_of("GT", a, b),
            "minimum" if a.dtype().is_float() => self.extreme_of("LT", a, b),
            _ => self.op(op, &[a, b], "", a.ty.clone()),
        }
    }

    /// The larger or smaller of two floats, where a NaN wins on every backend: XLA's own operation drops one in its second
    /// operand on CPUs.
    fn extreme_of(&mut self, direction: &str, a: &Val, b: &Val) -> Val {
        let (better, nan) = (self.compare(direction, a, b), self.compare("NE", a, a));
        let first = self.binary("or", &better, &nan);
        self.select(&first, a, b)
    }

    pub fn add(&mut self, a: &Val, b: &Val) -> Val {
        self.binary("add", a, b)
    }
    pub fn sub(&mut self, a: &Val, b: &Val) -> Val {
        self.binary("subtract", a, b)
    }
    pub fn mul(&mut self, a: &Val, b: &Val) -> Val {
        self.binary("multiply", a, b)
    }
    pub fn div(&mut self, a: &Val, b: &Val) -> Val {
        self.binary("divide", a, b)
    }

    /// `a` combined with the constant `c` of its type.
    pub fn with_const(&mut self, op: &str, a: &Val, c: f64) -> Val {
        let c = self.constant(c, &a.ty);
        self.op(op, &[a, &c], "", a.ty.clone())
    }

    /// A constant splat.
    pub fn constant(&mut self, value: f64, ty: &Type) -> Val {
        let v = self.fresh(ty.clone());
        let _ = writeln!(
            self.text,
            "    {v} = stablehlo.constant dense<{}> : {}",
            if ty.shape.numel() == 0 { String::new() } else { literal(value, ty.dtype) },
            mlir(&v.ty)
        );
        v
    }

    pub fn scalar(&mut self, value: f64, dtype: DType) -> Val {
        self.constant(value, &Type::new(dtype, Shape::default()))
    }

    /// A constant vector of integers.
    pub fn ints(&mut self, values: &[i64], dtype: DType) -> Val {
        let v = self.fresh(Type::new(dtype, Shape::new(&[values.len()])));
        let _ = writeln!(self.text, "    {v} = stablehlo.constant dense<[{}]> : {}", list(values), mlir(&v.ty));
        v
    }

    /// Converts to a dtype as torch does: to bool by `!= 0`, from float to integer towards zero.
    pub fn convert(&mut self, x: &Val, dtype: DType) -> Val {
        if x.dtype() == dtype {
            return x.clone();
        }
        if dtype == DType::Bool {
            let zero = self.constant(0.0, &x.ty);
            return self.compare("NE", x, &zero);
        }
        let out = Type::new(dtype, x.shape().clone());
        match (x.dtype().is_complex(), dtype.is_complex()) {
            // the imaginary part is dropped, as in torch
            (true, false) => {
                let real = self.op("real", &[x], "", Type::new(x.dtype().part(), x.shape().clone()));
                self.convert(&real, dtype)
            }
            (false, true) => {
                let real = self.convert(x, dtype.part());
                let none = self.constant(0.0, &real.ty);
                self.op("complex", &[&real, &none], "", out)
            }
            _ => match wrapping(dtype).filter(|_| x.dtype().is_float()) {
                Some(wide) => {
                    let whole = self.op("convert", &[x], "", Type::new(wide, x.shape().clone()));
                    self.op("convert", &[&whole], "", out)
                }
                None => self.op("convert", &[x], "", out),
            },
        }
    }

    /// Broadcasts by torch's rule (aligned at the last dimension).
    pub fn broadcast(&mut self, x: &Val, shape: &Shape) -> Val {
        if x.shape() == shape {
            return x.clone();
        }
        let skip = shape.len() - x.rank();
        let dims: Vec<usize> = (skip..shape.len()).collect();
        self.broadcast_in_dim(x, shape, &dims)
    }

    /// Broadcasts with operand dimension `i` at output dimension `dims[i]`.
    pub fn broadcast_in_dim(&mut self, x: &Val, shape: &Shape, dims: &[usize]) -> Val {
        let a = format!("{{broadcast_dimensions = array<i64{}>}}", array(dims));
        self.op("broadcast_in_dim", &[x], &a, Type::new(x.dtype(), shape.clone()))
    }

    pub fn reshape(&mut self, x: &Val, shape: &Shape) -> Val {
        if x.shape() == shape {
            return x.clone();
        }
        self.op("reshape", &[x], "", Type::new(x.dtype(), shape.clone()))
    }

    pub fn transpose(&mut self, x: &Val, perm: &[usize]) -> Val {
        if perm.iter().enumerate().all(|(i, &p)| i == p) {
            return x.clone();
        }
        let mut shape = x.shape().clone();
        for (i, &p) in perm.iter().enumerate() {
            shape[i] = x.shape()[p];
        }
        let a = format!("{{permutation = array<i64{}>}}", array(perm));
        self.op("transpose", &[x], &a, Type::new(x.dtype(), shape))
    }

    /// `direction` is EQ, NE, LT, LE, GT or GE; NaN compares as in IEEE 754.
    pub fn compare(&mut self, direction: &str, a: &Val, b: &Val) -> Val {
        let a_ = format!("{{comparison_direction = #stablehlo<comparison_direction {direction}>}}");
        self.op("compare", &[a, b], &a_, Type::new(DType::Bool, a.shape().clone()))
    }

    pub fn select(&mut self, condition: &Val, yes: &Val, no: &Val) -> Val {
        self.op("select", &[condition, yes, no], "", yes.ty.clone())
    }

    /// Counts up along `dim`.
    pub fn iota(&mut self, ty: &Type, dim: usize) -> Val {
        self.op("iota", &[], &format!("{{iota_dimension = {dim} : i64}}"), ty.clone())
    }

    /// The neutral element of a reduction, as a scalar.
    pub fn neutral(&mut self, r: Reducer, dtype: DType) -> Val {
        let (least, most) = dtype.format().limits();
        let v = match r {
            Reducer::Add | Reducer::Or => 0.0,
            Reducer::Mul | Reducer::And => 1.0,
            // as f64, i64::MAX rounds up by one and the cast back saturates
            Reducer::Max => least.as_f64(),
            Reducer::Min => most.as_f64(),
        };
        self.scalar(v, dtype)
    }

    /// Reduces over `dims`, which are dropped.
    pub fn reduce(&mut self, x: &Val, dims: &[usize], r: Reducer) -> Val {
        if dims.is_empty() {
            return x.clone();
        }
        let init = self.neutral(r, x.dtype());
        let mut shape = Shape::default();
        for (i, &d) in x.shape().iter().enumerate() {
            if !dims.contains(&i) {
                shape.push(d);
            }
        }
        let ty = Type::new(x.dtype(), shape);
        self.flops += flops("reduce", |_| Some(&x.ty), "", &ty);
        let out = self.fresh(ty);
        let scalar = mlir(&init.ty).to_string();
        let _ = writeln!(
            self.text,
            "    {out} = stablehlo.reduce({x} init: {init}) applies stablehlo.{} across dimensions = [{}] : ({}, {scalar}) -> {}",
            r.name(),
            list(dims),
            mlir(&x.ty),
            mlir(&out.ty),
        );
        out
    }

    /// Reduces over `dims` and keeps them with size 1, so that the result broadcasts against `x`.
    pub fn reduce_keep(&mut self, x: &Val, dims: &[usize], r: Reducer) -> Val {
        let v = self.reduce(x, dims, r);
        let mut shape = x.shape().clone();
        dims.iter().for_each(|&d| shape[d] = 1);
        self.reshape(&v, &shape)
    }

    pub fn slice(&mut self, x: &Val, start: &[i64], limit: &[i64], step: &[i64]) -> Val {
        let mut shape = x.shape().clone();
        for i in 0..x.rank() {
            shape[i] = ((limit[i] - start[i] + step[i] - 1) / step[i]).max(0) as usize;
        }
        let a = format!(
            "{{start_indices = array<i64{}>, limit_indices = array<i64{}>, strides = array<i64{}>}}",
            array(start),
            array(limit),
            array(step)
        );
        self.op("slice", &[x], &a, Type::new(x.dtype(), shape))
    }

    /// The part of `sizes` that starts at `starts`, one scalar for each dimension. A start that would reach beyond the end is
    /// moved back, as StableHLO says.
    pub fn dynamic_slice(&mut self, x: &Val, starts: &[Val], sizes: &[usize]) -> Val {
        let inputs: Vec<&Val> = std::iter::once(x).chain(starts).collect();
        let a = format!("{{slice_sizes = array<i64{}>}}", array(sizes));
        self.op("dynamic_slice", &inputs, &a, Type::new(x.dtype(), Shape::new(sizes)))
    }

    /// Starts for [`Emit::dynamic_slice`]: `start` along `dim`, 0 elsewhere.
    pub fn starts(&mut self, start: &Val, dim: usize, rank: usize) -> Vec<Val> {
        let zero = self.scalar(0.0, start.dtype());
        (0..rank).map(|d| if d == dim { start.clone() } else { zero.clone() }).collect()
    }

    /// Pads with `value` (a scalar): `low` and `high` at the edges (negative crops), `interior` between elements.
    pub fn pad(&mut self, x: &Val, value: &Val, low: &[i64], high: &[i64], interior: &[i64]) -> Val {
        let mut shape = x.shape().clone();
        for i in 0..x.rank() {
            let inner = x.shape()[i] as i64 + (x.shape()[i] as i64 - 1).max(0) * interior[i];
            shape[i] = (inner + low[i] + high[i]).max(0) as usize;
        }
        let a = format!(
            "{{edge_padding_low = array<i64{}>, edge_padding_high = array<i64{}>, interior_padding = array<i64{}>}}",
            array(low),
            array(high),
            array(interior)
        );
        self.op("pad", &[x, value], &a, Type::new(x.dtype(), shape))
    }

    pub fn concatenate(&mut self, parts: &[&Val], dim: usize) -> Val {
        let mut ty = parts[0].ty.clone();
        ty.shape[dim] = parts.iter().map(|p| p.shape()[dim]).sum();
        self.op("concatenate", parts, &format!("{{dimension = {dim} : i64}}"), ty)
    }

    pub fn reverse(&mut self, x: &Val, dims: &[usize]) -> Val {
        self.op("reverse", &[x], &format!("{{dimensions = array<i64{}>}}", array(dims)), x.ty.clone())
    }

    /// The attribute of products and convolutions that says how exactly they are computed.
    pub fn precision_config(&self) -> String {
        self.precision.stablehlo().map_or(String::new(), |p| {
            format!(", precision_config = [#stablehlo<precision {p}>, #stablehlo<precision {p}>]")
        })
    }

    /// Batched matrix product: `batch` dimensions pair up, `contract` ones are summed; the result is batch, left, right.
    pub fn dot_general(&mut self, a: &Val, b: &Val, batch: [&[usize]; 2], contract: [&[usize]; 2]) -> Val {
        let mut shape = Shape::default();
        batch[0].iter().for_each(|&d| shape.push(a.shape()[d]));
        for (v, side) in [(a, 0), (b, 1)] {
            for (i, &d) in v.shape().iter().enumerate() {
                if !batch[side].contains(&i) && !contract[side].contains(&i) {
                    shape.push(d);
                }
            }
        }
        let attributes = format!(
            "{{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [{}], rhs_batching_dimensions = [{}], \
             lhs_contracting_dimensions = [{}], rhs_contracting_dimensions = [{}]>{}}}",
            list(batch[0]),
            list(batch[1]),
            list(contract[0]),
            list(contract[1]),
            self.precision_config()
        );
        self.op("dot_general", &[a, b], &attributes, Type::new(a.dtype(), shape))
    }

    /// Uniform floats in [0, 1) from a 64-bit key (a scalar i64 value): StableHLO's Threefry counter, the same numbers on
    /// every platform. `dtype` is F32 or F64.
    pub fn uniform(&mut self, key: &Val, dtype: DType, shape: &Shape) -> Val {
        let (bits, shift, scale) = match dtype {
            DType::F64 => ("ui64", 11, 2f64.powi(-53)),
            _ => ("ui32", 8, 2f64.powi(-24)),
        };
        let mut dims = String::new();
        for d in shape.iter() {
            let _ = write!(dims, "{d}x");
        }
        let t = format!("tensor<{dims}{bits}>");
        // Unsigned integers of these sizes are no dtype of ours.
        let key = self.raw("", &format!("\"stablehlo.bitcast_convert\"({key}) : (tensor<i64>) -> tensor<ui64>"));
        let key = self.raw("", &format!("stablehlo.reshape {key} : (tensor<ui64>) -> tensor<1xui64>"));
        let zero = self.raw("", "stablehlo.constant dense<0> : tensor<1xui64>");
        let state = self.raw(
            "",
            &format!(
                "\"stablehlo.concatenate\"({key}, {zero}) {{dimension = 0 : i64}} : (tensor<1xui64>, tensor<1xui64>) -> tensor<2xui64>"
            ),
        );
        let random = self.raw(
            ":2",
            &format!(
                "\"stablehlo.rng_bit_generator\"({state}) {{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}} : (tensor<2xui64>) -> (tensor<2xui64>, {t})"
            ),
        );
        let by = self.raw("", &format!("stablehlo.constant dense<{shift}> : {t}"));
        let shifted = self.raw("", &format!("stablehlo.shift_right_logical {random}#1, {by} : {t}"));
        let out = self.fresh(Type::new(dtype, shape.clone()));
        self.line(&format!("{out} = stablehlo.convert {shifted} : ({t}) -> {}", mlir(&out.ty)));
        self.with_const("multiply", &out, scale)
    }

    /// A constant vector of floats.
    pub fn floats(&mut self, values: &[f64], dtype: DType) -> Val {
        let v = self.fresh(Type::new(dtype, Shape::new(&[values.len()])));
        let items = list(values.iter().map(|&x| literal(x, dtype)));
        let _ = writeln!(self.text, "    {v} = stablehlo.constant dense<[{items}]> : {}", mlir(&v.ty));
        v
    }
}

/// `: 1, 2` or nothing: the inside of `array<i64…>`.
pub fn array<T: std::fmt::Display>(items: &[T]) -> String {
    if items.is_empty() { String::new() } else { format!(": {}", list(items)) }
}

pub fn mlir_type(ty: &Type) -> String {
    mlir(ty).to_string()
}
