//! Optimised programs as HLO text, written from XLA's protocol buffers (`xla/service/hlo.proto`).
use std::collections::HashMap;
use std::fmt::Write;
use xlazy_core::proto::Message;
use xlazy_core::ty::DType;

/// HLO text of an optimised program in the format that the plugin names.
pub(crate) fn text(format: &str, bytes: &[u8]) -> String {
    if format == "mlir" {
        return String::from_utf8(bytes.to_vec()).unwrap_or_else(|_| "MLIR bytecode".to_owned());
    }
    match module(format, bytes) {
        Some(m) if m.has(3) => module_text(&m),
        _ => format!("{} bytes in the format {format}, which xlazy cannot read", bytes.len()),
    }
}

fn module<'a>(format: &str, bytes: &'a [u8]) -> Option<Message<'a>> {
    match format {
        "hlo" => Message::read(bytes),
        // The module beside its compile options.
        "hlo_with_config" => Message::read(bytes).map(|m| m.message(1)),
        _ => None,
    }
}

/// Each instruction by its number, without where it is from.
pub(crate) fn instructions(format: &str, bytes: &[u8]) -> HashMap<i64, String> {
    let Some(module) = module(format, bytes) else { return HashMap::new() };
    let computations = module.messages(3);
    let all = computations.iter().map(|c| (c, c.messages(2))).collect::<Vec<_>>();
    let names = names(&computations, &all);
    let one = |i: &Message| (i.int(35), written(i, &names));
    all.iter().flat_map(|(_, instructions)| instructions.iter().map(one)).collect()
}

/// What instructions refer to by number.
struct Names<'a> {
    computations: HashMap<i64, &'a str>,
    instructions: HashMap<i64, &'a str>,
}

fn names<'a>(computations: &[Message<'a>], all: &[(&Message<'a>, Vec<Message<'a>>)]) -> Names<'a> {
    Names {
        computations: computations.iter().map(|c| (c.int(5), c.str(1))).collect(),
        instructions: all.iter().flat_map(|(_, i)| i).map(|i| (i.int(35), i.str(1))).collect(),
    }
}

fn module_text(module: &Message) -> String {
    let computations = module.messages(3);
    let all = computations.iter().map(|c| (c, c.messages(2))).collect::<Vec<_>>();
    let names = names(&computations, &all);
    let entry = module.int(6);
    let mut out = format!("HloModule {}", module.str(1));
    for alias in module.message(8).messages(1) {
        let output = list(&alias.ints(1));
        let _ = write!(out, ", output {{{output}}} reuses parameter {}", alias.int(2));
    }
    out.push('\n');
    for (c, instructions) in &all {
        let entry = if c.int(5) == entry { "ENTRY " } else { "" };
        let shape = c.message(4);
        let parameters = instructions.iter().filter(|i| i.str(2) == "parameter");
        let mut parameters: Vec<(i64, String)> =
            parameters.map(|p| (p.int(9), format!("{}: {}", p.str(1), shape_text(&p.message(3), false)))).collect();
        parameters.sort();
        let parameters: Vec<String> = parameters.into_iter().map(|p| p.1).collect();
        let _ = writeln!(
            out,
            "\n{entry}%{} ({}) -> {} {{",
            c.str(1),
            parameters.join(", "),
            shape_text(&shape.message(2), false)
        );
        for i in instructions {
            let root = if i.int(35) == c.int(6) { "ROOT " } else { "" };
            let _ = writeln!(out, "  {root}{}", instruction(i, &names));
        }
        out.push_str("}\n");
    }
    out
}

fn instruction(i: &Message, names: &Names) -> String {
    let mut out = written(i, names);
    let op_name = i.message(7).str(2);
    if !op_name.is_empty() {
        let _ = write!(out, ", metadata={{op_name={op_name:?}}}");
    }
    out
}

