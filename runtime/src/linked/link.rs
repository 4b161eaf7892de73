//! What belongs together in the four forms: every row of each says of which ops it is.
use super::given::{Compiled, Given, Leaf};
use super::stablehlo::{self, Line};
use crate::aot::Report;
use crate::aot::line::{self, Kernel};
use crate::insight::mode::{Derived, derived_of};
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use xlazy_core::ir::{Input, Step};
use xlazy_core::text::{self, Source, called_from};
use xlazy_mime::count;

pub(super) fn for_tpu(report: Report) -> Result<Compiled> {
    if report.program.is_empty() {
        let fits = if report.fit.fits { "gave no program back" } else { "says that it does not fit" };
        let message = format!("the compiler for {} {fits}: `%tpu` tells more. {}", report.topology, report.fit.words);
        return Err(Error::Usage { message: message.trim_end().to_owned() });
    }
    Ok(Compiled { target: report.topology, cycles: Some(report.time.cycles), lines: report.program })
}

/// A line of the user's.
pub(super) struct SourceLine {
    pub cell: Option<u64>,
    /// The file's name, where it is no cell's.
    pub file: &'static str,
    pub line: u32,
    /// As it stands there; empty where it is not known.
    pub text: String,
    /// The ops that were recorded on it, or by what it called.
    pub ops: Vec<u32>,
}

impl SourceLine {
    pub fn at(&self) -> String {
        match self.cell {
            Some(cell) => format!("cell {cell}, line {}", self.line),
            None => format!("{}:{}", self.file.rsplit('/').next().unwrap_or_default(), self.line),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Value,
    Number,
    Forward,
    Gradient,
    Update,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Value => "value",
            Kind::Number => "number",
            Kind::Forward => "forward",
            Kind::Gradient => "gradient",
            Kind::Update => "update",
        }
    }
}

/// A recorded op, or what the program is given.
pub(super) struct Op {
    /// `%3`, `p0`.
    pub label: String,
    pub text: String,
    pub kind: Kind,
    /// Its line, and the one that called what holds it: numbers of source lines.
    pub lines: Vec<usize>,
    /// Why nothing of the optimised program is of it.
    pub gone: Option<String>,
}

/// A row of one of the two programs.
pub(super) struct Row {
    pub text: String,
    pub depth: u32,
    pub ops: Vec<u32>,
}

/// An operation as it would be run alone.
pub(super) struct Alone {
    pub name: String,
    pub bytes: u64,
    /// The row of the StableHLO.
    pub row: usize,
    /// The kernel that it became a part of.
    pub kernel: Option<usize>,
}

pub(super) struct KernelOf {
    pub kernel: Kernel,
    pub row: usize,
    pub ops: Vec<u32>,
    /// Source lines that it holds, in order.
    pub lines: Vec<usize>,
}

pub(super) struct Optimised {
    pub target: String,
    pub rows: Vec<Row>,
    pub kernels: Vec<KernelOf>,
    /// What the StableHLO's operations became a part of here.
    pub before: Vec<Alone>,
    pub cycles: Option<u64>,
}

impl Optimised {
    pub fn bytes(&self) -> u64 {
        self.kernels.iter().fold(0, |n, k| n.saturating_add(k.kernel.bytes))
    }

    pub fn flops(&self) -> u64 {
        let all = |k: &KernelOf| k.kernel.flops.saturating_mul(k.kernel.times.unwrap_or(1));
        self.kernels.iter().fold(0, |n, k| n.saturating_add(all(k)))
    }

    pub fn bytes_before(&self) -> u64 {
        self.before.iter().fold(0, |n, a| n.saturating_add(a.bytes))
    }

    /// Whether some of it runs more than once.
    pub fn loops(&self) -> bool {
        self.kernels.iter().any(|k| k.kernel.times != Some(1))
    }
}

pub(super) struct Linked {
    pub what: String,
    pub lines: Vec<SourceLine>,
    pub ops: Vec<Op>,
    pub stablehlo: Vec<Row>,
    pub optimised: Vec<Optimised>,
}

