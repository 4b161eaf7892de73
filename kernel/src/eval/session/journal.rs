//! What was run and what came of it: enough to run again the cells that made a variable, and to see whether they behave
//! as they did.
use crate::engine::{Event, Reply};
use crate::eval::build::compile::Effects;
use crate::eval::generate::definitions::Definitions;
use crate::eval::text::hash::Fnv;
use crate::eval::text::source::CellText;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use xlazy_mime::Var;

/// One part of a cell that was run to an end.
#[derive(Clone)]
pub struct Entry {
    pub cell: Arc<CellText>,
    pub range: Range<usize>,
    pub silent: bool,
    pub opt_level: u8,
    /// What was in force before it: compiled again with this, it is the same code, and the cell cache has it.
    pub defs: Arc<Definitions>,
    /// The random generator's state before it.
    pub generator: (u64, u64),
    pub names: Effects,
    pub end: End,
}

/// What can be seen of a run from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    pub reply: Reply,
    pub said: Said,
    /// The variables that it took or bound, as they were after it: name, type, value where that is known.
    pub vars: Vec<(String, String, String)>,
}

impl End {
    pub fn of(reply: &Reply, said: Said, names: &Effects, vars: &[Var]) -> End {
        // A tensor's summary says whether it is pending, which is not its value.
        let value = |v: &Var| if v.type_name.starts_with("xlazy::") { String::new() } else { v.summary.clone() };
        let vars = vars
            .iter()
            .filter(|v| names.takes.contains(&v.name) || names.binds.contains(&v.name))
            .map(|v| (v.name.clone(), v.type_name.clone(), value(v)))
            .collect();
        End { reply: reply.clone(), said, vars }
    }

    /// What is otherwise now than it was then, as the end of a sentence; none when the run did the same again.
    pub fn otherwise(&self, now: &End) -> Option<String> {
        let ended = |r: &Reply| match r {
            Reply::Ok => "well".to_owned(),
            Reply::Error(f) => format!("with {}: {}", f.name, f.message),
            Reply::Interrupted => "by an interrupt".to_owned(),
        };
        // A worker of its pod had ended, which was none of the cell's doing.
        let of_pod = |r: &Reply| matches!(r, Reply::Error(f) if f.name == "PodError");
        if of_pod(&self.reply) && !of_pod(&now.reply) {
            return None;
        }
        let (then, again) = (ended(&self.reply), ended(&now.reply));
        if then != again {
            return Some(format!("it ended {again}; before, it had ended {then}"));
        }
        if self.said.hash != now.said.hash {
            let (old, new) = (&self.said.head, &now.said.head);
            let first = new.lines().zip(old.lines()).find(|(n, o)| n != o);
            return Some(match first {
                Some((new, old)) => format!("it printed `{new}` where it had printed `{old}`"),
                None => "it printed something else than before".to_owned(),
            });
        }
        for old in &self.vars {
            match now.vars.iter().find(|v| v.0 == old.0) {
                None => return Some(format!("it left no variable `{}`", old.0)),
                Some(v) if v.1 != old.1 => {
                    let [new, old_type] = [&v.1, &old.1].map(|t| crate::eval::text::types::short(t));
                    return Some(format!("`{}` is of type {new}, and was of type {old_type}", old.0));
                }
                Some(v) if v.2 != old.2 => return Some(format!("`{}` is {}, and was {}", old.0, v.2, old.2)),
                Some(_) => {}
            }
        }
        let more = now.vars.iter().find(|v| !self.vars.iter().any(|o| o.0 == v.0));
        more.map(|v| format!("it left a variable `{}` that it had not left before", v.0))
    }
}

/// All that a run printed and showed: a hash, and the first of it for messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    hash: [u64; 3],
    head: String,
}

/// How much of a run's text is kept to tell what is otherwise.
const HEAD: usize = 600;

/// Listens to a run.
#[derive(Default)]
pub struct Listener {
    /// Each stream by itself: how two streams mix is a matter of time.
    streams: [Fnv; 2],
    shown: Fnv,
    head: String,
}

impl Listener {
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Stream { stderr, text } => {
                for line in text.split_inclusive('\n').filter(|line| !(*stderr && of_a_worker(line))) {
                    self.streams[usize::from(*stderr)].add(line.as_bytes());
                    self.keep(line);
                }
            }
            Event::Display { bundle, .. } | Event::Result(bundle) => {
                self.shown.add(bundle.what_lasts().as_bytes());
                self.shown.add(&[0]);
                self.keep(bundle.what_lasts());
                self.keep("\n");
            }
            _ => {}
        }
    }

    fn keep(&mut self, text: &str) {
        let room = HEAD.saturating_sub(self.head.len());
        self.head.push_str(&text[..text.floor_char_boundary(room)]);
    }

    pub fn said(self) -> Said {
        let [out, err] = self.streams;
        Said { hash: [out.0, err.0, self.shown.0], head: self.head }
    }
}

/// Whether a line is what a worker of a pod wrote, which comes when it comes: `worker 1: Killed`, `worker 1 (host): …`.
fn of_a_worker(line: &str) -> bool {
    let behind = line.strip_prefix("worker ").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    behind.is_some_and(|rest| rest.starts_with(": ") || rest.starts_with(" ("))
}

/// The runs that what is there depends on, in order.
#[derive(Default)]
pub struct Journal {
    entries: Vec<Arc<Entry>>,
    defs: Arc<Definitions>,
    /// Variables that could be made again only with runs that are no longer kept.
    cut: BTreeSet<String>,
    /// How many entries there may be before it is looked through.
    look_at: usize,
}

/// A notebook whose variables depend on more runs than this cannot be recovered from its beginning.
const MOST: usize = 4000;

