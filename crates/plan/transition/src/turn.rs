//! Turns: hosts that change their VLANs all at once might block each other (`deadlock.rs`), so they do so one group after the other.
//!
//! ```text
//!   all at once   may block     turn 1   h0, h2    those whose new ways close no cycle with all old ones
//!                               turn 2   h1, h3    their old ways are free by then
//! ```
//! As many hosts as can take a turn as a whole; where none can, those that tag move as many receivers as they can.

use std::collections::BTreeSet;

use fabric::{HostId, HostTable, Topology, graph::Arc};

use super::{
    FabricState,
    deadlock::{Flow, Waits, Window},
    stage::append,
};

/// A host that changes what it sends.
pub(crate) struct Move {
    pub(crate) host: HostId,
    /// Those for which it changes the VLAN, ascending; none if it changes all, and its broadcasts.
    receivers: Option<Vec<HostId>>,
}

impl Move {
    /// The whole change of a host.
    pub(crate) const fn whole(host: HostId) -> Self {
        Self { host, receivers: None }
    }

    /// The host's table after it; none if its switch tags.
    pub(crate) fn table(&self, topology: &Topology, now: &FabricState, after: &FabricState) -> Option<HostTable> {
        let of = |state: &'_ FabricState| Some(state.tables.as_ref()?[self.host.index()].clone());
        let (now, after) = (of(now)?, of(after)?);
        let Some(receivers) = &self.receivers else { return Some(after) };
        let mut unicast = Vec::new();
        for host in topology.host_ids() {
            let from = if receivers.binary_search(&host).is_ok() { &after } else { &now };
            from.vlan_to(host).into_iter().for_each(|vlan| append(&mut unicast, host, vlan));
        }
        Some(HostTable { unicast, ..now })
    }
}

impl Waits<'_> {
    /// The order in which hosts may change from what they send in one state to what they send in another, in which nothing
    /// else differs: one turn after the other, in each the hosts ascending. None if there is no such order.
    pub(crate) fn turns(&self, before: &FabricState, after: &FabricState) -> Option<Vec<Vec<Move>>> {
        let window = self.window(before, after);
        let management: Vec<Flow> = self.managed().collect();
        let new: Vec<Vec<Flow>> = self.topology.host_ids().map(|host| self.sent(&window, after, host)).collect();
        let mut now = before.clone();
        let mut waiting: Vec<HostId> = self.topology.host_ids().collect();
        let mut turns = Vec::new();
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
            let (moved, rest): (Vec<HostId>, Vec<HostId>) = waiting.iter().partition(|host| joins(&new[host.index()]));
            let mut turn: Vec<Move> = moved.into_iter().map(Move::whole).collect();
            if turn.is_empty() && !rest.is_empty() {
                turn = self.moves_of_some(&window, &now, after, &rest, &mut joins);
                if turn.is_empty() {
                    return None;
                }
            }
            turn.iter().for_each(|moving| self.take(moving, &mut now, after));
            turns.push(turn);
            if rest.is_empty() {
                return Some(turns);
            }
            waiting = rest;
        }
    }

    /// Has a host send what it does after a move.
    fn take(&self, moving: &Move, now: &mut FabricState, after: &FabricState) {
        let table = moving.table(self.topology, now, after);
        if let Some((tables, table)) = now.tables.as_mut().zip(table) {
            tables[moving.host.index()] = table;
        }
        let port = self.topology.host(moving.host).port;
        now.port_mut(self.topology, port).pvid = after.port(self.topology, port).pvid;
    }

    /// The receivers that hosts that tag can move.
    fn moves_of_some(
        &self,
        window: &Window,
        now: &FabricState,
        after: &FabricState,
        hosts: &[HostId],
        joins: &mut impl FnMut(&[Flow]) -> bool,
    ) -> Vec<Move> {
        let (Some(tables), Some(wanted)) = (&now.tables, &after.tables) else { return Vec::new() };
        let mut moves = Vec::new();
        for &host in hosts {
            let (table, wanted) = (&tables[host.index()], &wanted[host.index()]);
            let mut can_move = |to: &HostId| {
                let vlan = wanted.vlan_to(*to).filter(|vlan| table.vlan_to(*to) != Some(*vlan));
                vlan.is_some_and(|vlan| joins(&[(self.topology.switch_of(host), vlan, self.ends(window, vlan, [*to]))]))
            };
            let receivers: Vec<HostId> = self.topology.host_ids().filter(|to| can_move(to)).collect();
            if !receivers.is_empty() {
                moves.push(Move { host, receivers: Some(receivers) });
            }
        }
        moves
    }
}
