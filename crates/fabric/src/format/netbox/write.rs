//! Files for NetBox's bulk import, in the order in which they must be loaded.
//!
//! ```text
//! 0-custom-fields 1-sites 2-manufacturers 3-device-types 4-device-roles ─▶ 5-devices ─▶ 6-interfaces ─▶ 7-mac-addresses, 8-cables
//! ```
//! Objects refer to each other by name. Device types have no CSV import that NetBox documents, and are YAML.
//!
//! Source: NetBox's documentation, "Populating Data: Bulk Import (CSV/YAML)"; its import forms of DCIM.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use super::{
    fields::{CustomField, FIELDS, GROUPS},
    media::type_of,
};
use crate::{
    DEFAULT_RATE_BPS, Host, Machine, MachineId, PortId, Topology,
    format::{
        cabling::{groups_of_cable, groups_text},
        yaml::double_quote,
    },
};

/// A file for one of NetBox's import pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetBoxFile {
    /// Its name, which begins with its place in the order.
    pub name: &'static str,
    /// The whole of it.
    pub text: String,
}

const MANUFACTURER: &str = "Unknown";
/// The type of machines.
const MACHINE_TYPE: &str = "machine";
/// The interface of a machine with one port, whose name a topology does not say.
const ONLY_PORT: &str = "eth0";
/// The interface of a machine with one bond, whose name a topology does not say either.
const BOND: &str = "bond0";

