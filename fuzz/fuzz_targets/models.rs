//! Any text as a model of a switch, and as the ledger of a probe: what is read survives being written.
#![no_main]

use enrol::kept::{parse_ledger, write_ledger};
use fabric::format::model::{parse_model, write_model};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(model) = parse_model(text) {
        assert_eq!(parse_model(&write_model(&model, &[text.to_owned()])), Ok(model));
    }
    if let Ok(kept) = parse_ledger(text) {
        assert_eq!(parse_ledger(&write_ledger(&kept)).expect("its own text"), kept);
    }
});
