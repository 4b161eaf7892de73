//! Processes that cells start: they hide no death of the session, end with an interrupt that ends their wait, and none is
//! left when the kernel is gone.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "protocol/mock_engine.rs"]
#[allow(dead_code)]
mod mock_engine;
#[path = "protocol/process.rs"]
#[allow(dead_code)]
mod process;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use process::Process;
use serde_json::json;
use std::time::{Duration, Instant};

/// Far beyond what it takes, on a machine with other work to do.
const LIMIT: Duration = Duration::from_secs(60);

fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < LIMIT, "in vain: {what}");
        std::thread::yield_now();
    }
}

/// What `sleep` is told to sleep for, so that it can be told from others.
fn mark() -> u64 {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    1_000_000_000 + std::process::id() as u64 * 1000 + count
}

/// Processes that sleep for so long, without those that have ended.
fn sleepers(mark: u64) -> Vec<i32> {
    let argument = format!("sleep\0{mark}\0");
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let sleeps = |e: &std::fs::DirEntry| std::fs::read_to_string(e.path().join("cmdline")).is_ok_and(|c| c == argument);
    all.filter(sleeps).filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

fn begin(kernel: &mut Process, code: &str) {
    kernel.client.send_shell("execute_request", json!({"code": code, "stop_on_error": false}));
}

/// Interrupts the cell that was begun.
fn interrupt(kernel: &mut Process) {
    kernel.client.ask_control_only("interrupt_request", json!({}));
    let reply = kernel.client.shell();
    // The cell's, and that of the request to interrupt it.
    kernel.client.drain_idles(2);
    assert_eq!(reply["content"]["ename"], "Interrupted", "{reply}");
}

#[test]
fn a_child_ends_with_the_interrupt_that_ends_its_wait() {
    let mut kernel = Process::start(|_, _| {});
    let cells = [
        "std::process::Command::new(\"sleep\").arg(\"MARK\").status()?;",
        "std::process::Command::new(\"sleep\").arg(\"MARK\").output()?;",
        "let mut c = std::process::Command::new(\"sleep\").arg(\"MARK\").spawn()?; c.wait()?;",
        "std::process::Command::new(\"sleep\").arg(\"MARK\").spawn()?.wait_with_output()?;",
        "let out = std::process::Command::new(\"sleep\").arg(\"MARK\").stdout(std::process::Stdio::piped()).spawn()?.stdout.unwrap();
         for line in std::io::BufRead::lines(std::io::BufReader::new(out)) { println!(\"{}\", line?); }",
        // With what it has started, also where it does not listen to an interrupt.
        "std::process::Command::new(\"sh\").args([\"-c\", \"sleep MARK; true\"]).status()?;",
        "std::process::Command::new(\"sh\").args([\"-c\", \"trap '' INT; sleep MARK; true\"]).output()?;",
    ];
    kernel.cell("let kept = 7;").ok();
    for code in cells {
        let mark = mark();
        begin(&mut kernel, &code.replace("MARK", &mark.to_string()));
        until(code, || sleepers(mark).len() == 1);
        interrupt(&mut kernel);
        until(code, || sleepers(mark).is_empty());
        assert_eq!(kernel.cell("kept").ok(), "7");
    }
    // Whoever still has a handle hears how it ended, as if it had waited.
    kernel.cell("let mut child = std::process::Command::new(\"sleep\").arg(\"1000\").spawn()?;").ok();
    begin(&mut kernel, "println!(\"go\"); child.wait()?;");
    kernel.client.iopub_until(|m| m["content"]["text"].as_str().is_some_and(|t| t.contains("go")));
    interrupt(&mut kernel);
    assert_eq!(kernel.cell("std::os::unix::process::ExitStatusExt::signal(&child.wait()?)").ok(), "Some(2)");
}

#[test]
fn a_child_that_nobody_waits_for_lives_until_the_shutdown() {
    let mut kernel = Process::start(|_, _| {});
    let (mark, daemon) = (mark(), mark());
    let spawn = format!("let mut child = std::process::Command::new(\"sleep\").arg(\"{mark}\").spawn()?;");
    kernel.cell(&spawn).ok();
    kernel.cell(&format!("std::process::Command::new(\"setsid\").args([\"sleep\", \"{daemon}\"]).spawn()?;")).ok();
    until("both sleep", || sleepers(mark).len() == 1 && sleepers(daemon).len() == 1);
    begin(&mut kernel, "println!(\"go\"); loop {}");
    kernel.client.iopub_until(|m| m["content"]["text"].as_str().is_some_and(|t| t.contains("go")));
    interrupt(&mut kernel);
    assert_eq!(kernel.cell("child.try_wait()?.is_none()").ok(), "true");
    drop(kernel);
    until("it ends with the kernel", || sleepers(mark).is_empty());
    let left = sleepers(daemon);
    assert_eq!(left.len(), 1, "what has made itself a daemon goes on");
    kill(Pid::from_raw(left[0]), Signal::SIGKILL).unwrap();
}

#[test]
fn a_killed_kernel_takes_the_children_of_cells_along() {
    let mut kernel = Process::start(|_, _| {});
    let mark = mark();
    kernel.cell(&format!("let child = std::process::Command::new(\"sleep\").arg(\"{mark}\").spawn()?;")).ok();
    until("it sleeps", || sleepers(mark).len() == 1);
    kernel.kill();
    until("it ends with the kernel", || sleepers(mark).is_empty());
}

const FORK: &str = "unsafe extern \"C\" { fn fork() -> i32; fn pause() -> i32; fn setsid() -> i32; }\n";

#[test]
fn a_forked_child_hides_no_death() {
    let mut kernel = Process::start(|_, _| {});
    // In the session's group, or out of reach in one of its own, which ends itself when the machine of the test is done.
    for child in [
        "loop { unsafe { pause() }; }",
        "unsafe { setsid() }; std::thread::sleep(std::time::Duration::from_secs(20)); std::process::exit(0);",
    ] {
        for death in [
            "std::process::abort()",
            "std::process::exit(3)",
            "unsafe { *std::ptr::null_mut::<i32>().wrapping_add(1) = 1; }",
        ] {
            kernel.cell("let lost = vec![1];").ok();
            let done = kernel.cell(&format!("{FORK}if unsafe {{ fork() }} == 0 {{ {child} }}\n{death}"));
            let error = done.err();
            assert!(error.starts_with("SessionDied") && error.contains("Lost variables: lost"), "{error}");
            assert_eq!(kernel.cell("1 + 1").ok(), "2", "{child} {death}");
        }
    }
    // While no cell runs, and for the interrupt.
    kernel.cell(&format!("{FORK}if unsafe {{ fork() }} == 0 {{ loop {{ unsafe {{ pause() }}; }} }}")).ok();
    let session = kernel.session();
    kill(Pid::from_raw(session as i32), Signal::SIGKILL).unwrap();
    until("it is noticed", || kernel.cell("1 + 1").status == "error");
    assert_eq!(kernel.cell("1 + 1").ok(), "2");
}

#[test]
fn a_forked_child_that_comes_to_the_end_of_the_cell_ends_there() {
    let mut kernel = Process::start(|_, _| {});
    kernel.cell("let kept = vec![1, 2];").ok();
    let done = kernel.cell(&format!(
        "{FORK}unsafe extern \"C\" {{ fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32; }}\n\
         let pid = unsafe {{ fork() }};\nif pid == 0 {{ println!(\"from the child\"); }} else {{\n\
         let mut status = -1; unsafe {{ waitpid(pid, &mut status, 0) }}; println!(\"it ended with {{status}}\"); }}\nlet after = 3;"
    ));
    assert!(done.stdout.contains("from the child") && done.stdout.contains("it ended with 0"), "{done:?}");
    done.ok();
    assert_eq!(kernel.cell("(kept.len(), after)").ok(), "(2, 3)");
}

#[test]
fn a_bad_frame_is_a_death_that_is_told() {
    let mut kernel = Process::start(|_, _| {});
    // The descriptor to the kernel is the socket; texts, a frame of no kind, and one that ends too soon.
    let writes: [&[u8]; 4] =
        [b"hello, kernel\n", &[1, 0, 0, 0, 255], &[9, 0, 0, 0, 1, 255, 255, 255, 255, 1, 1, 1, 1], &[0xff; 64]];
    for bytes in writes {
        kernel.cell("let lost = 1;").ok();
        let error = kernel
            .cell(&format!(
                "use std::io::Write; use std::os::fd::FromRawFd;\nfor fd in 3..64 {{\n\
                 let is_socket = std::fs::read_link(format!(\"/proc/self/fd/{{fd}}\")).is_ok_and(|l| l.to_string_lossy().starts_with(\"socket:\"));\n\
                 if is_socket {{ let _ = std::mem::ManuallyDrop::new(unsafe {{ std::fs::File::from_raw_fd(fd) }}).write_all(&{bytes:?}); break; }} }}\n\
                 loop {{ std::thread::park(); }}"
            ))
            .err();
        assert!(error.starts_with("SessionDied") && error.contains("no frame"), "{bytes:?}: {error}");
        assert!(error.contains("Lost variables: lost"), "{error}");
        assert_eq!(kernel.cell("1 + 1").ok(), "2");
    }
}
