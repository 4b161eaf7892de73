//! Comparing with the tolerances that PyTorch itself tests with, widened where sums and approximations add up.
use crate::case::{Host, Numbers};
use xlazy::prelude::*;

/// How much wider than PyTorch's own an op's tolerance is: up to 100 for reductions, products and special functions.
fn widening(name: &str) -> f64 {
    const WIDE: &[&str] = &[
        "addbmm",
        "baddbmm",
        "bmm",
        "matmul",
        "mm",
        "mv",
        "addmm",
        "addmv",
        "dot",
        "einsum",
        "tensordot",
        "linear",
        "conv",
        "sum",
        "mean",
        "prod",
        "std",
        "var",
        "logsumexp",
        "softmax",
        "norm",
        "cum",
        "loss",
        "entropy",
        "attention",
        "erf",
        "gamma",
        "pow",
        "pool",
        "interpolate",
        "div",
        "lerp",
        "addc",
        "kl_div",
        "tan",
        "cosine",
        "sinh",
        "cosh",
        "acos",
        "asin",
        "atan",
        "remainder",
        "fmod",
        "linspace",
        "logspace",
        "exp",
        "log",
        "trace",
        "dist",
        "inner",
        "outer",
    ];
    if WIDE.iter().any(|w| name.contains(w)) { 100.0 } else { 10.0 }
}

/// `None` where equal within tolerance, otherwise the first difference.
pub fn difference(name: &str, ours: &Host, theirs: &Host) -> Option<String> {
    if ours.shape != theirs.shape {
        return Some(format!("shape {:?}, expected {:?}", ours.shape, theirs.shape));
    }
    if ours.dtype != theirs.dtype {
        return Some(format!("dtype {}, expected {}", ours.dtype, theirs.dtype));
    }
    match (&ours.data, &theirs.data) {
        (Numbers::Ints(a), Numbers::Ints(b)) => {
            let at = a.iter().zip(b).position(|(x, y)| x != y)?;
            Some(format!("element {at} is {}, expected {}", a[at], b[at]))
        }
        (Numbers::Floats(a), Numbers::Floats(b)) => {
            let (rtol, atol) = match ours.dtype {
                F64 => (1e-7, 1e-7),
                F16 => (1e-4, 1e-4),
                BF16 => (1.6e-3, 1.6e-3),
                _ => (1.3e-6, 1e-5),
            };
            let k = widening(name);
            let close =
                |x: f64, y: f64| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= k * (atol + rtol * y.abs());
            let at = a.iter().zip(b).position(|(x, y)| !close(*x, *y))?;
            Some(format!("element {at} is {}, expected {}", a[at], b[at]))
        }
        _ => Some("numbers of different kinds".into()),
    }
}
