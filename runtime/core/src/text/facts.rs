//! What the user's code says of its places: names, calls, loops, what decides what runs. The kernel, which has the syntax
//! tree, sends it with each cell; programs that are not cells have none, and every question is then answered with "unknown".
use super::{Point, find_line};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A place in a source file: what a [`Location`] is, where none is at hand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spot {
    pub file: Arc<str>,
    pub line: u32,
    pub column: u32,
}

impl Spot {
    pub fn new(file: &Arc<str>, (line, column): Point) -> Spot {
        Spot { file: file.clone(), line, column }
    }

    /// The cell that it is in, where it is known.
    pub fn cell(&self) -> Option<u64> {
        find_line(&self.file, self.line).map(|(cell, _)| cell)
    }

    /// The line of the cell, without its indentation.
    pub fn quote(&self) -> Option<String> {
        super::line_of(&self.file, self.line).map(|l| l.trim().to_owned())
    }

    /// Whether the two are one line of one cell (or file).
    pub fn same_line(&self, other: &impl Somewhere) -> bool {
        let line =
            |file: &str, line| find_line(file, line).map_or((file.to_owned(), line), |(c, l)| (c.to_string(), l));
        line(&self.file, self.line) == line(other.file(), other.point().0)
    }
}

impl<S: Somewhere> From<&S> for Spot {
    fn from(at: &S) -> Spot {
        Spot { file: at.file().into(), line: at.point().0, column: at.point().1 }
    }
}

/// `cell 7, line 3`, as [`super::location`] has it.
impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&super::location_of(&self.file, self.line))
    }
}

/// What is a place in a source file.
pub trait Somewhere {
    fn file(&self) -> &str;
    fn point(&self) -> Point;
}

impl Somewhere for Location<'_> {
    fn file(&self) -> &str {
        Location::file(self)
    }
    fn point(&self) -> Point {
        (self.line(), self.column())
    }
}

impl Somewhere for Spot {
    fn file(&self) -> &str {
        &self.file
    }
    fn point(&self) -> Point {
        (self.line, self.column)
    }
}

/// A function, or a closure that has a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub name: String,
    /// The type that it is a method of.
    pub of: Option<String>,
    pub closure: bool,
    pub range: Range<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopKind {
    For,
    While,
    Loop,
    /// A closure that a method runs for each element: `map`, `for_each`, `fold`.
    Closure,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    pub kind: LoopKind,
    /// What it goes through, what it goes on for, or the method that runs a closure.
    pub head: Range<Point>,
    pub body: Range<Point>,
    /// Names of what a round may change.
    pub changes: Vec<String>,
}

impl Loop {
    fn fact(&self, file: &Arc<str>) -> LoopFact {
        let [head, body, end] = [self.head.start, self.body.start, self.body.end].map(|p| Spot::new(file, p));
        LoopFact { kind: self.kind, head, body, end }
    }
}

/// Which way a condition goes where a place runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// It holds, or a pattern fits.
    Then,
    /// It does not hold.
    Else,
    /// It is one arm of a `match`.
    Arm,
    /// It did not hold (or the pattern fitted) at an early exit before: `if c { return }`.
    Rest,
}

/// What a condition is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// The names that it mentions.
    pub names: Vec<String>,
    /// It calls functions.
    pub calls: bool,
    /// It reads values of tensors itself: `.item()`.
    pub reads: bool,
}

/// What decides whether code runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    pub condition: Range<Point>,
    /// What runs by it.
    pub guarded: Range<Point>,
    pub branch: Branch,
    pub made: Terms,
}

/// What code decides by, and what is run or not, or how often, by it.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub at: Range<Point>,
    /// It begins before the condition where rounds of a loop go by it.
    pub guards: Range<Point>,
    pub made: Terms,
}

impl Condition {
    fn rounds(&self) -> bool {
        self.guards.start < self.at.start
    }
}

/// Where the value of a call goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goes {
    /// Into these variables; into none where it is printed or dropped.
    Into(Vec<String>),
    /// On to whoever called the function, as its result or a part of it.
    Out,
}

/// A call, where [`Location::caller`] says that it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub at: Point,
    pub name: String,
    pub goes: Goes,
}

