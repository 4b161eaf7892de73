//! The engine of `--engine evcxr`: plain Rust as evcxr runs it, in a process of its own (`engines/evcxr`), which is no part of
//! xlazy's build. It is there to compare with.
use crate::engine::{Completeness, Completions, Engine, Event, Failure, Reply, Request, sentence};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use xlazy_mime::Bundle;

const PROGRAM: &str = "xlazy-evcxr";

pub struct Evcxr {
    process: Mutex<Process>,
    /// Apart from the rest, which a running cell holds.
    input: Mutex<ChildStdin>,
    busy: AtomicBool,
    interrupted: AtomicBool,
}

struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program that `XLAZY_EVCXR` names, or that lies beside this one.
fn program() -> PathBuf {
    let beside = || Some(std::env::current_exe().ok()?.canonicalize().ok()?.with_file_name(PROGRAM));
    std::env::var_os("XLAZY_EVCXR").map(PathBuf::from).or_else(beside).unwrap_or_else(|| PROGRAM.into())
}

fn start() -> Result<(Process, ChildStdin), Failure> {
    let program = program();
    let child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.map_err(|e| {
        let advice = "build it with `cargo build --release --manifest-path engines/evcxr/Cargo.toml`, and name it by XLAZY_EVCXR \
                      or put it beside `xlazy`";
        sentence("EngineError", format!("{} does not start ({e}): {advice}", program.display()))
    })?;
    let (input, output) = (child.stdin.take().expect("it is piped"), child.stdout.take().expect("it is piped"));
    let mut process = Process { child, lines: BufReader::new(output).lines() };
    match process.next() {
        Some(said) if said["ready"] == true => Ok((process, input)),
        said => {
            let why = said.and_then(|s| s["failed"].as_str().map(str::to_owned)).unwrap_or_else(|| "it ended".into());
            Err(sentence("EngineError", format!("evcxr does not start: {why}")))
        }
    }
}

impl Process {
    fn next(&mut self) -> Option<Value> {
        self.lines.by_ref().map_while(Result::ok).find_map(|line| serde_json::from_str(&line).ok())
    }
}

impl Evcxr {
    /// Starts it, ready for its first cell.
    pub fn start() -> Result<Evcxr, Failure> {
        let (process, input) = start()?;
        let [busy, interrupted] = [false; 2].map(AtomicBool::new);
        Ok(Evcxr { process: Mutex::new(process), input: Mutex::new(input), busy, interrupted })
    }

    fn send(&self, what: &Value) {
        // What it cannot take it does not answer.
        let _ = writeln!(locked(&self.input), "{what}");
    }

    fn failed(&self, error: &Value) -> Reply {
        if self.interrupted.swap(false, Ordering::SeqCst) {
            return Reply::Interrupted;
        }
        let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        let lines = error["traceback"].as_array().into_iter().flatten();
        let traceback = lines.filter_map(|l| l.as_str().map(str::to_owned)).collect();
        Reply::Error(Failure { name: text("name"), message: text("message"), traceback })
    }
}

fn bundle(data: &Value) -> Option<Bundle> {
    let all = data.as_object().filter(|all| !all.is_empty())?;
    Some(all.iter().fold(Bundle::default(), |b, (mime, text)| b.with(mime, text.as_str().unwrap_or_default())))
}

impl Engine for Evcxr {
    fn execute(&self, request: &Request, events: &mut dyn FnMut(Event)) -> Reply {
        let mut process = locked(&self.process);
        self.interrupted.store(false, Ordering::SeqCst);
        self.busy.store(true, Ordering::SeqCst);
        self.send(&json!({ "code": request.code }));
        let reply = loop {
            let Some(said) = process.next() else {
                break Reply::Error(sentence("SessionDied", "evcxr ended: restart the kernel"));
            };
            if let Some(text) = said["text"].as_str() {
                events(Event::Stream { stderr: said["stream"] == "stderr", text: text.to_owned() });
            } else if let Some(done) = said.get("done") {
                if let Some(bundle) = bundle(&done["data"]) {
                    events(Event::Result(bundle));
                }
                break if done["error"].is_null() { Reply::Ok } else { self.failed(&done["error"]) };
            }
        };
        self.busy.store(false, Ordering::SeqCst);
        reply
    }

    fn evaluate(&self, expression: &str) -> Result<Bundle, Failure> {
        let mut shown = None;
        let request = Request { code: expression.to_owned(), ..Request::default() };
        let reply = self.execute(&request, &mut |event| {
            if let Event::Result(bundle) = event {
                shown = Some(bundle);
            }
        });
        match reply {
            Reply::Error(failure) => Err(failure),
            _ => shown.ok_or_else(|| sentence("Error", "it has no value")),
        }
    }

    fn complete(&self, _: &str, cursor: usize) -> Completions {
        Completions { start: cursor, end: cursor, matches: Vec::new() }
    }

    fn inspect(&self, _: &str, _: usize, _: u8) -> Option<Bundle> {
        None
    }

    fn is_complete(&self, code: &str) -> Completeness {
        // Text with an open bracket is no sequence of tokens.
        match code.parse::<proc_macro2::TokenStream>() {
            Err(_) => Completeness::Incomplete(String::new()),
            Ok(_) => Completeness::Complete,
        }
    }

    /// evcxr can only end what runs the cells: its variables go, items stay.
    fn interrupt(&self) -> bool {
        let busy = self.busy.load(Ordering::SeqCst);
        if busy && !self.interrupted.swap(true, Ordering::SeqCst) {
            self.send(&json!({ "interrupt": true }));
        }
        busy
    }

    fn restart(&self) -> Result<(), Failure> {
        let (process, input) = start()?;
        *locked(&self.input) = input;
        *locked(&self.process) = process;
        Ok(())
    }

    fn shutdown(&self) {
        let _ = self.interrupt();
        let _ = locked(&self.process).child.kill();
    }
}
