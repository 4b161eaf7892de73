//! `xlazy explain` on programs that JAX wrote down.
use serde_json::Value;
use std::process::{Command, Output};

fn explain(arguments: &[&str]) -> Output {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime/tests/dumps");
    let mut command = Command::new(env!("CARGO_BIN_EXE_xlazy"));
    command.current_dir(folder).arg("explain").args(arguments).output().expect("xlazy starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn two_programs_are_explained() {
    let told = explain(&["step.mlir", "batch.mlir"]);
    assert!(told.status.success(), "{}", text(&told.stderr));
    let told = text(&told.stdout);
    assert!(told.starts_with("Differs (shape): `x` (batch.mlir:11) is f32[6,8], was f32[4,8]"), "{told}");
    let json = explain(&["step.hlo", "axis.hlo", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&json["class"], &json["at"]["line"]), (&"index".into(), &21.into()), "{json}");
    let same = explain(&["step.hlo", "step.hlo"]);
    assert_eq!(text(&same.stdout), "The two are the same program.\n");
}

#[test]
fn what_is_no_program_is_refused() {
    let cases = [
        (["step.mlir", "model.py"], "model.py is neither StableHLO text (`func.func`) nor HLO text (`HloModule`)"),
        (["step.mlir", "nothing.mlir"], "nothing.mlir could not be read"),
    ];
    for (files, expected) in cases {
        let told = explain(&files);
        let error = text(&told.stderr);
        assert!(!told.status.success() && error.contains(expected), "{error}");
    }
}
