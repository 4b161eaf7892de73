//! Learning rates that change from epoch to epoch (`torch.optim.lr_scheduler`), in closed form: epoch `n` gives one rate of each
//! group's first one. Each has a type of its own, as in torch; all that they do is [`LRScheduler`]'s.
use super::{Optimizer, StateDict, number};
use crate::{Result, Tensor};
use std::f64::consts::PI;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// The rate of an epoch, of the first rate.
type Rate = Box<dyn Fn(usize, f64) -> f64 + Send + Sync>;

/// What every schedule is behind its own name (`torch.optim.lr_scheduler.LRScheduler`): a function that takes any of them takes
/// `&mut optim::LRScheduler`.
///
/// ```
/// use xlazy::prelude::*;
/// fn epoch(opt: &mut optim::SGD, schedule: &mut optim::LRScheduler) {
///     schedule.step(opt);
/// }
/// let w = tensor([1.0]).requires_grad_(true);
/// let mut opt = optim::SGD::new([&w], 0.8);
/// let mut schedule = optim::StepLR::new(&opt, 2, 0.5);
/// let rates: Vec<f64> = (0..4).map(|_| { epoch(&mut opt, &mut schedule); opt.lr() }).collect();
/// assert_eq!(rates, [0.8, 0.4, 0.4, 0.2]);
/// ```
pub struct LRScheduler {
    first: Vec<f64>,
    epoch: usize,
    rate: Rate,
    momentum: Option<Rate>,
}

impl LRScheduler {
    fn of(optimizer: &dyn Optimizer, rate: impl Fn(usize, f64) -> f64 + Send + Sync + 'static) -> LRScheduler {
        LRScheduler { first: optimizer.lrs(), epoch: 0, rate: Box::new(rate), momentum: None }
    }

    /// One that multiplies the first rates.
    fn times(optimizer: &dyn Optimizer, factor: impl Fn(usize) -> f64 + Send + Sync + 'static) -> LRScheduler {
        LRScheduler::of(optimizer, move |n, first| first * factor(n))
    }

    /// One whose first epoch has another rate than the optimizer's: it is set at once.
    fn begun(self, optimizer: &mut dyn Optimizer) -> LRScheduler {
        self.set(optimizer, 0);
        self
    }

    fn set(&self, optimizer: &mut dyn Optimizer, epoch: usize) {
        optimizer.set_lrs(&self.rates(epoch));
        if let Some(momentum) = &self.momentum {
            optimizer.set_momentum(momentum(epoch, 0.0));
        }
    }

    /// Ends an epoch: sets the rate of the next one.
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) {
        // The function is the notebook's own and may fail: then this is still the epoch that it was.
        let next = self.epoch + 1;
        self.set(optimizer, next);
        self.epoch = next;
    }

    /// Epochs that have ended: what a checkpoint keeps of a schedule.
    pub fn last_epoch(&self) -> usize {
        self.epoch
    }

    /// The rate of each group in this epoch.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let mut opt = optim::SGD::new([nn::parameter(tensor([1.0]))], 0.5);
    /// let mut schedule = optim::ExponentialLR::new(&opt, 0.5);
    /// schedule.step(&mut opt);
    /// assert_eq!(schedule.get_last_lr(), [0.25]);
    /// ```
    pub fn get_last_lr(&self) -> Vec<f64> {
        self.rates(self.epoch)
    }

    fn rates(&self, epoch: usize) -> Vec<f64> {
        self.first.iter().map(|first| (self.rate)(epoch, *first)).collect()
    }

    /// The epochs that have ended, by torch's name (`torch.optim.lr_scheduler.LRScheduler.state_dict`). The rates are the optimizer's.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let mut opt = optim::SGD::new([nn::parameter(tensor([1.0]))], 1.0);
    /// let [mut schedule, mut again] = [(); 2].map(|()| optim::StepLR::new(&opt, 2, 0.5));
    /// schedule.step(&mut opt);
    /// again.load_state_dict(&schedule.state_dict()).unwrap();
    /// again.step(&mut opt);
    /// assert_eq!(opt.lr(), 0.5);
    /// ```
    pub fn state_dict(&self) -> Vec<(String, Tensor)> {
        vec![number("last_epoch", self.epoch as f64)]
    }

    /// Takes over what [`LRScheduler::state_dict`] gave; an error where that is missing. [`LRScheduler::set_epoch`] sets rates, too.
    pub fn load_state_dict(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        self.epoch = StateDict(state).number("last_epoch")? as usize;
        Ok(())
    }

    /// Goes on from an epoch, such as where a checkpoint left off.
    pub fn set_epoch(&mut self, optimizer: &mut dyn Optimizer, epoch: usize) {
        self.set(optimizer, epoch);
        self.epoch = epoch;
    }
}