/// How far the expression goes whose ops are at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Extent {
    pub at: Point,
    pub range: Range<Point>,
    /// It is an operator's: a method called on it needs parentheses.
    pub operator: bool,
}

/// A statement of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub range: Range<Point>,
    /// The last statement behind which it may be moved, and does the same there.
    pub passes: Option<Range<Point>>,
    /// It is the value of its block: nothing can stand behind it.
    pub tail: bool,
}

/// What a source file says of its places; positions are lines and columns as a [`Location`] counts them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    pub functions: Vec<Function>,
    pub loops: Vec<Loop>,
    pub guards: Vec<Guard>,
    pub conditions: Vec<Condition>,
    pub calls: Vec<Call>,
    /// The name that is given to what the expression at a place makes.
    pub bindings: Vec<(Point, String)>,
    pub extents: Vec<Extent>,
    pub statements: Vec<Statement>,
}

#[derive(Default)]
struct Registered {
    files: HashMap<Arc<str>, Arc<Facts>>,
    /// In the order in which they came.
    order: Vec<Arc<str>>,
}

static FACTS: Mutex<Option<Registered>> = Mutex::new(None);

/// Files whose facts are kept; those of the earliest go first.
const MOST_FILES: usize = 4096;

fn registered() -> MutexGuard<'static, Option<Registered>> {
    FACTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says what the source of `file` says of its places, in the place of what was said before.
pub fn register_facts(file: &str, facts: Facts) {
    let mut all = registered();
    let all = all.get_or_insert_default();
    let file: Arc<str> = file.into();
    all.order.retain(|f| *f != file);
    if all.order.len() >= MOST_FILES {
        let first = all.order.remove(0);
        all.files.remove(&first);
    }
    all.order.push(file.clone());
    all.files.insert(file, Arc::new(facts));
}

/// What is known of a file; `None` for one that no cell was compiled from.
pub(super) fn facts(file: &str) -> Option<(Arc<str>, Arc<Facts>)> {
    let all = registered();
    let (file, facts) = all.as_ref()?.files.get_key_value(file)?;
    Some((file.clone(), facts.clone()))
}

/// Whether anything is known of the code around a place. Where not, no other answer means "no".
pub fn known(at: &impl Somewhere) -> bool {
    facts(at.file()).is_some()
}

/// The name given to what the expression at this place makes: `x` for `let x = …;`, `*x = …`, `self.x = …`, `S { x: … }`.
pub fn binding(at: &impl Somewhere) -> Option<String> {
    let (_, facts) = facts(at.file())?;
    facts.bindings.iter().find(|b| b.0 == at.point()).map(|b| b.1.clone())
}

/// The function, method or macro that is called at this place: `interpolate` for `images.interpolate(…)`.
pub fn called(at: &impl Somewhere) -> Option<String> {
    let (_, facts) = facts(at.file())?;
    facts.calls.iter().find(|c| c.at == at.point()).map(|c| c.name.clone())
}

/// A function or a named closure, in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionFact {
    pub name: String,
    /// The type that it is a method of.
    pub of: Option<String>,
    pub closure: bool,
    pub from: Spot,
    pub to: Spot,
}

/// The innermost function or named closure around a place; `None` also for the cell's own statements.
pub fn function(at: &impl Somewhere) -> Option<FunctionFact> {
    let (file, facts) = facts(at.file())?;
    let f = facts.function(at.point())?;
    let [from, to] = [f.range.start, f.range.end].map(|p| Spot::new(&file, p));
    Some(FunctionFact { name: f.name.clone(), of: f.of.clone(), closure: f.closure, from, to })
}

