//! Any bytes as a list of rendered files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric_fuzz::judge_manifest(data));
