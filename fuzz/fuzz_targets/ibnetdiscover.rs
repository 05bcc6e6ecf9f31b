//! Any bytes as a `ibnetdiscover` file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric_fuzz::judge(fabric::format::exchange::Format::IbNetDiscover, data));
