//! Processes that a cell has started. When an interrupt ends the wait for one, or the cell that alone could read what it
//! says, it ends too: nobody waits for it any more. As in a terminal it is asked first, and killed when it stays.
use super::process::{has_ended, has_no_reader, signal, ticks_since_boot, wait_for};
use std::collections::HashMap;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a child may take to end by itself.
const PATIENCE: Duration = Duration::from_millis(500);
const GLANCE: Duration = Duration::from_millis(5);

/// When the running cell began, as `/proc` counts: in clock ticks since the machine started.
static CELL_BEGAN: AtomicU64 = AtomicU64::new(0);
/// How children ended that were reaped here, for whoever still has a handle and waits for them once more.
static REAPED: Mutex<Vec<(libc::pid_t, libc::c_int)>> = Mutex::new(Vec::new());
/// So many are remembered.
const MOST_REAPED: usize = 1000;

fn reaped() -> MutexGuard<'static, Vec<(libc::pid_t, libc::c_int)>> {
    REAPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cell begins: children that are younger are its own.
pub fn cell_begins() {
    CELL_BEGAN.store(ticks_since_boot(), Ordering::Relaxed);
}

/// An interrupted cell has ended: so do children of its own whose output nobody can read any more.
pub fn cell_was_interrupted() {
    let began = CELL_BEGAN.load(Ordering::Relaxed);
    end(move || {
        let (all, own) = (processes(), std::process::id() as libc::pid_t);
        let unheard = |pid: libc::pid_t| [1, 2].iter().any(|fd| is_unread(&format!("/proc/{pid}/fd/{fd}")));
        all.into_iter()
            .filter(|(_, p)| p.parent == own && p.began >= began)
            .map(|(pid, _)| pid)
            .filter(|p| unheard(*p))
            .collect()
    });
}

/// Whether it is the end of a pipe that nobody reads.
fn is_unread(path: &str) -> bool {
    let is_pipe = std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("pipe:"));
    let opened = || std::fs::OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path);
    is_pipe && opened().is_ok_and(|end| has_no_reader(&end))
}

/// Ends children with all that they have started, beside everything else.
fn end(find: impl FnOnce() -> Vec<libc::pid_t> + Send + 'static) {
    let work = move || {
        let children = find();
        if children.is_empty() {
            return;
        }
        let known = descendants(&children);
        known.keys().for_each(|pid| signal(*pid, libc::SIGINT));
        let limit = Instant::now() + PATIENCE;
        while !children.iter().all(|c| has_ended(*c)) && Instant::now() < limit {
            std::thread::sleep(GLANCE);
        }
        // What has lost its parent meanwhile is known from before, and still itself if it began at the same time.
        let (now, mut left) = (processes(), descendants(&children));
        left.extend(known.into_iter().filter(|(pid, began)| now.get(pid).is_some_and(|p| p.began == *began)));
        left.keys().for_each(|pid| signal(*pid, libc::SIGKILL));
        children.into_iter().for_each(reap);
    };
    // Without memory for a thread, they live on.
    let _ = std::thread::Builder::new().name("xlazy-children".into()).spawn(work);
}

fn reap(child: libc::pid_t) {
    if let Some(status) = wait_for(child) {
        let mut reaped = reaped();
        if reaped.len() == MOST_REAPED {
            reaped.remove(0);
        }
        reaped.push((child, status));
    }
}

/// How a child ended that was reaped here; once.
pub(super) fn known_end(child: libc::pid_t) -> Option<libc::c_int> {
    let mut reaped = reaped();
    let at = reaped.iter().position(|(pid, _)| *pid == child)?;
    Some(reaped.swap_remove(at).1)
}

/// The wait for a child was interrupted.
pub(super) fn wait_was_interrupted(child: libc::pid_t) {
    end(move || vec![child]);
}

/// The same for a child that is known by a descriptor.
pub(super) fn wait_on_descriptor_was_interrupted(descriptor: u32) {
    let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap_or_default();
    let child = told.lines().find_map(|l| l.strip_prefix("Pid:")?.trim().parse().ok());
    end(move || child.into_iter().collect());
}

/// What `/proc` says of a process.
struct Process {
    parent: libc::pid_t,
    session: libc::pid_t,
    began: u64,
}

fn processes() -> HashMap<libc::pid_t, Process> {
    let read = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, parsed(&std::fs::read_to_string(entry.path().join("stat")).ok()?)?))
    };
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(read).collect()
}

/// A line of `stat`. The name in it may hold anything.
fn parsed(stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |i: usize| fields.get(i)?.parse().ok();
    Some(Process { parent: number(1)?, session: number(3)?, began: fields.get(19)?.parse().ok()? })
}

/// These processes and what they have started, with the times when they began; not what has made a session of its own, as
/// daemons do.
fn descendants(of: &[libc::pid_t]) -> HashMap<libc::pid_t, u64> {
    let all = processes();
    let mut found = HashMap::new();
    let mut next: Vec<(libc::pid_t, Option<libc::pid_t>)> = of.iter().map(|pid| (*pid, None)).collect();
    while let Some((pid, session)) = next.pop() {
        let Some(process) = all.get(&pid).filter(|p| session.is_none_or(|s| s == p.session)) else { continue };
        if found.insert(pid, process.began).is_none() {
            next.extend(all.iter().filter(|(_, p)| p.parent == pid).map(|(c, _)| (*c, Some(process.session))));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_found_with_all_that_it_has_started() {
        let script = "sleep 1000 & sh -c 'sleep 1000 & wait' & setsid sleep 1001 & echo $!; wait";
        let mut shell = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let pid = shell.id() as libc::pid_t;
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(shell.stdout.take().unwrap()), &mut line).unwrap();
        let daemon: libc::pid_t = line.trim().parse().unwrap();
        // Until each has become what it is to be.
        let limit = Instant::now() + Duration::from_secs(60);
        let found = loop {
            let found = descendants(&[pid]);
            if found.len() == 4 && !found.contains_key(&daemon) {
                break found;
            }
            assert!(Instant::now() < limit, "{found:?}");
            std::thread::yield_now();
        };
        end(move || vec![pid]);
        // Whoever ends it may have waited for it first.
        let ended = shell.wait().unwrap_or_else(|_| {
            loop {
                if let Some(status) = known_end(pid) {
                    break std::process::ExitStatus::from_raw(status);
                }
                std::thread::yield_now();
            }
        });
        assert_eq!(ended.signal().or(Some(2)), Some(2), "it was asked first");
        while found.iter().any(|(pid, began)| processes().get(pid).is_some_and(|p| p.began == *began && p.parent != 1))
        {
            assert!(Instant::now() < limit);
            std::thread::yield_now();
        }
        assert!(processes().contains_key(&daemon), "a daemon lives on");
        signal(daemon, libc::SIGKILL);
    }

    #[test]
    fn stat_is_read_whatever_the_name_is() {
        let line = "7 (a) (b c) S 3 7 5 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 12345 9 9";
        let process = parsed(line).unwrap();
        assert_eq!((process.parent, process.session, process.began), (3, 5, 12345));
        assert!(parsed("7 (a) S").is_none() && parsed("").is_none());
    }
}
