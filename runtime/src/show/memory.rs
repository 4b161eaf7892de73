//! Device memory by what holds it: variables, parameters, optimizer state, gradients, what the tape keeps. What `%memory` shows.
use crate::insight::cell::{growth, pending};
use crate::insight::mode::{Derived, derived_of};
use crate::json::{Value, json};
use crate::{Result, Tensor, aot};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;
use xlazy_core::device::{Counted, DeviceData, bytes_in_use, counted, name_of};
use xlazy_core::host::{Holder, named};
use xlazy_core::ir::{Graph, LEAF, NodeId, Payload, graph as arena};
use xlazy_core::run::{self, Program};
use xlazy_core::text::{self, Place};
use xlazy_mime::{Bundle, Cell, Table, count, escape_html, units};

/// What a value is to whoever looks for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Parameter,
    OptimizerState,
    Gradient,
    Activation,
    Variable,
    Pending,
    Other,
}

impl Kind {
    const ALL: [Kind; 7] = [
        Kind::Parameter,
        Kind::OptimizerState,
        Kind::Gradient,
        Kind::Activation,
        Kind::Variable,
        Kind::Pending,
        Kind::Other,
    ];

    fn name(self) -> &'static str {
        match self {
            Kind::Parameter => "parameters",
            Kind::OptimizerState => "optimizer state",
            Kind::Gradient => "gradients",
            Kind::Activation => "activations that the tape keeps",
            Kind::Variable => "variables",
            Kind::Pending => "values that pending ops start from",
            Kind::Other => "held by something else",
        }
    }
}

/// One buffer.
struct Held {
    name: Option<String>,
    kind: Kind,
    ty: String,
    /// On the device, with what its layout pads.
    bytes: u64,
    /// Of its elements alone.
    elements: u64,
    device: &'static str,
    at: Place,
    statement: Option<Place>,
    /// What of the user's keeps it, where that is not itself.
    kept_by: Vec<String>,
    /// The cell that ran last made it.
    new: bool,
}

/// What the graph says of a value, before its buffer is asked.
struct Found {
    data: Arc<DeviceData>,
    held: Held,
}

/// Everything in memory that the graph knows of. The graph is not held while the plugin is asked.
fn held() -> Vec<Held> {
    let names = named();
    let since = growth().map_or(u64::MAX, |g| g.since);
    let found = {
        let g = arena();
        find(&g, &names, since)
    };
    let one = |Found { data, mut held }: Found| {
        let buffer = data.buffer.as_ref();
        // What was donated to a program is gone, though its node stands.
        if buffer.is_some_and(|b| b.is_deleted().unwrap_or(false)) {
            return None;
        }
        held.bytes = buffer.and_then(|b| b.on_device_size().ok()).map_or(held.elements, |n| n as u64);
        Some(held)
    };
    let mut all: Vec<Held> = found.into_iter().filter_map(one).collect();
    all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    all
}

fn find(g: &Graph, names: &[xlazy_core::host::Named], since: u64) -> Vec<Found> {
    let mut by_data: HashMap<*const DeviceData, Vec<NodeId>> = HashMap::new();
    let mut order: Vec<*const DeviceData> = Vec::new();
    let mut users: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for id in g.alive() {
        let n = g.node(id);
        n.inputs.iter().for_each(|&i| users.entry(i).or_default().push(id));
        if let Some(data) = n.value() {
            let nodes = by_data.entry(Arc::as_ptr(data)).or_default();
            if nodes.is_empty() {
                order.push(Arc::as_ptr(data));
            }
            nodes.push(id);
        }
    }
    let mut name_of_node: HashMap<NodeId, &xlazy_core::host::Named> = HashMap::new();
    // A model's name says more than a variable's that is the same tensor.
    for n in names {
        let known = name_of_node.entry(n.node).or_insert(n);
        if known.holder == Holder::Variable && n.holder != Holder::Variable {
            *known = n;
        }
    }
    // Gradients are held by their tensors, which names know.
    let one = |at: *const DeviceData| {
        let nodes = &by_data[&at];
        let named = nodes.iter().find_map(|n| name_of_node.get(n).copied());
        let id = named.map_or(nodes[0], |n| n.node);
        let n = g.node(id);
        let derived = derived_of([n.seq])[0];
        let handled = nodes.iter().any(|&n| g.node(n).handles > 0);
        let on_tape = || nodes.iter().flat_map(|n| users.get(n)).flatten().any(|&u| g.node(u).on_tape());
        let kind = match named.map(|n| n.holder) {
            Some(Holder::Module) => Kind::Parameter,
            Some(Holder::Optimizer(_)) => Kind::OptimizerState,
            Some(Holder::Gradient) => Kind::Gradient,
            Some(Holder::Variable) if n.flags & LEAF != 0 => Kind::Parameter,
            Some(Holder::Variable) => Kind::Variable,
            None if handled && derived == Some(Derived::Gradient) => Kind::Gradient,
            None if handled => Kind::Other,
            None if on_tape() => Kind::Activation,
            None => Kind::Pending,
        };
        let kept_by = if named.is_none() { keepers(g, nodes, &users, &name_of_node) } else { vec![] };
        Found {
            data: n.value().expect("it was looked for").clone(),
            held: Held {
                name: named.map(|n| n.name.clone()),
                kind,
                ty: n.described(),
                bytes: 0,
                elements: n.ty.bytes() as u64,
                device: name_of(n.value().map_or(0, |d| d.device)),
                at: n.at,
                statement: n.statement,
                kept_by,
                new: n.seq > since,
            },
        }
    };
    order.into_iter().map(one).collect()
}

