//! The StableHLO builder that lowerings write through: one method per operation they need, each returns the new value.
use super::text::{list, literal, mlir};
use crate::precision::Precision;
use crate::ty::{DType, Shape, Type};
use std::fmt::Write;

/// A value of the program being written.
#[derive(Clone, Debug)]
pub struct Val {
    id: u32,
    /// Which result of an operation with several.
    result: Option<u8>,
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
}

impl Emit {
    pub fn new(precision: Precision) -> Emit {
        Emit { text: String::new(), next: 0, precision }
    }

    /// What was written so far.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Emit {
    /// A value of its own: a parameter.
    pub fn fresh(&mut self, ty: Type) -> Val {
        self.next += 1;
        Val { id: self.next, result: None, ty }
    }

    /// Any operation in the generic form: `"stablehlo.op"(…) {attributes} : (…) -> …`; a name with a dot brings its dialect.
    pub fn op(&mut self, op: &str, inputs: &[&Val], attributes: &str, out: Type) -> Val {
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
        self.op(op, &[a, b], "", a.ty.clone())
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
        self.binary(op, a, &c)
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
        self.op("convert", &[x], "", Type::new(dtype, x.shape().clone()))
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
        let (least, most) = match dtype {
            DType::Bool => (0.0, 1.0),
            DType::U8 => (0.0, 255.0),
            DType::I8 => (-128.0, 127.0),
            DType::I32 => (i32::MIN as f64, i32::MAX as f64),
            // as f64, i64::MAX rounds up by one and the cast back saturates
            DType::I64 => (i64::MIN as f64, i64::MAX as f64),
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        };
        let v = match r {
            Reducer::Add | Reducer::Or => 0.0,
            Reducer::Mul | Reducer::And => 1.0,
            Reducer::Max => least,
            Reducer::Min => most,
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
        let out = self.fresh(Type::new(x.dtype(), shape));
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

    /// `(value, index)` of the extreme element along `dim`, which is dropped; the first of equals, NaN wins as in torch.
    pub fn arg_extreme(&mut self, x: &Val, dim: usize, max: bool) -> (Val, Val) {
        let index_ty = Type::new(DType::I64, x.shape().clone());
        let index = self.iota(&index_ty, dim);
        let init = self.neutral(if max { Reducer::Max } else { Reducer::Min }, x.dtype());
        let zero = self.scalar(0.0, DType::I64);
        let mut shape = x.shape().clone();
        shape.remove(dim);
        let value = self.fresh(Type::new(x.dtype(), shape.clone()));
        let value = Val { result: Some(0), ..value };
        let position = Val { id: value.id, result: Some(1), ty: Type::new(DType::I64, shape) };
        let (st, it) = (mlir(&init.ty).to_string(), mlir(&zero.ty).to_string());
        let dir = if max { "GT" } else { "LT" };
        let n = self.next;
        self.next += 12;
        let id = |k: u32| format!("%{}", n + k);
        let (a, ai, b, bi) = (id(1), id(2), id(3), id(4));
        let (beats, nan, any, tie, lower, same, take, v, p) =
            (id(5), id(6), id(7), id(8), id(9), id(10), id(11), id(12), format!("%p{n}"));
        let cmp = |d: &str, x: &str, y: &str, t: &str| {
            format!(
                "\"stablehlo.compare\"({x}, {y}) {{comparison_direction = #stablehlo<comparison_direction {d}>}} : ({t}, {t}) -> tensor<i1>"
            )
        };
        let _ = writeln!(
            self.text,
            "    %{r}:2 = \"stablehlo.reduce\"({x}, {index}, {init}, {zero}) ({{\n    ^bb0({a}: {st}, {ai}: {it}, {b}: {st}, {bi}: {it}):\n      {beats} = {gt}\n      {nan} = {ne}\n      {any} = stablehlo.or {beats}, {nan} : tensor<i1>\n      {tie} = {eq}\n      {lower} = {li}\n      {same} = stablehlo.and {tie}, {lower} : tensor<i1>\n      {take} = stablehlo.or {any}, {same} : tensor<i1>\n      {v} = stablehlo.select {any}, {a}, {b} : tensor<i1>, {st}\n      {p} = stablehlo.select {take}, {ai}, {bi} : tensor<i1>, {it}\n      stablehlo.return {v}, {p} : {st}, {it}\n    }}) {{dimensions = array<i64: {dim}>}} : ({xt}, {ixt}, {st}, {it}) -> ({vt}, {pt})",
            r = value.id,
            gt = cmp(dir, &a, &b, &st),
            ne = cmp("NE", &a, &a, &st),
            eq = cmp("EQ", &a, &b, &st),
            li = cmp("LT", &ai, &bi, &it),
            xt = mlir(&x.ty),
            ixt = mlir(&index.ty),
            vt = mlir(&value.ty),
            pt = mlir(&position.ty),
        );
        (value, position)
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

    /// An operation with one region of two scalars (`scatter`, `reduce_window`, `select_and_scatter`…): `regions` is the
    /// text between the operands and the attributes.
    pub fn with_region(&mut self, op: &str, inputs: &[&Val], regions: &str, attributes: &str, out: Type) -> Val {
        let v = self.fresh(out);
        let types = list(inputs.iter().map(|x| mlir(&x.ty).to_string()));
        let _ = writeln!(
            self.text,
            "    {v} = \"stablehlo.{op}\"({}) ({regions}) {attributes} : ({types}) -> {}",
            list(inputs),
            mlir(&v.ty)
        );
        v
    }

    /// A region `{ ^bb0(a, b): return r(a, b) }` for [`Emit::with_region`].
    pub fn region(&mut self, r: Reducer, dtype: DType) -> String {
        let t = format!("tensor<{}>", dtype.mlir());
        let n = self.next;
        self.next += 3;
        let (a, b, c) = (n + 1, n + 2, n + 3);
        format!(
            "{{\n    ^bb0(%{a}: {t}, %{b}: {t}):\n      %{c} = stablehlo.{} %{a}, %{b} : {t}\n      stablehlo.return %{c} : {t}\n    }}",
            r.name()
        )
    }

    /// A region that keeps the second argument: the update replaces what was there.
    pub fn region_replace(&mut self, dtype: DType) -> String {
        let t = format!("tensor<{}>", dtype.mlir());
        let n = self.next;
        self.next += 2;
        format!("{{\n    ^bb0(%{}: {t}, %{}: {t}):\n      stablehlo.return %{} : {t}\n    }}", n + 1, n + 2, n + 2)
    }

    /// A region comparing two scalars, for `sort` and `select_and_scatter`.
    pub fn region_compare(&mut self, direction: &str, dtype: DType) -> String {
        let t = format!("tensor<{}>", dtype.mlir());
        let n = self.next;
        self.next += 3;
        let (a, b, c) = (n + 1, n + 2, n + 3);
        format!(
            "{{\n    ^bb0(%{a}: {t}, %{b}: {t}):\n      %{c} = \"stablehlo.compare\"(%{a}, %{b}) {{comparison_direction = #stablehlo<comparison_direction {direction}>}} : ({t}, {t}) -> tensor<i1>\n      stablehlo.return %{c} : tensor<i1>\n    }}"
        )
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
        let n = self.next;
        self.next += 7;
        let [k, k1, zero, state, random, by, shifted] = std::array::from_fn(|i| format!("%{}", n + 1 + i as u32));
        let t = format!("tensor<{dims}{bits}>");
        let _ = writeln!(
            self.text,
            "    {k} = \"stablehlo.bitcast_convert\"({key}) : (tensor<i64>) -> tensor<ui64>
    {k1} = stablehlo.reshape {k} : (tensor<ui64>) -> tensor<1xui64>
    {zero} = stablehlo.constant dense<0> : tensor<1xui64>
    {state} = \"stablehlo.concatenate\"({k1}, {zero}) {{dimension = 0 : i64}} : (tensor<1xui64>, tensor<1xui64>) -> tensor<2xui64>
    {random}:2 = \"stablehlo.rng_bit_generator\"({state}) {{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}} : (tensor<2xui64>) -> (tensor<2xui64>, {t})
    {by} = stablehlo.constant dense<{shift}> : {t}
    {shifted} = stablehlo.shift_right_logical {random}#1, {by} : {t}"
        );
        let ty = Type::new(dtype, shape.clone());
        let out = self.fresh(ty);
        let _ = writeln!(self.text, "    {out} = stablehlo.convert {shifted} : ({t}) -> {}", mlir(&out.ty));
        self.with_const("multiply", &out, scale)
    }

    /// A constant vector of floats.
    pub fn floats(&mut self, values: &[f64], dtype: DType) -> Val {
        let v = self.fresh(Type::new(dtype, Shape::new(&[values.len()])));
        let items = list(values.iter().map(|&x| literal(x, dtype)));
        let _ = writeln!(self.text, "    {v} = stablehlo.constant dense<[{items}]> : {}", mlir(&v.ty));
        v
    }

    /// Sorts `x` along `dim` and takes `with` (int64) along; stable, NaN as the largest number.
    pub fn sort_pair(&mut self, x: &Val, with: &Val, dim: usize, descending: bool) -> (Val, Val) {
        let n = self.next;
        self.next += 10;
        let [r, a, b, c, d, beats, nan_a, nan_b, not, last] = std::array::from_fn(|i| format!("%{}", n + 1 + i as u32));
        let (t, i1) = (format!("tensor<{}>", x.dtype().mlir()), "tensor<i1>");
        let compare = |direction: &str, p: &str, q: &str| {
            format!(
                "\"stablehlo.compare\"({p}, {q}) {{comparison_direction = #stablehlo<comparison_direction {direction}>}} : ({t}, {t}) -> {i1}"
            )
        };
        let mut body = format!("{beats} = {}\n", compare(if descending { "GT" } else { "LT" }, &a, &b));
        let before = if x.dtype().is_float() {
            // going up NaN comes after every number, going down before
            let (first, second) = if descending { (&a, &b) } else { (&b, &a) };
            let (is, is_not) = (compare("NE", first, first), compare("EQ", second, second));
            let _ = write!(
                body,
                "      {nan_a} = {is}\n      {nan_b} = {is_not}\n      {not} = stablehlo.and {nan_a}, {nan_b} : {i1}\n      {last} = stablehlo.or {beats}, {not} : {i1}\n"
            );
            last
        } else {
            beats.clone()
        };
        let (xt, wt) = (mlir(&x.ty).to_string(), mlir(&with.ty).to_string());
        let _ = writeln!(
            self.text,
            "    {r}:2 = \"stablehlo.sort\"({x}, {with}) ({{\n    ^bb0({a}: {t}, {b}: {t}, {c}: tensor<i64>, {d}: tensor<i64>):\n      {body}      stablehlo.return {before} : {i1}\n    }}) {{dimension = {dim} : i64, is_stable = true}} : ({xt}, {wt}) -> ({xt}, {wt})"
        );
        let part = |result: u8, ty: &Type| Val { id: n + 1, result: Some(result), ty: ty.clone() };
        (part(0, &x.ty), part(1, &with.ty))
    }

    /// The maximum of each window and its position in `index` (int64, of `x`'s shape); the first of equals, NaN wins.
    /// `attributes` are those of reduce_window.
    pub fn window_arg_max(&mut self, x: &Val, index: &Val, attributes: &str, shape: &Shape) -> Val {
        let init = self.neutral(Reducer::Max, x.dtype());
        let none = self.scalar(-1.0, DType::I64);
        let n = self.next;
        self.next += 14;
        let [r, a, ai, b, bi, beats, nan, any, tie, lower, same, take, v, p] =
            std::array::from_fn(|i| format!("%{}", n + 1 + i as u32));
        let (t, it, i1) = (format!("tensor<{}>", x.dtype().mlir()), "tensor<i64>", "tensor<i1>");
        let compare = |direction: &str, p: &str, q: &str, t: &str| {
            format!(
                "\"stablehlo.compare\"({p}, {q}) {{comparison_direction = #stablehlo<comparison_direction {direction}>}} : ({t}, {t}) -> {i1}"
            )
        };
        // -1 stands for no position yet: it loses to any other
        let zero = self.scalar(0.0, DType::I64);
        let (value_ty, out) = (Type::new(x.dtype(), shape.clone()), Type::new(DType::I64, shape.clone()));
        let extra = self.next;
        self.next += 4;
        let [empty, first, free, not_free] = std::array::from_fn(|i| format!("%{}", extra + 1 + i as u32));
        let _ = writeln!(
            self.text,
            "    {r}:2 = \"stablehlo.reduce_window\"({x}, {index}, {init}, {none}) ({{\n    ^bb0({a}: {t}, {ai}: {it}, {b}: {t}, {bi}: {it}):\n      {beats} = {gt}\n      {nan} = {ne}\n      {any} = stablehlo.or {beats}, {nan} : {i1}\n      {tie} = {eq}\n      {lower} = {li}\n      {first} = {known}\n      {same} = stablehlo.and {tie}, {lower} : {i1}\n      {free} = stablehlo.and {same}, {first} : {i1}\n      {empty} = {unknown}\n      {not_free} = stablehlo.or {free}, {empty} : {i1}\n      {take} = stablehlo.or {any}, {not_free} : {i1}\n      {v} = stablehlo.select {any}, {a}, {b} : {i1}, {t}\n      {p} = stablehlo.select {take}, {ai}, {bi} : {i1}, {it}\n      stablehlo.return {v}, {p} : {t}, {it}\n    }}) {attributes} : ({xt}, {ixt}, {t}, {it}) -> ({vt}, {ot})",
            gt = compare("GT", &a, &b, &t),
            ne = compare("NE", &a, &a, &t),
            eq = compare("EQ", &a, &b, &t),
            li = compare("LT", &ai, &bi, it),
            known = compare("GE", &ai, &zero.to_string(), it),
            unknown = compare("LT", &bi, &zero.to_string(), it),
            xt = mlir(&x.ty),
            ixt = mlir(&index.ty),
            vt = mlir(&value_ty),
            ot = mlir(&out),
        );
        Val { id: n + 1, result: Some(1), ty: out }
    }
}

/// `: 1, 2` or nothing: the inside of `array<i64…>`.
pub fn array<T: std::fmt::Display>(items: &[T]) -> String {
    if items.is_empty() { String::new() } else { format!(": {}", list(items)) }
}

pub fn mlir_type(ty: &Type) -> String {
    mlir(ty).to_string()
}
