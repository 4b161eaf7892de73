//! Which dtypes a call takes, where more could be computed than is meant: one table, by the call's name. PyTorch refuses the same.
use crate::{Error, Result};
use smallvec::SmallVec;
use std::cell::Cell;
use xlazy_core::ty::{DType, TypeRef};

#[derive(Clone, Copy)]
enum Rule {
    /// The first operand is a float.
    Float,
    /// So are all of them.
    Floats,
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

thread_local! {
    /// The small dtype that operands are in where it suits their op, under `autocast`.
    pub(super) static TO: Cell<Option<DType>> = const { Cell::new(None) };
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
    ("addmm", &[OneDtype]),
    ("addmv", &[OneDtype]),
    ("argmax", &[NoBool, NoComplex]),
    ("argmin", &[NoBool, NoComplex]),
    ("avg_pool1d", &[NoBool]),
    ("avg_pool2d", &[NoBool]),
    ("avg_pool3d", &[NoBool]),
    ("baddbmm", &[OneDtype]),
    ("batch_norm", &[Parameters]),
    ("bilinear", &[OneDtype]),
    ("binary_cross_entropy", &[Floats, OneDtype]),
    ("binary_cross_entropy_with_logits", &[Floats]),
    ("cdist", &[Floats, OneDtype]),
    ("conv1d", &[OneDtype]),
    ("conv2d", &[OneDtype]),
    ("conv3d", &[OneDtype]),
    ("conv_transpose1d", &[OneDtype]),
    ("conv_transpose2d", &[OneDtype]),
    ("conv_transpose3d", &[OneDtype]),
    ("corrcoef", &[NoBool]),
    ("cosine_similarity", &[NoComplex]),
    ("cov", &[NoBool]),
    ("cross_entropy", &[Float]),
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
    ("lerp", &[OneDtype]),
    ("linear", &[OneDtype]),
    ("local_response_norm", &[Float]),
    ("log_softmax", &[NoComplex]),
    ("logcumsumexp", &[Inexact]),
    ("logit", &[NoComplex]),
    ("matrix_norm", &[Inexact]),
    ("matrix_power", &[NoBool]),
    ("max_pool", &[NoComplex]),
    ("max_unpool", &[NoComplex]),
    ("median", &[NoBool, NoComplex]),
    ("mse_loss", &[NoComplex]),
    ("multi_margin_loss", &[Float]),
    ("nanmean", &[Inexact]),
    ("nanmedian", &[NoBool, NoComplex]),
    ("nll_loss", &[Float]),
    ("norm_p", &[Inexact]),
    ("normalize", &[Inexact]),
    ("pdist", &[Float]),
    ("poisson_nll_loss", &[NoBool, NoComplex]),
    ("polar", &[Floats, OneDtype]),
    ("polygamma", &[NoComplex]),
    ("prelu", &[OneDtype]),
    ("relu6", &[NoComplex]),
    ("round", &[NoBool]),
    ("round_decimals", &[NoBool]),
    ("smooth_l1_loss", &[NoComplex]),
    ("softmax", &[NoComplex]),
    ("softmin", &[NoBool, NoComplex]),
    ("softshrink", &[Float]),
    ("special.entr", &[NoComplex]),
    ("threshold", &[NoBool, NoComplex]),
    ("topk", &[NoBool, NoComplex]),
    ("unique", &[NoComplex]),
    ("unique_static", &[NoComplex]),
    ("unique_with", &[NoComplex]),
    ("vander", &[NoBool]),
    ("vecdot", &[Inexact]),
];

/// Refuses operands that the call of that name does not take.
pub(super) fn check<'a>(op: &'static str, types: impl Iterator<Item = &'a TypeRef> + Clone) -> Result<()> {
    match refused(op, types.clone().map(|t| t.dtype)) {
        Some(message) => Err(Error::Op { op, operands: types.map(TypeRef::to_string).collect(), message }),
        None => Ok(()),
    }
}

/// What is said of operands of several dtypes, for what is not promoted.
pub(crate) fn of_several(mut dtypes: impl Iterator<Item = DType>) -> Option<String> {
    let first = dtypes.next()?;
    let other = dtypes.find(|d| *d != first)?;
    Some(format!("all must be of one dtype, not {first} and {other}: convert one with `.to({first:?})`"))
}

/// Why the call does not take operands of these dtypes, if it does not. Under `autocast` they are made one.
pub(crate) fn refused(op: &str, dtypes: impl Iterator<Item = DType> + Clone) -> Option<String> {
    let first = dtypes.clone().next()?;
    // As nearly always: what computes floats takes these.
    if first.is_float() && dtypes.clone().all(|d| d == first) {
        return None;
    }
    let dtypes: SmallVec<[DType; 8]> = dtypes.collect();
    let mixed = TO.get().is_some();
    let rules = TABLE[TABLE.binary_search_by_key(&op, |(name, _)| name).ok()?].1;
    let inexact = |d: &DType| d.is_float() || d.is_complex();
    rules.iter().find_map(|rule| match rule {
        Float => (!first.is_float()).then(|| needs("a float tensor", first)),
        Floats => dtypes.iter().find(|d| !d.is_float()).map(|d| needs("float tensors", *d)),
        Inexact => (!inexact(&first)).then(|| needs("a float or complex tensor", first)),
        NoBool => dtypes.contains(&DType::Bool).then(|| {
            "is not defined for bools: convert with `.long()`, or with `.float()`".to_owned()
        }),
        NoComplex => dtypes.iter().any(|d| d.is_complex()).then(|| {
            "is not defined for complex numbers, which have no order: take their `.abs()`, `.real()` or `.imag()`".to_owned()
        }),
        OneDtype => of_several(dtypes.iter().copied()).filter(|_| !mixed),
        Parameters => {
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
