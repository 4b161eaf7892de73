//! Frames to a message: never a panic, and nothing that does not carry a right signature is accepted.
#![no_main]
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use message::{Envelope, Key, parse};
use serde_json::json;

#[path = "../../src/wire/message.rs"]
#[allow(dead_code)]
mod message;

fuzz_target!(|data: &[u8]| {
    // 0xff never occurs in UTF-8, so the fuzzer cuts frames with it and still writes JSON freely.
    let frames: Vec<Bytes> = data.split(|b| *b == 0xff).map(Bytes::copy_from_slice).collect();
    let (open, signed) = (Key::new("", "").unwrap(), Key::new("hmac-sha256", "a key").unwrap());
    assert!(parse(&frames, &signed).is_err(), "the fuzzer cannot sign");
    let Ok(message) = parse(&frames, &open) else { return };
    let _ = message.subshell();
    // What was accepted can be sent on and comes back the same.
    let sealed = Envelope::new(signed.clone()).seal(
        &message.msg_type,
        &message.header,
        &json!(message.metadata),
        &json!(message.content),
    );
    let again = parse(&sealed, &signed).expect("a message of our own");
    assert_eq!((again.msg_type, again.content), (message.msg_type, message.content));
});
