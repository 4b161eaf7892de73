//! `%checkpoint` and `%autosave`: a hidden cell knows the types of the variables and hands them to the runtime, which
//! writes the file.
pub mod autosave;
pub mod code;
pub mod files;
mod replace;

use super::core::{Kind, Mode, Session};
use super::shared::Shared;
use crate::engine::{Event, Reply, sentence};
use crate::eval::build::compile::Effects;
use crate::eval::text::source::CellText;
use crate::eval::text::untrusted;
use code::{Listed, Serde};
use replace::There;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};
use xlazy_mime::{Bundle, Question, units, whole};

/// What came of saving or loading.
struct Outcome {
    done: Vec<String>,
    refused: Vec<(String, String)>,
    bytes: u64,
    /// How many programs ran for tensors that were pending.
    ran: u64,
    /// The copy of before, where it has more than the new one, and what that is.
    before: Option<(PathBuf, BTreeSet<String>)>,
}

/// Why there is no new file.
enum NotSaved {
    /// What is there stays, unless the user insists.
    Refused(String),
    Failed(Reply),
}

impl From<String> for NotSaved {
    fn from(why: String) -> NotSaved {
        NotSaved::Refused(why)
    }
}

impl From<Reply> for NotSaved {
    fn from(reply: Reply) -> NotSaved {
        NotSaved::Failed(reply)
    }
}

/// A variable's name, and the statement that is generated for it.
type Part<'a> = (&'a str, String);

impl Session {
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
    fn hidden(
        &mut self,
        cell: u64,
        kind: Kind,
        text: String,
        shared: &Shared,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), Reply> {
        let whole = 0..text.len();
        let cell = Arc::new(CellText::new(cell, text));
        let mode = Mode { cell: cell.cell, silent: true, allow_stdin: false, opt_level: Some(0), kind, within: 0 };
        match self.run(&mode, &cell, whole, shared, events) {
            Reply::Ok => Ok(()),
            other => Err(other),
        }
    }

    fn ask_json(&mut self, question: Question, args: &str, shared: &Shared) -> Result<Value, Reply> {
        let answer = self.call(question, args).map_err(|failure| match shared.interrupted.load(Ordering::SeqCst) {
            true => Reply::Interrupted,
            false => Reply::Error(failure),
        })?;
        // What is only done says nothing.
        let text = Some(answer.plain()).filter(|t| !t.is_empty()).unwrap_or("null");
        serde_json::from_str(text).map_err(|e| Reply::Error(sentence("CheckpointError", format!("{question}: {e}"))))
    }

