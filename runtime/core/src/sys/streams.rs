//! The three standard streams of the session: frames come by the one, the user answers its reads, and what is written to another stays in
//! order with what cells print.
use super::{Bytes, Fd, ended};
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

/// Takes the frame stream over from descriptor 0, where the kernel put it, and leaves /dev/null there for user code.
pub fn take_stdin() -> std::io::Result<OwnedFd> {
    let null = std::fs::File::open("/dev/null")?;
    // SAFETY: dup and dup2 on descriptors that are open; the new one is owned by nobody else.
    unsafe {
        let fd = libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3);
        if fd < 0 || libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), 0) < 0 {
            return Err(std::io::Error::last_os_error());
        }
        FRAMES.store(fd, Ordering::Relaxed);
        let _ = PRINTED.set(which_file(libc::STDOUT_FILENO));
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Takes descriptor 1 over, and leaves the standard error there for whatever else prints.
pub fn take_stdout() -> std::io::Result<OwnedFd> {
    let fd = std::os::fd::AsFd::as_fd(&std::io::stdout()).try_clone_to_owned()?;
    // SAFETY: dup2 on descriptors that are open.
    match unsafe { libc::dup2(2, 1) } {
        0.. => Ok(fd),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Whether the standard error of cells is shown as a terminal shows it: libraries that draw bars ask for that.
fn is_shown() -> bool {
    static SHOWN: OnceLock<bool> = OnceLock::new();
    *SHOWN.get_or_init(|| std::env::var_os("XLAZY_SHOWN").is_some_and(|v| v == "1"))
}

/// As libc's; the standard error is a terminal where somebody watches the cells.
///
/// # Safety
/// As for `isatty(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isatty(fd: Fd) -> Fd {
    if fd == libc::STDERR_FILENO && is_shown() {
        return 1;
    }
    let mut settings = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: the kernel writes no more than its own, smaller form of it.
    let answer = unsafe { libc::syscall(libc::SYS_ioctl, fd, libc::TCGETS, settings.as_mut_ptr()) };
    Fd::from(answer == 0)
}

/// Where the frames go; a frame is never cut short.
static FRAMES: AtomicI32 = AtomicI32::new(-1);

/// The standard output that the kernel reads.
static PRINTED: OnceLock<Option<(u64, u64)>> = OnceLock::new();

/// A descriptor's file, by device and number.
fn which_file(fd: Fd) -> Option<(u64, u64)> {
    // SAFETY: `stat` is a valid place for the answer.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &mut stat) == 0).then_some((stat.st_dev, stat.st_ino))
    }
}

/// As the others, except for frames; what goes to the standard output stays in order with what cells print.
///
/// # Safety
/// As for `write(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: Fd, from: Bytes, size: usize) -> isize {
    let printed = || PRINTED.get().is_some_and(|file| file.is_some() && *file == which_file(fd));
    if fd == libc::STDOUT_FILENO && size > 0 && printed() {
        // SAFETY: the caller's memory has `size` bytes.
        if crate::host::printed(unsafe { std::slice::from_raw_parts(from.cast::<u8>(), size) }) {
            return size as isize;
        }
    }
    // SAFETY: the caller's arguments are handed on unchanged.
    let answer = unsafe { libc::syscall(libc::SYS_write, fd, from, size) };
    (if fd == FRAMES.load(Ordering::Relaxed) { answer } else { ended(answer) }) as isize
}

/// As the others; descriptor 0, where there is nothing, is the user: each read asks for a line.
///
/// # Safety
/// As for `read(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: Fd, to: Bytes, size: usize) -> isize {
    if fd == 0 && size > 0 && is_null_device(0) {
        let line = match crate::host::line_of_input(size) {
            None => return 0,
            Some(Ok(line)) => line,
            Some(Err(code)) => {
                // SAFETY: errno is this thread's own.
                unsafe { *libc::__errno_location() = code };
                return -1;
            }
        };
        // SAFETY: the caller's memory has `size` bytes, and the line is no longer.
        unsafe { std::ptr::copy_nonoverlapping(line.as_ptr(), to.cast::<u8>(), line.len()) };
        return line.len() as isize;
    }
    // SAFETY: the caller's arguments are handed on unchanged.
    ended(unsafe { libc::syscall(libc::SYS_read, fd, to, size) }) as isize
}

/// Whether nobody has put anything else there since [`take_stdin`].
fn is_null_device(fd: Fd) -> bool {
    // SAFETY: `stat` is a valid place for the answer.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstat(fd, &mut stat) == 0
            && stat.st_mode & libc::S_IFMT == libc::S_IFCHR
            && stat.st_rdev == libc::makedev(1, 3)
    }
}
