//! The way to the kernel: one locked writer for the frames of all threads, with stream text gathered into larger frames.
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use xlazy_mime::{Frame, Tell};

struct Link {
    state: Mutex<Outgoing>,
    /// Tells the flusher that text waits.
    waiting: Condvar,
    /// The last fence that the kernel has come to.
    passed: Mutex<u64>,
    drained: Condvar,
    /// Whose it is.
    process: u32,
}

struct Outgoing {
    out: std::fs::File,
    text: String,
    stderr: bool,
    fences: u64,
}

static LINK: OnceLock<Link> = OnceLock::new();

/// Text that nothing else pushes out is sent after this long: a million small prints become a few hundred frames.
const GATHER: Duration = Duration::from_millis(8);
const GATHER_BYTES: usize = 32 << 10;

/// Frames go to this descriptor from now on.
pub fn connect(out: OwnedFd) {
    let state = Outgoing { out: out.into(), text: String::new(), stderr: false, fences: 0 };
    let (waiting, drained, process) = (Condvar::new(), Condvar::new(), std::process::id());
    let link = Link { state: Mutex::new(state), waiting, passed: Mutex::new(0), drained, process };
    let _ = LINK.set(link);
    let _ = std::thread::Builder::new().name("xlazy-streams".into()).spawn(flush_late_text);
}

/// Whether this is a process that a cell has forked: the line is not its own.
pub fn is_forked() -> bool {
    LINK.get().is_some_and(|link| link.process != std::process::id())
}

pub fn connected() -> bool {
    LINK.get().is_some()
}

/// Sends one frame; everything printed before it goes first.
pub fn send(tell: &Tell) {
    let Some(link) = LINK.get().filter(|_| !is_forked()) else { return };
    // Raw writers' buffered text belongs before a display. The lock of stdout comes first everywhere.
    let _ = std::io::stdout().flush();
    let mut state = lock(link);
    state.flush();
    state.put(tell);
}

/// How long a wait for the kernel goes without looking for an interrupt.
const LOOK_UP: Duration = Duration::from_millis(20);

/// Sends a frame that what is written raw afterwards must not overtake: C code and child processes have pipes of their
/// own, so the kernel says when it has read the frame and everything that was written before.
pub fn send_in_order(tell: &Tell) {
    let Some(link) = LINK.get().filter(|_| !is_forked()) else { return };
    let _ = std::io::stdout().flush();
    let mut state = lock(link);
    state.flush();
    state.put(tell);
    state.fences += 1;
    let fence = state.fences;
    state.put(&Tell::Fence(fence));
    drop(state);
    let mut passed = link.passed.lock().unwrap_or_else(PoisonError::into_inner);
    while *passed < fence {
        passed = link.drained.wait_timeout(passed, LOOK_UP).unwrap_or_else(PoisonError::into_inner).0;
        xlazy_core::sys::check_interrupt();
    }
}

/// The kernel has come to this fence.
pub fn drained(fence: u64) {
    let Some(link) = LINK.get() else { return };
    *link.passed.lock().unwrap_or_else(PoisonError::into_inner) = fence;
    link.drained.notify_all();
}

/// Adds printed text; false when there is no kernel to print to.
pub fn text(stderr: bool, args: std::fmt::Arguments) -> bool {
    let Some(link) = LINK.get().filter(|_| !is_forked()) else { return false };
    // Formatting runs user code, which may print itself: never under the lock.
    let text = match args.as_str() {
        Some(text) => std::borrow::Cow::Borrowed(text),
        None => std::borrow::Cow::Owned(args.to_string()),
    };
    let mut state = lock(link);
    if state.stderr != stderr {
        state.flush();
        state.stderr = stderr;
    }
    let first = state.text.is_empty();
    state.text.push_str(&text);
    if state.text.len() >= GATHER_BYTES {
        state.flush();
    } else if first && !state.text.is_empty() {
        link.waiting.notify_one();
    }
    true
}

fn lock(link: &Link) -> MutexGuard<'_, Outgoing> {
    link.state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn flush_late_text() {
    let Some(link) = LINK.get() else { return };
    loop {
        let state = lock(link);
        drop(link.waiting.wait_while(state, |s| s.text.is_empty()));
        std::thread::sleep(GATHER);
        lock(link).flush();
    }
}

impl Outgoing {
    fn flush(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.put(&Tell::Stream { stderr: self.stderr, text });
        }
    }

    fn put(&mut self, tell: &Tell) {
        let sent = match tell.send(&mut self.out) {
            Err(e) if e.kind() == std::io::ErrorKind::FileTooLarge => {
                let text = "note: what was to be shown is larger than 512 MB and was left out\n".to_owned();
                Tell::Stream { stderr: true, text }.send(&mut self.out)
            }
            sent => sent,
        };
        // Without its kernel a session has nobody to work for.
        if sent.is_err() {
            std::process::exit(0);
        }
    }
}
