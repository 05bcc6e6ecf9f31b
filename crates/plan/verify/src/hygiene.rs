//! Settings that no frame of the plan needs. Each is harmless until somebody plugs in one more cable.
//!
//! ```text
//!   sw1:7  up, in VLANs 2-5, no cable     a patch cord from here to sw2:7 closes a loop     fatal
//!   sw1:3  a link with PVID 2             an untagged frame from anywhere enters VLAN 2
//!   sw1:1  a host without PAUSE           the switch drops what it would have held back
//!   sw1    learns beside static entries   a frame with a forged sender redirects traffic
//! ```
//! Every port is a link, a host's, the controller's, or unused and down; a port has a PVID only where untagged frames
//! come, is a member only of VLANs in which frames pass it, and has the flow control of the plan.

use fabric::{
    Admin, Attachment, ETHERNET_MTU_BYTES, FdbMode, FindingKind, Flood, FloodKind, FloodSet, FlowControlMode,
    HostTagging, IngressFilter, Learning, Lldp, PortId, PortIntent, PortRole, Severity, SpanningTree, StormLimit,
    VlanSet,
};

use crate::{
    findings::{Findings, counted},
    ports::mode_words,
    state::FabricState,
    view::View,
};

/// Judges every port and switch by itself. Cost: O(ports · VLANs of a port).
pub(crate) fn judge(state: &FabricState<'_>, findings: &mut Findings) {
    for port in (0..state.topology.ports().len()).map(PortId::new) {
        let Some(intent) = state.port(port) else { continue };
        match state.topology.port(port).attachment {
            Attachment::Link(_) => judge_link_port(state, intent, findings),
            Attachment::Host(_) => judge_host_port(state, intent, findings),
            Attachment::Nothing => match state.topology.role_without_cable(port) {
                PortRole::Controller | PortRole::Return => judge_flow_control(state, intent, findings),
                _ => judge_unused_port(state, intent, findings),
            },
            Attachment::Member(_) => {}
        }
    }
    judge_floods(state, findings);
    judge_storm_control(state, findings);
    judge_lldp(state, findings);
    judge_mtu(state, findings);
    judge_filters(state, findings);
    judge_learning(state, findings);
}

/// Judges whether anybody uses a VLAN, and each member port of a host in it; `standby` holds VLANs of switch-overs.
pub(crate) fn judge_vlan(
    state: &FabricState<'_>,
    view: &View,
    is_sent_in: bool,
    standby: &VlanSet,
    findings: &mut Findings,
) {
    let topology = state.topology;
    if !is_sent_in && !standby.contains(view.vlan) {
        findings.warn(FindingKind::UnusedSetting, || {
            let message = "is on the switches, but no host sends in it and no switch-over needs it; remove it";
            (format!("VLAN {}", view.vlan), message.to_owned())
        });
        return;
    }
    let (mut pieces, _) = view.pieces(state);
    let members: Vec<_> = topology
        .host_ids()
        .map(|host| topology.host(host).port)
        .filter(|port| state.port(*port).is_some_and(|intent| intent.is_member(view.vlan)))
        .collect();
    let mut hosts = vec![0_usize; topology.switches().len()];
    members.iter().for_each(|port| hosts[pieces.of(topology.port(*port).switch).index()] += 1);
    // The only host of a fabric has nobody to reach in any VLAN.
    for port in members.into_iter().filter(|_| topology.hosts().len() > 1) {
        if hosts[pieces.of(topology.port(port).switch).index()] == 1 {
            findings.warn(FindingKind::UnusedSetting, || {
                let message =
                    format!("is a member of VLAN {}, in which no other host's port can be reached", view.vlan);
                (topology.port_label(port), message)
            });
        }
    }
}

fn judge_link_port(state: &FabricState<'_>, intent: &PortIntent, findings: &mut Findings) {
    let Some(pvid) = intent.pvid else { return };
    let far = state.peer(intent.port).and_then(|far| state.port(far));
    if far.is_none_or(|far| !far.untagged.contains(pvid)) {
        findings.warn(FindingKind::UnusedSetting, || {
            let message = format!(
                "has PVID {pvid}, but the switch at the other end sends no untagged frames of it: whatever comes \
                 without a tag enters the VLAN"
            );
            (state.topology.port_label(intent.port), message)
        });
    }
}

fn judge_host_port(state: &FabricState<'_>, intent: &PortIntent, findings: &mut Findings) {
    judge_flow_control(state, intent, findings);
    if state.tagging == HostTagging::BySwitch {
        return;
    }
    let label = || state.topology.port_label(intent.port);
    if let Some(pvid) = intent.pvid {
        findings.warn(FindingKind::UnusedSetting, || {
            (label(), format!("has PVID {pvid}, but its host tags: an untagged frame would enter that VLAN"))
        });
    }
    if !intent.untagged.is_empty() {
        findings.warn(FindingKind::RoleMismatch, || {
            (label(), format!("sends frames of VLAN {} untagged to a host that tags", intent.untagged))
        });
    }
}

