//! Brings the channels up from a connection file, and down again: on request, on a signal, when the parent dies.
use super::connection::Connection;
use super::content::About;
use super::control::control;
use super::guests::Account;
use super::hands::Hands;
use super::history::History;
use super::hub::Hub;
use super::iopub::{Iopub, sealed};
use super::message::{Envelope, Key};
use super::publisher::{self, Publisher, Welcome};
use super::router::{Limits, Outbound, router};
use super::shell::{self, Shell};
use super::sockets::{anything, heartbeat, read, signed};
use super::subshells::Subshells;
use crate::engine::{Engine, Failure};
use jupyter_protocol::messaging::IoPubWelcome;
use serde_json::json;
use std::io;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::sync::mpsc::unbounded_channel;

/// How long an engine may take to start, if it has not, and to shut down before the process ends anyway.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(3);

/// How long the last messages may take to leave.
const DRAIN_LIMIT: Duration = Duration::from_millis(500);

const PARENT_INTERVAL: Duration = Duration::from_secs(1);

/// What a kernel says about itself and where it keeps its history.
#[derive(Clone, Debug)]
pub struct Options {
    /// Shared by the kernels of one user; None keeps the history in memory.
    pub history: Option<PathBuf>,
    pub version: String,
    pub rust_version: String,
    pub banner: String,
}

/// Serves one kernel until it is told to end. The engine starts beside the sockets, on a thread of its own, so that a
/// front end is answered before it is ready; a failure to start is shown by every cell.
pub fn serve<F>(connection: impl Into<Connection>, options: Options, engine: F) -> io::Result<()>
where
    F: FnOnce() -> Result<Arc<dyn Engine>, Failure> + Send + 'static,
{
    let connection = connection.into();
    let key = Key::new(&connection.info.signature_scheme, &connection.info.key).map_err(io::Error::other)?;
    // Two threads: encoding a megabyte of output must not delay an interrupt.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(bring_up(&connection, key, options, engine));
    // What still runs is a cell that would not end; the process is about to.
    runtime.shutdown_background();
    served
}

async fn bring_up<F>(connection: &Connection, key: Key, options: Options, engine: F) -> io::Result<()>
where
    F: FnOnce() -> Result<Arc<dyn Engine>, Failure> + Send + 'static,
{
    let envelope = Arc::new(Envelope::new(key.clone()));
    let (info, keys, account) = (&connection.info, &connection.keys, Account::default());
    let publisher = bind_iopub(connection, &account, envelope.clone()).await?;
    let signed = signed(key, envelope.session().to_owned());
    let socket =
        async |name, url: String| router((name, &url), keys.clone(), &account, Limits::MESSAGES, signed.clone()).await;
    let heart = ("heartbeat", &*info.hb_url());
    let (hb, hb_reader) = router(heart, keys.clone(), &account, Limits::BEATS, anything()).await?;
    let (control_out, control_reader) = socket("control", info.control_url()).await?;
    let (stdin, stdin_reader) = socket("stdin", info.stdin_url()).await?;
    let (shell, shell_reader) = socket("shell", info.shell_url()).await?;

    let (fences, shell_fences) = unbounded_channel();
    let (subshells, requests) = Subshells::new();
    let (hands, moves) = Hands::new();
    let Options { history, version, rust_version, banner } = options;
    let hub = Arc::new(Hub {
        iopub: Iopub::start(publisher.clone(), envelope.clone()),
        envelope,
        shell,
        control: control_out,
        stdin,
        fences,
        engine: OnceLock::new(),
        about: About { version, rust_version, banner },
        asking: Default::default(),
        subshells,
        turns: Default::default(),
        hands,
        comms: Default::default(),
        last: Default::default(),
        spill: spill_folder(history.as_deref()),
        stop: Notify::new(),
    });
    hub.iopub.status(&Arc::new(json!({})), "starting");

    let starting = hub.clone();
    thread::Builder::new().name("engine-start".into()).spawn(move || {
        let engine = engine();
        if let Ok(engine) = &engine {
            super::between_cells::listen(engine.as_ref(), &starting);
        }
        let _ = starting.engine.set(engine);
    })?;
    let shell = hub.clone();
    thread::Builder::new()
        .name("shell".into())
        .spawn(move || Shell::new(shell, History::open(history), None).run(requests))?;
    let beside = |hub: &Arc<Hub>| Shell::new(hub.clone(), History::open(None), None);
    let (hands, handlers) = (beside(&hub), beside(&hub));
    thread::Builder::new().name("hands".into()).spawn(move || hands.follow_hands(moves))?;
    thread::Builder::new().name("handlers".into()).spawn(move || handlers.run_handlers())?;

    tokio::spawn(heartbeat(hb_reader, hb));
    tokio::spawn(read(shell_reader, shell_fences, {
        let hub = hub.clone();
        move |message| match message.msg_type.as_str() {
            // Old clients send these here, and neither can wait for the running cell.
            "shutdown_request" | "interrupt_request" => {
                tokio::spawn(control(hub.clone(), hub.shell.clone(), message));
            }
            _ => shell::route(&hub, message),
        }
    }));
    tokio::spawn(read(control_reader, unbounded_channel().1, {
        let hub = hub.clone();
        move |message| {
            tokio::spawn(control(hub.clone(), hub.control.clone(), message));
        }
    }));
    tokio::spawn(read(stdin_reader, unbounded_channel().1, {
        let hub = hub.clone();
        move |message| match message.msg_type.as_str() {
            "input_reply" => hub.answer(&message),
            other => super::log(format_args!("stdin: no use for a message of type {other:?}")),
        }
    }));

    wait_for_the_end(&hub).await?;
    bring_down(&hub, &publisher).await;
    Ok(())
}

