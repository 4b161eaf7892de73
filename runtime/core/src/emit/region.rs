//! Operations with regions, and loops. What such an operation combines elements with is a block of its own: a closure writes it, given
//! a builder and the block's arguments, which are scalars.
use super::builder::{Emit, Reducer, Val};
use super::checked::Checked;
use super::text::{list, mlir};
use super::work::flops;
use crate::ty::{DType, Shape, Type};
use std::fmt::Write;

/// A region, written and ready to be put into an operation.
pub struct Region(pub(super) String);

/// The builder of a region's block: operations on scalars, which may also take values from outside.
pub struct Block<'a> {
    e: &'a mut Emit,
    text: String,
}

/// A region of whole lines, which more can be added to.
struct Written {
    args: Vec<Val>,
    text: String,
    results: Vec<Val>,
    /// What checks found in it.
    found: Vec<(Val, Checked)>,
}

impl Written {
    /// One result more, written behind the others.
    fn add(&mut self, e: &mut Emit, result: impl FnOnce(&mut Emit) -> Val) {
        std::mem::swap(e.text_mut(), &mut self.text);
        self.results.push(result(e));
        std::mem::swap(e.text_mut(), &mut self.text);
    }

    fn region(&self) -> Region {
        let Written { args, text, results, .. } = self;
        let named = list(args.iter().map(|a| format!("{a}: {}", mlir(&a.ty))));
        let head = if args.is_empty() { String::new() } else { format!("    ^bb0({named}):\n") };
        let types = list(results.iter().map(|r| mlir(&r.ty).to_string()));
        Region(format!("{{\n{head}{text}    stablehlo.return {} : {types}\n    }}", list(results)))
    }
}

fn scalar(dtype: DType) -> Type {
    Type::new(dtype, Shape::default())
}

impl Block<'_> {
    /// Two operands of one type.
    pub fn binary(&mut self, op: &str, a: &Val, b: &Val) -> Val {
        let v = self.e.fresh(a.ty.clone());
        let _ = writeln!(self.text, "      {v} = stablehlo.{op} {a}, {b} : {}", mlir(&v.ty));
        v
    }

    /// As [`Emit::compare`].
    pub fn compare(&mut self, direction: &str, a: &Val, b: &Val) -> Val {
        let v = self.e.fresh(Type::new(DType::Bool, a.shape().clone()));
        let (of, to) = (mlir(&a.ty).to_string(), mlir(&v.ty).to_string());
        let _ = writeln!(
            self.text,
            "      {v} = \"stablehlo.compare\"({a}, {b}) {{comparison_direction = #stablehlo<comparison_direction {direction}>}} : ({of}, {of}) -> {to}"
        );
        v
    }

    pub fn and(&mut self, a: &Val, b: &Val) -> Val {
        self.binary("and", a, b)
    }

    pub fn or(&mut self, a: &Val, b: &Val) -> Val {
        self.binary("or", a, b)
    }

    pub fn select(&mut self, condition: &Val, yes: &Val, no: &Val) -> Val {
        let v = self.e.fresh(yes.ty.clone());
        let (of, to) = (mlir(&condition.ty).to_string(), mlir(&v.ty).to_string());
        let _ = writeln!(self.text, "      {v} = stablehlo.select {condition}, {yes}, {no} : {of}, {to}");
        v
    }

    /// Whether `(a, at)` goes before `(b, bt)` where the largest (`GT`) or smallest (`LT`) value is looked for, and whether by
    /// its value; the first of equals, NaN before all.
    fn beats(&mut self, direction: &str, [a, at, b, bt]: [&Val; 4]) -> Beats {
        let beats = self.compare(direction, a, b);
        let nan = self.compare("NE", a, a);
        let by_value = self.or(&beats, &nan);
        let tie = self.compare("EQ", a, b);
        let first = self.compare("LT", at, bt);
        Beats { by_value, tie, first }
    }
}

struct Beats {
    by_value: Val,
    tie: Val,
    first: Val,
}

