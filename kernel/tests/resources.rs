//! What a machine can refuse, refused for real: each time a sentence says what to do, and the session goes on.
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
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs a command with these lines of shell before it.
fn after(command: &mut Command, first: &str) {
    let mut outer = Command::new("sh");
    outer.arg("-c").arg(format!("{first}\nexec \"$@\"")).arg("sh");
    wrap(command, outer);
}

fn wrap(command: &mut Command, mut outer: Command) {
    outer.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    *command = outer;
}

/// Waits for what happens in another process.
fn until(what: &str, happened: impl Fn() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < Duration::from_secs(60), "in vain: {what}");
        std::thread::yield_now();
    }
}

/// A folder of a kernel on a disk of its own, small or read-only: a real one where this user may mount one, otherwise
/// one whose refusals a preloaded library makes (`XLAZY_TEST_DISK=preloaded` asks for it).
struct Disk {
    folder: PathBuf,
    mounted: bool,
}

const FULL: i32 = nix::libc::ENOSPC;
const READ_ONLY: i32 = nix::libc::EROFS;

impl Disk {
    /// For a folder that exists; the kernel that it is for is started by this command.
    fn new(command: &mut Command, folder: &Path, options: &str) -> Disk {
        let mut trial = Command::new("unshare");
        trial.args(["-rm", "sh", "-c", "mount -t tmpfs none /tmp"]).stderr(std::process::Stdio::null());
        let may_mount = trial.status().is_ok_and(|s| s.success());
        let mounted = may_mount && std::env::var("XLAZY_TEST_DISK").is_err();
        if mounted {
            let mut outer = Command::new("unshare");
            let mount = format!("mount -t tmpfs -o {options} none \"$1\" && shift && exec \"$@\"");
            outer.args(["-rm", "sh", "-c", &mount, "sh"]).arg(folder);
            wrap(command, outer);
        } else {
            command.env("LD_PRELOAD", refusing_disk()).env("XLAZY_TEST_DISK", folder);
        }
        Disk { folder: folder.to_owned(), mounted }
    }

    fn switch(&self) -> OsString {
        let mut name = self.folder.clone().into_os_string();
        name.push(".errno");
        name
    }

    /// The folder as the kernel sees it, from here.
    fn seen_from_here(&self, kernel: &Process) -> PathBuf {
        let root = format!("/proc/{}/root", kernel.pid());
        Path::new(&root).join(self.folder.strip_prefix("/").unwrap())
    }

    fn fill(&self, kernel: &Process) {
        if !self.mounted {
            return std::fs::write(self.switch(), FULL.to_string()).unwrap();
        }
        let filler = self.seen_from_here(kernel).join("filler");
        let mut file = std::fs::File::options().create(true).append(true).open(filler).unwrap();
        let full = std::io::copy(&mut std::io::repeat(7), &mut file).unwrap_err();
        assert_eq!(full.raw_os_error(), Some(FULL));
    }

    /// Runs a cell on a full disk. What ends in the background, and a cell that fails, give back the room of their files, in
    /// which a small one may still run: then the disk is filled again.
    fn refused(&self, kernel: &mut Process, code: &str) -> String {
        for _ in 0..20 {
            self.fill(kernel);
            let done = kernel.cell(code);
            if done.status == "error" {
                return done.err();
            }
        }
        panic!("{code} runs however full the disk is");
    }

    fn make_room(&self, kernel: &Process) {
        match self.mounted {
            true => std::fs::remove_file(self.seen_from_here(kernel).join("filler")).unwrap(),
            false => std::fs::remove_file(self.switch()).unwrap(),
        }
    }

    /// Without a mount, what `ro` is with one.
    fn is_read_only(&self) {
        if !self.mounted {
            std::fs::write(self.switch(), READ_ONLY.to_string()).unwrap();
        }
    }
}

fn refusing_disk() -> PathBuf {
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("librefusing_disk.so");
    let made = library.with_extension(std::process::id().to_string());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocol/refusing_disk.c");
    let cc = Command::new("cc").args(["-O1", "-w", "-shared", "-fPIC", "-o"]).arg(&made).arg(source).status();
    assert!(cc.unwrap().success());
    std::fs::rename(&made, &library).unwrap();
    library
}