impl LRScheduler {
    fn tell(&self, name: &str, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct(name).field("last_epoch", &self.epoch).field("last_lr", &self.get_last_lr()).finish()
    }
}

impl fmt::Debug for LRScheduler {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.tell("LRScheduler", f)
    }
}

/// Several schedules, of one kind or of many: a `Vec`, or a tuple of up to six.
pub trait Schedulers {
    #[doc(hidden)]
    fn all(self) -> Vec<LRScheduler>;
}

impl<S: Into<LRScheduler>> Schedulers for Vec<S> {
    fn all(self) -> Vec<LRScheduler> {
        self.into_iter().map(Into::into).collect()
    }
}

macro_rules! tuples {
    ($first:ident $($rest:ident)*) => {
        impl<$first: Into<LRScheduler>, $($rest: Into<LRScheduler>),*> Schedulers for ($first, $($rest,)*) {
            fn all(self) -> Vec<LRScheduler> {
                #[allow(non_snake_case)]
                let ($first, $($rest,)*) = self;
                vec![$first.into(), $($rest.into()),*]
            }
        }
        tuples!($($rest)*);
    };
    () => {};
}
tuples!(A B C D E F);

macro_rules! schedulers {
    ($($name:ident)*) => {$(
        impl Deref for $name {
            type Target = LRScheduler;

            fn deref(&self) -> &LRScheduler {
                &self.0
            }
        }

        impl DerefMut for $name {
            fn deref_mut(&mut self) -> &mut LRScheduler {
                &mut self.0
            }
        }

        impl From<$name> for LRScheduler {
            fn from(schedule: $name) -> LRScheduler {
                schedule.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                self.tell(stringify!($name), f)
            }
        }
    )*};
}
schedulers!(LambdaLR StepLR MultiStepLR ExponentialLR ConstantLR LinearLR PolynomialLR CosineAnnealingLR CosineAnnealingWarmRestarts OneCycleLR SequentialLR ChainedScheduler MultiplicativeLR CyclicLR);

/// Multiplies the first rate by what a function gives for the epoch, that of the first one at once (`torch.optim.lr_scheduler.LambdaLR`).
///
/// ```
/// use xlazy::prelude::*;
/// let mut opt = optim::SGD::new([nn::parameter(tensor([1.0]))], 1.0);
/// let mut schedule = optim::LambdaLR::new(&mut opt, |epoch| (1 + epoch) as f64 / 8.0);
/// assert_eq!(opt.lr(), 0.125);
/// (0..3).for_each(|_| schedule.step(&mut opt));
/// assert_eq!(opt.lr(), 0.5);
/// ```
pub struct LambdaLR(LRScheduler);

impl LambdaLR {
    pub fn new(optimizer: &mut dyn Optimizer, factor: impl Fn(usize) -> f64 + Send + Sync + 'static) -> LambdaLR {
        LambdaLR(LRScheduler::times(optimizer, factor).begun(optimizer))
    }
}

/// Times `gamma` every `step_size` epochs (`torch.optim.lr_scheduler.StepLR`).
///
/// ```
/// use xlazy::prelude::*;
/// let mut opt = optim::SGD::new([nn::parameter(tensor([1.0]))], 1.0);
/// let mut schedule = optim::StepLR::new(&opt, 2, 0.5);
/// (0..4).for_each(|_| schedule.step(&mut opt));
/// assert_eq!(opt.lr(), 0.25);
/// ```
pub struct StepLR(LRScheduler);

impl StepLR {
    pub fn new(optimizer: &dyn Optimizer, step_size: usize, gamma: f64) -> StepLR {
        StepLR(LRScheduler::times(optimizer, move |n| gamma.powf((n / step_size.max(1)) as f64)))
    }
}

/// Times `gamma` at each of the milestones (`torch.optim.lr_scheduler.MultiStepLR`).
///
/// ```
/// use xlazy::prelude::*;
/// let mut opt = optim::SGD::new([&nn::parameter(tensor([1.0]))], 0.1);
/// let mut schedule = optim::MultiStepLR::new(&opt, &[2, 3], 0.5);
/// (0..3).for_each(|_| schedule.step(&mut opt));
/// assert!((opt.lr() - 0.025).abs() < 1e-9);
/// ```
pub struct MultiStepLR(LRScheduler);