async fn bind_iopub(connection: &Connection, account: &Account, envelope: Arc<Envelope>) -> io::Result<Publisher> {
    let welcome: Welcome = Box::new(move |topic| {
        let subscription = String::from_utf8_lossy(topic).into_owned();
        let content = super::content::typed(IoPubWelcome::new(subscription));
        let mut frames = sealed(&envelope, &json!({}), "iopub_welcome", (&json!({}), &content));
        // JEP 65: the topic is the subscription itself.
        frames[0] = bytes::Bytes::copy_from_slice(topic);
        frames
    });
    let url = connection.info.iopub_url();
    Publisher::bind(&url, connection.keys.clone(), account, welcome, publisher::Limits::default()).await
}

/// Beside the history, or, where nothing is kept, among the temporary files.
fn spill_folder(history: Option<&Path>) -> PathBuf {
    match history.and_then(Path::parent) {
        Some(state) => state.join("output"),
        // Where there can be none, each flood of output says why.
        None => crate::folder::to_stay().unwrap_or_default(),
    }
}

async fn wait_for_the_end(hub: &Arc<Hub>) -> io::Result<()> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let parent = orphaned();
    tokio::pin!(parent);
    loop {
        tokio::select! {
            _ = hub.stop.notified() => return Ok(()),
            _ = terminations.recv() => return Ok(()),
            _ = &mut parent => {
                super::log(format_args!("the parent process is gone"));
                return Ok(());
            }
            _ = interrupts.recv() => hub.interrupt().await,
        }
    }
}

/// Ends when the process that started this kernel has ended. Only asked for where Jupyter says who that is.
async fn orphaned() {
    let Some(named) = std::env::var("JPY_PARENT_PID").ok().and_then(|pid| pid.parse::<u32>().ok()) else {
        return std::future::pending().await;
    };
    let first = parent_id();
    // A wrapper may stand between Jupyter and this process, and in a container Jupyter may not be visible at all.
    let process = PathBuf::from(format!("/proc/{named}"));
    let visible = process.exists();
    let mut every = tokio::time::interval(PARENT_INTERVAL);
    loop {
        every.tick().await;
        if parent_id() != first || (visible && !process.exists()) {
            return;
        }
    }
}

async fn bring_down(hub: &Arc<Hub>, publisher: &Publisher) {
    // An engine that is still starting is waited for: nobody else would end what it has started by then.
    let ending = hub.clone();
    let ended = tokio::task::spawn_blocking(move || ending.engine().iter().for_each(|engine| engine.shutdown()));
    let _ = tokio::time::timeout(SHUTDOWN_LIMIT, ended).await;
    let replies = async |out: &Outbound| out.drained().await;
    let all = async {
        hub.iopub.close().await;
        tokio::join!(publisher.drained(), replies(&hub.control), replies(&hub.shell))
    };
    let _ = tokio::time::timeout(DRAIN_LIMIT, all).await;
}
