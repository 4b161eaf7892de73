//! Starting an engine in tests: the session process and the runtime beside the test binary are built first.
#[allow(dead_code)]
pub mod fixes;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use xlazy_kernel::engine::{Engine, Event, Failure, Reply, Request};
use xlazy_kernel::eval::RustEngine;
use xlazy_kernel::eval::install::Installation;

/// With XLAZY_PREBUILT they are taken as they are. Test runners build only what tests depend on; a cell needs `libxlazy.so` and the session process, too.
pub fn build_runtime() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        if std::env::var_os("XLAZY_PREBUILT").is_some() {
            return;
        }
        let exe = std::env::current_exe().expect("a test has a path");
        let profile_dir = exe.parent().and_then(Path::parent).expect("target/<profile>/deps/test");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "-p", "xlazy", "-p", "xlazy-session"]);
        cargo.arg("--target-dir").arg(profile_dir.parent().expect("target"));
        cargo.args(profile_dir.ends_with("release").then_some("--release"));
        cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace"));
        let built = cargo.status().is_ok_and(|s| s.success());
        assert!(built, "`cargo build -p xlazy -p xlazy-session` fails: cells cannot run without them");
    });
}

/// Compiles every cell anew, whatever earlier tests ran.
#[allow(dead_code)]
pub fn engine() -> RustEngine {
    start(None)
}

#[allow(dead_code)]
/// An engine that keeps compiled cells in that folder.
pub fn start(cell_cache: Option<PathBuf>) -> RustEngine {
    build_runtime();
    let with_cache = |mut install: Installation| {
        install.cell_cache = cell_cache;
        // Tests count compilations.
        install.program_cache = None;
        // One folder per test program: kernels of one folder take turns.
        install.dependencies =
            Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join(concat!("deps-", env!("CARGO_CRATE_NAME"))));
        RustEngine::start(install)
    };
    Installation::find().and_then(with_cache).unwrap_or_else(|f| panic!("{}", f.message))
}

/// What a cell did, as text: streams as they are, `=> ` before the result, `[display] ` before displays.
pub fn transcript(event: Event, out: &mut String) {
    let line_start = |out: &mut String| {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
    };
    match event {
        Event::Stream { text, .. } | Event::Told(text) => out.push_str(&text),
        Event::Result(bundle) => {
            line_start(out);
            out.push_str(&format!("=> {}\n", bundle.plain()));
        }
        Event::Display { bundle, id, update } => {
            line_start(out);
            let what = if update { "update" } else { "display" };
            let id = id.map(|i| format!(" {i}")).unwrap_or_default();
            out.push_str(&format!("[{what}{id}] {}\n", bundle.plain()));
        }
        Event::ClearOutput { .. } => out.push_str("[clear]\n"),
        Event::Input { answer, .. } => drop(answer.send(Ok("typed".into()))),
        Event::Page(bundle) => out.push_str(bundle.plain()),
        Event::NextInput(text) => {
            line_start(out);
            out.push_str(&format!("[next] {text}\n"));
        }
        Event::Comm(_) | Event::Insight { .. } => {}
    }
}

/// Runs a cell; its transcript and how it ended.
#[allow(dead_code)]
pub fn run(engine: &RustEngine, cell: u64, code: &str) -> (String, Reply) {
    let (out, reply, _) = run_watched(engine, cell, code);
    (out, reply)
}

/// As [`run`], and what the cell compiled, as data.
#[allow(dead_code)]
pub fn run_watched(engine: &RustEngine, cell: u64, code: &str) -> (String, Reply, Vec<Value>) {
    let (out, reply, cells) = run_told(engine, cell, code);
    (out, reply, cells.iter().flat_map(|c| c["compilations"].as_array().expect("a list").clone()).collect())
}

/// As [`run`], and what was told of the cell.
#[allow(dead_code)]
pub fn run_told(engine: &RustEngine, cell: u64, code: &str) -> (String, Reply, Vec<Value>) {
    let request = Request { code: code.into(), cell, store_history: true, allow_stdin: true, silent: false };
    let (mut out, mut cells) = (String::new(), Vec::new());
    let reply = engine.execute(&request, &mut |event| match &event {
        Event::Insight { kind, json } if kind == "cell" => cells.push(serde_json::from_str(json).expect("JSON")),
        _ => transcript(event, &mut out),
    });
    (out, reply, cells)
}

/// The failure's traceback as one text without colours.
#[allow(dead_code)]
pub fn plain(failure: &Failure) -> String {
    let text = failure.traceback.join("\n");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find("\x1b[") {
        out.push_str(&rest[..start]);
        let end = rest[start..].find('m').map_or(rest.len(), |i| start + i + 1);
        rest = &rest[end..];
    }
    out + rest
}

#[allow(dead_code)]
pub fn cells_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("tests/cells")
}
