//! What a module is: something with parameters, buffers and modules inside, that makes a tensor of a tensor.
use super::state::{self, Published, copy_all};
use super::tree::{self, Entry};
use crate::changes::Changes;
use crate::insight::Cause;
use crate::ops::To;
use crate::tensor::{Tensor, is_grad_enabled, on_behalf, sync_for};
use crate::{Error, Result};
use std::collections::HashSet;
use std::fmt::Debug;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use xlazy_core::thread::innermost;
use xlazy_mime::Bundle;

/// A layer or a whole model (`torch.nn.Module`).
///
/// A model of your own names its parts with [`parts!`](crate::parts) and says what it computes:
///
/// ```
/// use xlazy::prelude::*;
/// struct Net { fc1: nn::Linear, fc2: nn::Linear }
/// impl Module for Net {
///     parts!(fc1, fc2);
///     fn forward(&self, x: &Tensor) -> Tensor {
///         self.fc2.forward(&self.fc1.forward(x).relu())
///     }
/// }
/// let net = Net { fc1: nn::Linear::new(4, 8), fc2: nn::Linear::new(8, 2) };
/// assert_eq!(net.forward(&Tensor::ones([3, 4])).shape(), [3, 2]);
/// assert_eq!(net.named_parameters()[2].0, "fc2.weight");
/// ```
pub trait Module: AsModule + Send + Sync {
    /// What the module makes of `x`. A module that takes other arguments has a method of its own instead.
    // Without `#[track_caller]`, which a model of the user's own would inherit: its ops are at its own lines. The library's
    // models have it each, and `#[inline]`: rustc cannot link the vtable of one that is compiled in another library.
    fn forward(&self, x: &Tensor) -> Tensor {
        let _ = x;
        Error::Usage { message: "this module has no `forward` of one tensor; see its own methods".into() }.raise()
    }

    /// Shows each parameter, buffer and module inside to `parts`; [`parts!`](crate::parts) writes this method.
    fn parts(&self, parts: &mut Parts) {
        let _ = parts;
    }

    /// All parameters, each once, under dotted names such as `fc1.weight` (`torch.nn.Module.named_parameters`).
    ///
    /// `nn::Linear::new(3, 2).named_parameters().remove(0).0` is `"weight"`.
    fn named_parameters(&self) -> Vec<(String, Tensor)> {
        let mut seen = HashSet::new();
        let mut out = collect(self, |p| matches!(p, Part::Parameter(_)));
        out.retain(|(_, t)| seen.insert(Arc::as_ptr(&t.0)));
        out
    }

    /// All parameters, each once: what an optimizer takes (`torch.nn.Module.parameters`).
    ///
    /// `nn::Linear::new(3, 2).parameters().iter().map(Tensor::numel).sum::<usize>()` is `8`.
    fn parameters(&self) -> Vec<Tensor> {
        self.named_parameters().into_iter().map(|(_, t)| t).collect()
    }

    /// The module as a tree, which is what showing it shows: the modules in it, shapes, numbers to train, and the lines that made
    /// them.
    fn summary(&self) -> Bundle {
        tree::bundle(self.module_kind(), &entries(self))
    }

