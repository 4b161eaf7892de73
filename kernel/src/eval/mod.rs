//! Rust cells: split, generate, compile, load. [`RustEngine`] is the engine that front ends run.
mod at_work;
mod beside;
mod cache;
mod cargo;
mod checkpoint;
mod checkpoint_files;
mod commands;
mod compile;
mod complete;
mod deps;
mod errors;
pub mod export;
mod generate;
mod groups;
pub mod install;
mod items;
mod journal;
mod kept;
mod line;
mod lockfile;
mod moves;
mod paths;
mod recover;
mod rustc;
mod scan;
mod session;
mod source;
mod split;
mod types;
mod warm;

use crate::engine::{Completeness, Completions, Engine, Event, Failure, Reply, Request};
use crate::magics;
use crate::trouble;
use at_work::AtWork;
use checkpoint::Autosave;
use compile::{Compiler, Names, Scope, Timing};
use errors::{run_failure, sentence};
use install::Installation;
use journal::{End, Entry, Journal, Listener};
use line::{Late, Line, News};
use nix::sys::signal::Signal;
use recover::{Lost, Place};
use session::{SessionProcess, signal};
use source::CellText;
use split::Segment;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};
use xlazy_mime::{Ask, Bundle, Outcome, RunCell, Tell, Var};

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

struct State {
    install: Installation,
    dir: PathBuf,
    compiler: Compiler,
    session: SessionProcess,
    vars: Vec<Var>,
    /// What became of variables that are no longer there.
    gone: HashMap<String, String>,
    /// What a crash took and nothing has brought back.
    lost: Lost,
    journal: Journal,
    /// What a generated run does to variables, where that cannot be seen in its text.
    effect: Option<Names>,
    autosave: Autosave,
    /// The random generator's state after the last run.
    generator: (u64, u64),
    /// Source files of definitions, the cells and lines they belong to, and the cell's text, as the runtime is told.
    registered: Vec<String>,
    /// The numbers of rustc's errors in the last cell that did not compile.
    last_codes: std::collections::BTreeSet<String>,
    /// Of cells that do not say otherwise.
    opt_level: u8,
    runs: u64,
    late: Late,
}

/// A second interrupt within this time ends a session that does not react to the first.
const INSIST: Duration = Duration::from_secs(5);
/// One that comes sooner is the same key pressed twice: the first has not had its time.
const TWICE: Duration = Duration::from_millis(250);
const CALL_TIMEOUT: Duration = Duration::from_secs(600);

/// What a run may do besides running.
struct Mode {
    cell: u64,
    silent: bool,
    allow_stdin: bool,
    /// How much this cell is to be optimised, where it says so itself.
    opt_level: Option<u8>,
    kind: Kind,
}

/// Whose run it is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    User,
    /// `%recover` repeats an earlier one.
    Replay,
    /// Generated, and without any effect on the variables.
    Hidden,
}

