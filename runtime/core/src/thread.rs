//! What a thread that traces is about: the line of user code it traces for, whether gradients are recorded, who shows values.
//! All of it is one thread-local, since recording an op asks for most of it.
use crate::clock::TIMED_ALONE;
use crate::sys;
use crate::text::{CELL_FILE, Place};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Thread {
    /// The line on whose behalf it traces: library code is never where something is said to come from.
    line: Cell<Option<Place>>,
    /// Whether ops are recorded for gradients.
    pub grad: Cell<bool>,
    /// Tensors are taken as they are physically, their buckets out of sight.
    pub physical: Cell<bool>,
    /// The body that it records.
    pub body: Cell<Option<InBody>>,
    /// The line that is showing values.
    pub shows: Cell<Option<Place>>,
    /// Ops it has recorded since the last sync, as long as there were few syncs.
    pub ops: Cell<u32>,
    /// The call of the user's that it works for, where that is several ops.
    call: RefCell<Option<Call>>,
    /// Syncs of the cell.
    syncs: Cell<u32>,
    /// The rank that it is of a program that runs on many devices.
    rank: Cell<Option<Rank>>,
    /// The place that was asked of last, and whether it is the user's: ops in a row are mostly of one.
    known: Cell<Option<(Place, bool)>>,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            line: Cell::new(None),
            grad: Cell::new(true),
            physical: Cell::new(false),
            body: Cell::new(None),
            shows: Cell::new(None),
            call: RefCell::new(None),
            ops: Cell::new(0),
            syncs: Cell::new(0),
            rank: Cell::new(None),
            known: Cell::new(None),
        }
    };
}

/// What is known of this thread.
#[inline]
pub fn thread<R>(f: impl FnOnce(&Thread) -> R) -> R {
    THREAD.with(f)
}

/// One of the threads that trace the same program, each for a device of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Its number, and its device.
    pub device: u8,
    /// How many nodes had been traced when the ranks began: older ones are from outside of them.
    pub since: u64,
}

/// Whether any thread is a rank: a look at it costs less than one at this thread's.
static RANKS: AtomicBool = AtomicBool::new(false);

/// Which rank this thread is; none outside of them.
#[inline]
pub fn rank() -> Option<Rank> {
    if RANKS.load(Ordering::Relaxed) { thread(|t| t.rank.get()) } else { None }
}

/// This thread is a rank from now on.
pub fn become_rank(rank: Rank) {
    RANKS.store(true, Ordering::Relaxed);
    thread(|t| t.rank.set(Some(rank)));
}

/// A call of several ops: what one of them refuses is refused in its name.
pub struct Call {
    pub op: &'static str,
    /// Their types.
    pub operands: Operands,
}