/// Writes a topology as devices of one site. Addresses of management and of IP are not written.
pub fn write_netbox(topology: &Topology, site: &str) -> Vec<NetBoxFile> {
    let machines = machine_names(topology);
    let kinds: BTreeSet<&str> = topology.switches().iter().map(|switch| switch.model.name.as_str()).collect();
    let kinds = kinds.into_iter().chain((!machines.is_empty()).then_some(MACHINE_TYPE));
    let kinds = kinds.map(|kind| {
        let [manufacturer, model, slug] = [MANUFACTURER, kind, &slug(kind)].map(double_quote);
        format!("- manufacturer: {manufacturer}\n  model: {model}\n  slug: {slug}\n")
    });
    let name = |machine: MachineId| machines[machine.index()].as_str();
    let used = |field: &&CustomField| topology.hosts().iter().any(|host| (field.of)(host).is_some());
    let fields: Vec<&CustomField> = FIELDS.iter().filter(used).collect();
    let has_groups = !topology.groups().is_empty();
    let mut files: Vec<NetBoxFile> =
        (has_groups || !fields.is_empty()).then(|| custom_fields(&fields, has_groups)).into_iter().collect();
    files.extend([
        csv("1-sites.csv", &["name", "slug", "status"], [vec![site, &slug(site), "active"]]),
        csv("2-manufacturers.csv", &["name", "slug"], [vec![MANUFACTURER, &slug(MANUFACTURER)]]),
        NetBoxFile { name: "3-device-types.yaml", text: kinds.collect() },
        csv(
            "4-device-roles.csv",
            &["name", "slug", "color"],
            [vec!["Switch", "switch", "2196f3"], vec!["Server", "server", "9e9e9e"]],
        ),
    ]);
    let groups_column = format!("cf_{GROUPS}");
    let groups_column = has_groups.then_some(groups_column.as_str());
    // In the last column, if there is one for groups.
    let with_groups = |mut row: Vec<String>, groups: Option<String>| {
        row.extend(groups_column.map(|_| groups.unwrap_or_default()));
        row
    };
    let device = |name: &'_ str, role: &'_ str, kind: &'_ str| {
        [name, role, MANUFACTURER, kind, "active", site].map(str::to_owned).to_vec()
    };
    let switches = topology.switch_ids().map(|id| {
        let switch = topology.switch(id);
        let groups = groups_text(topology, |group| group.switches.contains(&id));
        with_groups(device(&switch.name, "Switch", &switch.model.name), groups)
    });
    let rows = switches.chain(machines.iter().map(|name| with_groups(device(name, "Server", MACHINE_TYPE), None)));
    let mut header = ["name", "role", "manufacturer", "device_type", "status", "site"].to_vec();
    header.extend(groups_column);
    files.push(csv("5-devices.csv", &header, rows));
    let port = |id: PortId| {
        let port = topology.port(id);
        (topology.switch(port.switch).name.as_str(), port.name.as_str())
    };
    let rates: BTreeMap<PortId, u64> = topology
        .switch_cables()
        .flat_map(|(a, b, rate_bps)| [(a, rate_bps), (b, rate_bps)])
        .chain(topology.host_cables().map(|(port, _, _, rate_bps)| (port, rate_bps)))
        .collect();
    // Members name their LAG, so LAGs come first.
    let (lags, others): (Vec<PortId>, Vec<PortId>) =
        (0..topology.ports().len()).map(PortId::new).partition(|id| topology.port(*id).lag().is_some());
    let ports = lags.into_iter().chain(others).map(|id| {
        let (switch, name) = port(id);
        let kind =
            if topology.port(id).lag().is_some() { Interface::Lag } else { Interface::Port(rates.get(&id).copied()) };
        let lag = topology.logical_port(id);
        let row = [switch, name]
            .into_iter()
            .map(str::to_owned)
            .chain(kind.columns(if lag == id { "" } else { port(lag).1 }))
            .chain(fields.iter().map(|_| String::new()));
        // The groups of a LAG's link stand at its members.
        let groups = groups_of_cable(topology, id).filter(|_| topology.port(id).lag().is_none());
        with_groups(row.collect(), groups)
    });
    let custom = |host: &Host| {
        fields
            .iter()
            .map(|field| (field.of)(host).map_or_else(String::new, |value| value.to_string()))
            .collect::<Vec<_>>()
    };
    let bonds = topology.hosts().iter().filter(|host| topology.port(host.port).lag().is_some()).map(|host| {
        let row = [name(host.machine), nic(topology, host)]
            .into_iter()
            .map(str::to_owned)
            .chain(Interface::Lag.columns(""))
            .chain(custom(host));
        with_groups(row.collect(), None)
    });
    let nics = topology.host_cables().map(|(_, id, number, rate_bps)| {
        let host = topology.host(id);
        let bond = if topology.port(host.port).lag().is_some() { nic(topology, host) } else { "" };
        let own = [name(host.machine).to_owned(), nic_of_cable(topology, host, number)];
        let none = || fields.iter().map(|_| String::new()).collect();
        let custom = if bond.is_empty() { custom(host) } else { none() };
        with_groups(own.into_iter().chain(Interface::Port(Some(rate_bps)).columns(bond)).chain(custom).collect(), None)
    });
    let mut rows: Vec<Vec<String>> = ports.chain(bonds).chain(nics).collect();
    let columns: Vec<String> = fields.iter().map(|field| format!("cf_{}", field.name)).collect();
    let mut header = ["device", "name", "type", "speed", "lag"].to_vec();
    let lag = header.len() - 1;
    header.extend(columns.iter().map(String::as_str).chain(groups_column));
    if !topology.has_lags() {
        rows.iter_mut().for_each(|row| drop(row.remove(lag)));
        header.remove(lag);
    }
    files.push(csv("6-interfaces.csv", &header, rows));
    let macs = topology.hosts().iter().flat_map(|host| {
        // The ports of a failover bond have the same addresses.
        host.all_macs().map(|mac| {
            let primary = if mac == host.mac { "true" } else { "false" };
            [mac.to_string().as_str(), name(host.machine), nic(topology, host), primary].map(str::to_owned).to_vec()
        })
    });
    files.push(csv("7-mac-addresses.csv", &["mac_address", "device", "interface", "is_primary"], macs));
    let cable = |(a, a_port): (&str, &str), (b, b_port): (&str, &str)| {
        [a, "dcim.interface", a_port, b, "dcim.interface", b_port, "connected"].map(str::to_owned).to_vec()
    };
    let links = topology.switch_cables().map(|(a, b, _)| cable(port(a), port(b)));
    let rim = topology.host_cables().map(|(at, id, number, _)| {
        let host = topology.host(id);
        cable(port(at), (name(host.machine), nic_of_cable(topology, host, number).as_str()))
    });
    let sides =
        ["side_a_device", "side_a_type", "side_a_name", "side_b_device", "side_b_type", "side_b_name", "status"];
    files.push(csv("8-cables.csv", &sides, links.chain(rim)));
    files
}

