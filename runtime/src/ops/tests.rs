//! The table checked against itself: every op compiles and runs on each dtype its rule accepts, gives the type its rule
//! says, and has the gradient that differences say.
mod kinds;

use super::table;
use crate::tensor::entry::Operand;
use crate::tensor::{Entry, Sample, Tensor, sync, takes, trace_all};
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use xlazy_core::ir::{Attr, Sig};
use xlazy_core::ty::{Category, DType, Scalar, Shape, Type};

/// What a decomposition found, with a gradient to what it is of: moving one operand alone says nothing.
const GIVEN: &str = "its last operand, as it is: decompositions.rs compares its gradient with differences";

/// What is recorded for it is no operand.
const BODY: &str = "its attribute is what a closure records: control.rs looks at it";

const DEVICES: &str = "of several devices: collectives.rs looks at it";

/// Ops without samples, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("device_data", "a leaf: it is a value, not computed"),
    ("scalar", "a leaf: it is a value, not computed"),
    ("set_data", "its gradient is that of another value: views.rs looks at it"),
    ("rand", "random: lazy.rs looks at its numbers"),
    ("randn", "random: lazy.rs looks at its numbers"),
    ("randint", "random: lazy.rs looks at its numbers"),
    ("custom_op", "its attribute names a text: custom.rs looks at it"),
    ("scan", BODY),
    ("while_loop", BODY),
    ("cond", BODY),
    ("switch", BODY),
    ("optimization_barrier", "what it gives is what it takes: autograd.rs looks at it"),
    ("function", "its gradient is Rust of the user's: autograd.rs looks at it"),
    ("function.result", "a result of that: autograd.rs looks at it"),
    ("manual", BODY),
    ("all_reduce", DEVICES),
    ("all_gather", DEVICES),
    ("reduce_scatter", DEVICES),
    ("all_to_all", DEVICES),
    ("collective_permute", DEVICES),
    ("broadcast", DEVICES),
    ("by_device", DEVICES),
    ("cholesky_solve", GIVEN),
    ("linalg.det", GIVEN),
    ("linalg.qr", GIVEN),
    ("linalg.eigh", GIVEN),
    ("linalg.eigvalsh", GIVEN),
    ("linalg.svd", GIVEN),
    ("linalg.svdvals", GIVEN),
    ("linalg.svd.u", GIVEN),
    ("linalg.pinv", GIVEN),
];

#[test]
fn names_and_ids_are_unique() {
    let mut seen = HashMap::new();
    for op in table() {
        assert_eq!(seen.insert(op.id, op.name), None, "{} has the id of another op", op.name);
    }
}

#[test]
fn every_op_has_samples_or_a_reason() {
    let reasons: HashSet<&str> = WITHOUT.iter().map(|(name, _)| *name).collect();
    for op in table() {
        assert_eq!((op.samples)().is_empty(), reasons.contains(op.name), "{}", op.name);
    }
}

/// Numbers in 0..1 that are the same in every run (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The operands of a sample as host numbers.
fn numbers(sample: &Sample, seed: u64) -> Vec<Vec<f64>> {
    let mut random = Numbers(seed);
    let one = |below: Option<usize>, fixed: Option<DType>, r: f64| match (below, fixed) {
        (Some(n), _) => (r * n as f64).floor(),
        (None, Some(DType::Bool)) => (r > 0.5) as u8 as f64,
        _ => sample.low + r * (sample.high - sample.low),
    };
    let mut operand = |o: &Operand| (0..o.shape.numel()).map(|_| one(o.below, o.dtype, random.next())).collect();
    sample.inputs.iter().map(&mut operand).collect()
}

