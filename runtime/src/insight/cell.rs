//! What one cell did: compilations, syncs, transfers, times; what it left pending.
use super::alike::{Told, told};
use super::history::{compilations_since, compiled_so_far};
use super::log::{events_since, syncs_so_far};
use super::metrics::{self, Metric};
use super::render::place;
use super::report::Compilation;
use super::{budget, live, side, timeline, witness};
use crate::json::{Value, json, millis};
use std::fmt::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use xlazy_core::clock::traced;
use xlazy_core::device::{bytes_in_use, name_of};
use xlazy_core::ir::{Graph, Payload, Scope, graph};
use xlazy_core::run::{Forecast, Origin, SyncEvent, would};
use xlazy_core::text::{Place, Spot, called_from, location, with_caller};
use xlazy_mime::{Bundle, Table, count, escape_html, units};

struct Running {
    cell: u64,
    start: Instant,
    /// Programs that XLA compiled, and all that were new to the session.
    compiled: (usize, usize),
    syncs: (u64, Duration),
    created: u64,
    traced: u64,
    memory: u64,
    totals: Vec<(u64, f64)>,
}

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

fn running() -> std::sync::MutexGuard<'static, Option<Running>> {
    RUNNING.lock().unwrap_or_else(|p| p.into_inner())
}

static TIMES: &[&Metric] = &[
    &metrics::LOWER_TIME,
    &metrics::COMPILE_TIME,
    &metrics::EXECUTE_TIME,
    &metrics::TRANSFER_TO_DEVICE_TIME,
    &metrics::TRANSFER_FROM_DEVICE_TIME,
    &metrics::OUTBOUND_DATA,
    &metrics::INBOUND_DATA,
    &metrics::HELD_DATA,
    &metrics::AOT_COMPILE_TIME,
    &metrics::WAIT_TIME,
    &metrics::LOADER_WAIT_TIME,
];

/// The cell of this number begins; 0 for one that no user wrote.
pub(crate) fn begin(cell: u64) {
    witness::cell_begins();
    traced();
    let (created, traced) = {
        let g = graph();
        (g.created, g.last_seq())
    };
    let now = Running {
        cell,
        start: Instant::now(),
        compiled: compiled_so_far(),
        syncs: syncs_so_far(),
        created,
        traced,
        memory: bytes_in_use(),
        totals: TIMES.iter().map(|m| (m.count(), m.total())).collect(),
    };
    timeline::cell_begins(cell, now.start);
    budget::cell_begins(now.compiled.0);
    *self::running() = Some(now);
    live::cell_begins();
}

/// A cell ended: what it did as JSON, or nothing if it did nothing with tensors.
pub(crate) fn end() -> Option<String> {
    live::cell_ends();
    timeline::cell_ends();
    budget::cell_ends();
    let r = running().take()?;
    let wall = r.start.elapsed();
    let after: Vec<(u64, f64)> = TIMES.iter().map(|m| (m.count(), m.total())).collect();
    let recorded = graph().created.saturating_sub(r.created);
    let total = |i: usize| (after[i].1 - r.totals[i].1).max(0.0);
    let count = |i: usize| after[i].0.saturating_sub(r.totals[i].0);
    let (synced, trace) = syncs_so_far();
    let syncs = synced - r.syncs.0;
    if syncs == 0 && recorded == 0 && [5, 6, 8].iter().all(|i| count(*i) == 0) {
        return None;
    }
    let new = compilations_since(r.compiled.1);
    let compiled = new.iter().filter(|c| c.origin == Origin::Compiled).count() as u64;
    let disk = new.len() as u64 - compiled;
    let trace = trace - r.syncs.1 + traced();
    let from_disk: Duration = new.iter().filter(|c| c.origin == Origin::Disk).map(|c| c.compile).sum();
    let memory = bytes_in_use();
    let events = events_since(r.syncs.0);
    side::note(r.cell, &events, new.len(), new.iter().map(|c| c.compile).sum(), wall);
    let bytes = memory as i64 - r.memory as i64;
    *last_growth() = Some(Growth { since: r.traced, bytes, cell: r.cell, compiled: (r.compiled.1, new.len()) });
    let ms = |i: usize| millis(Duration::from_nanos(total(i) as u64));
    let did = json!({
        "wall_ms": millis(wall),
        "tensors": recorded,
        "syncs": syncs,
        "compiled": compiled,
        "memory_hits": syncs.saturating_sub(new.len() as u64),
        "disk_hits": disk,
        "trace_ms": millis(trace),
        "lower_ms": ms(0),
        "compile_ms": ms(1),
        "disk_ms": millis(from_disk),
        "aot_compiled": count(8),
        "aot_ms": ms(8),
        "execute_ms": ms(2),
        "wait_ms": ms(9),
        "loader_wait_ms": ms(10),
        "to_device_ms": ms(3),
        "from_device_ms": ms(4),
        "to_device_bytes": total(5) as u64,
        "from_device_bytes": total(6) as u64,
        "copied_bytes": total(7) as u64,
        "device_bytes": memory,
        "device_bytes_delta": memory as i64 - r.memory as i64,
        "runs": runs(&events),
        "told": told(&new).iter().map(said).collect::<Value>(),
        "compilations": new.iter().map(Compilation::value).collect::<Value>(),
    });
    Some(did.to_string())
}

