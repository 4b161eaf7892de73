//! What literate cells cannot show: interrupts, a session that dies, input, long output, restarts.
mod eval_support;

use eval_support::{engine, plain, run, transcript};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use xlazy_kernel::engine::{Engine, Event, Failure, Reply, Request};
use xlazy_kernel::eval::RustEngine;

fn ok(engine: &RustEngine, code: &str) -> String {
    let (out, reply) = run(engine, 1, code);
    assert_eq!(reply, Reply::Ok, "{code}\n{out}");
    out
}

fn failure(reply: Reply) -> Failure {
    match reply {
        Reply::Error(failure) => failure,
        other => panic!("an error was wanted, not {other:?}"),
    }
}

/// Runs a cell that prints `go` and interrupts it then; how it ended, and how long after the interrupt.
fn interrupted(engine: &RustEngine, code: &str) -> (Reply, Duration) {
    interrupted_times(engine, code, &[Duration::ZERO])
}

fn interrupted_times(engine: &RustEngine, code: &str, after: &[Duration]) -> (Reply, Duration) {
    let (said, hear): (_, Receiver<()>) = channel();
    std::thread::scope(|scope| {
        let runner = scope.spawn(move || {
            let request = Request { code: code.into(), cell: 2, ..Request::default() };
            let reply = engine.execute(&request, &mut |event| {
                if let Event::Stream { text, .. } | Event::Told(text) = event
                    && text.contains("go")
                {
                    let _ = said.send(());
                }
            });
            (reply, Instant::now())
        });
        hear.recv_timeout(Duration::from_secs(20)).expect("the cell begins");
        let begin = Instant::now();
        for wait in after {
            // The time between two interrupts is what is tested here, not a wait for something to happen.
            std::thread::park_timeout(*wait);
            engine.interrupt();
        }
        let (reply, end) = runner.join().expect("the cell ends");
        (reply, end - begin)
    })
}

#[test]
fn an_interrupt_ends_loops_sleeps_and_recursion_and_keeps_the_variables() {
    let engine = engine();
    ok(
        &engine,
        "let mut kept = vec![1]; let mut n = 0u64; fn deep(n: u64) -> u64 { if n == u64::MAX { n } else { deep(n) + 1 } }",
    );
    let cells = [
        "println!(\"go\"); kept.push(2); loop { n += 1; }",
        "println!(\"go\"); while n < u64::MAX { n = n.wrapping_add(1) % 1000; }",
        "println!(\"go\"); (0u64..).map(|x| x % 7).filter(|x| *x > 9).next()",
        "println!(\"go\"); std::thread::sleep(std::time::Duration::from_secs(60));",
        "println!(\"go\"); sleep(std::time::Duration::from_secs(60));",
        "fn calls(n: u64) -> u64 { if n == 0 { 0 } else { calls(n - 1) } }\nprintln!(\"go\"); for _ in 0..u64::MAX { calls(50); }",
        "println!(\"go\"); std::thread::spawn(|| loop { n_noise(); }).join().unwrap();\nfn n_noise() {}",
    ];
    for code in cells {
        let (reply, took) = interrupted(&engine, code);
        assert_eq!(reply, Reply::Interrupted, "{code}");
        println!("{took:?} for {code}");
        // Milliseconds on a quiet machine; what is not ended goes on for a minute and more.
        assert!(took < Duration::from_secs(20), "{code} took {took:?}");
    }
    assert_eq!(ok(&engine, "kept"), "=> [1, 2]\n");
}

#[test]
fn an_interrupt_ends_cargo_and_changes_nothing() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("gopher");
    std::fs::create_dir_all(dir.join("src")).unwrap();
    std::fs::write(dir.join("Cargo.toml"), "[package]\nname = \"gopher\"\nversion = \"0.1.0\"\n[workspace]\n").unwrap();
    std::fs::write(dir.join("src/lib.rs"), "").unwrap();
    // The build script never ends; the name's first letters say that the build has begun.
    std::fs::write(dir.join("build.rs"), "fn main() { loop { std::thread::park() } }").unwrap();
    let engine = engine();
    ok(&engine, "let kept = 1;");
    let (reply, took) = interrupted(&engine, &format!(":dep gopher = {{ path = {dir:?} }}"));
    assert_eq!(reply, Reply::Interrupted);
    println!("cargo ended after {took:?}");
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert_eq!(ok(&engine, "kept"), "=> 1\n");
    assert_eq!(ok(&engine, ":show_deps"), "[display] no dependencies\n");
}

