//! The socket behind iopub: a publisher that greets each subscription and never stalls on a slow peer.
//!
//! The usual PUB drops whatever is newest, a status message included. Here each subscriber has a queue of its own: past
//! [`Limits::drop_text`] stream text is left out and a note says how much, everything else is kept, and a peer that
//! reads nothing for [`Limits::close`] bytes is disconnected.
use super::bad;
use super::curve::Keys;
use super::guests::{Account, Door, STRANGERS_TIME, Seat};
use super::listen::{Listener, Reader, Writer};
use super::outgoing::Outgoing;
use super::router::report;
use super::zmtp::{Frame, Incoming, Packet, Role};
use bytes::Bytes;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Subscribers only ever send subscriptions, pings and a handshake.
const FRAME_LIMIT: u64 = 16 << 10;
/// The topics of one subscriber: how many, and how long together.
const TOPIC_LIMIT: usize = 1024;
const TOPIC_BYTES: usize = 16 << 10;
/// What may wait for a subscriber of answers to what it sent, which anybody can send without end. What is published is
/// shared by all, these are its own.
const ANSWERS_LIMIT: usize = 1 << 20;

/// A peer that has taken nothing for this long no longer counts as one that reads slowly.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes waiting for one subscriber.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Whoever shows more waits for a subscriber that reads slowly; see [`Publisher::wait_for_room`].
    pub wait: usize,
    pub drop_text: usize,
    pub close: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { wait: 64 << 20, drop_text: 32 << 20, close: 128 << 20 }
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
    role: Role,
    peers: Mutex<HashMap<u64, Arc<Peer>>>,
    welcome: Welcome,
    limits: Limits,
    /// Told whenever some of a queue has gone or a peer leaves; the same for threads.
    drained: Notify,
    room: Condvar,
}

#[derive(Default)]
struct Peer {
    wants: Mutex<Wants>,
    out: Outgoing,
}

