//! Healing: an attribute that changes becomes a parameter, so that it compiles twice and no more, and never changes a
//! result: bit for bit for positions, to 1e-5 for powers.
mod support;

use support::{Seeded, alone, close, compiles, programs};
use xlazy::insight::{compilations, healed, set_healing};
use xlazy::prelude::*;

/// What the results of each step hold.
type Steps = Vec<Vec<Vec<f32>>>;

/// The results of a step for each value, healed, with the number of programs compiled; then plain.
fn both<V: Copy>(values: &[V], step: impl Fn(V) -> Vec<Tensor>) -> (Steps, u64, Steps) {
    let run = |v: &V| {
        let results = step(*v);
        sync();
        results.iter().map(|t| t.to_vec::<f32>()).collect::<Vec<_>>()
    };
    let mut with = Vec::new();
    let compiled = compiles(|| with = values.iter().map(run).collect());
    set_healing(false);
    let without = values.iter().map(run).collect();
    set_healing(true);
    (with, compiled, without)
}

#[track_caller]
fn heals<V: Copy>(op: &str, values: &[V], relative: f32, step: impl Fn(V) -> Vec<Tensor>) {
    let (with, compiled, without) = both(values, step);
    assert!(compiled <= 2, "{op}: {compiled} programs for {} values", values.len());
    assert!(healed().iter().any(|h| h.op == op), "{op} is not among those healed");
    for (n, (a, b)) in with.iter().zip(&without).enumerate() {
        for (a, b) in a.iter().zip(b) {
            close(a, b, 0, relative).unwrap_or_else(|e| panic!("{op}, value {n}: {e}"));
        }
    }
}

fn data(shape: &[usize]) -> Tensor {
    let t = Tensor::from_slice(&Seeded(7).floats(shape.iter().product(), 0.5, 2.0), shape);
    t.requires_grad_(true)
}

/// `y` and the gradient of a weighted sum of it.
fn with_gradient(x: &Tensor, y: Tensor) -> Vec<Tensor> {
    (&y * &y).sum().backward();
    let dx = x.grad().unwrap();
    x.set_grad(None);
    vec![y, dx]
}

#[test]
fn every_position_is_healed_bit_for_bit() {
    let _alone = alone();
    let x = data(&[6, 9]);
    heals("slice", &[0, 4, 2, 5, 1], 0.0, |i| with_gradient(&x, x.narrow(1, i, 4)));
    heals("slice", &[0, 3, 5, 1], 0.0, |i| with_gradient(&x, x.select(0, i)));
    heals("slice", &[0, 2, 1], 0.0, |i| with_gradient(&x, x.slice(1, i, i + 5, 2)));
    heals("pad", &[(0, 4), (3, 1), (4, 0)], 0.0, |(low, high)| with_gradient(&x, x.pad([low, high], 0.5)));
    heals("pad", &[(1, -1), (-2, 2), (0, 0), (3, -3)], 0.0, |(low, high)| {
        with_gradient(&x, x.pad([low, high, -low, -high], 0.0))
    });
    heals("pad", &[(-1, -3), (-4, 0), (0, -4)], 0.0, |(low, high)| with_gradient(&x, x.pad([low, high], 0.0)));
    heals("roll", &[1, 4, 0, -2, 8], 0.0, |shift| with_gradient(&x, x.roll(shift, 1)));
    heals("tril", &[0, 1, -2, 3], 0.0, |d| with_gradient(&x, x.tril(d)));
    heals("triu", &[0, 1, -2, 3], 0.0, |d| with_gradient(&x, x.triu(d)));
    heals("slice_scatter", &[0, 3, 5, -1], 0.0, |i| with_gradient(&x, x.select_scatter(&Tensor::ones([9]), 0, i)));
    heals("constant", &[0, 1, 3, 2], 0.0, |d| with_gradient(&x, x.diagonal(d, 0, 1)));
}

