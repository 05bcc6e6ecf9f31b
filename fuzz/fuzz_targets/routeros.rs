//! Any bytes as a configuration in `routeros`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric_fuzz::judge_language(dialects::Target::RouterOs, data));
