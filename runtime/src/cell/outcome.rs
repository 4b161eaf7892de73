//! How a cell ends: an error from `?`, a panic, a failed op, an interrupt.
use super::Interrupted;
use crate::Raised;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use xlazy_core::sys::statement;
use xlazy_core::text::{self, Place};
use xlazy_mime::{Fault, Outcome};

thread_local! {
    static OUTCOME: RefCell<Option<Outcome>> = const { RefCell::new(None) };
    /// What the panic hook saw last on this thread.
    static PANIC: Cell<Option<Fault>> = const { Cell::new(None) };
    /// The error that a `?` stopped the cell with.
    static STOPPED: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Panics of a cell are told in its error reply; those of other threads go to stderr, with the cell's line.
pub(super) fn install_hook() {
    std::panic::set_hook(Box::new(|info| {
        let message = payload_text(info.payload());
        let (file, line, column) = info.location().map(|l| (l.file(), l.line(), l.column())).unwrap_or(("", 0, 0));
        if xlazy_core::sys::is_cell_thread() {
            let notes = info.location().and_then(|l| caller(l, statement())).into_iter().collect();
            let file = file.to_owned();
            PANIC.set(Some(Fault { name: "Panic".into(), message, file, line, column, notes }));
        } else {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("<unnamed>");
            super::streams::print_text(
                true,
                format_args!("thread '{name}' panicked at {file}:{line}:{column}:\n{message}\n"),
            );
        }
    }));
}

/// Runs a cell's body and keeps how it ended for [`take`]; true when it came to its end.
#[doc(hidden)]
#[inline(never)]
pub fn catch(body: &mut dyn FnMut() -> Result<(), Stop>) -> bool {
    run(&mut || body().is_ok())
}

/// As [`catch`], for errors that have only `Debug`.
#[doc(hidden)]
#[inline(never)]
pub fn catch_debug(body: &mut dyn FnMut() -> Result<(), StopDebug>) -> bool {
    run(&mut || body().is_ok())
}

/// As [`catch`], for a body that returns an error of its own.
#[doc(hidden)]
pub fn catch_as<'a, E: Into<Box<dyn Error + 'a>>>(body: &mut dyn FnMut() -> Result<(), E>) -> bool {
    run(&mut || body().map_err(|error| returned(&*error.into())).is_ok())
}

fn returned(error: &(dyn Error + '_)) {
    stopped_by(error, None);
}

fn run(body: &mut dyn FnMut() -> bool) -> bool {
    PANIC.set(None);
    STOPPED.set(None);
    let outcome = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(true) => Outcome::Ok,
        Ok(false) => Outcome::Failed(STOPPED.take().unwrap_or_default()),
        Err(payload) => of_panic(&*payload),
    };
    let completed = outcome == Outcome::Ok;
    OUTCOME.set(Some(outcome));
    completed
}

/// How the cell ended. An unwind that got past [`catch`] (a panicking drop) is in `result`.
pub(super) fn take(result: Result<(), Box<dyn Any + Send>>) -> Outcome {
    let kept = OUTCOME.take();
    match result {
        Err(payload) => of_panic(&*payload),
        // The cell noticed nothing (a thread it joined did, or its last sleep was cut short): the user did interrupt it.
        Ok(()) if xlazy_core::sys::interrupted() => Outcome::Interrupted,
        Ok(()) => kept.unwrap_or(Outcome::Ok),
    }
}

fn of_panic(payload: &(dyn Any + Send)) -> Outcome {
    if payload.is::<Interrupted>() {
        return Outcome::Interrupted;
    }
    if let Some(raised) = payload.downcast_ref::<Raised>() {
        // What a worker's end ends is none of the cell's doing, and the kernel knows it by this name.
        let name = if matches!(raised.error, xlazy_core::Error::Pod { .. }) { "PodError" } else { "TensorError" };
        let mut fault = located(name, raised.error.to_string(), raised.at);
        fault.notes.extend(caller(raised.at, raised.statement));
        return Outcome::Failed(fault);
    }
    let unseen = || Fault { name: "Panic".into(), message: payload_text(payload), ..Fault::default() };
    let mut fault = PANIC.take().unwrap_or_else(unseen);
    // A library's line says little without the cell's.
    if !fault.file.starts_with(text::CELL_FILE) && super::at::line() > 0 {
        fault.notes.push(in_statement());
    }
    Outcome::Failed(fault)
}

fn in_statement() -> String {
    format!("in the statement on line {} of the cell", super::at::line())
}

/// What there is to say besides of where code of a cell was called from.
fn caller(at: &Location, statement: Option<Place>) -> Option<String> {
    let from = at.file().starts_with(text::CELL_FILE).then(|| text::called_from(at, statement))??;
    Some(format!("called from {}", text::location(from)))
}

/// What a panic or a failed op said.
pub(super) fn said(payload: &(dyn Any + Send)) -> String {
    PANIC.set(None);
    payload.downcast_ref::<Raised>().map_or_else(|| payload_text(payload), |raised| raised.error.to_string())
}

fn payload_text(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic with a payload that is not text".to_owned()
    }
}

fn located(name: &str, message: String, at: &Location) -> Fault {
    let (file, line, column) = (at.file().to_owned(), at.line(), at.column());
    Fault { name: name.to_owned(), message, file, line, column, notes: Vec::new() }
}

/// What a cell's `?` returns: any error that converts into a boxed one. It is empty, so that a cell need not know how
/// to drop it; the error and the line of the `?` wait in the thread.
#[doc(hidden)]
pub struct Stop(());

// An error may borrow, as that of a lock: nothing of it stays.
impl<'a, E: Into<Box<dyn Error + 'a>>> From<E> for Stop {
    #[track_caller]
    fn from(error: E) -> Stop {
        stopped_by(&*error.into(), Some(Location::caller()));
        Stop(())
    }
}

/// As [`Stop`], for errors that have only `Debug`.
#[doc(hidden)]
pub struct StopDebug(());

impl<E: std::fmt::Debug> From<E> for StopDebug {
    #[track_caller]
    fn from(error: E) -> StopDebug {
        let at = Location::caller();
        match xlazy_core::sys::as_boxed_error(&error) {
            Some(error) => stopped_by(&**error, Some(at)),
            None => STOPPED.set(Some(located("Error", format!("{error:?}"), at))),
        }
        StopDebug(())
    }
}

#[inline(never)]
fn stopped_by(error: &(dyn Error + '_), at: Option<&Location>) {
    let said = error.to_string();
    let mut fault = match at {
        Some(at) => located("Error", said, at),
        None => Fault { name: "Error".into(), message: said, notes: vec![in_statement()], ..Fault::default() },
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        fault.notes.push(format!("caused by: {error}"));
        cause = error.source();
    }
    STOPPED.set(Some(fault));
}
