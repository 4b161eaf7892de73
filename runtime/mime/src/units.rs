//! Numbers for people: counts, bytes, times.
use std::time::Duration;

/// The noun for so many of a thing: `op` for one, `ops` otherwise.
///
/// ```
/// assert_eq!([0, 1, 2].map(|n| xlazy_mime::plural(n, "result")), ["results", "result", "results"]);
/// ```
pub fn plural(n: u64, what: &str) -> String {
    format!("{what}{}", if n == 1 { "" } else { "s" })
}

/// `1 result`, `2 results`.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {}", plural(n as u64, what))
}

/// `1,234,567`
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// How much that is, at a glance: `16 B`, `1.5 kB`, `12.0 MB`, `1.3 GB`, each 1024 of the one before.
pub fn bytes(n: u64) -> String {
    match scaled(n, 1024.0) {
        (_, 0) => format!("{n} B"),
        (value, unit) => format!("{value:.1} {}B", ["", "k", "M", "G", "T"][unit]),
    }
}

/// Memory of a chip, as its makers state it: `15.7 GiB`, `1.50 KiB`.
pub fn memory(n: u64) -> String {
    match scaled(n, 1000.0) {
        (_, 0) => format!("{n} B"),
        (value, unit) => format!("{value:.*} {}iB", if value < 10.0 { 2 } else { 1 }, ["", "K", "M", "G", "T"][unit]),
    }
}

/// The number in units of 1024, the next one from `most` on.
fn scaled(n: u64, most: f64) -> (f64, usize) {
    let (mut value, mut unit) = (n as f64, 0);
    while value >= most && unit < 4 {
        value /= 1024.0;
        unit += 1;
    }
    (value, unit)
}

/// How long that is, at a glance: `20 µs`, `4.0 ms`, `49 ms`, `1.20 s`, `2 min 5 s`.
pub fn time(time: Duration) -> String {
    let s = time.as_secs_f64();
    match s * 1e3 {
        ms if ms < 0.95 => format!("{:.0} µs", ms * 1e3),
        ms if ms < 9.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        _ => seconds(time),
    }
}

/// A time that was measured, with three digits of it: `870 µs`, `12.4 ms`, `3.21 s`, `2 min 5 s`.
pub fn measured(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    match us {
        _ if us < 999.5 => format!("{us:.*} µs", places(us)),
        _ if us < 999.5e3 => format!("{:.*} ms", places(us / 1e3), us / 1e3),
        _ => seconds(time),
    }
}

/// How many places behind the point make three digits.
fn places(value: f64) -> usize {
    match value {
        _ if value < 9.995 => 2,
        _ if value < 99.95 => 1,
        _ => 0,
    }
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        ..60 => format!("{:.2} s", time.as_secs_f64()),
        s => format!("{} min {} s", s / 60, s % 60),
    }
}

/// How long ago, roughly: `90 s`, `30 min`, `3 h`, `5 days`.
pub fn age(time: Duration) -> String {
    match time.as_secs() {
        s if s < 120 => format!("{s} s"),
        s if s < 7200 => format!("{} min", s / 60),
        s if s < 48 * 3600 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_that_leaves_them_readable() {
        let of = |n: &[u64], f: fn(u64) -> String| n.iter().map(|n| f(*n)).collect::<Vec<_>>().join(", ");
        assert_eq!(of(&[0, 999, 1000, 1_234_567], thousands), "0, 999, 1,000, 1,234,567");
        assert_eq!(
            of(&[0, 1023, 1536, 12 << 20, 3 << 29, 1 << 60], bytes),
            "0 B, 1023 B, 1.5 kB, 12.0 MB, 1.5 GB, 1048576.0 TB"
        );
        assert_eq!(of(&[999, 1000, 1 << 20, 16_911_433_728], memory), "999 B, 0.98 KiB, 1.00 MiB, 15.8 GiB");
        let glance = |n: u64| time(Duration::from_micros(n));
        assert_eq!(of(&[0, 20, 949], glance), "0 µs, 20 µs, 949 µs");
        assert_eq!(of(&[950, 4000, 9_949, 9_951, 999_499], glance), "0.9 ms, 4.0 ms, 9.9 ms, 10 ms, 999 ms");
        assert_eq!(of(&[999_501, 59_990_000, 125_000_000], glance), "1.00 s, 59.99 s, 2 min 5 s");
        let exact = |n: u64| measured(Duration::from_micros(n));
        assert_eq!(of(&[0, 8, 870, 1000, 9_996, 12_440], exact), "0.00 µs, 8.00 µs, 870 µs, 1.00 ms, 10.0 ms, 12.4 ms");
        assert_eq!(
            of(&[99_960, 999_400, 999_600, 3_210_000, 60_000_000], exact),
            "100 ms, 999 ms, 1.00 s, 3.21 s, 1 min 0 s"
        );
        assert_eq!(of(&[119, 120, 7200, 200_000], |s| age(Duration::from_secs(s))), "119 s, 2 min, 2 h, 2 days");
    }
}
