//! Whether the device state is that of the plan's own trees and assignment.
//!
//! ```text
//!   plan:    VLAN 2 = {s0-s1, s1-s2}     h0 sends in VLAN 2
//!   devices: VLAN 2 = {s0-s1}            PVID of h0's port is 3        ▶ two disagreements
//! ```
//! Frames follow the devices; people, renderers and the next planning run read the trees.

use std::collections::BTreeSet;

use fabric::{Assignment, EngineName, FindingKind, LinkId, Tagging};

use crate::{findings::Findings, state::FabricState, view::View};

/// Judges the plan's own parts against each other and against the host ports.
pub(crate) fn judge_plan(state: &FabricState<'_>, findings: &mut Findings) {
    let plan = state.plan;
    let mut mismatch = |subject: String, message: &str| {
        findings.fatal(FindingKind::PlanMismatch, || (subject, message.to_owned()));
    };
    if plan.engine == EngineName::Auto {
        mismatch("engine".to_owned(), "a finished plan names the engine that made its routes, not auto");
    }
    if !plan.trees.windows(2).all(|pair| pair[0].vlan < pair[1].vlan) {
        mismatch("trees".to_owned(), "are not one a VLAN, in ascending order");
    }
    let fits = match plan.policy.tagging {
        Tagging::Switch | Tagging::Source => matches!(plan.assignment, Assignment::Source(_)),
        Tagging::Destination => matches!(plan.assignment, Assignment::Destination { .. }),
        Tagging::SourceDestination => matches!(plan.assignment, Assignment::Priority { .. }),
        Tagging::Pair => matches!(plan.assignment, Assignment::Pair { .. }),
    };
    if !fits {
        let message = format!("is of another kind than {} tagging needs", plan.policy.tagging);
        mismatch("assignment".to_owned(), &message);
    }
    if let Some(assignment) = state.assignment {
        judge_assignment(state, assignment, findings);
    }
}

/// Judges one VLAN's active links against its tree.
pub(crate) fn judge_vlan(state: &FabricState<'_>, view: &View, findings: &mut Findings) {
    let subject = || format!("VLAN {}", view.vlan);
    let Some(tree) = state.plan.trees.iter().find(|tree| tree.vlan == view.vlan) else {
        findings.fatal(FindingKind::PlanMismatch, || {
            (subject(), "is on the switches, but the plan has no tree for it".to_owned())
        });
        return;
    };
    let planned: BTreeSet<LinkId> = tree.tree.links().iter().copied().collect();
    let active: BTreeSet<LinkId> = view.active.iter().copied().collect();
    let label = |link: LinkId| {
        if link.index() < state.topology.links().len() { state.topology.link_label(link) } else { format!("{link:?}") }
    };
    if let Some(&link) = planned.difference(&active).next() {
        findings.fatal(FindingKind::PlanMismatch, || {
            (subject(), format!("its tree has the link {}, but the switches do not carry it there", label(link)))
        });
    }
    if let Some(&link) = active.difference(&planned).next() {
        findings.fatal(FindingKind::PlanMismatch, || {
            (subject(), format!("the switches carry it over {}, which is not in its tree", label(link)))
        });
    }
}

fn judge_assignment(state: &FabricState<'_>, assignment: &Assignment<fabric::VlanId>, findings: &mut Findings) {
    let mut assigned = fabric::VlanSet::new();
    match assignment {
        Assignment::Source(choice) => assigned.extend(choice.iter().copied()),
        Assignment::Destination { choice, broadcast } | Assignment::Priority { choice, broadcast, .. } => {
            assigned.extend(choice.iter().chain(broadcast).copied());
        }
        Assignment::Pair { unicast, broadcast } => {
            assigned.extend(
                unicast.iter().flat_map(|runs| runs.iter()).map(|run| run.choice).chain(broadcast.iter().copied()),
            );
        }
    }
    let treeless: fabric::VlanSet = assigned.iter().filter(|vlan| !state.lanes.contains_key(vlan)).collect();
    if !treeless.is_empty() {
        findings.fatal(FindingKind::PlanMismatch, || {
            (format!("VLAN {treeless}"), "is assigned to hosts, but the plan has no tree for it".to_owned())
        });
    }
    if state.plan.policy.tagging != Tagging::Switch {
        return;
    }
    for host in state.topology.host_ids() {
        let Some(intent) = state.port(state.topology.host(host).port) else { continue };
        let planned = assignment.broadcast(host);
        if intent.pvid != Some(planned) {
            findings.fatal(FindingKind::PlanMismatch, || {
                let pvid = intent.pvid.map_or_else(|| "no PVID".to_owned(), |pvid| format!("PVID {pvid}"));
                let label = state.topology.port_label(intent.port);
                (label, format!("has {pvid}, but the plan lets {} send in VLAN {planned}", state.host_name(host)))
            });
        }
    }
}
