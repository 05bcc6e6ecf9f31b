//! The tagger's configuration: any text is read or refused, and what is written is read again as the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(config) = tagger::Config::parse("fuzz", text) {
        assert_eq!(tagger::Config::parse("again", &config.text()), Ok(config));
    }
});
