//! The control channel, which waits for no cell.
use super::content;
use super::history::History;
use super::hub::Hub;
use super::message::Message;
use super::router::Outbound;
use super::shell::Shell;
use crate::engine::Failure;
use serde_json::{Value, json};
use std::sync::Arc;
use std::thread;

/// Handles a message of the control channel, and the few of shell's that must not wait for the running cell.
pub async fn control(hub: Arc<Hub>, out: Outbound, request: Message) {
    hub.iopub.status(&request.header, "busy");
    match request.msg_type.as_str() {
        "kernel_info_request" => hub.kernel_info(&out, &request),
        "interrupt_request" => {
            hub.interrupt().await;
            hub.reply(&out, &request, "interrupt_reply", &json!({"status": "ok"}));
        }
        "shutdown_request" => {
            let restart = content::flag(&request.content, "restart", false);
            let content = json!({"status": "ok", "restart": restart});
            hub.reply(&out, &request, "shutdown_reply", &content);
            // Other front ends of this kernel learn of it here.
            hub.iopub.send(&request.header, "shutdown_reply", content);
        }
        "create_subshell_request" => {
            let content = subshell(&hub).map(|id| json!({"status": "ok", "subshell_id": id}));
            hub.reply(&out, &request, "create_subshell_reply", &answered(content));
        }
        "delete_subshell_request" => {
            let deleted = hub.subshells.delete(&content::text(&request.content, "subshell_id"));
            let content = deleted.map(|()| json!({"status": "ok"}));
            hub.reply(&out, &request, "delete_subshell_reply", &answered(content));
        }
        "list_subshell_request" => {
            let content = json!({"status": "ok", "subshell_id": hub.subshells.list()});
            hub.reply(&out, &request, "list_subshell_reply", &content);
        }
        other => super::log(format_args!("control: no answer to a message of type {other:?}")),
    }
    hub.iopub.status(&request.header, "idle");
    if request.msg_type == "shutdown_request" {
        hub.stop.notify_one();
    }
}

fn answered(content: Result<Value, Failure>) -> Value {
    content.unwrap_or_else(|failure| content::error(&failure, json!({"status": "error"})))
}

/// Starts another shell; its id.
fn subshell(hub: &Arc<Hub>) -> Result<String, Failure> {
    hub.subshells.create(|id, requests| {
        let shell = Shell::new(hub.clone(), History::open(None), Some(id.to_owned()));
        thread::Builder::new().name("subshell".into()).spawn(move || shell.run(requests)).map(drop)
    })
}
