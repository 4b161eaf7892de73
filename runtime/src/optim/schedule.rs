//! Learning rates that change from epoch to epoch (`torch.optim.lr_scheduler`), in closed form: epoch `n` gives one rate.
use super::Optimizer;

/// Multiplies the first rate by what a function gives for the epoch (`LambdaLR`).
///
/// ```
/// use xlazy::prelude::*;
/// let w = tensor([1.0]).requires_grad_(true);
/// let mut opt = optim::SGD::new([&w], 0.8);
/// let mut schedule = optim::StepLR::new(&opt, 2, 0.5);
/// let rates: Vec<f64> = (0..4).map(|_| { schedule.step(&mut opt); opt.lr() }).collect();
/// assert_eq!(rates, [0.8, 0.4, 0.4, 0.2]);
/// ```
pub struct LambdaLR {
    first: f64,
    epoch: u64,
    factor: Box<dyn Fn(u64) -> f64 + Send + Sync>,
}

impl LambdaLR {
    pub fn new(optimizer: &dyn Optimizer, factor: impl Fn(u64) -> f64 + Send + Sync + 'static) -> LambdaLR {
        LambdaLR { first: optimizer.lr(), epoch: 0, factor: Box::new(factor) }
    }

    /// Ends an epoch: sets the rate of the next one.
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) {
        // The function is the notebook's own and may fail: then this is still the epoch that it was.
        let next = self.epoch + 1;
        optimizer.set_lr(self.first * (self.factor)(next));
        self.epoch = next;
    }
}

/// Times `gamma` every `step_size` epochs.
pub struct StepLR;

impl StepLR {
    #[allow(clippy::new_ret_no_self)]
    pub fn new(optimizer: &dyn Optimizer, step_size: u64, gamma: f64) -> LambdaLR {
        LambdaLR::new(optimizer, move |n| gamma.powf((n / step_size.max(1)) as f64))
    }
}

/// Times `gamma` every epoch.
pub struct ExponentialLR;

impl ExponentialLR {
    #[allow(clippy::new_ret_no_self)]
    pub fn new(optimizer: &dyn Optimizer, gamma: f64) -> LambdaLR {
        LambdaLR::new(optimizer, move |n| gamma.powf(n as f64))
    }
}

/// From `start` to `end` times the rate over `total` epochs, evenly.
pub struct LinearLR;

impl LinearLR {
    #[allow(clippy::new_ret_no_self)]
    pub fn new(optimizer: &mut dyn Optimizer, start: f64, end: f64, total: u64) -> LambdaLR {
        let done = move |n: u64| n.min(total) as f64 / total.max(1) as f64;
        let schedule = LambdaLR::new(optimizer, move |n| start + (end - start) * done(n));
        optimizer.set_lr(schedule.first * start);
        schedule
    }
}

/// Down to `eta_min` along half a cosine over `t_max` epochs.
pub struct CosineAnnealingLR;

impl CosineAnnealingLR {
    #[allow(clippy::new_ret_no_self)]
    pub fn new(optimizer: &dyn Optimizer, t_max: u64, eta_min: f64) -> LambdaLR {
        let first = optimizer.lr();
        let at = move |n: u64| {
            let wave = (1.0 + (std::f64::consts::PI * n as f64 / t_max.max(1) as f64).cos()) / 2.0;
            (eta_min + (first - eta_min) * wave) / first
        };
        LambdaLR::new(optimizer, at)
    }
}
