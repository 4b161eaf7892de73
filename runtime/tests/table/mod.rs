//! Every collective over groups of devices, of elements of every dtype, against the same computed of a table of what the devices
//! have; and gradients through all of them against differences. The text is a cell, too: a pod is asked what one process is.
use xlazy::prelude::*;
use xlazy::spmd::{And, Max, Min, Or, Prod, ReduceOp, Sum};

/// Elements of each device: groups of 1, 2, 4 and 8 split them evenly.
pub const K: usize = 8;

/// What device `d` has in place `k`: numbers of which those of four devices have a product that a byte holds, zeros among them.
pub fn number(d: usize, k: usize) -> f64 {
    [1.0, 2.0, 4.0, 3.0, 0.0, 2.0, 5.0][(d * 5 + k * 3) % 7]
}

fn fold(op: ReduceOp, all: impl Iterator<Item = f64>) -> f64 {
    let two = |a: f64, b: f64| match op {
        Sum => a + b,
        Max => a.max(b),
        Min => a.min(b),
        Prod => a * b,
        And => (a as i64 & b as i64) as f64,
        Or => (a as i64 | b as i64) as f64,
    };
    all.reduce(two).unwrap()
}

fn ops(dtype: DType) -> &'static [ReduceOp] {
    match dtype {
        Bool => &[And, Or],
        d if d.is_complex() => &[Sum, Prod],
        d if d.is_float() => &[Sum, Max, Min, Prod],
        _ => &[Sum, Max, Min, Prod, And, Or],
    }
}

/// What a device has then: of the numbers of its group's devices, and its place among them.
type Gives<'a> = Box<dyn Fn(&[[f64; K]], usize) -> Vec<f64> + 'a>;

/// What each device does.
struct Case<'a> {
    name: String,
    does: Box<dyn Fn(&Tensor) -> Tensor + 'a>,
    gives: Gives<'a>,
}

fn case<'a>(
    name: impl ToString,
    does: impl Fn(&Tensor) -> Tensor + 'a,
    gives: impl Fn(&[[f64; K]], usize) -> Vec<f64> + 'a,
) -> Case<'a> {
    Case { name: name.to_string(), does: Box::new(does), gives: Box::new(gives) }
}

/// Each of a group sends to the one behind it.
fn chain(groups: &[Vec<usize>]) -> Vec<(usize, usize)> {
    groups.iter().flat_map(|g| g.windows(2).map(|two| (two[0], two[1]))).collect()
}

fn cases(dtype: DType, groups: &[Vec<usize>]) -> Vec<Case<'_>> {
    let reduced = |op: ReduceOp, of: &[[f64; K]], k: usize| fold(op, of.iter().map(|m| m[k]));
    let mut all: Vec<Case> = Vec::new();
    for &op in ops(dtype) {
        all.push(case(
            format!("all_reduce {op:?}"),
            move |x| spmd::all_reduce(op, &[x], 1.0, groups).remove(0),
            move |of, _| (0..K).map(|k| reduced(op, of, k)).collect(),
        ));
    }
    let root = groups.iter().map(Vec::len).min().unwrap() - 1;
    all.push(case("broadcast", move |x| spmd::broadcast(x, root, groups), move |of, _| of[root].to_vec()));
    all.push(case(
        "collective_permute",
        move |x| spmd::collective_permute(x, &chain(groups)),
        |of, place| place.checked_sub(1).map_or([0.0; K], |before| of[before]).to_vec(),
    ));
    let part = K / groups[0].len();
    if groups.iter().any(|g| g.len() != groups[0].len()) || part * groups[0].len() != K {
        return all;
    }
    for &op in ops(dtype) {
        all.push(case(
            format!("reduce_scatter {op:?}"),
            move |x| spmd::reduce_scatter(op, x, 1.0, 0, groups),
            move |of, place| (place * part..(place + 1) * part).map(|k| reduced(op, of, k)).collect(),
        ));
    }
    all.push(case("all_gather", move |x| spmd::all_gather(x, 0, groups), |of, _| of.concat()));
    all.push(case(
        "all_to_all",
        move |x| spmd::all_to_all(x, 0, 0, groups),
        move |of, place| of.iter().flat_map(|m| m[place * part..(place + 1) * part].to_vec()).collect(),
    ));
    all
}

/// One of each kind of dtype.
pub const KINDS: [DType; 5] = [Bool, I32, BF16, F32, C64];

