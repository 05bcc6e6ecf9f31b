//! Any bytes as a configuration in `sonic`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric_fuzz::judge_language(dialects::Target::Sonic, data));