/// How a run ended, as the session tells it.
struct Done {
    outcome: Outcome,
    vars: Vec<Var>,
    lost: Vec<String>,
    generator: (u64, u64),
}

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

    /// Runs all parts of a cell, magics and Rust, until one fails.
    fn run_all(&self, mode: &Mode, code: &str, events: &mut dyn FnMut(Event)) -> Reply {
        let known = |name: &str| self.names().knows(name);
        let cell = Arc::new(CellText { cell: mode.cell, text: code.to_owned() });
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
                    body.map_or(Reply::Ok, |body| self.run_all(mode, &code[body], events))
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
        let mode = Mode { cell: 0, silent: false, allow_stdin: false, opt_level: None, kind: Kind::User };
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
        let mut state = lock(&self.state);
        state.compiler.end();
        state.session.end();
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
        self.engine.run_all(self.mode, code, events)
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

impl State {
    fn start(install: Installation, at_work: &AtWork, late: &Late) -> Result<State, Failure> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let unique = format!("xlazy-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        sweep(&std::env::temp_dir());
        let dir = std::env::temp_dir().join(unique);
        let refused = |what: &str| sentence("StartError", trouble::with_advice(what, &dir, "TMPDIR"));
        std::fs::create_dir_all(&dir).map_err(|e| refused(&e.to_string()))?;
        let compiler = Compiler::new(install.clone(), dir.clone(), at_work.clone());
        let session = SessionProcess::start(&install, &dir, late, compiler.sources());
        let session = session.map_err(|e| refused(&e))?;
        let (vars, gone, lost, journal, generator, registered, last_codes) = Default::default();
        let (effect, autosave, opt_level, runs) = Default::default();
        Ok(State {
            install,
            dir,
            compiler,
            session,
            vars,
            gone,
            lost,
            journal,
            effect,
            autosave,
            generator,
            registered,
            last_codes,
            opt_level,
            runs,
            late: late.clone(),
        })
    }

    fn run(
        &mut self,
        mode: &Mode,
        cell: &Arc<CellText>,
        range: Range<usize>,
        shared: &Shared,
        events: &mut dyn FnMut(Event),
    ) -> Reply {
        if mode.kind != Kind::Hidden {
            self.refuse_private(&cell.text[range.clone()], events);
        }
        let opt_level = mode.opt_level.unwrap_or(self.opt_level);
        let defs = self.journal.defs(&self.compiler.defs);
        let scope = Scope { vars: &self.vars, gone: &self.gone };
        self.compiler.opt_level = opt_level;
        let ready = self.compiler.compile(cell, range.clone(), &scope);
        self.compiler.opt_level = self.opt_level;
        let ready = match ready {
            Ok(ready) => ready,
            Err(refused) => {
                if let compile::Refused::Failure(failure) = &refused {
                    self.last_codes = errors::codes(failure);
                }
                return refused.into();
            }
        };
        events(rustc_insight(mode.cell, &ready.timing));
        if let Some(text) = self.compiler.note() {
            events(Event::Stream { stderr: true, text });
        }
        if shared.interrupted.load(Ordering::SeqCst) {
            return Reply::Interrupted;
        }
        self.compiler.commit(&ready);
        if let Some(file) = &ready.group_file {
            let known = format!("{}\n{}", self.places(file, mode.cell).0, cell.text);
            let _ = self.call("cell", &known);
            self.registered.push(known);
        }
        if mode.kind != Kind::Replay {
            self.drop_outdated(events);
        }
        let Some(object) = &ready.object else { return Reply::Ok };
        if let (places, true) = self.places(&ready.file, mode.cell) {
            let _ = self.call("cell", &places);
        }
        self.runs += 1;
        let run = RunCell {
            run: self.runs,
            cell: mode.cell,
            object: object.to_string_lossy().into_owned(),
            symbol: generate::ENTRY.into(),
            file: ready.file.clone(),
            text: cell.text.clone(),
            lead: self.compiler.source(&ready.file).map_or(0, |s| s.lead()),
        };
        {
            let _delivery = lock(&shared.delivery);
            if shared.interrupted.load(Ordering::SeqCst) {
                return Reply::Interrupted;
            }
            shared.running_pid.store(self.session.pid(), Ordering::SeqCst);
            self.session.run(run);
        }
        // While the cell runs, the next one's compiler starts up.
        self.compiler.warm_up();
        let mut heard = Listener::default();
        let mut listened = |event: Event| {
            heard.hear(&event);
            events(event);
        };
        let end = self.listen(mode, &mut listened, shared);
        shared.running_pid.store(0, Ordering::SeqCst);
        self.session.ended();
        self.compiler.finished(&ready);
        let done = match end {
            Ok(done) => done,
            Err(how) => {
                let place = Place::Cell(cell, self.session.at_line(self.runs));
                return Reply::Error(self.replace_session(&how, place, shared));
            }
        };
        let generator = std::mem::replace(&mut self.generator, done.generator);
        let reply = self.conclude(mode, done, &ready.moves, events);
        if mode.kind == Kind::User {
            let mut names = ready.names;
            if let Some(effect) = &self.effect {
                names.binds.extend(effect.binds.iter().cloned());
                names.takes.extend(effect.takes.iter().cloned());
                names.fresh.extend(effect.fresh.iter().cloned());
            }
            if reply != Reply::Ok {
                // What it declared is stored at its end, and that never came.
                names.binds.clear();
                names.fresh.clear();
            }
            let end = End::of(&reply, heard.said(), &names, &self.vars);
            let (cell, silent) = (cell.clone(), mode.silent);
            let entry = Entry { cell, range, silent, opt_level, defs, generator, names, end };
            let (vars, lost) = (&self.vars, &self.lost.names);
            self.journal.add(entry, &|| vars.iter().map(|v| v.name.clone()).chain(lost.iter().cloned()).collect());
        }
        reply
    }

    /// What the runtime is to know of a source file: its cell, lines that belong to others, and what its code decides by;
    /// and whether there is anything of the last.
    fn places(&self, file: &str, cell: u64) -> (String, bool) {
        let mut out = format!("{file} {cell}");
        let Some(source) = self.compiler.source(file) else { return (out, false) };
        source.elsewhere(cell).iter().for_each(|(here, of, there)| out += &format!(" {here}:{of}:{there}"));
        let conditions = source.conditions();
        conditions.iter().for_each(|((l, c), (end, ec))| out += &format!(" {l}:{c}-{end}:{ec}"));
        (out, !conditions.is_empty())
    }

    /// Passes on what the cell does until it is done; the error says how the session died.
    fn listen(&mut self, mode: &Mode, events: &mut dyn FnMut(Event), shared: &Shared) -> Result<Done, String> {
        loop {
            match self.session.next() {
                News::Gone(how) => return Err(how),
                News::Tell(Tell::Done { run, outcome, vars, lost, generator }) if run == self.runs => {
                    return Ok(Done { outcome, vars, lost, generator });
                }
                News::Tell(Tell::AskInput { prompt, password }) => {
                    let answer = self.user_answer(mode, prompt, password, events, shared);
                    if let Some(answer) = answer {
                        self.session.line().tell(&Ask::Input(answer));
                    }
                }
                News::Tell(Tell::Result(_)) if mode.silent => {}
                news => self.pass_on(news, events),
            }
        }
    }

    fn pass_on(&self, news: News, events: &mut dyn FnMut(Event)) {
        if let Some(event) = news.event(&self.compiler.sources()) {
            events(event);
        }
    }

    /// Waits for the user, and at the same time for the cell's end: an interrupt takes the question back.
    fn user_answer(
        &mut self,
        mode: &Mode,
        prompt: String,
        password: bool,
        events: &mut dyn FnMut(Event),
        shared: &Shared,
    ) -> Option<Result<String, String>> {
        if !mode.allow_stdin {
            return Some(Err("this front end has no way to ask the user".into()));
        }
        let (answer, answered) = channel();
        events(Event::Input { prompt, password, answer });
        loop {
            match answered.recv_timeout(Duration::from_millis(20)) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return Some(Err("the question was not answered".into())),
                Err(RecvTimeoutError::Timeout) => {
                    // Other threads of the cell go on printing.
                    let (mut news, mut over) = self.session.before_the_end();
                    while let Some(one) = news {
                        self.pass_on(one, events);
                        (news, over) = self.session.before_the_end();
                    }
                    if over || shared.forced.load(Ordering::SeqCst) {
                        return None;
                    }
                }
            }
        }
    }

    fn conclude(
        &mut self,
        mode: &Mode,
        Done { outcome, vars, lost, .. }: Done,
        moves: &std::collections::BTreeSet<String>,
        events: &mut dyn FnMut(Event),
    ) -> Reply {
        let by = if mode.cell == 0 { "an unnumbered cell".to_owned() } else { format!("cell {}", mode.cell) };
        let how = match outcome {
            Outcome::Ok => format!("was moved by {by}: run the cell that makes it again, or move a `.clone()` of it"),
            _ => format!("was lost when {by} ended early after moving it"),
        };
        for name in lost.iter().chain(moves) {
            if !vars.iter().any(|v| v.name == *name) {
                self.gone.insert(name.clone(), how.clone());
            }
        }
        self.vars = vars;
        self.gone.retain(|n, _| !self.vars.iter().any(|v| v.name == *n));
        self.lost.names.retain(|n| !self.vars.iter().any(|v| v.name == *n));
        self.refuse_nameless(events);
        self.compiler.prepare(&self.vars);
        match outcome {
            Outcome::Ok => Reply::Ok,
            Outcome::Interrupted => Reply::Interrupted,
            Outcome::Failed(fault) => {
                let compiler = &self.compiler;
                Reply::Error(run_failure(&fault, &|file| compiler.source(file), &lost))
            }
        }
    }

    fn call(&self, name: &str, args: &str) -> Result<Bundle, Failure> {
        self.session.line().call(name, args, CALL_TIMEOUT)
    }

    fn names(&self) -> complete::Names {
        complete::Names::of(&self.vars, &self.compiler.defs)
    }
}

/// Removes folders of kernels that were killed, a day ago or more, and could not clean up behind them. The day is for
/// kernels in other containers, whose processes cannot be seen from here.
fn sweep(temporary: &Path) {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let old = |e: &std::fs::DirEntry| {
        e.metadata().and_then(|m| m.modified()).is_ok_and(|t| t.elapsed().is_ok_and(|a| a > DAY))
    };
    for entry in std::fs::read_dir(temporary).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid =
            name.to_str().and_then(|n| n.strip_prefix("xlazy-")?.split('-').find_map(|part| part.parse::<u32>().ok()));
        if old(&entry) && pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.compiler.end();
        self.compiler.settle();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn rustc_insight(cell: u64, timing: &Timing) -> Event {
    let json = serde_json::json!({
        "cell": cell, "definitions_ms": timing.group_ms, "statements_ms": timing.cell_ms, "compiles": timing.tries,
        "libraries": timing.libraries, "cached": timing.cached,
    });
    Event::Insight { kind: "rustc".into(), json: json.to_string() }
}
