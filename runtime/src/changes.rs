//! Changes that take place together: all of an optimizer's step, of a state that is loaded, of a batch's statistics, or none.
//!
//! An interrupt may unwind wherever an op is recorded, and so does a refusal. So all new values are recorded first; putting
//! them in place then records nothing and cannot fail.
use crate::tensor::{Tensor, follow, set_all, write_of};

/// New values of tensors, put in their place all at once by [`Changes::apply`]. Where the cell ends before that, by an
/// interrupt or an error, nothing has changed: neither half of a step nor half of an average is left behind.
///
/// ```
/// use xlazy::prelude::*;
/// let (model, slow) = (nn::Linear::new(2, 2), nn::Linear::new(2, 2));
/// // A moving average of a model's parameters.
/// let mut changes = xlazy::Changes::new();
/// no_grad(|| {
///     for (s, p) in slow.parameters().iter().zip(model.parameters()) {
///         changes.set(s, s * 0.9 + p * 0.1);
///     }
/// });
/// changes.apply();
/// ```
#[derive(Default)]
#[must_use = "nothing changes before `apply()`"]
pub struct Changes {
    values: Vec<(Tensor, Tensor)>,
    /// The in-place op that they are of, where they are of one.
    op: Option<&'static str>,
    gradients: Vec<(Tensor, Option<Tensor>)>,
}

impl Changes {
    pub fn new() -> Changes {
        Changes::default()
    }

    /// `tensor` will have this value, which must be of its shape; the last one counts where there are several. A parameter
    /// is changed inside [`no_grad`](crate::no_grad), as in place.
    #[track_caller]
    pub fn set(&mut self, tensor: &Tensor, value: Tensor) {
        self.assign("set", tensor, value);
    }

    /// `tensor` will have this gradient, or none.
    pub fn set_grad(&mut self, tensor: &Tensor, gradient: Option<Tensor>) {
        self.gradients.push((tensor.clone(), gradient));
    }

    /// As [`Changes::set`], in the name of an op.
    #[track_caller]
    pub(crate) fn assign(&mut self, op: &'static str, tensor: &Tensor, value: Tensor) {
        self.op = Some(op);
        self.set_data(tensor, tensor.fitted(op, value));
    }

    /// As [`Changes::set`], whatever the value's type.
    pub(crate) fn set_data(&mut self, tensor: &Tensor, value: Tensor) {
        self.values.push((tensor.clone(), value));
    }

    /// Puts everything in its place.
    #[track_caller]
    pub fn apply(mut self) {
        follow(&mut self.values);
        set_all(&mut self.values, self.op.map(write_of));
        self.gradients.into_iter().for_each(|(tensor, gradient)| tensor.set_grad(gradient));
    }
}