impl MultiStepLR {
    pub fn new(optimizer: &dyn Optimizer, milestones: &[usize], gamma: f64) -> MultiStepLR {
        let milestones = milestones.to_vec();
        MultiStepLR(LRScheduler::times(optimizer, move |n| {
            gamma.powf(milestones.iter().filter(|m| **m <= n).count() as f64)
        }))
    }
}

/// Times `gamma` every epoch (`torch.optim.lr_scheduler.ExponentialLR`).
///
/// ```
/// use xlazy::prelude::*;
/// let mut opt = optim::SGD::new([&nn::parameter(tensor([1.0]))], 0.1);
/// let mut schedule = optim::ExponentialLR::new(&opt, 0.5);
/// (0..3).for_each(|_| schedule.step(&mut opt));
/// assert!((opt.lr() - 0.0125).abs() < 1e-9);
/// ```
pub struct ExponentialLR(LRScheduler);

impl ExponentialLR {
    pub fn new(optimizer: &dyn Optimizer, gamma: f64) -> ExponentialLR {
        ExponentialLR(LRScheduler::times(optimizer, move |n| gamma.powf(n as f64)))
    }
}

/// `factor` times the rate for `total_iters` epochs, then the rate (`torch.optim.lr_scheduler.ConstantLR`).
///
/// ```
/// use xlazy::prelude::*;
/// let mut opt = optim::SGD::new([&nn::parameter(tensor([1.0]))], 0.1);
/// let mut schedule = optim::ConstantLR::new(&mut opt, 0.5, 4);
/// (0..3).for_each(|_| schedule.step(&mut opt));
/// assert!((opt.lr() - 0.05).abs() < 1e-9);
/// ```
pub struct ConstantLR(LRScheduler);

impl ConstantLR {
    pub fn new(optimizer: &mut dyn Optimizer, factor: f64, total_iters: usize) -> ConstantLR {
        ConstantLR(LRScheduler::times(optimizer, move |n| if n < total_iters { factor } else { 1.0 }).begun(optimizer))
    }
}

/// From `start_factor` to `end_factor` times the rate over `total_iters` epochs, evenly (`torch.optim.lr_scheduler.LinearLR`): a warm-up.
///
/// ```
/// use xlazy::prelude::*;
/// let mut opt = optim::SGD::new([&nn::parameter(tensor([1.0]))], 0.1);
/// let mut schedule = optim::LinearLR::new(&mut opt, 0.2, 1.0, 4);
/// (0..2).for_each(|_| schedule.step(&mut opt));
/// assert!((opt.lr() - 0.06).abs() < 1e-9);
/// ```
pub struct LinearLR(LRScheduler);

impl LinearLR {
    pub fn new(optimizer: &mut dyn Optimizer, start_factor: f64, end_factor: f64, total_iters: usize) -> LinearLR {
        let done = move |n: usize| n.min(total_iters) as f64 / total_iters.max(1) as f64;
        let between = end_factor - start_factor;
        LinearLR(LRScheduler::times(optimizer, move |n| start_factor + between * done(n)).begun(optimizer))
    }
}

/// Down to zero over `total_iters` epochs by a power of what is left (`torch.optim.lr_scheduler.PolynomialLR`).
///
/// ```
/// use xlazy::prelude::*;
/// let mut opt = optim::SGD::new([&nn::parameter(tensor([1.0]))], 0.1);
/// let mut schedule = optim::PolynomialLR::new(&opt, 4, 2.0);
/// (0..2).for_each(|_| schedule.step(&mut opt));
/// assert!((opt.lr() - 0.025).abs() < 1e-9);
/// ```
pub struct PolynomialLR(LRScheduler);

impl PolynomialLR {
    pub fn new(optimizer: &dyn Optimizer, total_iters: usize, power: f64) -> PolynomialLR {
        let done = move |n: usize| n.min(total_iters) as f64 / total_iters.max(1) as f64;
        PolynomialLR(LRScheduler::times(optimizer, move |n| (1.0 - done(n)).powf(power)))
    }
}

fn half_cosine(from: f64, to: f64, done: f64) -> f64 {
    to + (from - to) * (1.0 + (PI * done).cos()) / 2.0
}