/// The places in all files that call this function, latest first, each line once: by name, so that some may mean another one. A
/// file that has a function of its own of this name calls that, any other the latest before it.
pub fn calls(of: &FunctionFact) -> Vec<Spot> {
    let all = registered();
    let Some(all) = all.as_ref() else { return Vec::new() };
    let defines = |file: &str| all.files[file].functions.iter().any(|f| f.name == of.name && f.of == of.of);
    let (mut meant, mut its_own, mut any) = (None, Vec::new(), Vec::new());
    for file in &all.order {
        if defines(file) {
            meant = Some(file);
        }
        for call in all.files[file].calls.iter().filter(|c| c.name == of.name) {
            let at = Spot::new(file, call.at);
            if meant.is_none_or(|f| *f == of.from.file) {
                its_own.push(at.clone());
            }
            any.push(at);
        }
    }
    let found = if its_own.is_empty() { any } else { its_own };
    let mut found: Vec<Spot> = found.chunk_by(|a, b| a.file == b.file).rev().flatten().cloned().collect();
    let mut seen = std::collections::HashSet::new();
    found.retain(|at| {
        let point = at.point();
        let line = find_line(&at.file, point.0).map_or((at.file.to_string(), point.0), |(c, l)| (c.to_string(), l));
        seen.insert((line, super::column_of(&at.file, point)))
    });
    found
}

/// A loop around a place.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopFact {
    pub kind: LoopKind,
    /// What it goes through, what it goes on for, or the method that runs a closure.
    pub head: Spot,
    pub body: Spot,
    pub end: Spot,
}

/// The loops around a place within its function, innermost first.
pub fn loops(at: &impl Somewhere) -> Vec<LoopFact> {
    let Some((file, facts)) = facts(at.file()) else { return Vec::new() };
    facts.loops(at.point()).into_iter().map(|l| l.fact(&file)).collect()
}

/// What decides whether a place runs.
#[derive(Clone, Debug, PartialEq)]
pub struct GuardFact {
    pub at: Spot,
    /// The condition as it is written, where the cell's text is known.
    pub text: String,
    pub branch: Branch,
    /// The loops of its function that ask it and whose rounds may go different ways, as far as the code tells: they change what
    /// it mentions, or it calls something.
    pub rounds: Vec<LoopFact>,
    pub names: Vec<String>,
    pub calls: bool,
    pub reads: bool,
    /// Where the functions around are called, from the one that the place is in on; empty for a guard of the place itself.
    pub chain: Vec<Spot>,
}

/// What decides, within its function, whether a place runs: innermost first.
pub fn guards(at: &impl Somewhere) -> Vec<GuardFact> {
    guards_through(at, &[])
}

fn guards_through(at: &impl Somewhere, chain: &[Spot]) -> Vec<GuardFact> {
    let Some((file, facts)) = facts(at.file()) else { return Vec::new() };
    let fact = |g: &Guard| GuardFact {
        at: Spot::new(&file, g.condition.start),
        text: super::text_of(&file, &g.condition).unwrap_or_default(),
        branch: g.branch,
        rounds: (facts.loops(g.condition.start).into_iter())
            .filter(|l| g.made.calls || g.made.names.iter().any(|name| l.changes.contains(name)))
            .map(|l| l.fact(&file))
            .collect(),
        names: g.made.names.clone(),
        calls: g.made.calls,
        reads: g.made.reads,
        chain: chain.to_vec(),
    };
    facts.guards(at.point()).into_iter().map(fact).collect()
}

/// How far callers are followed, and how many places.
const MOST_CALLERS: (usize, usize) = (6, 256);

/// As [`guards`], and those of the places that call the function it is in, and so on: nearest first.
pub fn guards_deep(at: &impl Somewhere) -> Vec<GuardFact> {
    let mut out = guards(at);
    let mut next: Vec<(Spot, Vec<Spot>)> = function(at).iter().flat_map(calls).map(|c| (c, vec![])).collect();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..MOST_CALLERS.0 {
        for (call, chain) in std::mem::take(&mut next) {
            if seen.len() >= MOST_CALLERS.1 || !seen.insert(call.clone()) {
                continue;
            }
            let chain: Vec<Spot> = chain.into_iter().chain([call.clone()]).collect();
            out.extend(guards_through(&call, &chain));
            next.extend(function(&call).iter().flat_map(calls).map(|c| (c, chain.clone())));
        }
    }
    out
}