    /// The name of its type: what it is called in the tree.
    #[doc(hidden)]
    fn module_kind(&self) -> &'static str {
        std::any::type_name::<Self>()
    }

    /// Tensors that belong to the state but are not trained, such as running means (`torch.nn.Module.named_buffers`).
    ///
    /// `nn::BatchNorm2d::new(4).named_buffers().remove(0).0` is `"running_mean"`.
    fn named_buffers(&self) -> Vec<(String, Tensor)> {
        collect(self, |p| matches!(p, Part::Buffer(_)))
    }

    /// Parameters and buffers by name, under all their names (`torch.nn.Module.state_dict`).
    ///
    /// `nn::BatchNorm2d::new(4).state_dict().len()` is `5`.
    fn state_dict(&self) -> Vec<(String, Tensor)> {
        collect(self, |_| true)
    }

    /// Copies values in by name; every name must be there, with the right shape, and no other; of a tensor with several names one
    /// is enough (`torch.nn.Module.load_state_dict`). Names that published files have instead are known by [`Module::published`].
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (a, b) = (nn::Linear::new(2, 1), nn::Linear::new(2, 1));
    /// a.load_state_dict(&b.state_dict()).unwrap();
    /// assert_eq!(a.weight.to_vec::<f32>(), b.weight.to_vec::<f32>());
    /// assert!(a.load_state_dict(&nn::Linear::new(3, 1).state_dict()).is_err());
    /// ```
    // With `#[track_caller]`, as the three below: they are the library's own for nearly every model, and the caller's line comes
    // through `dyn` as well. What a model does in one of its own is put down to the line that calls it, which is the user's.
    #[track_caller]
    fn load_state_dict(&self, state: &[(String, Tensor)]) -> Result<()> {
        state::load(&self.state_dict(), self.published(), state, true).map(drop)
    }

    /// As [`Module::load_state_dict`] without minding names that are missing or that the module does not have (`strict=False`):
    /// gives what was left, in words. Published weights have another head, or none. Where no name is the module's it is an error.
    #[track_caller]
    fn load_state_dict_loosely(&self, state: &[(String, Tensor)]) -> Result<Vec<String>> {
        state::load(&self.state_dict(), self.published(), state, false)
    }

    /// The names that files have where they are not the module's: for models whose weights are published under others.
    fn published(&self) -> Published {
        Published::default()
    }

    /// Turns training behaviour (dropout, batch statistics) on or off everywhere inside (`torch.nn.Module.train`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let layer = nn::Dropout::new(1.0);
    /// layer.train(false);
    /// assert_eq!(layer.forward(&tensor([1.0])).item(), 1.0);
    /// layer.train(true);
    /// assert_eq!(layer.forward(&tensor([1.0])).item(), 0.0);
    /// ```
    #[track_caller]
    fn train(&self, on: bool) {
        let mut flags = Vec::new();
        self.parts(&mut Parts {
            prefix: String::new(),
            visit: &mut |_, part| {
                if let Part::Training(flag) = part {
                    flags.push(flag.0.clone());
                }
            },
        });
        // Only when all are known: `parts` may be code of the notebook, which an interrupt ends.
        flags.iter().for_each(|flag| flag.store(on, Ordering::Relaxed));
        crate::insight::mode::switched(innermost(Location::caller()), on);
    }

    /// Turns training behaviour off (`torch.nn.Module.eval`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let layer = nn::Dropout::new(0.5);
    /// layer.eval();
    /// assert_eq!(layer.forward(&tensor([1.0])).item(), 1.0);
    /// ```
    #[track_caller]
    fn eval(&self) {
        self.train(false)
    }

    /// Moves all parameters and buffers, with their gradients, to a device, or converts those that are floats to a dtype, in
    /// place (`torch.nn.Module.to`). An optimizer keeps its state where the parameters were when it was made: move first.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let net = nn::Linear::new(2, 1);
    /// net.to(F64);
    /// assert_eq!(net.forward(&Tensor::ones([1, 2]).double()).dtype(), F64);
    /// ```
    #[track_caller]
    fn to(&self, to: impl Into<To>)
    where
        Self: Sized,
    {
        move_all(self.state_dict(), to.into())
    }

    /// Forgets the gradients of all parameters (`torch.nn.Module.zero_grad`); behind an
    /// [`optimizer_step`](crate::optim::optimizer_step) there are none.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let layer = nn::Linear::new(2, 1);
    /// layer.forward(&Tensor::ones([1, 2])).sum().backward();
    /// layer.zero_grad();
    /// assert!(layer.weight.grad().is_none());
    /// ```
    fn zero_grad(&self) {
        self.parameters().iter().for_each(|p| p.set_grad(None));
    }

    /// Whether gradients flow to the parameters, for all of them (`torch.nn.Module.requires_grad_`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let layer = nn::Linear::new(2, 1);
    /// layer.requires_grad_(false);
    /// assert!(!layer.forward(&Tensor::ones([1, 2])).requires_grad());
    /// ```
    #[track_caller]
    fn requires_grad_(&self, on: bool) {
        self.parameters().iter().for_each(|p| drop(p.requires_grad_(on)));
    }

    /// The modules inside, under their dotted names, and this one under the empty one: each with the name of its type
    /// (`torch.nn.Module.named_modules`). To do something with them: [`Module::apply`].
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let net = nn::Sequential::new((nn::Linear::new(2, 3), nn::ReLU));
    /// let names = net.named_modules();
    /// assert_eq!(names[1], ("0".to_owned(), "Linear"));
    /// ```
    fn named_modules(&self) -> Vec<(String, &'static str)> {
        let mut out = vec![(String::new(), tree::short(self.module_kind()))];
        self.parts(&mut Parts::all(&mut |path, part| {
            if let Part::Module(inner) = part {
                out.push((path.to_owned(), tree::short(inner.module_kind())));
            }
        }));
        out
    }

    /// Calls `f` with every module inside and then with this one, such as to set all weights of a kind
    /// (`torch.nn.Module.apply`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let net = nn::Sequential::new((nn::Linear::new(2, 3), nn::ReLU, nn::Linear::new(3, 1)));
    /// let mut layers = 0;
    /// net.apply(&mut |m| layers += u32::from(m.is("Linear")));
    /// assert_eq!(layers, 2);
    /// ```
    fn apply(&self, f: &mut dyn FnMut(&dyn Module)) {
        self.parts(&mut Parts::all(&mut |_, part| {
            if let Part::Module(inner) = part {
                f(inner);
            }
        }));
        f(self.as_module());
    }

    /// Whether it is of the type of this name: `m.is("Linear")`.
    fn is(&self, kind: &str) -> bool {
        tree::short(self.module_kind()) == kind
    }
}

