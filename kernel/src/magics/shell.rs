//! `!command`: runs a shell command, streams what it prints, and ends it at an interrupt.
use super::magic;
use super::magic::{Call, Magic, Reads, Scope, Takes};
use crate::engine::{Event, Reply};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long a command may take to end by itself after an interrupt.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long to wait for the last output once the command has ended: what it left in the background (`server &`)
/// holds the pipes open and must not hold the cell.
const LAST_OUTPUT: Duration = Duration::from_millis(150);

pub const SHELL: Magic = Magic {
    name: "!",
    aliases: &[],
    usage: "!COMMAND",
    summary: "runs a shell command",
    help: r#"Hands the rest of the line to `sh -c` in the kernel's folder and shows what the command prints as it comes. An exit
code other than 0 is reported and does not fail the cell. The command has no standard input. Interrupting the cell
interrupts the command. Each command has a shell of its own, so `!cd` changes nothing for the next one.

```
!ls -l data | head
!curl -sO https://example.com/weights.bin && sha256sum weights.bin
```"#,
    scope: Scope::Line,
    takes: Takes::Rest,
    json: false,
    reads: Reads::Never,
    run,
};

fn run(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    if call.args.is_empty() || call.body.is_some() {
        return call.magic.misused("write the command after the !, on one line.");
    }
    let child = Command::new("sh")
        .args(["-c", call.args])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that an interrupt reaches everything the command started, and nothing else.
        .process_group(0)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(e) => return magic::error("ShellError", &format!("the shell `sh` could not be started: {e}")),
    };
    let group = Pid::from_raw(child.id() as i32);
    let _guard = crate::guard::Guard::of(child.id());
    let (news, inbox) = channel();
    RUNNING.lock().unwrap_or_else(|e| e.into_inner()).push((group, news.clone()));
    if call.host.interrupted() {
        let _ = news.send(News::Interrupt);
    }
    forward(child.stdout.take(), false, news.clone());
    forward(child.stderr.take(), true, news.clone());
    std::thread::spawn(move || {
        if let Ok(status) = child.wait() {
            let _ = news.send(News::Ended(status));
        }
    });
    let (status, interrupted) = follow(group, inbox, events);
    RUNNING.lock().unwrap_or_else(|e| e.into_inner()).retain(|(g, _)| *g != group);
    if interrupted {
        return Reply::Interrupted;
    }
    if let Some(note) = status.and_then(describe) {
        events(Event::Stream { stderr: true, text: format!("[{note}]\n") });
    }
    Reply::Ok
}

/// Interrupts every running shell command; does nothing when there is none. Called from any thread.
pub fn interrupt() {
    for (_, news) in RUNNING.lock().unwrap_or_else(|e| e.into_inner()).iter() {
        let _ = news.send(News::Interrupt);
    }
}

/// The process groups of running commands, and where to tell their followers.
static RUNNING: Mutex<Vec<(Pid, Sender<News>)>> = Mutex::new(Vec::new());

enum News {
    Text { stderr: bool, text: String },
    Ended(ExitStatus),
    Interrupt,
}

/// Passes output on until the command has ended; whether it was interrupted comes with its status.
fn follow(group: Pid, inbox: Receiver<News>, events: &mut dyn FnMut(Event)) -> (Option<ExitStatus>, bool) {
    let mut status = None;
    let mut interrupted = false;
    let mut deadline: Option<Instant> = None;
    loop {
        let news = match deadline {
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => inbox.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        match news {
            Ok(News::Text { stderr, text }) => events(Event::Stream { stderr, text }),
            Ok(News::Ended(s)) => {
                status = Some(s);
                deadline = Some(Instant::now() + LAST_OUTPUT);
                // The readers' senders are then the last ones, and the channel closes at the end of the output.
                RUNNING.lock().unwrap_or_else(|e| e.into_inner()).retain(|(g, _)| *g != group);
            }
            Ok(News::Interrupt) if status.is_none() => {
                // The second interrupt does not ask again.
                let _ = killpg(group, if interrupted { Signal::SIGKILL } else { Signal::SIGINT });
                interrupted = true;
                deadline = Some(Instant::now() + PATIENCE);
            }
            Ok(News::Interrupt) => {}
            Err(RecvTimeoutError::Timeout) if status.is_none() => {
                let _ = killpg(group, Signal::SIGKILL);
                deadline = None;
            }
            Err(_) => return (status, interrupted),
        }
    }
}

/// Sends what a pipe carries, whole characters at a time. It reads on when nobody listens any more, so that a process
/// left in the background does not die of a closed pipe.
fn forward(pipe: Option<impl Read + Send + 'static>, stderr: bool, news: Sender<News>) {
    let Some(mut pipe) = pipe else { return };
    std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        let mut pending = Vec::new();
        loop {
            let n = match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            pending.extend_from_slice(&buffer[..n]);
            let whole = whole_characters(&pending);
            let text = String::from_utf8_lossy(&pending[..whole]).into_owned();
            pending.drain(..whole);
            let _ = news.send(News::Text { stderr, text });
        }
        if !pending.is_empty() {
            let _ = news.send(News::Text { stderr, text: String::from_utf8_lossy(&pending).into_owned() });
        }
    });
}

/// How many of the bytes can be shown now; the rest is a character whose end has not come yet.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => e.valid_up_to(),
        _ => bytes.len(),
    }
}

fn describe(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit code {code}")),
        (None, Some(signal)) => Some(match Signal::try_from(signal) {
            Ok(known) => format!("ended by {known}"),
            Err(_) => format!("ended by signal {signal}"),
        }),
        (None, None) => Some(status.to_string()),
    }
}
