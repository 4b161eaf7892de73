//! The four ROUTER sockets (shell, control, stdin, heartbeat): one task that reads each, one that writes it.
use super::message::{Key, Message, parse};
use bytes::Bytes;
use futures_util::FutureExt;
use std::io;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use zeromq::{RouterRecvHalf, RouterSocket, Socket, SocketRecv, SocketSend, ZmqError, ZmqMessage};

/// The sending end of a socket; cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct Outbound(UnboundedSender<Vec<Bytes>>);

impl Outbound {
    /// Queues a message for the peer named by its first frame. Nobody waits for a peer that does not read.
    pub fn send(&self, identities: &[Bytes], frames: Vec<Bytes>) {
        let all = identities.iter().cloned().chain(frames).collect();
        let _ = self.0.send(all);
    }
}

/// Binds a ROUTER socket and starts its writer task. The endpoint tells which port 0 became.
pub async fn router(url: &str) -> io::Result<(Outbound, RouterRecvHalf, String)> {
    if let Some(path) = url.strip_prefix("ipc://") {
        let _ = std::fs::remove_file(path);
    }
    let mut socket = RouterSocket::new();
    let endpoint = socket.bind(url).await.map_err(|e| io::Error::other(format!("cannot listen on {url}: {e}")))?;
    let (mut writer, reader) = socket.split();
    let (sender, mut queue) = unbounded_channel::<Vec<Bytes>>();
    tokio::spawn(async move {
        while let Some(frames) = queue.recv().await {
            // Fails when the peer has left, and then there is nobody to tell.
            if let Ok(message) = ZmqMessage::try_from(frames) {
                let _ = writer.send(message).await;
            }
        }
    });
    Ok((Outbound(sender), reader, endpoint.to_string()))
}

/// Echoes whatever comes, to whom it came from.
pub async fn heartbeat(mut reader: RouterRecvHalf, out: Outbound) {
    loop {
        if let Ok(message) = receive(&mut reader, "heartbeat").await {
            out.send(&[], message.into_vec());
        }
    }
}

/// A request to handle everything that has already arrived, and to say when that is done.
pub type Fence = oneshot::Sender<()>;

/// Reads messages for ever; what cannot be parsed is logged and dropped.
pub async fn read(
    mut reader: RouterRecvHalf,
    channel: &'static str,
    key: Key,
    mut fences: UnboundedReceiver<Fence>,
    mut each: impl FnMut(Message),
) {
    let mut take = |received: ZmqMessage| match parse(&received.into_vec(), &key) {
        Ok(message) => each(message),
        Err(reject) => super::log(format_args!("{channel}: a message was dropped: {reject}")),
    };
    loop {
        tokio::select! {
            biased;
            received = receive(&mut reader, channel) => {
                if let Ok(message) = received {
                    take(message);
                }
            }
            Some(fence) = fences.recv() => {
                for _ in 0..3 {
                    // Each yield lets the runtime ask the operating system what else is there to read.
                    tokio::task::yield_now().await;
                    while let Some(Ok(message)) = receive(&mut reader, channel).now_or_never() {
                        take(message);
                    }
                }
                let _ = fence.send(());
            }
        }
    }
}

async fn receive(reader: &mut RouterRecvHalf, channel: &str) -> Result<ZmqMessage, ZmqError> {
    let received = reader.recv().await;
    if let Err(e) = &received {
        super::log(format_args!("{channel}: {e}"));
        // Whatever is wrong must not become a loop that burns a core.
        tokio::task::yield_now().await;
    }
    received
}
