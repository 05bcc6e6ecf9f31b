//! Model files: `models/*.toml`, one switch model a file.
//!
//! ```toml
//! name = "powerconnect-5324"
//! description = "Dell PowerConnect 5324, 24 ports of 1 Gbit/s"
//! basis = "untested"                       # what the facts rest on: tested, probed, manual or untested
//! object-ids = ["1.3.6.1.4.1.674.10895.3004"]   # what sysObjectID says; may be left out
//! ports = ["g[1-24]"]                      # left out where any name is a port
//! max-vlans = 256
//! static-macs = 8192
//! total-macs = 8192
//! hybrid-ports = true
//! independent-vlan-learning = true
//! pause = true
//! pfc-classes = 0
//! blocks-floods = ["unknown-unicast"]      # and multicast, broadcast: what ports can be told not to let out; may be left out
//! storm-control = true                     # ports admit at most a percentage of their rate in floods; may be left out
//! max-lags = 8                             # may be left out where it is not known
//! syntax = "powerconnect"                  # may be left out, as may save
//! save = "radlan-copy"
//!
//! [basis-of]                               # facts that rest on something else
//! hybrid-ports = "manual"
//! ```

use std::{collections::BTreeMap, fmt::Write as _};

use serde::Deserialize;

use crate::{Basis, FloodKind, Model, PortNames};

/// Most ports that one pattern or model may name.
const PORTS_MAX: usize = 4096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ModelFile {
    name: String,
    description: String,
    basis: BasisName,
    #[serde(default)]
    object_ids: Vec<String>,
    ports: Option<Vec<String>>,
    max_vlans: usize,
    static_macs: usize,
    total_macs: usize,
    hybrid_ports: bool,
    independent_vlan_learning: bool,
    pause: bool,
    pfc_classes: u8,
    #[serde(default)]
    blocks_floods: Vec<String>,
    #[serde(default)]
    storm_control: bool,
    max_lags: Option<usize>,
    syntax: Option<String>,
    save: Option<String>,
    #[serde(default)]
    basis_of: BTreeMap<String, BasisName>,
}

/// Facts whose basis may differ from that of the rest.
pub(crate) const FACTS: [&str; 12] = [
    "max-vlans",
    "static-macs",
    "total-macs",
    "hybrid-ports",
    "independent-vlan-learning",
    "pause",
    "pfc-classes",
    "blocks-floods",
    "storm-control",
    "max-lags",
    "syntax",
    "save",
];

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum BasisName {
    Tested,
    Probed,
    Manual,
    Untested,
}

/// Reads one model file.
///
/// # Errors
/// A message naming what is wrong with the text.
pub fn parse_model(text: &str) -> Result<Model, String> {
    let file: ModelFile = toml::from_str(text).map_err(|error| error.to_string())?;
    let ports = match file.ports {
        None => PortNames::Any,
        Some(patterns) => {
            let mut names = Vec::new();
            for pattern in &patterns {
                names.extend(expand(pattern)?);
                if names.len() > PORTS_MAX {
                    return Err(format!("ports: a switch has {PORTS_MAX} at most"));
                }
            }
            PortNames::Listed(names)
        }
    };
    if let Some(fact) = file.basis_of.keys().find(|fact| !FACTS.contains(&fact.as_str())) {
        return Err(format!("basis-of: {fact} is no fact of a model: {}", FACTS.join(", ")));
    }
    let kind = |word: &String| word.parse::<FloodKind>().map_err(|error| format!("blocks-floods: {error}"));
    let blocks_floods = file.blocks_floods.iter().map(kind).collect::<Result<_, _>>()?;
    let model = Model {
        name: file.name,
        description: file.description,
        basis: basis(file.basis),
        basis_of: file.basis_of.into_iter().map(|(fact, name)| (fact, basis(name))).collect(),
        object_ids: file.object_ids,
        syntax: file.syntax,
        save: file.save,
        ports,
        vlans_max: file.max_vlans,
        static_entries_max: file.static_macs,
        total_entries_max: file.total_macs,
        hybrid_ports: file.hybrid_ports,
        independent_vlan_learning: file.independent_vlan_learning,
        pause: file.pause,
        pfc_classes: file.pfc_classes,
        blocks_floods,
        storm_control: file.storm_control,
        lags_max: file.max_lags,
    };
    model.validate()?;
    Ok(model)
}

