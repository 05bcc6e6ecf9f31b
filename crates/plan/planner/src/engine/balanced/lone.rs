//! One tree grown against prices, for those who have all others already.
//!
//! ```text
//!   price of a channel ─┐
//!                       ├▶ the cheapest tree from a root that reaches every switch with hosts
//!   rank of a channel ──┘  and, if there are ranks, increases them along every path
//! ```

use fabric::{LinkId, SwitchId, Topology};

use super::{
    build::{Builder, Rule},
    net::{NONE, Net},
};
use crate::confined::Confined;

/// A topology ready to grow trees in.
pub(crate) struct Grower {
    net: Net,
    builder: Builder,
    inward: Vec<u32>,
}

impl Grower {
    /// Cost: O(channels · channels at a switch).
    pub(crate) fn new(topology: &Topology, confined: Confined) -> Self {
        let net = Net::new(topology, 1.0).confined(confined);
        let (builder, inward) = (Builder::new(&net), vec![NONE; net.switches]);
        Self { net, builder, inward }
    }

    /// The links of a tree from `root` to every switch with hosts, ascending, cheap by `price[channel]`; paths increase
    /// `rank[channel]` if there is one. None if no tree does. Branches without hosts may be left on it.
    /// Cost: O(channels log channels).
    pub(crate) fn grow(&mut self, root: SwitchId, price: &[f32], rank: Option<&[u32]>) -> Option<Vec<LinkId>> {
        let Self { net, builder, inward } = self;
        let price: Vec<f32> = (0..net.channels as u32).map(|channel| price[net.id(channel).index()]).collect();
        let is_grown = match rank {
            Some(rank) => builder.grow_rising(net, root.index(), &price, &net.by_number(rank), inward),
            None => builder.grow(net, root.index(), &price, Rule::Free, inward),
        };
        let mut links: Vec<LinkId> =
            inward.iter().filter(|inward| **inward != NONE).map(|inward| net.id(*inward).link()).collect();
        links.sort_unstable();
        is_grown.then_some(links)
    }
}
