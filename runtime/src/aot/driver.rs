//! Asking the compiler: what must not reach it, the cache, the child process, and what becomes of it.
use super::child::{self, IS_CHILD, Request};
use super::options::Options;
use super::report::Report;
use super::{cache, program, remesh, slices};
use crate::insight::live;
use crate::{Error, Result};
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use xlazy_core::device::platform::{NO_HARDWARE, TPU};
use xlazy_core::metrics::AOT_COMPILE_TIME;
use xlazy_core::sys;
use xlazy_mime::private;

/// Only answers that are on the disk, or whatever it takes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Effort {
    Look,
    Compile,
}

/// The report of a program for a topology. `None` where it would take a compile and none is wanted.
pub(super) fn ask(program: Vec<u8>, topology: &str, options: &Options, effort: Effort) -> Result<Option<Report>> {
    ask_for(program, topology, options, effort, false)
}

/// The same with the optimised program, line by line.
pub(super) fn ask_lines(program: Vec<u8>, topology: &str, options: &Options) -> Result<Option<Report>> {
    ask_for(program, topology, options, Effort::Compile, true)
}

fn ask_for(program: Vec<u8>, topology: &str, options: &Options, effort: Effort, lines: bool) -> Result<Option<Report>> {
    let topology = slices::slice(&topology.trim().to_lowercase())?;
    let program = match options.mesh.is_empty() {
        true => program,
        false => remesh::bytes_over(&program, &options.mesh)?,
    };
    if let Some((line, ty)) = program::text(&program).and_then(program::dynamic_shape) {
        let message = format!(
            "line {line} of the program has a size that is not known, tensor<{ty}>: TPU programs need every size. Give \
             sizes to the arguments, or export the program without dynamic shapes."
        );
        return Err(Error::Usage { message });
    }
    if options.partitions == 0 || options.level > 3 {
        let message = "there is at least one partition, and optimisation levels go from 0 to 3".to_owned();
        return Err(Error::Usage { message });
    }
    let plugin = TPU.library()?;
    let plugin = plugin.canonicalize().unwrap_or(plugin);
    let (replicas, of_text) = program::text(&program).map_or((1, 1), remesh::devices);
    let partitions = if options.partitions == 1 { of_text } else { options.partitions };
    let (slices, level) = (options.slices.max(1), options.level);
    let request = Request { plugin, topology, slices, replicas, partitions, level, lines, program };
    if let Some(report) = cache::look_up(&request) {
        return Ok(Some(report));
    }
    if effort == Effort::Look {
        return Ok(None);
    }
    let begin = Instant::now();
    let report = {
        let _live = live::estimating(format!("{} at -O{}", request.topology, request.level));
        run(&request, options.timeout)?
    };
    AOT_COMPILE_TIME.add_time(begin.elapsed());
    cache::keep(&request, &report);
    Ok(Some(report))
}

/// Compiles in a process of its own.
fn run(request: &Request, timeout: Duration) -> Result<Report> {
    let words = child_command()?;
    let logs = Logs::new();
    let mut child = command(&words)
        .env("TPU_LOG_DIR", logs.as_ref().map_or("disabled".as_ref(), |l| l.0.as_os_str()))
        .spawn()
        .map_err(|e| usage(format!("{} does not start: {e}", words[0])))?;
    let ended = Following::new(&mut child, request.encode()).wait(&mut child, timeout);
    match child::answer(&ended.out) {
        Some(answer) => answer,
        None => Err(usage(ended.why_no_answer(timeout))),
    }
}

