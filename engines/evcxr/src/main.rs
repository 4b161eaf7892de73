//! evcxr behind xlazy's seam between front ends and engines: a process that takes cells as lines of JSON on its standard input and
//! answers with lines of JSON, `{"stream": …, "text": …}` while a cell runs and `{"done": …}` at its end.
//!
//! The cells themselves run in a process of evcxr's own, which is this program again. An interrupt ends that one: variables are
//! lost, items stay.
use evcxr::{CommandContext, CompilationError, Error};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::Child;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What evcxr has printed arrives by threads of its own, after the cell has ended.
const QUIET: Duration = Duration::from_millis(30);

fn say(what: Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{what}").and_then(|()| out.flush());
}

fn main() {
    evcxr::runtime_hook();
    let (mut context, outputs) = match CommandContext::new() {
        Ok(both) => both,
        Err(e) => return say(json!({ "failed": e.to_string() })),
    };
    for (name, lines) in [("stdout", outputs.stdout), ("stderr", outputs.stderr)] {
        thread::spawn(move || {
            while let Ok(line) = lines.recv() {
                say(json!({ "stream": name, "text": line + "\n" }));
            }
        });
    }
    let runs: Arc<Mutex<Option<Arc<Mutex<Child>>>>> = Arc::default();
    let (send, cells) = channel::<String>();
    let running = runs.clone();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(asked) = serde_json::from_str::<Value>(&line) else { continue };
            match asked["code"].as_str() {
                Some(code) => drop(send.send(code.to_owned())),
                None => {
                    if let Some(child) = &*running.lock().unwrap_or_else(PoisonError::into_inner) {
                        let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
                    }
                }
            }
        }
        // The kernel is gone.
        std::process::exit(0);
    });
    say(json!({ "ready": true }));
    for code in cells {
        *runs.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.process_handle());
        let answer = context.execute(&code);
        *runs.lock().unwrap_or_else(PoisonError::into_inner) = None;
        thread::sleep(QUIET);
        say(json!({ "done": match answer {
            Ok(shown) => json!({ "data": shown.content_by_mime_type }),
            Err(e) => failure(e),
        }}));
    }
}

/// rustc's errors as it writes them, without its warnings; evcxr's own have nothing but a message.
fn told(errors: &[CompilationError]) -> Vec<String> {
    let serious = errors.iter().any(|e| e.level() == "error");
    let text = |e: &CompilationError| Some(e.rendered()).filter(|text| !text.is_empty()).unwrap_or_else(|| e.message());
    errors.iter().filter(|e| !serious || e.level() == "error").map(text).collect()
}

fn failure(error: Error) -> Value {
    let (name, traceback) = match &error {
        Error::CompilationErrors(errors) => ("CompileError", told(errors)),
        Error::SubprocessTerminated(_) => ("SessionDied", vec![error.to_string()]),
        _ => ("Error", vec![error.to_string()]),
    };
    let lines: Vec<String> = traceback.iter().flat_map(|t: &String| t.lines().map(str::to_owned)).collect();
    let said: HashMap<&str, Value> =
        HashMap::from([("name", name.into()), ("message", error.to_string().into()), ("traceback", lines.into())]);
    json!({ "error": said })
}
