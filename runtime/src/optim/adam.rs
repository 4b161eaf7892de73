//! Adam and AdamW.
use super::{Numbers, Optimizer, follow, listed, loaded, number, settle, zeros_like};
use crate::Result;
use crate::changes::Changes;
use crate::insight::mode::{Derived, derives};
use crate::tensor::{Tensor, on_behalf};
use std::borrow::Borrow;
use std::panic::Location;

/// What [`Adam::with`] and [`AdamW::with`] take beside the learning rate; the defaults are torch's. `weight_decay` is 0 in
/// `AdamOptions::default()`, and 0.01 in [`AdamW::new`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamOptions {
    pub betas: (f64, f64),
    pub eps: f64,
    pub weight_decay: f64,
}

impl Default for AdamOptions {
    fn default() -> AdamOptions {
        AdamOptions { betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.0 }
    }
}

struct Moments {
    parameters: Vec<Tensor>,
    means: Vec<Tensor>,
    squares: Vec<Tensor>,
    /// Steps taken, by parameter: one without a gradient takes none.
    steps: Vec<u64>,
    lr: f64,
    options: AdamOptions,
}

impl Moments {
    #[track_caller]
    fn new(parameters: impl IntoIterator<Item = impl Borrow<Tensor>>, lr: f64, options: AdamOptions) -> Moments {
        let parameters = listed(parameters);
        // Asked for in the closure, it would be the closure's own line.
        let at = Location::caller();
        let zeros = || on_behalf(at, false, || zeros_like(&parameters));
        let (means, squares, steps) = (zeros(), zeros(), vec![0; parameters.len()]);
        settle();
        Moments { parameters, means, squares, steps, lr, options }
    }

    fn state_dict(&self) -> Vec<(String, Tensor)> {
        let mut out = vec![number("lr", self.lr)];
        for i in 0..self.parameters.len() {
            out.push(number(&format!("state.{i}.step"), self.steps[i] as f64));
            out.push((format!("state.{i}.exp_avg"), self.means[i].clone()));
            out.push((format!("state.{i}.exp_avg_sq"), self.squares[i].clone()));
        }
        out
    }

    fn load_state_dict(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        let state = super::StateDict(state);
        let lr = state.number("lr")?;
        let (mut steps, mut means, mut squares) = (Vec::new(), Vec::new(), Vec::new());
        for (i, p) in self.parameters.iter().enumerate() {
            steps.push(state.number(&format!("state.{i}.step"))? as u64);
            means.push(state.tensor(&format!("state.{i}.exp_avg"), p)?);
            squares.push(state.tensor(&format!("state.{i}.exp_avg_sq"), p)?);
        }
        loaded([(&self.means, means), (&self.squares, squares)]).apply();
        (self.lr, self.steps) = (lr, steps);
        settle();
        Ok(())
    }

    // As torch's `_single_tensor_adam`; `decoupled` is what makes AdamW of Adam.
    #[track_caller]
    fn step(&mut self, decoupled: bool) {
        let AdamOptions { betas: (b1, b2), eps, weight_decay } = self.options;
        let lr = self.lr;
        on_behalf(Location::caller(), false, || {
            let _follows = derives(Derived::Update);
            follow(&self.means, &self.parameters);
            follow(&self.squares, &self.parameters);
            let (mut n, mut changes, mut steps) = (Numbers::default(), Changes::new(), self.steps.clone());
            for (i, p) in self.parameters.iter().enumerate() {
                let Some(mut g) = p.grad() else { continue };
                steps[i] += 1;
                let (dtype, t) = (p.dtype(), steps[i]);
                let (correction1, correction2) = (1.0 - b1.powf(t as f64), 1.0 - b2.powf(t as f64));
                let mut old = p.clone();
                if weight_decay != 0.0 {
                    match decoupled {
                        true => old = p * n.get(0, dtype, 0, 1.0 - lr * weight_decay),
                        false => g = g.add(p * n.get(1, dtype, 0, weight_decay)),
                    }
                }
                let (m, v) = (&self.means[i], &self.squares[i]);
                let mean = m + (&g - m) * n.get(2, dtype, 0, 1.0 - b1);
                let square = v * n.get(3, dtype, 0, b2) + g.square() * n.get(4, dtype, 0, 1.0 - b2);
                let root = square.sqrt() / n.get(5, dtype, t, correction2.sqrt()) + n.get(6, dtype, 0, eps);
                let new = old - &mean / root * n.get(7, dtype, t, lr / correction1);
                changes.assign("step", m, mean);
                changes.assign("step", v, square);
                changes.assign("step", p, new);
            }
            changes.apply();
            self.steps = steps;
        });
    }
}

macro_rules! adam {
    ($($(#[$doc:meta])* $name:ident, decoupled: $decoupled:literal, weight_decay: $decay:literal;)*) => {$(
        $(#[$doc])*
        pub struct $name(Moments);

        impl $name {
            #[track_caller]
            pub fn new(parameters: impl IntoIterator<Item = impl Borrow<Tensor>>, lr: f64) -> $name {
                $name::with(parameters, lr, AdamOptions { weight_decay: $decay, ..Default::default() })
            }

            /// With options. What is pending runs now, so that the first step is the same program as all others.
            #[track_caller]
            pub fn with(parameters: impl IntoIterator<Item = impl Borrow<Tensor>>, lr: f64, options: AdamOptions) -> $name {
                $name(Moments::new(parameters, lr, options))
            }
        }

        impl Optimizer for $name {
            #[inline]
            #[track_caller]
            fn step(&mut self) {
                self.0.step($decoupled)
            }

            fn parameters(&self) -> &[Tensor] {
                &self.0.parameters
            }

            fn lr(&self) -> f64 {
                self.0.lr
            }

            fn state_dict(&self) -> Vec<(String, Tensor)> {
                self.0.state_dict()
            }

            fn load_state_dict(&mut self, state: &[(String, Tensor)]) -> Result<()> {
                self.0.load_state_dict(state)
            }

            fn set_lr(&mut self, lr: f64) {
                self.0.lr = lr;
            }
        }
    )*};
}

adam! {
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
    Adam, decoupled: false, weight_decay: 0.0;

    /// Adam with weight decay of its own, 0.01 unless told otherwise (`torch.optim.AdamW`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let model = nn::Linear::new(2, 1);
    /// let mut opt = optim::AdamW::new(model.parameters(), 0.01);
    /// model.forward(&Tensor::ones([4, 2])).mean().backward();
    /// opt.step();
    /// opt.zero_grad();
    /// ```
    AdamW, decoupled: true, weight_decay: 0.01;
}
