//! How many programs a cell may compile.
use super::history::compiled_so_far;
use super::report::Explanation;
use crate::json::json;
use crate::{Error, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};
use xlazy_mime::{Bundle, plural};

struct Budget {
    most: Option<u64>,
    /// What XLA had compiled when the cell began; `None` between cells.
    before: Option<usize>,
}

static BUDGET: Mutex<Budget> = Mutex::new(Budget { most: None, before: None });

fn budget_of_cell() -> MutexGuard<'static, Budget> {
    BUDGET.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn cell_begins(compiled: usize) {
    budget_of_cell().before = Some(compiled);
}

pub(super) fn cell_ends() {
    budget_of_cell().before = None;
}

/// Lets a cell compile at most `compiles` programs; the next compilation ends the cell, with the explanation, and leaves
/// all that is pending in place. `None` lifts the limit.
pub fn set_budget(compiles: Option<u64>) {
    budget_of_cell().most = compiles;
}

/// The limit that [`set_budget`] set.
pub fn budget() -> Option<u64> {
    budget_of_cell().most
}

/// Refuses a compilation that the budget does not allow; `why` is what is known of it.
pub(crate) fn within_budget(why: Option<&Explanation>) -> Result<()> {
    let (budget, before) = match *budget_of_cell() {
        Budget { most: Some(most), before: Some(before) } => (most, before),
        _ => return Ok(()),
    };
    let used = (compiled_so_far().0 - before) as u64;
    if used < budget {
        return Ok(());
    }
    let reason = why.map_or("It is the first program of its kind.".to_owned(), |w| w.sentence());
    let message = format!(
        "this cell has used its budget of {budget} {}: the next one was not started. {reason} What earlier cells made \
         is as it was, and what is pending on it; what this cell has declared so far is kept. `%budget off` lifts the \
         limit, then run it again",
        plural(budget, "compilation")
    );
    Err(Error::Usage { message })
}

/// The budget of compilations as text.
pub fn budget_bundle() -> Bundle {
    Bundle::text(match budget() {
        None => "no budget: cells may compile as much as they need".to_owned(),
        Some(n) => format!("each cell may compile {n} {}", plural(n, "program")),
    })
}

/// The budget of compilations as JSON.
pub fn budget_json() -> String {
    json!({ "compiles": budget() }).to_string()
}
