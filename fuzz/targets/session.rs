//! A frame from the session process, which runs foreign code: never a panic in the kernel.
#![no_main]
use libfuzzer_sys::fuzz_target;
use xlazy_mime::{Ask, Frame, Tell};

fuzz_target!(|data: &[u8]| {
    if let Ok(tell) = Tell::decode(data) {
        assert_eq!(Tell::decode(&tell.encode()).expect("a frame of our own"), tell);
    }
    if let Ok(ask) = Ask::decode(data) {
        assert_eq!(Ask::decode(&ask.encode()).expect("a frame of our own"), ask);
    }
});
