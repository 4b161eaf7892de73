//! Widgets over real sockets, as a front end sees them: Jupyter's widget messaging protocol 2.1.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
mod eval_support;
#[path = "protocol/mock_engine.rs"]
#[allow(dead_code)]
mod mock_engine;

use client::{Kernel, Setup};
use serde_json::{Value, json};
use std::sync::Arc;

const VIEW: &str = "application/vnd.jupyter.widget-view+json";

fn kernel() -> Kernel {
    Kernel::start_with(Setup { engine: Some(Arc::new(eval_support::engine())), ..Setup::default() })
}

/// Runs a cell; its messages, and the header's id that their parent has.
fn cell(kernel: &mut Kernel, code: &str) -> (Vec<Value>, Value) {
    let (reply, outputs) = kernel.execute(json!({"code": code}));
    assert_eq!(reply["content"]["status"], "ok", "{code}\n{reply}");
    (outputs, reply["parent_header"]["msg_id"].clone())
}

fn of<'a>(outputs: &'a [Value], kind: &str) -> Vec<&'a Value> {
    outputs.iter().filter(|m| m["msg_type"] == kind).collect()
}

fn opened(outputs: &[Value]) -> (Value, Value) {
    let [open] = of(outputs, "comm_open")[..] else { panic!("one comm is opened: {outputs:?}") };
    assert_eq!(open["content"]["target_name"], "jupyter.widget");
    (open["content"]["comm_id"].clone(), open["content"]["data"]["state"].clone())
}

/// What a front end does to a widget, and what comes of it.
fn touch(kernel: &mut Kernel, id: &Value, data: Value) -> Vec<Value> {
    kernel.send_shell("comm_msg", json!({"comm_id": id, "data": data}));
    kernel.until_idle()
}

fn moved(value: impl Into<Value>) -> Value {
    json!({"method": "update", "state": {"value": value.into()}, "buffer_paths": []})
}

fn printed(outputs: &[Value]) -> String {
    of(outputs, "stream").iter().map(|m| m["content"]["text"].as_str().unwrap()).collect()
}

#[test]
fn a_slider_is_shown_moved_and_read() {
    let mut kernel = kernel();
    let code = "let lr = Slider::new(\"rate\", 0..=10).at(3);\nlr.on_change(|v| println!(\"now {v}\"));\nlr";
    let (shown, showing) = cell(&mut kernel, code);
    let (id, state) = opened(&shown);
    assert_eq!((&state["_model_name"], &state["_view_module"]), (&json!("AnyModel"), &json!("anywidget")));
    assert_eq!([&state["min"], &state["max"], &state["step"], &state["value"]], [0, 10, 1, 3].map(|n| n).each_ref());
    let data = &of(&shown, "execute_result")[0]["content"]["data"];
    assert_eq!(data[VIEW], json!({"version_major": 2, "version_minor": 1, "model_id": id}));
    assert_eq!(data["text/plain"], "rate: 3 (0 to 10)");
    // Moved by hand: every front end hears of it, and what the handler prints stands below the cell that shows the slider.
    let seen = touch(&mut kernel, &id, moved(7));
    let echo = &of(&seen, "comm_msg")[0]["content"]["data"];
    assert_eq!(*echo, json!({"method": "echo_update", "state": {"value": 7}, "buffer_paths": []}));
    assert_eq!(printed(&seen), "now 7\n");
    assert_eq!(of(&seen, "stream")[0]["parent_header"]["msg_id"], showing);
    // Where it stands already, nobody is called.
    assert_eq!(printed(&touch(&mut kernel, &id, moved(7))), "");
    assert_eq!(printed(&cell(&mut kernel, "println!(\"{}\", lr.value())").0), "7\n");
    // By code: the front ends hear of it, and no handler does.
    let set = cell(&mut kernel, "lr.set(50);").0;
    let told = &of(&set, "comm_msg")[0]["content"]["data"];
    assert_eq!(*told, json!({"method": "update", "state": {"value": 10}, "buffer_paths": []}));
    assert_eq!(printed(&set), "");
    let close = cell(&mut kernel, "lr.close();").0;
    assert_eq!(of(&close, "comm_close")[0]["content"]["comm_id"], id);
    // A front end that is late is told so.
    assert!(of(&touch(&mut kernel, &id, moved(1)), "comm_msg").is_empty());
}

