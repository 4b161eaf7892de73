//! Replicas on eight devices of the CPU plugin: one launch for all ranks, values and training as on one device, and what ranks
//! that do different things are told.
mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use support::{Seeded, compiles, refusal};
use xlazy::nn::{self, Module, Sequential};
use xlazy::optim::{AdamW, SGD, SGDOptions};
use xlazy::prelude::*;

fn alone() -> MutexGuard<'static, ()> {
    support::alone_on(8)
}

const N: usize = 8;

fn launches() -> usize {
    xlazy::insight::events().len()
}

#[test]
fn ranks_run_one_program_on_data_of_their_own() {
    let _alone = alone();
    let outside = tensor([1.0f32, 2.0]);
    let mut given = vec![];
    let before = launches();
    let compiled = compiles(|| {
        given = spawn(N, |rank| {
            assert_eq!((xm::get_ordinal(), xm::world_size(), xm::is_master_ordinal()), (rank, N, rank == 0));
            let x = tensor([rank as f32, 1.0]) * rank as f64 + &outside;
            assert_eq!(x.device(), format!("cpu:{rank}"));
            let sum = xm::all_reduce(xm::Sum, &[&x], 0.5, ()).remove(0);
            (sum.to_vec::<f32>(), x)
        });
    });
    assert_eq!((compiled, launches() - before), (2, 2), "one for the read, one for what is left at the end");
    for (rank, (sum, x)) in given.iter().enumerate() {
        let r = rank as f32;
        assert_eq!(sum, &[(140.0 + 8.0) / 2.0, (28.0 + 16.0) / 2.0], "squares and numbers up to 7");
        assert_eq!((x.device(), x.to_vec::<f32>()), (format!("cpu:{rank}"), vec![r * r + 1.0, r + 2.0]));
    }
    assert_eq!((xm::get_ordinal(), xm::world_size()), (0, 1));
}

fn net() -> Sequential {
    Sequential::new((nn::Linear::new(6, 16), nn::ReLU, nn::Linear::new(16, 3)))
}

fn batch(step: usize, n: usize) -> (Vec<f32>, Vec<i64>) {
    let mut rng = Seeded(step as u64 + 1);
    ((0..n * 6).map(|_| rng.below(200) as f32 / 100.0 - 1.0).collect(), (0..n).map(|_| rng.below(3) as i64).collect())
}

fn losses(parts: usize, part: usize, optimizer: impl Fn(&Sequential) -> Box<dyn Optimizer>) -> Vec<f64> {
    const B: usize = 16;
    manual_seed(5);
    let net = net();
    let mut opt = optimizer(&net);
    let one = |step: usize| {
        let (x, y) = batch(step, B);
        let n = B / parts;
        let x = tensor(&x[part * n * 6..][..n * 6]).reshape([n as i64, 6]);
        let y = tensor(&y[part * n..][..n]);
        let loss = net.forward(&x).cross_entropy(&y, Default::default());
        opt.zero_grad();
        loss.backward();
        xm::optimizer_step(&mut *opt);
        loss.item()
    };
    (0..6).map(one).collect()
}

#[test]
fn training_on_ranks_gives_the_losses_of_one_device() {
    let _alone = alone();
    let sgd = |net: &Sequential| -> Box<dyn Optimizer> {
        Box::new(SGD::with(net.parameters(), 0.2, SGDOptions { momentum: 0.9, ..SGDOptions::default() }))
    };
    let adamw = |net: &Sequential| -> Box<dyn Optimizer> { Box::new(AdamW::new(net.parameters(), 0.01)) };
    for (k, make) in [&sgd as &(dyn Fn(&Sequential) -> Box<dyn Optimizer> + Sync), &adamw].into_iter().enumerate() {
        let alone = losses(1, 0, make);
        let mut all = vec![];
        let compiled = compiles(|| all = spawn(N, |rank| losses(N, rank, make)));
        assert!(compiled <= 3, "the start, a first step and those that follow: {compiled}");
        for (step, alone) in alone.iter().enumerate() {
            let mean = all.iter().map(|l| l[step]).sum::<f64>() / N as f64;
            assert!((mean - alone).abs() < 3e-6, "{k} {step}: {mean} and {alone}");
        }
    }
}

