//! The only `unsafe` of this crate: signals, waits that an interrupt ends, dlopen, descriptors, values whose type was
//! compiled a second time, and pointers to functions.
#![allow(unsafe_code)]
pub mod children;
mod flag;
mod pointer;
mod process;
mod statement;
mod stored;
mod streams;
mod stuck;

use flag::{CELL_THREAD, INTERRUPTED, SINCE, monotonic_ms};
pub use pointer::{Function, pointer};
pub use statement::{come_to_statement, no_statement, statement};
pub use stored::{Away, Boxes, Lender, LookedAt, fits, unbox, unboxed_ref};
pub use streams::{take_stdin, take_stdout};
pub use stuck::{Inherited, on_leave, on_stuck};

use std::any::TypeId;
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Other threads follow an interrupt only when the cell's own thread has not noticed it for this long: it may be
/// waiting for them. Threads of earlier cells then survive an interrupt that the cell answers at once.
const OTHER_THREADS_AFTER_MS: u64 = 60;

/// Errors of a read from the user, by their numbers in C.
pub const CANCELLED: i32 = libc::ECANCELED;
pub const NOT_SUPPORTED: i32 = libc::ENOTSUP;

/// Whether [`check_interrupt`] has anything to do.
static LOOK: AtomicBool = AtomicBool::new(false);

/// Ends the running cell if an interrupt came in: unwinds with [`crate::host::Interrupted`] as payload.
#[inline]
pub fn check_interrupt() {
    if LOOK.load(Ordering::Relaxed) {
        unwind_if_due();
    }
}

#[cold]
fn unwind_if_due() {
    let left = LOOKS_LEFT.get();
    LOOKS_LEFT.set(left.saturating_sub(1));
    if interrupt_is_due() || left == 1 && !std::thread::panicking() {
        std::panic::resume_unwind(Box::new(crate::host::Interrupted(())));
    }
}

thread_local! {
    static LOOKS_LEFT: Cell<u64> = const { Cell::new(0) };
}

/// Has this thread be interrupted when it looks for an interrupt for the `n`th time from now on; 0 takes it back. With it a
/// test goes through all moments at which an interrupt can come, or draws one, and the same one again.
pub fn interrupt_at_look(n: u64) {
    LOOKS_LEFT.set(n);
    LOOK.store(n > 0 || interrupted(), Ordering::SeqCst);
}

/// How many of them are left; 0 when the interrupt has come.
pub fn looks_left() -> u64 {
    LOOKS_LEFT.get()
}

/// Whether [`check_interrupt`] would unwind here.
pub fn interrupt_is_due() -> bool {
    let due =
        || CELL_THREAD.get() || monotonic_ms().saturating_sub(SINCE.load(Ordering::Relaxed)) > OTHER_THREADS_AFTER_MS;
    INTERRUPTED.load(Ordering::Relaxed) && due() && !std::thread::panicking() && crate::host::running()
}

/// Whether an interrupt came in and no cell has answered it yet.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// What the cell thread does, by number, and up to which number all was interrupted.
struct Jobs {
    current: u64,
    interrupted: u64,
}

static JOBS: Mutex<Jobs> = Mutex::new(Jobs { current: 0, interrupted: 0 });
/// Told when a job is interrupted.
static AN_INTERRUPT: Condvar = Condvar::new();

fn jobs() -> MutexGuard<'static, Jobs> {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The cell thread begins a job. It may have been interrupted while it waited.
pub fn begin_job(number: u64) {
    // What an interrupt of an earlier job left for a `park` that did not come.
    std::thread::park_timeout(Duration::ZERO);
    let mut jobs = jobs();
    jobs.current = number;
    set_interrupted(number <= jobs.interrupted);
}

pub fn end_job() {
    jobs().current = 0;
    set_interrupted(false);
}

/// Interrupts every job up to this one, and none that comes later.
pub fn interrupt_up_to(number: u64) {
    let mut jobs = jobs();
    jobs.interrupted = number;
    if (1..=number).contains(&jobs.current) {
        set_interrupted(true);
    }
}

fn set_interrupted(interrupted: bool) {
    SINCE.store(monotonic_ms(), Ordering::Relaxed);
    INTERRUPTED.store(interrupted, Ordering::SeqCst);
    LOOK.store(interrupted, Ordering::SeqCst);
    AN_INTERRUPT.notify_all();
}