/// Down to `eta_min` along half a cosine over `t_max` epochs (`torch.optim.lr_scheduler.CosineAnnealingLR`).
///
/// ```
/// use xlazy::prelude::*;
/// let mut opt = optim::SGD::new([&nn::parameter(tensor([1.0]))], 0.1);
/// let mut schedule = optim::CosineAnnealingLR::new(&opt, 4, 0.0);
/// (0..2).for_each(|_| schedule.step(&mut opt));
/// assert!((opt.lr() - 0.05).abs() < 1e-9);
/// ```
pub struct CosineAnnealingLR(LRScheduler);

impl CosineAnnealingLR {
    pub fn new(optimizer: &dyn Optimizer, t_max: usize, eta_min: f64) -> CosineAnnealingLR {
        let at = move |n: usize, first| half_cosine(first, eta_min, n as f64 / t_max.max(1) as f64);
        CosineAnnealingLR(LRScheduler::of(optimizer, at))
    }
}

/// Down along half a cosine over `t_0` epochs, then from above again, each time over `t_mult` times as many
/// (`torch.optim.lr_scheduler.CosineAnnealingWarmRestarts`).
///
/// ```
/// use xlazy::prelude::*;
/// let mut opt = optim::SGD::new([&nn::parameter(tensor([1.0]))], 0.1);
/// let mut schedule = optim::CosineAnnealingWarmRestarts::new(&opt, 2, 2, 0.0);
/// (0..2).for_each(|_| schedule.step(&mut opt));
/// assert!((opt.lr() - 0.1).abs() < 1e-9);
/// ```
pub struct CosineAnnealingWarmRestarts(LRScheduler);

impl CosineAnnealingWarmRestarts {
    pub fn new(optimizer: &dyn Optimizer, t_0: usize, t_mult: usize, eta_min: f64) -> CosineAnnealingWarmRestarts {
        let (t_0, t_mult) = (t_0.max(1), t_mult.max(1));
        let at = move |n: usize, first| {
            let (mut left, mut length) = (n, t_0);
            if t_mult == 1 {
                left %= length;
            }
            while left >= length {
                left -= length;
                length *= t_mult;
            }
            half_cosine(first, eta_min, left as f64 / length as f64)
        };
        CosineAnnealingWarmRestarts(LRScheduler::of(optimizer, at))
    }
}

/// What [`OneCycleLR::with`] takes; torch's defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneCycleOptions {
    /// The share of steps in which the rate rises.
    pub pct_start: f64,
    /// Evenly in place of along half a cosine.
    pub linear: bool,
    /// Change the momentum against the rate; false for an optimizer without one.
    pub cycle_momentum: bool,
    pub base_momentum: f64,
    pub max_momentum: f64,
    pub div_factor: f64,
    pub final_div_factor: f64,
    /// Down as long as up, and then to the end.
    pub three_phase: bool,
}

impl Default for OneCycleOptions {
    fn default() -> OneCycleOptions {
        OneCycleOptions {
            pct_start: 0.3,
            linear: false,
            cycle_momentum: true,
            base_momentum: 0.85,
            max_momentum: 0.95,
            div_factor: 25.0,
            final_div_factor: 1e4,
            three_phase: false,
        }
    }
}

/// Up to `max_lr` and down to almost nothing in `total_steps` steps, the momentum against it
/// (`torch.optim.lr_scheduler.OneCycleLR`). A step here is a batch.
///
/// ```
/// use xlazy::prelude::*;
/// let w = tensor([1.0]).requires_grad_(true);
/// let mut opt = optim::AdamW::new([&w], 0.1);
/// let mut schedule = optim::OneCycleLR::new(&mut opt, 1.0, 10);
/// assert!((opt.lr() - 0.04).abs() < 1e-12);
/// (0..2).for_each(|_| schedule.step(&mut opt));
/// assert_eq!(opt.lr(), 1.0);
/// ```
pub struct OneCycleLR(LRScheduler);

impl OneCycleLR {
    pub fn new(optimizer: &mut dyn Optimizer, max_lr: f64, total_steps: usize) -> OneCycleLR {
        OneCycleLR::with(optimizer, max_lr, total_steps, OneCycleOptions::default())
    }

