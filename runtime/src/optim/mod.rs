//! Optimizers under torch's names, as plain users of tensors.
//!
//! One step is one program, however often it runs: step counts and rates go in as numbers, and the state is there, on the
//! device, before the first step. Parameters and state are replaced in place, so that a barrier can reuse their buffers.
// Public, for a cell names a variable's type by the path that the compiler gives.
#[doc(hidden)]
pub mod adam;
#[doc(hidden)]
pub mod averaged;
#[doc(hidden)]
pub mod core;
#[doc(hidden)]
pub mod more;
#[doc(hidden)]
pub mod plateau;
#[doc(hidden)]
pub mod scaler;
#[doc(hidden)]
pub mod schedule;
#[doc(hidden)]
pub mod sgd;

pub use adam::{Adam, AdamOptions, AdamW};
pub use averaged::AveragedModel;
pub use more::{ASGD, Adadelta, Adafactor, Adagrad, Adamax, LAMB, Lion, NAdam, RAdam, RMSprop, Rprop};
pub use more::{
    ASGDOptions, AdadeltaOptions, AdafactorOptions, AdagradOptions, AdamaxOptions, LAMBOptions, LionOptions,
};
pub use more::{NAdamOptions, RAdamOptions, RMSpropOptions, RpropOptions};
pub use plateau::{PlateauOptions, ReduceLROnPlateau};
pub use scaler::GradScaler;
pub use schedule::{
    ChainedScheduler, ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, CycleMode, CyclicLR, CyclicOptions,
    ExponentialLR, LRScheduler, LambdaLR, LinearLR, MultiStepLR, MultiplicativeLR, OneCycleLR, OneCycleOptions,
    PolynomialLR, Schedulers, SequentialLR, StepLR,
};
pub use sgd::{SGD, SGDOptions};

use crate::changes::Changes;
use crate::insight::mode::{Derived, derives};
use crate::insight::{Cause, INSIGHT};
use crate::tensor::{Tensor, is_grad_enabled, on_behalf, refuse, sync_for};
use crate::{Error, Result};
use std::borrow::Borrow;
use std::collections::HashSet;
use std::panic::Location;
use std::sync::Arc;
use xlazy_core::ir::graph;
use xlazy_core::run;
use xlazy_core::thread::{innermost, rank};
use xlazy_core::ty::{DType, Shape, Type};

/// What trains parameters by their gradients (`torch.optim.Optimizer`).
///
/// ```
/// use xlazy::prelude::*;
/// let w = nn::parameter(tensor([1.0]));
/// let mut opt = optim::SGD::new([&w], 0.5);
/// (&w * 3.0).sum().backward();
/// opt.step();
/// opt.zero_grad();
/// assert_eq!(w.item(), -0.5);
/// ```
pub trait Optimizer: Send {
    /// Changes every parameter that has a gradient. Nothing runs before the next barrier; see [`optimizer_step`].
    // As `Module::forward`: an optimizer of the user's own traces at its own lines.
    fn step(&mut self);

    /// The tensors that this optimizer changes.
    fn parameters(&self) -> &[Tensor];

    /// The learning rate; of several groups the first one's.
    fn lr(&self) -> f64;

    /// Sets the learning rate, of all groups; it is a number of the program, so this never compiles again.
    fn set_lr(&mut self, lr: f64);

    /// The learning rate of each group of parameters (`group["lr"]` of `torch.optim.Optimizer.param_groups`).
    ///
    /// `optim::SGD::new([nn::parameter(tensor([1.0]))], 0.5).lrs()` is `[0.5]`.
    fn lrs(&self) -> Vec<f64> {
        vec![self.lr()]
    }

    /// Sets the learning rate of each group.
    fn set_lrs(&mut self, lrs: &[f64]) {
        if let Some(first) = lrs.first() {
            self.set_lr(*first);
        }
    }

    /// Sets the momentum, or the first beta, of all groups; false where the optimizer has none. Schedules of one cycle do.
    fn set_momentum(&mut self, momentum: f64) -> bool {
        let _ = momentum;
        false
    }

    /// As [`Optimizer::step`], but where `skip`, a bool on the device, is true, all stays as it is. Nothing is read back: the
    /// number of steps counts on.
    #[track_caller]
    fn step_unless(&mut self, skip: &Tensor) {
        refuse("step_unless", &[skip], "this optimizer cannot leave a step out on the device");
    }

