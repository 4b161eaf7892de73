//! Where time went: cells, tracing, lowering, compiling, running, transfers, on one line. It is made of what is measured
//! anyway, when somebody asks: nothing is paid for a view that is not open.
use super::history::compilations;
use super::log::events;
use super::report::{Class, Compilation};
use crate::json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use xlazy_core::metrics::{self, Metric};
use xlazy_core::run::{Origin, SyncEvent};
use xlazy_core::text::{Spot, location};

/// What a stretch of time was spent on, each a lane of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    Cell,
    Trace,
    Lower,
    Compile,
    Execute,
    ToDevice,
    FromDevice,
    /// By a loader's workers, several at a time.
    Batches,
    LoaderWait,
}

impl Lane {
    pub const ALL: [Lane; 9] = [
        Lane::Cell,
        Lane::Trace,
        Lane::Lower,
        Lane::Compile,
        Lane::Execute,
        Lane::ToDevice,
        Lane::FromDevice,
        Lane::Batches,
        Lane::LoaderWait,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Lane::Cell => "cell",
            Lane::Trace => "trace and cut",
            Lane::Lower => "lower",
            Lane::Compile => "compile",
            Lane::Execute => "run",
            Lane::ToDevice => "to the device",
            Lane::FromDevice => "from the device",
            Lane::Batches => "batches made",
            Lane::LoaderWait => "loader waited for",
        }
    }
}

/// A stretch of time.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub lane: Lane,
    pub name: String,
    /// Since the first of them.
    pub start: Duration,
    pub length: Duration,
    /// The cell that ran then; 0 for none.
    pub cell: u64,
    /// The line, where it is known.
    pub at: Option<String>,
    /// Why it was compiled again.
    pub class: Option<Class>,
}

/// Steps of a loop: runs of one line, and what their programs cost to compile.
#[derive(Clone, Debug)]
pub(crate) struct Ribbon {
    pub at: String,
    pub cause: &'static str,
    pub steps: Vec<(Origin, Duration)>,
    pub compile: Duration,
    /// The step by which the runs have taken as long as compiling; beyond the last one by what the runs take on average.
    pub paid_at: Option<usize>,
}

pub(crate) struct Timeline {
    pub spans: Vec<Span>,
    pub ribbons: Vec<Ribbon>,
}

/// A cell that ran, or that runs now.
#[derive(Clone, Copy)]
struct Ran {
    cell: u64,
    start: Instant,
    end: Option<Instant>,
}

static CELLS: Mutex<VecDeque<Ran>> = Mutex::new(VecDeque::new());
const KEPT: usize = 512;

fn cells() -> MutexGuard<'static, VecDeque<Ran>> {
    CELLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cell of this number begins.
pub(super) fn cell_begins(cell: u64, start: Instant) {
    let mut all = cells();
    if all.len() == KEPT {
        all.pop_front();
    }
    all.push_back(Ran { cell, start, end: None });
}

pub(super) fn cell_ends() {
    if let Some(last) = cells().back_mut() {
        last.end = Some(Instant::now());
    }
}

/// The last samples of a time, as from when to when; what came too soon after another to be timed stands behind it.
fn stretches(metric: &Metric) -> Vec<(Instant, Duration)> {
    let recent = metric.samples().recent.clone();
    let mut out: Vec<(Instant, Duration)> = Vec::with_capacity(recent.len());
    for (end, nanoseconds) in recent {
        let length = Duration::from_nanos(nanoseconds as u64);
        let start = end.checked_sub(length).unwrap_or(end);
        let before = out.last().map(|(s, l)| *s + *l);
        // Later ones end later, unless nobody asked the clock.
        out.push((before.filter(|b| *b > start).unwrap_or(start), length));
    }
    out
}

