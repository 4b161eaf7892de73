//! The other optimizers: a rule each. Each is torch's `_single_tensor_…`, or its paper's where torch has none.
use super::core::{Kept, Rule, Update, kept, optimizers};
use crate::tensor::Tensor;
use crate::where_;
use xlazy_core::ty::DType;

macro_rules! options {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $t:ty = $default:expr),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $(pub $field: $t,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default),* }
            }
        }
    )*};
}

options! {
    /// What [`RMSprop::with`] takes; torch's defaults.
    RMSpropOptions { alpha: f64 = 0.99, eps: f64 = 1e-8, weight_decay: f64 = 0.0, momentum: f64 = 0.0, centered: bool = false }
    /// What [`Adagrad::with`] takes; torch's defaults.
    AdagradOptions { lr_decay: f64 = 0.0, weight_decay: f64 = 0.0, initial_accumulator_value: f64 = 0.0, eps: f64 = 1e-10 }
    /// What [`Adadelta::with`] takes; torch's defaults.
    AdadeltaOptions { rho: f64 = 0.9, eps: f64 = 1e-6, weight_decay: f64 = 0.0 }
    /// What [`Adamax::with`] takes; torch's defaults.
    AdamaxOptions { betas: (f64, f64) = (0.9, 0.999), eps: f64 = 1e-8, weight_decay: f64 = 0.0 }
    /// What [`NAdam::with`] takes; torch's defaults.
    NAdamOptions {
        betas: (f64, f64) = (0.9, 0.999),
        eps: f64 = 1e-8,
        weight_decay: f64 = 0.0,
        momentum_decay: f64 = 4e-3,
        decoupled_weight_decay: bool = false,
    }
    /// What [`RAdam::with`] takes; torch's defaults.
    RAdamOptions {
        betas: (f64, f64) = (0.9, 0.999),
        eps: f64 = 1e-8,
        weight_decay: f64 = 0.0,
        decoupled_weight_decay: bool = false,
    }
    /// What [`ASGD::with`] takes; torch's defaults.
    ASGDOptions { lambd: f64 = 1e-4, alpha: f64 = 0.75, t0: f64 = 1e6, weight_decay: f64 = 0.0 }
    /// What [`Rprop::with`] takes; torch's defaults.
    RpropOptions { etas: (f64, f64) = (0.5, 1.2), step_sizes: (f64, f64) = (1e-6, 50.0) }
    /// What [`Adafactor::with`] takes; torch's defaults. Without a first eps it is the dtype's.
    AdafactorOptions {
        beta2_decay: f64 = -0.8,
        eps: (Option<f64>, f64) = (None, 1e-3),
        d: f64 = 1.0,
        weight_decay: f64 = 0.0,
    }
    /// What [`LAMB::with`] takes; the paper's defaults.
    LAMBOptions { betas: (f64, f64) = (0.9, 0.999), eps: f64 = 1e-6, weight_decay: f64 = 0.01 }
    /// What [`Lion::with`] takes; the paper's defaults.
    LionOptions { betas: (f64, f64) = (0.9, 0.99), weight_decay: f64 = 0.0 }
}

impl Rule for RMSpropOptions {
    fn state(&self, _: &Tensor, _: f64) -> Vec<Kept> {
        let mut all = vec![kept("square_avg"), kept("momentum_buffer"), kept("grad_avg")];
        if !self.centered {
            all.pop();
        }
        all
    }

    fn update(&self, u: &mut Update) {
        u.decayed(0, self.weight_decay);
        let g = u.g.clone();
        let square = u.state(0) * u.n(1, self.alpha) + g.square() * u.n(2, 1.0 - self.alpha);
        let spread = match self.centered {
            true => {
                let old = u.state(2);
                let mean = u.towards(3, &old, &g, 1.0 - self.alpha);
                u.keep(2, mean.clone());
                (&square - mean.square()).sqrt()
            }
            false => square.sqrt(),
        };
        let step = g / (spread + u.n(4, self.eps));
        // without momentum the buffer is the step itself
        let step = u.state(1) * u.n(5, self.momentum) + step;
        let new = u.p - &step * u.n(6, u.lr);
        u.keep(0, square);
        u.keep(1, step);
        u.set(new);
    }

