//! The kernel's VLAN-aware bridge as a switch: commands for `ip` and `bridge` from the tables, counters back.
//!
//! ```text
//! ip:      link add br~ type bridge vlan_filtering 1 vlan_default_pvid 0 stp_state 0 mcast_snooping 0 …
//!          link set dev g1 master br~ type bridge_slave learning off
//! bridge:  vlan add dev g1 vid 2 pvid untagged
//!          fdb replace 02:00:00:00:00:01 dev g1 master static vlan 2
//! ```
//!
//! The bridge device itself joins no VLAN, so no frame ever ends in the switch's own stack.

use std::{collections::BTreeMap, fmt::Write};

use fabric::{FloodKind, FloodSet};

use crate::{
    LabError,
    counters::Traffic,
    layout::{Layout, SwitchSite},
    name::BRIDGE_DEVICE,
    table::{Learning, PORT_IFINDEX_BASE, SwitchTable},
    tool::{Batch, BatchOrigin, output_json, run_batch},
};

/// The bridge counts frames from the network header on; a frame has this much more.
const ETH_HEADER_BYTES: u64 = 14;

/// Indexes of the peers of devices in empty ports: above those of ports.
const EMPTY_PEER_IFINDEX_BASE: usize = 4096;

/// Makes one switch of a lab.
///
/// # Errors
/// [`LabError::Tool`] that names the switch and the command.
pub(crate) fn build_switch(layout: &Layout, switch: usize, table: &SwitchTable) -> Result<(), LabError> {
    let site = &layout.switches[switch];
    let namespace = Some(site.namespace.as_str());
    let place = |step| BatchOrigin { operation: "up", device: &site.name, step };
    run_batch(&Batch { tool: "ip", namespace, script: link_script(site, table) }, place("make bridge"))?;
    run_batch(
        &Batch { tool: "bridge", namespace, script: table_script(site, table)? },
        place("write VLANs and entries"),
    )
}

/// Traffic of a switch, by port number and VLAN.
///
/// # Errors
/// [`LabError::Tool`] if the bridge is gone.
pub(crate) fn read_traffic(site: &SwitchSite) -> Result<BTreeMap<(u16, u16), Traffic>, LabError> {
    let mut traffic = device_traffic(site)?;
    for (number, port) in site.ports.iter().enumerate() {
        for (vlan, counts) in &port.before.traffic {
            let entry = traffic.entry((number as u16, *vlan)).or_insert(traffic_of([0; 4]));
            *entry = traffic_of([
                entry.in_frames + counts[0],
                entry.in_bytes + counts[1],
                entry.out_frames + counts[2],
                entry.out_bytes + counts[3],
            ]);
        }
    }
    Ok(traffic)
}

/// Traffic of a switch since each of its devices came to its port.
///
/// # Errors
/// As [`read_traffic`].
pub(crate) fn device_traffic(site: &SwitchSite) -> Result<BTreeMap<(u16, u16), Traffic>, LabError> {
    let place = BatchOrigin { operation: "status", device: &site.name, step: "read bridge" };
    Ok(parse_traffic(&output_json("bridge", &["-j", "-s", "vlan", "show"], &site.namespace, place)?, site))
}

/// Counters of devices, frames and bytes received and sent, as traffic.
fn traffic_of([in_frames, in_bytes, out_frames, out_bytes]: [u64; 4]) -> Traffic {
    let (flooded_unknown, flooded_multicast, flooded_broadcast) = (None, None, None);
    Traffic { in_frames, in_bytes, out_frames, out_bytes, flooded_unknown, flooded_multicast, flooded_broadcast }
}

/// What the bridge holds of a device, as commands that give it to the next device of the port: options for `ip`, then
/// VLANs and static entries for `bridge`.
///
/// # Errors
/// [`LabError::Tool`] if the bridge is gone.
pub(crate) fn held(site: &SwitchSite, device: &str) -> Result<Held, LabError> {
    let place = |step| BatchOrigin { operation: "plug", device: &site.name, step };
    let json = |tool, args: &[&str], step| output_json(tool, args, &site.namespace, place(step));
    let link = json("ip", &["-d", "-j", "link", "show", "dev", device], "read port")?;
    let of_port = &link[0]["linkinfo"]["info_slave_data"];
    let learning = of_port["learning"].as_bool().unwrap_or(false);
    let blocks = |(_, flag): &&(FloodKind, &str)| of_port[*flag].as_bool() == Some(false);
    let blocked_floods = FLOOD_FLAGS.iter().filter(blocks).map(|(kind, _)| *kind).collect();
    let vlans = json("bridge", &["-j", "vlan", "show", "dev", device], "read VLANs")?;
    let mut script = String::new();
    for vlan in vlans[0]["vlans"].as_array().into_iter().flatten() {
        let flag = |flag: &str| vlan["flags"].as_array().is_some_and(|flags| flags.iter().any(|word| word == flag));
        let pvid = if flag("PVID") { " pvid" } else { "" };
        let untagged = if flag("Egress Untagged") { " untagged" } else { "" };
        let (Some(first), last) = (vlan["vlan"].as_u64(), vlan["vlanEnd"].as_u64()) else { continue };
        let range = last.map_or_else(|| first.to_string(), |last| format!("{first}-{last}"));
        let _ = writeln!(script, "vlan add dev {device} vid {range}{pvid}{untagged}");
    }
    let entries = json("bridge", &["-j", "fdb", "show", "brport", device], "read entries")?;
    for entry in entries.as_array().into_iter().flatten().filter(|entry| entry["state"] == "static") {
        if let (Some(mac), Some(vlan)) = (entry["mac"].as_str(), entry["vlan"].as_u64()) {
            let _ = writeln!(script, "fdb replace {mac} dev {device} master static vlan {vlan}");
        }
    }
    Ok(Held { learning: if learning { "on" } else { "off" }, blocked_floods, script })
}

