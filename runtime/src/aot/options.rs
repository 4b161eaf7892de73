//! How programs are compiled ahead of time.
use std::time::Duration;

/// How to compile.
///
/// ```
/// let careful = xlazy::aot::Options { level: 2, ..Default::default() };
/// assert_eq!(careful.partitions, 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Parts that the program is split into, by the shardings in it.
    pub partitions: u64,
    /// The compiler's optimisation level, 0 to 3. Level 1 takes a tenth of the time of the higher ones on big programs.
    pub level: u64,
    /// How long the compiler may take.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { partitions: 1, level: 1, timeout: Duration::from_secs(600) }
    }
}
