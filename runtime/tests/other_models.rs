//! One function trains several models: what the second one compiles is told as another model's, whichever optimizer trains it and
//! however the loop reads and syncs. Nothing is compiled or run (dry mode).
mod support;

use std::sync::Mutex;
use support::{Seeded, programs};
use xlazy::insight::{Class, Compilation, Explanation, compilations};
use xlazy::prelude::*;
use xlazy_core::device::go_dry;

static ONE: Mutex<()> = Mutex::new(());

/// How a loop trains.
#[derive(Clone, Copy, Debug)]
struct Way {
    optimizer: usize,
    steps: usize,
    barrier: usize,
    reads: usize,
    clears_first: bool,
    clips: bool,
    held: bool,
}

fn net(widths: &[usize], normed: bool) -> nn::Sequential {
    let mut layers: Vec<Box<dyn Module>> = Vec::new();
    for pair in widths.windows(2) {
        layers.push(Box::new(nn::Linear::new(pair[0], pair[1])));
        if normed {
            layers.push(Box::new(nn::LayerNorm::new(pair[1])));
        }
        layers.push(Box::new(nn::GELU));
    }
    nn::Sequential::new(layers)
}

fn optimizer(which: usize, p: Vec<Tensor>) -> Box<dyn Optimizer> {
    match which {
        0 => Box::new(optim::SGD::new(p, 0.1)),
        1 => Box::new(optim::SGD::with(p, 0.1, optim::SGDOptions { momentum: 0.9, ..Default::default() })),
        2 => Box::new(optim::Adam::new(p, 0.1)),
        3 => Box::new(optim::RMSprop::new(p, 0.1)),
        _ => Box::new(optim::AdamW::new(p, 0.1)),
    }
}

fn fit(net: &nn::Sequential, x: &Tensor, y: &Tensor, way: Way) {
    let mut opt = optimizer(way.optimizer, net.parameters());
    let mut losses = Vec::new();
    for _ in 0..way.steps {
        if way.clears_first {
            opt.zero_grad();
        }
        let loss = net.forward(x).mse_loss(y, Reduction::Mean);
        loss.backward();
        if way.clips {
            optim::clip_grad_norm_(&net.parameters(), 1.0);
        }
        opt.step();
        if !way.clears_first {
            opt.zero_grad();
        }
        match way.barrier {
            0 => {}
            1 => sync(),
            _ => {
                if way.reads > 0 {
                    loss.item();
                }
                sync();
            }
        }
        if way.reads > 1 {
            loss.item();
        }
        if way.held {
            losses.push(loss.detach());
        }
    }
}

/// What the second model has otherwise.
#[derive(Clone, Copy, PartialEq)]
enum Other {
    Sizes,
    Mesh,
    Both,
}

/// Trains one model and then another, and looks at what is told of the second one's programs.
#[track_caller]
fn all_told(seeds: std::ops::Range<u64>, other: Other, right: impl Fn(&Compilation, &Explanation) -> bool) {
    let _alone = ONE.lock().unwrap_or_else(|p| p.into_inner());
    go_dry(2);
    let (mut wrong, mut told, mut all) = (Vec::new(), 0, 0);
    for seed in seeds {
        xlazy::insight::forget();
        let mut r = Seeded(seed);
        let way = Way {
            optimizer: r.below(5),
            steps: 1 + r.below(3),
            // Reads without a barrier have a cause of their own.
            barrier: if other == Other::Sizes { r.below(3) } else { 1 + r.below(2) },
            reads: r.below(3),
            clears_first: r.below(2) == 0,
            clips: r.below(4) == 0,
            held: r.below(3) == 0,
        };
        let (batch, depth, normed) = (4 + 2 * r.below(3), 1 + r.below(3), r.below(3) == 0);
        let mut widths: Vec<usize> = (0..=depth + 1).map(|_| 8 + 2 * r.below(4)).collect();
        let (mut x, mut y) = (Tensor::randn([batch, widths[0]]), Tensor::randn([batch, widths[depth + 1]]));
        sync();
        let first = net(&widths, normed);
        sync();
        // Sometimes trained twice: its programs are all there.
        (0..1 + r.below(2)).for_each(|_| fit(&first, &x, &y, way));
        sync();
        let changed = 1 + r.below(depth);
        if other != Other::Mesh {
            widths[changed] += 16 * (1 + r.below(2));
        }
        let second = net(&widths, normed);
        sync();
        if other != Other::Sizes {
            let mesh = Mesh::new(&[("data", 2)]);
            match r.below(2) {
                0 => drop(nn::parallel::data_parallel(&second, &mesh)),
                _ => drop(nn::parallel::fsdp(&second, &mesh, "data")),
            }
            let split: &[Option<&str>] = &[Some("data"), None];
            (x, y) = (mark_sharding(&x.copy(), &mesh, split), mark_sharding(&y.copy(), &mesh, split));
            sync();
        }
        let before = compilations().len();
        fit(&second, &x, &y, way);
        sync();
        for c in &compilations()[before..] {
            all += 1;
            let Some(why) = &c.why else { continue };
            told += 1;
            if !right(c, why) || c.text().contains("unclassified") {
                wrong.push(format!("seed {seed}, {way:?}, {widths:?} at {changed}\n{}", c.text()));
            }
        }
    }
    assert!(told * 10 > all * 4, "{told} of {all} programs were explained");
    assert!(wrong.is_empty(), "{} of {told}:\n{}", wrong.len(), wrong.iter().take(3).cloned().collect::<String>());
}

#[test]
fn another_model_in_the_same_function_is_told_as_one() {
    all_told(programs(60), Other::Sizes, |_, why| why.class == Class::Structure && why.fix.contains("another model"));
}

#[test]
fn a_model_on_a_mesh_is_told_as_that() {
    all_told(programs(40), Other::Mesh, |_, why| why.class == Class::Sharding);
}

#[test]
fn another_model_on_a_mesh_is_told_as_both() {
    // What a step leaves lies otherwise than what it began with in dry mode, which asks no partitioner.
    all_told(programs(40), Other::Both, |c, why| {
        let text = c.text();
        let both = text.contains("another model") && text.contains("mesh(data=2)") && !text.contains("pad");
        both || why.class == Class::Sharding && why.warm_up
    });
}
