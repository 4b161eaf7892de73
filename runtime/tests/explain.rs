//! Why a program is compiled again: the scenarios of torch_xla's users, in xlazy. Counts, class, line, difference, fix.
mod support;

use std::sync::Mutex;
use xlazy::insight::{Class, Compilation, compilations};
use xlazy::prelude::*;

static ONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    let guard = ONE.lock().unwrap_or_else(|p| p.into_inner());
    sync();
    guard
}

/// What a step compiled.
fn during(step: impl FnOnce()) -> Vec<Compilation> {
    let before = compilations().len();
    step();
    compilations().split_off(before)
}

#[track_caller]
fn explained(c: &[Compilation], class: Class, lines: &[u32], fix: &str) {
    assert_eq!(c.len(), 1, "{}", c.iter().map(|c| c.text()).collect::<String>());
    let why = c[0].why.as_ref().unwrap_or_else(|| panic!("not explained: {}", c[0].text()));
    assert_eq!(why.class, class, "{}", c[0].text());
    assert!(lines.contains(&why.at.line()), "line {} is none of {lines:?}: {}", why.at.line(), c[0].text());
    assert!(why.fix.contains(fix), "no `{fix}` in: {}", c[0].text());
}

fn randn(size: &[usize]) -> Tensor {
    let t = Tensor::randn(size);
    sync();
    t
}

#[test]
fn s01_a_short_last_batch() {
    let _alone = alone();
    let (w, b) = (randn(&[8, 1]), randn(&[1]));
    sync();
    let data: Vec<f32> = (0..80).map(|i| i as f32 * 0.1).collect();
    let step = |rows: usize| {
        let x = Tensor::from_slice(&data[..rows * 8], [rows, 8]);
        let loss = (x.matmul(&w) + &b).square().mean();
        sync();
        loss
    };
    let line = line!() - 5;
    assert_eq!(during(|| drop(step(4))).len(), 1);
    assert_eq!(during(|| drop(step(4))).len(), 0);
    let c = during(|| drop(step(2)));
    explained(&c, Class::Shape, &[line], ".drop_last(true)");
    let d = &c[0].why.as_ref().unwrap().differences[0];
    assert_eq!((d.was.as_str(), d.now.as_str()), ("f32[4,8]", "f32[2,8]"));
    assert!(c[0].sentence().contains("pad 2 rows to 4"), "{}", c[0].sentence());
    assert_eq!(during(|| drop(step(4))).len(), 0);
    assert_eq!(during(|| drop(step(2))).len(), 0);
}

#[test]
fn s03_a_batch_arrives_as_float64() {
    let _alone = alone();
    let w = Tensor::ones([8]);
    sync();
    let load = |i: usize| {
        let a = vec![0.5f64; 32];
        if i < 2 {
            Tensor::from_vec(a.iter().map(|&v| v as f32).collect::<Vec<f32>>(), [4, 8])
        } else {
            Tensor::from_vec(a, [4, 8])
        }
    };
    let line = line!() - 3;
    let step = |x: Tensor| {
        let y = (x * &w).tanh().sum();
        sync();
        y
    };
    assert_eq!(during(|| drop(step(load(0)))).len(), 1);
    assert_eq!(during(|| drop(step(load(1)))).len(), 0);
    let c = during(|| drop(step(load(2))));
    explained(&c, Class::Dtype, &[line], ".to(F32)");
    assert_eq!(during(|| drop(step(load(3)))).len(), 0);
}

#[test]
fn s04_s05_s06_s20_numbers_of_user_code_never_compile_again() {
    let _alone = alone();
    let logits = randn(&[4, 8]);
    let focal = |epoch: i64| {
        let p = logits.softmax(-1);
        let loss = -(((1.0 - &p).pow(epoch + 2)) * p.log()).mean();
        sync();
        loss
    };
    assert_eq!(during(|| drop(focal(0))).len(), 1);
    for epoch in [1, 2, 1] {
        assert_eq!(during(|| drop(focal(epoch))).len(), 0);
    }
    let weighted = |beta: f64, wd: f64| {
        let y = (&logits * beta + &logits * wd).sum();
        sync();
        y
    };
    assert_eq!(during(|| drop(weighted(0.0, 0.2))).len(), 1);
    for (beta, wd) in [(0.5, 0.2), (1.0, 0.2), (0.3, 0.3), (-1.0, 0.0)] {
        assert_eq!(during(|| drop(weighted(beta, wd))).len(), 0);
    }
}