#[test]
fn an_order_of_differentiation_is_healed() {
    let _alone = alone();
    let x = data(&[16]);
    heals("polygamma", &[1, 2, 3, 4], 1e-5, |n| vec![x.detach().polygamma(n)]);
}

#[test]
fn numbers_are_parameters_from_the_start() {
    let _alone = alone();
    let x = data(&[4, 4]);
    let step = |v: f64| {
        let mut all = vec![
            x.pow(v),
            x.leaky_relu(v),
            x.elu(v),
            x.celu(v),
            x.clamp(v - 1.0, v),
            x.threshold(v, 0.5 * v),
            x.softshrink(v),
            x.hardshrink(v),
            x.softplus_with(v, 20.0 * v),
            x.layer_norm(4, None, None, v),
            x.smooth_l1_loss(&x.detach().neg(), v, Reduction::Mean),
            x.huber_loss(&x.detach().neg(), v, Reduction::Mean),
            x.normalize(2.0, 1, v),
            x.norm_p(v + 2.5, 1, false),
            x.pad([1, 1], v),
            x.full_like(v),
            x.dropout(v / 10.0, true),
            x.logit(Some(v / 100.0)),
            Tensor::arange(v, v + 4.0, 1.0),
            Tensor::linspace(v, 2.0 * v, 5),
        ];
        all.push(all.iter().map(Tensor::sum).reduce(|a, b| a + b).unwrap());
        sync();
    };
    assert_eq!(compiles(|| step(0.5)), 1);
    assert_eq!(compiles(|| [1.0, 1.5, 2.5].into_iter().for_each(step)), 0);
}

#[test]
fn turned_off_it_compiles_each_time() {
    let _alone = alone();
    let x = data(&[12]);
    let step = |i: i64| {
        let y = x.narrow(0, i, 3);
        sync();
        y
    };
    set_healing(false);
    assert_eq!(compiles(|| (0..4).for_each(|i| drop(step(i)))), 4);
    set_healing(true);
    assert_eq!(compiles(|| (4..9).for_each(|i| drop(step(i)))), 1, "and on again at the first miss");
}

/// One op of a random program: its attribute has a range, from which each step takes one value.
#[derive(Clone, Copy, Debug)]
enum Op {
    Slice,
    Pad,
    Roll,
    Tril,
    Triu,
    Select,
    Put,
    Add,
    Tanh,
    Matmul,
}

const SIZE: usize = 6;

impl Op {
    fn random(r: &mut Seeded) -> Op {
        use Op::*;
        [Slice, Pad, Roll, Tril, Triu, Select, Put, Add, Tanh, Matmul][r.below(10)]
    }

    /// A value for the attribute that keeps the shape of the result; 0 where there is none.
    fn value(self, r: &mut Seeded) -> i64 {
        match self {
            Op::Slice => r.between(0, 2),
            Op::Pad => r.between(-2, 4),
            Op::Roll => r.between(-5, 5),
            Op::Tril | Op::Triu => r.between(-2, 2),
            Op::Select | Op::Put => r.between(0, SIZE as i64 - 1),
            _ => 0,
        }
    }

    /// Square matrices to square matrices.
    fn apply(self, x: &Tensor, v: i64) -> Tensor {
        let n = SIZE as i64;
        match self {
            Op::Slice => cat(&[x, &x.narrow(1, 0, 2)], 1).narrow(1, v, n),
            Op::Pad => x.pad([v, 2 - v], 0.25).narrow(1, 1, n),
            Op::Roll => x.roll(v, 0),
            Op::Tril => x.tril(v) + 0.5,
            Op::Triu => x.triu(v) + 0.5,
            Op::Select => x + x.select(0, v),
            Op::Put => x.select_scatter(&x.select(0, 0), 0, v),
            Op::Add => x * 0.5 + 1.0,
            Op::Tanh => x.tanh(),
            Op::Matmul => x.matmul(x) * 0.1,
        }
    }

