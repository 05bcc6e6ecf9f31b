//! Any bytes as a `native` file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric_fuzz::judge(fabric::format::exchange::Format::Native, data));
