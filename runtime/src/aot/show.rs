//! Reports for people: text, and HTML with bars.
use super::report::{Held, Moved, Report, Row, Source};
use crate::Result;
use crate::json::{Value, json};
use std::fmt::Write;
use std::time::Duration;
use xlazy_mime::{Bundle, Cell, Rich, Table, count, escape_html, units};

/// Rows that are shown; `--json` has them all.
const SHOWN: usize = 12;
const LARGEST_SHOWN: usize = 5;

impl Rich for Report {
    fn rich(&self) -> Bundle {
        Bundle::html(html(self), text(self, true)).lasting(text(self, false))
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&text(self, false))
    }
}

/// One program on several chips.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Each topology with its report, or why there is none.
    pub rows: Vec<(String, Result<Report>)>,
}

impl Comparison {
    /// The report for a topology, as it was written.
    ///
    /// ```no_run
    /// # let table = xlazy::aot::compare(&xlazy::Tensor::ones([8]), &["v5e"]);
    /// assert!(table.of("v5e").is_some_and(|r| r.fits()));
    /// ```
    pub fn of(&self, topology: &str) -> Option<&Report> {
        self.rows.iter().find(|(t, _)| t == topology)?.1.as_ref().ok()
    }

    /// The table as a JSON list: the reports, or errors as `{"topology", "error"}`.
    pub fn json(&self) -> String {
        let one = |(topology, report): &(String, Result<Report>)| match report {
            Ok(report) => report.value(),
            Err(e) => json!({ "topology": topology, "error": e.to_string() }),
        };
        self.rows.iter().map(one).collect::<Value>().to_string()
    }

    /// The cells of the table below its head.
    fn cells(&self) -> Vec<[String; 6]> {
        let row = |(topology, report): &(String, Result<Report>)| match report {
            Ok(r) => [
                topology.clone(),
                if r.fits() { "fits" } else { "does not fit" }.into(),
                if r.fit.peak > 0 { units::memory(r.fit.peak) } else { "–".into() },
                units::memory(r.fit.limit),
                if r.fits() { units::measured(time_of(r.seconds())) } else { "–".into() },
                limited_by(r),
            ],
            Err(e) => [topology.clone(), "–".into(), "–".into(), "–".into(), "–".into(), e.to_string()],
        };
        self.rows.iter().map(row).collect()
    }
}

const HEAD: [&str; 6] = ["chip", "memory", "peak", "of", "estimated time", "limited by"];

impl Rich for Comparison {
    fn rich(&self) -> Bundle {
        let cells = self.cells();
        let rows = std::iter::once(HEAD.map(str::to_owned)).chain(cells.iter().cloned()).collect::<Vec<_>>();
        let mut plain = columns(&rows);
        let _ = write!(plain, "{}", notes(self.rows.iter().filter_map(|(_, r)| r.as_ref().ok())));
        let left = |text: &str| Cell::text(text).left();
        let mut table = Table::new("font-size:.95em");
        table.head(HEAD.map(left));
        cells.iter().for_each(|row| table.row(row.iter().map(|c| left(c))));
        let notes = notes(self.rows.iter().filter_map(|(_, r)| r.as_ref().ok()));
        let html = format!("<div>{}{}</div>", table.html(), small(&notes));
        Bundle::html(html, plain)
    }
}

impl std::fmt::Display for Comparison {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.rich().plain())
    }
}

/// What the figures are.
fn notes<'a>(reports: impl Iterator<Item = &'a Report>) -> String {
    let clocks: Vec<String> = reports.filter(|r| r.time.clock > 0.0).map(clock).collect();
    format!(
        "Times are the compiler's estimates for one device, not measurements; clocks assumed: {}. “Limited by” compares \
         what the program computes and moves with the chip's peak rates.",
        clocks.join(", ")
    )
}

fn clock(r: &Report) -> String {
    format!("{} {:.2} GHz", r.topology.split(':').next().unwrap_or_default(), r.time.clock / 1e9)
}

fn limited_by(r: &Report) -> String {
    match r.time.bound.as_str() {
        _ if !r.fits() => "memory size".into(),
        "compute" => "the matrix units".into(),
        "memory" => "HBM bandwidth".into(),
        _ => "–".into(),
    }
}

