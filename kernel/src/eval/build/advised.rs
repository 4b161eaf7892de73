//! What is advised is tried: with it in the cell's text the cell is compiled, and what is then advised of that is a part of the advice.
use super::compiler::{Compiler, Scope};
use super::refused::Refused;
use crate::engine::Failure;
use crate::eval::tell::change::Change;
use crate::eval::tell::errors::{Explained, Place};
use crate::eval::text::source::CellText;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a cell is compiled with what is advised, for how long somebody waits for that, and with how much: a text in which
/// much is wrong is told of one after the other.
const MOST: usize = 10;
const PATIENCE: Duration = Duration::from_secs(20);
const MANY: usize = 8;

/// A part of the cell that is advised to be written otherwise.
#[derive(Clone)]
struct Part {
    /// Where it is in the cell.
    there: Range<usize>,
    /// Where it is in the text that is tried.
    here: Range<usize>,
    /// The errors that it is advised for.
    errors: Vec<usize>,
    /// What is wrong with it as it is advised, and who says so.
    wrong: Option<String>,
}

/// What is told only when something else has been written, and where in the cell each of its errors is.
struct Behind {
    told: Explained,
    there: Vec<Range<usize>>,
}

impl Behind {
    fn of(next: &Explained, which: &[usize], there: &[(usize, Range<usize>)]) -> Behind {
        let place = |error: &usize| there.iter().find(|(of, _)| of == error).map_or(0..0, |(_, at)| at.clone());
        Behind { told: next.only(which), there: which.iter().map(place).collect() }
    }
}

impl Part {
    /// What was told of this part on the way has one answer: all that is to be written there in the end.
    fn settle(&self, text: &str, behind: &mut [Behind]) {
        let inside = |at: &Range<usize>| !at.is_empty() && meets(&self.there, at);
        let mut answered = !self.errors.is_empty();
        let advises = |b: &Behind| b.told.changes().map(|(e, _)| e).find(|e| inside(&b.there[*e]));
        if !answered && !behind.iter().any(|b| advises(b).is_some()) {
            return;
        }
        for one in behind {
            let first = advises(one).filter(|_| !answered);
            if let Some(error) = first {
                one.told.advise(error, &text[self.here.clone()], None);
                answered = true;
            }
            // What precedes the one that has an answer follows from what it is about, too.
            let left = |e: &usize| Some(*e) == first || !inside(&one.there[*e]);
            let left: Vec<usize> = (0..one.there.len()).filter(left).collect();
            one.told = one.told.only(&left);
            one.there = left.iter().map(|e| one.there[*e].clone()).collect();
        }
    }
}

/// The cell's text with what was advised so far.
#[derive(Clone)]
struct Tried {
    text: String,
    parts: Vec<Part>,
    /// Places that may be otherwise, and what they may be.
    choices: Vec<(Range<usize>, Vec<String>)>,
}