fn written(i: &Message, names: &Names) -> String {
    let opcode = i.str(2);
    let operands = match opcode {
        "parameter" => i.int(9).to_string(),
        "constant" => literal(&i.message(8)),
        _ => {
            let name = |id: &i64| format!("%{}", names.instructions.get(id).unwrap_or(&"?"));
            i.ints(36).iter().map(name).collect::<Vec<_>>().join(", ")
        }
    };
    let mut out = format!("%{} = {} {opcode}({operands})", i.str(1), shape_text(&i.message(3), true));
    attributes(i, opcode, names, &mut |name, value| _ = write!(out, ", {name}={value}"));
    out
}

/// The attributes that say what the instruction computes, under the names that XLA prints.
fn attributes(i: &Message, opcode: &str, names: &Names, put: &mut dyn FnMut(&str, String)) {
    let called: Vec<String> =
        i.ints(38).iter().map(|id| format!("%{}", names.computations.get(id).unwrap_or(&"?"))).collect();
    let dimensions = i.ints(14);
    match opcode {
        "iota" => put("iota_dimension", list(&dimensions)),
        _ if !dimensions.is_empty() || opcode == "broadcast" => put("dimensions", braces(&dimensions)),
        _ => {}
    }
    match opcode {
        "get-tuple-element" => put("index", i.int(13).to_string()),
        "compare" => put("direction", i.str(63).to_owned()),
        "fusion" => put("kind", i.str(11).to_owned()),
        "custom-call" => put("custom_call_target", format!("{:?}", i.str(28))),
        "dynamic-slice" => put("dynamic_slice_sizes", braces(&i.ints(20))),
        "rng-bit-generator" => {
            put("algorithm", ["rng_default", "rng_three_fry", "rng_philox"][i.int(70).clamp(0, 2) as usize].to_owned());
        }
        "slice" => {
            let range = |d: &Message| match d.int(3) {
                0 | 1 => format!("[{}:{}]", d.int(1), d.int(2)),
                step => format!("[{}:{}:{step}]", d.int(1), d.int(2)),
            };
            put("slice", format!("{{{}}}", i.messages(17).iter().map(range).collect::<Vec<_>>().join(", ")));
        }
        "pad" => {
            let edge = |d: &Message| match d.int(3) {
                0 => format!("{}_{}", d.int(1), d.int(2)),
                interior => format!("{}_{}_{interior}", d.int(1), d.int(2)),
            };
            put("padding", i.message(21).messages(1).iter().map(edge).collect::<Vec<_>>().join("x"));
        }
        "dot" => {
            let d = i.message(30);
            let fields = [
                ("lhs_batch_dims", 3),
                ("lhs_contracting_dims", 1),
                ("rhs_batch_dims", 4),
                ("rhs_contracting_dims", 2),
            ];
            for (name, field) in fields {
                let dims = d.ints(field);
                if !dims.is_empty() {
                    put(name, braces(&dims));
                }
            }
        }
        "gather" => {
            let d = i.message(33);
            for (name, field) in [("offset_dims", 1), ("collapsed_slice_dims", 2), ("start_index_map", 3)] {
                put(name, braces(&d.ints(field)));
            }
            put("index_vector_dim", d.int(4).to_string());
            put("slice_sizes", braces(&i.ints(34)));
        }
        "scatter" => {
            let d = i.message(48);
            let fields = [("update_window_dims", 1), ("inserted_window_dims", 2), ("scatter_dims_to_operand_dims", 3)];
            for (name, field) in fields {
                put(name, braces(&d.ints(field)));
            }
            put("index_vector_dim", d.int(4).to_string());
        }
        _ => {}
    }
    let window = i.message(15).messages(1);
    if !window.is_empty() {
        put("window", window_text(&window));
    }
    if opcode == "convolution" {
        put("dim_labels", labels(&i.message(16)));
        if i.int(50) > 1 {
            put("feature_group_count", i.int(50).to_string());
        }
    }
    match (opcode, &called[..]) {
        (_, []) => {}
        ("while", [body, condition]) => {
            put("condition", condition.clone());
            put("body", body.clone());
        }
        ("conditional", branches) => put("branch_computations", format!("{{{}}}", branches.join(", "))),
        ("fusion", [computation]) => put("calls", computation.clone()),
        (_, [computation]) => put("to_apply", computation.clone()),
        (_, several) => put("called_computations", format!("{{{}}}", several.join(", "))),
    }
}