/// How often a wait that does not end is disturbed: it may have begun a moment after the last time.
const DISTURB: Duration = Duration::from_millis(15);

/// Has an interrupt end the system call that the cell thread waits in. Runs as long as the process.
pub fn disturb_waits() {
    let mut jobs = jobs();
    loop {
        let calm = |_: &mut Jobs| !INTERRUPTED.load(Ordering::SeqCst);
        jobs = AN_INTERRUPT.wait_while(jobs, calm).unwrap_or_else(PoisonError::into_inner);
        let cell = CELL_THREAD_ID.load(Ordering::SeqCst);
        if cell != 0 {
            // SAFETY: a plain system call; the cell thread lives as long as the process.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), cell, libc::SIGINT) };
            // `park` may return for no reason.
            if let Some(thread) = &*CELL_HANDLE.lock().unwrap_or_else(PoisonError::into_inner) {
                thread.unpark();
            }
            stuck::disturbed(cell);
        }
        jobs = AN_INTERRUPT.wait_timeout(jobs, DISTURB).unwrap_or_else(PoisonError::into_inner).0;
    }
}

static CELL_THREAD_ID: AtomicI32 = AtomicI32::new(0);
static CELL_HANDLE: Mutex<Option<std::thread::Thread>> = Mutex::new(None);

/// Marks the calling thread as the one that runs cells.
pub fn this_is_the_cell_thread() {
    CELL_THREAD.set(true);
    *CELL_HANDLE.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current());
    CELL_THREAD_ID.store(thread_id(), Ordering::SeqCst);
}

pub fn is_cell_thread() -> bool {
    CELL_THREAD.get()
}

/// That a handler runs is what ends a system call.
extern "C" fn on_sigint(_: libc::c_int) {}

fn thread_id() -> i32 {
    // SAFETY: a system call without arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Lets SIGINT end waits and nothing else, and has a cell that reads from a terminal get an error: by default Linux would
/// stop the process, which is not the terminal's foreground.
pub fn catch_signals() {
    // SAFETY: the handler does nothing. Without SA_RESTART, system calls end with EINTR.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_sigint as *const () as usize;
        libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut());
        libc::signal(libc::SIGTTIN, libc::SIG_IGN);
        libc::signal(libc::SIGTTOU, libc::SIG_IGN);
    }
}

/// Asks Linux to kill this process when the kernel process goes away without a word.
pub fn die_with_parent() {
    // SAFETY: plain prctl with integer arguments.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// What a cell's object exports.
pub type Entry = extern "C-unwind" fn();

/// Loads a cell's object and finds its entry. Objects are never closed: locations, vtables and threads point into them.
pub fn load(object: &str, symbol: &str) -> Result<Entry, String> {
    let (Ok(path), Ok(name)) = (CString::new(object), CString::new(symbol)) else {
        return Err(format!("{object}: a path cannot hold a zero byte"));
    };
    let handle = open_library(&path)?;
    // SAFETY: the object was compiled by the kernel from generated code whose entry has type `Entry`.
    unsafe {
        let entry = libc::dlsym(handle, name.as_ptr());
        if entry.is_null() {
            return Err(format!("{object} has no {symbol}"));
        }
        stuck::loaded(entry);
        Ok(std::mem::transmute::<*mut libc::c_void, Entry>(entry))
    }
}

/// Loads a library that objects are linked to, for good. They find it by the name that it gives itself.
pub fn load_library(path: &str) -> Result<(), String> {
    let path = CString::new(path).map_err(|_| format!("{path}: a path cannot hold a zero byte"))?;
    open_library(&path).map(drop)
}

fn open_library(path: &CStr) -> Result<*mut libc::c_void, String> {
    // SAFETY: the library's initialisers are the notebook's own code, or that of its dependencies.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        match handle.is_null() {
            true => Err(CStr::from_ptr(libc::dlerror()).to_string_lossy().into_owned()),
            false => Ok(handle),
        }
    }
}