#[test]
fn a_full_temporary_folder_is_named_and_nothing_is_lost() {
    let mut disk = None;
    let mut kernel = Process::start(|command, folder| {
        disk = Some(Disk::new(command, &folder.join("tmp"), "size=4m"));
    });
    let disk = disk.unwrap();
    kernel.cell("let a = tensor([20.0, 21.0]); fn two() -> f64 { 2.0 }").ok();
    assert_eq!(kernel.cell("a.sum().item()").ok(), "41.0");
    kernel.cell("1 + 1").ok();
    // New text, definitions, and text that was compiled before.
    for code in ["a.sum().item() + 1.0", "fn three() -> f64 { 3.0 }", "1 + 1"] {
        let error = disk.refused(&mut kernel, code);
        assert!(error.starts_with("ResourceError: "), "{code}: {error}");
        let tmp = disk.folder.display().to_string();
        for part in ["No space left on device", &tmp, "is full", "TMPDIR", "Every variable is kept"] {
            assert!(error.contains(part), "{code}: no word of {part}: {error}");
        }
    }
    disk.make_room(&kernel);
    assert_eq!(kernel.cell("a.sum().item() * two()").ok(), "82.0");
    kernel.cell("fn three() -> f64 { 3.0 }").ok();
    assert_eq!(kernel.cell("three() + two()").ok(), "5.0");
}

#[test]
fn a_full_disk_under_caches_and_histories_costs_only_them() {
    let mut disk = None;
    let mut kernel = Process::start(|command, folder| {
        let room = folder.join("room");
        std::fs::create_dir(&room).unwrap();
        command.env("HOME", &room).env("XLAZY_CACHE", room.join("cache"));
        disk = Some(Disk::new(command, &room, "size=4m"));
    });
    let disk = disk.unwrap();
    kernel.cell("let a = 1;").ok();
    disk.fill(&kernel);
    let mut said = String::new();
    for n in 0..4 {
        // Too long for what is left of the last page.
        let done = kernel.cell(&format!("a + {n} // {}", "long ".repeat(1000)));
        said += &done.stderr;
        assert_eq!(done.ok(), (n + 1).to_string());
    }
    let room = disk.folder.display();
    assert_eq!(said.matches("note: compiled cells are not kept: No space left on device").count(), 1, "{said}");
    assert!(said.contains(&format!("{room}/cache/cells is full")) && said.contains("XLAZY_CACHE"), "{said}");
    assert_eq!(said.matches("[xlazy: the history lasts only as long as this kernel").count(), 1, "{said}");
    assert!(said.contains("XLAZY_HOME"), "{said}");

    // What is too much to show finds another place.
    let flood = kernel.cell("for n in 0..300_000 { println!(\"line {n}\"); }");
    let file = flood.stderr.split_once("it goes on in ").unwrap().1.split_once(']').unwrap().0;
    assert!(file.starts_with(kernel.folder.path().join("tmp").to_str().unwrap()), "{file}");
    assert!(std::fs::read_to_string(file).unwrap().ends_with("line 299999\n"));

    let error = kernel.cell(":dep nothing = { path = \"/nowhere\" }").err();
    assert!(error.contains("is full") && error.contains("XLAZY_CACHE"), "{error}");
    disk.make_room(&kernel);
    assert_eq!(kernel.cell("a + 41").ok(), "42");
}

#[test]
fn a_read_only_home_costs_only_what_would_be_kept_there() {
    let mut kernel = Process::start(|command, folder| {
        command.env_remove("XLAZY_CACHE");
        Disk::new(command, &folder.join("home"), "ro").is_read_only();
    });
    let mut said = String::new();
    for code in ["let a = tensor([1.0, 2.0]);", "println!(\"{}\", a.sum());", "%vars"] {
        let done = kernel.cell(code);
        said += &done.stderr;
        done.ok();
    }
    for part in ["compiled cells are not kept", "XLAZY_CACHE", "the history lasts only as long", "XLAZY_HOME"] {
        assert!(said.contains(part), "no word of {part}: {said}");
    }
    assert_eq!(said.matches("Read-only file system").count(), 2, "each once: {said}");
    let error = kernel.cell(":dep nothing = { path = \"/nowhere\" }").err();
    assert!(error.contains("cannot be written to") && error.contains("XLAZY_CACHE"), "{error}");
    assert_eq!(kernel.cell("a.sum().item()").ok(), "3.0");
}

