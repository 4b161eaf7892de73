//! Floating-point operations of an instruction, counted as XLA's own cost analysis counts them (`HloCostAnalysis`): one per
//! element of an elementwise op, two per product of a matmul or convolution, and transcendental functions apart.
use xlazy_core::proto::Message;

/// What one instruction computes.
#[derive(Clone, Copy, Default)]
pub(super) struct Work {
    pub flops: u64,
    /// Elements of `exp`, `tanh` and the like.
    pub transcendentals: u64,
    /// How often it runs what it calls, a reduction's sum or a fusion's body.
    pub each: u64,
}

/// Ops that move, name or make values.
const NOTHING: &[&str] = &[
    "parameter",
    "constant",
    "get-tuple-element",
    "tuple",
    "bitcast",
    "bitcast-convert",
    "broadcast",
    "reshape",
    "transpose",
    "slice",
    "dynamic-slice",
    "dynamic-update-slice",
    "pad",
    "concatenate",
    "gather",
    "iota",
    "copy",
    "copy-start",
    "copy-done",
    "reverse",
    "custom-call",
    "after-all",
    "opt-barrier",
    "rng-bit-generator",
    "while",
    "infeed",
    "outfeed",
    "domain",
    "add-dependency",
    "partition-id",
    "replica-id",
];

const TRANSCENDENTAL: &[&str] = &[
    "exponential",
    "exponential-minus-one",
    "log",
    "log-plus-one",
    "logistic",
    "power",
    "sqrt",
    "rsqrt",
    "cbrt",
    "tanh",
    "sine",
    "cosine",
    "tan",
    "atan2",
    "erf",
    "acos",
    "asin",
    "acosh",
    "asinh",
    "atanh",
    "cosh",
    "sinh",
    "rng",
];

const TUPLE: i64 = 13;

/// Elements of an array; of a tuple, of its first.
fn elements(shape: &Message) -> u64 {
    if shape.int(2) == TUPLE {
        return shape.messages(4).first().map_or(0, elements);
    }
    shape.ints(3).iter().fold(1u64, |n, &d| n.saturating_mul(d.max(0) as u64))
}

/// `shape` of an operand by its place.
pub(super) fn work<'a>(i: &Message, operand: impl Fn(usize) -> Option<&'a Message<'a>>) -> Work {
    let shape = i.message(3);
    let out = elements(&shape);
    let of = |n: usize| operand(n).map_or(0, elements);
    let flops = |flops: u64| Work { flops, ..Work::default() };
    let each = |each: u64| Work { each, ..Work::default() };
    match i.str(2) {
        "fusion" | "call" | "conditional" | "async-start" => each(1),
        "dot" => {
            let dims = operand(0).map(|s| s.ints(3)).unwrap_or_default();
            let size = |d: &i64| usize::try_from(*d).ok().and_then(|d| dims.get(d)).map_or(1, |&d| d.max(0) as u64);
            let contracted = i.message(30).ints(1).iter().map(size).fold(1u64, u64::saturating_mul);
            flops(out.saturating_mul(contracted).saturating_mul(2))
        }
        "convolution" => flops(convolution(i, &shape, operand)),
        "reduce" | "all-reduce" | "reduce-scatter" => each(match i.str(2) {
            "reduce" => of(0).saturating_sub(out),
            _ => of(0),
        }),
        "reduce-window" => each(out.saturating_mul(window(i).saturating_sub(1))),
        "select-and-scatter" => each(of(1).saturating_mul(window(i))),
        "scatter" => each(of(2)),
        "map" => each(out),
        "sort" => {
            let n = of(0);
            flops(n.saturating_mul(n.max(1).ilog2() as u64 + u64::from(!n.is_power_of_two())))
        }
        op if TRANSCENDENTAL.contains(&op) => Work { transcendentals: out, ..Work::default() },
        op if NOTHING.contains(&op) || op.ends_with("-done") => Work::default(),
        _ => flops(out),
    }
}

/// Elements of a window.
fn window(i: &Message) -> u64 {
    i.message(15).messages(1).iter().fold(1u64, |n, d| n.saturating_mul(d.int(1).max(0) as u64))
}

/// Two for each product whose factors are no padding.
fn convolution<'a>(i: &Message, shape: &Message, operand: impl Fn(usize) -> Option<&'a Message<'a>>) -> u64 {
    let (Some(input), Some(kernel)) = (operand(0), operand(1)) else { return 0 };
    let (input, kernel, output) = (input.ints(3), kernel.ints(3), shape.ints(3));
    let d = i.message(16);
    let size = |dims: &[i64], at: i64| {
        usize::try_from(at).ok().and_then(|at| dims.get(at)).copied().unwrap_or(1).max(0) as u64
    };
    let mut products = 1u64;
    for ((w, &input_dim), &output_dim) in i.message(15).messages(1).iter().zip(&d.ints(11)).zip(&d.ints(12)) {
        let (stride, low) = (w.int(2).max(1), w.int(3));
        let (rhs, lhs) = (w.int(5).max(1), w.int(6).max(1));
        let (given, made) = (size(&input, input_dim) as i64, size(&output, output_dim) as i64);
        // What a strange program claims is not counted one by one.
        if made.saturating_mul(w.int(1)) > 1 << 24 {
            products = products.saturating_mul((made as u64).saturating_mul(w.int(1).max(0) as u64));
            continue;
        }
        let is_there = |o: i64, k: i64| {
            let at = o * stride + k * rhs - low;
            at >= 0 && at % lhs == 0 && at / lhs < given
        };
        let there = (0..made).flat_map(|o| (0..w.int(1)).map(move |k| (o, k))).filter(|&(o, k)| is_there(o, k));
        products = products.saturating_mul(there.count() as u64);
    }
    let (batch, features) = (size(&output, d.int(9)), size(&output, d.int(10)));
    // The kernel's input features are those of one group; batch groups share the batch.
    [size(&kernel, d.int(3)), features, batch, 2].iter().fold(products, |n, &f| n.saturating_mul(f))
}
