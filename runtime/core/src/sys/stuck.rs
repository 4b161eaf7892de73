//! Waits of the standard library that begin again after every signal: locks, channels, barriers, `join`, scopes.
//!
//! None of them can be unwound: `futex(2)` is reached by a foreign function that must not unwind, `park` aborts when it is
//! unwound, a channel's wait has its own stack's addresses in the channel, and a scope's threads borrow it. So an interrupt
//! has three ways here. A wait that may end for no reason does (`park`, condition variables), and the cell looks for
//! interrupts behind it. One that has an error gets it (`join`). From all others the thread never comes back: it stays in
//! the system call for good, with its stack and what it borrows, while another thread takes over the variables and goes on
//! as the cell thread. What the cell had taken is lost, and said to be. Code that is not the cell's own (the runtime, a
//! plugin) is never left like that, for it may hold a lock.
use super::flag::{CELL_THREAD, INTERRUPTED, SINCE, monotonic_ms};
use std::ffi::{CStr, OsStr, c_char, c_int, c_long, c_void};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How long a wait has to end by itself after an interrupt: other threads of the cell, for which it may wait, follow the
/// interrupt, too.
const LEAVE_AFTER_MS: u64 = 150;

/// A wait that would end by itself within this time may do so, for a second.
const SOON: Duration = Duration::from_millis(500);
const AT_LAST_MS: u64 = 1000;

/// How long `join` goes without looking for an interrupt.
const LOOK_UP: Duration = Duration::from_millis(20);

/// Has another thread take over the cell thread's work; false where it cannot. Called on the cell thread.
pub type TakeOver = fn() -> bool;
static TAKE_OVER: OnceLock<TakeOver> = OnceLock::new();

/// What a cell thread does before it is left behind.
pub fn on_leave(take_over: TakeOver) {
    let _ = TAKE_OVER.set(take_over);
}

/// A value that goes from a thread which never runs again to the one that takes its place, so that it need not be `Send`.
pub struct Inherited<T>(T);

// SAFETY: see `Inherited::leave`.
unsafe impl<T> Send for Inherited<T> {}

impl<T> Inherited<T> {
    /// Only for `TakeOver`, after which the thread runs no code any more, so that there is still but one that uses the value
    /// and what shares it.
    pub fn leave(value: T) -> Inherited<T> {
        Inherited(value)
    }

    pub fn take(self) -> T {
        self.0
    }
}

/// Whether the cell thread should be left in this wait: it was interrupted, it has had its time, and it is the cell itself
/// that waits.
fn is_stuck() -> bool {
    ended_by_interrupt() && crate::host::running() && interrupted_for_ms() > LEAVE_AFTER_MS && called_by_the_cell()
}

fn interrupted_for_ms() -> u64 {
    monotonic_ms().saturating_sub(SINCE.load(Ordering::Relaxed))
}

/// The interrupt after which nobody could take over, by the time when it came.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Ends the calling thread's life as the cell thread; comes back only where nobody could take over.
fn leave() {
    let since = SINCE.load(Ordering::Relaxed);
    if TAKE_OVER.get().is_none_or(|take_over| !take_over()) {
        REFUSED.store(since, Ordering::Relaxed);
    } else {
        CELL_THREAD.set(false);
        loop {
            // SAFETY: waits for signals, whose handlers do nothing here.
            unsafe { libc::pause() };
        }
    }
}

/// Tells the user what a cell is in that an interrupt does not end.
pub type Tell = fn(&str);
static TELL: OnceLock<Tell> = OnceLock::new();
/// Which interrupt was told of, by the time when it came.
static TOLD: AtomicU64 = AtomicU64::new(0);

/// A cell goes on for this long after an interrupt before it is said why.
const TELL_AFTER_MS: u64 = 700;

/// Says by `tell` what a cell is in that does not end.
pub fn on_stuck(tell: Tell) {
    let _ = TELL.set(tell);
}

/// The cell thread was disturbed, not for the first time perhaps.
pub(super) fn disturbed(thread: i32) {
    let since = SINCE.load(Ordering::Relaxed);
    if interrupted_for_ms() < TELL_AFTER_MS || TOLD.swap(since, Ordering::Relaxed) == since {
        return;
    }
    // On a thread of its own: what the cell thread is stuck in may be the way to the kernel.
    if let Some(tell) = TELL.get() {
        let _ = std::thread::Builder::new().spawn(move || tell(&occupation(thread)));
    }
}

