//! Gradients that are asked for by name, of one tensor or of several.
use super::walk;
use crate::insight::mode::{Derived, derives};
use crate::tensor::{Tensor, on_behalf, refuse};
use std::panic::Location;

/// What gradients are taken of: a tensor, or several in an array or a vector, as references or not.
pub struct Outputs<'a>(Vec<&'a Tensor>);

impl<'a> From<&'a Tensor> for Outputs<'a> {
    fn from(y: &'a Tensor) -> Outputs<'a> {
        Outputs(vec![y])
    }
}

impl<'a> From<&'a &Tensor> for Outputs<'a> {
    fn from(y: &'a &Tensor) -> Outputs<'a> {
        Outputs(vec![y])
    }
}

impl<'a> From<&'a [&'a Tensor]> for Outputs<'a> {
    fn from(all: &'a [&'a Tensor]) -> Outputs<'a> {
        Outputs(all.to_vec())
    }
}

impl<'a, const N: usize> From<&'a [&'a Tensor; N]> for Outputs<'a> {
    fn from(all: &'a [&'a Tensor; N]) -> Outputs<'a> {
        Outputs(all.to_vec())
    }
}

impl<'a> From<&'a Vec<&'a Tensor>> for Outputs<'a> {
    fn from(all: &'a Vec<&'a Tensor>) -> Outputs<'a> {
        Outputs(all.clone())
    }
}

impl<'a> From<&'a [Tensor]> for Outputs<'a> {
    fn from(all: &'a [Tensor]) -> Outputs<'a> {
        Outputs(all.iter().collect())
    }
}

impl<'a, const N: usize> From<&'a [Tensor; N]> for Outputs<'a> {
    fn from(all: &'a [Tensor; N]) -> Outputs<'a> {
        Outputs(all.iter().collect())
    }
}

impl<'a> From<&'a Vec<Tensor>> for Outputs<'a> {
    fn from(all: &'a Vec<Tensor>) -> Outputs<'a> {
        Outputs(all.iter().collect())
    }
}

/// What torch's `autograd.grad` takes besides outputs and inputs. `true` in its place is `create_graph`.
#[derive(Clone, Default)]
pub struct GradOptions {
    /// The gradient that flows into each output, of its shape; needed where one has several elements.
    pub grad_outputs: Vec<Tensor>,
    /// The gradients are recorded, so that they can be differentiated again.
    pub create_graph: bool,
}

impl From<bool> for GradOptions {
    fn from(create_graph: bool) -> GradOptions {
        GradOptions { create_graph, ..GradOptions::default() }
    }
}

/// The gradients of `outputs` with respect to `inputs`, without touching anybody's `grad()` (`torch.autograd.grad`): a tensor of one
/// element, or several, of which the gradients add up. `None` where no output depends on an input. The history is kept.
///
/// ```
/// use xlazy::prelude::*;
/// let x = tensor([2.0]).requires_grad_(true);
/// let dx = grad(&x.pow(3.0).sum(), &[&x]);
/// assert_eq!(dx[0].as_ref().unwrap().to_vec::<f32>(), [12.0]);
/// let (y1, y2) = (x.pow(3.0).sum(), (&x * 5.0).sum());
/// let dx = grad(&[&y1, &y2], &[&x]);
/// assert_eq!(dx[0].as_ref().unwrap().to_vec::<f32>(), [17.0]);
/// ```
#[track_caller]
pub fn grad<'a>(outputs: impl Into<Outputs<'a>>, inputs: &[&Tensor]) -> Vec<Option<Tensor>> {
    of_all(&outputs.into().0, inputs, GradOptions::default())
}

/// As [`grad`], with the gradients that flow into the outputs, and with gradients that are recorded (`torch.autograd.grad` with
/// `grad_outputs` and `create_graph`).
///
/// ```
/// use xlazy::prelude::*;
/// let x = tensor([2.0]).requires_grad_(true);
/// let dx = grad_with(&x.pow(3.0).sum(), &[&x], true).remove(0).unwrap();
/// let ddx = grad(&dx.sum(), &[&x]).remove(0).unwrap();
/// assert_eq!(ddx.to_vec::<f32>(), [12.0]);
/// // 10 times the gradient of x³, and once that of 5x
/// let (y1, y2) = (x.pow(3.0), &x * 5.0);
/// let options = GradOptions { grad_outputs: vec![tensor([10.0]), tensor([1.0])], ..Default::default() };
/// let dx = grad_with(&[&y1, &y2], &[&x], options);
/// assert_eq!(dx[0].as_ref().unwrap().to_vec::<f32>(), [125.0]);
/// ```
#[track_caller]
pub fn grad_with<'a>(
    outputs: impl Into<Outputs<'a>>,
    inputs: &[&Tensor],
    options: impl Into<GradOptions>,
) -> Vec<Option<Tensor>> {
    of_all(&outputs.into().0, inputs, options.into())
}

/// All of it that is compiled once.
#[track_caller]
fn of_all(outputs: &[&Tensor], inputs: &[&Tensor], options: GradOptions) -> Vec<Option<Tensor>> {
    let at = Location::caller();
    let GradOptions { grad_outputs, create_graph } = options;
    if !grad_outputs.is_empty() && grad_outputs.len() != outputs.len() {
        let why = format!("grad_outputs has a gradient for each output: {}, not {}", outputs.len(), grad_outputs.len());
        refuse("grad", outputs, why);
    }
    let mut starts = Vec::with_capacity(outputs.len());
    for (i, y) in outputs.iter().enumerate() {
        starts.push(((*y).clone(), y.seed("grad", grad_outputs.get(i))));
    }
    on_behalf(at, create_graph, || {
        let _follows = derives(Derived::Gradient);
        walk(&starts, inputs).wanted
    })
}
