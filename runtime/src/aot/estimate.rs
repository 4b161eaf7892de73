//! From an optimised program to the rows of a report: what the compiler thinks each fusion takes, loops multiplied out.
use super::hlo::{Computation, Instruction, Module};
use super::report::{Held, Row, Source};
use std::collections::HashSet;

/// What the walk through a program found.
#[derive(Default)]
pub(super) struct Estimate {
    /// With an estimate, the dearest first.
    pub rows: Vec<Row>,
    /// Without one.
    pub without: Vec<Row>,
    pub largest: Vec<Held>,
    /// Bytes to and from HBM, as if every operand were read whole.
    pub hbm_bytes: u64,
}

/// More than anybody reads, and a bound on what a strange program can cost.
const MOST_ROWS: usize = 1000;
const LARGEST: usize = 8;
/// Instructions that are looked at, those of a loop's body again wherever it is called: no program has as many, but one in
/// which each computation calls the next one twice has without end.
const MOST_STEPS: usize = 1 << 17;

pub(super) fn estimate(module: &Module) -> Estimate {
    let mut walk = Walk { module, out: Estimate::default(), open: Vec::new(), steps: 0 };
    walk.computation(module.entry, Some(1));
    let mut out = walk.out;
    out.rows.sort_by_key(|r| std::cmp::Reverse(r.total()));
    out.rows.truncate(MOST_ROWS);
    out.without.truncate(MOST_ROWS);
    out.largest.sort_by_key(|h| std::cmp::Reverse(h.bytes));
    let mut seen = HashSet::new();
    out.largest.retain(|h| seen.insert(h.name.clone()));
    out.largest.truncate(LARGEST);
    out
}

struct Walk<'a> {
    module: &'a Module,
    out: Estimate,
    /// What is walked through at the moment, the innermost last.
    open: Vec<i64>,
    steps: usize,
}

/// Loops in loops deeper than this are not followed, nor one in itself: a program may be made to refer to itself.
const DEEPEST: usize = 32;

impl Walk<'_> {
    /// `times` is how often the computation runs; `None` where a loop does not tell.
    fn computation(&mut self, id: i64, times: Option<u64>) {
        let Some(c) = self.module.computation(id) else { return };
        if self.open.len() > DEEPEST || self.open.contains(&id) {
            return;
        }
        self.open.push(id);
        for i in &c.instructions {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                break;
            }
            self.instruction(c, i, times);
        }
        self.open.pop();
    }

    fn instruction(&mut self, c: &Computation, i: &Instruction, times: Option<u64>) {
        match i.opcode.as_str() {
            // Names for what is there already, and the ends of what is counted at its start.
            "get-tuple-element" | "tuple" | "bitcast" | "after-all" | "partition-id" | "replica-id" | "domain"
            | "opt-barrier" | "add-dependency" => return,
            "parameter" => {
                if c.root == i.id || self.open.len() > 1 {
                    return;
                }
                return self.held(i, vec![Source { op: "argument".into(), at: String::new() }]);
            }
            "constant" => return self.held(i, sources(self.module, i)),
            end if end.ends_with("-done") => return,
            "while" => {
                let trips = i.known_trip_count.or_else(|| trip_count(self.module, c, i));
                let times = times.zip(trips).map(|(a, b)| a.saturating_mul(b));
                i.called.iter().for_each(|called| self.computation(*called, times));
                return;
            }
            // Every branch is listed: which one runs is known only then.
            "conditional" | "call" => {
                i.called.iter().for_each(|called| self.computation(*called, times));
                return;
            }
            _ => {}
        }
        let sources = sources(self.module, i);
        self.held(i, sources.clone());
        let operands: Vec<&Instruction> = i.operands.iter().filter_map(|&id| c.get(id)).collect();
        let bytes = operands.iter().map(|o| o.hbm_bytes).sum::<u64>().saturating_add(i.hbm_bytes);
        self.out.hbm_bytes = self.out.hbm_bytes.saturating_add(bytes.saturating_mul(times.unwrap_or(1)));
        let row = Row {
            name: i.name.clone(),
            opcode: i.opcode.clone(),
            shape: i.shape.clone(),
            operands: operands.iter().map(|o| o.shape.clone()).collect(),
            times,
            cycles: i.cycles,
            sources,
        };
        match row.cycles {
            Some(_) => self.out.rows.push(row),
            None => self.out.without.push(row),
        }
    }

    fn held(&mut self, i: &Instruction, sources: Vec<Source>) {
        if i.hbm_bytes > 0 {
            let held = Held { name: i.name.clone(), shape: i.shape.clone(), bytes: i.hbm_bytes, sources };
            self.out.largest.push(held);
        }
    }
}

