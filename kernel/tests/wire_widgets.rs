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

#[test]
fn each_move_of_a_slider_reaches_a_running_cell_and_handlers_hear_of_the_last_one() {
    let mut kernel = kernel();
    let shown = |kernel: &mut Kernel, name: &str| {
        let code = format!(
            "let {name} = Slider::new(\"{name}\", 0..=9);\n{name}.on_change(|v| println!(\"{name} is {{v}}\"));\n{name}"
        );
        let (shown, showing) = cell(kernel, &code);
        (opened(&shown).0, showing)
    };
    let ((a, under_a), (b, under_b)) = (shown(&mut kernel, "a"), shown(&mut kernel, "b"));
    let code = "println!(\"go\"); let mut seen = 0;\nwhile seen < 9 {\n    if a.value() != seen { seen = a.value(); \
                println!(\"saw {seen}\"); }\n    sleep(std::time::Duration::from_millis(1));\n}";
    kernel.send_shell("execute_request", json!({"code": code}));
    kernel.iopub_until(|m| printed(std::slice::from_ref(m)) == "go\n");
    // On the channel of cells, as front ends do it that know nothing of subshells. The first widget touched is not the only one.
    kernel.send_shell("comm_msg", json!({"comm_id": b, "data": moved(5)}));
    for value in [3, 7, 9] {
        kernel.send_shell("comm_msg", json!({"comm_id": a, "data": moved(value)}));
        // One that waits for the end of a move before it sends the next one hears of it.
        kernel.iopub_until(|m| printed(std::slice::from_ref(m)) == format!("saw {value}\n"));
    }
    // A cell that was sent behind the moves is behind what comes of them.
    kernel.send_shell("execute_request", json!({"code": "println!(\"after\");"}));
    let seen = kernel.iopub_until(|m| printed(std::slice::from_ref(m)) == "after\n");
    assert_eq!(printed(&seen), "b is 5\na is 9\nafter\n");
    let under = |text: &str| {
        let one = of(&seen, "stream").into_iter().find(|m| m["content"]["text"] == text).unwrap();
        one["parent_header"]["msg_id"].clone()
    };
    assert_eq!((under("a is 9\n"), under("b is 5\n")), (under_a, under_b));
}

#[test]
fn a_handler_that_runs_for_long_sees_other_widgets_move() {
    let mut kernel = kernel();
    let code = "let (go, stop) = (Button::new(\"go\"), Checkbox::new(\"stop\", false));\nlet stops = stop.clone();\n\
                go.on_click(move || { println!(\"going\"); while !stops.value() { sleep(std::time::Duration::from_millis(1)); } \
                println!(\"stopped\"); });\ndisplay(&go);\nstop";
    let (shown, _) = cell(&mut kernel, code);
    let ids: Vec<Value> = of(&shown, "comm_open").iter().map(|m| m["content"]["comm_id"].clone()).collect();
    let click = json!({"method": "custom", "content": {"event": "click"}});
    kernel.send_shell("comm_msg", json!({"comm_id": ids[0], "data": click}));
    kernel.iopub_until(|m| printed(std::slice::from_ref(m)) == "going\n");
    kernel.send_shell("comm_msg", json!({"comm_id": ids[1], "data": moved(true)}));
    kernel.iopub_until(|m| printed(std::slice::from_ref(m)) == "stopped\n");
}

#[test]
fn an_interrupt_ends_the_cell_that_runs_and_what_waits_for_a_widget_hears_of_it_all_the_same() {
    let mut kernel = kernel();
    let code = "let rate = Slider::new(\"rate\", 0..=9);\nlet mut known = 0;\n\
                rate.on_change(move |v| { println!(\"from {known} to {v}\"); known = v; });\nrate";
    let (shown, showing) = cell(&mut kernel, code);
    let (id, _) = opened(&shown);
    let waits = "println!(\"go\"); while rate.value() != 7 {} println!(\"seen\"); loop { sleep(std::time::Duration::from_millis(1)); }";
    kernel.send_shell("execute_request", json!({"code": waits}));
    kernel.iopub_until(|m| printed(std::slice::from_ref(m)) == "go\n");
    kernel.send_shell("comm_msg", json!({"comm_id": id, "data": moved(7)}));
    kernel.iopub_until(|m| printed(std::slice::from_ref(m)) == "seen\n");
    kernel.ask_control_only("interrupt_request", json!({}));
    assert_eq!(kernel.shell()["content"]["status"], "error");
    let heard = kernel.iopub_until(|m| m["msg_type"] == "stream");
    assert_eq!(printed(&heard), "from 0 to 7\n");
    assert_eq!(heard.last().unwrap()["parent_header"]["msg_id"], showing);
    // One that runs is ended by an interrupt, and the next move calls it again.
    let code =
        "rate.on_change(|v| { println!(\"runs\"); while v == 3 { sleep(std::time::Duration::from_millis(1)); } });";
    cell(&mut kernel, code);
    kernel.send_shell("comm_msg", json!({"comm_id": id, "data": moved(3)}));
    kernel.iopub_until(|m| printed(std::slice::from_ref(m)).contains("runs"));
    kernel.ask_control_only("interrupt_request", json!({}));
    let ended = kernel.iopub_until(|m| m["msg_type"] == "error");
    assert!(ended.last().unwrap()["content"]["ename"].as_str().unwrap().contains("nterrupt"), "{ended:?}");
    kernel.send_shell("comm_msg", json!({"comm_id": id, "data": moved(4)}));
    kernel.iopub_until(|m| printed(std::slice::from_ref(m)).contains("to 4"));
}