/// Numbers as bytes of a dtype; integers small and none of them 0, as a divisor must not be.
fn upload(values: &[f64], shape: &Shape, dtype: DType, whole: bool) -> Tensor {
    let mut bytes = Vec::new();
    for &v in values {
        let i = if whole { v as i64 } else { (v.abs() * 3.0) as i64 + 1 };
        let number = match dtype.category() {
            Category::Bool => Scalar::Bool(v > 0.5),
            Category::Int => Scalar::Int(i),
            Category::Float | Category::Complex => Scalar::Float(v),
        };
        dtype.write(number, &mut bytes);
    }
    Tensor::of_bytes(&bytes, Type::new(dtype, shape.clone()))
}

fn operands(sample: &Sample, values: &[Vec<f64>], dtype: DType) -> Vec<Tensor> {
    let one = |(o, v): (&Operand, &Vec<f64>)| upload(v, &o.shape, o.dtype.unwrap_or(dtype), o.below.is_some());
    sample.inputs.iter().zip(values).map(one).collect()
}

fn apply(op: &'static Entry, sample: &Sample, inputs: &[Tensor]) -> Tensor {
    trace_all(op, &inputs.iter().collect::<Vec<_>>(), sample.attrs.clone())
}

fn message(panic: Box<dyn std::any::Any + Send>) -> String {
    panic.downcast::<String>().map_or_else(|_| "panicked".into(), |m| *m)
}