impl Journal {
    /// The same definitions as at the last call cost nothing again.
    pub fn defs(&mut self, now: &Definitions) -> Arc<Definitions> {
        if !self.defs.same(now) {
            self.defs = Arc::new(now.clone());
        }
        self.defs.clone()
    }

    /// Adds a run; `alive` are the variables that are there or could be recovered.
    pub fn add(&mut self, entry: Entry, alive: &dyn Fn() -> BTreeSet<String>) {
        self.entries.push(Arc::new(entry));
        if self.entries.len() < self.look_at.max(64) {
            return;
        }
        let (needed, _) = self.needed(&alive());
        self.entries = needed;
        let over = self.entries.len().saturating_sub(MOST);
        for entry in self.entries.drain(..over) {
            self.cut.extend(entry.names.binds.iter().cloned());
        }
        self.look_at = 2 * self.entries.len();
    }

    /// The last run did not bind these after all.
    pub fn not_bound(&mut self, names: &BTreeSet<String>) {
        if let Some(last) = self.entries.last_mut().filter(|_| !names.is_empty()) {
            let last = Arc::make_mut(last);
            last.names.binds.retain(|n| !names.contains(n));
            last.names.fresh.retain(|n| !names.contains(n));
        }
    }

    /// A run of this journal was repeated.
    pub fn again(&mut self, entry: Arc<Entry>) {
        self.entries.push(entry);
    }

    /// The runs that made these variables, and those that made what they used, in order; and variables that none of them
    /// made.
    pub fn needed(&self, wanted: &BTreeSet<String>) -> (Vec<Arc<Entry>>, BTreeSet<String>) {
        let mut open = wanted.clone();
        let mut runs = Vec::new();
        for entry in self.entries.iter().rev() {
            let Effects { takes, binds, fresh, only_shows } = &entry.names;
            // What takes a variable may change it, in place or through what it holds.
            if *only_shows || open.is_disjoint(takes) && open.is_disjoint(binds) {
                continue;
            }
            open.retain(|n| !fresh.contains(n) && (!binds.contains(n) || takes.contains(n)));
            open.extend(takes.iter().cloned());
            runs.push(entry.clone());
        }
        runs.reverse();
        open.extend(wanted.intersection(&self.cut).cloned());
        (runs, open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(cell: u64, takes: &str, binds: &str) -> Entry {
        let set = |names: &str| -> BTreeSet<String> { names.split_whitespace().map(str::to_owned).collect() };
        let (takes, binds) = (set(takes), set(binds));
        let fresh = binds.difference(&takes).cloned().collect();
        Entry {
            cell: Arc::new(CellText::new(cell, "")),
            range: 0..0,
            silent: false,
            opt_level: 0,
            defs: Arc::default(),
            generator: (0, 0),
            names: Effects { takes, binds, fresh, only_shows: false },
            end: End { reply: Reply::Ok, said: Said::default(), vars: Vec::new() },
        }
    }

    fn journal(entries: Vec<Entry>) -> Journal {
        let mut journal = Journal::default();
        entries.into_iter().for_each(|e| journal.add(e, &BTreeSet::new));
        journal
    }

    fn cells(journal: &Journal, wanted: &[&str]) -> (Vec<u64>, Vec<String>) {
        let (runs, open) = journal.needed(&wanted.iter().map(|w| (*w).to_owned()).collect());
        (runs.iter().map(|e| e.cell.cell).collect(), open.into_iter().collect())
    }

    #[test]
    fn what_a_pods_workers_write_is_not_what_a_run_printed() {
        let said = |texts: &[(bool, &str)]| {
            let mut heard = Listener::default();
            texts
                .iter()
                .for_each(|(stderr, text)| heard.hear(&Event::Stream { stderr: *stderr, text: (*text).into() }));
            heard.said()
        };
        let of_the_cell = said(&[(false, "1\n"), (true, "worker: x\n"), (false, "worker 1: on stdout\n")]);
        let with_a_worker = [
            (false, "1\n"),
            (true, "worker 1: Killed\nworker: x\nworker 12 (b): y\n"),
            (false, "worker 1: on stdout\n"),
        ];
        assert_eq!(said(&with_a_worker), of_the_cell);
        assert_ne!(said(&[(false, "1\n"), (true, "worker one: x\n")]), of_the_cell);
    }

    #[test]
    fn what_made_a_variable_is_what_bound_it_changed_it_and_what_these_used() {
        let j = journal(vec![
            entry(1, "", "a b"),
            entry(2, "", "c"),
            entry(3, "a", ""),
            entry(4, "b c", "d"),
            entry(5, "", "b"),
        ]);
        assert_eq!(cells(&j, &["a"]), (vec![1, 3], vec![]));
        assert_eq!(cells(&j, &["d"]), (vec![1, 2, 4], vec![]));
        assert_eq!(cells(&j, &["b"]), (vec![5], vec![]), "a new value needs none of the old");
        assert_eq!(cells(&j, &["e"]), (vec![], vec!["e".into()]));
    }

    #[test]
    fn what_nothing_depends_on_is_not_kept() {
        let mut j = Journal::default();
        let alive = || BTreeSet::from(["x".to_owned()]);
        for cell in 0..10_000 {
            j.add(entry(cell, "", "x"), &alive);
        }
        assert!(j.entries.len() <= 128, "{}", j.entries.len());
        for cell in 0..10_000 {
            j.add(entry(cell, "x", ""), &alive);
        }
        assert!(j.entries.len() <= 2 * MOST, "{}", j.entries.len());
        assert_eq!(cells(&j, &["x"]).1, ["x"], "made too long ago");
    }
}