/// What a bridge holds of a device.
#[derive(Debug)]
pub(crate) struct Held {
    learning: &'static str,
    /// Floods that do not leave by it.
    blocked_floods: FloodSet,
    script: String,
}

/// The flag of a bridge's port for each kind of floods: whether they leave by it.
const FLOOD_FLAGS: [(FloodKind, &str); 3] = [
    (FloodKind::UnknownUnicast, "flood"),
    (FloodKind::Multicast, "mcast_flood"),
    (FloodKind::Broadcast, "bcast_flood"),
];

impl Held {
    /// What it holds of a port that nothing was ever plugged into.
    pub(crate) fn nothing() -> Self {
        Self { learning: "off", blocked_floods: FloodSet::NONE, script: String::new() }
    }
}

/// Makes a device a port of the bridge, with what the bridge held of the port's device before.
///
/// # Errors
/// [`LabError::Tool`].
pub(crate) fn fit(site: &SwitchSite, device: &str, held: &Held) -> Result<(), LabError> {
    let place = |step| BatchOrigin { operation: "plug", device: &site.name, step };
    let namespace = Some(site.namespace.as_str());
    run_batch(
        &Batch { tool: "ip", namespace, script: slave_script(device, held.learning, held.blocked_floods) },
        place("join bridge"),
    )?;
    run_batch(&Batch { tool: "bridge", namespace, script: held.script.clone() }, place("write VLANs and entries"))
}

/// Gives an empty port a device without a carrier, so that the bridge blocks what it holds of the port.
///
/// # Errors
/// [`LabError::Tool`].
pub(crate) fn fill_empty(site: &SwitchSite, port: usize) -> Result<(), LabError> {
    let Some(device) = &site.ports[port].device else { return Ok(()) };
    let (ifindex, peer) = (PORT_IFINDEX_BASE as usize + port, EMPTY_PEER_IFINDEX_BASE + port);
    let script = format!("link add name {device} index {ifindex} type veth peer name empty{port}~ index {peer}\n");
    let place = BatchOrigin { operation: "plug", device: &site.name, step: "make device" };
    run_batch(&Batch { tool: "ip", namespace: Some(&site.namespace), script }, place)
}

fn parse_traffic(parsed: &serde_json::Value, site: &SwitchSite) -> BTreeMap<(u16, u16), Traffic> {
    let mut traffic = BTreeMap::new();
    for device in parsed.as_array().into_iter().flatten() {
        let name = device["ifname"].as_str();
        let Some(number) = site.ports.iter().position(|port| port.device.as_deref() == name && name.is_some()) else {
            continue;
        };
        for vlan in device["vlans"].as_array().into_iter().flatten() {
            let count = |key: &str| vlan[key].as_u64().unwrap_or(0);
            let Some(vid) = vlan["vid"].as_u64().and_then(|vid| u16::try_from(vid).ok()) else { continue };
            let (in_frames, out_frames) = (count("rx_packets"), count("tx_packets"));
            let entry = traffic_of([
                in_frames,
                count("rx_bytes") + ETH_HEADER_BYTES * in_frames,
                out_frames,
                count("tx_bytes") + ETH_HEADER_BYTES * out_frames,
            ]);
            traffic.insert((number as u16, vid), entry);
        }
    }
    traffic
}

