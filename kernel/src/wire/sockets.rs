//! What is done with the messages of the ROUTER sockets: shell, control and stdin parse them, the heartbeat echoes.
use super::message::{Key, Message, Reject, parse};
use super::replay::Seen;
use super::router::{Check, Outbound};
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use tokio::sync::oneshot;

/// Takes whatever comes, which shows no key.
pub fn anything() -> Check<Vec<Bytes>> {
    Arc::new(|frames| Ok((frames, false)))
}

/// Takes messages with a right signature, each once, and none of this kernel's own: those are signed with the same key.
pub fn signed(key: Key, session: String) -> Check<Message> {
    let seen = Seen::default();
    Arc::new(move |frames| {
        let message = parse(&frames, &key)?;
        match message.header.get("session").and_then(|s| s.as_str()) {
            Some(own) if own == session => Err(Reject::Own),
            _ if !seen.is_new(&message.signature) => Err(Reject::Replayed),
            _ => Ok((message, true)),
        }
    })
}

/// Echoes whatever comes, to whom it came from.
pub async fn heartbeat(mut inbound: Receiver<Vec<Bytes>>, out: Outbound) {
    while let Some(frames) = inbound.recv().await {
        out.send(&[], &frames);
    }
}

/// A request to handle everything that has already arrived, and to say when that is done.
pub type Fence = oneshot::Sender<()>;

/// Reads messages for ever.
pub async fn read(mut inbound: Receiver<Message>, mut fences: UnboundedReceiver<Fence>, mut each: impl FnMut(Message)) {
    loop {
        tokio::select! {
            biased;
            received = inbound.recv() => match received {
                Some(message) => each(message),
                None => return,
            },
            Some(fence) = fences.recv() => {
                for _ in 0..3 {
                    // Each yield lets the connections' tasks ask the operating system what else is there to read.
                    tokio::task::yield_now().await;
                    while let Ok(message) = inbound.try_recv() {
                        each(message);
                    }
                }
                let _ = fence.send(());
            }
        }
    }
}