/// What the last cell that did something with tensors has added: to device memory, and to the programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    /// How many nodes had been traced when it began.
    pub since: u64,
    pub bytes: i64,
    pub cell: u64,
    /// How many programs there were when it began, and how many it added.
    pub compiled: (usize, usize),
}

/// Where a compilation is none of the last cell's: what that one compiled, in a sentence.
pub(crate) fn compiled_otherwise(number: u64) -> Option<String> {
    let Growth { cell, compiled: (before, new), .. } = growth()?;
    let all = before as u64 + 1..=(before + new) as u64;
    if cell == 0 || all.contains(&number) {
        return None;
    }
    let did = match new {
        0 => "compiled nothing".to_owned(),
        1 => "compiled the first program of its kind".to_owned(),
        n => format!("compiled {}, each the first of its kind", count(n, "program")),
    };
    Some(format!("Cell {cell} {did}. Before it:"))
}

static GROWTH: Mutex<Option<Growth>> = Mutex::new(None);

fn last_growth() -> std::sync::MutexGuard<'static, Option<Growth>> {
    GROWTH.lock().unwrap_or_else(|p| p.into_inner())
}

pub(crate) fn growth() -> Option<Growth> {
    *last_growth()
}

/// What is said of compilations as JSON.
fn said(told: &Told) -> Value {
    let of: Vec<u64> = told.of.iter().map(|c| c.number).collect();
    json!({ "sentence": told.sentence, "count": of.len(), "compilations": of, "news": told.is_news() })
}

/// Syncs of one cause, line and program size, of a cell.
const MOST_RUNS: usize = 40;

/// The syncs as JSON, those of one cause and line and program size together, in the order of their first.
fn runs(syncs: &[SyncEvent]) -> Value {
    let mut groups: Vec<(&SyncEvent, [u64; 3], [Duration; 4])> = Vec::new();
    for e in syncs {
        let like = |f: &SyncEvent| f.cause == e.cause && f.nodes == e.nodes && Spot::from(f.at) == Spot::from(e.at);
        let found = match groups.iter().position(|g| like(g.0)) {
            Some(i) => i,
            None if groups.len() == MOST_RUNS => continue,
            None => {
                groups.push((e, [0; 3], [Duration::ZERO; 4]));
                groups.len() - 1
            }
        };
        let (_, origins, times) = &mut groups[found];
        origins[e.origin as usize] += 1;
        times.iter_mut().zip([e.trace, e.lower, e.compile, e.execute]).for_each(|(sum, t)| *sum += t);
    }
    let one = |(e, [compiled, memory, disk], times): &(&SyncEvent, [u64; 3], [Duration; 4])| {
        let [trace, lower, compile, execute] = times.map(millis);
        json!({
            "cause": e.cause.name(),
            "site": place(e.at),
            "at": location(e.at),
            "nodes": e.nodes,
            "compiled": compiled,
            "memory_hits": memory,
            "disk_hits": disk,
            "trace_ms": trace,
            "lower_ms": lower,
            "compile_ms": compile,
            "execute_ms": execute,
        })
    };
    groups.iter().map(one).collect()
}

