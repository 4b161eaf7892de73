//! What devices tell one another, and how long that would take at published link rates.
use super::chips::chip;
use super::hlo::Module;
use super::report::{Moved, Source};
use crate::display::transfers::{Transfer, transfers};

/// Bytes per second of all-reduce that a chip has, of what is published for a whole pod (v3: 340 TB/s of 1,024 chips, v4: 1.1 PB/s of
/// 4,096, v5e: 51.2 TB/s of 256, v6e: 102.4 TB/s of 256) or for a chip's links (v5p and tpu7x: 1,200 GB/s, both ways), and how
/// many devices share it: two cores on some.
const RATES: &[(&str, f64, f64)] = &[
    ("v3", 340e12 / 1024.0, 2.0),
    ("v4", 1.1e15 / 4096.0, 2.0),
    ("v5e", 51.2e12 / 256.0, 1.0),
    ("v5p", 600e9, 1.0),
    ("v6e", 102.4e12 / 256.0, 1.0),
    ("tpu7x", 600e9, 2.0),
];

/// Bytes per second between slices, for each chip: published of v5e alone (6.4 Tbit/s for a pod of 256).
const BETWEEN_SLICES: f64 = 6.4e12 / 8.0 / 256.0;

/// The collectives of a compiled program, with an estimate where a rate is published.
pub(super) fn moved(format: &str, proto: &[u8], module: Option<&Module>, topology: &str, devices: u64) -> Vec<Moved> {
    let of_name = |name: &str| {
        let all = module.iter().flat_map(|m| m.computations.values()).flat_map(|c| &c.instructions);
        let i = { all }.find(|i| i.name == name)?;
        Some(Source { op: i.op.clone(), at: i.at.clone() }).filter(|s| !s.op.is_empty() || !s.at.is_empty())
    };
    let one = |t: Transfer| Moved {
        seconds: seconds(&t, topology, devices),
        sources: of_name(&t.name).into_iter().collect(),
        kind: t.kind,
        shape: t.shape,
        bytes: t.bytes,
        groups: t.groups,
        algorithm: t.algorithm,
        is_async: t.is_async,
        between_slices: t.between_slices,
    };
    transfers(format, proto).into_iter().map(one).collect()
}

/// Of `bytes` that a device has in the end, in a group of n: an all-reduce moves them 2·(n − 1)/n times, what gathers, scatters or
/// exchanges (n − 1)/n times, anything else once.
fn seconds(t: &Transfer, topology: &str, devices: u64) -> f64 {
    let rate = match t.between_slices {
        true => chip(topology).filter(|c| c.name == "v5e").map(|_| BETWEEN_SLICES),
        false => chip(topology).and_then(|c| RATES.iter().find(|r| r.0 == c.name)).map(|r| r.1 / r.2),
    };
    let Some(rate) = rate else { return 0.0 };
    let n = if t.size == 0 { devices } else { t.size }.max(1) as f64;
    let share = (n - 1.0) / n;
    let bytes = t.bytes as f64;
    let moved = match &*t.kind {
        _ if t.between_slices => bytes,
        "all-reduce" => 2.0 * bytes * share,
        // What it gives is one of n parts.
        "reduce-scatter" => bytes * n * share,
        "all-gather" | "all-to-all" | "ragged-all-to-all" => bytes * share,
        _ => bytes,
    };
    moved / rate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_follow_bytes_groups_and_rates() {
        let all = |kind: &str, size| Transfer {
            name: String::new(),
            kind: kind.into(),
            shape: String::new(),
            bytes: 200_000_000,
            groups: String::new(),
            size,
            algorithm: String::new(),
            is_async: false,
            op: String::new(),
            between_slices: false,
        };
        let micros = |t: &Transfer, topology: &str| (seconds(t, topology, 256) * 1e6).round();
        assert_eq!(micros(&all("all-reduce", 2), "v5e:16x16"), 1000.0);
        assert_eq!(micros(&all("all-gather", 4), "v5e:16x16"), 750.0);
        assert_eq!(micros(&all("all-reduce", 0), "v5e:16x16"), 1992.0);
        assert_eq!(micros(&all("all-reduce", 2), "v2:4x4"), 0.0);
        let between = Transfer { between_slices: true, ..all("all-reduce", 0) };
        assert_eq!(micros(&between, "v5e:16x16"), 64000.0);
    }
}
