//! One Jupyter message: frames to fields with the signature checked, and fields to signed frames. No I/O.
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The version of the messaging protocol that every header carries.
pub const PROTOCOL: &str = "5.4";

/// What separates routing identities from the message itself.
pub const DELIMITER: &[u8] = b"<IDS|MSG>";

/// The key both sides sign with; an empty one means that nothing is signed.
#[derive(Clone)]
pub struct Key(Option<Hmac<Sha256>>);

impl Key {
    /// Fails for a scheme other than `hmac-sha256`, the only one in use.
    pub fn new(scheme: &str, key: &str) -> Result<Key, String> {
        match (key, scheme) {
            ("", _) => Ok(Key(None)),
            (_, "hmac-sha256") => {
                let mac = Hmac::new_from_slice(key.as_bytes()).map_err(|e| format!("unusable key: {e}"))?;
                Ok(Key(Some(mac)))
            }
            _ => Err(format!("signature scheme {scheme:?} is not supported; use \"hmac-sha256\"")),
        }
    }

    fn digest(&self, parts: &[&[u8]]) -> Option<Hmac<Sha256>> {
        let mut mac = self.0.clone()?;
        parts.iter().for_each(|p| mac.update(p));
        Some(mac)
    }

    fn sign(&self, parts: &[&[u8]]) -> String {
        match self.digest(parts) {
            None => String::new(),
            Some(mac) => mac.finalize().into_bytes().iter().map(|b| format!("{b:02x}")).collect(),
        }
    }

    /// The bytes of a signature that is right, none where nothing is signed.
    fn verify(&self, signature: &[u8], parts: &[&[u8]]) -> Option<Vec<u8>> {
        let Some(mac) = self.digest(parts) else { return Some(Vec::new()) };
        // `verify_slice` compares in constant time, so that a forger learns nothing from how long a refusal takes.
        unhex(signature).filter(|s| mac.verify_slice(s).is_ok())
    }
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let pairs = text.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|p| Some(digit(p[0])? << 4 | digit(p[1])?)).collect()
}

/// A message as it came in.
#[derive(Clone, Debug)]
pub struct Message {
    /// Whom to answer: the frames before the delimiter.
    pub identities: Vec<Bytes>,
    /// Kept whole, because it comes back as the parent header of everything this message causes.
    pub header: Arc<Value>,
    pub msg_type: String,
    pub msg_id: String,
    pub metadata: Map<String, Value>,
    pub content: Map<String, Value>,
    pub buffers: Vec<Bytes>,
    /// Empty where nothing is signed. It was right.
    pub signature: Vec<u8>,
}

impl Message {
    /// The subshell that the message is for (JEP 91); None is the main one.
    pub fn subshell(&self) -> Option<String> {
        self.header.get("subshell_id").and_then(Value::as_str).map(str::to_owned)
    }
}

/// Why a message was dropped.
#[derive(Clone, Debug, PartialEq)]
pub enum Reject {
    NoDelimiter,
    TooFewFrames(usize),
    BadSignature,
    BadJson { part: &'static str, error: String },
    NotAnObject { part: &'static str },
    MissingField { field: &'static str },
    Replayed,
    Own,
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reject::NoDelimiter => write!(f, "no <IDS|MSG> frame"),
            Reject::TooFewFrames(n) => write!(f, "{n} frames after <IDS|MSG>, at least 5 are needed"),
            Reject::BadSignature => write!(f, "its signature does not match the connection file's key"),
            Reject::BadJson { part, error } => write!(f, "{part} is not JSON: {error}"),
            Reject::NotAnObject { part } => write!(f, "{part} is not a JSON object"),
            Reject::MissingField { field } => write!(f, "the header has no text field {field:?}"),
            Reject::Replayed => write!(f, "it is a copy of one that has come before"),
            Reject::Own => write!(f, "it is one of this kernel's own"),
        }
    }
}

/// Reads the frames of one message. The signature is checked before any JSON is looked at.
pub fn parse(frames: &[Bytes], key: &Key) -> Result<Message, Reject> {
    let at = frames.iter().position(|f| f.as_ref() == DELIMITER).ok_or(Reject::NoDelimiter)?;
    let body = &frames[at + 1..];
    let [signature, header, parent, metadata, content, buffers @ ..] = body else {
        return Err(Reject::TooFewFrames(body.len()));
    };
    let Some(signature) = key.verify(signature, &[header, parent, metadata, content]) else {
        return Err(Reject::BadSignature);
    };
    let header = object("header", header)?;
    object("parent_header", parent)?;
    let field = |field| match header.get(field) {
        Some(Value::String(s)) => Ok(s.clone()),
        _ => Err(Reject::MissingField { field }),
    };
    Ok(Message {
        identities: frames[..at].to_vec(),
        msg_type: field("msg_type")?,
        msg_id: field("msg_id")?,
        metadata: object("metadata", metadata)?,
        content: object("content", content)?,
        buffers: buffers.to_vec(),
        signature,
        header: Arc::new(Value::Object(header)),
    })
}

fn object(part: &'static str, frame: &[u8]) -> Result<Map<String, Value>, Reject> {
    match serde_json::from_slice(frame) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Reject::NotAnObject { part }),
        Err(e) => Err(Reject::BadJson { part, error: e.to_string() }),
    }
}

/// Makes this kernel's messages: its session id, its key, a new message id each time.
pub struct Envelope {
    session: String,
    key: Key,
    sent: AtomicU64,
}

impl Envelope {
    pub fn new(key: Key) -> Envelope {
        Envelope { session: uuid::Uuid::new_v4().to_string(), key, sent: AtomicU64::new(0) }
    }

    pub fn session(&self) -> &str {
        &self.session
    }

