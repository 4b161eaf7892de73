//! Frames to a message: nothing that does not carry a right signature is accepted.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xlazy_kernel::wire::fuzz::message(data));
