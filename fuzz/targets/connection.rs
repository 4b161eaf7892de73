//! Bytes from somebody who connects: greeting, handshake, frames, with encryption and without.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xlazy_kernel::wire::fuzz::connection(data));