    fn momentum(&mut self) -> Option<&mut f64> {
        Some(&mut self.momentum)
    }
}

impl Rule for AdagradOptions {
    fn state(&self, _: &Tensor, _: f64) -> Vec<Kept> {
        vec![Kept { name: "sum", shape: None, fill: self.initial_accumulator_value }]
    }

    fn update(&self, u: &mut Update) {
        u.decayed(0, self.weight_decay);
        let sum = u.state(0) + u.g.square();
        let rate = u.lr / (1.0 + (u.t - 1.0) * self.lr_decay);
        let root = sum.sqrt() + u.n(1, self.eps);
        let new = u.p - &u.g.clone() / root * u.at_step(2, rate);
        u.keep(0, sum);
        u.set(new);
    }
}

impl Rule for AdadeltaOptions {
    fn state(&self, _: &Tensor, _: f64) -> Vec<Kept> {
        vec![kept("square_avg"), kept("acc_delta")]
    }

    fn update(&self, u: &mut Update) {
        u.decayed(0, self.weight_decay);
        let (rho, rest, eps) = (u.n(1, self.rho), u.n(2, 1.0 - self.rho), u.n(3, self.eps));
        let square = u.state(0) * &rho + u.g.square() * &rest;
        let delta = (u.state(1) + &eps).sqrt() / (&square + &eps).sqrt() * &u.g;
        let acc = u.state(1) * &rho + delta.square() * &rest;
        let new = u.p - delta * u.n(4, u.lr);
        u.keep(0, square);
        u.keep(1, acc);
        u.set(new);
    }
}

impl Rule for AdamaxOptions {
    fn state(&self, _: &Tensor, _: f64) -> Vec<Kept> {
        vec![kept("exp_avg"), kept("exp_inf")]
    }

    fn update(&self, u: &mut Update) {
        let (b1, b2) = self.betas;
        u.decayed(0, self.weight_decay);
        let (old, g) = (u.state(0), u.g.clone());
        let mean = u.towards(1, &old, &g, 1.0 - b1);
        let largest = (u.state(1) * u.n(2, b2)).maximum(g.abs() + u.n(3, self.eps));
        let new = u.p - &mean / &largest * u.at_step(4, u.lr / (1.0 - b1.powf(u.t)));
        u.keep(0, mean);
        u.keep(1, largest);
        u.set(new);
    }

    fn momentum(&mut self) -> Option<&mut f64> {
        Some(&mut self.betas.0)
    }
}

impl Rule for NAdamOptions {
    fn state(&self, _: &Tensor, _: f64) -> Vec<Kept> {
        vec![kept("exp_avg"), kept("exp_avg_sq")]
    }

    fn numbers(&self) -> &'static [(&'static str, f64)] {
        &[("mu_product", 1.0)]
    }

    fn update(&self, u: &mut Update) {
        let (b1, b2) = self.betas;
        let old = match self.decoupled_weight_decay {
            true => u.shrunk(0, self.weight_decay),
            false => {
                u.decayed(1, self.weight_decay);
                u.p.clone()
            }
        };
        let mu = |t: f64| b1 * (1.0 - 0.5 * 0.96f64.powf(t * self.momentum_decay));
        let (now, next) = (mu(u.t), mu(u.t + 1.0));
        u.host[0] *= now;
        let product = u.host[0];
        let (m, v, g) = (u.state(0), u.state(1), u.g.clone());
        let mean = u.towards(2, &m, &g, 1.0 - b1);
        let square = v * u.n(3, b2) + g.square() * u.n(4, 1.0 - b2);
        let root = (&square / u.at_step(5, 1.0 - b2.powf(u.t))).sqrt() + u.n(6, self.eps);
        let (of_g, of_mean) = (u.lr * (1.0 - now) / (1.0 - product), u.lr * next / (1.0 - product * next));
        let new = old - g / &root * u.at_step(7, of_g) - &mean / &root * u.at_step(8, of_mean);
        u.keep(0, mean);
        u.keep(1, square);
        u.set(new);
    }

    fn momentum(&mut self) -> Option<&mut f64> {
        Some(&mut self.betas.0)
    }
}

