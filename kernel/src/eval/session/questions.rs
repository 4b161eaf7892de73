//! What is answered while a cell runs: questions that only read. Rust has to wait, because the variables belong to the
//! thread that runs the cell.
use super::channel::Channel;
use super::shared::{Shared, lock};
use crate::engine::{Event, Failure, Reply};
use crate::eval::parse::segments::{Segment, segments};
use crate::eval::text::types;
use crate::magics;
use std::time::Duration;
use xlazy_mime::{Bundle, Question, Var};

/// Who asks beside a cell wants an answer now, or none.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs a cell of nothing but magics that only read; `None` for any other.
pub fn answer(shared: &Shared, code: &str, events: &mut dyn FnMut(Event)) -> Option<Reply> {
    let known = |name: &str| shared.names().knows(name);
    let mut lines = Vec::new();
    for segment in segments(code, &known) {
        match segment {
            Segment::Magic { line, body: None } if magics::only_reads(&code[line.clone()]) => {
                lines.push(&code[line]);
            }
            Segment::Code(range) if code[range.clone()].trim().is_empty() => {}
            _ => return None,
        }
    }
    let host = Beside { shared };
    let mut replies = lines.into_iter().map(|line| magics::run(line, None, &host, events));
    Some(replies.find(|reply| *reply != Reply::Ok).unwrap_or(Reply::Ok))
}

/// Asks the runtime, whether a cell runs or not.
pub fn ask(shared: &Shared, question: Question, args: &str) -> Result<Bundle, Failure> {
    let channel: Channel = lock(&shared.line).clone();
    channel.call(question, args, PATIENCE)
}

/// The runtime's public names, as data.
pub fn names(shared: &Shared) -> Option<serde_json::Value> {
    serde_json::from_str(ask(shared, Question::Names, "").ok()?.get("application/json")?).ok()
}

/// What magics see of a session that runs a cell: the variables as they were before it.
struct Beside<'a> {
    shared: &'a Shared,
}

impl magics::Host for Beside<'_> {
    fn call(&self, question: Question, args: &str) -> Result<Bundle, Failure> {
        ask(self.shared, question, args)
    }

    fn run_code(&self, _code: &str, _events: &mut dyn FnMut(Event)) -> Reply {
        unreachable!("a magic that only reads runs no code")
    }

    fn vars(&self) -> Vec<Var> {
        let mut vars = self.shared.names().vars().to_vec();
        vars.iter_mut().for_each(|v| v.type_name = types::short(&v.type_name));
        vars
    }

    fn optimise(&self, _level: u8) {
        unreachable!("nothing follows that is compiled")
    }

    fn checkpoint(&self, _args: &str, _events: &mut dyn FnMut(Event)) -> Reply {
        unreachable!("it reads the variables' values")
    }

    fn autosave(&self, _args: &str, _events: &mut dyn FnMut(Event)) -> Reply {
        unreachable!("it changes what happens after cells")
    }

    fn pod(&self) -> Option<String> {
        unreachable!("it asks for what the session was started with")
    }

    fn move_to(&self, _pod: Option<String>) -> String {
        unreachable!("it ends the session")
    }

    fn recover(&self, _events: &mut dyn FnMut(Event)) -> Reply {
        unreachable!("it runs cells")
    }
}
