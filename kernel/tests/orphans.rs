//! A kernel that is killed leaves no process behind: no session, no waiting compiler, no cargo, no shell command.
mod eval_support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Far beyond what an ordered end takes, on a machine with other work to do.
const LIMIT: Duration = Duration::from_secs(120);

/// `xlazy repl` with a mark in its environment, which all that it starts inherits.
struct Kernel {
    child: Child,
    mark: String,
}

impl Kernel {
    /// Runs a cell up to the first line that it prints.
    fn start(cell: &str) -> Kernel {
        eval_support::build_runtime();
        let mark = format!("XLAZY_TEST_MARK={}", uuid::Uuid::new_v4().simple());
        let (name, value) = mark.split_once('=').expect("a mark");
        let mut child = Command::new(env!("CARGO_BIN_EXE_xlazy"))
            .args(["eval", "-"])
            .env(name, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("xlazy starts");
        child.stdin.take().expect("a pipe").write_all(cell.as_bytes()).expect("the cell is read");
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().expect("a pipe")), Box::new(child.stderr.take().expect("a pipe"))];
        let (said, hear) = std::sync::mpsc::channel();
        for stream in streams {
            let said = said.clone();
            std::thread::spawn(move || {
                BufReader::new(stream).lines().map_while(Result::ok).for_each(|line| drop(said.send(line)));
            });
        }
        let mut lines = Vec::new();
        while !lines.last().is_some_and(|l: &String| l.contains("go")) {
            lines.push(hear.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("it never went: {lines:?}")));
        }
        Kernel { child, mark }
    }

    /// The processes that carry the mark, by number and command line.
    fn processes(&self) -> Vec<String> {
        let marked = |pid: &str| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
            environment.split(|b| *b == 0).find(|e| *e == self.mark.as_bytes())?;
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
            Some(format!("{pid} {}", line.replace('\0', " ")))
        };
        let entries = std::fs::read_dir("/proc").expect("processes").flatten();
        entries.filter_map(|e| marked(e.file_name().to_str()?)).collect()
    }

    /// Kills the kernel once it has started that companion, and waits until nothing of it is left.
    fn kill(mut self, companion: &str) {
        let end = Instant::now() + LIMIT;
        let before = loop {
            let now = self.processes();
            if now.iter().any(|p| p.contains(companion)) {
                break now;
            }
            assert!(Instant::now() < end, "no {companion} among {now:#?}");
            std::thread::park_timeout(Duration::from_millis(20));
        };
        self.child.kill().and_then(|()| self.child.wait()).expect("it can be killed");
        let end = Instant::now() + LIMIT;
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "left behind: {left:#?}\nof {before:#?}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_killed_kernel_takes_a_running_cell_and_the_waiting_compiler_along() {
    Kernel::start("println!(\"go\"); loop {}").kill("rustc /dev/stdin");
}

#[test]
fn a_killed_kernel_takes_a_shell_command_and_its_children_along() {
    Kernel::start("!sleep 1000 & echo go; sleep 1000\n").kill("sleep 1000");
}

#[test]
fn a_killed_kernel_takes_cargo_and_its_build_scripts_along() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("orphan_gopher");
    std::fs::create_dir_all(dir.join("src")).expect("a folder");
    let manifest = "[package]\nname = \"orphan_gopher\"\nversion = \"0.1.0\"\n[workspace]\n";
    std::fs::write(dir.join("Cargo.toml"), manifest).expect("a manifest");
    std::fs::write(dir.join("src/lib.rs"), "").expect("a source");
    // Its own name, printed by cargo, says that the build has begun.
    std::fs::write(dir.join("build.rs"), "fn main() { loop { std::thread::park() } }").expect("a build script");
    Kernel::start(&format!(":dep orphan_gopher = {{ path = {dir:?} }}\n")).kill("build-script-build");
}