    /// The frames from the delimiter on; the caller puts identities or a topic in front.
    pub fn seal(&self, msg_type: &str, parent: &Value, metadata: &Value, content: &Value) -> Vec<Bytes> {
        let n = self.sent.fetch_add(1, Ordering::Relaxed);
        let header = json!({
            "msg_id": format!("{}_{n}", self.session),
            "session": self.session,
            "username": "xlazy",
            "date": timestamp(SystemTime::now()),
            "msg_type": msg_type,
            "version": PROTOCOL,
        });
        let [header, parent, metadata, content] =
            [&header, parent, metadata, content].map(|v| Bytes::from(v.to_string()));
        self.seal_raw(header, parent, metadata, content)
    }

    /// As [`Envelope::seal`], of parts that are already text.
    pub fn seal_raw(&self, header: Bytes, parent: Bytes, metadata: Bytes, content: Bytes) -> Vec<Bytes> {
        let signature = self.key.sign(&[&header, &parent, &metadata, &content]);
        vec![Bytes::from_static(DELIMITER), signature.into(), header, parent, metadata, content]
    }
}

/// ISO 8601 in UTC with microseconds, as headers want it.
pub fn timestamp(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days as i64);
    let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{:06}Z", since.subsec_micros())
}

/// Days since 1970-01-01 to a date, counting years from March so that leap days come last.
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn key() -> Key {
        Key::new("hmac-sha256", "secret").unwrap()
    }

    fn good() -> Vec<Bytes> {
        let mut frames = vec![Bytes::from_static(b"who")];
        let header = json!({"msg_id": "m1", "msg_type": "execute_request", "session": "s"});
        let content = json!({"code": "1+1"});
        let parts = [&header, &json!({}), &json!({}), &content].map(|v| Bytes::from(v.to_string()));
        let signature = key().sign(&[&parts[0], &parts[1], &parts[2], &parts[3]]);
        frames.extend([Bytes::from_static(DELIMITER), signature.into()]);
        frames.extend(parts);
        frames
    }

    #[test]
    fn a_sealed_message_parses() {
        let frames = Envelope::new(key()).seal("status", &json!({}), &json!({}), &json!({"execution_state": "busy"}));
        let message = parse(&frames, &key()).unwrap();
        assert_eq!(message.msg_type, "status");
        assert_eq!(message.content["execution_state"], "busy");
        assert_eq!(message.header["version"], PROTOCOL);
        let mut shouted = frames.clone();
        shouted[1] = frames[1].to_ascii_uppercase().into();
        assert_eq!(parse(&shouted, &key()).unwrap().signature, message.signature, "however it is written");
    }

    #[test]
    fn each_defect_has_its_reject() {
        let message = parse(&good(), &key()).unwrap();
        assert_eq!((message.msg_id.as_str(), message.identities.len()), ("m1", 1));
        assert_eq!(parse(&[], &key()).unwrap_err(), Reject::NoDelimiter);
        assert_eq!(parse(&good()[..6], &key()).unwrap_err(), Reject::TooFewFrames(4));
        let mut forged = good();
        forged[6] = Bytes::from_static(b"{\"code\":\"2+2\"}");
        assert_eq!(parse(&forged, &key()).unwrap_err(), Reject::BadSignature);
        let open = Key::new("", "").unwrap();
        assert!(parse(&forged, &open).is_ok(), "an empty key signs nothing");
        forged[6] = Bytes::from_static(b"[1]");
        assert_eq!(parse(&forged, &open).unwrap_err(), Reject::NotAnObject { part: "content" });
        forged[6] = Bytes::from_static(b"{");
        assert!(matches!(parse(&forged, &open), Err(Reject::BadJson { part: "content", .. })));
        forged[3] = Bytes::from_static(b"{\"msg_type\":3}");
        assert_eq!(parse(&forged, &open).unwrap_err(), Reject::MissingField { field: "msg_type" });
        assert!(Key::new("hmac-md5", "secret").is_err());
    }

    /// Ten thousand messages with seeded damage: never a panic, and never accepted with a byte of the signed part changed.
    #[test]
    fn malformed_messages_are_refused_without_a_panic() {
        let open = Key::new("", "").unwrap();
        let mut dice = fastrand::Rng::with_seed(0x9e37_79b9_7f4a_7c15);
        let mut next = move |below: usize| dice.usize(..below.max(1));
        for round in 0..10_000 {
            let mut frames = good();
            for _ in 0..=next(3) {
                let at = next(frames.len());
                match next(7) {
                    0 if !frames.is_empty() => drop(frames.remove(at)),
                    1 => frames.insert(at, Bytes::from((0..next(40)).map(|_| next(256) as u8).collect::<Vec<_>>())),
                    2 => frames.truncate(at),
                    3 if frames.len() > 1 => frames.swap(at, (at + 1) % (at + 1).max(1)),
                    4 => frames.push(Bytes::from("[".repeat(next(4000)))),
                    _ if !frames.is_empty() => {
                        let mut bytes = frames[at].to_vec();
                        let byte = next(bytes.len());
                        match bytes.get_mut(byte) {
                            Some(b) => *b = next(256) as u8,
                            None => bytes.push(0xff),
                        }
                        frames[at] = bytes.into();
                    }
                    _ => {}
                }
            }
            let _ = parse(&frames, &open);
            if let Ok(message) = parse(&frames, &key()) {
                assert_eq!(message.content["code"], "1+1", "round {round}: a changed message was accepted");
            }
        }
    }

    #[test]
    fn dates() {
        let at = |s| timestamp(UNIX_EPOCH + Duration::from_secs(s));
        assert_eq!(at(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000000Z");
        assert_eq!(at(1_767_225_599), "2025-12-31T23:59:59.000000Z");
    }
}
