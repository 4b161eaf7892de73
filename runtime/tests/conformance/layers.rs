//! Torch's layers, losses and special functions → calls through xlazy's public API.
use crate::calls::pair;
use crate::case::{Arg, Case};
use crate::options::*;
use xlazy::prelude::*;
use xlazy::{
    BagMode, EmbeddingBagOptions, GridMode, GridPadding, GridSampleOptions, Interpolation, MultiHeadOptions,
    PatchOptions,
};

fn grid(c: &Case) -> Tensor {
    let number = |i: usize| match c.args.get(i) {
        Some(Arg::Int(n)) => Some(*n),
        _ => None,
    };
    let mode = match (number(2), c.str(2, "mode", "bilinear").as_str()) {
        (Some(1), _) | (None, "nearest") => GridMode::Nearest,
        (Some(2), _) | (None, "bicubic") => GridMode::Bicubic,
        _ => GridMode::Bilinear,
    };
    let padding_mode = match (number(3), c.str(3, "padding_mode", "zeros").as_str()) {
        (Some(1), _) | (None, "border") => GridPadding::Border,
        (Some(2), _) | (None, "reflection") => GridPadding::Reflection,
        _ => GridPadding::Zeros,
    };
    let align_corners = c.flag(4, "align_corners", false);
    c.t(0).grid_sample(c.t(1), GridSampleOptions { mode, padding_mode, align_corners })
}

fn bag(c: &Case) -> Tensor {
    let mode = match c.str(NAMED, "mode", "mean").as_str() {
        "sum" => BagMode::Sum,
        "max" => BagMode::Max,
        _ => BagMode::Mean,
    };
    let options = EmbeddingBagOptions {
        offsets: c.tensor(NAMED, "offsets").cloned(),
        mode,
        per_sample_weights: c.tensor(NAMED, "per_sample_weights").cloned(),
        include_last_offset: c.flag(NAMED, "include_last_offset", false),
        padding_idx: c.get(NAMED, "padding_idx").map(|_| c.int(NAMED, "padding_idx", 0)),
    };
    c.t(1).embedding_bag(c.t(0), options)
}

fn heads(c: &Case) -> Vec<Tensor> {
    let t = |i: usize, name: &str| c.tensor(i, name).cloned();
    let both = |a: Option<Tensor>, b: Option<Tensor>| Some([a?, b?]);
    let separate = [t(NAMED, "q_proj_weight"), t(NAMED, "k_proj_weight"), t(NAMED, "v_proj_weight")];
    let options = MultiHeadOptions {
        in_proj_weight: t(5, "in_proj_weight"),
        separate_weights: match separate {
            [Some(q), Some(k), Some(v)] if c.flag(NAMED, "use_separate_proj_weight", false) => Some([q, k, v]),
            _ => None,
        },
        in_proj_bias: t(6, "in_proj_bias"),
        bias_kv: both(t(7, "bias_k"), t(8, "bias_v")),
        add_zero_attn: c.flag(9, "add_zero_attn", false),
        dropout_p: c.float(10, "dropout_p", 0.0),
        out_proj_weight: t(11, "out_proj_weight"),
        out_proj_bias: t(12, "out_proj_bias"),
        training: c.flag(NAMED, "training", true),
        key_padding_mask: t(NAMED, "key_padding_mask"),
        attn_mask: t(NAMED, "attn_mask"),
        average_attn_weights: c.flag(NAMED, "average_attn_weights", true),
    };
    let (y, weights) = c.t(0).multi_head_attention(c.t(1), c.t(2), c.count(4, "num_heads", 1), options);
    if c.flag(NAMED, "need_weights", true) { vec![y, weights] } else { vec![y] }
}

fn patches(c: &Case, from: usize) -> PatchOptions {
    PatchOptions {
        dilation: c.dims_or(from, "dilation", 1).into(),
        padding: c.dims_or(from + 1, "padding", 0).into(),
        stride: c.dims_or(from + 2, "stride", 1).into(),
    }
}

fn adaptive(c: &Case, both: (Tensor, Tensor)) -> Vec<Tensor> {
    if c.flag(2, "return_indices", false) { pair(both) } else { vec![both.0] }
}

fn upsample(c: &Case, mode: Interpolation) -> Tensor {
    let factor = |a: &Arg| match a {
        Arg::Float(f) => *f,
        Arg::Int(i) => *i as f64,
        _ => panic!("no factor"),
    };
    c.t(0).interpolate(xlazy::InterpolateOptions {
        size: c.get(1, "size").map(|_| c.dims(1, "size").into()),
        scale_factor: c.get(2, "scale_factor").map(|a| match a {
            Arg::List(l) => l.iter().map(factor).collect(),
            a => vec![factor(a)],
        }),
        mode,
        align_corners: mode == Interpolation::Linear,
        recompute_scale_factor: false,
    })
}