/// The port of a host and the members of LAGs have the flow control of the fabric, and ports for management alone have none.
pub(crate) fn judge_flow_control(state: &FabricState<'_>, intent: &PortIntent, findings: &mut Findings) {
    let (wanted, whose) = match state.topology.port(intent.port).attachment {
        Attachment::Host(host) => (state.flow_control_mode(), format!("the port of {}", state.host_name(host))),
        Attachment::Member(lag) => {
            (state.flow_control_mode(), format!("a member of {}", state.topology.port(lag).name))
        }
        Attachment::Link(_) | Attachment::Nothing => {
            let whose = match state.topology.role_without_cable(intent.port) {
                PortRole::Return => "kept for the return of a switch",
                _ => "the controller's port",
            };
            (FlowControlMode::Off, whose.to_owned())
        }
    };
    if intent.flow_control != wanted {
        findings.warn(FindingKind::FlowControlMismatch, || {
            let (is, wanted) = (mode_words(&intent.flow_control), mode_words(&wanted));
            (state.topology.port_label(intent.port), format!("is {whose} and has {is}; the plan needs {wanted} there"))
        });
    }
}

fn judge_unused_port(state: &FabricState<'_>, intent: &PortIntent, findings: &mut Findings) {
    let label = || state.topology.port_label(intent.port);
    let members: VlanSet = intent.tagged.iter().chain(intent.untagged.iter()).collect();
    match intent.admin {
        // `standby_edges.rs` says what is wrong with that.
        Admin::Up if state.topology.standby_edge_at(intent.port).is_some() => {}
        Admin::Up if !members.is_empty() => findings.fatal(FindingKind::UnusedPort, || {
            let message = format!(
                "is unused, but up and a member of VLAN {members}: a patch cord to another such port closes a loop; \
                 shut it down"
            );
            (label(), message)
        }),
        Admin::Up => findings.warn(FindingKind::UnusedPort, || (label(), "is unused, but up; shut it down".to_owned())),
        Admin::Down if !members.is_empty() => findings.warn(FindingKind::UnusedSetting, || {
            (label(), format!("is unused and down, but a member of VLAN {members}; remove it from them"))
        }),
        Admin::Down => {}
    }
    if let Some(pvid) = intent.pvid {
        findings.warn(FindingKind::UnusedSetting, || {
            (label(), format!("is unused, but has PVID {pvid}: whoever is plugged in there sends in that VLAN"))
        });
    }
    if intent.flow_control != FlowControlMode::Off {
        findings.warn(FindingKind::UnusedSetting, || {
            (label(), format!("is unused, but has {}", mode_words(&intent.flow_control)))
        });
    }
}

/// Every port that carries data blocks the floods that the plan drops, and no others.
fn judge_floods(state: &FabricState<'_>, findings: &mut Findings) {
    let policy = &state.plan.policy;
    let needs_floods = match (policy.fdb, state.topology.in_band()) {
        (FdbMode::Learned, _) => Some("switches that learn find hosts by floods"),
        (_, Some(_)) if policy.flood != Flood::Edge => Some("management over data ports finds agents by floods"),
        (FdbMode::Full | FdbMode::Minimal, _) => None,
    };
    let dropped = policy.flood.needed();
    if let Some(why) = needs_floods.filter(|_| !dropped.is_empty()) {
        findings.fatal(FindingKind::PlanMismatch, || {
            ("policy".to_owned(), format!("drops {dropped}, but {why}: plan with --flood forward"))
        });
    }
    for intent in (0..state.topology.ports().len()).filter_map(|port| state.port(PortId::new(port))) {
        let label = || state.topology.port_label(intent.port);
        let carries =
            !matches!(state.topology.port(intent.port).attachment, Attachment::Nothing | Attachment::Member(_));
        let wanted = wanted_block(state, intent.port);
        let (missing, extra) = (wanted.without(intent.blocked), intent.blocked.without(wanted));
        if !missing.is_empty() {
            findings
                .fatal(FindingKind::PlanMismatch, || (label(), format!("forwards {missing}, which the plan drops")));
        }
        // With entries for every host no frame of the plan is unknown to a switch, unless it is for somebody behind the edge port.
        let harmless = match state.topology.edge() {
            None => FloodSet::NONE.with(FloodKind::UnknownUnicast),
            Some(_) => FloodSet::NONE,
        };
        let severity = match extra.without(harmless).is_empty() && policy.fdb != FdbMode::Learned || !carries {
            true => Severity::Warning,
            false => Severity::Fatal,
        };
        if !extra.is_empty() {
            findings.add(severity, FindingKind::PlanMismatch, || {
                (label(), format!("blocks {extra}, which the plan forwards"))
            });
        }
    }
}

/// The floods that are not to leave by a port.
fn wanted_block(state: &FabricState<'_>, port: PortId) -> FloodSet {
    let flood = state.plan.policy.flood;
    match state.topology.port(port).attachment {
        Attachment::Nothing | Attachment::Member(_) => FloodSet::NONE,
        Attachment::Host(host) if flood == Flood::Edge && !state.topology.host(host).edge => {
            FloodSet::NONE.with(FloodKind::UnknownUnicast)
        }
        Attachment::Host(_) | Attachment::Link(_) => flood.blocked(),
    }
}