    pub fn with(optimizer: &mut dyn Optimizer, max_lr: f64, total_steps: usize, o: OneCycleOptions) -> OneCycleLR {
        let (low, total) = (max_lr / o.div_factor, total_steps as f64);
        let last = low / o.final_div_factor;
        let up = o.pct_start * total - 1.0;
        /// Where a phase ends, with rate and momentum at its ends.
        type Phase = (f64, (f64, f64), (f64, f64));
        let (base, most) = (o.base_momentum, o.max_momentum);
        let mut phases: Vec<Phase> = vec![(up, (low, max_lr), (most, base))];
        if o.three_phase {
            phases.push((2.0 * o.pct_start * total - 2.0, (max_lr, low), (base, most)));
            phases.push((total - 1.0, (low, last), (most, most)));
        } else {
            phases.push((total - 1.0, (max_lr, last), (base, most)));
        }
        let between = move |n: usize, pick: &dyn Fn(&Phase) -> (f64, f64)| {
            let n = (n as f64).min(total - 1.0);
            let mut start = 0.0;
            for (i, phase) in phases.iter().enumerate() {
                if n <= phase.0 || i + 1 == phases.len() {
                    let ((from, to), done) = (pick(phase), (n - start) / (phase.0 - start));
                    return if o.linear { (to - from) * done + from } else { half_cosine(from, to, done) };
                }
                start = phase.0;
            }
            unreachable!("the last phase takes what is left")
        };
        let rates = between.clone();
        let mut schedule = LRScheduler::of(optimizer, move |n, _| rates(n, &|p| p.1));
        if o.cycle_momentum && optimizer.set_momentum(most) {
            schedule.momentum = Some(Box::new(move |n, _| between(n, &|p| p.2)));
        }
        OneCycleLR(schedule.begun(optimizer))
    }
}

/// Schedules one after the other, each from a milestone on (`torch.optim.lr_scheduler.SequentialLR`).
///
/// ```
/// use xlazy::prelude::*;
/// let w = tensor([1.0]).requires_grad_(true);
/// let mut opt = optim::SGD::new([&w], 1.0);
/// let after = optim::CosineAnnealingLR::new(&opt, 10, 0.0);
/// let warm_up = optim::LinearLR::new(&mut opt, 0.5, 1.0, 2);
/// let mut schedule = optim::SequentialLR::new(&mut opt, (warm_up, after), &[2]);
/// let mut rates = vec![opt.lr()];
/// (0..2).for_each(|_| { schedule.step(&mut opt); rates.push(opt.lr()) });
/// assert_eq!(rates, [0.5, 0.75, 1.0]);
/// ```
pub struct SequentialLR(LRScheduler);

impl SequentialLR {
    pub fn new(optimizer: &mut dyn Optimizer, schedules: impl Schedulers, milestones: &[usize]) -> SequentialLR {
        let milestones = milestones.to_vec();
        // The rates before any of them: a schedule that begins with another one has changed the optimizer's.
        let schedules = schedules.all();
        let first = schedules.first().map(|s| s.first.clone());
        let rate = move |n: usize, first: f64| {
            let i = milestones.iter().filter(|m| **m <= n).count().min(schedules.len().saturating_sub(1));
            let since = if i == 0 { 0 } else { milestones[i - 1] };
            (schedules[i].rate)(n - since, first)
        };
        let first = first.unwrap_or_else(|| optimizer.lrs());
        SequentialLR(LRScheduler { first, epoch: 0, rate: Box::new(rate), momentum: None }.begun(optimizer))
    }
}

/// Schedules at the same time: each one's factor of the first rate, multiplied (`torch.optim.lr_scheduler.ChainedScheduler`). As torch's where
/// each is a factor: not for a cosine down to more than zero, nor for cycles.
///
/// ```
/// use xlazy::prelude::*;
/// let w = tensor([1.0]).requires_grad_(true);
/// let mut opt = optim::SGD::new([&w], 1.0);
/// let warm_up = optim::ConstantLR::new(&mut opt, 0.5, 1);
/// let decay = optim::ExponentialLR::new(&opt, 0.5);
/// let mut schedule = optim::ChainedScheduler::new(&mut opt, (warm_up, decay));
/// schedule.step(&mut opt);
/// assert_eq!(opt.lr(), 0.5);
/// ```
pub struct ChainedScheduler(LRScheduler);

impl ChainedScheduler {
    pub fn new(optimizer: &mut dyn Optimizer, schedules: impl Schedulers) -> ChainedScheduler {
        let schedules = schedules.all();
        let first = schedules.first().map(|s| s.first.clone()).unwrap_or_else(|| optimizer.lrs());
        let rate =
            move |n: usize, first: f64| schedules.iter().fold(first, |rate, s| rate * (s.rate)(n, first) / first);
        ChainedScheduler(LRScheduler { first, epoch: 0, rate: Box::new(rate), momentum: None }.begun(optimizer))
    }
}

