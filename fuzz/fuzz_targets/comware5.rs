//! Any bytes as a configuration in `comware5`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric_fuzz::judge_language(dialects::Target::Comware5, data));