/// Custom fields of interfaces, and that for groups if there are any, with the columns that NetBox's import requires.
fn custom_fields(fields: &[&CustomField], has_groups: bool) -> NetBoxFile {
    let header = [
        "name",
        "label",
        "type",
        "object_types",
        "weight",
        "search_weight",
        "filter_logic",
        "validation_minimum",
        "validation_maximum",
        "ui_visible",
        "ui_editable",
    ];
    let row = |field: &&CustomField| {
        let bounds = [field.bounds.start().to_string(), field.bounds.end().to_string()];
        let (name, label) = (field.name, field.label);
        let facts = [name, label, "integer", "dcim.interface", "100", "1000", "exact", &bounds[0], &bounds[1]];
        facts.into_iter().chain(["always", "yes"]).map(str::to_owned).collect::<Vec<_>>()
    };
    let types = "dcim.device,dcim.interface";
    let groups = [GROUPS, "Groups that fail together", "text", types, "100", "1000", "exact", "", "", "always", "yes"];
    let groups = has_groups.then(|| groups.map(str::to_owned).to_vec());
    csv("0-custom-fields.csv", &header, fields.iter().map(row).chain(groups))
}

/// What an interface is to NetBox.
enum Interface {
    /// A LAG.
    Lag,
    /// A port of some rate, if its cable tells.
    Port(Option<u64>),
}

impl Interface {
    /// Type, speed in kbit/s and LAG.
    fn columns(&self, lag: &str) -> [String; 3] {
        let (kind, speed) = match self {
            Self::Lag => ("lag", String::new()),
            Self::Port(rate) => (
                type_of(rate.unwrap_or(DEFAULT_RATE_BPS)),
                rate.map_or_else(String::new, |rate| (rate / 1000).to_string()),
            ),
        };
        [kind.to_owned(), speed, lag.to_owned()]
    }
}

/// What the machine calls the host's port.
fn nic<'t>(topology: &'t Topology, host: &'t Host) -> &'t str {
    let machine = &topology.machine(host.machine).name;
    let only = if topology.port(host.port).lag().is_some() { BOND } else { ONLY_PORT };
    host.name.strip_prefix(machine).and_then(|rest| rest.strip_prefix('/')).unwrap_or(only)
}

/// What the machine calls the port that one of the host's cables is in.
fn nic_of_cable(topology: &Topology, host: &Host, number: usize) -> String {
    match topology.port(host.port).lag() {
        None => nic(topology, host).to_owned(),
        Some(_) => format!(
            "{}{number}",
            if nic(topology, host) == BOND { "eth".to_owned() } else { format!("{}-", nic(topology, host)) }
        ),
    }
}

/// A machine that is called like a switch gets a suffix: NetBox's devices have one name space.
fn machine_names(topology: &Topology) -> Vec<String> {
    let switches: BTreeSet<&str> = topology.switches().iter().map(|switch| switch.name.as_str()).collect();
    let machines = topology.machines().iter().map(|machine| machine.name.as_str());
    let mut taken: BTreeSet<String> = switches.iter().copied().chain(machines).map(str::to_owned).collect();
    let mut fresh = |Machine { name, .. }: &Machine| {
        if !switches.contains(name.as_str()) {
            return name.clone();
        }
        let mut candidates = (1..).map(|number| format!("{name}+{number}"));
        let free = candidates.find(|candidate| !taken.contains(candidate)).unwrap_or_else(|| name.clone());
        taken.insert(free.clone());
        free
    };
    topology.machines().iter().map(&mut fresh).collect()
}

fn csv<T: AsRef<str>>(name: &'static str, header: &[&str], rows: impl IntoIterator<Item = Vec<T>>) -> NetBoxFile {
    let mut text = header.join(",") + "\n";
    for row in rows {
        let fields: Vec<String> = row.iter().map(|field| field_text(field.as_ref())).collect();
        let _ = writeln!(text, "{}", fields.join(","));
    }
    NetBoxFile { name, text }
}

/// Source: RFC 4180, 2.
fn field_text(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// Small letters, digits, `-` and `_`.
fn slug(name: &str) -> String {
    let usable = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let slug: String = name.chars().map(usable).collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "fabric".to_owned() } else { slug.to_owned() }
}