    /// What the next step depends on besides the parameters, by name; empty for an optimizer that does not say
    /// (`torch.optim.Optimizer.state_dict`). Checkpoints keep it.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let w = tensor([1.0]).requires_grad_(true);
    /// let mut opt = optim::Adam::new([&w], 0.1);
    /// (&w * 3.0).sum().backward();
    /// opt.step();
    /// let mut again = optim::Adam::new([&w], 0.5);
    /// again.load_state_dict(&opt.state_dict()).unwrap();
    /// assert_eq!(again.lr(), 0.1);
    /// ```
    fn state_dict(&self) -> Vec<(String, Tensor)> {
        Vec::new()
    }

    /// The tensors of its state: which parameter each is for, and what it is called.
    #[doc(hidden)]
    fn state_tensors(&self) -> Vec<(usize, &'static str, Tensor)> {
        Vec::new()
    }

    /// Takes over what [`Optimizer::state_dict`] gave; an error where it does not fit, and then nothing has changed
    /// (`torch.optim.Optimizer.load_state_dict`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let w = nn::parameter(tensor([1.0]));
    /// let (opt, mut again) = (optim::Adam::new([&w], 0.1), optim::Adam::new([&w], 0.5));
    /// again.load_state_dict(&opt.state_dict()).unwrap();
    /// assert_eq!(again.lr(), 0.1);
    /// assert!(again.load_state_dict(&[]).is_err());
    /// ```
    fn load_state_dict(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        let _ = state;
        Err(Error::Usage { message: "this optimizer has no `load_state_dict` of its own".into() })
    }

    /// Forgets all gradients (`torch.optim.Optimizer.zero_grad`, to none), as a new sum of them begins. [`optimizer_step`] takes
    /// those that it uses, so behind it there are none; behind `step()` they stay, and are results of the program that runs
    /// next, unless this comes before it.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let w = nn::parameter(tensor([1.0]));
    /// (&w * 3.0).sum().backward();
    /// optim::SGD::new([&w], 0.5).zero_grad();
    /// assert!(w.grad().is_none());
    /// ```
    fn zero_grad(&self) {
        self.parameters().iter().for_each(|p| p.set_grad(None));
    }
}

/// What it points to. A call through `dyn` loses the caller's line, and this one does not.
impl<O: Optimizer + ?Sized> Optimizer for Box<O> {
    #[track_caller]
    fn step(&mut self) {
        on_behalf(Location::caller(), is_grad_enabled(), || (**self).step())
    }
    fn parameters(&self) -> &[Tensor] {
        (**self).parameters()
    }
    fn lr(&self) -> f64 {
        (**self).lr()
    }
    fn set_lr(&mut self, lr: f64) {
        (**self).set_lr(lr)
    }
    fn lrs(&self) -> Vec<f64> {
        (**self).lrs()
    }
    fn set_lrs(&mut self, lrs: &[f64]) {
        (**self).set_lrs(lrs)
    }
    fn set_momentum(&mut self, momentum: f64) -> bool {
        (**self).set_momentum(momentum)
    }
    #[track_caller]
    fn step_unless(&mut self, skip: &Tensor) {
        on_behalf(Location::caller(), is_grad_enabled(), || (**self).step_unless(skip))
    }
    fn state_tensors(&self) -> Vec<(usize, &'static str, Tensor)> {
        (**self).state_tensors()
    }
    fn state_dict(&self) -> Vec<(String, Tensor)> {
        (**self).state_dict()
    }
    fn load_state_dict(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        (**self).load_state_dict(state)
    }
    fn zero_grad(&self) {
        (**self).zero_grad()
    }
}

/// Takes a step and runs it: `step()`, then a barrier (`torch_xla.core.xla_model.optimizer_step(opt, barrier=True)`).
///
/// The step takes the gradients with it: the program gives none of them back, which saves the memory and the copies, and the
/// next `backward()` begins a new sum, as after `zero_grad()`. [`Tensor::grad`] behind it is an error; to look at gradients,
/// read them before the step, or keep them by [`optimizer_step_retain_grad`].
///
/// ```
/// use xlazy::prelude::*;
/// let w = tensor([1.0]).requires_grad_(true);
/// let mut opt = optim::SGD::new([&w], 0.5);
/// (&w * &w).sum().backward();
/// optim::optimizer_step(&mut opt);
/// assert_eq!(w.item(), 0.0);
/// ```
#[track_caller]
pub fn optimizer_step(optimizer: &mut dyn Optimizer) {
    // A call through `dyn` loses the caller's line.
    on_behalf(Location::caller(), is_grad_enabled(), || {
        optimizer.step();
        optimizer.parameters().iter().for_each(Tensor::take_gradient);
    });
    sync_for(Cause::OptimizerStep);
}