impl Compiler {
    /// A failure with all of what is to be written, where what was told first leaves some of it to be told next.
    pub(super) fn advised(
        &mut self,
        failure: Failure,
        mut told: Explained,
        cell: &Arc<CellText>,
        range: Range<usize>,
        scope: &Scope,
    ) -> Failure {
        let mut tried = Tried { text: cell.text.clone(), parts: Vec::new(), choices: Vec::new() };
        for (error, change) in told.changes() {
            let here = tried.here(change.at.clone());
            tried.write(change, cell, Some(error), here);
        }
        if tried.parts.len() > MANY {
            return failure;
        }
        // What rustc asks for where something else is wrong may have no place with that written.
        let places = if tried.parts.is_empty() { told.places() } else { vec![] };
        for all in places.into_iter().filter_map(plain).take(MANY) {
            if all.iter().all(|change| tried.here(change.at.clone()).is_some()) {
                for change in all {
                    let here = tried.here(change.at.clone());
                    tried.write(&change, cell, None, here);
                }
            }
        }
        if tried.parts.is_empty() {
            return failure;
        }
        let kept = (self.notes.clone(), self.left.clone(), self.declares.clone());
        let (begin, mut first) = (Instant::now(), None);
        // What is wrong besides, and is told only when that has been written.
        let mut behind: Vec<Behind> = Vec::new();
        let mut does = false;
        for _ in (0..MOST).take_while(|_| begin.elapsed() < PATIENCE) {
            let text = Arc::new(CellText::new(cell.cell, tried.text.clone()));
            let end = range.end + text.text.len() - cell.text.len();
            let done = self.compile_once(&text, range.start..end, scope);
            match (done, self.explained.take()) {
                (Ok(ready), _) => {
                    let _ = ready.object.map(std::fs::remove_file);
                    tried.parts.iter_mut().for_each(|part| part.wrong = None);
                    does = true;
                    break;
                }
                (Err(Refused::Failure(_)), Some(next)) => {
                    let besides = tried.besides(&next, &told);
                    let mut mended: Vec<usize> = next.changes().map(|(error, _)| error).collect();
                    let is_plain = |p: Place| Some(p.error).filter(|_| plain(p).is_some());
                    mended.extend(next.places().into_iter().filter_map(is_plain));
                    let again = tried.again(&next, &told);
                    again.iter().for_each(|(its, error)| told.adopt(*error, &next, *its));
                    let there: Vec<(usize, Range<usize>)> =
                        next.places().into_iter().map(|p| (p.error, tried.there(&p.at))).collect();
                    let goes_on = tried.goes_on(&next, &text, &mut first, &again);
                    let now = besides.into_iter().filter(|error| !goes_on || mended.contains(error));
                    behind.push(Behind::of(&next, &now.collect::<Vec<_>>(), &there));
                    if !goes_on {
                        break;
                    }
                }
                _ => break,
            }
        }
        (self.notes, self.left, self.declares) = kept;
        // Where nothing does, what is likeliest is told.
        if let Some(first) = first.filter(|_| tried.parts.iter().any(|part| part.wrong.is_some())) {
            tried = first;
        }
        for part in &tried.parts {
            let Some(first) = part.errors.first() else { continue };
            told.advise(*first, &tried.text[part.here.clone()], part.wrong.as_deref());
            // What else is wrong there has one answer with it.
            let there = told.places().into_iter().filter(|p| meets(&part.there, &p.at));
            let all: Vec<usize> = there.map(|p| p.error).filter(|error| error != first).collect();
            all.into_iter().for_each(|error| told.join(error, *first));
        }
        // What else was wrong followed from that.
        let answered: Vec<usize> = told.places().into_iter().filter(|p| tried.answers(p)).map(|p| p.error).collect();
        if does && !answered.is_empty() {
            told = told.only(&answered);
        }
        tried.parts.iter().for_each(|part| part.settle(&tried.text, &mut behind));
        let mut failure = told.failure();
        if tried.parts.iter().all(|part| part.wrong.is_none()) {
            let next = behind.iter().map(|b| &b.told).filter(|next| !next.places().is_empty()).take(MANY);
            let next: Vec<String> = next.flat_map(|next| next.failure().traceback).collect();
            if !next.is_empty() {
                failure.traceback.push("with that written:".into());
                failure.traceback.extend(next);
            }
        }
        failure
    }
}

impl Tried {
    /// Writes what is advised, at a place of what is tried; false where it says nothing new, or overlaps what is written already.
    fn write(&mut self, change: &Change, text: &CellText, error: Option<usize>, at: Option<Range<usize>>) -> bool {
        let is_new = |at: &Range<usize>| self.text.get(at.clone()).is_some_and(|here| here != change.code);
        if change.text.cell != text.cell || change.text.text.get(change.at.clone()) != text.text.get(change.at.clone())
        {
            return false;
        }
        let Some(at) = at.filter(is_new) else { return false };
        // What is lent is not lent once more, which rustc would go on to ask for.
        let lends = |text: &str| text.ends_with('&') || text.ends_with("&mut");
        if at.is_empty() && lends(change.code.trim_end()) && lends(self.text[..at.start].trim_end()) {
            return false;
        }
        let by = change.code.len() as isize - at.len() as isize;
        let moved = |place: usize| place.saturating_add_signed(by);
        let inside = self.parts.iter().position(|p| p.here.start <= at.start && at.end <= p.here.end);
        self.text.replace_range(at.clone(), &change.code);
        let before = self.parts.iter().map(|p| (p.there.end, p.here.end)).filter(|(_, here)| *here <= at.start).max();
        let there = |place: usize| before.map_or(place, |(there, here)| place - here + there);
        let (mut from, mut to) = (there(at.start), None);
        let mut part =
            Part { there: 0..0, here: at.start..moved(at.end), errors: error.into_iter().collect(), wrong: None };
        let overwritten = |place: &Range<usize>| at.start < place.end && place.start < at.end && !meets(place, &at);
        self.choices.retain(|(place, _)| !overwritten(place) && *place != at);
        for (place, _) in &mut self.choices {
            *place = match at.end <= place.start {
                true => moved(place.start)..moved(place.end),
                false if meets(place, &at) => place.start..moved(place.end),
                false => place.clone(),
            };
        }
        if !change.others.is_empty() {
            self.choices.push((part.here.clone(), change.others.clone()));
        }
        let mut parts = Vec::new();
        for (i, mut p) in std::mem::take(&mut self.parts).into_iter().enumerate() {
            if inside == Some(i) {
                p.here.end = moved(p.here.end);
                p.errors.extend(error);
            } else if p.here.end <= at.start {
            } else if p.here.start >= at.end {
                p.here = moved(p.here.start)..moved(p.here.end);
            } else {
                // It is a part of what is advised now.
                from = from.min(p.there.start);
                to = Some(p.there.end + at.end.saturating_sub(p.here.end));
                part.here = part.here.start.min(p.here.start)..part.here.end;
                part.errors.extend(p.errors);
                continue;
            }
            parts.push(p);
        }
        if inside.is_none() {
            part.there = from..to.unwrap_or(from + at.len());
            parts.push(part);
        }
        parts.sort_by_key(|p| p.here.start);
        self.parts = parts;
        true
    }

