//! [`RustEngine`]: the engine that front ends run.
use super::channel::BetweenCells;
use super::core::{Kind, Mode, Session};
use super::process::signal;
use super::shared::{Shared, lock};
use super::{commands, questions};
use crate::engine::{Completeness, Completions, Engine, Event, Failure, Reply, Request, sentence};
use crate::eval::parse::segments::{Segment, asked_behind, segments};
use crate::eval::text::depth::as_people_write;
use crate::eval::text::source::CellText;
use crate::eval::text::types;
use crate::eval::toolchain::at_work::AtWork;
use crate::eval::toolchain::install::Installation;
use crate::eval::typing::{complete, inspect, unfinished};
use crate::magics;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use xlazy_mime::{Ask, Bundle, Question, Var};

/// Runs Rust cells in a session process of its own.
pub struct RustEngine {
    /// Held while a cell runs, magics included.
    busy: Mutex<()>,
    session: Mutex<Session>,
    shared: Shared,
}

/// A second interrupt within this time ends a session that does not react to the first.
const INSIST: Duration = Duration::from_secs(5);
/// One that comes sooner is the same key pressed twice: the first has not had its time.
const TWICE: Duration = Duration::from_millis(250);

impl RustEngine {
    /// Starts a session and a compiler for its first cell.
    pub fn start(install: Installation) -> Result<RustEngine, Failure> {
        let (at_work, between) = (AtWork::default(), BetweenCells::default());
        let session = Session::start(install, &at_work, &between)?;
        let shared = Shared::new(at_work, between, session.process.line().clone());
        shared.know(session.names());
        Ok(RustEngine { busy: Mutex::new(()), session: Mutex::new(session), shared })
    }

    /// Runs code that a magic or a file brings, as a part of the cell.
    fn run_inside(&self, mode: &Mode, code: &str, events: &mut dyn FnMut(Event)) -> Reply {
        /// Nobody writes more; a file may load itself.
        const DEEPEST: usize = 24;
        if mode.within == DEEPEST {
            let inside = "magics and files are inside of one another here";
            return Reply::Error(sentence("UsageError", format!("{DEEPEST} {inside}, and that is as many as can be")));
        }
        self.run_all(&Mode { within: mode.within + 1, ..*mode }, code, events)
    }

    /// Runs all parts of a cell, magics and Rust, until one fails.
    fn run_all(&self, mode: &Mode, code: &str, events: &mut dyn FnMut(Event)) -> Reply {
        let known = |name: &str| self.shared.names().knows(name);
        let cell = Arc::new(CellText::new(mode.cell, code));
        let segments = segments(code, &known);
        let mut mode = Mode { opt_level: mode.opt_level.or(commands::opt_in(code)), ..*mode };
        let lines = segments.iter().filter_map(|s| match s {
            Segment::Command(line) | Segment::Magic { line, .. } => Some(code[line.clone()].trim()),
            Segment::Code(_) => None,
        });
        let wanted: Vec<&str> = lines.clone().filter_map(|l| l.strip_prefix(":dep ").map(str::trim)).collect();
        if !wanted.is_empty() {
            // Built together, before anything of the cell runs.
            let level = mode.opt_level.or_else(|| lines.filter_map(commands::opt_of).next_back());
            let reply = commands::depend(&mut lock(&self.session), &self.shared, &wanted, level, events);
            if reply != Reply::Ok {
                return reply;
            }
            self.shared.know(lock(&self.session).names());
        }
        let inside = |mode: &Mode| Inside { engine: self, mode: *mode, opt_level: Cell::new(mode.opt_level) };
        for segment in segments {
            let reply = match segment {
                Segment::Command(line) => commands::run(&code[line], &inside(&mode), events),
                Segment::Magic { line, body } => {
                    let host = inside(&mode);
                    let reply = magics::run(&code[line], body.map(|b| &code[b]), &host, events);
                    mode.opt_level = host.opt_level.get();
                    reply
                }
                Segment::Code(range) => self.run_code(&mode, &cell, range, events),
            };
            if let (Reply::Error(failure), Some(name)) = (&reply, asked_behind(code))
                && failure.name == "CompileError"
                && let Some(page) = magics::Host::describe(&inside(&mode), name)
            {
                events(Event::Page(page));
                return Reply::Ok;
            }
            if self.shared.interrupted.load(Ordering::SeqCst) && reply == Reply::Ok {
                return Reply::Interrupted;
            }
            if reply != Reply::Ok {
                return reply;
            }
        }
        Reply::Ok
    }

