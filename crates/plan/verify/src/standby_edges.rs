//! Edge ports on standby: that nothing passes the ports that lead to the network outside beside the edge port.
//!
//! ```text
//!   s0:24 ══ outside ══ s4:24    s0:24 is the edge port; a broadcast that left by it would come back by s4:24, and go round for ever
//!                       └ on standby: shut
//! ```
//! A plan has the port of each standby edge down, whatever VLANs it would be in. On the way from one plan to another the edge port may
//! change its place; there the loop itself is looked for: two ports to the network outside that both let frames in or out.

use fabric::{Admin, FindingKind, IngressFilter, PortId, PortIntent};

use crate::{findings::Findings, state::FabricState};

/// Judges the port of each standby edge. Cost: O(standby edges).
pub(crate) fn judge(state: &FabricState<'_>, findings: &mut Findings) {
    for edge in state.topology.standby_edges() {
        let is_up = state.port(edge.port).is_some_and(|intent| intent.admin == Admin::Up);
        if is_up {
            findings.fatal(FindingKind::StandbyEdgeUp, || {
                let message =
                    format!("leads to the network outside for {}, which is on standby, and is up; {LOOP}", edge.name);
                (state.topology.port_label(edge.port), message)
            });
        }
    }
}

const LOOP: &str = "with the edge port it closes a loop through that network; shut it down";

/// Judges whether frames pass more than one of the ports to the network outside. Cost: O(standby edges · VLANs of a port).
pub(crate) fn judge_live(state: &FabricState<'_>, findings: &mut Findings) {
    let standby = state.topology.standby_edges().iter().map(|edge| edge.port);
    let edge = state.topology.edge().map(|host| state.topology.host(host).port);
    let open: Vec<PortId> =
        edge.into_iter().chain(standby).filter(|port| state.port(*port).is_some_and(passes)).collect();
    if let [first, others @ ..] = open.as_slice() {
        for port in others {
            findings.fatal(FindingKind::StandbyEdgeUp, || {
                let message =
                    format!("and {} pass frames of one network outside; {LOOP}", state.topology.port_label(*first));
                (state.topology.port_label(*port), message)
            });
        }
    }
}

/// Whether frames get in or out by a port.
fn passes(intent: &PortIntent) -> bool {
    let is_member = !intent.tagged.is_empty() || !intent.untagged.is_empty();
    intent.admin == Admin::Up && (is_member || intent.ingress_filter == IngressFilter::Off)
}
