//! What goes out on iopub, in order: stream text is gathered into larger messages, everything else goes at once.
use super::content;
use super::message::Envelope;
use super::publisher::{Note, Publisher};
use bytes::Bytes;
use jupyter_protocol::messaging::{Stdio, StreamContent};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use xlazy_mime::{Bundle, units};

/// Text waits this long for more, but the first text after a pause goes at once.
const GATHER: Duration = Duration::from_millis(15);

/// A message of this much text is sent without waiting for more.
const CHUNK: usize = 64 << 10;

/// The cell waits while this much is on its way to the publisher, which itself never waits.
const TEXT_LIMIT: usize = 8 << 20;
const ITEM_LIMIT: usize = 20_000;

/// The queue in front of the publisher. Cheap to clone.
#[derive(Clone)]
pub struct Iopub(Arc<Inner>);

struct Inner {
    publisher: Publisher,
    queue: Mutex<Queue>,
    wake: Notify,
    room: Condvar,
    /// Told when everything has gone to the publisher after [`Iopub::close`].
    done: Notify,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    text: usize,
    /// Something other than text waits, so nothing is gathered any longer.
    urgent: bool,
    closed: bool,
}

enum Item {
    Text { parent: Arc<Value>, stderr: bool, text: String },
    Message { parent: Arc<Value>, msg_type: &'static str, content: Value, beside: Beside },
}

/// What a message has besides its content.
pub struct Beside {
    pub metadata: Value,
    /// Binary parts.
    pub buffers: Vec<Bytes>,
}

impl Default for Beside {
    fn default() -> Beside {
        Beside { metadata: json!({}), buffers: vec![] }
    }
}

impl Iopub {
    /// Starts the writer task; call it inside the runtime.
    pub fn start(publisher: Publisher, envelope: Arc<Envelope>) -> Iopub {
        let inner = Inner {
            publisher,
            queue: Mutex::default(),
            wake: Notify::new(),
            room: Condvar::new(),
            done: Notify::new(),
        };
        let inner = Arc::new(inner);
        tokio::spawn(write(inner.clone(), envelope));
        Iopub(inner)
    }

    /// Queues a message; never waits.
    pub fn send(&self, parent: &Arc<Value>, msg_type: &'static str, content: Value) {
        self.send_with(parent, msg_type, content, Beside::default());
    }

    pub fn send_with(&self, parent: &Arc<Value>, msg_type: &'static str, content: Value, beside: Beside) {
        let mut queue = self.0.lock();
        queue.items.push_back(Item::Message { parent: parent.clone(), msg_type, content, beside });
        queue.urgent = true;
        drop(queue);
        self.0.wake.notify_one();
    }

    pub fn status(&self, parent: &Arc<Value>, state: &'static str) {
        self.send(parent, "status", json!({"execution_state": state}));
    }

    /// Queues a display of a cell, of about so many bytes. Waits while too much is queued or a front end does not keep
    /// up, so never call it on a task.
    pub fn show(&self, parent: &Arc<Value>, msg_type: &'static str, content: Value, weight: usize) {
        let mut queue = self.0.lock_when_there_is_room();
        queue.text += weight;
        drop(queue);
        self.send(parent, msg_type, content);
        self.0.publisher.wait_for_room();
    }

    /// Queues a MIME bundle, as [`Iopub::show`] does.
    pub fn display(&self, parent: &Arc<Value>, bundle: &Bundle, id: Option<String>, update: bool) {
        let transient = id.map_or_else(|| json!({}), |id| json!({"display_id": id}));
        let msg_type = if update { "update_display_data" } else { "display_data" };
        let shown = json!({"data": content::data(bundle), "metadata": {}, "transient": transient});
        self.show(parent, msg_type, shown, content::weight(bundle));
    }