fn window_text(dims: &[Message]) -> String {
    let join = |f: &dyn Fn(&Message) -> String| dims.iter().map(f).collect::<Vec<_>>().join("x");
    let mut parts = vec![format!("size={}", join(&|d| d.int(1).to_string()))];
    for (name, field) in [("stride", 2), ("lhs_dilate", 6), ("rhs_dilate", 5)] {
        if dims.iter().any(|d| d.int(field) > 1) {
            parts.push(format!("{name}={}", join(&|d| d.int(field).max(1).to_string())));
        }
    }
    if dims.iter().any(|d| d.int(3) != 0 || d.int(4) != 0) {
        parts.push(format!("pad={}", join(&|d| format!("{}_{}", d.int(3), d.int(4)))));
    }
    if dims.iter().any(|d| d.int(7) != 0) {
        parts.push(format!("rhs_reversal={}", join(&|d| d.int(7).to_string())));
    }
    format!("{{{}}}", parts.join(" "))
}

/// `b01f_01io->b01f`: which dimension is batch, feature, or which spatial one.
fn labels(d: &Message) -> String {
    let side = |first: (char, i64), second: (char, i64), spatial: Vec<i64>| {
        let mut out = vec!['?'; spatial.len() + 2];
        let mut set = |at: i64, c: char| {
            if let Some(slot) = usize::try_from(at).ok().and_then(|at| out.get_mut(at)) {
                *slot = c;
            }
        };
        set(first.1, first.0);
        set(second.1, second.0);
        spatial.iter().zip('0'..).for_each(|(&at, c)| set(at, c));
        out.into_iter().collect::<String>()
    };
    format!(
        "{}_{}->{}",
        side(('b', d.int(7)), ('f', d.int(8)), d.ints(11)),
        side(('i', d.int(3)), ('o', d.int(4)), d.ints(6)),
        side(('b', d.int(9)), ('f', d.int(10)), d.ints(12))
    )
}