/// Where a line is, for what sorts lines.
type Key = (Option<u64>, &'static str, u32);

fn key(at: &'static Source) -> Key {
    match text::cell(at) {
        Some(cell) => (Some(cell), "", text::line(at)),
        None => (None, at.file(), at.line()),
    }
}

impl Linked {
    pub fn of(given: Given, compiled: Vec<Compiled>) -> Linked {
        let leaves = given.leaves.len() as u32;
        let code = stablehlo::lines(&given.text, &given.marks);
        let (lines, of_op) = source_lines(&given);
        let mut ops = ops(&given, &of_op);
        let row = |l: &Line| {
            let ops = match (l.step, l.parameter) {
                (Some(step), _) => vec![leaves + step as u32],
                (None, Some(p)) => {
                    let members = given.parameters.get(p).map_or(&[][..], Vec::as_slice);
                    l.number.map_or(members, |n| members.get(n..=n).unwrap_or_default()).to_vec()
                }
                _ => vec![],
            };
            Row { text: l.text.clone(), depth: l.depth, ops }
        };
        let stablehlo: Vec<Row> = code.iter().map(row).collect();
        let one = |c| optimised(c, &given, &ops, &code, &stablehlo);
        let optimised: Vec<Optimised> = compiled.into_iter().map(one).collect();
        if let Some(first) = optimised.first().filter(|o| !o.rows.is_empty()) {
            say_what_is_gone(&mut ops, &given, &code, first);
        }
        Linked { what: given.what, lines, ops, stablehlo, optimised }
    }
}

/// The user's lines, those around them too where the cell is known, and which of them each op is of.
fn source_lines(given: &Given) -> (Vec<SourceLine>, Vec<Vec<usize>>) {
    let of_leaf = |l: &Leaf| (l.at, l.statement);
    let places = given.leaves.iter().map(of_leaf).chain(given.places.iter().copied());
    let keys: Vec<Vec<Key>> = places
        .map(|(at, statement)| {
            let mut keys = vec![key(at)];
            keys.extend(called_from(at, statement).map(key).filter(|k| *k != keys[0]));
            keys
        })
        .collect();
    let mut used: BTreeMap<Key, Vec<u32>> = BTreeMap::new();
    for (op, keys) in keys.iter().enumerate() {
        keys.iter().for_each(|k| used.entry(*k).or_default().push(op as u32));
    }
    let cells: BTreeSet<u64> = used.keys().filter_map(|k| k.0).collect();
    for cell in cells {
        let text = text::kept(cell).unwrap_or_default();
        let all = text.lines().count() as u32;
        let near = |line: u32| used.keys().any(|k| k.0 == Some(cell) && k.2.abs_diff(line) <= AROUND);
        let shown: Vec<u32> = (1..=all).filter(|&l| all <= WHOLE || near(l)).collect();
        shown.into_iter().for_each(|l| _ = used.entry((Some(cell), "", l)).or_default());
    }
    let numbers: HashMap<Key, usize> = used.keys().enumerate().map(|(n, k)| (*k, n)).collect();
    let line = |((cell, file, line), ops): (Key, Vec<u32>)| {
        let text = match cell {
            Some(cell) => text::kept(cell).and_then(|t| t.lines().nth(line as usize - 1).map(str::to_owned)),
            None => None,
        };
        SourceLine { cell, file, line, text: text.unwrap_or_default(), ops }
    };
    let of_op = keys.iter().map(|keys| keys.iter().map(|k| numbers[k]).collect()).collect();
    (used.into_iter().map(line).collect(), of_op)
}

/// A cell of so many lines is shown whole; of a longer one what is so near to lines with ops.
const WHOLE: u32 = 60;
const AROUND: u32 = 2;

fn ops(given: &Given, of_op: &[Vec<usize>]) -> Vec<Op> {
    let derived = derived_of(given.steps.iter().map(|s| s.seq));
    let leaf = |(n, l): (usize, &Leaf)| {
        let (kind, what) = match (&l.number, &l.name) {
            (Some(number), _) => (Kind::Number, number.clone()),
            (None, Some(name)) => (Kind::Value, name.clone()),
            (None, None) => (Kind::Value, "device data".to_owned()),
        };
        Op {
            label: format!("p{n}"),
            text: format!("p{n} = {} {what}", l.ty),
            kind,
            lines: of_op[n].clone(),
            gone: None,
        }
    };
    let operand = |i: &Input| match *i {
        Input::Leaf(l) => format!("p{l}"),
        Input::Step(s) => format!("%{s}"),
    };
    let step = |(n, s): (usize, &Step)| {
        let inputs = s.inputs.iter().map(operand).collect::<Vec<_>>().join(", ");
        let attrs: Vec<String> = s.op.attrs.iter().zip(&s.attrs).map(|(def, a)| format!("{}={a}", def.name)).collect();
        let attrs = if attrs.is_empty() { String::new() } else { format!(" {{{}}}", attrs.join(", ")) };
        Op {
            label: format!("%{n}"),
            text: format!("%{n} = {} {}({inputs}){attrs}", s.ty, s.op.name),
            kind: match derived[n] {
                Some(Derived::Gradient) => Kind::Gradient,
                Some(Derived::Update) => Kind::Update,
                _ => Kind::Forward,
            },
            lines: of_op[given.leaves.len() + n].clone(),
            gone: None,
        }
    };
    let leaves = given.leaves.iter().enumerate().map(leaf);
    leaves.chain(given.steps.iter().enumerate().map(step)).collect()
}

fn optimised(c: Compiled, given: &Given, ops: &[Op], code: &[Line], stablehlo: &[Row]) -> Optimised {
    let leaves = given.leaves.len() as u32;
    let known = |mark: usize| (mark < given.steps.len()).then_some(leaves + mark as u32);
    let of = |l: &line::Line| match (l.mark.and_then(known), l.parameter) {
        (Some(op), _) => vec![op],
        (None, Some(p)) => given.parameters.get(p).cloned().unwrap_or_default(),
        _ => vec![],
    };
    let mut rows: Vec<Row> = Vec::with_capacity(c.lines.len());
    let mut kernels: Vec<KernelOf> = Vec::new();
    for (n, l) in c.lines.iter().enumerate() {
        let mut here = of(l);
        if let Some(kernel) = &l.kernel {
            let inside = c.lines[n + 1..].iter().take_while(|i| i.depth > l.depth);
            let all: BTreeSet<u32> = inside.filter_map(|i| known(i.mark?)).chain(here.iter().copied()).collect();
            here = all.into_iter().collect();
            let lines: BTreeSet<usize> = here.iter().flat_map(|&op| ops[op as usize].lines.iter().copied()).collect();
            let lines = lines.into_iter().collect();
            kernels.push(KernelOf { kernel: kernel.clone(), row: n, ops: here.clone(), lines });
        }
        rows.push(Row { text: l.text.clone(), depth: l.depth as u32, ops: here });
    }
    let mut home: HashMap<u32, usize> = HashMap::new();
    for (k, kernel) in kernels.iter().enumerate() {
        kernel.ops.iter().for_each(|&op| _ = home.entry(op).or_insert(k));
    }
    let alone = |(n, l): (usize, &Line)| {
        Some(Alone {
            name: operation(&l.text).to_owned(),
            bytes: l.alone?,
            row: n,
            kernel: stablehlo[n].ops.iter().find_map(|op| home.get(op).copied()),
        })
    };
    let before = code.iter().enumerate().filter_map(alone).collect();
    Optimised { target: c.target, rows, kernels, before, cycles: c.cycles }
}

/// `add` of `%3 = "stablehlo.add"(…`.
fn operation(text: &str) -> &str {
    let code = text.split_once(" = ").map_or(text, |(_, right)| right).trim_start_matches(['}', ')', ' ', '"']);
    let code = code.split_once("stablehlo.").map_or(code, |(_, op)| op);
    code.split(['"', '(', ' ', '{', ',']).next().unwrap_or(code)
}

/// Of an op that nothing of the optimised program is of: why.
fn say_what_is_gone(ops: &mut [Op], given: &Given, code: &[Line], first: &Optimised) {
    let leaves = given.leaves.len();
    let there: BTreeSet<u32> = first.rows.iter().flat_map(|r| r.ops.iter().copied()).collect();
    // What starts from nothing that the program is given is known when it is compiled.
    let mut known: Vec<bool> = Vec::with_capacity(given.steps.len());
    for step in &*given.steps {
        known.push(step.inputs.iter().all(|i| matches!(*i, Input::Step(s) if known[s as usize])));
    }
    let mut written: Vec<Vec<&str>> = vec![Vec::new(); given.steps.len()];
    for line in code {
        if let (Some(step), Some((_, right))) = (line.step, line.text.split_once(" = ")) {
            written[step].push(right);
        }
    }
    let mut first_with: HashMap<Vec<&str>, usize> = HashMap::new();
    for (s, text) in written.into_iter().enumerate() {
        let (wrote, same) = (text.len(), first_with.get(&text).copied());
        if wrote > 0 {
            first_with.entry(text).or_insert(s);
        }
        if there.contains(&((leaves + s) as u32)) {
            continue;
        }
        let same = same.map(|s| ops[leaves + s].label.clone());
        ops[leaves + s].gone = Some(match same {
            _ if wrote == 0 => "writes nothing: its value is its operand's".to_owned(),
            Some(same) => format!("the same as {same}: XLA computes it once"),
            None if known[s] => {
                "starts from nothing that the program is given: XLA computed it while it compiled".into()
            }
            None => format!("XLA's simplifications left nothing of its {}", count(wrote, "operation")),
        });
    }
    for (n, op) in ops[..leaves].iter_mut().enumerate() {
        if !there.contains(&(n as u32)) {
            op.gone = Some("no instruction reads it by itself".to_owned());
        }
    }
}