/// The child, started so that nothing of this machine gets in its way.
fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    // What a TPU host says of itself would get in the way of what we say.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TPU_") {
            command.env_remove(name);
        }
    }
    command.envs(NO_HARDWARE.iter().copied());
    command.args(&words[1..]).env(IS_CHILD, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// libtpu writes a log of every run; where it cannot, it fills the folder for temporary files. It gets one that goes with
/// the run, where nobody can have put links for it to write through.
struct Logs(PathBuf);

impl Logs {
    fn new() -> std::io::Result<Logs> {
        let prefix = format!("xlazy-libtpu-{}-", std::process::id());
        private::temporary(&std::env::temp_dir(), &prefix).map(Logs)
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What to start: the session executable, which is this process, or lies where this process was built or installed.
/// `XLAZY_AOT_CHILD` names another command, word by line: tests are their own child.
fn child_command() -> Result<Vec<String>> {
    const NAME: &str = "xlazy-session";
    if let Ok(named) = std::env::var("XLAZY_AOT_CHILD")
        && !named.is_empty()
    {
        return Ok(named.lines().map(str::to_owned).collect());
    }
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.ancestors().skip(1).flat_map(|d| [d.join(NAME), d.join("bin").join(NAME)]);
    let is_session = |p: &PathBuf| p.file_name().is_some_and(|n| n == NAME) && p.is_file();
    let exe = std::iter::once(own.clone()).chain(beside).find(is_session);
    let exe =
        exe.ok_or_else(|| usage(format!("{NAME}, which compiles for TPUs, was not found beside {}", own.display())))?;
    Ok(vec![exe.to_string_lossy().into_owned(), "--aot-child".into()])
}

fn usage(message: String) -> Error {
    Error::Usage { message }
}

/// What came of the child.
struct Ended {
    out: Vec<u8>,
    err: Vec<u8>,
    /// `None` when it was stopped.
    status: Option<ExitStatus>,
}

/// The child's pipes, each followed by a thread.
struct Following {
    news: Receiver<Part>,
}

enum Part {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

/// The most that is kept of what a child prints: a plugin that never stops is stopped.
const MOST_OUTPUT: u64 = 256 << 20;
/// How often an interrupt is looked for.
const GLANCE: Duration = Duration::from_millis(20);

impl Following {
    fn new(child: &mut Child, request: Vec<u8>) -> Following {
        let (tell, news) = channel();
        if let Some(mut stdin) = child.stdin.take() {
            // A child that is gone or does not read is noticed at its other end.
            std::thread::spawn(move || drop(stdin.write_all(&request)));
        }
        follow(child.stdout.take(), tell.clone(), Part::Out);
        follow(child.stderr.take(), tell, Part::Err);
        Following { news }
    }

    fn wait(self, child: &mut Child, timeout: Duration) -> Ended {
        let end = Instant::now() + timeout;
        let (mut out, mut err) = (Vec::new(), Vec::new());
        loop {
            match self.news.recv_timeout(GLANCE.min(end.saturating_duration_since(Instant::now()))) {
                Ok(Part::Out(bytes)) => out = bytes,
                Ok(Part::Err(bytes)) => err = bytes,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if sys::interrupted() || Instant::now() >= end => {
                    let _ = child.kill();
                    let _ = child.wait();
                    sys::check_interrupt();
                    return Ended { out, err, status: None };
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Ended { out, err, status: child.wait().ok() }
    }
}

fn follow(pipe: Option<impl Read + Send + 'static>, tell: Sender<Part>, part: fn(Vec<u8>) -> Part) {
    let Some(pipe) = pipe else { return };
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut pipe = pipe.take(MOST_OUTPUT);
        while let Err(e) = pipe.read_to_end(&mut bytes) {
            if e.kind() != ErrorKind::Interrupted {
                break;
            }
        }
        let _ = tell.send(part(bytes));
    });
}

impl Ended {
    /// One sentence on what happened, with the last words of the compiler.
    fn why_no_answer(&self, timeout: Duration) -> String {
        use std::os::unix::process::ExitStatusExt;
        let how = match self.status {
            None => {
                let after = timeout.as_secs_f64();
                return format!(
                    "the TPU compiler had no answer after {after} s and was stopped. Give it longer with --timeout, or \
                     try --quick, a lower optimisation level."
                );
            }
            Some(status) => match (status.signal(), status.code()) {
                (Some(signal), _) => format!("crashed (signal {signal})"),
                (None, Some(code)) => format!("ended without an answer (exit code {code})"),
                (None, None) => "ended without an answer".to_owned(),
            },
        };
        let words = last_words(&String::from_utf8_lossy(&self.err));
        match words.is_empty() {
            true => format!("the TPU compiler {how}. Nothing else is harmed: the session goes on."),
            false => {
                format!("the TPU compiler {how}. Nothing else is harmed: the session goes on. Its last words: {words}")
            }
        }
    }
}

/// What a dying process wrote that tells most: the fatal line of its log, else its last line.
fn last_words(log: &str) -> String {
    let fatal = |l: &&str| {
        let mut chars = l.chars();
        chars.next() == Some('F') && chars.next().is_some_and(|c| c.is_ascii_digit()) && l.contains("] ")
    };
    let line = log.lines().find(fatal).and_then(|l| l.split_once("] ")).map(|(_, words)| words);
    let line = line.or_else(|| log.lines().rev().find(|l| !l.trim().is_empty())).unwrap_or_default();
    line.trim().chars().take(500).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fatal_line_is_what_a_crash_is_told_by() {
        let log = "W1 x] careful\nF1120 07:25:53.962380   14488 shape_util.cc:1039] Check failed: !overflow \n@ 0x1\n";
        assert_eq!(last_words(log), "Check failed: !overflow");
        assert_eq!(last_words("one\ntwo\n\n"), "two");
        assert_eq!(last_words(""), "");
    }
}
