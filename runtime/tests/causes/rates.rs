//! The rates of right explanations by kind of mutation, and what is to be reached of each.
use super::draw::draw;
use super::judge::{Said, Verdict, judge, row_of, said, said_of, tells_all};
use super::layout::{Text, layout};
use super::mutate::{Change, Mutation, NUMBER, apply, mutations, prepare};
use super::places::run_copy;
use super::program::Program;
use super::support::{Seeded, in_nobodys_words};
use super::world::{Knobs, World};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use xlazy::insight::{
    Class, Compilation, Dump, Explanation, compilations, explain_dumps, forget, set_cache_capacity, set_healing,
    text_of_compilation,
};
use xlazy::prelude::*;
use xlazy_core::device::go_dry;

/// What is to be reached of every kind, in percent.
const GOAL: f64 = 98.0;

/// Steps until a program compiles nothing more, at most.
const WARM: usize = 8;

/// What came of a program with mutations: `None` where nothing was compiled.
fn attempt(p: &Program, mutations: &[&Mutation]) -> Option<(Verdict, Vec<Option<Said>>)> {
    attempt_as(p, mutations, false)
}

/// The same where the step that has the mutations is a copy of the others' text.
fn attempt_as(p: &Program, mutations: &[&Mutation], copied: bool) -> Option<(Verdict, Vec<Option<Said>>)> {
    forget();
    set_cache_capacity(2048);
    xlazy::backends::set_mat_mul_precision("default").expect("the default");
    let mut w = World::new(p);
    let mut k = Knobs::of(p);
    for m in mutations {
        prepare(&m.change, &mut k, &mut w);
    }
    let mut steps = 0;
    loop {
        let before = compilations().len();
        w.step(&k);
        w.evaluate(&k);
        steps += 1;
        if compilations().len() == before || steps == WARM || k.grows && steps == 3 {
            break;
        }
    }
    for m in mutations {
        apply(&m.change, &mut k, &mut w);
    }
    let before = compilations().len();
    WARMED.store(before as u64, Ordering::Relaxed);
    run_copy(copied);
    w.step(&k);
    w.evaluate(&k);
    run_copy(false);
    let all = said(&compilations()[before..]);
    set_cache_capacity(2048);
    drop(w);
    sync();
    (!all.is_empty()).then(|| (judge(mutations, &all), all))
}

/// How many programs there were before the last attempt's mutation.
static WARMED: AtomicU64 = AtomicU64::new(0);

fn warm() -> u64 {
    WARMED.load(Ordering::Relaxed)
}

/// One kind of mutation: how often what was said, and the shortest program of which it was wrong.
#[derive(Default)]
struct Rate {
    tried: usize,
    silent: usize,
    right: [usize; 3],
    /// How long each program was of which it was wrong, and what was said.
    wrong: Vec<(usize, String)>,
}

impl Rate {
    fn add(&mut self, rows: usize, v: Verdict, report: impl FnOnce() -> String) {
        let all = [v.cause, v.line, v.coverage];
        self.tried += 1;
        for (right, ok) in self.right.iter_mut().zip(all) {
            *right += ok as usize;
        }
        if all.contains(&false) {
            self.wrong.push((rows, report()));
        }
    }

    /// The shortest program of which it was wrong.
    fn shortest(&self) -> Option<&String> {
        self.wrong.iter().min_by_key(|w| w.0).map(|w| &w.1)
    }

    fn of(&self, i: usize) -> f64 {
        100.0 * self.right[i] as f64 / self.tried.max(1) as f64
    }
}

type Rates = BTreeMap<&'static str, Rate>;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// The seeds of this run, and the kinds of mutation that are asked for.
pub fn seeds(default: u64) -> (std::ops::Range<u64>, String) {
    go_dry(2);
    let first = number("XLAZY_SEED", 1);
    (first..first + number("XLAZY_ROUNDS", default), std::env::var("XLAZY_ONLY").unwrap_or_default())
}

/// The runtime is one per process.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn drawn(seed: u64, only: &str) -> (Program, Text, Vec<Mutation>) {
    let mut p = draw(seed);
    let text = layout(&mut p);
    text.register();
    let mut all = mutations(&p, &text, &mut Seeded(seed));
    all.retain(|m| m.name.contains(only));
    (p, text, all)
}

