//! Random programs: recorded and run late, with reads, barriers and new optimizers at random places, against the same ops run one by one. Writes go
//! through views, some of views, to tensors that others show as well.
mod support;

use support::{Seeded, alone, programs};
use xlazy::prelude::*;

/// What one program does, drawn once and done twice.
#[derive(Clone, Debug)]
enum Act {
    /// A new tensor in the place of one: of two others, by an op.
    Compute(usize, usize, usize, usize),
    /// A view of a tensor or of a view, kept beside the others.
    View(usize, usize, usize),
    /// A write to a tensor or a view, of a number or of what another shows.
    Write(usize, usize, usize),
    /// A value that is carried around a loop on the device.
    Loop(usize, usize),
    Read(usize),
    Barrier,
    /// An optimizer is made: what is pending becomes a program of its own.
    Start,
}

const SIZE: usize = 4;

fn drawn(seed: u64) -> Vec<Act> {
    let mut r = Seeded(seed);
    let mut any = |n: usize| r.below(n);
    let act = |_| match any(13) {
        0..=3 => Act::Compute(any(64), any(64), any(64), any(7)),
        4 | 5 => Act::View(any(64), any(6), any(SIZE)),
        6..=8 => Act::Write(any(64), any(64), any(5)),
        9 => Act::Loop(any(64), any(4)),
        10 => Act::Read(any(64)),
        11 => Act::Start,
        _ => Act::Barrier,
    };
    (0..30).map(act).collect()
}

/// The values at the end, and those that were read on the way where both forms read.
fn done(acts: &[Act], one_by_one: bool) -> Vec<Vec<f64>> {
    let start = |k: f64| (Tensor::arange(0, (SIZE * SIZE) as i64, 1).double() * k).sin().reshape([SIZE, SIZE]).copy();
    let mut tensors: Vec<Tensor> = [0.3, 0.7, 1.1].map(start).to_vec();
    let mut views: Vec<Tensor> = vec![];
    let mut seen = vec![];
    for act in acts {
        let all: Vec<Tensor> = tensors.iter().chain(&views).cloned().collect();
        let pick = |i: &usize| all[i % all.len()].clone();
        let whole = |i: &usize| tensors[i % tensors.len()].clone();
        match act {
            Act::Compute(to, a, b, op) => {
                let (a, b) = (whole(a), whole(b));
                let y = match op {
                    0 => &a + &b,
                    1 => &a * &b * 0.9,
                    2 => a.matmul(&b).tanh(),
                    3 => (&a - &b).sin(),
                    4 => a.cumsum(0) * 0.2,
                    5 => a.softmax(1),
                    _ => a.where_(&a.gt(&b), &b * 0.5),
                };
                let to = to % tensors.len();
                tensors[to] = y;
            }
            Act::View(of, how, k) => {
                let x = pick(of);
                let n = x.shape().last().copied().unwrap_or(1) as i64;
                views.push(match (how, x.dim()) {
                    (_, 0) => x.detach(),
                    (0, _) => x.select(0, *k as i64 % x.size(0) as i64),
                    (1, _) => x.slice(-1, *k as i64 % n, n, 1),
                    (2, _) => x.slice(0, 0, x.size(0) as i64, 2),
                    (3, 2) => x.t(),
                    (4, 2) => x.diagonal(0, 0, 1),
                    _ => x.flatten(),
                });
            }
            Act::Write(to, from, how) => {
                let (x, y) = (pick(to), pick(from));
                // What is to be written is read before, as one value: it may be a part of what is written to.
                let y = y.sum() * 0.1;
                match how {
                    0 => x.add_(0.25),
                    1 => x.mul_(0.5),
                    2 => x.copy_(y.expand(x.shape())),
                    3 => x.sub_(&y),
                    _ => x.fill_(0.125),
                };
            }
            Act::Loop(to, rounds) => {
                let (x, w) = (whole(to), whole(&(to + 1)));
                let rounds = *rounds as i64 + 1;
                let y = match one_by_one {
                    true => (0..rounds).fold(x, |x, _| (&x + &w).cos() * 0.5),
                    false => fori_loop(0, rounds, |_, x: Tensor| (&x + &w).cos() * 0.5, &x),
                };
                let to = to % tensors.len();
                tensors[to] = y;
            }
            Act::Read(i) => seen.push(pick(i).to_vec::<f64>()),
            Act::Barrier => sync(),
            Act::Start => drop(optim::SGD::new([&Tensor::ones([1]).requires_grad_(true)], 0.1)),
        }
        if one_by_one {
            sync();
        }
    }
    seen.extend(tensors.iter().chain(&views).map(|t| t.to_vec::<f64>()));
    seen
}

#[test]
fn random_programs_give_what_they_give_op_by_op() {
    let _alone = alone();
    for seed in programs(15) {
        let acts = drawn(seed);
        let (late, at_once) = (done(&acts, false), done(&acts, true));
        assert_eq!(late.len(), at_once.len());
        for (k, (a, b)) in late.iter().zip(&at_once).enumerate() {
            let near = a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x - y).abs() <= 1e-9 * x.abs().max(1.0));
            assert!(near, "XLAZY_SEED={seed}, value {k}: {a:?}, op by op {b:?}, by {acts:?}");
        }
    }
}