/// The places that call the function around a place, those that call the functions around these, and so on: nearest first.
pub fn callers(at: &impl Somewhere) -> Vec<Spot> {
    let mut out: Vec<Spot> = Vec::new();
    let mut next: Vec<Spot> = function(at).iter().flat_map(calls).collect();
    for _ in 0..MOST_CALLERS.0 {
        for call in std::mem::take(&mut next) {
            if out.len() < MOST_CALLERS.1 && !out.contains(&call) {
                next.extend(function(&call).iter().flat_map(calls));
                out.push(call);
            }
        }
    }
    out
}

/// Where a value goes that is read at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowFact {
    pub goes: Goes,
    /// It stands in what code decides by: a condition, a bound of a range, an assertion.
    pub in_condition: bool,
}

/// Where the value goes that is read at this place; `None` where nothing is known of it.
pub fn flows(at: &impl Somewhere) -> Option<FlowFact> {
    let (_, facts) = facts(at.file())?;
    let call = facts.calls.iter().find(|c| c.at == at.point())?;
    Some(FlowFact { goes: call.goes.clone(), in_condition: facts.decided_by(at.point()).next().is_some() })
}

/// Whether a value that is read here decides which way the code goes.
pub fn decides(at: &impl Somewhere) -> bool {
    facts(at.file()).is_some_and(|(_, facts)| facts.decided_by(at.point()).next().is_some())
}

/// Whether a value that is read here decides whether a loop has another round.
pub fn decides_rounds(at: &impl Somewhere) -> bool {
    facts(at.file()).is_some_and(|(_, facts)| facts.decided_by(at.point()).any(Condition::rounds))
}

/// Whether a value that is read here may decide what is run at one of those places, as far as the code tells: it stands in a
/// condition, goes into a variable that some condition mentions, or leaves the function as its result; and the place is what
/// the condition guards, or no other condition does. True where nothing is known of the code.
pub fn may_decide<P: Somewhere>(at: &impl Somewhere, places: &[&P]) -> bool {
    let Some((file, facts_here)) = facts(at.file()) else { return true };
    let here = at.point();
    let names = match flows(at) {
        Some(FlowFact { goes: Goes::Into(names), .. }) => Some(names),
        _ => None,
    };
    let named = |c: &Condition| names.iter().flatten().any(|name| c.made.names.contains(name));
    let (by_it, others): (Vec<&Condition>, Vec<&Condition>) =
        facts_here.conditions.iter().partition(|c| c.at.contains(&here) || named(c));
    let there: Vec<Option<Arc<Facts>>> =
        places.iter().map(|p| (*p.file() != *file).then(|| facts(p.file()).map(|f| f.1)).flatten()).collect();
    let guarding = |i: usize| -> Vec<&Condition> {
        let place: &P = places[i];
        let mine = *place.file() == *file;
        let all: Vec<&Condition> = match &there[i] {
            _ if mine => others.clone(),
            Some(facts) => facts.conditions.iter().collect(),
            None => Vec::new(),
        };
        let beside = |c: &&Condition| c.guards.contains(&place.point()) && !(mine && c.guards.contains(&here));
        all.into_iter().filter(beside).collect()
    };
    if by_it.is_empty() && names.is_none() {
        // Only a condition that calls something can have got the value, and not one that reads a value of its own.
        let other = |c: &&Condition| !c.made.calls || c.made.reads;
        return (0..places.len()).any(|i| !guarding(i).iter().any(other));
    }
    let effective: Vec<&Condition> = by_it.into_iter().filter(|c| !c.guards.is_empty()).collect();
    !effective.is_empty()
        && (0..places.len()).any(|i| {
            let others = guarding(i);
            let within = |c: &&&Condition| *places[i].file() == *file && c.guards.contains(&places[i].point());
            let nearer =
                |c: &Condition| others.iter().any(|o| c.guards.start <= o.guards.start && o.guards.end <= c.guards.end);
            match effective.iter().find(within) {
                Some(c) => !c.rounds() || !nearer(c),
                None => others.is_empty(),
            }
        })
}

impl Facts {
    fn function(&self, at: Point) -> Option<&Function> {
        let around = self.functions.iter().filter(|f| f.range.contains(&at));
        around.max_by_key(|f| f.range.start)
    }

    /// Whether two places are of one function, or of the cell's own statements.
    fn together(&self, a: Point, b: Point) -> bool {
        let range = |at| self.function(at).map(|f| f.range.clone());
        range(a) == range(b)
    }