    fn run_code(&self, mode: &Mode, cell: &Arc<CellText>, range: Range<usize>, events: &mut dyn FnMut(Event)) -> Reply {
        let mut session = lock(&self.session);
        let reply = session.run(mode, cell, range, &self.shared, events);
        self.shared.know(session.names());
        session.compiler.warm_up();
        reply
    }

    fn enter(&self) -> (Executing<'_>, MutexGuard<'_, ()>) {
        let busy = lock(&self.busy);
        let shared = &self.shared;
        let _delivery = lock(&shared.delivery);
        shared.interrupted.store(false, Ordering::SeqCst);
        shared.forced.store(false, Ordering::SeqCst);
        *lock(&shared.last_interrupt) = None;
        shared.at_work.allow();
        shared.executing.store(true, Ordering::SeqCst);
        (Executing(shared), busy)
    }
}

/// Says so when a cell has come to its end, however it did.
struct Executing<'a>(&'a Shared);

impl Drop for Executing<'_> {
    fn drop(&mut self) {
        let _delivery = lock(&self.0.delivery);
        self.0.executing.store(false, Ordering::SeqCst);
    }
}

impl Engine for RustEngine {
    fn execute(&self, request: &Request, events: &mut dyn FnMut(Event)) -> Reply {
        let _running = self.enter();
        if let Some(failure) = lock(&self.session).revive(&self.shared) {
            if !request.code.trim_start().starts_with('%') {
                return Reply::Error(failure);
            }
            events(Event::Stream { stderr: true, text: format!("{}: {}\n", failure.name, failure.message) });
        }
        let mode = Mode {
            cell: request.cell,
            silent: request.silent,
            allow_stdin: request.allow_stdin,
            opt_level: None,
            kind: Kind::User,
            within: 0,
        };
        let reply = self.run_all(&mode, &request.code, events);
        lock(&self.session).autosave_if_due(&self.shared, events);
        reply
    }

    fn execute_beside(&self, request: &Request, events: &mut dyn FnMut(Event)) -> Option<Reply> {
        questions::answer(&self.shared, &request.code, events)
    }

    fn evaluate(&self, expression: &str) -> Result<Bundle, Failure> {
        let _running = self.enter();
        let mode = Mode { cell: 0, silent: false, allow_stdin: false, opt_level: None, kind: Kind::User, within: 0 };
        let mut value = None;
        let reply = self.run_all(&mode, expression, &mut |event| {
            if let Event::Result(bundle) = event {
                value = Some(bundle);
            }
        });
        match reply {
            Reply::Ok => Ok(value.unwrap_or_else(|| Bundle::text("()"))),
            Reply::Error(failure) => Err(failure),
            Reply::Interrupted => Err(sentence("Interrupted", "the expression was interrupted")),
        }
    }

    fn complete(&self, code: &str, cursor: usize) -> Completions {
        let cursor = code.floor_char_boundary(cursor.min(code.len()));
        let shared = &self.shared;
        let known = shared.names();
        let work = || complete::complete(&shared.typist, &known, &|| questions::names(shared), code, cursor);
        as_people_write(code, work)
    }

    fn inspect(&self, code: &str, cursor: usize, detail: u8) -> Option<Bundle> {
        let cursor = code.floor_char_boundary(cursor.min(code.len()));
        let shared = &self.shared;
        let known = shared.names();
        let work = || inspect::inspect(&shared.typist, &known, &|| questions::names(shared), code, cursor, detail);
        as_people_write(code, work)
    }

    fn is_complete(&self, code: &str) -> Completeness {
        as_people_write(code, || unfinished::is_complete(code))
    }

    fn interrupt(&self) -> bool {
        let shared = &self.shared;
        let _delivery = lock(&shared.delivery);
        if !shared.executing.load(Ordering::SeqCst) {
            return false;
        }
        shared.interrupted.store(true, Ordering::SeqCst);
        magics::interrupt();
        shared.at_work.stop();
        let pid = shared.running_pid.load(Ordering::SeqCst);
        let mut last = lock(&shared.last_interrupt);
        let since = last.map(|t| t.elapsed());
        match since {
            Some(since) if pid != 0 && (TWICE..INSIST).contains(&since) => {
                shared.forced.store(true, Ordering::SeqCst);
                signal(pid, Signal::SIGKILL);
            }
            _ => lock(&shared.line).tell(&Ask::Interrupt),
        }
        if since.is_none_or(|since| since >= TWICE) {
            *last = Some(Instant::now());
        }
        true
    }