/// What is written only when something is refused.
pub type Operands = SmallVec<[&'static (dyn Display + Sync); 3]>;

/// Ends the outermost call when it goes, and puts the thread's line back.
pub struct Called {
    _line: Behalf,
    /// It is no part of another call: the user wrote it.
    pub outermost: bool,
}

impl Drop for Called {
    fn drop(&mut self) {
        if self.outermost {
            thread(|t| t.call.take());
        }
    }
}

/// Whether no call is under way: what is recorded now is what the user wrote.
pub fn is_outermost() -> bool {
    thread(|t| t.call.borrow().is_none())
}

/// As [`behalf`], and what is refused until the guard goes is refused in the name of this call, unless it is a part of another.
pub fn call(at: Place, op: &'static str, operands: Operands) -> Called {
    let outermost = is_outermost();
    if outermost {
        thread(|t| *t.call.borrow_mut() = Some(Call { op, operands }));
    }
    Called { _line: behalf(at), outermost }
}

/// What is recorded is a part of an op: the body of a loop, a branch.
#[derive(Clone, Copy, Debug)]
pub struct InBody {
    /// The op's name.
    pub op: &'static str,
    /// How many bodies are around what is recorded.
    pub depth: u8,
    /// How many nodes had been traced when it began.
    pub since: u64,
}

/// What an op is recorded with.
pub struct Recorder {
    /// As [`innermost`].
    pub at: Place,
    pub grad: bool,
    pub physical: bool,
    /// As [`InBody::depth`]; 0 in none.
    pub depth: u8,
    /// Which op of the thread it is since its last sync.
    pub nth: u32,
}

impl Thread {
    /// An op more on this thread, from `at`.
    #[inline]
    pub fn next_op(&self, at: Place) -> Recorder {
        let nth = self.ops.get().wrapping_add(1);
        self.ops.set(nth);
        let depth = self.body.get().map_or(0, |b| b.depth);
        Recorder { at: self.innermost(at), grad: self.grad.get(), physical: self.physical.get(), depth, nth }
    }

    fn innermost(&self, at: Place) -> Place {
        let users = match self.known.get().filter(|(last, _)| std::ptr::eq(*last, at)) {
            Some((_, users)) => users,
            None => is_users(at.file()),
        };
        self.known.set(Some((at, users)));
        if users { at } else { self.behind(at) }
    }

    /// The user's line that library code at `at` works for.
    fn behind(&self, at: Place) -> Place {
        let line = self.line.get().or_else(sys::statement);
        #[cfg(debug_assertions)]
        if line.is_none() && is_ours(at.file()) {
            let mut lost = LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if !lost.contains(&at) {
                lost.push(at);
            }
        }
        line.unwrap_or(at)
    }

    /// The call of several ops that goes on.
    pub fn take_call(&self) -> Option<Call> {
        self.call.take()
    }

    /// A sync more on this thread.
    pub fn synced(&self) {
        self.syncs.set(self.syncs.get().saturating_add(1));
        if self.syncs.get() <= TIMED_ALONE {
            self.ops.set(0);
        }
    }

    /// A cell begins on this thread: what it does first is timed.
    pub fn begin_cell(&self) {
        self.ops.set(0);
        self.syncs.set(0);
    }
}

/// The folder that this library's sources are under, as the compiler names it.
const FOLDER: &str = match file!().as_bytes().split_last_chunk::<18>() {
    Some((folder, b"core/src/thread.rs")) => match str::from_utf8(folder) {
        Ok(folder) => folder,
        Err(_) => panic!("a path that is text"),
    },
    _ => panic!("this file has moved"),
};

/// Whether a source file is the user's: neither this library's nor the standard library's.
fn is_users(file: &str) -> bool {
    if file.starts_with(CELL_FILE) {
        return true;
    }
    let std = || file.starts_with('/') && (file.starts_with("/rustc/") || file.contains("/rustlib/src/"));
    !is_ours(file) && !std()
}

fn is_ours(file: &str) -> bool {
    file.strip_prefix(FOLDER).is_some_and(|f| f.starts_with("src/") || f.starts_with("core/src/"))
}

/// The innermost line of the user's code that something at `at` comes from: `at` itself where it is the user's, else the
/// line that this thread traces on behalf of, else the statement of the cell that runs now.
pub fn innermost(at: Place) -> Place {
    thread(|t| t.innermost(at))
}

/// Lines of the library's that something was put down to for want of better ones: a method that traces in a closure says
/// whose line it is. For tests.
#[cfg(debug_assertions)]
static LOST: std::sync::Mutex<Vec<Place>> = std::sync::Mutex::new(Vec::new());

#[cfg(debug_assertions)]
pub fn lost_lines() -> Vec<String> {
    LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).iter().map(ToString::to_string).collect()
}

/// Puts the thread's line back when it goes.
pub struct Behalf(Option<Place>);

impl Drop for Behalf {
    fn drop(&mut self) {
        thread(|t| t.line.set(self.0));
    }
}

/// Puts what library code on this thread traces down to `at`, or where that is library code to the line that it works on
/// behalf of, until the guard goes.
pub fn behalf(at: Place) -> Behalf {
    let at = innermost(at);
    Behalf(thread(|t| t.line.replace(Some(at))))
}

/// As [`behalf`], of the caller's line: for what traces in closures, where `#[track_caller]` does not reach.
#[track_caller]
#[inline(never)]
pub fn caller_line() -> Behalf {
    behalf(std::panic::Location::caller())
}

/// As [`behalf`], for what is recorded on trial: it is gone before anybody could ask whose line it was.
#[track_caller]
pub fn nobodys() -> Behalf {
    Behalf(thread(|t| t.line.replace(Some(std::panic::Location::caller()))))
}

#[cfg(test)]
mod tests {
    use super::is_users;

    #[test]
    fn library_code_is_known_by_its_folder() {
        let here = std::panic::Location::caller().file();
        assert!(!is_users(here), "{here}");
        assert!(!is_users(&here.replace("core/src/thread.rs", "src/tensor/trace.rs")));
        assert!(is_users(&here.replace("core/src/thread.rs", "tests/explain.rs")));
        assert!(is_users("xlazy-cell-7") && is_users("src/main.rs") && is_users("/home/me/src/main.rs"));
        let adapter = Some(1).map(|_| std::panic::Location::caller().file());
        assert!(!is_users(adapter.unwrap()));
        assert!(!is_users("/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/ops/function.rs"));
        assert!(!is_users("/opt/rust/lib/rustlib/src/rust/library/core/src/option.rs"));
    }
}
