//! Rust cells: split, generate, compile, load. [`RustEngine`] is the engine that front ends run.
mod at_work;
mod beside;
mod cache;
mod cargo;
mod checkpoint;
mod checkpoint_code;
mod checkpoint_files;
mod checkpoint_keep;
mod checks;
mod commands;
mod compile;
mod complete;
mod deps;
mod depth;
mod errors;
mod expand;
pub mod export;
mod facts;
mod format_strings;
mod generate;
mod groups;
mod hygiene;
mod imports;
pub mod install;
mod items;
mod journal;
mod kept;
mod learn;
mod line;
mod lockfile;
mod macros;
mod moves;
mod named;
mod objects;
mod paths;
mod publish;
mod reach;
mod recover;
mod refused;
mod retell;
mod rustc;
mod scan;
mod session;
mod source;
mod split;
mod state;
mod types;
mod warm;

use crate::engine::{Completeness, Completions, Engine, Event, Failure, Reply, Request};
use crate::magics;
use at_work::AtWork;
use errors::sentence;
use install::Installation;
use line::{Late, Line};
use nix::sys::signal::Signal;
use session::signal;
use source::CellText;
use split::Segment;
use state::{Kind, Mode, State};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};
use xlazy_mime::{Ask, Bundle, Var};

/// Runs Rust cells in a session process of its own.
pub struct RustEngine {
    /// Held while a cell runs, magics included.
    busy: Mutex<()>,
    state: Mutex<State>,
    shared: Shared,
}

/// What an interrupt, a completion or an inspection needs while a cell runs.
struct Shared {
    executing: AtomicBool,
    /// An interrupt came in during this cell.
    interrupted: AtomicBool,
    /// Held while an interrupt is delivered, and while a cell begins or ends: none hits the cell after the one that it
    /// was meant for.
    delivery: Mutex<()>,
    /// The session that runs a cell at the moment; 0 between cells.
    running_pid: AtomicI32,
    last_interrupt: Mutex<Option<Instant>>,
    forced: AtomicBool,
    at_work: AtWork,
    line: Mutex<Line>,
    late: Late,
    names: RwLock<complete::Names>,
}

