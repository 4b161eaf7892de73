//! Hooks on modules: what is called before and after `forward`, and with the gradients that go through.
use super::module::{Module, Parts, at_caller};
use crate::tensor::{Hook, Tensor, is_grad_enabled};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

type Before<M> = dyn Fn(&M, &Tensor) -> Option<Tensor> + Send + Sync;
type After<M> = dyn Fn(&M, &Tensor, &Tensor) -> Option<Tensor> + Send + Sync;
type Backward = dyn Fn(Option<&Tensor>, &Tensor) -> Option<Tensor> + Send + Sync;

/// A hook, and its number.
type Numbered<F> = (u64, Arc<F>);

/// Hooks of one kind, in the order in which they came.
struct Hooks<F: ?Sized>(Arc<Mutex<Vec<Numbered<F>>>>);

impl<F: ?Sized> Default for Hooks<F> {
    fn default() -> Hooks<F> {
        Hooks(Arc::default())
    }
}

impl<F: ?Sized + Send + Sync + 'static> Hooks<F> {
    fn add(&self, f: Arc<F>) -> Hook {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((number, f));
        let all = self.0.clone();
        Hook::new(move || {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            let gone = all.iter().position(|(n, _)| *n == number).map(|i| all.remove(i));
            // Dropped behind the lock: it is code of the user's.
            drop(all);
            drop(gone);
        })
    }

    fn all(&self) -> Vec<Arc<F>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(_, f)| f.clone()).collect()
    }
}

/// A module with hooks (`torch.nn.Module.register_forward_hook` and its like): a field of type `nn::Hooked<nn::Linear>` where torch hooks
/// any module, since a call of a Rust struct's method is nobody else's. Everything else of the module is there as before, under
/// the same names.
///
/// ```
/// use xlazy::prelude::*;
/// use std::sync::{Arc, Mutex};
/// let layer = nn::Hooked::new(nn::Linear::new(2, 3));
/// let seen = Arc::new(Mutex::new(vec![]));
/// let to = seen.clone();
/// let hook = layer.register_forward_hook(move |_, _, y| { to.lock().unwrap().push(y.shape()); None });
/// layer.forward(&Tensor::ones([4, 2]));
/// assert_eq!(*seen.lock().unwrap(), [[4, 3]]);
/// assert_eq!((layer.weight.shape(), &*layer.named_parameters()[0].0), (Shape::new(&[3, 2]), "weight"));
/// hook.remove();
/// ```
pub struct Hooked<M> {
    module: M,
    before: Hooks<Before<M>>,
    after: Hooks<After<M>>,
    backward: Hooks<Backward>,
}

impl<M: Module + 'static> Hooked<M> {
    pub fn new(module: M) -> Hooked<M> {
        Hooked { module, before: Hooks::default(), after: Hooks::default(), backward: Hooks::default() }
    }

    /// Calls `f` with the module and its input before each `forward`; a tensor that it gives takes the input's place
    /// (`torch.nn.Module.register_forward_pre_hook`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let layer = nn::Hooked::new(nn::ReLU);
    /// let hook = layer.register_forward_pre_hook(|_, x| Some(x * 2.0));
    /// assert_eq!(layer.forward(&tensor([1.0])).item(), 2.0);
    /// hook.remove();
    /// assert_eq!(layer.forward(&tensor([1.0])).item(), 1.0);
    /// ```
    pub fn register_forward_pre_hook(&self, f: impl Fn(&M, &Tensor) -> Option<Tensor> + Send + Sync + 'static) -> Hook {
        self.before.add(Arc::new(f))
    }

    /// Calls `f` with the module, its input and its output after each `forward`; a tensor that it gives takes the output's place
    /// (`torch.nn.Module.register_forward_hook`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let layer = nn::Hooked::new(nn::ReLU);
    /// let hook = layer.register_forward_hook(|_, x, y| Some(x + y));
    /// assert_eq!(layer.forward(&tensor([1.0])).item(), 2.0);
    /// hook.remove();
    /// assert_eq!(layer.forward(&tensor([1.0])).item(), 1.0);
    /// ```
    pub fn register_forward_hook(
        &self,
        f: impl Fn(&M, &Tensor, &Tensor) -> Option<Tensor> + Send + Sync + 'static,
    ) -> Hook {
        self.after.add(Arc::new(f))
    }

    /// Calls `f` with the gradients of the input, where one flows, and of the output, each time that gradients go through the
    /// module; a tensor that it gives takes the place of the input's (`torch.nn.Module.register_full_backward_hook`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let layer = nn::Hooked::new(nn::ReLU);
    /// let hook = layer.register_full_backward_hook(|dx, _dy| dx.map(|dx| dx * 2.0));
    /// let x = tensor([1.0, -1.0]).requires_grad_(true);
    /// layer.forward(&x).sum().backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [2.0, 0.0]);
    /// ```
    pub fn register_full_backward_hook(
        &self,
        f: impl Fn(Option<&Tensor>, &Tensor) -> Option<Tensor> + Send + Sync + 'static,
    ) -> Hook {
        self.backward.add(Arc::new(f))
    }
}

impl<M> Deref for Hooked<M> {
    type Target = M;
    fn deref(&self) -> &M {
        &self.module
    }
}

impl<M: Module + 'static> Module for Hooked<M> {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        at_caller(|| {
            let mut x = x.clone();
            self.before.all().iter().for_each(|f| x = f(&self.module, &x).unwrap_or_else(|| x.clone()));
            let backward = self.backward.all();
            let follow = !backward.is_empty() && is_grad_enabled();
            // A tensor of its own: what else the input goes into is no part of the gradient here.
            let given = if follow && x.requires_grad() { x.copy() } else { x };
            let mut y = self.module.forward(&given);
            self.after.all().iter().for_each(|f| y = f(&self.module, &given, &y).unwrap_or_else(|| y.clone()));
            if follow && y.requires_grad() {
                y = y.copy();
                through(backward, &given, &y);
            }
            y
        })
    }
    fn parts(&self, parts: &mut Parts) {
        self.module.parts(parts)
    }
    fn module_kind(&self) -> &'static str {
        self.module.module_kind()
    }
}

/// Has the hooks called when the gradients of `x` and of `y` are there, which is made of `x`.
#[track_caller]
fn through(hooks: Vec<Arc<Backward>>, x: &Tensor, y: &Tensor) {
    let flows = x.requires_grad();
    let dy = Arc::new(Mutex::new(None::<Tensor>));
    let slot = dy.clone();
    let all = hooks.clone();
    y.register_hook(move |dy| {
        match flows {
            true => *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(dy.clone()),
            false => all.iter().for_each(|f| drop(f(None, dy))),
        }
        None
    });
    if !flows {
        return;
    }
    x.register_hook(move |dx| {
        let dy = dy.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let mut changed = None;
        for f in &hooks {
            let given = changed.as_ref().unwrap_or(dx);
            changed = f(Some(given), &dy).or(changed);
        }
        changed
    });
}