impl Rule for RAdamOptions {
    fn state(&self, _: &Tensor, _: f64) -> Vec<Kept> {
        vec![kept("exp_avg"), kept("exp_avg_sq")]
    }

    fn update(&self, u: &mut Update) {
        let (b1, b2) = self.betas;
        let old = match self.decoupled_weight_decay {
            true => u.shrunk(0, self.weight_decay),
            false => {
                u.decayed(1, self.weight_decay);
                u.p.clone()
            }
        };
        let (m, v, g) = (u.state(0), u.state(1), u.g.clone());
        let mean = u.towards(2, &m, &g, 1.0 - b1);
        let square = v * u.n(3, b2) + g.square() * u.n(4, 1.0 - b2);
        let (correction1, correction2) = (1.0 - b1.powf(u.t), 1.0 - b2.powf(u.t));
        let most = 2.0 / (1.0 - b2) - 1.0;
        let rho = most - 2.0 * u.t * b2.powf(u.t) / correction2;
        // Both forms are in the program, and the other one's factor is zero: the fifth step is the program of the sixth.
        let rate = u.lr / correction1;
        let (plain, adaptive) = match rho > 5.0 {
            true => {
                let rect = (rho - 4.0) * (rho - 2.0) * most / ((most - 4.0) * (most - 2.0) * rho);
                (0.0, rate * rect.sqrt() * correction2.sqrt())
            }
            false => (rate, 0.0),
        };
        let factor = u.at_step(5, adaptive) / (square.sqrt() + u.n(6, self.eps)) + u.at_step(7, plain);
        let new = old - &mean * factor;
        u.keep(0, mean);
        u.keep(1, square);
        u.set(new);
    }

    fn momentum(&mut self) -> Option<&mut f64> {
        Some(&mut self.betas.0)
    }
}

impl Rule for ASGDOptions {
    fn state(&self, _: &Tensor, _: f64) -> Vec<Kept> {
        vec![kept("ax")]
    }

    fn update(&self, u: &mut Update) {
        u.decayed(0, self.weight_decay);
        let eta = u.lr / (1.0 + self.lambd * u.lr * (u.t - 1.0)).powf(self.alpha);
        let mu = 1.0 / (u.t - 1.0 - self.t0).max(1.0);
        let new = u.p * u.at_step(1, 1.0 - self.lambd * eta) - u.g.clone() * u.at_step(2, eta);
        let old = u.state(0);
        let mean = u.towards_at_step(3, &old, &new, mu);
        u.keep(0, mean);
        u.set(new);
    }
}

impl Rule for RpropOptions {
    fn state(&self, _: &Tensor, lr: f64) -> Vec<Kept> {
        vec![kept("prev"), Kept { name: "step_size", shape: None, fill: lr }]
    }

    fn update(&self, u: &mut Update) {
        let turned = (&u.g * u.state(0)).sign();
        let (less, more) = (u.n(0, self.etas.0), u.n(1, self.etas.1));
        let (least, most) = (u.n(2, self.step_sizes.0), u.n(3, self.step_sizes.1));
        let factor = where_(&turned.gt(0.0), more, less.where_(&turned.lt(0.0), 1.0));
        let size = (u.state(1) * factor).maximum(least).minimum(most);
        let g = u.g.where_(&turned.ge(0.0), 0.0);
        let new = u.p - g.sign() * &size;
        u.keep(0, g);
        u.keep(1, size);
        u.set(new);
    }
}

impl Rule for AdafactorOptions {
    fn state(&self, p: &Tensor, _: f64) -> Vec<Kept> {
        let n = p.dim();
        if n < 2 {
            return vec![kept("variance")];
        }
        let without = |d: usize| {
            let mut shape = p.shape();
            shape[d] = 1;
            Some(shape)
        };
        let (rows, columns) = (without(n - 1), without(n - 2));
        vec![Kept { name: "row_var", shape: rows, fill: 0.0 }, Kept { name: "col_var", shape: columns, fill: 0.0 }]
    }

