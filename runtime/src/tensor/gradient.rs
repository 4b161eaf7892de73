//! What `backward()` leaves at a tensor, until it is forgotten or a step takes it.
use super::{Gradient, Tensor, held, refuse};
use std::panic::Location;
use xlazy_core::text::location;
use xlazy_core::thread::innermost;

impl Tensor {
    /// The gradient that `backward()` accumulated, if any (`torch.Tensor.grad`).
    ///
    /// An error where [`optimizer_step`](crate::optim::optimizer_step) has taken it: a gradient that can be looked at behind a
    /// step is one more result of its program. Read it before the step, or step with
    /// [`optimizer_step_retain_grad`](crate::optim::optimizer_step_retain_grad).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([2.0, 3.0]).requires_grad_(true);
    /// x.square().sum().backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [4.0, 6.0]);
    /// ```
    #[track_caller]
    pub fn grad(&self) -> Option<Tensor> {
        let at = match &*held(&self.known()?.grad) {
            Gradient::None => return None,
            Gradient::Of(grad) => return Some(grad.clone()),
            Gradient::Taken(at) => *at,
        };
        let why = format!(
            "`optimizer_step` ({}) took this gradient with it, so that its program need not give it back: read it before the \
             step, or keep it by `optimizer_step_retain_grad(&mut opt)` in place of `optimizer_step`",
            location(at)
        );
        refuse("grad", &[self], why)
    }

    /// The gradient that there is: none where a step has taken it.
    pub(crate) fn held_grad(&self) -> Option<Tensor> {
        match &*held(&self.known()?.grad) {
            Gradient::Of(grad) => Some(grad.clone()),
            Gradient::None | Gradient::Taken(_) => None,
        }
    }

    /// Sets or clears the gradient.
    pub fn set_grad(&self, grad: Option<Tensor>) {
        self.replace_gradient(grad.map_or(Gradient::None, Gradient::Of));
    }

    /// The step at this line has used the gradient, if there is one, and nobody else will.
    #[track_caller]
    pub(crate) fn take_gradient(&self) {
        if self.held_grad().is_some() {
            self.replace_gradient(Gradient::Taken(innermost(Location::caller())));
        }
    }

    fn replace_gradient(&self, new: Gradient) {
        let meta = self.meta();
        // What was there is dropped behind the lock.
        let old = std::mem::replace(&mut *held(&meta.grad), new);
        drop(old);
    }
}