    fn has_value(self) -> bool {
        !matches!(self, Op::Add | Op::Tanh | Op::Matmul)
    }
}

/// Random programs whose attributes change at random steps give the same with healing as without, and compile at most
/// once more than there are attributes.
#[test]
fn random_programs_are_the_same_healed() {
    let _alone = alone();
    for seed in programs(8) {
        let mut r = Seeded(seed);
        let ops: Vec<Op> = (0..3 + r.below(5)).map(|_| Op::random(&mut r)).collect();
        let mut values: Vec<i64> = ops.iter().map(|op| op.value(&mut r)).collect();
        let steps: Vec<Vec<i64>> = (0..4)
            .map(|_| {
                // some change at each step
                for (v, op) in values.iter_mut().zip(&ops) {
                    if r.below(2) == 0 {
                        *v = op.value(&mut r);
                    }
                }
                values.clone()
            })
            .collect();
        let x = Tensor::from_slice(&r.floats(SIZE * SIZE, 0.5, 1.5), [SIZE, SIZE]).requires_grad_(true);
        let run = |v: &Vec<i64>| {
            let y = ops.iter().zip(v).fold(x.clone(), |x, (op, v)| op.apply(&x, *v));
            let results = with_gradient(&x, y);
            sync();
            results.iter().map(|t| t.to_vec::<f32>()).collect::<Vec<_>>()
        };
        let mut with = Vec::new();
        let compiled = compiles(|| with = steps.iter().map(run).collect::<Vec<_>>());
        set_healing(false);
        let without: Vec<_> = steps.iter().map(run).collect();
        set_healing(true);
        let causes = ops.iter().filter(|op| op.has_value()).count() as u64;
        assert!(compiled <= 1 + causes, "seed {seed}: {ops:?} compiled {compiled} programs");
        // Sums fuse differently in the two programs; what only moves is the same bit for bit.
        let (ulps, relative) = match ops.iter().any(|op| matches!(op, Op::Tanh | Op::Matmul)) {
            true => (4, 1e-5),
            false => (4, 0.0),
        };
        for (step, (a, b)) in with.iter().zip(&without).enumerate() {
            for (a, b) in a.iter().zip(b) {
                close(a, b, ulps, relative).unwrap_or_else(|e| {
                    panic!("seed {seed} (XLAZY_SEED={seed} XLAZY_PROGRAMS=1), step {step}, {ops:?} {steps:?}: {e}")
                });
            }
        }
    }
}

