//! CURVE, the encryption of ZMTP (RFC 26/CurveZMQ), on the server's side: key agreement, and boxes for what follows.
//!
//! Whoever knows this server's public key may come in: it stands in the connection file, as the key does that signs.
//! Front ends use the key pair of that file for themselves or make one of their own, so theirs is not asked for more
//! than a proof that they have it. Nothing here does I/O; every refusal is an error that says why, for the log.
use super::bad;
use bytes::{BufMut, Bytes, BytesMut};
use crypto_box::aead::{AeadInPlace, OsRng, rand_core::RngCore};
use crypto_box::{Nonce, PublicKey, SalsaBox, SecretKey, Tag};
use std::io;
use std::sync::Arc;

const KEY: usize = 32;
const TAG: usize = 16;
const LONG_NONCE: usize = 16;
const COOKIE: usize = 96;

const HELLO: usize = 200;
const INITIATE: &[u8] = b"\x08INITIATE";
const MESSAGE: &[u8] = b"\x07MESSAGE";

/// What a box and its flags add to a frame.
pub const OVERHEAD: usize = MESSAGE.len() + 8 + TAG + 1;

/// The server's key pair.
pub struct Keys {
    public: PublicKey,
    secret: SecretKey,
}

impl Keys {
    /// From the connection file, where both are in Z85.
    pub fn read(public: &str, secret: &str) -> Result<Keys, String> {
        let key = |name, text| z85(text).ok_or_else(|| format!("{name} is not a key of 40 characters in Z85"));
        let (public, secret) = (key("curve_publickey", public)?, key("curve_secretkey", secret)?);
        let keys = Keys { public: public.into(), secret: secret.into() };
        match keys.secret.public_key() == keys.public {
            true => Ok(keys),
            false => Err("curve_publickey is not the key that goes with curve_secretkey".to_owned()),
        }
    }
}

/// RFC 32: five characters for four bytes.
fn z85(text: &str) -> Option<[u8; KEY]> {
    const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    let groups = text.as_bytes().chunks_exact(5);
    if groups.len() != KEY / 4 || !groups.remainder().is_empty() {
        return None;
    }
    let mut key = [0; KEY];
    for (bytes, group) in key.chunks_exact_mut(4).zip(groups) {
        let number = group.iter().try_fold(0u64, |n, c| Some(n * 85 + DIGITS.iter().position(|d| d == c)? as u64))?;
        bytes.copy_from_slice(&u32::try_from(number).ok()?.to_be_bytes());
    }
    Some(key)
}

/// The secret that two keys share. With a point of small order it is one of five, whatever the other key: who sends one
/// knows the secret without knowing this server, so they are refused.
fn agree(theirs: &PublicKey, ours: &SecretKey) -> io::Result<SalsaBox> {
    let mut point = theirs.to_bytes();
    // Nobody looks at the last bit.
    point[KEY - 1] &= 0x7f;
    match SMALL_ORDER.contains(&point) {
        true => Err(bad("its key is a point of small order")),
        false => Ok(SalsaBox::new(theirs, ours)),
    }
}

/// All of them on the curve and its twist, with those of two forms in both: 0, 1, p - 1, p, p + 1, and two of order 8.
const SMALL_ORDER: [[u8; KEY]; 7] = [
    point(0, 0, 0),
    point(1, 0, 0),
    point(0xec, 0xff, 0x7f),
    point(0xed, 0xff, 0x7f),
    point(0xee, 0xff, 0x7f),
    [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda, 0x09,
        0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
    ],
    [
        0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b, 0x04, 0x44,
        0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57,
    ],
];

const fn point(first: u8, middle: u8, last: u8) -> [u8; KEY] {
    let mut point = [middle; KEY];
    (point[0], point[KEY - 1]) = (first, last);
    point
}

fn nonce(prefix: &[u8], rest: &[u8]) -> Nonce {
    let mut nonce = Nonce::default();
    nonce[..prefix.len()].copy_from_slice(prefix);
    nonce[prefix.len()..].copy_from_slice(rest);
    nonce
}

/// The box around a text: a tag, and the text encrypted.
fn seal(cipher: &SalsaBox, nonce: &Nonce, text: &[u8]) -> Vec<u8> {
    let mut sealed = vec![0; TAG];
    sealed.extend_from_slice(text);
    seal_in_place(cipher, nonce, &mut sealed);
    sealed
}

/// The same where room for the tag has been left in front.
fn seal_in_place(cipher: &SalsaBox, nonce: &Nonce, room: &mut [u8]) {
    let (tag, text) = room.split_at_mut(TAG);
    let made = cipher.encrypt_in_place_detached(nonce, b"", text);
    tag.copy_from_slice(&made.expect("a message is shorter than 2^64 blocks"));
}

/// Opens a box where it lies; the text begins behind the tag.
fn open_in_place<'a>(cipher: &SalsaBox, nonce: &Nonce, sealed: &'a mut [u8]) -> Option<&'a [u8]> {
    let (tag, text) = sealed.split_at_mut_checked(TAG)?;
    cipher.decrypt_in_place_detached(nonce, b"", text, Tag::from_slice(tag)).ok()?;
    Some(text)
}

/// What stands in a command one after the other.
fn take<'a>(rest: &mut &'a [u8], length: usize) -> io::Result<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length).ok_or_else(|| bad("its handshake is cut short"))?;
    *rest = after;
    Ok(taken)
}

fn take_key(rest: &mut &[u8]) -> io::Result<PublicKey> {
    Ok(PublicKey::from_slice(take(rest, KEY)?).expect("it has the length of a key"))
}