/// Any module as `&dyn Module`: what [`Module::apply`] hands on.
#[doc(hidden)]
pub trait AsModule {
    fn as_module(&self) -> &dyn Module;
}

impl<M: Module> AsModule for M {
    fn as_module(&self) -> &dyn Module {
        self
    }
}

macro_rules! pointers {
    ($($pointer:ty)*) => {$(
        /// What it points to. A call through `dyn` loses the caller's line, and this one does not.
        impl<M: Module + ?Sized> Module for $pointer {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                at_caller(|| (**self).forward(x))
            }
            fn parts(&self, parts: &mut Parts) {
                (**self).parts(parts)
            }
            fn named_parameters(&self) -> Vec<(String, Tensor)> {
                (**self).named_parameters()
            }
            fn parameters(&self) -> Vec<Tensor> {
                (**self).parameters()
            }
            fn summary(&self) -> Bundle {
                (**self).summary()
            }
            fn module_kind(&self) -> &'static str {
                (**self).module_kind()
            }
            fn named_buffers(&self) -> Vec<(String, Tensor)> {
                (**self).named_buffers()
            }
            fn state_dict(&self) -> Vec<(String, Tensor)> {
                (**self).state_dict()
            }
            #[track_caller]
            fn load_state_dict(&self, state: &[(String, Tensor)]) -> Result<()> {
                at_caller(|| (**self).load_state_dict(state))
            }
            #[track_caller]
            fn load_state_dict_loosely(&self, state: &[(String, Tensor)]) -> Result<Vec<String>> {
                at_caller(|| (**self).load_state_dict_loosely(state))
            }
            fn published(&self) -> Published {
                (**self).published()
            }
            #[track_caller]
            fn train(&self, on: bool) {
                at_caller(|| (**self).train(on))
            }
            #[track_caller]
            fn eval(&self) {
                at_caller(|| (**self).eval())
            }
            fn zero_grad(&self) {
                (**self).zero_grad()
            }
            #[track_caller]
            fn requires_grad_(&self, on: bool) {
                (**self).requires_grad_(on)
            }
        }
    )*};
}
pointers!(&M Box<M> Arc<M>);

/// Whether a module trains; every module starts out training.
#[derive(Debug)]
pub struct Training(Arc<AtomicBool>);