    /// Runs what `text` makes of these variables; where that does not compile, of each by itself, to find out which of
    /// them no cell can handle.
    fn hidden_for<'a>(
        &mut self,
        kind: (u64, Kind),
        items: &[Part<'a>],
        text: &dyn Fn(&[&Part<'a>]) -> String,
        shared: &Shared,
        events: &mut dyn FnMut(Event),
    ) -> Result<Vec<(String, String)>, Reply> {
        let mut run = |items: &[&Part<'a>]| self.hidden(kind.0, kind.1, text(items), shared, events);
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

    fn save(
        &mut self,
        path: &Path,
        forced_by: Result<(), &str>,
        by_itself: bool,
        shared: &Shared,
        events: &mut dyn FnMut(Event),
    ) -> Result<Outcome, NotSaved> {
        // To read what is lent to be changed would end what borrows it.
        let changes = |of: &str| {
            let there = self.vars.iter().filter_map(|v| Some((&v.name, self.declared.get(&v.name)?)));
            there
                .filter(|(_, d)| d.views.get(of) == Some(&true))
                .map(|(name, _)| format!("`{name}`"))
                .collect::<Vec<_>>()
        };
        let lent = self.vars.iter().filter(|v| v.away).map(|v| (v.name.clone(), changes(&v.name)));
        let lent: Vec<(String, Vec<String>)> = lent.filter(|(_, by)| !by.is_empty()).collect();
        let here = self.vars.iter().map(|v| v.name.clone());
        let names: Vec<String> = here.filter(|name| !lent.iter().any(|(of, _)| of == name)).collect();
        let decide = |names: &[String], mine: &BTreeSet<PathBuf>| {
            replace::decide(path, &names.iter().cloned().collect(), mine, forced_by, by_itself)
        };
        // Before any value is fetched.
        decide(&names, &self.autosave.mine)?;
        let serde = self.serde();
        let idents = names.iter().filter_map(|name| Some((name.as_str(), untrusted::identifier(name)?)));
        let items: Vec<Part> = idents.map(|(name, ident)| (name, code::save_statement(&ident))).collect();
        let text = |items: &[&Part]| code::save_text(items.iter().map(|i| i.1.as_str()), serde);
        let mut ran = 0;
        // Of what the hidden cell does only what it ran is the user's, who is told of it as of any cell's.
        let mut pass = |event: Event| {
            if let Event::Insight { kind, json } = &event
                && kind == "cell"
            {
                ran += serde_json::from_str(json).ok().and_then(|cell: Value| cell["syncs"].as_u64()).unwrap_or(0);
                events(event);
            }
        };
        let mut refused = self.hidden_for((0, Kind::Hidden), &items, &text, shared, &mut pass)?;
        let told = self.ask_json(Question::CheckpointKept, "", shared)?;
        refused.extend(pairs(&told["refused"]));
        let reason =
            |by: &[String]| format!("{} borrows it to change it: mention it first, which ends that", by.join(", "));
        refused.extend(lent.iter().map(|(of, by)| (of.clone(), reason(by))));
        let done = texts(&told["kept"]);
        let decided = match decide(&done, &self.autosave.mine) {
            Ok(decided) => decided,
            Err(why) => {
                let _ = self.call(Question::CheckpointWrite, "");
                let more = if refused.is_empty() { String::new() } else { format!("\nNot kept:{}", reasons(&refused)) };
                return Err(NotSaved::Refused(why + &more));
            }
        };
        let mut args = path.to_string_lossy().into_owned();
        if let Some(before) = &decided.keep {
            args += &format!("\n{}", before.to_string_lossy());
        }
        self.ask_json(Question::CheckpointWrite, &args, shared)?;
        let mine = &mut self.autosave.mine;
        match (&decided.keep, mine.contains(path)) {
            (Some(before), true) => drop(mine.insert(before.clone())),
            (Some(before), false) => drop(mine.remove(before)),
            (None, _) => {}
        }
        mine.insert(path.to_owned());
        self.autosave.newest = Some((path.to_owned(), SystemTime::now()));
        self.autosave.runs = self.runs;
        self.autosave.last = Some(Instant::now());
        let before = decided.keep.filter(|_| !decided.only_there.is_empty()).map(|path| (path, decided.only_there));
        Ok(Outcome { done, refused, bytes: std::fs::metadata(path).map_or(0, |m| m.len()), ran, before })
    }

    fn load(&mut self, path: &Path, cell: u64, shared: &Shared) -> Result<Outcome, Reply> {
        let path = path.to_string_lossy().into_owned();
        let told = self.ask_json(Question::CheckpointOpen, &path, shared)?;
        let listed = told["variables"].as_array().into_iter().flatten().map(Listed::of).collect::<Result<Vec<_>, _>>();
        let listed = match listed {
            Ok(listed) => listed,
            Err(why) => {
                let _ = self.call(Question::CheckpointClose, "");
                let message = format!("{path} cannot be loaded: {why}");
                return Err(Reply::Error(sentence("CheckpointError", message)));
            }
        };
        let hash = told["hash"].as_str().unwrap_or_default().to_owned();
        let (serde, mut items, mut refused) = (self.serde(), Vec::new(), Vec::new());
        let mut effect = Effects::default();
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
        // Where nothing can be loaded, nothing has to run.
        let runs = !items.is_empty();
        let tried =
            if runs { self.hidden_for((cell, Kind::User), &items, &text, shared, &mut |_| {}) } else { Ok(Vec::new()) };
        self.effect = None;
        let told = self.ask_json(Question::CheckpointClose, "", shared)?;
        refused.extend(tried?);
        refused.extend(pairs(&told["refused"]));
        if runs {
            self.journal.not_bound(&refused.iter().map(|r| r.0.clone()).collect());
        }
        Ok(Outcome { done: texts(&told["loaded"]), refused, bytes: 0, ran: 0, before: None })
    }
}

impl Session {
    pub fn checkpoint(&mut self, cell: u64, args: &str, shared: &Shared, events: &mut dyn FnMut(Event)) -> Reply {
        let (verb, name) = args.split_once(char::is_whitespace).map_or((args, ""), |(v, n)| (v, n.trim()));
        if verb.is_empty() {
            return show(files::list(Path::new(".")), events);
        }
        let (force, name) = forced(name);
        let path = match files::path_of(name) {
            Ok(path) => path,
            Err(why) => return Reply::Error(sentence("UsageError", why)),
        };
        if verb != "save" && force {
            return Reply::Error(sentence(
                "UsageError",
                format!("`--force` is for `%checkpoint save`, not for {verb}"),
            ));
        }
        if verb != "save" && !path.is_file() {
            let message = format!("there is no checkpoint {}; `%checkpoint` lists those there are", path.display());
            return Reply::Error(sentence("CheckpointError", message));
        }
        match verb {
            "save" => {
                let by = format!("%checkpoint save --force {}", files::name_of(&path));
                match self.save(&path, if force { Ok(()) } else { Err(&by) }, false, shared, events) {
                    Ok(outcome) => show(outcome.saved(&path), events),
                    Err(NotSaved::Refused(why)) => Reply::Error(sentence("CheckpointError", why)),
                    Err(NotSaved::Failed(reply)) => reply,
                }
            }
            "load" => match self.load(&path, cell, shared) {
                Ok(outcome) => show(outcome.loaded(&path), events),
                Err(reply) => reply,
            },
            _ => match files::delete(&path) {
                Ok(()) => show(format!("Deleted {}.", path.display()), events),
                Err(why) => Reply::Error(sentence("CheckpointError", why)),
            },
        }
    }

    pub fn autosave(&mut self, args: &str, events: &mut dyn FnMut(Event)) -> Reply {
        let (force, args) = forced(args);
        let every = match args {
            "" => self.autosave.every,
            "off" => None,
            text => match files::duration(text) {
                Some(every) => Some(every),
                None => {
                    let message = format!("`%autosave` takes a time such as `5min` or `30s`, or `off`, not `{text}`");
                    return Reply::Error(sentence("UsageError", message));
                }
            },
        };
        self.autosave.every = every;
        if force {
            let lost = self.lost.names.clone();
            self.autosave.without.extend(lost);
            self.autosave.force = true;
        }
        if !args.is_empty() {
            // Whoever asks for it wants it from now on.
            self.autosave.last = None;
            self.autosave.waits.clear();
        }
        let text = match every {
            None => "autosave is off".to_owned(),
            Some(every) => {
                let path = self.autosave.path(&self.install);
                path.parent().iter().for_each(|folder| whole::sweep(folder, files::ENDING));
                format!("autosave: after a cell, when {} have passed, in {}", units::age(every), path.display())
            }
        };
        show(text, events)
    }

    /// Saves after a cell where it is time to.
    pub fn autosave_if_due(&mut self, shared: &Shared, events: &mut dyn FnMut(Event)) {
        let saved = &self.autosave;
        let due = saved.every.filter(|every| saved.last.is_none_or(|last| last.elapsed() >= *every));
        let interrupted = shared.interrupted.load(Ordering::SeqCst);
        let Some(every) = due.filter(|_| !interrupted && saved.runs != self.runs && !self.vars.is_empty()) else {
            return;
        };
        let mut say = |text: String| events(Event::Stream { stderr: true, text });
        let path = self.autosave.path(&self.install);
        let by = format!("%autosave --force {}", units::age(every));
        let forced_by = if self.autosave.force { Ok(()) } else { Err(by.as_str()) };
        let saved = match self.lost_but_saved(&path) {
            lost if lost.is_empty() => self.save(&path, forced_by, true, shared, &mut |_| {}),
            lost => Err(NotSaved::Refused(format!(
                "{} still has what was lost ({}): `%recover` or `%checkpoint load {}` brings it back, and `{by}` saves \
                 without it",
                path.display(),
                replace::list(&lost),
                files::name_of(&path),
            ))),
        };
        match saved {
            Ok(outcome) => {
                if let Some((before, names)) = &outcome.before {
                    let names = replace::list(names);
                    say(format!("note: autosave keeps the copy of before, with {names}, as {}\n", before.display()));
                }
                if outcome.refused != self.autosave.told && !outcome.refused.is_empty() {
                    say(format!("note: autosave leaves out{}\n", reasons(&outcome.refused)));
                }
                self.autosave.told = outcome.refused;
                self.autosave.waits.clear();
                self.autosave.force = false;
            }
            // It is looked at again after the next cell.
            Err(NotSaved::Refused(why)) => {
                if self.autosave.waits != why {
                    say(format!("note: autosave waits: {why}\n"));
                    self.autosave.waits = why;
                }
            }
            Err(NotSaved::Failed(reply)) => {
                self.autosave.last = Some(Instant::now());
                let why = match reply {
                    Reply::Error(failure) => failure.message,
                    _ => "it was interrupted".to_owned(),
                };
                say(format!("note: autosave failed: {why}. What was saved before is untouched\n"));
            }
        }
    }
}

impl Session {
    /// Variables that a crash took and that the file still has.
    fn lost_but_saved(&self, path: &Path) -> BTreeSet<String> {
        let lost: BTreeSet<&String> = self.lost.names.difference(&self.autosave.without).collect();
        if lost.is_empty() {
            return BTreeSet::new();
        }
        There::at(path).names().into_iter().filter(|name| lost.contains(name)).collect()
    }
}

/// Takes `--force` off the front.
fn forced(args: &str) -> (bool, &str) {
    match args.strip_prefix("--force") {
        Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => (true, rest.trim()),
        _ => (false, args),
    }
}

impl Outcome {
    fn saved(&self, path: &Path) -> String {
        let count = self.done.len();
        let mut text = format!(
            "Saved {} in {} ({}){}{}",
            units::count(count, "variable"),
            path.display(),
            units::bytes(self.bytes),
            if count > 0 { ": " } else { "" },
            self.done.join(", ")
        );
        if self.ran > 0 {
            text += &format!("\n{} ran for what was pending", units::count(self.ran as usize, "program"));
        }
        if !self.refused.is_empty() {
            text += &format!("\nNot kept:{}", reasons(&self.refused));
        }
        if let Some((before, names)) = &self.before {
            text +=
                &format!("\nThe copy of before, which has {}, is kept as {}", replace::list(names), before.display());
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