/// Changes that may come to nothing: a number is an operand, an axis or a position may be of what is not there.
const MAY_BE_SILENT: [&str; 1] = [NUMBER];

/// Mutations of a program that are tried: those of the kinds that were tried least.
const TRIED: usize = 3;

/// One mutation for each attempt.
pub fn one() {
    each(150, false);
}

/// One mutation for each attempt, of a step that is written once more in another cell. What only the copy reads is a program of
/// its own there, the first of its kind.
pub fn copied() {
    each(60, true);
}

fn each(rounds: u64, copied: bool) {
    let _alone = alone();
    let (seeds, only) = seeds(rounds);
    let mut rates = Rates::new();
    for seed in seeds {
        let (p, text, mut all) = drawn(seed, &only);
        all.retain(|m| !copied || !matches!(m.change, Change::Read(_)));
        all.sort_by_key(|m| rates.get(m.name).map_or(0, |r| r.tried + r.silent));
        for m in all.iter().take(TRIED) {
            let outcome = attempt_as(&p, &[m], copied);
            let rate = rates.entry(m.name).or_default();
            match outcome {
                None => {
                    assert!(MAY_BE_SILENT.contains(&m.name), "{}", report(seed, &text, &[m], None, &[]));
                    rate.silent += 1;
                }
                Some((v, said)) => rate.add(text.rows.len(), v, || report(seed, &text, &[m], Some(v), &said)),
            }
        }
    }
    compare(&rates, &["cause", "line", "coverage"]);
}

/// Changes of data, and changes of what is done with them.
const OF_DATA: [&str; 6] = ["batch size", "length", "picture size", "rows of one input", "rank of one input", "dtype"];
const OF_WORK: [&str; 16] = [
    "position",
    "axis",
    "constant",
    "a branch",
    "a layer more",
    "a layer less",
    "a layer left out",
    "another result",
    "frozen parameters",
    "mode",
    "changed init",
    "an inner round more",
    "an inner round less",
    "no gradients in a region",
    "an optimizer less",
    "an optimizer more",
];

/// What the text of a program tells of a change: not what was read, frozen or pending before.
const IN_TEXTS: [&str; 17] = [
    "batch size",
    "length",
    "picture size",
    "rows of one input",
    "rank of one input",
    "dtype",
    "position",
    "axis",
    "constant",
    "mode",
    "a branch",
    "a layer more",
    "a layer less",
    "a layer left out",
    "changed init",
    "an inner round more",
    "an inner round less",
];

/// One mutation, explained from the texts of both programs.
pub fn texts() {
    let _alone = alone();
    let (seeds, only) = seeds(120);
    // A healed program is another text than what was explained.
    set_healing(false);
    let mut rates = Rates::new();
    for seed in seeds {
        let (p, text, mut all) = drawn(seed, &only);
        all.retain(|m| IN_TEXTS.contains(&m.name));
        // Once it is written out, a position may be a constant like any other.
        all.iter_mut().filter(|m| m.classes.contains(&Class::Index)).for_each(|m| m.classes.push(Class::Constant));
        all.sort_by_key(|m| rates.get(m.name).map_or(0, |r| r.tried));
        for m in all.iter().take(TRIED) {
            let Some((v, _)) = attempt(&p, &[m]) else { continue };
            if !(v.cause && v.line && v.coverage) {
                continue;
            }
            let explained: Vec<Compilation> = compilations().into_iter().filter(|c| c.number > warm()).collect();
            let read = |c: &Compilation| {
                let why = c.why.as_ref()?;
                let [was, now] = [why.compared_with, c.number].map(text_of_compilation);
                let (was, now) = (was?, now?);
                let why = explain_dumps(&Dump { name: "old", text: &was }, &Dump { name: "new", text: &now });
                let why = why.expect("texts of our own");
                why.iter().for_each(in_nobodys_words);
                Some(why)
            };
            let why: Vec<Option<Explanation>> = explained.iter().filter_map(read).collect();
            let all = said_of(why.iter().map(Option::as_ref));
            let v = judge(&[m], &all);
            let rate = rates.entry(m.name).or_default();
            rate.add(text.rows.len(), v, || report(seed, &text, &[m], Some(v), &all));
        }
    }
    set_healing(true);
    compare(&rates, &["cause", "line", "coverage"]);
}

