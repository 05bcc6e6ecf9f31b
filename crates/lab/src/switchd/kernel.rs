//! The kernel's bridge by iproute2: what it holds, and the commands that lead from one state to another.
//!
//! ```text
//!   ip -json -details -statistics link ─┐
//!   bridge -json vlan, fdb             ─┴▶ State ─ difference ─▶ bridge -batch, ip -batch
//! ```
//! A PVID is a flag of a membership there, so a port that is no member of its PVID's VLAN has none, which drops the same
//! frames.

use std::{collections::BTreeMap, fmt::Write as _};

use fabric::{Mac, VlanId};
use serde_json::Value;

use crate::{
    LabError,
    tool::{Batch, Place, output, run_batch},
};

/// What a bridge holds, as far as a manager writes it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct State {
    /// By the port's name.
    pub(super) ports: BTreeMap<String, PortState>,
    /// Static entries and the port that they lead to.
    pub(super) statics: BTreeMap<(VlanId, Mac), String>,
    pub(super) stp: bool,
    pub(super) stp_priority: u16,
    pub(super) ageing_s: u32,
}

/// What a port of a bridge holds.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct PortState {
    pub(super) up: bool,
    pub(super) alias: String,
    /// VLANs, and whether they leave without a tag.
    pub(super) vlans: BTreeMap<VlanId, bool>,
    pub(super) pvid: Option<VlanId>,
}

/// What a bridge says of itself and its ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    pub(super) bridge: Value,
    /// Ascending by index.
    pub(super) ports: Vec<Value>,
}

fn place<'a>(bridge: &'a str, step: &'static str) -> Place<'a> {
    Place { operation: "serve", device: bridge, step }
}

fn json(bridge: &str, tool: &'static str, args: &[&str], step: &'static str) -> Result<Vec<Value>, LabError> {
    let said = output(tool, args, None, place(bridge, step))?;
    if said.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    serde_json::from_slice(&said)
        .map_err(|error| LabError::Unsupported(format!("{tool} {}: no JSON: {error}", args.join(" "))))
}

/// Reads the bridge and its ports, with counters.
///
/// # Errors
/// [`LabError::Unsupported`] if there is no such bridge, or it does not filter VLANs, with the way out.
pub(super) fn links(bridge: &str) -> Result<Links, LabError> {
    let all = json(bridge, "ip", &["-json", "-details", "-statistics", "link", "show"], "read devices")?;
    let mut ports: Vec<Value> = all.iter().filter(|link| link["master"] == bridge).cloned().collect();
    ports.sort_by_key(|port| port["ifindex"].as_u64());
    let found = all.into_iter().find(|link| link["ifname"] == bridge && link["linkinfo"]["info_kind"] == "bridge");
    let Some(found) = found else {
        return Err(LabError::Unsupported(format!(
            "there is no bridge {bridge}: ip link add name {bridge} type bridge vlan_filtering 1"
        )));
    };
    if found["linkinfo"]["info_data"]["vlan_filtering"].as_u64() != Some(1) {
        return Err(LabError::Unsupported(format!(
            "{bridge} does not filter VLANs: ip link set dev {bridge} type bridge vlan_filtering 1"
        )));
    }
    Ok(Links { bridge: found, ports })
}

/// Reads what the bridge holds.
///
/// # Errors
/// As [`links`].
pub(super) fn read(bridge: &str) -> Result<State, LabError> {
    let Links { bridge: options, ports } = links(bridge)?;
    let options = &options["linkinfo"]["info_data"];
    let number = |key: &str| options[key].as_u64().unwrap_or(0);
    let mut state = State {
        stp: number("stp_state") != 0,
        stp_priority: number("priority") as u16,
        ageing_s: (number("ageing_time") / 100) as u32,
        ..State::default()
    };
    for port in &ports {
        let up = port["flags"].as_array().is_some_and(|flags| flags.iter().any(|flag| flag == "UP"));
        let alias = port["ifalias"].as_str().unwrap_or_default().to_owned();
        state.ports.insert(name(port), PortState { up, alias, ..PortState::default() });
    }
    for entry in json(bridge, "bridge", &["-json", "vlan", "show"], "read VLANs")? {
        let Some(port) = state.ports.get_mut(&name(&entry)) else { continue };
        for vlan in entry["vlans"].as_array().into_iter().flatten() {
            let has =
                |flag: &str| vlan["flags"].as_array().is_some_and(|flags| flags.iter().any(|other| other == flag));
            let Some(first) = vlan["vlan"].as_u64() else { continue };
            for id in first..=vlan["vlanEnd"].as_u64().unwrap_or(first) {
                let Some(id) = vlan_id(id) else { continue };
                port.vlans.insert(id, has("Egress Untagged"));
                if has("PVID") {
                    port.pvid = Some(id);
                }
            }
        }
    }
    for entry in addresses(bridge)? {
        if entry["state"] == "static" {
            if let Some((row, port)) = row(&entry).filter(|(_, port)| state.ports.contains_key(port)) {
                state.statics.insert(row, port);
            }
        }
    }
    Ok(state)
}