/// A live tensor that has no value yet.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Its variable, where the session knows one.
    pub name: Option<String>,
    /// Such as `f32[2,3]`.
    pub ty: String,
    pub at: Place,
    /// Where that was called from, if it is in a function or another cell.
    pub called_from: Option<Place>,
    pub op: &'static str,
    /// The device that will compute it, such as `cpu:0`.
    pub device: &'static str,
    /// How many ops a sync would run for it, its own included: none where it takes what a read has computed; `None` where counting
    /// would take long.
    pub nodes: Option<usize>,
    /// Bytes that its value will take on the device; 0 where a read has put it there already.
    pub bytes: usize,
}

/// What a sync would do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextSync {
    /// Ops that it would run.
    pub nodes: usize,
    /// Bytes of its results, but for those that a read has put on the device already.
    pub results: usize,
    /// Bytes of values that nothing else holds: results take their place.
    pub donated: usize,
    /// One for each device that something is pending on; none where reads have computed all that is.
    pub programs: usize,
    /// Where its program would come from; where they are several, the slowest way.
    pub origin: Origin,
}

impl NextSync {
    /// Bytes by which memory in use would change: results, less the buffers they reuse.
    pub fn memory(&self) -> i64 {
        self.results as i64 - self.donated as i64
    }
}

/// Nodes that are visited to count what pending tensors need.
const COUNTED: usize = 1 << 20;

/// The live tensors that have no value yet, oldest first, and what a sync would do; `None` when there is nothing to do, or
/// a sync is at work at the moment.
pub fn pending() -> (Vec<Pending>, Option<NextSync>) {
    let next = would();
    let names = xlazy_core::host::variables();
    let (mut list, statements): (Vec<Pending>, Vec<Option<Place>>) = {
        let mut g = graph();
        let mut visited = 0;
        // Where a sync is at work, nobody knows what the next one starts from.
        let scope = next.as_ref().map_or(Scope::Read, |next| next.scope);
        let all = g.barrier_roots().into_iter();
        all.map(|id| {
            let is_read = next.as_ref().is_some_and(|next| next.read.contains(&id));
            let run = |g: &mut Graph| if is_read { 0 } else { g.run_for(&[id], scope).len() };
            let nodes = (visited < COUNTED).then(|| run(&mut g));
            visited += nodes.unwrap_or(0);
            let n = g.node(id);
            let cached = matches!(n.payload, Payload::Cached(_));
            let pending = Pending {
                name: names.iter().find(|(_, i)| *i == id).map(|(n, _)| n.clone()),
                ty: n.ty.to_string(),
                at: n.at,
                called_from: None,
                op: n.op.name,
                device: name_of(n.placement.home()),
                nodes,
                bytes: if cached { 0 } else { n.ty.bytes() },
            };
            (pending, n.statement)
        })
        .unzip()
    };
    list.iter_mut().zip(statements).for_each(|(p, statement)| p.called_from = called_from(p.at, statement));
    let results = list.iter().map(|p| p.bytes).sum();
    let next = next.map(|next| {
        let Forecast { nodes, donated, programs, origin, .. } = next;
        NextSync { nodes, results, donated, programs, origin }
    });
    (list, next)
}

/// So many lines a person looks through.
const MOST_LINES: usize = 60;

