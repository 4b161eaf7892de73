//! `%checkpoint` and `%autosave`: a hidden cell knows the types of the variables and hands them to the runtime, which
//! writes the file.
use super::checkpoint_code::{self as code, Listed, Serde};
use super::checkpoint_files as files;
use super::compile::Names;
use super::errors::sentence;
use super::named;
use super::source::CellText;
use super::{Kind, Mode, RustEngine, Shared, State, lock};
use crate::engine::{Event, Failure, Reply};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use xlazy_mime::Bundle;

/// What `%autosave` was told, and what was saved last.
#[derive(Default)]
pub(super) struct Autosave {
    every: Option<Duration>,
    last: Option<Instant>,
    /// The runs that there had been then: without another one nothing has changed.
    runs: u64,
    /// What could not be kept the last time; it is said once.
    told: Vec<(String, String)>,
    /// The newest file of this session, for the report of a crash.
    pub newest: Option<(PathBuf, SystemTime)>,
}

/// What came of saving or loading.
struct Outcome {
    done: Vec<String>,
    refused: Vec<(String, String)>,
    bytes: u64,
}

/// A variable's name, and the statement that is generated for it.
type Part<'a> = (&'a str, String);

impl State {
    fn serde(&self) -> Serde {
        let wanted = self.compiler.defs.deps.as_ref().map(|d| d.wanted()).unwrap_or_default();
        let has = |name: &str| wanted.contains_key(name);
        match (has("serde"), has("serde_json")) {
            (true, true) => Serde::Json,
            (true, false) => Serde::Alone,
            _ => Serde::None,
        }
    }

    /// Runs generated code that no cell shows.
    fn hidden(&mut self, cell: u64, kind: Kind, text: String, shared: &Shared) -> Result<(), Reply> {
        let whole = 0..text.len();
        let cell = Arc::new(CellText::new(cell, text));
        let mode = Mode { cell: cell.cell, silent: true, allow_stdin: false, opt_level: Some(0), kind };
        match self.run(&mode, &cell, whole, shared, &mut |_| {}) {
            Reply::Ok => Ok(()),
            other => Err(other),
        }
    }

    fn ask_json(&mut self, name: &str, args: &str) -> Result<Value, Failure> {
        let answer = self.call(name, args)?;
        serde_json::from_str(answer.plain()).map_err(|e| sentence("CheckpointError", format!("{name}: {e}")))
    }

