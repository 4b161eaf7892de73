//! The four forms as data: `trace` in docs/insight.schema.json.
use super::link::{Alone, KernelOf, Linked, Op, Optimised, Row, SourceLine};
use crate::json::{Value, json};

pub(super) fn json(linked: &Linked) -> Value {
    let line = |l: &SourceLine| {
        json!({ "cell": l.cell, "file": if l.cell.is_some() { Value::Null } else { l.file.into() }, "line": l.line,
                "text": l.text, "ops": l.ops })
    };
    let op = |(id, o): (usize, &Op)| json!({ "id": id, "label": o.label, "text": o.text, "kind": o.kind.name(), "lines": o.lines, "gone": o.gone });
    json!({
        "what": linked.what,
        "lines": linked.lines.iter().map(line).collect::<Value>(),
        "ops": linked.ops.iter().enumerate().map(op).collect::<Value>(),
        "stablehlo": linked.stablehlo.iter().map(row).collect::<Value>(),
        "optimised": linked.optimised.iter().map(optimised).collect::<Value>(),
    })
}

fn row(r: &Row) -> Value {
    json!({ "text": r.text, "depth": r.depth, "ops": r.ops })
}

fn optimised(o: &Optimised) -> Value {
    let kernel = |k: &KernelOf| {
        json!({
            "name": k.kernel.name,
            "opcode": k.kernel.opcode,
            "row": k.row,
            "ops": k.ops,
            "lines": k.lines,
            "times": k.kernel.times,
            "flops": k.kernel.flops,
            "transcendentals": k.kernel.transcendentals,
            "moved_bytes": k.kernel.bytes,
            "cycles": k.kernel.cycles,
        })
    };
    let alone = |a: &Alone| json!({ "op": a.name, "moved_bytes": a.bytes, "row": a.row, "kernel": a.kernel });
    json!({
        "target": o.target,
        "rows": o.rows.iter().map(row).collect::<Value>(),
        "kernels": o.kernels.iter().map(kernel).collect::<Value>(),
        "before": o.before.iter().map(alone).collect::<Value>(),
        "before_moved_bytes": o.bytes_before(),
        "moved_bytes": o.bytes(),
        "flops": o.flops(),
        "cycles": o.cycles,
    })
}
