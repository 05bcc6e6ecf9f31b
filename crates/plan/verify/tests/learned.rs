//! Switches that learn, against switches played here that learn frame by frame: the judge calls a plan fit exactly if two
//! hosts that talk to each other alone, on switches that know nothing, flood no more once each has been heard.

mod common;

use std::collections::BTreeMap;

use common::{Wish, plan, ring, topology};
use fabric::{Attachment, FdbMode, FindingKind, HostId, Learning, Plan, PortId, Severity, SwitchId, Tagging, VlanId};
use proptest::prelude::*;
use verify::check;

fn learned(tagging: Tagging) -> Wish {
    Wish { fdb: FdbMode::Learned, ..Wish::tagged_by(tagging) }
}

/// Switches with their tables: where each address was seen, by VLAN.
struct Switches<'a> {
    plan: &'a Plan,
    known: BTreeMap<(SwitchId, VlanId, HostId), PortId>,
}

/// What became of a frame.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    flooded: bool,
    copies: BTreeMap<HostId, usize>,
}

impl<'a> Switches<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self { plan, known: BTreeMap::new() }
    }

    fn send(&mut self, from: HostId, to: HostId) -> Outcome {
        let topology = &self.plan.topology;
        let tag = (self.plan.policy.tagging != Tagging::Switch).then(|| self.plan.assignment.unicast(from, to));
        let mut outcome = Outcome { flooded: false, copies: BTreeMap::new() };
        let mut waiting = vec![(topology.host(from).port, tag)];
        let mut steps = 0;
        while let Some((ingress, tag)) = waiting.pop() {
            steps += 1;
            assert!(steps < 1000, "the frame goes round");
            let switch = topology.port(ingress).switch;
            let device = &self.plan.devices[switch.index()];
            let intent = |port: PortId| device.ports.iter().find(|intent| intent.port == port).expect("a port");
            let Some(vlan) = tag.or(intent(ingress).pvid).filter(|vlan| intent(ingress).is_member(*vlan)) else {
                continue;
            };
            if device.learning == Learning::On {
                self.known.insert((switch, vlan, from), ingress);
            }
            let exits: Vec<PortId> = match self.known.get(&(switch, vlan, to)) {
                Some(port) => vec![*port],
                None => {
                    outcome.flooded = true;
                    topology.port_ids(switch).filter(|port| intent(*port).is_member(vlan)).collect()
                }
            };
            for port in exits.into_iter().filter(|port| *port != ingress) {
                let tag = (!intent(port).untagged.contains(vlan)).then_some(vlan);
                match topology.port(port).attachment {
                    Attachment::Nothing | Attachment::Member(_) => {}
                    Attachment::Host(host) => *outcome.copies.entry(host).or_default() += 1,
                    Attachment::Link(link) => {
                        let link = topology.link(link);
                        waiting.push((if link.a == port { link.b } else { link.a }, tag));
                    }
                }
            }
        }
        outcome
    }
}

/// Whether a pair that talks alone floods no more once each has been heard.
fn settles(plan: &Plan, a: HostId, b: HostId) -> bool {
    let mut switches = Switches::new(plan);
    let first = switches.send(a, b);
    assert_eq!(first.copies.get(&b), Some(&1), "the first frame arrives, flooded or not");
    switches.send(b, a);
    let once = |to| BTreeMap::from([(to, 1)]);
    let (there, back) = (switches.send(a, b), switches.send(b, a));
    there == Outcome { flooded: false, copies: once(b) } && back == Outcome { flooded: false, copies: once(a) }
}

fn all_settle(plan: &Plan) -> bool {
    let hosts: Vec<HostId> = plan.topology.host_ids().collect();
    let pairs = hosts.iter().flat_map(|a| hosts.iter().map(move |b| (*a, *b))).filter(|(a, b)| a < b);
    pairs.into_iter().all(|(a, b)| settles(plan, a, b))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_judge_and_switches_that_learn_agree(
        hosts in proptest::collection::vec(0..3_usize, 1..6),
        parents in proptest::collection::vec(0..100_usize, 6),
        extra in proptest::collection::vec((0..100_usize, 0..100_usize), 0..5),
        tagging in proptest::sample::select(Tagging::ALL),
        one_vlan in any::<bool>(),
        distinct in any::<bool>(),
        deaf in proptest::option::of(0..100_usize),
    ) {
        let mut hosts = hosts;
        hosts[0] = 2;
        if one_vlan {
            // Trees are made for switches with hosts.
            hosts[1..].fill(0);
        }
        let count = hosts.len();
        let spanning = (1..count).map(|switch| (parents[switch - 1] % switch, switch));
        let loops = extra.iter().map(|(a, b)| (a % count, b % count)).filter(|(a, b)| a != b);
        let links: Vec<(usize, usize)> = spanning.chain(loops).collect();
        let mut plan = plan(&topology(&hosts, &links), learned(tagging));
        if let (true, fabric::Assignment::Priority { priority, .. }) = (distinct, &mut plan.assignment) {
            // As planned: without ties, both directions share.
            (0..).zip(priority.iter_mut()).for_each(|(host, priority)| *priority = host);
        }
        if let Some(deaf) = deaf {
            plan.devices[deaf % count].learning = Learning::Off;
        }
        let report = check(&plan);
        let flood = (Severity::Fatal, FindingKind::Flood);
        let floods = report.findings().iter().any(|finding| (finding.severity, finding.kind) == flood);
        // A deaf switch that no frame meets hurts nobody, in either.
        prop_assert_eq!(!floods, all_settle(&plan), "{}", report);
    }
}

#[test]
fn answers_in_the_same_vlan_are_enough_and_a_note_tells_of_silence() {
    let topology = topology(&[2, 2], &[(0, 1), (0, 1)]);
    let mut shared = plan(&topology, learned(Tagging::Source));
    // One VLAN for all.
    let first = shared.trees[0].vlan;
    shared.assignment = shared.assignment.map(|_| first);
    assert!(all_settle(&shared));
    let floods: Vec<String> = check(&shared)
        .findings()
        .iter()
        .filter(|finding| finding.kind == FindingKind::Flood)
        .map(ToString::to_string)
        .collect();
    assert_eq!(floods.len(), 1, "{floods:?}");
    assert!(floods[0].starts_with("note[flood] switches: learn where hosts are"), "{floods:?}");
}

#[test]
fn answers_in_another_vlan_are_named_once_a_host() {
    let plan = plan(&ring(), learned(Tagging::Destination));
    assert!(!all_settle(&plan));
    let report = check(&plan).to_string();
    let expected = "fatal[flood] h0 <-> h1: frames go in VLAN 3 and come back in VLAN 2, so that switches do not learn from \
                    answers, and flood; so it is with 3 other hosts";
    assert!(report.contains(expected), "{report}");
}

#[test]
fn a_switch_that_does_not_learn_floods() {
    let topology = topology(&[1, 0, 1], &[(0, 1), (1, 2)]);
    let mut plan = plan(&topology, learned(Tagging::Source));
    let first = plan.trees[0].vlan;
    plan.assignment = plan.assignment.map(|_| first);
    assert!(all_settle(&plan));
    plan.devices[1].learning = Learning::Off;
    assert!(!all_settle(&plan));
    let report = check(&plan).to_string();
    assert!(report.contains("floods from s1, which has no entry for it"), "{report}");
}
