//! The session behind an engine: its process, and all that is known of it.
use super::channel::BetweenCells;
use super::checkpoint::autosave::Autosave;
use super::checkpoint::files;
use super::journal::{Journal, Said};
use super::process::SessionProcess;
use super::shared::{Shared, lock};
use crate::engine::{Failure, sentence};
use crate::eval::build::compile::Effects;
use crate::eval::build::compiler::Compiler;
use crate::eval::generate::declared::Declared;
use crate::eval::tell::point::point_at;
use crate::eval::text::source::CellText;
use crate::eval::toolchain::at_work::AtWork;
use crate::eval::toolchain::install::Installation;
use crate::eval::typing::scope::InScope;
use crate::folder::Folder;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use xlazy_mime::{Bundle, Question, Var};

const CALL_TIMEOUT: Duration = Duration::from_secs(600);

/// A session with all that is known of it: what runs cells, one after the other.
pub struct Session {
    pub install: Installation,
    pub compiler: Compiler,
    pub process: SessionProcess,
    pub vars: Vec<Var>,
    /// What became of variables that are no longer there.
    pub gone: HashMap<String, String>,
    /// How those that are there were declared, and those that wait for a cell that decides their type.
    pub declared: Declared,
    /// Variables that cells have lent for good, which keeps their values until the session ends.
    pub lent: BTreeSet<String>,
    /// What a crash took and nothing has brought back.
    pub lost: Lost,
    pub journal: Journal,
    /// What a run that `%recover` repeats printed and showed; what is said of compiling it is not its own.
    pub replayed: Option<Said>,
    /// What a generated run does to variables, where that cannot be seen in its text.
    pub effect: Option<Effects>,
    pub autosave: Autosave,
    /// The random generator's state after the last run.
    pub generator: (u64, u64),
    /// Source files of definitions, the cells and lines they belong to, and the cell's text, as the runtime is told.
    pub registered: Vec<String>,
    /// What `%device` was told last.
    pub device: Option<String>,
    /// The numbers of rustc's errors in the last cell that did not compile.
    pub last_codes: BTreeSet<String>,
    /// Of cells that do not say otherwise, and of dependencies, where `:opt` has said one.
    pub opt_level: Option<u8>,
    pub runs: u64,
    /// The last run came so far that its code ran.
    pub begun: bool,
    pub late: BetweenCells,
}

/// What a run may do besides running.
#[derive(Clone, Copy)]
pub struct Mode {
    pub cell: u64,
    pub silent: bool,
    pub allow_stdin: bool,
    /// How much this cell is to be optimised, where it says so itself.
    pub opt_level: Option<u8>,
    pub kind: Kind,
    /// How many magics, or files that `:load` runs, it is inside of.
    pub within: usize,
}

/// Whose run it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    User,
    /// `%recover` repeats an earlier one.
    Replay,
    /// Generated, and without any effect on the variables.
    Hidden,
}

/// Where a session was when it ended.
pub enum At<'a> {
    Cell(&'a Arc<CellText>, Option<u32>),
    /// No cell was running.
    Idle,
}

/// What `%recover` needs to know of the session that was lost.
#[derive(Default)]
pub struct Lost {
    pub names: BTreeSet<String>,
    /// Its random generator's state.
    pub generator: (u64, u64),
}

impl Session {
    pub fn start(install: Installation, at_work: &AtWork, late: &BetweenCells) -> Result<Session, Failure> {
        let folder = Folder::new().map_err(|what| sentence("StartError", what))?;
        let compiler = Compiler::new(install.clone(), folder.clone(), at_work.clone());
        let process = SessionProcess::start(&install, &folder.path(), late, compiler.sources());
        let process = process.map_err(|e| sentence("StartError", folder.with_advice(&e)))?;
        let (vars, gone, declared, lent, lost, journal, generator, registered, last_codes) = Default::default();
        let device = None;
        let (effect, autosave, opt_level, runs, begun, replayed) = Default::default();
        Ok(Session {
            install,
            compiler,
            process,
            vars,
            gone,
            declared,
            lent,
            lost,
            journal,
            replayed,
            effect,
            autosave,
            generator,
            registered,
            device,
            last_codes,
            opt_level,
            runs,
            begun,
            late: late.clone(),
        })
    }

