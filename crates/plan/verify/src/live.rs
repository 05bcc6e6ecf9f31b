//! A fabric on its way from one plan to another: no plan says what it should be, but nothing may loop or flood.
//!
//! ```text
//!   start ─ step ─▶ state ─ step ─▶ state ─ … ─▶ goal
//!                     └ every VLAN a forest? every frame of the judged hosts on a way that ends, and at its receiver?
//! ```
//! Frames that get lost are no finding here: a cable may have died, which no step can help. They are counted pair by
//! pair and VLAN by VLAN instead, so that whoever takes the steps can see that none of them breaks what worked before. A frame in
//! a VLAN that its receiver does not accept is lost.

use std::collections::BTreeMap;

use fabric::{
    Assignment, Bound, DeviceIntent, EngineName, FindingKind, FloodKind, HostId, HostTable, Plan, Policy, Report,
    Summary, SwitchId, Tagging, Topology, VlanId,
};

use crate::{
    classes,
    findings::{Findings, counted, listed},
    read::read_state,
    receiver::Receiver,
    standby_edges,
    state::{FabricState, Hop},
    view::View,
};

/// A fabric at some moment.
#[derive(Clone, Copy, Debug)]
pub struct Live<'a> {
    /// The cabling.
    pub topology: &'a Topology,
    /// `devices[switch]`: what each switch holds.
    pub devices: &'a [DeviceIntent],
    /// `tables[host]`: what each host puts on its frames; none if the switches tag.
    pub tables: Option<&'a [HostTable]>,
    /// The hosts whose frames are judged, ascending: those that are there before and after.
    pub judged: &'a [HostId],
}

/// What was found of a fabric at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCheck {
    /// Loops, floods, wrong deliveries, and state that contradicts itself.
    pub report: Report,
    /// Ordered pairs of judged hosts whose frames do not arrive in the VLAN that is assigned to them, ascending.
    pub lost: Vec<(HostId, HostId)>,
    /// The same of further VLANs that the first host may spread its frames over, ascending.
    pub lost_in: Vec<(HostId, HostId, VlanId)>,
    /// Ordered pairs of judged hosts of which the second does not hear the first's broadcasts, ascending.
    pub unheard: Vec<(HostId, HostId)>,
}

/// Judges a fabric between two plans. Cost: O(VLANs · ports + judged² · switches on a path · log entries).
pub fn check_state(live: &Live<'_>) -> LiveCheck {
    let mut read = Findings::default();
    let plan = as_plan(live);
    let state = read_state(&plan, &mut read);
    let mut findings = Findings::default();
    for finding in read.into_report().findings() {
        // Ports whose cable is gone or new are still set up for the old one, and hosts' tables have gaps.
        if matches!(finding.kind, FindingKind::ContradictoryEntries) {
            findings.fatal(finding.kind, || (finding.subject.clone(), finding.message.clone()));
        }
    }
    classes::judge_live(&state, &mut findings);
    standby_edges::judge_live(&state, &mut findings);
    let (mut lost, mut lost_in, mut unheard) = (Vec::new(), Vec::new(), Vec::new());
    let mut broadcasters: BTreeMap<VlanId, Vec<HostId>> = BTreeMap::new();
    for &source in live.judged {
        let tag = live.tag(source, Receiver::Everybody);
        match tag.and_then(|tag| state.enter(state.topology.host(source).port, tag).ok()) {
            Some(vlan) => broadcasters.entry(vlan).or_default().push(source),
            None => unheard.extend(live.judged.iter().filter(|host| **host != source).map(|host| (source, *host))),
        }
        for &destination in live.judged.iter().filter(|host| **host != source) {
            let assigned = live.tag(source, Receiver::Host(destination));
            if assigned
                .is_none_or(|tag| follow(&state, live, (source, destination), tag, &mut findings) == Arrival::Lost)
            {
                lost.push((source, destination));
            }
            for &vlan in live.paths(source, destination).iter().filter(|vlan| assigned != Some(Some(**vlan))) {
                if follow(&state, live, (source, destination), Some(vlan), &mut findings) == Arrival::Lost {
                    lost_in.push((source, destination, vlan));
                }
            }
        }
    }
    for vlan in state.vlans.iter() {
        let senders = broadcasters.get(&vlan).map_or(&[][..], Vec::as_slice);
        judge_vlan(&state, live, vlan, senders, &mut unheard, &mut findings);
    }
    unheard.sort_unstable();
    LiveCheck { report: findings.into_report(), lost, lost_in, unheard }
}