/// Times what a function gives for the epoch, each time anew (`torch.optim.lr_scheduler.MultiplicativeLR`).
///
/// ```
/// use xlazy::prelude::*;
/// let mut opt = optim::SGD::new([nn::parameter(tensor([1.0]))], 1.0);
/// let mut schedule = optim::MultiplicativeLR::new(&opt, |_epoch| 0.5);
/// (0..3).for_each(|_| schedule.step(&mut opt));
/// assert_eq!(opt.lr(), 0.125);
/// ```
pub struct MultiplicativeLR(LRScheduler);

impl MultiplicativeLR {
    pub fn new(optimizer: &dyn Optimizer, factor: impl Fn(usize) -> f64 + Send + Sync + 'static) -> MultiplicativeLR {
        MultiplicativeLR(LRScheduler::times(optimizer, move |n| (1..=n).map(&factor).product()))
    }
}

/// How the height of a [`CyclicLR`]'s cycles goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CycleMode {
    /// All are as high.
    Triangular,
    /// Each is half as high as the one before.
    Triangular2,
    /// Times this in each step.
    ExpRange(f64),
}

/// What [`CyclicLR::with`] takes; torch's defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CyclicOptions {
    /// Steps from the base to the maximum.
    pub step_size_up: usize,
    /// And down again; as many where none is said.
    pub step_size_down: Option<usize>,
    pub mode: CycleMode,
    /// Change the momentum against the rate; nothing for an optimizer without one.
    pub cycle_momentum: bool,
    pub base_momentum: f64,
    pub max_momentum: f64,
}

impl Default for CyclicOptions {
    fn default() -> CyclicOptions {
        CyclicOptions {
            step_size_up: 2000,
            step_size_down: None,
            mode: CycleMode::Triangular,
            cycle_momentum: true,
            base_momentum: 0.8,
            max_momentum: 0.9,
        }
    }
}

/// Between `base_lr` and `max_lr`, up and down, again and again (`torch.optim.lr_scheduler.CyclicLR`). A step here is a batch.
///
/// ```
/// use xlazy::prelude::*;
/// let w = tensor([1.0]).requires_grad_(true);
/// let mut opt = optim::SGD::new([&w], 1.0);
/// let options = optim::CyclicOptions { step_size_up: 2, ..Default::default() };
/// let mut schedule = optim::CyclicLR::with(&mut opt, 0.0, 1.0, options);
/// let rates: Vec<f64> = (0..4).map(|_| { schedule.step(&mut opt); opt.lr() }).collect();
/// assert_eq!(rates, [0.5, 1.0, 0.5, 0.0]);
/// ```
pub struct CyclicLR(LRScheduler);

impl CyclicLR {
    pub fn new(optimizer: &mut dyn Optimizer, base_lr: f64, max_lr: f64) -> CyclicLR {
        CyclicLR::with(optimizer, base_lr, max_lr, CyclicOptions::default())
    }

    pub fn with(optimizer: &mut dyn Optimizer, base_lr: f64, max_lr: f64, o: CyclicOptions) -> CyclicLR {
        let up = o.step_size_up.max(1) as f64;
        let total = up + o.step_size_down.map_or(up, |n| n.max(1) as f64);
        let ratio = up / total;
        // How far it is from the base, of the whole way.
        let height = move |n: usize| {
            let cycle = (1.0 + n as f64 / total).floor();
            let x = 1.0 + n as f64 / total - cycle;
            let scale = if x <= ratio { x / ratio } else { (x - 1.0) / (ratio - 1.0) };
            scale
                * match o.mode {
                    CycleMode::Triangular => 1.0,
                    CycleMode::Triangular2 => 0.5f64.powf(cycle - 1.0),
                    CycleMode::ExpRange(gamma) => gamma.powf(n as f64),
                }
        };
        let mut schedule = LRScheduler::of(optimizer, move |n, _| base_lr + (max_lr - base_lr) * height(n));
        if o.cycle_momentum && optimizer.set_momentum(o.max_momentum) {
            let way = o.max_momentum - o.base_momentum;
            schedule.momentum = Some(Box::new(move |n, _| o.max_momentum - way * height(n)));
        }
        CyclicLR(schedule.begun(optimizer))
    }
}