#[test]
fn s08_printing_the_loss_inside_the_step() {
    let _alone = alone();
    let w = randn(&[8, 8]).requires_grad_(true);
    let x = randn(&[4, 8]);
    sync();
    let step = |log: bool| {
        let loss = x.matmul(&w).tanh().square().mean();
        if log {
            loss.item();
        }
        loss.backward();
        no_grad(|| w.sub_(w.grad().unwrap() * 0.05));
        w.set_grad(None);
        sync();
    };
    let line = line!() - 7;
    assert_eq!(during(|| step(false)).len(), 1);
    assert_eq!(during(|| step(false)).len(), 0);
    let c = during(|| step(true));
    explained(&c, Class::EarlyRead, &[line], "behind `sync()`");
    assert_eq!(during(|| step(true)).len(), 0);
    assert_eq!(during(|| step(false)).len(), 0);
}

#[test]
fn s09_item_in_a_condition() {
    let _alone = alone();
    let w = Tensor::full([8], 0.5);
    sync();
    let step = |k: f64| {
        let x = Tensor::from_vec(vec![k as f32; 32], [4, 8]);
        let mut loss = (&w * x).square().mean();
        if loss.item() > 10.0 {
            loss = loss.log() + 7.5;
        }
        let out = loss * 3.5;
        sync();
        out
    };
    let line = line!() - 7;
    assert!(during(|| drop(step(1.0))).len() <= 2);
    assert_eq!(during(|| drop(step(2.0))).len(), 0);
    let c = during(|| drop(step(100.0)));
    explained(&c, Class::ControlFlow, &[line], "where_(");
    assert_eq!(during(|| drop(step(200.0))).len(), 0);
}

#[test]
fn s15_random_numbers_read_without_a_barrier() {
    let _alone = alone();
    let (x, w) = (randn(&[4, 8]), randn(&[8, 8]));
    let step = || x.matmul(&w).dropout(0.5, true).square().mean().item();
    assert_eq!(during(|| _ = step()).len(), 1);
    for _ in 0..3 {
        assert_eq!(during(|| _ = step()).len(), 0);
    }
}

#[test]
fn s18_two_shapes_and_room_for_one_program() {
    let _alone = alone();
    let w = Tensor::ones([8]);
    sync();
    let step = |rows: usize| {
        let x = Tensor::from_vec(vec![1f32; rows * 8], [rows, 8]);
        let y = (x * &w).tanh().sum();
        sync();
        y
    };
    let line = line!() - 3;
    xlazy::insight::set_cache_capacity(1);
    let counts: Vec<Vec<Compilation>> = [4, 6, 4, 6].map(|rows| during(|| drop(step(rows)))).into();
    xlazy::insight::set_cache_capacity(2048);
    assert_eq!(counts.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1, 1]);
    assert_eq!(counts[1][0].why.as_ref().unwrap().class, Class::Shape);
    explained(&counts[2], Class::Eviction, &[line], "set_cache_capacity");
    explained(&counts[3], Class::Eviction, &[line], "set_cache_capacity");
}

#[test]
fn s21_a_cell_run_again_stacks_ops() {
    let _alone = alone();
    let mut x = Tensor::zeros([4]);
    let mut cell = || {
        x = &x + 1.0;
        x.clone()
    };
    let line = line!() - 3;
    let mut show = |times: usize| {
        (1..times).for_each(|_| drop(cell()));
        let x = cell();
        during(|| drop(x.to_vec::<f32>()))
    };
    assert_eq!(show(1).len(), 1);
    let c = show(2);
    explained(&c, Class::Structure, &[line], "ran 2 times");
    let c = show(3);
    explained(&c, Class::Structure, &[line], "ran 3 times");
    assert_eq!(show(3).len(), 0);
}