/// `TPU v5 lite (v5e:1x1) …`
fn head(r: &Report, took: bool) -> String {
    let devices = count(r.devices as usize, "device");
    let devices = if r.slices > 1 { format!("{} slices, {devices}", r.slices) } else { devices };
    let split = match r.partitions {
        0 | 1 => String::new(),
        n if n == r.devices => format!(", {n} partitions"),
        n => format!(", of which the program takes {n} (`with AXIS=N` behind it gives its mesh other sizes)"),
    };
    let took = match took {
        true if r.cached => " · from the cache".to_owned(),
        true => format!(" · compiled in {}", units::time(time_of(r.compile_seconds))),
        false => String::new(),
    };
    format!("{} ({}, {devices}{split}) · O{} · {}{took}; nothing ran", r.device, r.topology, r.level, r.compiler)
}

/// The sentence on memory.
fn fit_line(r: &Report) -> String {
    let f = &r.fit;
    let of = if f.limit > 0 { format!(" of {}", units::memory(f.limit)) } else { String::new() };
    match (f.fits, f.peak) {
        (true, _) => {
            let share = if f.limit > 0 { format!(" ({:.1} %)", percent(f.peak, f.limit)) } else { String::new() };
            format!("fits: peak memory {}{of}{share}", units::memory(f.peak))
        }
        (false, 0) => format!("does not fit into the{of} of HBM").replace("the of", "the"),
        (false, needed) => {
            format!("does not fit: needs {}, and a device has {}", units::memory(needed), units::memory(f.limit))
        }
    }
}

/// The sentence on time.
fn time_line(r: &Report) -> String {
    let at = match r.time.clock {
        0.0 => "; the chip's clock is not known".to_owned(),
        c => format!(" at an assumed {:.2} GHz: {}", c / 1e9, units::measured(time_of(r.seconds()))),
    };
    let bound = match r.time.bound.as_str() {
        "" => String::new(),
        _ => format!("; limited by {}", limited_by(r)),
    };
    let least = match r.least_seconds() {
        s if s > r.seconds() && !r.time.without.is_empty() => {
            let s = units::measured(time_of(s));
            format!("; no less than {s} at the chip's peak rates, by all that is computed and goes through memory")
        }
        _ => String::new(),
    };
    format!("{} cycles{at} (compiler estimate, not a measurement){bound}{least}", units::thousands(r.time.cycles))
}

/// `took`: with how long the compiler took, which is another time whenever it runs.
fn text(r: &Report, took: bool) -> String {
    let f = &r.fit;
    let mut out = format!("{}\n\nFit   {}\n", head(r, took), fit_line(r));
    for (name, bytes) in parts(r) {
        let _ = writeln!(out, "  {name:<12}{:>12}", units::memory(bytes));
    }
    if !f.words.is_empty() {
        let _ = writeln!(out, "  the compiler says: {}", f.words.trim());
    }
    if !f.largest.is_empty() {
        out.push_str("  largest values\n");
        let rows: Vec<[String; 4]> = f.largest.iter().take(LARGEST_SHOWN).map(largest_row).collect();
        for l in columns(&rows).lines() {
            let _ = writeln!(out, "    {l}");
        }
    }
    if !f.fits {
        return out;
    }
    let _ = writeln!(out, "\nTime  {}", time_line(r));
    let mut rows = vec![["cycles", "share", "times", "instruction", "result", "from"].map(str::to_owned)];
    rows.extend(r.time.rows.iter().take(SHOWN).map(|row| time_row(r, row)));
    if rows.len() > 1 {
        for l in columns(&rows).lines() {
            let _ = writeln!(out, "  {l}");
        }
    }
    for l in rest(r) {
        let _ = writeln!(out, "  {l}");
    }
    let _ = writeln!(out, "\nCost  {}", super::prices::line(r));
    if r.partitions > 1 {
        let _ = writeln!(out, "\nBetween devices  {}", moved_line(r));
        let mut rows = vec![MOVED.map(str::to_owned)];
        rows.extend(r.collectives.iter().take(SHOWN).map(moved_row));
        if rows.len() > 1 {
            for l in columns(&rows).lines() {
                let _ = writeln!(out, "  {l}");
            }
        }
    }
    out
}

const MOVED: [&str; 6] = ["collective", "gives", "groups", "bytes", "estimate", "from"];

/// The sentence on collectives.
fn moved_line(r: &Report) -> String {
    if r.collectives.is_empty() {
        return "nothing: each computes its part by itself".into();
    }
    let bytes: u64 = r.collectives.iter().map(|m| m.bytes).sum();
    let all = format!("{}, {} for each device", count(r.collectives.len(), "collective"), units::memory(bytes));
    match r.collectives.iter().map(|m| m.seconds).sum::<f64>() {
        0.0 => format!("{all}; no link rate of this chip is published"),
        s => {
            let time = units::measured(time_of(s));
            format!(
                "{all}: {time} at published link rates (our estimate: the compiler has none, and it is not in the time above)"
            )
        }
    }
}

