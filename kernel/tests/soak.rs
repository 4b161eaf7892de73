//! Thousands of cells over the real protocol, one after the other and from four clients that interrupt and kill: afterwards
//! nothing is held that was not held before, but for the loaded objects of the cells themselves, which are never closed
//! (locations, vtables and threads point into them).
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "protocol/mock_engine.rs"]
#[allow(dead_code)]
mod mock_engine;
#[path = "protocol/process.rs"]
#[allow(dead_code)]
mod process;
mod sizes;

use client::Client;
use fastrand::Rng;
use jupyter_protocol::connection_info::ConnectionInfo;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use process::{Process, session_of};
use serde_json::{Value, json};
use sizes::{number, rounds};
use std::path::PathBuf;
use std::time::{Duration, Instant};

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
/// Rounds after which everything has been loaded, compiled and filled once.
const WARM: usize = 30;

/// What two processes and their folder hold.
#[derive(Debug)]
struct Held {
    kernel_files: usize,
    session_files: usize,
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

/// The threads of a kernel to which nothing happens. All else ends by itself: what keeps an object, waits for a compiler that
/// takes itself apart, compiles a library, or hands an interrupt on, for which tokio keeps threads ten seconds.
const LASTING: &[&str] =
    &["handlers", "hands", "shell", "tokio-rt-worker", "tokio-rt-worker", "xlazy", "xlazy-late", "xlazy-session"];

/// Waits until a kernel has the threads that it has for good, and no other: one that has just begun has its parent's name.
fn calm(pid: u32) {
    let begin = Instant::now();
    let mut met = Vec::new();
    loop {
        let names = threads(pid);
        if names == LASTING {
            return;
        }
        if !met.contains(&names) {
            println!("threads after {:?}: {}", begin.elapsed(), names.join(" "));
            met.push(names.clone());
        }
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{names:?}\nare not the threads of an idle kernel:\n{LASTING:?}"
        );
        std::thread::yield_now();
    }
}

