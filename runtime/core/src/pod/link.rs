//! One worker as its controller sees it: the process that is the way to it, what is told it, and how it is.
use super::arrival::{self, Arrival};
use super::wire::{self, Command, Opened};
use crate::text::Place;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A worker of a pod.
pub struct Link {
    /// `worker 1 (b)`
    pub name: String,
    to: Sender<Vec<u8>>,
    /// Commands that were told, so that each has its number; told and counted together.
    told: Mutex<u64>,
    /// Bytes that wait to be written.
    queued: Arc<AtomicUsize>,
    child: Mutex<Child>,
    pub opened: OnceLock<Opened>,
    /// It has said that it is a worker.
    pub reached: AtomicBool,
    /// Its files are on their way.
    pub arriving: AtomicBool,
    /// Looks at it since it was last heard.
    pub unheard: AtomicU32,
    /// Runs that it was told, has started, has ended.
    pub issued: Mutex<u64>,
    pub started: AtomicU64,
    pub ended: AtomicU64,
    /// Programs that it has compiled, and loaded as another has compiled them.
    pub made: [AtomicU64; 2],
    /// The line of the program that it was told to run last.
    pub last: Mutex<Option<Place>>,
    /// The last lines that it has written.
    words: Mutex<VecDeque<String>>,
}

/// Lines that are kept of what a worker writes.
const LINES: usize = 8;
/// How long the way to a worker may take to end after its output has.
const PARTING: Duration = Duration::from_millis(500);

/// What comes from a worker: its output is read by whoever has started it.
pub struct Ends {
    pub output: BufReader<ChildStdout>,
    pub errors: std::process::ChildStderr,
    /// Asks for what is copied; what is told a worker waits for the end of this.
    pub asks: Option<Sender<()>>,
}

impl Link {
    /// Starts the way to it; with an arrival that is a way to a shell, which is told to become one.
    pub fn start(name: String, command: &str, arrival: Option<Arc<Arrival>>) -> std::io::Result<(Link, Ends)> {
        let mut way = std::process::Command::new("/bin/sh");
        way.arg("-c").arg(command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = way.spawn()?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(std::io::Error::other("the process has no pipes"));
        };
        crate::sys::widen(&input);
        crate::sys::widen(&output);
        let (to, queue) = channel::<Vec<u8>>();
        let queued = Arc::new(AtomicUsize::new(0));
        let (ask, asked) = channel();
        let asks = arrival.is_some().then_some(ask);
        let write = {
            let queued = queued.clone();
            move || {
                let mut input = input;
                // One that cannot be told this ends, and its output tells why.
                let _ = arrival.map_or(Ok(()), |a| arrive(&a, &mut input, &asked));
                write_all(input, queue.into_iter(), &queued);
            }
        };
        std::thread::Builder::new().name("to a worker".into()).spawn(write)?;
        let (opened, reached, arriving, unheard, issued, started) = Default::default();
        let (ended, made, last, words, told) = Default::default();
        let child = Mutex::new(child);
        let link = Link {
            name,
            to,
            told,
            queued,
            child,
            opened,
            reached,
            arriving,
            unheard,
            issued,
            started,
            ended,
            made,
            last,
            words,
        };
        Ok((link, Ends { output: BufReader::with_capacity(1 << 20, output), errors, asks }))
    }

    /// Tells it to do something. What cannot be told any more is missed by nobody: its end is told by its output.
    pub fn tell(&self, command: &Command) {
        let mut told = lock(&self.told);
        *told += 1;
        let frame = wire::frame(*told, command);
        self.queued.fetch_add(frame.len(), Ordering::Relaxed);
        let _ = self.to.send(frame);
    }

