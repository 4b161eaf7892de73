//! Syncs: the graph is cut, its program found in a cache or compiled, and run. What happens is told to a [`Witness`].
mod cache;
mod checks;
mod compile;
mod disk;
mod event;
mod execute;
mod look;
mod lower;
mod packs;
mod sharded;
mod sync;
mod trim;
mod witness;

pub use cache::{Program, Room, forget_programs, last_program, runs, set_cache_capacity};
pub use checks::{are_on as checks_are_on, download, refuse_found, wait};
pub use disk::settle as settle_disk;
pub use event::{Cause, Costs, Memory, Origin, SyncEvent, Work};
pub use look::{Forecast, compiled, lowered, lowered_step, try_compile, would};
pub use sync::{barrier, read, read_all};
pub use trim::{set_trim, trim};
pub use witness::{Case, LeafOrigin, Miss, Next, Policy, Witness};
