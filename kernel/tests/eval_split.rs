//! However a program is split into cells, the cells' output is the program's: cut at random places, each program is run
//! cell by cell, and compiled as a whole by rustc.
mod eval_support;

use eval_support::{engine, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use xlazy_kernel::engine::{Engine, Reply};

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
        for round in 0..4 {
            engine.restart().expect("a new session");
            let (mut out, mut cells) = (String::new(), vec![String::new()]);
            for part in *parts {
                // From one cell for everything to one for every statement.
                if numbers.u64(..4) < round {
                    cells.push(String::new());
                }
                let cell = cells.last_mut().expect("there is one");
                cell.push_str(part);
                cell.push('\n');
            }
            for (i, cell) in cells.iter().enumerate() {
                let (text, reply) = run(&engine, i as u64 + 1, cell);
                assert_eq!(reply, Reply::Ok, "program {p}, round {round}, of {cells:#?}:\n{cell}");
                out.push_str(&text);
            }
            assert_eq!(out, wanted, "program {p}, round {round}: {cells:#?}");
        }
    }
}