/// Compiles and runs all samples in one dtype; the lowering must give the rule's type, which the program writer asserts.
fn check_dtype(dtype: DType) {
    let mut cases: Vec<(&'static Entry, Sample)> = Vec::new();
    for op in table() {
        for sample in (op.samples)() {
            let types: Vec<Type> =
                sample.inputs.iter().map(|o| Type::new(o.dtype.unwrap_or(dtype), o.shape.clone())).collect();
            let types: Vec<&Type> = types.iter().collect();
            if takes::refused(op.name, types.iter().map(|t| t.dtype)).is_some() {
                continue;
            }
            match (op.infer)(&Sig { inputs: &types, attrs: &sample.attrs }) {
                Ok(_) => cases.push((op, sample)),
                Err(sentence) => assert!(sentence.len() > 10, "{} refuses {dtype} by `{sentence}`", op.name),
            }
        }
    }
    let mut failures = Vec::new();
    for batch in cases.chunks(40) {
        let run = |cases: &[(&'static Entry, Sample)]| {
            catch_unwind(AssertUnwindSafe(|| {
                let outputs: Vec<Tensor> = cases
                    .iter()
                    .map(|(op, sample)| apply(op, sample, &operands(sample, &numbers(sample, 1), dtype)))
                    .collect();
                sync();
                outputs.iter().for_each(Tensor::wait);
            }))
        };
        if run(batch).is_err() {
            for case in batch {
                if let Err(e) = run(std::slice::from_ref(case)) {
                    let text = message(e);
                    failures.push(format!("{} in {dtype}: {}", case.0.name, &text[..text.len().min(400)]));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

macro_rules! dtypes {
    ($($test:ident $dtype:ident;)*) => {$(
        #[test]
        fn $test() {
            check_dtype(DType::$dtype);
        }
    )*
        /// Those that are not tried by themselves, beside one another.
        #[test]
        fn every_op_runs_in_every_other_dtype() {
            let rest = DType::ALL.into_iter().filter(|d| d.category() < Category::Complex && ![$(DType::$dtype),*].contains(d));
            rest.for_each(check_dtype);
        }
    };
}

dtypes! {
    every_op_runs_in_f32 F32;
    every_op_runs_in_f64 F64;
    every_op_runs_in_bf16 BF16;
    every_op_runs_in_f16 F16;
    every_op_runs_in_i64 I64;
    every_op_runs_in_i32 I32;
    every_op_runs_in_bool Bool;
}

/// The derivative of Σ op(x) · w along every element of every float operand, by central differences and by the gradient.
fn check_gradient(op: &'static Entry, sample: &Sample, seed: u64) -> Result<(), String> {
    let types: Vec<Type> =
        sample.inputs.iter().map(|o| Type::new(o.dtype.unwrap_or(DType::F64), o.shape.clone())).collect();
    if (op.infer)(&Sig { inputs: &types.iter().collect::<Vec<_>>(), attrs: &sample.attrs }).is_err() {
        return Ok(());
    }
    let values = numbers(sample, seed);
    let inputs = operands(sample, &values, DType::F64);
    let leaves: Vec<&Tensor> = inputs.iter().filter(|t| t.dtype() == DType::F64).collect();
    leaves.iter().for_each(|t| drop(t.requires_grad_(true)));
    let y = apply(op, sample, &inputs);
    if leaves.is_empty() || !y.dtype().is_float() {
        return Ok(());
    }
    let mut random = Numbers(seed + 1);
    let weights: Vec<f64> = (0..y.numel()).map(|_| random.next() - 0.5).collect();
    let w = Tensor::from_slice(&weights, y.shape());
    let total = |y: &Tensor| (y.to(DType::F64) * &w).sum();
    let analytic: Vec<Vec<f64>> = match y.requires_grad() {
        true => crate::grad(&total(&y), &leaves)
            .into_iter()
            .zip(&leaves)
            .map(|(g, x)| g.map_or(vec![0.0; x.numel()], |g| g.to_vec::<f64>()))
            .collect(),
        false => return Err("has a gradient that is not recorded".into()),
    };
    let floats = sample.inputs.iter().enumerate().filter(|(_, o)| o.dtype.is_none_or(|d| d == DType::F64));
    for ((i, o), analytic) in floats.zip(&analytic) {
        for k in 0..o.shape.numel() {
            let h = 1e-6;
            let moved = |by: f64| {
                let mut v = values.clone();
                v[i][k] += by;
                crate::no_grad(|| total(&apply(op, sample, &operands(sample, &v, DType::F64)))).item()
            };
            let difference = (moved(h) - moved(-h)) / (2.0 * h);
            let gradient = analytic[k];
            if (difference - gradient).abs() > 1e-7 + 2e-5 * difference.abs().max(gradient.abs()) {
                return Err(format!("operand {i}, element {k}: {gradient} against {difference}"));
            }
        }
    }
    Ok(())
}

#[test]
fn gradients_are_those_of_differences() {
    let mut failures = Vec::new();
    for op in table().filter(|op| op.grad.is_some()) {
        for (n, sample) in (op.samples)().iter().enumerate() {
            // a sample may name a dtype of its own, in which differences say nothing
            if sample.attrs.iter().any(|a| matches!(a, Attr::DType(_))) {
                continue;
            }
            let checked = catch_unwind(AssertUnwindSafe(|| check_gradient(op, sample, 7 + n as u64)));
            match checked {
                Ok(Ok(())) => {}
                Ok(Err(e)) => failures.push(format!("{} sample {n}: {e}", op.name)),
                Err(e) => failures.push(format!("{} sample {n}: {}", op.name, message(e))),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Which dimension of which operand is bucketed in one try.
type Choice = Vec<(usize, usize)>;

/// A dimension of the first operand alone, with one of the same size of the second, and with those that align with it.
fn choices(sample: &Sample) -> Vec<Choice> {
    let Some(first) = sample.inputs.first() else { return vec![] };
    let mut out: Vec<Choice> = Vec::new();
    for d in 0..first.shape.len() {
        let size = first.shape[d];
        out.push(vec![(0, d)]);
        if let Some(second) = sample.inputs.get(1) {
            out.extend((0..second.shape.len()).filter(|&e| second.shape[e] == size).map(|e| vec![(0, d), (1, e)]));
        }
        let back = first.shape.len() - d;
        let aligned = |(i, o): (usize, &Operand)| {
            let e = o.shape.len().checked_sub(back)?;
            (o.shape[e] == size).then_some((i, e))
        };
        out.push(sample.inputs.iter().enumerate().filter_map(aligned).collect());
    }
    out.sort();
    out.dedup();
    out
}

/// The results of one try: the op's output and what flows to its operands, or the refusal.
fn tried(op: &'static Entry, sample: &Sample, dtype: DType, choice: &Choice) -> Result<Vec<Tensor>, String> {
    let of = || {
        let plain = operands(sample, &numbers(sample, 3), dtype);
        let bucketed = |(i, x): (usize, Tensor)| {
            choice.iter().filter(|(o, _)| *o == i).fold(x, |x, &(_, d)| x.dynamic(d as i64).buckets([7]))
        };
        let inputs: Vec<Tensor> = plain.into_iter().enumerate().map(bucketed).collect();
        let floats: Vec<&Tensor> = inputs.iter().filter(|t| t.dtype() == DType::F64).collect();
        floats.iter().for_each(|t| drop(t.requires_grad_(true)));
        let y = apply(op, sample, &inputs);
        let mut results = vec![y.detach()];
        if y.requires_grad() && op.grad.is_some() {
            let mut random = Numbers(5);
            let weights: Vec<f64> = (0..y.numel()).map(|_| random.next() - 0.5).collect();
            let physical = crate::tensor::physically(|| y.shape());
            let plain = Tensor::from_slice(&weights, y.shape());
            let bucketed = |w: Tensor, b: &xlazy_core::ir::Bucket| w.dynamic(b.dim as i64).buckets([physical[b.dim]]);
            let w = crate::tensor::buckets_of(&y).iter().fold(plain, bucketed);
            results.extend(crate::grad(&(y.to(DType::F64) * w).sum(), &floats).into_iter().flatten());
        }
        results
    };
    catch_unwind(AssertUnwindSafe(of)).map_err(message)
}

/// One op bucketed in some way: its name, its results plain and bucketed.
type Pair = (String, Vec<Tensor>, Vec<Tensor>);

fn unlike((name, plain, bucketed): &Pair) -> Option<String> {
    let values = |t: &Tensor| -> (Shape, Vec<f64>) {
        let bytes = t.bytes(crate::insight::Cause::Read, t.location()).unwrap();
        let numbers = bytes.chunks_exact(t.dtype().size()).map(|b| t.dtype().read(b).as_f64());
        (t.shape(), numbers.collect())
    };
    let near = |(x, y): (&f64, &f64)| x == y || (x - y).abs() < 1e-12 * x.abs().max(1.0);
    let (a, b): (Vec<_>, Vec<_>) = (plain.iter().map(values).collect(), bucketed.iter().map(values).collect());
    let alike = a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.0 == b.0 && a.1.iter().zip(&b.1).all(near));
    (!alike).then(|| format!("{name}: {b:?}, expected {a:?}"))
}

#[test]
fn bucketed_operands_give_the_same_or_are_refused_by_name() {
    let (mut failures, mut defined) = (Vec::new(), HashSet::new());
    let mut pairs: Vec<Pair> = Vec::new();
    for op in table() {
        for sample in (op.samples)() {
            let plain = [DType::F64, DType::I64].map(|d| (d, tried(op, &sample, d, &vec![])));
            let Some((dtype, Ok(plain))) = plain.into_iter().find(|(_, r)| r.is_ok()) else { continue };
            for choice in choices(&sample) {
                match tried(op, &sample, dtype, &choice) {
                    Ok(bucketed) => {
                        defined.insert(op.name);
                        pairs.push((format!("{} {choice:?}", op.name), plain.clone(), bucketed));
                    }
                    Err(e) if e.contains("bucket") && e.starts_with(op.name) => {}
                    Err(e) => failures.push(format!("{} {choice:?}: {e}", op.name)),
                }
            }
        }
        // a few at a time: one program of all would take XLA long
        if pairs.len() > 40 {
            sync();
            failures.extend(pairs.drain(..).filter_map(|p| unlike(&p)));
        }
    }
    sync();
    failures.extend(pairs.iter().filter_map(unlike));
    for op in table().filter(|op| op.bucket.is_some() && !defined.contains(op.name)) {
        failures.push(format!("{} has a rule that no sample gets through", op.name));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