/// The user's ops inside an instruction, each once, in the order in which they are computed.
fn sources(module: &Module, i: &Instruction) -> Vec<Source> {
    let mut out: Vec<Source> = Vec::new();
    let mut add = |i: &Instruction| {
        let source = Source { op: i.op.clone(), at: i.at.clone() };
        let told = !source.op.is_empty() || !source.at.is_empty();
        if told && !out.contains(&source) {
            out.push(source);
        }
    };
    let mut todo: Vec<i64> = i.called.clone();
    let mut seen = HashSet::new();
    while let Some(id) = todo.pop() {
        if !seen.insert(id) {
            continue;
        }
        for inner in module.computation(id).into_iter().flat_map(|c| &c.instructions) {
            add(inner);
            todo.extend(&inner.called);
        }
    }
    add(i);
    // The body of a reduction carries its op's name and no line.
    let placed: HashSet<String> = out.iter().filter(|s| !s.at.is_empty()).map(|s| s.op.clone()).collect();
    out.retain(|s| !s.at.is_empty() || !placed.contains(&s.op));
    out
}

/// How often a counting loop runs: from a constant, by a constant step, while below a constant. libtpu's programs do not
/// say it, unlike other compilers'.
pub(super) fn trip_count(module: &Module, outside: &Computation, i: &Instruction) -> Option<u64> {
    let [body, condition] = i.called[..] else { return None };
    let (body, condition) = (module.computation(body)?, module.computation(condition)?);
    let init = outside.get(*i.operands.first()?)?;
    let test = condition.get(condition.root)?;
    if test.opcode != "compare" {
        return None;
    }
    let around = Loop { outside, init, body };
    let [left, right] = test.operands[..] else { return None };
    let counter = element(condition, left)?;
    let limit = around.constant(condition, right)?;
    let start = around.start(counter)?;
    let step = around.step(counter)?;
    let span = match test.direction.as_str() {
        "LT" => limit.checked_sub(start)?,
        "LE" => limit.checked_sub(start)?.checked_add(1)?,
        "GT" => start.checked_sub(limit)?,
        "GE" => start.checked_sub(limit)?.checked_add(1)?,
        "NE" => (limit.checked_sub(start)? * step.signum()).max(0),
        _ => return None,
    };
    let forward = matches!(test.direction.as_str(), "LT" | "LE") && step > 0;
    let backward = matches!(test.direction.as_str(), "GT" | "GE") && step < 0;
    let either = test.direction == "NE" && step != 0 && span % step.abs() == 0;
    (forward || backward || either).then(|| (span.max(0) as u64).div_ceil(step.unsigned_abs()))
}

/// Which element of the loop's tuple an instruction is.
fn element(c: &Computation, id: i64) -> Option<i64> {
    let i = c.get(id)?;
    let whole = c.get(*i.operands.first()?)?;
    (i.opcode == "get-tuple-element" && whole.opcode == "parameter").then_some(i.index)
}

struct Loop<'a> {
    outside: &'a Computation,
    init: &'a Instruction,
    body: &'a Computation,
}

impl Loop<'_> {
    /// A constant in the loop, or one that the loop carries along unchanged.
    fn constant(&self, c: &Computation, id: i64) -> Option<i64> {
        let i = c.get(id)?;
        match i.opcode.as_str() {
            "constant" => i.constant,
            "copy" | "bitcast" | "convert" => self.constant(c, *i.operands.first()?),
            _ => {
                let index = element(c, id)?;
                let next = self.next(index)?;
                (element(self.body, next.id)? == index).then(|| self.start(index))?
            }
        }
    }

    /// What an element of the tuple becomes.
    fn next(&self, index: i64) -> Option<&Instruction> {
        let root = self.body.get(self.body.root)?;
        self.body.get(*root.operands.get(usize::try_from(index).ok()?)?)
    }

    fn start(&self, index: i64) -> Option<i64> {
        if self.init.opcode != "tuple" {
            return None;
        }
        let mut i = self.outside.get(*self.init.operands.get(usize::try_from(index).ok()?)?)?;
        while matches!(i.opcode.as_str(), "copy" | "bitcast") {
            i = self.outside.get(*i.operands.first()?)?;
        }
        i.constant
    }

    fn step(&self, index: i64) -> Option<i64> {
        let next = self.next(index)?;
        let [a, b] = next.operands[..] else { return None };
        match (next.opcode.as_str(), element(self.body, a), element(self.body, b)) {
            ("add", Some(i), _) if i == index => self.constant(self.body, b),
            ("add", _, Some(i)) if i == index => self.constant(self.body, a),
            ("subtract", Some(i), _) if i == index => self.constant(self.body, b).map(|s| -s),
            _ => None,
        }
    }
}
