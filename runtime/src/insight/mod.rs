//! What happened and why: metrics with torch_xla's names, sync causes, the log of syncs and compilations, and the
//! explanation of every compilation that had a forerunner.
// Variables are named by the path that `type_name` gives, so modules with public types are public.
mod alike;
pub(crate) mod batches;
pub(crate) mod bucketing;
mod budget;
mod causes;
#[doc(hidden)]
pub mod cell;
mod dump;
mod evidence;
mod guess;
mod history;
pub(crate) mod live;
#[doc(hidden)]
pub mod log;
mod marks;
pub mod metrics;
pub(crate) mod mode;
mod record;
mod render;
#[doc(hidden)]
pub mod report;
mod side;
pub(crate) mod timeline;
mod unrolled;
mod witness;

pub use budget::{budget, budget_bundle, budget_json, set_budget};
pub use cell::{NextSync, Pending, pending, pending_bundle, pending_json};
pub use dump::{Dump, explain_dumps};
#[doc(hidden)]
pub use dump::{cli_main as why_main, text_of_compilation, why_json};
pub(crate) use guess::{Mark, Quantity, answers, guess};
pub use history::{compilations, healed, healing, set_healing};
pub(crate) use history::{parameters, refused};
pub(crate) use live::waiting;
pub use log::events;
pub use render::{compiles_bundle, compiles_json, event_json, healed_bundle, healed_json};
pub use report::{Class, Compilation, Difference, Edit, Explanation, Healing, Place, Unrolled};
pub(crate) use side::side_by_side;
pub(crate) use witness::{INSIGHT, Seen, look_on, stream};
pub use xlazy_core::clock::set_watching;
pub use xlazy_core::run::set_trim;
pub use xlazy_core::run::{Cause, Memory, Origin, SyncEvent, set_cache_capacity};

/// Forgets every program, sync and mode, as if nothing had run yet; values stay. For tests that draw many programs in one process.
#[doc(hidden)]
pub fn forget() {
    batches::forget();
    history::forget();
    log::forget();
    mode::forget();
    witness::forget();
}