/// All collectives over these groups, of these dtypes, in one program.
pub fn check(mesh: &Mesh, axes: &str, groups: &[Vec<usize>], dtypes: &[DType]) {
    let n = mesh.size();
    let split: &[Option<&str>] = &[Some(axes)];
    let table: Vec<f64> = (0..n * K).map(|i| number(i / K, i % K)).collect();
    let inputs: Vec<Tensor> = dtypes.iter().map(|&dtype| Tensor::from_vec(table.clone(), [n * K]).to(dtype)).collect();
    let all: Vec<Vec<Case>> = dtypes.iter().map(|&dtype| cases(dtype, groups)).collect();
    // What each dtype's cases give one behind the other: a program with few results compiles sooner.
    let does = |given: Vec<Tensor>| -> Vec<Tensor> {
        let of_one =
            |(x, all): (&Tensor, &Vec<Case>)| cat(&all.iter().map(|c| (c.does)(x)).collect::<Vec<_>>(), 0).to(F64);
        given.iter().zip(&all).map(of_one).collect()
    };
    let specs = vec![split; inputs.len()];
    let results = spmd::manual(mesh, &specs, &specs, does, &inputs);
    sync();
    for ((dtype, all), got) in dtypes.iter().zip(&all).zip(results) {
        let got: Vec<f64> = got.to_vec();
        let of_each = got.len() / n;
        let has =
            |&d: &usize| std::array::from_fn(|k| if *dtype == Bool { number(d, k).min(1.0) } else { number(d, k) });
        for group in groups {
            let of: Vec<[f64; K]> = group.iter().map(has).collect();
            for (place, &d) in group.iter().enumerate() {
                let mut got = &got[d * of_each..(d + 1) * of_each];
                for c in all {
                    let expected = (c.gives)(&of, place);
                    assert_eq!(got[..expected.len()], expected, "{} {dtype} {groups:?} on {d}", c.name);
                    got = &got[expected.len()..];
                }
                assert!(got.is_empty());
            }
        }
    }
}

/// Gradients through all collectives over these groups: of float64 against differences, of others against those of float64.
pub fn check_gradients(mesh: &Mesh, axes: &str, groups: &[Vec<usize>], dtypes: &[DType]) {
    let size = mesh.size() * K;
    let split: &[Option<&str>] = &[Some(axes)];
    let all = cases(F64, groups);
    let specs = vec![split; all.len()];
    // Of each case with a tensor of its own: a weighted sum of what all devices have of it.
    let sums = |xs: &Vec<Tensor>| -> Vec<Tensor> {
        let does = |xs: Vec<Tensor>| xs.iter().zip(&all).map(|(x, c)| (c.does)(&x.sin())).collect::<Vec<_>>();
        let weighted = |y: Tensor| {
            let weights = (Tensor::arange(0.0, y.numel() as f64, 1.0) * 0.7).cos().to(y.dtype());
            (y * weights).to(F64).sum()
        };
        spmd::manual(mesh, &specs, &specs, does, xs).into_iter().map(weighted).collect()
    };
    // No two are as large, and one is zero; halves hold all of them.
    let start: Vec<f64> = (0..size).map(|i| ((i * 13) % size) as f64 / (size / 2) as f64 - 1.0).collect();
    let gradients = |dtype: DType| -> Vec<Vec<f64>> {
        let leaf = || Tensor::from_vec(start.clone(), [size]).to(dtype).detach().requires_grad_(true);
        let xs: Vec<Tensor> = all.iter().map(|_| leaf()).collect();
        let total = sums(&xs).into_iter().reduce(|a, b| a + b).unwrap();
        total.backward();
        xs.iter().map(|x| x.grad().unwrap().to(F64).to_vec()).collect()
    };
    let exact = gradients(F64);
    for seed in 0..3 {
        let direction: Vec<f64> = (0..size).map(|i| ((i * 7 + seed * 11) % 5) as f64 - 2.0).collect();
        let at = |h: f64| -> Vec<f64> {
            let moved: Vec<f64> = start.iter().zip(&direction).map(|(x, d)| x + h * d).collect();
            let xs = all.iter().map(|_| Tensor::from_vec(moved.clone(), [size])).collect();
            stack(&sums(&xs), 0).to_vec()
        };
        let (above, below) = (at(1e-5), at(-1e-5));
        for (k, Case { name, .. }) in all.iter().enumerate() {
            let expected = (above[k] - below[k]) / 2e-5;
            let got: f64 = exact[k].iter().zip(&direction).map(|(a, b)| a * b).sum();
            assert!((got - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{name} {groups:?}: {got} for {expected}");
        }
    }
    for (dtype, close) in [(F32, 1e-5), (F16, 1e-2), (BF16, 1e-1)].into_iter().filter(|(d, _)| dtypes.contains(d)) {
        for (Case { name, .. }, (got, exact)) in all.iter().zip(gradients(dtype).iter().zip(&exact)) {
            for (got, exact) in got.iter().zip(exact) {
                assert!(
                    (got - exact).abs() < close * (1.0 + exact.abs()),
                    "{name} {dtype} {groups:?}: {got} for {exact}"
                );
            }
        }
    }
}