#[test]
fn an_interrupt_while_idle_does_nothing() {
    let engine = engine();
    engine.interrupt();
    assert_eq!(ok(&engine, "1 + 1"), "=> 2\n");
}

#[test]
fn insisting_on_an_interrupt_ends_the_session_and_says_what_is_lost() {
    let engine = engine();
    ok(&engine, "let precious = vec![1];");
    // A lock of C, which is held already.
    let code = "unsafe extern \"C\" { fn pthread_mutex_lock(mutex: *mut u64) -> i32; }\n\
        println!(\"go\"); let mut m = [0u64; 5]; \
        unsafe { pthread_mutex_lock(m.as_mut_ptr()); pthread_mutex_lock(m.as_mut_ptr()); }";
    let (reply, _) = interrupted_times(&engine, code, &[Duration::ZERO, Duration::from_millis(300)]);
    let failure = failure(reply);
    assert_eq!(failure.name, "SessionRestarted");
    assert!(failure.message.contains("precious"), "{}", failure.message);
    assert_eq!(ok(&engine, "2 + 2"), "=> 4\n");
}

#[test]
fn a_session_that_dies_is_replaced_and_the_message_says_how_it_died() {
    let engine = engine();
    ok(&engine, "fn endless(n: u64) -> u64 { endless(n + 1) + n } let a = 1; let b = vec![2];");
    let cells = [
        ("std::process::exit(3)", "exited with code 3"),
        ("std::process::abort()", "SIGABRT"),
        ("unsafe { *std::ptr::null_mut::<i32>().wrapping_add(1) = 1; }", "SIGSEGV"),
        ("endless(0)", "stack overflow"),
    ];
    for (code, how) in cells {
        ok(&engine, "let a = 1; let b = vec![2];");
        let failure = failure(run(&engine, 2, code).1);
        assert_eq!(failure.name, "SessionDied", "{code}");
        assert!(failure.message.contains(how), "{code}: {}", failure.message);
        assert!(failure.message.contains("a, b"), "{}", failure.message);
    }
    let lost = failure(run(&engine, 3, "a").1);
    assert!(plain(&lost).contains("was lost when its session ended"), "{}", plain(&lost));
}

#[test]
fn a_session_killed_between_cells_or_in_one_is_replaced_and_recovered() {
    let engine = engine();
    ok(&engine, "let a = vec![1];");
    ok(&engine, "let b: Vec<i32> = a.iter().map(|x| x + 1).collect();");
    let pid: i32 = ok(&engine, "std::process::id()").trim_start_matches("=> ").trim().parse().expect("a number");
    kill(pid);
    // A cell that comes before the death is noticed dies of it, too; none runs in a session without its variables.
    let died = failure(run(&engine, 4, "println!(\"never\")").1);
    assert_eq!(died.name, "SessionDied");
    assert!(died.message.contains("SIGKILL") && died.message.contains("a, b"), "{}", died.message);
    let (out, reply) = run(&engine, 5, "%recover");
    assert_eq!(reply, Reply::Ok, "{out}");
    assert!(out.ends_with("Recovered a, b by running cell 1 again.\n"), "{out}");
    assert_eq!(ok(&engine, "(a, b)"), "=> ([1], [2])\n");
    let code = "let c = 1;\nlet me = std::process::id().to_string();\n\
                std::process::Command::new(\"kill\").args([\"-9\", &me]).status()?;\nloop {}";
    let died = failure(run(&engine, 7, code).1);
    assert!(died.message.contains("while cell 7 was at line"), "{}", died.message);
}

#[test]
fn what_was_interrupted_cannot_be_recovered_and_says_so() {
    let engine = engine();
    ok(&engine, "let mut n = 0u64; let kept = 1;");
    assert_eq!(interrupted(&engine, "println!(\"go\"); loop { n += 1; }").0, Reply::Interrupted);
    assert_eq!(failure(run(&engine, 3, "std::process::abort()").1).name, "SessionDied");
    let (_, reply) = run(&engine, 4, "%recover");
    let stopped = failure(reply);
    assert_eq!(stopped.name, "RecoverStopped");
    assert!(stopped.message.contains("cell 2 behaves otherwise than before: it was interrupted"), "{stopped:?}");
    assert_eq!(ok(&engine, "kept"), "=> 1\n");
}

