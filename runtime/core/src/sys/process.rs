//! Questions about other processes, and signals to them.

/// Sends a process, or a group, a signal.
pub(super) fn signal(pid: libc::pid_t, signal: libc::c_int) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(pid, signal) };
}

/// Whether a child has ended, or is none of this process any more. It stays to be waited for.
pub(super) fn has_ended(child: libc::pid_t) -> bool {
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is a valid place for the answer, and zero where there is none.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let answer = libc::syscall(libc::SYS_waitid, libc::P_PID, child, &mut info, how, 0usize);
        answer != 0 || info.si_pid() != 0
    }
}

/// Waits for a child; how it ended, if it was one that nobody has waited for.
pub(super) fn wait_for(child: libc::pid_t) -> Option<libc::c_int> {
    let mut status = 0;
    // SAFETY: `status` is a valid place for the answer.
    let answer = unsafe { libc::syscall(libc::SYS_wait4, child, &mut status, 0, 0usize) };
    (answer == child.into()).then_some(status)
}

/// Whether nobody is at the other end of a pipe that this one writes to.
pub(super) fn has_no_reader(end: &std::fs::File) -> bool {
    let mut fds = libc::pollfd { fd: std::os::fd::AsRawFd::as_raw_fd(end), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one valid descriptor, and no wait.
    unsafe { libc::syscall(libc::SYS_poll, &mut fds, 1, 0) > 0 && fds.revents & libc::POLLERR != 0 }
}

/// As `/proc` counts when processes begin.
pub(super) fn ticks_since_boot() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec; sysconf takes a number.
    let per_second = unsafe {
        libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut t);
        libc::sysconf(libc::_SC_CLK_TCK).max(1) as u64
    };
    t.tv_sec as u64 * per_second + t.tv_nsec as u64 * per_second / 1_000_000_000
}
