//! What `autocast` makes of dtypes: torch_xla's lists, and the call under way.
use std::cell::Cell;
use xlazy_core::ty::DType;

// The lists of torch_xla's `autocast_mode.cpp`, those of its ops that it leaves out for want of a lowering included, by the names that calls have
// here; sorted. A call of several ops is looked up as it was written, and what it is made of follows it: a loss is in float32 all
// through, whatever ops it takes.

/// In the small dtype: products, which sum in float32 anyway, and what comes behind them.
const LOWER: &[&str] = &[
    "addbmm",
    "addbmm_with",
    "addmm",
    "addmm_with",
    "baddbmm",
    "baddbmm_with",
    "bmm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
    "einsum",
    "linear",
    "matmul",
    "max_pool2d",
    "mm",
    "prelu",
    "relu",
];

/// In float32: what needs its digits or its range. `instance_norm` is torch's `batch_norm`; `cumprod` and `logsumexp` are CUDA's.
const FULL: &[&str] = &[
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cdist",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "cumprod",
    "eigh",
    "eigvalsh",
    "fft",
    "fft2",
    "fftn",
    "geqrf",
    "grid_sample",
    "hfft",
    "hinge_embedding_loss",
    "householder_product",
    "huber_loss",
    "ifft",
    "ifft2",
    "ifftn",
    "ihfft",
    "instance_norm",
    "inv",
    "irfft",
    "irfft2",
    "irfftn",
    "kl_div",
    "l1_loss",
    "log_softmax",
    "logsumexp",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "margin_ranking_loss",
    "matrix_rank",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "nanquantile",
    "nll_loss",
    "ormqr",
    "pad_mode",
    "pinv",
    "pinv_hermitian",
    "poisson_nll_loss",
    "poisson_nll_loss_with",
    "polar",
    "prod",
    "qr",
    "quantile_with",
    "rfft",
    "rfft2",
    "rfftn",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "solve",
    "solve_triangular",
    "stft",
    "svd",
    "svdvals",
    "trace",
    "triangular_solve",
    "triplet_margin_loss",
    "triplet_margin_loss_with",
    "view_as_complex",
];

/// In the widest of their operands' dtypes.
const PROMOTED: &[&str] = &["cat", "index_copy", "stack"];

/// What holds on a thread.
#[derive(Clone, Copy)]
pub(super) struct Mixed {
    /// The small dtype that operands are in where it suits their op.
    pub lower: Option<DType>,
    /// The dtype that all floats are in, but float64, in the call under way.
    pub inside: Option<DType>,
    /// How many calls there were.
    pub calls: u32,
}

thread_local! {
    static MIXED: Cell<Mixed> = const { Cell::new(Mixed { lower: None, inside: None, calls: 0 }) };
}

/// Puts back what was before.
pub(super) struct Back(Mixed);

impl Drop for Back {
    #[inline(never)]
    fn drop(&mut self) {
        let calls = MIXED.get().calls;
        MIXED.set(Mixed { calls, ..self.0 });
    }
}

pub(super) fn mixed() -> Mixed {
    MIXED.get()
}

/// Has what is recorded until the guard goes follow the lists with this small dtype, or none.
pub(super) fn with(lower: Option<DType>) -> Back {
    let before = MIXED.get();
    MIXED.set(Mixed { lower, inside: None, ..before });
    Back(before)
}

/// Whether `autocast` converts it.
pub(super) fn converts(dtype: DType) -> bool {
    dtype.is_float() && dtype != DType::F64
}

/// The dtype that what is called so has its floats in here, where it is on a list or a part of what is.
pub(super) fn dtype_of(op: &str, operands: impl Iterator<Item = DType>) -> Option<DType> {
    let Mixed { lower, inside, .. } = MIXED.get();
    let lower = lower?;
    let on = |list: &[&str]| list.binary_search(&op).is_ok();
    match inside {
        Some(dtype) => Some(dtype),
        None if on(LOWER) => Some(lower),
        None if on(FULL) => Some(DType::F32),
        None if on(PROMOTED) => operands.filter(|d| d.is_float()).reduce(DType::promote),
        None => None,
    }
}

/// Has all that is recorded until the guard goes follow a call of several ops, where that is on a list.
pub(super) fn within(op: &str, operands: impl Iterator<Item = DType>) -> Option<Back> {
    let before = MIXED.get();
    if before.lower.is_none() || before.inside.is_some() {
        return None;
    }
    let inside = Some(dtype_of(op, operands)?);
    MIXED.set(Mixed { inside, calls: before.calls.wrapping_add(1), ..before });
    Some(Back(before))
}

/// What a dtype is to the call under way.
#[inline]
pub(super) fn seen(dtype: DType) -> DType {
    match MIXED.get().inside {
        Some(inside) if converts(dtype) => inside,
        _ => dtype,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_name_what_is_called() {
        let folders = ["/src/ops", "/src/nn"].map(|f| env!("CARGO_MANIFEST_DIR").to_owned() + f);
        let files = folders.iter().flat_map(|f| std::fs::read_dir(f).unwrap());
        let texts: String = files.map(|f| std::fs::read_to_string(f.unwrap().path()).unwrap_or_default()).collect();
        // what a macro names
        let planes = |name: &str| texts.contains(&format!("{name} => {}n;", &name[..name.len() - 1]));
        for list in [LOWER, FULL, PROMOTED] {
            assert!(list.is_sorted());
            let missing: Vec<&&str> =
                list.iter().filter(|name| !texts.contains(&format!("\"{name}\"")) && !planes(name)).collect();
            assert!(missing.is_empty(), "{missing:?}");
        }
    }
}
