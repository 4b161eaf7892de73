//! ZMTP 3.0 as far as a kernel's sockets need it: listening, the NULL handshake, frames; nothing is taken on trust.
//!
//! Not the `zeromq` crate, which reserves whatever length a frame claims before it is there: nine bytes from anybody
//! who can connect, no key needed, and the process is gone.
use bytes::{BufMut, Bytes, BytesMut};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
const HANDSHAKE_FRAME: u64 = 64 << 10;

pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A bound socket. The file of a Unix socket is gone with it.
pub enum Listener {
    Tcp(TcpListener),
    Ipc(UnixListener, PathBuf),
}

impl Listener {
    /// Listens on `tcp://ip:port`, where port 0 means any and `*` every interface, or on `ipc://path`.
    pub async fn bind(url: &str) -> io::Result<Listener> {
        let bound = match (url.strip_prefix("tcp://"), url.strip_prefix("ipc://")) {
            (Some(address), _) => bind_tcp(address).await,
            (_, Some(path)) => bind_ipc(path.into()),
            _ => Err(bad("neither tcp:// nor ipc://")),
        };
        bound.map_err(|e| io::Error::other(format!("cannot listen on {url}: {e}")))
    }

    /// The next connection. Never fails: there may just be no descriptor left for a while.
    pub async fn accept(&self, channel: &str) -> (Reader, Writer) {
        loop {
            let accepted = match self {
                Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                    // A status message is small and somebody waits for it.
                    let _ = stream.set_nodelay(true);
                    let (r, w) = stream.into_split();
                    (Box::new(r) as Reader, Box::new(w) as Writer)
                }),
                Listener::Ipc(listener, _) => listener.accept().await.map(|(stream, _)| {
                    let (r, w) = stream.into_split();
                    (Box::new(r) as Reader, Box::new(w) as Writer)
                }),
            };
            match accepted {
                Ok(halves) => return halves,
                Err(e) => {
                    super::log(format_args!("{channel}: cannot accept a connection: {e}"));
                    // Trying again at once would only burn a core.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Ipc(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn bind_tcp(address: &str) -> io::Result<Listener> {
    let (ip, port) = address.rsplit_once(':').ok_or_else(|| bad("no port"))?;
    let port: u16 = port.parse().map_err(|_| bad("the port is not a number"))?;
    let ip = if ip == "*" { "0.0.0.0" } else { ip.trim_matches(['[', ']']) };
    Ok(Listener::Tcp(TcpListener::bind((ip, port)).await?))
}

/// Takes the place of a stale file; what is there for others to use is theirs.
fn bind_ipc(path: PathBuf) -> io::Result<Listener> {
    use std::os::unix::fs::FileTypeExt;
    if std::fs::symlink_metadata(&path).is_ok_and(|m| m.file_type().is_socket()) {
        std::fs::remove_file(&path)?;
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(Listener::Ipc(listener, path))
}

pub fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// All frames of a message as they are sent.
pub fn encode(frames: &[Bytes]) -> Bytes {
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

/// One frame as it came.
pub struct Frame {
    flags: u8,
    pub body: Bytes,
}

impl Frame {
    pub fn has_more(&self) -> bool {
        self.flags & MORE != 0
    }

    pub fn is_command(&self) -> bool {
        self.flags & COMMAND != 0
    }

    /// What follows the name in a command of this name.
    pub fn command(&self, name: &str) -> Option<&[u8]> {
        let (length, rest) = self.body.split_first()?;
        if !self.is_command() || usize::from(*length) != name.len() {
            return None;
        }
        rest.strip_prefix(name.as_bytes())
    }

    /// The answer to a ping, if that is what this is.
    pub fn pong(&self) -> Option<Bytes> {
        let ping = self.command("PING")?;
        let mut pong = BytesMut::new();
        put_command(&mut pong, "PONG", ping.get(2..).unwrap_or_default());
        Some(pong.freeze())
    }
}

/// Reads one frame of at most `limit` bytes. Memory is taken as the bytes arrive, not as the length promises.
pub async fn read_frame(reader: &mut (impl AsyncRead + Unpin), limit: u64) -> io::Result<Frame> {
    let flags = reader.read_u8().await?;
    if flags > MORE | LONG | COMMAND {
        return Err(bad("a frame with flags that do not exist"));
    }
    let length = if flags & LONG != 0 { reader.read_u64().await? } else { u64::from(reader.read_u8().await?) };
    if length > limit {
        return Err(bad("a message that is too long"));
    }
    let mut body = Vec::with_capacity(length.min(64 << 10) as usize);
    if reader.take(length).read_to_end(&mut body).await? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Frame { flags, body: body.into() })
}

/// Greeting and READY of the NULL mechanism, both ways; returns the identity that the peer gave itself.
pub async fn shake(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    kind: &str,
    peers: &[&str],
) -> io::Result<Bytes> {
    let shaken = tokio::time::timeout(HANDSHAKE_LIMIT, shake_for_ever(reader, writer, kind, peers)).await;
    shaken.unwrap_or_else(|_| Err(bad("it did not finish its handshake")))
}

async fn shake_for_ever(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    kind: &str,
    peers: &[&str],
) -> io::Result<Bytes> {
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
    put_command(&mut ready, "READY", &property("Socket-Type", kind.as_bytes()));
    writer.write_all(&ready).await?;
    writer.flush().await?;
    let frame = read_frame(reader, HANDSHAKE_FRAME).await?;
    let properties = frame.command("READY").ok_or_else(|| bad("no READY from the peer"))?;
    let (mut is_peer, mut identity) = (false, Bytes::new());
    for (name, value) in read_properties(properties)? {
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            is_peer = peers.iter().any(|p| p.as_bytes() == value);
        } else if name.eq_ignore_ascii_case(b"Identity") {
            identity = Bytes::copy_from_slice(value);
        }
    }
    match (is_peer, identity.len()) {
        (false, _) => Err(bad("the peer's socket is of a type that does not go with this one")),
        (true, 256..) => Err(bad("the peer's identity is too long")),
        (true, _) => Ok(identity),
    }
}

fn property(name: &str, value: &[u8]) -> Vec<u8> {
    let mut out = vec![name.len() as u8];
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
    out
}

fn read_properties(mut rest: &[u8]) -> io::Result<Vec<(&[u8], &[u8])>> {
    let cut = || bad("a property of the peer is cut short");
    let mut found = Vec::new();
    while let Some((length, after)) = rest.split_first() {
        let (name, after) = after.split_at_checked((*length).into()).ok_or_else(cut)?;
        let (length, after) = after.split_first_chunk::<4>().ok_or_else(cut)?;
        let (value, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(cut)?;
        found.push((name, value));
        rest = after;
    }
    Ok(found)
}
