//! Code for each of eight devices of the CPU plugin: every collective over groups of all kinds and elements of every dtype that it
//! takes, against the same computed of a table of what the devices have, and its gradients against differences.
mod support;

use std::sync::MutexGuard;
use support::refusal;
use xlazy::prelude::*;
use xlazy::spmd::{And, Groups, Max, Min, Or, Prod, ReduceOp, Sum};

fn alone() -> MutexGuard<'static, ()> {
    support::alone_on(8)
}

const N: usize = 8;
/// Elements of each device.
const K: usize = 4;

fn mesh() -> Mesh {
    Mesh::new(&[("a", 2), ("b", 4)])
}

fn groups() -> Vec<Vec<Vec<usize>>> {
    vec![
        vec![(0..N).collect()],
        vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]],
        vec![vec![0, 4], vec![5, 1], vec![2, 6], vec![3, 7]],
        (0..N).map(|d| vec![d]).collect(),
    ]
}

fn uneven() -> Vec<Vec<usize>> {
    vec![vec![0, 1, 2], vec![3], vec![7, 6, 5, 4]]
}

/// What device `d` has in place `k`: small whole numbers, zeros among them.
fn number(d: usize, k: usize) -> f64 {
    ((d * 5 + k * 3) % 7) as f64
}

fn table(dtype: DType) -> Tensor {
    let all: Vec<f32> = (0..N * K).map(|i| number(i / K, i % K) as f32).collect();
    tensor(all).to(dtype)
}

/// Runs the same on every device; what each gives lies one behind the other.
fn each(x: &Tensor, f: impl FnOnce(&Tensor) -> Vec<Tensor>) -> Vec<Vec<f64>> {
    let split: &[Option<&str>] = &[Some("a+b")];
    let count = std::cell::Cell::new(0);
    // As many results as the closure gives: asked by recording it once.
    let outs: Vec<&[Option<&str>]> = vec![split; MOST];
    let all = spmd::manual(
        &mesh(),
        &[split],
        &outs,
        |x: Tensor| {
            let mut given = f(&x);
            count.set(given.len());
            given.resize_with(MOST, || x.clone());
            given
        },
        x,
    );
    all[..count.get()].iter().map(|t| t.to(F64).to_vec()).collect()
}

const MOST: usize = 6;

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

/// What a dtype holds of a number that sums and products of whole ones give.
fn held(dtype: DType, v: f64) -> f64 {
    match dtype {
        Bool => f64::from(v != 0.0),
        U8 => (v as i64 as u8) as f64,
        I8 => (v as i64 as i8) as f64,
        _ => v,
    }
}

