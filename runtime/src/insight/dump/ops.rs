//! What is known of the operations of StableHLO and HLO, by their names: what they do with elements, and what their attributes
//! say.
use super::module::Ty;
use xlazy_core::ir::{Attr, Kind, Role};
use xlazy_core::ty::{DType, Shape, Type};

pub(super) fn kind(name: &str) -> Kind {
    match name {
        "constant" | "iota" | "create_token" | "partition_id" | "replica_id" => Kind::Made,
        "rng" | "rng_bit_generator" | "rng_uniform" | "rng_normal" | "rng_get_and_update_state" => Kind::Random,
        "add" => Kind::Add,
        "multiply" => Kind::Mul,
        "cast" | "convert" | "bitcast_convert" | "reduce_precision" | "uniform_quantize" => Kind::Convert,
        "copy" | "send" | "recv" | "infeed" | "outfeed" => Kind::Transfer,
        "view" | "permute" | "expand" | "squeeze" | "unsqueeze" | "t" => Kind::View,
        "reshape" | "transpose" | "broadcast" | "broadcast_in_dim" | "bitcast" | "reverse" | "dynamic_reshape" => {
            Kind::View
        }
        "slice" | "dynamic_slice" | "gather" | "real_dynamic_slice" => Kind::Select,
        "pad" | "dynamic_pad" => Kind::Pad,
        "concatenate" | "cat" | "stack" => Kind::Concat,
        "scatter" | "dynamic_update_slice" | "select_and_scatter" => Kind::Update,
        "reduce" | "all_reduce" | "reduce_scatter" | "sum" | "mean" | "prod" | "amax" | "amin" => Kind::Reduce,
        "sort" | "topk" | "cumsum" | "map" => Kind::Along,
        "dot" | "dot_general" | "convolution" | "mm" | "bmm" | "addmm" | "matmul" => Kind::Contract,
        "reduce_window" => Kind::Window,
        _ => Kind::Elementwise,
    }
}

/// What an attribute says; of one that is not known, that it is one of several ways.
pub(super) fn role(attribute: &str) -> Role {
    match attribute {
        "start_indices" | "limit_indices" | "index" | "index_vector_dim" => Role::Position,
        "strides" | "window_strides" | "interior_padding" | "lhs_dilation" | "rhs_dilation" | "base_dilations"
        | "window_dilations" => Role::Stride,
        "shape"
        | "padding"
        | "edge_padding_low"
        | "edge_padding_high"
        | "low"
        | "high"
        | "slice_sizes"
        | "sizes"
        | "dynamic_slice_sizes"
        | "window"
        | "window_dimensions"
        | "feature_group_count"
        | "batch_group_count" => Role::Size,
        "dimension"
        | "dimensions"
        | "dim"
        | "dims"
        | "permutation"
        | "broadcast_dimensions"
        | "iota_dimension"
        | "contracting_dims"
        | "batching_dims"
        | "dot_dimension_numbers"
        | "dim_numbers"
        | "dim_labels"
        | "dimension_numbers"
        | "lhs_contracting_dims"
        | "rhs_contracting_dims"
        | "lhs_batch_dims"
        | "rhs_batch_dims"
        | "offset_dims"
        | "collapsed_slice_dims"
        | "start_index_map" => Role::Axis,
        "value" | "epsilon" => Role::Constant,
        "dtype" => Role::Dtype,
        _ => Role::Mode,
    }
}

/// Attributes that say nothing of what is computed.
pub(super) fn is_silent(attribute: &str) -> bool {
    attribute.contains('.')
        || matches!(attribute, "operandSegmentSizes" | "resultSegmentSizes" | "operand_segment_sizes" | "res_attrs")
}

/// Whether a size of the result is decided by the operation and not by its operands.
pub(super) fn sizes_itself(name: &str) -> bool {
    matches!(
        name,
        "constant"
            | "iota"
            | "broadcast"
            | "broadcast_in_dim"
            | "reshape"
            | "rng"
            | "rng_bit_generator"
            | "rng_uniform"
    )
}

