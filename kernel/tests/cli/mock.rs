//! An engine without Rust cells: each line of a cell is a command that says which event it makes.
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex};
use xlazy_kernel::engine::{Completeness, Completions, Engine, Event, Failure, Reply, Request};
use xlazy_mime::Bundle;

/// `out TEXT` and `err TEXT` (`\n` is a line break), `= TEXT`, `json TEXT`, `png`, `show ID TEXT`, `update ID TEXT`,
/// `clear`, `clear-at-next`, `page TEXT`, `ask PROMPT`, `insight KIND`, `next CODE`, `fail MESSAGE`, `hang` (until interrupted);
/// anything else is left out.
#[derive(Default)]
pub struct Mock {
    interrupted: (Mutex<bool>, Condvar),
}

impl Engine for Mock {
    fn execute(&self, request: &Request, events: &mut dyn FnMut(Event)) -> Reply {
        for line in request.code.lines() {
            let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            let rest = rest.replace("\\n", "\n");
            let (id, text) = rest.split_once(' ').unwrap_or((&rest, ""));
            let display = |update| Event::Display { bundle: Bundle::text(text), id: Some(id.to_owned()), update };
            match word {
                "out" | "err" => events(Event::Stream { stderr: word == "err", text: rest }),
                "=" => events(Event::Result(Bundle::html(format!("<b>{rest}</b>\n<i>"), rest))),
                "json" => events(Event::Result(Bundle::text("json").with("application/json", rest))),
                "png" => events(Event::Display {
                    bundle: Bundle::text("a picture").with_bytes("image/png", b"\x89PNG".to_vec()),
                    id: None,
                    update: false,
                }),
                "show" => events(display(false)),
                "update" => events(display(true)),
                "clear" => events(Event::ClearOutput { wait: false }),
                "clear-at-next" => events(Event::ClearOutput { wait: true }),
                "page" => events(Event::Page(Bundle::text(rest))),
                "insight" => events(Event::Insight { kind: rest, json: r#"{"ms": 1.5}"#.into() }),
                "next" => events(Event::NextInput(rest)),
                "ask" => {
                    let (answer, heard) = channel();
                    events(Event::Input { prompt: rest, password: false, answer });
                    let text = match heard.recv().unwrap() {
                        Ok(line) => format!("heard {line}\n"),
                        Err(why) => format!("no answer: {why}\n"),
                    };
                    events(Event::Stream { stderr: false, text });
                }
                "fail" => {
                    return Reply::Error(Failure {
                        name: "TensorError".into(),
                        message: rest.clone(),
                        traceback: vec![format!("\x1b[31mTensorError\x1b[0m: {rest}"), "  cell 1, line 1".into()],
                    });
                }
                "hang" => {
                    let (flag, news) = &self.interrupted;
                    let mut flag = news.wait_while(flag.lock().unwrap(), |f| !*f).unwrap();
                    *flag = false;
                    return Reply::Interrupted;
                }
                _ => {}
            }
        }
        Reply::Ok
    }

    fn evaluate(&self, expression: &str) -> Result<Bundle, Failure> {
        Ok(Bundle::text(expression))
    }

    fn complete(&self, _code: &str, cursor: usize) -> Completions {
        Completions { start: cursor, end: cursor, matches: Vec::new() }
    }

    fn inspect(&self, _code: &str, _cursor: usize, _detail: u8) -> Option<Bundle> {
        None
    }

    fn is_complete(&self, code: &str) -> Completeness {
        match code.matches('{').count() > code.matches('}').count() {
            true => Completeness::Incomplete("    ".into()),
            false => Completeness::Complete,
        }
    }

    fn interrupt(&self) -> bool {
        *self.interrupted.0.lock().unwrap() = true;
        self.interrupted.1.notify_all();
        true
    }

    fn restart(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn shutdown(&self) {}
}
