//! Any bytes as a configuration in `ifupdown2`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric_fuzz::judge_language(dialects::Target::Ifupdown2, data));
