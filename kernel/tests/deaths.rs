//! The session process dies, in every way there is and at any moment: the kernel says how, what is lost is named, and
//! the next cell works.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "protocol/mock_engine.rs"]
#[allow(dead_code)]
mod mock_engine;
#[path = "protocol/process.rs"]
#[allow(dead_code)]
mod process;
#[allow(dead_code)]
mod sizes;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use process::Process;
use sizes::rounds;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn end(pid: u32) {
    let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
}

/// Cells of a notebook that makes variables of all kinds; each name is its own.
fn cell(n: u64) -> (String, String) {
    let name = format!("v{n}");
    let code = match n % 5 {
        0 => format!("let {name} = vec![{n}u64; 3];"),
        1 => format!("let {name} = tensor([{n}.0, 1.0]).sum(); println!(\"{{}}\", {name}.item());"),
        2 => format!("fn f{n}() -> u64 {{ {n} }}\nlet {name} = f{n}() + 1;"),
        3 => format!("let mut {name} = 0u64; for i in 0..200_000u64 {{ {name} = {name}.wrapping_mul(31) ^ i; }}"),
        _ => format!("let {name} = String::from(\"{n}\"); std::thread::sleep(std::time::Duration::from_millis(5));"),
    };
    (name, code)
}

#[test]
fn two_hundred_cells_with_kill_9_at_random_moments_lose_nothing_unreported() {
    // A third of them has a death; tests/long.sh has two hundred.
    let cells = rounds(20);
    let mut kernel = Process::start(|_, _| {});
    kernel.cell("1").ok();
    let mut dice = fastrand::Rng::with_seed(0x2545_f491_4f6c_dd1d);
    let (mut alive, mut deaths) = (Vec::<String>::new(), 0);
    for n in 0..cells {
        let (name, code) = cell(n);
        // Every third cell or so has a death at a random moment: before it, in rustc's time, in its own, after it.
        let doomed = (dice.u64(..3) == 0).then(|| (kernel.session(), Duration::from_micros(dice.u64(..90_000))));
        let ended = &AtomicBool::new(false);
        let done = std::thread::scope(|scope| {
            if let Some((session, when)) = doomed {
                scope.spawn(move || {
                    let begin = Instant::now();
                    while begin.elapsed() < when && !ended.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                    end(session);
                });
            }
            let done = kernel.cell(&code);
            ended.store(true, Ordering::SeqCst);
            done
        });
        let mut reports = String::new();
        match &*done.status {
            "ok" => alive.push(name),
            _ => reports = done.err(),
        }
        if doomed.is_some() {
            // What died after its cell is noticed by the next one; the next one after that is good.
            let next = kernel.cell("1 + 1");
            if next.status == "error" {
                reports += &next.err();
            }
            assert_eq!(kernel.cell("1 + 1").ok(), "2", "cell {n}");
        }
        if !reports.is_empty() {
            deaths += 1;
            assert!(reports.contains("SessionDied"), "cell {n}: {reports}");
            let lost = reports.split("Lost variables: ").nth(1).unwrap_or_default();
            let lost = lost.split(['.', '\n']).next().unwrap_or_default();
            let mut named: Vec<&str> = lost.split(", ").filter(|n| !n.is_empty()).collect();
            named.sort_unstable();
            alive.sort_unstable();
            assert_eq!(named, alive, "cell {n}: {reports}");
            alive.clear();
        }
        if n % 20 == 19 {
            let there = kernel.cell("%vars").ok();
            assert!(alive.iter().all(|name| there.contains(&format!("{name} "))), "cell {n}: {alive:?}\n{there}");
        }
    }
    println!("{deaths} deaths in {cells} cells");
    assert!(deaths >= cells / 7, "{deaths} in {cells}");
}

#[test]
fn every_way_to_die_is_told_and_the_next_cell_works() {
    let mut kernel = Process::start(|_, _| {});
    kernel.cell("fn endless(n: u64) -> u64 { endless(n + 1) + n }").ok();
    let ways = [
        ("std::process::exit(3)", "exited with code 3"),
        ("std::process::abort()", "SIGABRT"),
        ("endless(0)", "stack overflow"),
        ("unsafe { *std::ptr::null_mut::<i32>().wrapping_add(1) = 1; }", "SIGSEGV"),
        // Address space instead of a control group: what a cell meets when memory runs out and nobody is killed.
        (
            "unsafe extern \"C\" { fn setrlimit(what: i32, limit: *const [u64; 2]) -> i32; }
             unsafe { setrlimit(9, &[1 << 30; 2]); } let mut all = Vec::new(); loop { all.push(vec![1u8; 64 << 20]); }",
            "memory allocation",
        ),
        // The out-of-memory killer's signal, which nobody in the process sees coming.
        ("std::process::Command::new(\"sh\").args([\"-c\", \"kill -9 $PPID\"]).status()?; loop {}", "memory"),
    ];
    for (code, how) in ways {
        kernel.cell("let a = tensor([1.0]); let b = vec![2];").ok();
        let done = kernel.cell(code);
        let told = format!("{}{}", done.stderr, done.error);
        assert!(done.error.starts_with("SessionDied: "), "{code}: {told}");
        assert!(told.contains(how), "{code}: {told}");
        assert!(done.error.contains("a, b"), "{code}: {told}");
        assert_eq!(kernel.cell("tensor([1.0, 2.0]).sum().item()").ok(), "3.0", "{code}");
    }
    assert!(kernel.cell("a").err().contains("was lost when its session"));
}