fn moved_row(m: &Moved) -> [String; 6] {
    let kind = match (m.between_slices, m.is_async) {
        (true, _) => format!("{} between slices", m.kind),
        (_, true) => format!("{} (async)", m.kind),
        _ => m.kind.clone(),
    };
    let kind = if m.algorithm.is_empty() { kind } else { format!("{kind} by {}", short(&m.algorithm)) };
    let time = if m.seconds > 0.0 { units::measured(time_of(m.seconds)) } else { "–".into() };
    [kind, short(&m.shape), short(&m.groups), units::memory(m.bytes), time, sources(&m.sources)]
}

/// Sentences on what the table leaves out.
fn rest(r: &Report) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(more) = r.time.rows.len().checked_sub(SHOWN + 1) {
        let cycles: u64 = r.time.rows[SHOWN..].iter().map(Row::total).sum();
        out.push(format!("{} more with {} cycles together", more + 1, units::thousands(cycles)));
    }
    if r.time.rows.iter().any(|row| row.times.is_none()) {
        out.push("×? stands in a loop whose trip count is not known: it is counted once".into());
    }
    if !r.time.without.is_empty() {
        let mut kinds: Vec<(&str, usize, Vec<String>)> = Vec::new();
        for row in &r.time.without {
            let place = row.sources.iter().map(|s| s.at.clone()).find(|at| !at.is_empty());
            match kinds.iter_mut().find(|k| k.0 == row.opcode) {
                Some(k) => {
                    k.1 += 1;
                    k.2.extend(place.filter(|p| !k.2.contains(p)));
                }
                None => kinds.push((&row.opcode, 1, place.into_iter().collect())),
            }
        }
        let kind = |(name, count, places): &(&str, usize, Vec<String>)| {
            let places = places.iter().take(3).cloned().collect::<Vec<_>>().join("; ");
            if places.is_empty() { format!("{name} ×{count}") } else { format!("{name} ×{count} ({places})") }
        };
        let list = kinds.iter().map(kind).collect::<Vec<_>>().join(", ");
        out.push(format!("without an estimate, and so not in the sum: {list}"));
    }
    out
}

/// The categories of memory.
fn parts(r: &Report) -> Vec<(&'static str, u64)> {
    let f = &r.fit;
    let mut out = vec![("arguments", f.arguments), ("outputs", f.outputs)];
    if f.aliased > 0 {
        out.push(("  in place", f.aliased));
    }
    if f.fits {
        out.extend([("temporaries", f.temporaries), ("code", f.code)]);
    }
    out
}

fn largest_row(h: &Held) -> [String; 4] {
    [units::memory(h.bytes), short(&h.shape), h.name.clone(), sources(&h.sources)]
}

fn time_row(r: &Report, row: &Row) -> [String; 6] {
    let times = row.times.map_or("×?".to_owned(), |n| if n == 1 { "".into() } else { format!("×{n}") });
    let share = format!("{:.1} %", percent(row.total(), r.time.cycles));
    [units::thousands(row.total()), share, times, row.name.clone(), short(&row.shape), sources(&row.sources)]
}

/// The shape of a fusion with many results would take the whole width.
fn short(shape: &str) -> String {
    const LONGEST: usize = 64;
    match shape.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &shape[..cut]),
        None => shape.to_owned(),
    }
}

/// `matmul, tanh (cell 7, line 3)`: ops that share a line stand together.
fn sources(all: &[Source]) -> String {
    const MOST: usize = 4;
    let mut places: Vec<(&str, Vec<&str>)> = Vec::new();
    for s in all {
        match places.iter_mut().find(|p| p.0 == s.at) {
            Some(p) if !p.1.contains(&s.op.as_str()) => p.1.push(&s.op),
            Some(_) => {}
            None => places.push((&s.at, vec![&s.op])),
        }
    }
    let one = |(at, ops): &(&str, Vec<&str>)| {
        let more = if ops.len() > MOST { ", …" } else { "" };
        let ops = ops.iter().take(MOST).copied().filter(|o| !o.is_empty()).collect::<Vec<_>>().join(", ") + more;
        match (ops.as_str(), *at) {
            (ops, "") => ops.to_owned(),
            ("", at) => at.to_owned(),
            (ops, at) => format!("{ops} ({at})"),
        }
    };
    let mut out = places.iter().take(MOST).map(one).collect::<Vec<_>>().join(" · ");
    if places.len() > MOST {
        let _ = write!(out, " · {} more lines", places.len() - MOST);
    }
    out
}

