//! Bytes from a socket to frames, and a handshake: never a panic, no more memory than there are bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use zmtp::{encode, read_frame, shake};

#[path = "../../src/wire/zmtp.rs"]
#[allow(dead_code)]
mod zmtp;

/// What `wire/mod.rs` has.
fn log(_line: std::fmt::Arguments<'_>) {}

fuzz_target!(|data: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut greeting = vec![0u8; 64];
        (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
        greeting[12..16].copy_from_slice(b"NULL");
        greeting.extend_from_slice(data);
        let _ = shake(&mut &*data, &mut tokio::io::sink(), "ROUTER", &["DEALER"]).await;
        let _ = shake(&mut greeting.as_slice(), &mut tokio::io::sink(), "ROUTER", &["DEALER"]).await;
        let (mut rest, mut bodies) = (data, Vec::new());
        while let Ok(frame) = read_frame(&mut rest, u64::MAX >> 1).await {
            let _ = (frame.pong(), frame.command("SUBSCRIBE"), frame.has_more());
            bodies.push(frame.body);
        }
        // What was read can be written and read again.
        let encoded = encode(&bodies);
        let mut again = encoded.as_ref();
        for body in &bodies {
            assert_eq!(read_frame(&mut again, u64::MAX >> 1).await.unwrap().body, body);
        }
    });
});