/// Two mutations at once, of which both must be told.
pub fn two() {
    let _alone = alone();
    let (seeds, only) = seeds(60);
    let mut rates = Rates::new();
    for seed in seeds {
        let (p, text, mut all) = drawn(seed, "");
        all.sort_by_key(|m| rates.get(m.name).map_or(0, |r: &Rate| r.tried));
        let of = |names: &[&str]| all.iter().find(|m| names.contains(&m.name) && m.name.contains(&only));
        let (Some(data), Some(work)) = (of(&OF_DATA), of(&OF_WORK)) else { continue };
        let both = [data, work];
        if !both.iter().all(|m| attempt(&p, &[m]).is_some()) {
            continue;
        }
        let Some((v, said)) = attempt(&p, &both) else { continue };
        for m in both {
            let v = Verdict { coverage: tells_all(m, &said), ..v };
            let rate = rates.entry(m.name).or_default();
            rate.add(text.rows.len(), v, || report(seed, &text, &both, Some(v), &said));
        }
    }
    compare(&rates, &["cause", "line", "told"]);
}

fn report(seed: u64, text: &Text, mutations: &[&Mutation], v: Option<Verdict>, all: &[Option<Said>]) -> String {
    let mut out = format!("--- seed {seed}\n");
    for (i, row) in text.rows.iter().enumerate() {
        out += &format!("{i:3} {row}\n");
    }
    for m in mutations {
        out += &format!("mutation: {} ({:?})\nexpected: {:?} at rows {:?}\n", m.name, m.change, m.classes, m.lines);
        m.roots.iter().for_each(|r| out += &format!("  to be told: {:?} {:?}\n", r.rows, r.texts));
    }
    out += &format!("said ({v:?}):\n");
    for s in all {
        let Some(s) = s else {
            out += "  nothing\n";
            continue;
        };
        out += &format!("  {:?} at row {:?}, {} hidden: {}\n", s.class, s.row, s.hidden, s.fix);
        for d in &s.differences {
            let rows = [d.was_at, d.now_at].map(|at| at.and_then(row_of));
            out += &format!("    {}: {} -> {} {rows:?}\n", d.what, d.was, d.now);
        }
    }
    out
}

/// Prints the rates; fails where one is below the goal.
fn compare(rates: &Rates, columns: &[&str; 3]) {
    let [a, b, c] = columns;
    println!("{:<26} {:>6} {:>6} {a:>7} {b:>7} {c:>8}", "mutation", "tried", "silent");
    let (mut fallen, mut sum) = (String::new(), Rate::default());
    for (name, r) in rates {
        let [x, y, z] = [0, 1, 2].map(|i| r.of(i));
        println!("{name:<26} {:>6} {:>6} {x:>6.1}% {y:>6.1}% {z:>7.1}%", r.tried, r.silent);
        sum.tried += r.tried;
        (0..3).for_each(|i| sum.right[i] += r.right[i]);
        let below = (0..3).find(|&i| r.tried > 0 && r.of(i) < GOAL);
        if let (Some(i), Some(report)) = (below, r.shortest()) {
            fallen += &format!("{name}: {} is {:.1} %, below {GOAL} %\n{report}\n", columns[i], r.of(i));
        }
    }
    let [x, y, z] = [0, 1, 2].map(|i| sum.of(i));
    println!("{:<26} {:>6} {:>6} {x:>6.1}% {y:>6.1}% {z:>7.1}%", "all", sum.tried, "");
    match number("XLAZY_SHOW", 0) {
        0 => {}
        1 => rates.values().filter_map(Rate::shortest).for_each(|report| println!("{report}")),
        _ => rates.values().flat_map(|r| &r.wrong).for_each(|(_, report)| println!("{report}")),
    }
    // The goal is that of any seeds; of few programs of other ones a single one that is wrong is below it.
    let others = ["XLAZY_SEED", "XLAZY_ROUNDS"].iter().any(|name| std::env::var_os(name).is_some());
    assert!(fallen.is_empty() || others, "{fallen}");
}
