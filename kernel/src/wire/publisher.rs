//! The socket behind iopub: a publisher that speaks ZMTP 3.0, greets each subscription and never stalls on a slow peer.
//!
//! Not the `zeromq` crate's PUB or XPUB: its PUB drops whatever is newest, a status message included, and does not
//! tell of subscriptions; its XPUB waits for the slowest subscriber before it serves the next. Here each subscriber
//! has a queue of its own: past [`Limits::drop_text`] stream text is left out and a note says how much, everything
//! else is kept, and a peer that reads nothing for [`Limits::close`] bytes is disconnected.
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Notify;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Subscribers only ever send subscriptions, pings and a handshake.
const FRAME_LIMIT: u64 = 64 << 10;
const BUFFER: usize = 64 << 10;
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// Bytes waiting for one subscriber.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub drop_text: usize,
    pub close: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { drop_text: 32 << 20, close: 512 << 20 }
    }
}

/// Makes the message that answers a subscription to a topic (JEP 65).
pub type Welcome = Box<dyn Fn(&[u8]) -> Vec<Bytes> + Send + Sync>;

/// Makes the message that stands for text left out, from how many bytes are missing.
pub type Note = Arc<dyn Fn(usize) -> Vec<Bytes> + Send + Sync>;

/// Publishes to every subscriber; cheap to clone.
#[derive(Clone)]
pub struct Publisher(Arc<Inner>);

struct Inner {
    peers: Mutex<HashMap<u64, Arc<Peer>>>,
    next: AtomicU64,
    welcome: Welcome,
    limits: Limits,
    /// Told whenever a queue runs empty or a peer leaves.
    drained: Notify,
}

#[derive(Default)]
struct Peer {
    state: Mutex<PeerState>,
    wake: Notify,
}

#[derive(Default)]
struct PeerState {
    topics: Vec<Vec<u8>>,
    queue: VecDeque<Bytes>,
    /// In the queue and in the write under way.
    waiting: usize,
    /// Bytes left out since the last message that went through, and what to say about them.
    missing: Option<(usize, Note)>,
    closed: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Publisher {
    /// Listens on `tcp://ip:port`; returns the port, so that 0 can mean any.
    pub async fn bind_tcp(ip: &str, port: u16, welcome: Welcome, limits: Limits) -> io::Result<(Publisher, u16)> {
        let listener = TcpListener::bind((ip, port)).await?;
        let port = listener.local_addr()?.port();
        let publisher = Publisher::new(welcome, limits);
        let inner = publisher.0.clone();
        tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        // A status message is small and somebody waits for it.
                        let _ = stream.set_nodelay(true);
                        let (reader, writer) = stream.into_split();
                        tokio::spawn(serve(inner.clone(), reader, writer));
                    }
                    Err(e) => refused(e).await,
                }
            }
        });
        Ok((publisher, port))
    }

    /// Listens on a Unix socket, taking the place of a stale file.
    pub async fn bind_ipc(path: &Path, welcome: Welcome, limits: Limits) -> io::Result<Publisher> {
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path)?;
        let publisher = Publisher::new(welcome, limits);
        let inner = publisher.0.clone();
        tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let (reader, writer) = stream.into_split();
                        tokio::spawn(serve(inner.clone(), reader, writer));
                    }
                    Err(e) => refused(e).await,
                }
            }
        });
        Ok(publisher)
    }

    fn new(welcome: Welcome, limits: Limits) -> Publisher {
        let (peers, next) = (Mutex::default(), AtomicU64::new(0));
        Publisher(Arc::new(Inner { peers, next, welcome, limits, drained: Notify::new() }))
    }

    /// Queues one message for everybody who subscribed to a prefix of its first frame. Never waits.
    pub fn publish(&self, frames: &[Bytes], droppable: Option<&Note>) {
        let topic: &[u8] = frames.first().map_or(b"", |t| t);
        let message = encode(frames);
        for peer in locked(&self.0.peers).values() {
            peer.offer(topic, &message, droppable, self.0.limits);
        }
    }

    /// Waits until everything published has been handed to the operating system.
    pub async fn drained(&self) {
        loop {
            let told = self.0.drained.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if locked(&self.0.peers).values().all(|p| locked(&p.state).waiting == 0) {
                return;
            }
            told.await;
        }
    }
}