impl Live<'_> {
    /// The tag that a host puts on a frame, none where its switch does; or that it does not send the frame at all.
    fn tag(&self, source: HostId, receiver: Receiver) -> Option<Option<VlanId>> {
        let Some(tables) = self.tables else { return Some(None) };
        let table = tables.get(source.index())?;
        let vlan = match receiver {
            Receiver::Host(destination) => table.vlan_to(destination)?,
            Receiver::Everybody | Receiver::Nobody => table.broadcast?,
        };
        Some(Some(vlan))
    }

    /// The VLANs that a host may spread its frames for another over.
    fn paths(&self, source: HostId, destination: HostId) -> &[VlanId] {
        let table = self.tables.and_then(|tables| tables.get(source.index()));
        table.map_or(&[], |table| table.paths_to(destination))
    }

    /// Whether a host takes a frame that its switch sends it in a VLAN.
    fn accepts(&self, host: HostId, vlan: VlanId) -> bool {
        let table = self.tables.and_then(|tables| tables.get(host.index()));
        table.is_none_or(|table| table.receives.contains(vlan))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrival {
    Delivered,
    Lost,
    /// A finding says how.
    Astray,
}

/// Follows one frame with this tag from switch to switch.
fn follow(
    state: &FabricState<'_>,
    live: &Live<'_>,
    (source, destination): (HostId, HostId),
    tag: Option<VlanId>,
    findings: &mut Findings,
) -> Arrival {
    let topology = state.topology;
    let Ok(mut vlan) = state.enter(topology.host(source).port, tag) else { return Arrival::Lost };
    let mut ingress = topology.host(source).port;
    let mut astray = |kind: FindingKind, message: String| {
        let subject = format!("{} -> {}", state.host_name(source), state.host_name(destination));
        findings.fatal(kind, || (subject, message));
        Arrival::Astray
    };
    // In one VLAN no switch can come twice without a loop; if VLANs leak into each other that is a finding of its own.
    for _ in 0..=topology.switches().len() {
        let switch = topology.port(ingress).switch;
        let name = state.switch_name(switch);
        let Some(port) = state.lookup(switch, vlan, Receiver::Host(destination)) else {
            if state.drops(switch, vlan, FloodKind::UnknownUnicast) {
                return Arrival::Lost;
            }
            return astray(
                FindingKind::Flood,
                format!("the frame in VLAN {vlan} floods from {name}, which has no entry for it"),
            );
        };
        if port == ingress {
            return Arrival::Lost;
        }
        match state.leave(port, vlan) {
            Hop::Lost(..) => return Arrival::Lost,
            Hop::Host(host) if host == destination && live.accepts(host, vlan) => return Arrival::Delivered,
            Hop::Host(host) if host == destination => return Arrival::Lost,
            Hop::Host(host) => {
                let message = format!("the frame in VLAN {vlan} reaches {} instead", state.host_name(host));
                return astray(FindingKind::WrongDelivery, message);
            }
            Hop::Switch { ingress: next, vlan: there } => (ingress, vlan) = (next, there),
        }
    }
    astray(FindingKind::Loop, format!("the frame in VLAN {vlan} goes round for ever"))
}

/// Judges what spreads in a VLAN: its links must be a forest, whoever sends.
fn judge_vlan(
    state: &FabricState<'_>,
    live: &Live<'_>,
    vlan: VlanId,
    senders: &[HostId],
    unheard: &mut Vec<(HostId, HostId)>,
    findings: &mut Findings,
) {
    let mut view = View::of(state, vlan);
    let labels = |links: &[fabric::LinkId]| listed(links.iter().map(|link| state.topology.link_label(*link)));
    if !view.leaks.is_empty() {
        findings.fatal(FindingKind::OneSidedMembership, || {
            (format!("VLAN {vlan}"), format!("its frames come out in another VLAN over {}", labels(&view.leaks)))
        });
    }
    // A link that carries frames one way only can still be part of a way round.
    view.active.append(&mut view.one_way.clone());
    let (mut pieces, closing) = view.pieces(state);
    if !closing.is_empty() {
        findings.fatal(FindingKind::BroadcastLoop, || {
            let count = counted(closing.len(), "cycle");
            (format!("VLAN {vlan}"), format!("its links close {count}, by {}", labels(&closing)))
        });
        return;
    }
    for &source in senders {
        let from = pieces.of(state.topology.switch_of(source));
        for &host in live.judged.iter().filter(|host| **host != source) {
            let port = state.topology.host(host).port;
            let at: SwitchId = pieces.of(state.topology.switch_of(host));
            if at != from || view.hop[port.index()] != Hop::Host(host) || !live.accepts(host, vlan) {
                unheard.push((source, host));
            }
        }
    }
}

/// The moment in the form that the rules of 802.1Q are written for: a plan that claims nothing.
fn as_plan(live: &Live<'_>) -> Plan {
    let tagging = if live.tables.is_some() { Tagging::Pair } else { Tagging::Switch };
    Plan {
        topology: live.topology.clone(),
        policy: Policy { tagging, ..Policy::default() },
        engine: EngineName::Tree,
        trees: Vec::new(),
        assignment: Assignment::Source(Vec::new()),
        addresses: Vec::new(),
        devices: live.devices.to_vec(),
        certificate: None,
        bound: Bound::default(),
        failover: None,
        paths: None,
        summary: Summary {
            switches: 0,
            hosts: 0,
            links: 0,
            vlans: 0,
            lanes: 0,
            avg_switches_per_path: 0.0,
            avg_hops: 0.0,
            max_switches_per_path: 0,
            max_channel_load: 0.0,
            max_channel_time: 0.0,
            load_bound: 0.0,
            load_gap: 0.0,
            deadlock_free: false,
            fdb_entries_max: 0,
            fdb_entries_total: 0,
            paths: None,
        },
    }
}