/// The variables whose values, or whose gradients, need this one: the nearest of them.
fn keepers(
    g: &Graph,
    nodes: &[NodeId],
    users: &HashMap<NodeId, Vec<NodeId>>,
    names: &HashMap<NodeId, &xlazy_core::host::Named>,
) -> Vec<String> {
    const LOOKED_AT: usize = 4096;
    const NAMED: usize = 3;
    let mut seen: HashSet<NodeId> = nodes.iter().copied().collect();
    let mut queue: std::collections::VecDeque<NodeId> = nodes.iter().copied().collect();
    let mut out = Vec::new();
    while let Some(id) = queue.pop_front() {
        for &user in users.get(&id).into_iter().flatten() {
            if seen.len() >= LOOKED_AT || !seen.insert(user) {
                continue;
            }
            match names.get(&user) {
                Some(n) => out.push(n.name.clone()),
                None if g.node(user).handles > 0 => out.push(format!("a value of {}", text::location(g.node(user).at))),
                None => queue.push_back(user),
            }
            if out.len() == NAMED {
                return out;
            }
        }
    }
    out
}

/// What a run of a program takes.
struct Step {
    memory: run::Memory,
    /// As the plugin counts it; 0 where it does not.
    peak: u64,
    largest: Vec<aot::Held>,
}

fn step(program: &Program) -> Option<Step> {
    let stats = program.executable.as_ref()?.memory_stats().ok()?;
    let size = |n: i64| n.max(0) as u64;
    let memory = run::Memory {
        arguments: size(stats.argument_size),
        outputs: size(stats.output_size - stats.alias_size),
        temporaries: size(stats.temp_size),
        code: size(stats.generated_code_size),
    };
    Some(Step { memory, peak: size(stats.peak_memory), largest: aot::largest(&program.text, &program.marks) })
}

impl Step {
    fn json(&self) -> Value {
        let largest = |h: &aot::Held| {
            let source = h.sources.first();
            json!({
                "type": h.shape,
                "bytes": h.bytes,
                "op": source.map(|s| s.op.clone()),
                "at": source.map(|s| s.at.clone()),
            })
        };
        json!({
            "arguments_bytes": self.memory.arguments,
            "outputs_bytes": self.memory.outputs,
            "temporaries_bytes": self.memory.temporaries,
            "code_bytes": self.memory.code,
            "peak_bytes": if self.peak > 0 { Value::from(self.peak) } else { Value::Null },
            "largest": self.largest.iter().map(largest).collect::<Value>(),
        })
    }

    fn lines(&self, what: &str) -> String {
        let m = &self.memory;
        let mut out = format!(
            "{what}: {} of arguments, {} of new results, {} of temporaries",
            units::bytes(m.arguments),
            units::bytes(m.outputs),
            units::bytes(m.temporaries),
        );
        if self.peak > 0 {
            let _ = write!(out, "; at most {} at once", units::bytes(self.peak));
        }
        let told: Vec<String> = self
            .largest
            .iter()
            .filter(|h| h.sources.first().is_some_and(|s| !s.at.is_empty()))
            .take(3)
            .map(|h| format!("{} of {} at {}", units::bytes(h.bytes), h.sources[0].op, h.sources[0].at))
            .collect();
        if !told.is_empty() {
            let _ = write!(out, "\n  its largest values, before XLA fuses them: {}", told.join("; "));
        }
        out
    }
}

