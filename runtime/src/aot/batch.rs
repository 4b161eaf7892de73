//! The same program for another batch: which dimensions follow the leading one of the data, and the text with their sizes changed.
//!
//! Each dimension of each value is a variable. What an op says of its dimensions joins two that are the same, or relates them:
//! a concatenation adds up, a reshape multiplies. A new size of the batch goes through these; what has no answer is refused with
//! its line, so that no other program than the one that would be recorded is compiled.
mod follow;

use super::program;
use crate::{Error, Result};
use std::collections::HashMap;
use std::ops::Range;

type Dim = usize;
type Shape = Vec<Dim>;

/// What one op says of the sizes around it.
enum Rule {
    /// The sum of these and a number.
    Sum(Dim, Vec<Dim>, i64),
    /// Every n-th, from a start to the end.
    Part(Dim, Dim, i64, i64),
    /// Products that are equal.
    Product(Vec<Dim>, Vec<Dim>),
    /// The size stays as it was recorded.
    Fixed(Dim),
}

/// A program, taken apart.
pub(super) struct Sizes<'a> {
    text: &'a str,
    /// The dimension that each is joined to.
    joined: Vec<Dim>,
    old: Vec<u64>,
    rules: Vec<(Rule, &'a str)>,
    /// Where the sizes of types stand.
    types: Vec<(Range<usize>, Shape)>,
    /// Numbers in attributes that are a dimension's size.
    numbers: Vec<(Range<usize>, Dim)>,
    inputs: Vec<Input>,
    results: Vec<Shape>,
    /// The leading dimensions of what ops make.
    leading: Vec<Dim>,
}

/// An argument of the program.
pub(super) struct Input {
    pub ty: String,
    pub number: usize,
    shape: Shape,
    /// The program gives back what takes its place: a parameter, or a state.
    replaced: bool,
}

/// What could be the batch.
pub(super) struct Batch {
    dims: Vec<Dim>,
    pub size: u64,
    /// The inputs that it leads, by their places and types.
    pub inputs: Vec<(usize, String)>,
}

fn refused(message: String) -> Error {
    Error::Usage { message }
}

/// Regions that are open: whose values they are.
struct Open<'a> {
    op: &'a str,
    results: &'a str,
    operands: Vec<Shape>,
    blocks: Vec<Vec<Shape>>,
    returns: Vec<Vec<Shape>>,
}

impl<'a> Sizes<'a> {
    /// Reads a program as xlazy writes them.
    pub fn read(text: &'a str) -> Result<Sizes<'a>> {
        let mut all = Sizes {
            text,
            joined: vec![],
            old: vec![],
            rules: vec![],
            types: vec![],
            numbers: vec![],
            inputs: vec![],
            results: vec![],
            leading: vec![],
        };
        let mut values: HashMap<String, Shape> = HashMap::new();
        let mut open: Vec<Open> = Vec::new();
        let mut outside = true;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let begins = at;
            at += line.len();
            let whole = line.trim();
            let begins = begins + (line.len() - line.trim_start().len());
            if let Some(head) = whole.strip_prefix("func.func") {
                outside = !head.contains("@main");
                values.clear();
                if !outside {
                    all.head(whole, begins, &mut values);
                }
                continue;
            }
            if outside {
                continue;
            }
            let body = &whole[..whole.rfind(" loc(").unwrap_or(whole.len())];
            if body.starts_with("^bb") {
                let args = all.named(body, begins, &mut values);
                if let Some(open) = open.last_mut() {
                    open.blocks.push(args);
                }
            } else if let Some(returned) = body.strip_prefix("stablehlo.return ") {
                let names = returned.split(" : ").next().unwrap_or_default();
                let shapes = all.used(names, body, begins, whole, &values)?;
                if let Some(open) = open.last_mut() {
                    open.returns.push(shapes);
                }
            } else if let Some(names) = body.strip_prefix("return") {
                let names = names.split(" : ").next().unwrap_or_default();
                let returned = all.used(names, body, begins, whole, &values)?;
                let results = std::mem::take(&mut all.results);
                returned.iter().zip(&results).for_each(|(a, b)| all.join_all(a, b));
            } else if body == "}" || body == "}, {" || body.is_empty() {
            } else if let Some(end) = body.strip_prefix("})") {
                let Some(of) = open.pop() else { return Err(unread(whole)) };
                all.op(of, end, begins + 2, whole, &mut values)?;
            } else if let Some((results, right)) = body.split_once(" = ") {
                let quoted = right.trim_start_matches('"');
                let op = quoted.split(['"', '(', ' ']).next().unwrap_or_default();
                let rest = quoted[op.len()..].trim_start_matches('"');
                let names = match rest.strip_prefix('(') {
                    Some(inside) => inside.split(')').next().unwrap_or_default(),
                    None => rest.split(" : ").next().unwrap_or_default(),
                };
                let names = if op == "stablehlo.constant" { "" } else { names };
                let operands = operands(names).map(|n| values.get(n).cloned()).collect::<Option<Vec<Shape>>>();
                let Some(operands) = operands else { return Err(unread(whole)) };
                let of = Open { op, results, operands, blocks: vec![], returns: vec![] };
                match body.ends_with('{') {
                    true => open.push(of),
                    false => all.op(of, rest, begins + (body.len() - rest.len()), whole, &mut values)?,
                }
            } else {
                return Err(unread(whole));
            }
        }
        Ok(all)
    }

