//! What a torch call takes besides its tensors, as xlazy takes it: options, paddings, indices, defaults.
use crate::case::{Arg, Case};
use xlazy::prelude::*;
use xlazy::{InterpolateOptions, Interpolation};

// An option that shares a position with nothing.
pub const NAMED: usize = usize::MAX;

pub fn reduction(c: &Case) -> Reduction {
    match c.str(NAMED, "reduction", "mean").as_str() {
        "none" => Reduction::None,
        "sum" => Reduction::Sum,
        "batchmean" => Reduction::BatchMean,
        _ => Reduction::Mean,
    }
}

pub fn conv(c: &Case) -> ConvOptions {
    let padding = match c.get(4, "padding") {
        Some(Arg::Str(s)) if s == "same" => Padding::Same,
        Some(Arg::Str(_)) => Padding::Valid,
        _ => c.dims_or(4, "padding", 0).into(),
    };
    ConvOptions {
        stride: c.dims_or(3, "stride", 1).into(),
        padding,
        dilation: c.dims_or(5, "dilation", 1).into(),
        groups: c.count(6, "groups", 1),
    }
}

pub fn conv_transpose(c: &Case) -> ConvTransposeOptions {
    ConvTransposeOptions {
        stride: c.dims_or(3, "stride", 1).into(),
        padding: c.dims_or(4, "padding", 0).into(),
        output_padding: c.dims_or(5, "output_padding", 0).into(),
        groups: c.count(6, "groups", 1),
        dilation: c.dims_or(7, "dilation", 1).into(),
    }
}

pub fn avg(c: &Case) -> AvgPoolOptions {
    AvgPoolOptions {
        stride: c.dims(2, "stride").into(),
        padding: c.dims_or(3, "padding", 0).into(),
        ceil_mode: c.flag(4, "ceil_mode", false),
        count_include_pad: c.flag(5, "count_include_pad", true),
        divisor_override: c.get(6, "divisor_override").map(|_| c.int(6, "divisor_override", 0)),
    }
}

pub fn max_pool(c: &Case, space: usize) -> Vec<Tensor> {
    let o = MaxPoolOptions {
        stride: c.dims(2, "stride").into(),
        padding: c.dims_or(3, "padding", 0).into(),
        dilation: c.dims_or(4, "dilation", 1).into(),
        ceil_mode: c.flag(5, "ceil_mode", false),
    };
    let (x, k) = (c.t(0), c.dims(1, "kernel_size"));
    let values = match space {
        1 => x.max_pool1d(k.clone(), o.clone()),
        2 => x.max_pool2d(k.clone(), o.clone()),
        _ => x.max_pool3d(k.clone(), o.clone()),
    };
    match c.flag(6, "return_indices", false) {
        true => vec![values, x.max_pool_indices(space, k, o)],
        false => vec![values],
    }
}

pub fn unpool(c: &Case, space: usize) -> Tensor {
    let size = c.dims(NAMED, "output_size");
    c.t(0).max_unpool(c.t(1), size[size.len() - space..].to_vec())
}

pub fn interpolate(c: &Case) -> Tensor {
    let factor = match c.get(2, "scale_factor") {
        Some(Arg::List(l)) => {
            Some(l.iter().map(|f| if let Arg::Float(f) = f { *f } else { panic!("no factor") }).collect())
        }
        Some(_) => Some(vec![c.float(2, "scale_factor", 1.0)]),
        None => None,
    };
    let mode = match c.str(3, "mode", "nearest").as_str() {
        "nearest" => Interpolation::Nearest,
        "nearest-exact" => Interpolation::NearestExact,
        "bicubic" => Interpolation::Bicubic,
        "area" => Interpolation::Area,
        _ => Interpolation::Linear,
    };
    c.t(0).interpolate(InterpolateOptions {
        size: c.get(1, "size").map(|_| c.dims(1, "size").into()),
        scale_factor: factor,
        mode,
        align_corners: c.flag(4, "align_corners", false),
        recompute_scale_factor: c.flag(5, "recompute_scale_factor", false),
    })
}

