//! Connects [`Placement`] to the kernel: reads flows, writes moves.

use std::{collections::BTreeMap, io, time::Duration};

use fabric::{Mac, VlanId};
use nix::time::{ClockId, clock_gettime};

use crate::{
    TaggerError,
    device::{SentTo, Tagged},
    error::Context,
    layout::{FLOW_ENDS_NS, PlacementRecord},
    links::Links,
    placement::{FlowSample, LOOK_NS, PATIENCE_NS, PAUSE_NS, Placement},
    table::{Spread, TaggingTable},
};

/// Places the flows of one device.
pub(crate) struct Placer {
    placement: Placement,
    /// Destinations whose flows are placed, by slot.
    routes: BTreeMap<u32, (Mac, Vec<VlanId>)>,
    next_look_ns: u64,
}

impl Placer {
    pub(crate) fn new(own: Mac, links: Links, seed: u32) -> Self {
        Self { placement: Placement::new(own, links, seed.into()), routes: BTreeMap::new(), next_look_ns: 0 }
    }

    /// When [`Placer::look`] has something to do.
    pub(crate) fn due_ns(&self) -> u64 {
        self.next_look_ns
    }

    /// Takes the routes of the table in force.
    pub(crate) fn set_routes(&mut self, table: &TaggingTable, sent: &[SentTo]) {
        let route = |to: &SentTo| {
            let route = table.destinations.get(&to.mac).filter(|route| route.how() == Spread::Placed)?;
            Some((to.slot, (to.mac, route.choices().to_vec())))
        };
        self.routes = sent.iter().filter_map(route).collect();
    }

    /// Another host has these long flows.
    pub(crate) fn handle_flows(&mut self, now_ns: u64, from: Mac, flows: Vec<(Mac, VlanId)>) {
        self.placement.handle_flows(now_ns, from, flows);
    }

    /// Looks at the flows, if it is time, and moves one if it should. Returns the long flows to announce, if it is time to.
    pub(crate) fn look(&mut self, tagged: &Tagged, now_ns: u64) -> Result<Option<Vec<(Mac, VlanId)>>, TaggerError> {
        if now_ns < self.next_look_ns {
            return Ok(None);
        }
        self.next_look_ns = now_ns + LOOK_NS;
        let clock =
            clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(io::Error::from).at(tagged.device(), "read the clock")?;
        let kernel_ns = Duration::from(clock).as_nanos() as u64;
        let flows = tagged.flows()?.into_iter();
        let alive = flows.filter(|(_, flow)| kernel_ns.saturating_sub(flow.seen_ns) < FLOW_ENDS_NS);
        let samples: Vec<FlowSample> = alive
            .filter_map(|(slot, flow)| {
                let (to, vlans) = self.routes.get(&flow.destination)?.clone();
                let choice = flow.choice as usize % vlans.len();
                Some(FlowSample { slot, began_ns: flow.began_ns, bytes: flow.bytes, to, choice, vlans })
            })
            .collect();
        if let Some(order) = self.placement.look(now_ns, &samples) {
            let placement = PlacementRecord {
                ordered_ns: kernel_ns,
                latest_ns: kernel_ns + PATIENCE_NS,
                choice: order.choice as u32,
                pause_us: (PAUSE_NS / 1000) as u32,
            };
            tagged.place(order.slot, &placement)?;
        }
        Ok(self.placement.poll_announcement(now_ns))
    }
}