/// `%memory`.
pub(crate) fn bundle(as_json: bool) -> Bundle {
    let all = held();
    let in_use = bytes_in_use();
    let listed: u64 = all.iter().map(|h| h.bytes).sum();
    let counted = counted();
    let last = run::last_program().and_then(|p| step(&p));
    let growth = growth();
    let next = pending().1;
    if as_json {
        let value = |h: &Held| {
            json!({
                "name": h.name,
                "kind": h.kind.name(),
                "type": h.ty,
                "bytes": h.bytes,
                "padding_bytes": h.bytes.saturating_sub(h.elements),
                "device": h.device,
                "at": text::told(h.at, h.statement),
                "kept_by": h.kept_by,
                "new": h.new,
            })
        };
        let device = |c: &Counted| json!({ "device": c.device, "in_use_bytes": c.in_use, "peak_bytes": c.peak, "limit_bytes": c.limit });
        return crate::json::bundle(json!({
            "in_use_bytes": in_use,
            "listed_bytes": listed,
            "devices": counted.iter().map(device).collect::<Value>(),
            "values": all.iter().map(value).collect::<Value>(),
            "last_program": last.map(|s| s.json()),
            "growth_bytes": growth.map(|g| g.bytes),
            "next_sync_bytes": next.map(|n| n.memory()),
        }));
    }
    let mut head =
        format!("{} in use, {} of it in {}", units::bytes(in_use), units::bytes(listed), count(all.len(), "value"));
    match in_use.checked_sub(listed) {
        Some(0) => {}
        Some(more) => {
            _ = write!(head, "; {} are numbers of programs, copies and what is on its way", units::bytes(more))
        }
        None => _ = write!(head, "; the device counts {} less", units::bytes(listed - in_use)),
    }
    if let Some(g) = growth.filter(|g| g.bytes != 0) {
        let sign = if g.bytes > 0 { "+" } else { "−" };
        let _ = write!(head, "; {sign}{} since the last cell began", units::bytes(g.bytes.unsigned_abs()));
    }
    let mut below = Vec::new();
    for c in counted.iter().filter(|c| c.peak.is_some() || c.limit.is_some()) {
        let peak = c.peak.map_or(String::new(), |p| format!(", {} at most so far", units::bytes(p)));
        let limit = c.limit.filter(|l| *l > 0).map_or(String::new(), |l| format!(", of {}", units::bytes(l)));
        below.push(format!("{}: {} in use{peak}{limit}", c.device, units::bytes(c.in_use)));
    }
    below.extend(last.map(|s| s.lines("the program that ran last")));
    if let Some(next) = next.filter(|n| n.memory() != 0) {
        let what = if next.memory() > 0 { "add" } else { "free" };
        below.push(format!("a sync would {what} {}", units::bytes(next.memory().unsigned_abs())));
    }
    table(&head, &all, &below.join("\n"))
}

/// A row of what is told together: a model's parameters, a step's activations.
struct Row {
    name: String,
    kind: Kind,
    ty: String,
    bytes: u64,
    padding: u64,
    note: String,
    count: usize,
    new: bool,
}

/// Values of one owner are one row where there are many of them.
fn rows(all: &[Held]) -> Vec<Row> {
    const ALONE: usize = 24;
    let owner = |h: &Held| match &h.name {
        Some(name) => name.split(['.', '(']).next().unwrap_or(name).to_owned(),
        None => h.kept_by.first().map_or_else(|| text::told(h.at, h.statement), |k| format!("for {k}")),
    };
    let mut groups: BTreeMap<(Kind, String), Vec<&Held>> = BTreeMap::new();
    for h in all {
        groups.entry((h.kind, owner(h))).or_default().push(h);
    }
    let many = all.len() > ALONE;
    let mut out = Vec::new();
    let single = |h: &Held| Row {
        name: h.name.clone().unwrap_or_else(|| "–".to_owned()),
        kind: h.kind,
        ty: h.ty.clone(),
        bytes: h.bytes,
        padding: h.bytes.saturating_sub(h.elements),
        note: match h.kept_by.is_empty() {
            true => text::told(h.at, h.statement),
            false => format!("{}; kept by {}", text::told(h.at, h.statement), h.kept_by.join(", ")),
        },
        count: 1,
        new: h.new,
    };
    for ((kind, owner), group) in groups {
        match group[..] {
            [_, _, ..] if many => out.push(Row {
                name: owner,
                kind,
                ty: count(group.len(), "value"),
                bytes: group.iter().map(|h| h.bytes).sum(),
                padding: group.iter().map(|h| h.bytes.saturating_sub(h.elements)).sum(),
                note: format!("largest: {} {}", group[0].name.as_deref().unwrap_or(""), group[0].ty),
                count: group.len(),
                new: group.iter().any(|h| h.new),
            }),
            _ => out.extend(group.into_iter().map(single)),
        }
    }
    out.sort_by_key(|r| (r.kind, std::cmp::Reverse(r.bytes)));
    out
}