    /// Bytes that it was told and that nobody has read yet.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Whether it has said something: that it is there, or that it is to be copied there.
    pub fn was_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed) || self.arriving.load(Ordering::Relaxed)
    }

    /// Ends it at once.
    pub fn kill(&self) {
        let _ = lock(&self.child).kill();
    }

    /// How the way to it has ended.
    pub fn end(&self) -> Option<ExitStatus> {
        let limit = Instant::now() + PARTING;
        let mut child = lock(&self.child);
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < limit => std::thread::sleep(Duration::from_millis(5)),
                _ => {
                    let _ = child.kill();
                    return None;
                }
            }
        }
    }

    /// What it wrote is remembered, since its last words may say why it ended.
    pub fn wrote(&self, line: &str) {
        let mut words = lock(&self.words);
        if words.len() == LINES {
            words.pop_front();
        }
        words.push_back(line.to_owned());
    }

    pub fn last_words(&self) -> String {
        lock(&self.words).make_contiguous().join("\n")
    }

    /// The run that it is at: the next one that it has not started.
    pub fn behind(&self) -> String {
        let (started, issued) = (self.started.load(Ordering::Relaxed), *lock(&self.issued));
        let ended = self.ended.load(Ordering::Relaxed);
        match (started < issued, ended < issued) {
            _ if issued == 0 => "has had no program to run".into(),
            (true, _) => format!("has not started program {} of {issued}", started + 1),
            (false, true) => format!("has not ended program {} of {issued}", ended + 1),
            (false, false) => format!("has run all of {}", xlazy_mime::count(issued as usize, "program")),
        }
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells a shell to become a worker, and sends what it asks for.
fn arrive(arrival: &Arrival, input: &mut ChildStdin, asked: &Receiver<()>) -> std::io::Result<()> {
    input.write_all(arrival.script().as_bytes())?;
    asked.iter().try_for_each(|()| arrival.send(input))
}

fn write_all(mut input: ChildStdin, frames: impl Iterator<Item = Vec<u8>>, queued: &AtomicUsize) {
    let mut gone = false;
    for frame in frames {
        gone = gone || input.write_all(&frame).is_err();
        queued.fetch_sub(frame.len(), Ordering::Relaxed);
    }
}

/// How a process ended, in a few words.
pub fn how(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return "its output ended".into() };
    match (status.signal(), status.code()) {
        (Some(9), _) => "killed, signal 9".into(),
        (Some(n), _) => format!("ended by signal {n}"),
        (None, Some(n)) if (129..=192).contains(&n) => format!("exit code {n}, signal {}", n - 128),
        (None, Some(n)) => format!("exit code {n}"),
        (None, None) => "ended".into(),
    }
}

/// The most that a shell's greeting may be.
const BANNER: u64 = 64 << 10;

/// Reads what a shell writes before the worker does, up to the worker's own first line. Where there is none, `asks` sends for it.
///
/// Errors: what came instead.
pub fn greeted(output: &mut impl BufRead, asks: Option<impl Fn()>) -> Result<(), String> {
    let mut before = Vec::new();
    loop {
        let mut line = Vec::new();
        let read = output.by_ref().take(BANNER).read_until(b'\n', &mut line).unwrap_or(0);
        let text = String::from_utf8_lossy(&line).into_owned();
        if text == wire::greeting() {
            return Ok(());
        }
        if let Some(other) = text.strip_prefix("xlazy worker, ") {
            let ours = wire::greeting().trim().trim_start_matches("xlazy worker, ").to_owned();
            return Err(format!(
                "is another xlazy ({}; this one: {ours}): install the same version on both machines",
                other.trim()
            ));
        }
        if let (Some(ask), Some(machine)) = (&asks, text.strip_prefix(arrival::WANTED)) {
            arrival::fits(machine.trim())?;
            ask();
            // Whatever comes instead of a worker now, its shell was there.
            before.clear();
        } else {
            before.extend(line);
        }
        if read == 0 || before.len() as u64 > BANNER {
            return Err(String::from_utf8_lossy(&before[..before.len().min(400)]).trim().to_owned());
        }
    }
}
