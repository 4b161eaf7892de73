//! What a reader guesses that a cell will do, and what it did: told when the cell has ended (`predict!`).
use super::alike::told;
use super::history::{compilations_since, compiled_so_far};
use super::log::{events_since, syncs_so_far};
use super::metrics::{INBOUND_DATA, OUTBOUND_DATA};
use super::report::Compilation;
use crate::{Error, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};
use xlazy_core::run::SyncEvent;
use xlazy_core::text::location;
use xlazy_mime::{Bundle, Table, count, escape_html, prose_html, units};

/// What can be guessed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Quantity {
    Programs,
    Syncs,
    Ops,
    Bytes,
}

/// The words that a question has for each, as they begin.
const WORDS: &[(&str, Quantity)] = &[
    ("program", Quantity::Programs),
    ("compil", Quantity::Programs),
    ("recompil", Quantity::Programs),
    ("sync", Quantity::Syncs),
    ("launch", Quantity::Syncs),
    ("run", Quantity::Syncs),
    ("op", Quantity::Ops),
    ("byte", Quantity::Bytes),
];

impl Quantity {
    /// What a question is about: the first of its words that says so.
    pub fn of(question: &str) -> Result<Quantity> {
        let lower = question.to_lowercase();
        let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
        let known = |word: &str| match word {
            "op" | "ops" => Some(Quantity::Ops),
            _ => WORDS.iter().find(|(w, q)| *q != Quantity::Ops && word.starts_with(w)).map(|(_, q)| *q),
        };
        let found = words.filter_map(known).next();
        found.ok_or_else(|| Error::Usage {
            message: format!(
                "predict! counts programs (that are compiled), syncs, ops or bytes (that go to the device and back), and \
                 `{question}` has none of these words: `predict!(\"how many programs?\", 3)`"
            ),
        })
    }
}

/// How far the session is.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    compiled: usize,
    syncs: u64,
    bytes: [f64; 2],
}

impl Mark {
    pub fn now() -> Mark {
        let bytes = [&OUTBOUND_DATA, &INBOUND_DATA].map(|m| m.total());
        Mark { compiled: compiled_so_far().1, syncs: syncs_so_far().0, bytes }
    }

    /// What happened since.
    pub fn since(&self) -> Since {
        let bytes = [&OUTBOUND_DATA, &INBOUND_DATA].map(|m| m.total());
        Since {
            compilations: compilations_since(self.compiled),
            syncs: events_since(self.syncs),
            launched: syncs_so_far().0 - self.syncs,
            bytes: [0, 1].map(|i| (bytes[i] - self.bytes[i]).max(0.0) as u64),
        }
    }
}

pub(crate) struct Since {
    pub compilations: Vec<Compilation>,
    /// The syncs, of which the log keeps the last ones.
    pub syncs: Vec<SyncEvent>,
    pub launched: u64,
    /// To the device, and back.
    pub bytes: [u64; 2],
}

impl Since {
    pub fn count(&self, of: Quantity) -> u64 {
        match of {
            Quantity::Programs => self.compilations.len() as u64,
            Quantity::Syncs => self.launched,
            Quantity::Ops => self.syncs.iter().map(|e| e.nodes as u64).sum(),
            Quantity::Bytes => self.bytes.iter().sum(),
        }
    }

    /// Where it comes from, a sentence each.
    fn why(&self, of: Quantity) -> Vec<String> {
        match of {
            Quantity::Programs => self.programs(),
            Quantity::Syncs | Quantity::Ops => self.runs(of),
            Quantity::Bytes => {
                vec![format!("{} to the device, {} back", units::bytes(self.bytes[0]), units::bytes(self.bytes[1]))]
            }
        }
    }

    fn programs(&self) -> Vec<String> {
        let of = |told: &super::alike::Told| {
            let n = told.of.len();
            let first = told.of[0];
            match told.is_news() {
                // It says how often by itself, where that is more than once.
                true if n > 1 => told.sentence.clone(),
                true => format!("1: {}", told.sentence),
                false => {
                    let at = location(first.site);
                    format!(
                        "{n}: the first of its kind, {} for {} at {at}",
                        count(first.nodes, "op"),
                        first.cause.name()
                    )
                }
            }
        };
        told(&self.compilations).iter().map(of).collect()
    }

    fn runs(&self, of: Quantity) -> Vec<String> {
        let mut groups: Vec<(&SyncEvent, u64, u64)> = Vec::new();
        for e in &self.syncs {
            match groups.iter_mut().find(|(g, ..)| g.cause == e.cause && g.at == e.at && g.nodes == e.nodes) {
                Some((_, times, ops)) => (*times, *ops) = (*times + 1, *ops + e.nodes as u64),
                None => groups.push((e, 1, e.nodes as u64)),
            }
        }
        let one = |(e, times, ops): &(&SyncEvent, u64, u64)| {
            let what = format!("{} at {}, {} each", e.cause.name(), location(e.at), count(e.nodes, "op"));
            if of == Quantity::Ops { format!("{ops}: {times} × {what}") } else { format!("{times}: {what}") }
        };
        groups.iter().map(one).collect()
    }
}

struct Guess {
    question: String,
    of: Quantity,
    guess: f64,
    from: Mark,
}

static GUESSES: Mutex<Vec<Guess>> = Mutex::new(Vec::new());

fn guesses() -> MutexGuard<'static, Vec<Guess>> {
    GUESSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a guess until the cell has ended.
pub(crate) fn guess(question: &str, guess: f64) -> Result<()> {
    let of = Quantity::of(question)?;
    guesses().push(Guess { question: question.to_owned(), of, guess, from: Mark::now() });
    Ok(())
}

/// What became of the guesses of the cell that has ended.
pub(crate) fn answers() -> Option<Bundle> {
    let all = std::mem::take(&mut *guesses());
    if all.is_empty() {
        return None;
    }
    let (mut plain, mut html) = (Vec::new(), String::new());
    for g in &all {
        let since = g.from.since();
        let truth = since.count(g.of);
        let right = g.guess == truth as f64;
        let said = match right {
            true => format!("you said {}, and so it is", g.guess),
            false => format!("you said {}; it is {truth}", g.guess),
        };
        let mark = if right { "✓" } else { "✗" };
        let why = since.why(g.of);
        plain.push(format!("{mark} {} {said}", g.question));
        plain.extend(why.iter().map(|w| format!("    {w}")));
        let mut table = Table::new("margin:2px 0 6px 1em");
        why.iter().for_each(|w| table.row([xlazy_mime::Cell::html(prose_html(w)).left()]));
        let table = if why.is_empty() { String::new() } else { table.html() };
        html += &format!("<div><b>{mark} {}</b> {}</div>{table}", escape_html(&g.question), escape_html(&said));
    }
    Some(Bundle::html(format!("<div>{html}</div>"), plain.join("\n")).passing())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_says_what_it_counts() {
        let of = |q: &str| Quantity::of(q).ok();
        assert_eq!(of("how many programs?"), Some(Quantity::Programs));
        assert_eq!(of("Compilations"), Some(Quantity::Programs));
        assert_eq!(of("How many syncs run?"), Some(Quantity::Syncs));
        assert_eq!(of("how often does it run"), Some(Quantity::Syncs));
        assert_eq!(of("ops of the step"), Some(Quantity::Ops));
        assert_eq!(of("bytes to the device"), Some(Quantity::Bytes));
        assert_eq!(of("how many options?"), None);
        assert!(Quantity::of("why?").unwrap_err().to_string().contains("programs"));
    }
}
