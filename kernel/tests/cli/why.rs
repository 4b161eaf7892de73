//! `xlazy why` on programs that JAX and torch_xla wrote down.
use serde_json::Value;
use std::process::{Command, Output};

fn why(arguments: &[&str]) -> Output {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime/tests/dumps");
    let mut command = Command::new(env!("CARGO_BIN_EXE_xlazy"));
    command.current_dir(folder).arg("why").args(arguments).output().expect("xlazy starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn two_programs_are_explained() {
    let told = why(&["step.mlir", "batch.mlir"]);
    assert!(told.status.success(), "{}", text(&told.stderr));
    let told = text(&told.stdout);
    assert!(told.starts_with("Differs (shape): `x` (batch.mlir:11) is f32[6,8], was f32[4,8]"), "{told}");
    let json = why(&["step.hlo", "axis.hlo", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&json["class"], &json["at"]["line"]), (&"index".into(), &21.into()), "{json}");
    let same = why(&["step.hlo", "step.hlo"]);
    assert_eq!(text(&same.stdout), "The two are the same program.\n");
}

#[test]
fn what_is_no_program_is_refused() {
    let cases = [
        (["step.mlir", "model.py"], "model.py is neither StableHLO text (`func.func`) nor HLO text (`HloModule`)"),
        (["step.mlir", "nothing.mlir"], "nothing.mlir could not be read"),
    ];
    for (files, expected) in cases {
        let told = why(&files);
        let error = text(&told.stderr);
        assert!(!told.status.success() && error.contains(expected), "{error}");
    }
}

#[test]
fn a_run_is_told_by_kinds() {
    let told = why(&["runs/jax"]);
    assert_eq!(told.status.code(), Some(0), "{}", text(&told.stderr));
    let told = text(&told.stdout);
    for part in [
        "10 programs of 3 kinds, 7 of them compiled again: constant 2, dtype 2, eviction 2, shape 1\n",
        "\njit_step: 4 programs\n  #1 48 ops, called at train.py:29\n",
        "\n  #2 Compiled again (shape): `x` (train.py:29) is f32[2,8], was f32[4,8], and 1 more difference. Fix: ",
        "\n  #8, #9 2 times: Compiled again (eviction)",
    ] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
    let json = why(&["runs/jax", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&json["compiled_again"], &json["programs"][1]["call"]["line"]), (&7.into(), &29.into()), "{json}");
    let page = text(&why(&["runs/jax", "--html"]).stdout);
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{page}");
    assert!(!page.contains("<script") && !page.contains("http"), "it needs nothing else");
}

#[test]
fn limits_end_with_a_status() {
    let cases: [(&[&str], i32); 5] = [
        (&["--max-programs", "10"], 0),
        (&["--max-programs", "9"], 3),
        (&["--fail-after-warmup", "10"], 0),
        (&["--fail-after-warmup", "9"], 3),
        (&["--fail-after-warmup", "many"], 2),
    ];
    for (limit, status) in cases {
        let told = why(&[&["runs/jax"], limit].concat());
        assert_eq!(told.status.code(), Some(status), "{limit:?}: {}", text(&told.stderr));
    }
    let nothing = why(&["."]);
    assert_eq!(nothing.status.code(), Some(0));
    let empty = why(&["../../src/optim"]);
    assert_eq!(empty.status.code(), Some(1));
    assert!(text(&empty.stderr).contains("JAX_DUMP_IR_TO"), "{}", text(&empty.stderr));
}