#[test]
fn without_a_home_there_is_less_to_keep_and_nothing_to_fear() {
    let mut kernel = Process::start(|command, _| {
        command.env_remove("XLAZY_CACHE").env_remove("HOME").env_remove("XDG_CACHE_HOME");
    });
    assert_eq!(kernel.cell("1 + 1").ok(), "2");
    assert!(kernel.cell(":dep nothing = { path = \"/nowhere\" }").err().contains("no cache folder"));
    assert_eq!(kernel.cell("tensor([1.0]).sum().item()").ok(), "1.0");
}

#[test]
fn cells_need_nothing_of_the_folder_that_the_notebook_is_in() {
    let mut kernel = Process::start(|command, folder| {
        let notebooks = folder.join("notebooks");
        std::fs::create_dir(&notebooks).unwrap();
        // Goes there once the disk is mounted.
        after(command, &format!("cd {}", notebooks.display()));
        Disk::new(command, &notebooks, "ro").is_read_only();
    });
    let file = kernel.folder.path().join("notebooks/x");
    assert_eq!(kernel.cell("fn two() -> u8 { 2 }\ntwo() + 1").ok(), "3");
    let error = kernel.cell(&format!("std::fs::write({file:?}, \"\")?;")).err();
    assert!(error.contains("Read-only file system"), "{error}");
}

#[test]
fn a_temporary_folder_that_cannot_be_written_to_is_said_by_every_cell() {
    let mut kernel = Process::start(|command, folder| {
        Disk::new(command, &folder.join("tmp"), "ro").is_read_only();
    });
    for _ in 0..2 {
        let error = kernel.cell("1").err();
        assert!(error.starts_with("StartError: Read-only file system") && error.contains("TMPDIR"), "{error}");
    }
}