#[test]
fn s22_reading_one_of_several() {
    let _alone = alone();
    let w = randn(&[8]);
    let data = vec![0.5f32; 32];
    let step = || {
        let h = Tensor::from_slice(&data, [4, 8]) * &w;
        (h.tanh().sum(), h.sigmoid().mean())
    };
    let result = line!() - 2;
    let both = during(|| {
        let _ab = step();
        sync();
    });
    assert_eq!(both.len(), 1);
    let one = || {
        let (_a, b) = step();
        b.item();
        sync();
    };
    let read = line!() - 3;
    explained(&during(one), Class::EarlyRead, &[read], "behind `sync()`");
    assert_eq!(during(one).len(), 0);
    // A barrier for one of them alone is the program of the read.
    let c = during(|| {
        let _b = step().1;
        sync();
    });
    assert_eq!(c.len(), 0);
    let c = during(|| {
        let _a = step().0;
        sync();
    });
    let last = line!() - 3;
    explained(&c, Class::Roots, &[result, last], "keep the same tensors alive");
}

#[test]
fn s28_a_layer_is_added() {
    let _alone = alone();
    let mut layers = vec![randn(&[8, 8])];
    let data = vec![0.5f32; 32];
    let step = |layers: &[Tensor]| {
        let mut x = Tensor::from_slice(&data, [4, 8]);
        for w in layers {
            x = x.matmul(w).tanh();
        }
        let y = x.sum();
        sync();
        y
    };
    let body = line!() - 6;
    assert_eq!(during(|| drop(step(&layers))).len(), 1);
    assert_eq!(during(|| drop(step(&layers))).len(), 0);
    layers.push(Tensor::from_vec(vec![0.1f32; 64], [8, 8]));
    let added = line!() - 1;
    let c = during(|| drop(step(&layers)));
    explained(&c, Class::Structure, &[added, body], "");
    assert_eq!(during(|| drop(step(&layers))).len(), 0);
}

#[test]
fn s30_the_same_graph_from_other_lines_is_the_same_program() {
    let _alone = alone();
    let w = randn(&[8, 8]);
    let data = vec![0.5f32; 32];
    let first = during(|| {
        let _y = Tensor::from_slice(&data, [4, 8]).matmul(&w).tanh().mean();
        sync();
    });
    assert_eq!(first.len(), 1);
    let other = during(|| {
        let batch = Tensor::from_slice(&data, [4, 8]);
        let h = batch.matmul(&w);
        let _z = h.tanh().mean();
        drop((h, batch));
        sync();
    });
    assert_eq!(other.len(), 0);
}

#[test]
fn a_moved_slice_is_an_index() {
    let _alone = alone();
    let x = randn(&[100]);
    let step = |i: i64| {
        let y = x.narrow(0, i, 10).sum();
        sync();
        y
    };
    let line = line!() - 4;
    during(|| drop(step(0)));
    xlazy::insight::set_healing(false);
    let c = during(|| drop(step(1)));
    explained(&c, Class::Index, &[line], "index_select");
    xlazy::insight::set_healing(true);
    let c = during(|| drop(step(2)));
    explained(&c, Class::Index, &[line], "from now on it is a parameter");
}

#[test]
fn json_is_well_formed_and_complete() {
    let _alone = alone();
    let step = |n: usize| {
        let y = Tensor::ones([n]).exp();
        sync();
        y
    };
    during(|| drop(step(3)));
    let c = during(|| drop(step(5)));
    let json: serde_json::Value = serde_json::from_str(&c[0].json()).unwrap();
    assert_eq!(json["why"]["class"], "shape");
    assert!(json["why"]["differences"][0]["now_at"]["line"].as_u64().unwrap() > 0);
    for class in Class::ALL {
        assert!(!class.name().is_empty());
    }
}