/// What a rank runs.
type Code<'a> = &'a (dyn Fn(usize) + Sync);

#[test]
fn what_ranks_do_differently_is_told_with_rank_and_line() {
    let _alone = alone();
    let cases: [(Code, &[&str]); 7] = [
        (
            &|rank| {
                let x = tensor([rank as f32]);
                let y = if rank == 3 { x.exp() } else { x.sin() };
                y.to_vec::<f32>();
            },
            &["rank 3 has `exp` to f32[1] at spawn.rs:", "and rank 0 `sin` to f32[1] at spawn.rs:"],
        ),
        (
            &|rank| {
                let x = Tensor::ones([2 + rank as i64 / 7, 3]);
                x.sum().item();
            },
            &["rank 7 has", "f32[3,3]", "rank 0", "f32[2,3]"],
        ),
        (
            &|rank| {
                let x = tensor([rank as f32]) * 2.0;
                if rank == 0 {
                    println!("{}", x.sum().item());
                }
                sync();
            },
            &[
                "rank 0 wants a value that is still to be computed (read) at spawn.rs:",
                "and rank 1 is at a barrier (sync)",
            ],
        ),
        (
            &|rank| {
                let x = tensor([rank as f32]) * 2.0;
                if rank < 7 {
                    sync();
                }
                drop(x);
            },
            &["rank 0 is at a barrier (sync) at spawn.rs:", "and rank 7 has come to its end"],
        ),
        (
            &|rank| {
                xm::rendezvous(if rank == 2 { "b" } else { "a" }, ());
            },
            &["rank 0 is at the rendezvous \"a\"", "rank 2 is at the rendezvous \"b\""],
        ),
        (
            &|rank| {
                let x = Tensor::arange(0.0, 4.0, 1.0);
                xm::all_reduce(
                    xm::Sum,
                    &[&x],
                    1.0,
                    if rank == 1 { [[0, 1, 2, 3], [4, 5, 6, 7]] } else { [[0, 2, 4, 6], [1, 3, 5, 7]] },
                )
                .remove(0)
                .to_vec::<f32>();
            },
            &["rank 1 has `all_reduce` to f32[4] at spawn.rs:", "with groups"],
        ),
        (
            &|rank| {
                if rank == 5 {
                    panic!("no more");
                }
                sync();
            },
            &["no more (rank 5)"],
        ),
    ];
    for (k, (code, says)) in cases.into_iter().enumerate() {
        let said = refusal(|| spawn(N, code));
        assert!(says.iter().all(|s| said.contains(s)), "{k}: {said}");
        // What follows runs.
        assert_eq!(spawn(2, |rank| tensor([rank as f32]).exp().sum().item() as i64), [1, 2]);
    }
}

#[test]
fn a_place_that_depends_on_the_rank_is_a_parameter() {
    let _alone = alone();
    let all = Tensor::arange(0.0, 32.0, 1.0);
    let compiled = compiles(|| {
        let parts = spawn(N, |rank| all.narrow(0, 4 * rank as i64, 4).square().sum().item());
        let part = |rank: usize| (4 * rank..4 * rank + 4).map(|i| (i * i) as f64).sum::<f64>();
        assert_eq!(parts, (0..N).map(part).collect::<Vec<_>>());
    });
    assert!(compiled <= 2, "{compiled}");
}