    fn loops(&self, at: Point) -> Vec<&Loop> {
        let around = |l: &&Loop| l.body.contains(&at) && self.together(l.body.start, at);
        let mut out: Vec<&Loop> = self.loops.iter().filter(around).collect();
        out.sort_by_key(|l| std::cmp::Reverse(l.body.start));
        out
    }

    fn guards(&self, at: Point) -> Vec<&Guard> {
        let around = |g: &&Guard| g.guarded.contains(&at) && self.together(g.condition.start, at);
        let mut out: Vec<&Guard> = self.guards.iter().filter(around).collect();
        out.sort_by_key(|g| std::cmp::Reverse(g.guarded.start));
        out
    }

    fn decided_by(&self, at: Point) -> impl Iterator<Item = &Condition> {
        self.conditions.iter().filter(move |c| c.at.contains(&at))
    }

    /// Takes over one fact as the kernel writes it: see [`Facts::read`].
    fn add(&mut self, kind: &str, ranges: &[Range<Point>], words: &[&str]) -> Option<()> {
        let owned = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<String>>();
        let made = |flags: &str, names: &[&str]| Terms {
            names: owned(names),
            calls: flags.contains('c'),
            reads: flags.contains('r'),
        };
        match (kind, ranges, words) {
            ("F", [range], [name, of, closure]) => self.functions.push(Function {
                name: (*name).to_owned(),
                of: (!of.is_empty()).then(|| (*of).to_owned()),
                closure: *closure == "c",
                range: range.clone(),
            }),
            ("L", [head, body], [kind, changes @ ..]) => {
                let kind = match *kind {
                    "for" => LoopKind::For,
                    "while" => LoopKind::While,
                    "loop" => LoopKind::Loop,
                    "closure" => LoopKind::Closure,
                    _ => return None,
                };
                self.loops.push(Loop { kind, head: head.clone(), body: body.clone(), changes: owned(changes) });
            }
            ("G", [condition, guarded], [branch, flags, names @ ..]) => {
                let branch = match *branch {
                    "then" => Branch::Then,
                    "else" => Branch::Else,
                    "arm" => Branch::Arm,
                    "rest" => Branch::Rest,
                    _ => return None,
                };
                let (condition, guarded) = (condition.clone(), guarded.clone());
                self.guards.push(Guard { condition, guarded, branch, made: made(flags, names) });
            }
            ("D", [at, guards], [flags, names @ ..]) => {
                self.conditions.push(Condition { at: at.clone(), guards: guards.clone(), made: made(flags, names) });
            }
            ("C", [at], [name, goes, names @ ..]) => {
                let goes = if *goes == "out" { Goes::Out } else { Goes::Into(owned(names)) };
                self.calls.push(Call { at: at.start, name: (*name).to_owned(), goes });
            }
            ("B", [at], [name]) => self.bindings.push((at.start, (*name).to_owned())),
            ("E", [at, whole @ ..], [operator]) => {
                let range = whole.first().unwrap_or(at).clone();
                self.extents.push(Extent { at: at.start, range, operator: *operator == "o" });
            }
            ("S", [range, passes @ ..], [tail]) => {
                let passes = passes.first().cloned();
                self.statements.push(Statement { range: range.clone(), passes, tail: *tail == "t" });
            }
            _ => return None,
        }
        Some(())
    }

    /// Reads facts as the kernel writes them, a word each: `KIND;RANGE,…;WORD;…`, a range being `LINE:COLUMN-LINE:COLUMN`.
    pub fn read<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<Facts> {
        let mut out = Facts::default();
        let point = |p: &str| p.split_once(':').and_then(|(l, c)| Some((l.parse().ok()?, c.parse().ok()?)));
        let range = |r: &str| r.split_once('-').and_then(|(a, b)| Some(point(a)?..point(b)?));
        for word in words {
            let mut parts = word.split(';');
            let kind = parts.next()?;
            let ranges = parts.next()?.split(',').map(range).collect::<Option<Vec<Range<Point>>>>()?;
            out.add(kind, &ranges, &parts.collect::<Vec<&str>>())?;
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests;
