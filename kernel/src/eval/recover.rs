//! After a crash: what is said of it, and `%recover`, which runs again the cells that made what was lost.
use super::checkpoint_files as files;
use super::errors::{point_at, sentence};
use super::journal::{End, Entry};
use super::session::SessionProcess;
use super::source::CellText;
use super::{Kind, Mode, RustEngine, Shared, State, lock};
use crate::engine::{Event, Failure, Reply};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use xlazy_mime::Bundle;

/// Where a session was when it ended.
pub(super) enum Place<'a> {
    Cell(&'a Arc<CellText>, Option<u32>),
    /// No cell was running.
    Idle,
}

/// What `%recover` needs to know of the session that was lost.
#[derive(Default)]
pub(super) struct Lost {
    pub names: BTreeSet<String>,
    /// Its random generator's state.
    generator: (u64, u64),
}

impl State {
    /// The session died: a new one takes its place, and the error says what is lost.
    pub(super) fn replace_session(&mut self, how: &str, place: Place, shared: &Shared) -> Failure {
        let names: Vec<String> = self.vars.drain(..).map(|v| v.name).collect();
        for name in &names {
            let what = "was lost when its session ended; `%recover` runs the cells again that made it";
            self.gone.insert(name.clone(), what.into());
        }
        if !names.is_empty() {
            self.lost.generator = self.generator;
        }
        self.lost.names.extend(names.iter().cloned());
        self.autosave.begin_again();
        self.generator = (0, 0);
        let forced = shared.forced.load(Ordering::SeqCst);
        let mut message = match forced {
            true => "the cell did not answer the interrupt, so its session was ended".to_owned(),
            false => format!("the session process {how}"),
        };
        let mut pointer = Vec::new();
        match place {
            Place::Idle => message += " while no cell ran",
            Place::Cell(cell, None) => message += &format!(" before the first statement of {}", cell.label()),
            Place::Cell(cell, Some(line)) => {
                message += &format!(" while {} was at line {line}", cell.label());
                let start: usize = cell.text.split_inclusive('\n').take(line as usize - 1).map(str::len).sum();
                let code = &cell.text[start..];
                pointer = point_at(cell, start + code.len() - code.trim_start_matches([' ', '\t']).len());
            }
        }
        let folder = self.compiler.restore().map(|_| self.compiler.folder.path()).map_err(|failure| failure.message);
        let started = folder
            .and_then(|folder| SessionProcess::start(&self.install, &folder, &self.late, self.compiler.sources()));
        match started {
            Ok(session) => {
                *lock(&shared.line) = session.line().clone();
                self.session = session;
                // Functions of earlier cells are still there, and so are their lines.
                for known in self.registered.clone() {
                    let _ = self.call("cell", &known);
                }
                message += "; a new one is running";
            }
            Err(e) => {
                let why = self.compiler.folder.with_advice(&e);
                message += &format!("; a new one does not start: {why}");
            }
        }
        message += &match names.is_empty() {
            true => ". No variables were lost".to_owned(),
            false => format!(". Lost variables: {}. `%recover` runs the cells again that made them", names.join(", ")),
        };
        if let Some((path, at)) = self.autosave.newest.as_ref().filter(|_| !names.is_empty()) {
            let age = files::human(at.elapsed().unwrap_or_default());
            message += &format!("; `%checkpoint load {}` loads what was saved {age} ago", files::name_of(path));
        }
        message += ". Items (functions, types, macros) are still there";
        let mut failure = sentence(if forced { "SessionRestarted" } else { "SessionDied" }, message);
        failure.traceback.extend(pointer);
        failure
    }

    /// A session that ended while nothing ran (somebody killed it, a thread of an earlier cell did) is replaced.
    pub(super) fn revive(&mut self, shared: &Shared) -> Option<Failure> {
        let how = self.session.death()?;
        Some(self.replace_session(&how, Place::Idle, shared))
    }