    fn update(&self, u: &mut Update) {
        let own = match u.p.dtype() {
            DType::F64 => f64::EPSILON,
            DType::BF16 => 0.0078125,
            DType::F16 => 0.0009765625,
            _ => f32::EPSILON as f64,
        };
        let (eps1, eps2) = (self.eps.0.unwrap_or(own), self.eps.1);
        let size = |t: &Tensor| t.norm() / (t.numel() as f64).sqrt();
        let alpha = size(u.p).maximum(u.n(0, eps2)) * u.at_step(1, u.lr.min(1.0 / u.t.sqrt()));
        let (old, g) = (u.shrunk(2, self.weight_decay), u.g.clone());
        let share = u.t.powf(self.beta2_decay);
        let square = g.square();
        let variance = match u.p.dim() {
            0 | 1 => {
                let before = u.state(0);
                let variance = u.towards_at_step(3, &before, &square, share);
                u.keep(0, variance.clone());
                variance
            }
            _ => {
                let (rows, columns) = (u.state(0), u.state(1));
                let rows = u.towards_at_step(3, &rows, &square.mean_dim(-1, true), share);
                let columns = u.towards_at_step(3, &columns, &square.mean_dim(-2, true), share);
                u.keep(0, rows.clone());
                u.keep(1, columns.clone());
                rows.matmul(&columns) / rows.mean_dim(-2, true).maximum(u.n(4, eps1))
            }
        };
        let step = variance.maximum(u.n(5, eps1 * eps1)).rsqrt() * g;
        let too_large = (size(&step) / u.n(6, self.d)).clamp_min(1.0);
        let new = old - step * (alpha / too_large);
        u.set(new);
    }
}

impl Rule for LAMBOptions {
    fn state(&self, _: &Tensor, _: f64) -> Vec<Kept> {
        vec![kept("exp_avg"), kept("exp_avg_sq")]
    }

    fn update(&self, u: &mut Update) {
        let (b1, b2) = self.betas;
        let (m, v, g) = (u.state(0), u.state(1), u.g.clone());
        let mean = u.towards(0, &m, &g, 1.0 - b1);
        let square = v * u.n(1, b2) + g.square() * u.n(2, 1.0 - b2);
        let root = (&square / u.at_step(3, 1.0 - b2.powf(u.t))).sqrt() + u.n(4, self.eps);
        let step = &mean / u.at_step(5, 1.0 - b1.powf(u.t)) / root + u.p * u.n(6, self.weight_decay);
        let (of_p, of_step) = (u.p.norm(), step.norm());
        let both = of_p.gt(0.0).logical_and(of_step.gt(0.0));
        let trust = (of_p / of_step.where_(&both, 1.0)).where_(&both, 1.0);
        let new = u.p - step * (trust * u.n(7, u.lr));
        u.keep(0, mean);
        u.keep(1, square);
        u.set(new);
    }

    fn momentum(&mut self) -> Option<&mut f64> {
        Some(&mut self.betas.0)
    }
}

impl Rule for LionOptions {
    fn state(&self, _: &Tensor, _: f64) -> Vec<Kept> {
        vec![kept("exp_avg")]
    }

    fn update(&self, u: &mut Update) {
        let (b1, b2) = self.betas;
        let (old, m, g) = (u.shrunk(0, self.weight_decay), u.state(0), u.g.clone());
        let step = (&m * u.n(1, b1) + &g * u.n(2, 1.0 - b1)).sign();
        let mean = &m * u.n(3, b2) + &g * u.n(4, 1.0 - b2);
        let new = old - step * u.n(5, u.lr);
        u.keep(0, mean);
        u.set(new);
    }

    fn momentum(&mut self) -> Option<&mut f64> {
        Some(&mut self.betas.0)
    }
}

