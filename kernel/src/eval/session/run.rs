//! Runs part of a cell, and puts into force what it did.
use super::channel::News;
use super::core::{At, Kind, Mode, Session};
use super::journal::{End, Entry, Listener};
use super::shared::{Shared, lock};
use crate::engine::{Event, Reply};
use crate::eval::build::compile::{Effects, Ready};
use crate::eval::build::compiler::{Scope, Timing};
use crate::eval::build::refused;
use crate::eval::generate::declared::Declaration;
use crate::eval::tell::errors::{self, run_failure};
use crate::eval::text::scan;
use crate::eval::text::source::CellText;
use crate::eval::toolchain::rustc;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use xlazy_mime::{Ask, Outcome, Question, RunCell, Tell, Var};

/// How often a cell is started whose folder somebody deletes under it, a file at a time.
const MOST_STARTS: u32 = 4;

/// How a run ended, as the session tells it.
struct Done {
    outcome: Outcome,
    vars: Vec<Var>,
    lost: Vec<(String, String)>,
    generator: (u64, u64),
}

impl Session {
    pub fn run(
        &mut self,
        mode: &Mode,
        cell: &Arc<CellText>,
        range: Range<usize>,
        shared: &Shared,
        events: &mut dyn FnMut(Event),
    ) -> Reply {
        let mut starts = 0;
        loop {
            (self.begun, starts) = (false, starts + 1);
            let reply = self.run_once(mode, cell, range.clone(), shared, events);
            // Somebody has deleted the folder between the compiler and the session: what has not begun can begin again.
            let failed = matches!(reply, Reply::Error(_)) && !self.begun && self.process.death().is_none();
            if !(failed && starts < MOST_STARTS && self.compiler.was_deleted()) {
                return reply;
            }
        }
    }

