//! Model files: `models/*.toml`, one switch model a file.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Basis, Model, PortNames};

/// Most ports that one pattern or model may name.
const PORTS_MAX: usize = 4096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ModelFile {
    name: String,
    description: String,
    basis: BasisName,
    ports: Option<Vec<String>>,
    max_vlans: usize,
    static_macs: usize,
    total_macs: usize,
    hybrid_ports: bool,
    independent_vlan_learning: bool,
    pause: bool,
    pfc_classes: u8,
    syntax: Option<String>,
    save: Option<String>,
    #[serde(default)]
    basis_of: BTreeMap<String, BasisName>,
}

/// Facts whose basis may differ from that of the rest.
const FACTS: [&str; 9] = [
    "max-vlans",
    "static-macs",
    "total-macs",
    "hybrid-ports",
    "independent-vlan-learning",
    "pause",
    "pfc-classes",
    "syntax",
    "save",
];

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum BasisName {
    Tested,
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
            }
            PortNames::Listed(names)
        }
    };
    if let Some(fact) = file.basis_of.keys().find(|fact| !FACTS.contains(&fact.as_str())) {
        return Err(format!("basis-of: {fact} is no fact of a model: {}", FACTS.join(", ")));
    }
    Ok(Model {
        name: file.name,
        description: file.description,
        basis: basis(file.basis),
        basis_of: file.basis_of.into_iter().map(|(fact, name)| (fact, basis(name))).collect(),
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
    })
}

fn basis(name: BasisName) -> Basis {
    match name {
        BasisName::Tested => Basis::Tested,
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
