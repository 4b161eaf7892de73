//! The four forms as text: line by line, kernel by kernel, and all of one line.
use super::link::{KernelOf, Linked, Op, Optimised, Row};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fmt::Write;
use xlazy_mime::{Bundle, columns, count, plural, units};

/// What is said above all: how much of it there is, and what fusing saved.
pub(super) fn headline(l: &Linked) -> String {
    let ops = l.ops.iter().filter(|o| !o.label.starts_with('p')).count();
    let used = l.lines.iter().filter(|s| !s.ops.is_empty()).count();
    format!("{}: {} on {}", l.what, count(ops, "op"), count(used, "line"))
}

/// `CPU: 3 kernels move 1.2 MB; 9 operations run one by one would move 4.0 MB`.
pub(super) fn gain(o: &Optimised) -> String {
    if o.rows.is_empty() {
        return format!("{}: nothing was compiled", o.target);
    }
    let mut out = format!(
        "{}: {} of {}, {} through memory where one by one it would be {}",
        o.target,
        count(o.kernels.len(), "kernel"),
        count(o.before.len(), "operation"),
        units::bytes(o.bytes()),
        units::bytes(o.bytes_before()),
    );
    if let Some(cycles) = o.cycles {
        let _ = write!(out, "; {} cycles, as the compiler estimates", units::thousands(cycles));
    }
    if o.loops() {
        out += "; what a loop runs is counted once";
    }
    out
}

/// `lines 3, 4`: whose lines are in a kernel.
pub(super) fn held(l: &Linked, k: &KernelOf) -> String {
    match k.lines.len() {
        0 => "XLA's own".to_owned(),
        n => format!("{} {}", plural(n as u64, "line"), lines_of(l, &k.lines)),
    }
}

/// `%3 %4`: its ops.
fn holds(l: &Linked, k: &KernelOf) -> String {
    let names: Vec<&str> = k.ops.iter().map(|&op| l.ops[op as usize].label.as_str()).collect();
    match names.len() {
        0..=6 => names.join(" "),
        n => format!("{} and {} more", names[..5].join(" "), n - 5),
    }
}

/// `3, 4`, with their cells where there are several.
pub(super) fn lines_of(l: &Linked, lines: &[usize]) -> String {
    let several = l.lines.iter().map(|s| s.cell).collect::<BTreeSet<_>>().len() > 1;
    let name = |&n: &usize| match (l.lines[n].cell, several) {
        (Some(cell), true) => format!("{cell}:{}", l.lines[n].line),
        (Some(_), false) => l.lines[n].line.to_string(),
        (None, _) => l.lines[n].at(),
    };
    match lines.len() {
        0..=8 => lines.iter().map(name).collect::<Vec<_>>().join(", "),
        n => format!("{} and {} more", lines[..7].iter().map(name).collect::<Vec<_>>().join(", "), n - 7),
    }
}

/// `12.3 kflop, 4.0 kB, 830 cycles`.
pub(super) fn costs(k: &KernelOf) -> String {
    let k = &k.kernel;
    let mut parts = vec![flops(k.flops)];
    if k.transcendentals > 0 {
        parts.push(format!("{} transcendental", units::thousands(k.transcendentals)));
    }
    parts.push(units::bytes(k.bytes));
    parts.extend(k.cycles.map(|c| format!("{} cycles", units::thousands(c))));
    match k.times {
        Some(1) => {}
        Some(n) => parts.push(format!("× {n}")),
        None => parts.push("in a loop".to_owned()),
    }
    parts.join(", ")
}

pub(super) fn flops(n: u64) -> String {
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 1000.0 && unit < 4 {
        value /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{n} flop"),
        _ => format!("{value:.1} {}flop", ["", "k", "M", "G", "T"][unit]),
    }
}

/// The colour of a source line: neighbours differ most.
pub(super) fn hue(line: usize) -> u32 {
    ((line as f64 * 137.508 + 210.0) % 360.0) as u32
}

/// The line whose colour a row has: that of its first op, if all have one.
pub(super) fn colour(l: &Linked, ops: &[u32]) -> Option<usize> {
    let line = |op: &u32| l.ops[*op as usize].lines.first().copied();
    let first = line(ops.first()?)?;
    ops.iter().all(|op| line(op) == Some(first)).then_some(first)
}

const MOST: usize = 60;
/// Marks of a bar.
const BAR: usize = 48;

