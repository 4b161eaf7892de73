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

/// Ops that choose one of equal elements, which nobody promises: the gradient is that one's.
pub const CHOOSES: &[&str] = &["mode", "msort", "sort", "topk", "kthvalue", "median.reduction_with_dim"];

/// The sums of a gradient over equal elements of what it is of.
pub fn by_value(gradient: &Host, x: &Host) -> Host {
    let (Numbers::Floats(all), Numbers::Floats(x)) = (&gradient.data, &x.data) else { return gradient.clone() };
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|&i, &j| x[i].total_cmp(&x[j]));
    let sums: Vec<f64> = order.chunk_by(|&i, &j| x[i] == x[j]).map(|of| of.iter().map(|&i| all[i]).sum()).collect();
    Host { dtype: gradient.dtype, shape: vec![sums.len()], data: Numbers::Floats(sums), pairs: gradient.pairs }
}

/// How large the largest error is, in parts of what is tolerated; otherwise the first difference.
pub fn difference(name: &str, ours: &Host, theirs: &Host) -> Result<f64, String> {
    if ours.shape != theirs.shape {
        return Err(format!("shape {:?}, expected {:?}", ours.shape, theirs.shape));
    }
    if ours.dtype != theirs.dtype {
        return Err(format!("dtype {}, expected {}", ours.dtype, theirs.dtype));
    }
    match (&ours.data, &theirs.data) {
        (Numbers::Ints(a), Numbers::Ints(b)) => match a.iter().zip(b).position(|(x, y)| x != y) {
            Some(at) => Err(format!("element {at} is {}, expected {}", a[at], b[at])),
            None => Ok(0.0),
        },
        (Numbers::Floats(a), Numbers::Floats(b)) => {
            let (rtol, atol) = match ours.dtype {
                F64 => (1e-7, 1e-7),
                F16 => (1e-4, 1e-4),
                BF16 => (1.6e-3, 1.6e-3),
                _ => (1.3e-6, 1e-5),
            };
            let k = widening(name);
            let off = |x: f64, y: f64| match x == y || (x.is_nan() && y.is_nan()) {
                true => 0.0,
                false => (x - y).abs() / (k * (atol + rtol * y.abs())),
            };
            if ours.pairs {
                return complex(a, b, rtol, atol, k, name.starts_with("logcumsumexp"));
            }
            // a NaN is no more than 1, and no less: it is a difference
            let worst = a.iter().zip(b).map(|(x, y)| off(*x, *y)).fold(0.0, f64::max);
            match a.iter().zip(b).position(|(x, y)| off(*x, *y).is_nan() || off(*x, *y) > 1.0) {
                Some(at) => Err(format!("element {at} is {}, expected {}", a[at], b[at])),
                None => Ok(worst),
            }
        }
        _ => Err("numbers of different kinds".into()),
    }
}

/// Complex numbers are as near to one another as they lie in the plane, as in `torch.testing`. Logarithms that add up are
/// unique but for whole turns: which one it is follows from the order in which they were added.
fn complex(a: &[f64], b: &[f64], rtol: f64, atol: f64, k: f64, turns: bool) -> Result<f64, String> {
    const TURN: f64 = std::f64::consts::TAU;
    let angle = |d: f64| if turns && d.is_finite() { d - TURN * (d / TURN).round() } else { d };
    let off = |x: &[f64], y: &[f64]| {
        let nan = |z: &[f64]| z.iter().any(|p| p.is_nan());
        match x == y || nan(x) && nan(y) {
            true => 0.0,
            false => (x[0] - y[0]).hypot(angle(x[1] - y[1])) / (k * (atol + rtol * y[0].hypot(y[1]))),
        }
    };
    let all = || a.chunks_exact(2).zip(b.chunks_exact(2));
    match all().position(|(x, y)| off(x, y).is_nan() || off(x, y) > 1.0) {
        Some(at) => {
            let number = |v: &[f64]| format!("{} + {}i", v[2 * at], v[2 * at + 1]);
            Err(format!("element {at} is {}, expected {}", number(a), number(b)))
        }
        None => Ok(all().map(|(x, y)| off(x, y)).fold(0.0, f64::max)),
    }
}
