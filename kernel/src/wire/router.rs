//! A ROUTER socket: messages of all peers in one queue, each with two frames in front that say where it came from.
//!
//! The first is the connection's own, the second the identity that the peer gave itself. A reply goes to the connection,
//! or, where that is gone, to another of that identity. Several front ends that share a Jupyter session share an
//! identity, and each must still get the replies to what it asked. An identity is no secret and proves nothing.
use super::bad;
use super::guests::{Account, Door, STRANGERS_TIME, Seat};
use super::listen::{Listener, Reader, Writer};
use super::message::Reject;
use super::outgoing::Outgoing;
use super::zmtp::{FRAME_COST, Incoming, Packet, Role, heavy};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// What one peer may have.
#[derive(Clone, Copy)]
pub struct Limits {
    /// The longest message, its frames' overhead included.
    pub message: usize,
    /// The most that may wait for a peer that does not read.
    pub waiting: usize,
}

impl Limits {
    pub const MESSAGES: Limits = Limits { message: 512 << 20, waiting: 128 << 20 };
    /// Of peers that show no key, and of which nobody needs much.
    pub const BEATS: Limits = Limits { message: 64 << 10, waiting: 256 << 10 };
}

/// A ping is not answered while this much waits: the peer sees that we are alive.
const PONG_LIMIT: usize = 1 << 20;

/// Messages read ahead; beyond that a sender is left waiting in its own socket.
const READ_AHEAD: usize = 256;

/// A front end makes all of its connections within this time.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Makes something of a message's frames, and says whether they show that the sender has the key.
pub type Check<T> = Arc<dyn Fn(Vec<Bytes>) -> Result<(T, bool), Reject> + Send + Sync>;

/// The sending end; cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct Outbound(Arc<Inner>);

struct Inner {
    channel: &'static str,
    role: Role,
    limits: Limits,
    door: Arc<Door>,
    peers: Mutex<BTreeMap<u64, Arc<Peer>>>,
    /// Told of every new peer.
    joined: Condvar,
    drained: Notify,
}

struct Peer {
    identity: Bytes,
    seat: Seat,
    out: Outgoing,
}

/// Binds the socket and takes connections from then on.
pub async fn router<T: Send + 'static>(
    (channel, url): (&'static str, &str),
    keys: Option<Arc<super::curve::Keys>>,
    account: &Account,
    limits: Limits,
    check: Check<T>,
) -> io::Result<(Outbound, Receiver<T>)> {
    let listener = Listener::bind(url).await?;
    let role = Role { kind: "ROUTER", peers: &["DEALER", "REQ", "ROUTER"], keys };
    let door = Door::new(channel, account.clone());
    let (peers, joined, drained) = (Mutex::default(), Condvar::new(), Notify::new());
    let inner = Arc::new(Inner { channel, role, limits, door, peers, joined, drained });
    let (sender, inbound) = self::channel(READ_AHEAD);
    let out = Outbound(inner.clone());
    tokio::spawn(async move {
        loop {
            let (reader, writer) = listener.accept(inner.channel).await;
            let Some(seat) = inner.door.enter() else { continue };
            let (inner, sender, check) = (inner.clone(), sender.clone(), check.clone());
            tokio::spawn(async move { serve(&inner, seat, reader, writer, &check, &sender).await });
        }
    });
    Ok((out, inbound))
}

impl Outbound {
    /// Queues a message for the peer that its first two frames name. Nobody waits for a peer that does not read, and
    /// one that has left is not missed.
    pub fn send(&self, from: &[Bytes], frames: &[Bytes]) {
        let all: Vec<Bytes> = from.iter().chain(frames).cloned().collect();
        let [connection, identity, rest @ ..] = &all[..] else { return };
        let peer = {
            let peers = self.0.lock();
            // It may have come back on another connection. So may anybody who says so; the key is what tells.
            let back = || of(&peers, identity).max_by_key(|(number, p)| (p.seat.is_verified(), *number));
            number(connection).and_then(|n| peers.get(&n)).or_else(|| back().map(|(_, p)| p)).cloned()
        };
        self.0.push(peer, rest);
    }

