//! Numbers of things in sentences.

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