    fn listen(&self, late: Box<dyn FnMut(Event) + Send>) {
        self.shared.late.set(late);
    }

    fn stream(&self, on: bool) {
        self.shared.streams.store(on, Ordering::SeqCst);
    }

    fn widget(&self, message: &Value) -> Option<Value> {
        let answer = questions::ask(&self.shared, Question::Widget, &message.to_string()).ok()?;
        serde_json::from_str(answer.plain()).ok()
    }

    fn restart(&self) -> Result<(), Failure> {
        let shared = &self.shared;
        signal(shared.running_pid.load(Ordering::SeqCst), Signal::SIGKILL);
        shared.at_work.stop();
        let mut session = lock(&self.session);
        let install = session.install.clone();
        shared.at_work.allow();
        *session = Session::start(install, &shared.at_work, &shared.late)?;
        *lock(&shared.line) = session.process.line().clone();
        self.shared.know(session.names());
        Ok(())
    }

    fn shutdown(&self) {
        signal(self.shared.running_pid.load(Ordering::SeqCst), Signal::SIGKILL);
        self.shared.at_work.stop();
        self.shared.typist.prober.end();
        lock(&self.session).end();
    }
}

/// What magics and commands see of the engine: they are inside of a cell.
struct Inside<'a> {
    engine: &'a RustEngine,
    mode: Mode,
    /// How much what follows in the cell is optimised.
    opt_level: Cell<Option<u8>>,
}

impl commands::Host for Inside<'_> {
    fn session(&self) -> MutexGuard<'_, Session> {
        lock(&self.engine.session)
    }

    fn restart(&self) -> Result<(), Failure> {
        Engine::restart(self.engine)
    }
}

impl magics::Host for Inside<'_> {
    fn describe(&self, name: &str) -> Option<Bundle> {
        let shared = &self.engine.shared;
        let explained = || inspect::explain(&shared.typist, &shared.names(), &|| questions::names(shared), name);
        as_people_write(name, explained).or_else(|| lock(&self.engine.session).call(Question::Doc, name).ok())
    }
    fn call(&self, question: Question, args: &str) -> Result<Bundle, Failure> {
        let mut session = lock(&self.engine.session);
        let answer = session.call(question, args);
        if matches!(question, Question::Device) && !args.is_empty() && answer.is_ok() {
            session.device = Some(args.to_owned());
        }
        answer
    }

    fn run_code(&self, code: &str, events: &mut dyn FnMut(Event)) -> Reply {
        self.engine.run_inside(&Mode { opt_level: self.opt_level.get(), ..self.mode }, code, events)
    }

    fn optimise(&self, level: u8) {
        self.opt_level.set(Some(level));
    }

    fn checkpoint(&self, args: &str, events: &mut dyn FnMut(Event)) -> Reply {
        let mut session = lock(&self.engine.session);
        let reply = session.checkpoint(self.mode.cell, args, &self.engine.shared, events);
        self.engine.shared.know(session.names());
        reply
    }

    fn autosave(&self, args: &str, events: &mut dyn FnMut(Event)) -> Reply {
        lock(&self.engine.session).autosave(args, events)
    }

    fn pod(&self) -> Option<String> {
        lock(&self.engine.session).install.pod.clone()
    }

    fn move_to(&self, pod: Option<String>) -> String {
        let mut session = lock(&self.engine.session);
        let told = session.move_to(pod, &self.engine.shared);
        self.engine.shared.know(session.names());
        told
    }

    fn recover(&self, events: &mut dyn FnMut(Event)) -> Reply {
        let mut session = lock(&self.engine.session);
        let reply = session.recover(&self.engine.shared, events);
        self.engine.shared.know(session.names());
        session.compiler.warm_up();
        reply
    }

    fn vars(&self) -> Vec<Var> {
        let mut vars = lock(&self.engine.session).listed();
        vars.iter_mut().for_each(|v| v.type_name = types::short(&v.type_name));
        vars
    }

    fn interrupted(&self) -> bool {
        self.engine.shared.interrupted.load(Ordering::SeqCst)
    }
}
