//! Which dtypes a call takes, where more could be computed than is meant: one table, by the call's name. PyTorch refuses the same.
use super::mixed::mixed;
use crate::{Error, Result};
use smallvec::SmallVec;
use xlazy_core::ir::rules;
use xlazy_core::ty::{DType, TypeRef};

#[derive(Clone, Copy)]
enum Rule {
    /// The first operand is a float.
    Float,
    /// So are all of them.
    Floats,
    /// One of them is, to whose dtype the others are promoted.
    SomeFloat,
    /// The first operand is a float or complex.
    Inexact,
    NoBool,
    /// Nothing that has no order.
    NoComplex,
    /// Operands are not promoted to one another's dtype.
    OneDtype,
    /// What scales and moves is of the input's dtype, or float32 where that is a half.
    Parameters,
}

use Rule::*;

fn is_mixed() -> bool {
    mixed().lower.is_some()
}

/// Sorted by name.
const TABLE: &[(&str, &[Rule])] = &[
    ("adaptive_avg_pool1d", &[Float]),
    ("adaptive_avg_pool2d", &[Float]),
    ("adaptive_avg_pool3d", &[Float]),
    ("adaptive_max_pool1d", &[NoBool, NoComplex]),
    ("adaptive_max_pool2d", &[NoBool, NoComplex]),
    ("adaptive_max_pool3d", &[NoBool, NoComplex]),
    ("addbmm", &[OneDtype]),
    ("addbmm_with", &[OneDtype]),
    ("addmm", &[OneDtype]),
    ("addmm_with", &[OneDtype]),
    ("addmv", &[OneDtype]),
    ("addmv_with", &[OneDtype]),
    ("argmax", &[NoBool, NoComplex]),
    ("argmin", &[NoBool, NoComplex]),
    ("avg_pool1d", &[NoBool]),
    ("avg_pool2d", &[NoBool]),
    ("avg_pool3d", &[NoBool]),
    ("baddbmm", &[OneDtype]),
    ("baddbmm_with", &[OneDtype]),
    ("batch_norm", &[Parameters, NoComplex]),
    ("bilinear", &[OneDtype]),
    ("binary_cross_entropy", &[Floats, OneDtype]),
    ("binary_cross_entropy_with_logits", &[Floats]),
    ("cdist", &[Floats, OneDtype]),
    ("celu", &[Float]),
    ("conv1d", &[OneDtype]),
    ("conv2d", &[OneDtype]),
    ("conv3d", &[OneDtype]),
    ("conv_transpose1d", &[OneDtype]),
    ("conv_transpose2d", &[OneDtype]),
    ("conv_transpose3d", &[OneDtype]),
    ("copysign", &[NoComplex]),
    ("corrcoef", &[NoBool]),
    ("cosine_similarity", &[NoComplex, SomeFloat]),
    ("cov", &[NoBool]),
    ("cross_entropy", &[Float]),
    ("cumulative_trapezoid", &[NoBool]),
    ("elu", &[Float]),
    ("entr", &[NoComplex]),
    ("frac", &[NoComplex, Float]),
    ("gelu", &[Float]),
    ("grid_sample", &[OneDtype]),
    ("group_norm", &[Parameters]),
    ("hardshrink", &[Float]),
    ("hardsigmoid", &[Float]),
    ("hardswish", &[Float]),
    ("huber_loss", &[NoComplex]),
    ("hypot", &[NoComplex]),
    ("instance_norm", &[Parameters]),
    ("interpolate", &[NoBool, NoComplex]),
    ("isin", &[NoBool, NoComplex]),
    ("kl_div", &[Floats]),
    ("kthvalue", &[NoBool, NoComplex]),
    ("layer_norm", &[Parameters]),
    ("leaky_relu", &[Float]),
    ("lerp", &[OneDtype]),
    ("linalg_norm", &[Inexact]),
    ("linear", &[OneDtype]),
    ("local_response_norm", &[NoBool, NoComplex]),
    ("log_softmax", &[Float]),
    ("logcumsumexp", &[Inexact]),
    ("logit", &[NoComplex]),
    ("logsigmoid", &[Float]),
    ("matrix_norm", &[Inexact]),
    ("matrix_power", &[NoBool]),
    ("max_pool1d", &[NoComplex]),
    ("max_pool2d", &[NoComplex]),
    ("max_pool3d", &[NoComplex]),
    ("max_pool_indices", &[NoComplex]),
    ("max_unpool", &[NoComplex]),
    ("median", &[NoBool, NoComplex]),
    ("mish", &[Float]),
    ("mse_loss", &[NoComplex]),
    ("multi_margin_loss", &[Float]),
    ("nanmean", &[Float]),
    ("nanmedian", &[NoBool, NoComplex]),
    ("nansum", &[NoComplex]),
    ("ndtri", &[NoComplex]),
    ("nll_loss", &[Float]),
    ("norm", &[Inexact]),
    ("norm_p", &[Inexact]),
    ("normalize", &[Inexact]),
    ("ormqr", &[Inexact, OneDtype]),
    ("pdist", &[Float]),
    ("poisson_nll_loss", &[NoBool, NoComplex]),
    ("poisson_nll_loss_with", &[NoBool, NoComplex]),
    ("polar", &[Floats, OneDtype]),
    ("polygamma", &[NoComplex]),
    ("prelu", &[OneDtype]),
    ("relu6", &[NoComplex]),
    ("round", &[NoBool]),
    ("round_decimals", &[NoBool]),
    ("selu", &[Float]),
    ("silu", &[Inexact]),
    ("smooth_l1_loss", &[NoComplex]),
    ("soft_margin_loss", &[Float, NoComplex]),
    ("softmax", &[Float]),
    ("softmin", &[Float]),
    ("softplus", &[Float]),
    ("softshrink", &[Float]),
    ("stft", &[Inexact]),
    ("tanhshrink", &[NoBool]),
    ("threshold", &[NoBool, NoComplex]),
    ("topk", &[NoBool, NoComplex]),
    ("trapezoid", &[NoBool]),
    ("unique", &[NoComplex]),
    ("unique_static", &[NoComplex]),
    ("unique_with", &[NoComplex]),
    ("vander", &[NoBool]),
    ("vecdot", &[Inexact, OneDtype]),
    ("xlog1py", &[NoComplex]),
    ("xlogy", &[NoComplex]),
];

