//! Real cells over real sockets: what is answered beside a running cell, the order of output, output between cells, and
//! questions to the user.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
mod eval_support;
#[path = "protocol/mock_engine.rs"]
#[allow(dead_code)]
mod mock_engine;
#[path = "../../tests/support/schema.rs"]
mod schema;

use client::{Folder, Kernel, Setup};
use nix::sys::stat::Mode;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

fn kernel() -> Kernel {
    Kernel::start_with(Setup { engine: Some(Arc::new(eval_support::engine())), ..Setup::default() })
}

fn ok(kernel: &mut Kernel, code: &str) -> Vec<Value> {
    let (reply, outputs) = kernel.execute(json!({"code": code}));
    assert_eq!(reply["content"]["status"], "ok", "{code}\n{reply}");
    outputs
}

/// What was printed and displayed, in order: the kind and the text of each.
fn shown(outputs: &[Value]) -> String {
    let one = |m: &Value| match m["msg_type"].as_str().unwrap() {
        "stream" => m["content"]["text"].as_str().unwrap().to_owned(),
        "display_data" => format!("[{}]\n", m["content"]["data"]["text/plain"].as_str().unwrap()),
        _ => String::new(),
    };
    outputs.iter().map(one).collect()
}

/// A FIFO: whoever reads it waits until the test opens its other end.
fn fifo(folder: &Folder) -> PathBuf {
    let path = folder.path().join("fifo");
    nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
    path
}

fn open(fifo: &PathBuf) {
    std::fs::OpenOptions::new().write(true).open(fifo).unwrap();
}

#[test]
fn questions_are_answered_beside_a_running_cell_and_rust_waits_for_its_end() {
    let (mut kernel, folder) = (kernel(), Folder::new());
    let fifo = fifo(&folder);
    ok(&mut kernel, "let learning_rate = 0.5f32; let t = Tensor::ones([2]) * learning_rate; t.to_vec::<f32>()");
    kernel.send_shell("execute_request", json!({"code": format!("println!(\"go\"); std::fs::read({fifo:?})?; 1")}));
    kernel.iopub_until(|m| m["msg_type"] == "stream");
    let id = kernel.ask_control_only("create_subshell_request", json!({}))["content"]["subshell_id"].clone();
    let magics = [
        ("%metrics", "UncachedCompile"),
        ("%pending", "pending"),
        ("%compiles", "cell 1"),
        ("%vars", "learning_rate"),
        ("%why", "cell 1"),
        ("%graph", ""),
        ("%stablehlo", "stablehlo"),
        ("%budget", "no budget"),
        ("%vars --json\n%heal", "healing is on"),
    ];
    for (code, says) in magics {
        kernel.send_to(&id, "execute_request", json!({"code": code}));
        let reply = kernel.shell();
        assert_eq!(
            (&reply["parent_header"]["subshell_id"], &reply["content"]["status"]),
            (&id, &json!("ok")),
            "{reply}"
        );
        let seen = kernel
            .iopub_until(|m| m["content"]["execution_state"] == "idle" && m["parent_header"]["subshell_id"] == id);
        assert!(shown(&seen).contains(says), "{code} shows {}", shown(&seen));
    }
    kernel.send_to(&id, "execute_request", json!({"code": "%help"}));
    assert!(kernel.shell()["content"]["payload"][0]["data"]["text/plain"].as_str().unwrap().contains("%metrics"));
    kernel.send_to(&id, "complete_request", json!({"code": "learn", "cursor_pos": 5}));
    assert_eq!(kernel.shell()["content"]["matches"], json!(["learning_rate"]));
    kernel.send_to(&id, "inspect_request", json!({"code": "Tensor::matmul", "cursor_pos": 12}));
    assert!(kernel.shell()["content"]["data"].to_string().contains("matmul"));
    // These change something, or run code.
    for code in ["learning_rate * 2.0", "%metrics clear", "%graph t"] {
        kernel.send_to(&id, "execute_request", json!({"code": code}));
    }
    open(&fifo);
    let mut order: Vec<bool> = (0..4)
        .map(|_| kernel.shell())
        .map(|r| {
            assert_eq!(r["content"]["status"], "ok", "{r}");
            r["parent_header"]["subshell_id"] == id
        })
        .collect();
    assert!(!order.remove(0), "the cell that ran ends first");
    assert_eq!(order, [true; 3]);
}

#[test]
fn displays_keep_their_place_among_what_others_write_to_the_descriptors() {
    let mut kernel = kernel();
    let code = r#"
use std::io::Write;
for i in 0..40 {
    println!("print {i}");
    display(&Bundle::text(format!("display {i}")));
    writeln!(std::io::stdout().lock(), "raw {i}")?;
    display(&Bundle::text(format!("second {i}")));
    std::process::Command::new("sh").args(["-c", &format!("echo child {i}")]).status()?;
    display(&Bundle::text(format!("third {i}")));
}"#;
    let want: String =
        (0..40).map(|i| format!("print {i}\n[display {i}]\nraw {i}\n[second {i}]\nchild {i}\n[third {i}]\n")).collect();
    assert_eq!(shown(&ok(&mut kernel, code)), want);
}

#[test]
fn a_thread_that_outlives_its_cell_is_heard_when_it_speaks() {
    let (mut kernel, folder) = (kernel(), Folder::new());
    let fifo = fifo(&folder);
    kernel.send_shell(
        "execute_request",
        json!({"code": format!(
            "std::thread::spawn(|| {{ std::fs::read({fifo:?}).unwrap(); println!(\"late\"); display(&Bundle::text(\"shown\")); \
             panic!(\"late too\") }}); 1"
        )}),
    );
    let cell = kernel.shell()["parent_header"]["msg_id"].clone();
    kernel.until_idle();
    open(&fifo);
    // Nothing else is run: it comes by itself, as the output of the cell that ran last.
    let mut seen = kernel.iopub_until(|m| m["content"]["text"].to_string().contains("late too"));
    seen.iter().for_each(|m| assert_eq!(m["parent_header"]["msg_id"], cell));
    seen.pop();
    assert!(shown(&seen).starts_with("late\n[shown]\n"), "{}", shown(&seen));
    assert_eq!(shown(&ok(&mut kernel, "println!(\"{}\", 1 + 1)")), "2\n");
}

