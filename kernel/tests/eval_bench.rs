//! `xlazy bench cells` speaks the real protocol, and says how long cells take the first and the second time.
mod eval_support;

use serde_json::json;
use std::process::Command;

#[test]
fn cells_are_measured_over_the_protocol() {
    // Builds what the kernel needs.
    drop(eval_support::engine());
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-cache");
    let lessons = cache.join("lessons");
    std::fs::create_dir_all(&lessons).expect("a folder");
    // The second may fail, the fourth may not and ends its notebook.
    let cells = [("let a = 1;", ""), ("a + \"\"", "raises-exception"), ("a + 1", ""), ("missing", ""), ("a", "")];
    let cell = |(source, tag)| json!({"cell_type": "code", "source": source, "outputs": [], "execution_count": null, "metadata": {"tags": [tag]}});
    let notebook = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells.map(cell)});
    std::fs::write(lessons.join("one.ipynb"), notebook.to_string()).expect("a notebook");
    let out = Command::new(env!("CARGO_BIN_EXE_xlazy"))
        .args(["bench", "cells", "--json", "--rounds", "2", "--notebooks"])
        .arg(&lessons)
        .env("XLAZY_CACHE", &cache)
        .env("PATH", "/usr/bin:/bin")
        // Cells with crates are left out: their build would take longer than all the rest.
        .env("CARGO_HOME", &cache)
        .env("CARGO_NET_OFFLINE", "true")
        .env("RUSTC", std::env::var_os("RUSTC").unwrap_or_else(rustc))
        .output()
        .expect("it runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let cells = report["xlazy"]["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 10);
    for (cell, name) in cells[8..].iter().zip(["lessons", "lessons, rustc"]) {
        assert_eq!((&cell["cell"], &cell["cells"]), (&json!(name), &json!(3)));
    }
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("one.ipynb from cell 4 on: ") && said.contains("missing"), "{said}");
    for cell in cells {
        let median = |which: &str| cell[which]["median_ms"].as_f64().expect("a time");
        assert!(median("new") > 0.0 && median("again") < median("new"), "{cell}");
    }
    let megabytes = |of: &str| -> u64 {
        let process = |name: &str| report["xlazy"][of][name].as_u64().unwrap_or_else(|| panic!("{report}"));
        process("xlazy") + process("xlazy-session")
    };
    assert!(megabytes("pss_mb") <= 250 && megabytes("anonymous_mb") < megabytes("pss_mb"), "{report}");
    assert!(report["xlazy"]["first_tensor_ms"].as_u64().is_some_and(|ms| ms > 0), "{report}");
    let _ = std::fs::remove_dir_all(cache);
}

/// The compiler's own path: the test hides evcxr by a short `PATH`.
fn rustc() -> std::ffi::OsString {
    let out = Command::new("rustc").args(["--print", "sysroot"]).output().expect("rustc runs");
    format!("{}/bin/rustc", String::from_utf8_lossy(&out.stdout).trim()).into()
}