pub(super) fn text(l: &Linked) -> String {
    let mut out = headline(l) + "\n";
    let first = l.optimised.first();
    let mut cell = None;
    let mut rows: Vec<[String; 4]> = Vec::new();
    for s in l.lines.iter().filter(|s| !s.ops.is_empty()) {
        if rows.len() == MOST {
            break;
        }
        if cell != Some((s.cell, s.file)) {
            cell = Some((s.cell, s.file));
            let head = s.cell.map_or(s.file.rsplit('/').next().unwrap_or_default().to_owned(), |c| format!("cell {c}"));
            rows.push([head, String::new(), String::new(), String::new()]);
        }
        let labels: Vec<&str> = s.ops.iter().map(|&op| l.ops[op as usize].label.as_str()).collect();
        let kernels = first.map(|o| {
            let of = |k: &&KernelOf| k.ops.iter().any(|op| s.ops.contains(op));
            o.kernels.iter().filter(of).map(|k| k.kernel.name.as_str()).collect::<Vec<_>>()
        });
        let line = cut(s.text.trim_end(), 46);
        rows.push([format!("{:>4}", s.line), line, some(&labels, 8), some(&kernels.unwrap_or_default(), 4)]);
    }
    out += &columns(&rows, &[]);
    let more = l.lines.iter().filter(|s| !s.ops.is_empty()).count().saturating_sub(MOST);
    if more > 0 {
        let _ = write!(out, "\n… and {} more", count(more, "line"));
    }
    for o in &l.optimised {
        let _ = write!(out, "\n\n{}", gain(o));
        let most = o.bytes().max(o.bytes_before()).max(1);
        for (name, bytes, parts) in
            [("before", o.bytes_before(), o.before.len()), ("after", o.bytes(), o.kernels.len())]
        {
            let filled = ((bytes as u128 * BAR as u128).div_ceil(most as u128)) as usize;
            let _ = write!(
                out,
                "\n  {name:<6} {:<BAR$} {} × {}",
                "█".repeat(filled),
                parts,
                units::bytes(bytes / parts.max(1) as u64)
            );
        }
        let kernel = |k: &KernelOf| [k.kernel.name.clone(), costs(k), held(l, k), holds(l, k)];
        let rows: Vec<[String; 4]> = o.kernels.iter().take(MOST).map(kernel).collect();
        let _ = write!(out, "\n{}", columns(&rows, &[]));
        if o.kernels.len() > MOST {
            let _ = write!(out, "\n… and {} more", count(o.kernels.len() - MOST, "kernel"));
        }
    }
    let gone: Vec<[String; 2]> = gone(l).map(|(op, why)| [op.text.clone(), why.to_owned()]).take(MOST).collect();
    if !gone.is_empty() {
        let _ = write!(out, "\n\nnot in the optimised program:\n{}", columns(&gone, &[]));
    }
    out
}

fn gone(l: &Linked) -> impl Iterator<Item = (&Op, &str)> {
    l.ops.iter().filter_map(|o| Some((o, o.gone.as_deref()?)))
}

/// As many as fit, and how many more there are.
fn some(names: &[&str], most: usize) -> String {
    match names.len() {
        n if n > most => format!("{} +{}", names[..most - 1].join(" "), n - most + 1),
        _ => names.join(" "),
    }
}

pub(super) fn cut(text: &str, most: usize) -> String {
    match text.chars().count() {
        n if n > most => text.chars().take(most - 1).chain(['…']).collect(),
        _ => text.to_owned(),
    }
}

/// All that belongs to one line.
pub(super) fn of_line(l: &Linked, cell: Option<u64>, line: u32) -> Result<Bundle> {
    let on = |n: &usize| {
        l.lines[*n].line == line && !l.lines[*n].ops.is_empty() && (cell.is_none() || l.lines[*n].cell == cell)
    };
    let Some(n) = (0..l.lines.len()).rfind(on) else {
        let known = l.lines.iter().filter(|s| !s.ops.is_empty()).map(|s| match s.cell {
            Some(cell) => format!("{cell}:{}", s.line),
            None => s.at(),
        });
        let known = known.collect::<Vec<_>>().join(", ");
        let which = cell.map(|c| format!("cell {c}, ")).unwrap_or_default();
        let message = format!("{which}line {line} has no op of this program; these have some: {known}");
        return Err(Error::Usage { message });
    };
    let source = &l.lines[n];
    let ops: BTreeSet<u32> = source.ops.iter().copied().collect();
    let belongs = |r: &&Row| r.ops.iter().any(|op| ops.contains(op));
    let mut out = format!("{}: {}\n", source.at(), source.text.trim());
    out += "\nrecorded\n";
    for &op in &source.ops {
        let o = &l.ops[op as usize];
        let gone = o.gone.as_ref().map(|why| format!("  # {why}")).unwrap_or_default();
        let kind = match o.kind.name() {
            "forward" | "value" | "number" => String::new(),
            kind => format!("  # {kind}"),
        };
        let _ = writeln!(out, "  {}{kind}{gone}", o.text);
    }
    out += "\nStableHLO\n";
    l.stablehlo.iter().filter(belongs).for_each(|r| _ = writeln!(out, "  {}", r.text));
    for o in &l.optimised {
        let _ = writeln!(out, "\n{}", o.target);
        let mut shown = false;
        for k in o.kernels.iter().filter(|k| k.ops.iter().any(|op| ops.contains(op))) {
            shown = true;
            let with: Vec<usize> = k.lines.iter().copied().filter(|&line| line != n).collect();
            let with = match with.is_empty() {
                true => String::new(),
                false => format!("; with lines {}", lines_of(l, &with)),
            };
            let _ = writeln!(out, "  {} ({}{with})", k.kernel.name, costs(k));
            let depth = o.rows[k.row].depth;
            let inside = o.rows[k.row + 1..].iter().take_while(|r| r.depth > depth);
            let _ = writeln!(out, "    {}", o.rows[k.row].text);
            inside.filter(belongs).for_each(|r| _ = writeln!(out, "      {}", r.text));
        }
        if !shown {
            out += "  nothing\n";
        }
    }
    Ok(Bundle::text(out.trim_end().to_owned()).passing())
}
