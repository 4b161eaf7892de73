//! Metrics and counters under torch_xla's names, reported in torch_xla's format.
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A counter; adding to it costs one atomic operation.
pub struct Counter {
    pub name: &'static str,
    value: AtomicU64,
}

impl Counter {
    const fn new(name: &'static str) -> Counter {
        Counter { name, value: AtomicU64::new(0) }
    }
    pub fn add(&self, n: u64) {
        self.value.fetch_add(n, Ordering::Relaxed);
    }
    pub fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Nanoseconds,
    Bytes,
}

/// A metric: how often, how much in all, and the distribution of the last samples.
pub struct Metric {
    pub name: &'static str,
    unit: Unit,
    data: Mutex<Samples>,
}

struct Samples {
    count: u64,
    total: f64,
    recent: VecDeque<(Instant, f64)>,
}

const RECENT: usize = 1024;

impl Metric {
    const fn new(name: &'static str, unit: Unit) -> Metric {
        Metric { name, unit, data: Mutex::new(Samples { count: 0, total: 0.0, recent: VecDeque::new() }) }
    }

    fn samples(&self) -> std::sync::MutexGuard<'_, Samples> {
        self.data.lock().unwrap_or_else(|p| p.into_inner())
    }

    /// `at` is `None` for a sample that came soon after the last one: the clock takes longer than everything else here.
    fn add(&self, value: f64, at: Option<Instant>) {
        if !super::watching() {
            return;
        }
        let mut s = self.samples();
        s.count += 1;
        s.total += value;
        if s.recent.len() == RECENT {
            s.recent.pop_front();
        }
        let at = at.or(s.recent.back().map(|r| r.0)).unwrap_or_else(Instant::now);
        s.recent.push_back((at, value));
    }

    pub fn add_time(&self, t: Duration) {
        self.add_time_at(t, Some(Instant::now()));
    }

    /// A time that ended then; `None` for soon after the last one.
    pub fn add_time_at(&self, t: Duration, end: Option<Instant>) {
        self.add(t.as_nanos() as f64, end);
    }

    pub fn add_bytes(&self, n: usize) {
        self.add(n as f64, Some(Instant::now()));
    }

    /// Samples so far.
    pub fn count(&self) -> u64 {
        self.samples().count
    }

    /// Sum of all samples: nanoseconds or bytes.
    pub fn total(&self) -> f64 {
        self.samples().total
    }
}

pub static COMPILE_TIME: Metric = Metric::new("CompileTime", Unit::Nanoseconds);
pub static EXECUTE_TIME: Metric = Metric::new("ExecuteTime", Unit::Nanoseconds);
pub static LOWER_TIME: Metric = Metric::new("LoweringTime", Unit::Nanoseconds);
pub static TRANSFER_TO_DEVICE_TIME: Metric = Metric::new("TransferToDeviceTime", Unit::Nanoseconds);
pub static TRANSFER_FROM_DEVICE_TIME: Metric = Metric::new("TransferFromDeviceTime", Unit::Nanoseconds);
/// Bytes that came in from the device.
pub static INBOUND_DATA: Metric = Metric::new("InboundData", Unit::Bytes);
/// Bytes that went out to the device.
pub static OUTBOUND_DATA: Metric = Metric::new("OutboundData", Unit::Bytes);

/// Bytes of buffers that were copied on the device, since a program donates them and something holds them.
pub static HELD_DATA: Metric = Metric::new("HeldDataCopied", Unit::Bytes);

pub static CACHED_COMPILE: Counter = Counter::new("CachedCompile");
pub static UNCACHED_COMPILE: Counter = Counter::new("UncachedCompile");
/// Programs that came from the disk.
pub static PERSISTENT_CACHE_HIT: Counter = Counter::new("PersistentCacheHit");
pub static CREATE_COMPILE_HANDLES: Counter = Counter::new("CreateCompileHandles");
pub static DESTROY_COMPILE_HANDLES: Counter = Counter::new("DestroyCompileHandles");
pub static CREATE_DATA_HANDLES: Counter = Counter::new("CreateDataHandles");
pub static DESTROY_DATA_HANDLES: Counter = Counter::new("DestroyDataHandles");
pub static MARK_STEP: Counter = Counter::new("MarkStep");
/// Reads of one tensor that had to run something.
pub static SYNC_TENSORS: Counter = Counter::new("SyncTensorsToData");
static CREATE_TENSOR: Counter = Counter::new("CreateXlaTensor");
static DESTROY_TENSOR: Counter = Counter::new("DestroyXlaTensor");

static METRICS: &[&Metric] = &[
    &COMPILE_TIME,
    &EXECUTE_TIME,
    &INBOUND_DATA,
    &LOWER_TIME,
    &OUTBOUND_DATA,
    &HELD_DATA,
    &TRANSFER_FROM_DEVICE_TIME,
    &TRANSFER_TO_DEVICE_TIME,
];

static COUNTERS: &[&Counter] = &[
    &CACHED_COMPILE,
    &CREATE_COMPILE_HANDLES,
    &CREATE_DATA_HANDLES,
    &CREATE_TENSOR,
    &DESTROY_COMPILE_HANDLES,
    &DESTROY_DATA_HANDLES,
    &DESTROY_TENSOR,
    &MARK_STEP,
    &PERSISTENT_CACHE_HIT,
    &SYNC_TENSORS,
    &UNCACHED_COMPILE,
];

// Tensors are counted in the graph, under the lock it holds anyway.
fn refresh() {
    let g = crate::ir::graph();
    CREATE_TENSOR.value.store(g.created, Ordering::Relaxed);
    DESTROY_TENSOR.value.store(g.destroyed, Ordering::Relaxed);
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
    let metrics: Vec<String> = METRICS
        .iter()
        .map(|m| {
            let s = m.samples();
            let unit = if m.unit == Unit::Bytes { "bytes" } else { "ns" };
            format!("\"{}\":{{\"samples\":{},\"total\":{},\"unit\":\"{unit}\"}}", m.name, s.count, s.total)
        })
        .collect();
    let counters: Vec<String> = COUNTERS.iter().map(|c| format!("\"{}\":{}", c.name, c.value())).collect();
    format!("{{\"metrics\":{{{}}},\"counters\":{{{}}}}}", metrics.join(","), counters.join(","))
}

/// Forgets all metrics and counters (`met.clear_all()`).
pub fn clear_all() {
    for m in METRICS {
        *m.samples() = Samples { count: 0, total: 0.0, recent: VecDeque::new() };
    }
    COUNTERS.iter().for_each(|c| c.value.store(0, Ordering::Relaxed));
    let mut g = crate::ir::graph();
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