    /// Queues text of a cell. Waits while too much is queued, so never call it on a task.
    pub fn stream(&self, parent: &Arc<Value>, stderr: bool, text: String) {
        if text.is_empty() {
            return;
        }
        let mut queue = self.0.lock_when_there_is_room();
        let (idle, before) = (queue.items.is_empty(), queue.text);
        queue.text += text.len();
        let wake = idle || before / CHUNK != queue.text / CHUNK;
        match queue.items.back_mut() {
            Some(Item::Text { parent: p, stderr: e, text: tail })
                if *e == stderr && Arc::ptr_eq(p, parent) && tail.len() + text.len() <= CHUNK =>
            {
                tail.push_str(&text);
            }
            _ => queue.items.push_back(Item::Text { parent: parent.clone(), stderr, text }),
        }
        drop(queue);
        // Waking the writer for every line would cost more than the line; it looks again when its time is up.
        if wake {
            self.0.wake.notify_one();
        }
    }

    /// Sends what is queued, lets nobody wait any more, and returns when the publisher has all of it.
    pub async fn close(&self) {
        {
            let mut queue = self.0.lock();
            queue.closed = true;
            queue.urgent = true;
        }
        self.0.room.notify_all();
        self.0.wake.notify_one();
        self.0.done.notified().await;
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_when_there_is_room(&self) -> MutexGuard<'_, Queue> {
        let full = |s: &mut Queue| !s.closed && (s.text >= TEXT_LIMIT || s.items.len() >= ITEM_LIMIT);
        self.room.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(inner: Arc<Inner>, envelope: Arc<Envelope>) {
    let mut sent = Instant::now() - GATHER;
    loop {
        inner.wake.notified().await;
        let (items, closed) = loop {
            let ready = {
                let mut queue = inner.lock();
                let due = queue.urgent || queue.text >= CHUNK || sent.elapsed() >= GATHER;
                due.then(|| {
                    queue.text = 0;
                    queue.urgent = false;
                    (std::mem::take(&mut queue.items), queue.closed)
                })
            };
            match ready {
                Some(ready) => break ready,
                None => tokio::select! {
                    _ = tokio::time::sleep_until(sent + GATHER) => {}
                    _ = inner.wake.notified() => {}
                },
            }
        };
        inner.room.notify_all();
        if !items.is_empty() {
            sent = Instant::now();
        }
        for item in items {
            publish(item, &inner.publisher, &envelope);
            // Encoding a large batch must not keep the heartbeat waiting.
            tokio::task::consume_budget().await;
        }
        if closed {
            return inner.done.notify_one();
        }
    }
}

fn publish(item: Item, publisher: &Publisher, envelope: &Arc<Envelope>) {
    match item {
        Item::Message { parent, msg_type, content, beside } => {
            let mut frames = sealed(envelope, &parent, msg_type, (&beside.metadata, &content));
            frames.extend(beside.buffers);
            publisher.publish(&frames, None);
        }
        Item::Text { parent, stderr, text } => {
            let frames = sealed(envelope, &parent, "stream", (&json!({}), &stream(stderr, text)));
            let envelope = envelope.clone();
            let note: Note = Arc::new(move |bytes| {
                let text = format!(
                    "\n[xlazy: {} of output left out: the front end reads too slowly]\n",
                    units::bytes(bytes as u64)
                );
                sealed(&envelope, &parent, "stream", (&json!({}), &stream(true, text)))
            });
            publisher.publish(&frames, Some(&note));
        }
    }
}

fn stream(stderr: bool, text: String) -> Value {
    content::typed(StreamContent { name: if stderr { Stdio::Stderr } else { Stdio::Stdout }, text })
}

/// A message with its topic in front, which subscribers filter by.
pub fn sealed(
    envelope: &Envelope,
    parent: &Value,
    msg_type: &str,
    (metadata, content): (&Value, &Value),
) -> Vec<Bytes> {
    let topic = match msg_type {
        "stream" => format!("stream.{}", content["name"].as_str().unwrap_or("stdout")),
        _ => format!("kernel.{}.{msg_type}", envelope.session()),
    };
    let mut frames = vec![Bytes::from(topic)];
    frames.extend(envelope.seal(msg_type, parent, metadata, content));
    frames
}
