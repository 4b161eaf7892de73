//! The invariants of ARCHITECTURE.md that the sources themselves can prove.
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// Every Rust file below a folder, with its text.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|e| e == "rs") => {
                    let text = fs::read_to_string(&path).expect("text");
                    found.push((path, text));
                }
                false => {}
            }
        }
    }
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

/// No file below `folder` has a line of code with one of these words, except those whose path ends as listed.
#[track_caller]
fn absent(folder: &str, words: &[&str], but: &[&str]) {
    for (path, text) in sources(folder) {
        if but.iter().any(|b| path.to_string_lossy().contains(b)) {
            continue;
        }
        for (n, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in words {
                assert!(!code.contains(word), "{}:{}: `{word}` does not belong here", path.display(), n + 1);
            }
        }
    }
}

#[test]
fn mime_and_pjrt_depend_on_nothing_of_ours() {
    for krate in ["mime", "pjrt"] {
        let manifest = fs::read_to_string(root().join("runtime").join(krate).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        assert!(!dependencies.contains("xlazy"), "{krate} depends on a crate of the workspace");
    }
}

#[test]
fn emit_does_no_input_or_output() {
    absent("runtime/core/src/emit", &["std::fs", "std::io", "std::env", "std::net", "println!"], &[]);
}

#[test]
fn only_devices_and_runs_talk_to_pjrt() {
    // pod has its objects, ty maps element types, aot compiles in a process of its own.
    absent("runtime/core/src", &["xlazy_pjrt"], &["src/pod/", "src/device/", "src/run/", "src/ty/"]);
    absent("runtime/src", &["xlazy_pjrt"], &["src/aot/"]);
}

#[test]
fn front_ends_see_only_the_engine() {
    absent("kernel/src/wire", &["crate::eval", "crate::magics"], &[]);
    absent("kernel/src/repl", &["crate::eval", "crate::magics", "crate::wire"], &[]);
}

#[test]
fn unsafe_lives_in_pjrt_and_sys() {
    let places = ["runtime/core/src", "runtime/src", "runtime/mime/src", "kernel/src", "session/src"];
    places
        .iter()
        .for_each(|p| absent(p, &["unsafe {", "unsafe fn", "unsafe impl", "allow(unsafe_code)"], &["core/src/sys"]));
}

#[test]
fn every_file_says_what_it_is_for() {
    for folder in
        ["runtime/core/src", "runtime/src", "runtime/mime/src", "runtime/pjrt/src", "kernel/src", "session/src"]
    {
        for (path, text) in sources(folder) {
            assert!(text.starts_with("//!"), "{} does not begin with `//!`", path.display());
        }
    }
}

/// `file::test`, `test_protocol.py::test` or the path of literate cells, in the guide's table of promises.
#[test]
fn the_tests_that_the_promises_name_exist() {
    let table = fs::read_to_string(root().join("docs/promises.md")).unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit_once(" | "));
    let mut count = 0;
    for (promise, tests) in rows.filter(|(promise, _)| *promise != "promise") {
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "nothing proves: {promise}");
        for name in names {
            count += 1;
            let found = match name.split_once("::") {
                None => root().join(name).is_file(),
                Some((file, test)) if file.ends_with(".py") => {
                    fs::read_to_string(root().join("kernel/tests/protocol").join(file))
                        .is_ok_and(|text| text.contains(&format!("def {test}(")))
                }
                Some((file, test)) => ["kernel", "runtime"].iter().any(|krate| {
                    let file = root().join(krate).join("tests").join(file).with_extension("rs");
                    fs::read_to_string(file).is_ok_and(|text| text.contains(&format!("#[test]\nfn {test}()")))
                }),
            };
            assert!(found, "the guide names a test that does not exist: {name}");
        }
    }
    assert!(count > 30, "only {count} tests are named");
}