/// As [`optimizer_step`], and the gradients stay, as in torch: each is a result of the step's program, and the next `backward()`
/// adds to it unless `zero_grad()` comes first.
///
/// ```
/// use xlazy::prelude::*;
/// let w = nn::parameter(tensor([1.0]));
/// let mut opt = optim::SGD::new([&w], 0.5);
/// (&w * &w).sum().backward();
/// optimizer_step_retain_grad(&mut opt);
/// assert_eq!(w.grad().unwrap().item(), 2.0);
/// ```
#[track_caller]
pub fn optimizer_step_retain_grad(optimizer: &mut dyn Optimizer) {
    on_behalf(Location::caller(), is_grad_enabled(), || optimizer.step());
    sync_for(Cause::OptimizerStep);
}

/// Scales the gradients down where their common norm is above `max_norm`, and gives that norm
/// (`torch.nn.utils.clip_grad_norm_`). Nothing is read back.
///
/// ```
/// use xlazy::prelude::*;
/// let w = nn::parameter(tensor([3.0, 4.0]));
/// (w.square() / 2.0).sum().backward();
/// let norm = optim::clip_grad_norm_(&[w.clone()], 1.0);
/// assert!((norm.item() - 5.0).abs() < 1e-4);
/// assert!(w.grad().unwrap().allclose(&tensor([0.6, 0.8])));
/// ```
#[track_caller]
pub fn clip_grad_norm_(parameters: &[Tensor], max_norm: f64) -> Tensor {
    clip_grad_norm_with(parameters, max_norm, 2.0)
}

/// As [`clip_grad_norm_`], by the p-norm; infinity takes the largest (`norm_type` of `torch.nn.utils.clip_grad_norm_`).
///
/// ```
/// use xlazy::prelude::*;
/// let w = nn::parameter(tensor([3.0, 4.0]));
/// (w.square() / 2.0).sum().backward();
/// assert_eq!(optim::clip_grad_norm_with(&[w.clone()], 2.0, f64::INFINITY).item(), 4.0);
/// assert!(w.grad().unwrap().allclose(&tensor([1.5, 2.0])));
/// ```
#[track_caller]
pub fn clip_grad_norm_with(parameters: &[Tensor], max_norm: f64, norm_type: f64) -> Tensor {
    on_behalf(Location::caller(), false, || {
        let _follows = derives(Derived::Update);
        let largest = norm_type == f64::INFINITY;
        let parts = parameters.iter().filter_map(Tensor::held_grad).map(|g| match norm_type {
            2.0 => g.square().sum(),
            _ if largest => g.abs().max(),
            p => g.abs().pow(p).sum(),
        });
        let joined = parts.reduce(|a, b| {
            let b = b.placed_like(&a);
            if largest { a.maximum(b) } else { &a + b }
        });
        let Some(all) = joined else { return Tensor::zeros(()) };
        let norm = match norm_type {
            2.0 => all.sqrt(),
            _ if largest => all,
            p => all.pow(1.0 / p),
        };
        let scale = (max_norm / (&norm + 1e-6)).clamp_max(1.0);
        clipped(parameters, |g| g * scale.clone().placed_like(g));
        norm
    })
}

/// Bounds each element of the gradients to -`clip_value`..=`clip_value` (`torch.nn.utils.clip_grad_value_`).
///
/// ```
/// use xlazy::prelude::*;
/// let w = tensor([1.0, 1.0]).requires_grad_(true);
/// (&w * tensor([3.0, -0.5])).sum().backward();
/// optim::clip_grad_value_(&[w.clone()], 1.0);
/// assert_eq!(w.grad().unwrap().to_vec::<f32>(), [1.0, -0.5]);
/// ```
#[track_caller]
pub fn clip_grad_value_(parameters: &[Tensor], clip_value: f64) {
    on_behalf(Location::caller(), false, || {
        let _follows = derives(Derived::Update);
        clipped(parameters, |g| g.clamp(-clip_value, clip_value));
    })
}

/// Gradients replaced, all of them or none.
#[track_caller]
fn clipped(parameters: &[Tensor], new: impl Fn(&Tensor) -> Tensor) {
    let mut changes = Changes::new();
    for p in parameters {
        if let Some(g) = p.held_grad() {
            changes.set_grad(p, Some(new(&g)));
        }
    }
    changes.apply();
}