    fn run_once(
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
        let opt_level = mode.opt_level.or(self.opt_level).unwrap_or(0);
        let defs = self.journal.defs(&self.compiler.defs);
        let line = self.process.line().clone();
        let ours = || {
            let names = line.call(Question::Names, "", Duration::from_secs(5)).ok();
            names.and_then(|names| names.get("text/plain").map(str::to_owned)).unwrap_or_default()
        };
        let scope = Scope {
            vars: &self.vars,
            gone: &self.gone,
            declared: &self.declared,
            filled: &Default::default(),
            ours: &ours,
        };
        self.compiler.opt_level = opt_level;
        let ready = self.compiler.compile(cell, range.clone(), &scope);
        self.compiler.opt_level = self.opt_level.unwrap_or(0);
        let ready = match ready {
            Ok(ready) => ready,
            Err(refused) => {
                if let refused::Refused::Failure(failure) = &refused {
                    self.last_codes = errors::codes(failure);
                    self.unmade(&cell.label());
                }
                return refused.into();
            }
        };
        events(rustc_insight(mode.cell, &ready.timing));
        if let Some(text) = self.compiler.note() {
            events(Event::Stream { stderr: true, text });
        }
        if shared.interrupted.load(Ordering::SeqCst) {
            // Nobody is going to load it.
            let _ = ready.object.as_ref().map(std::fs::remove_file);
            return Reply::Interrupted;
        }
        let redefined = self.compiler.commit(&ready);
        self.gone.retain(|name, _| !self.compiler.defs.has(name));
        self.gone.extend(self.compiler.left.drain(..));
        if let Some(file) = &ready.group_file {
            let known = self.places(file, cell);
            let _ = self.call(Question::Cell, &known);
            self.registered.push(known);
        }
        if mode.kind != Kind::Replay {
            if redefined {
                self.drop_outdated(events);
            }
            self.give_way(&ready.defines, &cell.label(), events);
        }
        let Some(object) = &ready.object else { return Reply::Ok };
        let streams = shared.streams.load(Ordering::SeqCst);
        if streams != self.process.streams {
            let _ = self.call(Question::Events, if streams { "on" } else { "off" });
            self.process.streams = streams;
        }
        self.process.load(self.compiler.libraries());
        self.runs += 1;
        let run = RunCell {
            run: self.runs,
            cell: mode.cell,
            object: object.to_string_lossy().into_owned(),
            symbol: rustc::ENTRY.into(),
            places: self.places(&ready.file, cell),
        };
        {
            let _delivery = lock(&shared.delivery);
            if shared.interrupted.load(Ordering::SeqCst) {
                let _ = std::fs::remove_file(object);
                return Reply::Interrupted;
            }
            shared.running_pid.store(self.process.pid(), Ordering::SeqCst);
            self.process.run(run);
        }
        // While the cell runs, the next one's compiler starts up.
        self.compiler.warm_up();
        let mut heard = Listener::default();
        let mut lengths = BTreeMap::new();
        let mut listened = |event: Event| match &event {
            Event::Insight { kind, json } if kind == "length" => {
                lengths.extend(serde_json::from_str::<(usize, usize)>(json));
            }
            _ => {
                heard.hear(&event);
                events(event);
            }
        };
        let end = self.listen(mode, &mut listened, shared);
        shared.running_pid.store(0, Ordering::SeqCst);
        self.process.ended();
        let unloaded = |d: &Done| matches!(&d.outcome, Outcome::Failed(fault) if fault.name == "LoadError");
        if end.as_ref().is_ok_and(unloaded) {
            self.compiler.unloaded(object);
        }
        self.compiler.finished(&ready);
        let done = match end {
            Ok(done) => done,
            Err(how) => {
                self.begun = true;
                let at = At::Cell(cell, self.process.at_line(self.runs));
                return Reply::Error(self.replace_session(&how, at, shared));
            }
        };
        self.begun = !unloaded(&done);
        let generator = std::mem::replace(&mut self.generator, done.generator);
        let lost: Vec<String> = done.lost.iter().map(|(name, _)| name.clone()).collect();
        let before = self.vars.drain(..).map(|v| (v.name, v.type_name));
        let types: HashMap<String, String> = before.chain(done.lost.iter().cloned()).collect();
        let mut reply = self.conclude(mode, done, &ready, &types, events);
        if mode.kind != Kind::Hidden {
            self.declare(&ready, mode.cell, types, &lengths);
            self.note_what_is_lent(&ready, events);
        }
        if mode.kind == Kind::Replay {
            self.replayed = Some(heard.said());
        } else if mode.kind == Kind::User {
            let mut names = ready.names.clone();
            if let Some(effect) = &self.effect {
                names.binds.extend(effect.binds.iter().cloned());
                names.takes.extend(effect.takes.iter().cloned());
                names.fresh.extend(effect.fresh.iter().cloned());
            }
            self.name_what_is_not_kept(&names, &ready, cell, &lost, &reply, events);
            self.name_what_is_as_before(&names, mode, cell, &mut reply, events);
            if reply != Reply::Ok {
                let made = |n: &String| self.vars.iter().any(|v| v.name == *n && v.cell == mode.cell);
                names.binds.retain(made);
                names.fresh.retain(made);
            }
            let end = End::of(&reply, heard.said(), &names, &self.vars);
            let (cell, silent) = (cell.clone(), mode.silent);
            let entry = Entry { cell, range, silent, opt_level, defs, generator, names, end };
            let (vars, lost) = (&self.vars, &self.lost.names);
            self.journal.add(entry, &|| vars.iter().map(|v| v.name.clone()).chain(lost.iter().cloned()).collect());
        }
        reply
    }

    /// Takes down how the variables were declared that the cell has made, and those whose types it has decided; of those that are
    /// gone, what type they had.
    fn declare(
        &mut self,
        ready: &Ready,
        cell: u64,
        mut types: HashMap<String, String>,
        lengths: &BTreeMap<usize, usize>,
    ) {
        let there: HashMap<&str, u64> = self.vars.iter().map(|v| (&*v.name, v.cell)).collect();
        let made = |name: &String| there.get(&**name) == Some(&cell);
        let gone = |name: &String| !there.contains_key(&**name) && self.gone.contains_key(name);
        if self.begun {
            // What is of the type that it was is still nobody's choice.
            let as_before = |name: &str| {
                let now = self.vars.iter().find(|v| v.name == name).map(|v| &v.type_name);
                now.is_some() && now == types.get(name)
            };
            let decided = |name: &str, d: &Declaration| {
                ready.leaves.decides.contains(name) && (d.is_pending() || !as_before(name))
            };
            self.declared.iter_mut().filter(|(n, d)| decided(n, d)).for_each(|(_, d)| {
                d.open = None;
                d.made_in = Some(ready.file.clone());
            });
            // The cell may have ended before it lent something.
            let lent: BTreeSet<&String> = self.vars.iter().filter(|v| v.away).map(|v| &v.name).collect();
            for (name, more) in &ready.leaves.grown {
                let more = more.iter().filter(|(of, _)| lent.contains(of)).map(|(of, changes)| (of.clone(), *changes));
                if let Some(declaration) = self.declared.get_mut(name) {
                    declaration.views.extend(more);
                }
            }
        }
        for name in &ready.names.takes {
            self.declared.get_mut(name).and_then(|d| d.open.as_mut()).into_iter().for_each(|o| o.untouched = false);
        }
        for (name, declaration) in &ready.leaves.declares {
            let mut declaration = declaration.clone();
            // The cell ended before it.
            if !declaration.open.iter_mut().all(|open| open.is_measured(lengths)) {
                continue;
            }
            if declaration.is_pending() || made(name) || gone(name) {
                let lost =
                    self.declared.remove(name).and_then(|d| d.lost).filter(|_| gone(name) && !declaration.is_pending());
                let made_in = Some(ready.file.clone()).filter(|_| made(name));
                self.declared.insert(name.clone(), Declaration { made_in, lost, ..declaration });
            }
        }
        for (name, declaration) in
            self.declared.iter_mut().filter(|(name, d)| d.lost.is_none() && !d.is_pending() && gone(name))
        {
            declaration.lost = types.remove(name).filter(|known| !known.is_empty());
        }
        self.declared.retain(|name, d| d.is_pending() || there.contains_key(&**name) || gone(name));
    }

