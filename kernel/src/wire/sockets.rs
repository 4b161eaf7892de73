//! What is done with the messages of the ROUTER sockets: shell, control and stdin parse them, the heartbeat echoes.
use super::message::{Key, Message, parse};
use super::router::Outbound;
use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use tokio::sync::oneshot;

/// Echoes whatever comes, to whom it came from.
pub async fn heartbeat(mut inbound: Receiver<Vec<Bytes>>, out: Outbound) {
    while let Some(frames) = inbound.recv().await {
        out.send(&[], &frames);
    }
}

/// A request to handle everything that has already arrived, and to say when that is done.
pub type Fence = oneshot::Sender<()>;

/// Reads messages for ever; what cannot be parsed is logged and dropped.
pub async fn read(
    mut inbound: Receiver<Vec<Bytes>>,
    channel: &'static str,
    key: Key,
    mut fences: UnboundedReceiver<Fence>,
    mut each: impl FnMut(Message),
) {
    let mut take = |frames: Vec<Bytes>| match parse(&frames, &key) {
        Ok(message) => each(message),
        Err(reject) => super::log(format_args!("{channel}: a message was dropped: {reject}")),
    };
    loop {
        tokio::select! {
            biased;
            received = inbound.recv() => match received {
                Some(frames) => take(frames),
                None => return,
            },
            Some(fence) = fences.recv() => {
                for _ in 0..3 {
                    // Each yield lets the connections' tasks ask the operating system what else is there to read.
                    tokio::task::yield_now().await;
                    while let Ok(frames) = inbound.try_recv() {
                        take(frames);
                    }
                }
                let _ = fence.send(());
            }
        }
    }
}