#[test]
fn explaining_ten_thousand_nodes_takes_under_ten_milliseconds() {
    let _alone = alone();
    let step = |n: usize| {
        let mut x = Tensor::ones([n]);
        for _ in 0..10_000 {
            x = x.abs();
        }
        sync();
        x
    };
    during(|| drop(step(2)));
    let c = during(|| drop(step(3)));
    assert_eq!(c[0].why.as_ref().unwrap().class, Class::Shape);
    println!("explained {} ops in {:?}", c[0].nodes, c[0].explained_in);
}

#[test]
fn a_moving_slice_is_healed_and_gives_the_same_numbers() {
    let _alone = alone();
    let x = randn(&[40]).requires_grad_(true);
    let step = |i: i64| {
        let y = x.narrow(0, i, 10).square().sum();
        y.backward();
        let g = x.grad().unwrap();
        x.set_grad(None);
        sync();
        (y.item(), g.to_vec::<f32>())
    };
    let plain: Vec<_> = {
        xlazy::insight::set_healing(false);
        let all = (0..6).map(step).collect();
        xlazy::insight::set_healing(true);
        all
    };
    let mut compiled = 0;
    for i in [5, 3, 2, 0, 1, 4] {
        let mut result = None;
        compiled += during(|| result = Some(step(i))).len();
        assert_eq!(result.as_ref(), Some(&plain[i as usize]));
    }
    // Every position is in the cache from before healing.
    assert_eq!(compiled, 0);
    let positions = [17, 23, 9, 30, 11];
    let counts: Vec<usize> = positions.iter().map(|&i| during(|| drop(step(i))).len()).collect();
    assert_eq!(counts, [1, 0, 0, 0, 0], "healed at the next miss");
    assert!(xlazy::insight::healed().iter().any(|h| h.op == "slice"));
}

#[test]
fn s13_masked_select_and_nonzero_have_sizes_that_depend_on_the_data() {
    let _alone = alone();
    let step = |data: [f64; 5]| {
        let x = tensor(data);
        let pos = x.masked_select(&x.gt(0.0));
        let neg = x.masked_select(&x.lt(0.0));
        let place = x.nonzero();
        let y = (pos * 1.5).sum() - (neg * 2.5).sum() + place.sum() * 0.5;
        sync();
        y
    };
    let lines = [line!() - 7, line!() - 6, line!() - 5];
    assert!(during(|| drop(step([1., 2., 3., -1., -2.]))).len() <= 3);
    let c = during(|| drop(step([1., 2., -3., -1., -2.])));
    explained(&c, Class::Shape, &lines, "depends on the data");
    let c = during(|| drop(step([1., 2., 3., -1., 0.])));
    explained(&c, Class::Shape, &lines, "depends on the data");
    assert_eq!(during(|| drop(step([4., 5., -6., -7., -8.]))).len(), 0);
}

/// The whole of a tensor is no op where a part of it is one: drawn sizes, dimensions and directions.
#[test]
fn a_part_where_the_whole_was_taken_is_a_size() {
    let _alone = alone();
    let mut r = support::Seeded(5);
    for round in 0..24 {
        let shape: Vec<usize> = (0..1 + r.below(3)).map(|_| 3 + r.below(5)).collect();
        let cut: Vec<usize> = shape.iter().map(|n| if r.below(2) == 0 { *n } else { 1 + r.below(n - 1) }).collect();
        if cut == shape {
            continue;
        }
        xlazy::insight::forget();
        let x = randn(&shape);
        let w = randn(&[1]).requires_grad_(round % 2 == 0);
        let step = |sizes: &[usize]| {
            let part = sizes.iter().enumerate().fold(x.clone(), |x, (d, n)| x.narrow(d as i64, 0, *n as i64));
            let y = (part * &w).tanh().sum();
            if round % 2 == 0 {
                y.backward();
            }
            sync();
            y
        };
        let line = line!() - 8;
        let (first, second) = if r.below(2) == 0 { (&shape, &cut) } else { (&cut, &shape) };
        (0..2).for_each(|_| drop(step(first)));
        w.set_grad(None);
        let c = during(|| drop(step(second)));
        explained(&c, Class::Shape, &[line], "take all of it");
        assert!(c[0].sentence().contains("all of f32"), "{}", c[0].sentence());
    }
}

