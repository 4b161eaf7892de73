//! The metrics as torch_xla reports them.
use crate::json::{Map, json};
use std::fmt::Write;
use xlazy_core::ir::graph;
pub use xlazy_core::metrics::{
    AOT_COMPILE_TIME, CACHED_COMPILE, COMPILE_TIME, CREATE_COMPILE_HANDLES, CREATE_DATA_HANDLES, Counter,
    DESTROY_COMPILE_HANDLES, DESTROY_DATA_HANDLES, EXECUTE_TIME, HELD_DATA, INBOUND_DATA, LOADER_BATCH_TIME,
    LOADER_WAIT_TIME, LOWER_TIME, MARK_STEP, Metric, OUTBOUND_DATA, PERSISTENT_CACHE_HIT, SYNC_TENSORS,
    TRANSFER_FROM_DEVICE_TIME, TRANSFER_TO_DEVICE_TIME, UNCACHED_COMPILE, WAIT_TIME,
};
use xlazy_core::metrics::{COUNTERS, CREATE_TENSOR, DESTROY_TENSOR, METRICS, Samples, Unit};

// Tensors are counted in the graph, under the lock it holds anyway.
fn refresh() {
    let g = graph();
    CREATE_TENSOR.set(g.created);
    DESTROY_TENSOR.set(g.destroyed);
}

/// The value of a counter by its torch_xla name (`torch_xla.debug.metrics.counter_value`); `None` when there is none.
pub fn counter_value(name: &str) -> Option<u64> {
    refresh();
    COUNTERS.iter().find(|c| c.name == name).map(|c| c.value())
}

/// `(samples, total)` of a metric by its torch_xla name (`metric_data`): nanoseconds or bytes.
pub fn metric_data(name: &str) -> Option<(u64, f64)> {
    METRICS.iter().find(|m| m.name == name).map(|m| (m.count(), m.total()))
}

/// Everything measured so far, as torch_xla's `met.metrics_report()` formats it.
pub fn report() -> String {
    refresh();
    let mut out = String::new();
    for m in METRICS {
        let s = m.samples();
        if s.count == 0 {
            continue;
        }
        let show = |v: f64| if m.unit == Unit::Bytes { bytes(v) } else { time(v) };
        let _ = writeln!(out, "Metric: {}\n  TotalSamples: {}\n  Accumulator: {}", m.name, s.count, show(s.total));
        if let (Some(first), Some(last)) = (s.recent.front(), s.recent.back()) {
            let span = last.0.duration_since(first.0).as_secs_f64();
            if span > 0.0 {
                let sum: f64 = s.recent.iter().map(|r| r.1).sum();
                let rate = s.recent.len() as f64 / span;
                let _ = writeln!(out, "  ValueRate: {} / second\n  Rate: {rate:.6} / second", show(sum / span));
            }
        }
        let mut sorted: Vec<f64> = s.recent.iter().map(|r| r.1).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |p: f64| sorted[((p * sorted.len() as f64) as usize).min(sorted.len() - 1)];
        let parts: Vec<String> = [0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99]
            .iter()
            .map(|&p| format!("{}%={}", (p * 100.0) as u32, show(at(p))))
            .collect();
        let _ = writeln!(out, "  Percentiles: {}", parts.join("; "));
    }
    for c in COUNTERS {
        if c.value() > 0 {
            let _ = writeln!(out, "Counter: {}\n  Value: {}", c.name, c.value());
        }
    }
    out
}

/// The report as JSON: `{"metrics": {name: {samples, total, unit}}, "counters": {name: value}}`.
pub fn report_json() -> String {
    refresh();
    let metric = |m: &&Metric| {
        let s = m.samples();
        let unit = if m.unit == Unit::Bytes { "bytes" } else { "ns" };
        (m.name.to_owned(), json!({ "samples": s.count, "total": s.total, "unit": unit }))
    };
    let metrics: Map = METRICS.iter().map(metric).collect();
    let counters: Map = COUNTERS.iter().map(|c| (c.name.to_owned(), c.value().into())).collect();
    json!({ "metrics": metrics, "counters": counters }).to_string()
}

/// Forgets all metrics and counters (`met.clear_all()`).
pub fn clear_all() {
    for m in METRICS {
        *m.samples() = Samples::default();
    }
    COUNTERS.iter().for_each(|c| c.set(0));
    let mut g = graph();
    (g.created, g.destroyed) = (0, 0);
}

/// `01s234ms567.890us`, as torch_xla prints times.
pub fn time(ns: f64) -> String {
    let parts = [("d", 86_400e9), ("h", 3600e9), ("m", 60e9), ("s", 1e9), ("ms", 1e6)];
    let mut rest = ns;
    let mut out = String::new();
    for (suffix, scale) in parts {
        let n = (rest / scale).floor();
        if n >= 1.0 || !out.is_empty() {
            let width = if suffix == "ms" { 3 } else { 2 };
            let _ = write!(out, "{:0width$}{suffix}", n as u64);
            rest -= n * scale;
        }
    }
    let _ = write!(out, "{:07.3}us", rest / 1e3);
    out
}

/// `1.21MB`, as torch_xla prints sizes.
pub fn bytes(n: f64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let mut v = n;
    let mut u = 0;
    while v >= 1024.0 && u + 1 < units.len() {
        v /= 1024.0;
        u += 1;
    }
    format!("{v:.2}{}", units[u])
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_and_sizes_read_like_torch_xlas() {
        assert_eq!(super::time(369_401_746_001.0), "06m09s401ms746.001us");
        assert_eq!(super::time(1_500.0), "001.500us");
        assert_eq!(super::bytes(548.0), "548.00B");
        assert_eq!(super::bytes(1536.0), "1.50KB");
    }
}