/// An error that is a boxed one for any thread: the one kind that converts into no `Box<dyn Error>`.
pub fn as_boxed_error<E>(error: &E) -> Option<&SharedError> {
    trait Named {
        fn id(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T> Named for PhantomData<T> {
        fn id(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let of: &dyn Named = &PhantomData::<E>;
    // SAFETY: only the type is asked for, whose name is the same whatever it borrows.
    let id = unsafe { std::mem::transmute::<&dyn Named, &'static (dyn Named + 'static)>(of) }.id();
    // SAFETY: it is that type, if for a shorter time; the reference is for no longer than that.
    (id == TypeId::of::<SharedError>()).then(|| unsafe { &*std::ptr::from_ref(error).cast::<SharedError>() })
}

type SharedError = Box<dyn std::error::Error + Send + Sync>;

/// Has a pipe hold as much as anybody may ask for: with what it holds by itself, large values go through it in a thousand pieces,
/// for each of which both sides wake up. Where that is refused it stays as it is.
pub fn widen(pipe: &impl std::os::fd::AsRawFd) {
    const LARGEST: libc::c_int = 1 << 20;
    // SAFETY: fcntl on a descriptor that its owner lends.
    unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, LARGEST) };
}

/// `std::thread::sleep` ends up here, ahead of libc's own symbol, because a sleeping cell must be interruptible.
/// Returning early is all it does: the next check in the cell unwinds.
///
/// # Safety
/// As for `clock_nanosleep(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(
    clock: libc::clockid_t,
    flags: libc::c_int,
    request: *const libc::timespec,
    remaining: *mut libc::timespec,
) -> libc::c_int {
    // SAFETY: the caller's pointers are handed on unchanged.
    let failed = unsafe { libc::syscall(libc::SYS_clock_nanosleep, clock, flags, request, remaining) } != 0;
    match failed.then(std::io::Error::last_os_error).and_then(|e| e.raw_os_error()) {
        Some(libc::EINTR) if INTERRUPTED.load(Ordering::Relaxed) => 0,
        Some(code) => code,
        None => 0,
    }
}

/// See [`clock_nanosleep`].
///
/// # Safety
/// As for `nanosleep(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nanosleep(request: *const libc::timespec, remaining: *mut libc::timespec) -> libc::c_int {
    // SAFETY: the caller's pointers are handed on unchanged.
    match unsafe { clock_nanosleep(libc::CLOCK_MONOTONIC, 0, request, remaining) } {
        0 => 0,
        code => {
            // SAFETY: errno is this thread's own.
            unsafe { *libc::__errno_location() = code };
            -1
        }
    }
}

/// What a system call answered, with an error that nobody tries again in place of EINTR when the cell is interrupted.
fn ended(answer: libc::c_long) -> libc::c_long {
    if answer == -1 && CELL_THREAD.get() && INTERRUPTED.load(Ordering::Relaxed) {
        // SAFETY: errno is this thread's own.
        unsafe {
            let errno = libc::__errno_location();
            if *errno == libc::EINTR {
                *errno = libc::ECANCELED;
            }
        }
    }
    answer
}

/// System calls in which a cell can wait for long, ahead of libc's own symbols: an interrupt ends them with ECANCELED. The
/// standard library would begin them again after EINTR, before the cell could notice anything.
macro_rules! waits {
    ($($name:ident($($arg:ident: $type:ty),*) -> $answer:ty = $number:ident($($given:expr),*);)*) => {$(
        #[doc = concat!("# Safety\nAs for `", stringify!($name), "(2)`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> $answer {
            // SAFETY: the caller's arguments are handed on unchanged.
            ended(unsafe { libc::syscall(libc::$number, $($given),*) }) as $answer
        }
    )*};
}

type Bytes = *mut libc::c_void;
type Fd = libc::c_int;
type Address = *mut libc::sockaddr;