impl Emit {
    /// A region of one block: `body` writes it and says what it returns.
    pub fn region<const ARGS: usize, const RESULTS: usize>(
        &mut self,
        args: [DType; ARGS],
        body: impl FnOnce(&mut Block, [&Val; ARGS]) -> [Val; RESULTS],
    ) -> Region {
        let args = args.map(|dtype| self.fresh(scalar(dtype)));
        let mut block = Block { e: self, text: String::new() };
        let results = body(&mut block, args.each_ref());
        let named = list(args.iter().map(|a| format!("{a}: {}", mlir(&a.ty))));
        let types = list(results.iter().map(|r| mlir(&r.ty).to_string()));
        let body = block.text;
        Region(format!("{{\n    ^bb0({named}):\n{body}      stablehlo.return {} : {types}\n    }}", list(&results)))
    }

    /// The region of a reduction, of two arguments.
    pub fn combining(&mut self, r: Reducer, dtype: DType) -> Region {
        self.region([dtype; 2], |block, [a, b]| [block.binary(r.name(), a, b)])
    }

    /// As [`Emit::combining`] for the larger or smaller one, where a NaN wins on every backend: XLA's own operation drops it
    /// where it vectorises on CPUs.
    pub fn extreme(&mut self, max: bool, dtype: DType) -> Region {
        self.region([dtype; 2], |block, [a, b]| {
            let better = block.compare(if max { "GT" } else { "LT" }, a, b);
            let nan = block.compare("NE", a, a);
            let take = block.or(&better, &nan);
            [block.select(&take, a, b)]
        })
    }

    /// The region that keeps the second argument: the update replaces what was there.
    pub fn replacing(&mut self, dtype: DType) -> Region {
        self.region([dtype; 2], |_, [_, b]| [b.clone()])
    }

    /// The region that compares its arguments.
    pub fn comparing(&mut self, direction: &str, dtype: DType) -> Region {
        self.region([dtype; 2], |block, [a, b]| [block.compare(direction, a, b)])
    }

    /// An operation with regions (`scatter`, `reduce_window`, `select_and_scatter`…) and results of these types.
    pub fn with_regions<const N: usize>(
        &mut self,
        op: &str,
        inputs: &[&Val],
        regions: &[Region],
        attributes: &str,
        out: [Type; N],
    ) -> [Val; N] {
        self.flops += out.first().map_or(0.0, |out| flops(op, |n| inputs.get(n).map(|v| &v.ty), attributes, out));
        let results = self.results(out);
        let (made, to) = match &results[..] {
            [one] => (one.to_string(), mlir(&one.ty).to_string()),
            all => {
                let types = list(all.iter().map(|v| mlir(&v.ty).to_string()));
                (format!("{}:{N}", all[0].name()), format!("({types})"))
            }
        };
        let types = list(inputs.iter().map(|x| mlir(&x.ty).to_string()));
        let regions = list(regions.iter().map(|r| &r.0));
        let inputs = list(inputs);
        self.line(&format!("{made} = \"stablehlo.{op}\"({inputs}) ({regions}) {attributes} : ({types}) -> {to}"));
        results
    }

    /// A loop of so many steps: `body` gets the step's number, an i64 scalar, and what is carried from step to step, and gives
    /// what is carried on, of the same types.
    pub fn repeat(
        &mut self,
        steps: usize,
        carried: &[Val],
        body: impl FnOnce(&mut Emit, &Val, &[Val]) -> Vec<Val>,
    ) -> Vec<Val> {
        let first = self.scalar(0.0, DType::I64);
        let start: Vec<Val> = std::iter::once(&first).chain(carried).cloned().collect();
        let open = |e: &mut Emit, seen: &[Val]| {
            let end = e.scalar(steps as f64, DType::I64);
            e.compare("LT", &seen[0], &end)
        };
        let results = self.while_loop(&start, open, |e, seen| {
            let mut next = body(e, &seen[0], &seen[1..]);
            next.insert(0, e.with_const("add", &seen[0], 1.0));
            next
        });
        results[1..].to_vec()
    }

