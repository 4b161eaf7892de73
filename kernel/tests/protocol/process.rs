//! The binary as a front end meets it: `xlazy kernel` in a process of its own, spoken to over its sockets.
use crate::client::{Client, Folder};
use jupyter_protocol::connection_info::{ConnectionInfo, Transport};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};

#[path = "../../../tests/support/home.rs"]
mod home;
use home::at_home;

/// Everything a client does, and the process at the other end. `Folder` holds its sockets, its home and its caches.
pub struct Process {
    pub client: Client,
    child: Child,
    pub folder: Folder,
}

/// What came of a cell.
#[derive(Debug)]
pub struct Done {
    pub status: String,
    /// Name, message and traceback of the error.
    pub error: String,
    pub stdout: String,
    pub stderr: String,
    /// The text of the result, or of a display.
    pub result: String,
}

impl Done {
    /// The result of a cell that must have been good.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.status, "ok", "{self:#?}");
        self.result
    }

    /// The error of a cell that must have failed, without colours.
    #[track_caller]
    pub fn err(self) -> String {
        assert_eq!(self.status, "error", "{self:#?}");
        self.error
    }
}

impl Process {
    /// A kernel with a home, a cache and temporary files of its own; `change` is told its folder and may alter all of it.
    pub fn start(change: impl FnOnce(&mut Command, &Path)) -> Process {
        let folder = Folder::new();
        let inside = |name: &str| folder.path().join(name);
        for name in ["home", "cache", "tmp"] {
            std::fs::create_dir_all(inside(name)).unwrap();
        }
        let info = ConnectionInfo {
            ip: inside("k").display().to_string(),
            transport: Transport::IPC,
            shell_port: 1,
            iopub_port: 2,
            stdin_port: 3,
            control_port: 4,
            hb_port: 5,
            key: "a-key".into(),
            signature_scheme: "hmac-sha256".into(),
            kernel_name: None,
        };
        let file = inside("connection.json");
        std::fs::write(&file, serde_json::to_vec(&info).unwrap()).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_xlazy"));
        command.arg("kernel").arg(&file).stdin(Stdio::null());
        at_home(&mut command, &inside("home")).env("XLAZY_CACHE", inside("cache")).env("TMPDIR", inside("tmp"));
        change(&mut command, folder.path());
        let child = command.spawn().unwrap();
        let mut client = Client::connect(info);
        client.iopub_until(|m| m["msg_type"] == "iopub_welcome");
        Process { client, child, folder }
    }

    pub fn cell(&mut self, code: &str) -> Done {
        let (reply, outputs) = self.client.execute(json!({"code": code, "stop_on_error": false}));
        let said = |wanted: &str| -> String {
            let streams = outputs.iter().filter(|m| m["content"]["name"] == wanted);
            streams.filter_map(|m| m["content"]["text"].as_str()).collect()
        };
        let content = &reply["content"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let lines: Vec<String> = content["traceback"].as_array().into_iter().flatten().map(text).collect();
        let result = outputs.iter().find(|m| m["msg_type"] == "execute_result" || m["msg_type"] == "display_data");
        Done {
            status: text(&content["status"]),
            error: format!("{}: {}\n{}", text(&content["ename"]), text(&content["evalue"]), lines.join("\n")),
            stdout: said("stdout"),
            stderr: said("stderr"),
            result: result.map(|m| text(&m["content"]["data"]["text/plain"])).unwrap_or_default(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the kernel without a word, and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The process that runs the cells.
    pub fn session(&self) -> u32 {
        session_of(self.pid()).expect("a kernel has a session")
    }
}

/// The session of a kernel; none while a new one takes the place of one that died.
pub fn session_of(kernel: u32) -> Option<u32> {
    let is_ours = |stat: &str| {
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let parent: u32 = rest.split_whitespace().nth(1)?.parse().ok()?;
        (name == "xlazy-session" && parent == kernel).then_some(())
    };
    let all = std::fs::read_dir("/proc").ok()?.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    let mut ours = all.filter(|pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| is_ours(&stat).is_some())
    });
    ours.next()
}

impl Drop for Process {
    fn drop(&mut self) {
        // A test may have killed it.
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        if !std::thread::panicking() {
            self.client.ask_control_only("shutdown_request", json!({"restart": false}));
        } else {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
