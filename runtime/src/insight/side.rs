//! Cells that ran lazily and op by op, side by side: launches, compilations, times.
use crate::json::{Value, json, millis};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use xlazy_core::run::{SyncEvent, is_eager};
use xlazy_core::text::kept;
use xlazy_mime::{Bundle, Table, columns, escape_html, units};

/// What a cell did in one of the two ways, the last time that it ran so.
#[derive(Clone, Default)]
struct Did {
    cell: u64,
    launches: usize,
    ops: usize,
    compiled: usize,
    compile: Duration,
    wall: Duration,
}

/// A cell, by its text without magics, with what it did lazily and op by op.
struct Both {
    text: String,
    did: [Option<Did>; 2],
}

/// Cells that are remembered.
const KEPT: usize = 256;

static CELLS: Mutex<VecDeque<Both>> = Mutex::new(VecDeque::new());

fn cells() -> MutexGuard<'static, VecDeque<Both>> {
    CELLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cell, or a part of one between magics, has come to its end.
pub(super) fn note(cell: u64, runs: &[SyncEvent], compiled: usize, compile: Duration, wall: Duration) {
    let Some(text) = kept(cell) else { return };
    let code = |l: &&str| !l.trim_start().starts_with(['%', '!']) && !l.trim().is_empty();
    let text = text.lines().filter(code).collect::<Vec<_>>().join("\n");
    let mut all = cells();
    let at = all.iter().position(|b| b.text == text).unwrap_or_else(|| {
        if all.len() == KEPT {
            all.pop_front();
        }
        all.push_back(Both { text, did: [None, None] });
        all.len() - 1
    });
    let slot = &mut all[at].did[usize::from(is_eager())];
    let did = match slot {
        Some(did) if did.cell == cell => did,
        slot => slot.insert(Did { cell, ..Did::default() }),
    };
    did.launches += runs.len();
    did.ops += runs.iter().map(|e| e.nodes).sum::<usize>();
    did.compiled += compiled;
    did.compile += compile;
    did.wall += wall;
}

/// The cells that ran in both ways, as text and HTML, or as data.
pub(crate) fn side_by_side(as_json: bool) -> Bundle {
    let mode = if is_eager() { "each op runs as it is recorded" } else { "ops are recorded, and run together" };
    let all = cells();
    let both: Vec<(&str, [&Did; 2])> = all
        .iter()
        .filter_map(|b| Some((b.text.lines().next().unwrap_or_default(), [b.did[0].as_ref()?, b.did[1].as_ref()?])))
        .collect();
    if as_json {
        let one = |d: &Did| {
            json!({
                "cell": d.cell,
                "launches": d.launches,
                "ops": d.ops,
                "compiled": d.compiled,
                "compile_ms": millis(d.compile),
                "rest_ms": millis(d.wall.saturating_sub(d.compile)),
            })
        };
        let pair =
            |(line, [lazy, eager]): &(&str, [&Did; 2])| json!({ "line": line, "lazy": one(lazy), "eager": one(eager) });
        return crate::json::bundle(json!({ "eager": is_eager(), "cells": both.iter().map(pair).collect::<Value>() }));
    }
    if both.is_empty() {
        return Bundle::text(format!("{mode}; no cell has run in both ways yet")).passing();
    }
    let heads = ["cell", "", "launches", "ops", "compiled", "compile", "rest"];
    let row = |name: &str, way: &str, d: &Did| {
        let rest = d.wall.saturating_sub(d.compile);
        let compile = if d.compiled > 0 { units::measured(d.compile) } else { "–".into() };
        let numbers = [d.launches, d.ops, d.compiled].map(|n| n.to_string());
        let [launches, ops, compiled] = numbers;
        [name.to_owned(), way.to_owned(), launches, ops, compiled, compile, units::measured(rest)]
    };
    let rows: Vec<[String; 7]> = both
        .iter()
        .flat_map(|(line, [lazy, eager])| [row(&shortened(line), "lazily", lazy), row("", "op by op", eager)])
        .collect();
    let mut html = Table::new("font-family:monospace");
    html.head(heads);
    rows.iter().for_each(|r| html.row(r.iter().map(String::as_str)));
    let texts = std::iter::once(heads.map(str::to_owned).to_vec()).chain(rows.iter().map(|r| r.to_vec()));
    let plain = columns(&texts.collect::<Vec<_>>(), &[2, 3, 4, 5, 6]);
    Bundle::html(format!("<div>{}{}</div>", escape_html(mode), html.html()), format!("{mode}\n{plain}")).passing()
}

fn shortened(line: &str) -> String {
    const MOST: usize = 40;
    match line.chars().count() {
        n if n > MOST => line.chars().take(MOST - 1).chain(['…']).collect(),
        _ => line.to_owned(),
    }
}