fn kill(pid: i32) {
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.expect("kill").success());
}

#[test]
fn a_million_lines_arrive_in_order_and_are_not_kept() {
    let engine = engine();
    let mut lines = 0u64;
    let mut last = String::new();
    let request =
        Request { code: "for i in 0..1_000_000 { println!(\"{i}\"); }".into(), cell: 1, ..Request::default() };
    let reply = engine.execute(&request, &mut |event| {
        if let Event::Stream { text, .. } = event {
            lines += text.matches('\n').count() as u64;
            last = text.lines().last().unwrap_or("").to_owned();
        }
    });
    assert_eq!((reply, lines, &*last), (Reply::Ok, 1_000_000, "999999"));
}

#[test]
fn a_cell_may_ask_and_is_told_when_nobody_can_answer() {
    let engine = engine();
    assert_eq!(ok(&engine, "input(\"? \")?.len()"), "=> 5\n");
    let request = Request { code: "input(\"? \")?".into(), cell: 1, ..Request::default() };
    let reply = engine.execute(&request, &mut |_| {});
    assert!(failure(reply).message.contains("no way to ask"));
}

#[test]
fn expressions_are_evaluated_for_the_front_end() {
    let engine = engine();
    ok(&engine, "let x = 20;");
    assert_eq!(engine.evaluate("x * 2 + 2").map(|b| b.plain().to_owned()), Ok("42".into()));
    assert_eq!(engine.evaluate("nope").unwrap_err().name, "CompileError");
}

#[test]
fn names_in_scope_are_completed_and_inspected() {
    let engine = engine();
    ok(&engine, "let learning_rate = 0.5;\n/// Doubles.\nfn double(x: f64) -> f64 { x * 2.0 }");
    let texts =
        |code: &str| -> Vec<String> { engine.complete(code, code.len()).matches.into_iter().map(|c| c.text).collect() };
    assert_eq!(texts("learn"), ["learning_rate"]);
    assert!(texts("dou").contains(&"double".to_owned()));
    let inspected = engine.inspect("double(learning_rate)", 8, 0).expect("a variable");
    assert_eq!(inspected.plain(), "learning_rate: f64 = 0.5\nfrom cell 1; a cell works on a copy");
    let inspected = engine.inspect("double(1.0)", 2, 0).expect("an item");
    assert!(inspected.plain().contains("fn double(x: f64) -> f64") && inspected.plain().contains("Doubles."));
}

#[test]
fn a_restart_forgets_everything() {
    let engine = engine();
    ok(&engine, "let x = 1; fn f() {}");
    engine.restart().expect("a new session");
    assert_eq!(failure(run(&engine, 1, "x").1).name, "CompileError");
    assert_eq!(failure(run(&engine, 1, "f()").1).name, "CompileError");
    assert_eq!(ok(&engine, "3"), "=> 3\n");
}

#[test]
fn a_compile_says_how_long_it_took() {
    let engine = engine();
    let mut seen = String::new();
    let request = Request { code: "fn f() -> i32 { 1 }\nf()".into(), cell: 1, ..Request::default() };
    let mut out = String::new();
    engine.execute(&request, &mut |event| match event {
        Event::Insight { kind, json } if kind == "rustc" => seen = json,
        other => transcript(other, &mut out),
    });
    assert_eq!(out, "=> 1\n");
    for key in ["\"cell\":1", "definitions_ms", "statements_ms", "\"compiles\":2"] {
        assert!(seen.contains(key), "{seen}");
    }
}

#[test]
fn the_standard_error_is_a_terminal_where_somebody_watches() {
    use xlazy_kernel::eval::install::Installation;
    eval_support::build_runtime();
    for shown in [true, false] {
        let install = Installation::find().unwrap_or_else(|f| panic!("{}", f.message));
        let install = Installation { shown, cell_cache: None, program_cache: None, ..install };
        let engine = RustEngine::start(install).unwrap_or_else(|f| panic!("{}", f.message));
        let code = "use std::io::IsTerminal; (std::io::stderr().is_terminal(), std::io::stdout().is_terminal())";
        assert_eq!(ok(&engine, code), format!("=> ({shown}, false)\n"));
        // Of others it says what they are.
        let code = "use std::io::IsTerminal; let f = std::fs::File::open(\"/dev/ptmx\").unwrap(); f.is_terminal()";
        assert_eq!(ok(&engine, code), "=> true\n");
    }
}