fn list(items: &[i64]) -> String {
    items.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

fn braces(items: &[i64]) -> String {
    format!("{{{}}}", list(items))
}

/// XLA's element types (`PrimitiveType`) by number: their names, and the bits of one element.
pub(crate) fn element_type(number: i64) -> (&'static str, u64) {
    match number {
        1 => ("pred", 8),
        2 => ("s8", 8),
        3 => ("s16", 16),
        4 => ("s32", 32),
        5 => ("s64", 64),
        6 => ("u8", 8),
        7 => ("u16", 16),
        8 => ("u32", 32),
        9 => ("u64", 64),
        10 => ("f16", 16),
        11 => ("f32", 32),
        12 => ("f64", 64),
        14 => ("opaque", 0),
        15 => ("c64", 64),
        16 => ("bf16", 16),
        17 => ("token", 0),
        18 => ("c128", 128),
        19 => ("f8e5m2", 8),
        20 => ("f8e4m3fn", 8),
        21 => ("s4", 4),
        22 => ("u4", 4),
        _ => ("?", 8),
    }
}

const TUPLE: i64 = 13;

/// `f32[2,3]{1,0}`; the layout with tiles and memory space, as XLA prints it.
pub(crate) fn shape_text(shape: &Message, with_layout: bool) -> String {
    if shape.int(2) == TUPLE {
        let parts: Vec<String> = shape.messages(4).iter().map(|s| shape_text(s, with_layout)).collect();
        return format!("({})", parts.join(", "));
    }
    let dims = shape.ints(3);
    let mut out = format!("{}[{}]", element_type(shape.int(2)).0, list(&dims));
    if with_layout && shape.has(5) {
        let layout = shape.message(5);
        let tiles: String = layout.messages(6).iter().map(|t| format!("({})", list(&t.ints(1)))).collect();
        let tiles = if tiles.is_empty() { tiles } else { format!(":T{tiles}") };
        let memory = match layout.int(8) {
            0 => String::new(),
            n if tiles.is_empty() => format!(":S({n})"),
            n => format!("S({n})"),
        };
        if !dims.is_empty() || !tiles.is_empty() || !memory.is_empty() {
            let _ = write!(out, "{{{}{tiles}{memory}}}", list(&layout.ints(1)));
        }
    }
    out
}

/// A constant's value where it is small.
fn literal(l: &Message) -> String {
    const MOST: usize = 8;
    let shape = l.message(1);
    let dims = shape.ints(3);
    let halves = |field: u64, dtype: DType| {
        let one = |b: &[u8]| (dtype.read(b).as_f64() as f32).to_string();
        l.bytes(field).chunks_exact(2).map(one).collect::<Vec<_>>()
    };
    let ints = |field: u64| l.ints(field).iter().map(i64::to_string).collect::<Vec<_>>();
    let values = match shape.int(2) {
        1 => l.ints(2).iter().map(|v| (*v != 0).to_string()).collect(),
        2 => l.bytes(15).iter().map(|b| (*b as i8).to_string()).collect(),
        6 => l.bytes(3).iter().map(u8::to_string).collect(),
        4 => l.ints(4).iter().map(|v| (*v as i32).to_string()).collect(),
        5 => ints(5),
        8 => ints(6),
        9 => l.ints(7).iter().map(|v| (*v as u64).to_string()).collect(),
        10 => halves(11, DType::F16),
        16 => halves(13, DType::BF16),
        11 => l.f32s(8).iter().map(|v| float(*v as f64, &v.to_string())).collect(),
        12 => l.f64s(9).iter().map(|v| float(*v, &v.to_string())).collect(),
        15 => l.f32s(12).chunks_exact(2).map(|c| format!("({}, {})", c[0], c[1])).collect(),
        _ => Vec::new(),
    };
    match &values[..] {
        [] => "{...}".to_owned(),
        [one] if dims.is_empty() => one.clone(),
        some if some.len() <= MOST => format!("{{{}}}", some.join(", ")),
        _ => "{...}".to_owned(),
    }
}

fn float(v: f64, shortest: &str) -> String {
    match v.abs() {
        a if a.is_finite() && a != 0.0 && !(1e-4..1e7).contains(&a) => format!("{v:e}"),
        _ => shortest.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::protobuf::{field, int};

    #[test]
    fn a_convolution_is_told_as_xla_tells_it() {
        let f32s = [int(2, 11), field(3, &[1, 4, 4, 1]), field(5, &field(1, &[3, 2, 1, 0]))].concat();
        let window = [int(1, 3), int(2, 2), int(3, 1), int(4, 1)].concat();
        let window = [field(1, &window), field(1, &window)].concat();
        let dims = [int(7, 0), int(8, 3), field(11, &[1, 2]), int(3, 2), int(4, 3), field(6, &[0, 1])].concat();
        let dims = [dims, int(9, 0), int(10, 3), field(12, &[1, 2])].concat();
        let parameter = [field(1, b"p"), field(2, b"parameter"), field(3, &f32s), int(35, 1)].concat();
        let conv =
            [field(1, b"c"), field(2, b"convolution"), field(3, &f32s), field(15, &window), field(16, &dims)].concat();
        let conv = [conv, int(35, 2), field(36, &[1, 1])].concat();
        let body = [
            field(1, b"main"),
            field(2, &parameter),
            field(2, &conv),
            field(4, &field(2, &f32s)),
            int(5, 9),
            int(6, 2),
        ];
        let module = [field(1, b"m"), field(3, &body.concat()), int(6, 9)].concat();
        expect_test::expect![[r#"
            HloModule m

            ENTRY %main (p: f32[1,4,4,1]) -> f32[1,4,4,1] {
              %p = f32[1,4,4,1]{3,2,1,0} parameter(0)
              ROOT %c = f32[1,4,4,1]{3,2,1,0} convolution(%p, %p), window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
            }
        "#]]
        .assert_eq(&text("hlo", &module));
        // Whatever a plugin sends, there is an answer.
        (0..module.len()).for_each(|n| drop(text("hlo", &module[..n])));
        assert_eq!(text("hlo", b"???"), "3 bytes in the format hlo, which xlazy cannot read");
        assert_eq!(text("odd", b""), "0 bytes in the format odd, which xlazy cannot read");
    }
}
