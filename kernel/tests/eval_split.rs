//! However a program is split into cells, the cells' output is the program's: cut at random places, each program is run
//! cell by cell, and compiled as a whole by rustc.
mod eval_support;

use eval_support::{engine, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use xlazy_kernel::engine::{Engine, Reply};
use xlazy_kernel::eval::RustEngine;

/// Statements and items that may stand in `main`; a cell boundary may be between any two.
const PROGRAMS: &[&[&str]] = &[
    &[
        "use std::collections::BTreeMap;",
        "#[derive(Debug, Clone, PartialEq)] struct Point { x: i32, y: i32 }",
        "impl Point { fn sum(&self) -> i32 { self.x + self.y } }",
        "let mut points = vec![Point { x: 1, y: 2 }];",
        "points.push(Point { x: 3, ..points[0].clone() });",
        "fn total(points: &[Point]) -> i32 { points.iter().map(Point::sum).sum() }",
        "println!(\"{} {:?}\", total(&points), points);",
        "let mut by_x: BTreeMap<i32, Vec<Point>> = BTreeMap::new();",
        "for p in &points { by_x.entry(p.x).or_default().push(p.clone()); }",
        "println!(\"{by_x:?}\");",
        "trait Scaled { fn scaled(&self, by: i32) -> Self; }",
        "impl Scaled for Point { fn scaled(&self, by: i32) -> Point { Point { x: self.x * by, y: self.y * by } } }",
        "let points: Vec<Point> = points.into_iter().map(|p| p.scaled(10)).collect();",
        "println!(\"{}\", total(&points));",
        "let (first, rest) = (points[0].clone(), points.len());",
        "println!(\"{first:?} {rest} {}\", first == by_x[&1][0].scaled(10));",
    ],
    &[
        "use std::sync::{Arc, Mutex, mpsc};",
        "const N: u64 = 5;",
        "static SEEN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);",
        "macro_rules! twice { ($e:expr) => {{ let a = $e; a + a }}; }",
        "let shared = Arc::new(Mutex::new(Vec::<u64>::new()));",
        "let (tx, rx) = mpsc::channel::<u64>();",
        "let worker = { let shared = shared.clone(); std::thread::spawn(move || { for n in rx { shared.lock().unwrap().push(twice!(n)); } }) };",
        "for n in 0..N { tx.send(n).unwrap(); SEEN.fetch_add(n, std::sync::atomic::Ordering::SeqCst); }",
        "drop(tx);",
        "worker.join().unwrap();",
        "println!(\"{:?} {:?}\", shared.lock().unwrap(), SEEN);",
        "let add: Box<dyn Fn(u64) -> u64> = Box::new(move |x| x + N);",
        "let words: Vec<String> = \"one two three\".split(' ').map(str::to_owned).collect();",
        "let lengths: Vec<u64> = words.iter().map(|w| add(w.len() as u64)).collect();",
        "println!(\"{lengths:?} {}\", words.join(\"-\"));",
        "let parsed: u64 = \"41\".parse()?;",
        "println!(\"{}\", twice!(parsed) + lengths[0]);",
    ],
    &[
        "#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)] enum Op { Push(i64), Add, Mul }",
        "use std::fmt;",
        "mod machine { #[derive(Debug, Default)] pub struct Stack(pub Vec<i64>); impl Stack { pub fn pop(&mut self) -> i64 { self.0.pop().unwrap_or(0) } } }",
        "use machine::Stack;",
        "fn step(s: &mut Stack, op: Op) { match op { Op::Push(n) => s.0.push(n), Op::Add => { let n = s.pop() + s.pop(); s.0.push(n) } Op::Mul => { let n = s.pop() * s.pop(); s.0.push(n) } } }",
        "impl fmt::Display for Op { fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { write!(f, \"<{self:?}>\") } }",
        "let program = [Op::Push(2), Op::Push(3), Op::Add, Op::Push(4), Op::Mul];",
        "let mut stack = Stack::default();",
        "for op in program { step(&mut stack, op); print!(\"{op} \"); }",
        "println!(\"{}\", stack.pop());",
        "let mut n = 0;",
        "let mut counter = move || { n += 1; n };",
        "let a = counter();",
        "println!(\"{} {}\", a, counter());",
        "fn generic<T: Into<f64>>(x: T) -> f64 { x.into() * 2.0 }",
        "let mut kinds: Vec<Op> = program.to_vec(); kinds.sort(); kinds.dedup();",
        "println!(\"{kinds:?} {} {}\", generic(1i32), generic(2.5f32));",
    ],
];

fn whole(parts: &[&str], name: &str) -> String {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, exe) = (dir.join(format!("{name}.rs")), dir.join(name));
    let body = parts.join("\n");
    let text =
        format!("#![allow(warnings)]\nfn main() -> Result<(), Box<dyn std::error::Error>> {{\n{body}\nOk(())\n}}\n");
    std::fs::write(&source, text).expect("a source file");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(rustc).args(["--edition=2024", "-o"]).arg(&exe).arg(Path::new(&source)).status();
    assert!(built.is_ok_and(|s| s.success()), "{name} is no program:\n{body}");
    String::from_utf8(Command::new(exe).output().expect("it runs").stdout).expect("text")
}