/// Writes a model file that [`parse_model`] reads the same. `remarks` are lines for people, put in front of everything.
pub fn write_model(model: &Model, remarks: &[String]) -> String {
    let mut text = String::new();
    // A basic string of TOML is one of JSON, but for one character.
    let quoted = |word: &str| serde_json::Value::from(word).to_string().replace('\x7f', "\\u007f");
    let list = |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ");
    for line in remarks.iter().flat_map(|remark| remark.lines()) {
        let plain: String = line.chars().filter(|c| !c.is_control()).collect();
        push(&mut text, format_args!("# {plain}"));
    }
    push(&mut text, format_args!("name = {}", quoted(&model.name)));
    push(&mut text, format_args!("description = {}", quoted(&model.description)));
    push(&mut text, format_args!("basis = \"{}\"", model.basis.word()));
    if !model.object_ids.is_empty() {
        push(&mut text, format_args!("object-ids = [{}]", list(&model.object_ids)));
    }
    if let PortNames::Listed(names) = &model.ports {
        push(&mut text, format_args!("ports = [{}]", list(&abridge(names))));
    }
    push(&mut text, format_args!("max-vlans = {}", model.vlans_max));
    push(&mut text, format_args!("static-macs = {}", model.static_entries_max));
    push(&mut text, format_args!("total-macs = {}", model.total_entries_max));
    push(&mut text, format_args!("hybrid-ports = {}", model.hybrid_ports));
    push(&mut text, format_args!("independent-vlan-learning = {}", model.independent_vlan_learning));
    push(&mut text, format_args!("pause = {}", model.pause));
    push(&mut text, format_args!("pfc-classes = {}", model.pfc_classes));
    if !model.blocks_floods.is_empty() {
        let kinds: Vec<String> = model.blocks_floods.iter().map(|kind| kind.to_string()).collect();
        push(&mut text, format_args!("blocks-floods = [{}]", list(&kinds)));
    }
    if model.storm_control {
        push(&mut text, format_args!("storm-control = true"));
    }
    if let Some(lags_max) = model.lags_max {
        push(&mut text, format_args!("max-lags = {lags_max}"));
    }
    for (key, value) in [("syntax", &model.syntax), ("save", &model.save)] {
        if let Some(value) = value {
            push(&mut text, format_args!("{key} = {}", quoted(value)));
        }
    }
    if !model.basis_of.is_empty() {
        push(&mut text, format_args!("\n[basis-of]"));
        for (fact, basis) in &model.basis_of {
            push(&mut text, format_args!("{fact} = \"{}\"", basis.word()));
        }
    }
    text
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a string");
}

/// Names with runs of numbers as patterns; a name that is a pattern itself cannot be, since no name has brackets.
fn abridge(names: &[String]) -> Vec<String> {
    // A number is what stands at the end, without a zero in front that would get lost.
    let split = |name: &str| {
        let at = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let digits = &name[at..];
        let plain = !digits.is_empty() && digits.len() <= 9 && (digits == "0" || !digits.starts_with('0'));
        plain.then(|| (name[..at].to_owned(), digits.parse::<usize>().unwrap_or(0)))
    };
    let mut runs: Vec<(String, usize, usize)> = Vec::new();
    let mut patterns = Vec::new();
    let close = |run: (String, usize, usize)| match run {
        (prefix, first, last) if first == last => format!("{prefix}{first}"),
        (prefix, first, last) => format!("{prefix}[{first}-{last}]"),
    };
    for name in names {
        match (split(name), runs.last_mut()) {
            (Some((prefix, number)), Some((before, _, last))) if prefix == *before && number == *last + 1 => {
                *last = number;
            }
            (found, _) => {
                patterns.extend(runs.pop().map(close));
                match found {
                    Some((prefix, number)) => runs.push((prefix, number, number)),
                    None => patterns.push(name.clone()),
                }
            }
        }
    }
    patterns.extend(runs.pop().map(close));
    patterns
}

