//! One door for every cabling format: recognise, import, export.

use std::{fmt, str::FromStr};

use thiserror::Error;

pub use super::import_options::ImportOptions;
use crate::{
    Topology,
    format::{
        bonding::is_bonding,
        containerlab,
        diagnostic::{Diagnostics, Source},
        dot, graphml, ibnetdiscover, lldp,
        native::{parse_native_with, write_native},
        netbox,
    },
};

/// A text format that describes cabling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Espalier's own YAML; see [`native`](crate::format::native).
    Native,
    /// Prescriptive topology (PTM) in Graphviz DOT; see [`dot`].
    Dot,
    /// `lldpcli -f json0 show neighbors`, one file a device; see [`lldp`]. Read only.
    Lldp,
    /// The output of `ibnetdiscover`; see [`ibnetdiscover`]. Read only.
    IbNetDiscover,
    /// A containerlab topology; see [`containerlab`].
    Containerlab,
    /// GraphML; see [`graphml`].
    GraphMl,
    /// What NetBox's REST API answers; see [`netbox`]. Written by [`netbox::write_netbox`], as several files.
    NetBox,
}

/// A name that is no format's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown format {0:?}: use native, dot (or ptm), lldp, ibnetdiscover, containerlab, graphml or netbox")]
pub struct UnknownFormat(pub String);

impl Format {
    /// Every format.
    pub const ALL: [Self; 7] =
        [Self::Native, Self::Dot, Self::Lldp, Self::IbNetDiscover, Self::Containerlab, Self::GraphMl, Self::NetBox];

    /// The name that the command line uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Dot => "dot",
            Self::Lldp => "lldp",
            Self::IbNetDiscover => "ibnetdiscover",
            Self::Containerlab => "containerlab",
            Self::GraphMl => "graphml",
            Self::NetBox => "netbox",
        }
    }

    /// Whether [`export`] can write it.
    pub const fn can_export(self) -> bool {
        !matches!(self, Self::Lldp | Self::IbNetDiscover | Self::NetBox)
    }

    /// Whether [`import`] takes several files that describe one cabling together.
    pub const fn takes_several(self) -> bool {
        matches!(self, Self::Lldp | Self::NetBox)
    }

    /// Recognises a text by its content, and an unrecognisable one by its file name.
    pub fn detect(file_name: &str, text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).take(DETECT_LINES_MAX);
        if is_bonding(text) {
            return Some(Self::Lldp);
        }
        if text.trim_start().starts_with(['{', '[']) {
            let has = |keys: &[&str]| keys.iter().any(|key| text.contains(key));
            if has(&["\"lldp\"", "\"local-chassis\""]) {
                return Some(Self::Lldp);
            }
            if has(&["/api/dcim/", "\"device_type\"", "\"connected_endpoints\"", "\"a_terminations\""]) {
                return Some(Self::NetBox);
            }
        }
        let by_line = lines.find_map(|line| {
            let word =
                line.trim_start().split(|c: char| c.is_whitespace() || "{\"".contains(c)).next().unwrap_or_default();
            let starts = |keys: &[&str]| keys.iter().any(|key| line.starts_with(key));
            if line.contains("<graphml") {
                Some(Self::GraphMl)
            } else if starts(&["vendid=", "switchguid=", "caguid=", "Switch\t", "Ca\t"]) {
                Some(Self::IbNetDiscover)
            } else if starts(&["switches:", "hosts:", "links:"]) {
                Some(Self::Native)
            } else if starts(&["topology:"]) {
                Some(Self::Containerlab)
            } else if ["graph", "digraph", "strict"].iter().any(|key| word.eq_ignore_ascii_case(key)) {
                Some(Self::Dot)
            } else {
                None
            }
        });
        let by_name = || {
            let endings = [
                (".clab.yml", Self::Containerlab),
                (".clab.yaml", Self::Containerlab),
                (".yaml", Self::Native),
                (".yml", Self::Native),
                (".dot", Self::Dot),
                (".gv", Self::Dot),
                (".json", Self::Lldp),
                (".json0", Self::Lldp),
                (".graphml", Self::GraphMl),
            ];
            let lower = file_name.to_ascii_lowercase();
            endings.into_iter().find(|(ending, _)| lower.ends_with(ending)).map(|(_, format)| format)
        };
        by_line.or_else(by_name)
    }
}

