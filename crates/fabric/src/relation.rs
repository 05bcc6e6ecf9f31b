//! How an older and a newer topology correspond: switches, ports and hosts matched by name, links by the ports at both ends.
//!
//! ```text
//!   old  s0:1 ── s1:1   s1:2 ── s2:1   h0 at s0:9        new  s1:1 ── s0:1   s1:2 ── s3:1   h0 at s0:8
//!        the first cable is the same, the other way round; the second is gone, and a new one uses its port;
//!        h0 has the same name on the same switch, but it is plugged in elsewhere
//! ```

use std::collections::BTreeMap;

use crate::{Attachment, ChannelId, Host, HostId, PortId, SwitchId, Topology};

/// Where the switches, ports, links and hosts of an older topology are in a newer one; none where they are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// `port[old]`: the port of the same name on the switch of the same name.
    pub port: Vec<Option<PortId>>,
    /// `channel[old]`: the same direction of a cable between the same two ports.
    pub channel: Vec<Option<ChannelId>>,
    /// `station[old]`: the host of the same addresses, whatever its name: what forwarding entries are about. A port without
    /// addresses (a standby port, an edge port) is the one of the same name, if that has none either.
    pub station: Vec<Option<HostId>>,
    /// `switch_from[new]`: the old switch of the same name.
    pub switch_from: Vec<Option<SwitchId>>,
    /// `host_from[new]`: the old host of the same name, wherever it was plugged in.
    pub host_from: Vec<Option<HostId>>,
}

impl Relation {
    /// Matches two topologies. Cost: O(n log n) in ports, links and hosts.
    pub fn between(old: &Topology, new: &Topology) -> Self {
        let by_name: BTreeMap<&str, SwitchId> = new.switch_ids().map(|id| (new.switch(id).name.as_str(), id)).collect();
        let mut port = vec![None; old.ports().len()];
        let mut switch_from = vec![None; new.switches().len()];
        for id in old.switch_ids() {
            let Some(&twin) = by_name.get(old.switch(id).name.as_str()) else { continue };
            switch_from[twin.index()] = Some(id);
            let ports: BTreeMap<&str, PortId> = new.port_ids(twin).map(|p| (new.port(p).name.as_str(), p)).collect();
            for mine in old.port_ids(id) {
                port[mine.index()] = ports.get(old.port(mine).name.as_str()).copied();
            }
        }
        let channel = (old.channel_ids())
            .map(|channel| {
                let tail = port[old.tail_port(channel).index()]?;
                let head = port[old.head_port(channel).index()]?;
                let Attachment::Link(link) = new.port(tail).attachment else { return None };
                [ChannelId::forward(link), ChannelId::backward(link)]
                    .into_iter()
                    .find(|twin| new.tail_port(*twin) == tail && new.head_port(*twin) == head)
            })
            .collect();
        let names: BTreeMap<&str, HostId> = new.host_ids().map(|id| (new.host(id).name.as_str(), id)).collect();
        let macs = new.hosts_by_mac();
        let mut host_from = vec![None; new.hosts().len()];
        for id in old.host_ids() {
            if let Some(twin) = names.get(old.host(id).name.as_str()) {
                host_from[twin.index()] = Some(id);
            }
        }
        let same = |host: &Host| {
            let by_name = host.macs().next().is_none();
            let twin =
                if by_name { names.get(host.name.as_str()) } else { host.macs().next().and_then(|mac| macs.get(&mac)) };
            let is_same = |twin: &Host| {
                (twin.standby, twin.edge) == (host.standby, host.edge) && twin.all_macs().eq(host.all_macs())
            };
            twin.copied().filter(|twin| is_same(new.host(*twin)))
        };
        let station = old.hosts().iter().map(same).collect();
        Self { port, channel, station, switch_from, host_from }
    }

    /// Whether an old port's cable leads where it led: to the same port, the same host, or nowhere.
    pub fn is_same_cable(&self, old: &Topology, new: &Topology, port: PortId) -> bool {
        let Some(twin) = self.port[port.index()] else { return false };
        match (old.port(port).attachment, new.port(twin).attachment) {
            (Attachment::Nothing, Attachment::Nothing) => true,
            (Attachment::Host(one), Attachment::Host(other)) => {
                let (one, other) = (old.host(one), new.host(other));
                one.name == other.name && one.all_macs().eq(other.all_macs())
            }
            (Attachment::Member(one), Attachment::Member(other)) => self.port[one.index()] == Some(other),
            (Attachment::Link(link), Attachment::Link(_)) => self.channel[ChannelId::forward(link).index()].is_some(),
            _ => false,
        }
    }

    /// Hosts of the newer topology that the older one had with the same name, address and port, ascending.
    pub fn settled(&self, old: &Topology, new: &Topology) -> Vec<HostId> {
        let same = |id: &HostId| {
            self.host_from[id.index()].is_some_and(|before| {
                let (before, now) = (old.host(before), new.host(*id));
                let same_addresses = before.standby == now.standby && before.all_macs().eq(now.all_macs());
                same_addresses && self.port[before.port.index()] == Some(now.port)
            })
        };
        new.host_ids().filter(same).collect()
    }
}
