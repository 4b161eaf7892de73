//! The recommendation model of facebookresearch/dlrm.
use crate::nn::module::at_caller;
use crate::nn::{EmbeddingBag, Linear, Module, Parts, ReLU, Sequential, Sigmoid, init};
use crate::tensor::{Tensor, refuse};
use crate::{cat, stack};

/// The sizes of a DLRM, by the names of its script's arguments.
#[derive(Clone, Debug)]
pub struct DlrmConfig {
    /// Rows of each table (`arch-embedding-size`).
    pub tables: Vec<usize>,
    /// The size of a row (`arch-sparse-feature-size`).
    pub size: usize,
    /// Sizes of the network of dense features, from their number on; one more layer leads to `size`.
    pub bot: Vec<usize>,
    /// Sizes of the network behind the products; the last is the number of outputs.
    pub top: Vec<usize>,
    /// The products of features with themselves, too (`arch-interaction-itself`).
    pub itself: bool,
}

/// Dense features through a network, sparse ones as sums of rows, the products of all pairs, and a network that gives a
/// probability.
///
/// ```
/// use xlazy::prelude::*;
/// use xlazy::models::{Dlrm, DlrmConfig};
/// let config = DlrmConfig { tables: vec![20, 30], size: 4, bot: vec![3, 8], top: vec![6, 1], itself: false };
/// let (indices, offsets) = (tensor([1, 2, 5]), tensor([0, 2]));
/// let bags = [(&indices, &offsets), (&indices, &offsets)];
/// assert_eq!(Dlrm::new(&config).forward(&Tensor::ones([2, 3]), &bags).shape(), [2, 1]);
/// ```
pub struct Dlrm {
    emb_l: Vec<EmbeddingBag>,
    bot_l: Sequential,
    top_l: Sequential,
    itself: bool,
}

/// Linear layers with a relu behind each, and behind the last a sigmoid where it is asked for.
fn network(sizes: &[usize], sigmoid: bool) -> Sequential {
    let mut layers: Vec<Box<dyn Module>> = Vec::new();
    for (i, pair) in sizes.windows(2).enumerate() {
        let (n, m) = (pair[0] as f64, pair[1] as f64);
        layers.push(Box::new(Linear {
            weight: init::normal([pair[1], pair[0]], (2.0 / (m + n)).sqrt()),
            bias: Some(init::normal([pair[1]], (1.0 / m).sqrt())),
        }));
        match sigmoid && i + 2 == sizes.len() {
            true => layers.push(Box::new(Sigmoid)),
            false => layers.push(Box::new(ReLU)),
        }
    }
    Sequential::new(layers)
}

impl Dlrm {
    #[track_caller]
    pub fn new(c: &DlrmConfig) -> Dlrm {
        at_caller(|| {
            let features = c.tables.len() + 1;
            let pairs = features * (features - 1) / 2 + if c.itself { features } else { 0 };
            let bot: Vec<usize> = c.bot.iter().copied().chain([c.size]).collect();
            let top: Vec<usize> = std::iter::once(c.size + pairs).chain(c.top.iter().copied()).collect();
            let table = |rows: &usize| {
                let mut bag = EmbeddingBag::new(1, 1);
                bag.weight = init::uniform([*rows, c.size], 1.0 / (*rows as f64).sqrt());
                bag
            };
            Dlrm {
                emb_l: c.tables.iter().map(table).collect(),
                bot_l: network(&bot, false),
                top_l: network(&top, true),
                itself: c.itself,
            }
        })
    }

    /// The probability for each example: dense features [n, dense], and for each table the indices of all examples with the place
    /// where each example's begin.
    #[track_caller]
    pub fn forward(&self, dense: &Tensor, bags: &[(&Tensor, &Tensor)]) -> Tensor {
        at_caller(|| {
            if bags.len() != self.emb_l.len() {
                let why = format!(
                    "{} tables need as many pairs of indices and offsets, not {}",
                    self.emb_l.len(),
                    bags.len()
                );
                refuse("Dlrm", &[dense], why);
            }
            let x = self.bot_l.forward(dense);
            let mut features = vec![x.clone()];
            features
                .extend(self.emb_l.iter().zip(bags).map(|(table, (indices, offsets))| table.bags(indices, offsets)));
            let all = stack(&features.iter().collect::<Vec<_>>(), 1);
            let products = all.bmm(&all.transpose(1, 2));
            // row by row what is below the diagonal
            let (from, more) = if self.itself { (0, 1) } else { (1, 0) };
            let below = (from..features.len() as i64).map(|i| products.select(1, i).narrow(1, 0, i + more));
            let parts: Vec<Tensor> = std::iter::once(x).chain(below).collect();
            self.top_l.forward(&cat(&parts.iter().collect::<Vec<_>>(), 1))
        })
    }
}

impl Module for Dlrm {
    fn parts(&self, p: &mut Parts) {
        p.add("emb_l", &self.emb_l);
        p.add("bot_l", &self.bot_l);
        p.add("top_l", &self.top_l);
    }
}