/// What an optimizer's constructor takes, parameters by value or by reference, as a vector.
#[track_caller]
fn listed(parameters: impl IntoIterator<Item = impl Borrow<Tensor>>) -> Vec<Tensor> {
    let all: Vec<Tensor> = parameters.into_iter().map(|p| p.borrow().clone()).collect();
    let mut seen = HashSet::new();
    if let Some(p) = all.iter().find(|p| !seen.insert(Arc::as_ptr(&p.0))) {
        let message = "a parameter is there twice; all of them change together in a step, each once";
        refuse("optimizer", &[p], message);
    }
    if let Some(p) = all.iter().find(|p| !p.is_leaf()) {
        let message = "can't optimize a non-leaf Tensor: it is computed from others (a row of one, too), and has no gradient of its own. \
                       Give the tensors themselves, `[&w]`";
        refuse("optimizer", &[p], message);
    }
    all
}

/// A number of an optimizer's state.
fn number(name: &str, value: f64) -> (String, Tensor) {
    (name.to_owned(), Tensor::of_bytes(&value.to_le_bytes(), Type::new(DType::F64, Shape::default())))
}

/// The parts of a state, checked as they are taken: the tensors of each parameter's shape, and numbers.
struct StateDict<'a>(&'a [(String, Tensor)]);

impl StateDict<'_> {
    fn tensor(&self, name: &str, like: &Tensor) -> Result<Tensor> {
        let found = self.0.iter().find(|(n, _)| n == name).map(|(_, t)| t);
        let wrong = |what: String| Err(Error::Usage { message: format!("the state does not fit: {what}") });
        match found {
            None => wrong(format!("`{name}` is missing")),
            Some(t) if t.ty() != like.ty() => wrong(format!("`{name}` is {}, expected {}", t.ty(), like.ty())),
            Some(t) => Ok(t.clone()),
        }
    }

    fn number(&self, name: &str) -> Result<f64> {
        let like = number(name, 0.0).1;
        let bytes = self.tensor(name, &like)?.bytes(Cause::Read, Location::caller())?;
        Ok(f64::from_le_bytes(bytes.try_into().expect("a double has eight bytes")))
    }
}

/// State that is loaded, ready to be put in the place of what is there, as a step does.
#[track_caller]
fn loaded<const N: usize>(parts: [(&[Tensor], Vec<Tensor>); N]) -> Changes {
    let mut changes = Changes::new();
    on_behalf(Location::caller(), false, || {
        for (old, new) in parts {
            old.iter().zip(new).for_each(|(o, n)| changes.assign("load", o, n.placed_like(o).copy()));
        }
    });
    changes
}

/// Where a parameter has been moved to another device, or laid out on a mesh, its state follows it.
fn follow(state: &[Tensor], parameter: &Tensor) {
    if !graph().on_several_devices() {
        return;
    }
    if graph().has_meshes() {
        state.iter().for_each(|s| s.lie_like(parameter));
    }
    for s in state.iter().filter(|s| s.placement() != parameter.placement()) {
        s.set_data(s.clone().placed_like(parameter));
    }
}

// Parameters that are still to be drawn, state that is still to be filled and data that is still to be prepared would make the
// first step another program than the second.
#[track_caller]
fn settle() {
    if rank().is_some() {
        // All ranks come to it, so it runs at once.
        return sync_for(Cause::InitialState);
    }
    run::start_here(&INSIGHT, innermost(Location::caller()));
}

/// The numbers of one step, each a tensor without dimensions that all parameters share: one parameter of the program in
/// place of one per op.
#[derive(Default)]
struct Numbers(Vec<(u8, DType, u64, Tensor)>);

impl Numbers {
    /// The number in a place of the formula, for parameters of a dtype. `variant` tells apart values that differ between
    /// parameters, such as step counts.
    fn get(&mut self, place: u8, like: DType, variant: u64, value: f64) -> Tensor {
        // Halves compute with the number rounded to their dtype in any case.
        let dtype = if like == DType::F64 { DType::F64 } else { DType::F32 };
        if let Some((.., t)) = self.0.iter().find(|n| (n.0, n.1, n.2) == (place, dtype, variant)) {
            return t.clone();
        }
        let t = match dtype {
            DType::F64 => Tensor::zeros(()).to(DType::F64) + value,
            _ => Tensor::full((), value),
        };
        self.0.push((place, dtype, variant, t.clone()));
        t
    }
}
