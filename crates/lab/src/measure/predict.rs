//! How long a pattern should take: the busiest channel decides.
//!
//! Every pair sends the same number of bytes at once, and every channel that has work works. Then the last transfer ends
//! when the channel with most to carry has carried it, host cables included:
//!
//! ```text
//! time = max over channels c of  Σ over pairs through c of wire bytes / rate(c)
//!
//! n1 ─┐            ┌─ n3      pairs n1→n3, n2→n4: the cable s1–s2 carries both, each host cable one
//!     s1 ════════ s2          time = 2 · bytes · overhead / rate
//! n2 ─┘            └─ n4
//! ```
//!
//! Wire bytes are what the shapers count: an Ethernet header without tag, check sequence, preamble and gap, the IP and
//! TCP headers (with time stamps), and on the way back an acknowledgement for every second segment.
//!
//! Source: Otsuka et al., section 5 (the load CP of the busiest channel bounds all-to-all); RFC 9293, RFC 7323.

use std::{collections::BTreeMap, time::Duration};

use fabric::{ChannelId, HostId, Plan, RootedTree};

use super::{Transport, payload_bytes};
use crate::layout::rate_scale;

/// A predicted completion time, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// When the last transfer ends, counted from the common start.
    pub completion: Duration,
    /// The channel that decides, as people write it.
    pub busiest: String,
    /// Transfers that cross it.
    pub busiest_flows: u64,
}

const ETH_HEADER_BYTES: u64 = 14;
const TCP_HEADER_BYTES: u64 = 32;
/// Linux acknowledges every second full segment (RFC 5681, 4.2).
const SEGMENTS_PER_ACK: f64 = 2.0;

/// Predicts how long `pairs` take to send `bytes_per_pair` each, at once, with the fastest host cable at `rate_bps`.
/// Cost: O(pairs · hops).
pub fn predict(
    plan: &Plan,
    pairs: &[(usize, usize)],
    bytes_per_pair: u64,
    rate_bps: u64,
    transport: Transport,
) -> Prediction {
    let topology = &plan.topology;
    let scale = rate_scale(topology, rate_bps);
    let hosts = topology.hosts().len();
    // Channels of links, then each host's cable inward, then outward.
    let (inward, outward) = (2 * topology.links().len(), 2 * topology.links().len() + hosts);
    let mut data_flows = vec![0_u64; outward + hosts];
    let mut ack_flows = data_flows.clone();
    let mut rooted = BTreeMap::new();
    for &(source, destination) in pairs {
        for channel in route(plan, &mut rooted, source, destination) {
            data_flows[channel.index()] += 1;
        }
        data_flows[inward + source] += 1;
        data_flows[outward + destination] += 1;
        for channel in route(plan, &mut rooted, destination, source) {
            ack_flows[channel.index()] += 1;
        }
        ack_flows[inward + destination] += 1;
        ack_flows[outward + source] += 1;
    }
    let ip_bytes = |host: usize| if plan.addresses[host].is_ipv4() { 20 } else { 40 };
    let header_bytes = plan.topology.host_ids().map(|host| ip_bytes(host.index())).max().unwrap_or(20);
    let payload = payload_bytes(plan.policy.mtu_bytes, header_bytes, transport);
    let segments = bytes_per_pair as f64 / payload as f64;
    let data_bytes = segments * (ETH_HEADER_BYTES + u64::from(plan.policy.mtu_bytes)) as f64;
    let ack_bytes = match transport {
        Transport::Tcp => segments / SEGMENTS_PER_ACK * (ETH_HEADER_BYTES + header_bytes + TCP_HEADER_BYTES) as f64,
        Transport::Udp => 0.0,
    };
    let rate = |channel: usize| {
        let rate_bps = if channel < inward {
            topology.link(ChannelId::new(channel).link()).rate_bps
        } else {
            topology.hosts()[(channel - inward) % hosts].rate_bps
        };
        rate_bps as f64 * scale
    };
    let seconds = |channel: usize| {
        8.0 * (data_flows[channel] as f64 * data_bytes + ack_flows[channel] as f64 * ack_bytes) / rate(channel)
    };
    let busiest = (0..data_flows.len()).max_by(|a, b| seconds(*a).total_cmp(&seconds(*b)));
    let Some(busiest) = busiest.filter(|busiest| seconds(*busiest) > 0.0) else {
        return Prediction { completion: Duration::ZERO, busiest: String::new(), busiest_flows: 0 };
    };
    let label = match busiest {
        channel if channel < inward => topology.channel_label(ChannelId::new(channel)),
        channel if channel < outward => format!("{} -> its switch", topology.hosts()[channel - inward].name),
        channel => format!("switch -> {}", topology.hosts()[channel - outward].name),
    };
    Prediction {
        completion: Duration::from_secs_f64(seconds(busiest)),
        busiest: label,
        busiest_flows: data_flows[busiest],
    }
}

type Rooted = BTreeMap<(fabric::VlanId, fabric::SwitchId), RootedTree>;

fn route(plan: &Plan, rooted: &mut Rooted, source: usize, destination: usize) -> Vec<ChannelId> {
    let topology = &plan.topology;
    let (source, destination) = (HostId::new(source), HostId::new(destination));
    let (from, to) = (topology.switch_of(source), topology.switch_of(destination));
    let vlan = plan.assignment.unicast(source, destination);
    let Some(tree) = plan.tree(vlan) else { return Vec::new() };
    rooted.entry((vlan, from)).or_insert_with(|| tree.tree.rooted_at(topology, from)).path_to(topology, to)
}
