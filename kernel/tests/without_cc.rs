//! Cells on a machine that has Rust and no C compiler.
mod eval_support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A folder with that name for one test, and nothing in it.
fn empty(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("without-cc-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn write(file: PathBuf, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// What the cells print, with no program to be found but rustc, which is rustup's when it is started under its own name.
fn eval(folder: &Path, cells: &[&str]) -> String {
    let out = eval_with(folder, &folder.join("cache"), cells);
    assert!(folder.join("cache/link").is_dir(), "it was linked by something else");
    out
}

fn eval_with(folder: &Path, cache: &Path, cells: &[&str]) -> String {
    printed(&command(folder, cache, cells).current_dir(folder).output().unwrap())
}

fn printed(out: &Output) -> String {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn command(folder: &Path, cache: &Path, cells: &[&str]) -> Command {
    eval_support::build_runtime();
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap().stdout;
    let sysroot = PathBuf::from(String::from_utf8(sysroot).unwrap().trim());
    let path = folder.join("path");
    fs::create_dir_all(&path).unwrap();
    let _ = std::os::unix::fs::symlink(sysroot.join("bin/rustc"), path.join("rustc"));
    let mut xlazy = Command::new(env!("CARGO_BIN_EXE_xlazy"));
    xlazy.arg("eval").args(cells).env("PATH", &path).env("XLAZY_CACHE", cache).env("TMPDIR", folder);
    xlazy.env_remove("CC").env_remove("XLAZY_HOME");
    xlazy
}

#[test]
fn cells_types_and_tensors() {
    let folder = empty("cells");
    let cells = ["#[derive(Debug, Clone)] struct P { x: f64 }", "let p = P { x: 2.0 };", "p.x.sin().floor() + 1.0"];
    assert_eq!(eval(&folder, &cells), "1.0\n");
    let cells = ["let t = tensor([1.0, 2.0]);", "println!(\"{}\", (&t * 3.0).sum().item())"];
    assert_eq!(eval(&folder, &cells), "9\n");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn where_nothing_can_be_kept() {
    let folder = empty("unkept");
    assert_eq!(eval_with(&folder, Path::new("/proc/no/cache"), &["let x = 1.5;", "x * 2.0"]), "3.0\n");
    let linked = |e: fs::DirEntry| e.path().join("link").is_dir();
    let is_linked = || fs::read_dir(&folder).unwrap().flatten().any(linked);
    assert!(is_linked(), "it was linked by something else");
    let mut uninstall = Command::new(env!("CARGO_BIN_EXE_xlazy"));
    uninstall.args(["uninstall", "--cache", "--prefix"]).arg(folder.join("prefix")).env("TMPDIR", &folder);
    uninstall.env("XLAZY_CACHE", "/proc/no/cache").env("PATH", folder.join("path"));
    let said = printed(&uninstall.output().unwrap());
    assert!(said.contains("/link") && !is_linked(), "{said}");
    fs::remove_dir_all(folder).unwrap();
}

/// What links is made once, wherever the notebooks lie and however many of them are the first.
#[test]
fn the_first_notebooks_start_at_once_in_a_folder_that_cannot_be_written_to() {
    let folder = empty("at-once");
    let mut first = command(&folder, &folder.join("cache"), &["let x = 1.5;", "x * 2.0"]);
    first.current_dir("/proc").stdout(Stdio::piped()).stderr(Stdio::piped());
    let all: Vec<Child> = (0..4).map(|_| first.spawn().unwrap()).collect();
    for one in all {
        assert_eq!(printed(&one.wait_with_output().unwrap()), "3.0\n");
    }
    let made: Vec<_> = fs::read_dir(folder.join("cache/link")).unwrap().flatten().map(|e| e.path()).collect();
    assert!(made.len() == 1 && made[0].join("libc.so").is_file(), "{made:?}");
    fs::remove_dir_all(folder).unwrap();
}

/// The cache on a disk that is full, or from which nothing can be run.
#[test]
fn where_the_cache_is_on_such_a_disk() {
    let trial = Command::new("unshare").args(["-rm", "sh", "-c", "mount -t tmpfs none /tmp"]).status();
    if !trial.is_ok_and(|s| s.success()) {
        return println!("skipped: this user may mount nothing");
    }
    let folder = empty("disk");
    let cache = folder.join("cache");
    fs::create_dir_all(&cache).unwrap();
    let on_disk = |options: &str, cells: &[&str]| {
        let inner = command(&folder, &cache, cells);
        let script = format!("mount -t tmpfs -o {options} none \"$1\" && shift && PATH=$1 && shift && exec \"$@\"");
        let mut outer = Command::new("unshare");
        outer.args(["-rm", "sh", "-c", &script, "sh"]).arg(&cache).arg(folder.join("path"));
        outer.arg(inner.get_program()).args(inner.get_args()).env_remove("CC").env_remove("XLAZY_HOME");
        outer.env("XLAZY_CACHE", &cache).env("TMPDIR", &folder).current_dir(&folder).output().unwrap()
    };
    for options in ["size=8k", "noexec", "ro"] {
        assert_eq!(printed(&on_disk(options, &["let x = 1.5;", "x * 2.0"])), "3.0\n", "{options}");
    }
    let refused = on_disk("noexec", &[":dep nothing = { path = \"nothing\" }"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("cache/deps is mounted `noexec`") && said.contains("XLAZY_CACHE"), "{said}");
    fs::remove_dir_all(folder).unwrap();
}

/// A build script is a program, a procedural macro a library that rustc loads: both are linked for the machine itself.
#[test]
fn dependencies_with_build_scripts_and_procedural_macros() {
    let folder = empty("deps");
    let manifest = |name: &str, more: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}")
    };
    write(folder.join("answer/Cargo.toml"), &manifest("answer", "[lib]\nproc-macro = true\n"));
    let source = "use proc_macro::TokenStream;\n#[proc_macro] pub fn answer(_: TokenStream) -> TokenStream { \"42\".parse().unwrap() }\n";
    write(folder.join("answer/src/lib.rs"), source);
    write(folder.join("built/Cargo.toml"), &manifest("built", "[dependencies]\nanswer = { path = \"../answer\" }\n"));
    let script = "fn main() {\n    let threads = std::thread::spawn(|| 7).join().unwrap();\n    \
                  println!(\"cargo:rustc-env=MADE={threads}\");\n}\n";
    write(folder.join("built/build.rs"), script);
    let source = "pub fn made() -> String { format!(\"{} {}\", env!(\"MADE\"), answer::answer!()) }\n";
    write(folder.join("built/src/lib.rs"), source);
    assert_eq!(eval(&folder, &[":dep built = { path = \"built\" }", "built::made()"]), "\"7 42\"\n");
    fs::remove_dir_all(folder).unwrap();
}
