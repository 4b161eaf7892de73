//! `--engine evcxr` with a program in evcxr's place: what goes over the seam, and what becomes of an interrupt and of its end.
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use xlazy_kernel::engine::{Engine, Event, Reply, Request};
use xlazy_kernel::evcxr::Evcxr;

/// Answers as `engines/evcxr` does: `quit` ends it, `wait` runs until it is interrupted, `fail` is refused, all else is shown.
const CHILD: &str = r#"#!/usr/bin/env python3
import json, sys
say = lambda what: print(json.dumps(what), flush=True)
say({"ready": True})
for line in iter(sys.stdin.readline, ""):
    code = json.loads(line).get("code")
    if code is None:
        continue
    if code == "quit":
        sys.exit()
    say({"stream": "stdout", "text": "runs\n"})
    error = {"name": "CompileError", "message": "no", "traceback": ["no", "never"]}
    if code == "wait":
        while "code" in json.loads(sys.stdin.readline()):
            pass
        error["name"] = "SessionDied"
    say({"done": {"error": error} if code in ("wait", "fail") else {"data": {"text/plain": code, "text/html": "<b>"}}})
"#;

fn child() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("evcxr-{}.py", std::process::id()));
    std::fs::write(&path, CHILD).expect("a script");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it may run");
    path
}

fn run(engine: &Evcxr, code: &str, events: &mut dyn FnMut(Event)) -> Reply {
    engine.execute(&Request { code: code.into(), ..Request::default() }, events)
}

#[test]
#[allow(unsafe_code)]
fn cells_go_over_the_seam() {
    let path = child();
    // SAFETY: no other thread of the test runs yet.
    unsafe { std::env::set_var("XLAZY_EVCXR", &path) };
    let engine = Evcxr::start().unwrap_or_else(|f| panic!("{}", f.message));
    let mut seen = Vec::new();
    let reply = run(&engine, "1 + 1", &mut |event| match event {
        Event::Stream { stderr: false, text } => seen.push(text),
        Event::Result(bundle) => seen.push(format!("{} {:?}", bundle.plain(), bundle.get("text/html"))),
        other => panic!("{other:?}"),
    });
    assert_eq!((reply, seen), (Reply::Ok, vec!["runs\n".to_owned(), "1 + 1 Some(\"<b>\")".to_owned()]));
    let Reply::Error(failure) = run(&engine, "fail", &mut |_| {}) else { panic!("it is refused") };
    assert_eq!((&*failure.name, failure.traceback.len()), ("CompileError", 2));
    assert_eq!(engine.evaluate("x").map(|b| b.plain().to_owned()).ok().as_deref(), Some("x"));
    assert!(!engine.interrupt(), "nothing runs");
    std::thread::scope(|scope| {
        let (said, hear) = std::sync::mpsc::channel();
        let engine = &engine;
        let waits = scope.spawn(move || run(engine, "wait", &mut |_| said.send(()).unwrap_or_default()));
        hear.recv_timeout(Duration::from_secs(20)).expect("it runs");
        assert!(engine.interrupt());
        assert_eq!(waits.join().expect("it ends"), Reply::Interrupted);
    });
    assert_eq!(run(&engine, "after", &mut |_| {}), Reply::Ok);
    let Reply::Error(failure) = run(&engine, "quit", &mut |_| {}) else { panic!("it has ended") };
    assert_eq!(failure.name, "SessionDied");
    engine.restart().unwrap_or_else(|f| panic!("{}", f.message));
    assert_eq!(run(&engine, "again", &mut |_| {}), Reply::Ok);
    engine.shutdown();

    let eval = |path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xlazy"));
        let out = command.args(["eval", "--engine", "evcxr", "some cell"]).env("XLAZY_EVCXR", path).output();
        let out = out.expect("xlazy runs");
        (String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    assert_eq!(eval(&path.display().to_string()).0, "runs\nsome cell\n");
    assert!(eval("/nowhere").1.contains("cargo build --release --manifest-path engines/evcxr/Cargo.toml"));
    std::fs::remove_file(path).expect("the script goes");
}
