//! Cells that were compiled before need no rustc, and behave as if they had been compiled.
mod eval_support;

use eval_support::{plain, run, start, transcript};
use std::path::PathBuf;
use xlazy_kernel::engine::{Engine, Event, Reply, Request};
use xlazy_kernel::eval::RustEngine;

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("xlazy-cells-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

/// What a cell did, and whether rustc worked for it.
fn cell(engine: &RustEngine, number: u64, code: &str) -> (String, bool) {
    let request = Request { code: code.into(), cell: number, ..Request::default() };
    let (mut out, mut compiled) = (String::new(), false);
    let reply = engine.execute(&request, &mut |event| match &event {
        Event::Insight { kind, json } if kind == "rustc" => compiled = !json.contains("\"compiles\":0"),
        _ => transcript(event, &mut out),
    });
    if let Reply::Error(failure) = reply {
        out += &plain(&failure);
    }
    (out, compiled)
}

const NOTEBOOK: &[&str] = &[
    "#[derive(Debug, Clone)] struct P { x: i32 }\nfn next(p: &P) -> P { P { x: p.x + 1 } }",
    "let mut p = next(&P { x: 1 });",
    "static COUNT: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(7);",
    "impl P { fn twice(&self) -> i32 { self.x * 2 } }",
    "p.x += 1; p.twice() + COUNT.load(std::sync::atomic::Ordering::SeqCst)",
    "let v = vec![p.clone()]; fn take(v: Vec<P>) -> usize { v.len() }",
    "take(v)",
    "{ static N: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);\n  N.fetch_add(1, std::sync::atomic::Ordering::SeqCst) }",
    "let n: i32 = \"x\".parse()?;",
];

#[test]
fn a_notebook_that_ran_in_another_kernel_needs_no_compiler() {
    let dir = folder("notebook");
    let mut first = Vec::new();
    let engine = start(Some(dir.clone()));
    for (i, code) in NOTEBOOK.iter().enumerate() {
        let (out, compiled) = cell(&engine, i as u64 + 1, code);
        assert!(compiled, "{code}");
        first.push(out);
    }
    drop(engine);
    let engine = start(Some(dir.clone()));
    for (i, code) in NOTEBOOK.iter().enumerate() {
        // Other numbers: errors name the cell as it is called now.
        let (out, compiled) = cell(&engine, i as u64 + 21, code);
        assert!(!compiled, "{code}");
        let number = |text: &str, n: usize| text.replace(&format!("cell {n}"), "cell _");
        assert_eq!(number(&out, i + 21), number(&first[i], i + 1), "{code}");
    }
    assert!(first[8].contains("cell 9, line 1"), "{}", first[8]);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_cell_runs_again_with_statics_of_its_own() {
    let dir = folder("statics");
    let engine = start(Some(dir.clone()));
    let runs: Vec<(String, bool)> = (1..4).map(|n| cell(&engine, n, NOTEBOOK[7])).collect();
    let zero = "=> 0\n".to_owned();
    assert_eq!(runs, [(zero.clone(), true), (zero.clone(), false), (zero, false)]);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn another_context_is_another_cell() {
    let dir = folder("context");
    let engine = start(Some(dir.clone()));
    cell(&engine, 1, "let a = 1i32;");
    assert_eq!(cell(&engine, 2, "a"), ("=> 1\n".into(), true));
    cell(&engine, 3, "let a = 2u8;");
    assert_eq!(cell(&engine, 4, "a"), ("=> 2\n".into(), true));
    cell(&engine, 5, "fn f() -> i32 { 1 }");
    assert_eq!(cell(&engine, 6, "f()"), ("=> 1\n".into(), true));
    cell(&engine, 7, "fn f() -> i32 { 2 }");
    assert_eq!(cell(&engine, 8, "f()"), ("=> 2\n".into(), true));
    cell(&engine, 9, "fn f() -> i32 { 1 }");
    assert_eq!(cell(&engine, 10, "f()"), ("=> 1\n".into(), false));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_cell_that_reads_files_or_variables_is_compiled_every_time() {
    let dir = folder("files");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("text.txt");
    let engine = start(Some(dir.join("cells")));
    let code = format!("include_str!({:?})", file);
    for text in ["one", "two"] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(cell(&engine, 1, &code), (format!("=> \"{text}\"\n"), true));
    }
    cell(&engine, 2, "option_env!(\"XLAZY_NOBODY_SETS_THIS\").is_some()");
    assert!(cell(&engine, 3, "option_env!(\"XLAZY_NOBODY_SETS_THIS\").is_some()").1);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_damaged_entry_is_compiled_again() {
    let dir = folder("damaged");
    let engine = start(Some(dir.clone()));
    assert_eq!(cell(&engine, 1, "40 + 2"), ("=> 42\n".into(), true));
    // The entry is written while the cell's end is told; the next cell waits for it.
    run(&engine, 2, "1");
    run(&engine, 3, "1");
    for entry in std::fs::read_dir(&dir).unwrap().flatten() {
        let mut bytes = std::fs::read(entry.path()).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x40;
        std::fs::write(entry.path(), bytes).unwrap();
    }
    assert_eq!(cell(&engine, 4, "40 + 2"), ("=> 42\n".into(), true));
    assert_eq!(cell(&engine, 5, "40 + 2"), ("=> 42\n".into(), false));
    std::fs::remove_dir_all(dir).unwrap();
}

/// Two kernels with one folder that holds too little for both: whatever they find there or do not, each cell does what it
/// says.
#[test]
fn kernels_share_a_cache_that_is_too_small() {
    let dir = folder("shared");
    let cells: Vec<String> =
        (0..6).map(|i| format!("let v{i} = vec![{i}; 3]; v{i}.iter().sum::<i32>() + {i}")).collect();
    let work = |turns: &[usize]| {
        let exe = env!("CARGO_BIN_EXE_xlazy");
        let mut command = std::process::Command::new(exe);
        command.arg("eval").args(turns.iter().map(|i| &cells[*i]));
        // 0 MB: every look through the folder removes all that is there.
        command.env("XLAZY_CACHE", &dir).env("XLAZY_CELL_CACHE_MB", "0").env_remove("XLAZY_HOME");
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command.spawn().expect("it starts")
    };
    let orders: [[usize; 12]; 3] = [
        [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5],
        [5, 4, 3, 2, 1, 0, 5, 4, 3, 2, 1, 0],
        [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
    ];
    let kernels: Vec<_> = orders.iter().map(|order| (order, work(order))).collect();
    for (order, kernel) in kernels {
        let done = kernel.wait_with_output().expect("it ends");
        let wanted: String = order.iter().map(|i| format!("{}\n", 4 * i)).collect();
        assert_eq!(String::from_utf8_lossy(&done.stdout), wanted, "{}", String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success());
    }
    // What is left is whole: no half-written file stays behind.
    for entry in std::fs::read_dir(dir.join("cells")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        assert!(name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}