fn basis(name: BasisName) -> Basis {
    match name {
        BasisName::Tested => Basis::Tested,
        BasisName::Probed => Basis::Probed,
        BasisName::Manual => Basis::Manual,
        BasisName::Untested => Basis::Untested,
    }
}

/// Expands a pattern such as `g[1-24]`; a pattern without brackets is one name.
fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let Some((prefix, rest)) = pattern.split_once('[') else { return Ok(vec![pattern.to_owned()]) };
    let broken = || format!("port pattern {pattern:?}: write a range of numbers in brackets, such as g[1-24]");
    let (range, suffix) = rest.split_once(']').ok_or_else(broken)?;
    let (first, last) = range.split_once('-').ok_or_else(broken)?;
    let (first, last): (usize, usize) = (first.parse().map_err(|_| broken())?, last.parse().map_err(|_| broken())?);
    if first > last || last - first >= PORTS_MAX {
        return Err(broken());
    }
    Ok((first..=last).map(|number| format!("{prefix}{number}{suffix}")).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_built_in_model_is_read_as_it_is_written() {
        for model in Model::built_in() {
            let text = write_model(model, &["a remark".to_owned(), "of two\nlines".to_owned()]);
            assert!(text.starts_with("# a remark\n# of two\n# lines\nname = "), "{text}");
            assert_eq!(parse_model(&text).as_ref(), Ok(&**model), "{text}");
        }
    }

    #[test]
    fn how_many_lags_there_are_is_stated_only_where_it_is_known() {
        let unknown = write_model(&Model::generic(), &[]);
        assert!(!unknown.contains("max-lags") && Model::generic().lags_max.is_none(), "{unknown}");
        for lags_max in [0, 8] {
            let basis_of = vec![("max-lags".to_owned(), Basis::Manual)];
            let known = Model { lags_max: Some(lags_max), basis_of, ..(*Model::generic()).clone() };
            let text = write_model(&known, &[]);
            assert!(text.contains(&format!("\nmax-lags = {lags_max}\n")), "{text}");
            assert_eq!(parse_model(&text).as_ref(), Ok(&known), "{text}");
        }
        let negative = unknown.replacen("pause", "max-lags = -1\npause", 1);
        assert!(parse_model(&negative).expect_err("no number of LAGs").contains("max-lags"));
    }

    #[test]
    fn what_no_switch_can_be_is_refused() {
        let text = write_model(&Model::generic(), &[]);
        for (from, to, why) in [
            ("max-vlans = 4094", "max-vlans = 4095", "max-vlans"),
            ("max-vlans = 4094", "max-vlans = 0", "max-vlans"),
            ("total-macs = 1048576", "total-macs = 5", "static-macs"),
            ("pfc-classes = 8", "pfc-classes = 9", "pfc-classes"),
            ("\"multicast\"", "\"noise\"", "blocks-floods"),
            ("name = \"generic\"", "name = \"two words\"", "name"),
            ("max-vlans", "ports = [\"p:1\"]\nmax-vlans", "ports"),
            ("max-vlans", "ports = [\"p1\", \"p[1-2]\"]\nmax-vlans", "twice"),
            ("max-vlans", "object-ids = [\"1.3.x\"]\nmax-vlans", "object-ids"),
            ("pause = true", "pause = true\nspeed = 3", "speed"),
            ("basis = \"untested\"", "basis = \"hearsay\"", "hearsay"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = parse_model(&text.replacen(from, to, 1)).expect_err(to);
            assert!(error.contains(why), "{to}: {error}");
        }
    }

    proptest! {
        #[test]
        fn names_survive_being_abridged(names in prop::collection::btree_set("[a-c]{0,2}/?[0-9]{0,3}", 1..40)) {
            let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
            let mut read = Vec::new();
            for pattern in abridge(&names) {
                read.extend(expand(&pattern).expect("its own pattern"));
            }
            prop_assert_eq!(read, names);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
            let _ = parse_model(&text);
        }
    }
}
