//! What every fuzz target checks: a parser never panics, refuses with an error that stands in the text, and what it
//! reads survives being written.
#![forbid(unsafe_code)]

use dialects::{Manifest, Memory, Target, TextFile, read_back, write_full};
use fabric::{
    IngressFilter, SpanningTree,
    format::exchange::{Format, ImportOptions, export, import},
};

/// Reads `data` as a file of this format. Four zero bytes separate the files of a format that takes several.
///
/// # Panics
/// If the parser breaks a promise.
pub fn judge(format: Format, data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let texts: Vec<&str> = if format.takes_several() { text.split("\0\0\0\0").take(8).collect() } else { vec![&text] };
    let names: Vec<String> = (1..=texts.len()).map(|number| format!("sw{number}.json")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts.iter().copied()).collect();
    let _ = Format::detect("f", &text);
    let options = ImportOptions {
        hosts: vec!["n*".to_owned()],
        ignored_ports: vec!["eth?".to_owned()],
        ..ImportOptions::default()
    };
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

/// Checks that mistakes stand on lines that the text has; an empty text has one.
///
/// # Panics
/// If one does not.
pub fn lines_exist(text: &str, lines: impl Iterator<Item = usize>) {
    let count = text.lines().count().max(1);
    lines.for_each(|line| assert!((1..=count).contains(&line), "line {line} of {count}"));
}

/// Ports of the switch that is told things, as the golden files name them.
pub fn ports(target: Target) -> [&'static str; 3] {
    match target {
        Target::PowerConnect => ["g1", "g2", "g3"],
        Target::CiscoSb => ["gi1", "gi2", "gi3"],
        Target::EdgeCore => ["1/1", "1/2", "1/3"],
        Target::Comware7 | Target::Comware5 => ["GigabitEthernet1/0/1", "GigabitEthernet1/0/2", "GigabitEthernet1/0/3"],
        Target::Huawei => ["GigabitEthernet0/0/1", "GigabitEthernet0/0/2", "GigabitEthernet0/0/3"],
        Target::Zyxel => ["1", "2", "3"],
        Target::TpLink => ["1/0/1", "1/0/2", "1/0/3"],
        Target::Fastpath => ["0/1", "0/2", "0/3"],
        Target::RouterOs => ["ether1", "ether2", "ether3"],
        _ => ["p1", "p2", "p3"],
    }
}

/// Reads `data` as a configuration in a language. Four zero bytes separate the files of one that has several.
///
/// # Panics
/// If the parser breaks a promise: it never panics, its errors stand in the text, and a state that it reads and that can
/// be written reads back the same.
pub fn judge_language(target: Target, data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let texts: Vec<&str> = if matches!(target, Target::Networkd | Target::Ifupdown2) {
        text.split("\0\0\0\0").take(8).collect()
    } else {
        vec![&text]
    };
    const KINDS: [&str; 5] = ["netdev", "network", "fdb", "service", "network"];
    const STANZAS: [&str; 3] = ["espalier.intf", "espalier.fdb", "change.sh"];
    let name = |index: usize| match target {
        // One script in two makes it a difference.
        Target::Networkd if index == 6 => "change.sh".to_owned(),
        Target::Networkd => format!("{index}.{}", KINDS[index % KINDS.len()]),
        Target::Ifupdown2 => STANZAS[index % STANZAS.len()].to_owned(),
        _ => format!("{index}.json"),
    };
    let names: Vec<String> = (0..texts.len()).map(name).collect();
    let files: Vec<TextFile<'_>> = names.iter().zip(&texts).map(|(name, text)| TextFile { name, text }).collect();
    let ports = || ports(target).map(str::to_owned).to_vec();
    match read_back(target, &files, target.factory(ports())) {
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                let lines =
                    files.iter().find(|file| file.name == error.file).map_or(1, |file| file.text.lines().count());
                assert!((1..=lines.max(1)).contains(&error.line), "{error}");
            }
        }
        Ok(mut config) => {
            // Only names that the language takes can be written, and only what every plan wants.
            let mut own = Memory::default();
            config.spanning_tree = SpanningTree::Off;
            config.ports.iter_mut().for_each(|port| port.ingress_filter = IngressFilter::On);
            if write_full(target, &config, &mut own).is_ok() {
                let written: Vec<(String, String)> = (own.files.iter())
                    .map(|(name, bytes)| (name.clone(), String::from_utf8_lossy(bytes).into_owned()))
                    .collect();
                let files: Vec<TextFile<'_>> = written.iter().map(|(name, text)| TextFile { name, text }).collect();
                let read = read_back(target, &files, target.factory(ports()));
                assert_eq!(read.as_ref(), Ok(&config), "{written:?}");
            }
        }
    }
}

/// Reads `data` as a list of rendered files.
///
/// # Panics
/// If what was read does not survive being written, or leads out of the folder.
pub fn judge_manifest(data: &[u8]) {
    if let Ok(manifest) = Manifest::parse(&String::from_utf8_lossy(data)) {
        assert_eq!(Manifest::parse(&manifest.to_text()), Ok(manifest.clone()));
        for file in manifest.parts.iter().flat_map(|part| &part.files) {
            assert!(!file.starts_with('/') && !file.split('/').any(|part| part == ".."), "{file}");
        }
    }
}
