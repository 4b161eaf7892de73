//! What the fuzz targets call (`fuzz/`): bytes and frames of somebody who can connect, and may have no key.
use super::curve::Keys;
use super::guests::{Account, Door};
use super::message::{DELIMITER, Envelope, Key, parse};
use super::zmtp::Role;
use bytes::Bytes;
use serde_json::json;
use std::io::Cursor;
use std::sync::{Arc, LazyLock};
use tokio::runtime::{Builder, Runtime};

/// Greeting, handshake and frames, as they come: never a panic, no more memory than there are bytes.
pub fn connection(data: &[u8]) {
    static RUNTIME: LazyLock<Runtime> =
        LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("a runtime"));
    // The pair that the documentation of ZeroMQ has.
    static KEYS: LazyLock<Arc<Keys>> = LazyLock::new(|| Arc::new(Keys::read(PUBLIC, SECRET).expect("two keys")));
    let mut greeted = vec![0u8; 64];
    (greeted[0], greeted[9], greeted[10]) = (0xff, 0x7f, 3);
    greeted[12..16].copy_from_slice(b"NULL");
    let mut sealed = greeted.clone();
    sealed[12..17].copy_from_slice(b"CURVE");
    // So that no time goes into finding what every front end says first.
    let ready = b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x06DEALER";
    let begun = [&[][..], &greeted, &[&greeted[..], ready].concat(), &sealed];
    for (n, begun) in begun.iter().enumerate() {
        let keys = (n == 3).then(|| KEYS.clone());
        let bytes = Cursor::new([begun, data].concat());
        RUNTIME.block_on(async {
            let door = Door::new("fuzz", Account::default());
            let place = door.enter().expect("a place");
            let role = Role { kind: "ROUTER", peers: &["DEALER"], keys };
            let shaken = role.shake(Box::new(bytes), Box::new(tokio::io::sink()), &place).await;
            let Ok((mut incoming, mut sending, _)) = shaken else { return };
            assert_eq!(n == 3, place.is_verified(), "only who has the key is verified by a handshake");
            let mut read = 0;
            while let Ok(frame) = incoming.frame(u64::MAX >> 1, &place).await {
                let _ = (frame.pong(), frame.command("SUBSCRIBE"), frame.has_more());
                read += frame.body.len();
                // What was read can be written.
                assert!(sending.encode(&frame)[1].len() == frame.body.len() || n == 3);
            }
            assert!(read <= data.len(), "more than there was");
        });
    }
}

const PUBLIC: &str = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
const SECRET: &str = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs";

/// Frames to a message: nothing that is not signed is accepted where there is a key, and what is taken where there is none
/// can be sent on.
pub fn message(data: &[u8]) {
    // 0xff never occurs in UTF-8, so the fuzzer cuts frames with it and still writes JSON freely.
    let frames: Vec<Bytes> = data.split(|b| *b == 0xff).map(Bytes::copy_from_slice).collect();
    let (open, signed) = (Key::new("", "").expect("no key"), Key::new("hmac-sha256", "a key").expect("a key"));
    assert!(parse(&frames, &signed).is_err(), "nobody can sign without the key");
    let delimited = [&[Bytes::from_static(DELIMITER), Bytes::new()][..], &frames].concat();
    for frames in [frames, delimited] {
        let Ok(message) = parse(&frames, &open) else { continue };
        let _ = message.subshell();
        let (metadata, content) = (json!(message.metadata), json!(message.content));
        let sealed = Envelope::new(signed.clone()).seal(&message.msg_type, &message.header, &metadata, &content);
        let again = parse(&sealed, &signed).expect("a message of our own");
        assert_eq!((again.msg_type, again.content), (message.msg_type, message.content));
    }
}

#[cfg(test)]
mod tests {
    use crate::corpus;

    #[test]
    fn the_kept_bytes_of_connections() {
        corpus::damaged("connection", super::connection);
    }

    #[test]
    fn the_kept_frames_of_messages() {
        corpus::damaged("message", super::message);
    }
}