    /// What is lent stays in memory; where that happens again and again, somebody should know.
    fn note_what_is_lent(&mut self, ready: &Ready, events: &mut dyn FnMut(Event)) {
        let lent = |name: &&String| self.vars.iter().any(|v| v.name == **name && v.lent);
        let names: Vec<&String> = ready.leaves.lends.iter().filter(lent).collect();
        for name in names {
            if !self.lent.insert(name.clone()) {
                let text = format!(
                    "note: `{name}` is borrowed by a variable that lives on, so this value stays in memory until the session \
                     ends, as the one before it does; inside braces `{{ … }}` it would not\n"
                );
                events(Event::Stream { stderr: true, text });
            }
        }
    }

    /// What became of the variables that a cell declares and that are not there.
    fn name_what_is_not_kept(
        &mut self,
        names: &Effects,
        ready: &Ready,
        cell: &CellText,
        lost: &[String],
        reply: &Reply,
        events: &mut dyn FnMut(Event),
    ) {
        // It had a value in the cell.
        self.declared.retain(|name, d| !(d.is_unset() && ready.leaves.borrows.contains(name)));
        let waits = |n: &String| self.declared.get(n).is_some_and(Declaration::is_pending);
        for name in names.binds.iter().filter(|n| !self.vars.iter().any(|v| v.name == **n) && !waits(n)) {
            let early = format!("was not kept: {}, which declares it, ended early", cell.label());
            if ready.leaves.borrows.contains(name) {
                let derive = match ready.leaves.not_clone.contains(name) {
                    true => ", or put `#[derive(Clone)]` on the type that it borrows, with which it lives on",
                    false => "",
                };
                let how = format!(
                    "borrowed, and ended with {}: keep a value of its own there (`.clone()`, `.to_owned()`, `.to_vec()`; \
                     for a closure `move |…|`){derive}",
                    cell.label()
                );
                // What the cell itself has no use for was meant to be kept.
                let idle =
                    scan::tokens(&cell.text).iter().filter(|t| cell.text[t.range.clone()] == **name).count() == 1;
                if idle && *reply == Reply::Ok {
                    events(Event::Stream { stderr: true, text: format!("note: `{name}` {how}\n") });
                }
                self.gone.insert(name.clone(), how);
            } else if *reply != Reply::Ok && (!lost.contains(name) || ready.leaves.inside.contains(name)) {
                self.gone.insert(name.clone(), early);
            } else {
                self.gone.entry(name.clone()).or_insert(early);
            }
        }
    }

    /// A cell that ended before a `let` leaves the variable of before, and says so.
    fn name_what_is_as_before(
        &self,
        names: &Effects,
        mode: &Mode,
        cell: &CellText,
        reply: &mut Reply,
        events: &mut dyn FnMut(Event),
    ) {
        let before = |v: &&Var| names.binds.contains(&v.name) && v.cell != mode.cell && v.cell != 0;
        let notes = self.vars.iter().filter(before).map(|v| {
            let name = &v.name;
            // Others may have changed it since.
            let of = self.declared.get(name).map_or(v.cell, |d| d.cell);
            format!("`{name}` is still that of cell {of}: {} ended before its `let {name}`", cell.label())
        });
        match reply {
            Reply::Ok => {}
            Reply::Error(failure) => errors::add_notes(failure, notes),
            Reply::Interrupted => {
                notes.for_each(|note| events(Event::Stream { stderr: true, text: format!("note: {note}\n") }));
            }
        }
    }

