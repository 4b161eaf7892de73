//! What the host pays per op: `xlazy bench host` and `cargo bench` print these figures.
pub mod models;

use crate::json::Value;
use crate::prelude::*;
use crate::tensor::sync_for;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The figures of one run, in microseconds unless the name says otherwise.
pub struct Host {
    pub figures: Vec<(&'static str, f64)>,
}

impl Host {
    /// One JSON object, figures by name.
    pub fn json(&self) -> String {
        let rounded = |(name, v): &(&str, f64)| ((*name).to_owned(), Value::from((v * 1e4).round() / 1e4));
        self.figures.iter().map(rounded).collect::<Value>().to_string()
    }

    /// A table, with what each figure means.
    pub fn table(&self) -> String {
        let mut out = String::new();
        for (name, v) in &self.figures {
            let meaning = MEANING.iter().find(|m| m.0 == *name).map_or("", |m| m.1);
            let _ = writeln!(out, "{name:<24} {v:>10.3}   {meaning}");
        }
        out
    }
}

const MEANING: &[(&str, &str)] = &[
    ("trace_us_per_op", "µs to record one op, in a chain of 1,000"),
    ("sync_us_per_op", "µs per op until a cached sync() of 1,000 chained ops returns, less one launch"),
    ("launch_us", "µs until the host returns from a cached program of one op (trace, sync, launch)"),
    ("ready_us", "µs until that program's result is ready"),
    ("bytes_per_node", "bytes of memory per pending op, of 200,000"),
    ("wide_trace_us_per_op", "µs to record one op, 1,000 independent ones"),
    ("wide_sync_us_per_op", "µs per op until a cached sync() of 1,000 independent ops with 1,000 results returns"),
    ("chain_100k_s", "seconds to record, hash and lower a chain of 100,000 ops"),
    ("optimizer_200_us", "µs of host time for an SGD step with momentum over 200 parameters, synced"),
    ("sgd_step_200_us", "µs until `step()` of SGD with momentum over 200 parameters returns, not synced"),
    ("explain_10k_us", "µs to explain why a program of 10,000 ops was compiled again: an input of another size"),
    ("explain_10k_ops_us", "the same where an op came in the middle of them"),
    ("watched_trace_ratio", "recording an op with the insight on, over the same with it off"),
    ("watched_sync_ratio", "a cached sync() of 1,000 chained ops with the insight on, over the same with it off"),
    ("watched_run_ratio", "a cached program of one op until its result is ready, insight on over off"),
    ("watched_step_ratio", "a cached training step of a small network (784-64-10, 64 rows), insight on over off"),
];

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn repeat(n: usize, mut f: impl FnMut() -> Duration) -> f64 {
    for _ in 0..n.div_ceil(5) {
        f();
    }
    median((0..n).map(|_| f()).collect())
}

/// Resident memory of this process in bytes.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|p| p.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0
}

/// Measures everything; takes a few seconds.
pub fn host() -> Host {
    const N: usize = 1000;
    let x = Tensor::ones([4]);
    sync();
    let chain = || {
        let mut y = &x * 1.5;
        for _ in 1..N {
            y = y.tanh();
        }
        y
    };
    let mut traced = Vec::new();
    let mut synced = Vec::new();
    for round in 0..25 {
        let start = Instant::now();
        let y = chain();
        let t = start.elapsed();
        let start = Instant::now();
        sync();
        let s = start.elapsed();
        y.wait();
        if round >= 5 {
            traced.push(t);
            synced.push(s);
        }
    }
    let launch = repeat(300, || {
        let start = Instant::now();
        let y = x.tanh();
        sync();
        let t = start.elapsed();
        y.wait();
        t
    });
    let ready = repeat(300, || {
        let start = Instant::now();
        let y = x.tanh();
        sync();
        y.wait();
        start.elapsed()
    });
    let (mut wide_traced, mut wide_synced) = (Vec::new(), Vec::new());
    for round in 0..8 {
        let start = Instant::now();
        let all: Vec<Tensor> = (0..N).map(|_| x.tanh()).collect();
        let t = start.elapsed();
        let start = Instant::now();
        sync();
        let s = start.elapsed();
        all[N - 1].wait();
        if round >= 2 {
            wide_traced.push(t);
            wide_synced.push(s);
        }
    }
    let optimizer = optimizer_200();
    let sgd = sgd_step_200();
    let watched = watched();
    let [explain, explain_ops] = explained_10k();
    let (bytes, chain_s) = long_chain();
    let mut host = Host {
        figures: vec![
            ("trace_us_per_op", median(traced) / N as f64),
            ("sync_us_per_op", (median(synced) - launch).max(0.0) / N as f64),
            ("launch_us", launch),
            ("ready_us", ready),
            ("bytes_per_node", bytes),
            ("wide_trace_us_per_op", median(wide_traced) / N as f64),
            ("wide_sync_us_per_op", median(wide_synced) / N as f64),
            ("chain_100k_s", chain_s),
            ("optimizer_200_us", optimizer),
            ("sgd_step_200_us", sgd),
            ("explain_10k_us", explain),
            ("explain_10k_ops_us", explain_ops),
        ],
    };
    host.figures.extend(watched);
    host
}