#[test]
fn a_child_process_that_outlives_its_cell_and_writes_no_text_is_heard() {
    let (mut kernel, folder) = (kernel(), Folder::new());
    let fifo = fifo(&folder);
    let script = format!("cat '{}'; printf 'late \\377\\376 bytes\\n'", fifo.display());
    ok(&mut kernel, &format!("std::process::Command::new(\"sh\").args([\"-c\", {script:?}]).spawn()?;"));
    open(&fifo);
    let seen = kernel.iopub_until(|m| m["msg_type"] == "stream");
    assert_eq!(seen.last().unwrap()["content"]["text"], "late \u{fffd}\u{fffd} bytes\n");
}

#[test]
fn standard_input_is_the_user() {
    let mut kernel = kernel();
    let code =
        "let mut line = String::new(); let n = std::io::stdin().read_line(&mut line)?; println!(\"{n} {line:?}\");";
    kernel.send_shell("execute_request", json!({"code": code, "allow_stdin": true}));
    let asked = kernel.answer_input("", "Ada");
    assert_eq!(asked["content"]["password"], false);
    assert_eq!(kernel.shell()["content"]["status"], "ok");
    assert_eq!(shown(&kernel.until_idle()), "4 \"Ada\\n\"\n");
    kernel.send_shell("execute_request", json!({"code": "input_password(\"key? \")?.len()", "allow_stdin": true}));
    assert_eq!(kernel.answer_input("key? ", "secret")["content"]["password"], true);
    assert_eq!(kernel.shell()["content"]["status"], "ok");
    kernel.until_idle();
}

#[test]
fn where_the_front_end_does_not_allow_questions_they_are_refused_with_a_sentence() {
    let mut kernel = kernel();
    for ask in ["input(\"? \")?", "input_password(\"? \")?", "std::io::stdin().read_line(&mut String::new())?"] {
        let code = format!("let kept = 1; {ask}; kept");
        let (reply, outputs) = kernel.execute(json!({"code": code, "allow_stdin": false}));
        assert_eq!(reply["content"]["status"], "error", "{ask}");
        let said = format!("{}{}", reply["content"]["evalue"].as_str().unwrap(), shown(&outputs));
        assert!(said.contains("front end"), "{ask}: {said}");
    }
    ok(&mut kernel, "1 + 1");
}

/// A front end that opens a comm of the target `xlazy.events` hears of every sync and compilation, and no longer when it closes it.
#[test]
fn events_are_streamed_and_a_fix_is_the_next_cell() {
    let mut kernel = kernel();
    let schema = schema::Schema::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    kernel.send_shell("comm_open", json!({"comm_id": "e", "target_name": "xlazy.events", "data": {}}));
    assert!(kernel.until_idle().iter().all(|m| m["msg_type"] != "comm_close"));
    let comms = kernel.ask("comm_info_request", json!({"target_name": "xlazy.events"}));
    assert_eq!(comms["content"]["comms"], json!({"e": {"target_name": "xlazy.events"}}));
    let code = "let w = Tensor::ones([2]);\nfor n in [4, 4, 2] {\n    let x = Tensor::from_vec(vec![0.5f32; n * 2], [n, 2]);\n    (x * &w).sum().item();\n}";
    let outputs = ok(&mut kernel, code);
    let told: Vec<Value> = outputs
        .iter()
        .filter(|m| m["msg_type"] == "comm_msg" && m["content"]["comm_id"] == "e")
        .map(|m| schema.check("event", &m["content"]["data"].to_string()))
        .collect();
    let kinds = |kind: &str| told.iter().filter(|t| t["kind"] == kind).count();
    assert_eq!((kinds("compilation"), kinds("sync"), kinds("cell")), (2, 3, 1), "{told:#?}");
    let (reply, _) = kernel.execute(json!({"code": "%fix"}));
    let payload = &reply["content"]["payload"][0];
    assert_eq!((&payload["source"], &payload["replace"]), (&json!("set_next_input"), &json!(false)), "{reply}");
    assert!(payload["text"].as_str().unwrap().contains("[n, 2]).dynamic(0).buckets([4]);"), "{payload}");
    // The same by the comm: what a front end's own button sends.
    let ask = |kernel: &mut Kernel, comm: &str, fix: Value| -> Vec<Value> {
        kernel.send_shell("comm_msg", json!({"comm_id": comm, "data": {"fix": fix}}));
        let told = kernel.until_idle();
        told.iter().filter(|m| m["msg_type"] == "comm_msg").map(|m| m["content"]["data"].clone()).collect()
    };
    let told = ask(&mut kernel, "e", Value::Null);
    assert_eq!(told[0]["fix"]["cells"][0]["text"], payload["text"], "{told:#?}");
    let refused = ask(&mut kernel, "e", json!(99));
    assert_eq!(refused[0]["error"], "there is no compilation 99: so far there are 2");
    assert_eq!(ask(&mut kernel, "other", Value::Null), Vec::<Value>::new());
    kernel.send_shell("comm_close", json!({"comm_id": "e", "data": {}}));
    kernel.until_idle();
    let outputs = ok(&mut kernel, "w.exp().sum().item()");
    assert!(outputs.iter().all(|m| m["msg_type"] != "comm_msg"), "{outputs:?}");
}
