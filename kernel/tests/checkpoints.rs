//! Checkpoints as two notebooks of one folder see them: what one kernel saved, another loads; autosave, and its failures.
mod eval_support;

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("checkpoints-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
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
