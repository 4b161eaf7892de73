//! Torch op → call through xlazy's public API, one line each.
use crate::case::{Arg, Case};
use crate::options::*;
use crate::{layers, matrices, more, spectra};
use xlazy::prelude::*;
use xlazy::{cartesian_prod, column_stack, dstack, hstack, vstack};

/// Cases that say nothing about xlazy, and why.
pub fn skip(c: &Case) -> Option<&'static str> {
    match c.name.as_str() {
        "nn.functional.scaled_dot_product_attention" if c.float(9, "dropout_p", 0.0) > 0.0 => Some("random"),
        "as_strided.partial_views" if c.kwargs.contains_key("storage_offset") => {
            Some("counts in a storage that the case does not hold")
        }
        "nn.functional.multi_head_attention_forward"
            if c.float(10, "dropout_p", 0.0) > 0.0 && c.flag(NAMED, "training", true) =>
        {
            Some("random")
        }
        _ => None,
    }
}

/// Ops whose second output, positions, is not unique: the call gives what lies there instead, which must be the first.
pub fn second_is_place(name: &str) -> bool {
    matches!(name, "topk" | "kthvalue" | "median" | "nanmedian" | "mode")
}

/// A product added to what there is, by numbers that xlazy takes as tensors where they are complex.
macro_rules! added {
    ($c:ident, $method:ident) => {{
        let (x, a, b) = ($c.t(0), $c.t(1), $c.t(2));
        match ($c.tensor(NAMED, "beta"), $c.tensor(NAMED, "alpha")) {
            (None, None) => x.$method(a, b, factor($c, "beta"), factor($c, "alpha")),
            (beta, alpha) => {
                let times = |t: Tensor, by: Option<&Tensor>, name: &str| match by {
                    Some(by) => &t * by,
                    None => &t * factor($c, name),
                };
                let product = x.zeros_like().$method(a, b, 0, 1);
                times(x.clone(), beta, "beta") + times(product, alpha, "alpha")
            }
        }
    }};
}

pub fn pair((a, b): (Tensor, Tensor)) -> Vec<Tensor> {
    vec![a, b]
}