pub fn pad(c: &Case) -> Tensor {
    let amounts = c.dims(1, "pad");
    match c.str(2, "mode", "constant").as_str() {
        "reflect" => c.t(0).pad_mode(amounts, PadMode::Reflect),
        "replicate" => c.t(0).pad_mode(amounts, PadMode::Replicate),
        "circular" => c.t(0).pad_mode(amounts, PadMode::Circular),
        _ => c.t(0).pad(amounts, c.float(3, "value", 0.0)),
    }
}

pub fn cross_entropy(c: &Case) -> CrossEntropyOptions {
    CrossEntropyOptions {
        weight: c.tensor(NAMED, "weight").cloned(),
        ignore_index: c.int(NAMED, "ignore_index", -100),
        reduction: reduction(c),
        label_smoothing: c.float(NAMED, "label_smoothing", 0.0),
    }
}

pub fn index(a: &Arg) -> Vec<(At<'static>, Option<Tensor>)> {
    let one = |a: &Arg| match a {
        Arg::Int(i) => (At::Int(*i), None),
        Arg::Slice([start, end, step]) => (At::Slice { start: *start, end: *end, step: step.unwrap_or(1) }, None),
        Arg::Ellipsis => (At::Ellipsis, None),
        Arg::None => (At::NewAxis, None),
        Arg::Tensor(t) => (At::NewAxis, Some(t.clone())),
        Arg::List(l) if l.iter().any(|i| matches!(i, Arg::Bool(_))) => {
            let v: Vec<bool> = l.iter().map(|i| matches!(i, Arg::Bool(true))).collect();
            (At::NewAxis, Some(tensor(v)))
        }
        Arg::List(l) => {
            let v: Vec<i64> = l.iter().map(|i| if let Arg::Int(i) = i { *i } else { panic!("no index") }).collect();
            (At::NewAxis, Some(tensor(v)))
        }
        _ => panic!("no index"),
    };
    match a {
        // a list of numbers is one index tensor, a tuple several indices
        Arg::List(l) if l.iter().all(|i| matches!(i, Arg::Int(_) | Arg::Bool(_))) && !l.is_empty() => vec![one(a)],
        Arg::List(l) => l.iter().map(one).collect(),
        a => vec![one(a)],
    }
}

pub fn getitem(c: &Case) -> Tensor {
    let parts = index(&c.args[1]);
    let list: Vec<At> = parts.iter().map(|(at, t)| t.as_ref().map_or(at.clone(), At::Tensor)).collect();
    c.t(0).i(list)
}

pub fn index_put(c: &Case) -> Tensor {
    let parts = c.tensors(1);
    let parts: Vec<Option<&Tensor>> = parts.into_iter().map(Some).collect();
    c.t(0).index_put(&parts, c.operand(2, "values"), c.flag(3, "accumulate", false))
}

pub fn scatter(c: &Case) -> Tensor {
    let (x, dim, i) = (c.t(0), c.int(1, "dim", 0), c.t(2));
    let combined = |r| {
        let src = c.tensor(3, "src").cloned().unwrap_or_else(|| {
            let full = Tensor::full(i.shape(), c.scalar(3, "value"));
            full.to(x.dtype())
        });
        x.scatter_reduce(dim, i, &src, r, true)
    };
    match c.str(NAMED, "reduce", "").as_str() {
        "add" => combined(ScatterReduce::Sum),
        "multiply" => combined(ScatterReduce::Prod),
        _ => x.scatter(dim, i, c.operand(3, "src")),
    }
}

pub fn scatter_reduce(c: &Case) -> Tensor {
    let how = match c.str(4, "reduce", "sum").as_str() {
        "prod" => ScatterReduce::Prod,
        "mean" => ScatterReduce::Mean,
        "amax" => ScatterReduce::Amax,
        "amin" => ScatterReduce::Amin,
        _ => ScatterReduce::Sum,
    };
    c.t(0).scatter_reduce(c.int(1, "dim", 0), c.t(2), c.t(3), how, c.flag(5, "include_self", true))
}

