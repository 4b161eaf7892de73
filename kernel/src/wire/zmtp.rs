//! ZMTP 3 as far as a kernel's sockets need it: the handshakes NULL and CURVE, and frames; nothing is taken on trust.
//!
//! Not the `zeromq` crate, which reserves whatever length a frame claims before it is there: nine bytes from anybody
//! who can connect, no key needed, and the process is gone.
use super::bad;
use super::curve::{self, Keys, Opener, Sealer, welcome};
use super::guests::Seat;
use super::listen::{Reader, Writer};
use bytes::{BufMut, Bytes, BytesMut};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// In a CURVE box the flags are others: these two.
const BOXED_MORE: u8 = 1;
const BOXED_COMMAND: u8 = 2;

const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
const HANDSHAKE_FRAME: u64 = 8 << 10;

/// What a frame costs beside its body: its header on the wire, or its entry in a list.
pub const FRAME_COST: usize = 64;

/// The memory for a frame's first bytes; it doubles as they arrive.
const FIRST_READ: usize = 4 << 10;

/// Encoding, encrypting and checking more than this is not done between two other tasks.
const HEAVY: usize = 256 << 10;

/// A frame as it goes out or came in.
#[derive(Clone)]
pub struct Frame {
    /// [`MORE`] and [`COMMAND`].
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
    pub fn pong(&self) -> Option<Packet> {
        let ping = self.command("PING")?;
        // No more than a context of 16 bytes comes back, as the protocol has it.
        let context = ping.get(2..).unwrap_or_default();
        Some(Packet::new(vec![command("PONG", &context[..context.len().min(16)])]))
    }
}

fn command(name: &str, body: &[u8]) -> Frame {
    let text = [&[name.len() as u8], name.as_bytes(), body].concat();
    Frame { flags: COMMAND, body: text.into() }
}

/// The frames of one message, shared by those to whom they go.
#[derive(Clone)]
pub struct Packet {
    frames: Arc<[Frame]>,
    size: usize,
}

impl Packet {
    fn new(frames: Vec<Frame>) -> Packet {
        Packet { size: frames.iter().map(Packet::size_of).sum(), frames: frames.into() }
    }

    pub fn message(bodies: &[Bytes]) -> Packet {
        let flags = |n| if n + 1 < bodies.len() { MORE } else { 0 };
        Packet::new(bodies.iter().enumerate().map(|(n, body)| Frame { flags: flags(n), body: body.clone() }).collect())
    }

    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// What it is taken to cost, encrypted or not.
    pub fn size(&self) -> usize {
        self.size
    }

    pub fn size_of(frame: &Frame) -> usize {
        frame.body.len() + FRAME_COST
    }
}

fn put_header(out: &mut BytesMut, flags: u8, length: usize) {
    match u8::try_from(length) {
        Ok(short) => out.put_slice(&[flags, short]),
        Err(_) => {
            out.put_u8(flags | LONG);
            out.put_u64(length as u64);
        }
    }
}

/// Runs what takes long without keeping another task from running.
pub fn heavy<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > HEAVY { tokio::task::block_in_place(work) } else { work() }
}

/// [`Sending`] gathers small writes in a buffer of this size.
pub const BUFFER: usize = 64 << 10;

/// The way to a peer.
pub struct Sending {
    pub writer: BufWriter<Writer>,
    sealer: Option<Sealer>,
}

impl Sending {
    /// A frame as it stands on the wire, in two parts.
    pub fn encode(&mut self, frame: &Frame) -> [Bytes; 2] {
        let mut out = BytesMut::new();
        let Some(sealer) = &mut self.sealer else {
            put_header(&mut out, frame.flags, frame.body.len());
            return [out.freeze(), frame.body.clone()];
        };
        let more = if frame.has_more() { BOXED_MORE } else { 0 };
        let command = if frame.is_command() { BOXED_COMMAND } else { 0 };
        let length = frame.body.len() + curve::OVERHEAD;
        out.reserve(length + 9);
        // libzmq sends boxes as messages, and takes the flag of a command for one of what is in the box.
        put_header(&mut out, 0, length);
        heavy(length, || sealer.message(&mut out, more | command, &frame.body));
        [out.freeze(), Bytes::new()]
    }
}

/// What comes from a peer.
pub struct Incoming {
    reader: BufReader<Reader>,
    opener: Option<Opener>,
}

impl Incoming {
    /// Returns when there is something to read, or when the peer has left.
    pub async fn ready(&mut self) -> io::Result<()> {
        self.reader.fill_buf().await.map(drop)
    }

    /// The next frame, of at most `limit` bytes.
    pub async fn frame(&mut self, limit: u64, seat: &Seat) -> io::Result<Frame> {
        let Some(opener) = &mut self.opener else {
            let (flags, body) = read_frame(&mut self.reader, limit, seat).await?;
            return Ok(Frame { flags, body: body.into() });
        };
        let (outer, body) = read_frame(&mut self.reader, limit.saturating_add(curve::OVERHEAD as u64), seat).await?;
        let (flags, body) = heavy(body.len(), || opener.message(body))?;
        if outer & MORE != 0 || flags & !(BOXED_MORE | BOXED_COMMAND) != 0 {
            return Err(bad("a box with flags that do not exist"));
        }
        let more = if flags & BOXED_MORE != 0 { MORE } else { 0 };
        let command = if flags & BOXED_COMMAND != 0 { COMMAND } else { 0 };
        Ok(Frame { flags: more | command, body })
    }
}

