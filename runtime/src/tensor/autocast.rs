//! Mixed precision: what is recorded in a closure takes its operands in the dtype that suits its op.
use super::takes::TO;
use super::thread::{is_grad_enabled, on_behalf};
use super::{Arg, Entry};
use smallvec::SmallVec;
use std::panic::Location;
use xlazy_core::ty::DType;

/// Ops that are fast in a small dtype and lose little: products, which sum in float32 anyway (torch_xla's `lower_precision_fp`,
/// of which these are what all others are made of).
const LOWER: &[&str] = &["matmul", "convolution"];

/// Ops that need float32's digits or range (torch_xla's `fp32`, as far as they are ops here, and CUDA's softmax). Losses are made of
/// these.
const FULL: &[&str] = &[
    "log_softmax",
    "softmax",
    "logsumexp",
    "prod",
    "cumprod",
    "fft",
    "cholesky",
    "cholesky_solve",
    "geqrf",
    "lu_factor",
    "solve_triangular",
];

/// Puts back what was before.
struct Back(Option<DType>);

impl Drop for Back {
    fn drop(&mut self) {
        TO.set(self.0);
    }
}

fn set(to: Option<DType>) -> Back {
    Back(TO.replace(to))
}

/// Runs `f` with products of matrices and convolutions in `dtype`, bf16 or f16, and what needs more in float32; everything else is in
/// the dtype of its operands, the wider one where they differ (`torch.autocast`, by torch_xla's lists). Parameters stay in float32, and
/// so do their gradients. `backward()` comes behind it. With f16 a loss needs a scale: `optim::GradScaler`.
///
/// ```
/// use xlazy::prelude::*;
/// let w = nn::Linear::new(4, 3);
/// let y = autocast(BF16, || w.forward(&Tensor::ones([2, 4])));
/// y.float().sum().backward();
/// assert_eq!((y.dtype(), w.weight.grad().unwrap().dtype()), (BF16, F32));
/// ```
pub fn autocast<R>(dtype: DType, f: impl FnOnce() -> R) -> R {
    let _back = set(Some(dtype));
    f()
}

/// The operands as an op takes them here, where that is otherwise than they are.
pub(super) fn cast<'a>(op: &Entry, args: &'a [Arg], at: &'static Location<'static>) -> Option<SmallVec<[Arg<'a>; 8]>> {
    let lower = TO.get()?;
    let (from, to): (fn(DType) -> bool, DType) = if LOWER.contains(&op.name) {
        (|d| d.is_float() && d != DType::F64, lower)
    } else if FULL.contains(&op.name) {
        (DType::is_half, DType::F32)
    } else {
        return None;
    };
    let other = |a: &Arg| a.tensor().is_some_and(|t| from(t.dtype()) && t.dtype() != to);
    if !args.iter().any(other) {
        return None;
    }
    // what converts them is recorded as it stands
    let _back = set(None);
    let taken = args.iter().map(|a| match a.tensor() {
        Some(t) if other(a) => Arg::Owned(on_behalf(at, is_grad_enabled(), || t.to(to))),
        _ => a.again(),
    });
    Some(taken.collect())
}
