//! A learning rate that falls when a metric does not become better any more.
use super::{Optimizer, StateDict, number};
use crate::{Result, Tensor};

const STATE: [&str; 3] = ["best", "num_bad_epochs", "cooldown_counter"];

/// What [`ReduceLROnPlateau::with`] takes; torch's defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlateauOptions {
    /// More is better (`mode="max"`).
    pub maximize: bool,
    pub factor: f64,
    pub patience: usize,
    pub threshold: f64,
    /// The threshold is a difference, not a share (`threshold_mode="abs"`).
    pub absolute: bool,
    pub cooldown: usize,
    pub min_lr: f64,
    pub eps: f64,
}

impl Default for PlateauOptions {
    fn default() -> PlateauOptions {
        PlateauOptions {
            maximize: false,
            factor: 0.1,
            patience: 10,
            threshold: 1e-4,
            absolute: false,
            cooldown: 0,
            min_lr: 0.0,
            eps: 1e-8,
        }
    }
}

/// Times `factor` when a metric has not become better for `patience` epochs (`torch.optim.lr_scheduler.ReduceLROnPlateau`).
///
/// ```
/// use xlazy::prelude::*;
/// let w = tensor([1.0]).requires_grad_(true);
/// let mut opt = optim::SGD::new([&w], 1.0);
/// let mut schedule = optim::ReduceLROnPlateau::new().patience(1);
/// [3.0, 3.0, 3.0].into_iter().for_each(|loss| schedule.step(&mut opt, loss));
/// assert_eq!(opt.lr(), 0.1);
/// ```
pub struct ReduceLROnPlateau {
    options: PlateauOptions,
    best: f64,
    bad: usize,
    cooling: usize,
}

impl Default for ReduceLROnPlateau {
    fn default() -> ReduceLROnPlateau {
        ReduceLROnPlateau::with(PlateauOptions::default())
    }
}

impl ReduceLROnPlateau {
    /// With torch's defaults; the methods set options by their names.
    pub fn new() -> ReduceLROnPlateau {
        ReduceLROnPlateau::default()
    }

    pub fn with(options: PlateauOptions) -> ReduceLROnPlateau {
        let best = if options.maximize { f64::NEG_INFINITY } else { f64::INFINITY };
        ReduceLROnPlateau { options, best, bad: 0, cooling: 0 }
    }

    /// More is better (`mode="max"`).
    pub fn maximize(self, on: bool) -> ReduceLROnPlateau {
        ReduceLROnPlateau::with(PlateauOptions { maximize: on, ..self.options })
    }

    /// What the rate is multiplied with.
    pub fn factor(mut self, factor: f64) -> ReduceLROnPlateau {
        self.options.factor = factor;
        self
    }

    /// The epochs without a better metric that are waited for.
    pub fn patience(mut self, epochs: usize) -> ReduceLROnPlateau {
        self.options.patience = epochs;
        self
    }

    /// By how much a metric has to be better, as a share of the best.
    pub fn threshold(mut self, threshold: f64) -> ReduceLROnPlateau {
        self.options.threshold = threshold;
        self
    }

    /// The threshold is a difference, not a share (`threshold_mode="abs"`).
    pub fn absolute(mut self, on: bool) -> ReduceLROnPlateau {
        self.options.absolute = on;
        self
    }

    /// The epochs after a change in which nothing is counted.
    pub fn cooldown(mut self, epochs: usize) -> ReduceLROnPlateau {
        self.options.cooldown = epochs;
        self
    }

    /// The rate is never below this.
    pub fn min_lr(mut self, min_lr: f64) -> ReduceLROnPlateau {
        self.options.min_lr = min_lr;
        self
    }

    /// What the next epoch depends on, by torch's names (`torch.optim.lr_scheduler.ReduceLROnPlateau.state_dict`); the rates are the
    /// optimizer's.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let mut opt = optim::SGD::new([nn::parameter(tensor([1.0]))], 1.0);
    /// let (mut schedule, mut again) = (optim::ReduceLROnPlateau::new().patience(1), optim::ReduceLROnPlateau::new().patience(1));
    /// [3.0, 3.0].into_iter().for_each(|loss| schedule.step(&mut opt, loss));
    /// again.load_state_dict(&schedule.state_dict()).unwrap();
    /// again.step(&mut opt, 3.0);
    /// assert_eq!(opt.lr(), 0.1);
    /// ```
    pub fn state_dict(&self) -> Vec<(String, Tensor)> {
        let values = [self.best, self.bad as f64, self.cooling as f64];
        STATE.iter().zip(values).map(|(name, value)| number(name, value)).collect()
    }

    /// Takes over what [`ReduceLROnPlateau::state_dict`] gave; an error where some of it is missing, and then nothing has changed.
    pub fn load_state_dict(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        let state = StateDict(state);
        let [best, bad, cooling] = STATE.map(|name| state.number(name));
        (self.best, self.bad, self.cooling) = (best?, bad? as usize, cooling? as usize);
        Ok(())
    }

    /// Ends an epoch that had this metric.
    pub fn step(&mut self, optimizer: &mut dyn Optimizer, metric: f64) {
        let o = self.options;
        let bound = match (o.maximize, o.absolute) {
            (false, false) => self.best * (1.0 - o.threshold),
            (false, true) => self.best - o.threshold,
            (true, false) => self.best * (1.0 + o.threshold),
            (true, true) => self.best + o.threshold,
        };
        let better = if o.maximize { metric > bound } else { metric < bound };
        if better {
            (self.best, self.bad) = (metric, 0);
        } else {
            self.bad += 1;
        }
        if self.cooling > 0 {
            self.cooling -= 1;
            self.bad = 0;
        }
        if self.bad > o.patience {
            let lower = |lr: f64| {
                let new = (lr * o.factor).max(o.min_lr);
                if lr - new > o.eps { new } else { lr }
            };
            optimizer.set_lrs(&optimizer.lrs().into_iter().map(lower).collect::<Vec<_>>());
            (self.cooling, self.bad) = (o.cooldown, 0);
        }
    }
}
