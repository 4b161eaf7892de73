//! Waits for the device. An interrupt ends the wait and not the work: the device finishes aside.
use crate::pod::Event;
use crate::{Result, sys};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How long a wait goes without looking for an interrupt.
pub const LOOK_UP: Duration = Duration::from_millis(20);

/// Waits until the event has come; false when an interrupt came first. Does not unwind, so that the caller can put in its
/// place what the device is working on.
///
/// Errors: what went wrong in what the event stands for.
pub fn ready(event: &Event) -> Result<bool> {
    if !crate::host::running() || event.is_ready()? {
        event.await_ready()?;
        return Ok(true);
    }
    let (tell, told) = channel();
    event.on_ready(move |result| drop(tell.send(result)))?;
    loop {
        match told.recv_timeout(LOOK_UP) {
            Ok(result) => return Ok(result.map(|()| true)?),
            Err(RecvTimeoutError::Timeout) if sys::interrupt_is_due() => return Ok(false),
            // A worker that is not heard of may never answer.
            Err(RecvTimeoutError::Timeout) => event.trouble()?,
            // The plugin dropped the callback without calling it.
            Err(RecvTimeoutError::Disconnected) => {
                event.await_ready()?;
                return Ok(true);
            }
        }
    }
}

/// As [`ready`], and unwinds at an interrupt.
pub fn wait(event: &Event) -> Result<()> {
    if !ready(event)? {
        sys::check_interrupt();
    }
    Ok(())
}