/// What a thread of this process is doing, as far as Linux knows.
fn occupation(thread: i32) -> String {
    let read = |what: &str| std::fs::read_to_string(format!("/proc/self/task/{thread}/{what}")).unwrap_or_default();
    // It has just been disturbed: a wait is what it is found in again and again.
    let look = |_| {
        std::thread::sleep(Duration::from_millis(2));
        read("syscall").split_whitespace().next().and_then(|n| n.parse::<c_long>().ok())
    };
    match (0..10).find_map(look) {
        Some(libc::SYS_futex) => "waits for a lock or another thread, where nothing can end it".into(),
        Some(libc::SYS_wait4 | libc::SYS_waitid) => "waits for a child process".into(),
        Some(libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_ppoll | libc::SYS_poll | libc::SYS_select) => {
            "waits for a file or a connection".into()
        }
        Some(n) => format!("waits in system call {n}"),
        None => "computes in code that does not look for interrupts".into(),
    }
}

/// Where the object of the running cell lies in memory.
static CELL_OBJECT: AtomicUsize = AtomicUsize::new(0);

/// A cell's object was loaded.
pub(super) fn loaded(entry: *const c_void) {
    CELL_OBJECT.store(object_of(entry as usize), Ordering::Relaxed);
}

/// The address at which the object with this code begins; 0 where there is none.
fn object_of(code: usize) -> usize {
    // SAFETY: `info` is a valid place for the answer, and any address may be asked about.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        match libc::dladdr(code as *const c_void, &mut info) {
            0 => 0,
            _ => info.dli_fbase as usize,
        }
    }
}

unsafe extern "C" {
    fn _Unwind_Backtrace(frame: extern "C" fn(*mut c_void, *mut c_void) -> c_int, walk: *mut c_void) -> c_int;
    fn _Unwind_GetIP(frame: *mut c_void) -> usize;
}

/// A walk up the stack, from the wait to whoever waits.
struct Walk {
    runtime: usize,
    cell: usize,
    /// Past the functions of this file.
    outside: bool,
    cells: bool,
}

extern "C" fn look_at(frame: *mut c_void, walk: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const STOP: c_int = 5;
    // SAFETY: the walk that `called_by_the_cell` hands over, which nobody else uses meanwhile.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    // SAFETY: a frame that the unwinder gave. The address is behind the call, which may be another object's first byte.
    let object = object_of(unsafe { _Unwind_GetIP(frame) }.saturating_sub(1));
    if object == walk.runtime && !walk.outside {
        return GO_ON;
    }
    walk.outside = true;
    walk.cells = object == walk.cell;
    if walk.cells || object == walk.runtime { STOP } else { GO_ON }
}

/// Whether the wait is the cell's: on the way up to it there are libraries, but not the runtime, which may hold a lock.
fn called_by_the_cell() -> bool {
    let runtime = object_of(look_at as *const () as usize);
    let mut walk = Walk { runtime, cell: CELL_OBJECT.load(Ordering::Relaxed), outside: false, cells: false };
    // SAFETY: the walk outlives the call.
    unsafe { _Unwind_Backtrace(look_at, (&raw mut walk).cast()) };
    walk.cell != 0 && walk.cells
}

/// `syscall(2)`, ahead of libc's own symbol: the standard library, and who does as it does, waits by `futex(2)`. When the
/// cell thread is disturbed in such a wait by an interrupt, it ends as if the value had changed, which everybody who waits
/// must expect; a wait that then begins again, and again, is left.
///
/// # Safety
/// As for `syscall(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: the caller's arguments are handed on unchanged; a system call takes no notice of those that it does not have.
    let answer = unsafe { raw(number, [a, b, c, d, e, f]) };
    if !(-4095..0).contains(&answer) {
        return answer;
    }
    let mut code = -answer as c_int;
    if code == libc::EINTR && number == libc::SYS_futex && is_wait(b) && ended_by_interrupt() {
        // SAFETY: the arguments of a futex wait.
        let soon = unsafe { ends_soon(b, d) } && interrupted_for_ms() < AT_LAST_MS;
        if !soon && is_stuck() {
            leave();
        }
        code = libc::EAGAIN;
    }
    set_errno(code);
    -1
}

/// Whether the signal was an interrupt's.
fn ended_by_interrupt() -> bool {
    CELL_THREAD.get() && INTERRUPTED.load(Ordering::Relaxed)
}

