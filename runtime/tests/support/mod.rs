//! What property tests share: numbers that follow from a seed, one test at a time, counting, comparing.
#![allow(dead_code)] // each test program uses its part
use std::sync::{Mutex, MutexGuard, Once};
use xlazy::insight::Explanation;
use xlazy::metrics::counter_value;
use xlazy::prelude::*;

static ONE: Mutex<()> = Mutex::new(());

/// The runtime is one per process, and counters are its own: one test at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    in_float32();
    let guard = ONE.lock().unwrap_or_else(|p| p.into_inner());
    sync();
    guard
}

/// The same, in a process where the CPU counts as so many devices; all of its tests say so.
pub fn alone_on(devices: usize) -> MutexGuard<'static, ()> {
    static SET: Once = Once::new();
    let guard = ONE.lock().unwrap_or_else(|p| p.into_inner());
    // SAFETY: before the session, which reads it, and under the lock that every test takes first.
    #[allow(unsafe_code)]
    SET.call_once(|| unsafe { std::env::set_var("XLAZY_CPU_DEVICES", devices.to_string()) });
    sync();
    guard
}

/// Products of float32 in all of float32, as PyTorch has them, on a platform that takes fewer bits where nobody says.
pub fn in_float32() {
    if std::env::var("PJRT_DEVICE").is_ok_and(|d| d != "CPU") {
        xlazy::backends::set_mat_mul_precision("highest").unwrap();
    }
}

/// How many programs `f` compiles.
pub fn compiles(f: impl FnOnce()) -> u64 {
    let count = || counter_value("UncachedCompile").unwrap();
    let before = count();
    f();
    count() - before
}

/// What the refusal of `f` says.
#[track_caller]
pub fn refusal<R>(f: impl FnOnce() -> R) -> String {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)) {
        Ok(_) => panic!("was not refused"),
        Err(e) => *e.downcast::<String>().expect("a refusal is a sentence"),
    }
}

/// Random numbers, the same for a seed in every run (SplitMix64).
#[derive(Clone)]
pub struct Seeded(pub u64);

impl Seeded {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to and without `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// Floats from `low` to `high`.
    pub fn floats(&mut self, n: usize, low: f64, high: f64) -> Vec<f32> {
        let unit = |r: u64| (r >> 11) as f64 / (1u64 << 53) as f64;
        (0..n).map(|_| (low + unit(self.next()) * (high - low)) as f32).collect()
    }
}

/// Equal to within so many units in the last place, or so much of the larger one; NaN equals NaN.
pub fn close(a: &[f32], b: &[f32], ulps: i64, relative: f32) -> Result<(), String> {
    if a.len() != b.len() {
        return Err(format!("{} numbers against {}", a.len(), b.len()));
    }
    let order = |x: f32| {
        let bits = x.to_bits() as i32 as i64;
        if bits < 0 { i32::MIN as i64 - bits } else { bits }
    };
    let far = |(x, y): &(&f32, &f32)| {
        let same = (x.is_nan() && y.is_nan()) || (order(**x) - order(**y)).abs() <= ulps;
        !same && ((*x - *y).abs() > relative * x.abs().max(y.abs()) || relative == 0.0 || !(*x - *y).is_finite())
    };
    match a.iter().zip(b).find(far) {
        None => Ok(()),
        Some((x, y)) => Err(format!("{x} against {y}")),
    }
}

/// How many random programs a property is tried on; `XLAZY_PROGRAMS` asks for more, `XLAZY_SEED` starts elsewhere.
pub fn programs(default: u64) -> std::ops::Range<u64> {
    let set = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let first = set("XLAZY_SEED").unwrap_or(1);
    first..first + set("XLAZY_PROGRAMS").unwrap_or(default)
}

/// What only our users know.
pub const OURS: [&str; 10] = [
    ".dynamic",
    ".buckets",
    "where_",
    "index_copy",
    "index_select",
    "sync()",
    ".to(",
    "from_vec",
    "insight::",
    "XLAZY_",
];

/// Of a text nobody knows who wrote it, and what that one calls what is to be done.
pub fn in_nobodys_words(why: &Explanation) {
    for why in std::iter::once(why).chain(&why.also) {
        assert!(!OURS.iter().any(|word| why.fix.contains(word)), "{}", why.fix);
    }
}