#[test]
fn a_program_in_pieces_does_what_it_does_as_a_whole() {
    let engine = engine();
    let mut numbers = fastrand::Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    for (p, parts) in PROGRAMS.iter().enumerate() {
        let wanted = whole(parts, &format!("whole_{p}"));
        assert!(wanted.lines().count() >= 3, "{wanted}");
        for apart in [4, 1, 2, 3] {
            let cells = cut(parts, apart, &mut numbers);
            assert_eq!(output(&engine, &cells), (wanted.clone(), Reply::Ok), "program {p}: {cells:#?}");
        }
    }
}

/// A program's parts, cut before each of them at odds of `apart` in four.
fn cut(parts: &[&str], apart: u64, numbers: &mut fastrand::Rng) -> Vec<String> {
    let mut cells = vec![String::new()];
    for part in parts {
        if numbers.u64(..4) < apart {
            cells.push(String::new());
        }
        let cell = cells.last_mut().expect("there is one");
        cell.push_str(part);
        cell.push('\n');
    }
    cells
}

/// Runs them in a new session, as far as they are taken: what they print, and what the last one that ran came to.
fn output(engine: &RustEngine, cells: &[String]) -> (String, Reply) {
    engine.restart().expect("a new session");
    let mut out = String::new();
    for (i, cell) in cells.iter().enumerate() {
        let (text, reply) = run(engine, i as u64 + 1, cell);
        // What ends with its cell is named there.
        let told = |line: &&str| !line.starts_with("note: `");
        out.extend(text.split_inclusive('\n').filter(told));
        if reply != Reply::Ok {
            return (out, reply);
        }
    }
    (out, Reply::Ok)
}

/// A program of random statements that borrow, change and mention. It is good Rust by its making: what borrows is used until what it
/// borrows is mentioned in its way.
struct Borrowing {
    rng: fastrand::Rng,
    parts: Vec<String>,
    names: usize,
    /// What borrows from each owner and may still be used: its name, and how it is used.
    live: [Vec<(String, View)>; 3],
}

#[derive(Clone, Copy, PartialEq)]
enum View {
    /// `&mut i64`
    Number,
    /// `&mut [i64]`
    Numbers,
    /// A closure that pushes.
    Adds,
    /// `&i64`
    Looks,
    /// `Vec<&i64>`
    Many,
    /// `Option<&i64>`
    Maybe,
    /// An iterator of `&i64` that is walked along.
    Walks,
    /// `Vec<&i64>` that is changed itself.
    Grows,
    /// An iterator of `&mut i64`.
    Changes,
    /// `Option<&mut i64>`
    Part,
    /// `Option<&i64>` that is assigned to.
    Best,
}

/// A vector, what has no `Clone`, and a map.
const OWNERS: [&str; 3] = ["list.", "bag.items.", "map."];

impl Borrowing {
    fn program(seed: u64, statements: usize) -> Vec<String> {
        let parts = [
            "use std::collections::BTreeMap;",
            "#[derive(Debug)] struct Bag { items: Vec<i64> }",
            "impl Bag { fn largest(&mut self) -> &mut i64 { self.items.iter_mut().max().unwrap() } fn first(&self) -> &i64 { &self.items[0] } }",
            "let mut list: Vec<i64> = vec![3, 1, 2, 7];",
            "let mut bag = Bag { items: vec![5, 4, 6, 2] };",
            "let mut map: BTreeMap<i64, i64> = (0..4).map(|k| (k, k * k)).collect();",
        ];
        let parts = parts.map(str::to_owned).to_vec();
        let mut made = Borrowing { rng: fastrand::Rng::with_seed(seed), parts, names: 0, live: Default::default() };
        for _ in 0..statements {
            made.step();
        }
        for owner in ["list", "bag", "map"] {
            made.parts.push(format!("println!(\"{owner} {{:?}}\", {owner});"));
        }
        made.parts
    }

