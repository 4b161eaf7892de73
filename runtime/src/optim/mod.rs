//! Optimizers under torch's names, as plain users of tensors.
//!
//! One step is one program, however often it runs: step counts and rates go in as numbers, and the state is there, on the
//! device, before the first step. Parameters and state are replaced in place, so that a barrier can reuse their buffers.
// Public, for a cell names a variable's type by the path that the compiler gives.
#[doc(hidden)]
pub mod adam;
#[doc(hidden)]
pub mod schedule;
#[doc(hidden)]
pub mod sgd;

pub use adam::{Adam, AdamOptions, AdamW};
pub use schedule::{CosineAnnealingLR, ExponentialLR, LambdaLR, LinearLR, StepLR};
pub use sgd::{SGD, SGDOptions};

use crate::changes::Changes;
use crate::insight::Cause;
use crate::insight::mode::{Derived, derives};
use crate::tensor::{Tensor, is_grad_enabled, on_behalf, refuse, sync_for};
use crate::{Error, Result};
use std::borrow::Borrow;
use std::collections::HashSet;
use std::panic::Location;
use std::sync::Arc;
use xlazy_core::ir::graph;
use xlazy_core::ty::{DType, Shape, Type};

/// What trains parameters by their gradients (`torch.optim.Optimizer`).
pub trait Optimizer: Send {
    /// Changes every parameter that has a gradient. Nothing runs before the next barrier; see [`optimizer_step`].
    // As `Module::forward`: an optimizer of the user's own traces at its own lines.
    fn step(&mut self);

    /// The tensors that this optimizer changes.
    fn parameters(&self) -> &[Tensor];

    /// The learning rate.
    fn lr(&self) -> f64;

    /// Sets the learning rate; it is a number of the program, so this never compiles again.
    fn set_lr(&mut self, lr: f64);

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

    /// Takes over what [`Optimizer::state_dict`] gave; an error where it does not fit, and then nothing has changed
    /// (`torch.optim.Optimizer.load_state_dict`).
    fn load_state_dict(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        let _ = state;
        Err(Error::Usage { message: "this optimizer has no `load_state_dict` of its own".into() })
    }

    /// Forgets all gradients (`torch.optim.Optimizer.zero_grad`, to none).
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
    on_behalf(Location::caller(), is_grad_enabled(), || optimizer.step());
    sync_for(Cause::OptimizerStep);
}

/// Scales the gradients down where their common norm is above `max_norm`, and gives that norm
/// (`torch.nn.utils.clip_grad_norm_`). Nothing is read back.
#[track_caller]
pub fn clip_grad_norm_(parameters: &[Tensor], max_norm: f64) -> Tensor {
    on_behalf(Location::caller(), false, || {
        let _follows = derives(Derived::Update);
        let squares = parameters.iter().filter_map(Tensor::grad).map(|g| g.square().sum());
        let Some(sum) = squares.reduce(|a, b| &a + b.placed_like(&a)) else { return Tensor::zeros(()) };
        let norm = sum.sqrt();
        let scale = (max_norm / (&norm + 1e-6)).clamp_max(1.0);
        let mut changes = Changes::new();
        for p in parameters {
            if let Some(g) = p.grad() {
                changes.set_grad(p, Some(&g * scale.clone().placed_like(&g)));
            }
        }
        changes.apply();
        norm
    })
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

/// Where a parameter has been moved to another device, its state follows it.
fn follow(state: &[Tensor], parameters: &[Tensor]) {
    if !graph().on_several_devices() {
        return;
    }
    for (s, p) in state.iter().zip(parameters).filter(|(s, p)| s.placement() != p.placement()) {
        s.set_data(s.clone().placed_like(p));
    }
}

/// State of the shape of each parameter, zero, where the parameter is.
fn zeros_like(parameters: &[Tensor]) -> Vec<Tensor> {
    let zeros = |p: &Tensor| {
        let ty = p.ty();
        Tensor::of_bytes_on(p.placement(), &vec![0; ty.bytes()], ty)
    };
    parameters.iter().map(zeros).collect()
}

// Parameters that are still to be drawn, state that is still to be filled and data that is still to be prepared would make the
// first step another program than the second.
#[track_caller]
fn settle() {
    sync_for(Cause::Sync);
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
