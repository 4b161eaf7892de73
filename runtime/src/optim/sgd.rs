//! Stochastic gradient descent.
use super::{Numbers, Optimizer, StateDict, follow, listed, loaded, number, settle, zeros_like};
use crate::Result;
use crate::changes::Changes;
use crate::insight::mode::{Derived, derives};
use crate::tensor::{Tensor, on_behalf};
use std::borrow::Borrow;
use std::panic::Location;

/// What [`SGD::with`] takes beside the learning rate; all off by default, as in torch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SGDOptions {
    pub momentum: f64,
    pub dampening: f64,
    pub weight_decay: f64,
    pub nesterov: bool,
}

/// Gradient descent with momentum, dampening, weight decay and Nesterov's look ahead (`torch.optim.SGD`).
///
/// ```
/// use xlazy::prelude::*;
/// let w = tensor([1.0]).requires_grad_(true);
/// let mut opt = optim::SGD::with([&w], 0.1, optim::SGDOptions { momentum: 0.9, ..Default::default() });
/// (&w * 3.0).sum().backward();
/// opt.step();
/// assert_eq!(w.item() as f32, 0.7);
/// ```
pub struct SGD {
    parameters: Vec<Tensor>,
    momenta: Vec<Tensor>,
    /// Whether a parameter has been stepped before: dampening starts at its second step.
    seen: Vec<bool>,
    lr: f64,
    options: SGDOptions,
}

impl SGD {
    #[track_caller]
    pub fn new(parameters: impl IntoIterator<Item = impl Borrow<Tensor>>, lr: f64) -> SGD {
        SGD::with(parameters, lr, SGDOptions::default())
    }

    /// With options. What is pending runs now, so that the first step is the same program as all others.
    #[track_caller]
    pub fn with(parameters: impl IntoIterator<Item = impl Borrow<Tensor>>, lr: f64, options: SGDOptions) -> SGD {
        let parameters = listed(parameters);
        let at = Location::caller();
        // torch starts from the first gradient: zeros times momentum plus that gradient are the same.
        let momenta = match options.momentum {
            0.0 => Vec::new(),
            _ => on_behalf(at, false, || zeros_like(&parameters)),
        };
        settle();
        SGD { seen: vec![false; parameters.len()], parameters, momenta, lr, options }
    }
}

impl Optimizer for SGD {
    #[inline]
    #[track_caller]
    fn step(&mut self) {
        self.run()
    }

    fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }

    fn state_dict(&self) -> Vec<(String, Tensor)> {
        let mut out = vec![number("lr", self.lr)];
        for (i, seen) in self.seen.iter().enumerate() {
            out.push(number(&format!("state.{i}.stepped"), f64::from(u8::from(*seen))));
        }
        let buffers = self.momenta.iter().enumerate();
        out.extend(buffers.map(|(i, m)| (format!("state.{i}.momentum_buffer"), m.clone())));
        out
    }

    fn load_state_dict(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        let state = StateDict(state);
        let lr = state.number("lr")?;
        let seen = (0..self.parameters.len()).map(|i| Ok(state.number(&format!("state.{i}.stepped"))? != 0.0));
        let seen = seen.collect::<Result<_>>()?;
        let momenta = self.momenta.iter().enumerate();
        let momenta = momenta.map(|(i, m)| state.tensor(&format!("state.{i}.momentum_buffer"), m));
        let momenta = momenta.collect::<Result<_>>()?;
        loaded([(&self.momenta, momenta)]).apply();
        (self.lr, self.seen) = (lr, seen);
        settle();
        Ok(())
    }

    fn lr(&self) -> f64 {
        self.lr
    }

    fn set_lr(&mut self, lr: f64) {
        self.lr = lr;
    }
}

impl SGD {
    #[track_caller]
    fn run(&mut self) {
        let SGDOptions { momentum, dampening, weight_decay, nesterov } = self.options;
        on_behalf(Location::caller(), false, || {
            let _follows = derives(Derived::Update);
            follow(&self.momenta, &self.parameters);
            let (mut n, mut changes, mut seen) = (Numbers::default(), Changes::new(), self.seen.clone());
            for (i, p) in self.parameters.iter().enumerate() {
                let Some(mut d) = p.grad() else { continue };
                let dtype = p.dtype();
                if weight_decay != 0.0 {
                    d = d.add(p * n.get(0, dtype, 0, weight_decay));
                }
                if momentum != 0.0 {
                    let m = n.get(1, dtype, 0, momentum);
                    let buf = &self.momenta[i];
                    let kept = buf * &m;
                    let new = match dampening {
                        0.0 => kept + &d,
                        _ => {
                            let share = if seen[i] { 1.0 - dampening } else { 1.0 };
                            kept + &d * n.get(2, dtype, seen[i] as u64, share)
                        }
                    };
                    d = if nesterov { d + &new * &m } else { new.clone() };
                    changes.assign("step", buf, new);
                }
                changes.assign("step", p, p - d * n.get(3, dtype, 0, self.lr));
                seen[i] = true;
            }
            changes.apply();
            self.seen = seen;
        });
    }
}
