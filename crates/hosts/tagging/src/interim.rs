//! The interim configuration, which hosts share between two steps of a hitless change, when they hold neither plan.
//!
//! ```text
//!   old plan ─ ready ─▶ VLANs of both plans in, assigned ones of the old plan out ─ flip ─▶ … of the new plan out ─ settle ─▶ new plan
//! ```
//! Every pair has one VLAN, and no flow is spread.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{DeviceIntent, HostId, HostTable, Mac, Topology, VlanId, VlanSet};

use crate::{
    config::{Config, Failover, HostLine, Mode},
    table::{Classes, Spread},
};

/// A host that sends, its table, and the VLAN of its broadcasts.
type Listed<'a> = (HostId, &'a HostTable, VlanId);

/// The configuration of hosts with these tables, `tables[host]`, while switches hold `devices[switch]`. It lists the hosts that have a
/// VLAN for broadcasts; others send nothing yet. Where senders or receivers alone decide the VLAN, it has a line for each host, else one
/// for each pair. All ports of a failover bond have its addresses, and send as the active one. Cost: O(hosts² · log hosts).
pub fn config(topology: &Topology, devices: &[DeviceIntent], tables: &[HostTable], failover: Failover) -> Config {
    let senders: Vec<Listed<'_>> =
        (topology.host_ids().zip(tables)).filter_map(|(host, table)| Some((host, table, table.broadcast?))).collect();
    let vlans: VlanSet = senders.iter().flat_map(|(_, table, _)| table.receives.iter()).collect();
    let listed: Vec<Listed<'_>> = senders.into_iter().filter(|(host, ..)| !topology.host(*host).standby).collect();
    let by_sender = by_sender(&listed).map(|vlans| (Mode::Source, vlans));
    let by_host = by_sender.or_else(|| by_receiver(&listed).map(|vlans| (Mode::Destination, vlans)));
    let (mode, own) = by_host.unwrap_or_else(|| (Mode::Pair, BTreeMap::new()));
    let (mut hosts, mut groups, mut pairs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for &(host, table, broadcast) in &listed {
        let own = own.get(&host).copied().unwrap_or(broadcast);
        let switch = Some(topology.switch(topology.switch_of(host)).name.clone());
        for mac in topology.host(host).macs() {
            hosts.insert(mac, HostLine { vlans: vec![own], priority: 0, switch: switch.clone() });
            if broadcast != own {
                groups.insert(mac, broadcast);
            }
        }
        if mode == Mode::Pair {
            let receivers = listed.iter().filter_map(|(to, ..)| Some((*to, table.vlan_to(*to)?)));
            let each = receivers.flat_map(|(to, vlan)| topology.host(to).macs().map(move |mac| (mac, vlan)));
            let each: Vec<(Mac, VlanId)> = each.collect();
            for from in topology.host(host).macs() {
                pairs.extend(each.iter().map(|(to, vlan)| ((from, *to), vec![*vlan])));
            }
        }
    }
    let classes = classes(devices, &vlans);
    Config { mode, spread: Spread::First, failover, hosts, pairs, groups, vlans, classes }
}

/// The VLAN of each sender, if all its frames for single hosts take the same one.
fn by_sender(listed: &[Listed<'_>]) -> Option<BTreeMap<HostId, VlanId>> {
    let one = |(host, table, broadcast): &Listed<'_>| {
        let vlan = table.unicast.first().map_or(*broadcast, |run| run.choice);
        table.unicast.iter().all(|run| run.choice == vlan).then_some((*host, vlan))
    };
    listed.iter().map(one).collect()
}

/// The VLAN of each receiver, if all its senders use the same one.
fn by_receiver(listed: &[Listed<'_>]) -> Option<BTreeMap<HostId, VlanId>> {
    let mut vlans = BTreeMap::new();
    for (from, table, _) in listed {
        for (to, ..) in listed.iter().filter(|(to, ..)| to != from) {
            let vlan = table.vlan_to(*to)?;
            if *vlans.entry(*to).or_insert(vlan) != vlan {
                return None;
            }
        }
    }
    Some(vlans)
}

/// The class of each VLAN that is not in class 0, as switches have it.
fn classes(devices: &[DeviceIntent], vlans: &VlanSet) -> Classes {
    let of_device = |device: &DeviceIntent| {
        let classes = (0_u8..).zip(device.classes.clone()).skip(1);
        classes.flat_map(|(class, of)| of.iter().map(move |vlan| (vlan, class)).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let each: BTreeSet<(VlanId, u8)> = devices.iter().flat_map(of_device).collect();
    Classes::Vlan(each.into_iter().filter(|(vlan, _)| vlans.contains(*vlan)).collect())
}
