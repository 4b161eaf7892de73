//! The scale of losses in half precision.
use super::{Optimizer, settle};
use crate::changes::Changes;
use crate::insight::mode::{Derived, derives};
use crate::tensor::{Tensor, on_behalf};
use std::panic::Location;

/// Scales a loss so that gradients in float16 do not vanish, and leaves out steps whose gradients are not finite
/// (`torch.amp.GradScaler`). All of it is decided on the device and part of the step's program: nothing is read back. An optimizer's
/// number of steps counts steps that were left out.
///
/// ```
/// use xlazy::prelude::*;
/// let w = tensor([1.0]).requires_grad_(true);
/// let mut opt = optim::SGD::new([&w], 0.5);
/// let mut scaler = optim::GradScaler::new();
/// scaler.scale(&(&w * f64::INFINITY).sum()).backward();
/// scaler.step(&mut opt);
/// scaler.update();
/// assert_eq!((w.item(), scaler.get_scale().item()), (1.0, 32768.0));
/// ```
pub struct GradScaler {
    scale: Tensor,
    /// Steps since the scale has changed.
    tracker: Tensor,
    /// Whether a gradient of this step was not finite.
    found: Option<Tensor>,
    growth_factor: f64,
    backoff_factor: f64,
    growth_interval: i64,
    unscaled: bool,
}

impl Default for GradScaler {
    #[track_caller]
    fn default() -> GradScaler {
        GradScaler::new()
    }
}

impl GradScaler {
    /// With torch's defaults: from 65536, doubled after 2000 good steps, halved after a bad one.
    #[track_caller]
    pub fn new() -> GradScaler {
        GradScaler::with(65536.0, 2.0, 0.5, 2000)
    }

    #[track_caller]
    pub fn with(init_scale: f64, growth_factor: f64, backoff_factor: f64, growth_interval: i64) -> GradScaler {
        let scale = Tensor::from_vec(vec![init_scale as f32], ());
        let tracker = Tensor::from_vec(vec![0i64], ());
        settle();
        GradScaler { scale, tracker, found: None, growth_factor, backoff_factor, growth_interval, unscaled: false }
    }

    /// The loss times the scale: what `backward()` is called on.
    #[track_caller]
    pub fn scale(&self, loss: &Tensor) -> Tensor {
        loss * self.scale.to(loss.dtype())
    }

    /// Divides the gradients of an optimizer's parameters by the scale, such as to clip them; [`GradScaler::step`] does it otherwise.
    #[track_caller]
    pub fn unscale_(&mut self, optimizer: &dyn Optimizer) {
        on_behalf(Location::caller(), false, || {
            let _follows = derives(Derived::Update);
            let (inverse, mut changes) = (1.0 / &self.scale, Changes::new());
            let mut found = self.found.take();
            for p in optimizer.parameters() {
                let Some(g) = p.held_grad() else { continue };
                // in float32: a scale beyond float16's range has an inverse there
                let new = (g.float() * inverse.clone().placed_like(&g)).to(g.dtype());
                let bad = g.isfinite().all().logical_not();
                found = Some(match found {
                    Some(before) => before.logical_or(bad.placed_like(&before)),
                    None => bad,
                });
                changes.set_grad(p, Some(new));
            }
            changes.apply();
            self.found = found;
        });
        self.unscaled = true;
    }

    /// Takes the optimizer's step, unless a gradient is not finite.
    #[track_caller]
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) {
        on_behalf(Location::caller(), false, || {
            if !std::mem::take(&mut self.unscaled) {
                self.unscale_(optimizer);
                self.unscaled = false;
            }
            if let Some(found) = &self.found {
                optimizer.step_unless(found);
            }
        })
    }

    /// The scale of the next step: smaller where this one was left out, larger after many that were not.
    #[track_caller]
    pub fn update(&mut self) {
        let Some(found) = self.found.take() else { return };
        on_behalf(Location::caller(), false, || {
            let _follows = derives(Derived::Update);
            let mut changes = Changes::new();
            let good = &self.tracker + 1;
            let grown = good.ge(self.growth_interval);
            let larger = (&self.scale * self.growth_factor).where_(&grown, &self.scale);
            let scale = (&self.scale * self.backoff_factor).where_(&found, larger);
            let tracker = good.where_(&grown.logical_or(&found).logical_not(), 0);
            changes.assign("update", &self.scale, scale);
            changes.assign("update", &self.tracker, tracker);
            changes.apply();
        });
    }

    /// The scale, on the device.
    pub fn get_scale(&self) -> Tensor {
        self.scale.clone()
    }
}