#[test]
fn gradients_that_are_read_one_by_one_run_the_model_again() {
    let _alone = alone();
    let sizes: [&[usize]; 4] = [&[8, 6], &[6], &[6, 4], &[4]];
    let all: Vec<Tensor> = sizes.map(|s| randn(s).requires_grad_(true)).to_vec();
    let x = randn(&[16, 8]);
    let backward = || {
        let h = (x.matmul(&all[0]) + &all[1]).tanh();
        (h.matmul(&all[2]) + &all[3]).square().mean().backward();
    };
    let made = line!() - 2;
    let read = |t: &Tensor| drop(t.grad().unwrap().norm().to_vec::<f32>());
    let read_at = line!() - 1;
    xlazy::insight::forget();
    backward();
    let each: Vec<Vec<Compilation>> = all.iter().map(|t| during(|| read(t))).collect();
    for c in &each[1..] {
        explained(c, Class::EarlyRead, &[read_at], &format!("`sync()` behind the line at explain.rs:{made}"));
    }
    // Two that had to be compiled are enough.
    assert!(each[3][0].sentence().contains("run for good now"), "{}", each[3][0].sentence());
    // As advised: what is read is data, and one line reads one after the other.
    all.iter().for_each(|t| t.set_grad(None));
    xlazy::insight::forget();
    backward();
    sync();
    let each: Vec<Vec<Compilation>> = all.iter().map(|t| during(|| read(t))).collect();
    for c in &each[1..] {
        explained(c, Class::Shape, &[read_at], "another tensor, which is read at the same line");
    }
}

#[test]
fn what_only_the_first_round_ran_was_left_by_another_line() {
    let _alone = alone();
    xlazy::insight::forget();
    let a = randn(&[16, 16]);
    let left = a.matmul(&a).exp().softmax(0).sum();
    let line = line!() - 1;
    let mut z = tensor(1.0);
    let mut round = || {
        z = &z * 1.1 + 0.1;
        sync();
    };
    assert_eq!(during(&mut round).len(), 1);
    explained(&during(&mut round), Class::Structure, &[line], "left pending: expected once");
    drop(left);
}

/// What `sync()` would make of rounds that nothing ends: one program, one for each size, or one for each number of ops.
#[test]
fn what_rounds_are_once_something_ends_them() {
    let _alone = alone();
    let mut random = fastrand::Rng::with_seed(161);
    for said in ["all rounds are one program", "each size is a program", "a program of its own where it has other ops"]
    {
        for _ in 0..3 {
            let (rows, more, inner) = (random.usize(2..5), random.usize(1..3), random.usize(1..4));
            let mut x = randn(&[rows, 4]);
            let mut round = |n: usize| {
                match said.as_bytes() {
                    [b'e', ..] => x = cat(&[&x, &x.narrow(0, -1, 1).tanh().expand([more, 4])], 0),
                    _ => {
                        (0..if said.starts_with("a p") { n + inner } else { inner }).for_each(|_| x = (&x * 1.5).tanh())
                    }
                }
                x.sum().to_vec::<f32>();
            };
            xlazy::insight::forget();
            during(|| round(0));
            // The line ends them by itself in the end.
            let said = [said, "from now on", "expected once", "allocate it once", "every round is the same program"];
            for n in 1..8 {
                let c = during(|| round(n));
                assert!(c.iter().all(|c| said.iter().any(|s| c.sentence().contains(s))), "{}", c[0].sentence());
                assert!(n < 6 || !said[0].starts_with("all") || c.is_empty());
            }
        }
    }
}
