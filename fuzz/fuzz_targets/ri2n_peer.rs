//! Any deeds of a peer that knows the token: packets of every kind, out of order, with any control frames.
#![no_main]

#[path = "../../crates/ri2n/core/tests/malicious/mod.rs"]
mod malicious;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    malicious::run(data);
});
