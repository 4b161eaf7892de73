//! Printing, reading from the user and sleeping, as a cell does them.
use super::link;
use crate::tensor::showing;
use std::panic::Location;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use xlazy_mime::Tell;

pub(super) static ANSWERS: Mutex<Option<Receiver<Result<String, String>>>> = Mutex::new(None);

/// How long a wait may go without looking for an interrupt.
const SLICE: Duration = Duration::from_millis(10);

/// Asks the user for a line of text. The error says why there is no answer.
pub fn input(prompt: &str) -> Result<String, String> {
    ask(prompt, false)
}

/// As [`input`], without showing what is typed.
pub fn input_password(prompt: &str) -> Result<String, String> {
    ask(prompt, true)
}

fn ask(prompt: &str, password: bool) -> Result<String, String> {
    match question(prompt, password) {
        Some(answer) => answer,
        None => {
            xlazy_core::sys::check_interrupt();
            Err("the cell was interrupted".into())
        }
    }
}

/// Waits for the user's answer; `None` when an interrupt came first.
fn question(prompt: &str, password: bool) -> Option<Result<String, String>> {
    let answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(answers) = answers.as_ref().filter(|_| super::running()) else {
        return Some(Err("input works only while a cell runs".into()));
    };
    while answers.try_recv().is_ok() {} // an answer that came too late for an interrupted cell
    link::send(&Tell::AskInput { prompt: prompt.to_owned(), password });
    while !xlazy_core::sys::interrupted() {
        match answers.recv_timeout(SLICE) {
            Ok(answer) => return Some(answer),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Some(Err("the kernel is gone".into())),
        }
    }
    None
}

/// What of a line was longer than the memory that asked for it.
static REST: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// For a read of standard input: at most `size` bytes of what the user answers, or the error's number. `None` outside of
/// a session, where there is nobody to ask. It must not unwind, since C calls it.
pub(crate) fn line_of_input(size: usize) -> Option<Result<Vec<u8>, i32>> {
    if !link::connected() {
        return None;
    }
    let mut rest = REST.lock().unwrap_or_else(PoisonError::into_inner);
    if rest.is_empty() {
        match question("", false) {
            Some(Ok(line)) => rest.extend(line.bytes().chain([b'\n'])),
            Some(Err(why)) => {
                print_line(true, format_args!("note: standard input has nothing to read: {why}"));
                return Some(Err(xlazy_core::sys::NOT_SUPPORTED));
            }
            None => return Some(Err(xlazy_core::sys::CANCELLED)),
        }
    }
    let size = size.min(rest.len());
    Some(Ok(rest.drain(..size).collect()))
}

/// Takes what is written to the standard output itself, by `writeln!(std::io::stdout(), …)`, as printed. It must not unwind, since C
/// calls it.
pub(crate) fn printed(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| link::text(false, format_args!("{text}")))
}

/// Sleeps; an interrupt ends it at once, and the cell with it.
pub fn sleep(duration: Duration) {
    let end = Instant::now() + duration;
    loop {
        xlazy_core::sys::check_interrupt();
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left);
    }
}

/// `println!`: the text and its newline in one piece, so that lines of several threads do not mix.
#[doc(hidden)]
#[inline(never)]
#[track_caller]
pub fn print_line(stderr: bool, args: std::fmt::Arguments) {
    print_text(stderr, format_args!("{args}\n"));
}

// Tensors among the arguments are shown by the line that prints them.
#[doc(hidden)]
#[inline(never)]
#[track_caller]
pub fn print_text(stderr: bool, args: std::fmt::Arguments) {
    showing(Location::caller(), || {
        if !link::text(stderr, args) {
            match stderr {
                true => std::eprint!("{args}"),
                false => std::print!("{args}"),
            }
        }
    });
}

#[doc(hidden)]
#[inline(never)]
#[track_caller]
pub fn format(args: std::fmt::Arguments) -> String {
    showing(Location::caller(), || std::fmt::format(args))
}

/// `std::format!`; tensors in it are shown by this line.
#[macro_export]
macro_rules! format {
    ($($arg:tt)*) => { $crate::cell::rt::format(::std::format_args!($($arg)*)) };
}

/// `std::print!`, in exact order with the cell's displays.
#[macro_export]
macro_rules! print {
    ($($arg:tt)*) => { $crate::cell::rt::print_text(false, ::std::format_args!($($arg)*)) };
}

/// `std::println!`, in exact order with the cell's displays.
#[macro_export]
macro_rules! println {
    () => { $crate::cell::rt::print_text(false, ::std::format_args!("\n")) };
    ($($arg:tt)*) => { $crate::cell::rt::print_line(false, ::std::format_args!($($arg)*)) };
}

/// `std::eprint!`, in exact order with the cell's displays.
#[macro_export]
macro_rules! eprint {
    ($($arg:tt)*) => { $crate::cell::rt::print_text(true, ::std::format_args!($($arg)*)) };
}

/// `std::eprintln!`, in exact order with the cell's displays.
#[macro_export]
macro_rules! eprintln {
    () => { $crate::cell::rt::print_text(true, ::std::format_args!("\n")) };
    ($($arg:tt)*) => { $crate::cell::rt::print_line(true, ::std::format_args!($($arg)*)) };
}

/// `std::dbg!`, in exact order with the cell's displays; it names the cell's line.
#[macro_export]
macro_rules! dbg {
    () => { $crate::cell::rt::print_text(true, ::std::format_args!("[line {}]\n", ::std::line!())) };
    ($value:expr $(,)?) => {
        match $value {
            value => {
                $crate::cell::rt::print_text(
                    true,
                    ::std::format_args!("[line {}] {} = {:#?}\n", ::std::line!(), ::std::stringify!($value), &value),
                );
                value
            }
        }
    };
    ($($value:expr),+ $(,)?) => { ($($crate::dbg!($value)),+,) };
}