fn html(r: &Report) -> String {
    let f = &r.fit;
    let mut out = format!("<div>{}", small(&head(r, true)));
    let _ = write!(out, "<div style=\"margin-top:6px\"><b>Fit</b> {}</div>", escape_html(&fit_line(r)));
    out.push_str(&bar(r));
    if !f.words.is_empty() {
        let _ = write!(
            out,
            "<pre style=\"white-space:pre-wrap;color:inherit;background:none\">{}</pre>",
            escape_html(f.words.trim())
        );
    }
    if !f.largest.is_empty() {
        let rows = f.largest.iter().take(LARGEST_SHOWN).map(|h| (largest_row(h).to_vec(), None));
        let _ = write!(
            out,
            "<details{}><summary>largest values</summary>{}</details>",
            if f.fits { "" } else { " open" },
            table(&["bytes", "shape", "value", "from"], rows)
        );
    }
    if f.fits {
        let _ = write!(out, "<div style=\"margin-top:6px\"><b>Time</b> {}</div>", escape_html(&time_line(r)));
        let rows = r.time.rows.iter().take(SHOWN).map(|row| {
            let cells = time_row(r, row).to_vec();
            (cells, Some(percent(row.total(), r.time.cycles)))
        });
        if !r.time.rows.is_empty() {
            out.push_str(&table(&["cycles", "share", "times", "instruction", "result", "from"], rows));
        }
        rest(r).iter().for_each(|l| out.push_str(&small(l)));
    }
    if f.fits {
        let cost = escape_html(&super::prices::line(r));
        let _ = write!(out, "<div style=\"margin-top:6px\"><b>Cost</b> {cost}</div>");
    }
    if f.fits && r.partitions > 1 {
        let line = escape_html(&moved_line(r));
        let _ = write!(out, "<div style=\"margin-top:6px\"><b>Between devices</b> {line}</div>");
        if !r.collectives.is_empty() {
            out.push_str(&table(&MOVED, r.collectives.iter().take(SHOWN).map(|m| (moved_row(m).to_vec(), None))));
        }
    }
    out.push_str("</div>");
    out
}

/// What takes the memory, as parts of one bar.
fn bar(r: &Report) -> String {
    let colours = ["#4c78a8", "#f58518", "#888888", "#54a24b", "#b279a2"];
    let parts = parts(r);
    let whole = r.fit.limit.max(parts.iter().map(|p| p.1).sum()).max(1);
    let mut bar = String::new();
    let mut legend = String::new();
    for ((name, bytes), colour) in parts.iter().zip(colours) {
        // Memory of outputs that take over an argument's is the argument's.
        if name.trim() != "in place" {
            let width = percent(*bytes, whole);
            let _ = write!(bar, "<div style=\"width:{width:.2}%;background:{colour}\"></div>");
        }
        let _ = write!(
            legend,
            "<span style=\"margin-right:12px\"><span style=\"color:{colour}\">■</span> {} {}</span>",
            name.trim(),
            units::memory(*bytes)
        );
    }
    format!(
        "<div style=\"display:flex;height:10px;max-width:560px;border:1px solid #8888;margin:3px 0\">{bar}</div>\
         <div style=\"font-size:.9em\">{legend}</div>"
    )
}

fn table(head: &[&str], rows: impl Iterator<Item = (Vec<String>, Option<f64>)>) -> String {
    let mut table = Table::new("font-size:.9em");
    table.head(head.iter().map(|h| Cell::text(h).left()));
    for (cells, share) in rows {
        let cell = |(n, text): (usize, &String)| {
            let shade = match share {
                Some(p) if n == 1 => format!("background:linear-gradient(90deg,#4c78a855 {p:.1}%,transparent 0)"),
                _ => String::new(),
            };
            Cell::text(text).left().style("font-family:monospace").style(&shade)
        };
        table.row(cells.iter().enumerate().map(cell));
    }
    table.html()
}

fn small(text: &str) -> String {
    format!("<div style=\"opacity:.75;font-size:.9em\">{}</div>", escape_html(text))
}

/// Columns of even width, each row on a line; the last column is not padded.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |n: usize| rows.iter().map(|r| r[n].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut out = String::new();
    for row in rows {
        let line: String = row.iter().zip(widths).map(|(c, w)| format!("{c:<w$}  ")).collect();
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// What a report says is a number of seconds; one from the disk may say anything.
fn time_of(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
