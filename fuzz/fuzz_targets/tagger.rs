//! Any bytes as what comes to a tagger: its configuration is read or refused, and read again as the same when written; a
//! frame is a probe's reply or none.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Ok(config) = tagger::Config::parse("fuzz", &text) {
        assert_eq!(tagger::Config::parse("again", &config.text()), Ok(config));
    }
    let _ = tagger::wire::read_reply(data);
    let _ = (tagger::layout::read_key(data), tagger::layout::read_entry(data));
});
