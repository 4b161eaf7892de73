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

/// A round of a loop, by numbers of the state's tensors.
#[derive(Clone, Debug)]
enum Round {
    MatMul(usize, usize),
    Tanh(usize),
    Mix(usize, usize),
    /// Of the tensor that the program was given, the row of the round.
    Row(usize),
    SetRow(usize),
    Scale(usize),
    Keep(usize),
}

fn rounds_drawn(draw: &mut Seeded) -> Vec<Round> {
    let n = 6 + draw.below(8);
    let one = |draw: &mut Seeded| {
        let (i, j) = (draw.below(3), draw.below(3));
        match draw.below(12) {
            0..=2 => Round::MatMul(i, j),
            3 | 4 => Round::Tanh(i),
            5 | 6 => Round::Mix(i, j),
            7 => Round::Row(i),
            8 => Round::SetRow(i),
            9 | 10 => Round::Scale(i),
            _ => Round::Keep(i),
        }
    };
    (0..n).map(|_| one(draw)).collect()
}

/// What a loop of so many rounds leaves, and what it has kept; with a barrier behind each, or none.
fn looped(body: &[Round], rounds: usize, by_steps: bool) -> Vec<Vec<f32>> {
    let mut draw = Seeded(11);
    let rows = Tensor::from_vec(draw.floats(rounds * 8, -1.0, 1.0), [rounds, 8]);
    let mut state: Vec<Tensor> = (0..3).map(|_| Tensor::from_vec(draw.floats(64, -1.0, 1.0), [8, 8])).collect();
    let mut kept = Vec::new();
    sync();
    for round in 0..rounds {
        for does in body {
            match *does {
                Round::MatMul(i, j) => state[i] = (state[i].matmul(&state[j]) / 4.0).tanh(),
                Round::Tanh(i) => state[i] = state[i].tanh(),
                Round::Mix(i, j) => state[i] = &state[i] * 0.5 + &state[j] * 0.25,
                Round::Row(i) => state[i] = &state[i] * 0.5 + rows.i(round),
                Round::SetRow(i) => drop(state[i].set(round % 8, rows.i(round))),
                Round::Scale(i) => drop(state[i].mul_(0.75)),
                Round::Keep(i) => kept.push(state[i].sum()),
            }
        }
        if by_steps {
            sync();
        }
    }
    state.extend(kept);
    // As somebody may read: one after another, or all of them.
    if !by_steps && rounds.is_multiple_of(2) {
        sync();
    }
    state.iter().map(|t| t.to_vec()).collect()
}

/// Whatever stands in them, loops that would make a program long are compiled by the round, and give what they give step by step.
#[test]
fn loops_that_would_make_a_program_long_run_round_by_round() {
    let _alone = alone();
    for seed in programs(12) {
        let mut draw = Seeded(seed);
        let body = rounds_drawn(&mut draw);
        let rounds = 200 + draw.below(30);
        let before = xlazy::insight::compilations().len();
        let lazy = looped(&body, rounds, false);
        let most = xlazy::insight::compilations()[before..].iter().map(|c| c.nodes).max().unwrap_or(0);
        assert!(most < 1000, "seed {seed}: a program of {most} ops\n{body:?}");
        let by_steps = looped(&body, rounds, true);
        assert_eq!(lazy.len(), by_steps.len());
        for (n, (a, b)) in lazy.iter().zip(&by_steps).enumerate() {
            let largest = b.iter().fold(0f32, |m, v| m.max(v.abs()));
            let far = a.iter().zip(b).find(|(a, b)| (*a - *b).abs() > 1e-3 * largest.max(1e-3));
            assert!(far.is_none(), "seed {seed}, tensor {n}: {far:?}\n{rounds} rounds of {body:?}");
        }
    }
}