    fn fresh(&mut self, size: u64) -> Dim {
        self.joined.push(self.old.len());
        self.old.push(size);
        self.old.len() - 1
    }

    fn root(&self, mut d: Dim) -> Dim {
        while self.joined[d] != d {
            d = self.joined[d];
        }
        d
    }

    /// Two dimensions that are one; a size of 1 stands for any where shapes are made to fit.
    fn join(&mut self, a: Dim, b: Dim) {
        let (a, b) = (self.root(a), self.root(b));
        if self.old[a] == self.old[b] && self.old[a] != 1 {
            self.joined[a.max(b)] = a.min(b);
        }
    }

    fn join_all(&mut self, a: &[Dim], b: &[Dim]) {
        if a.len() == b.len() {
            a.iter().zip(b).for_each(|(&a, &b)| self.join(a, b));
        }
    }

    /// The types that a part of the text names, each with dimensions of its own.
    fn types(&mut self, part: &str, begins: usize) -> Vec<Shape> {
        let mut found = Vec::new();
        for (at, word) in part.match_indices("tensor<") {
            let from = at + word.len();
            let mut to = from;
            let mut shape = Shape::new();
            while let Some((size, _)) = part[to..].split_once('x') {
                let Ok(size) = size.parse() else { break };
                shape.push(self.fresh(size));
                to += part[to..].find('x').unwrap_or(0) + 1;
            }
            self.types.push((begins + from..begins + to, shape.clone()));
            found.push(shape);
        }
        found
    }

    /// `%1: tensor<…> {…}, %2: …`
    fn named(&mut self, part: &str, begins: usize, values: &mut HashMap<String, Shape>) -> Vec<Shape> {
        let starts: Vec<usize> = part.match_indices('%').map(|(at, _)| at).collect();
        let mut all = Vec::new();
        for (k, &from) in starts.iter().enumerate() {
            let one = &part[from..starts.get(k + 1).copied().unwrap_or(part.len())];
            let Some(shape) = self.types(one, begins + from).into_iter().next() else { continue };
            values.insert(one.split(':').next().unwrap_or_default().to_owned(), shape.clone());
            all.push(shape);
        }
        all
    }

