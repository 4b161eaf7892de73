//! Five thousand cells over the real protocol: afterwards nothing is held that was not held before, but for the loaded
//! objects of the cells themselves, which are never closed (locations, vtables and threads point into them).
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "protocol/mock_engine.rs"]
#[allow(dead_code)]
mod mock_engine;
#[path = "protocol/process.rs"]
#[allow(dead_code)]
mod process;

use process::Process;
use std::path::PathBuf;
use std::time::Instant;

/// A round: a few texts that come again and are in the cache after the first time, then one that is new.
const ROUND: &[&str] = &[
    "let x = Tensor::ones([16]) * 2.0;",
    "let w = Tensor::ones([16]).requires_grad_(true); (&w * &x).sum().backward();",
    "w.grad().unwrap().sum().item()",
    "let words: Vec<String> = (0..20).map(|n| format!(\"word {n}\")).collect();",
    "for word in &words { println!(\"{word}\"); }",
    "x.add_(1.0); sync(); x.mean().item()",
    "std::thread::spawn(|| 1 + 1).join().unwrap()",
    "panic!(\"on purpose\")",
    "%metrics",
];
const CELLS: usize = 5_000;
/// Rounds after which everything has been loaded, compiled and filled once.
const WARM: usize = 30;

/// What two processes and their folder hold.
#[derive(Debug)]
struct Held {
    kernel_files: usize,
    session_files: usize,
    kernel_threads: usize,
    brief_threads: usize,
    session_threads: usize,
    temporary_files: usize,
    kernel_kb: u64,
    session_kb: u64,
    tensors: i64,
    buffers: i64,
}

fn count(folder: PathBuf) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// Threads, and of them those that end by themselves soon after a cell: they keep an object, wait for a compiler that takes
/// itself apart, or compile a library.
fn threads(pid: u32) -> (usize, usize) {
    let name = |e: std::fs::DirEntry| std::fs::read_to_string(e.path().join("comm")).unwrap_or_default();
    let names: Vec<String> =
        std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten().map(name).filter(|n| !n.is_empty()).collect();
    let brief = |n: &&String| ["xlazy-cache", "xlazy-rustc", "xlazy-library"].contains(&n.trim());
    (names.len(), names.iter().filter(brief).count())
}

fn counter(report: &serde_json::Value, name: &str) -> i64 {
    report["counters"][name].as_i64().unwrap_or_else(|| panic!("no {name} in {report}"))
}

fn anonymous_kb(pid: u32) -> u64 {
    // Pages that were written, in memory or not: what files are mapped is not counted.
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

fn held(kernel: &mut Process) -> Held {
    let report: serde_json::Value = serde_json::from_str(&kernel.cell("%metrics --json").ok()).unwrap();
    let (pid, session) = (kernel.pid(), kernel.session());
    let (threads, brief) = threads(pid);
    let proc = |pid: u32, what: &str| count(PathBuf::from(format!("/proc/{pid}/{what}")));
    Held {
        kernel_files: proc(pid, "fd"),
        session_files: proc(session, "fd"),
        kernel_threads: threads - brief,
        brief_threads: brief,
        session_threads: proc(session, "task"),
        temporary_files: std::fs::read_dir(kernel.folder.path().join("tmp"))
            .unwrap()
            .flatten()
            .map(|e| count(e.path()))
            .sum(),
        kernel_kb: anonymous_kb(pid),
        session_kb: anonymous_kb(session),
        tensors: counter(&report, "CreateXlaTensor") - counter(&report, "DestroyXlaTensor"),
        buffers: counter(&report, "CreateDataHandles") - counter(&report, "DestroyDataHandles"),
    }
}

#[test]
fn five_thousand_cells_leave_nothing_behind() {
    let mut kernel = Process::start(|_, _| {});
    let begin = Instant::now();
    let mut cells = 0;
    let mut round = |kernel: &mut Process, n: usize| {
        for code in ROUND {
            let done = kernel.cell(code);
            let want = if code.starts_with("panic!") { "error" } else { "ok" };
            assert_eq!(done.status, want, "round {n}: {done:#?}");
        }
        // New text, every second round: most of the time goes into rustc.
        if n.is_multiple_of(2) {
            assert_eq!(
                kernel.cell(&format!("let fresh = {n}usize; fresh + x.shape().len()")).ok(),
                (n + 1).to_string()
            );
        }
        cells += ROUND.len() + usize::from(n.is_multiple_of(2));
        cells
    };
    let mut n = 0;
    while n < WARM {
        round(&mut kernel, n);
        n += 1;
    }
    let before = held(&mut kernel);
    let first = round(&mut kernel, n);
    let mut done = first;
    while done < CELLS {
        n += 1;
        done = round(&mut kernel, n);
    }
    let after = held(&mut kernel);
    println!("{done} cells in {:.0?}\n{before:?}\n{after:?}", begin.elapsed());

    assert_eq!((after.tensors, after.buffers), (before.tensors, before.buffers));
    assert_eq!(after.session_files, before.session_files);
    assert!(after.kernel_files <= before.kernel_files + 2, "a compiler that starts up has pipes");
    assert_eq!((after.kernel_threads, after.session_threads), (before.kernel_threads, before.session_threads));
    assert!(after.brief_threads <= 3, "one of each kind: {after:?}");
    assert!(after.temporary_files <= before.temporary_files + 2, "objects are gone once they are loaded");
    let per_cell = |after: u64, before: u64| after.saturating_sub(before) as f64 / (done - first) as f64;
    let (kernel_grows, session_grows) =
        (per_cell(after.kernel_kb, before.kernel_kb), per_cell(after.session_kb, before.session_kb));
    println!("per cell: kernel {kernel_grows:.2} kB, session {session_grows:.2} kB");
    // The texts of new cells are kept, because what they define may panic later; and a loaded object has pages of its own.
    assert!(kernel_grows < 4.0, "{kernel_grows} kB");
    assert!(session_grows < 24.0, "{session_grows} kB");
}