pub(crate) fn timeline() -> Timeline {
    let ran: Vec<Ran> = cells().iter().filter(|r| r.cell > 0).copied().collect();
    let events = events();
    let runs = stretches(&metrics::EXECUTE_TIME);
    let compiled: Vec<Compilation> = compilations().into_iter().filter(|c| c.origin == Origin::Compiled).collect();
    let mut found: Vec<(Instant, Span)> = Vec::new();
    let cell_at = |t: Instant| {
        let within = |r: &&Ran| r.start <= t && r.end.is_none_or(|e| t <= e);
        ran.iter().rev().find(within).map_or(0, |r| r.cell)
    };
    let mut add = |lane, name: String, start: Instant, length: Duration, at: Option<String>, class| {
        let span = Span { lane, name, start: Duration::ZERO, length, cell: cell_at(start), at, class };
        found.push((start, span));
    };
    for r in &ran {
        let end = r.end.unwrap_or_else(Instant::now);
        add(Lane::Cell, format!("cell {}", r.cell), r.start, end - r.start, None, None);
    }
    // Both are written down once for each run, so the last ones belong together.
    let both = events.len().min(runs.len());
    for (e, &(start, length)) in events[events.len() - both..].iter().zip(&runs[runs.len() - both..]) {
        let name = format!("{} of {} ops", e.cause.name(), e.nodes);
        add(Lane::Execute, name, start, length, Some(location(e.at)), None);
        let waited = if e.origin == Origin::Memory { Duration::ZERO } else { e.lower + e.compile };
        let traced = e.trace;
        if let Some(before) = start.checked_sub(waited + traced).filter(|_| !traced.is_zero()) {
            add(Lane::Trace, format!("{} ops", e.nodes), before, traced, Some(location(e.at)), None);
        }
    }
    let seen = |(_, length): &(Instant, Duration)| *length >= Duration::from_millis(1);
    for (start, length) in stretches(&metrics::WAIT_TIME).into_iter().filter(seen) {
        add(Lane::Execute, "waited for".into(), start, length, None, None);
    }
    for (start, length) in stretches(&metrics::LOWER_TIME) {
        add(Lane::Lower, "lower".into(), start, length, None, None);
    }
    let compile = stretches(&metrics::COMPILE_TIME);
    let both = compile.len().min(compiled.len());
    for (c, &(start, length)) in compiled[compiled.len() - both..].iter().zip(&compile[compile.len() - both..]) {
        let class = c.why.as_ref().map(|w| w.class);
        let why = class.map_or("first of its kind", Class::name);
        let name = format!("program {} of {} ops: {why}", c.number, c.nodes);
        add(Lane::Compile, name, start, length, Some(location(c.site)), class);
    }
    for (lane, metric) in
        [(Lane::ToDevice, &metrics::TRANSFER_TO_DEVICE_TIME), (Lane::FromDevice, &metrics::TRANSFER_FROM_DEVICE_TIME)]
    {
        stretches(metric)
            .into_iter()
            .for_each(|(start, length)| add(lane, lane.name().into(), start, length, None, None));
    }
    // Workers make several batches at a time, so these are not put one behind the other.
    let made = metrics::LOADER_BATCH_TIME.samples().recent.clone();
    for (end, length) in made.into_iter().map(|(end, ns)| (end, Duration::from_nanos(ns as u64))) {
        add(Lane::Batches, "a batch".into(), end.checked_sub(length).unwrap_or(end), length, None, None);
    }
    for (start, length) in stretches(&metrics::LOADER_WAIT_TIME).into_iter().filter(seen) {
        add(Lane::LoaderWait, "waited for a batch".into(), start, length, None, None);
    }
    found.sort_by_key(|f| f.0);
    let origin = found.first().map(|f| f.0);
    let spans = found
        .into_iter()
        .map(|(start, span)| Span {
            start: origin.map_or(Duration::ZERO, |o| start.saturating_duration_since(o)),
            ..span
        })
        .collect();
    Timeline { spans, ribbons: ribbons(&events) }
}

/// Runs of one line, where they are several.
fn ribbons(events: &[SyncEvent]) -> Vec<Ribbon> {
    const FEWEST: usize = 3;
    let mut order: Vec<Spot> = Vec::new();
    let mut of: BTreeMap<Spot, Vec<&SyncEvent>> = BTreeMap::new();
    for e in events {
        let spot = Spot::from(e.at);
        let all = of.entry(spot.clone()).or_default();
        if all.is_empty() {
            order.push(spot);
        }
        all.push(e);
    }
    let one = |spot: Spot| {
        let all = of.get(&spot).filter(|all| all.len() >= FEWEST)?;
        let steps: Vec<(Origin, Duration)> = all.iter().map(|e| (e.origin, e.trace + e.execute)).collect();
        let compile = all.iter().map(|e| e.lower + e.compile).sum();
        Some(Ribbon {
            at: location(all[0].at),
            cause: all[0].cause.name(),
            paid_at: paid(compile, &steps),
            steps,
            compile,
        })
    };
    order.into_iter().filter_map(one).collect()
}

/// The step by which steps have taken as long as that; beyond the last one by what those take that compile nothing, and none
/// where the last one still compiled.
fn paid(compile: Duration, steps: &[(Origin, Duration)]) -> Option<usize> {
    let mut sum = Duration::ZERO;
    for (n, step) in steps.iter().enumerate() {
        sum += step.1;
        if sum >= compile {
            return Some(n + 1);
        }
    }
    let alike: Vec<Duration> = steps.iter().filter(|s| s.0 == Origin::Memory).map(|s| s.1).collect();
    let last = steps.last().filter(|s| s.0 == Origin::Memory)?.1;
    let mean = alike.iter().sum::<Duration>().max(last).as_secs_f64() / alike.len().max(1) as f64;
    let more = (compile - sum).as_secs_f64() / mean;
    (mean > 0.0 && more < 1e9).then(|| steps.len() + more.ceil() as usize)
}

fn microseconds(d: Duration) -> f64 {
    d.as_nanos() as f64 / 1e3
}

