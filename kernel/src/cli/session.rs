//! Starting the engine for the subcommands that run cells, and letting Ctrl-C reach it.
use crate::engine::{Engine, Failure};
use crate::eval::RustEngine;
use crate::eval::install::Installation;
use crate::footer::WithFooter;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::path::Path;
use std::sync::Arc;

/// A new session, ready for its first cell.
pub fn start() -> Result<Arc<dyn Engine>, Failure> {
    Ok(Arc::new(RustEngine::start(Installation::find()?)?))
}

/// As [`start`], for a person: every cell ends with the line that says what it did; `live`, where it stands there while
/// the cell runs.
pub fn start_told(live: bool) -> Result<Arc<dyn Engine>, Failure> {
    Ok(Arc::new(WithFooter { engine: RustEngine::start(Installation::find()?)?, live }))
}

/// As [`start_told`], for the cells of a notebook: its dependencies are locked beside it.
pub fn start_for(notebook: &Path) -> Result<Arc<dyn Engine>, Failure> {
    let install = Installation { notebook: Some(notebook.to_owned()), ..Installation::find()? };
    Ok(Arc::new(WithFooter { engine: RustEngine::start(install)?, live: false }))
}

/// Ends listening for Ctrl-C when dropped.
pub struct Interrupts(Option<Handle>);

impl Drop for Interrupts {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.close();
        }
    }
}

/// Turns Ctrl-C and a polite request to end into an interrupt of the running cell, for as long as the answer lives.
/// Without it, the process would be gone before its session and its output file are in order.
pub fn interrupt_on_ctrl_c(engine: Arc<dyn Engine>) -> Interrupts {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return Interrupts(None);
    };
    let handle = signals.handle();
    std::thread::spawn(move || {
        signals.forever().for_each(|_| {
            engine.interrupt();
        })
    });
    Interrupts(Some(handle))
}
