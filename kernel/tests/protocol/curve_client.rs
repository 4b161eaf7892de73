//! A client of CURVE by hand, every field of which can be wrong.
use crate::raw;
use crypto_box::aead::{AeadInPlace, OsRng, rand_core::RngCore};
use crypto_box::{Nonce, PublicKey, SalsaBox, SecretKey, Tag};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

fn nonce(prefix: &[u8], rest: &[u8]) -> Nonce {
    *Nonce::from_slice(&[prefix, rest].concat())
}

pub fn seal(cipher: &SalsaBox, prefix: &[u8], rest: &[u8], text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    let tag = cipher.encrypt_in_place_detached(&nonce(prefix, rest), b"", &mut text).unwrap();
    [&tag[..], &text].concat()
}

pub fn open(cipher: &SalsaBox, prefix: &[u8], rest: &[u8], sealed: &[u8]) -> Vec<u8> {
    let (tag, text) = sealed.split_at(16);
    let mut text = text.to_vec();
    cipher.decrypt_in_place_detached(&nonce(prefix, rest), b"", &mut text, Tag::from_slice(tag)).unwrap();
    text
}

pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    OsRng.fill_bytes(&mut bytes);
    bytes
}

/// What a client says in its handshake. What is here is right; a test changes some of it.
pub struct Handshake {
    pub server: PublicKey,
    pub lasting: SecretKey,
    pub passing: SecretKey,
    /// C' as it is sent and vouched for.
    pub passing_public: PublicKey,
    pub version: [u8; 2],
    pub padding: [u8; 72],
    pub signature: [u8; 64],
    pub numbers: [u64; 2],
    pub cookie: Option<[u8; 96]>,
    pub lasting_public: PublicKey,
    pub vouched: [PublicKey; 2],
    pub properties: Vec<u8>,
}

impl Handshake {
    pub fn new(server: &PublicKey, kind: &str) -> Handshake {
        let (lasting, passing) = (SecretKey::generate(&mut OsRng), SecretKey::generate(&mut OsRng));
        Handshake {
            server: server.clone(),
            passing_public: passing.public_key(),
            version: [1, 0],
            padding: [0; 72],
            signature: [0; 64],
            numbers: [1, 2],
            cookie: None,
            lasting_public: lasting.public_key(),
            vouched: [passing.public_key(), server.clone()],
            properties: [raw::property("Socket-Type", kind.as_bytes()), raw::property("Identity", b"me")].concat(),
            lasting,
            passing,
        }
    }

    pub fn hello(&self) -> Vec<u8> {
        let number = self.numbers[0].to_be_bytes();
        let cipher = SalsaBox::new(&self.server, &self.passing);
        let signature = seal(&cipher, b"CurveZMQHELLO---", &number, &self.signature);
        [b"\x05HELLO", &self.version[..], &self.padding, self.passing_public.as_bytes(), &number, &signature].concat()
    }

    /// From the answer to the other: the INITIATE, and the cipher of what follows.
    pub fn initiate(&self, welcome: &[u8]) -> (Vec<u8>, SalsaBox) {
        assert_eq!((&welcome[..8], welcome.len()), (&b"\x07WELCOME"[..], 168));
        let text = open(&SalsaBox::new(&self.server, &self.passing), b"WELCOME-", &welcome[8..24], &welcome[24..]);
        let theirs = PublicKey::from_slice(&text[..32]).unwrap();
        let cookie: [u8; 96] = self.cookie.unwrap_or(text[32..].try_into().unwrap());
        let long: [u8; 16] = random();
        let vouched = [self.vouched[0].as_bytes().as_slice(), self.vouched[1].as_bytes()].concat();
        let vouch = seal(&SalsaBox::new(&theirs, &self.lasting), b"VOUCH---", &long, &vouched);
        let text = [self.lasting_public.as_bytes().as_slice(), &long, &vouch, &self.properties].concat();
        let number = self.numbers[1].to_be_bytes();
        let cipher = SalsaBox::new(&theirs, &self.passing);
        let sealed = seal(&cipher, b"CurveZMQINITIATE", &number, &text);
        ([b"\x08INITIATE", &cookie[..], &number, &sealed].concat(), cipher)
    }

    /// All of it, or where the server hung up.
    pub fn run(&self, url: &str) -> Result<Client, &'static str> {
        let mut stream = greeted(url);
        stream.write_all(&raw::frame(4, &self.hello())).map_err(|_| "HELLO")?;
        let (_, welcome) = raw::read_frame(&mut stream).map_err(|_| "HELLO")?;
        let (initiate, cipher) = self.initiate(&welcome);
        stream.write_all(&raw::frame(4, &initiate)).map_err(|_| "INITIATE")?;
        let (flags, ready) = raw::read_frame(&mut stream).map_err(|_| "INITIATE")?;
        assert_eq!((flags, &ready[..6]), (4, &b"\x05READY"[..]));
        let properties = open(&cipher, b"CurveZMQREADY---", &ready[6..14], &ready[14..]);
        assert!(properties.starts_with(b"\x0bSocket-Type"));
        Ok(Client { stream, cipher, sent: self.numbers[1], received: 1 })
    }
}

/// A connection on which both have said that they speak CURVE.
pub fn greeted(url: &str) -> UnixStream {
    let mut stream = raw::connect(url);
    stream.write_all(&raw::greeting("CURVE")).unwrap();
    let mut theirs = [0; 64];
    stream.read_exact(&mut theirs).unwrap();
    assert_eq!((&theirs[12..18], theirs[32]), (&b"CURVE\0"[..], 1), "it is the server");
    stream
}

pub struct Client {
    pub stream: UnixStream,
    pub cipher: SalsaBox,
    pub sent: u64,
    received: u64,
}

impl Client {
    /// A frame in a box, with any number and flags.
    pub fn boxed(&self, number: u64, flags: u8, body: &[u8]) -> Vec<u8> {
        let number = number.to_be_bytes();
        let sealed = seal(&self.cipher, b"CurveZMQMESSAGEC", &number, &[&[flags], body].concat());
        [b"\x07MESSAGE", &number[..], &sealed].concat()
    }

    pub fn encode(&mut self, frames: &[impl AsRef<[u8]>]) -> Vec<u8> {
        let last = frames.len() - 1;
        let mut out = Vec::new();
        for (n, body) in frames.iter().enumerate() {
            self.sent += 1;
            out.extend(raw::frame(0, &self.boxed(self.sent, u8::from(n < last), body.as_ref())));
        }
        out
    }

    pub fn send(&mut self, frames: &[impl AsRef<[u8]>]) {
        let message = self.encode(frames);
        self.stream.write_all(&message).unwrap();
    }

    /// A message: its flags without that of more to come, and its frames.
    pub fn receive(&mut self) -> std::io::Result<(u8, Vec<Vec<u8>>)> {
        let mut frames = Vec::new();
        loop {
            let (_, sealed) = raw::read_frame(&mut self.stream)?;
            let number = u64::from_be_bytes(sealed[8..16].try_into().unwrap());
            assert!(sealed.starts_with(b"\x07MESSAGE") && number > self.received, "a number is used once");
            self.received = number;
            let text = open(&self.cipher, b"CurveZMQMESSAGES", &sealed[8..16], &sealed[16..]);
            frames.push(text[1..].to_vec());
            if text[0] & 1 == 0 {
                return Ok((text[0], frames));
            }
        }
    }
}
