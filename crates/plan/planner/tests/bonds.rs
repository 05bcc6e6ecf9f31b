//! Failover bonds: whatever mixture of the entries before and after a failover switches hold, no frame loops, floods or waits for ever.

mod common;

use std::collections::BTreeMap;

use common::Cabling;
use fabric::{
    Attachment, ChannelId, FlowControl, HostId, Plan, Policy, PortId, SwitchId, Tagging, Topology, VlanId, rng::Rng,
};
use planner::{StepLimit, plan_with};

/// Where a switch's entry for a host leads in a VLAN.
fn entry(plan: &Plan, switch: SwitchId, vlan: VlanId, host: HostId) -> Option<PortId> {
    let runs = &plan.devices[switch.index()].fdb;
    runs.iter().find(|run| run.vlan == vlan && run.first <= host && host <= run.last).map(|run| run.port)
}

/// The channels that a frame for a bond crosses from a switch on, where each switch has the entry for one of two ports.
fn mixed_path(plan: &Plan, vlan: VlanId, from: SwitchId, held: &BTreeMap<SwitchId, HostId>) -> Vec<ChannelId> {
    let topology = &plan.topology;
    let (mut at, mut ingress, mut path) = (from, None, Vec::new());
    loop {
        let port = entry(plan, at, vlan, held[&at]).unwrap_or_else(|| panic!("{vlan} floods at {at:?}"));
        if ingress == Some(port) {
            return path; // it would turn back, and is dropped
        }
        let Attachment::Link(link) = topology.port(port).attachment else { return path };
        let channels = [ChannelId::forward(link), ChannelId::backward(link)];
        let channel = channels.into_iter().find(|channel| topology.tail_port(*channel) == port).expect("its link");
        path.push(channel);
        assert!(path.len() < topology.switches().len(), "a frame in VLAN {vlan} loops from {from:?}");
        (at, ingress) = (topology.head(channel), Some(topology.head_port(channel)));
    }
}

#[test]
fn any_mixture_of_entries_before_and_after_a_failover_is_safe() {
    let (mut rng, mut frames, mut dropped) = (Rng::new(22), 0, 0);
    for round in 0..120 {
        let (switches, extra) = (3 + rng.below(8), 1 + rng.below(10));
        let Some(topology) = Cabling::random(switches, extra, &mut rng).topology() else { continue };
        let policy = Policy { flow_control: FlowControl::Pause, fdb: fabric::FdbMode::Full, ..Policy::default() };
        let plan = plan_with(&topology, &policy, None, &mut StepLimit::new(2)).expect("auto always finds a plan");
        let rank = &plan.certificate.as_ref().expect("PAUSE needs a proof").rank[0];
        for active in topology.host_ids() {
            for standby in topology.standby_ports(active) {
                let held: BTreeMap<SwitchId, HostId> =
                    topology.switch_ids().map(|switch| (switch, [active, standby][rng.below(2)])).collect();
                for source in topology.host_ids().filter(|host| !topology.are_of_one_machine(*host, active)) {
                    let vlan = plan.assignment.unicast(source, active);
                    assert_eq!(vlan, plan.assignment.unicast(source, standby), "a switch-tagged host has one VLAN");
                    let path = mixed_path(&plan, vlan, topology.switch_of(source), &held);
                    let rises = |pair: &[ChannelId]| rank[pair[0].index()] < rank[pair[1].index()];
                    assert!(path.windows(2).all(rises), "round {round}: {source:?} waits against the order");
                    frames += 1;
                    let last = path.last().map_or(topology.switch_of(source), |channel| topology.head(*channel));
                    dropped += usize::from(topology.switch_of(held[&last]) != last);
                }
            }
        }
    }
    assert!(frames > 200 && dropped > 0, "{frames} frames, {dropped} of them dropped on the way");
}