/// The op's outputs, or `None` where it is not implemented.
pub fn call(c: &Case) -> Option<Vec<Tensor>> {
    let x = || c.t(0);
    let one = match c.name.as_str() {
        // elementwise, one operand
        "abs" => x().abs(),
        "acos" => x().acos(),
        "acosh" => x().acosh(),
        "asin" => x().asin(),
        "asinh" => x().asinh(),
        "atan" => x().atan(),
        "atanh" => x().atanh(),
        "ceil" => x().ceil(),
        "cos" => x().cos(),
        "cosh" => x().cosh(),
        "deg2rad" => x().deg2rad(),
        "digamma" => x().digamma(),
        "erf" => x().erf(),
        "erfc" => x().erfc(),
        "erfinv" => x().erfinv(),
        "exp" => x().exp(),
        "exp2" => x().exp2(),
        "expm1" => x().expm1(),
        "floor" => x().floor(),
        "frac" => x().frac(),
        "isfinite" => x().isfinite(),
        "isinf" => x().isinf(),
        "isnan" => x().isnan(),
        "lgamma" => x().lgamma(),
        "log" => x().log(),
        "log10" => x().log10(),
        "log1p" => x().log1p(),
        "log2" => x().log2(),
        "logical_not" => x().logical_not(),
        "logit" => x().logit(c.get(1, "eps").map(|_| c.float(1, "eps", 0.0))),
        "neg" => x().neg(),
        "clone" => x().copy(),
        "positive" => x().positive().copy(),
        "contiguous" => x().contiguous().copy(),
        "real" => x().real().copy(),
        "conj" => x().conj().copy(),
        "resolve_conj" => x().copy(),
        "rad2deg" => x().rad2deg(),
        "reciprocal" => x().reciprocal(),
        "round" => x().round(),
        "round.decimals_0" | "round.decimals_3" | "round.decimals_neg_3" => {
            x().round_decimals(wide(c, 1, "decimals") as i32)
        }
        "rsqrt" => x().rsqrt(),
        "sigmoid" => x().sigmoid(),
        "sign" => x().sign(),
        "sgn" => x().sgn(),
        "signbit" => x().signbit(),
        "sin" => x().sin(),
        "sinc" => x().sinc(),
        "sinh" => x().sinh(),
        "sqrt" => x().sqrt(),
        "square" => x().square(),
        "tan" => x().tan(),
        "tanh" => x().tanh(),
        "trunc" => x().trunc(),
        "bitwise_not" => x().bitwise_not(),
        "nan_to_num" => {
            let edge = |i: usize, name: &str| c.get(i, name).map(|_| c.float(i, name, 0.0));
            x().nan_to_num(c.float(1, "nan", 0.0), edge(2, "posinf"), edge(3, "neginf"))
        }
        // torch's order is polygamma(n, x); the cases put x first
        name if name.starts_with("polygamma.") => x().polygamma(c.count(1, "n", 0)),
        // elementwise, several operands
        "add" => x().add_scaled(c.t(1), factor(c, "alpha")),
        "sub" => x().sub_scaled(c.t(1), factor(c, "alpha")),
        "rsub" => x().rsub(c.operand(1, "other"), factor(c, "alpha")),
        "mul" | "__rmul__" => x().mul(c.operand(1, "other")),
        "__radd__" => x().add(c.operand(1, "other")),
        "__rsub__" => Tensor::neg(&x().sub(c.operand(1, "other"))),
        "__rdiv__" => c.t(1).div(x()),
        "__rpow__" => match c.operand(1, "other") {
            xlazy::Arg::Scalar(base) => Tensor::full((), base).to(x().dtype()).pow(x()),
            _ => c.t(1).pow(x()),
        },
        "div.no_rounding_mode" => x().div(c.operand(1, "other")),
        "true_divide" => x().true_divide(c.operand(1, "other")),
        "div.trunc_rounding" => x().div_trunc(c.operand(1, "other")),
        "div.floor_rounding" => x().floor_divide(c.operand(1, "other")),
        "floor_divide" => no_grad(|| x().floor_divide(c.operand(1, "other"))),
        "fmod" => x().fmod(c.operand(1, "other")),
        "remainder" => x().remainder(c.operand(1, "other")),
        "pow" => x().pow(c.operand(1, "exponent")),
        "atan2" => x().atan2(c.operand(1, "other")),
        "maximum" | "max.binary" => x().maximum(c.t(1)),
        "minimum" | "min.binary" => x().minimum(c.t(1)),
        "fmax" => x().fmax(c.t(1)),
        "fmin" => x().fmin(c.t(1)),
        "hypot" => x().hypot(c.t(1)),
        "logaddexp" => x().logaddexp(c.t(1)),
        "xlogy" => x().xlogy(c.operand(1, "other")),
        "bitwise_and" => x().bitwise_and(c.operand(1, "other")),
        "bitwise_or" => x().bitwise_or(c.operand(1, "other")),
        "bitwise_xor" => x().bitwise_xor(c.operand(1, "other")),
        "bitwise_left_shift" => x().bitwise_left_shift(c.operand(1, "other")),
        "bitwise_right_shift" => x().bitwise_right_shift(c.operand(1, "other")),
        "lerp" => x().lerp(c.t(1), c.operand(2, "weight")),
        "addcmul" => x().addcmul(c.t(1), c.t(2), c.get(3, "value").map_or(1.into(), |_| c.operand(3, "value"))),
        "addcdiv" => x().addcdiv(c.t(1), c.t(2), c.get(3, "value").map_or(1.into(), |_| c.operand(3, "value"))),
        "clamp" => clamp(c),
        "clamp_max" => x().clamp_max(c.operand(1, "max")),
        "clamp_min" => x().clamp_min(c.operand(1, "min")),
        "eq" => x().eq(c.operand(1, "other")),
        "ne" => x().ne(c.operand(1, "other")),
        "lt" => x().lt(c.operand(1, "other")),
        "le" => x().le(c.operand(1, "other")),
        "gt" => x().gt(c.operand(1, "other")),
        "ge" => x().ge(c.operand(1, "other")),
        "logical_and" => x().logical_and(c.operand(1, "other")),
        "logical_or" => x().logical_or(c.operand(1, "other")),
        "logical_xor" => x().logical_xor(c.operand(1, "other")),
        "isclose" => x().isclose(c.t(1), c.float(2, "rtol", 1e-5), c.float(3, "atol", 1e-8)),
        "where" => where_(c.t(1), c.operand(0, "input"), c.operand(2, "other")),
        "masked_fill" => x().masked_fill(c.t(1), c.operand(2, "value")),
        "allclose" => x().isclose(c.t(1), c.float(2, "rtol", 1e-5), c.float(3, "atol", 1e-8)).all(),
        "equal" => x().equal(c.t(1)),
        "copysign" => x().copysign(c.operand(1, "other")),
        "isposinf" => x().isposinf(),
        "isneginf" => x().isneginf(),
        "heaviside" => x().heaviside(c.t(1)),
        "float_power" => x().float_power(c.operand(1, "exponent")),
        "logaddexp2" => x().logaddexp2(c.t(1)),
        // creation
        "arange" => arange(c),
        "linspace" | "linspace.tensor_overload" => linspace(c),
        "zeros" => to_dtype(c, Tensor::zeros(c.dims(0, ""))),
        "ones" => to_dtype(c, Tensor::ones(c.dims(0, ""))),
        "full" if c.tensor(1, "").is_some() => to_dtype(c, c.t(1).expand(c.dims(0, ""))),
        "full" => to_dtype(c, Tensor::full(c.dims(0, ""), c.scalar(1, ""))),
        "zeros_like" => to_dtype(c, x().zeros_like()),
        "ones_like" => to_dtype(c, x().ones_like()),
        "full_like" if c.tensor(1, "").is_some() => c.t(1).expand(x().shape()).to(x().dtype()),
        "full_like" => to_dtype(c, x().clone()).full_like(c.scalar(1, "")),
        "eye" => to_dtype(c, Tensor::eye_of(wide(c, 0, "n") as usize, c.count(1, "m", wide(c, 0, "n")))),
        // reductions
        "sum" => over(c, |x| x.sum(), |x, d, k| x.sum_dim(d, k)),
        "mean" => over(c, |x| x.mean(), |x, d, k| x.mean_dim(d, k)),
        "prod" => over(c, |x| x.prod(), |x, d, k| x.prod_dim(d[0], k)),
        "amax" => over(c, |x| x.max(), |x, d, k| x.amax(d, k)),
        "amin" => over(c, |x| x.min(), |x, d, k| x.amin(d, k)),
        "all" => over(c, |x| x.all(), |x, d, k| x.all_dim(d, k)),
        "any" => over(c, |x| x.any(), |x, d, k| x.any_dim(d, k)),
        "nansum" => over(c, |x| x.nansum((), false), |x, d, k| x.nansum(d, k)),
        "nanmean" => over(c, |x| x.nanmean((), false), |x, d, k| x.nanmean(d, k)),
        "argmax" => over(c, |x| x.argmax(), |x, d, k| x.argmax_dim(d[0], k)),
        "argmin" => over(c, |x| x.argmin(), |x, d, k| x.argmin_dim(d[0], k)),
        "count_nonzero" => x().count_nonzero(c.dims(1, "dim")),
        "logsumexp" => x().logsumexp(c.dims(1, "dim"), c.flag(2, "keepdim", false)),
        "var" | "var.unbiased" => x().var_dim(stat_dims(c), correction(c), c.flag(3, "keepdim", false)),
        "std" | "std.unbiased" => x().std_dim(stat_dims(c), correction(c), c.flag(3, "keepdim", false)),
        "var_mean" | "var_mean.unbiased" => {
            return Some(pair(x().var_mean_dim(stat_dims(c), correction(c), c.flag(3, "keepdim", false))));
        }
        "std_mean" | "std_mean.unbiased" => {
            return Some(pair(x().std_mean_dim(stat_dims(c), correction(c), c.flag(3, "keepdim", false))));
        }
        "max.reduction_no_dim" => x().max(),
        "min.reduction_no_dim" => x().min(),
        "max.reduction_with_dim" => return Some(pair(x().max_dim(c.int(1, "dim", 0), c.flag(2, "keepdim", false)))),
        "min.reduction_with_dim" => return Some(pair(x().min_dim(c.int(1, "dim", 0), c.flag(2, "keepdim", false)))),
        "aminmax" => return Some(pair(x().aminmax(c.dims(NAMED, "dim"), c.flag(NAMED, "keepdim", false)))),
        "dist" => x().dist(c.t(1), c.float(2, "p", 2.0)),
        "cdist" => x().cdist(c.t(1), c.float(2, "p", 2.0)),
        "norm" | "norm.inf" | "norm.fro" if !matches!(c.get(1, "p"), Some(Arg::Str(_))) => {
            x().norm_p(c.float(1, "p", 2.0), c.dims(2, "dim"), c.flag(3, "keepdim", false))
        }
        "median" if c.get(1, "dim").is_none() => x().median(),
        "linalg.cross" | "cross" => x().cross(c.t(1), c.int(2, "dim", -1)),
        "linalg.vecdot" => x().vecdot(c.t(1), c.int(2, "dim", -1)),
        "sum_to_size" => x().sum_to_size(c.rest(1)),
        // what is asked for is computed in, and given
        "cumsum" => to_dtype(c, to_dtype(c, x().clone()).cumsum(c.int(1, "dim", 0))),
        "cumprod" => to_dtype(c, to_dtype(c, x().clone()).cumprod(c.int(1, "dim", 0))),
        "linalg.vector_norm" => x().norm_p(c.float(1, "ord", 2.0), c.dims(2, "dim"), c.flag(3, "keepdim", false)),
        // shape and order
        "reshape" | "view" => x().reshape(c.dims(1, "shape")),
        "reshape_as" => x().reshape_as(c.t(1)),
        "view_as" => x().view_as(c.t(1)),
        "flatten" => x().flatten_dims(c.int(1, "start_dim", 0), c.int(2, "end_dim", -1)),
        "ravel" => x().ravel(),
        "unflatten" => x().unflatten(c.int(1, "dim", 0), c.dims(2, "sizes")),
        "expand" | "broadcast_to" => x().expand(c.rest(1)),
        "expand_as" => x().expand_as(c.t(1)),
        "permute" => x().permute(c.dims(1, "dims")),
        "transpose" => x().transpose(c.int(1, "dim0", 0), c.int(2, "dim1", 1)),
        "t" => x().t(),
        "movedim" => x().movedim(c.dims(1, "source"), c.dims(2, "destination")),
        "squeeze" | "squeeze.multiple" => squeeze(c),
        "unsqueeze" => x().unsqueeze(c.int(1, "dim", 0)),
        "narrow" | "narrow_copy" => x().narrow(c.int(1, "dim", 0), c.int(2, "start", 0), c.int(3, "length", 0)),
        "select" => x().select(c.int(1, "dim", 0), c.int(2, "index", 0)),
        "select_scatter" => x().select_scatter(c.t(1), c.int(2, "dim", 0), c.int(3, "index", 0)),
        "split" | "split.list_args" | "split_with_sizes" => return Some(split(c)),
        "chunk" => return Some(x().chunk(c.count(1, "chunks", 1), c.int(2, "dim", 0))),
        "unbind" => return Some(x().unbind(c.int(1, "dim", 0))),
        "repeat" => x().repeat(c.rest(1)),
        "tile" => x().tile(c.rest(1)),
        "flip" => x().flip(c.dims(1, "dims")),
        "fliplr" => x().fliplr(),
        "flipud" => x().flipud(),
        "roll" => x().roll(c.dims(1, "shifts"), c.dims(2, "dims")),
        "rot90" => {
            x().rot90(c.int(1, "k", 1), c.get(2, "dims").map_or([0, 1], |_| c.dims(2, "dims").try_into().unwrap()))
        }
        "tril" => x().tril(c.int(1, "diagonal", 0)),
        "triu" => x().triu(c.int(1, "diagonal", 0)),
        "diag" => x().diag(c.int(1, "diagonal", 0)),
        "diagonal" => x().diagonal(c.int(1, "offset", 0), c.int(2, "dim1", 0), c.int(3, "dim2", 1)),
        "diag_embed" => x().diag_embed(c.int(1, "offset", 0), c.int(2, "dim1", -2), c.int(3, "dim2", -1)),
        "trace" => x().trace(),
        "cat" => cat(&c.tensors(0), c.int(1, "dim", 0)),
        "stack" => stack(&c.tensors(0), c.int(1, "dim", 0)),
        "hstack" => hstack(&c.tensors(0)),
        "vstack" => vstack(&c.tensors(0)),
        "dstack" => dstack(&c.tensors(0)),
        "column_stack" => column_stack(&c.tensors(0)),
        "cartesian_prod" if c.args.len() > 1 => {
            let mut all = c.tensors(0);
            (1..c.args.len()).for_each(|i| all.push(c.t(i)));
            cartesian_prod(&all)
        }
        "cartesian_prod" => cartesian_prod(&c.tensors(0)),
        "meshgrid.list_of_tensors" if c.str(NAMED, "indexing", "ij") == "ij" => return Some(meshgrid(&c.tensors(0))),
        "unfold" | "unfold_copy" => x().unfold(c.int(1, "dimension", 0), c.count(2, "size", 1), c.count(3, "step", 1)),
        "tensor_split" if matches!(c.args[1], Arg::List(_)) => {
            return Some(x().tensor_split(&c.dims(1, ""), c.int(2, "dim", 0)));
        }
        "diff" if c.get(3, "prepend").is_none() && c.get(4, "append").is_none() => {
            x().diff(c.count(1, "n", 1), c.int(2, "dim", -1))
        }
        "nn.functional.channel_shuffle" => x().channel_shuffle(c.count(1, "groups", 1)),
        "kron" => x().kron(c.t(1)),
        "nn.functional.pixel_shuffle" => x().pixel_shuffle(c.count(1, "upscale_factor", 1)),
        "nn.functional.pixel_unshuffle" => x().pixel_unshuffle(c.count(1, "downscale_factor", 1)),
        name if name.starts_with("nn.functional.pad.") => pad(c),
        name if name.starts_with("nn.functional.interpolate.") => interpolate(c),
        // positions
        "__getitem__" => getitem(c),
        "gather" => x().gather(c.int(1, "dim", 0), c.t(2)),
        "take" => x().take(c.t(1)),
        "take_along_dim" if c.args.len() == 2 && c.kwargs.is_empty() => x().flatten().take(&c.t(1).flatten()),
        "take_along_dim" => x().take_along_dim(c.t(1), c.int(2, "dim", 0)),
        "index_select" => x().index_select(c.int(1, "dim", 0), c.t(2)),
        "index_add" => x().index_add(c.int(1, "dim", 0), c.t(2), &alpha(c, c.t(3))),
        "index_copy" => x().index_copy(c.int(1, "dim", 0), c.t(2), c.t(3)),
        "index_fill" => x().index_fill(c.int(1, "dim", 0), c.t(2), c.operand(3, "value")),
        "index_put" => index_put(c),
        "scatter" => scatter(c),
        "scatter_add" => x().scatter_add(c.int(1, "dim", 0), c.t(2), c.t(3)),
        name if name.starts_with("scatter_reduce.") => scatter_reduce(c),
        "nn.functional.one_hot" => x().one_hot(c.int(1, "num_classes", -1)),
        "nn.functional.embedding" => c.t(1).embedding(x()),
        "put" => x().put(c.t(1), c.t(2), c.flag(3, "accumulate", false)),
        "masked_scatter" => x().masked_scatter(c.t(1), c.t(2)),
        "masked_select" => x().masked_select(c.t(1)),
        "nonzero" if c.flag(NAMED, "as_tuple", false) => {
            let x = if x().dim() == 0 { x().reshape(1) } else { x().clone() };
            return Some(x.nonzero().unbind(1));
        }
        "nonzero" => x().nonzero(),
        "argwhere" => x().argwhere(),
        "sort" => return Some(pair(x().sort(c.int(1, "dim", -1), c.flag(2, "descending", false)))),
        "msort" => x().msort(),
        "argsort" => x().argsort(c.int(1, "dim", -1), c.flag(2, "descending", false)),
        "topk" => {
            let (dim, k) = (c.int(2, "dim", -1), c.count(1, "k", 1));
            let (values, places) = x().topk(k, dim, c.flag(3, "largest", true));
            return Some(vec![values, x().gather(dim, &places)]);
        }
        "kthvalue" => {
            let (dim, k) = (c.int(2, "dim", -1), c.count(1, "k", 1));
            let (values, places) = x().kthvalue(k, dim, true);
            let found = x().gather(dim, &places);
            let kept = c.flag(3, "keepdim", false) || x().dim() == 0;
            return Some([values, found].map(|t| if kept { t } else { t.squeeze_dim(dim) }).to_vec());
        }
        // products
        "matmul" | "__rmatmul__" => x().matmul(c.t(1)),
        "mm" => x().mm(c.t(1)),
        "bmm" => x().bmm(c.t(1)),
        "mv" => x().mv(c.t(1)),
        "dot" => x().dot(c.t(1)),
        "vdot" => x().vdot(c.t(1)),
        "outer" => x().outer(c.t(1)),
        "inner" => x().inner(c.t(1)),
        "addmm" | "addmm.decomposed" => added!(c, addmm_with),
        "addmv" => added!(c, addmv_with),
        "addr" => added!(c, addr_with),
        "addbmm" => added!(c, addbmm_with),
        "baddbmm" => added!(c, baddbmm_with),
        "einsum" => einsum(&c.str(1, "equation", ""), &c.tensors(0)),
        "tensordot" => tensordot(c),
        "nn.functional.linear" => x().linear(c.t(1), c.tensor(2, "bias")),
        // neural networks
        "softmax" | "softmax.with_dtype" => to_dtype(c, x().clone()).softmax(c.int(1, "dim", 0)),
        "log_softmax" | "log_softmax.with_dtype" => to_dtype(c, x().clone()).log_softmax(c.int(1, "dim", 0)),
        "nn.functional.softmin" | "nn.functional.softmin.with_dtype" => {
            // torch turns the sign before it converts: that of uint8 goes round
            match x().dtype().is_unsigned() && c.dtype().is_some() {
                true => to_dtype(c, x().neg()).softmax(c.int(1, "dim", 0)),
                false => to_dtype(c, x().clone()).softmin(c.int(1, "dim", 0)),
            }
        }
        "nn.functional.relu" => x().relu(),
        "nn.functional.relu6" => x().relu6(),
        "nn.functional.leaky_relu" => x().leaky_relu(c.float(1, "negative_slope", 0.01)),
        "nn.functional.elu" => x().elu(c.float(1, "alpha", 1.0)),
        "nn.functional.celu" => x().celu(c.float(1, "alpha", 1.0)),
        "nn.functional.selu" => x().selu(),
        "nn.functional.silu" | "nn.functional.silu.complex" => x().silu(),
        "nn.functional.mish" => x().mish(),
        "nn.functional.gelu" if c.str(1, "approximate", "none") == "tanh" => x().gelu_tanh(),
        "nn.functional.gelu" => x().gelu(),
        "nn.functional.glu" => x().glu(c.int(1, "dim", -1)),
        "nn.functional.hardswish" => x().hardswish(),
        "nn.functional.hardsigmoid" => x().hardsigmoid(),
        "nn.functional.hardtanh" => x().hardtanh(c.float(1, "min_val", -1.0), c.float(2, "max_val", 1.0)),
        "nn.functional.hardshrink" => x().hardshrink(c.float(1, "lambd", 0.5)),
        "nn.functional.softshrink" => x().softshrink(c.float(1, "lambd", 0.5)),
        "nn.functional.tanhshrink" => x().tanhshrink(),
        "nn.functional.threshold" => x().threshold(c.float(1, "threshold", 0.0), c.float(2, "value", 0.0)),
        "nn.functional.softsign" => x().softsign(),
        "nn.functional.softplus" => x().softplus_with(c.float(1, "beta", 1.0), c.float(2, "threshold", 20.0)),
        "nn.functional.logsigmoid" => x().logsigmoid(),
        "nn.functional.prelu" => x().prelu(c.tensor(1, "weight")?),
        "nn.functional.conv1d" => x().conv1d(c.t(1), c.tensor(2, "bias"), conv(c)),
        "nn.functional.conv2d" => x().conv2d(c.t(1), c.tensor(2, "bias"), conv(c)),
        "nn.functional.conv3d" => x().conv3d(c.t(1), c.tensor(2, "bias"), conv(c)),
        "nn.functional.conv_transpose1d" => x().conv_transpose1d(c.t(1), c.tensor(2, "bias"), conv_transpose(c)),
        "nn.functional.conv_transpose2d" => x().conv_transpose2d(c.t(1), c.tensor(2, "bias"), conv_transpose(c)),
        "nn.functional.conv_transpose3d" => x().conv_transpose3d(c.t(1), c.tensor(2, "bias"), conv_transpose(c)),
        "nn.functional.max_pool1d" => return Some(max_pool(c, 1)),
        "nn.functional.max_pool2d" => return Some(max_pool(c, 2)),
        "nn.functional.max_pool3d" => return Some(max_pool(c, 3)),
        "nn.functional.max_unpool1d" | "nn.functional.max_unpool1d.grad" => unpool(c, 1),
        "nn.functional.max_unpool2d" | "nn.functional.max_unpool2d.grad" => unpool(c, 2),
        "nn.functional.max_unpool3d" | "nn.functional.max_unpool3d.grad" => unpool(c, 3),
        "nn.functional.avg_pool1d" => x().avg_pool1d(c.dims(1, "kernel_size"), avg(c)),
        "nn.functional.avg_pool2d" => x().avg_pool2d(c.dims(1, "kernel_size"), avg(c)),
        "nn.functional.avg_pool3d" => x().avg_pool3d(c.dims(1, "kernel_size"), avg(c)),
        "nn.functional.adaptive_avg_pool1d" => x().adaptive_avg_pool1d(c.dims(1, "output_size")),
        "nn.functional.adaptive_avg_pool2d" => x().adaptive_avg_pool2d(c.dims(1, "output_size")),
        "nn.functional.adaptive_avg_pool3d" => x().adaptive_avg_pool3d(c.dims(1, "output_size")),
        "nn.functional.batch_norm" | "nn.functional.batch_norm.without_cudnn" => batch_norm(c),
        "nn.functional.layer_norm" => {
            x().layer_norm(c.dims(1, ""), c.tensor(2, "weight"), c.tensor(3, "bias"), c.float(4, "eps", 1e-5))
        }
        "nn.functional.rms_norm" => {
            x().rms_norm(c.dims(1, ""), c.tensor(2, "weight"), c.float(3, "eps", f32::EPSILON as f64))
        }
        "nn.functional.group_norm" => {
            x().group_norm(c.count(1, "", 1), c.tensor(2, "weight"), c.tensor(3, "bias"), c.float(4, "eps", 1e-5))
        }
        "nn.functional.instance_norm" => {
            x().instance_norm(c.tensor(3, "weight"), c.tensor(4, "bias"), c.float(7, "eps", 1e-5))
        }
        "nn.functional.normalize" => x().normalize(c.float(1, "p", 2.0), c.int(2, "dim", 1), c.float(3, "eps", 1e-12)),
        "nn.functional.cosine_similarity" => x().cosine_similarity(c.t(1), c.int(2, "dim", 1), c.float(3, "eps", 1e-8)),
        "nn.functional.scaled_dot_product_attention" => attention(c),
        "nn.functional.mse_loss" => x().mse_loss(c.t(1), reduction(c)),
        "nn.functional.l1_loss" => x().l1_loss(c.t(1), reduction(c)),
        "nn.functional.smooth_l1_loss" => x().smooth_l1_loss(c.t(1), c.float(NAMED, "beta", 1.0), reduction(c)),
        "nn.functional.huber_loss" => x().huber_loss(c.t(1), c.float(NAMED, "delta", 1.0), reduction(c)),
        "nn.functional.nll_loss" => x().nll_loss(c.t(1), cross_entropy(c)),
        "nn.functional.cross_entropy" => x().cross_entropy(c.t(1), cross_entropy(c)),
        "nn.functional.binary_cross_entropy" => x().binary_cross_entropy(c.t(1), c.tensor(2, "weight"), reduction(c)),
        "nn.functional.binary_cross_entropy_with_logits" => x().binary_cross_entropy_with_logits(
            c.t(1),
            c.tensor(2, "weight"),
            c.tensor(NAMED, "pos_weight"),
            reduction(c),
        ),
        "nn.functional.kl_div" => x().kl_div(c.t(1), c.flag(NAMED, "log_target", false), reduction(c)),
        "nn.functional.pairwise_distance" => {
            x().pairwise_distance(c.t(1), c.float(2, "p", 2.0), c.float(3, "eps", 1e-6), c.flag(4, "keepdim", false))
        }
        "nn.functional.triplet_margin_loss" if !c.kwargs.contains_key("p") && !c.kwargs.contains_key("swap") => {
            x().triplet_margin_loss(c.t(1), c.t(2), c.float(NAMED, "margin", 1.0), reduction(c))
        }
        "nn.functional.poisson_nll_loss" if !c.flag(NAMED, "full", false) => {
            x().poisson_nll_loss(c.t(1), c.flag(NAMED, "log_input", true), c.float(NAMED, "eps", 1e-8), reduction(c))
        }
        "nn.functional.soft_margin_loss" => x().soft_margin_loss(c.t(1), reduction(c)),
        "nn.functional.margin_ranking_loss" => {
            x().margin_ranking_loss(c.t(1), c.t(2), c.float(NAMED, "margin", 0.0), reduction(c))
        }
        "nn.functional.hinge_embedding_loss" => {
            x().hinge_embedding_loss(c.t(1), c.float(NAMED, "margin", 1.0), reduction(c))
        }
        _ => {
            return more::call(c)
                .or_else(|| matrices::call(c))
                .or_else(|| layers::call(c))
                .or_else(|| spectra::call(c));
        }
    };
    Some(vec![one])
}
