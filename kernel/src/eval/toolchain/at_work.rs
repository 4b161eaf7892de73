//! The compiler or the cargo that works for the running cell, for whoever interrupts it.
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The processes at work: one, or that which compiles a cell's definitions and that of its statements. Clones are the same.
#[derive(Clone, Default)]
pub struct AtWork(Arc<Mutex<Work>>);

#[derive(Default)]
struct Work {
    groups: Vec<Pid>,
    stopped: bool,
}

impl AtWork {
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cell begins: what is started for it is not stopped yet.
    pub fn allow(&self) {
        self.lock().stopped = false;
    }

    /// Ends what is at work, with everything that it started (a linker holds the pipes open, too), and lets nothing
    /// start any more until the next cell.
    pub fn stop(&self) {
        let mut work = self.lock();
        work.stopped = true;
        for group in &work.groups {
            let _ = killpg(*group, Signal::SIGKILL);
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// A process that leads a group of its own is at work from now on; false when it must not be, because the cell was
    /// interrupted before.
    pub fn begin(&self, pid: u32) -> bool {
        let mut work = self.lock();
        if !work.stopped {
            work.groups.push(Pid::from_raw(pid as i32));
        }
        !work.stopped
    }

    /// It is done. Said before the process is waited for: from then on its number may be another's.
    pub fn end(&self, pid: u32) {
        self.lock().groups.retain(|group| group.as_raw() != pid as i32);
    }
}

#[cfg(test)]
mod tests {
    use super::AtWork;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command};

    fn endless() -> Child {
        Command::new("sleep").arg("1000").process_group(0).spawn().unwrap()
    }

    #[test]
    fn all_that_is_at_work_is_stopped() {
        let at_work = AtWork::default();
        let mut working = [endless(), endless(), endless()];
        assert!(working.iter().all(|child| at_work.begin(child.id())));
        at_work.end(working[1].id());
        at_work.stop();
        assert_eq!([0, 2].map(|n| working[n].wait().unwrap().signal()), [Some(9); 2]);
        assert!(working[1].try_wait().unwrap().is_none());
        working[1].kill().unwrap();
        working[1].wait().unwrap();
    }

    #[test]
    fn only_what_is_at_work_is_stopped_and_nothing_starts_until_the_next_cell() {
        let at_work = AtWork::default();
        let (mut working, mut waiting) = (endless(), endless());
        assert!(at_work.begin(working.id()));
        at_work.stop();
        at_work.end(working.id());
        assert_eq!(working.wait().unwrap().signal(), Some(9));
        // The compiler that waits for the next cell's text is not at work: it stays.
        assert!(waiting.try_wait().unwrap().is_none());
        assert!(!at_work.begin(waiting.id()), "an interrupted cell compiles no further");
        at_work.allow();
        assert!(at_work.begin(waiting.id()));
        at_work.end(waiting.id());
        at_work.stop();
        assert!(waiting.try_wait().unwrap().is_none());
        waiting.kill().unwrap();
        waiting.wait().unwrap();
    }
}
