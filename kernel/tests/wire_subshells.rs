//! Subshells (JEP 91): what is asked on one is answered while a cell runs on another.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "protocol/mock_engine.rs"]
mod mock_engine;

use client::Kernel;
use serde_json::{Value, json};

fn create(kernel: &mut Kernel) -> Value {
    let reply = kernel.ask_control_only("create_subshell_request", json!({}));
    assert_eq!((&reply["msg_type"], &reply["content"]["status"]), (&json!("create_subshell_reply"), &json!("ok")));
    reply["content"]["subshell_id"].clone()
}

/// A kernel whose main shell runs a cell that only an interrupt ends.
fn busy() -> Kernel {
    let mut kernel = Kernel::start();
    kernel.send_shell("execute_request", json!({"code": "print started\nwait"}));
    kernel.iopub_until(|m| m["msg_type"] == "stream");
    kernel
}

fn end_the_cell(kernel: &mut Kernel) {
    kernel.ask_control_only("interrupt_request", json!({}));
    assert_eq!(kernel.shell()["content"]["ename"], "Interrupted");
}

#[test]
fn they_are_made_listed_and_deleted() {
    let mut kernel = Kernel::start();
    let info = kernel.ask("kernel_info_request", json!({}));
    assert_eq!(info["content"]["supported_features"], json!(["kernel subshells"]));
    let (one, two) = (create(&mut kernel), create(&mut kernel));
    assert_ne!(one, two);
    let list = |kernel: &mut Kernel| {
        let mut ids = kernel.ask_control_only("list_subshell_request", json!({}))["content"]["subshell_id"].clone();
        ids.as_array_mut().unwrap().sort_by_key(Value::to_string);
        ids
    };
    let mut both = [one.clone(), two.clone()];
    both.sort_by_key(Value::to_string);
    assert_eq!(list(&mut kernel), json!(both));
    let delete = |kernel: &mut Kernel, id: &Value| {
        kernel.ask_control_only("delete_subshell_request", json!({"subshell_id": id}))["content"].clone()
    };
    assert_eq!(delete(&mut kernel, &one), json!({"status": "ok"}));
    assert_eq!(delete(&mut kernel, &one)["ename"], "SubshellNotFound");
    assert_eq!(list(&mut kernel), json!([two]));
    kernel.send_to(&one, "execute_request", json!({"code": "1"}));
    let reply = kernel.shell();
    assert_eq!((&reply["msg_type"], &reply["content"]["ename"]), (&json!("execute_reply"), &json!("SubshellNotFound")));
    while create_fails(&mut kernel).is_none() {}
    assert_eq!(list(&mut kernel).as_array().unwrap().len(), 256, "there is an end to it");
}

fn create_fails(kernel: &mut Kernel) -> Option<Value> {
    let content = kernel.ask_control_only("create_subshell_request", json!({}))["content"].clone();
    (content["status"] == "error").then_some(content)
}

#[test]
fn what_reads_is_answered_while_a_cell_runs() {
    let mut kernel = busy();
    let id = create(&mut kernel);
    for (ask, content) in [
        ("complete_request", json!({"code": "pri", "cursor_pos": 3})),
        ("inspect_request", json!({"code": "print", "cursor_pos": 2})),
        ("is_complete_request", json!({"code": "1"})),
        ("history_request", json!({"hist_access_type": "tail", "n": 3})),
        ("kernel_info_request", json!({})),
        ("comm_info_request", json!({})),
    ] {
        kernel.send_to(&id, ask, content);
        let reply = kernel.shell();
        assert_eq!(reply["parent_header"]["subshell_id"], id);
        assert_eq!(reply["msg_type"].as_str().unwrap(), ask.replace("request", "reply"));
        assert_ne!(reply["content"]["status"], "error", "{reply}");
    }
    kernel.send_to(&id, "execute_request", json!({"code": "read metrics"}));
    let reply = kernel.shell();
    assert_eq!((&reply["content"]["status"], &reply["content"]["execution_count"]), (&json!("ok"), &json!(1)));
    let seen = kernel.iopub_until(|m| m["msg_type"] == "execute_result");
    assert_eq!(seen.last().unwrap()["content"]["data"]["text/plain"], "metrics");
    end_the_cell(&mut kernel);
}

#[test]
fn code_waits_for_its_turn_and_an_interrupt_ends_the_wait() {
    let mut kernel = busy();
    let id = create(&mut kernel);
    kernel.send_to(&id, "execute_request", json!({"code": "1+1"}));
    kernel.iopub_until(|m| m["msg_type"] == "execute_input" && m["parent_header"]["subshell_id"] == id);
    kernel.ask_control_only("interrupt_request", json!({}));
    for _ in 0..2 {
        assert_eq!(kernel.shell()["content"]["ename"], "Interrupted");
    }
    kernel.send_to(&id, "execute_request", json!({"code": "1+1"}));
    assert_eq!(kernel.shell()["content"]["status"], "ok");
}

#[test]
fn each_counts_its_own_cells_and_aborts_its_own_queue() {
    let mut kernel = Kernel::start();
    assert_eq!(kernel.execute(json!({"code": "1"})).0["content"]["execution_count"], 1);
    let id = create(&mut kernel);
    // The subshell's cell asks; what the main shell is sent meanwhile is not aborted by the error that follows.
    kernel.send_to(&id, "execute_request", json!({"code": "input go?\nerror first", "allow_stdin": true}));
    kernel.send_to(&id, "execute_request", json!({"code": "2"}));
    kernel.send_shell("execute_request", json!({"code": "3"}));
    let asked = kernel.stdin();
    assert_eq!((&asked["content"]["prompt"], &asked["parent_header"]["subshell_id"]), (&json!("go?"), &id));
    let answer = kernel.frames_to(&id, "input_reply", json!({"value": "yes"}));
    kernel.send_stdin_frames(answer);
    let mut replies: Vec<(bool, Value, Value)> = (0..3)
        .map(|_| kernel.shell())
        .map(|r| {
            let content = &r["content"];
            (r["parent_header"]["subshell_id"] == id, content["status"].clone(), content["execution_count"].clone())
        })
        .collect();
    // Among one shell's replies the order is that of the requests; the two shells do not wait for each other.
    replies.sort_by_key(|r| r.0);
    let want =
        [(false, json!("ok"), json!(2)), (true, json!("error"), json!(1)), (true, json!("aborted"), Value::Null)];
    assert_eq!(replies, want);
}

#[test]
fn a_shutdown_ends_all_of_them() {
    let mut kernel = busy();
    for _ in 0..3 {
        let id = create(&mut kernel);
        kernel.send_to(&id, "execute_request", json!({"code": "wait"}));
    }
    let reply = kernel.ask_control_only("shutdown_request", json!({"restart": false}));
    assert_eq!(reply["content"]["status"], "ok");
    kernel.join();
}
