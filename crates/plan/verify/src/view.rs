//! One VLAN as its frames see it: where each port leads, and which links carry it.
//!
//! ```text
//!   sw1:1 ══ tagged ══ sw2:1     active: a frame passes in both directions and stays in the VLAN
//!   sw1:2 ══ tagged ── sw3:1     not active: sw3 drops at its ingress filter
//!   sw2:2 ── untagged ▶ sw3:2    leaks: without a tag it becomes sw3:2's PVID, which may be another VLAN
//! ```
//! As long as a VLAN neither leaks nor has links that pass one way only, its active links are an undirected graph, and
//! if that is a forest no frame whatever can loop or reach a host twice: a switch never sends a frame back where it
//! came from, and a walk in a forest that never turns back never returns.

use fabric::{LinkId, PortId, SwitchId, VlanId};

use crate::state::{FabricState, Hop};

/// One VLAN of the whole fabric.
pub(crate) struct View {
    pub(crate) vlan: VlanId,
    /// `hop[port]`: what becomes of a frame that leaves there.
    pub(crate) hop: Vec<Hop>,
    /// Links that carry the VLAN both ways, ascending.
    pub(crate) active: Vec<LinkId>,
    /// Links that carry it one way only.
    pub(crate) one_way: Vec<LinkId>,
    /// Links over which its frames come out in another VLAN.
    pub(crate) leaks: Vec<LinkId>,
}

impl View {
    /// Cost: O(ports).
    pub(crate) fn of(state: &FabricState<'_>, vlan: VlanId) -> Self {
        let topology = state.topology;
        let hop: Vec<Hop> = (0..topology.ports().len()).map(|port| state.leave(PortId::new(port), vlan)).collect();
        let (mut active, mut one_way, mut leaks) = (Vec::new(), Vec::new(), Vec::new());
        for link in topology.link_ids() {
            let passes = |port: PortId| match hop[port.index()] {
                Hop::Switch { vlan: there, .. } => Some(there == vlan),
                Hop::Lost(..) | Hop::Host(_) => None,
            };
            match (passes(topology.link(link).a), passes(topology.link(link).b)) {
                (Some(true), Some(true)) => active.push(link),
                (Some(false), _) | (_, Some(false)) => leaks.push(link),
                (Some(true), None) | (None, Some(true)) => one_way.push(link),
                (None, None) => {}
            }
        }
        Self { vlan, hop, active, one_way, leaks }
    }

    /// The pieces into which the active links tie the switches, and the links that close cycles.
    pub(crate) fn pieces(&self, state: &FabricState<'_>) -> (Pieces, Vec<LinkId>) {
        let mut pieces = Pieces { parent: SwitchId::all(state.topology.switches().len()).collect() };
        let mut closing = Vec::new();
        for &link in &self.active {
            let (a, b) = ends(state, link);
            if !pieces.join(a, b) {
                closing.push(link);
            }
        }
        (pieces, closing)
    }
}

/// The two switches of a link.
pub(crate) fn ends(state: &FabricState<'_>, link: LinkId) -> (SwitchId, SwitchId) {
    let link = state.topology.link(link);
    (state.topology.port(link.a).switch, state.topology.port(link.b).switch)
}

/// Union–find over switches, with path halving.
pub(crate) struct Pieces {
    parent: Vec<SwitchId>,
}

impl Pieces {
    /// The switch that stands for the piece of `switch`.
    pub(crate) fn of(&mut self, mut switch: SwitchId) -> SwitchId {
        while self.parent[switch.index()] != switch {
            self.parent[switch.index()] = self.parent[self.parent[switch.index()].index()];
            switch = self.parent[switch.index()];
        }
        switch
    }

    /// Joins two pieces; false if they were one already.
    fn join(&mut self, a: SwitchId, b: SwitchId) -> bool {
        let (a, b) = (self.of(a), self.of(b));
        self.parent[a.index()] = b;
        a != b
    }
}
