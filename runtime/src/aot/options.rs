//! How programs are compiled ahead of time.
use std::time::Duration;

/// How to compile.
///
/// ```
/// let quick = xlazy::aot::Options { level: 1, ..Default::default() };
/// assert_eq!((quick.partitions, xlazy::aot::Options::default().level), (1, 2));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Parts that the program is split into, by the shardings in it; 1 stands for what the program says.
    pub partitions: u64,
    /// The sizes that axes of the program's mesh are to have, instead of those that it was recorded for.
    pub mesh: Vec<(String, u64)>,
    /// How many slices the program goes over; between them is the data centre's network.
    pub slices: u64,
    /// The compiler's optimisation level, 0 to 3: 2 by default, at which real runs compile. Level 1 takes a tenth of the time on big
    /// programs, but what is fast and what is slow may stand in another order there.
    pub level: u64,
    /// How long the compiler may take.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { partitions: 1, mesh: vec![], slices: 1, level: 2, timeout: Duration::from_secs(600) }
    }
}
