//! Functions without state (`torch.nn.functional`), those that are no methods of tensors.
use super::module::at_caller;
use crate::CrossEntropyOptions;
use crate::tensor::Tensor;

/// The mean cross entropy of logits [n, classes, ...] against class numbers [n, ...]
/// (`torch.nn.functional.cross_entropy`); with options it is [`Tensor::cross_entropy`].
///
/// ```
/// use xlazy::prelude::*;
/// let loss = nn::functional::cross_entropy(&Tensor::zeros([3, 4]), &tensor([0, 1, 3]));
/// assert!((loss.item() - 4f64.ln()).abs() < 1e-6);
/// ```
#[track_caller]
pub fn cross_entropy(logits: &Tensor, targets: &Tensor) -> Tensor {
    at_caller(|| logits.cross_entropy(targets, CrossEntropyOptions::default()))
}

/// The share of rows whose largest logit is the target's, as a tensor: `[n, classes]` against `[n]`.
#[track_caller]
pub fn accuracy(logits: &Tensor, targets: &Tensor) -> Tensor {
    logits.argmax_dim(-1, false).eq(targets).float().mean()
}