    /// Waits for the connections that who sent a request on another socket makes beside it: under load a request can come
    /// before they have shaken hands. Blocks for a moment at most.
    pub fn wait_for(&self, from: &[Bytes]) {
        let [connection, identity, ..] = from else { return };
        let Some(asking) = number(connection) else { return };
        let there = |peers: &mut BTreeMap<u64, Arc<Peer>>| {
            of(peers, identity).next().is_some() && self.0.door.beside(asking).iter().all(|n| peers.contains_key(n))
        };
        let waited = self.0.joined.wait_timeout_while(self.0.lock(), AT_ONCE, |peers| !there(peers));
        drop(waited);
    }

    /// Queues a message for the one that sent a request on another socket, `there`; its identity, or none where it is not
    /// here. Of several with its identity it is one that came before the first request did, and of these the nearest: a
    /// front end makes all of its connections at once, and who takes on its identity must have heard it first.
    pub fn ask(&self, from: &[Bytes], there: &Outbound, frames: &[Bytes]) -> Option<Bytes> {
        let [connection, identity, ..] = from else { return None };
        let asking = number(connection)?;
        let known = there.0.lock().get(&asking).map_or(u64::MAX, |p| p.seat.known());
        let nearest = |(n, _): &(u64, &Arc<Peer>)| (*n >= known, n.abs_diff(asking));
        let peer = of(&self.0.lock(), identity).min_by_key(nearest).map(|(_, p)| p.clone());
        peer.map(|peer| {
            self.0.push(Some(peer), frames);
            identity.clone()
        })
    }

    /// Waits until every reply has been handed to the operating system.
    pub async fn drained(&self) {
        loop {
            let told = self.0.drained.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if self.0.lock().values().all(|p| p.out.waiting() == 0) {
                return;
            }
            told.await;
        }
    }
}

fn number(connection: &[u8]) -> Option<u64> {
    connection.try_into().ok().map(u64::from_be_bytes)
}

/// Those with this identity, in the order in which they came; nobody has an empty one.
fn of<'a>(
    peers: &'a BTreeMap<u64, Arc<Peer>>,
    identity: &'a Bytes,
) -> impl Iterator<Item = (u64, &'a Arc<Peer>)> + use<'a> {
    peers.iter().filter(move |(_, p)| !identity.is_empty() && p.identity == *identity).map(|(n, p)| (*n, p))
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Peer>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, peer: Option<Arc<Peer>>, frames: &[Bytes]) {
        if peer.is_some_and(|peer| !peer.out.push(Packet::message(frames), self.limits.waiting)) {
            super::log(format_args!("{}: a front end that stopped reading is disconnected", self.channel));
        }
    }
}

/// One connection from its handshake to its end.
async fn serve<T>(inner: &Inner, seat: Seat, reader: Reader, writer: Writer, check: &Check<T>, sender: &Sender<T>) {
    let shaken = tokio::select! {
        shaken = inner.role.shake(reader, writer, &seat) => shaken,
        _ = seat.sent_away() => return,
    };
    let (mut incoming, sending, identity) = match shaken {
        Ok(shaken) => shaken,
        Err(e) => return report(inner.channel, &e),
    };
    let number = seat.number();
    let peer = Arc::new(Peer { identity, seat, out: Outgoing::default() });
    inner.lock().insert(number, peer.clone());
    inner.joined.notify_all();
    tokio::select! {
        ended = read(inner, &peer, &mut incoming, check, sender) => if let Err(e) = ended { report(inner.channel, &e) },
        _ = peer.out.write(sending, || inner.drained.notify_waiters()) => {}
        _ = peer.seat.sent_away() => {}
    }
    peer.out.close();
    inner.lock().remove(&number);
    inner.drained.notify_waiters();
}

/// Port scanners and front ends that leave are nothing to report.
pub fn report(channel: &str, error: &io::Error) {
    if error.kind() == io::ErrorKind::InvalidData {
        super::log_stranger(format_args!("{channel}: a connection was closed: {error}"));
    }
}

