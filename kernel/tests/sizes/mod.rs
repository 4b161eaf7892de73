//! How much a test does: little in every run; `XLAZY_ROUNDS` says how many times as much, as `tests/long.sh` does.

/// A number of the environment.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// So many rounds, or more.
pub fn rounds(usual: u64) -> u64 {
    usual * number("XLAZY_ROUNDS").unwrap_or(1).max(1)
}
