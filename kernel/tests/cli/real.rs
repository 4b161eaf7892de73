//! The binary with real cells: needs the session program and the runtime beside it.
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn xlazy() -> Command {
    let session = Path::new(env!("CARGO_BIN_EXE_xlazy")).with_file_name("xlazy-session");
    assert!(session.exists(), "first: cargo build -p xlazy -p xlazy-session, in the same profile as this test");
    let mut command = Command::new(env!("CARGO_BIN_EXE_xlazy"));
    command.env_remove("XLAZY_HOME").stdin(Stdio::null());
    command
}

fn check(done: Output, code: i32, out: Expect, err: Expect) {
    out.assert_eq(&String::from_utf8(done.stdout).unwrap());
    err.assert_eq(&String::from_utf8(done.stderr).unwrap());
    assert_eq!(done.status.code(), Some(code));
}

fn piped(mut command: Command, input: &str) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn eval_runs_cells_in_one_session() {
    let mut command = xlazy();
    command.args(["eval", "let x = 41;", "println!(\"hello\"); x + 1"]);
    check(
        command.output().unwrap(),
        0,
        expect![[r#"
        hello
        42
    "#]],
        expect![[""]],
    );
    let mut command = xlazy();
    command.args(["eval", "let x = 2;", "%vars", "!echo $((6 * 7)); exit 3"]);
    check(
        command.output().unwrap(),
        0,
        expect![[r#"
        Name  Type  Cell  Value
        x     i32   1     2
        42
    "#]],
        expect![[r#"
        [exit code 3]
    "#]],
    );
}

#[test]
fn errors_point_into_the_cell_and_end_it() {
    let mut command = xlazy();
    command.args(["eval", "let n = 3;", "n + \"a\"", "println!(\"not reached\")"]);
    check(
        command.output().unwrap(),
        1,
        expect![[""]],
        expect![[r#"
        error[E0277]: cannot add `&str` to `i32`
         --> cell 2:1:3
          |
        1 | n + "a"
          |   ^ no implementation for `i32 + &str`
          |
          = help: the trait `Add<&str>` is not implemented for `i32`
    "#]],
    );
    let mut command = xlazy();
    command.args(["eval", "println!(\"before\"); panic!(\"too {}\", \"hot\")"]);
    check(
        command.output().unwrap(),
        1,
        expect![[r#"
        before
    "#]],
        expect![[r#"
        Panic: too hot
         --> cell 1, line 1
        1 | println!("before"); panic!("too {}", "hot")
          |                     ^
    "#]],
    );
}

#[test]
fn pipes_are_read() {
    let mut command = xlazy();
    command.arg("eval");
    check(
        piped(command, "let a = 2;\na * 21\n"),
        0,
        expect![[r#"
        42
    "#]],
        expect![[""]],
    );
    let mut command = xlazy();
    command.arg("repl");
    let cells = "fn twice(n: i32) -> i32 {\n    n * 2\n}\nlet a = twice(4);\na\n";
    check(
        piped(command, cells),
        0,
        expect![[r#"
        8
    "#]],
        expect![[""]],
    );
}

#[test]
fn a_notebook_is_run_and_written() {
    let folder = std::env::temp_dir().join(format!("xlazy-run-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let code = |source: &str| json!({"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": null});
    let cells = [
        code("let x = 5usize;\nprintln!(\"printed\");"),
        code("std::fs::read_to_string(\"beside.txt\").unwrap().trim().len() + x"),
        code("%nope"),
    ];
    let notebook = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells});
    std::fs::write(folder.join("in.ipynb"), notebook.to_string()).unwrap();
    std::fs::write(folder.join("beside.txt"), "four\n").unwrap();
    let done =
        xlazy().arg("run").arg(folder.join("in.ipynb")).arg("-o").arg(folder.join("out.ipynb")).output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let written: Value = serde_json::from_slice(&std::fs::read(folder.join("out.ipynb")).unwrap()).unwrap();
    assert_eq!(written["cells"][1]["outputs"][0]["data"]["text/plain"], json!(["9"]));
    assert_eq!(written["cells"][2]["outputs"][0]["ename"], "UnknownMagic");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "printed\n", "results are in the file");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_notebook_that_is_run_locks_its_dependencies_beside_it() {
    let folder = std::env::temp_dir().join(format!("xlazy-lock-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let counter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cells/crates/counter").canonicalize().unwrap();
    let source = format!(":dep counter = {{ path = {:?} }}\ncounter::count()", counter.display().to_string());
    let cell = json!({"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": null});
    let notebook = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]});
    std::fs::write(folder.join("mine.ipynb"), notebook.to_string()).unwrap();
    let mut command = xlazy();
    command.env("XLAZY_CACHE", folder.join("cache")).arg("run").arg(folder.join("mine.ipynb"));
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let lock = std::fs::read_to_string(folder.join("mine.lock")).expect("a lock beside the notebook");
    assert!(lock.contains("name = \"counter\"") && lock.contains("name = \"tick\""), "{lock}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Two crates in two cells: the second is asked for when the first is there.
#[test]
fn a_notebook_builds_tomorrow_what_it_built_today_and_statics_stay() {
    let folder = std::env::temp_dir().join(format!("xlazy-tomorrow-{}", std::process::id()));
    let crates = folder.join("crates");
    let publish = |name: &str, version: &str, text: &str| {
        let dir = crates.join(format!("{name}-{version}"));
        std::fs::create_dir_all(dir.join("src")).unwrap();
        let manifest = format!("[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2021\"\n");
        std::fs::write(dir.join("Cargo.toml"), manifest).unwrap();
        std::fs::write(dir.join("src/lib.rs"), text).unwrap();
        std::fs::write(dir.join(".cargo-checksum.json"), r#"{"files":{},"package":null}"#).unwrap();
    };
    let version = |n: u32| {
        format!(
            "use std::sync::atomic::{{AtomicU32, Ordering}};\npub static CALLS: AtomicU32 = AtomicU32::new(0);\n\
             pub fn version() -> (u32, u32) {{ ({n}, CALLS.fetch_add(1, Ordering::SeqCst) + 1) }}"
        )
    };
    publish("one", "1.0.0", &version(1));
    publish("two", "1.0.0", &version(1));
    let registry = format!(
        "[source.crates-io]\nreplace-with = \"here\"\n[source.here]\ndirectory = {:?}\n",
        crates.display().to_string()
    );
    std::fs::create_dir_all(folder.join("cargo")).unwrap();
    std::fs::write(folder.join("cargo/config.toml"), registry).unwrap();
    let cells = [":dep one = \"1\"", "one::version()", ":dep two = \"1\"", "(one::version(), two::version())"];
    let cell =
        |c: &&str| json!({"cell_type": "code", "source": c, "metadata": {}, "outputs": [], "execution_count": null});
    let cells: Vec<Value> = cells.iter().map(cell).collect();
    let notebook = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells});
    std::fs::write(folder.join("mine.ipynb"), notebook.to_string()).unwrap();
    let run = |cache: &str| {
        let mut command = xlazy();
        command.env("XLAZY_CACHE", folder.join(cache)).env("CARGO_HOME", folder.join("cargo"));
        let out = folder.join("out.ipynb");
        let done = command.arg("run").arg(folder.join("mine.ipynb")).arg("-o").arg(&out).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        let written: Value = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap();
        let said = written["cells"].to_string();
        (written["cells"][3]["outputs"][0]["data"]["text/plain"].clone(), said)
    };
    let (today, said) = run("today");
    assert_eq!(today, json!(["((1, 2), (1, 1))"]), "{said}");
    publish("one", "1.1.0", &version(11));
    publish("two", "1.1.0", &version(11));
    assert_eq!(run("elsewhere").0, json!(["((1, 2), (1, 1))"]), "another machine, with newer versions to be had");
    // What is all there needs no cargo.
    let (again, said) = run("elsewhere");
    assert_eq!(again, json!(["((1, 2), (1, 1))"]));
    assert!(!said.contains("Finished"), "{said}");
    std::fs::remove_file(folder.join("mine.lock")).unwrap();
    assert_eq!(run("new").0, json!(["((11, 2), (11, 1))"]), "without a lock it is the newest");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_doctor_runs_a_cell() {
    let done = xlazy().args(["doctor", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let status = |name: &str| {
        let check = report["checks"].as_array().unwrap().iter().find(|c| c["name"] == name);
        check.unwrap_or_else(|| panic!("no check of {name}: {report:#}"))["status"].clone()
    };
    for name in ["xlazy", "runtime", "rustc", "linker", "first cell"] {
        assert_eq!(status(name), "ok", "{name}: {report:#}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_told_before_anything_runs() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("unwritten-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let cell = r#"{"cell_type": "code", "source": "println!(\"runs\")", "metadata": {}, "outputs": [], "execution_count": null}"#;
    let notebook = format!(r#"{{"nbformat": 4, "nbformat_minor": 5, "metadata": {{}}, "cells": [{cell}]}}"#);
    std::fs::write(folder.join("n.ipynb"), notebook).unwrap();
    for output in ["/proc/n.html", "nowhere/n.ipynb"] {
        let done = Command::new(env!("CARGO_BIN_EXE_xlazy"))
            .args(["run", "n.ipynb", "-o", output])
            .current_dir(&folder)
            .output()
            .expect("xlazy runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && said.contains(&format!("{output} cannot be written: ")), "{said}");
        assert!(!said.contains("[1/1]") && !String::from_utf8_lossy(&done.stdout).contains("runs"), "{said}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_export_writes_over_its_own_and_nothing_else() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("export-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("mine/src")).unwrap();
    let cell =
        r#"{"cell_type": "code", "source": "let x = 1;", "metadata": {}, "outputs": [], "execution_count": null}"#;
    let notebook = format!(r#"{{"nbformat": 4, "nbformat_minor": 5, "metadata": {{}}, "cells": [{cell}]}}"#);
    std::fs::write(folder.join("n.ipynb"), notebook).unwrap();
    std::fs::write(folder.join("mine/src/main.rs"), "fn main() {}").unwrap();
    let export = |arguments: &[&str]| {
        let done =
            Command::new(env!("CARGO_BIN_EXE_xlazy")).arg("export").args(arguments).current_dir(&folder).output();
        let done = done.expect("xlazy runs");
        (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (good, said) = export(&["n.ipynb", "-o", "mine"]);
    assert!(
        !good && said.contains("mine/src/main.rs is not from `xlazy export`") && said.contains("--force"),
        "{said}"
    );
    let main = || std::fs::read_to_string(folder.join("mine/src/main.rs")).unwrap();
    assert_eq!(main(), "fn main() {}");
    assert!(export(&["n.ipynb", "-o", "mine", "--force"]).0 && main().contains("let x = 1;"));
    assert!(export(&["n.ipynb", "-o", "mine"]).0, "it is its own now");
    let (good, said) = export(&["n.ipynb", "-o", "mine", "--runtime", "gone"]);
    assert!(good && said.contains("gone/Cargo.toml, so the project does not build here"), "{said}");
    // What cells read goes along; what cannot is told.
    std::fs::create_dir_all(folder.join("data")).unwrap();
    std::fs::write(folder.join("data/n.csv"), "1,2").unwrap();
    std::fs::write(folder.join("../beside.csv"), "3").unwrap();
    let code = r#"let a = [\"data/n.csv\", \"../beside.csv\", \"gone.npy\", \"no file\", \"{a}.csv\"];"#;
    let notebook = std::fs::read_to_string(folder.join("n.ipynb")).unwrap().replace("let x = 1;", code);
    std::fs::write(folder.join("n.ipynb"), notebook).unwrap();
    let (good, said) = export(&["n.ipynb", "-o", "mine"]);
    let told: Vec<&str> = said.lines().collect();
    assert!(good && told.len() == 3, "{said}");
    assert!(
        told[0].contains("took data/n.csv along (3 B)") && told[1].contains("../beside.csv, which stays where"),
        "{said}"
    );
    assert!(told[2].contains("cell 1 names gone.npy, which is not there"), "{said}");
    assert_eq!(std::fs::read_to_string(folder.join("mine/data/n.csv")).unwrap(), "1,2");
    std::fs::remove_dir_all(folder).unwrap();
}
