//! How long what devices tell one another would take at published link rates.
use super::transfers::Transfer;

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

/// How long a transfer takes at the rates of a generation of chips, among so many devices; 0 where none is published. It is an
/// estimate of what travels alone: nothing is said of when it starts.
///
/// Of `bytes` that a device has in the end, in a group of n: an all-reduce moves them 2·(n − 1)/n times, what gathers, scatters or
/// exchanges (n − 1)/n times, anything else once.
pub(crate) fn seconds(t: &Transfer, generation: &str, devices: u64) -> f64 {
    let rate = match t.between_slices {
        true => (generation == "v5e").then_some(BETWEEN_SLICES),
        false => RATES.iter().find(|r| r.0 == generation).map(|r| r.1 / r.2),
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

/// The generation of what a plugin calls a device, such as `TPU v5 lite`.
pub(crate) fn generation(kind: &str) -> Option<&'static str> {
    let kind = kind.to_lowercase().replace(' ', "");
    let named = |long: &[&str]| long.iter().any(|l| kind == format!("tpu{l}"));
    let all: [(&str, &[&str]); 6] = [
        ("v3", &["v3"]),
        ("v4", &["v4"]),
        ("v5e", &["v5lite", "v5e"]),
        ("v5p", &["v5", "v5p"]),
        ("v6e", &["v6lite", "v6e"]),
        ("tpu7x", &["7x", "v7x", "7"]),
    ];
    all.into_iter().find(|(_, long)| named(long)).map(|(name, _)| name)
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
            cut_again: false,
        };
        let micros = |t: &Transfer, generation: &str| (seconds(t, generation, 256) * 1e6).round();
        assert_eq!(micros(&all("all-reduce", 2), "v5e"), 1000.0);
        assert_eq!(micros(&all("all-gather", 4), "v5e"), 750.0);
        assert_eq!(micros(&all("all-reduce", 0), "v5e"), 1992.0);
        assert_eq!(micros(&all("all-reduce", 2), "v2"), 0.0);
        let between = Transfer { between_slices: true, ..all("all-reduce", 0) };
        assert_eq!(micros(&between, "v5e"), 64000.0);
    }

    #[test]
    fn generations_are_known_by_their_devices() {
        assert_eq!(
            ["TPU v5 lite", "TPU v5", "TPU v4", "TPU7x", "cpu"].map(generation),
            [Some("v5e"), Some("v5p"), Some("v4"), Some("tpu7x"), None]
        );
    }
}