#[test]
fn all_reduce_combines_what_each_group_has() {
    let _alone = alone();
    let numbers = [Sum, Max, Min, Prod];
    let bits = [And, Or];
    for dtype in [F32, F64, BF16, F16, I64, I32, I16, I8, U8, U32, C64, Bool] {
        let ops: Vec<ReduceOp> = match dtype {
            Bool => bits.to_vec(),
            C64 => vec![Sum, Prod],
            F32 | F64 | BF16 | F16 => numbers.to_vec(),
            _ => numbers.iter().chain(&bits).copied().collect(),
        };
        // Of most dtypes one way to group, in turn, of two of them all.
        let mut all = groups();
        all.push(uneven());
        if dtype != F32 && dtype != I32 {
            all = vec![all.swap_remove(1 + 3 * (dtype as usize % 2))];
        }
        for groups in all {
            // Products of halves and bytes stay exact where there are few factors.
            let few = |op: &ReduceOp| *op != Prod || dtype.size() >= 4 || groups[0].len() <= 4;
            let ops: Vec<ReduceOp> = ops.iter().copied().filter(few).collect();
            let got = each(&table(dtype), |x| {
                let many: Vec<(ReduceOp, &Tensor)> = ops.iter().map(|&op| (op, x)).collect();
                spmd::all_reduce_many(&many, groups.clone())
            });
            for (op, got) in ops.iter().zip(got) {
                for d in 0..N {
                    let group = groups.iter().find(|g| g.contains(&d)).unwrap();
                    for k in 0..K {
                        let of = |&m: &usize| if dtype == Bool { f64::from(number(m, k) != 0.0) } else { number(m, k) };
                        let expected = held(dtype, fold(*op, group.iter().map(of)));
                        assert_eq!(got[d * K + k], expected, "{op:?} {dtype} {groups:?} on {d}, {k}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_moves_comes_where_it_is_sent() {
    let _alone = alone();
    for dtype in [F32, BF16, I64, U8, Bool, C64] {
        let all = if dtype == F32 { groups() } else { vec![groups().swap_remove(2)] };
        for groups in all {
            let n = groups[0].len();
            let root = n - 1;
            let ring: Vec<(usize, usize)> = (0..N - 1).map(|d| (d, d + 1)).collect();
            let exchanges = K.is_multiple_of(n);
            let got = each(&table(dtype), |x| {
                let gathered = spmd::all_gather(x, 0, groups.clone());
                let sent = spmd::broadcast(x, root, groups.clone());
                let passed = spmd::collective_permute(x, &ring);
                let mut given = vec![gathered, sent, passed];
                if exchanges {
                    given.push(spmd::all_to_all(x, 0, 0, groups.clone()));
                }
                given
            });
            let has = |d: usize, k: usize| if dtype == Bool { f64::from(number(d, k) != 0.0) } else { number(d, k) };
            for d in 0..N {
                let group = groups.iter().find(|g| g.contains(&d)).unwrap();
                let place = group.iter().position(|&m| m == d).unwrap();
                let gathered: Vec<f64> = group.iter().flat_map(|&m| (0..K).map(move |k| has(m, k))).collect();
                assert_eq!(got[0][d * n * K..][..n * K], gathered, "all_gather {dtype} {groups:?}");
                let sent: Vec<f64> = (0..K).map(|k| has(group[root], k)).collect();
                assert_eq!(got[1][d * K..][..K], sent, "broadcast {dtype} {groups:?}");
                let passed: Vec<f64> = (0..K).map(|k| if d == 0 { 0.0 } else { has(d - 1, k) }).collect();
                assert_eq!(got[2][d * K..][..K], passed, "collective_permute {dtype}");
                if exchanges {
                    let part = K / n;
                    let exchanged: Vec<f64> =
                        group.iter().flat_map(|&m| (0..part).map(move |k| has(m, place * part + k))).collect();
                    assert_eq!(got[3][d * K..][..K], exchanged, "all_to_all {dtype} {groups:?}");
                }
            }
        }
    }
    // Along other dimensions, and of groups of different sizes.
    let x = table(F32).reshape([8, 2, 2]);
    let split: &[Option<&str>] = &[Some("a+b"), None, None];
    let y = spmd::manual(
        &mesh(),
        &[split],
        &[split],
        |x: Tensor| spmd::all_to_all(&x, 1, 2, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        &x,
    );
    assert_eq!(y.shape().to_vec(), [8, 1, 4]);
    assert_eq!(
        y.i(1).to_vec::<f32>(),
        [[2, 3], [2, 3]]
            .iter()
            .enumerate()
            .flat_map(|(d, ks)| ks.iter().map(move |&k| number(d, k) as f32))
            .collect::<Vec<_>>()
    );
    let sent = each(&table(F32), |x| vec![spmd::broadcast(x, 0, uneven())]);
    assert_eq!(sent[0][5 * K..][..K], (0..K).map(|k| number(7, k)).collect::<Vec<_>>());
}

#[test]
fn each_device_gets_its_part_of_what_is_reduced() {
    let _alone = alone();
    for (groups, ops) in
        [(groups().swap_remove(1), vec![Sum, Max, Min, Prod, And, Or]), (groups().swap_remove(2), vec![Sum, Max])]
    {
        let n = groups[0].len();
        let got =
            each(&table(I32), |x| ops.iter().map(|&op| spmd::reduce_scatter(op, x, 1.0, 0, groups.clone())).collect());
        for (op, got) in ops.iter().zip(got) {
            let part = K / n;
            for d in 0..N {
                let group = groups.iter().find(|g| g.contains(&d)).unwrap();
                let place = group.iter().position(|&m| m == d).unwrap();
                for k in 0..part {
                    let expected = fold(*op, group.iter().map(|&m| number(m, place * part + k)));
                    assert_eq!(got[d * part + k], expected, "{op:?} {groups:?}");
                }
            }
        }
    }
    let half = each(&table(F32), |x| {
        vec![spmd::reduce_scatter(Sum, x, 0.5, 0, "b"), spmd::all_reduce(Sum, &[x], 0.125, ()).remove(0)]
    });
    assert_eq!(half[0][0], (0..4).map(|d| number(d, 0)).sum::<f64>() / 2.0);
    assert_eq!(half[1][0], (0..8).map(|d| number(d, 0)).sum::<f64>() / 8.0);
}

/// The gradient of a weighted sum of what all devices give, against differences of it.
#[test]
fn gradients_flow_through_what_devices_exchange() {
    let _alone = alone();
    let pairs = [[0, 4], [5, 1], [2, 6], [3, 7]];
    let split: &[Option<&str>] = &[Some("a+b")];
    let weights = |n: usize| (Tensor::arange(0.0, n as f64, 1.0) * 0.7).cos().to(F64);
    type Case = (&'static str, fn(&Tensor, [[usize; 2]; 4]) -> Tensor);
    let cases: [Case; 9] = [
        ("sum", |x, g| spmd::all_reduce(Sum, &[&(x * x)], 0.5, g).remove(0)),
        ("max", |x, _| spmd::all_reduce(Max, &[x], 1.0, "b").remove(0)),
        ("min", |x, _| spmd::all_reduce(Min, &[x], 1.0, uneven()).remove(0)),
        ("prod", |x, _| spmd::all_reduce(Prod, &[x], 1.0, uneven()).remove(0)),
        ("gather", |x, g| spmd::all_gather(&x.sin(), 0, g)),
        ("scatter", |x, g| spmd::reduce_scatter(Sum, &x.sin(), 2.0, 0, g)),
        ("exchange", |x, g| spmd::all_to_all(&x.sin(), 0, 0, g)),
        ("pass", |x, _| spmd::collective_permute(&x.sin(), &[(0, 1), (1, 0), (2, 7)])),
        ("send", |x, g| spmd::broadcast(&x.sin(), 1, g)),
    ];
    // No two in a group are as large, and one is zero.
    let start: Vec<f64> = (0..N * K).map(|i| ((i * 13) % 32) as f64 / 16.0 - 1.0).collect();
    let run = |f: fn(&Tensor, [[usize; 2]; 4]) -> Tensor, x: &Tensor| {
        let y = spmd::manual(&mesh(), &[split], &[split], |x: Tensor| f(&x, pairs), x);
        let w = weights(y.numel());
        (y * w).sum()
    };
    for (name, f) in cases {
        let x = tensor(start.clone()).requires_grad_(true);
        run(f, &x).backward();
        let dx: Vec<f64> = x.grad().unwrap().to_vec();
        // Directions in place of single elements: each is one more program's run, and no compilation.
        for seed in 0..3 {
            let direction: Vec<f64> = (0..N * K).map(|i| ((i * 7 + seed * 11) % 5) as f64 - 2.0).collect();
            let at = |h: f64| {
                let moved: Vec<f64> = start.iter().zip(&direction).map(|(x, d)| x + h * d).collect();
                run(f, &tensor(moved)).item()
            };
            let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
            let got: f64 = dx.iter().zip(&direction).map(|(a, b)| a * b).sum();
            assert!((got - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{name}: {got} for {expected}");
        }
    }
}

/// What is whole on every device gets the sum of what flows to it on each; a whole result is one, not eight.
#[test]
fn what_devices_have_together_is_counted_once() {
    let _alone = alone();
    let (x, w, c) = (
        tensor((0..8).map(f64::from).collect::<Vec<_>>()),
        tensor([2.0f64]).requires_grad_(true),
        tensor(3.0f64).requires_grad_(true),
    );
    let split: &[Option<&str>] = &[Some("a+b")];
    let outside = c.clone();
    let (total, parts) = spmd::manual(
        &mesh(),
        &[split, &[None]],
        &[&[], split],
        |(x, w): (Tensor, Tensor)| {
            let y = &x * &w * &outside;
            (spmd::all_reduce(Sum, &[&y.sum()], 1.0, Groups::All).remove(0), y)
        },
        &(x.clone(), w.clone()),
    );
    assert_eq!((total.item(), parts.to_vec::<f64>()[7]), (168.0, 42.0));
    (total + parts.sum()).backward();
    assert_eq!((w.grad().unwrap().item(), c.grad().unwrap().item()), (168.0, 112.0));
    let ids = spmd::manual(
        &mesh(),
        &[],
        &[split, split],
        |()| (spmd::axis_index("a").reshape([1]), spmd::axis_index("b").reshape([1])),
        &(),
    );
    assert_eq!(ids.0.to_vec::<i64>(), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(ids.1.to_vec::<i64>(), [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn what_is_wrong_is_said_by_name() {
    let _alone = alone();
    let x = table(F32);
    let said = |f: &dyn Fn(&Tensor) -> Tensor| refusal(|| each(&x, |x| vec![f(x)]));
    let e = refusal(|| spmd::all_reduce(Sum, &[&x], 1.0, ()));
    assert!(e.contains("call it in `spmd::manual(&mesh, …)`"), "{e}");
    let e = said(&|x| spmd::all_gather(x, 0, vec![vec![0, 1], vec![2, 3]]));
    assert!(e.contains("no group has device 4"), "{e}");
    let e = said(&|x| spmd::all_gather(x, 0, vec![vec![0, 1, 1]]));
    assert!(e.contains("device 1 more than once"), "{e}");
    let e = said(&|x| spmd::all_gather(x, 0, vec![vec![0, 8]]));
    assert!(e.contains("device 8, and mesh(a=2, b=4) has the devices 0 to 7"), "{e}");
    let e = said(&|x| spmd::all_gather(x, 0, uneven()));
    assert!(e.contains("groups of [3, 1, 4] devices"), "{e}");
    let e = said(&|x| spmd::all_reduce(And, &[x], 1.0, ()).remove(0));
    assert!(e.contains("And is of bool and integers"), "{e}");
    let e = said(&|x| spmd::all_to_all(x, 0, 0, ()));
    assert!(e.contains("dimension 0 of size 4 does not split evenly over a group of 8 devices"), "{e}");
    let e = said(&|x| spmd::collective_permute(x, &[(0, 1), (0, 2)]));
    assert!(e.contains("a device sends once at most"), "{e}");
    let e = said(&|x| spmd::broadcast(x, 8, ()));
    assert!(e.contains("has no place 8"), "{e}");
    let e = said(&|x| x.mark_sharding(&mesh(), &[Some("a")]));
    assert!(e.contains("mark what comes out"), "{e}");
    let e = refusal(|| spmd::manual(&mesh(), &[&[Some("a+b")]], &[], |x: Tensor| x, &tensor([1.0, 2.0])));
    assert!(e.contains("operand 1: dimension 0 of size 2 does not split evenly in 8 parts"), "{e}");
    let e = refusal(|| spmd::manual(&mesh(), &[&[None]], &[], |x: Tensor| x, &tensor([1.0, 2.0])));
    assert!(e.contains("the closure gives 1 tensors, and there are 0 specs"), "{e}");
    let e = refusal(|| {
        spmd::manual(&mesh(), &[&[None]], &[&[None]], |x: Tensor| tensor([x.sum().item()]), &tensor([1.0, 2.0]))
    });
    assert!(e.contains("recorded once"), "{e}");
}