/// An attribute that changes together with something else of the program is a parameter in the program that is compiled then
/// all the same.
#[test]
fn another_change_does_not_postpone_it() {
    let _alone = alone();
    for seed in programs(12) {
        let mut r = Seeded(seed);
        let op = std::iter::repeat_with(|| Op::random(&mut r)).find(|op| op.has_value()).unwrap();
        let mut values: Vec<i64> = Vec::new();
        while values.len() < 3 {
            let value = op.value(&mut r);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let (depth, other) = (r.below(4), r.below(5));
        let x = Tensor::from_slice(&r.floats(SIZE * SIZE, 0.5, 1.5), [SIZE, SIZE]);
        let step = |v: i64, changed: bool| {
            let mut y = op.apply(&x, v);
            for _ in 0..depth {
                y = Op::Tanh.apply(&y, 0);
            }
            if changed {
                y = match other {
                    0 => y.sum_dim(0, false),
                    1 => y.exp() * &x,
                    2 => y.to(DType::F64),
                    3 => cat(&[&y, &x], 0),
                    _ => (&y / (y.abs().sum() + 1.0)).matmul(&x),
                };
            }
            sync();
            drop(y);
        };
        let what = format!("seed {seed} (XLAZY_SEED={seed} XLAZY_PROGRAMS=1): {op:?} {values:?}, {depth}, {other}");
        assert_eq!(compiles(|| step(values[0], false)), 1, "{what}");
        assert_eq!(compiles(|| [1, 2, 0, 2].into_iter().for_each(|v| step(values[v], true))), 1, "{what}");
        // The line of another program is to begin anew.
        xlazy::insight::forget();
    }
}

/// Runs the rounds of a step; what healing promised in one of them must be what the later ones do. Gives how many promises
/// there were that nothing more is compiled, and how many that one more program is.
#[track_caller]
fn promises_hold(what: &str, rounds: i64, mut step: impl FnMut(i64)) -> (usize, usize) {
    let (mut nothing, mut once, mut owed, mut rounds_healed) = (0, 0, None, 0);
    for i in 0..rounds {
        let before = compilations().len();
        step(i);
        for c in &compilations()[before..] {
            let fix = c.why.as_ref().filter(|w| w.healed).map(|w| w.fix.as_str());
            // Another attribute may begin to change later, which says so for itself.
            match (fix, &mut owed) {
                (Some(fix), _) => {
                    let more = fix.contains("compiles once more");
                    assert!(more || fix.contains("compiles nothing"), "{what}: {fix}");
                    (nothing, once) = (nothing + usize::from(!more), once + usize::from(more));
                    owed = Some(usize::from(more));
                    rounds_healed += 1;
                }
                (None, Some(0)) => panic!("{what}: round {i} compiled, and nothing more was promised: {:?}", c.why),
                (None, Some(n)) => *n -= 1,
                (None, None) => {}
            }
        }
    }
    assert!(rounds_healed > 0, "{what}: nothing was healed");
    assert_eq!(owed, Some(0), "{what}: a compilation was told that did not come");
    (nothing, once)
}

fn weights() -> (Tensor, Tensor) {
    let mut r = Seeded(3);
    let w = Tensor::from_slice(&r.floats(12, -1.0, 1.0), [4, 3]).requires_grad_(true);
    (w, Tensor::from_slice(&r.floats(80, -1.0, 1.0), [20, 4]))
}

/// The sum of some rows, which begin elsewhere in each round; a line of its own wherever it is written, since lines are
/// healed for good.
macro_rules! loss {
    ($w:expr, $data:expr, $i:expr) => {
        $data.narrow(0, ($i * 3) % 13, 7).matmul($w).tanh().sum()
    };
}

/// Trains with an optimizer: the rows are all that changes.
macro_rules! trains {
    ($what:literal, $make:expr) => {{
        let (w, data) = weights();
        let mut opt = $make(&w);
        let told = promises_hold($what, 6, |i| {
            loss!(&w, &data, i).backward();
            opt.step();
            opt.zero_grad();
            sync();
        });
        assert_eq!(told, (1, 0), $what);
    }};
}

#[test]
fn a_healed_step_that_updates_in_place_compiles_nothing_more() {
    let _alone = alone();
    trains!("SGD", |w| optim::SGD::new([w], 0.1));
    let options = optim::SGDOptions { momentum: 0.9, ..Default::default() };
    trains!("momentum", |w| optim::SGD::with([w], 0.1, options));
    trains!("Adam", |w| optim::Adam::new([w], 0.1));
    trains!("AdamW", |w| optim::AdamW::new([w], 0.1));
}

#[test]
fn a_healed_step_that_updates_by_hand_compiles_nothing_more() {
    let _alone = alone();
    let (w, data) = weights();
    let told = promises_hold("in place", 5, |i| {
        let g = grad(&loss!(&w, &data, i), &[&w]).remove(0).unwrap();
        no_grad(|| w.sub_(g * 0.1));
        sync();
    });
    assert_eq!(told, (1, 0), "in place");

    let (w, data) = weights();
    let mut w = w.detach();
    let told = promises_hold("a new tensor", 5, |i| {
        let now = w.detach().requires_grad_(true);
        w = (&w - grad(&loss!(&now, &data, i), &[&now]).remove(0).unwrap() * 0.1).detach();
        drop(now);
        sync();
    });
    assert_eq!(told, (1, 0), "a new tensor");

    let (w, data) = weights();
    let average = Tensor::from_slice(&[0.0f32; 12], [4, 3]);
    let told = promises_hold("an average of the weights", 5, |i| {
        let g = grad(&loss!(&w, &data, i), &[&w]).remove(0).unwrap();
        no_grad(|| w.sub_(g * 0.1));
        average.mul_(0.9);
        average.add_(w.detach() * 0.1);
        sync();
    });
    assert_eq!(told, (1, 0), "an average of the weights");

    // The rows change from the start, the shift and the padding only later: each is promised for itself.
    let (w, data) = weights();
    let state = Tensor::from_slice(&[1.0f32; 8], [8]);
    let told = promises_hold("several, one after the other", 9, |i| {
        let g = grad(&loss!(&w, &data, i), &[&w]).remove(0).unwrap();
        no_grad(|| w.sub_(g * 0.1));
        state.copy_(state.roll(1 + i / 3, 0));
        state.copy_(state.pad([i / 6, 2 - i / 6], 0.5).narrow(0, 1, 8));
        sync();
    });
    assert_eq!(told, (3, 0), "several, one after the other");
}

/// A state whose first value is the host's when the round is healed; `kept` or given away.
macro_rules! moves_on {
    ($what:literal, $kept:literal, $n:literal) => {{
        let data = Tensor::from_slice(&Seeded(5).floats(40, 0.0, 1.0), [40]);
        let begin = |v: f32| {
            let state = Tensor::from_slice(&[v; $n], [$n]);
            // A leaf is a node of its own, on the same buffer.
            let first = $kept.then(|| Tensor::zeros([$n]).copy_(&state).requires_grad_(true));
            (state, first)
        };
        let step = |state: &Tensor, i: i64| {
            state.copy_(state + data.narrow(0, i, $n) * 0.5);
            sync();
        };
        // A first program of this line, so that the first round below is the second.
        let (warm, _first) = begin(2.0);
        step(&warm, 1);
        let (state, _second) = begin(1.0);
        promises_hold($what, 5, |i| step(&state, 2 + i))
    }};
}

/// What is held in one round only is told, with the compilation that it will cost.
#[test]
fn a_promise_says_what_will_really_happen() {
    let _alone = alone();
    assert_eq!(moves_on!("given away", false, 8), (1, 0));
    assert_eq!(moves_on!("kept", true, 9), (0, 1));
}

#[test]
fn ops_in_bodies_are_healed() {
    let _alone = alone();
    let (x, w) = (data(&[6, 9]), data(&[4]));
    let rows = |k: i64| map(|row: Tensor| row.narrow(0, k, 4) * &w, &x.detach());
    heals("slice", &[0, 3, 5, 1], 0.0, |k| vec![rows(k)]);
    heals("roll", &[1, 4, 0, 8], 0.0, |k| vec![fori_loop(0, 3, |_, x: Tensor| x.roll(k, 1) + 1.0, &x.detach())]);
    heals("slice", &[2, 0, 4, 1], 0.0, |k| {
        let (sum, all) = scan(|s: Tensor, row: Tensor| (&s + row.select(0, k), s), &tensor(0.0), &x.detach());
        vec![sum, all]
    });
    // in a branch, and in a loop within one
    heals("tril", &[0, 1, -2, 3], 0.0, |d| {
        let inner = |x: Tensor| fori_loop(0, 2, |_, x: Tensor| x.tril(d) * 2.0, &x);
        vec![cond(&x.sum().gt(0.0), inner, |x| x, &x.detach())]
    });
    // two at once, one in the body and one outside
    heals("pad", &[(0, 4), (3, 1), (4, 0), (1, 3)], 0.0, |(low, high)| {
        vec![map(|row: Tensor| row.pad([low, high], 0.5), &x.detach()).slice(1, low, low + 9, 1)]
    });
}