/// A number that products and sums are multiplied by, as torch takes it for the input's dtype.
pub fn factor(c: &Case, name: &str) -> xlazy::Scalar {
    match (c.get(NAMED, name), c.t(0).dtype().is_differentiable()) {
        (None, _) => 1.into(),
        (Some(Arg::Int(n)), _) => (*n).into(),
        (Some(_), true) => c.float(NAMED, name, 1.0).into(),
        (Some(_), false) => (c.float(NAMED, name, 1.0) as i64).into(),
    }
}

pub fn alpha(c: &Case, y: &Tensor) -> Tensor {
    if c.kwargs.contains_key("alpha") { y * c.operand(NAMED, "alpha") } else { y.clone() }
}

pub fn correction(c: &Case) -> f64 {
    match c.get(NAMED, "correction") {
        Some(_) => c.float(NAMED, "correction", 1.0),
        None if c.kwargs.contains_key("unbiased") => f64::from(c.flag(NAMED, "unbiased", true)),
        // var(x, unbiased), or var(x, dim, unbiased, keepdim)
        None => match c.args.get(1) {
            Some(Arg::Bool(b)) => f64::from(*b),
            _ => f64::from(c.flag(2, "unbiased", true)),
        },
    }
}

pub fn stat_dims(c: &Case) -> Vec<i64> {
    if matches!(c.args.get(1), Some(Arg::Bool(_))) { vec![] } else { c.dims(1, "dim") }
}

pub fn arange(c: &Case) -> Tensor {
    // torch cuts the numbers when integers are asked for
    let cut = |dtypes: fn(DType) -> bool, i: usize| match c.scalar(i, "") {
        v if c.dtype().is_some_and(dtypes) => xlazy::Scalar::Int(v.as_i64()),
        v => v,
    };
    // how many there are follows from numbers that are not cut, but for int64
    if c.args.len() == 3 && c.dtype().is_some_and(|d| !d.is_float() && d != I64) {
        let [start, end, step] = [0, 1, 2].map(|i| c.scalar(i, ""));
        let n = ((end.as_f64() - start.as_f64()) / step.as_f64()).ceil();
        return (Tensor::arange(0, n as i64, 1) * step.as_i64() + start.as_i64()).to(c.dtype().unwrap_or(I64));
    }
    let (number, end) = (|i| cut(|d| !d.is_float(), i), |i| cut(|d| d == I64, i));
    let t = match c.args.len() {
        // start and end by their names
        1 if c.kwargs.contains_key("end") => {
            let step = c.get(NAMED, "step").map_or(1.into(), |_| c.scalar(NAMED, "step"));
            let end = c.scalar(NAMED, "end");
            let end = if c.dtype() == Some(I64) { end.as_i64().into() } else { end };
            Tensor::arange(number(0), end, step)
        }
        1 => Tensor::arange(0, end(0), 1),
        2 => Tensor::arange(number(0), end(1), 1),
        _ => Tensor::arange(number(0), end(1), number(2)),
    };
    c.dtype().map_or(t.clone(), |d| t.to(d))
}

pub fn linspace(c: &Case) -> Tensor {
    let steps = c.count(2, "steps", 100);
    // integers: cut, then computed in float32, then cut
    let wide = |i: usize| match &c.args[i] {
        Arg::Tensor(t) => t.long().float(),
        _ => Tensor::full((), c.float(i, "", 0.0) as i64).float(),
    };
    let t = match c.dtype() {
        Some(F64 | C64 | C128) => {
            let exact = |i: usize| match &c.args[i] {
                Arg::Tensor(t) => t.double(),
                _ => Tensor::full((), c.float(i, "", 0.0)).double(),
            };
            Tensor::linspace(exact(0), exact(1), steps)
        }
        Some(d) if d.is_float() => Tensor::linspace(c.operand(0, "start"), c.operand(1, "end"), steps),
        _ => Tensor::linspace(wide(0), wide(1), steps),
    };
    c.dtype().map_or(t.clone(), |d| t.to(d))
}

