//! An optimised program line by line: its kernels, what each computes and moves, and which op of the user's each line is from.
use super::estimate::trip_count;
use super::flops::Work;
use super::hlo::{Instruction, Module};
use super::line::{Kernel, Line};
use super::program::mark;
use crate::display::hlo::instructions;
use std::collections::HashMap;

/// More than a page can show.
const MOST: usize = 20_000;
const DEEPEST: usize = 32;

/// The lines of a program in a format that a plugin names; `None` where that cannot be read.
pub(crate) fn lines(format: &str, bytes: &[u8]) -> Option<Vec<Line>> {
    let module = Module::read(format, bytes)?;
    let mut reading = Reading {
        module: &module,
        texts: instructions(format, bytes),
        out: Vec::new(),
        open: Vec::new(),
        known: HashMap::new(),
    };
    reading.computation(module.entry, 0, Some(1), true);
    Some(reading.out)
}

struct Reading<'a> {
    module: &'a Module,
    texts: HashMap<i64, String>,
    out: Vec<Line>,
    /// The computations that are read at the moment.
    open: Vec<i64>,
    /// What those that are called compute.
    known: HashMap<i64, Work>,
}

/// Names for what is there already, and ends of what is counted at its start.
fn runs_nothing(opcode: &str) -> bool {
    matches!(
        opcode,
        "parameter"
            | "constant"
            | "get-tuple-element"
            | "tuple"
            | "bitcast"
            | "after-all"
            | "partition-id"
            | "replica-id"
            | "domain"
            | "opt-barrier"
            | "add-dependency"
            | "while"
            | "conditional"
            | "call"
    ) || opcode.ends_with("-done")
}

impl Reading<'_> {
    /// `kernels`: its instructions are started one by one, as those of a fusion are not.
    fn computation(&mut self, id: i64, depth: u64, times: Option<u64>, kernels: bool) {
        let module = self.module;
        let Some(c) = module.computation(id) else { return };
        if self.open.len() >= DEEPEST || self.open.contains(&id) {
            return;
        }
        self.open.push(id);
        for i in &c.instructions {
            if self.out.len() >= MOST {
                break;
            }
            let operands = i.operands.iter().filter_map(|&o| c.get(o));
            let bytes = operands.fold(i.hbm_bytes, |n, o| n.saturating_add(o.hbm_bytes));
            let kernel = (kernels && !runs_nothing(&i.opcode)).then(|| {
                let Work { flops, transcendentals, .. } = self.work(i, 0);
                let (name, opcode) = (i.name.clone(), i.opcode.clone());
                Kernel { name, opcode, times, flops, transcendentals, bytes, cycles: i.cycles }
            });
            self.out.push(Line {
                text: self.texts.get(&i.id).cloned().unwrap_or_default(),
                depth,
                mark: mark(&i.at),
                parameter: (depth == 0 && i.opcode == "parameter").then_some(i.parameter),
                kernel,
            });
            match i.opcode.as_str() {
                "while" => {
                    let trips = i.known_trip_count.or_else(|| trip_count(module, c, i));
                    let times = times.zip(trips).map(|(a, b)| a.saturating_mul(b));
                    for (&called, name) in i.called.iter().zip(["body", "condition"]) {
                        let how = match (name, trips) {
                            ("body", Some(n)) => format!(" × {n}"),
                            _ => String::new(),
                        };
                        self.head(format!("{name}{how}:"), depth + 1);
                        self.computation(called, depth + 2, times, true);
                    }
                }
                "conditional" => {
                    for (n, &called) in i.called.iter().enumerate() {
                        self.head(format!("branch {n}:"), depth + 1);
                        self.computation(called, depth + 2, times, true);
                    }
                }
                "call" => i.called.iter().for_each(|&called| self.computation(called, depth + 1, times, true)),
                "fusion" | "async-start" => {
                    i.called.iter().for_each(|&called| self.computation(called, depth + 1, times, false));
                }
                _ => {}
            }
        }
        self.open.pop();
    }

    fn head(&mut self, text: String, depth: u64) {
        self.out.push(Line { text, depth, ..Line::default() });
    }

    /// All that an instruction computes, with what it calls.
    fn work(&mut self, i: &Instruction, deep: usize) -> Work {
        let mut all = Work { each: 1, ..i.work };
        if i.work.each == 0 || deep > DEEPEST {
            return all;
        }
        for &called in &i.called {
            let Work { flops, transcendentals, .. } = self.work_of(called, deep + 1);
            all.flops = all.flops.saturating_add(flops.saturating_mul(i.work.each));
            all.transcendentals = all.transcendentals.saturating_add(transcendentals.saturating_mul(i.work.each));
        }
        all
    }

    /// That of a computation, once: a program may be made to call one from everywhere.
    fn work_of(&mut self, id: i64, deep: usize) -> Work {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let mut all = Work::default();
        let module = self.module;
        for inner in module.computation(id).iter().flat_map(|c| &c.instructions) {
            let Work { flops, transcendentals, .. } = self.work(inner, deep);
            all.flops = all.flops.saturating_add(flops);
            all.transcendentals = all.transcendentals.saturating_add(transcendentals);
        }
        self.known.insert(id, all);
        all
    }
}
