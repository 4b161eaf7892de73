//! Metrics and counters under torch_xla's names. Whoever does what they count adds to them; nobody here reads them.
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A counter; adding to it costs one atomic operation.
pub struct Counter {
    pub name: &'static str,
    value: AtomicU64,
}

impl Counter {
    pub(crate) const fn new(name: &'static str) -> Counter {
        Counter { name, value: AtomicU64::new(0) }
    }
    pub fn add(&self, n: u64) {
        self.value.fetch_add(n, Ordering::Relaxed);
    }
    pub fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
    /// For what is counted elsewhere, and to begin anew.
    pub fn set(&self, n: u64) {
        self.value.store(n, Ordering::Relaxed);
    }
}

/// What a metric measures.
#[derive(Clone, Copy, PartialEq)]
pub enum Unit {
    Nanoseconds,
    Bytes,
}

/// A metric: how often, how much in all, and the distribution of the last samples.
pub struct Metric {
    pub name: &'static str,
    pub unit: Unit,
    data: Mutex<Samples>,
}

/// Samples so far, the last ones by themselves.
#[derive(Default)]
pub struct Samples {
    pub count: u64,
    pub total: f64,
    pub recent: VecDeque<(Instant, f64)>,
}

const RECENT: usize = 1024;

impl Metric {
    pub(crate) const fn new(name: &'static str, unit: Unit) -> Metric {
        Metric { name, unit, data: Mutex::new(Samples { count: 0, total: 0.0, recent: VecDeque::new() }) }
    }

    /// What was measured, locked.
    pub fn samples(&self) -> std::sync::MutexGuard<'_, Samples> {
        self.data.lock().unwrap_or_else(|p| p.into_inner())
    }

    /// `at` is `None` for a sample that came soon after the last one: the clock takes longer than everything else here.
    fn add(&self, value: f64, at: Option<Instant>) {
        if !crate::clock::watching() {
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
/// Compiling for devices that are not there, by a process of its own.
pub static AOT_COMPILE_TIME: Metric = Metric::new("AheadOfTimeCompileTime", Unit::Nanoseconds);
pub static EXECUTE_TIME: Metric = Metric::new("ExecuteTime", Unit::Nanoseconds);
pub static LOWER_TIME: Metric = Metric::new("LoweringTime", Unit::Nanoseconds);
pub static TRANSFER_TO_DEVICE_TIME: Metric = Metric::new("TransferToDeviceTime", Unit::Nanoseconds);
pub static TRANSFER_FROM_DEVICE_TIME: Metric = Metric::new("TransferFromDeviceTime", Unit::Nanoseconds);
/// Waiting for what the device was at, before a value could be read.
pub static WAIT_TIME: Metric = Metric::new("DeviceWaitTime", Unit::Nanoseconds);
/// Batches that a loader's worker made and sent.
pub static LOADER_BATCH_TIME: Metric = Metric::new("LoaderBatchTime", Unit::Nanoseconds);
/// What a loop waited for until its loader had the next batch.
pub static LOADER_WAIT_TIME: Metric = Metric::new("LoaderWaitTime", Unit::Nanoseconds);
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
pub static CREATE_TENSOR: Counter = Counter::new("CreateXlaTensor");
pub static DESTROY_TENSOR: Counter = Counter::new("DestroyXlaTensor");

/// All metrics, by name.
pub static METRICS: &[&Metric] = &[
    &AOT_COMPILE_TIME,
    &COMPILE_TIME,
    &WAIT_TIME,
    &EXECUTE_TIME,
    &INBOUND_DATA,
    &LOADER_BATCH_TIME,
    &LOADER_WAIT_TIME,
    &LOWER_TIME,
    &OUTBOUND_DATA,
    &HELD_DATA,
    &TRANSFER_FROM_DEVICE_TIME,
    &TRANSFER_TO_DEVICE_TIME,
];

/// All counters, by name.
pub static COUNTERS: &[&Counter] = &[
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