#[test]
fn ranks_hear_of_one_another_on_the_host() {
    let _alone = alone();
    let order = Mutex::new(vec![]);
    let sums = spawn(4, |rank| {
        order.lock().unwrap().push(rank);
        let all = xm::rendezvous("names", format!("r{rank}"));
        order.lock().unwrap().push(10 + rank);
        assert_eq!(all, ["r0", "r1", "r2", "r3"]);
        xm::mesh_reduce("sum", rank as f64, |all| all.iter().sum::<f64>())
    });
    assert_eq!(sums, [6.0; 4]);
    assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 3, 10, 11, 12, 13], "one at a time, in order");
    let said = refusal(|| {
        spawn(2, |rank| if rank == 0 { xm::rendezvous("x", 1u8).len() } else { xm::rendezvous("x", 1.0f64).len() })
    });
    assert!(said.contains("values of different types"), "{said}");
}

#[test]
fn random_numbers_begin_alike_and_go_on_as_if_one_had_run() {
    let _alone = alone();
    manual_seed(3);
    let alone: Vec<f32> = Tensor::randn([4]).to_vec();
    let after: Vec<f32> = Tensor::randn([4]).to_vec();
    manual_seed(3);
    let all = spawn(4, |_| Tensor::randn([4]).to_vec::<f32>());
    assert!(all.iter().all(|r| *r == alone));
    assert_eq!(Tensor::randn([4]).to_vec::<f32>(), after);
    manual_seed(3);
    let own = spawn(4, |rank| {
        manual_seed(rank as u64);
        Tensor::randn([4]).to_vec::<f32>()
    });
    assert!(own.windows(2).all(|w| w[0] != w[1]));
}