impl Timeline {
    pub fn json(&self) -> Value {
        let span = |s: &Span| {
            json!({
                "lane": s.lane.name(),
                "name": s.name,
                "start_us": microseconds(s.start),
                "length_us": microseconds(s.length),
                "cell": s.cell,
                "at": s.at,
                "class": s.class.map(Class::name),
            })
        };
        let ribbon = |r: &Ribbon| {
            let step = |(origin, time): &(Origin, Duration)| json!({ "origin": origin.name(), "length_us": microseconds(*time) });
            json!({
                "at": r.at,
                "cause": r.cause,
                "compile_us": microseconds(r.compile),
                "paid_at": r.paid_at,
                "steps": r.steps.iter().map(step).collect::<Value>(),
            })
        };
        json!({
            "spans": self.spans.iter().map(span).collect::<Value>(),
            "loops": self.ribbons.iter().map(ribbon).collect::<Value>(),
        })
    }

    /// Chrome's trace-event format, which Perfetto and XProf's trace viewer read: complete events, one thread for each lane.
    pub fn trace_events(&self) -> Value {
        let meta = |name: &str, tid: usize, value: Value| json!({ "ph": "M", "pid": 1, "tid": tid, "name": name, "args": value });
        let mut all = vec![meta("process_name", 0, json!({ "name": "xlazy" }))];
        for (i, lane) in Lane::ALL.iter().enumerate() {
            all.push(meta("thread_name", i + 1, json!({ "name": lane.name() })));
            all.push(meta("thread_sort_index", i + 1, json!({ "sort_index": i })));
        }
        for s in &self.spans {
            let mut args = json!({ "cell": s.cell });
            if let Some(at) = &s.at {
                args["at"] = at.as_str().into();
            }
            if let Some(class) = s.class {
                args["cause"] = class.name().into();
            }
            all.push(json!({
                "ph": "X",
                "pid": 1,
                "tid": s.lane as usize + 1,
                "name": s.name,
                "cat": s.lane.name(),
                "ts": microseconds(s.start),
                "dur": microseconds(s.length),
                "args": args,
            }));
        }
        json!({ "displayTimeUnit": "ms", "traceEvents": all })
    }
}

#[cfg(test)]
mod tests {
    use super::{Lane, paid, timeline};
    use crate::data::{Array, DataLoader, DataLoaderOptions, Dataset, Failure};
    use crate::{Tensor, display};
    use std::time::{Duration, Instant};
    use xlazy_core::run::Origin;

    /// A dataset whose samples take their time.
    struct Slow;

    impl Dataset<1> for Slow {
        fn len(&self) -> usize {
            12
        }
        fn get(&self, index: usize) -> Result<[Array; 1], Failure> {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(2) {
                std::hint::spin_loop();
            }
            Ok([Array::from(vec![index as f32])])
        }
    }

    #[test]
    fn what_a_loader_makes_and_what_is_waited_for_stand_on_the_line() {
        let options = DataLoaderOptions { workers: 2, ..Default::default() };
        let (mut batches, mut total) = (0, Tensor::zeros(()));
        for [x] in &DataLoader::with(Slow, 3, options) {
            total += x.sum();
            batches += 1;
        }
        assert_eq!((batches, total.item()), (4, 66.0));
        let found = timeline();
        let of = |lane| found.spans.iter().filter(|s| s.lane == lane).map(|s| s.length).collect::<Vec<_>>();
        let made = of(Lane::Batches);
        assert!(made.len() >= 4 && made.iter().all(|t| *t >= Duration::from_millis(6)), "{made:?}");
        let waited: Duration = of(Lane::LoaderWait).iter().sum();
        assert!(waited >= Duration::from_millis(6), "the first batch was waited for: {waited:?}");
        let shown = display::timeline::bundle(&found);
        assert!(shown.plain().contains("loader waited for"), "{}", shown.plain());
        assert!(shown.get("text/html").unwrap().contains("batches made"));
    }

    #[test]
    fn compiling_has_paid_when_steps_took_as_long() {
        let ms = Duration::from_millis;
        let steps = |all: &[u64]| all.iter().map(|&t| (Origin::Memory, ms(t))).collect::<Vec<_>>();
        assert_eq!(paid(ms(10), &steps(&[4, 4, 4])), Some(3));
        assert_eq!(paid(ms(0), &steps(&[4])), Some(1));
        // Not yet: 100 - 12 are left, at 4 each.
        assert_eq!(paid(ms(100), &steps(&[4, 4, 4])), Some(25));
        assert_eq!(paid(ms(100), &[]), None);
        assert_eq!(paid(ms(100), &steps(&[0, 0])), None);
        // What compiles at every step is never paid.
        assert_eq!(paid(ms(100), &[(Origin::Compiled, ms(4)), (Origin::Compiled, ms(4))]), None);
    }
}
