//! Averages of a model's parameters over its training.
use super::settle;
use crate::changes::Changes;
use crate::nn::Module;
use crate::tensor::{Tensor, on_behalf, refuse};
use std::panic::Location;

/// The mean of a model's parameters over training, or a moving average with `decay`
/// (`torch.optim.swa_utils.AveragedModel`). It holds the averages, on the device, not a model: another model of the kind takes them
/// up by `load_state_dict(&averaged.state_dict())`. Buffers are the model's as of the last update.
///
/// ```
/// use xlazy::prelude::*;
/// let model = nn::Linear::new(2, 1);
/// let mut averaged = optim::AveragedModel::ema(&model, 0.9);
/// averaged.update_parameters(&model);
/// let slow = nn::Linear::new(2, 1);
/// slow.load_state_dict(&averaged.state_dict()).unwrap();
/// assert_eq!(slow.weight.to_vec::<f32>(), model.weight.to_vec::<f32>());
/// ```
pub struct AveragedModel {
    /// By name, with whether it is averaged.
    state: Vec<(String, Tensor, bool)>,
    decay: Option<f64>,
    n_averaged: u64,
}

impl AveragedModel {
    /// The mean with equal shares. What is pending runs now, so that the first step is the same program as all others.
    #[track_caller]
    pub fn new(model: &dyn Module) -> AveragedModel {
        AveragedModel::made(model, None)
    }

    /// The moving average: `decay` of the old, the rest of the new (`get_ema_multi_avg_fn(decay)`).
    #[track_caller]
    pub fn ema(model: &dyn Module, decay: f64) -> AveragedModel {
        AveragedModel::made(model, Some(decay))
    }

    #[track_caller]
    fn made(model: &dyn Module, decay: Option<f64>) -> AveragedModel {
        let buffers = model.named_buffers();
        let state = on_behalf(Location::caller(), false, || {
            let copied = |(name, t): (String, Tensor)| {
                let averaged = buffers.iter().all(|(_, b)| !b.is_same(&t));
                (name, t.detach().copy(), averaged)
            };
            model.state_dict().into_iter().map(copied).collect()
        });
        settle();
        AveragedModel { state, decay, n_averaged: 0 }
    }

    /// Takes up the parameters as they are now, as a part of the pending step; the first time they are the average.
    #[track_caller]
    pub fn update_parameters(&mut self, model: &dyn Module) {
        let now = model.state_dict();
        let fits = now.len() == self.state.len() && now.iter().zip(&self.state).all(|(a, b)| a.0 == b.0);
        if !fits {
            refuse("update_parameters", &[], "this is a model of another kind than the one that is averaged");
        }
        on_behalf(Location::caller(), false, || {
            let share = match (self.n_averaged, self.decay) {
                (0, _) => 1.0,
                (n, None) => 1.0 / (n + 1) as f64,
                (_, Some(decay)) => 1.0 - decay,
            };
            let (mut changes, share) = (Changes::new(), Tensor::full((), share));
            for ((_, new), (_, old, averaged)) in now.iter().zip(&self.state) {
                let new = new.detach();
                let value = match *averaged && old.dtype().is_float() {
                    true => old + (new - old) * share.to(old.dtype()),
                    false => new.copy(),
                };
                changes.assign("update_parameters", old, value);
            }
            changes.apply();
        });
        self.n_averaged += 1;
    }

    /// The averages under the names that they have in the model.
    pub fn state_dict(&self) -> Vec<(String, Tensor)> {
        self.state.iter().map(|(name, t, _)| (name.clone(), t.clone())).collect()
    }
}