    /// Where a place of the cell is now, unless something was written there.
    fn here(&self, at: Range<usize>) -> Option<Range<usize>> {
        let mut by = 0;
        for part in &self.parts {
            if part.there.start < at.end && at.start < part.there.end {
                return None;
            }
            if part.there.end <= at.start {
                by = part.here.end as isize - part.there.end as isize;
            }
        }
        Some(at.start.saturating_add_signed(by)..at.end.saturating_add_signed(by))
    }

    /// Where in the cell a place of what is tried is: of a part all of it.
    fn there(&self, at: &Range<usize>) -> Range<usize> {
        let before = |place: usize| self.parts.iter().rev().find(|p| p.here.end <= place);
        let alone = |place: usize| before(place).map_or(place, |p| place - p.here.end + p.there.end);
        let within = |place: usize| self.parts.iter().find(|p| p.here.start <= place && place < p.here.end);
        let start = within(at.start).map_or_else(|| alone(at.start), |p| p.there.start);
        let last = at.end.saturating_sub(1).max(at.start);
        let end = within(last).map_or_else(|| alone(at.end), |p| p.there.end);
        start..end.max(start)
    }

    /// Whether what was written is about an error.
    fn answers(&self, place: &Place) -> bool {
        let touches = |one: &Range<usize>, other: &Range<usize>| one.start <= other.end && other.start <= one.end;
        let suggested = place.suggested.iter().flatten().map(|change| &change.at);
        let all: Vec<&Range<usize>> = suggested.chain([&place.at]).collect();
        let about = |part: &Part| part.errors.contains(&place.error) || all.iter().any(|at| touches(&part.there, at));
        self.parts.iter().any(about)
    }

    /// The errors at places that nothing was advised for, and that were not told before.
    fn besides(&self, next: &Explained, told: &Explained) -> Vec<usize> {
        let before: Vec<_> = told.places().into_iter().filter_map(|p| Some((self.here(p.at)?, p.message))).collect();
        // What it has found instead is another word of what was advised.
        let same = |one: &str, other: &str| {
            let missing = |m: &'_ str| m.starts_with("expected `;`, found ");
            one == other || missing(one) && missing(other)
        };
        let known = |at: &Range<usize>, message: &str| before.iter().any(|(b, m)| b == at && same(m, message));
        let advised = |at: &Range<usize>| self.parts.iter().any(|p| p.here.start < at.end && at.start < p.here.end);
        // What is advised of more than that is a part of what was advised for it.
        let joins = |error: usize| next.changes().any(|(e, change)| e == error && advised(&change.at));
        let open = |p: &Place| !advised(&p.at) && !joins(p.error) && !known(&p.at, &p.message);
        next.places().into_iter().filter(open).map(|p| p.error).collect()
    }

    /// The errors of next that were told already, and have an answer only now, each with the one that it was.
    fn again(&self, next: &Explained, told: &Explained) -> Vec<(usize, usize)> {
        let open = |p: &Place| p.left_to_rustc && !told.changes().any(|(error, _)| error == p.error);
        let before: Vec<Place> = told.places().into_iter().filter(open).collect();
        let answered = |error: usize| next.changes().any(|(e, _)| e == error);
        let same = |now: Place| {
            let was =
                before.iter().find(|p| p.message == now.message && self.here(p.at.clone()) == Some(now.at.clone()));
            Some((now.error, was?.error))
        };
        next.places().into_iter().filter(|p| answered(p.error)).filter_map(same).collect()
    }

