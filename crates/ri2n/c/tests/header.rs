//! The header, the version script and the functions are one list.

use std::{collections::BTreeSet, fs, path::Path};

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect(file)
}

/// The words after `before` up to the first character that no name has.
fn names<'a>(text: &'a str, before: &'a str) -> BTreeSet<&'a str> {
    let name = |rest: &'a str| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
    text.match_indices(before).map(|(at, _)| name(&text[at + before.len()..])).filter(|name| !name.is_empty()).collect()
}

#[test]
fn functions_are_declared_exported_and_defined() {
    let (header, script, source) = (read("include/ri2n.h"), read("ri2n.map"), read("src/lib.rs"));
    let code: String = header
        .split("/*")
        .filter_map(|part| part.split_once("*/").map_or(Some(part), |(_, code)| Some(code)))
        .collect();
    let declared: BTreeSet<String> = code
        .match_indices("ri2n_")
        .filter_map(|(at, _)| {
            let (name, _) = code[at..].split_once('(')?;
            name.chars().all(|c| c.is_alphanumeric() || c == '_').then(|| name.to_owned())
        })
        .collect();
    let defined: BTreeSet<String> = names(&source, "extern \"C\" fn ").into_iter().map(str::to_owned).collect();
    let exported: BTreeSet<String> = script
        .lines()
        .filter_map(|line| line.trim().strip_suffix(';'))
        .filter(|name| name.starts_with("ri2n_"))
        .map(str::to_owned)
        .collect();
    assert!(declared.len() > 20, "{declared:?}");
    assert_eq!(declared, defined);
    assert_eq!(declared, exported);
}

#[test]
fn error_codes_agree() {
    let header = read("include/ri2n.h");
    let mut in_header = BTreeSet::new();
    for line in header.lines() {
        if let Some((name, rest)) = line.strip_prefix("#define RI2N_E").and_then(|line| line.split_once(' ')) {
            let value = rest.trim_start().trim_start_matches('(').split(')').next().expect("a value");
            in_header.insert((name.to_owned(), value.parse::<i32>().expect("a number")));
        }
    }
    let in_library: BTreeSet<(String, i32)> =
        ri2n_c::code::ALL.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    assert_eq!(in_header, in_library);
    let values: BTreeSet<i32> = in_library.iter().map(|(_, value)| *value).collect();
    assert_eq!(values.len(), in_library.len(), "every code has a value of its own");
}

#[test]
fn options_and_version_agree() {
    let (header, source) = (read("include/ri2n.h"), read("src/option.rs"));
    for line in source.lines() {
        if let Some((name, value)) =
            line.strip_prefix("pub(crate) const ").and_then(|line| line.split_once(": c_int = "))
        {
            let wanted = format!("#define RI2N_{name} {} ", value.trim_end_matches(';'));
            assert!(header.contains(&wanted), "{wanted}");
        }
    }
    assert!(header.contains(&format!("#define RI2N_DONTWAIT {} ", ri2n_c::DONTWAIT)));
    assert!(header.contains(&format!("#define RI2N_VERSION 0x{:06x}", ri2n_c::VERSION)));
    let [major, minor, patch] = [16, 8, 0].map(|shift| (ri2n_c::VERSION >> shift) & 0xff);
    assert_eq!(env!("CARGO_PKG_VERSION"), format!("{major}.{minor}.{patch}"));
}