#[test]
fn what_a_control_cannot_be_a_front_end_cannot_make_it() {
    let mut kernel = kernel();
    let code = "let (n, x) = (Slider::new(\"n\", 2..=8).at(4), Slider::new(\"x\", 0.0f32..=0.3));\n\
                let (c, d) = (Checkbox::new(\"c\", true), Dropdown::new(\"d\", [\"one\", \"two\"]));\n\
                n.on_change(|n| println!(\"n is {n}\"));\ndisplay(&n); display(&x); display(&c);\nd";
    let (shown, _) = cell(&mut kernel, code);
    let ids: Vec<Value> = of(&shown, "comm_open").iter().map(|m| m["content"]["comm_id"].clone()).collect();
    let mut touched = |id: usize, value: Value| {
        let seen = touch(&mut kernel, &ids[id], moved(value));
        let told = &of(&seen, "comm_msg")[0]["content"]["data"];
        (told["method"].as_str().unwrap().to_owned(), told["state"]["value"].clone(), printed(&seen))
    };
    let told = |method: &str, value: Value, printed: &str| (method.to_owned(), value, printed.to_owned());
    assert_eq!(touched(0, json!(99)), told("update", json!(8), "n is 8\n"));
    assert_eq!(touched(0, json!(-3)), told("update", json!(2), "n is 2\n"));
    assert_eq!(touched(0, json!(2.5)), told("update", json!(2), ""));
    assert_eq!(touched(0, json!("x")), told("update", json!(2), ""));
    assert_eq!(touched(1, json!(0.1)), told("echo_update", json!(0.1), ""));
    assert_eq!(touched(2, json!("yes")), told("update", json!(true), ""));
    assert_eq!(touched(3, json!("three")), told("update", json!("one"), ""));
    assert_eq!(touched(3, json!("two")), told("echo_update", json!("two"), ""));
    let (reply, _) = kernel.execute(json!({"code": "let (from, to) = (3, 1);\nSlider::new(\"n\", from..=to)"}));
    let text = reply["content"]["traceback"].to_string();
    assert!(text.contains("from the lower end to the higher one: 1..=3") && text.contains("line 2"), "{text}");
}

#[test]
fn what_interact_makes_may_be_whatever_a_cell_shows() {
    let mut kernel = kernel();
    let makes = [
        ("v * 2", "6", "10"),
        ("v as f64 / 2.0", "1.5", "2.5"),
        ("format!(\"<{v}>\\nlow\")", "<3>\nlow", "<5>\nlow"),
        ("(v, vec![v > 3; 2])", "(3, [false, false])", "(5, [true, true])"),
        ("tensor([v as f32])", "[3.]\nf32[1] on cpu:0", "[5.]\nf32[1] on cpu:0"),
        ("c.set(v)", "", ""),
    ];
    for (make, before, after) in makes {
        cell(&mut kernel, "let s = Slider::new(\"s\", 0..=9).at(3); let c = s.clone();");
        let (shown, _) = cell(&mut kernel, &format!("let c = c.clone(); s.interact(move |v| {make})"));
        let (id, state) = opened(&shown);
        assert!(state["made"][1].as_str().unwrap().starts_with(before), "{make}: {state}");
        let seen = touch(&mut kernel, &id, moved(5));
        let told: Vec<&Value> = of(&seen, "comm_msg").iter().map(|m| &m["content"]["data"]["state"]).collect();
        let made = told.iter().find_map(|state| state["made"][1].as_str()).unwrap_or_default();
        assert!(made.starts_with(after), "{make}: {told:?}");
    }
    let (reply, _) = kernel.execute(json!({"code": "struct S; s.interact(|_| S)"}));
    let text = reply["content"]["traceback"].to_string();
    assert!(text.contains("`S` cannot be shown here") && text.contains("implement `Rich` for it"), "{text}");
}
