//! Starting the engine for the subcommands that run cells.
use crate::engine::{Engine, Failure};
use crate::eval::RustEngine;
use crate::eval::install::Installation;
use crate::footer::WithFooter;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

/// A new session, ready for its first cell.
pub fn start() -> Result<Arc<dyn Engine>, Failure> {
    Ok(Arc::new(RustEngine::start(Installation::find()?)?))
}

/// As [`start`], for a person: every cell ends with the line that says what it did; `live`, where it stands there while
/// the cell runs.
pub fn start_told(live: bool) -> Result<Arc<dyn Engine>, Failure> {
    // A kernel's front end watches, whatever its own standard error is.
    let shown = live || std::io::stderr().is_terminal();
    let install = Installation { shown, ..Installation::find()? };
    Ok(Arc::new(WithFooter { engine: RustEngine::start(install)?, live }))
}

/// As [`start_told`], for the cells of a notebook: its dependencies are locked beside it.
pub fn start_for(notebook: &Path) -> Result<Arc<dyn Engine>, Failure> {
    let install = Installation { notebook: Some(notebook.to_owned()), ..Installation::find()? };
    Ok(Arc::new(WithFooter { engine: RustEngine::start(install)?, live: false }))
}
