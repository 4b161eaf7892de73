//! The rules of a macro and a call of it, in two lines or more: the call begins behind the last `===`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Some((rules, call)) = text.rsplit_once("===") {
        xlazy_kernel::eval::fuzz::expand(rules, call);
    }
});