async fn read<T>(
    inner: &Inner,
    peer: &Peer,
    incoming: &mut Incoming,
    check: &Check<T>,
    sender: &Sender<T>,
) -> io::Result<()> {
    let connection = Bytes::copy_from_slice(&peer.seat.number().to_be_bytes());
    loop {
        incoming.ready().await?;
        let from = vec![connection.clone(), peer.identity.clone()];
        let message = read_message(inner, peer, incoming, from);
        let (frames, size) = match peer.seat.is_verified() {
            true => message.await?,
            false => match tokio::time::timeout(STRANGERS_TIME, message).await {
                Ok(read) => read?,
                Err(_) => return Err(bad("it did not finish its message")),
            },
        };
        let checked = heavy(size, || check(frames));
        peer.seat.release();
        match checked {
            Ok((value, shows_the_key)) => {
                if shows_the_key {
                    peer.seat.has_shown_the_key();
                }
                if sender.send(value).await.is_err() {
                    return Ok(());
                }
            }
            Err(reject) => super::log_stranger(format_args!("{}: a message was dropped: {reject}", inner.channel)),
        }
    }
}

/// The frames of one message behind those of its sender, and their size.
async fn read_message(
    inner: &Inner,
    peer: &Peer,
    incoming: &mut Incoming,
    mut frames: Vec<Bytes>,
) -> io::Result<(Vec<Bytes>, usize)> {
    let mut left = inner.limits.message;
    loop {
        let frame = incoming.frame(left as u64, &peer.seat).await?;
        if frame.is_command() {
            if peer.out.waiting() < PONG_LIMIT
                && let Some(pong) = frame.pong()
            {
                peer.out.push(pong, inner.limits.waiting);
            }
            continue;
        }
        let cost = frame.body.len() + FRAME_COST;
        left = left.checked_sub(cost).ok_or_else(|| bad("a message that is too long"))?;
        let more = frame.has_more();
        frames.push(frame.body);
        if !more {
            return Ok((frames, inner.limits.message - left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::sockets::anything;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    /// One that has shaken hands.
    async fn peer(path: &str) -> UnixStream {
        let mut stream = UnixStream::connect(path).await.unwrap();
        let mut greeting = [0; 64];
        (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
        greeting[12..16].copy_from_slice(b"NULL");
        stream.write_all(&greeting).await.unwrap();
        stream.write_all(b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER").await.unwrap();
        stream.read_exact(&mut [0; 64 + 30]).await.unwrap();
        stream
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_stranger_may_be_silent_for_ever_but_not_in_the_middle_of_a_message() {
        let path = std::env::temp_dir().join(format!("xlazy-router-{}", std::process::id()));
        let url = format!("ipc://{}", path.display());
        // Whoever says "key" has shown it.
        let check: Check<Vec<Bytes>> = Arc::new(|frames| {
            let shows = frames.last().is_some_and(|f| f == "key");
            anything()(frames).map(|(frames, _)| (frames, shows))
        });
        let socket = ("shell", url.as_str());
        let (_out, mut inbound) = router(socket, None, &Account::default(), Limits::MESSAGES, check).await.unwrap();
        let path = path.to_str().unwrap();
        let (mut silent, mut owner, mut slow) = (peer(path).await, peer(path).await, peer(path).await);
        owner.write_all(b"\0\x03key").await.unwrap();
        assert_eq!(inbound.recv().await.unwrap()[2], "key");
        for stream in [&mut owner, &mut slow] {
            stream.write_all(b"\x01\x05hello\x00\x06wor").await.unwrap();
        }
        let hung_up = tokio::time::timeout(Duration::from_secs(20), slow.read_to_end(&mut Vec::new())).await;
        assert!(hung_up.is_ok(), "half a message was waited for");
        owner.write_all(b"ld!").await.unwrap();
        assert_eq!(inbound.recv().await.unwrap()[2..], ["hello", "world!"]);
        silent.write_all(b"\0\x02hi").await.unwrap();
        assert_eq!(inbound.recv().await.unwrap()[2..], ["hi"]);
    }
}
