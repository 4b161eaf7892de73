//! Runs the cells given as arguments and shows what they do; without arguments, measures how long small cells take.
use std::time::Instant;
use xlazy_kernel::engine::{Engine, Event, Reply, Request};
use xlazy_kernel::eval::{RustEngine, install::Installation};

/// `{i}` is another number in every round, so that the text is always new.
const CELLS: &[&str] = &[
    "let a{i} = {i};",
    "a + {i}",
    "let mut s = {i}u64; for i in 0..10u64 { s += i * 2; } s",
    "println!(\"hello {} {}\", a, {i});",
    "words.iter().map(|w| w.len() + {i}).collect::<Vec<_>>()",
];
const ROUNDS: usize = 15;

fn main() {
    let begin = Instant::now();
    let engine = Installation::find().and_then(RustEngine::start).unwrap_or_else(|f| panic!("{}", f.message));
    println!("started in {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    let cells: Vec<String> = std::env::args().skip(1).collect();
    for (i, code) in cells.iter().enumerate() {
        println!("--- cell {}\n{code}\n---", i + 1);
        run(&engine, code, i as u64 + 1, true);
    }
    if cells.is_empty() {
        run(&engine, "let a = 1; let words = vec![String::from(\"one\"), String::from(\"three\")];", 1, true);
        measure(&engine);
    }
}

fn measure(engine: &RustEngine) {
    for code in CELLS {
        let mut times: Vec<f64> =
            (0..ROUNDS).map(|i| run(engine, &code.replace("{i}", &i.to_string()), 2, false)).collect();
        times.sort_by(f64::total_cmp);
        println!(
            "{code:<60} median {:6.1} ms, best {:6.1}, worst {:6.1}",
            times[ROUNDS / 2],
            times[0],
            times[ROUNDS - 1]
        );
    }
}

fn run(engine: &RustEngine, code: &str, cell: u64, show: bool) -> f64 {
    let request = Request { code: code.into(), store_history: true, cell, ..Request::default() };
    // The next cell's compiler has its time to start while a person types.
    std::thread::sleep(std::time::Duration::from_millis(150));
    let begin = Instant::now();
    let reply = engine.execute(&request, &mut |event| {
        if show {
            match event {
                Event::Stream { text, .. } => print!("{text}"),
                Event::Result(bundle) => println!("=> {}", bundle.plain()),
                other => println!("{other:?}"),
            }
        }
    });
    let ms = begin.elapsed().as_secs_f64() * 1e3;
    if show || reply != Reply::Ok {
        match &reply {
            Reply::Error(failure) => println!("{}", failure.traceback.join("\n")),
            other => println!("{other:?} after {ms:.1} ms"),
        }
    }
    ms
}