    /// Runs what `text` makes of these variables; where that does not compile, of each by itself, to find out which of
    /// them no cell can handle.
    fn hidden_for<'a>(
        &mut self,
        kind: (u64, Kind),
        items: &[Part<'a>],
        text: &dyn Fn(&[&Part<'a>]) -> String,
        shared: &Shared,
    ) -> Result<Vec<(String, String)>, Reply> {
        let mut run = |items: &[&Part<'a>]| self.hidden(kind.0, kind.1, text(items), shared);
        let mut able: Vec<&Part> = items.iter().collect();
        let mut refused = Vec::new();
        match run(&able) {
            Err(Reply::Error(f)) if f.name == "CompileError" => {
                able.clear();
                for item in items {
                    match run(&[item]) {
                        Ok(()) => able.push(item),
                        Err(Reply::Error(f)) => refused.push((item.0.to_owned(), f.message)),
                        Err(other) => return Err(other),
                    }
                }
                run(&able)?;
            }
            other => other?,
        }
        Ok(refused)
    }

    fn save(&mut self, path: &Path, shared: &Shared) -> Result<Outcome, Reply> {
        let serde = self.serde();
        let names: Vec<String> = self.vars.iter().map(|v| v.name.clone()).collect();
        let idents = names.iter().filter_map(|name| Some((name.as_str(), named::identifier(name)?)));
        let items: Vec<Part> = idents.map(|(name, ident)| (name, code::save_statement(&ident))).collect();
        let text = |items: &[&Part]| code::save_text(items.iter().map(|i| i.1.as_str()), serde);
        let mut refused = self.hidden_for((0, Kind::Hidden), &items, &text, shared)?;
        let told = self.ask_json("checkpoint-write", &path.to_string_lossy()).map_err(Reply::Error)?;
        refused.extend(pairs(&told["refused"]));
        self.autosave.newest = Some((path.to_owned(), SystemTime::now()));
        self.autosave.runs = self.runs;
        self.autosave.last = Some(Instant::now());
        Ok(Outcome { done: texts(&told["kept"]), refused, bytes: std::fs::metadata(path).map_or(0, |m| m.len()) })
    }

    fn load(&mut self, path: &Path, cell: u64, shared: &Shared) -> Result<Outcome, Reply> {
        let path = path.to_string_lossy().into_owned();
        let told = self.ask_json("checkpoint-open", &path).map_err(Reply::Error)?;
        let listed = told["variables"].as_array().into_iter().flatten().map(Listed::of).collect::<Result<Vec<_>, _>>();
        let listed = match listed {
            Ok(listed) => listed,
            Err(why) => {
                let _ = self.call("checkpoint-close", "");
                let message = format!("{path} cannot be loaded: {why}");
                return Err(Reply::Error(sentence("CheckpointError", message)));
            }
        };
        let hash = told["hash"].as_str().unwrap_or_default().to_owned();
        let (serde, mut items, mut refused) = (self.serde(), Vec::new(), Vec::new());
        let mut effect = Names::default();
        for v in &listed {
            let there = self.vars.iter().find(|x| x.name == v.name);
            let defined = |item: &str| self.compiler.defs.type_named(item).map(|(g, _)| g.crate_name.clone());
            match code::load_statement(v, there.map(|t| t.type_name.as_str()), &defined) {
                Ok(statement) => items.push((v.name.as_str(), statement)),
                Err(why) => refused.push((v.name.clone(), why)),
            }
            effect.binds.insert(v.name.clone());
            if there.is_some() && v.kind != "value" {
                // A parameter may be loaded in place, and whoever holds it sees that.
                effect.takes.insert(v.name.clone());
            } else {
                effect.fresh.insert(v.name.clone());
            }
        }
        self.effect = Some(effect);
        let text = |items: &[&Part]| code::load_text(&path, &hash, items.iter().map(|i| i.1.as_str()), serde);
        let tried = self.hidden_for((cell, Kind::User), &items, &text, shared);
        self.effect = None;
        let told = self.ask_json("checkpoint-close", "").map_err(Reply::Error)?;
        refused.extend(tried?);
        refused.extend(pairs(&told["refused"]));
        self.journal.not_bound(&refused.iter().map(|r| r.0.clone()).collect());
        Ok(Outcome { done: texts(&told["loaded"]), refused, bytes: 0 })
    }
}

impl RustEngine {
    pub(super) fn checkpoint(&self, mode: &Mode, args: &str, events: &mut dyn FnMut(Event)) -> Reply {
        let (verb, name) = args.split_once(char::is_whitespace).map_or((args, ""), |(v, n)| (v, n.trim()));
        if verb.is_empty() {
            return show(files::list(Path::new(".")), events);
        }
        let path = match files::path_of(name) {
            Ok(path) => path,
            Err(why) => return Reply::Error(sentence("UsageError", why)),
        };
        if verb != "save" && !path.is_file() {
            let message = format!("there is no checkpoint {}; `%checkpoint` lists those there are", path.display());
            return Reply::Error(sentence("CheckpointError", message));
        }
        let mut state = lock(&self.state);
        match verb {
            "save" => match state.save(&path, &self.shared) {
                Ok(outcome) => show(outcome.saved(&path), events),
                Err(reply) => reply,
            },
            "load" => {
                let loaded = state.load(&path, mode.cell, &self.shared);
                self.know(&state);
                match loaded {
                    Ok(outcome) => show(outcome.loaded(&path), events),
                    Err(reply) => reply,
                }
            }
            _ => match files::delete(&path) {
                Ok(()) => show(format!("Deleted {}.", path.display()), events),
                Err(why) => Reply::Error(sentence("CheckpointError", why)),
            },
        }
    }

    pub(super) fn autosave(&self, args: &str, events: &mut dyn FnMut(Event)) -> Reply {
        let mut state = lock(&self.state);
        let every = match args {
            "" => state.autosave.every,
            "off" => None,
            text => match files::duration(text) {
                Some(every) => Some(every),
                None => {
                    let message = format!("`%autosave` takes a time such as `5min` or `30s`, or `off`, not `{text}`");
                    return Reply::Error(sentence("UsageError", message));
                }
            },
        };
        state.autosave.every = every;
        let path = files::autosave_path();
        let text = match every {
            None => "autosave is off".to_owned(),
            Some(every) => {
                format!("autosave: after a cell, when {} have passed, in {}", files::human(every), path.display())
            }
        };
        show(text, events)
    }

    /// Saves after a cell where it is time to.
    pub(super) fn autosave_if_due(&self, events: &mut dyn FnMut(Event)) {
        let mut state = lock(&self.state);
        let saved = &state.autosave;
        let due = saved.every.is_some_and(|every| saved.last.is_none_or(|last| last.elapsed() >= every));
        let interrupted = self.shared.interrupted.load(std::sync::atomic::Ordering::SeqCst);
        if !due || interrupted || saved.runs == state.runs || state.vars.is_empty() {
            return;
        }
        let mut say = |text: String| events(Event::Stream { stderr: true, text });
        match state.save(&files::autosave_path(), &self.shared) {
            Ok(outcome) => {
                if outcome.refused != state.autosave.told && !outcome.refused.is_empty() {
                    say(format!("note: autosave leaves out{}\n", reasons(&outcome.refused)));
                }
                state.autosave.told = outcome.refused;
            }
            Err(reply) => {
                state.autosave.last = Some(Instant::now());
                let why = match reply {
                    Reply::Error(failure) => failure.message,
                    _ => "it was interrupted".to_owned(),
                };
                say(format!("note: autosave failed: {why}. What was saved before is untouched\n"));
            }
        }
    }
}

impl Outcome {
    fn saved(&self, path: &Path) -> String {
        let count = self.done.len();
        let mut text = format!(
            "Saved {count} variable{} in {} ({}){}{}",
            if count == 1 { "" } else { "s" },
            path.display(),
            files::bytes(self.bytes),
            if count > 0 { ": " } else { "" },
            self.done.join(", ")
        );
        if !self.refused.is_empty() {
            text += &format!("\nNot kept:{}", reasons(&self.refused));
        }
        text
    }

    fn loaded(&self, path: &Path) -> String {
        let mut text = match self.done.is_empty() {
            true => format!("Loaded nothing from {}", path.display()),
            false => format!("Loaded {} from {}", self.done.join(", "), path.display()),
        };
        if !self.refused.is_empty() {
            text += &format!("\nNot loaded:{}", reasons(&self.refused));
        }
        text
    }
}

fn reasons(refused: &[(String, String)]) -> String {
    refused.iter().map(|(name, why)| format!("\n  {name}: {why}")).collect()
}

fn texts(v: &Value) -> Vec<String> {
    v.as_array().into_iter().flatten().filter_map(|t| t.as_str().map(str::to_owned)).collect()
}

fn pairs(v: &Value) -> Vec<(String, String)> {
    let pair = |p: &Value| Some((p[0].as_str()?.to_owned(), p[1].as_str()?.to_owned()));
    v.as_array().into_iter().flatten().filter_map(pair).collect()
}

fn show(text: String, events: &mut dyn FnMut(Event)) -> Reply {
    events(Event::Display { bundle: Bundle::text(text), id: None, update: false });
    Reply::Ok
}