    /// Writes what is told next; false where that says nothing of what was advised.
    fn goes_on(
        &mut self,
        next: &Explained,
        text: &Arc<CellText>,
        first: &mut Option<Tried>,
        again: &[(usize, usize)],
    ) -> bool {
        let before = self.text.clone();
        let holds = |parts: &[Part], at: &Range<usize>| {
            parts.iter().position(|p| p.here.start <= at.start && at.end <= p.here.end)
        };
        self.parts.iter_mut().for_each(|part| part.wrong = None);
        // A variable whose declaration is wrong has no type there.
        let follows = |place: &Place| place.names || place.message.contains(" for unit type `()`");
        for place in next.places().into_iter().filter(|place| !follows(place)) {
            if let Some(part) = holds(&self.parts, &place.at) {
                self.parts[part].wrong.get_or_insert(place.said);
            }
        }
        // From the last one on, so that the places of the others stay.
        let of = |error: usize| again.iter().find(|(its, _)| *its == error).map(|(_, error)| *error);
        let mut changes: Vec<(&Change, Option<usize>)> =
            next.changes().map(|(error, change)| (change, of(error))).collect();
        let suggested: Vec<Vec<Change>> = next
            .places()
            .into_iter()
            .filter(|p| !changes.iter().any(|(c, _)| meets(&c.at, &p.at)))
            .filter_map(|p| match holds(&self.parts, &p.at) {
                // What it asks of other places was not advised.
                Some(_) => {
                    let all = p.suggested.filter(|all| !all.iter().any(is_open))?;
                    let inside = all.into_iter().filter(|c| holds(&self.parts, &c.at).is_some()).collect();
                    Some(inside).filter(|all: &Vec<Change>| is_even(all))
                }
                None => plain(p),
            })
            .collect();
        changes.extend(suggested.iter().flatten().map(|change| (change, None)));
        changes.sort_by_key(|(change, _)| std::cmp::Reverse((change.at.end, change.at.start)));
        let mut from = usize::MAX;
        for (change, error) in changes {
            if change.at.end <= from && self.write(change, text, error, Some(change.at.clone())) {
                from = change.at.start;
            }
        }
        if self.text == before {
            // Something else may be meant.
            // A name that is nowhere says nothing of what is meant.
            let wrong: Vec<_> = next.places().into_iter().filter(|place| !place.names).collect();
            let about = |(place, _): &&(Range<usize>, Vec<String>)| wrong.iter().any(|p| meets(place, &p.at));
            let other = self.choices.iter().filter(about).min_by_key(|(place, _)| place.len()).cloned();
            let Some((at, mut others)) = other else { return false };
            first.get_or_insert_with(|| self.clone());
            let code = others.remove(0);
            let change = Change { text: text.clone(), at: at.clone(), code, others };
            self.write(&change, text, None, Some(at));
        }
        true
    }
}

/// What rustc suggests for a place, if nothing else is told of it and there is nothing in it for the user to fill in.
fn plain(place: Place) -> Option<Vec<Change>> {
    let all = place.suggested.filter(|_| place.left_to_rustc).filter(|all| !all.iter().any(is_open))?;
    Some(if all.iter().all(|one| is_even(std::slice::from_ref(one))) { all } else { as_one(all) })
}

/// Changes that open and close brackets around what stands between them, as one of all of it.
fn as_one(mut all: Vec<Change>) -> Vec<Change> {
    all.sort_by_key(|change| change.at.start);
    let (Some(first), Some(last)) = (all.first().cloned(), all.last()) else { return all };
    let (mut code, mut from) = (String::new(), first.at.start);
    let at = first.at.start..last.at.end;
    for change in &all {
        code += &first.text.text[from..change.at.start];
        code += &change.code;
        from = change.at.end;
    }
    vec![Change { at, code, ..first }]
}

/// Whether something in a change is for the user to fill in.
fn is_open(change: &Change) -> bool {
    change.code.contains("/*")
}

/// Whether changes close all that they open: half of what is suggested may stand elsewhere.
fn is_even(changes: &[Change]) -> bool {
    let count = |signs: [char; 3]| changes.iter().map(|c| c.code.matches(signs).count()).sum::<usize>();
    count(['(', '[', '{']) == count([')', ']', '}'])
}

fn meets(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start <= other.start && other.end <= one.end
}
