//! Checkpoints as two notebooks of one folder see them: what one kernel saved, another loads; autosave, and its failures;
//! what no save takes the place of.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
mod eval_support;
#[path = "protocol/mock_engine.rs"]
#[allow(dead_code)]
mod mock_engine;
#[path = "protocol/process.rs"]
#[allow(dead_code)]
mod process;

use process::Process;

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("checkpoints-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A kernel of a notebook without a name, in that folder; all of them have one home.
fn kernel(folder: &Path) -> Process {
    let here = folder.to_owned();
    let mut kernel = Process::start(move |command, _| {
        command.current_dir(&here).env("HOME", here.join("home")).env_remove("JPY_SESSION_NAME");
    });
    kernel.cell("1").ok();
    kernel
}

/// The files of a folder, without its home.
fn files(folder: &Path) -> Vec<String> {
    let all = std::fs::read_dir(folder).expect("files").flatten().map(|e| e.file_name().into_string().expect("text"));
    let mut files: Vec<String> = all.filter(|name| name != "home").collect();
    files.sort();
    files
}

/// Runs cells in a session of their own; what they print and show, standard error included.
fn eval(folder: &Path, cells: &[&str]) -> String {
    eval_support::build_runtime();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xlazy"));
    command.arg("eval").args(cells).current_dir(folder).env_remove("JPY_SESSION_NAME");
    let done = command.output().expect("xlazy runs");
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

#[test]
fn what_one_kernel_saves_another_loads() {
    let folder = folder("two");
    let said = eval(&folder, &["%autosave 1h", "let x = tensor([1.0, 2.5]).requires_grad_(true); let n = 7;"]);
    assert!(said.contains("autosave: after a cell, when 60 min have passed"), "{said}");
    let said =
        eval(&folder, &["%checkpoint", "%checkpoint load autosave", "(x.to_vec::<f32>(), x.requires_grad(), n)"]);
    assert!(said.contains("autosave") && said.contains("n, x"), "{said}");
    assert!(said.contains("([1.0, 2.5], true, 7)"), "{said}");
    let left: Vec<_> = std::fs::read_dir(&folder).expect("files").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["autosave.safetensors"], "nothing unfinished stays");
    std::fs::remove_dir_all(folder).expect("cleaned");
}

#[test]
fn an_autosave_that_fails_says_so_and_the_session_goes_on() {
    let folder = folder("full");
    std::fs::create_dir_all(folder.join("autosave.safetensors/inside")).expect("a folder in its place");
    let said = eval(&folder, &["%autosave 1s", "let n = 7;", "let f = |x: i32| x; n + 1"]);
    assert!(said.contains("note: autosave failed: cannot write") && said.contains("untouched"), "{said}");
    assert!(said.contains('8'), "{said}");
    std::fs::remove_dir_all(folder).expect("cleaned");
}

#[test]
fn a_crash_between_two_autosaves_advises_the_last() {
    let folder = folder("crash");
    let said = eval(&folder, &["%autosave 1h", "let n = 7;", "std::process::abort()"]);
    assert!(said.contains("`%checkpoint load autosave` loads what was saved"), "{said}");
    std::fs::remove_dir_all(folder).expect("cleaned");
}

#[test]
fn after_a_crash_autosave_waits_for_what_was_lost() {
    let folder = folder("lost");
    let mut one = kernel(&folder);
    one.cell("%autosave 1s\nlet trained = vec![1, 2, 3]; let f = |x: i32| x;").ok();
    let good = std::fs::read(folder.join("autosave.safetensors")).expect("a checkpoint");
    assert!(one.cell("std::process::abort()").err().contains("`%checkpoint load autosave`"));
    let said = one.cell("%autosave 1s\nlet n = 1;");
    assert!(said.stderr.contains("note: autosave waits: ") && said.stderr.contains("lost (trained)"), "{said:?}");
    assert_eq!(one.cell("let m = 2;").stderr, "", "it is said once");
    assert_eq!(std::fs::read(folder.join("autosave.safetensors")).expect("a checkpoint"), good);
    // The closure is not in the file, so it is not waited for.
    one.cell("%checkpoint load autosave").ok();
    one.cell("%autosave 1s\nlet more = 3;").ok();
    assert!(one.cell("%checkpoint").ok().contains("m, more, n, trained"));
    // Or the user does without it.
    one.cell("std::process::abort()").err();
    let said = one.cell("%autosave --force 1s\nlet other = 4;");
    assert!(said.stderr.contains("note: autosave keeps the copy of before, with m, more, n, trained, as "), "{said:?}");
    let listed = one.cell("%checkpoint").ok();
    assert!(
        listed.lines().any(|l| l.starts_with("autosave-previous ") && l.ends_with("m, more, n, trained")),
        "{listed}"
    );
    assert!(listed.lines().any(|l| l.starts_with("autosave ") && l.ends_with("  other")), "{listed}");
    drop(one);
    // The next kernel has nothing of it, and takes the place of nothing.
    let mut next = kernel(&folder);
    let said = next.cell("%autosave 1s\nlet fresh = 5;");
    assert!(said.stderr.contains("note: autosave waits: ") && said.stderr.contains("both stay"), "{said:?}");
    next.cell("%checkpoint load autosave-previous").ok();
    assert_eq!(next.cell("trained").ok(), "[1, 2, 3]");
    drop(next);
    std::fs::remove_dir_all(folder).expect("cleaned");
}

#[test]
fn a_save_takes_the_place_of_nothing_else() {
    let folder = folder("foreign");
    let mut one = kernel(&folder);
    assert!(one.cell("%checkpoint save a").err().contains("no variable that could be kept"));
    one.cell("let f = |x: i32| x;").ok();
    let error = one.cell("%checkpoint save a").err();
    assert!(error.contains("`%checkpoint save --force a`") && error.contains("f: it is a function"), "{error}");
    assert_eq!(files(&folder), Vec::<String>::new());
    one.cell("nn::save(\"weights.safetensors\", &[(\"w\".to_owned(), Tensor::ones([2]))])?; let x = 1;").ok();
    let weights = || std::fs::read(folder.join("weights.safetensors")).expect("weights");
    let before = weights();
    let error = one.cell("%checkpoint save weights").err();
    assert!(error.contains("is no checkpoint of xlazy, so it stays") && weights() == before, "{error}");
    one.cell("%checkpoint save --force weights").ok();
    assert_ne!(weights(), before);
    assert_eq!(std::fs::read(folder.join("weights-previous.safetensors")).expect("the copy of before"), before);
    one.cell("%checkpoint save a").ok();
    one.cell("let x = 2;").ok();
    let saved = one.cell("%checkpoint save a").ok();
    assert!(!saved.contains("before"), "the same names: {saved}");
    one.cell("%checkpoint load a-previous").ok();
    assert_eq!(one.cell("x").ok(), "1");
    let mut other = kernel(&folder);
    other.cell("let y = 3;").ok();
    assert!(other.cell("%checkpoint save a").ok().contains("The copy of before, which has x, is kept as "));
    assert!(other.cell("%checkpoint load --force a").err().contains("`--force` is for"));
    drop((one, other));
    std::fs::remove_dir_all(folder).expect("cleaned");
}

#[test]
fn notebooks_without_a_name_save_in_files_of_their_own() {
    let folder = folder("unnamed");
    let (mut one, mut two) = (kernel(&folder), kernel(&folder));
    assert!(one.cell("%autosave 1h\nlet x = 1;").ok().ends_with("/autosave.safetensors"));
    assert!(two.cell("%autosave 1h\nlet y = 2;").ok().ends_with("/autosave-2.safetensors"));
    assert_eq!(files(&folder), ["autosave-2.safetensors", "autosave.safetensors"]);
    drop(one);
    // What a kernel had, the next one has when it is gone.
    let mut three = kernel(&folder);
    assert!(three.cell("%autosave 1h").ok().ends_with("/autosave.safetensors"));
    drop((two, three));
    std::fs::remove_dir_all(folder).expect("cleaned");
}

#[test]
fn what_a_killed_save_left_is_swept() {
    let folder = folder("parts");
    let left = ["a.safetensors.12-3.part", "b.safetensors.99.part"];
    left.iter().for_each(|name| std::fs::write(folder.join(name), "half").expect("a file"));
    std::fs::write(folder.join("mine.part"), "").expect("a file");
    let said = eval(&folder, &["let n = 7;", "%checkpoint save c"]);
    assert!(said.contains("Saved 1 variable"), "{said}");
    assert_eq!(files(&folder), ["c.safetensors", "mine.part"]);
    std::fs::remove_dir_all(folder).expect("cleaned");
}
