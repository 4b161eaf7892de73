//! A Jupyter front end in miniature: a kernel on a thread of this process, and a client on each of its sockets.
use crate::mock_engine::{Call, MockEngine};
use bytes::Bytes;
use jupyter_protocol::connection_info::{ConnectionInfo, Transport};
use serde_json::{Value, json};
use std::future::Future;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use xlazy_kernel::engine::{Engine, Failure};
use xlazy_kernel::wire::message::{Envelope, Key, Message, parse};
use xlazy_kernel::wire::{Options, serve};
use zeromq::util::PeerIdentity;
use zeromq::{DealerSocket, ReqSocket, Socket, SocketOptions, SocketRecv, SocketSend, SubSocket, ZmqMessage};

/// A test waits at most this long for a message; only a failing one gets there.
const PATIENCE: Duration = Duration::from_secs(60);

/// A temporary folder that is gone with its owner.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("xw-{}", &uuid::Uuid::new_v4().simple().to_string()[..12]));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Default)]
pub struct Setup {
    pub history: Option<PathBuf>,
    pub tcp: bool,
    pub broken: bool,
    /// In place of the mock.
    pub engine: Option<Arc<dyn Engine>>,
    /// The engine starts when something comes through.
    pub gate: Option<Receiver<()>>,
}

pub struct Kernel {
    client: Client,
    calls: Receiver<Call>,
    thread: Option<JoinHandle<()>>,
    _folder: Folder,
}

/// Everything a client does, the kernel's owner does too.
impl std::ops::Deref for Kernel {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.client
    }
}

impl std::ops::DerefMut for Kernel {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl Kernel {
    pub fn start() -> Kernel {
        Kernel::start_with(Setup::default())
    }

    pub fn start_broken() -> Kernel {
        Kernel::start_with(Setup { broken: true, ..Setup::default() })
    }

    pub fn start_with(setup: Setup) -> Kernel {
        let mut kernel = Kernel::launch(setup);
        kernel.iopub_until(|m| m["msg_type"] == "iopub_welcome");
        kernel
    }

    /// A kernel of whose iopub nothing has been read yet.
    pub fn start_raw() -> Kernel {
        Kernel::launch(Setup::default())
    }

    fn launch(setup: Setup) -> Kernel {
        let folder = Folder::new();
        let (ip, transport, ports) = match setup.tcp {
            true => ("127.0.0.1".to_owned(), Transport::TCP, free_ports()),
            false => (folder.path().join("k").display().to_string(), Transport::IPC, [1, 2, 3, 4, 5]),
        };
        let [shell_port, iopub_port, stdin_port, control_port, hb_port] = ports;
        let info = ConnectionInfo {
            ip,
            transport,
            shell_port,
            iopub_port,
            stdin_port,
            control_port,
            hb_port,
            key: "a-key".into(),
            signature_scheme: "hmac-sha256".into(),
            kernel_name: None,
        };
        let (mock, calls) = MockEngine::new();
        let engine = setup.engine.unwrap_or_else(|| Arc::new(mock));
        let options =
            Options { history: setup.history, version: "0".into(), rust_version: "0".into(), banner: "mock".into() };
        let served = info.clone();
        let thread = std::thread::spawn(move || {
            let broken = Failure { message: "no session program".into(), ..Failure::default() };
            let start = move || {
                setup.gate.iter().for_each(|gate| gate.recv().unwrap());
                if setup.broken { Err(broken) } else { Ok(engine) }
            };
            serve(&served, options, start).unwrap();
        });
        Kernel { client: Client::connect(info), calls, thread: Some(thread), _folder: folder }
    }

    pub fn second_client(&mut self) -> Client {
        let mut client = Client::connect(self.client.info.clone());
        client.iopub_until(|m| m["msg_type"] == "iopub_welcome");
        client
    }

    pub fn client_of_the_same_session(&mut self) -> Client {
        let mut client = Client::connect_as(self.client.info.clone(), Some(self.client.session()));
        client.iopub_until(|m| m["msg_type"] == "iopub_welcome");
        client
    }

    /// Whether the engine was asked something, among all it was asked up to then.
    pub fn saw(&self, wanted: impl Fn(&Call) -> bool) -> bool {
        std::iter::from_fn(|| self.calls.recv_timeout(PATIENCE).ok()).any(|call| wanted(&call))
    }

    /// What the engine was asked up to then.
    pub fn calls_until(&self, last: impl Fn(&Call) -> bool) -> Vec<Call> {
        let mut calls: Vec<Call> = Vec::new();
        while !calls.last().is_some_and(&last) {
            calls.push(self.calls.recv_timeout(PATIENCE).unwrap());
        }
        calls
    }

    /// Waits until the kernel has ended by itself.
    pub fn join(&mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
        {
            self.client.ask_control_only("shutdown_request", json!({"restart": false}));
            thread.join().unwrap();
        }
    }
}

fn free_ports() -> [u16; 5] {
    let listeners: Vec<_> = (0..5).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    std::array::from_fn(|n| listeners[n].local_addr().unwrap().port())
}

pub struct Client {
    info: ConnectionInfo,
    runtime: Runtime,
    key: Key,
    envelope: Envelope,
    shell: DealerSocket,
    control: DealerSocket,
    stdin: DealerSocket,
    iopub: SubSocket,
}

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("nothing came: {what}"))
}