/// What goes into a peer's queue. Its lock is held while the queue is added to, which keeps the order.
#[derive(Default)]
struct Wants {
    topics: Vec<Vec<u8>>,
    /// Bytes left out since the last message that went through, and what to say about them.
    missing: Option<(usize, Note)>,
    /// Bytes of answers since there was nothing left to read.
    answers: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Publisher {
    pub async fn bind(
        url: &str,
        keys: Option<Arc<Keys>>,
        account: &Account,
        welcome: Welcome,
        limits: Limits,
    ) -> io::Result<Publisher> {
        let listener = Listener::bind(url).await?;
        let inner = Arc::new(Inner {
            role: Role { kind: "XPUB", peers: &["SUB", "XSUB"], keys },
            peers: Mutex::default(),
            welcome,
            limits,
            drained: Notify::new(),
            room: Condvar::new(),
        });
        let publisher = Publisher(inner.clone());
        let door = Door::new("iopub", account.clone());
        tokio::spawn(async move {
            loop {
                let (reader, writer) = listener.accept("iopub").await;
                if let Some(seat) = door.enter() {
                    tokio::spawn(serve(inner.clone(), seat, reader, writer));
                }
            }
        });
        Ok(publisher)
    }

    /// Queues one message for everybody who subscribed to a prefix of its first frame. Never waits.
    pub fn publish(&self, frames: &[Bytes], droppable: Option<&Note>) {
        let topic: &[u8] = frames.first().map_or(b"", |t| t);
        let message = Packet::message(frames);
        for peer in locked(&self.0.peers).values() {
            peer.offer(topic, &message, droppable, self.0.limits);
        }
    }

    /// Waits, on a thread of its own, while somebody who does read has not caught up: without this, a cell that shows
    /// pictures faster than a front end takes them would end with that front end disconnected.
    pub fn wait_for_room(&self) {
        let limit = self.0.limits.wait;
        let lags = |peers: &HashMap<u64, Arc<Peer>>| peers.values().any(|p| p.out.lags(limit, PATIENCE));
        let mut peers = locked(&self.0.peers);
        while lags(&peers) {
            let (again, _) = self.0.room.wait_timeout(peers, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            peers = again;
        }
    }

    /// Waits until everything published has been handed to the operating system.
    pub async fn drained(&self) {
        loop {
            let told = self.0.drained.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if locked(&self.0.peers).values().all(|p| p.out.waiting() == 0) {
                return;
            }
            told.await;
        }
    }
}

impl Peer {
    fn offer(&self, topic: &[u8], message: &Packet, droppable: Option<&Note>, limits: Limits) {
        let mut wants = locked(&self.wants);
        if self.out.is_closed() || !wants.topics.iter().any(|t| topic.starts_with(t)) {
            return;
        }
        if let Some(note) = droppable {
            // Once text was left out, the queue must halve before text is taken again: one note, not hundreds.
            let room = if wants.missing.is_some() { limits.drop_text / 2 } else { limits.drop_text };
            if self.out.waiting() + message.size() > room {
                let before = wants.missing.take().map_or(0, |(n, _)| n);
                wants.missing = Some((before + message.size(), note.clone()));
                return;
            }
        }
        if let Some((bytes, note)) = wants.missing.take() {
            self.out.push(Packet::message(&note(bytes)), limits.close);
        }
        if !self.out.push(message.clone(), limits.close) {
            super::log(format_args!("iopub: a subscriber that stopped reading is disconnected"));
        }
    }

    fn subscribe(&self, inner: &Inner, topic: &[u8]) {
        let welcome = Packet::message(&(inner.welcome)(topic));
        let mut wants = locked(&self.wants);
        let bytes: usize = wants.topics.iter().map(Vec::len).sum();
        if wants.topics.len() == TOPIC_LIMIT || bytes + topic.len() > TOPIC_BYTES {
            return self.out.close();
        }
        wants.topics.push(topic.to_vec());
        // Under the same lock, so that nothing of the topic comes before its welcome.
        self.answer(&mut wants, welcome, inner.limits);
    }

    fn unsubscribe(&self, topic: &[u8]) {
        let mut wants = locked(&self.wants);
        if let Some(at) = wants.topics.iter().position(|t| t == topic) {
            wants.topics.swap_remove(at);
        }
    }

    fn answer(&self, wants: &mut Wants, answer: Packet, limits: Limits) {
        if self.out.waiting() == 0 {
            wants.answers = 0;
        }
        wants.answers += answer.size();
        match wants.answers > ANSWERS_LIMIT {
            true => self.out.close(),
            false => drop(self.out.push(answer, limits.close)),
        }
    }
}

/// One connection from its handshake to its end.
async fn serve(inner: Arc<Inner>, seat: Seat, reader: Reader, writer: Writer) {
    let shaken = tokio::select! {
        shaken = inner.role.shake(reader, writer, &seat) => shaken,
        _ = seat.sent_away() => return,
    };
    let (mut incoming, sending, _) = match shaken {
        Ok(shaken) => shaken,
        Err(e) => return report("iopub", &e),
    };
    let peer = Arc::new(Peer::default());
    locked(&inner.peers).insert(seat.number(), peer.clone());
    let told = || {
        inner.drained.notify_waiters();
        inner.room.notify_all();
    };
    tokio::select! {
        ended = listen(&inner, &peer, &seat, &mut incoming) => if let Err(e) = ended { report("iopub", &e) },
        _ = peer.out.write(sending, told) => {}
        _ = seat.sent_away() => {}
    }
    locked(&inner.peers).remove(&seat.number());
    peer.out.close();
    told();
}

/// Reads subscriptions until the peer leaves.
async fn listen(inner: &Inner, peer: &Peer, seat: &Seat, incoming: &mut Incoming) -> io::Result<()> {
    loop {
        incoming.ready().await?;
        let frame = tokio::time::timeout(STRANGERS_TIME, incoming.frame(FRAME_LIMIT, seat)).await;
        let frame: Frame = frame.unwrap_or_else(|_| Err(bad("it did not finish its message")))?;
        seat.release();
        if let Some(pong) = frame.pong() {
            peer.answer(&mut locked(&peer.wants), pong, inner.limits);
        } else if let Some(topic) = frame.command("SUBSCRIBE") {
            peer.subscribe(inner, topic);
        } else if let Some(topic) = frame.command("CANCEL") {
            peer.unsubscribe(topic);
        } else if !frame.is_command() {
            match frame.body.split_first() {
                Some((1, topic)) => peer.subscribe(inner, topic),
                Some((0, topic)) => peer.unsubscribe(topic),
                _ => {}
            }
        }
    }
}
