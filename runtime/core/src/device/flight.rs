//! Executions that are under way.
use super::wait::{ready, wait};
use crate::Result;
use crate::pod::{Buffer, Event};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Executions that were still running when the host went on. The plugin's destructors must not run under them.
static IN_FLIGHT: Mutex<Vec<Event>> = Mutex::new(Vec::new());

fn in_flight() -> MutexGuard<'static, Vec<Event>> {
    IN_FLIGHT.lock().unwrap_or_else(|p| p.into_inner())
}

/// Keeps an eye on an execution until it is done; small ones are done already.
pub fn watch(output: &Buffer) -> Result<()> {
    let ready = output.ready_event()?;
    if !ready.is_ready()? {
        let mut running = in_flight();
        running.push(ready);
    }
    Ok(())
}

/// A plugin lets the host wait when this many executions are under way (XLA's CPU client from 32 on), and that wait no
/// interrupt would end.
const AT_ONCE: usize = 24;

/// Waits until the device takes another execution at once: how long that took. Nothing has been given to it yet, so an
/// interrupt may unwind.
pub fn make_room() -> Result<Duration> {
    let mut waited = Duration::ZERO;
    loop {
        let oldest = {
            let mut running = in_flight();
            if running.len() >= AT_ONCE {
                running.retain(|e| !e.is_ready().unwrap_or(true));
            }
            match running.len() >= AT_ONCE {
                true => running[0].clone(),
                false => return Ok(waited),
            }
        };
        let start = Instant::now();
        // An error of another execution is told where its value is read; one of the way to it leaves it under way.
        if let Err(e) = wait(&oldest)
            && !oldest.is_ready().unwrap_or(true)
        {
            return Err(e);
        }
        waited += start.elapsed();
    }
}

/// The first execution of a program was interrupted before it ended: the next one settles.
static UNSETTLED: AtomicBool = AtomicBool::new(false);

pub fn is_unsettled() -> bool {
    UNSETTLED.load(Ordering::Relaxed)
}

/// Waits for the first execution of a new program. In it XLA sets up statics, whose destructors would otherwise run before a
/// wait at exit that was registered earlier, under running executions: true when it is time to register one.
pub fn settle(output: Option<&Buffer>) -> Result<bool> {
    let settled = match output {
        Some(output) => ready(&output.ready_event()?)?,
        None => true,
    };
    UNSETTLED.store(!settled, Ordering::Relaxed);
    Ok(settled)
}

/// Waits for what is still running, when the process exits.
pub fn wait_for_all() {
    // An exit from within a sync holds the lock: then there is nobody left who could run into the destructors.
    if let Ok(mut running) = IN_FLIGHT.try_lock() {
        running.drain(..).for_each(|e| drop(e.await_ready()));
    }
}