async fn connected<S: Socket>(mut socket: S, url: &str) -> S {
    // Connecting retries by itself while the kernel is still binding.
    soon(url, async {
        while socket.connect(url).await.is_err() {
            tokio::task::yield_now().await
        }
    })
    .await;
    socket
}

impl Client {
    pub fn connect(info: ConnectionInfo) -> Client {
        Client::connect_as(info, None)
    }

    /// Under the name of a session, or of its own.
    fn connect_as(info: ConnectionInfo, session: Option<&str>) -> Client {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let key = Key::new(&info.signature_scheme, &info.key).unwrap();
        let envelope = Envelope::new(key.clone());
        // The same identity on shell and stdin is what lets the kernel ask the front end that sent the cell.
        let options = || {
            let mut options = SocketOptions::default();
            options.peer_identity(session.unwrap_or(envelope.session()).parse::<PeerIdentity>().unwrap());
            options
        };
        let (shell, control, stdin, iopub) = runtime.block_on(async {
            let mut iopub = connected(SubSocket::new(), &info.iopub_url()).await;
            iopub.subscribe("").await.unwrap();
            let stdin = connected(DealerSocket::with_options(options()), &info.stdin_url()).await;
            let control = connected(DealerSocket::with_options(options()), &info.control_url()).await;
            let shell = connected(DealerSocket::with_options(options()), &info.shell_url()).await;
            (shell, control, stdin, iopub)
        });
        Client { info, runtime, key, envelope, shell, control, stdin, iopub }
    }

    pub fn session(&self) -> &str {
        self.envelope.session()
    }

    pub fn frames(&self, msg_type: &str, content: Value) -> Vec<Bytes> {
        self.envelope.seal(msg_type, &json!({}), &json!({}), &content)
    }

    /// A message with a right signature and this header and content, whatever they are.
    pub fn frames_of(&self, header: &str, content: &str) -> Vec<Bytes> {
        self.envelope.seal_raw(header.to_owned().into(), "{}".into(), "{}".into(), content.to_owned().into())
    }

    /// A message to a subshell.
    pub fn frames_to(&self, subshell: &Value, msg_type: &str, content: Value) -> Vec<Bytes> {
        let mut frames = self.frames(msg_type, content);
        let mut header: Value = serde_json::from_slice(&frames[2]).unwrap();
        header["subshell_id"] = subshell.clone();
        frames = self.envelope.seal_raw(header.to_string().into(), "{}".into(), "{}".into(), frames[5].clone());
        frames
    }

    pub fn send_to(&mut self, subshell: &Value, msg_type: &str, content: Value) {
        self.send_frames(self.frames_to(subshell, msg_type, content));
    }

    pub fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    pub fn send_stdin_frames(&mut self, frames: Vec<Bytes>) {
        self.runtime.block_on(self.stdin.send(ZmqMessage::try_from(frames).unwrap())).unwrap();
    }

    pub fn send_frames(&mut self, frames: Vec<Bytes>) {
        self.runtime.block_on(self.shell.send(ZmqMessage::try_from(frames).unwrap())).unwrap();
    }

    pub fn send_control_frames(&mut self, frames: Vec<Bytes>) {
        self.runtime.block_on(self.control.send(ZmqMessage::try_from(frames).unwrap())).unwrap();
    }

    pub fn send_shell(&mut self, msg_type: &str, content: Value) {
        self.send_frames(self.frames(msg_type, content));
    }

    pub fn shell(&mut self) -> Value {
        let message = self.runtime.block_on(soon("a reply on shell", self.shell.recv())).unwrap();
        checked(&message.into_vec(), &self.key)
    }

    pub fn stdin(&mut self) -> Value {
        let message = self.runtime.block_on(soon("a question on stdin", self.stdin.recv())).unwrap();
        checked(&message.into_vec(), &self.key)
    }

    /// The next message. Whether the first one, that the kernel is starting, is seen depends on who was faster.
    pub fn iopub(&mut self) -> Value {
        loop {
            let message = self.runtime.block_on(soon("a message on iopub", self.iopub.recv())).unwrap();
            let message = checked(&message.into_vec(), &self.key);
            if message["content"]["execution_state"] != "starting" {
                return message;
            }
        }
    }