/// The names of a process's threads, in order.
fn threads(pid: u32) -> Vec<String> {
    let name = |e: std::fs::DirEntry| std::fs::read_to_string(e.path().join("comm")).unwrap_or_default();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let mut names: Vec<String> = tasks.map(name).map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect();
    names.sort();
    names
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
    calm(pid);
    let proc = |pid: u32, what: &str| count(PathBuf::from(format!("/proc/{pid}/{what}")));
    Held {
        kernel_files: proc(pid, "fd"),
        session_files: proc(session, "fd"),
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
    // A tenth of them in every run, all in tests/long.sh.
    let most = rounds(500) as usize;
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
    while done < most {
        n += 1;
        done = round(&mut kernel, n);
    }
    let after = held(&mut kernel);
    println!("{done} cells in {:.0?}\n{before:?}\n{after:?}", begin.elapsed());

    assert_eq!((after.tensors, after.buffers), (before.tensors, before.buffers));
    assert_eq!(after.session_files, before.session_files);
    assert!(after.kernel_files <= before.kernel_files + 2, "a compiler that starts up has pipes");
    assert_eq!(after.session_threads, before.session_threads);
    assert!(after.temporary_files <= before.temporary_files + 2, "objects are gone once they are loaded");
    let per_cell = |after: u64, before: u64| after.saturating_sub(before) as f64 / (done - first) as f64;
    let (kernel_grows, session_grows) =
        (per_cell(after.kernel_kb, before.kernel_kb), per_cell(after.session_kb, before.session_kb));
    println!("per cell: kernel {kernel_grows:.2} kB, session {session_grows:.2} kB");
    // The texts of new cells are kept, because what they define may panic later; and a loaded object has pages of its own.
    assert!(kernel_grows < 4.0, "{kernel_grows} kB");
    assert!(session_grows < 24.0, "{session_grows} kB");
}

const CLIENTS: u64 = 4;

/// What one client did.
#[derive(Debug, Default)]
struct Tally {
    ok: u64,
    errors: u64,
    interrupts: u64,
    kills: u64,
}

/// Sends a cell, and on the way an interrupt or the session's death; waits for its reply and its end.
fn one_cell(client: &mut Client, kernel: u32, dice: &mut Rng, tally: &mut Tally) {
    const MORE: &[&str] = &[
        "let mut n = 0u64; for i in 0..5_000_000u64 { n = n.wrapping_mul(31) ^ i; } n",
        "std::thread::sleep(std::time::Duration::from_millis(200))",
        "let model = Tensor::ones([64, 64]).requires_grad_(true); for _ in 0..50 { (&model * 0.5).sum().backward(); sync(); }",
        "print!(\"{}\", \"line\\n\".repeat(1000))",
        "%vars",
        "%recover",
    ];
    let new = format!("let v{0} = {0}u64; v{0}", dice.u64(..1000));
    let code = match dice.usize(..16) {
        n if n < ROUND.len() => ROUND[n],
        n => MORE.get(n - ROUND.len()).copied().unwrap_or(&new),
    };
    let id = sent(client, code);
    let moment = Duration::from_micros(dice.u64(..60_000));
    let what = dice.u64(..100);
    if what < 15 {
        let begin = Instant::now();
        while begin.elapsed() < moment {
            std::thread::yield_now();
        }
        if what < 12 {
            client.ask_control_only("interrupt_request", json!({}));
            tally.interrupts += 1;
        } else if let Some(session) = session_of(kernel) {
            let _ = kill(Pid::from_raw(session as i32), Signal::SIGKILL);
            tally.kills += 1;
        }
    }
    match replied(client, &id)["content"]["status"].as_str() {
        Some("ok") => tally.ok += 1,
        Some("error" | "aborted") => tally.errors += 1,
        other => panic!("{code}: {other:?}"),
    }
}

/// Sends a cell; its message's id.
fn sent(client: &mut Client, code: &str) -> Value {
    let frames = client.frames("execute_request", json!({"code": code, "stop_on_error": false}));
    let id = serde_json::from_slice::<Value>(&frames[2]).unwrap()["msg_id"].clone();
    client.send_frames(frames);
    id
}

/// The reply to a request that was sent, once it is done.
fn replied(client: &mut Client, id: &Value) -> Value {
    let reply = client.shell();
    assert_eq!(reply["parent_header"]["msg_id"], *id, "the reply to another request");
    let idle = |m: &Value| m["content"]["execution_state"] == "idle" && m["parent_header"]["msg_id"] == *id;
    client.iopub_until(idle);
    reply
}

/// The kernel runs cells; a death that nobody has met yet is told first.
fn good(client: &mut Client) {
    let mut cell = || {
        let id = sent(client, "1 + 1");
        replied(client, &id)["content"]["status"] == "ok"
    };
    assert!((0..3).any(|_| cell()), "the kernel runs no cell any more");
}

#[test]
fn four_clients_that_interrupt_and_kill_get_every_reply() {
    let mut kernel = Process::start(|_, _| {});
    kernel.cell("1").ok();
    let pid = kernel.pid();
    let tmp = kernel.folder.path().join("tmp");
    // Another session each time; the kernel and what it has lying about stay.
    let held = || {
        calm(pid);
        let folders = std::fs::read_dir(&tmp).unwrap().flatten().map(|e| count(e.path()));
        (count(format!("/proc/{pid}/fd").into()), folders.sum::<usize>(), anonymous_kb(pid))
    };
    let seed = number("XLAZY_SOAK_SEED").unwrap_or(0x2545_f491_4f6c_dd1d);
    println!("XLAZY_SOAK_SEED={seed}");
    let spend = |clients: &mut [(&mut Client, Rng, Tally)], time: Duration| {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            for (client, dice, tally) in clients {
                scope.spawn(move || {
                    while begin.elapsed() < time {
                        one_cell(client, pid, dice, tally);
                    }
                });
            }
        });
    };
    let connected = |info: &ConnectionInfo| {
        let mut client = Client::connect(info.clone());
        client.iopub_until(|m| m["msg_type"] == "iopub_welcome");
        client
    };
    let mut others: Vec<Client> = (1..CLIENTS).map(|_| connected(kernel.client.info())).collect();
    let clients = std::iter::once(&mut kernel.client).chain(&mut others).zip(0u64..);
    let mut clients: Vec<(&mut Client, Rng, Tally)> =
        clients.map(|(client, n)| (client, Rng::with_seed(seed.wrapping_mul(n * 2 + 1)), Tally::default())).collect();
    let time = Duration::from_secs(number("XLAZY_SOAK_SECONDS").unwrap_or(10));
    // Everything has been loaded once.
    spend(&mut clients, time / 5);
    good(clients[0].0);
    let before = held();
    spend(&mut clients, time * 4 / 5);
    good(clients[0].0);
    let after = held();
    let sum = |of: fn(&Tally) -> u64| clients.iter().map(|(.., t)| of(t)).sum::<u64>();
    let (ok, errors) = (sum(|t| t.ok), sum(|t| t.errors));
    let (interrupts, kills) = (sum(|t| t.interrupts), sum(|t| t.kills));
    println!("{ok} good replies, {errors} errors, {interrupts} interrupts, {kills} sessions killed");
    let names = |folder: PathBuf| -> Vec<String> {
        std::fs::read_dir(folder).unwrap().flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect()
    };
    let lying: Vec<String> = std::fs::read_dir(&tmp).unwrap().flatten().flat_map(|e| names(e.path())).collect();
    println!("in temporary folders: {}", lying.join(" "));
    println!("descriptors, temporary files, kB of the kernel: before {before:?}, after {after:?}");
    assert!(ok > 0 && interrupts > 0, "{ok} {interrupts}");
    assert!(after.0 <= before.0 + 6, "descriptors: {before:?} {after:?}");
    assert!(after.1 <= before.1 + 12, "temporary files: {before:?} {after:?}");
    let cells = (ok + errors).max(1);
    let grown = after.2.saturating_sub(before.2) as f64 / cells as f64;
    assert!(cells < 500 || grown < 40.0, "the kernel grows by {grown:.1} kB a cell");
}
