//! Syncs: the graph is cut, its program found in a cache or compiled, and run. What happens is told to a [`Witness`].
mod aside;
mod cache;
mod checks;
mod compile;
mod disk;
mod eager;
mod event;
mod execute;
mod kept;
mod look;
mod lower;
mod start;
mod sync;
mod trim;
mod witness;

pub use aside::aside;
pub use cache::{Program, Room, forget_programs, last_program, runs, set_cache_capacity};
pub use checks::{are_on as checks_are_on, download, refuse_found, wait};
pub use disk::settle as settle_disk;
pub use eager::{is_eager, set_eager};
pub use event::{Cause, Costs, Memory, Origin, SyncEvent, Work};
pub use kept::{Gone, Run, keeping, last_runs, set_keeping};
pub use look::{Forecast, compiled, lowered, lowered_step, try_compile, would};
pub use start::start_here;
pub use sync::{barrier, read, read_all};
pub use trim::{set_trim, trim};
pub use witness::{Case, LeafOrigin, Miss, Next, Policy, Witness};
