//! What a read keeps, and what a barrier takes of it: work is done once, and no value depends on where one reads.
mod support;
use support::{Seeded, alone, programs};
use xlazy::metrics::metric_data;
use xlazy::prelude::*;

fn runs() -> u64 {
    metric_data("ExecuteTime").unwrap().0
}

fn pending_ops() -> usize {
    xlazy::insight::pending().1.map_or(0, |next| next.nodes)
}

#[test]
fn an_evaluation_runs_once_whatever_is_read_of_it() {
    let _alone = alone();
    let (x, w) = (Tensor::randn([64, 64]), Tensor::randn([64, 64]));
    sync();
    let out = x.matmul(&w).relu();
    let loss = (&out * 2.0).mean();
    let before = runs();
    loss.item();
    let ran = xlazy::insight::compilations().last().unwrap().nodes;
    assert!(ran > 3, "{ran}");
    out.max().item();
    assert_eq!(xlazy::insight::compilations().last().unwrap().nodes, 1, "it starts from what the first one kept");
    assert_eq!(runs(), before + 2);
    sync();
    assert_eq!(runs(), before + 2, "the barrier has nothing left to do");
    assert_eq!(pending_ops(), 0);
}

#[test]
fn a_barrier_runs_what_is_cheap_and_takes_the_rest_as_read() {
    let _alone = alone();
    let (data, w) = (Tensor::randn([64, 64]), Tensor::randn([64, 64]));
    sync();
    let x = &data / 2.0;
    let out = x.matmul(&w);
    out.sum().item();
    assert_eq!(pending_ops(), 1, "the half alone");
    sync();
    assert_eq!(pending_ops(), 0);
    assert!(out.max().item().is_finite());
}

#[test]
fn what_is_fused_is_not_kept() {
    let _alone = alone();
    let x = Tensor::randn([64, 64]);
    sync();
    let far = x.unsqueeze(0) - x.unsqueeze(1);
    far.square().sum().item();
    assert!(pending_ops() > 0, "64 times as large as what it is made of, and made for nothing");
    sync();
}

/// What a program does with its tensors, by their numbers.
#[derive(Clone, Debug)]
enum Does {
    MatMul(usize, usize),
    Relu(usize),
    Add(usize, usize),
    Rows(usize, usize),
    Scale(usize, f64),
    Drop(usize),
    Read(usize),
    Sync,
}

fn drawn(draw: &mut Seeded) -> Vec<Does> {
    (0..24)
        .map(|_| {
            let (i, j) = (draw.below(64), draw.below(64));
            match draw.below(14) {
                0..=2 => Does::MatMul(i, j),
                3 => Does::Relu(i),
                4 => Does::Add(i, j),
                5 => Does::Rows(i, j),
                6 => Does::Scale(i, 0.5 + draw.below(4) as f64 / 4.0),
                7 | 8 => Does::Drop(i),
                9..=12 => Does::Read(i),
                _ => Does::Sync,
            }
        })
        .collect()
}

/// The values at its end; reads and barriers stand where the program has them, or a barrier behind each op and no read.
fn values(program: &[Does], by_steps: bool) -> Vec<Vec<f32>> {
    let mut draw = Seeded(7);
    let mut all: Vec<Tensor> = (0..3).map(|_| Tensor::from_vec(draw.floats(64 * 64, -1.0, 1.0), [64, 64])).collect();
    for does in program {
        let at = |i: &usize| &all[i % all.len()];
        let made = match does {
            Does::MatMul(i, j) => Some(at(i).matmul(at(j)) / 16.0),
            Does::Relu(i) => Some(at(i).relu()),
            Does::Add(i, j) => Some(at(i) + at(j)),
            Does::Rows(i, j) => Some(at(i) - at(j).mean_dim(0, true)),
            Does::Scale(i, by) => {
                at(i).mul_(*by);
                None
            }
            Does::Drop(i) => {
                if all.len() > 2 {
                    all.remove(i % all.len());
                }
                None
            }
            Does::Read(i) => {
                if !by_steps {
                    at(i).sum().item();
                }
                None
            }
            Does::Sync => {
                sync();
                None
            }
        };
        all.extend(made);
        if by_steps {
            sync();
        }
    }
    all.iter().map(|t| t.to_vec()).collect()
}

#[test]
fn where_reads_and_barriers_stand_changes_no_value() {
    let _alone = alone();
    for seed in programs(40) {
        let program = drawn(&mut Seeded(seed));
        let (lazy, by_steps) = (values(&program, false), values(&program, true));
        assert_eq!(lazy.len(), by_steps.len());
        for (n, (a, b)) in lazy.iter().zip(&by_steps).enumerate() {
            let largest = b.iter().fold(0f32, |m, v| m.max(v.abs()));
            let far = a.iter().zip(b).find(|(a, b)| (*a - *b).abs() > 1e-4 * largest.max(1e-6));
            assert!(far.is_none(), "seed {seed}, tensor {n}: {far:?}\n{program:?}");
        }
    }
}