impl Training {
    pub fn on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Training {
    fn default() -> Training {
        Training(Arc::new(AtomicBool::new(true)))
    }
}

/// One thing a module is made of.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    Parameter(&'a Tensor),
    Buffer(&'a Tensor),
    Training(&'a Training),
    /// What it was made with beside sizes: a name and a value, such as `p` of a dropout.
    #[doc(hidden)]
    Setting(&'a str, &'a dyn Debug),
    /// A module in it: what follows under its name is what it is made of.
    #[doc(hidden)]
    Module(&'a dyn Module),
}

/// Collects what a module is made of, with dotted names.
pub struct Parts<'v> {
    prefix: String,
    visit: &'v mut dyn FnMut(&str, Part),
}

impl<'v> Parts<'v> {
    pub(crate) fn all(visit: &'v mut dyn FnMut(&str, Part)) -> Parts<'v> {
        Parts { prefix: String::new(), visit }
    }

    /// A parameter (a tensor), a module, or several of them (a vector, an option).
    pub fn add(&mut self, name: &str, part: &(impl AsPart + ?Sized)) {
        part.show_part(name, self);
    }

    /// A tensor that is saved with the state but not trained.
    pub fn buffer(&mut self, name: &str, tensor: &Tensor) {
        self.under(name, |p| (p.visit)(&p.prefix, Part::Buffer(tensor)));
    }

    /// The switch that [`Module::train`] turns.
    pub fn training(&mut self, flag: &Training) {
        (self.visit)(&self.prefix, Part::Training(flag));
    }

    /// What the module was made with that its shapes do not tell: the tree shows it behind the module's name
    /// (`torch.nn.Module.extra_repr`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// struct Scaled { by: f64, inner: nn::Linear }
    /// impl Module for Scaled {
    ///     fn parts(&self, p: &mut nn::Parts) {
    ///         p.setting("by", &self.by);
    ///         p.add("inner", &self.inner);
    ///     }
    /// }
    /// let model = Scaled { by: 2.0, inner: nn::Linear::new(3, 2) };
    /// assert!(model.summary().plain().starts_with("Scaled(by=2.0)"));
    /// ```
    pub fn setting(&mut self, name: &str, value: &dyn Debug) {
        (self.visit)(&self.prefix, Part::Setting(name, value));
    }

    /// A setting that is worth a word only where it is not the usual one.
    pub(super) fn unusual<T: Debug + PartialEq>(&mut self, name: &str, value: &T, usual: &T) {
        if value != usual {
            self.setting(name, value);
        }
    }

    fn under(&mut self, name: &str, f: impl FnOnce(&mut Self)) {
        let n = self.prefix.len();
        if n > 0 && !name.is_empty() {
            self.prefix.push('.');
        }
        self.prefix.push_str(name);
        f(self);
        self.prefix.truncate(n);
    }
}

/// What can be a part of a module.
pub trait AsPart {
    #[doc(hidden)]
    fn show_part(&self, name: &str, parts: &mut Parts);
}

impl AsPart for Tensor {
    fn show_part(&self, name: &str, parts: &mut Parts) {
        parts.under(name, |p| (p.visit)(&p.prefix, Part::Parameter(self)));
    }
}

impl<M: Module + ?Sized> AsPart for M {
    fn show_part(&self, name: &str, parts: &mut Parts) {
        parts.under(name, |p| {
            (p.visit)(&p.prefix, Part::Module(self.as_module()));
            self.parts(p)
        });
    }
}

impl<P: AsPart> AsPart for Option<P> {
    fn show_part(&self, name: &str, parts: &mut Parts) {
        if let Some(part) = self {
            part.show_part(name, parts);
        }
    }
}

impl<P: AsPart> AsPart for Vec<P> {
    fn show_part(&self, name: &str, parts: &mut Parts) {
        parts.under(name, |p| self.iter().enumerate().for_each(|(i, part)| part.show_part(&i.to_string(), p)));
    }
}

/// Inside `impl Module`: the fields that are parameters or modules, by name. They can be tensors, modules, and vectors and
/// options of them. A cell tells of fields of that kind that are left out; `..` at the end says that it is meant, as in
/// `parts!(factor, ..)`.
///
/// ```
/// use xlazy::prelude::*;
/// struct Scale { factor: Tensor, layers: Vec<nn::Linear> }
/// impl Module for Scale {
///     parts!(factor, layers);
/// }
/// let m = Scale { factor: nn::parameter(Tensor::ones([1])), layers: vec![nn::Linear::new(2, 2)] };
/// let names: Vec<String> = m.named_parameters().into_iter().map(|p| p.0).collect();
/// assert_eq!(names, ["factor", "layers.0.weight", "layers.0.bias"]);
/// ```
#[macro_export]
macro_rules! parts {
    ($($field:ident,)* ..) => { $crate::parts! { $($field),* } };
    ($($field:ident),* $(,)?) => {
        fn parts(&self, parts: &mut $crate::nn::Parts) {
            $(parts.add(stringify!($field), &self.$field);)*
        }
    };
    ($($other:tt)*) => {
        compile_error!("`parts!` takes the names of the fields that hold layers, tensors or lists of them: `parts!(fc1, fc2);`");
    };
}

/// A tensor as a parameter: gradients accumulate in it (`torch.nn.Parameter`).
///
/// `nn::parameter(tensor([1.0])).requires_grad()` is `true`.
#[track_caller]
pub fn parameter(value: Tensor) -> Tensor {
    value.detach().requires_grad_(true)
}

/// Runs `f` with what it traces put down to the caller's line, which closures and calls through `dyn` would lose.
#[track_caller]
pub(crate) fn at_caller<R>(f: impl FnOnce() -> R) -> R {
    on_behalf(Location::caller(), is_grad_enabled(), f)
}

fn collect<M: Module + ?Sized>(module: &M, keep: impl Fn(&Part) -> bool) -> Vec<(String, Tensor)> {
    let mut out = Vec::new();
    let mut visit = |name: &str, part: Part| match part {
        Part::Parameter(t) | Part::Buffer(t) if keep(&part) => out.push((name.to_owned(), t.clone())),
        _ => {}
    };
    module.parts(&mut Parts { prefix: String::new(), visit: &mut visit });
    out
}

/// What is found in a module, for its tree.
pub(super) fn entries<M: Module + ?Sized>(module: &M) -> Vec<(String, Entry)> {
    let mut out = Vec::new();
    module.parts(&mut Parts::all(&mut |path, part| {
        let entry = match part {
            Part::Module(inner) => Entry::Module(inner.module_kind()),
            Part::Parameter(t) => Entry::Parameter(t.clone()),
            Part::Buffer(t) => Entry::Buffer(t.clone()),
            Part::Setting(name, value) => Entry::Setting(format!("{name}={value:?}")),
            Part::Training(_) => return,
        };
        out.push((path.to_owned(), entry));
    }));
    out
}

#[track_caller]
fn move_all(state: Vec<(String, Tensor)>, to: To) {
    let at = Location::caller();
    // One program for all that is pending, instead of one for each tensor that has to be computed to be moved.
    if let To::Device(name) = &to
        && state.iter().any(|(_, t)| t.runs_to_move(name))
    {
        sync_for(Cause::DeviceChange);
    }
    let (mut changes, mut seen) = (Changes::new(), HashSet::new());
    on_behalf(at, false, || {
        for (_, t) in &state {
            if !seen.insert(Arc::as_ptr(&t.0)) || matches!(to, To::DType(_)) && !t.dtype().is_float() {
                continue;
            }
            if let Some(grad) = t.held_grad() {
                changes.set_grad(t, Some(grad.to(to.clone())));
            }
            let here = t.detach();
            let there = here.to(to.clone());
            if !there.is_same(&here) {
                changes.set_data(t, there);
            }
        }
    });
    changes.apply();
}

/// Has a module that is just being made begin with the values of one of its kind. Nothing runs for that.
#[track_caller]
pub(super) fn begin_as<M: Module>(copy: &M, of: &M) {
    let (to, from) = (copy.state_dict(), of.state_dict());
    copy_all(to.iter().map(|(_, t)| t).zip(from.iter().map(|(_, t)| t)));
}
