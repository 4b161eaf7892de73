//! What waits to be written to one connection: queued from any thread, written by one task, and bounded.
use super::zmtp::{BUFFER, Packet, Sending};
use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

/// A large message is written in pieces, so that one can see that it gets on.
const PIECE: usize = 256 << 10;

#[derive(Default)]
pub struct Outgoing {
    backlog: Mutex<Backlog>,
    wake: Notify,
}

#[derive(Default)]
struct Backlog {
    queue: VecDeque<Packet>,
    /// In the queue and in the write under way.
    waiting: usize,
    /// When the peer last took something.
    moved: Option<Instant>,
    closed: bool,
}

impl Outgoing {
    fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message; never waits. A peer that has left more than `limit` bytes waiting is given up: false.
    /// One message may be longer than that.
    pub fn push(&self, message: Packet, limit: usize) -> bool {
        let mut backlog = self.lock();
        if !backlog.closed && backlog.waiting > limit {
            backlog.close();
            drop(backlog);
            self.wake.notify_one();
            return false;
        }
        if !backlog.closed {
            backlog.waiting += message.size();
            backlog.queue.push_back(message);
        }
        drop(backlog);
        self.wake.notify_one();
        true
    }

    pub fn waiting(&self) -> usize {
        self.lock().waiting
    }

    /// Whether more than `bytes` wait for a peer that does read, if slowly.
    pub fn lags(&self, bytes: usize, patience: Duration) -> bool {
        let backlog = self.lock();
        backlog.waiting > bytes && backlog.moved.is_some_and(|t| t.elapsed() < patience)
    }

    pub fn close(&self) {
        self.lock().close();
        self.wake.notify_one();
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Writes the queue until the peer leaves or the queue is closed; `told` runs whenever some of it has gone.
    pub async fn write(&self, mut sending: Sending, told: impl Fn()) -> io::Result<()> {
        // What may still sit in the buffer; it counts as waiting until it is flushed.
        let mut buffered = 0;
        loop {
            let next = {
                let mut backlog = self.lock();
                if backlog.closed {
                    return Ok(());
                }
                backlog.queue.pop_front()
            };
            if let Some(message) = next {
                for frame in message.frames() {
                    let mut left = Packet::size_of(frame);
                    let [head, body] = sending.encode(frame);
                    for piece in head.chunks(PIECE).chain(body.chunks(PIECE)) {
                        sending.writer.write_all(piece).await?;
                        let done = piece.len().min(left);
                        left -= done;
                        let held = (buffered + done).min(BUFFER);
                        self.written(buffered + done - held);
                        buffered = held;
                    }
                    // What the frame was taken to cost beyond its bytes.
                    self.written(left);
                }
                told();
                continue;
            }
            sending.writer.flush().await?;
            let left = self.written(std::mem::take(&mut buffered));
            told();
            if left == 0 {
                self.wake.notified().await;
            }
        }
    }

    /// Takes bytes off the account; returns how many still wait.
    fn written(&self, bytes: usize) -> usize {
        let mut backlog = self.lock();
        backlog.waiting = backlog.waiting.saturating_sub(bytes);
        if bytes > 0 {
            backlog.moved = Some(Instant::now());
        }
        backlog.waiting
    }
}

impl Backlog {
    fn close(&mut self) {
        self.closed = true;
        self.queue = VecDeque::new();
        self.waiting = 0;
    }
}