waits! {
    readv(fd: Fd, parts: *const libc::iovec, count: Fd) -> isize = SYS_readv(fd, parts, count);
    writev(fd: Fd, parts: *const libc::iovec, count: Fd) -> isize = SYS_writev(fd, parts, count);
    recv(fd: Fd, to: Bytes, size: usize, flags: Fd) -> isize = SYS_recvfrom(fd, to, size, flags, 0usize, 0usize);
    recvfrom(fd: Fd, to: Bytes, size: usize, flags: Fd, from: Address, length: *mut libc::socklen_t) -> isize
        = SYS_recvfrom(fd, to, size, flags, from, length);
    recvmsg(fd: Fd, message: *mut libc::msghdr, flags: Fd) -> isize = SYS_recvmsg(fd, message, flags);
    send(fd: Fd, from: Bytes, size: usize, flags: Fd) -> isize = SYS_sendto(fd, from, size, flags, 0usize, 0usize);
    sendto(fd: Fd, from: Bytes, size: usize, flags: Fd, to: Address, length: libc::socklen_t) -> isize
        = SYS_sendto(fd, from, size, flags, to, length);
    accept(fd: Fd, peer: Address, length: *mut libc::socklen_t) -> Fd = SYS_accept(fd, peer, length);
    accept4(fd: Fd, peer: Address, length: *mut libc::socklen_t, flags: Fd) -> Fd = SYS_accept4(fd, peer, length, flags);
    connect(fd: Fd, to: Address, length: libc::socklen_t) -> Fd = SYS_connect(fd, to, length);
    poll(fds: *mut libc::pollfd, count: libc::nfds_t, timeout: Fd) -> Fd = SYS_poll(fds, count, timeout);
    flock(fd: Fd, operation: Fd) -> Fd = SYS_flock(fd, operation);
    open(path: *const libc::c_char, flags: Fd, mode: libc::mode_t) -> Fd
        = SYS_openat(libc::AT_FDCWD, path, flags, mode);
    open64(path: *const libc::c_char, flags: Fd, mode: libc::mode_t) -> Fd
        = SYS_openat(libc::AT_FDCWD, path, flags | libc::O_LARGEFILE, mode);
    openat(folder: Fd, path: *const libc::c_char, flags: Fd, mode: libc::mode_t) -> Fd
        = SYS_openat(folder, path, flags, mode);
}

/// Sets an environment variable. Only before a plugin is loaded, which may read it in a thread of its own.
pub fn set_env(name: &str, value: &str) {
    // SAFETY: readers in other threads go through std, which has its own lock; no plugin is loaded yet.
    unsafe { std::env::set_var(name, value) }
}

/// Asks Linux to write no core dump of this process.
pub fn no_core_dump() {
    // SAFETY: a plain call with a valid struct.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 }) };
}

/// Has `f` called when the process exits: before what was registered earlier, such as the destructors of a plugin that is
/// loaded already.
pub fn at_exit(f: extern "C" fn()) {
    // SAFETY: the handler is a plain function that lives as long as this library, which is never unloaded.
    unsafe { libc::atexit(f) };
}

/// Ends the process without running exit handlers.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process; what was printed has been flushed by the caller.
    unsafe { libc::_exit(code) }
}

/// Takes the pages of the libraries in `folder` out of this process that nothing has changed. They stay in Linux's page
/// cache, where whoever needs memory may have them at once, and come back by a minor fault when they are needed.
///
/// Loading a plugin of several hundred megabytes reads its symbols, relocations and initialisers once, and each fault maps
/// fifteen pages around it. The libraries must be loaded for good: while the loader is at work on one, its pages change.
pub fn release_library_pages(folder: &std::path::Path) {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    for range in unchanged_library_ranges(&smaps, &folder.to_string_lossy()) {
        // SAFETY: a private mapping of a library's file that is never unloaded, cannot be written to and has no changed page:
        // whoever reads it again reads the same bytes from the file.
        unsafe { libc::madvise(range.start as *mut libc::c_void, range.len(), libc::MADV_DONTNEED) };
    }
}

/// Mappings of the folder's libraries that are read-only and have no page of their own.
fn unchanged_library_ranges(smaps: &str, folder: &str) -> Vec<std::ops::Range<usize>> {
    // A blank stands before the path.
    let inside = format!(" {}/", folder.trim_end_matches('/'));
    let mut out = Vec::new();
    let mut candidate = None;
    for line in smaps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Anonymous:", "0", _] => out.extend(candidate.take()),
            [range, "r-xp" | "r--p", _, _, _, ..] if line.contains(".so") && line.contains(&inside) => {
                let ends = range.split_once('-').map(|(a, b)| [a, b].map(|n| usize::from_str_radix(n, 16).ok()));
                candidate = ends.and_then(|[start, end]| Some(start?..end?));
            }
            [range, ..] if range.contains('-') => candidate = None,
            _ => {}
        }
    }
    out
}

/// Sets an environment variable that is not set yet. Called before a plugin is loaded, which reads it once.
pub fn set_env_default(name: &str, value: &str) {
    if std::env::var_os(name).is_none() {
        // SAFETY: the only writer of the environment; readers in other threads go through std, which has its own lock.
        unsafe { std::env::set_var(name, value) }
    }
}

/// Adds flags to those that an environment variable has, but for what is set there; a file that it names stays as it is.
pub fn add_flags(name: &str, flags: &[&str]) {
    let set = std::env::var(name).unwrap_or_default();
    let added = with_flags(&set, flags);
    if added != set {
        set_env(name, &added);
    }
}

