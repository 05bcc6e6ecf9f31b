//! The VLAN over which switches are managed through their data ports: one tree that reaches them all, and nobody else.
//!
//! ```text
//!   controller ── s0 ── s1 ── s2        s3: not reached, so nobody can ever set it up again      fatal
//!                  └──────────┘         a cycle: the first broadcast of the controller is the last     fatal
//!                        └── h1         a host that can speak to the switches' agents                  fatal
//!                        └── ╴          a port for the return of a switch that is left out: management alone
//! ```

use fabric::{Attachment, FindingKind, FloodSet, InBand, PortId, SwitchId, VlanId};

use crate::{
    findings::{Findings, listed},
    spread::{note_dependencies, walk_forest},
    state::FabricState,
    unicast::{Dependencies, Traffic},
    view::View,
};

/// Judges the management VLAN, and adds what its frames wait for where flow control makes them wait.
pub(crate) fn judge(
    state: &FabricState<'_>,
    view: &View,
    in_band: InBand,
    traffic: &mut Traffic,
    findings: &mut Findings,
) {
    let topology = state.topology;
    let subject = || format!("management VLAN {}", in_band.vlan);
    if state.lanes.contains_key(&in_band.vlan) {
        findings.fatal(FindingKind::PlanMismatch, || {
            (subject(), "carries data as well: the plan has a tree for it".to_owned())
        });
    }
    let (mut pieces, closing) = view.pieces(state);
    if !closing.is_empty() {
        let links = listed(closing.iter().map(|link| topology.link_label(*link)));
        findings.fatal(FindingKind::NotATree, || (subject(), format!("its links close a cycle, by {links}")));
    }
    let astray: Vec<_> = view.one_way.iter().chain(&view.leaks).map(|link| topology.link_label(*link)).collect();
    let is_forest = closing.is_empty() && astray.is_empty();
    if !astray.is_empty() {
        findings.fatal(FindingKind::OneSidedMembership, || {
            (subject(), format!("its frames do not pass both ways over {}", listed(astray)))
        });
    }
    if is_forest && state.plan.policy.flow_control.lanes().is_some() {
        traffic.management = Some(dependencies(state, view, in_band));
        // Agents ask everybody for addresses.
        let mut agents = Dependencies::none(topology.channel_count());
        note_dependencies(state, view, &topology.switch_ids().collect(), FloodSet::ALL, &mut agents);
        traffic.agents = Some(agents);
    }
    let home = pieces.of(topology.port(in_band.controller).switch);
    let cut: Vec<SwitchId> = topology.switch_ids().filter(|switch| pieces.of(*switch) != home).collect();
    if !cut.is_empty() {
        findings.fatal(FindingKind::NotATree, || {
            let names = listed(cut.iter().map(|switch| topology.switch(*switch).name.clone()));
            (subject(), format!("does not lead from the controller to {names}"))
        });
    }
    for port in (0..topology.ports().len()).map(PortId::new) {
        judge_port(state, in_band, port, findings);
    }
    for (switch, runs) in topology.switches().iter().zip(&state.fdb) {
        if runs.iter().any(|run| run.vlan == in_band.vlan) {
            findings.fatal(FindingKind::ForeignEntry, || {
                (switch.name.clone(), format!("has static entries in the management VLAN {}", in_band.vlan))
            });
        }
    }
}

/// A port that belongs to no link: the controller's and those for the return of switches carry management, and nothing else; others
/// carry none.
fn judge_port(state: &FabricState<'_>, in_band: InBand, port: PortId, findings: &mut Findings) {
    let topology = state.topology;
    let (Some(intent), false) = (state.port(port), matches!(topology.port(port).attachment, Attachment::Link(_)))
    else {
        return;
    };
    let vlan = in_band.vlan;
    let (whose, has_tag) = match topology.port(port).attachment {
        Attachment::Nothing if port == in_band.controller => ("the controller's port", false),
        Attachment::Nothing if topology.return_ports().contains(&port) => {
            ("kept for the return of a switch", vlan != VlanId::MIN)
        }
        _ => {
            if intent.is_member(vlan) || intent.pvid == Some(vlan) {
                findings.fatal(FindingKind::PlanMismatch, || {
                    let message =
                        "is in the management VLAN, so that who is plugged in there can reach the switches' agents";
                    (topology.port_label(port), message.to_owned())
                });
            }
            return;
        }
    };
    let members = if has_tag { &intent.tagged } else { &intent.untagged };
    let leaves = state.port_up(port).is_some_and(|_| members.contains(vlan));
    if !leaves || state.enter(port, has_tag.then_some(vlan)) != Ok(vlan) {
        findings.fatal(FindingKind::IncompleteState, || {
            let form = if has_tag { "with a tag" } else { "without a tag" };
            let message = format!("is {whose}, but does not carry the management VLAN {form}, both ways");
            (topology.port_label(port), message)
        });
    }
    let untagged_elsewhere = intent.pvid.is_some_and(|pvid| pvid != vlan);
    if intent.tagged.len() + intent.untagged.len() > 1 || untagged_elsewhere {
        findings.fatal(FindingKind::PlanMismatch, || {
            (topology.port_label(port), format!("is {whose}, but carries data as well"))
        });
    }
}

/// What frames from the controller to the switches, and back, hold while they wait.
fn dependencies(state: &FabricState<'_>, view: &View, in_band: InBand) -> Dependencies {
    let mut dependencies = Dependencies::none(state.topology.channel_count());
    let start = state.topology.port(in_band.controller).switch;
    walk_forest(
        state,
        view,
        start,
        |_| true,
        |inward, onward| {
            dependencies.insert(inward.index() as u32, onward.index() as u32);
            dependencies.insert(onward.reverse().index() as u32, inward.reverse().index() as u32);
        },
    );
    dependencies
}