    fn head(&mut self, line: &str, begins: usize, values: &mut HashMap<String, Shape>) {
        let end = line.find(") -> ").unwrap_or(line.len());
        let shapes = self.named(&line[..end], begins, values);
        for (k, (shape, part)) in shapes.into_iter().zip(line[..end].split('%').skip(1)).enumerate() {
            let ty = program::types(part).next().unwrap_or_default().to_owned();
            let replaced = part.contains("tf.aliasing_output") || part.contains("jax.buffer_donor");
            self.inputs.push(Input { ty, number: k, shape, replaced });
        }
        self.results = self.types(&line[end..], begins + end);
    }

    /// The shapes of values, joined with the types that stand behind them.
    fn used(
        &mut self,
        names: &str,
        body: &str,
        begins: usize,
        line: &'a str,
        values: &HashMap<String, Shape>,
    ) -> Result<Vec<Shape>> {
        let shapes: Option<Vec<Shape>> = operands(names).map(|n| values.get(n).cloned()).collect();
        let shapes = shapes.ok_or_else(|| unread(line))?;
        let from = body.find(" : ").unwrap_or(body.len());
        let types = self.types(&body[from..], begins + from);
        shapes.iter().zip(&types).for_each(|(a, b)| self.join_all(a, b));
        Ok(shapes)
    }

    fn rule(&mut self, rule: Rule, line: &'a str) {
        self.rules.push((rule, line));
    }

    fn fix(&mut self, shapes: &[Shape], line: &'a str) {
        for &d in shapes.iter().flatten() {
            self.rule(Rule::Fixed(d), line);
        }
    }

    /// One op; `rest` is what stands behind its name or its regions.
    fn op(
        &mut self,
        of: Open<'a>,
        rest: &str,
        begins: usize,
        line: &'a str,
        values: &mut HashMap<String, Shape>,
    ) -> Result<()> {
        let from = rest.rfind(" : ").ok_or_else(|| unread(line))?;
        let (attributes, signature) = rest.split_at(from);
        let types = self.types(signature, begins + from);
        let arrow = signature.contains("->");
        let n = of.results.split_once(':').map_or(1, |(_, n)| n.parse().unwrap_or(1));
        let ins = if arrow { types.len().saturating_sub(n) } else { 0 };
        let (takes, gives) = types.split_at(ins);
        if arrow {
            of.operands.iter().zip(takes).for_each(|(a, b)| self.join_all(a, b));
        }
        // Where there is one type, it is that of all.
        let gives = if gives.len() > n { &gives[..n] } else { gives };
        let name = of.results.split(':').next().unwrap_or_default().trim();
        for (k, shape) in gives.iter().enumerate() {
            if n > 1 || of.results.contains(':') {
                values.insert(format!("{name}#{k}"), shape.clone());
            }
            if k == 0 {
                values.insert(name.to_owned(), shape.clone());
            }
            self.leading.extend(shape.first());
        }
        let Some(out) = gives.first().cloned() else { return Ok(()) };
        self.meaning(&of, attributes, begins, gives, &out, line)
    }