fn with_flags(set: &str, flags: &[&str]) -> String {
    fn name(flag: &str) -> &str {
        flag.split('=').next().unwrap_or(flag)
    }
    let named = |flag: &&&str| !set.split_whitespace().any(|there| name(there) == name(flag));
    let of_flags = set.trim_start().is_empty() || set.trim_start().starts_with('-');
    let all = std::iter::once(&set).chain(flags.iter().filter(named)).filter(|part| !part.is_empty());
    if of_flags { all.copied().collect::<Vec<_>>().join(" ") } else { set.to_owned() }
}

// ---- Children of cells

/// As the other waits; the child that it is for ends with it.
///
/// # Safety
/// As for `waitpid(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn waitpid(pid: libc::pid_t, status: *mut Fd, options: Fd) -> libc::pid_t {
    // SAFETY: the caller's arguments are handed on unchanged.
    let answer = ended(unsafe { libc::syscall(libc::SYS_wait4, pid, status, options, 0usize) }) as libc::pid_t;
    if answer == -1 && pid > 0 {
        match error() {
            libc::ECANCELED => {
                children::wait_was_interrupted(pid);
                set_error(libc::ECANCELED);
            }
            libc::ECHILD => {
                if let Some(how) = children::known_end(pid) {
                    if !status.is_null() {
                        // SAFETY: the caller's place for the status.
                        unsafe { *status = how };
                    }
                    return pid;
                }
            }
            _ => {}
        }
    }
    answer
}

/// See [`waitpid`].
///
/// # Safety
/// As for `waitid(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn waitid(kind: libc::idtype_t, id: libc::id_t, info: *mut libc::siginfo_t, options: Fd) -> Fd {
    // SAFETY: the caller's arguments are handed on unchanged.
    let answer = ended(unsafe { libc::syscall(libc::SYS_waitid, kind, id, info, options, 0usize) }) as Fd;
    if answer == -1 && error() == libc::ECANCELED {
        match kind {
            libc::P_PID => children::wait_was_interrupted(id as libc::pid_t),
            libc::P_PIDFD => children::wait_on_descriptor_was_interrupted(id),
            _ => {}
        }
        set_error(libc::ECANCELED);
    }
    answer
}

fn error() -> Fd {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn set_error(code: Fd) {
    // SAFETY: errno is this thread's own.
    unsafe { *libc::__errno_location() = code };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unchanged_pages_of_libraries_are_released() {
        let mapping = |range: &str, mode: &str, file: &str, anonymous: u32| {
            format!("{range} {mode} 00000000 08:01 7 {file}\nSize: 8 kB\nAnonymous:  {anonymous} kB\nVmFlags: rd mr\n")
        };
        let smaps = mapping("1000-3000", "r-xp", "/lib/libbig.so.2", 0)
            + &mapping("3000-4000", "r--p", "/lib/libbig.so.2", 4)
            + &mapping("4000-5000", "rw-p", "/lib/libbig.so.2", 0)
            + &mapping("5000-6000", "r--p", "/data/weights.bin", 0)
            + &mapping("6000-7000", "r--p", "", 0)
            + &mapping("7000-9000", "r--p", "/lib/a folder/libbig.so.2", 0)
            + &mapping("9000-a000", "r--p", "/tmp/libcell.so", 0);
        assert_eq!(unchanged_library_ranges(&smaps, "/lib"), [0x1000..0x3000, 0x7000..0x9000]);
        assert_eq!(unchanged_library_ranges(&smaps, "/lib/a folder/").first(), Some(&(0x7000..0x9000)));
    }

    #[test]
    fn flags_are_added_to_those_that_are_set() {
        let flags = ["--a_seconds=9", "--b=1"];
        assert_eq!(with_flags("", &flags), "--a_seconds=9 --b=1");
        assert_eq!(with_flags("--xla_dump_to=d --a_seconds=3", &flags), "--xla_dump_to=d --a_seconds=3 --b=1");
        assert_eq!(with_flags("--b_more=2", &flags[1..]), "--b_more=2 --b=1");
        assert_eq!(with_flags("flags.txt", &flags), "flags.txt");
    }

    #[test]
    fn code_goes_on_when_its_pages_were_released() {
        let program = std::env::current_exe().unwrap();
        release_library_pages(program.parent().unwrap());
        assert_eq!("12".parse::<i32>(), Ok(12));
    }
}