/// [`pending`] as text and HTML.
pub fn pending_bundle() -> Bundle {
    let (list, next) = pending();
    let head = match (list.len(), next) {
        (0, _) => "nothing is pending".to_owned(),
        (n, None) => format!("{}; a sync is at work", count(n, "pending tensor")),
        (n, Some(next)) if next.programs == 0 => {
            let trained = {
                let g = graph();
                let roots = g.barrier_roots();
                roots.iter().any(|&id| g.node(id).on_tape())
            };
            let again = if trained { "; `backward()` would run it again, with its gradients" } else { "" };
            format!("{}; a sync would run nothing: reads have computed all of it{again}", count(n, "pending tensor"))
        }
        (n, Some(next)) => {
            let bytes = units::bytes(next.memory().unsigned_abs());
            format!(
                "{}; a sync would run {}, {} and {}",
                count(n, "pending tensor"),
                count(next.nodes, "op"),
                match next.memory() {
                    0 => "leave device memory as it is".to_owned(),
                    m if m > 0 => format!("add {bytes} of device memory"),
                    _ => format!("free {bytes} of device memory"),
                },
                match (next.origin, next.programs) {
                    (Origin::Memory, 1) => "find its program in the cache".to_owned(),
                    (Origin::Disk, 1) => "find its program on the disk".to_owned(),
                    (Origin::Compiled, 1) => "compile a new program".to_owned(),
                    (Origin::Memory, n) => format!("find its programs for {n} devices in the cache"),
                    (Origin::Disk, n) => format!("find its programs for {n} devices on the disk"),
                    (Origin::Compiled, n) => format!("need programs for {n} devices, not all of which there are"),
                }
            )
        }
    };
    let mut text = format!("{head}\n");
    let mut table = Table::new("font-family:monospace");
    if !list.is_empty() {
        text.push_str("  tensor       type             made by        ops  at\n");
        table.head(["tensor", "type", "made by", "ops", "at"]);
    }
    let first = name_of(0);
    // What a loop leaves without a name is one line.
    let alike = |a: &Pending, b: &Pending| {
        let of = |p: &Pending| (p.at, p.called_from, p.op, p.device);
        a.name.is_none() && b.name.is_none() && of(a) == of(b) && a.ty == b.ty
    };
    let lines: Vec<&[Pending]> = list.chunk_by(alike).collect();
    // What has a name, and the last, which the next sync is most likely about.
    let last = lines.len().saturating_sub(MOST_LINES);
    let (earlier, shown): (Vec<_>, Vec<_>) =
        lines.into_iter().enumerate().partition(|(n, all)| *n < last && all[0].name.is_none());
    for (_, all) in shown {
        let (p, last) = (&all[0], &all[all.len() - 1]);
        let name = match all.len() {
            1 => p.name.clone().unwrap_or("–".to_owned()),
            n => format!("× {n}"),
        };
        let at = with_caller(p.at, p.called_from);
        let nodes = match (p.nodes, last.nodes) {
            (Some(first), Some(last)) if first != last => format!("{first}–{last}"),
            (nodes, _) => nodes.map_or("–".to_owned(), |n| n.to_string()),
        };
        let ty = if p.device == first { p.ty.clone() } else { format!("{} {}", p.ty, p.device) };
        let _ = writeln!(text, "  {name:<12} {ty:<16} {:<14} {nodes:>3}  {at}", p.op);
        table.row([&name, &ty, p.op, &nodes, &at]);
    }
    let table = if list.is_empty() { String::new() } else { table.html() };
    let earlier = match earlier.len() {
        0 => String::new(),
        n => format!("… and {} without a name: `%pending --json` lists all", count(n, "earlier line")),
    };
    if !earlier.is_empty() {
        let _ = writeln!(text, "{earlier}");
    }
    Bundle::html(format!("<div>{}{table}{earlier}</div>", escape_html(&head)), text).passing()
}

/// [`pending`] as JSON.
pub fn pending_json() -> String {
    let (list, next) = pending();
    let one = |p: &Pending| {
        json!({
            "name": p.name,
            "type": p.ty,
            "op": p.op,
            "device": p.device,
            "site": place(p.at),
            "called_from": p.called_from.map(place),
            "nodes": p.nodes,
            "bytes": p.bytes,
        })
    };
    let next = next.map(|n| {
        json!({
            "nodes": n.nodes,
            "results_bytes": n.results,
            "donated_bytes": n.donated,
            "programs": n.programs,
            "memory_bytes": n.memory(),
            "origin": n.origin.name(),
        })
    });
    json!({ "pending": list.iter().map(one).collect::<Value>(), "next": next }).to_string()
}
