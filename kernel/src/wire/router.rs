//! A ROUTER socket: messages of all peers in one queue, each with its peer's identity in front; replies by identity.
use super::outgoing::Outgoing;
use super::zmtp::{Listener, Reader, Writer, bad, encode, read_frame, shake};
use bytes::Bytes;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::BufReader;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The longest message.
const MESSAGE_LIMIT: u64 = 512 << 20;
/// The most that may wait for a peer that does not read.
const WAITING_LIMIT: usize = 128 << 20;
/// The most frames of one message: real ones have a dozen, and a few hundred buffers.
const FRAME_COUNT: usize = 100_000;
const PEER_LIMIT: usize = 1024;

/// Messages read ahead; beyond that a sender is left waiting in its own socket.
const READ_AHEAD: usize = 256;

/// The sending end; cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct Outbound(Arc<Inner>);

struct Inner {
    channel: &'static str,
    peers: Mutex<HashMap<Bytes, Arc<Outgoing>>>,
    connections: AtomicUsize,
    names: AtomicU32,
    drained: Notify,
}

/// Binds the socket and takes connections from then on.
pub async fn router(channel: &'static str, url: &str) -> io::Result<(Outbound, Receiver<Vec<Bytes>>)> {
    let listener = Listener::bind(url).await?;
    let inner = Arc::new(Inner {
        channel,
        peers: Mutex::default(),
        connections: AtomicUsize::new(0),
        names: AtomicU32::new(0),
        drained: Notify::new(),
    });
    let (sender, inbound) = self::channel(READ_AHEAD);
    let out = Outbound(inner.clone());
    tokio::spawn(async move {
        loop {
            let (reader, writer) = listener.accept(inner.channel).await;
            if inner.connections.fetch_add(1, Ordering::Relaxed) >= PEER_LIMIT {
                inner.connections.fetch_sub(1, Ordering::Relaxed);
                super::log(format_args!("{}: a connection was refused: there are {PEER_LIMIT}", inner.channel));
                continue;
            }
            let (inner, sender) = (inner.clone(), sender.clone());
            tokio::spawn(async move {
                serve(&inner, reader, writer, sender).await;
                inner.connections.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    Ok((out, inbound))
}

impl Outbound {
    /// Queues a message for the peer named by its first frame. Nobody waits for a peer that does not read, and one that
    /// has left is not missed.
    pub fn send(&self, identities: &[Bytes], frames: &[Bytes]) {
        let mut all = identities.iter().chain(frames);
        let Some(peer) = all.next().and_then(|identity| self.0.lock().get(identity).cloned()) else { return };
        let rest: Vec<Bytes> = all.cloned().collect();
        if !peer.push(encode(&rest), WAITING_LIMIT) {
            super::log(format_args!("{}: a front end that stopped reading is disconnected", self.0.channel));
        }
    }

    /// Waits until every reply has been handed to the operating system.
    pub async fn drained(&self) {
        loop {
            let told = self.0.drained.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if self.0.lock().values().all(|p| p.waiting() == 0) {
                return;
            }
            told.await;
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, HashMap<Bytes, Arc<Outgoing>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name for a peer that gave itself none; a zero in front keeps it apart from those that did.
    fn name(&self) -> Bytes {
        let mut name = vec![0];
        name.extend_from_slice(&self.names.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        name.into()
    }
}

/// One connection from its handshake to its end.
async fn serve(inner: &Inner, reader: Reader, mut writer: Writer, sender: Sender<Vec<Bytes>>) {
    let mut reader = BufReader::new(reader);
    let identity = match shake(&mut reader, &mut writer, "ROUTER", &["DEALER", "REQ", "ROUTER"]).await {
        Ok(identity) if identity.is_empty() => inner.name(),
        Ok(identity) => identity,
        Err(e) => return report(inner.channel, &e),
    };
    let peer = Arc::new(Outgoing::default());
    // A front end that comes back before its old connection is known to be dead takes its place.
    inner.lock().insert(identity.clone(), peer.clone());
    tokio::select! {
        ended = read(&peer, &identity, &mut reader, &sender) => if let Err(e) = ended { report(inner.channel, &e) },
        _ = peer.write(writer, || inner.drained.notify_waiters()) => {}
    }
    peer.close();
    let mut peers = inner.lock();
    if peers.get(&identity).is_some_and(|p| Arc::ptr_eq(p, &peer)) {
        peers.remove(&identity);
    }
    drop(peers);
    inner.drained.notify_waiters();
}

/// Port scanners and front ends that leave are nothing to report.
fn report(channel: &str, error: &io::Error) {
    if error.kind() == io::ErrorKind::InvalidData {
        super::log(format_args!("{channel}: a connection was closed: {error}"));
    }
}

async fn read(
    peer: &Outgoing,
    identity: &Bytes,
    reader: &mut BufReader<Reader>,
    sender: &Sender<Vec<Bytes>>,
) -> io::Result<()> {
    loop {
        let (mut frames, mut left) = (vec![identity.clone()], MESSAGE_LIMIT);
        loop {
            let frame = read_frame(reader, left).await?;
            if frame.is_command() {
                if let Some(pong) = frame.pong() {
                    peer.push(pong, WAITING_LIMIT);
                }
                continue;
            }
            left -= frame.body.len() as u64;
            let more = frame.has_more();
            frames.push(frame.body);
            if frames.len() > FRAME_COUNT {
                return Err(bad("a message of too many frames"));
            }
            if !more {
                break;
            }
        }
        if sender.send(frames).await.is_err() {
            return Ok(());
        }
    }
}
