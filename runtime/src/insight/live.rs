//! What takes long right now, told while it lasts: compilations, and waits for the device. While a cell runs, a thread looks
//! in a few times a second, so that what it sees costs the cell two stores and no clock.
use crate::json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once};
use std::time::{Duration, Instant};
use xlazy_core::clock::watching;
use xlazy_core::host;
use xlazy_core::ir::graph;
use xlazy_core::run::Work;
use xlazy_core::text::{cell, line, location};

const LOOK: Duration = Duration::from_millis(250);
/// Nothing is said of what is shorter.
const AFTER: Duration = Duration::from_millis(700);
const EVERY: Duration = Duration::from_secs(1);
/// As many ops are recorded by a loop whose rounds nobody runs.
const MANY: usize = 20_000;

struct Compiling {
    id: u64,
    /// `None` of what is asked of a compiler for TPUs that are not there: `name` then says for which.
    work: Option<Work>,
    name: Option<String>,
    /// What would take less.
    advice: Option<String>,
    since: Instant,
}

#[derive(Default)]
struct State {
    compiling: Vec<Compiling>,
    /// The program that was started last.
    started: Option<Work>,
}

static STATE: Mutex<State> = Mutex::new(State { compiling: Vec::new(), started: None });
/// Counts what is begun.
static COUNT: AtomicU64 = AtomicU64::new(0);
/// The wait for the device that goes on; 0 for none.
static WAITING: AtomicU64 = AtomicU64::new(0);
/// A cell runs.
static CELL: AtomicBool = AtomicBool::new(false);
/// How many nodes there were when it began.
static BEFORE: AtomicUsize = AtomicUsize::new(0);
static BEGINS: Condvar = Condvar::new();

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(|p| p.into_inner())
}

/// A cell begins: there is something to look at.
pub(super) fn cell_begins() {
    static THREAD: Once = Once::new();
    THREAD.call_once(|| drop(std::thread::Builder::new().name("xlazy-live".into()).spawn(look_in)));
    BEFORE.store(graph().live(), Ordering::Relaxed);
    let _state = state();
    CELL.store(true, Ordering::Relaxed);
    BEGINS.notify_one();
}

pub(super) fn cell_ends() {
    CELL.store(false, Ordering::Relaxed);
}

/// A compilation, until it is dropped.
pub(crate) struct Live(u64);

impl Live {
    /// It goes on with something else.
    pub fn says(&self, name: String) {
        if let Some(c) = state().compiling.iter_mut().find(|c| c.id == self.0) {
            c.name = Some(name);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        state().compiling.retain(|d| d.id != self.0);
    }
}

/// A compilation begins; `name` is the variable that it is for, and `advice` says what would compile less.
pub(crate) fn compiling(work: Work, name: Option<String>, advice: Option<String>) -> Live {
    begins(Some(work), name, advice)
}

/// A compilation for devices that are not there begins: `v5e:2x2 at -O2`.
pub(crate) fn estimating(of: String) -> Live {
    begins(None, Some(of), None)
}

fn begins(work: Option<Work>, name: Option<String>, advice: Option<String>) -> Live {
    let id = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    state().compiling.push(Compiling { id, work, name, advice, since: Instant::now() });
    Live(id)
}

/// A wait for the device, until it is dropped.
pub(crate) struct Waiting;

impl Drop for Waiting {
    fn drop(&mut self) {
        end_wait();
    }
}

/// The host waits for what was started before.
pub(crate) fn waiting() -> Waiting {
    begin_wait(None);
    Waiting
}

/// The host waits for the device, perhaps after it has started a program.
pub(super) fn begin_wait(start: Option<Work>) {
    if start.is_some() && watching() {
        state().started = start;
    }
    WAITING.store(COUNT.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
}

pub(super) fn end_wait() {
    WAITING.store(0, Ordering::Relaxed);
}

fn look_in() {
    let mut s = state();
    // What was seen waiting, since when, and when something was said last.
    let mut seen = (0, Instant::now());
    let mut said: Option<Instant> = None;
    loop {
        if !CELL.load(Ordering::Relaxed) {
            s = BEGINS.wait(s).unwrap_or_else(|p| p.into_inner());
            said = None;
        } else {
            s = BEGINS.wait_timeout(s, LOOK).unwrap_or_else(|p| p.into_inner()).0;
        }
        let waiting = WAITING.load(Ordering::Relaxed);
        if waiting != seen.0 {
            seen = (waiting, Instant::now());
        }
        let (what, work, (name, advice), since) = match (outermost(&s.compiling), s.started) {
            (Some(c), _) => {
                let what = if c.work.is_some() { "compile" } else { "estimate" };
                (what, c.work, (c.name.as_deref(), c.advice.as_deref()), c.since)
            }
            (None, Some(work)) if waiting != 0 => ("run", Some(work), (None, None), seen.1),
            _ => {
                let due = said.is_none_or(|t| t.elapsed() >= EVERY);
                drop(s);
                let grown = graph().live().saturating_sub(BEFORE.load(Ordering::Relaxed));
                if due && grown >= MANY && CELL.load(Ordering::Relaxed) {
                    said = Some(Instant::now());
                    host::event("live", &grows(grown));
                }
                s = state();
                continue;
            }
        };
        let gone = since.elapsed();
        if gone < AFTER || said.is_some_and(|t| t.elapsed() < EVERY) || !CELL.load(Ordering::Relaxed) {
            continue;
        }
        let json = told(what, work, (name, advice), gone);
        said = Some(Instant::now());
        drop(s);
        host::event("live", &json);
        s = state();
    }
}

/// What is told of: the last compilation, and of those for TPUs, which a search has many of, the first.
fn outermost(all: &[Compiling]) -> Option<&Compiling> {
    all.iter().find(|c| c.work.is_none()).or(all.last())
}

/// What is recorded and waits for somebody to run it.
fn grows(nodes: usize) -> String {
    let at = {
        let g = graph();
        g.pending_nodes().last().map(|id| g.node(id).at)
    };
    let (cell, line, at) = at.map_or((None, 1, String::new()), |at| (cell(at), line(at), location(at)));
    let told = json!({
        "what": "pending",
        "nodes": nodes,
        "name": None::<&str>,
        "cause": None::<&str>,
        "cell": cell,
        "line": line,
        "at": at,
        "advice": None::<&str>,
        "ms": 0,
    });
    told.to_string()
}

type Said<'a> = (Option<&'a str>, Option<&'a str>);

fn told(what: &str, work: Option<Work>, (name, advice): Said, gone: Duration) -> String {
    let at = work.map(|w| w.at);
    let told = json!({
        "what": what,
        "nodes": work.map_or(0, |w| w.nodes),
        "name": name,
        "cause": work.map(|w| w.cause.name()),
        "cell": at.and_then(cell),
        "line": at.map_or(1, line),
        "at": at.map_or(String::new(), location),
        "advice": advice,
        "ms": gone.as_millis() as u64,
    });
    told.to_string()
}
