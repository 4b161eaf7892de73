//! Torch op → call through xlazy's public API, where several statements or options are needed.
use crate::calls::pair;
use crate::case::{Arg, Case};
use crate::options::*;
use xlazy::prelude::*;
use xlazy::{QuantileInterpolation, QuantileOptions, block_diag};

fn quantile(c: &Case, ignore_nan: bool) -> Tensor {
    let interpolation = match c.str(4, "interpolation", "linear").as_str() {
        "lower" => QuantileInterpolation::Lower,
        "higher" => QuantileInterpolation::Higher,
        "nearest" => QuantileInterpolation::Nearest,
        "midpoint" => QuantileInterpolation::Midpoint,
        _ => QuantileInterpolation::Linear,
    };
    let dim = c.get(2, "dim").map(|_| c.int(2, "dim", 0));
    let options = QuantileOptions { dim, keepdim: c.flag(3, "keepdim", false), interpolation, ignore_nan };
    c.t(0).quantile_with(c.operand(1, "q"), options)
}

/// The places that a median or mode names: what lies there must be the value.
fn placed(c: &Case, (values, places): (Tensor, Tensor), dim: i64, keepdim: bool) -> Vec<Tensor> {
    let x = c.t(0);
    let at = if keepdim || x.dim() == 0 { places } else { places.unsqueeze(dim) };
    let found = x.gather(dim, &at);
    vec![values, if keepdim || x.dim() == 0 { found } else { found.squeeze_dim(dim) }]
}

fn searched(c: &Case, places: Tensor) -> Tensor {
    if c.flag(NAMED, "out_int32", false) { places.int() } else { places }
}

fn right(c: &Case) -> bool {
    c.flag(NAMED, "right", false) || c.str(NAMED, "side", "left") == "right"
}

fn gradient(c: &Case) -> Vec<Tensor> {
    let x = c.t(0);
    let dims = match c.get(NAMED, "dim") {
        None => (0..x.dim() as i64).collect(),
        _ => c.dims(NAMED, "dim"),
    };
    let number = |a: &Arg| match a {
        Arg::Tensor(t) => t.clone(),
        Arg::Float(f) => tensor(*f),
        Arg::Int(i) => tensor(*i as f64),
        _ => panic!("no spacing"),
    };
    let spacing: Vec<Tensor> = match c.get(NAMED, "spacing") {
        None => vec![tensor(1.0); dims.len()],
        Some(Arg::List(l)) => l.iter().map(number).collect(),
        Some(a) => vec![number(a); dims.len()],
    };
    let order = c.count(NAMED, "edge_order", 1);
    dims.iter().zip(&spacing).map(|(&d, s)| x.gradient(s, d, order)).collect()
}

pub fn call(c: &Case) -> Option<Vec<Tensor>> {
    let x = || c.t(0);
    let one = match c.name.as_str() {
        "searchsorted" => {
            let sorted = c.tensor(NAMED, "sorter").map_or(x().clone(), |order| match order.numel() {
                0 => x().clone(),
                _ => x().gather(-1, order),
            });
            let values = match c.get(1, "input") {
                Some(Arg::Tensor(t)) => t.clone(),
                _ => Tensor::full((), c.float(1, "input", 0.0)),
            };
            searched(c, sorted.searchsorted(&values, right(c)))
        }
        "bucketize" => searched(c, x().bucketize(c.t(1), right(c))),
        "isin" => x().isin(c.t(1)),
        "histc" => x().histc(c.count(1, "bins", 100), c.float(2, "min", 0.0), c.float(3, "max", 0.0)),
        "bincount" => x().bincount_with(c.tensor(1, "weights"), c.count(2, "minlength", 0)),
        "cov" => x().cov(c.float(NAMED, "correction", 1.0), c.tensor(NAMED, "fweights"), c.tensor(NAMED, "aweights")),
        "corrcoef" => x().corrcoef(),
        "repeat_interleave" => {
            let x = if c.get(2, "dim").is_some() { x().clone() } else { x().flatten() };
            let dim = c.int(2, "dim", 0);
            match c.get(1, "repeats") {
                Some(Arg::Tensor(t)) => {
                    let size = c.get(NAMED, "output_size").map(|_| c.count(NAMED, "output_size", 0));
                    x.repeat_interleave_each(t, dim, size)
                }
                _ => x.repeat_interleave(c.count(1, "repeats", 1), dim),
            }
        }
        "tril_indices" | "triu_indices" => {
            let sizes = [wide(c, 0, "row") as usize, wide(c, 1, "col") as usize];
            let offset = c.int(2, "offset", 0);
            match c.name.as_str() {
                "tril_indices" => to_dtype(c, Tensor::tril_indices(sizes[0], sizes[1], offset)),
                _ => to_dtype(c, Tensor::triu_indices(sizes[0], sizes[1], offset)),
            }
        }
        "block_diag" => {
            let all: Vec<&Tensor> = (0..c.args.len()).map(|i| c.t(i)).collect();
            block_diag(&all)
        }
        "quantile" => quantile(c, false),
        "nanquantile" => quantile(c, true),
        "median" => {
            let (dim, keep) = (c.int(1, "dim", 0), c.flag(2, "keepdim", false));
            return Some(placed(c, x().median_dim(dim, keep), dim, keep));
        }
        "nanmedian" if c.get(1, "dim").is_none() => x().nanmedian(),
        "nanmedian" => {
            let (dim, keep) = (c.int(1, "dim", 0), c.flag(2, "keepdim", false));
            return Some(placed(c, x().nanmedian_dim(dim, keep), dim, keep));
        }
        "mode" => {
            let (dim, keep) = (c.int(1, "dim", -1), c.flag(2, "keepdim", false));
            return Some(placed(c, x().mode(dim, keep), dim, keep));
        }
        "cummax" => return Some(pair(x().cummax(c.int(1, "dim", 0)))),
        "cummin" => return Some(pair(x().cummin(c.int(1, "dim", 0)))),
        "logcumsumexp" => x().logcumsumexp(c.int(1, "dim", 0)),
        "trapezoid" => {
            let dx = c.float(NAMED, "dx", 1.0);
            x().trapezoid(c.tensor(1, "x"), dx, c.int(NAMED, "dim", -1))
        }
        "gradient" => return Some(gradient(c)),
        _ => return None,
    };
    Some(vec![one])
}
