//! A program as StableHLO or HLO text, which somebody hands over to have it explained.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xlazy::fuzz::program_text(data));
