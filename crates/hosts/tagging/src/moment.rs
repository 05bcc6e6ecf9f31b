//! The configuration that hosts share between two steps of a hitless change, when they hold neither plan.
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

/// The configuration of hosts with these tables, `tables[host]`, while switches hold `devices[switch]`. It lists the hosts that have a
/// VLAN for broadcasts; others send nothing yet. Where all frames of each host take one VLAN, it has a line for each host, else one
/// for each pair. Cost: O(hosts), and by pairs O(hosts² · log hosts).
pub fn config(topology: &Topology, devices: &[DeviceIntent], tables: &[HostTable], failover: Failover) -> Config {
    let listed: Vec<(HostId, &HostTable, VlanId)> =
        (topology.host_ids().zip(tables)).filter_map(|(host, table)| Some((host, table, table.broadcast?))).collect();
    let by_source =
        listed.iter().all(|(_, table, _)| table.unicast.windows(2).all(|runs| runs[0].choice == runs[1].choice));
    let mode = if by_source { Mode::Source } else { Mode::Pair };
    let (mut hosts, mut groups, mut pairs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for &(host, table, broadcast) in &listed {
        let own = if by_source { table.unicast.first().map_or(broadcast, |run| run.choice) } else { broadcast };
        let switch = Some(topology.switch(topology.switch_of(host)).name.clone());
        for mac in topology.host(host).macs() {
            hosts.insert(mac, HostLine { vlans: vec![own], priority: 0, switch: switch.clone() });
            if broadcast != own {
                groups.insert(mac, broadcast);
            }
        }
        if !by_source {
            let receivers = listed.iter().filter_map(|(to, ..)| Some((*to, table.vlan_to(*to)?)));
            let each = receivers.flat_map(|(to, vlan)| topology.host(to).macs().map(move |mac| (mac, vlan)));
            let each: Vec<(Mac, VlanId)> = each.collect();
            for from in topology.host(host).macs() {
                pairs.extend(each.iter().map(|(to, vlan)| ((from, *to), vec![*vlan])));
            }
        }
    }
    let vlans: VlanSet = listed.iter().flat_map(|(_, table, _)| table.receives.iter()).collect();
    let classes = classes(devices, &vlans);
    Config { mode, spread: Spread::First, failover, hosts, pairs, groups, vlans, classes }
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
