//! Any bytes as answers of NetBox's REST API.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric_fuzz::judge(fabric::format::exchange::Format::NetBox, data));
