//! Events: something asynchronous that will end, well or with an error.
use crate::api::{Api, Handle, resource};
use crate::c::{self, Call, PJRT_Error, PJRT_Event, Struct};
use crate::{Client, Result};
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

resource!(PJRT_Event, "the event", PJRT_Event_Destroy_Args, event, EVENTS);

/// Something asynchronous on a device; clones are the same event.
#[derive(Clone)]
pub struct Event(Arc<Inner>);

struct Inner {
    handle: Handle<PJRT_Event>,
    // After the handle: dropped last.
    _client: Client,
}

impl Event {
    pub(crate) fn new(handle: Handle<PJRT_Event>, client: Client) -> Event {
        Event(Arc::new(Inner { handle, _client: client }))
    }

    /// Blocks until the event has come.
    ///
    /// Errors: what went wrong in what the event stands for.
    pub fn await_ready(&self) -> Result<()> {
        await_ready(&self.0.handle)
    }

    /// Whether the event has come, well or with an error.
    pub fn is_ready(&self) -> Result<bool> {
        is_ready(&self.0.handle)
    }

    /// Calls `then` once the event has come: at once on this thread if it already has, otherwise on a thread of the plugin,
    /// which it must not hold up. A panic in `then` goes no further.
    ///
    /// Errors: the plugin refuses; `then` is dropped without being called.
    pub fn on_ready(&self, then: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        let api = self.0.handle.api;
        let callback = Box::into_raw(Box::new(Callback { then: Box::new(then), event: self.clone(), api }));
        let mut args = c::PJRT_Event_OnReady_Args {
            event: self.0.handle.raw(),
            callback: Some(call_back),
            user_arg: callback.cast(),
            ..Struct::zeroed()
        };
        // SAFETY: the event is alive and stays so until the callback has run, which owns a clone of it.
        unsafe { api.call(&mut args) }.inspect_err(|_| {
            // SAFETY: a refused callback is not called, so the box is still ours.
            drop(unsafe { Box::from_raw(callback) });
        })
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Event(ready: {:?})", self.is_ready())
    }
}

pub(crate) fn await_ready(event: &Handle<PJRT_Event>) -> Result<()> {
    // SAFETY: the event is alive.
    unsafe { event.api.call(&mut c::PJRT_Event_Await_Args { event: event.raw(), ..Struct::zeroed() }) }
}

pub(crate) fn is_ready(event: &Handle<PJRT_Event>) -> Result<bool> {
    let mut args = c::PJRT_Event_IsReady_Args { event: event.raw(), ..Struct::zeroed() };
    // SAFETY: the event is alive.
    unsafe { event.api.call(&mut args) }?;
    Ok(args.is_ready != 0)
}

/// Whether this thread is inside a callback of a plugin. A client must not be destroyed there: it would wait for the
/// very thread that it is being destroyed on.
pub(crate) fn in_callback() -> bool {
    IN_CALLBACK.get()
}

thread_local! {
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

struct Callback {
    then: Box<dyn FnOnce(Result<()>) + Send>,
    event: Event,
    api: &'static Api,
}

/// # Safety
/// Called once by the plugin, with an error that is now ours and the callback that `on_ready` passed.
unsafe extern "C" fn call_back(error: *mut PJRT_Error, callback: *mut c_void) {
    // SAFETY: `on_ready` made it with Box::into_raw, and the plugin calls back once.
    let Callback { then, event, api } = *unsafe { Box::from_raw(callback.cast::<Callback>()) };
    let result = match error.is_null() {
        true => Ok(()),
        // SAFETY: ownership of the error passes to the callback.
        false => Err(unsafe { api.take_error(c::PJRT_Event_OnReady_Args::NAME, error) }),
    };
    let outer = IN_CALLBACK.replace(true);
    let run = AssertUnwindSafe(|| {
        then(result);
        drop(event);
    });
    if let Err(panic) = catch_unwind(run) {
        // Dropping a payload may panic again, and nothing may unwind into the plugin.
        std::mem::forget(panic);
    }
    IN_CALLBACK.set(outer);
}