/// The flags and the body of one frame of at most `limit` bytes. Memory is taken as the bytes arrive, not as the length
/// promises, and put on the account before.
async fn read_frame(reader: &mut (impl AsyncRead + Unpin), limit: u64, seat: &Seat) -> io::Result<(u8, Vec<u8>)> {
    let flags = reader.read_u8().await?;
    if flags > MORE | LONG | COMMAND {
        return Err(bad("a frame with flags that do not exist"));
    }
    let length = if flags & LONG != 0 { reader.read_u64().await? } else { u64::from(reader.read_u8().await?) };
    if length > limit {
        return Err(bad("a message that is too long"));
    }
    let length = length as usize;
    seat.hold(FRAME_COST)?;
    let mut body = Vec::new();
    while body.len() < length {
        if body.len() == body.capacity() {
            let more = body.len().max(FIRST_READ).min(length - body.len());
            seat.hold(more)?;
            body.reserve_exact(more);
        }
        let room = body.capacity().min(length) - body.len();
        if reader.read_buf(&mut (&mut body).limit(room)).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok((flags & !LONG, body))
}

/// What a socket is to those who connect.
pub struct Role {
    pub kind: &'static str,
    pub peers: &'static [&'static str],
    /// With them everything is encrypted, and who does not is refused.
    pub keys: Option<Arc<Keys>>,
}

impl Role {
    /// Greeting and handshake, both ways; returns also the identity that the peer gave itself.
    pub async fn shake(&self, reader: Reader, writer: Writer, seat: &Seat) -> io::Result<(Incoming, Sending, Bytes)> {
        let shaken = tokio::time::timeout(HANDSHAKE_LIMIT, self.shake_for_ever(reader, writer, seat)).await;
        shaken.unwrap_or_else(|_| Err(bad("it did not finish its handshake")))
    }

    async fn shake_for_ever(
        &self,
        reader: Reader,
        mut writer: Writer,
        seat: &Seat,
    ) -> io::Result<(Incoming, Sending, Bytes)> {
        let mut reader = BufReader::new(reader);
        let mechanism: &[u8] = if self.keys.is_some() { b"CURVE" } else { b"NULL" };
        let mut greeting = [0u8; 64];
        greeting[0] = 0xff;
        greeting[9] = 0x7f;
        greeting[10] = 3; // Version 3.0: subscriptions then come as messages, which every peer can send.
        greeting[12..12 + mechanism.len()].copy_from_slice(mechanism);
        greeting[32] = u8::from(self.keys.is_some());
        writer.write_all(&greeting).await?;
        let mut theirs = [0u8; 64];
        reader.read_exact(&mut theirs).await?;
        if theirs[0] != 0xff || theirs[9] != 0x7f || theirs[10] < 3 {
            return Err(bad("the peer does not speak ZMTP 3"));
        }
        if theirs[12..32] != greeting[12..32] {
            return Err(bad(match self.keys {
                Some(_) => "it does not encrypt, and this kernel's connection file asks for it",
                None => "it wants another mechanism than NULL, and the connection file has no keys to encrypt with",
            }));
        }
        let ours = property("Socket-Type", self.kind.as_bytes());
        let (opener, sealer, identity) = match &self.keys {
            None => {
                send_command(&mut writer, &command("READY", &ours).body).await?;
                let ready = receive_command(&mut reader, seat).await?;
                let properties = ready.strip_prefix(b"\x05READY").ok_or_else(|| bad("no READY from the peer"))?;
                (None, None, self.identity(properties)?)
            }
            Some(keys) => {
                let (answer, greeted) = welcome(keys, &receive_command(&mut reader, seat).await?)?;
                send_command(&mut writer, &answer).await?;
                let initiate = receive_command(&mut reader, seat).await?;
                let (mut sealer, opener, properties) = greeted.initiated(keys, &initiate)?;
                let identity = self.identity(&properties)?;
                send_command(&mut writer, &sealer.ready(&ours)).await?;
                seat.has_shown_the_key();
                (Some(opener), Some(sealer), identity)
            }
        };
        seat.release();
        seat.has_shaken();
        let sending = Sending { writer: BufWriter::with_capacity(BUFFER, writer), sealer };
        Ok((Incoming { reader, opener }, sending, identity))
    }

    fn identity(&self, properties: &[u8]) -> io::Result<Bytes> {
        let (mut is_peer, mut identity) = (false, Bytes::new());
        for (name, value) in read_properties(properties)? {
            if name.eq_ignore_ascii_case(b"Socket-Type") {
                is_peer = self.peers.iter().any(|p| p.as_bytes() == value);
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
}

async fn send_command(writer: &mut Writer, body: &[u8]) -> io::Result<()> {
    let mut out = BytesMut::with_capacity(body.len() + 9);
    put_header(&mut out, COMMAND, body.len());
    out.put_slice(body);
    writer.write_all(&out).await?;
    writer.flush().await
}

async fn receive_command(reader: &mut BufReader<Reader>, seat: &Seat) -> io::Result<Vec<u8>> {
    let (flags, body) = read_frame(reader, HANDSHAKE_FRAME, seat).await?;
    match flags {
        COMMAND => Ok(body),
        _ => Err(bad("it sent a message before the handshake was done")),
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