    fn step(&mut self) {
        let owner = self.rng.usize(..3);
        let uses = !self.live[owner].is_empty() && self.rng.u8(..3) > 0;
        if uses {
            return self.used(owner);
        }
        match self.rng.u8(..4) {
            0 => self.mentioned(owner),
            1 | 2 => self.borrowed(owner),
            _ => self.looked_at(owner),
        }
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn used(&mut self, owner: usize) {
        let (at, n) = (self.rng.usize(..self.live[owner].len()), self.rng.i64(1..9));
        let (name, view) = self.live[owner][at].clone();
        let text = match view {
            View::Number if self.rng.bool() => format!("println!(\"{{}}\", {name});"),
            View::Number => format!("*{name} += {n};"),
            View::Numbers if self.rng.u8(..3) == 0 => {
                // A part of it: what borrows it itself is lost when it is used again, and so it is not.
                let part = self.name();
                self.live[owner][at] = (part.clone(), View::Number);
                format!("let {part} = &mut {name}[0];")
            }
            View::Numbers => format!("{name}[0] += {n}; println!(\"{{}} {{:?}}\", {name}.len(), {name});"),
            View::Adds => format!("println!(\"{{}}\", {name}({n}));"),
            View::Looks => format!("println!(\"{{}}\", {name} + {n});"),
            View::Maybe => format!("println!(\"{{:?}}\", {name}.map(|x| x + {n}));"),
            View::Many if self.rng.u8(..3) == 0 => {
                self.live[owner].remove(at);
                format!("for x in {name} {{ print!(\"{{x}} \"); }}")
            }
            View::Many if self.rng.bool() => {
                let first = self.name();
                self.live[owner].push((first.clone(), View::Maybe));
                format!("let {first} = {name}.first().copied();")
            }
            View::Many => format!("println!(\"{{}} {{:?}}\", {name}.len(), {name});"),
            View::Walks if self.rng.bool() => {
                let next = self.name();
                self.live[owner].push((next.clone(), View::Maybe));
                format!("let {next} = {name}.next();")
            }
            View::Walks => format!("println!(\"{{:?}}\", {name}.next());"),
            View::Grows if self.rng.u8(..3) == 0 => {
                let values = if owner == 2 { "map.values()".to_owned() } else { format!("{}iter()", OWNERS[owner]) };
                format!("{name}.extend({values}.take({n}));")
            }
            View::Grows if self.rng.bool() => {
                let last = self.name();
                self.live[owner].push((last.clone(), View::Maybe));
                format!("let {last} = {name}.pop();")
            }
            View::Grows => format!("{name}.reverse(); println!(\"{{:?}}\", {name});"),
            View::Changes if self.rng.bool() => {
                let next = self.name();
                self.live[owner].push((next.clone(), View::Part));
                format!("let {next} = {name}.next();")
            }
            View::Changes => format!("if let Some(x) = {name}.next() {{ *x += {n}; println!(\"{{x}}\"); }}"),
            View::Best if self.rng.bool() => {
                let values = if owner == 2 { "map.values()".to_owned() } else { format!("{}iter()", OWNERS[owner]) };
                format!("for x in {values} {{ if {name}.is_none_or(|best| *best < *x - {n}) {{ {name} = Some(x); }} }}")
            }
            View::Best => format!("println!(\"{{:?}}\", {name});"),
            View::Part => {
                self.live[owner].remove(at);
                format!("if let Some(x) = {name} {{ *x += {n}; println!(\"{{x}}\"); }}")
            }
        };
        self.parts.push(text);
    }

    /// Changes an owner, which ends all that borrows it.
    fn mentioned(&mut self, owner: usize) {
        self.live[owner].clear();
        let n = self.rng.i64(1..9);
        self.parts.push(match owner {
            2 => format!("map.insert({n}, {n}); println!(\"{{}}\", map.len());"),
            _ => format!("{}push({n}); println!(\"{{:?}}\", {}last());", OWNERS[owner], OWNERS[owner]),
        });
    }

    fn borrowed(&mut self, owner: usize) {
        let (name, n) = (self.name(), self.rng.usize(..3));
        let of = OWNERS[owner];
        let (text, view) = match (owner, self.rng.u8(..6)) {
            (2, 5) => (format!("let mut {name} = map.values_mut();"), View::Changes),
            (_, 5) => (format!("let mut {name} = {of}iter_mut();"), View::Changes),
            (2, 0 | 1) => (format!("let {name} = map.entry({n}).or_default();"), View::Number),
            (2, 2) => (format!("let {name} = map.values_mut().max().unwrap();"), View::Number),
            (2, _) => (format!("let mut {name} = |x: i64| {{ map.insert(x, x); map.len() }};"), View::Adds),
            (1, 0) => (format!("let {name} = bag.largest();"), View::Number),
            (_, 0 | 1) => (format!("let {name} = &mut {}[{n}];", of.trim_end_matches('.')), View::Number),
            (_, 2) => (format!("let {name} = &mut {}[{n}..];", of.trim_end_matches('.')), View::Numbers),
            (_, 3) => {
                let rest = self.name();
                let text = format!("let ({name}, {rest}) = {of}split_at_mut({});", n + 1);
                self.parts.push(text);
                self.live[owner] = vec![(name, View::Numbers), (rest, View::Numbers)];
                return;
            }
            _ => (format!("let mut {name} = |x: i64| {{ {of}push(x); {of}len() }};"), View::Adds),
        };
        self.parts.push(text);
        self.live[owner] = vec![(name, view)];
    }

    fn looked_at(&mut self, owner: usize) {
        use View::{Best, Grows, Looks, Many, Maybe, Walks};
        self.live[owner].retain(|(_, view)| matches!(view, Looks | Many | Maybe | Walks | Grows | Best));
        let (name, n, of) = (self.name(), self.rng.i64(1..6), OWNERS[owner]);
        let values = if owner == 2 { "map.values()".to_owned() } else { format!("{of}iter()") };
        let (text, view) = match (owner, self.rng.u8(..8)) {
            // What is there first, and filled later.
            (_, 6) => (format!("let mut {name}: Vec<&i64> = Vec::new();"), View::Grows),
            (_, 7) => (format!("let mut {name}: Option<&i64> = None;"), View::Best),
            (_, 4) => (format!("let mut {name} = {values};"), View::Walks),
            (_, 5) => (format!("let mut {name}: Vec<&i64> = {values}.collect();"), View::Grows),
            (1, 0) => (format!("let {name} = bag.first();"), View::Looks),
            (_, 0) => (format!("let {name} = {values}.max().unwrap();"), View::Looks),
            (_, 1) => (format!("let {name}: Vec<&i64> = {values}.filter(|x| **x > {n}).collect();"), View::Many),
            (_, 2) => (format!("let {name} = {values}.find(|x| **x > {n});"), View::Maybe),
            _ => return self.parts.push(format!("println!(\"{{:?}}\", {values}.sum::<i64>());")),
        };
        self.parts.push(text);
        self.live[owner].push((name, view));
    }
}

/// Where several that borrow begin and end within one cell, a later one may be refused one of them, by its name; then nothing else was
/// printed so far than the program prints. `XLAZY_BORROWING` says how many programs.
#[test]
fn what_borrows_ends_where_rust_ends_it() {
    let engine = engine();
    let programs: u64 = std::env::var("XLAZY_BORROWING").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let mut numbers = fastrand::Rng::with_seed(0x2545_f491_4f6c_dd1d);
    for seed in 0..programs {
        let parts = Borrowing::program(seed, 24);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let wanted = whole(&parts, &format!("borrowing_{seed}"));
        let each = cut(&parts, 4, &mut numbers);
        assert_eq!(output(&engine, &each), (wanted.clone(), Reply::Ok), "program {seed}: {each:#?}");
        let cells = cut(&parts, numbers.u64(1..4), &mut numbers);
        match output(&engine, &cells) {
            (out, Reply::Ok) => assert_eq!(out, wanted, "program {seed}: {cells:#?}"),
            (out, Reply::Error(why)) => {
                let named = why.message.contains("borrowed") && why.message.contains("ended with cell");
                assert!(named && wanted.starts_with(&out), "program {seed}: {why:?} {out} of {cells:#?}");
                println!("program {seed}: {}", why.message);
            }
            (_, other) => panic!("program {seed}: {other:?} of {cells:#?}"),
        }
    }
}
