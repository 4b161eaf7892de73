//! A file of tensors from anybody.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xlazy::fuzz::safetensors(data));
