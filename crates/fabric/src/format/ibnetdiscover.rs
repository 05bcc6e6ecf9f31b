//! The output of `ibnetdiscover`: the cabling of InfiniBand clusters, whose shapes are worth having on Ethernet.
//!
//! ```text
//! switchguid=0x2c90200405a10(2c90200405a10)
//! Switch  36 "S-0002c90200405a10"    # "leaf1" base port 0 lid 0 lmc 0
//! [1]  "H-0002c903000a0101"[1](2c903000a0102)    # "node01" lid 0 4xSDR
//! [19] "S-0002c90200405b10"[1]                   # "spine1" lid 0 4xSDR
//! ```
//!
//! A `Ca` (and an `Rt`) is a host, each of its cabled ports one. Names come from node descriptions: the shortest of
//! `sw-ib01`, `sw-ib01-MSB7800/U1` and `S-0002c90200405a10` that no other device shares. Rates are those that `ibstat`
//! prints (`4xQDR`: 40 Gbit/s). InfiniBand ports have no Ethernet address, so hosts get local ones; the GUIDs of switches
//! and of hosts' ports are kept, since forwarding tables are written for those.
//!
//! Source: `ibnetdiscover(8)`.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Guid, Topology,
    format::{
        cabling::{Cabling, Device, Role, Sighting, pair_sightings, usable_name},
        diagnostic::{Diagnostics, Source, TextPosition, TextSpan},
        import_options::ImportOptions,
    },
};

/// Signalling rate of one lane in Mbit/s, rounded as `ibstat` does.
const LANE_MBITS: [(&str, u64); 9] = [
    ("SDR", 2_500),
    ("DDR", 5_000),
    ("QDR", 10_000),
    ("FDR10", 10_000),
    ("FDR", 14_000),
    ("EDR", 25_000),
    ("HDR", 50_000),
    ("NDR", 100_000),
    ("XDR", 200_000),
];

pub(crate) fn read<'a>(
    source: &'a Source<'a>,
    options: &ImportOptions,
    diagnostics: &mut Diagnostics,
) -> Option<Topology> {
    let mut reader = Reader { source, diagnostics, nodes: Vec::new(), by_id: BTreeMap::new(), sightings: Vec::new() };
    let mut start = 0;
    let mut current = None;
    for line in source.text().split('\n') {
        current = reader.read_line(line, start, current);
        start += line.len() + 1;
    }
    let Reader { nodes, mut sightings, .. } = reader;
    if nodes.is_empty() {
        let error = source.at(TextSpan::START).error("there is no Switch or Ca line");
        diagnostics.push(error.with_help("give the plain output of ibnetdiscover, without -p or -l"));
        return None;
    }
    let names = distinct(&nodes);
    let devices: Vec<Device<'a>> = (nodes.iter().zip(names))
        .map(|(node, name)| {
            let role = if node.id.starts_with('S') { Role::Switch } else { Role::Host };
            let guid = (role == Role::Switch).then(|| node.id.strip_prefix("S-")?.parse().ok()).flatten();
            let port_guids = node.port_guids.clone();
            Device { stated: Some(role), guid, port_guids, ..Device::new(name, node.site, role) }
        })
        .collect();
    for sighting in &mut sightings {
        sighting.far_speaks = nodes[sighting.far.0].has_block;
    }
    let is_host = |index: usize| devices[index].habit == Role::Host;
    let cables = pair_sightings(sightings, &devices, is_host, diagnostics);
    Cabling { devices, cables }.build(source.at(TextSpan::START), options, diagnostics)
}

struct IbNode<'a> {
    /// `S-…`, `H-…` or `R-…` and the GUID.
    id: String,
    description: String,
    site: TextPosition<'a>,
    /// The GUIDs of its ports, as far as they are told.
    port_guids: BTreeMap<String, Guid>,
    /// Whether its own block has been read, not only a mention.
    has_block: bool,
}

struct Reader<'a, 'd> {
    source: &'a Source<'a>,
    diagnostics: &'d mut Diagnostics,
    nodes: Vec<IbNode<'a>>,
    by_id: BTreeMap<String, usize>,
    sightings: Vec<Sighting<'a>>,
}

