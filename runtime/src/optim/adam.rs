//! Adam and AdamW.
use super::core::{Kept, Rule, Update, kept, optimizers};
use crate::tensor::Tensor;

/// What [`Adam::with`] and [`AdamW::with`] take beside the learning rate; the defaults are torch's. `weight_decay` is 0 in
/// `AdamOptions::default()`, and 0.01 in [`AdamW::new`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamOptions {
    pub betas: (f64, f64),
    pub eps: f64,
    pub weight_decay: f64,
    /// By the largest mean of squares that there was.
    pub amsgrad: bool,
}

impl Default for AdamOptions {
    fn default() -> AdamOptions {
        AdamOptions { betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.0, amsgrad: false }
    }
}

/// As torch's `_single_tensor_adam`.
impl Rule for AdamOptions {
    fn state(&self, _: &Tensor, _: f64) -> Vec<Kept> {
        let mut all = vec![kept("exp_avg"), kept("exp_avg_sq")];
        if self.amsgrad {
            all.push(kept("max_exp_avg_sq"));
        }
        all
    }

    fn update(&self, u: &mut Update) {
        let AdamOptions { betas: (b1, b2), eps, weight_decay, .. } = *self;
        let (correction1, correction2) = (1.0 - b1.powf(u.t), 1.0 - b2.powf(u.t));
        let old = match u.decoupled {
            true => u.shrunk(0, weight_decay),
            false => {
                u.decayed(1, weight_decay);
                u.p.clone()
            }
        };
        let (m, v, g) = (u.state(0), u.state(1), u.g.clone());
        let mean = u.towards(2, &m, &g, 1.0 - b1);
        let square = v * u.n(3, b2) + g.square() * u.n(4, 1.0 - b2);
        let largest = match self.amsgrad {
            true => {
                let largest = u.state(2).maximum(&square);
                u.keep(2, largest.clone());
                largest
            }
            false => square.clone(),
        };
        let root = largest.sqrt() / u.at_step(5, correction2.sqrt()) + u.n(6, eps);
        let new = old - &mean / root * u.at_step(7, u.lr / correction1);
        u.keep(0, mean);
        u.keep(1, square);
        u.set(new);
    }

    fn momentum(&mut self) -> Option<&mut f64> {
        Some(&mut self.betas.0)
    }
}

optimizers! {
    /// Steps scaled by running means of the gradient and of its square (`torch.optim.Adam`); weight decay, if any, is added
    /// to the gradient.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let w = tensor([1.0]).requires_grad_(true);
    /// let mut opt = optim::Adam::new([&w], 0.1);
    /// (&w * 3.0).sum().backward();
    /// opt.step();
    /// assert!((w.item() - 0.9).abs() < 1e-6);
    /// ```
    Adam, AdamOptions { betas: (f64, f64), eps: f64, weight_decay: f64, amsgrad: bool };

    /// Adam with weight decay of its own, 0.01 unless told otherwise (`torch.optim.AdamW`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let model = nn::Linear::new(2, 1);
    /// let mut opt = optim::AdamW::new(model.parameters(), 0.01).betas((0.9, 0.95)).weight_decay(0.1);
    /// model.forward(&Tensor::ones([4, 2])).mean().backward();
    /// opt.step();
    /// opt.zero_grad();
    /// ```
    AdamW, AdamOptions { betas: (f64, f64), eps: f64, weight_decay: f64, amsgrad: bool } with { weight_decay: 0.01 }, decoupled;
}
