//! Any bytes as a `containerlab` file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric_fuzz::judge(fabric::format::exchange::Format::Containerlab, data));