/// An accept can fail for want of descriptors; trying again at once would only burn a core.
async fn refused(error: io::Error) {
    super::log(format_args!("iopub: cannot accept a connection: {error}"));
    tokio::time::sleep(Duration::from_millis(50)).await;
}

impl Peer {
    fn offer(&self, topic: &[u8], message: &Bytes, droppable: Option<&Note>, limits: Limits) {
        let mut state = locked(&self.state);
        if state.closed || !state.topics.iter().any(|t| topic.starts_with(t)) {
            return;
        }
        if let Some(note) = droppable {
            // Once text was left out, the queue must halve before text is taken again: one note, not hundreds.
            let room = if state.missing.is_some() { limits.drop_text / 2 } else { limits.drop_text };
            if state.waiting + message.len() > room {
                let before = state.missing.take().map_or(0, |(n, _)| n);
                state.missing = Some((before + message.len(), note.clone()));
                return;
            }
        }
        if let Some((bytes, note)) = state.missing.take() {
            state.push(encode(&note(bytes)));
        }
        if state.waiting + message.len() > limits.close {
            super::log(format_args!("iopub: a subscriber that stopped reading is disconnected"));
            state.close();
        } else {
            state.push(message.clone());
        }
        drop(state);
        self.wake.notify_one();
    }
}

impl PeerState {
    fn push(&mut self, message: Bytes) {
        self.waiting += message.len();
        self.queue.push_back(message);
    }

    fn close(&mut self) {
        self.closed = true;
        self.queue.clear();
        self.waiting = 0;
    }
}

/// All frames of a message as ZMTP sends them.
fn encode(frames: &[Bytes]) -> Bytes {
    let mut out = BytesMut::with_capacity(frames.iter().map(|f| f.len() + 9).sum());
    for (n, frame) in frames.iter().enumerate() {
        put_frame(&mut out, if n + 1 < frames.len() { MORE } else { 0 }, frame);
    }
    out.freeze()
}

fn put_frame(out: &mut BytesMut, flags: u8, body: &[u8]) {
    match u8::try_from(body.len()) {
        Ok(short) => out.put_slice(&[flags, short]),
        Err(_) => {
            out.put_u8(flags | LONG);
            out.put_u64(body.len() as u64);
        }
    }
    out.put_slice(body);
}

fn put_command(out: &mut BytesMut, name: &str, body: &[u8]) {
    let mut command = BytesMut::with_capacity(1 + name.len() + body.len());
    command.put_u8(name.len() as u8);
    command.put_slice(name.as_bytes());
    command.put_slice(body);
    put_frame(out, COMMAND, &command);
}

/// One connection from its handshake to its end.
async fn serve(
    inner: Arc<Inner>,
    mut reader: impl AsyncRead + Unpin + Send + 'static,
    mut writer: impl AsyncWrite + Unpin + Send + 'static,
) {
    let shaken = tokio::time::timeout(HANDSHAKE_LIMIT, shake(&mut reader, &mut writer)).await;
    match shaken {
        Ok(Ok(())) => {}
        // Port scanners and front ends that give up early are nothing to report.
        Ok(Err(e)) if e.kind() == io::ErrorKind::UnexpectedEof => return,
        Ok(Err(e)) => return super::log(format_args!("iopub: a connection was refused: {e}")),
        Err(_) => return super::log(format_args!("iopub: a connection did not finish its handshake")),
    }
    let id = inner.next.fetch_add(1, Ordering::Relaxed);
    let peer = Arc::new(Peer::default());
    locked(&inner.peers).insert(id, peer.clone());
    tokio::select! {
        _ = listen(&inner, &peer, &mut reader) => {}
        _ = write(&inner, &peer, writer) => {}
    }
    locked(&inner.peers).remove(&id);
    locked(&peer.state).close();
    inner.drained.notify_waiters();
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// Greeting and READY of the NULL mechanism, both ways.
async fn shake(reader: &mut (impl AsyncRead + Unpin), writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let mut greeting = [0u8; 64];
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[10] = 3; // Version 3.0: subscriptions then come as messages, which every peer can send.
    greeting[12..16].copy_from_slice(b"NULL");
    writer.write_all(&greeting).await?;
    let mut theirs = [0u8; 64];
    reader.read_exact(&mut theirs).await?;
    if theirs[0] != 0xff || theirs[9] != 0x7f || theirs[10] < 3 {
        return Err(bad("the peer does not speak ZMTP 3"));
    }
    if &theirs[12..17] != b"NULL\0" {
        return Err(bad("only the NULL mechanism is supported"));
    }
    let mut ready = BytesMut::new();
    put_command(&mut ready, "READY", &property("Socket-Type", b"XPUB"));
    writer.write_all(&ready).await?;
    let (flags, body) = read_frame(reader).await?;
    let Some(properties) = command(flags, &body, "READY") else { return Err(bad("no READY from the peer")) };
    // Names of properties are case-insensitive, but no implementation makes use of that.
    let is = |kind: &[u8]| {
        let wanted = property("Socket-Type", kind);
        properties.windows(wanted.len()).any(|w| w == wanted)
    };
    if is(b"SUB") || is(b"XSUB") { Ok(()) } else { Err(bad("the peer is not a subscriber")) }
}

fn property(name: &str, value: &[u8]) -> Vec<u8> {
    let mut out = vec![name.len() as u8];
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
    out
}

/// The body of a command of this name.
fn command<'a>(flags: u8, body: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let (length, rest) = body.split_first()?;
    if flags & COMMAND == 0 || usize::from(*length) != name.len() {
        return None;
    }
    rest.strip_prefix(name.as_bytes())
}