fn reduce(c: &Case, i: usize) -> ScatterReduce {
    match c.str(i, "reduce", "").as_str() {
        "prod" => ScatterReduce::Prod,
        "mean" => ScatterReduce::Mean,
        "amax" => ScatterReduce::Amax,
        _ => ScatterReduce::Amin,
    }
}

fn parts(c: &Case, even: impl Fn(&Tensor, usize) -> Vec<Tensor>, dim: i64) -> Vec<Tensor> {
    match &c.args[1] {
        Arg::List(_) => c.t(0).tensor_split(&c.dims(1, ""), dim),
        _ => even(c.t(0), c.count(1, "", 1)),
    }
}

fn logspace(c: &Case) -> Tensor {
    let number = |i: usize, name: &str| match c.get(i, name) {
        Some(Arg::Tensor(t)) => t.double().item(),
        _ => c.float(i, name, 0.0),
    };
    let (start, end) = (number(0, "start"), number(1, "end"));
    let integers = c.dtype().is_some_and(|d| !d.is_differentiable());
    // integers: the ends are cut first
    let cut = |v: f64| if integers { v.trunc() } else { v };
    let t = Tensor::logspace(cut(start), cut(end), c.count(2, "steps", 100), c.float(3, "base", 10.0));
    c.dtype().map_or(t.clone(), |d| t.to(d))
}