/// Lines that [`Format::detect`] looks at, beyond which no format hides its nature.
const DETECT_LINES_MAX: usize = 1000;

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        match text.to_ascii_lowercase().as_str() {
            "ptm" => Ok(Self::Dot),
            "yaml" => Ok(Self::Native),
            name => {
                Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| UnknownFormat(text.to_owned()))
            }
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The cabling.
    pub topology: Topology,
    /// What looks odd, and what was assumed.
    pub warnings: Diagnostics,
}

/// Reads the cabling that `files`, pairs of name and text, describe. More than one only where the format
/// [takes several](Format::takes_several).
///
/// # Errors
/// Everything that is wrong with the texts, warnings included.
pub fn import(format: Format, files: &[(&str, &str)], options: &ImportOptions) -> Result<Imported, Diagnostics> {
    let sources: Vec<Source<'_>> = files.iter().map(|(name, text)| Source::new(name, text)).collect();
    let mut diagnostics = Diagnostics::new();
    let nothing = Source::new("-", "");
    let [source, rest @ ..] = sources.as_slice() else {
        diagnostics.push(nothing.at(crate::format::diagnostic::TextSpan::START).error("there is no file to read"));
        return Err(diagnostics);
    };
    if !format.takes_several() {
        for extra in rest {
            let error =
                extra.at(crate::format::diagnostic::TextSpan::START).error(format!("{format} is read from one file"));
            diagnostics.push(error.with_help("leave this one out, or import it by itself"));
        }
    }
    if !sources.iter().all(|source| source.check_size(&mut diagnostics)) {
        return Err(diagnostics);
    }
    let topology = match format {
        Format::Native => match parse_native_with(files[0].0, files[0].1, &options.models) {
            Ok((topology, warnings)) => {
                diagnostics.append(warnings);
                Some(topology)
            }
            Err(wrong) => {
                diagnostics.append(wrong);
                None
            }
        },
        Format::Dot => dot::read(source, options, &mut diagnostics),
        Format::Lldp => lldp::read(&sources, options, &mut diagnostics),
        Format::IbNetDiscover => ibnetdiscover::read(source, options, &mut diagnostics),
        Format::Containerlab => containerlab::read(source, options, &mut diagnostics),
        Format::GraphMl => graphml::read(source, options, &mut diagnostics),
        Format::NetBox => netbox::read(&sources, options, &mut diagnostics),
    };
    diagnostics.into_result(topology).map(|(topology, warnings)| Imported { topology, warnings })
}

/// Writes a topology; none if the format is read only ([`Format::can_export`]).
pub fn export(format: Format, topology: &Topology) -> Option<String> {
    match format {
        Format::Native => Some(write_native(topology)),
        Format::Dot => Some(dot::write_dot(topology)),
        Format::Containerlab => Some(containerlab::write_containerlab(topology)),
        Format::GraphMl => Some(graphml::write_graphml(topology)),
        Format::Lldp | Format::IbNetDiscover | Format::NetBox => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_name_and_by_content() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        assert_eq!("ptm".parse(), Ok(Format::Dot));
        assert!("visio".parse::<Format>().is_err());
        for (name, text, expected) in [
            ("a", "# mine\nswitches:\n", Some(Format::Native)),
            ("a", "// PTM\ngraph G {\n", Some(Format::Dot)),
            ("a", "name: x\ntopology:\n  nodes:\n", Some(Format::Containerlab)),
            ("a", "<?xml version=\"1.0\"?>\n<graphml>", Some(Format::GraphMl)),
            ("a", "{\n \"lldp\": [", Some(Format::Lldp)),
            ("a", "{\"results\": [{\"id\": 1, \"url\": \"https://netbox/api/dcim/devices/1/\"", Some(Format::NetBox)),
            ("a", "#\n# Topology file\n#\nvendid=0x2c9\n", Some(Format::IbNetDiscover)),
            ("rack.gv", "", Some(Format::Dot)),
            ("rack.txt", "", None),
        ] {
            assert_eq!(Format::detect(name, text), expected, "{text}");
        }
    }
}
