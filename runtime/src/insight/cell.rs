//! What one cell did: compilations, syncs, transfers, times; its budget of compilations; what it left pending.
use super::Compilation;
use super::log::{events_since, last_event};
use super::metrics::{self, Metric};
use super::record::{compilations_since, compiled_so_far};
use crate::Error;
use crate::display::json;
use crate::display::place::location;
use crate::ir::{Payload, graph};
use std::fmt::Write;
use std::sync::Mutex;
use std::time::Instant;
use xlazy_mime::{Bundle, escape_html};

struct Running {
    start: Instant,
    compilations: usize,
    syncs: u64,
    created: u64,
    totals: Vec<(u64, f64)>,
}

struct State {
    running: Option<Running>,
    budget: Option<u64>,
}

static STATE: Mutex<State> = Mutex::new(State { running: None, budget: None });

fn state() -> std::sync::MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(|p| p.into_inner())
}

static TIMES: &[&Metric] = &[
    &metrics::LOWER_TIME,
    &metrics::COMPILE_TIME,
    &metrics::EXECUTE_TIME,
    &metrics::TRANSFER_TO_DEVICE_TIME,
    &metrics::TRANSFER_FROM_DEVICE_TIME,
    &metrics::OUTBOUND_DATA,
    &metrics::INBOUND_DATA,
];

/// A cell begins.
pub(crate) fn begin() {
    crate::session::begin_cell();
    let running = Running {
        start: Instant::now(),
        compilations: compiled_so_far(),
        syncs: last_event(),
        created: graph().created,
        totals: TIMES.iter().map(|m| (m.count(), m.total())).collect(),
    };
    state().running = Some(running);
}

/// A cell ended: what it did as JSON, or nothing if it did nothing with tensors.
pub(crate) fn end() -> Option<String> {
    let r = state().running.take()?;
    let wall = r.start.elapsed();
    let after: Vec<(u64, f64)> = TIMES.iter().map(|m| (m.count(), m.total())).collect();
    let traced = graph().created.saturating_sub(r.created);
    let total = |i: usize| (after[i].1 - r.totals[i].1).max(0.0);
    let count = |i: usize| after[i].0.saturating_sub(r.totals[i].0);
    let syncs = events_since(r.syncs);
    if syncs.is_empty() && traced == 0 && count(5) == 0 && count(6) == 0 {
        return None;
    }
    let compiled = compilations_since(r.compilations);
    let ms = |ns: f64| ns / 1e6;
    let reports = json::list(compiled.iter().map(Compilation::json));
    Some(format!(
        "{{\"wall_ms\":{:.3},\"tensors\":{traced},\"syncs\":{},\"compiled\":{},\"hits\":{},\"lower_ms\":{:.3},\"compile_ms\":{:.3},\
         \"execute_ms\":{:.3},\"to_device_ms\":{:.3},\"from_device_ms\":{:.3},\"to_device_bytes\":{},\"from_device_bytes\":{},\
         \"compilations\":{reports}}}",
        wall.as_secs_f64() * 1e3,
        syncs.len(),
        compiled.len(),
        syncs.iter().filter(|e| !e.compiled).count(),
        ms(total(0)),
        ms(total(1)),
        ms(total(2)),
        ms(total(3)),
        ms(total(4)),
        total(5) as u64,
        total(6) as u64
    ))
}

/// Lets a cell compile at most `compiles` programs; the next compilation ends the cell, with the explanation, and leaves
/// all that is pending in place. `None` lifts the limit.
pub fn set_budget(compiles: Option<u64>) {
    state().budget = compiles;
}

/// The limit that [`set_budget`] set.
pub fn budget() -> Option<u64> {
    state().budget
}

/// Refuses a compilation that the budget does not allow; `why` is what is known of it.
pub(crate) fn within_budget(why: Option<&super::Explanation>) -> crate::Result<()> {
    let s = state();
    let (Some(budget), Some(running)) = (s.budget, s.running.as_ref()) else { return Ok(()) };
    let before = running.compilations;
    drop(s);
    let used = (compiled_so_far() - before) as u64;
    if used < budget {
        return Ok(());
    }
    let reason = why.map_or("it is the first program of its kind".to_owned(), |w| w.sentence());
    let message = format!(
        "this cell has used its budget of {budget} compilation{}: the next one was not started. {reason} Everything pending is \
         still there; `%budget off` lifts the limit, then run the sync again",
        if budget == 1 { "" } else { "s" }
    );
    Err(Error::Usage { message })
}

/// A live tensor that has no value yet.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Its variable, where the session knows one.
    pub name: Option<String>,
    /// Such as `f32[2,3]`.
    pub ty: String,
    pub at: super::Place,
    pub op: &'static str,
    /// Bytes that its value will take on the device.
    pub bytes: usize,
}

/// The live tensors that have no value yet, oldest first; how many ops a sync would run, and whether its program is cached.
pub fn pending() -> (Vec<Pending>, usize, bool) {
    let names = crate::cell::tensors();
    let list = {
        let g = graph();
        let all = g.barrier_roots().into_iter();
        all.map(|id| {
            let n = g.node(id);
            let cached = matches!(n.payload, Payload::Cached(_));
            Pending {
                name: names.iter().find(|(_, i)| *i == id).map(|(n, _)| n.clone()),
                ty: n.ty.to_string(),
                at: n.at,
                op: n.op.name,
                bytes: if cached { 0 } else { n.ty.bytes() },
            }
        })
        .collect()
    };
    let (nodes, hit) = crate::session::would();
    (list, nodes, hit)
}

/// [`pending`] as text and HTML.
pub fn pending_bundle() -> Bundle {
    let (list, nodes, hit) = pending();
    let total: usize = list.iter().map(|p| p.bytes).sum();
    let head = match list.len() {
        0 => "nothing is pending".to_owned(),
        n => format!(
            "{n} pending tensor{}; a sync would run {nodes} op{}, add {} of device memory and {}",
            if n == 1 { "" } else { "s" },
            if nodes == 1 { "" } else { "s" },
            metrics::bytes(total as f64),
            if hit { "find its program in the cache" } else { "compile a new program" }
        ),
    };
    let mut text = format!("{head}\n");
    let mut html = format!("<div>{head}<table style=\"font-family:monospace\">");
    for p in &list {
        let name = p.name.as_deref().unwrap_or("–");
        let _ = writeln!(text, "  {name:<12} {:<16} {:<14} {}", p.ty, p.op, location(p.at));
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape_html(name),
            escape_html(&p.ty),
            escape_html(p.op),
            escape_html(&location(p.at))
        );
    }
    html.push_str("</table></div>");
    Bundle::html(html, text)
}

/// [`pending`] as JSON.
pub fn pending_json() -> String {
    let (list, nodes, hit) = pending();
    let one = |p: &Pending| {
        format!(
            "{{\"name\":{},\"type\":\"{}\",\"op\":\"{}\",\"file\":{},\"line\":{},\"bytes\":{}}}",
            p.name.as_ref().map_or("null".to_owned(), |n| json::string(n)),
            p.ty,
            p.op,
            json::string(p.at.file()),
            p.at.line(),
            p.bytes
        )
    };
    format!("{{\"pending\":{},\"ops\":{nodes},\"cached\":{hit}}}", json::list(list.iter().map(one)))
}