    fn recover(&mut self, shared: &Shared, events: &mut dyn FnMut(Event)) -> Reply {
        if self.lost.names.is_empty() {
            return show("Nothing is lost: every variable is there.".into(), events);
        }
        let wanted = self.lost.names.clone();
        let (runs, _) = self.journal.needed(&wanted);
        let there: BTreeSet<String> = self.vars.iter().map(|v| v.name.clone()).collect();
        let (drawn, defs) = (self.generator, self.compiler.defs.clone());
        let mut reply = Reply::Ok;
        for (done, entry) in runs.iter().enumerate() {
            let count = format!("{} of {}", done + 1, runs.len());
            events(Event::Stream { stderr: true, text: format!("recover: {} ({count})\n", entry.cell.label()) });
            let otherwise = match entry.end.reply {
                Reply::Interrupted => Some("it was interrupted, and how far it had come cannot be repeated".to_owned()),
                _ => self.run_again(entry, shared),
            };
            if shared.interrupted.load(Ordering::SeqCst) {
                reply = Reply::Interrupted;
                break;
            }
            if let Some(otherwise) = otherwise {
                reply = Reply::Error(self.stopped(entry, &otherwise, &wanted, &runs[done + 1..]));
                break;
            }
        }
        self.compiler.defs = defs;
        // As if the lost session had gone on, unless the new one has drawn numbers of its own.
        let generator = if drawn == (0, 0) { self.lost.generator } else { drawn };
        self.set_generator(generator);
        self.drop_outdated(events);
        if reply != Reply::Ok {
            return reply;
        }
        let made: BTreeSet<&String> = runs.iter().flat_map(|e| &e.names.binds).collect();
        let again: Vec<&str> = there.iter().filter(|n| made.contains(n)).map(String::as_str).collect();
        let mut text = format!("Recovered {} by running {} again.", self.recovered(&wanted), cells(&runs));
        if !again.is_empty() {
            text += &format!("\nThese were there already and were made again on the way: {}.", again.join(", "));
        }
        let left = std::mem::take(&mut self.lost.names);
        if !left.is_empty() {
            text += &format!("\nNot recovered: {}: the cells that made them ran too long ago.", list(&left));
        }
        show(text, events)
    }

    /// Runs an entry as it was then; what is otherwise, if anything is.
    fn run_again(&mut self, entry: &Arc<Entry>, shared: &Shared) -> Option<String> {
        self.set_generator(entry.generator);
        self.compiler.defs = (*entry.defs).clone();
        let mode = Mode {
            cell: entry.cell.cell,
            silent: entry.silent,
            allow_stdin: false,
            opt_level: Some(entry.opt_level),
            kind: Kind::Replay,
            within: 0,
        };
        self.replayed = None;
        let reply = self.run(&mode, &entry.cell, entry.range.clone(), shared, &mut |_| ());
        let said = self.replayed.take().unwrap_or_default();
        let end = End::of(&reply, said, &entry.names, &self.vars);
        let otherwise = entry.end.otherwise(&end);
        // It is the last thing that happened to its variables, also where another cell had made them anew since.
        match otherwise {
            None => self.journal.again(entry.clone()),
            Some(_) => self.journal.again(Arc::new(Entry { end, ..(**entry).clone() })),
        }
        otherwise
    }

    fn stopped(&self, entry: &Entry, otherwise: &str, wanted: &BTreeSet<String>, rest: &[Arc<Entry>]) -> Failure {
        let mut message = format!("{} behaves otherwise than before: {otherwise}. ", entry.cell.label());
        message += &format!("Recovered so far: {}. ", self.recovered(wanted));
        let left: BTreeSet<String> = wanted.intersection(&self.lost.names).cloned().collect();
        if !left.is_empty() {
            message += &format!("Not recovered: {}. ", list(&left));
        }
        if !rest.is_empty() {
            message += &format!("Not run again: {}. ", cells(rest));
        }
        message += "Go on by running the cells yourself";
        sentence("RecoverStopped", message)
    }

    fn recovered(&self, wanted: &BTreeSet<String>) -> String {
        let names: Vec<&str> = self.vars.iter().filter(|v| wanted.contains(&v.name)).map(|v| v.name.as_str()).collect();
        if names.is_empty() { "nothing".into() } else { names.join(", ") }
    }

    fn set_generator(&mut self, state: (u64, u64)) {
        let _ = self.call("generator", &format!("{} {}", state.0, state.1));
        self.generator = state;
    }
}

impl RustEngine {
    pub(super) fn recover(&self, events: &mut dyn FnMut(Event)) -> Reply {
        let mut state = lock(&self.state);
        let reply = state.recover(&self.shared, events);
        self.know(&state);
        state.compiler.warm_up();
        reply
    }
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// `cell 3`, or `cells 1, 3, 4`.
fn cells(runs: &[Arc<Entry>]) -> String {
    let mut numbers: Vec<String> = runs.iter().map(|e| e.cell.cell.to_string()).collect();
    numbers.dedup();
    format!("cell{} {}", if numbers.len() == 1 { "" } else { "s" }, numbers.join(", "))
}

fn show(text: String, events: &mut dyn FnMut(Event)) -> Reply {
    events(Event::Display { bundle: Bundle::text(text), id: None, update: false });
    Reply::Ok
}
