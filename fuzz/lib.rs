//! What every fuzz target checks: a parser never panics, refuses with an error that stands in the text, and what it
//! reads survives being written.
#![forbid(unsafe_code)]

use fabric::format::exchange::{Format, ImportOptions, export, import};

/// Reads `data` as a file of this format. Four zero bytes separate the files of a format that takes several.
///
/// # Panics
/// If the parser breaks a promise.
pub fn judge(format: Format, data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let texts: Vec<&str> = if format == Format::Lldp { text.split("\0\0\0\0").take(8).collect() } else { vec![&text] };
    let names: Vec<String> = (1..=texts.len()).map(|number| format!("sw{number}.json")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts.iter().copied()).collect();
    let _ = Format::detect("f", &text);
    let options = ImportOptions { hosts: vec!["n*".to_owned()], ignored_ports: vec!["eth?".to_owned()] };
    match import(format, &files, &options) {
        Ok(imported) => {
            assert_eq!(imported.warnings.errors(), 0);
            let _ = imported.warnings.to_string();
            let written = export(Format::Native, &imported.topology).expect("native can be written");
            let read = import(Format::Native, &[("f", &written)], &ImportOptions::default())
                .unwrap_or_else(|wrong| panic!("{wrong}\n{written}"));
            assert_eq!(read.topology, imported.topology, "{written}");
            for other in [Format::Dot, Format::Containerlab, Format::GraphMl] {
                let written = export(other, &imported.topology).expect("an export format");
                let read = import(other, &[("f", &written)], &ImportOptions::default())
                    .unwrap_or_else(|wrong| panic!("{wrong}\n{written}"));
                assert_eq!(read.topology.links().len(), imported.topology.links().len(), "{written}");
                assert_eq!(read.topology.hosts().len(), imported.topology.hosts().len(), "{written}");
            }
        }
        Err(wrong) => {
            assert!(wrong.errors() > 0);
            let _ = (wrong.to_string(), wrong.to_json());
            for item in wrong.items() {
                let lines = files
                    .iter()
                    .find(|(name, _)| *name == item.file)
                    .map_or(1, |(_, text)| text.replace("\r\n", "\n").split(['\n', '\r']).count());
                assert!((1..=lines).contains(&item.line), "{item}");
            }
        }
    }
}
