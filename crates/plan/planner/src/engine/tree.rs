//! One spanning tree for everything: what plain Ethernet leaves of a cabling, and so the baseline.
//!
//! The tree of IEEE 802.1D-2004, 17: the switch with the lowest identifier is the root; every other switch keeps the
//! port toward it with the lowest path cost, then the lowest identifier of the neighbour, then its lowest port. A
//! cable costs 20 Tbit/s divided by its rate (802.1D-2004, table 17-3). The order of the file stands for identifiers.
//!
//! ```text
//!   [0]──[1]──[2]        [0]──[1]──[2]
//!    │    │    │    ─▶     │    │    │
//!   [3]──[4]──[5]        [3]  [4]  [5]
//! ```

use fabric::{ChannelId, SwitchId, Topology, Tree, graph::dijkstra};

use crate::routing::Routing;

/// The path cost of a cable of 1 bit/s.
const PATH_COST_BPS: u64 = 20_000_000_000_000;

pub(crate) fn route(topology: &Topology) -> Routing {
    let root = SwitchId::new(0);
    let path_cost = |channel: ChannelId| (PATH_COST_BPS / topology.link(channel.link()).rate_bps).max(1);
    let cost = dijkstra(topology.switches().len(), [(root, 0)], |switch, near| {
        topology.neighbours(switch).map(move |(channel, head)| (channel, head, near + path_cost(channel)))
    })
    .cost;
    let mut kept = vec![None; topology.switches().len()];
    for channel in topology.channel_ids() {
        let (tail, head) = (topology.tail(channel), topology.head(channel));
        let offer = (cost[tail.index()] + path_cost(channel), tail, topology.tail_port(channel));
        if head != root && kept[head.index()].is_none_or(|(kept, _)| offer < kept) {
            kept[head.index()] = Some((offer, channel.link()));
        }
    }
    let links = kept.into_iter().flatten().map(|(_, link)| link);
    let tree = Tree::new(topology, links).expect("one shortest path to the root for each switch is a tree");
    Routing::by_source(vec![tree], vec![0; topology.hosts().len()])
}
