//! Smaller batches, drawn at random: what is left at the end of an epoch is told from another loader's batches, and from what
//! nobody says anything of.
use super::rates::{alone, seeds};
use super::support::Seeded;
use xlazy::insight::{Class, compilations, forget};
use xlazy::prelude::*;

/// Where the batch comes from whose size changes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum From {
    /// The end of an epoch; of another loader with batches as large, where so.
    End { other: bool },
    /// Another loader, whose batches all have so many rows.
    Other(usize),
    /// The same loader, whose batches are of several sizes.
    Several,
    /// Made by hand, by the line that made the others.
    Hand,
    /// Made by hand, elsewhere.
    Elsewhere,
}

struct Sizes(Vec<usize>);

impl data::BatchSampler for Sizes {
    fn batches(&self, _samples: usize, _seed: u64) -> Vec<Vec<usize>> {
        self.0.iter().map(|&n| (0..n).collect()).collect()
    }
}

/// A step drawn at random: layers, an optimizer or none, ended by a barrier or by a read.
struct Work {
    layers: Vec<nn::Linear>,
    acts: Vec<usize>,
    optimizer: Option<optim::SGD>,
    reads: bool,
}

impl Work {
    fn draw(r: &mut Seeded) -> Work {
        let widths: Vec<usize> = [5].into_iter().chain((0..r.below(3)).map(|_| 4 + r.below(4))).chain([3]).collect();
        let layers: Vec<nn::Linear> = widths.windows(2).map(|w| nn::Linear::new(w[0], w[1])).collect();
        let parameters: Vec<Tensor> = layers.iter().flat_map(|l| l.parameters()).collect();
        let trains = r.below(3) > 0;
        let acts = layers.iter().map(|_| r.below(3)).collect();
        let optimizer = trains.then(|| optim::SGD::new(&parameters, 0.1));
        Work { layers, acts, optimizer, reads: !trains && r.below(2) == 0 }
    }

    fn step(&mut self, [x, y]: [Tensor; 2]) {
        let mut h = x;
        for (l, act) in self.layers.iter().zip(&self.acts) {
            h = l.forward(&h);
            h = [h.relu(), h.tanh(), h.clone()][*act].clone();
        }
        let loss = h.mse_loss(&y, Reduction::Mean);
        if let Some(o) = &mut self.optimizer {
            o.zero_grad();
            loss.backward();
            o.step();
        }
        match self.reads {
            true => drop(loss.item()),
            false => sync(),
        }
    }
}

fn by_hand(rows: usize) -> [Tensor; 2] {
    [5, 3].map(|width| Tensor::from_vec(vec![0.5f32; rows * width], [rows, width]))
}

fn samples(n: usize) -> data::TensorDataset<2> {
    let [x, y] = by_hand(n);
    data::TensorDataset::new([&x, &y])
}

/// What was said of the steps after those that are always the same.
fn attempt(r: &mut Seeded, from: From, full: usize, rest: usize) -> (bool, String) {
    forget();
    let mut work = Work::draw(r);
    sync();
    let options = data::DataLoaderOptions {
        shuffle: r.below(2) == 0,
        workers: r.below(2),
        sync: r.below(4) == 0,
        ..Default::default()
    };
    let rounds = 1 + r.below(3);
    let n = full * rounds + if from == (From::End { other: false }) { rest } else { 0 };
    let mut loader = data::DataLoader::with(samples(n), full, options);
    if from == From::Several {
        let mut sizes = vec![full; rounds];
        sizes.extend([rest; 2]);
        loader = loader.batch_sampler(Sizes(sizes));
    }
    let hand = matches!(from, From::Hand);
    // In a list first, or one by one.
    let listed = r.below(2) == 0;
    let mut batches: Box<dyn Iterator<Item = [Tensor; 2]>> = match (hand, listed) {
        (true, _) => Box::new(std::iter::repeat_n(full, rounds).chain([rest]).map(by_hand)),
        (false, true) => Box::new(loader.iter().collect::<Vec<_>>().into_iter()),
        (false, false) => Box::new(loader.iter()),
    };
    (0..rounds).for_each(|_| work.step(batches.next().expect("a whole batch")));
    let more = |n: usize, size: usize| data::DataLoader::with(samples(n), size, options);
    // What the second step makes of the first's state is compiled before.
    if rounds == 1 {
        more(full, full).iter().for_each(|b| work.step(b));
    }
    let before = compilations().len();
    match from {
        From::End { other: false } | From::Several | From::Hand => work.step(batches.next().expect("one more")),
        From::End { other: true } => more(full + rest, full).iter().for_each(|b| work.step(b)),
        From::Other(rows) => more(rows * (1 + r.below(2)), rows).iter().for_each(|b| work.step(b)),
        From::Elsewhere => work.step([5, 3].map(|width| Tensor::from_vec(vec![0.5f32; rest * width], [rest, width]))),
    }
    let all = compilations();
    let why: Vec<_> = all[before..].iter().filter_map(|c| c.why.clone()).collect();
    let said = why.iter().map(|w| format!("{:?}: {}", w.class, w.fix)).collect::<Vec<_>>().join("\n");
    let is_shape = why.len() == 1 && why[0].class == Class::Shape;
    let (last, perhaps) = (said.contains("a short last batch: "), said.contains("if it is a short last batch"));
    let right = match from {
        From::End { .. } => last && said.contains("`.drop_last(true)`") != work.reads,
        From::Other(_) => !last && !perhaps && said.contains("batches of two loaders"),
        From::Several | From::Elsewhere => !last && !perhaps && !said.contains("two loaders"),
        From::Hand => !last && perhaps != work.reads,
    };
    (is_shape && right, said)
}

pub fn told_apart() {
    let _alone = alone();
    let (seeds, _) = seeds(150);
    let mut wrong = Vec::new();
    for seed in seeds {
        let mut r = Seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let full = 4 + r.below(9);
        let rest = 1 + r.below(full - 1);
        let kinds = [
            From::End { other: false },
            From::End { other: true },
            From::Other(rest),
            From::Other(full + 1 + r.below(8)),
            From::Several,
            From::Hand,
            From::Elsewhere,
        ];
        let from = kinds[seed as usize % kinds.len()];
        let (right, said) = attempt(&mut r, from, full, rest);
        if !right {
            wrong.push(format!("seed {seed}, {from:?}, {full} rows, then {rest}:\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{} wrong", wrong.join("\n"), wrong.len());
}
