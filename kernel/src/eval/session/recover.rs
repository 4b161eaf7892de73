//! `%recover`: runs again the cells that made what a crash took.
use super::core::{Kind, Mode, Session};
use super::journal::{End, Entry};
use super::shared::Shared;
use crate::engine::{Event, Failure, Reply, sentence};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use xlazy_mime::{Bundle, units};

/// So many variables that are gone for other reasons are named.
const MOST: usize = 20;

impl Session {
    pub fn recover(&mut self, shared: &Shared, events: &mut dyn FnMut(Event)) -> Reply {
        if self.lost.names.is_empty() {
            let gone: BTreeMap<&String, &String> = self.gone.iter().collect();
            let mut text = match gone.is_empty() {
                true => "Nothing is lost: every variable is there.".to_owned(),
                false => "Nothing is lost: no session has ended. What is gone for other reasons:".to_owned(),
            };
            for (name, why) in gone.iter().take(MOST) {
                text += &format!("\n`{name}` {why}");
            }
            if gone.len() > MOST {
                text += &format!("\n… and {} more", gone.len() - MOST);
            }
            return show(text, events);
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
        self.journal.again(Arc::new(Entry { end, ..(**entry).clone() }));
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
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// `cell 3`, or `cells 1, 3, 4`.
fn cells(runs: &[Arc<Entry>]) -> String {
    let mut numbers: Vec<String> = runs.iter().map(|e| e.cell.cell.to_string()).collect();
    numbers.dedup();
    format!("{} {}", units::plural(numbers.len() as u64, "cell"), numbers.join(", "))
}

fn show(text: String, events: &mut dyn FnMut(Event)) -> Reply {
    events(Event::Display { bundle: Bundle::text(text), id: None, update: false });
    Reply::Ok
}
