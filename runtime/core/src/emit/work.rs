//! How much a program computes, counted as it is written, so that it is known on every platform: as XLA's own cost analysis counts
//! (`HloCostAnalysis`), but of the program as it was handed over. One per element of an elementwise operation, two per product of a
//! matrix product or convolution, `exp` and the like not at all; the body of a loop once.
use crate::ty::Type;

/// Operations that move, name or make values, and those that XLA counts apart as transcendental.
const NOTHING: &[&str] = &[
    "bitcast_convert",
    "broadcast_in_dim",
    "concatenate",
    "custom_call",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "iota",
    "optimization_barrier",
    "pad",
    "reshape",
    "reverse",
    "rng_bit_generator",
    "slice",
    "transpose",
    "atan2",
    "cbrt",
    "cosine",
    "exponential",
    "exponential_minus_one",
    "log",
    "log_plus_one",
    "logistic",
    "power",
    "rsqrt",
    "sine",
    "sqrt",
    "tan",
    "tanh",
    "scatter",
    "while",
    "case",
    "map",
];

/// Floating-point operations of one operation on operands of these types; `attributes` are as [`super::Emit::op`] writes them.
pub(super) fn flops<'a>(op: &str, operand: impl Fn(usize) -> Option<&'a Type>, attributes: &str, out: &Type) -> f64 {
    let made = out.shape.numel() as f64;
    let elements = |n: usize| operand(n).map_or(0.0, |ty| ty.shape.numel() as f64);
    let size = |n: usize, dim: usize| operand(n).and_then(|ty| ty.shape.get(dim).copied()).unwrap_or(1);
    match op {
        "dot_general" => {
            let contracted = dims(attributes, "lhs_contracting_dimensions");
            2.0 * made * contracted.iter().map(|&d| size(0, d) as f64).product::<f64>()
        }
        "convolution" => {
            let features = attributes.split("kernel_output_feature_dimension = ").nth(1).map(number);
            2.0 * made * elements(1) / features.map_or(1, |d| size(1, d)).max(1) as f64
        }
        "reduce" => elements(0) - made,
        "reduce_window" => {
            let window: f64 = dims(attributes, "window_dimensions").iter().map(|&n| n as f64).product();
            made * (window - 1.0)
        }
        "sort" => elements(0) * elements(0).max(1.0).log2().ceil(),
        // Other dialects name and place.
        op if op.contains('.') || NOTHING.contains(&op) => 0.0,
        _ => made,
    }
}

fn number(text: &str) -> usize {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// `name = [1, 2]` or `name = array<i64: 1, 2>`
fn dims(attributes: &str, name: &str) -> Vec<usize> {
    let Some((_, rest)) = attributes.split_once(name) else { return vec![] };
    let list = rest.split([']', '>']).next().unwrap_or_default().replace("i64", "");
    list.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}