    fn meaning(
        &mut self,
        of: &Open<'a>,
        attributes: &str,
        begins: usize,
        gives: &[Shape],
        out: &Shape,
        line: &'a str,
    ) -> Result<()> {
        let x = of.operands.first().cloned().unwrap_or_default();
        let list = |key: &str| numbers(attributes, key);
        let ints = |key: &str| list(key).iter().map(|(n, _)| *n).collect::<Vec<i64>>();
        let at = |range: &Range<usize>| begins + range.start..begins + range.end;
        match of.op.trim_start_matches("stablehlo.") {
            "iota" | "rng_bit_generator" => {}
            "constant" => {
                if attributes.contains("dense<[") || attributes.contains("dense<\"") {
                    self.fix(gives, line);
                }
            }
            "broadcast_in_dim" => {
                for (&d, k) in x.iter().zip(ints("broadcast_dimensions = ")) {
                    self.join(d, out[k as usize]);
                }
            }
            "transpose" => {
                for (&d, k) in out.iter().zip(ints("permutation = ")) {
                    self.join(d, x[k as usize]);
                }
            }
            "reshape" => self.reshaped(&x, out, line),
            "dot_general" => {
                let y = &of.operands[1];
                let [ab, bb] = ["lhs_batching_dimensions = ", "rhs_batching_dimensions = "].map(ints);
                let [ac, bc] = ["lhs_contracting_dimensions = ", "rhs_contracting_dimensions = "].map(ints);
                for (&a, &b) in ab.iter().zip(&bb).chain(ac.iter().zip(&bc)) {
                    self.join(x[a as usize], y[b as usize]);
                }
                let free = |all: &Shape, not: [&[i64]; 2]| {
                    let is = |k: &usize| !not.iter().any(|n| n.contains(&(*k as i64)));
                    (0..all.len()).filter(is).map(|k| all[k]).collect::<Vec<Dim>>()
                };
                let batch = ab.iter().map(|&k| x[k as usize]);
                let made: Shape = batch.chain(free(&x, [&ab, &ac])).chain(free(y, [&bb, &bc])).collect();
                self.join_all(&made, out);
            }
            "reduce" => {
                let dims = ints("dimensions = ");
                let kept: Shape = (0..x.len()).filter(|k| !dims.contains(&(*k as i64))).map(|k| x[k]).collect();
                gives.iter().for_each(|g| self.join_all(&kept, g));
            }
            "slice" => {
                let (starts, steps) = (ints("start_indices = "), ints("strides = "));
                for (k, (limit, range)) in list("limit_indices = ").into_iter().enumerate() {
                    let (start, step, whole) = (starts[k], steps[k], self.old[x[k]] as i64);
                    match limit == whole {
                        true if start == 0 && step == 1 => self.join(x[k], out[k]),
                        true => self.rule(Rule::Part(out[k], x[k], start, step), line),
                        false => self.fix(&[vec![x[k], out[k]]], line),
                    }
                    if limit == whole {
                        self.numbers.push((at(&range), x[k]));
                    }
                }
            }
            "pad" => {
                let [low, high, inner] =
                    ["edge_padding_low = ", "edge_padding_high = ", "interior_padding = "].map(ints);
                for k in 0..x.len() {
                    match (low[k], high[k], inner[k]) {
                        (0, 0, 0) => self.join(x[k], out[k]),
                        (low, high, 0) => self.rule(Rule::Sum(out[k], vec![x[k]], low + high), line),
                        _ => self.fix(&[vec![x[k], out[k]]], line),
                    }
                }
            }
            "concatenate" => {
                let along = number(attributes, "dimension = ").unwrap_or(0) as usize;
                for k in (0..out.len()).filter(|&k| k != along) {
                    of.operands.iter().for_each(|x| self.join(x[k], out[k]));
                }
                let parts = of.operands.iter().map(|x| x[along]).collect();
                self.rule(Rule::Sum(out[along], parts, 0), line);
            }
            "gather" => {
                let ids = of.operands[1].clone();
                let offset = ints("offset_dims = ");
                let (gone, vector) = (ints("collapsed_slice_dims = "), number(attributes, "index_vector_dim = "));
                let picks = ids.iter().enumerate().filter(|(k, _)| Some(*k as i64) != vector).map(|(_, &d)| d);
                let by = (0..out.len()).filter(|k| !offset.contains(&(*k as i64))).map(|k| out[k]);
                let pairs: Vec<(Dim, Dim)> = picks.zip(by).collect();
                pairs.into_iter().for_each(|(a, b)| self.join(a, b));
                let mut places = offset.iter();
                for (k, (size, range)) in list("slice_sizes = ").into_iter().enumerate() {
                    let place = if gone.contains(&(k as i64)) { None } else { places.next() };
                    match place {
                        Some(&p) if size == self.old[x[k]] as i64 => {
                            self.join(x[k], out[p as usize]);
                            self.numbers.push((at(&range), x[k]));
                        }
                        Some(&p) => self.fix(&[vec![x[k], out[p as usize]]], line),
                        None => {}
                    }
                }
            }
            "scatter" => {
                self.join_all(&x, out);
                let (ids, y) = (of.operands[1].clone(), of.operands[2].clone());
                let (window, gone) = (ints("update_window_dims = "), ints("inserted_window_dims = "));
                let vector = number(attributes, "index_vector_dim = ");
                let picks = ids.iter().enumerate().filter(|(k, _)| Some(*k as i64) != vector).map(|(_, &d)| d);
                let by = (0..y.len()).filter(|k| !window.contains(&(*k as i64))).map(|k| y[k]);
                let pairs: Vec<(Dim, Dim)> = picks.zip(by).collect();
                let whole = (0..x.len()).filter(|k| !gone.contains(&(*k as i64))).map(|k| x[k]);
                let parts: Vec<(Dim, Dim)> = whole.zip(window.iter().map(|&k| y[k as usize])).collect();
                pairs.into_iter().chain(parts).for_each(|(a, b)| self.join(a, b));
            }
            "dynamic_slice" => {
                for (k, (size, range)) in list("slice_sizes = ").into_iter().enumerate() {
                    if size == self.old[x[k]] as i64 {
                        self.join(x[k], out[k]);
                        self.numbers.push((at(&range), x[k]));
                    } else {
                        self.fix(&[vec![out[k]]], line);
                    }
                }
            }
            "dynamic_update_slice" => {
                self.join_all(&x, out);
                self.join_all(&x, &of.operands[1].clone());
            }
            "convolution" => {
                let groups = [number(attributes, "feature_group_count = "), number(attributes, "batch_group_count = ")];
                let w = of.operands[1].clone();
                match groups {
                    [Some(1), Some(1)] => {
                        [(x[0], out[0]), (x[1], w[1]), (w[0], out[1])].iter().for_each(|&(a, b)| self.join(a, b));
                    }
                    // As many channels as before: those of each group are counted in the kernel.
                    [Some(_), Some(1)] => {
                        self.join(x[0], out[0]);
                        self.fix(&[vec![x[1], out[1]], w.clone()], line);
                    }
                    _ => {
                        self.fix(&[vec![x[0], out[0]], w.clone()], line);
                        self.join(x[1], w[1]);
                    }
                }
                self.fix(&[x[2..].to_vec(), out[2..].to_vec(), w[2..].to_vec()], line);
            }
            "reduce_window" | "select_and_scatter" => {
                let window = ints("window_dimensions = ");
                let (wide, narrow) = if of.op.ends_with("scatter") { (out, &of.operands[1]) } else { (&x, out) };
                let (wide, narrow) = (wide.clone(), narrow.clone());
                for k in 0..wide.len() {
                    match window.get(k) {
                        Some(1) if self.old[wide[k]] == self.old[narrow[k]] => self.join(wide[k], narrow[k]),
                        _ => self.fix(&[vec![wide[k], narrow[k]]], line),
                    }
                }
                gives.iter().for_each(|g| self.join_all(&narrow, g));
                self.join_all(&x, &wide);
                if of.op.ends_with("window") {
                    of.operands.iter().for_each(|o| self.join_all(&wide, o));
                }
            }
            "while" => {
                for shapes in of.blocks.iter().chain(of.returns.get(1..).unwrap_or_default()).chain([&gives.to_vec()]) {
                    shapes.iter().zip(&of.operands).for_each(|(a, b)| self.join_all(a, b));
                }
            }
            "case" | "if" => {
                for shapes in &of.returns {
                    shapes.iter().zip(gives).for_each(|(a, b)| self.join_all(a, b));
                }
            }
            "sort" | "optimization_barrier" => {
                gives.iter().zip(&of.operands).for_each(|(g, o)| self.join_all(g, o));
                if of.op.ends_with("sort") {
                    of.operands.iter().for_each(|o| self.join_all(&x, o));
                }
            }
            "fft" | "cholesky" | "triangular_solve" | "all_to_all" | "all_gather" | "reduce_scatter" => {
                // What leads stands for one problem after the other; what an algorithm works along stays.
                let lead = match of.op.trim_start_matches("stablehlo.") {
                    "fft" => x.len() - 1,
                    "cholesky" | "triangular_solve" => x.len() - 2,
                    _ => 0,
                };
                for shape in of.operands.iter().chain([out]) {
                    self.join_all(&x[..lead], &shape[..lead.min(shape.len())]);
                    self.fix(&[shape[lead.min(shape.len())..].to_vec()], line);
                }
            }
            // The rest is elementwise, but for what nobody knows the meaning of.
            "custom_call" | "func.call" | "sdy.manual_computation" => {
                let all: Vec<Shape> = of.operands.iter().chain(gives).cloned().collect();
                self.fix(&all, line);
            }
            // Of another width, numbers are in one dimension more.
            "bitcast_convert" => x.iter().zip(out).for_each(|(&a, &b)| self.join(a, b)),
            _ => of.operands.iter().for_each(|o| self.join_all(o, out)),
        }
        Ok(())
    }