/// Refuses operands that the call of that name does not take.
pub(super) fn check<'a>(op: &'static str, types: impl Iterator<Item = &'a TypeRef> + Clone) -> Result<()> {
    match refused(op, types.clone().map(|t| t.dtype)) {
        Some(message) => Err(Error::Op { op, operands: types.map(TypeRef::to_string).collect(), message }),
        None => Ok(()),
    }
}

/// What is said of operands of several dtypes, for what is not promoted. Under `autocast` they are made one.
pub(crate) fn of_several(mut dtypes: impl Iterator<Item = DType>) -> Option<String> {
    let first = dtypes.next()?;
    let other = dtypes.find(|d| *d != first).filter(|_| !is_mixed())?;
    Some(format!("all must be of one dtype, not {first} and {other}: convert one with `.to({first:?})`"))
}

/// Why the call does not take operands of these dtypes, if it does not.
pub(crate) fn refused(op: &str, dtypes: impl Iterator<Item = DType> + Clone) -> Option<String> {
    let first = dtypes.clone().next()?;
    // As nearly always: what computes floats takes these.
    if first.is_float() && dtypes.clone().all(|d| d == first) {
        return None;
    }
    let dtypes: SmallVec<[DType; 8]> = dtypes.collect();
    let row = TABLE[TABLE.binary_search_by_key(&op, |(name, _)| name).ok()?].1;
    let inexact = |d: &DType| d.is_float() || d.is_complex();
    row.iter().find_map(|rule| match rule {
        Float => (!first.is_float()).then(|| needs("a float tensor", first)),
        Floats => dtypes.iter().find(|d| !d.is_float()).map(|d| needs("float tensors", *d)),
        SomeFloat => (!dtypes.iter().any(|d| d.is_float())).then(|| needs("float tensors", first)),
        Inexact => (!inexact(&first)).then(|| needs("a float or complex tensor", first)),
        NoBool => {
            let some = dtypes.contains(&DType::Bool);
            some.then(|| "not defined for bools: convert with `.long()`, or with `.float()`".to_owned())
        }
        NoComplex => dtypes.iter().find(|d| d.is_complex()).map(|d| rules::unordered(*d)),
        OneDtype => of_several(dtypes.iter().copied()),
        Parameters => {
            let mixed = is_mixed();
            let other = |d: &&DType| **d != first && !mixed && !(first.is_half() && **d == DType::F32);
            dtypes.iter().find(other).map(|other| {
                format!("weights and statistics must be of the input's dtype, not {other} beside {first}: convert with `.to({first:?})`")
            })
        }
    })
}

fn needs(what: &str, dtype: DType) -> String {
    let take = if dtype.is_complex() { "take `.abs()` or `.real()`" } else { "convert with `.float()`" };
    format!("needs {what}, not {dtype}: {take}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(TABLE.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn each_row_is_of_something_that_is_called() {
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/ops")).unwrap();
        let texts: String = files.map(|f| std::fs::read_to_string(f.unwrap().path()).unwrap_or_default()).collect();
        let missing: Vec<&str> =
            TABLE.iter().map(|row| row.0).filter(|name| !texts.contains(&format!("\"{name}\""))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn what_is_refused() {
        use DType::*;
        for (op, dtypes, why) in [
            (
                "conv2d",
                vec![F32, BF16],
                Some("all must be of one dtype, not f32 and bf16: convert one with `.to(F32)`"),
            ),
            ("conv2d", vec![F32, F32], None),
            ("layer_norm", vec![BF16, F32, F32], None),
            (
                "layer_norm",
                vec![F32, BF16],
                Some(
                    "weights and statistics must be of the input's dtype, not bf16 beside f32: convert with `.to(F32)`",
                ),
            ),
            ("gelu", vec![I64], Some("needs a float tensor, not i64: convert with `.float()`")),
            ("gelu", vec![C64], Some("needs a float tensor, not c64: take `.abs()` or `.real()`")),
            ("add", vec![I64, C64], None),
        ] {
            assert_eq!(refused(op, dtypes.into_iter()).as_deref(), why, "{op}");
        }
        crate::autocast(BF16, || assert_eq!(refused("conv2d", [F32, BF16].into_iter()), None));
    }
}
