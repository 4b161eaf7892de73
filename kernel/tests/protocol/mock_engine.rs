//! An engine for protocol tests: each line of a cell is one command of a toy language.
use std::fmt::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex};
use xlazy_kernel::engine::{Candidate, Completeness, Completions, Engine, Event, Failure, Reply, Request};
use xlazy_mime::Bundle;

const WORDS: [&str; 6] = ["print", "println", "display", "page", "error", "clear"];

/// What the kernel under test asked of the engine, for tests that look.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    Execute(String),
    Complete(usize),
    Inspect(usize, u8),
    Interrupt,
    Shutdown,
}

pub struct MockEngine {
    calls: Mutex<Sender<Call>>,
    interrupted: Mutex<bool>,
    changed: Condvar,
}

impl MockEngine {
    pub fn new() -> (MockEngine, Receiver<Call>) {
        let (calls, seen) = channel();
        (MockEngine { calls: Mutex::new(calls), interrupted: Mutex::new(false), changed: Condvar::new() }, seen)
    }

    fn saw(&self, call: Call) {
        let _ = self.calls.lock().unwrap().send(call);
    }

    fn line(&self, line: &str, request: &Request, emit: &mut dyn FnMut(Event)) -> Result<(), Reply> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let show = |id: Option<&str>, update, text: &str| Event::Display {
            bundle: Bundle::html(format!("<b>{text}</b>"), text),
            id: id.map(str::to_owned),
            update,
        };
        match word {
            "" | "let" => {}
            "print" => emit(Event::Stream { stderr: false, text: format!("{rest}\n") }),
            "eprint" => emit(Event::Stream { stderr: true, text: format!("{rest}\n") }),
            // `lines N`: N short lines, each an event of its own.
            "lines" => (0..rest.parse().unwrap_or(0u32))
                .for_each(|n| emit(Event::Stream { stderr: false, text: format!("line {n}\n") })),
            // `flood N`: N lines in frames of some kilobytes, as the session sends them.
            "flood" => flood(rest.parse().unwrap_or(0), emit),
            // `pictures N BYTES`: N displays.
            "pictures" => {
                let (count, bytes) = rest.split_once(' ').unwrap_or((rest, "1"));
                let picture = "x".repeat(bytes.parse().unwrap_or(1));
                (0..count.parse().unwrap_or(0u32)).for_each(|_| emit(show(None, false, &picture)));
            }
            "bytes" => emit(Event::Stream { stderr: false, text: "x".repeat(rest.parse().unwrap_or(0)) }),
            "display" => emit(show(None, false, rest)),
            "show" => emit(show(Some("d1"), false, rest)),
            "update" => emit(show(Some("d1"), true, rest)),
            "page" => emit(Event::Page(Bundle::text(rest))),
            "clear" => emit(Event::ClearOutput { wait: true }),
            "cell" => emit(Event::Result(Bundle::text(request.cell.to_string()))),
            "insight" => emit(Event::Insight { kind: "compile".into(), json: "{\"ms\":3}".into() }),
            "panic" => panic!("a bug in the engine"),
            "error" => return Err(Reply::Error(failure(rest))),
            "input" | "password" => {
                let (answer, answered) = channel();
                emit(Event::Input { prompt: rest.into(), password: word == "password", answer });
                match answered.recv() {
                    Ok(Ok(text)) => emit(Event::Stream { stderr: false, text }),
                    Ok(Err(why)) => return Err(Reply::Error(failure(&why))),
                    Err(_) => return Err(Reply::Interrupted),
                }
            }
            // Until an interrupt, as a long computation would be.
            "wait" => {
                let flag = self.interrupted.lock().unwrap();
                drop(self.changed.wait_while(flag, |interrupted| !*interrupted).unwrap());
                return Err(Reply::Interrupted);
            }
            _ => match sum(line) {
                Some(value) => emit(Event::Result(Bundle::text(value.to_string()))),
                None => return Err(Reply::Error(failure(&format!("unknown word {word}")))),
            },
        }
        Ok(())
    }
}

fn flood(lines: u64, emit: &mut dyn FnMut(Event)) {
    let mut text = String::new();
    for n in 0..lines {
        let _ = writeln!(text, "line {n}");
        if text.len() > 32 << 10 {
            emit(Event::Stream { stderr: false, text: std::mem::take(&mut text) });
        }
    }
    emit(Event::Stream { stderr: false, text });
}

fn failure(message: &str) -> Failure {
    let shown = format!("\u{1b}[31mMockError\u{1b}[0m: {message}");
    Failure { name: "MockError".into(), message: message.into(), traceback: vec![shown] }
}

fn sum(line: &str) -> Option<i64> {
    line.split('+').map(|n| n.trim().parse::<i64>().ok()).sum()
}

impl Engine for MockEngine {
    fn execute(&self, request: &Request, events: &mut dyn FnMut(Event)) -> Reply {
        *self.interrupted.lock().unwrap() = false;
        self.saw(Call::Execute(request.code.clone()));
        let run = request.code.lines().try_for_each(|line| self.line(line.trim(), request, events));
        run.err().unwrap_or(Reply::Ok)
    }

    fn execute_beside(&self, request: &Request, events: &mut dyn FnMut(Event)) -> Option<Reply> {
        let reads = request.code.strip_prefix("read ")?;
        events(Event::Result(Bundle::text(reads)));
        Some(Reply::Ok)
    }

    fn evaluate(&self, expression: &str) -> Result<Bundle, Failure> {
        sum(expression).map(|n| Bundle::text(n.to_string())).ok_or_else(|| failure("not a sum"))
    }

    fn complete(&self, code: &str, cursor: usize) -> Completions {
        self.saw(Call::Complete(cursor));
        let start = code[..cursor]
            .rfind(|c: char| !c.is_alphanumeric())
            .map_or(0, |at| at + code[at..].chars().next().map_or(0, char::len_utf8));
        let fitting = WORDS.iter().filter(|w| w.starts_with(&code[start..cursor]));
        let candidate = |w: &&str| Candidate {
            text: (*w).into(),
            kind: "keyword".into(),
            detail: format!("{w} …"),
            ..Candidate::default()
        };
        Completions { start, end: cursor, matches: fitting.map(candidate).collect() }
    }

    fn inspect(&self, code: &str, cursor: usize, detail: u8) -> Option<Bundle> {
        self.saw(Call::Inspect(cursor, detail));
        code.contains("print").then(|| Bundle::text("print TEXT: shows a text"))
    }

    fn is_complete(&self, code: &str) -> Completeness {
        match code.trim_end().chars().last() {
            Some('{') => Completeness::Incomplete("    ".into()),
            Some(')') => Completeness::Invalid,
            _ => Completeness::Complete,
        }
    }

    fn interrupt(&self) -> bool {
        self.saw(Call::Interrupt);
        *self.interrupted.lock().unwrap() = true;
        self.changed.notify_all();
        true
    }

    fn restart(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn shutdown(&self) {
        self.saw(Call::Shutdown);
    }
}