/// Explanations of misses of 10,000 ops: where an input has another size, and where an op has come to another place each time.
fn explained_10k() -> [f64; 2] {
    const ROUNDS: usize = 5;
    let run = |size: usize, more: usize| {
        let mut y = Tensor::ones([size]);
        for i in 0..10_000 {
            y = if i == more { y.neg().abs() } else { y.abs() };
        }
        sync();
        let last = crate::insight::compilations().pop();
        last.filter(|c| c.why.is_some()).map(|c| c.explained_in)
    };
    run(2, usize::MAX);
    let of =
        |all: &mut dyn Iterator<Item = Option<Duration>>| median(all.map(|t| t.expect("an explanation")).collect());
    [of(&mut (3..3 + ROUNDS).map(|n| run(n, usize::MAX))), of(&mut (1..1 + ROUNDS).map(|k| run(2, k * 1500)))]
}

/// What watching costs: time, syncs and metrics noted or not, round about, so that what else the machine does hits both
/// alike; of each pair of rounds the quotient, of those the median. Source lines are noted either way: one pointer per op.
fn watched() -> [(&'static str, f64); 4] {
    const PAIRS: usize = 200;
    let x = Tensor::ones([4]);
    sync();
    let chain = || {
        let start = Instant::now();
        let mut y = x.tanh();
        for _ in 1..1000 {
            y = y.tanh();
        }
        let traced = start.elapsed();
        let start = Instant::now();
        sync();
        let synced = start.elapsed();
        y.wait();
        (traced, synced)
    };
    // Many, because one takes no longer than the clock's grain allows.
    let launches = || {
        let start = Instant::now();
        for _ in 0..100 {
            let y = x.tanh();
            sync();
            y.wait();
        }
        start.elapsed()
    };
    let mut step = training_step();
    let mut quotients = [const { Vec::new() }; 4];
    for pair in 0..PAIRS + PAIRS / 10 {
        let mut round = |on: bool| {
            crate::insight::set_watching(on);
            let (traced, synced) = chain();
            [traced, synced, launches(), step()].map(|t| t.as_secs_f64())
        };
        // Which comes first changes: the second finds warmer caches.
        let (on, off) = match pair % 2 {
            0 => (round(true), round(false)),
            _ => {
                let off = round(false);
                (round(true), off)
            }
        };
        if pair >= PAIRS / 10 {
            quotients.iter_mut().zip(on.iter().zip(off)).for_each(|(q, (on, off))| q.push(on / off));
        }
    }
    crate::insight::set_watching(true);
    let [trace, sync, run, step] = quotients.map(|mut q| {
        q.sort_unstable_by(f64::total_cmp);
        q[q.len() / 2]
    });
    [
        ("watched_trace_ratio", trace),
        ("watched_sync_ratio", sync),
        ("watched_run_ratio", run),
        ("watched_step_ratio", step),
    ]
}

/// A training step from its first op until the weights are there.
fn training_step() -> impl FnMut() -> Duration {
    let (x, target) = (Tensor::ones([64, 784]), Tensor::ones([64, 10]));
    let weights = [[784, 64], [64, 10]].map(|size| Tensor::full(size, 0.01).requires_grad_(true));
    move || {
        let start = Instant::now();
        let loss = (x.matmul(&weights[0]).relu().matmul(&weights[1]) - &target).square().mean();
        loss.backward();
        no_grad(|| {
            for w in &weights {
                w.sub_(w.grad().expect("the loss depends on it") * 0.01);
                w.set_grad(None);
            }
        });
        sync_for(crate::insight::Cause::OptimizerStep);
        weights.iter().for_each(Tensor::wait);
        start.elapsed()
    }
}

/// SGD with momentum over 200 parameters of 16 elements, gradients given.
fn optimizer_200() -> f64 {
    let make = || (0..200).map(|_| Tensor::ones([16])).collect::<Vec<_>>();
    let (weights, momenta, gradients) = (make(), make(), make());
    sync();
    let (lr, m) = (0.01, 0.9);
    repeat(60, || {
        let start = Instant::now();
        no_grad(|| {
            for ((w, b), g) in weights.iter().zip(&momenta).zip(&gradients) {
                b.copy_(&(b * m + g));
                w.sub_(b * lr);
            }
        });
        sync_for(crate::insight::Cause::OptimizerStep);
        let t = start.elapsed();
        weights[199].wait();
        t
    })
}

/// The step of SGD with momentum over 200 parameters of 16 elements, gradients given.
fn sgd_step_200() -> f64 {
    let parameters: Vec<Tensor> = (0..200).map(|_| Tensor::ones([16]).requires_grad_(true)).collect();
    parameters.iter().for_each(|p| p.set_grad(Some(Tensor::ones([16]))));
    let options = crate::optim::SGDOptions { momentum: 0.9, ..Default::default() };
    let mut optimizer = crate::optim::SGD::with(&parameters, 0.01, options);
    repeat(60, || {
        let start = Instant::now();
        crate::optim::Optimizer::step(&mut optimizer);
        let t = start.elapsed();
        sync_for(crate::insight::Cause::OptimizerStep);
        parameters[199].wait();
        t
    })
}

/// Bytes per pending node of 200,000, and the seconds that 100,000 take to be recorded, hashed and lowered.
fn long_chain() -> (f64, f64) {
    let x = Tensor::ones([4]);
    sync();
    let before = resident();
    let mut y = x.tanh();
    let mut all = vec![y.clone()];
    for _ in 1..200_000 {
        y = y.tanh();
        all.push(y.clone());
    }
    let bytes = (resident() - before) / 200_000.0;
    drop((y, all));
    let start = Instant::now();
    let mut y = x.tanh();
    for _ in 1..100_000 {
        y = y.tanh();
    }
    let _ = xlazy_core::run::would();
    let text = xlazy_core::run::lowered(vec![y.id()]).map_or(0, |t| t.len());
    let t = start.elapsed().as_secs_f64();
    assert!(text > 100_000, "every op is in the program");
    (bytes, t)
}
