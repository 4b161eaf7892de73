//! A cell's text taken apart.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| xlazy_kernel::eval::fuzz::split(text));
