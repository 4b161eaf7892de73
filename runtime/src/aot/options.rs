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
    /// Parts that the program is split into, by the shardings in it; 1 stands for what the program says.
    pub partitions: u64,
    /// The sizes that axes of the program's mesh are to have, instead of those that it was recorded for.
    pub mesh: Vec<(String, u64)>,
    /// How many slices the program goes over; between them is the data centre's network.
    pub slices: u64,
    /// The compiler's optimisation level, 0 to 3. Level 1 takes a tenth of the time of the higher ones on big programs; real runs
    /// are at level 2, where what is fast and what is slow may stand in another order.
    pub level: u64,
    /// How long the compiler may take.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { partitions: 1, mesh: vec![], slices: 1, level: 1, timeout: Duration::from_secs(600) }
    }
}
