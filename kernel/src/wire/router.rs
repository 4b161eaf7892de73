//! A ROUTER socket: messages of all peers in one queue, each with two frames in front that say where it came from.
//!
//! The first is the connection's own, the second the identity that the peer gave itself. A reply goes to the connection;
//! where that is gone, or on another socket (a question on stdin), to the latest of that identity. Several front ends
//! that share a Jupyter session share an identity, and each must still get the replies to what it asked.
use super::outgoing::Outgoing;
use super::zmtp::{Listener, Reader, Writer, bad, encode, read_frame, shake};
use bytes::Bytes;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
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
/// The most connections of one socket: what they hold open must leave descriptors for compilers and files.
pub const PEER_LIMIT: usize = 128;

/// Messages read ahead; beyond that a sender is left waiting in its own socket.
const READ_AHEAD: usize = 256;

/// The sending end; cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct Outbound(Arc<Inner>);

struct Inner {
    channel: &'static str,
    peers: Mutex<Peers>,
    drained: Notify,
}

#[derive(Default)]
struct Peers {
    open: usize,
    by_connection: HashMap<Bytes, Arc<Outgoing>>,
    by_identity: HashMap<Bytes, Arc<Outgoing>>,
}

/// Numbers the connections of all sockets, so that none is taken for one of another socket.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// Binds the socket and takes connections from then on.
pub async fn router(channel: &'static str, url: &str) -> io::Result<(Outbound, Receiver<Vec<Bytes>>)> {
    let listener = Listener::bind(url).await?;
    let inner = Arc::new(Inner { channel, peers: Mutex::default(), drained: Notify::new() });
    let (sender, inbound) = self::channel(READ_AHEAD);
    let out = Outbound(inner.clone());
    tokio::spawn(async move {
        loop {
            let (reader, writer) = listener.accept(inner.channel).await;
            let mut peers = inner.lock();
            if peers.open >= PEER_LIMIT {
                super::log(format_args!("{}: a connection was refused: there are {PEER_LIMIT}", inner.channel));
                continue;
            }
            peers.open += 1;
            drop(peers);
            let (inner, sender) = (inner.clone(), sender.clone());
            tokio::spawn(async move {
                serve(&inner, reader, writer, sender).await;
                inner.lock().open -= 1;
            });
        }
    });
    Ok((out, inbound))
}

impl Outbound {
    /// Queues a message for the peer that its first two frames name. Nobody waits for a peer that does not read, and
    /// one that has left is not missed.
    pub fn send(&self, from: &[Bytes], frames: &[Bytes]) {
        let mut all = from.iter().chain(frames);
        let (Some(connection), Some(identity)) = (all.next(), all.next()) else { return };
        let peer = {
            let peers = self.0.lock();
            peers.by_connection.get(connection).or_else(|| peers.by_identity.get(identity)).cloned()
        };
        let Some(peer) = peer else { return };
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
            if self.0.lock().by_connection.values().all(|p| p.waiting() == 0) {
                return;
            }
            told.await;
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection from its handshake to its end.
async fn serve(inner: &Inner, reader: Reader, mut writer: Writer, sender: Sender<Vec<Bytes>>) {
    let mut reader = BufReader::new(reader);
    let identity = match shake(&mut reader, &mut writer, "ROUTER", &["DEALER", "REQ", "ROUTER"]).await {
        Ok(identity) => identity,
        Err(e) => return report(inner.channel, &e),
    };
    let peer = Arc::new(Outgoing::default());
    let connection = Bytes::from(CONNECTIONS.fetch_add(1, Ordering::Relaxed).to_be_bytes().to_vec());
    {
        let mut peers = inner.lock();
        peers.by_connection.insert(connection.clone(), peer.clone());
        if !identity.is_empty() {
            peers.by_identity.insert(identity.clone(), peer.clone());
        }
    }
    let from = [connection.clone(), identity.clone()];
    tokio::select! {
        ended = read(&peer, &from, &mut reader, &sender) => if let Err(e) = ended { report(inner.channel, &e) },
        _ = peer.write(writer, || inner.drained.notify_waiters()) => {}
    }
    peer.close();
    let mut peers = inner.lock();
    peers.by_connection.remove(&connection);
    if peers.by_identity.get(&identity).is_some_and(|p| Arc::ptr_eq(p, &peer)) {
        peers.by_identity.remove(&identity);
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
    from: &[Bytes; 2],
    reader: &mut BufReader<Reader>,
    sender: &Sender<Vec<Bytes>>,
) -> io::Result<()> {
    loop {
        let (mut frames, mut left) = (from.to_vec(), MESSAGE_LIMIT);
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
