//! Programs of real size, after users' reports, in tests/cells/real: what is said of each recompilation, scored by row, and
//! whether the fix holds. A file is one session of ```rust cells; the ```expect block after a cell says what must hold:
//!
//! `compiles: N` at most, or `any`; `class:`; `line:` a piece of a source line that must be named (`half line:` counts half);
//! `diff:` and `fix:` words of which one must be said, for each such row (`half fix:` counts half); `why: none` where nothing
//! may be explained, `any` where it does not matter; `false fix:` and `false cause:` what may not be said. `a || b` are
//! alternatives, `/…/` is a regular expression.
//!
//! The ```fixed blocks are the program with the fix applied literally, a session of its own: `fixed N` takes the place of
//! cell N, every cell of which nothing or `any` is expected runs before, and the one ```fixed block without a number is a round,
//! run four times with `$ROUND` counting from 0: from the second on it compiles nothing more. What xlazy itself says in code is
//! made as it is said (`eval_support::fixes`).
mod eval_support;

use eval_support::{cells_dir, engine, fixes, run_watched};
use regex::Regex;
use serde_json::Value;
use xlazy_kernel::engine::Reply;
use xlazy_kernel::eval::RustEngine;

/// Rows that fail as yet, by file: the number of the cell, and what of it. These lists only shrink.
const KNOWN: &[(&str, &[&str])] = &[];

macro_rules! files {
    ($($name:ident)*) => {
        const FILES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*
    };
}

files!(n01_kv_cache_generation n05_gan n09_stochastic_depth n11_multi_scale_images n13_ema_after_warmup
    n16_evaluation_in_accumulation
    p01_transformer_of_many_lengths p02_cumsum_over_lengths p03_serving_pictures_by_the_batch p04_losses_joined_by_cat
    p05_a_moving_window_in_place p06_looking_at_data p07_scheduled_sampling p08_unfreezing p09_average_every_third_step
    p10_evaluation_between_steps p11_the_norm_of_the_gradients_is_logged p12_a_short_last_batch_each_epoch
    p13_an_actor_with_a_delay p14_probing_before_fine_tuning p15_models_in_turn p16_rounds_in_rounds
    p17_what_is_left_over_of_the_micro_batches p18_accuracy_in_the_epoch p19_noise_in_steps p20_episodes_of_many_lengths
    p21_a_table_described p22_beam_search p23_terms_that_join_the_loss);

#[test]
fn every_file_is_run() {
    let folder = std::fs::read_dir(cells_dir().join("real")).expect("a folder of programs");
    let mut found: Vec<String> =
        folder.filter_map(|e| Some(e.ok()?.file_name().to_str()?.strip_suffix(".md")?.to_owned())).collect();
    found.sort();
    let mut listed = FILES.to_vec();
    listed.sort();
    assert_eq!(found, listed);
}

#[derive(Default)]
struct Cell {
    code: String,
    /// What is expected, each row with its name.
    expect: Vec<(String, String)>,
}

impl Cell {
    fn rows<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.expect.iter().filter(move |(n, _)| n == name).map(|(_, text)| text.as_str())
    }

    fn is(&self, name: &str, text: &str) -> bool {
        self.rows(name).any(|t| t == text)
    }
}

#[derive(Default)]
struct Program {
    cells: Vec<Cell>,
    /// Cells in place of others, by number from 1.
    fixed: Vec<(usize, String)>,
    round: Option<String>,
}

fn parse(text: &str) -> Program {
    let mut p = Program::default();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
        let body = body.join("\n") + "\n";
        match fence.split_once(' ').map_or((fence, ""), |(kind, rest)| (kind, rest)) {
            ("rust", _) => p.cells.push(Cell { code: body, expect: vec![] }),
            ("expect", _) => {
                let row = |l: &str| l.split_once(": ").map(|(n, t)| (n.to_owned(), t.to_owned()));
                let cell = p.cells.last_mut().expect("a cell before what is expected of it");
                cell.expect = body.lines().map(|l| row(l).unwrap_or_else(|| panic!("`{l}` is no row"))).collect();
            }
            ("fixed", "") => p.round = Some(body),
            ("fixed", number) => p.fixed.push((number.parse().expect("a cell's number"), body)),
            (other, _) => panic!("a block of `{other}`"),
        }
    }
    p
}

/// Runs a cell: what its programs were compiled for, as JSON.
fn run(engine: &RustEngine, cell: u64, code: &str) -> Vec<Value> {
    let (out, reply, compiled) = run_watched(engine, cell, code);
    assert!(matches!(reply, Reply::Ok), "cell {cell}:\n{code}\n{out}\n{reply:?}");
    compiled
}

/// Whether a text has one of the alternatives in it, whatever their case.
fn has(text: &str, wanted: &str) -> bool {
    let one = |w: &str| match w.strip_prefix('/').and_then(|w| w.strip_suffix('/')) {
        Some(pattern) => Regex::new(pattern).expect("a regular expression").is_match(text),
        None => text.to_lowercase().contains(&w.to_lowercase()),
    };
    wanted.split(" || ").any(|w| one(w.trim()))
}

/// What was said of one compilation.
struct Said {
    class: String,
    line: String,
    difference: String,
    fix: String,
    sentence: String,
}