fn table(head: &str, all: &[Held], below: &str) -> Bundle {
    let rows = rows(all);
    let padded = rows.iter().any(|r| r.padding > 0);
    let total: u64 = all.iter().map(|h| h.bytes).sum();
    let mut text = format!("{head}\n");
    let mut html = Table::new("font-family:ui-monospace,monospace;font-size:.92em");
    let mut heads = vec!["value", "type", "bytes", "", "made by"];
    if padded {
        heads.insert(3, "padding");
    }
    html.head(heads);
    let width = rows.iter().map(|r| r.name.chars().count()).max().unwrap_or(0).clamp(12, 44);
    for kind in Kind::ALL {
        let of: Vec<&Row> = rows.iter().filter(|r| r.kind == kind).collect();
        if of.is_empty() {
            continue;
        }
        let sum: u64 = of.iter().map(|r| r.bytes).sum();
        let n: usize = of.iter().map(|r| r.count).sum();
        let _ = writeln!(text, "{}: {} in {}", kind.name(), units::bytes(sum), count(n, "value"));
        let title = format!("<b>{}</b>", escape_html(kind.name()));
        let mut cells = vec![
            Cell::html(title).left(),
            Cell::text(&count(n, "value")).left(),
            Cell::text(&units::bytes(sum)).right(),
        ];
        if padded {
            cells.push(Cell::text(""));
        }
        cells.extend([Cell::html(share(sum, total)), Cell::text("")]);
        html.row(cells);
        for r in of {
            let new = if r.new { " (new)" } else { "" };
            let padding = if r.padding > 0 { format!(" ({} padding)", units::bytes(r.padding)) } else { String::new() };
            let _ = writeln!(
                text,
                "  {:<width$} {:<16} {:>10}{padding}  {}{new}",
                r.name,
                r.ty,
                units::bytes(r.bytes),
                r.note
            );
            let mut cells =
                vec![Cell::text(&r.name).left(), Cell::text(&r.ty).left(), Cell::text(&units::bytes(r.bytes)).right()];
            if padded {
                cells.push(Cell::text(&units::bytes(r.padding)).right());
            }
            cells.extend([Cell::html(share(r.bytes, total)), Cell::text(&format!("{}{new}", r.note)).left()]);
            html.row(cells);
        }
    }
    let html = format!(
        "<div style=\"line-height:1.35\"><div>{}</div><div style=\"overflow:auto;max-height:520px\">{}</div>\
         <div style=\"opacity:.8;font-size:.9em;white-space:pre-wrap\">{}</div></div>",
        escape_html(head),
        if all.is_empty() { String::new() } else { html.html() },
        escape_html(below)
    );
    Bundle::html(html, format!("{text}{below}").trim_end().to_owned()).passing()
}

/// A bar: which part of all that is.
fn share(bytes: u64, total: u64) -> String {
    let percent = if total == 0 { 0.0 } else { bytes as f64 * 100.0 / total as f64 };
    format!(
        "<div style=\"width:90px;background:rgba(128,128,128,.15)\"><div style=\"width:{percent:.0}%;min-width:1px;height:9px;\
         background:#4878d0\"></div></div>"
    )
}

/// What computing the tensor would take: `%memory y`. Compiles its program if it is not in the cache, and does not run it.
#[track_caller]
pub(crate) fn of(tensor: &Tensor, as_json: bool) -> Result<Bundle> {
    let id = tensor.id();
    let there = match &arena().node(id).payload {
        Payload::Data(d) | Payload::Cached(d) => Some(d.ty.bytes() as u64),
        _ => None,
    };
    let step = match there {
        Some(_) => None,
        None => run::compiled(&crate::insight::INSIGHT, vec![id]).transpose()?.and_then(|p| step(&p)),
    };
    let adds = if there.is_some() { 0 } else { arena().node(id).ty.bytes() as u64 };
    if as_json {
        return Ok(crate::json::bundle(json!({ "adds_bytes": adds, "program": step.map(|s| s.json()) })));
    }
    let text = match (there, step) {
        (Some(bytes), _) => format!("its value is on the device already: {}", units::bytes(bytes)),
        (None, None) => format!("computing it adds {}", units::bytes(adds)),
        (None, Some(s)) => format!("computing it adds {}\n{}", units::bytes(adds), s.lines("while its program runs")),
    };
    Ok(Bundle::text(text).passing())
}