impl<'a> Reader<'a, '_> {
    /// Reads one line that begins at byte `start` and returns the node whose block continues after it.
    fn read_line(&mut self, line: &'a str, start: usize, current: Option<usize>) -> Option<usize> {
        let body = line.trim();
        let site = || {
            let begin = start + (line.len() - line.trim_start().len());
            self.source.at(self.source.place(begin, begin + body.len()))
        };
        if body.is_empty() || body.starts_with('#') {
            return if body.is_empty() { None } else { current };
        }
        if body.starts_with('[') {
            let site = site();
            match (current, parse_port(body)) {
                (Some(near), Some(port)) => {
                    let far = self.node(port.far_id, port.far_description, site);
                    for (node, name, guid) in
                        [(near, port.near_port, port.near_guid), (far, port.far_port, port.far_guid)]
                    {
                        if let Some(guid) = guid {
                            self.nodes[node].port_guids.insert(name.to_owned(), guid);
                        }
                    }
                    self.sightings.push(Sighting {
                        near: (near, port.near_port.to_owned()),
                        far: (far, port.far_port.to_owned()),
                        rate_bps: port.rate_bps,
                        macs: [None, None],
                        site,
                        far_speaks: false,
                    });
                }
                (None, _) => self.diagnostics.push(site.error("this port belongs to no Switch or Ca line")),
                (_, None) => {
                    let error = site.error("this is no port line");
                    self.diagnostics
                        .push(error.with_help(
                            "such as [1] \"H-0002c903000a0101\"[1](2c903000a0102) # \"node01\" lid 1 4xQDR",
                        ));
                }
            }
            return current;
        }
        let (word, rest) = body.split_once(char::is_whitespace).unwrap_or((body, ""));
        if !matches!(word, "Switch" | "Ca" | "Rt") {
            // Lines such as vendid=0x2c9 describe the block to come.
            return current.filter(|_| !body.contains('='));
        }
        let site = site();
        let Some((id, tail)) = quoted(rest) else {
            let error = site.error("this line names no node");
            self.diagnostics
                .push(error.with_help("such as Switch 36 \"S-0002c90200405a10\" # \"leaf1\" base port 0 lid 1 lmc 0"));
            return None;
        };
        let description = quoted(tail).map_or("", |(description, _)| description);
        let index = self.node(id, description, site);
        let node = &mut self.nodes[index];
        if node.has_block {
            let message = format!("{id} is described before, on line {}", node.site.place.line);
            self.diagnostics.push(site.error(message).with_help("give the output of one run"));
        }
        node.has_block = true;
        node.site = site;
        if !description.is_empty() {
            node.description = description.to_owned();
        }
        Some(index)
    }

    fn node(&mut self, id: &str, description: &str, site: TextPosition<'a>) -> usize {
        if let Some(index) = self.by_id.get(id) {
            return *index;
        }
        let index = self.nodes.len();
        self.nodes.push(IbNode {
            id: id.to_owned(),
            description: description.to_owned(),
            site,
            port_guids: BTreeMap::new(),
            has_block: false,
        });
        self.by_id.insert(id.to_owned(), index);
        index
    }
}

struct PortLine<'l> {
    near_port: &'l str,
    near_guid: Option<Guid>,
    far_id: &'l str,
    far_port: &'l str,
    far_guid: Option<Guid>,
    far_description: &'l str,
    rate_bps: Option<u64>,
}

/// `[1](guid)[ext 2] "H-…"[1](guid) # lid 0 lmc 0 "leaf2" lid 0 4xSDR`
fn parse_port(line: &str) -> Option<PortLine<'_>> {
    let (near_port, rest) = bracketed(line)?;
    let near_guid = leading_guid(rest);
    let (far_id, rest) = quoted(rest)?;
    let (far_port, rest) = bracketed(rest)?;
    let is_number = |text: &str| !text.is_empty() && text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    let comment = rest.split_once('#').map_or("", |(_, comment)| comment);
    let (far_description, tail) = quoted(comment).unwrap_or(("", comment));
    let rate_bps = tail.split_whitespace().rev().find_map(parse_width_and_speed);
    (is_number(near_port) && is_number(far_port)).then_some(PortLine {
        near_port,
        near_guid,
        far_id,
        far_port,
        far_guid: leading_guid(rest),
        far_description,
        rate_bps,
    })
}

/// The GUID in parentheses right after a port's brackets.
fn leading_guid(text: &str) -> Option<Guid> {
    text.strip_prefix('(')?.split_once(')')?.0.parse().ok()
}

fn parse_width_and_speed(word: &str) -> Option<u64> {
    let (width, speed) = word.split_once('x')?;
    let width: u64 = width.parse().ok().filter(|width| (1..=16).contains(width))?;
    LANE_MBITS.iter().find(|(name, _)| *name == speed).map(|(_, mbits)| width * mbits * 1_000_000)
}

/// The text in the first pair of brackets, and what follows it.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    text.split_once('[')?.1.split_once(']')
}

/// The text in the first pair of quotes, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.split_once('"')?.1.split_once('"')
}

/// For each node the shortest of its candidate names that no other node has to take.
fn distinct(nodes: &[IbNode<'_>]) -> Vec<String> {
    let candidates: Vec<[String; 3]> = nodes.iter().map(candidate_names).collect();
    let mut level = vec![0; nodes.len()];
    // A node whose name is shared moves on to a longer one; a GUID is the last, and nobody else's.
    for _ in 0..3 {
        let mut bearers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, names) in candidates.iter().enumerate() {
            bearers.entry(names[level[index]].as_str()).or_default().push(index);
        }
        let crowded: BTreeSet<usize> = (bearers.iter())
            .filter(|(name, who)| name.is_empty() || who.len() > 1)
            .flat_map(|(_, who)| who.iter().copied())
            .collect();
        for index in crowded {
            level[index] = (level[index] + 1).min(2);
        }
    }
    candidates.iter().zip(level).map(|(names, level)| names[level].clone()).collect()
}

/// `MF0;sw-ib01:MSB7800/U1` is the switch sw-ib01, `node01 mlx5_0` the host node01.
fn candidate_names(node: &IbNode<'_>) -> [String; 3] {
    let description = node.description.split_once(';').map_or(node.description.as_str(), |(_, rest)| rest);
    let short = description.split(|c: char| c.is_whitespace() || c == ':').next().unwrap_or_default();
    [usable_name(short), usable_name(description), usable_name(&node.id)]
}