    /// What the runtime is to know of a source file: its cell, lines that belong to others, columns that are others, what is
    /// to be known of its code, and the cell's text.
    pub fn places(&self, file: &str, cell: &CellText) -> String {
        let mut out = format!("{file} {}", cell.cell);
        if let Some(source) = self.compiler.source(file) {
            source.elsewhere(cell.cell).iter().for_each(|(here, of, there)| out += &format!(" {here}:{of}:{there}"));
            source.shifts().iter().for_each(|(l, c, by)| out += &format!(" {l}:{c}+{by}"));
            out += &source.facts();
        }
        out + "\n" + &cell.text
    }

    /// Passes on what the cell does until it is done; the error says how the session died.
    fn listen(&mut self, mode: &Mode, events: &mut dyn FnMut(Event), shared: &Shared) -> Result<Done, String> {
        loop {
            match self.process.next() {
                News::Gone(how) => return Err(how),
                News::Tell(Tell::Done { run, outcome, vars, lost, generator }) if run == self.runs => {
                    return Ok(Done { outcome, vars, lost, generator });
                }
                News::Tell(Tell::AskInput { prompt, password }) => {
                    let answer = self.user_answer(mode, prompt, password, events, shared);
                    if let Some(answer) = answer {
                        self.process.line().tell(&Ask::Input(answer));
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
                    let (mut news, mut over) = self.process.before_the_end();
                    while let Some(one) = news {
                        self.pass_on(one, events);
                        (news, over) = self.process.before_the_end();
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
        ready: &Ready,
        before: &HashMap<String, String>,
        events: &mut dyn FnMut(Event),
    ) -> Reply {
        let by = if mode.cell == 0 { "an unnumbered cell".to_owned() } else { format!("cell {}", mode.cell) };
        let how = match outcome {
            Outcome::Ok => format!("was moved by {by}: run the cell that makes it again, or move a `.clone()` of it"),
            _ => format!("was lost when {by}, which moves it, ended early"),
        };
        // `let x;`, and nothing more of it: there is no type that it had.
        let unset = |(name, ty): &(String, String)| {
            ty.is_empty() && ready.names.binds.contains(name) && !ready.leaves.inside.contains(name)
        };
        let (unset, lost): (Vec<_>, Vec<_>) = lost.into_iter().partition(unset);
        let names = |lost: Vec<(String, String)>| lost.into_iter().map(|(name, _)| name).collect::<Vec<String>>();
        let (unset, lost) = (names(unset), names(lost));
        let there: HashSet<&str> = vars.iter().map(|v| &*v.name).collect();
        for name in lost.iter().filter(|n| !ready.leaves.inside.contains(*n)).chain(&ready.leaves.moves) {
            if !there.contains(&**name) {
                self.gone.insert(name.clone(), how.clone());
            }
        }
        for (view, of) in &ready.leaves.ended {
            self.gone.insert(view.clone(), format!("borrowed `{of}`, and ended when {by} used `{of}` again"));
        }
        let none = format!("had no value when {by} ended, which declares it");
        self.gone.extend(unset.iter().map(|name| (name.clone(), none.clone())));
        self.gone.retain(|name, _| !there.contains(&**name));
        self.lost.names.retain(|name| !there.contains(&**name));
        self.vars = vars;
        self.refuse_nameless(&ready.leaves.closures, before, events);
        self.compiler.prepare(&self.vars);
        match outcome {
            Outcome::Ok => Reply::Ok,
            Outcome::Interrupted => Reply::Interrupted,
            Outcome::Failed(fault) => {
                let (inside, moved) = lost.into_iter().partition(|n| ready.leaves.inside.contains(n));
                Reply::Error(run_failure(&fault, &self.compiler.sources(), [moved, inside, unset]))
            }
        }
    }
}

fn rustc_insight(cell: u64, timing: &Timing) -> Event {
    let json = serde_json::json!({
        "cell": cell, "definitions_ms": timing.group_ms, "statements_ms": timing.cell_ms, "compiles": timing.tries,
        "libraries": timing.libraries, "cached": timing.cached,
    });
    Event::Insight { kind: "rustc".into(), json: json.to_string() }
}
