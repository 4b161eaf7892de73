//! A program as a plugin gives it: XLA's protocol buffers, told as text and taken apart for a report.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xlazy::fuzz::protobuf(data));