fn is_wait(operation: c_long) -> bool {
    matches!(operation as c_int & libc::FUTEX_CMD_MASK, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET)
}

/// Whether a futex wait has an end, as the standard library gives it, and not far away.
///
/// # Safety
/// The arguments are those of a futex wait.
unsafe fn ends_soon(operation: c_long, end: c_long) -> bool {
    let until_a_time = operation as c_int & libc::FUTEX_CMD_MASK == libc::FUTEX_WAIT_BITSET
        && operation as c_int & libc::FUTEX_CLOCK_REALTIME == 0;
    if !until_a_time || end == 0 {
        return false;
    }
    // SAFETY: a wait that Linux has accepted has a valid time.
    let end = unsafe { *(end as *const libc::timespec) };
    let end = end.tv_sec as u64 * 1000 + end.tv_nsec as u64 / 1_000_000;
    end.saturating_sub(monotonic_ms()) < SOON.as_millis() as u64
}

/// `epoll_wait(2)`, ahead of libc's own symbol: reactors of dependencies begin it again after every signal.
///
/// # Safety
/// As for `epoll_wait(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(fd: c_int, events: *mut libc::epoll_event, most: c_int, timeout: c_int) -> c_int {
    // SAFETY: the caller's arguments are handed on unchanged; no signals are masked.
    let answer =
        unsafe { raw(libc::SYS_epoll_pwait, [fd.into(), events as c_long, most.into(), timeout.into(), 0, 8]) };
    if answer >= 0 {
        return answer as c_int;
    }
    if -answer as c_int == libc::EINTR && is_stuck() {
        leave();
    }
    set_errno(-answer as c_int);
    -1
}

/// # Safety
/// As for the system call.
unsafe fn raw(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let answer;
    // SAFETY: the convention of Linux for x86-64.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") number => answer, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
            in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    answer
}

fn set_errno(code: c_int) {
    // SAFETY: errno is this thread's own.
    unsafe { *libc::__errno_location() = code };
}

unsafe extern "C" {
    fn pthread_timedjoin_np(thread: libc::pthread_t, value: *mut *mut c_void, until: *const libc::timespec) -> c_int;
}

/// `JoinHandle::join` ends up here, ahead of libc's own symbol. Where an interrupt finds the cell waiting for a thread that
/// does not end, it gets an error, with which the standard library panics; the thread is nobody's then.
///
/// # Safety
/// As for `pthread_join(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_join(thread: libc::pthread_t, value: *mut *mut c_void) -> c_int {
    loop {
        let mut until = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `until` is a valid timespec.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut until) };
        // Nobody ends the waits of other threads; they look now and then all the same, for nothing but themselves.
        let slice = if CELL_THREAD.get() { LOOK_UP } else { Duration::from_secs(3600) };
        let nanos = until.tv_nsec + slice.subsec_nanos() as c_long;
        until.tv_sec += slice.as_secs() as libc::time_t + (nanos / 1_000_000_000) as libc::time_t;
        until.tv_nsec = nanos % 1_000_000_000;
        // SAFETY: the caller's arguments, and a valid time.
        match unsafe { pthread_timedjoin_np(thread, value, &until) } {
            libc::ETIMEDOUT => {}
            code => return code,
        }
        if is_stuck() {
            // SAFETY: a thread that nobody has joined yet, and that its owner takes for joined.
            unsafe { libc::pthread_detach(thread) };
            return libc::ECANCELED;
        }
    }
}

/// `system(3)`, ahead of libc's own symbol, whose wait no signal ends: an interrupt ends the command, with what it has
/// started, and the call with ECANCELED.
///
/// # Safety
/// As for `system(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    if command.is_null() {
        return 1;
    }
    // SAFETY: the caller's string.
    let command = OsStr::from_bytes(unsafe { CStr::from_ptr(command) }.to_bytes());
    const NOT_STARTED: c_int = 127 << 8;
    let Ok(mut child) = Command::new("/bin/sh").arg("-c").arg(command).process_group(0).spawn() else {
        return NOT_STARTED;
    };
    match child.wait() {
        Ok(status) => status.into_raw(),
        Err(why) => {
            let code = why.raw_os_error().unwrap_or(libc::ECANCELED);
            // SAFETY: its own group, which exists as long as nobody has waited for it.
            unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
            // It ends at once; an interrupt disturbs this wait, too.
            while child.wait().is_err_and(|e| e.raw_os_error() == Some(libc::ECANCELED)) {}
            set_errno(code);
            -1
        }
    }
}