    /// Runs of dimensions with equal products on both sides.
    fn reshaped(&mut self, x: &[Dim], out: &[Dim], line: &'a str) {
        let sized = |all: &[Dim], old: &[u64]| all.iter().copied().filter(|&d| old[d] != 1).collect::<Vec<Dim>>();
        let (a, b) = (sized(x, &self.old), sized(out, &self.old));
        let (mut i, mut j) = (0, 0);
        while i < a.len() && j < b.len() {
            let (from, to) = (i, j);
            let (mut p, mut q) = (self.old[a[i]], self.old[b[j]]);
            (i, j) = (i + 1, j + 1);
            while p != q {
                if p < q && i < a.len() {
                    p = p.saturating_mul(self.old[a[i]]);
                    i += 1;
                } else if j < b.len() {
                    q = q.saturating_mul(self.old[b[j]]);
                    j += 1;
                } else {
                    return self.fix(&[a, b], line);
                }
            }
            match (i - from, j - to) {
                (1, 1) => self.join(a[from], b[to]),
                _ => self.rule(Rule::Product(a[from..i].to_vec(), b[to..j].to_vec()), line),
            }
        }
    }
}

fn unread(line: &str) -> Error {
    let line: String = line.chars().take(120).collect();
    refused(format!(
        "this program is not written as xlazy writes them, so its batch cannot be changed in its text ({line:?}): give a closure, \
         as `|batch| loss_of(batch)`"
    ))
}

fn operands(names: &str) -> impl Iterator<Item = &str> {
    names.split(|c: char| c == ',' || c.is_whitespace()).map(str::trim).filter(|n| n.starts_with('%'))
}

/// The numbers of `key[1, 2]` or `keyarray<i64: 1, 2>`, each with its place.
fn numbers(text: &str, key: &str) -> Vec<(i64, Range<usize>)> {
    let Some(at) = text.find(key) else { return vec![] };
    let from = at + key.len();
    let begin = if text[from..].starts_with("array<i64") { from + "array<i64".len() } else { from };
    let end = begin + text[begin..].find(['>', ']', '}']).unwrap_or(0);
    let mut out = Vec::new();
    let mut at = begin;
    while at < end {
        let is = |c: char| c.is_ascii_digit() || c == '-';
        let Some(next) = text[at..end].find(is) else { break };
        let from = at + next;
        let to = from + text[from..end].find(|c| !is(c)).unwrap_or(end - from);
        out.extend(text[from..to].parse().ok().map(|n| (n, from..to)));
        at = to;
    }
    out
}

/// The number of `dimension = 0 : i64`.
fn number(text: &str, key: &str) -> Option<i64> {
    let at = text.find(key)? + key.len();
    text[at..].split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