#[test]
fn what_ranks_have_together_is_not_written_to() {
    let _alone = alone();
    let net = nn::Linear::new(2, 1);
    let x = Tensor::ones([3, 2]);
    let said = refusal(|| spawn(2, |_| net.forward(&x).sum().backward()));
    assert!(said.contains("from outside of `spawn`"), "{said}");
    let said = refusal(|| spawn(2, |_| drop(x.add_(1.0))));
    assert!(said.contains("from outside of `spawn`"), "{said}");
    assert!(net.weight.grad().is_none());
    assert_eq!(x.to_vec::<f32>(), [1.0; 6]);
    // A copy is the rank's own, and so are weights that are loaded.
    let state = net.state_dict();
    let means = spawn(2, |rank| {
        let own = nn::Linear::new(2, 1);
        own.load_state_dict(&state).unwrap();
        let mine = x.copy();
        mine.add_(rank as f64);
        own.forward(&mine).mean().item()
    });
    let expected = [0.0, 1.0].map(|r| net.forward(&(&x + r)).mean().item());
    assert!(means.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{means:?} {expected:?}");
}

#[test]
fn what_has_no_meaning_in_a_rank_is_refused() {
    let _alone = alone();
    let mesh = Mesh::new(&[("x", 2)]);
    let said = refusal(|| spawn(2, |_| spawn(2, |r| r)));
    assert!(said.contains("ranks start no others"), "{said}");
    let said = refusal(|| spawn(2, |_| drop(Tensor::ones([2]).mark_sharding(&mesh, &[Some("x")]))));
    assert!(said.contains("each rank has tensors of its own"), "{said}");
    let said = refusal(|| spawn(9, |r| r));
    assert_eq!(
        said,
        "spawn: 9 ranks need 9 devices, and there are 8 devices; on the CPU there are with XLAZY_CPU_DEVICES=9 in the \
         environment of the kernel"
    );
    let said = refusal(|| spawn(0, |r| r));
    assert!(said.contains("one at least"), "{said}");
    // Gradients through a collective end with it.
    let w = spawn(2, |rank| {
        let w = tensor([rank as f32 + 1.0]).requires_grad_(true);
        (xm::all_reduce(xm::Sum, &[&w], 1.0, ()).remove(0), w)
    });
    let said = refusal(|| w[0].0.sum().backward());
    assert!(said.contains("is for code that each device runs"), "{said}");
}

#[test]
fn gradients_go_from_rank_to_rank() {
    let _alone = alone();
    // Of the sum over ranks of (rank + 1) times the sum of all w: each w gets the sum of all factors.
    let grads = spawn(4, |rank| {
        let w = tensor([rank as f32, 2.0]).requires_grad_(true);
        let all = xm::all_reduce(xm::Sum, &[&w], 1.0, ()).remove(0);
        (all * (rank as f64 + 1.0)).sum().backward();
        w.grad().unwrap().to_vec::<f32>()
    });
    assert!(grads.iter().all(|g| *g == [10.0, 10.0]), "{grads:?}");
}

#[test]
fn every_collective_goes_between_ranks() {
    let _alone = alone();
    for dtype in [F32, F64, BF16, I32, I64, U8, Bool, C64] {
        let got = spawn(4, |rank| {
            let x = tensor([rank as f32, 4.0 + rank as f32, 1.0, 0.0]).to(dtype);
            let halves = [[0, 1], [3, 2]];
            let mut all = vec![
                xm::all_gather(&x, 0, halves),
                xm::collective_broadcast(&x, 1, halves),
                xm::collective_permute(&x, &[(0, 3), (3, 1)]),
                xm::all_to_all(&x, 0, 0, ()),
            ];
            if dtype != Bool {
                all.push(xm::reduce_scatter(xm::Sum, &x, 1.0, 0, ()));
            }
            if matches!(dtype, I32 | U8 | Bool) {
                all.push(xm::all_reduce(xm::Or, &[&x], 1.0, [vec![0, 1, 2], vec![3]].to_vec()).remove(0));
            }
            all.iter().map(|t| t.to(F64).to_vec::<f64>()).collect::<Vec<_>>()
        });
        let has = |r: usize| {
            let all = [r as f64, 4.0 + r as f64, 1.0, 0.0];
            if dtype == Bool { all.map(|v| f64::from(v != 0.0)) } else { all }
        };
        for (rank, got) in got.iter().enumerate() {
            let group = if rank < 2 { [0, 1] } else { [3, 2] };
            let mut expected = vec![
                group.iter().flat_map(|&r| has(r)).collect::<Vec<f64>>(),
                has(group[1]).to_vec(),
                match rank {
                    3 => has(0).to_vec(),
                    1 => has(3).to_vec(),
                    _ => vec![0.0; 4],
                },
                (0..4).map(|r| has(r)[rank]).collect(),
            ];
            if dtype != Bool {
                expected.push(vec![(0..4).map(|r| has(r)[rank]).sum()]);
            }
            if matches!(dtype, I32 | U8 | Bool) {
                let of: &[usize] = if rank == 3 { &[3] } else { &[0, 1, 2] };
                let or = |k: usize| of.iter().fold(0, |bits, &r| bits | has(r)[k] as i64) as f64;
                expected.push((0..4).map(or).collect());
            }
            assert_eq!(*got, expected, "{dtype} on rank {rank}");
        }
    }
}

#[test]
fn loaders_bring_batches_to_the_rank() {
    let _alone = alone();
    let seen = AtomicUsize::new(0);
    let labels = spawn(4, |rank| {
        let all: Vec<i64> = (0..22).collect();
        let dataset = data::TensorDataset::new([&tensor(all)]);
        let sampler = data::DistributedSampler::new(4, rank, true);
        let loader = xm::MpDeviceLoader::new(data::DataLoader::new(dataset, 3).sampler(sampler));
        let mut mine = vec![];
        for [x] in &loader {
            assert_eq!(x.device(), format!("cpu:{rank}"));
            seen.fetch_add(1, Ordering::Relaxed);
            mine.extend(x.to_vec::<i64>());
        }
        mine
    });
    assert_eq!(seen.into_inner(), 8);
    let mut all: Vec<i64> = labels.concat();
    all.sort_unstable();
    let mut expected: Vec<i64> = (0..22).collect();
    all.dedup();
    expected.dedup();
    assert!(labels.iter().all(|l| l.len() == 6), "padded to the same number: {labels:?}");
    assert_eq!(all, expected);
}