pub fn call(c: &Case) -> Option<Vec<Tensor>> {
    let x = || c.t(0);
    let one = match c.name.as_str() {
        "nn.functional.grid_sample" | "grid_sampler_2d" => grid(c),
        "nn.functional.embedding_bag" => bag(c),
        "nn.functional.unfold" => x().unfold_patches(c.dims(1, "kernel_size"), patches(c, 2)),
        "nn.functional.fold" => x().fold(c.dims(1, "output_size"), c.dims(2, "kernel_size"), patches(c, 3)),
        "nn.functional.adaptive_max_pool1d" => {
            return Some(adaptive(c, x().adaptive_max_pool1d(c.dims(1, "output_size"))));
        }
        "nn.functional.adaptive_max_pool2d" => {
            return Some(adaptive(c, x().adaptive_max_pool2d(c.dims(1, "output_size"))));
        }
        "nn.functional.adaptive_max_pool3d" => {
            return Some(adaptive(c, x().adaptive_max_pool3d(c.dims(1, "output_size"))));
        }
        "nn.functional.multi_head_attention_forward" => return Some(heads(c)),
        "nn.functional.local_response_norm" => x().local_response_norm(
            c.count(1, "size", 1),
            c.float(2, "alpha", 1e-4),
            c.float(3, "beta", 0.75),
            c.float(4, "k", 1.0),
        ),
        "nn.functional.bilinear" => x().bilinear(c.t(1), c.t(2), c.tensor(3, "bias")),
        "nn.functional.pdist" => x().pdist(c.float(1, "p", 2.0)),
        "nn.functional.upsample_bilinear" => upsample(c, Interpolation::Linear),
        "nn.functional.upsample_nearest" => upsample(c, Interpolation::Nearest),
        "nn.functional.multi_margin_loss" => x().multi_margin_loss(
            c.t(1),
            c.int(NAMED, "p", 1),
            c.float(NAMED, "margin", 1.0),
            c.tensor(NAMED, "weight"),
            reduction(c),
        ),
        "nn.functional.multilabel_margin_loss" => x().multilabel_margin_loss(c.t(1), reduction(c)),
        "nn.functional.multilabel_soft_margin_loss" => {
            x().multilabel_soft_margin_loss(c.t(1), c.tensor(2, "weight"), reduction(c))
        }
        "nn.functional.cosine_embedding_loss" => {
            x().cosine_embedding_loss(c.t(1), c.t(2), c.float(NAMED, "margin", 0.0), reduction(c))
        }
        "nn.functional.gaussian_nll_loss" => x().gaussian_nll_loss(
            c.t(1),
            c.t(2),
            c.flag(NAMED, "full", false),
            c.float(NAMED, "eps", 1e-6),
            reduction(c),
        ),
        "nn.functional.poisson_nll_loss" => x().poisson_nll_loss_with(
            c.t(1),
            c.flag(NAMED, "log_input", true),
            c.flag(NAMED, "full", false),
            c.float(NAMED, "eps", 1e-8),
            reduction(c),
        ),
        "nn.functional.triplet_margin_loss" => x().triplet_margin_loss_with(
            c.t(1),
            c.t(2),
            c.float(NAMED, "margin", 1.0),
            c.float(NAMED, "p", 2.0),
            c.float(NAMED, "eps", 1e-6),
            c.flag(NAMED, "swap", false),
            reduction(c),
        ),
        "as_strided" | "as_strided.partial_views" => {
            x().as_strided(c.dims(1, "size"), c.dims(2, "stride"), c.count(3, "storage_offset", 0))
        }
        "as_strided_scatter" => {
            let offset = c.count(4, "storage_offset", 0);
            x().as_strided_scatter(c.t(1), c.dims(2, "size"), c.dims(3, "stride"), offset)
        }
        "diagonal_scatter" => {
            x().diagonal_scatter(c.t(1), c.int(2, "offset", 0), c.int(3, "dim1", 0), c.int(4, "dim2", 1))
        }
        "slice_scatter" => {
            let n = x().size(c.int(2, "dim", 0)) as i64;
            let (start, end) = (c.int(3, "start", 0), c.int(4, "end", n));
            x().slice_scatter(c.t(1), c.int(2, "dim", 0), start, end, c.int(5, "step", 1))
        }
        name if name.starts_with("index_reduce.") => {
            x().index_reduce(c.int(1, "dim", 0), c.t(2), c.t(3), reduce(c, 4), c.flag(5, "include_self", true))
        }
        "atleast_1d" | "atleast_2d" | "atleast_3d" => {
            let one = |x: &Tensor| match c.name.as_str() {
                "atleast_1d" => x.atleast_1d(),
                "atleast_2d" => x.atleast_2d(),
                _ => x.atleast_3d(),
            };
            return Some(c.tensors(0).into_iter().map(one).collect());
        }
        "hsplit" => return Some(parts(c, |x, n| x.hsplit(n), i64::from(x().dim() > 1))),
        "vsplit" => return Some(parts(c, |x, n| x.vsplit(n), 0)),
        "dsplit" => return Some(parts(c, |x, n| x.dsplit(n), 2)),
        "tensor_split" => {
            let dim = c.int(2, "dim", 0);
            return Some(match &c.args[1] {
                Arg::Int(n) => x().tensor_split_sections(*n as usize, dim),
                Arg::Tensor(t) if t.dim() == 0 => x().tensor_split_sections(t.item_i64() as usize, dim),
                Arg::Tensor(t) => x().tensor_split(&t.to_vec::<i64>(), dim),
                _ => return None,
            });
        }
        "diff" => x().diff_with(c.count(1, "n", 1), c.int(2, "dim", -1), c.tensor(3, "prepend"), c.tensor(4, "append")),
        "meshgrid.variadic_tensors" | "meshgrid.list_of_tensors" => {
            let mut all = c.tensors(0);
            (1..c.args.len()).for_each(|i| all.push(c.t(i)));
            let grid = meshgrid(&all);
            let xy = c.str(NAMED, "indexing", "ij") == "xy" && all.len() > 1;
            // the first two the other way round
            return Some(match xy {
                true => {
                    let mut turned = all.clone();
                    turned.swap(0, 1);
                    let mut grid: Vec<Tensor> = meshgrid(&turned);
                    grid.swap(0, 1);
                    grid
                }
                false => grid,
            });
        }
        "logspace" | "logspace.tensor_overload" => logspace(c),
        "i0" => x().i0(),
        "special.i0e" => x().i0e(),
        "special.i1" => x().i1(),
        "special.i1e" => x().i1e(),
        "special.erfcx" => x().erfcx(),
        "special.entr" => x().entr(),
        "special.ndtr" => x().ndtr(),
        "special.ndtri" => x().ndtri(),
        "special.zeta" => x().zeta(c.operand(1, "other")),
        "special.xlog1py" => x().xlog1py(c.operand(1, "other")),
        name if name.starts_with("mvlgamma.") => x().mvlgamma(c.count(1, "p", 1)),
        "gcd" => x().gcd(c.operand(1, "other")),
        "lcm" => x().lcm(c.t(1)),
        "ldexp" => x().ldexp(c.t(1)),
        "frexp" => return Some(pair(x().frexp())),
        "nextafter" => x().nextafter(c.operand(1, "other")),
        "isreal" => x().isreal(),
        "angle" => x().angle(),
        "unique" => {
            let dim = c.get(NAMED, "dim").map(|_| c.int(NAMED, "dim", 0));
            let found = x().unique_with(dim);
            let mut out = vec![found.values];
            if c.flag(NAMED, "return_inverse", false) {
                out.push(found.inverse);
            }
            if c.flag(NAMED, "return_counts", false) {
                out.push(found.counts);
            }
            return Some(out);
        }
        _ => return None,
    };
    Some(vec![one])
}