async fn read_frame(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<(u8, Vec<u8>)> {
    let flags = reader.read_u8().await?;
    let length = if flags & LONG != 0 { reader.read_u64().await? } else { u64::from(reader.read_u8().await?) };
    if flags > MORE | LONG | COMMAND || length > FRAME_LIMIT {
        return Err(bad("a frame that no subscriber sends"));
    }
    let mut body = vec![0; length as usize];
    reader.read_exact(&mut body).await?;
    Ok((flags, body))
}

/// Reads subscriptions until the peer leaves.
async fn listen(inner: &Inner, peer: &Peer, reader: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    loop {
        let (flags, body) = read_frame(reader).await?;
        if let Some(ping) = command(flags, &body, "PING") {
            let mut pong = BytesMut::new();
            put_command(&mut pong, "PONG", ping.get(2..).unwrap_or_default());
            locked(&peer.state).push(pong.freeze());
        } else if let Some(topic) = command(flags, &body, "SUBSCRIBE") {
            peer.subscribe(inner, topic);
        } else if let Some(topic) = command(flags, &body, "CANCEL") {
            peer.unsubscribe(topic);
        } else if flags & COMMAND == 0 {
            match body.split_first() {
                Some((1, topic)) => peer.subscribe(inner, topic),
                Some((0, topic)) => peer.unsubscribe(topic),
                _ => {}
            }
        }
        peer.wake.notify_one();
    }
}

impl Peer {
    fn subscribe(&self, inner: &Inner, topic: &[u8]) {
        let welcome = encode(&(inner.welcome)(topic));
        let mut state = locked(&self.state);
        state.topics.push(topic.to_vec());
        // Under the same lock, so that nothing of the topic comes before its welcome.
        state.push(welcome);
    }

    /// Takes bytes off the account; returns how many still wait.
    fn written(&self, bytes: usize) -> usize {
        let mut state = locked(&self.state);
        state.waiting = state.waiting.saturating_sub(bytes);
        state.waiting
    }

    fn unsubscribe(&self, topic: &[u8]) {
        let mut state = locked(&self.state);
        if let Some(at) = state.topics.iter().position(|t| t == topic) {
            state.topics.swap_remove(at);
        }
    }
}

/// Writes the queue until the peer leaves or is closed.
async fn write(inner: &Inner, peer: &Peer, writer: impl AsyncWrite + Unpin) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(BUFFER, writer);
    // What may still sit in the buffer; it counts as waiting until it is flushed.
    let mut buffered = 0;
    loop {
        let next = {
            let mut state = locked(&peer.state);
            if state.closed {
                return Ok(());
            }
            state.queue.pop_front()
        };
        if let Some(message) = next {
            writer.write_all(&message).await?;
            let held = (buffered + message.len()).min(BUFFER);
            peer.written(buffered + message.len() - held);
            buffered = held;
            continue;
        }
        writer.flush().await?;
        if peer.written(std::mem::take(&mut buffered)) == 0 {
            inner.drained.notify_waiters();
            peer.wake.notified().await;
        }
    }
}