/// Addresses that the bridge has learned, and where.
pub(super) fn learned(bridge: &str) -> Result<BTreeMap<(VlanId, Mac), String>, LabError> {
    let fleeting = |entry: &Value| !matches!(entry["state"].as_str(), Some("static" | "permanent"));
    Ok(addresses(bridge)?.iter().filter(|entry| fleeting(entry)).filter_map(row).collect())
}

fn addresses(bridge: &str) -> Result<Vec<Value>, LabError> {
    json(bridge, "bridge", &["-json", "fdb", "show", "br", bridge], "read addresses")
}

fn row(entry: &Value) -> Option<((VlanId, Mac), String)> {
    let mac = entry["mac"].as_str()?.parse().ok()?;
    Some(((vlan_id(entry["vlan"].as_u64()?)?, mac), name(entry)))
}

pub(super) fn name(link: &Value) -> String {
    link["ifname"].as_str().unwrap_or_default().to_owned()
}

fn vlan_id(id: u64) -> Option<VlanId> {
    u16::try_from(id).ok().and_then(|id| VlanId::new(id).ok())
}

/// Brings a bridge from one state to another, of the same ports: what leaves first, ports that open last.
///
/// # Errors
/// [`LabError::Tool`] with the command that was refused; what came before it has been done.
pub(super) fn change(bridge: &str, before: &State, after: &State) -> Result<(), LabError> {
    let (mut first, mut lines, mut last) = (String::new(), String::new(), String::new());
    for (row, port) in before.statics.iter().filter(|(row, _)| !after.statics.contains_key(*row)) {
        let _ = writeln!(lines, "fdb del {} dev {port} master static vlan {}", row.1, row.0);
    }
    let nothing = PortState::default();
    for (name, new) in &after.ports {
        let old = before.ports.get(name).unwrap_or(&nothing);
        if old.up && !new.up {
            let _ = writeln!(first, "link set dev {name} down");
        }
        if !old.up && new.up {
            let _ = writeln!(last, "link set dev {name} up");
        }
        for vlan in old.vlans.keys().filter(|vlan| !new.vlans.contains_key(vlan)) {
            let _ = writeln!(lines, "vlan del dev {name} vid {vlan}");
        }
        // A membership that is said without the PVID's flag loses it, so the PVID's comes last.
        let mut anew: Vec<(VlanId, bool)> = (new.vlans.iter())
            .filter(|(vlan, untagged)| {
                let flagged = |port: &PortState| port.pvid == Some(**vlan);
                old.vlans.get(vlan) != Some(untagged) || flagged(old) != flagged(new)
            })
            .map(|(vlan, untagged)| (*vlan, *untagged))
            .collect();
        anew.sort_by_key(|(vlan, _)| new.pvid == Some(*vlan));
        for (vlan, untagged) in anew {
            let pvid = if new.pvid == Some(vlan) { " pvid" } else { "" };
            let untagged = if untagged { " untagged" } else { "" };
            let _ = writeln!(lines, "vlan add dev {name} vid {vlan}{pvid}{untagged}");
        }
    }
    for (row, port) in after.statics.iter().filter(|(row, port)| before.statics.get(*row) != Some(*port)) {
        let _ = writeln!(lines, "fdb replace {} dev {port} master static vlan {}", row.1, row.0);
    }
    let mut options = String::new();
    if before.stp != after.stp {
        let _ = write!(options, " stp_state {}", u8::from(after.stp));
    }
    if before.stp_priority != after.stp_priority {
        let _ = write!(options, " priority {}", after.stp_priority);
    }
    if before.ageing_s != after.ageing_s {
        let _ = write!(options, " ageing_time {}", after.ageing_s * 100);
    }
    if !options.is_empty() {
        let _ = writeln!(first, "link set dev {bridge} type bridge{options}");
    }
    for (tool, script, step) in
        [("ip", first, "shut ports"), ("bridge", lines, "write VLANs"), ("ip", last, "open ports")]
    {
        run_batch(&Batch { tool, namespace: None, script }, place(bridge, step))?;
    }
    for (name, new) in &after.ports {
        if before.ports.get(name).is_some_and(|old| old.alias != new.alias) {
            output("ip", &["link", "set", "dev", name, "alias", &new.alias], None, place(bridge, "name ports"))?;
        }
    }
    Ok(())
}