    /// A loop that goes on as long as `open` says, of one value at least: `body` gives what is carried on, of the same types.
    /// What checks find in the rounds is carried, too.
    pub fn while_loop(
        &mut self,
        carried: &[Val],
        open: impl FnOnce(&mut Emit, &[Val]) -> Val,
        body: impl FnOnce(&mut Emit, &[Val]) -> Vec<Val>,
    ) -> Vec<Val> {
        let mut types: Vec<Type> = carried.iter().map(|v| v.ty.clone()).collect();
        let mut carried = carried.to_vec();
        let mut condition = self.block(&types, |e, seen| vec![e.unseen(|e| open(e, seen))]);
        let mut step = self.block(&types, |e, seen| body(e, seen));
        let found = std::mem::take(&mut step.found);
        for (flag, _) in &found {
            condition.args.push(self.fresh(flag.ty.clone()));
            let before = self.fresh(flag.ty.clone());
            step.add(self, |e| e.binary("maximum", &before, flag));
            step.args.push(before);
            carried.push(self.fine());
            types.push(flag.ty.clone());
        }
        let written = list(types.iter().map(|t| mlir(t).to_string()));
        let (condition, step) = (condition.region(), step.region());
        let mut results = self.several(types);
        let (name, n) = (results[0].name(), results.len());
        let operands = list(&carried);
        self.line(&format!(
            "{name}:{n} = \"stablehlo.while\"({operands}) ({}, {}) : ({written}) -> ({written})",
            condition.0, step.0
        ));
        let flags = results.split_off(n - found.len());
        self.found.extend(flags.into_iter().zip(found).map(|(flag, (_, checked))| (flag, checked)));
        results
    }

    /// One of several ways, by an i32 scalar; the last where it is none of their numbers. Each gives values of the same types,
    /// one at least. What checks find in the one that is taken is given, too.
    pub fn case(
        &mut self,
        index: &Val,
        branches: impl IntoIterator<Item = impl FnOnce(&mut Emit) -> Vec<Val>>,
    ) -> Vec<Val> {
        let mut blocks: Vec<Written> = branches.into_iter().map(|branch| self.block(&[], |e, _| branch(e))).collect();
        let mut types: Vec<Type> = blocks[0].results.iter().map(|v| v.ty.clone()).collect();
        let found: Vec<Vec<(Val, Checked)>> = blocks.iter_mut().map(|b| std::mem::take(&mut b.found)).collect();
        let mut checks = Vec::new();
        for (of, found) in found.into_iter().enumerate() {
            for (flag, checked) in found {
                let fine = self.fine();
                let one =
                    |(k, block): (usize, &mut Written)| block.results.push(if k == of { &flag } else { &fine }.clone());
                blocks.iter_mut().enumerate().for_each(one);
                types.push(flag.ty.clone());
                checks.push(checked);
            }
        }
        let written = list(types.iter().map(|t| mlir(t).to_string()));
        let mut results = self.several(types);
        let (name, n) = (results[0].name(), results.len());
        let regions = list(blocks.iter().map(|b| b.region().0));
        self.line(&format!(
            "{name}:{n} = \"stablehlo.case\"({index}) ({regions}) : ({}) -> ({written})",
            mlir(&index.ty)
        ));
        let flags = results.split_off(n - checks.len());
        self.found.extend(flags.into_iter().zip(checks));
        results
    }

    /// The values themselves, one at least, none of which the compiler knows before it has all of them: what is computed of them is not
    /// what was computed of the values before.
    pub fn optimization_barrier(&mut self, values: &[Val]) -> Vec<Val> {
        let types: Vec<Type> = values.iter().map(|v| v.ty.clone()).collect();
        let written = list(types.iter().map(|t| mlir(t).to_string()));
        let results = self.several(types);
        let (name, n) = (results[0].name(), results.len());
        self.line(&format!("{name}:{n} = stablehlo.optimization_barrier {} : {written}", list(values)));
        results
    }