optimizers! {
    /// Steps divided by the root of a running mean of squares (`torch.optim.RMSprop`); torch's rate is 0.01.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let w = tensor([1.0]).requires_grad_(true);
    /// let mut opt = optim::RMSprop::new([&w], 0.01);
    /// (&w * 3.0).sum().backward();
    /// opt.step();
    /// assert!((w.item() - 0.9).abs() < 1e-5);
    /// ```
    RMSprop, RMSpropOptions { alpha: f64, eps: f64, weight_decay: f64, momentum: f64, centered: bool };
    /// Steps divided by the root of the sum of squares (`torch.optim.Adagrad`); torch's rate is 0.01.
    ///
    /// `optim::Adagrad::new([tensor([1.0]).requires_grad_(true)], 0.01).lr_decay(0.1).options().lr_decay` is `0.1`.
    Adagrad, AdagradOptions { lr_decay: f64, weight_decay: f64, initial_accumulator_value: f64, eps: f64 };
    /// Steps of the size that steps had (`torch.optim.Adadelta`); torch's rate is 1.
    ///
    /// `optim::Adadelta::new([tensor([1.0]).requires_grad_(true)], 1.0).rho(0.95).options().rho` is `0.95`.
    Adadelta, AdadeltaOptions { rho: f64, eps: f64, weight_decay: f64 };
    /// Adam by the largest gradient (`torch.optim.Adamax`); torch's rate is 0.002.
    ///
    /// `optim::Adamax::new([tensor([1.0]).requires_grad_(true)], 0.002).betas((0.8, 0.99)).options().betas` is `(0.8, 0.99)`.
    Adamax, AdamaxOptions { betas: (f64, f64), eps: f64, weight_decay: f64 };
    /// Adam with Nesterov's look ahead (`torch.optim.NAdam`); torch's rate is 0.002.
    ///
    /// `optim::NAdam::new([tensor([1.0]).requires_grad_(true)], 0.002).momentum_decay(0.01).options().momentum_decay` is `0.01`.
    NAdam, NAdamOptions { betas: (f64, f64), eps: f64, weight_decay: f64, momentum_decay: f64, decoupled_weight_decay: bool };
    /// Adam that waits until its means mean something (`torch.optim.RAdam`); torch's rate is 0.001.
    ///
    /// `optim::RAdam::new([tensor([1.0]).requires_grad_(true)], 0.001).weight_decay(0.1).options().weight_decay` is `0.1`.
    RAdam, RAdamOptions { betas: (f64, f64), eps: f64, weight_decay: f64, decoupled_weight_decay: bool };
    /// Gradient descent whose parameters are averaged beside it (`torch.optim.ASGD`); torch's rate is 0.01.
    ///
    /// `optim::ASGD::new([tensor([1.0]).requires_grad_(true)], 0.01).lambd(0.001).options().lambd` is `0.001`.
    ASGD, ASGDOptions { lambd: f64, alpha: f64, t0: f64, weight_decay: f64 };
    /// Steps by the gradient's sign alone, larger while it stays (`torch.optim.Rprop`); torch's rate is 0.01.
    ///
    /// `optim::Rprop::new([tensor([1.0]).requires_grad_(true)], 0.01).etas((0.4, 1.3)).options().etas` is `(0.4, 1.3)`.
    Rprop, RpropOptions { etas: (f64, f64), step_sizes: (f64, f64) };
    /// Adam with a row and a column kept for each matrix (`torch.optim.Adafactor`); torch's rate is 0.01.
    ///
    /// `optim::Adafactor::new([tensor([1.0]).requires_grad_(true)], 0.01).weight_decay(0.1).options().weight_decay` is `0.1`.
    Adafactor, AdafactorOptions { beta2_decay: f64, eps: (Option<f64>, f64), d: f64, weight_decay: f64 };
    /// Adam with a rate for each layer, by the ratio of its norm to its step's, for large batches (You et al. 2019).
    ///
    /// `optim::LAMB::new([tensor([1.0]).requires_grad_(true)], 0.01).weight_decay(0.1).options().weight_decay` is `0.1`.
    LAMB, LAMBOptions { betas: (f64, f64), eps: f64, weight_decay: f64 };
    /// Steps by the sign of a mean of gradients (Chen et al. 2023); the paper's rate is 0.0001.
    ///
    /// `optim::Lion::new([tensor([1.0]).requires_grad_(true)], 0.0001).weight_decay(0.1).options().weight_decay` is `0.1`.
    Lion, LionOptions { betas: (f64, f64), weight_decay: f64 };
}
