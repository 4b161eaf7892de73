//! Letting Ctrl-C reach the engine.
use crate::engine::Engine;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::sync::Arc;

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
pub fn interrupts(engine: Arc<dyn Engine>) -> Interrupts {
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