    /// The session died: a new one takes its place, and the error says what is lost.
    pub fn replace_session(&mut self, how: &str, place: At, shared: &Shared) -> Failure {
        let names = self.lose_variables();
        let forced = shared.forced.load(Ordering::SeqCst);
        let mut message = match forced {
            true => "the cell did not answer the interrupt, so its session was ended".to_owned(),
            false => format!("the session process {how}"),
        };
        let mut pointer = Vec::new();
        match place {
            At::Idle => message += " while no cell ran",
            At::Cell(cell, None) => message += &format!(" before the first statement of {}", cell.label()),
            At::Cell(cell, Some(line)) => {
                message += &format!(" while {} was at line {line}", cell.label());
                let start: usize = cell.text.split_inclusive('\n').take(line as usize - 1).map(str::len).sum();
                let code = &cell.text[start..];
                pointer = point_at(cell, start + code.len() - code.trim_start_matches([' ', '\t']).len());
            }
        }
        message += &match self.start_another(shared) {
            Ok(()) => "; a new one is running".to_owned(),
            Err(why) => format!("; a new one does not start: {why}"),
        };
        message += &match names.is_empty() {
            true => ". No variables were lost".to_owned(),
            false => format!(". Lost variables: {}. `%recover` runs the cells again that made them", names.join(", ")),
        };
        if let Some((path, at)) = self.autosave.newest.as_ref().filter(|_| !names.is_empty()) {
            let age = xlazy_mime::units::age(at.elapsed().unwrap_or_default());
            message += &format!("; `%checkpoint load {}` loads what was saved {age} ago", files::name_of(path));
        }
        message += ". Items (functions, types, macros) are still there";
        let mut failure = sentence(if forced { "SessionRestarted" } else { "SessionDied" }, message);
        failure.traceback.extend(pointer);
        failure
    }

    /// All variables are gone with the session: their names.
    fn lose_variables(&mut self) -> Vec<String> {
        for v in &self.vars {
            self.declared.entry(v.name.clone()).and_modify(|d| d.lost = Some(v.type_name.clone()));
        }
        let names: Vec<String> = self.vars.drain(..).map(|v| v.name).collect();
        for name in &names {
            let what = "was lost when its session ended; `%recover` runs the cells again that made it";
            self.gone.insert(name.clone(), what.into());
        }
        if !names.is_empty() {
            self.lost.generator = self.generator;
        }
        self.lost.names.extend(names.iter().cloned());
        self.declared.retain(|_, d| d.is_pending() || d.lost.is_some());
        self.lent.clear();
        self.autosave.begin_again();
        self.generator = (0, 0);
        names
    }

    /// Another session takes the place of the one that there is, or was.
    fn start_another(&mut self, shared: &Shared) -> Result<(), String> {
        let folder = self.compiler.restore().map(|_| self.compiler.folder.path()).map_err(|failure| failure.message);
        let started = folder
            .and_then(|folder| SessionProcess::start(&self.install, &folder, &self.late, self.compiler.sources()));
        let process = started.map_err(|e| self.compiler.folder.with_advice(&e))?;
        *lock(&shared.line) = process.line().clone();
        self.process = process;
        // Functions of earlier cells are still there, and so are their lines.
        for known in self.registered.clone() {
            let _ = self.call(Question::Cell, &known);
        }
        if let Some(device) = &self.device {
            let _ = self.call(Question::Device, device);
        }
        Ok(())
    }

    /// Ends the session, and goes on in one whose programs run on this pod, or on this machine's devices: what is lost.
    pub fn move_to(&mut self, pod: Option<String>, shared: &Shared) -> String {
        self.install.pod = pod;
        let names = self.lose_variables();
        let started = self.start_another(shared);
        let lost = match names.is_empty() {
            true => String::new(),
            false => format!(
                "Values were those of the session that was there: lost are {}. `%recover` runs the cells again that made them",
                names.join(", ")
            ),
        };
        match started {
            Ok(()) => lost,
            Err(why) => format!("No session starts: {why}. {lost}"),
        }
    }

    /// A session that ended while nothing ran (somebody killed it, a thread of an earlier cell did) is replaced.
    pub fn revive(&mut self, shared: &Shared) -> Option<Failure> {
        let how = self.process.death()?;
        Some(self.replace_session(&how, At::Idle, shared))
    }

    pub fn set_generator(&mut self, state: (u64, u64)) {
        let _ = self.call(Question::Generator, &format!("{} {}", state.0, state.1));
        self.generator = state;
    }

    pub fn call(&self, question: Question, args: &str) -> Result<Bundle, Failure> {
        self.process.line().call(question, args, CALL_TIMEOUT)
    }

    pub fn names(&self) -> InScope {
        InScope::of(&self.listed(), self.open_lets(), self.compiler.context())
    }
}

impl Session {
    /// Ends all that is at work for it, and removes its folder.
    pub fn end(&mut self) {
        self.compiler.end();
        self.process.end();
        self.compiler.settle();
        self.compiler.folder.remove();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}
