//! The links of a plan as a host needs them to place its flows: which ones frames cross in a VLAN, and what they carry.

use std::collections::BTreeMap;

use fabric::{ChannelId, Mac, Plan, SwitchId, VlanId};

/// A direction of a link between switches, by number.
pub type Channel = usize;

/// The links of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Links {
    pub(crate) ports: BTreeMap<Mac, Port>,
    /// Bits a second of each channel.
    pub(crate) capacity_bps: Vec<u64>,
    /// By VLAN and switch: the way to the root of the VLAN's tree; none for the root and for switches that the tree does not cover.
    pub(crate) trees: BTreeMap<VlanId, Vec<Option<Up>>>,
}

/// Where a host is plugged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) switch: usize,
    pub(crate) rate_bps: u64,
}

/// One hop toward the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Up {
    pub(crate) parent: usize,
    /// To the parent.
    pub(crate) up: Channel,
    /// From the parent.
    pub(crate) down: Channel,
    /// Hops to the root.
    pub(crate) depth: usize,
}

impl Links {
    /// Those of a plan. Cost: O(VLANs · switches + hosts · log hosts).
    pub fn of(plan: &Plan) -> Self {
        let topology = &plan.topology;
        let ports = topology.host_ids().flat_map(|host| {
            let port = Port { switch: topology.switch_of(host).index(), rate_bps: topology.host(host).rate_bps };
            topology.host(host).macs().map(move |mac| (mac, port))
        });
        let trees = plan.trees.iter().map(|tree| {
            let first = tree.tree.links().first().map(|link| topology.tail(ChannelId::forward(*link)));
            let rooted = tree.tree.rooted_at(topology, first.unwrap_or(SwitchId::new(0)));
            let mut ups: Vec<Option<Up>> = vec![None; topology.switches().len()];
            // Parents come before their children.
            for switch in &rooted.order {
                let Some(inward) = rooted.inward[switch.index()] else { continue };
                let parent = topology.tail(inward).index();
                let depth = ups[parent].map_or(0, |up| up.depth) + 1;
                let (up, down) = (inward.reverse().index(), inward.index());
                ups[switch.index()] = Some(Up { parent, up, down, depth });
            }
            (tree.vlan, ups)
        });
        Self {
            ports: ports.collect(),
            capacity_bps: topology.channel_ids().map(|channel| topology.link(channel.link()).rate_bps).collect(),
            trees: trees.collect(),
        }
    }

    /// The rate of the port that a host is plugged into, in bits a second; none of unknown hosts.
    pub fn port_bps(&self, host: Mac) -> Option<u64> {
        self.ports.get(&host).map(|port| port.rate_bps)
    }

    /// Bits a second of a channel.
    pub fn capacity_bps(&self, channel: Channel) -> u64 {
        self.capacity_bps[channel]
    }

    /// How many station addresses there are.
    pub fn hosts(&self) -> usize {
        self.ports.len()
    }

    /// How many channels there are.
    pub fn channels(&self) -> usize {
        self.capacity_bps.len()
    }

    /// The channels that frames cross from one host to another in a VLAN, in no particular order; none if a host or the VLAN is
    /// unknown, or the VLAN's tree does not connect them. Cost: O(hops).
    pub fn path(&self, from: Mac, to: Mac, vlan: VlanId) -> Option<Vec<Channel>> {
        let tree = self.trees.get(&vlan)?;
        let (mut from, mut to) = (self.ports.get(&from)?.switch, self.ports.get(&to)?.switch);
        let depth = |switch: usize| tree[switch].map_or(0, |up| up.depth);
        let mut path = Vec::new();
        while from != to {
            if depth(from) >= depth(to) {
                let hop = tree[from]?;
                path.push(hop.up);
                from = hop.parent;
            } else {
                let hop = tree[to]?;
                path.push(hop.down);
                to = hop.parent;
            }
        }
        Some(path)
    }
}
