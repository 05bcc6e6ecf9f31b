//! What a plan would change, and plans without parts that have failed or are to rest.

use std::collections::BTreeSet;

use controller::{HostTables, UNPROVEN_DEADLOCK, count::abridged, hitless};
use fabric::{Plan, Policy, PortId, Relation, Severity, SwitchId, Topology, TopologyBuilder, return_ports};
use thiserror::Error;
use transition::Deadlock;

use super::parts::Parts;
use crate::documents::{Effect, Way};

/// Findings of the judge that a proposal names; the rest are counted.
const FINDINGS_MAX: usize = 20;

/// Why a plan cannot be proposed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoProposal {
    /// The judge finds it unfit.
    #[error("the plan is not fit to deploy: {0}")]
    Unfit(String),
    /// It manages switches over ports that do not carry the management VLAN now.
    #[error(
        "the management tree of the plan uses port {0}, which is not in the management VLAN now; plan again with --previous and the \
         plan that the switches hold"
    )]
    NoWay(String),
    /// There is no plan without the parts.
    #[error("no plan without {parts}: {why}")]
    NoPlan {
        /// Which.
        parts: String,
        /// Why.
        why: String,
    },
}

/// What a plan would change, and how switches get to it from the plan that they hold.
///
/// # Errors
/// [`NoProposal::Unfit`], [`NoProposal::NoWay`].
pub fn effect(held: Option<&Plan>, next: &Plan, host_tables: HostTables) -> Result<(Way, Effect), NoProposal> {
    let report = verify::check(next);
    if let Some(finding) = report.findings().iter().find(|finding| finding.severity <= Severity::Fatal) {
        return Err(NoProposal::Unfit(finding.to_string()));
    }
    if let Some(port) = held.and_then(|held| way_not_there(held, next)) {
        return Err(NoProposal::NoWay(port));
    }
    let mut findings: Vec<String> = report.findings().iter().take(FINDINGS_MAX).map(ToString::to_string).collect();
    if let Some(more) = report.findings().len().checked_sub(FINDINGS_MAX + 1) {
        findings.push(format!("and {} more", more + 1));
    }
    let (switches_changed, entries_changed) = match held {
        Some(held) => {
            let difference = transition::difference(held, next);
            let entries = difference.entries;
            (difference.switches_changed(), entries.added + entries.removed + entries.changed)
        }
        None => (next.devices.len(), 0),
    };
    let transition = held.map(|held| hitless(held, next, host_tables));
    if matches!(&transition, Some(Ok(transition)) if transition.deadlock == Deadlock::Unproven) {
        findings.push(UNPROVEN_DEADLOCK.to_owned());
    }
    let steps = transition.map(|found| found.map(|transition| transition.steps.len()));
    let (way, steps, drained_because) = match steps {
        Some(Ok(steps)) => (Way::Hitless, Some(steps), None),
        Some(Err(why)) => (Way::Drained, None, Some(why.to_string())),
        None => (Way::Drained, None, Some("there is no target yet".to_owned())),
    };
    let effect = Effect {
        findings,
        max_channel_time_before: held.map(|held| held.summary.max_channel_time),
        max_channel_time_after: next.summary.max_channel_time,
        switches_changed,
        entries_changed,
        steps,
        drained_because,
    };
    Ok((way, effect))
}

/// A port by which a plan manages a switch that is managed in the same VLAN now, but not over this port.
fn way_not_there(held: &Plan, next: &Plan) -> Option<String> {
    let vlan = next.topology.in_band()?.vlan;
    held.topology.in_band().filter(|before| before.vlan == vlan)?;
    let relation = Relation::between(&next.topology, &held.topology);
    let carries = |plan: &Plan, port: PortId| {
        let device = &plan.devices[plan.topology.port(port).switch.index()];
        device.ports.iter().any(|intent| intent.port == port && intent.is_member(vlan))
    };
    let is_new = |port: &PortId| {
        let Some(before) = relation.port[port.index()] else { return false };
        carries(next, *port) && !carries(held, before)
    };
    let mut ports =
        (0..next.topology.ports().len()).map(PortId::new).filter(|port| !next.topology.return_ports().contains(port));
    ports.find(is_new).map(|port| next.topology.port_label(port))
}

/// A plan that does without these parts: that of `base`, with them drained as well, and as little changed as can be from what
/// the switches hold. It leaves out the switches that are `dead` and the hosts plugged into them.
///
/// # Errors
/// [`NoProposal::NoPlan`].
pub fn plan_without(base: &Plan, held: &Plan, parts: &Parts, dead: &BTreeSet<SwitchId>) -> Result<Plan, NoProposal> {
    let names = parts.names(&base.topology);
    let no_plan = |why: String| NoProposal::NoPlan { parts: names.join(", "), why };
    let left = base.topology.without_switches(dead).map_err(|faults| {
        let each: Vec<String> = faults.iter().map(ToString::to_string).collect();
        no_plan(abridged(&each, "; ", FINDINGS_MAX))
    })?;
    let left = with_return_ports(left, base, held, dead);
    let policy = base.policy.for_topology(&base.topology, &left);
    let mut drained = Parts::named(&left, names.iter().map(String::as_str));
    drained.switches.extend(&policy.drain.switches);
    drained.links.extend(&policy.drain.links);
    let drain = planner::drain(&left, &drained.switches, &drained.links).map_err(|error| no_plan(error.to_string()))?;
    let policy = Policy { drain, ..policy };
    planner::plan(&left, &policy, Some(held)).map_err(|error| no_plan(error.to_string()))
}

/// What is left of a topology, with a port for the return of each switch that is `dead` where management needs one.
fn with_return_ports(left: Topology, base: &Plan, held: &Plan, dead: &BTreeSet<SwitchId>) -> Topology {
    let relation = Relation::between(&base.topology, &left);
    let ports = return_ports(base, held, dead);
    let mut builder = TopologyBuilder::of(&left);
    for port in ports.iter().filter_map(|port| relation.port[port.index()]) {
        builder.add_return_port(port).expect("its cable is gone with the switch");
    }
    builder.finish().expect("it was a topology before")
}