/// The other port active is the same plan but for entries: nothing else moves.
#[test]
fn a_failover_moves_nothing_but_the_bonds_entries() {
    let mut rng = Rng::new(23);
    let mut bonds = 0;
    for _ in 0..30 {
        let (switches, extra) = (3 + rng.below(6), 1 + rng.below(8));
        let Some(topology) = Cabling::random(switches, extra, &mut rng).topology() else { continue };
        let policy = Policy::default();
        let plan = plan_with(&topology, &policy, None, &mut StepLimit::new(2)).expect("auto always finds a plan");
        for port in topology.host_ids().filter(|host| topology.host(*host).standby) {
            let other = topology.with_active(port);
            assert_eq!(other.active_port(port), port);
            assert_eq!(other.hosts_by_mac().len(), topology.hosts_by_mac().len());
            let after = plan_with(&other, &policy, Some(&plan), &mut StepLimit::new(2)).expect("the same cabling");
            assert_eq!((&after.trees, &after.assignment), (&plan.trees, &plan.assignment));
            assert_eq!(after.devices, plan.devices, "runs are about ports, whichever is active");
            assert!(verify::check(&after).is_deployable(), "{}", verify::check(&after));
            bonds += 1;
        }
    }
    assert!(bonds > 10, "{bonds} bonds");
}

/// Whether all ports of failover bonds have the same VLANs, pair by pair.
fn are_alike(plan: &Plan) -> bool {
    let (topology, chosen) = (&plan.topology, &plan.assignment);
    let bonds = topology.host_ids().flat_map(|active| topology.standby_ports(active).map(move |port| (active, port)));
    let mut each = bonds.flat_map(|bond| topology.host_ids().map(move |other| (bond, other)));
    each.all(|((active, standby), other)| {
        topology.are_of_one_machine(other, active)
            || chosen.unicast(active, other) == chosen.unicast(standby, other)
                && chosen.unicast(other, active) == chosen.unicast(other, standby)
                && chosen.broadcast(active) == chosen.broadcast(standby)
    })
}

/// Hosts tag by address, and all ports of a bond have the same addresses.
#[test]
fn all_ports_of_a_bond_of_a_host_that_tags_have_its_vlans() {
    let (mut bonds, mut without, mut again) = (0, 0, 0);
    for seed in 0..150 {
        let rng = &mut Rng::new(seed);
        let cabling = Cabling::random(3 + rng.below(8), 1 + rng.below(10), rng);
        let Some(topology) = cabling.topology().filter(Topology::has_standby_ports) else { continue };
        let by_hosts: Vec<Tagging> =
            Tagging::ALL.iter().copied().filter(|tagging| *tagging != Tagging::Switch).collect();
        let tagging = by_hosts[rng.below(by_hosts.len())];
        let free = Policy { tagging, flow_control: FlowControl::None, ..Policy::default() };
        let few = || StepLimit::new(2);
        let plan = plan_with(&topology, &free, None, &mut few()).expect("auto plans every cabling");
        assert!(are_alike(&plan) && plan.bonds_without_failover().is_empty(), "seed {seed}, {tagging}");
        assert!(verify::check(&plan).is_deployable(), "seed {seed}, {tagging}");
        bonds += 1;
        let mut less = cabling.clone();
        less.links.remove(rng.below(less.links.len()));
        if let Some(less) = less.topology() {
            let mended = plan_with(&less, &free, Some(&plan), &mut few()).expect("auto plans every cabling");
            assert!(are_alike(&mended) && verify::check(&mended).is_deployable(), "seed {seed}, {tagging}, mended");
            again += 1;
        }
        let paused = Policy { tagging, flow_control: FlowControl::Pause, ..Policy::default() };
        let plan = plan_with(&topology, &paused, None, &mut few()).expect("auto plans every cabling");
        assert_eq!(plan.bonds_without_failover().is_empty(), are_alike(&plan), "seed {seed}");
        without += usize::from(!plan.bonds_without_failover().is_empty());
    }
    eprintln!("{bonds} fabrics with bonds, {again} mended; with PAUSE {without} strand some");
    assert!(bonds > 20 && again > 5, "{bonds}, {again}");
}