/// The ports of hosts limit floods as the policy says, and no others do.
fn judge_storm_control(state: &FabricState<'_>, findings: &mut Findings) {
    let words = |limit: Option<StormLimit>| limit.map_or_else(|| "no limit".to_owned(), |limit| format!("{limit} %"));
    for intent in (0..state.topology.ports().len()).filter_map(|port| state.port(PortId::new(port))) {
        let attachment = state.topology.port(intent.port).attachment;
        let wanted = if matches!(attachment, Attachment::Host(_)) { state.plan.policy.storm_limit } else { None };
        if intent.storm_limit == wanted {
            continue;
        }
        // On a link the floods of all hosts beyond it share the limit.
        let severity = if matches!(attachment, Attachment::Link(_)) { Severity::Fatal } else { Severity::Warning };
        findings.add(severity, FindingKind::PlanMismatch, || {
            let (is, wanted) = (words(intent.storm_limit), words(wanted));
            (
                state.topology.port_label(intent.port),
                format!("has storm control with {is}; the plan has {wanted} there"),
            )
        });
    }
}

/// Switches send and receive LLDP frames: without them nobody can tell which cable is plugged in where.
fn judge_lldp(state: &FabricState<'_>, findings: &mut Findings) {
    for device in state.devices.iter().flatten().filter(|device| device.lldp == Lldp::Off) {
        findings.warn(FindingKind::PlanMismatch, || {
            let message = "has LLDP off: deploy and status cannot tell what is plugged in at its ports";
            (state.switch_name(device.switch).to_owned(), message.to_owned())
        });
    }
}

/// Ports that carry data pass the hosts' largest packets; others have no use for jumbo frames.
fn judge_mtu(state: &FabricState<'_>, findings: &mut Findings) {
    let packet = state.plan.policy.mtu_bytes;
    for intent in (0..state.topology.ports().len()).filter_map(|port| state.port(PortId::new(port))) {
        let label = || state.topology.port_label(intent.port);
        let carries = state.topology.port(intent.port).attachment != Attachment::Nothing;
        let (has, needed) =
            (intent.mtu_bytes, if carries { packet.max(ETHERNET_MTU_BYTES) } else { ETHERNET_MTU_BYTES });
        if has < packet && carries {
            findings.fatal(FindingKind::Drop, || {
                let message = format!("has an MTU of {has} bytes, and drops the hosts' packets of {packet} bytes");
                (label(), message)
            });
        } else if has != needed {
            findings.warn(FindingKind::UnusedSetting, || {
                (label(), format!("has an MTU of {has} bytes; {needed} bytes are what it needs"))
            });
        }
    }
}

/// No spanning tree, and filters at ingress: without them frames are where the walks do not follow them.
fn judge_filters(state: &FabricState<'_>, findings: &mut Findings) {
    for device in state.devices.iter().flatten() {
        if device.spanning_tree == SpanningTree::On {
            findings.fatal(FindingKind::PlanMismatch, || {
                let message = "spanning tree stays on and would block the cables that the plan uses";
                (state.switch_name(device.switch).to_owned(), message.to_owned())
            });
        }
    }
    for intent in (0..state.topology.ports().len()).filter_map(|port| state.port(PortId::new(port))) {
        let in_a_vlan = !(intent.tagged.is_empty() && intent.untagged.is_empty());
        if intent.ingress_filter == IngressFilter::Off && in_a_vlan {
            findings.fatal(FindingKind::PlanMismatch, || {
                let message = "does not filter at ingress, so frames of VLANs that it is not in get onto other trees";
                (state.topology.port_label(intent.port), message.to_owned())
            });
        } else if intent.ingress_filter == IngressFilter::Off && intent.admin == Admin::Up {
            findings.warn(FindingKind::PlanMismatch, || {
                let message = "is up and in no VLAN, but does not filter at ingress: it admits tagged frames of any";
                (state.topology.port_label(intent.port), message.to_owned())
            });
        }
    }
}

/// A switch learns if the plan has no static entries, and only then. One without member ports has nobody to learn of.
fn judge_learning(state: &FabricState<'_>, findings: &mut Findings) {
    let wanted = match state.plan.policy.fdb {
        FdbMode::Learned => Learning::On,
        FdbMode::Full | FdbMode::Minimal => Learning::Off,
    };
    for device in state.devices.iter().flatten().filter(|device| device.learning != wanted) {
        let vlans = device.vlans();
        if vlans.is_empty() {
            continue;
        }
        findings.warn(FindingKind::PlanMismatch, || {
            let message = match wanted {
                Learning::Off => format!(
                    "learns addresses in {} beside its static entries: a frame with a forged sender redirects traffic",
                    counted(vlans.len(), "VLAN")
                ),
                Learning::On => "does not learn addresses, but the plan has no static entries".to_owned(),
            };
            (state.switch_name(device.switch).to_owned(), message)
        });
    }
}
