//! Turns: hosts that change their VLANs all at once might block each other (`deadlock.rs`), so they do so one group after the other.
//!
//! ```text
//!   all at once   may block     turn 1   h0, h2    those whose new ways close no cycle with all old ones
//!                               turn 2   h1, h3    their old ways are free by then
//! ```
//! As many hosts as can take a turn as a whole; where none can, those that tag move as many receivers as they can. Nobody takes a
//! detour: frames go by the old plan or by the new one, whatever else is broken.

use std::collections::BTreeSet;

use fabric::{HostId, graph::Arc};

use super::{
    FabricState,
    deadlock::{Flow, Waits, Window},
    stage::append,
};

impl Waits<'_> {
    /// How hosts change from what they send in one state to what they send in another, in which nothing else differs: the
    /// states after each turn. None if no order was found in which nothing can wait for ever.
    pub(crate) fn turns(&self, before: &FabricState, after: &FabricState) -> Option<Vec<FabricState>> {
        let window = self.window(before, after);
        let management: Vec<Flow> = self.managed().collect();
        let new: Vec<Vec<Flow>> = self.topology.host_ids().map(|host| self.sent(&window, after, host)).collect();
        let mut now = after.clone();
        self.topology.host_ids().for_each(|host| self.send_as(&mut now, before, host));
        let mut waiting: Vec<HostId> = self.topology.host_ids().collect();
        let mut states = Vec::new();
        loop {
            let sent = self.topology.host_ids().flat_map(|host| self.sent(&window, &now, host));
            let known: BTreeSet<Flow> = sent.chain(management.iter().cloned()).collect();
            let mut order = self.no_arcs();
            known.iter().try_for_each(|flow| order.insert_all(&self.arcs(&window, flow)).map(drop))?;
            let mut joins = |flows: &[Flow]| {
                let flows = flows.iter().filter(|flow| !known.contains(flow));
                let arcs: Vec<Arc> = flows.flat_map(|flow| self.arcs(&window, flow)).collect();
                order.insert_all(&arcs).is_some()
            };
            let (turn, rest): (Vec<HostId>, Vec<HostId>) = waiting.iter().partition(|host| joins(&new[host.index()]));
            let mut next = now.clone();
            turn.iter().for_each(|host| self.send_as(&mut next, after, *host));
            let mut moved = !turn.is_empty() || rest.is_empty();
            if !moved {
                for host in &rest {
                    moved |= self.move_receivers(&window, &mut next, after, *host, &mut joins);
                }
            }
            if !moved {
                return None;
            }
            states.push(next.clone());
            if rest.is_empty() {
                return Some(states);
            }
            (now, waiting) = (next, rest);
        }
    }

    /// Has a host send what it does in another state.
    fn send_as(&self, now: &mut FabricState, other: &FabricState, host: HostId) {
        if let (Some(tables), Some(other)) = (&mut now.tables, &other.tables) {
            tables[host.index()].clone_from(&other[host.index()]);
        }
        let port = self.topology.host(host).port;
        let (from, to) = (other.port(self.topology, port), now.port_mut(self.topology, port));
        (to.pvid, to.untagged_class) = (from.pvid, from.untagged_class);
    }

    /// Has a host that tags move as many receivers as it can; whether there are any.
    fn move_receivers(
        &self,
        window: &Window,
        next: &mut FabricState,
        after: &FabricState,
        host: HostId,
        joins: &mut impl FnMut(&[Flow]) -> bool,
    ) -> bool {
        let (Some(tables), Some(wanted)) = (&mut next.tables, &after.tables) else { return false };
        let (table, wanted) = (&mut tables[host.index()], &wanted[host.index()]);
        let from = self.topology.switch_of(host);
        let (mut unicast, mut moved) = (Vec::new(), false);
        for to in self.topology.host_ids() {
            let (old, new) = (table.vlan_to(to), wanted.vlan_to(to));
            let moves = new.is_some_and(|vlan| old != new && joins(&[(from, vlan, self.ends(window, vlan, [to]))]));
            moved |= moves;
            (if moves { new } else { old }).into_iter().for_each(|vlan| append(&mut unicast, to, vlan));
        }
        table.unicast = unicast;
        moved
    }
}