#[test]
fn a_cell_that_takes_every_descriptor_can_be_followed_by_one_that_gives_them_back() {
    let mut kernel = Process::start(|command, _| after(command, "ulimit -n 256"));
    let open = "let a = 7; let mut files = Vec::new();
        let why = loop { match std::fs::File::open(\"/dev/null\") { Ok(f) => files.push(f), Err(e) => break e } }.to_string();";
    kernel.cell(open).ok();
    assert_eq!(kernel.cell("why.clone()").ok(), "\"Too many open files (os error 24)\"");
    assert_eq!(kernel.cell("a + 1").ok(), "8");
    // The plugin needs one, too, and is not loaded yet.
    let error = kernel.cell("tensor([1.0]).sum().item()").err();
    assert!(error.contains("Too many open files"), "{error}");
    assert_eq!(kernel.cell("files.len() > 200").ok(), "true");
    kernel.cell("drop(files);").ok();
    assert_eq!(kernel.cell("tensor([1.0]).sum().item() + a as f64").ok(), "8.0");
}

#[test]
fn a_kernel_without_descriptors_says_so_and_works_again_when_there_are_some() {
    let mut kernel = Process::start(|command, _| after(command, "ulimit -n 80"));
    kernel.cell("let a = 20;").ok();
    let path = kernel.client.info().control_url().trim_start_matches("ipc://").to_owned();
    // Somebody connects until the kernel has none left; nobody needs a key for that.
    let held: Vec<UnixStream> = (0..100).map(|_| UnixStream::connect(&path).unwrap()).collect();
    let open = || std::fs::read_dir(format!("/proc/{}/fd", kernel.pid())).unwrap().count();
    until("the kernel has none left", || open() >= 80);
    // The compiler that waits already is good for a cell more.
    let mut errors = (0..20).map(|n| kernel.cell(&format!("a + {n}"))).filter(|done| done.status == "error");
    let error = errors.next().expect("no cell fails").error;
    drop(errors);
    assert!(error.starts_with("ResourceError: rustc does not start: Too many open files"), "{error}");
    assert!(error.contains("80 files") && error.contains("ulimit -n"), "{error}");
    drop(held);
    let open = || std::fs::read_dir(format!("/proc/{}/fd", kernel.pid())).unwrap().count();
    until("the kernel has some again", || open() < 60);
    assert_eq!(kernel.cell("a + 22").ok(), "42");
}

#[test]
fn a_thousand_connections_leave_descriptors_for_cells() {
    let mut kernel = Process::start(|command, _| after(command, "ulimit -n 1024"));
    let info = kernel.client.info().clone();
    let urls = [info.shell_url(), info.control_url(), info.stdin_url(), info.iopub_url(), info.hb_url()];
    let paths = urls.each_ref().map(|u| u.trim_start_matches("ipc://"));
    let held: Vec<UnixStream> = (0..1000).map(|n| UnixStream::connect(paths[n % 5]).unwrap()).collect();
    assert_eq!(kernel.cell("1 + 1").ok(), "2");
    assert_eq!(kernel.cell("tensor([1.0]).sum().item()").ok(), "1.0");
    drop(held);
}

/// An installation made of links to what was built, whose compiler can be taken away.
fn installation(folder: &Path) -> PathBuf {
    let home = folder.join("installed");
    for inside in ["bin", "lib"] {
        std::fs::create_dir_all(home.join(inside)).unwrap();
    }
    let built = Path::new(env!("CARGO_BIN_EXE_xlazy")).parent().unwrap();
    let link = |from: &Path, to: &str| std::os::unix::fs::symlink(from, home.join(to)).unwrap();
    link(&built.join("xlazy-session"), "bin/xlazy-session");
    link(&built.join("libxlazy.so"), "lib/libxlazy.so");
    link(&built.join("deps"), "lib/deps");
    let plugins = built.parent().unwrap().join("home/plugins");
    link(&std::env::var_os("XLAZY_PLUGIN_DIR").map_or(plugins, PathBuf::from), "plugins");
    let found = Command::new(env!("CARGO_BIN_EXE_xlazy")).arg("describe-toolchain").output().unwrap();
    let mut described: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    link(Path::new(described["toolchain"]["rustc"].as_str().unwrap()), "bin/rustc");
    described["toolchain"]["rustc"] = home.join("bin/rustc").to_str().unwrap().into();
    std::fs::write(home.join("runtime.json"), described.to_string()).unwrap();
    home
}

/// A compiler that answers every text with this message.
fn stand_in(rustc: &Path, says: &str) {
    std::fs::write(rustc, format!("#!/bin/sh\ncat >/dev/null\n{says}\nexit 1\n")).unwrap();
    std::fs::set_permissions(rustc, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_compiler_that_is_gone_or_another_is_named_with_the_remedy() {
    let mut home = PathBuf::new();
    let mut kernel = Process::start(|command, folder| {
        home = installation(folder);
        // A shell that starts as the stand-in may find rustc in its place, and run that as a script: not here.
        command.env("XLAZY_HOME", &home).current_dir(folder);
    });
    let (rustc, away) = (home.join("bin/rustc"), home.join("bin/rustc-away"));
    kernel.cell("let a = tensor([20.0, 22.0]);").ok();
    assert_eq!(kernel.cell("a.sum().item()").ok(), "42.0");

    std::fs::rename(&rustc, &away).unwrap();
    // The one that was started before serves one more cell.
    let errors: Vec<String> = (0..2).map(|n| kernel.cell(&format!("a.shape().len() + {n}")).error).collect();
    assert!(errors[1].starts_with(&format!("ToolchainError: {}", rustc.display())), "{errors:?}");
    for part in ["No such file", "rustup toolchain install", "./install.sh", "xlazy doctor"] {
        assert!(errors[1].contains(part), "no word of {part}: {errors:?}");
    }
    assert_eq!(kernel.cell("a.sum().item()").ok(), "42.0", "what was compiled before needs no compiler");
    assert!(kernel.cell("%vars").ok().contains("a"));

    // What a rustc says that is not the one that compiled the runtime.
    let message = r#"{"message":"found crate `xlazy` compiled by an incompatible version of rustc","code":{"code":"E0514"},"level":"error","spans":[],"children":[]}"#;
    stand_in(&rustc, &format!("echo '{message}' >&2"));
    let error = kernel.cell("a.shape().len() + 3").err();
    assert!(error.starts_with("ToolchainError: ") && error.contains("incompatible version of rustc"), "{error}");
    assert!(error.contains("./install.sh"), "{error}");
    stand_in(&rustc, "kill -SEGV $$");
    // The stand-in of before may have been waiting for a text.
    let errors: Vec<String> = (0..2).map(|n| kernel.cell(&format!("a.shape().len() + 1{n}")).err()).collect();
    let error = &errors[1];
    assert!(error.contains("rustc") && error.contains("SIGSEGV"), "{error}");

    std::fs::rename(&away, &rustc).unwrap();
    kernel.cell("a.shape().len() + 5");
    assert_eq!(kernel.cell("a.shape().len() + 41").ok(), "42");
}
