//! What an agent saves: its configuration, by names of ports, so that a switch whose ports are counted anew keeps it.

use std::collections::BTreeMap;

use fabric::{Mac, VlanId};
use serde::{Deserialize, Serialize};

use crate::agent::{Config, Facts, StaticConfig, VlanConfig};
use bridge_mib::{
    AcceptableFrames, Enabled, IfStatus, LldpAdmin, PauseMode, PortList, RowStatus, StaticStatus,
    index::{StaticRow, VlanIndex},
};
use switch_model::format::FormatError;

/// Version of the file.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    espalier_switchd: u32,
    contact: String,
    name: String,
    location: String,
    ageing_s: u32,
    stp_priority: u16,
    ports: BTreeMap<String, Port>,
    vlans: BTreeMap<u16, Vlan>,
    /// VLAN, address, port, status.
    statics: Vec<(u32, String, String, i32)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Port {
    admin: i32,
    alias: String,
    pvid: u16,
    frames: i32,
    stp: i32,
    stp_cost: Option<u32>,
    stp_priority: u8,
    pause: i32,
    lldp: i32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vlan {
    name: String,
    egress: Vec<String>,
    forbidden: Vec<String>,
    untagged: Vec<String>,
    status: i32,
}

/// Writes what an agent saves.
pub fn write_saved(facts: &Facts, config: &Config) -> String {
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    let name = |port: u32| facts.ports.get(port as usize - 1).map(|port| port.name.clone()).unwrap_or_default();
    let names = |list: &PortList| list.iter().map(name).collect();
    let ports = facts.ports.iter().zip(&config.ports).map(|(facts, port)| {
        let saved = Port {
            admin: port.admin.code(),
            alias: text(&port.alias),
            pvid: port.pvid.get(),
            frames: port.frames.code(),
            stp: port.stp.code(),
            stp_cost: port.stp_cost,
            stp_priority: port.stp_priority,
            pause: port.pause.code(),
            lldp: port.lldp.code(),
        };
        (facts.name.clone(), saved)
    });
    let vlans = config.vlans.iter().map(|(index, vlan)| {
        let saved = Vlan {
            name: text(&vlan.name),
            egress: names(&vlan.egress),
            forbidden: names(&vlan.forbidden),
            untagged: names(&vlan.untagged),
            status: vlan.status.code(),
        };
        (index.0.get(), saved)
    });
    let lasting = config.statics.iter().filter(|(_, entry)| entry.status != StaticStatus::DeleteOnReset);
    let statics = lasting.map(|(row, entry)| {
        (row.fdb, row.mac.to_string(), entry.ports.last().map(name).unwrap_or_default(), entry.status.code())
    });
    let file = File {
        espalier_switchd: VERSION,
        contact: text(&config.contact),
        name: text(&config.name),
        location: text(&config.location),
        ageing_s: config.ageing_s,
        stp_priority: config.stp_priority,
        ports: ports.collect(),
        vlans: vlans.collect(),
        statics: statics.collect(),
    };
    serde_json::to_string_pretty(&file).expect("plain data") + "\n"
}

/// Reads what an agent saved. Ports that are new have factory settings, less VLAN 1; those that are gone are left out.
///
/// # Errors
/// [`FormatError`].
pub fn parse_saved(facts: &Facts, text: &str) -> Result<Config, FormatError> {
    let file: File = serde_json::from_str(text)?;
    if file.espalier_switchd > VERSION {
        return Err(FormatError::Version { found: file.espalier_switchd, known: VERSION });
    }
    let wrong = |what: String| FormatError::Content(what);
    let number = |name: &str| facts.ports.iter().position(|port| port.name == name).map(|at| at as u32 + 1);
    let list = |names: &[String]| PortList::of(names.iter().filter_map(|name| number(name))).unwrap_or_default();
    let vlan_id = |id: u16| VlanId::new(id).map_err(|error| wrong(error.to_string()));
    let mut config = facts.factory();
    (config.contact, config.name, config.location) =
        (file.contact.into_bytes(), file.name.into_bytes(), file.location.into_bytes());
    (config.ageing_s, config.stp_priority) = (file.ageing_s, file.stp_priority);
    for (name, saved) in &file.ports {
        let Some(number) = number(name) else { continue };
        let port = &mut config.ports[number as usize - 1];
        let code = |what: &str| wrong(format!("port {name}: its {what} is no such thing"));
        port.admin = IfStatus::try_from(saved.admin).map_err(|_| code("state"))?;
        port.alias = saved.alias.clone().into_bytes();
        port.pvid = vlan_id(saved.pvid)?;
        port.frames = AcceptableFrames::try_from(saved.frames).map_err(|_| code("frames"))?;
        port.stp = Enabled::try_from(saved.stp).map_err(|_| code("spanning tree"))?;
        (port.stp_cost, port.stp_priority) = (saved.stp_cost, saved.stp_priority);
        port.pause = PauseMode::try_from(saved.pause).map_err(|_| code("PAUSE"))?;
        port.lldp = LldpAdmin::try_from(saved.lldp).map_err(|_| code("LLDP"))?;
    }
    config.vlans.clear();
    for (id, saved) in &file.vlans {
        let status = RowStatus::try_from(saved.status).map_err(|_| wrong(format!("VLAN {id}: no such status")))?;
        let vlan = VlanConfig {
            name: saved.name.clone().into_bytes(),
            egress: list(&saved.egress),
            forbidden: list(&saved.forbidden),
            untagged: list(&saved.untagged),
            status,
            created_cs: 0,
        };
        config.vlans.insert(VlanIndex(vlan_id(*id)?), vlan);
    }
    for (fdb, mac, port, status) in &file.statics {
        let mac: Mac = mac.parse().map_err(|error| wrong(format!("{mac} is {error}")))?;
        let status = StaticStatus::try_from(*status).map_err(|_| wrong(format!("{mac}: no such status")))?;
        let Some(port) = number(port) else { continue };
        let ports = PortList::of([port]).unwrap_or_default();
        config.statics.insert(StaticRow { fdb: *fdb, mac, receive_port: 0 }, StaticConfig { ports, status });
    }
    Ok(config)
}