pub fn to_dtype(c: &Case, t: Tensor) -> Tensor {
    c.dtype().map_or(t.clone(), |d| t.to(d))
}

// Reductions over `dim`, or everything.
pub fn over(c: &Case, all: fn(&Tensor) -> Tensor, some: impl Fn(&Tensor, Vec<i64>, bool) -> Tensor) -> Tensor {
    let x = to_dtype(c, c.t(0).clone());
    let y = match c.get(1, "dim") {
        None if !c.flag(2, "keepdim", false) => all(&x),
        _ => some(&x, c.dims(1, "dim"), c.flag(2, "keepdim", false)),
    };
    // small integers are summed and multiplied in int64
    c.dtype().filter(|d| !d.is_differentiable()).map_or(y.clone(), |d| y.to(d))
}

pub fn batch_norm(c: &Case) -> Tensor {
    let options = BatchNormOptions {
        training: c.flag(5, "training", false),
        momentum: c.float(6, "momentum", 0.1),
        eps: c.float(7, "eps", 1e-5),
    };
    c.t(0).batch_norm(
        c.tensor(1, "running_mean"),
        c.tensor(2, "running_var"),
        c.tensor(3, "weight"),
        c.tensor(4, "bias"),
        options,
    )
}

pub fn attention(c: &Case) -> Tensor {
    let options = AttentionOptions {
        attn_mask: c.tensor(3, "attn_mask").cloned(),
        dropout_p: 0.0,
        is_causal: c.flag(5, "is_causal", false),
        scale: c.get(NAMED, "scale").map(|_| c.float(NAMED, "scale", 1.0)),
        enable_gqa: c.flag(NAMED, "enable_gqa", false),
    };
    c.t(0).scaled_dot_product_attention(c.t(1), c.t(2), options)
}

pub fn tensordot(c: &Case) -> Tensor {
    match c.get(2, "dims") {
        Some(Arg::List(l)) => {
            let dims = |a: &Arg| match a {
                Arg::List(l) => l.iter().map(|i| if let Arg::Int(i) = i { *i } else { panic!() }).collect::<Vec<i64>>(),
                _ => panic!("no dimensions"),
            };
            c.t(0).tensordot_dims(c.t(1), dims(&l[0]), dims(&l[1]))
        }
        _ => c.t(0).tensordot(c.t(1), c.count(2, "dims", 2)),
    }
}

pub fn split(c: &Case) -> Vec<Tensor> {
    let dim = c.int(2, "dim", 0);
    match c.get(1, "split_size_or_sections") {
        Some(Arg::List(l)) => {
            let sizes: Vec<usize> =
                l.iter().map(|i| if let Arg::Int(i) = i { *i as usize } else { panic!() }).collect();
            c.t(0).split_with_sizes(&sizes, dim)
        }
        _ => c.t(0).split(c.count(1, "", 1), dim),
    }
}

pub fn squeeze(c: &Case) -> Tensor {
    match c.get(1, "dim") {
        None => c.t(0).squeeze(),
        Some(Arg::List(_)) => c.t(0).squeeze_dims(c.dims(1, "dim")),
        Some(_) => c.t(0).squeeze_dim(c.int(1, "dim", 0)),
    }
}

pub fn clamp(c: &Case) -> Tensor {
    match (c.get(1, "min").is_some(), c.get(2, "max").is_some()) {
        (true, true) => c.t(0).clamp(c.operand(1, "min"), c.operand(2, "max")),
        (true, false) => c.t(0).clamp_min(c.operand(1, "min")),
        (false, true) => c.t(0).clamp_max(c.operand(2, "max")),
        _ => c.t(0).clone(),
    }
}

pub fn wide(c: &Case, i: usize, name: &str) -> i64 {
    c.int(i, name, 0)
}