/// Attributes as values: numbers, lists of them, words.
pub(super) fn attributes(all: &[(String, String)]) -> Vec<(String, Attr)> {
    let mut out = Vec::new();
    for (key, text) in all.iter().filter(|(key, _)| !is_silent(key)) {
        match key.as_str() {
            "slice" => match slice(text) {
                Some(parts) => {
                    let names = ["start_indices", "limit_indices", "strides"];
                    out.extend(
                        names.iter().zip(parts).map(|(name, part)| ((*name).to_owned(), Attr::Ints(part.into()))),
                    );
                }
                None => out.push((key.clone(), value(text))),
            },
            // What is the same in every version, said in two ways.
            "broadcast_dimensions" => out.push(("dims".into(), value(text))),
            "iota_dimension" => out.push(("dim".into(), value(text))),
            _ => out.push((key.clone(), value(text))),
        }
    }
    out
}

/// `[0:2, 0:8:2]`, `{[0:2], [0:8]}`: starts, limits, strides.
fn slice(text: &str) -> Option<[Vec<i64>; 3]> {
    let mut parts = [vec![], vec![], vec![]];
    let plain: String = text.chars().filter(|c| !matches!(c, '[' | ']' | '{' | '}' | ' ')).collect();
    for dimension in plain.split(',').filter(|d| !d.is_empty()) {
        let mut numbers = dimension.split(':').map(str::parse);
        let (start, limit) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        let stride = numbers.next().unwrap_or(Ok(1)).ok()?;
        parts.iter_mut().zip([start, limit, stride]).for_each(|(part, n)| part.push(n));
    }
    Some(parts)
}

/// Letters of a text that are kept; what is longer is told apart by a number.
const LONGEST: usize = 120;

fn value(text: &str) -> Attr {
    let text = text.trim();
    if let Some(inside) = text.strip_prefix("array<") {
        let list = inside.trim_end_matches('>').split_once(':').map_or("", |(_, list)| list);
        return ints(list).map_or_else(|| name(text), Attr::Ints);
    }
    if let Some(inside) = text.strip_prefix("dense<").and_then(|t| t.split('>').next()) {
        return number(inside).unwrap_or_else(|| name(inside));
    }
    let bare = text.split(" : ").next().unwrap_or(text);
    if let Some(list) = bare.strip_prefix(['[', '{']).and_then(|t| t.strip_suffix([']', '}']))
        && let Some(list) = ints(list)
    {
        return Attr::Ints(list);
    }
    match bare {
        "true" => Attr::Bool(true),
        "false" => Attr::Bool(false),
        _ => number(bare).unwrap_or_else(|| name(text)),
    }
}

fn number(text: &str) -> Option<Attr> {
    let text = text.trim();
    let digits = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let int = || text.parse().ok().map(Attr::Int);
    int().or_else(|| text.parse().ok().map(Attr::Float)).filter(|_| digits)
}

fn ints(list: &str) -> Option<Box<[i64]>> {
    list.split(',').map(str::trim).filter(|n| !n.is_empty()).map(|n| n.parse().ok()).collect()
}

fn name(text: &str) -> Attr {
    let mut kept: String = text.chars().take(LONGEST).collect();
    if kept.len() < text.len() {
        kept += &format!("… ({:08x})", xxhash_rust::xxh3::xxh3_64(text.as_bytes()) as u32);
    }
    Attr::Name(kept.into())
}

/// A type as ours; of an element type that we have not, the name.
pub(super) fn ty(ty: &Ty) -> (Type, Option<&str>) {
    let name = match ty.element.as_str() {
        "pred" => "i1",
        "s8" => "i8",
        "s32" => "i32",
        "s64" => "i64",
        "u8" => "ui8",
        "c64" => "complex<f32>",
        other => other,
    };
    let known = DType::ALL.into_iter().find(|d| d.mlir() == name);
    let sizes: Vec<usize> = ty.sizes.iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect();
    (Type::new(known.unwrap_or(DType::U8), Shape::new(&sizes)), known.is_none().then_some(&*ty.element))
}
