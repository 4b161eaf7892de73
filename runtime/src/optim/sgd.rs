//! Stochastic gradient descent.
use super::core::{Kept, Rule, Update, kept, optimizers};
use crate::tensor::Tensor;

/// What [`SGD::with`] takes beside the learning rate; all off by default, as in torch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SGDOptions {
    pub momentum: f64,
    pub dampening: f64,
    pub weight_decay: f64,
    pub nesterov: bool,
}

impl Rule for SGDOptions {
    // torch starts from the first gradient: zeros times momentum plus that gradient are the same.
    fn state(&self, _: &Tensor, _: f64) -> Vec<Kept> {
        if self.momentum == 0.0 { vec![] } else { vec![kept("momentum_buffer")] }
    }

    fn update(&self, u: &mut Update) {
        u.decayed(0, self.weight_decay);
        let mut d = u.g.clone();
        if self.momentum != 0.0 {
            let m = u.n(1, self.momentum);
            let before = u.state(0) * &m;
            let new = match self.dampening {
                0.0 => before + &d,
                // dampening starts at the second step
                dampening => before + &d * u.at_step(2, if u.t > 1.0 { 1.0 - dampening } else { 1.0 }),
            };
            d = if self.nesterov { d + &new * &m } else { new.clone() };
            u.keep(0, new);
        }
        let new = u.p - d * u.n(3, u.lr);
        u.set(new);
    }

    fn momentum(&mut self) -> Option<&mut f64> {
        // without a buffer there is none to change
        (self.momentum != 0.0).then_some(&mut self.momentum)
    }
}

optimizers! {
    /// Gradient descent with momentum, dampening, weight decay and Nesterov's look ahead (`torch.optim.SGD`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let w = tensor([1.0]).requires_grad_(true);
    /// let mut opt = optim::SGD::new([&w], 0.1).momentum(0.9).weight_decay(1e-4).nesterov(true);
    /// (&w * 3.0).sum().backward();
    /// opt.step();
    /// assert!((w.item() - 0.42998).abs() < 1e-5);
    /// ```
    SGD, SGDOptions { momentum: f64, dampening: f64, weight_decay: f64, nesterov: bool };
}