#[test]
fn handlers_fail_are_interrupted_and_run_tensors_as_cells_do() {
    let mut kernel = kernel();
    let code = "let b = Button::new(\"go\");\nlet mut pressed = 0;\nb.on_click(move || {\n    pressed += 1;\n    \
                if pressed == 2 { tensor([1.0]).matmul(&tensor([[1.0], [2.0]])); }\n    \
                display(&(tensor([1.0, 2.0]) * pressed as f32));\n});\nb";
    let (shown, showing) = cell(&mut kernel, code);
    let (id, _) = opened(&shown);
    let click = json!({"method": "custom", "content": {"event": "click"}});
    let display = |seen: &[Value]| {
        let one = of(seen, "display_data");
        one.iter().map(|m| m["content"]["data"]["text/plain"].as_str().unwrap().to_owned()).collect::<String>()
    };
    assert!(display(&touch(&mut kernel, &id, click.clone())).starts_with("[1"));
    let failed = touch(&mut kernel, &id, click.clone());
    let error = of(&failed, "error")[0];
    assert_eq!(error["parent_header"]["msg_id"], showing);
    let text = error["content"]["traceback"].to_string();
    assert!(text.contains("matmul") && text.contains("cell 1") && text.contains("line 5"), "{text}");
    // It goes on being called, with what it holds.
    let third = touch(&mut kernel, &id, click);
    assert!(display(&third).contains("[3"), "{third:?}");
    assert!(of(&third, "error").is_empty());
}

#[test]
fn a_page_that_is_loaded_again_finds_the_widgets_and_a_new_session_has_none() {
    let mut kernel = kernel();
    let (shown, _) = cell(
        &mut kernel,
        "let w = widget!(\"export default {}\", shape = [2], data = xlazy::widget::State::Bytes(vec![1, 2])); w",
    );
    let (id, _) = opened(&shown);
    let info = kernel.ask("comm_info_request", json!({"target_name": "jupyter.widget"}));
    assert_eq!(info["content"]["comms"], json!({id.as_str().unwrap(): {"target_name": "jupyter.widget"}}));
    let seen = touch(&mut kernel, &id, json!({"method": "request_state"}));
    let told = of(&seen, "comm_msg")[0];
    assert_eq!(told["content"]["data"]["method"], "update");
    assert_eq!(told["content"]["data"]["buffer_paths"], json!([["data"]]));
    kernel.send_shell("comm_open", json!({"comm_id": "c", "target_name": "jupyter.widget.control", "data": {}}));
    kernel.until_idle();
    let seen = touch(&mut kernel, &json!("c"), json!({"method": "request_states"}));
    let told = &of(&seen, "comm_msg")[0]["content"]["data"];
    assert_eq!((&told["method"], &told["buffer_paths"]), (&json!("update_states"), &json!([[id, "state", "data"]])));
    assert_eq!(told["states"][id.as_str().unwrap()]["model_module"], "anywidget");
    assert_eq!(told["states"][id.as_str().unwrap()]["state"]["shape"], json!([2]));
    // The session ends, and the widget with it.
    let (reply, _) = kernel.execute(json!({"code": "std::process::exit(3)"}));
    assert_eq!(reply["content"]["ename"], "SessionDied");
    let seen = touch(&mut kernel, &id, moved(1));
    assert_eq!(of(&seen, "comm_close")[0]["content"]["comm_id"], id);
    let info = kernel.ask("comm_info_request", json!({"target_name": "jupyter.widget"}));
    assert_eq!(info["content"]["comms"], json!({}));
}

#[test]
fn a_loop_that_runs_sees_the_slider_move() {
    let mut kernel = kernel();
    let (shown, _) = cell(
        &mut kernel,
        "let stop = Checkbox::new(\"stop\", false);\nstop.on_change(|v| println!(\"stopped: {v}\"));\nstop",
    );
    let (id, _) = opened(&shown);
    kernel.send_shell(
        "execute_request",
        json!({"code": "println!(\"go\"); while !stop.value() { sleep(std::time::Duration::from_millis(1)); } println!(\"seen\");"}),
    );
    kernel.iopub_until(|m| m["msg_type"] == "stream");
    // As JupyterLab does it: comms have a subshell of their own.
    let subshell = kernel.ask_control_only("create_subshell_request", json!({}))["content"]["subshell_id"].clone();
    kernel.send_to(&subshell, "comm_msg", json!({"comm_id": id, "data": moved(true)}));
    let seen = kernel.iopub_until(|m| printed(std::slice::from_ref(m)).contains("stopped"));
    assert_eq!(printed(&seen), "seen\nstopped: true\n");
    assert_eq!(kernel.shell()["content"]["status"], "ok");
}