fn number(short_nonce: &[u8]) -> u64 {
    short_nonce.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// A handshake between WELCOME and INITIATE.
///
/// The cookie is there for servers that forget all of this meanwhile. A stream has a connection that remembers, so the
/// cookie is a random number that must come back, and the secret key of the connection leaves the process in no form.
pub struct Greeted {
    cookie: [u8; COOKIE],
    theirs: PublicKey,
    ours: SecretKey,
    last: u64,
}

/// Takes a HELLO, answers with a WELCOME: shorter, so that nobody can be flooded by way of this server.
pub fn welcome(keys: &Keys, hello: &[u8]) -> io::Result<(Vec<u8>, Greeted)> {
    let rest = &mut &*hello;
    if hello.len() != HELLO || take(rest, 6)? != b"\x05HELLO" {
        return Err(bad("no HELLO from the peer"));
    }
    if take(rest, 2)? != [1, 0] {
        return Err(bad("the peer speaks another version of CURVE"));
    }
    if take(rest, 72)?.iter().any(|b| *b != 0) {
        return Err(bad("its HELLO is not what it should be"));
    }
    let theirs = take_key(rest)?;
    let counter = take(rest, 8)?;
    let cipher = agree(&theirs, &keys.secret)?;
    let signature = &mut rest.to_vec();
    let opened = open_in_place(&cipher, &nonce(b"CurveZMQHELLO---", counter), signature);
    if opened != Some(&[0; 64]) {
        return Err(bad("it does not know this kernel's public key"));
    }
    let (mut cookie, mut long) = ([0; COOKIE], [0; LONG_NONCE]);
    OsRng.fill_bytes(&mut cookie);
    OsRng.fill_bytes(&mut long);
    let ours = SecretKey::generate(&mut OsRng);
    let text = [ours.public_key().as_bytes().as_slice(), &cookie].concat();
    let welcome = [b"\x07WELCOME", &long[..], &seal(&cipher, &nonce(b"WELCOME-", &long), &text)].concat();
    Ok((welcome, Greeted { cookie, theirs, ours, last: number(counter) }))
}

impl Greeted {
    /// Takes an INITIATE; the answer is both directions of what follows, and what the peer says of itself.
    pub fn initiated(self, keys: &Keys, initiate: &[u8]) -> io::Result<(Sealer, Opener, Vec<u8>)> {
        let rest = &mut initiate.strip_prefix(INITIATE).ok_or_else(|| bad("no INITIATE from the peer"))?;
        if take(rest, COOKIE)? != self.cookie {
            return Err(bad("it brought back another cookie"));
        }
        let counter = take(rest, 8)?;
        if number(counter) <= self.last {
            return Err(bad("it used a number twice"));
        }
        let cipher = Arc::new(agree(&self.theirs, &self.ours)?);
        let sealed = &mut rest.to_vec();
        let opened = open_in_place(&cipher, &nonce(b"CurveZMQINITIATE", counter), sealed);
        let rest = &mut opened.ok_or_else(|| bad("its INITIATE cannot be opened"))?;
        let lasting = take_key(rest)?;
        let long = take(rest, LONG_NONCE)?;
        let vouch = &mut take(rest, TAG + 2 * KEY)?.to_vec();
        let vouched = open_in_place(&agree(&lasting, &self.ours)?, &nonce(b"VOUCH---", long), vouch);
        if vouched != Some(&[self.theirs.as_bytes().as_slice(), keys.public.as_bytes()].concat()) {
            return Err(bad("it does not have the key that it says it has"));
        }
        let sealer = Sealer { cipher: cipher.clone(), sent: 0 };
        Ok((sealer, Opener { cipher, last: number(counter) }, rest.to_vec()))
    }
}

/// What goes to the peer.
pub struct Sealer {
    cipher: Arc<SalsaBox>,
    sent: u64,
}

impl Sealer {
    fn counter(&mut self) -> [u8; 8] {
        self.sent += 1;
        self.sent.to_be_bytes()
    }

    /// The last word of the handshake.
    pub fn ready(&mut self, properties: &[u8]) -> Vec<u8> {
        let counter = self.counter();
        let sealed = seal(&self.cipher, &nonce(b"CurveZMQREADY---", &counter), properties);
        [b"\x05READY", &counter[..], &sealed].concat()
    }

    /// Appends a frame with its flags, in a box.
    pub fn message(&mut self, out: &mut BytesMut, flags: u8, body: &[u8]) {
        let counter = self.counter();
        out.put_slice(MESSAGE);
        out.put_slice(&counter);
        let at = out.len();
        out.put_bytes(0, TAG);
        out.put_u8(flags);
        out.put_slice(body);
        seal_in_place(&self.cipher, &nonce(b"CurveZMQMESSAGES", &counter), &mut out[at..]);
    }
}

/// What comes from the peer.
pub struct Opener {
    cipher: Arc<SalsaBox>,
    last: u64,
}

impl Opener {
    /// The flags and the body of the frame in a box.
    pub fn message(&mut self, mut sealed: Vec<u8>) -> io::Result<(u8, Bytes)> {
        let rest = sealed.strip_prefix(MESSAGE).filter(|rest| rest.len() >= OVERHEAD - MESSAGE.len());
        let counter = rest.ok_or_else(|| bad("it sent something in no box"))?[..8].to_vec();
        if number(&counter) <= self.last {
            return Err(bad("it sent a box twice"));
        }
        self.last = number(&counter);
        let at = MESSAGE.len() + 8;
        let opened = open_in_place(&self.cipher, &nonce(b"CurveZMQMESSAGEC", &counter), &mut sealed[at..]);
        let flags = *opened.and_then(<[u8]>::first).ok_or_else(|| bad("it sent a box that cannot be opened"))?;
        Ok((flags, Bytes::from(sealed).slice(OVERHEAD..)))
    }
}