fn said(compilation: &Value, cells: &[String]) -> Option<Said> {
    let why = compilation["why"].as_object()?;
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let at = &why["at"];
    let line = at["cell"]
        .as_u64()
        .and_then(|cell| cells.get(cell as usize - 1)?.lines().nth(at["line"].as_u64()? as usize - 1));
    let told = why["differences"].as_array().into_iter().flatten();
    let told = told.map(|d| [&d["what"], &d["was"], &d["now"]].map(text).join(" ")).collect::<Vec<_>>();
    Some(Said {
        class: text(&why["class"]),
        line: line.unwrap_or_default().trim().to_owned(),
        difference: told.join("\n"),
        fix: text(&why["fix"]),
        sentence: text(&compilation["sentence"]),
    })
}

/// How well something was said: 0, half or 1.
type Score = f64;

/// The rows of one cell with their scores.
fn score(cell: &Cell, compiled: &[Value], cells: &[String]) -> Vec<(&'static str, Score)> {
    let mut rows = Vec::new();
    let right = |b: bool| if b { 1.0 } else { 0.0 };
    if let Some(most) = cell.rows("compiles").next().and_then(|n| n.parse::<usize>().ok()) {
        rows.push(("compiles", right(compiled.len() <= most)));
    }
    let all: Vec<Said> = compiled.iter().filter_map(|c| said(c, cells)).collect();
    if cell.is("why", "none") {
        rows.push(("silent", right(all.is_empty())));
    }
    if compiled.is_empty() || cell.rows("class").next().is_none() {
        return rows;
    }
    let best = |f: &dyn Fn(&Said) -> Score| all.iter().map(f).fold(0.0, f64::max);
    let classes: Vec<&str> = cell.rows("class").flat_map(|r| r.split(" || ")).map(str::trim).collect();
    rows.push((
        "cause",
        best(&|s| right(classes.contains(&s.class.as_str()) && !cell.rows("false cause").any(|w| has(&s.sentence, w)))),
    ));
    let line = |s: &Said| match cell.rows("line").any(|l| s.line.contains(l)) {
        true => 1.0,
        false => right(cell.rows("half line").any(|l| s.line.contains(l))) / 2.0,
    };
    rows.push(("line", best(&line)));
    rows.push((
        "difference",
        best(&|s| right(cell.rows("diff").all(|w| has(&s.difference, w) || has(&s.sentence, w)))),
    ));
    let fix = |s: &Said| match cell.rows("fix").all(|w| has(&s.fix, w)) {
        _ if cell.rows("false fix").any(|w| has(&s.fix, w)) => 0.0,
        true => 1.0,
        false => right(cell.rows("half fix").any(|w| has(&s.fix, w))) / 2.0,
    };
    rows.push(("fix", best(&fix)));
    rows
}

fn check(name: &str) {
    let path = cells_dir().join("real").join(format!("{name}.md"));
    let p = parse(&std::fs::read_to_string(path).expect("a program"));
    let known = KNOWN.iter().find(|k| k.0 == name).map_or(&[][..], |k| k.1);
    let (mut wrong, mut score_of_all, mut rows_of_all) = (String::new(), 0.0, 0);
    let texts: Vec<String> = p.cells.iter().map(|c| c.code.clone()).collect();
    let session = engine();
    let mut all = Vec::new();
    for (i, cell) in p.cells.iter().enumerate() {
        let compiled = run(&session, i as u64 + 1, &cell.code);
        all.push(compiled.clone());
        for (row, score) in score(cell, &compiled, &texts) {
            let id = format!("{} {row}", i + 1);
            score_of_all += score;
            rows_of_all += 1;
            println!("{name} {id}: {score}");
            if score < 1.0 {
                let sentences: Vec<&str> = compiled.iter().filter_map(|c| c["sentence"].as_str()).collect();
                let what = format!("{name}, cell {id} ({score}):\n{}{}\n", cell.code, sentences.join("\n"));
                match known.contains(&id.as_str()) {
                    true => println!("known: {what}"),
                    false => wrong += &what,
                }
            } else if known.contains(&id.as_str()) {
                println!("{id} is right by now: take it off the list");
            }
        }
    }
    println!("{name}: {score_of_all} of {rows_of_all}");
    drop(session);
    wrong += &fixes::check(&texts, &all);
    wrong += &fixed(&p, name);
    assert!(wrong.is_empty(), "{wrong}");
}

/// Runs the program with its fix; what is wrong with it.
fn fixed(p: &Program, name: &str) -> String {
    let Some(round) = &p.round else { return String::new() };
    let session = engine();
    let mut wrong = String::new();
    let setup = p
        .cells
        .iter()
        .enumerate()
        .filter(|(_, c)| c.is("compiles", "any") && c.is("why", "any") || c.expect.is_empty());
    let mut number = 0;
    for (i, cell) in setup {
        let code = p.fixed.iter().find(|f| f.0 == i + 1).map_or(&cell.code, |f| &f.1);
        number += 1;
        run(&session, number, code);
    }
    let round = |i: usize| round.replace("$ROUND", &i.to_string());
    run(&session, number + 1, &round(0));
    let later: Vec<String> = (1..4).map(|i| format!("{{\n{}}}\n", round(i))).collect();
    let compiled = run(&session, number + 2, &later.concat());
    if !compiled.is_empty() {
        let sentences: Vec<&str> = compiled.iter().filter_map(|c| c["sentence"].as_str()).collect();
        wrong += &format!("{name}: with the fix, a later round compiled:\n{}\n", sentences.join("\n"));
    }
    wrong
}