/// The CPU's plugin with a mind to abort, and the file that makes it.
fn aborting_plugin(folder: &Path) -> (PathBuf, PathBuf, PathBuf) {
    let place = std::env::var_os("XLAZY_PLUGIN_DIR")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_BIN_EXE_xlazy")).ancestors().nth(2).unwrap().join("home/plugins"));
    let json = std::fs::read_to_string(place.join("cpu/plugin.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let include = std::env::var("XLAZY_PJRT_INCLUDE").unwrap_or_else(|_| json["include_dir"].as_str().unwrap().into());
    let made = folder.join("libaborting.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocol/aborting_plugin.c");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-w", "-shared", "-fPIC", "-I", &include, "-o"]).arg(&made).arg(source);
    assert!(cc.status().unwrap().success());
    (made, place.join("cpu/libpjrt_cpu.so"), folder.join("abort"))
}

#[test]
fn a_plugin_that_aborts_costs_the_session_and_not_the_kernel() {
    let mut switch = PathBuf::new();
    let mut kernel = Process::start(|command, folder| {
        let (plugin, real, abort) = aborting_plugin(folder);
        command.env("XLAZY_CPU_PLUGIN", plugin).env("XLAZY_TEST_PLUGIN", real).env("XLAZY_TEST_ABORT", &abort);
        switch = abort;
    });
    assert_eq!(kernel.cell("let a = tensor([1.0, 2.0]); a.sum().item()").ok(), "3.0");
    std::fs::write(&switch, "").unwrap();
    let done = kernel.cell("let b = 1;\na.exp().sum().item()");
    assert!(done.stderr.contains("Check failed: the plugin gives up"), "{done:?}");
    let error = done.err();
    assert!(error.contains("SIGABRT") && error.contains("Lost variables: a"), "{error}");
    std::fs::remove_file(&switch).unwrap();
    assert_eq!(kernel.cell("tensor([1.0, 2.0]).sum().item()").ok(), "3.0");
}

/// What compiles and links for a kernel, with its arguments.
fn compilers(kernel: u32) -> impl Iterator<Item = (u32, String)> {
    let all = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    all.filter_map(move |pid: u32| {
        let read = |what| std::fs::read_to_string(format!("/proc/{pid}/{what}")).unwrap_or_default();
        let parent = read("stat").rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        let line = read("cmdline").replace('\0', " ");
        let compiles = [" --emit=", "rust-lld"].iter().any(|word| line.contains(word));
        (parent == Some(kernel) && compiles).then_some((pid, line))
    })
}

/// Statements are compiled against what rustc says of their cell's items before their object is there; however long it takes to start.
#[test]
fn a_compiler_that_starts_late_knows_its_cells_items() {
    let mut kernel = Process::start(|_, _| {});
    kernel.cell("let a = 1;").ok();
    let (pid, begin) = (kernel.pid(), Instant::now());
    let late = || assert!(begin.elapsed() < Duration::from_secs(60), "no compiler waits for statements");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (waits, items) = loop {
                let mut all = compilers(pid);
                let known = |line: &str| {
                    Some(line.split_once("--extern=g_")?.1.split(' ').next()?.split_once('=')?.1.to_owned())
                };
                let waits =
                    all.find_map(|(pid, line)| Some((pid, known(&line).filter(|file| file.ends_with(".rmeta"))?)));
                match waits {
                    Some(found) => break found,
                    None => late(),
                }
            };
            let waits = Pid::from_raw(waits as i32);
            kill(waits, Signal::SIGSTOP).expect("it is ours");
            while compilers(pid).any(|(_, line)| line.contains(&format!("--emit=metadata={items}"))) {
                late();
            }
            kill(waits, Signal::SIGCONT).expect("it is ours");
        });
        let done = kernel.cell("fn stack(a: i32) -> i32 { a }\nstack.push(1)");
        assert!(done.error.contains("for fn item `fn(i32) -> i32 {stack}`"), "{done:#?}");
    });
}

#[test]
fn a_compiler_that_is_killed_while_it_waits_fails_no_cell() {
    let mut kernel = Process::start(|_, _| {});
    kernel.cell("let a = 1;").ok();
    for (n, code) in ["a + 1", "fn two() -> i32 { 2 }", "a + two()", "let b = a + 10;"].into_iter().enumerate() {
        let begin = Instant::now();
        // For statements, with their linker, for items: what was killed before is not missed until it is needed.
        let waiting = loop {
            let waiting: Vec<u32> = compilers(kernel.pid()).map(|(pid, _)| pid).collect();
            if !waiting.is_empty() {
                break waiting;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "no compiler waits");
        };
        waiting.into_iter().for_each(end);
        let done = kernel.cell(code);
        assert_eq!((&*done.status, &*done.stderr), ("ok", ""), "{n}: {done:?}");
    }
    assert_eq!(kernel.cell("(a, b, two())").ok(), "(1, 11, 2)");
}

#[test]
fn nothing_is_left_behind_when_the_kernel_is_killed() {
    let mut kernel = Process::start(|_, _| {});
    kernel.cell("let child = std::process::Command::new(\"sleep\").arg(\"1000\").spawn()?;").ok();
    let session = kernel.session();
    let dir = kernel.folder.path().join("tmp").display().to_string();
    let compilers = || {
        let all =
            std::fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        all.filter(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|c| c.contains("rust") && c.contains(&dir))
        })
        .count()
    };
    let alive = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    assert!(alive(session));
    kernel.kill();
    let begin = Instant::now();
    while alive(session) || compilers() > 0 {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "still there: session {}, {} compilers",
            alive(session),
            compilers()
        );
        std::thread::yield_now();
    }
}