/// A second interrupt within this time ends a session that does not react to the first.
const INSIST: Duration = Duration::from_secs(5);
/// One that comes sooner is the same key pressed twice: the first has not had its time.
const TWICE: Duration = Duration::from_millis(250);
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RustEngine {
    /// Starts a session and a compiler for its first cell.
    pub fn start(install: Installation) -> Result<RustEngine, Failure> {
        let (at_work, late) = (AtWork::default(), Late::default());
        let state = State::start(install, &at_work, &late)?;
        let shared = Shared {
            executing: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            delivery: Mutex::new(()),
            running_pid: AtomicI32::new(0),
            last_interrupt: Mutex::new(None),
            forced: AtomicBool::new(false),
            at_work,
            line: Mutex::new(state.session.line().clone()),
            late,
            names: RwLock::default(),
        };
        Ok(RustEngine { busy: Mutex::new(()), state: Mutex::new(state), shared })
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
        let known = |name: &str| self.names().knows(name);
        let cell = Arc::new(CellText::new(mode.cell, code));
        let segments = split::segments(code, &known);
        let dependency = |s: &Segment| match s {
            Segment::Command(line) => code[line.clone()].trim().strip_prefix(":dep ").map(str::trim),
            _ => None,
        };
        let wanted: Vec<&str> = segments.iter().filter_map(dependency).collect();
        if !wanted.is_empty() {
            // Built together, before anything of the cell runs.
            let reply = self.depend(&wanted, events);
            if reply != Reply::Ok {
                return reply;
            }
        }
        let mut mode = Mode { opt_level: mode.opt_level.or(commands::opt_in(code)), ..*mode };
        for segment in segments {
            let mode = &mut mode;
            let reply = match segment {
                Segment::Command(line) => self.command(mode, &code[line], events),
                Segment::Magic { line, body } if code[line.clone()].trim_start_matches('%').starts_with("opt ") => {
                    let level = code[line].split_whitespace().nth(1).and_then(|l| l.parse().ok());
                    match level.filter(|l| *l <= 3u8) {
                        Some(level) => mode.opt_level = Some(level),
                        None => return Reply::Error(sentence("UsageError", "`%opt` takes a level from 0 to 3")),
                    }
                    body.map_or(Reply::Ok, |body| self.run_inside(mode, &code[body], events))
                }
                Segment::Magic { line, body } => {
                    let run = ForMagics { engine: self, mode };
                    magics::run(&code[line], body.map(|b| &code[b]), &run, events)
                }
                Segment::Code(range) => self.run_code(mode, &cell, range, events),
            };
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
        let mut state = lock(&self.state);
        let reply = state.run(mode, cell, range, &self.shared, events);
        self.know(&state);
        state.compiler.warm_up();
        reply
    }

    /// Completion and inspection know of this state from now on.
    fn know(&self, state: &State) {
        *self.shared.names.write().unwrap_or_else(PoisonError::into_inner) = state.names();
    }

    fn names(&self) -> std::sync::RwLockReadGuard<'_, complete::Names> {
        self.shared.names.read().unwrap_or_else(PoisonError::into_inner)
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
        if let Some(failure) = lock(&self.state).revive(&self.shared) {
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
        self.autosave_if_due(events);
        reply
    }

    fn execute_beside(&self, request: &Request, events: &mut dyn FnMut(Event)) -> Option<Reply> {
        self.answer_beside(&request.code, events)
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
        let runtime = self.ask_beside("names", "").ok();
        complete::complete(&self.names(), runtime.as_ref(), code, cursor)
    }

    fn inspect(&self, code: &str, cursor: usize, detail: u8) -> Option<Bundle> {
        let cursor = code.floor_char_boundary(cursor.min(code.len()));
        let name = complete::name_at(code, cursor)?;
        complete::inspect(&self.names(), &name, detail).or_else(|| self.ask_beside("doc", &name).ok())
    }

    fn is_complete(&self, code: &str) -> Completeness {
        complete::is_complete(code)
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

    fn restart(&self) -> Result<(), Failure> {
        let shared = &self.shared;
        signal(shared.running_pid.load(Ordering::SeqCst), Signal::SIGKILL);
        shared.at_work.stop();
        let mut state = lock(&self.state);
        let install = state.install.clone();
        shared.at_work.allow();
        *state = State::start(install, &shared.at_work, &shared.late)?;
        *lock(&shared.line) = state.session.line().clone();
        self.know(&state);
        Ok(())
    }

    fn shutdown(&self) {
        signal(self.shared.running_pid.load(Ordering::SeqCst), Signal::SIGKILL);
        self.shared.at_work.stop();
        lock(&self.state).end();
    }
}

/// What magics see of the engine.
struct ForMagics<'a> {
    engine: &'a RustEngine,
    mode: &'a Mode,
}

impl magics::Session for ForMagics<'_> {
    fn call(&self, name: &str, args: &str) -> Result<Bundle, Failure> {
        lock(&self.engine.state).call(name, args)
    }

    fn run_code(&self, code: &str, events: &mut dyn FnMut(Event)) -> Reply {
        self.engine.run_inside(self.mode, code, events)
    }

    fn checkpoint(&self, args: &str, events: &mut dyn FnMut(Event)) -> Reply {
        self.engine.checkpoint(self.mode, args, events)
    }

    fn autosave(&self, args: &str, events: &mut dyn FnMut(Event)) -> Reply {
        self.engine.autosave(args, events)
    }

    fn recover(&self, events: &mut dyn FnMut(Event)) -> Reply {
        self.engine.recover(events)
    }

    fn vars(&self) -> Vec<Var> {
        let mut vars = lock(&self.engine.state).vars.clone();
        vars.iter_mut().for_each(|v| v.type_name = types::short(&v.type_name));
        vars
    }

    fn interrupted(&self) -> bool {
        self.engine.shared.interrupted.load(Ordering::SeqCst)
    }
}