    /// Messages up to and with the first that fits.
    pub fn iopub_until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = vec![self.iopub()];
        while !fits(seen.last().unwrap()) {
            seen.push(self.iopub());
        }
        seen
    }

    pub fn until_idle(&mut self) -> Vec<Value> {
        self.iopub_until(|m| m["msg_type"] == "status" && m["content"]["execution_state"] == "idle")
    }

    pub fn drain_idles(&mut self, count: usize) {
        (0..count).for_each(|_| drop(self.until_idle()));
    }

    /// A reply on shell, once its request is done.
    pub fn ask(&mut self, msg_type: &str, content: Value) -> Value {
        self.send_shell(msg_type, content);
        let reply = self.shell();
        self.until_idle();
        reply
    }

    pub fn execute(&mut self, content: Value) -> (Value, Vec<Value>) {
        self.send_shell("execute_request", content);
        let outputs = self.until_idle();
        (self.shell(), outputs)
    }

    pub fn ask_control(&mut self, msg_type: &str, content: Value) -> Value {
        let reply = self.ask_control_only(msg_type, content);
        self.until_idle();
        reply
    }

    /// Leaves iopub as it is, for use while a cell runs.
    pub fn ask_control_only(&mut self, msg_type: &str, content: Value) -> Value {
        let frames = self.frames(msg_type, content);
        let id = serde_json::from_slice::<Value>(&frames[2]).unwrap()["msg_id"].clone();
        self.send_control_frames(frames);
        loop {
            let message = self.runtime.block_on(soon("a reply on control", self.control.recv())).unwrap();
            let reply = checked(&message.into_vec(), &self.key);
            if reply["parent_header"]["msg_id"] == id {
                return reply;
            }
        }
    }

    pub fn answer_input(&mut self, prompt: &str, value: &str) -> Value {
        let asked = self.stdin();
        assert_eq!((&asked["msg_type"], &asked["content"]["prompt"]), (&json!("input_request"), &json!(prompt)));
        let frames = self.frames("input_reply", json!({"value": value}));
        self.runtime.block_on(self.stdin.send(ZmqMessage::try_from(frames).unwrap())).unwrap();
        asked
    }

    pub fn heartbeat(&mut self, bytes: &'static [u8]) -> Vec<u8> {
        let url = self.info.hb_url();
        self.runtime.block_on(soon("a heartbeat", async {
            let mut hb = connected(ReqSocket::new(), &url).await;
            hb.send(Bytes::from_static(bytes).into()).await.unwrap();
            hb.recv().await.unwrap().into_vec().concat()
        }))
    }

    /// A subscriber that reads nothing until it is told to.
    pub fn subscribe_raw(&mut self) -> LazySubscriber {
        let stream = UnixStream::connect(self.info.iopub_url().trim_start_matches("ipc://")).unwrap();
        let mut lazy = LazySubscriber { stream, key: self.key.clone() };
        lazy.shake();
        lazy
    }
}

/// What came, with the signature and every field that the protocol asks for checked, and the content checked against
/// another implementation's idea of it.
fn checked(frames: &[Bytes], key: &Key) -> Value {
    let message: Message = parse(frames, key).unwrap();
    for field in ["msg_id", "session", "username", "date", "msg_type", "version"] {
        assert!(message.header[field].is_string(), "{field} is missing in {}", message.header);
    }
    let content = Value::Object(message.content.clone());
    // Subshells are newer than that implementation.
    if !message.msg_type.contains("_subshell_") {
        jupyter_protocol::JupyterMessageContent::from_type_and_content(&message.msg_type, content.clone())
            .unwrap_or_else(|e| panic!("{} is not what the protocol says: {e}: {content}", message.msg_type));
    }
    let delimiter = frames.iter().position(|f| f.as_ref() == b"<IDS|MSG>").unwrap();
    json!({
        "header": *message.header,
        "msg_type": message.msg_type,
        "parent_header": serde_json::from_slice::<Value>(&frames[delimiter + 3]).unwrap(),
        "metadata": message.metadata,
        "content": content,
    })
}

/// A subscriber in plain ZMTP, so that nothing reads its socket behind the test's back.
pub struct LazySubscriber {
    stream: UnixStream,
    key: Key,
}

impl LazySubscriber {
    fn shake(&mut self) {
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut greeting = [0u8; 64];
        (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
        greeting[12..16].copy_from_slice(b"NULL");
        self.stream.write_all(&greeting).unwrap();
        self.stream.write_all(b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB").unwrap();
        self.stream.write_all(&[0, 1, 1]).unwrap();
        self.stream.read_exact(&mut greeting).unwrap();
        assert!(self.frames()[0].starts_with(b"\x05READY"));
        let welcome = checked(&self.frames(), &self.key);
        assert_eq!(welcome["msg_type"], "iopub_welcome");
    }

    fn frames(&mut self) -> Vec<Bytes> {
        let mut frames = Vec::new();
        loop {
            let mut flags = [0u8; 1];
            self.stream.read_exact(&mut flags).unwrap();
            let mut length = [0u8; 8];
            self.stream.read_exact(if flags[0] & 2 == 0 { &mut length[7..] } else { &mut length }).unwrap();
            let mut body = vec![0; u64::from_be_bytes(length) as usize];
            self.stream.read_exact(&mut body).unwrap();
            frames.push(body.into());
            if flags[0] & 1 == 0 {
                return frames;
            }
        }
    }

    pub fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let frames = self.frames();
            seen.push(checked(&frames, &self.key));
            if fits(seen.last().unwrap()) {
                return seen;
            }
        }
    }
}
