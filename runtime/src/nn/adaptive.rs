//! The softmax over very many classes of which few are frequent.
use super::linear::Linear;
use super::module::{AsPart, Module, Parts, at_caller};
use crate::ops::{cat, where_};
use crate::tensor::{Tensor, refuse};

/// Log-probabilities of many classes, the frequent ones first: the classes behind each cutoff are one class of the head, and have a projection
/// of their own whose size is `div_value` times less from one to the next (`torch.nn.AdaptiveLogSoftmaxWithLoss`, Grave et al. 2017).
/// What is computed has one size whatever the targets are, so it is one program: the parameters are fewer, the products are not
/// skipped as torch does.
///
/// ```
/// use xlazy::prelude::*;
/// let m = nn::AdaptiveLogSoftmaxWithLoss::new(8, 20, &[4, 10]);
/// let (output, loss) = m.forward(&Tensor::ones([3, 8]), &tensor([0, 5, 19]));
/// assert_eq!((output.shape(), loss.dim()), (Shape::new(&[3]), 0));
/// assert_eq!(m.log_prob(&Tensor::ones([3, 8])).shape(), [3, 20]);
/// ```
pub struct AdaptiveLogSoftmaxWithLoss {
    cutoffs: Vec<i64>,
    head: Linear,
    tail: Vec<Tail>,
}

/// The projection of the classes between two cutoffs.
struct Tail(Linear, Linear);

impl AsPart for Tail {
    fn show_part(&self, name: &str, parts: &mut Parts) {
        parts.add(&format!("{name}.0"), &self.0);
        parts.add(&format!("{name}.1"), &self.1);
    }
}

impl AdaptiveLogSoftmaxWithLoss {
    #[track_caller]
    pub fn new(in_features: usize, n_classes: usize, cutoffs: &[usize]) -> AdaptiveLogSoftmaxWithLoss {
        AdaptiveLogSoftmaxWithLoss::with(in_features, n_classes, cutoffs, 4.0, false)
    }

    /// As torch's, with all that it takes.
    #[track_caller]
    pub fn with(
        in_features: usize,
        n_classes: usize,
        cutoffs: &[usize],
        div_value: f64,
        head_bias: bool,
    ) -> AdaptiveLogSoftmaxWithLoss {
        let grows = cutoffs.windows(2).all(|w| w[0] < w[1]) && cutoffs.first().is_some_and(|c| *c > 0);
        if !grows || cutoffs.last().is_none_or(|c| *c >= n_classes) {
            let why = format!("cutoffs grow, from 1 up to less than the {n_classes} classes, unlike {cutoffs:?}");
            refuse("AdaptiveLogSoftmaxWithLoss", &[], why);
        }
        at_caller(|| {
            let ends: Vec<usize> = cutoffs.iter().copied().chain([n_classes]).collect();
            let heads = cutoffs[0] + cutoffs.len();
            let head =
                if head_bias { Linear::new(in_features, heads) } else { Linear::without_bias(in_features, heads) };
            let tail = ends.windows(2).enumerate().map(|(i, w)| {
                let size = (in_features as f64 / div_value.powi(i as i32 + 1)).floor() as usize;
                Tail(Linear::without_bias(in_features, size), Linear::without_bias(size, w[1] - w[0]))
            });
            let tail = tail.collect();
            AdaptiveLogSoftmaxWithLoss { cutoffs: ends.iter().map(|&c| c as i64).collect(), head, tail }
        })
    }

    /// The log-probability of each row's target, and the mean of these turned round: the loss.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, target: &Tensor) -> (Tensor, Tensor) {
        at_caller(|| {
            let head = self.head.forward(x).log_softmax(-1);
            let at = |scores: &Tensor, class: &Tensor| scores.gather(-1, &class.unsqueeze(-1)).squeeze_dim(-1);
            let shortlist = self.cutoffs[0];
            let mut output = at(&head, &target.clamp(0, shortlist - 1));
            for (i, (tail, w)) in self.tail.iter().zip(self.cutoffs.windows(2)).enumerate() {
                let inside = target.ge(w[0]).logical_and(target.lt(w[1]));
                let scores = tail.1.forward(&tail.0.forward(x)).log_softmax(-1);
                let class = (target - w[0]).clamp(0, w[1] - w[0] - 1);
                let there = head.select(-1, shortlist + i as i64) + at(&scores, &class);
                output = where_(&inside, &there, &output);
            }
            let loss = -output.mean();
            (output, loss)
        })
    }

    /// The log-probabilities of all classes, [n, classes].
    #[track_caller]
    pub fn log_prob(&self, x: &Tensor) -> Tensor {
        at_caller(|| {
            let head = self.head.forward(x).log_softmax(-1);
            let shortlist = self.cutoffs[0];
            let mut all = vec![head.narrow(-1, 0, shortlist)];
            for (i, tail) in self.tail.iter().enumerate() {
                let scores = tail.1.forward(&tail.0.forward(x)).log_softmax(-1);
                all.push(scores + head.narrow(-1, shortlist + i as i64, 1));
            }
            cat(&all, -1)
        })
    }

    /// The most probable class of each row.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        at_caller(|| self.log_prob(x).argmax_dim(-1, false))
    }
}

impl Module for AdaptiveLogSoftmaxWithLoss {
    fn parts(&self, p: &mut Parts) {
        p.setting("cutoffs", &self.cutoffs);
        p.add("head", &self.head);
        p.add("tail", &self.tail);
    }
}