fn link_script(site: &SwitchSite, table: &SwitchTable) -> String {
    let ageing_s = table.ports.iter().find_map(|port| match port.learning {
        Learning::For { ageing_s } => Some(ageing_s),
        Learning::Off => None,
    });
    let mut script = format!(
        "link add {BRIDGE_DEVICE} type bridge vlan_filtering 1 vlan_default_pvid 0 stp_state 0 mcast_snooping 0 \
         vlan_stats_enabled 1 vlan_stats_per_port 1\n"
    );
    let own = site.ports.iter().enumerate().filter(|(_, port)| port.lag.is_none());
    for (number, device) in own.filter_map(|(number, port)| Some((number, port.device.as_ref()?))) {
        let port = table.ports.get(number);
        let learning = if port.is_some_and(|port| port.learning != Learning::Off) { "on" } else { "off" };
        script += &slave_script(device, learning, port.map_or(FloodSet::NONE, |port| port.blocked_floods));
    }
    if let Some(ageing_s) = ageing_s {
        // In hundredths of a second.
        let _ = writeln!(script, "link set dev {BRIDGE_DEVICE} type bridge ageing_time {}", u64::from(ageing_s) * 100);
    }
    let _ = writeln!(script, "link set {BRIDGE_DEVICE} up");
    script
}

/// The commands that make a device a port of the bridge.
fn slave_script(device: &str, learning: &str, blocked_floods: FloodSet) -> String {
    let flag = |(kind, flag): &(FloodKind, &str)| {
        format!(" {flag} {}", if blocked_floods.contains(*kind) { "off" } else { "on" })
    };
    let floods: String = FLOOD_FLAGS.iter().map(flag).collect();
    format!(
        "link set dev {device} master {BRIDGE_DEVICE}\nlink set dev {device} type bridge_slave learning {learning}{floods} \
         neigh_suppress off\n"
    )
}

fn table_script(site: &SwitchSite, table: &SwitchTable) -> Result<String, LabError> {
    let mut script = String::new();
    let device = |number: u16| site.ports[usize::from(number)].device.as_deref();
    for (&vlan, members) in &table.vlans {
        for (number, device) in members.iter().filter_map(|number| Some((number, device(number)?))) {
            let pvid = if table.ports[usize::from(number)].pvid == Some(vlan) { " pvid" } else { "" };
            let untagged = if members.untagged.contains(number) { " untagged" } else { "" };
            let _ = writeln!(script, "vlan add dev {device} vid {vlan}{pvid}{untagged}");
        }
    }
    for ((vlan, mac), number) in &table.fdb {
        let member = table.vlans.get(vlan).is_some_and(|members| members.contains(*number));
        match device(*number).filter(|_| member) {
            Some(device) => {
                let _ = writeln!(script, "fdb replace {mac} dev {device} master static vlan {vlan}");
            }
            // Leaving the entry out would turn a drop into a flood.
            None => {
                return Err(LabError::Unsupported(format!(
                    "switch {}: the static entry for {mac} in VLAN {vlan} leads to port {}, which carries no frames of \
                     that VLAN; the kernel's bridge cannot hold it (the ebpf back end can)",
                    site.name,
                    site.ports.get(usize::from(*number)).map_or("?", |port| port.name.as_str())
                )));
            }
        }
    }
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Carried, PortSite, Shut};

    /// What `bridge -j -s vlan show` of iproute2 6.1 prints.
    const SHOWN: &str = r#"[
        {"ifname":"br~","vlans":[]},
        {"ifname":"g1","vlans":[
            {"vid":2,"rx_bytes":46,"rx_packets":1,"tx_bytes":0,"tx_packets":0},
            {"vid":5,"flags":["PVID","Egress Untagged"],"rx_bytes":0,"rx_packets":0,"tx_bytes":1500,"tx_packets":1}]}]"#;

    fn site() -> SwitchSite {
        let port = |name: &str, device: Option<&str>| PortSite {
            name: name.to_owned(),
            device: device.map(str::to_owned),
            lag: None,
            shut: Shut::No,
            plugged: 0,
            before: Carried::default(),
        };
        let ports = vec![port("g0", None), port("g1", Some("g1"))];
        SwitchSite { name: "s".to_owned(), namespace: "esp-t-s".to_owned(), ports }
    }

    #[test]
    fn counters_are_those_of_whole_frames() {
        let traffic = parse_traffic(&serde_json::from_str(SHOWN).expect("JSON"), &site());
        assert_eq!(traffic.keys().copied().collect::<Vec<_>>(), [(1, 2), (1, 5)]);
        assert_eq!((traffic[&(1, 2)].in_frames, traffic[&(1, 2)].in_bytes), (1, 60));
        assert_eq!((traffic[&(1, 5)].out_frames, traffic[&(1, 5)].out_bytes), (1, 1514));
    }

    #[test]
    fn output_of_another_shape_counts_nothing() {
        for text in ["null", "[1]", r#"[{"ifname":"g1","vlans":[{"vid":"x"}]}]"#, r#"[{"vlans":[{"vid":2}]}]"#] {
            assert!(parse_traffic(&serde_json::from_str(text).expect("JSON"), &site()).is_empty(), "{text}");
        }
    }
}