    /// A region of whole lines, with arguments of these types.
    fn block(&mut self, types: &[Type], body: impl FnOnce(&mut Emit, &[Val]) -> Vec<Val>) -> Written {
        let (around, before) = (std::mem::take(self.text_mut()), self.take_found());
        let args: Vec<Val> = types.iter().map(|t| self.fresh(t.clone())).collect();
        let results = body(self, &args);
        let text = std::mem::replace(self.text_mut(), around);
        let found = std::mem::replace(&mut self.found, before);
        Written { args, text, results, found }
    }

    /// `(value, index)` of the extreme element along `dim`, which is dropped; the first of equals, NaN wins as in torch.
    pub fn arg_extreme(&mut self, x: &Val, dim: usize, max: bool) -> (Val, Val) {
        let index = self.iota(&Type::new(DType::I64, x.shape().clone()), dim);
        let init = self.neutral(if max { Reducer::Max } else { Reducer::Min }, x.dtype());
        let zero = self.scalar(0.0, DType::I64);
        let direction = if max { "GT" } else { "LT" };
        let first = self.region([x.dtype(), DType::I64, x.dtype(), DType::I64], |block, [a, at, b, bt]| {
            let Beats { by_value, tie, first } = block.beats(direction, [a, at, b, bt]);
            let same = block.and(&tie, &first);
            let take = block.or(&by_value, &same);
            [block.select(&by_value, a, b), block.select(&take, at, bt)]
        });
        let mut shape = x.shape().clone();
        shape.remove(dim);
        let out = [Type::new(x.dtype(), shape.clone()), Type::new(DType::I64, shape)];
        let attributes = format!("{{dimensions = array<i64: {dim}>}}");
        let [value, position] = self.with_regions("reduce", &[x, &index, &init, &zero], &[first], &attributes, out);
        (value, position)
    }

    /// Sorts `x` along `dim` and takes `with` (int64) along; stable, NaN as the largest number.
    pub fn sort_pair(&mut self, x: &Val, with: &Val, dim: usize, descending: bool) -> (Val, Val) {
        let dtype = x.dtype();
        let before = self.region([dtype, dtype, DType::I64, DType::I64], |block, [a, b, _, _]| {
            let beats = block.compare(if descending { "GT" } else { "LT" }, a, b);
            if !dtype.is_float() {
                return [beats];
            }
            // going up NaN comes after every number, going down before
            let (first, second) = if descending { (a, b) } else { (b, a) };
            let nan = block.compare("NE", first, first);
            let number = block.compare("EQ", second, second);
            let last = block.and(&nan, &number);
            [block.or(&beats, &last)]
        });
        let attributes = format!("{{dimension = {dim} : i64, is_stable = true}}");
        let out = [x.ty.clone(), with.ty.clone()];
        let [value, taken] = self.with_regions("sort", &[x, with], &[before], &attributes, out);
        (value, taken)
    }

    /// The position in `index` (int64, of `x`'s shape) of the maximum of each window; the first of equals, NaN wins.
    /// `attributes` are those of reduce_window.
    pub fn window_arg_max(&mut self, x: &Val, index: &Val, attributes: &str, shape: &Shape) -> Val {
        let init = self.neutral(Reducer::Max, x.dtype());
        let none = self.scalar(-1.0, DType::I64);
        // -1 stands for no position yet: it loses to any other
        let zero = self.scalar(0.0, DType::I64);
        let first = self.region([x.dtype(), DType::I64, x.dtype(), DType::I64], |block, [a, at, b, bt]| {
            let Beats { by_value, tie, first } = block.beats("GT", [a, at, b, bt]);
            let known = block.compare("GE", at, &zero);
            let same = block.and(&tie, &first);
            let same = block.and(&same, &known);
            let unknown = block.compare("LT", bt, &zero);
            let same = block.or(&same, &unknown);
            let take = block.or(&by_value, &same);
            [block.select(&by_value, a, b), block.select(&take, at, bt)]
        });
        let out = [Type::new(x.dtype(), shape.clone()), Type::new(DType::I64, shape.clone())];
        let inputs = [x, index, &init, &none];
        let [_, position] = self.with_regions("reduce_window", &inputs, &[first], attributes, out);
        position
    }
}
