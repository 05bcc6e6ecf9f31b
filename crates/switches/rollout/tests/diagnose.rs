//! What is wrong with a fabric, from what its switches say: every cause is named once, with what follows from it, and no
//! advice makes matters worse by the judge's reckoning.

use std::{collections::BTreeSet, time::Duration};

use fabric::{
    Admin, Attachment, Failure, FlowControl, Group, HostId, LinkId, Plan, Policy, PortId, Resilience, SpanningTree,
    SwitchId, TopologyBuilder, VlanId,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use proptest::prelude::*;
use rollout::diagnose::{Cause, Consequence, Diagnosis, PortSight, Remedy, Sight, Urgency, diagnose, span};
use switch_model::{
    PortConfig, Slot, SwitchConfig,
    driver::Fault,
    mark::Mark,
    observe::{Drift, drift},
    station::{CHASSIS_MAC, Capabilities, LldpId, LldpNeighbour, Station, StationPort},
};

const INTERFACE_NAME: i32 = 5;
const HOUR: Duration = Duration::from_secs(3600);

fn plan(shape: &str, resilience: Resilience) -> Plan {
    let (family, size) = shape.split_once(' ').expect("a family and its size");
    let kind = Kind::parse(family, &[size.to_owned()]).expect("a kind");
    let topology = generate(&kind, &Options::default()).expect("a topology");
    let policy = Policy { resilience, flow_control: FlowControl::None, ..Policy::default() };
    planner::plan(&topology, &policy, None).expect("a plan")
}

/// A fabric and what its switches say.
#[derive(Clone)]
struct Scene<'a> {
    plan: &'a Plan,
    goals: Vec<SwitchConfig>,
    seen: Vec<Result<Sight, Fault>>,
    down: BTreeSet<LinkId>,
}

impl<'a> Scene<'a> {
    /// Everything is as planned.
    fn sound(plan: &'a Plan) -> Self {
        let goals: Vec<SwitchConfig> =
            plan.devices.iter().map(|intent| SwitchConfig::of_intent(&plan.topology, intent)).collect();
        let mark = Some(Mark::new(3, 1, 9));
        let up = PortSight { running: true, since: Some(HOUR) };
        let sight = |(switch, config): (SwitchId, &SwitchConfig)| {
            Ok(Sight {
                config: config.clone(),
                mark,
                station: Some(station(plan, switch)),
                ports: vec![up; config.ports.len()],
                lldp_interval: Some(Duration::from_secs(30)),
                up: Some(HOUR * 2),
            })
        };
        let seen = plan.topology.switch_ids().zip(&goals).map(sight).collect();
        Self { plan, goals, seen, down: BTreeSet::new() }
    }

    fn sight(&mut self, switch: SwitchId) -> &mut Sight {
        self.seen[switch.index()].as_mut().expect("it answers")
    }

    fn at(&self, port: PortId) -> (SwitchId, usize) {
        let switch = self.plan.topology.port(port).switch;
        (switch, port.index() - self.plan.topology.switch_ports(switch).start)
    }

    fn port(&mut self, port: PortId) -> &mut PortConfig {
        let (switch, slot) = self.at(port);
        &mut self.sight(switch).config.ports[slot]
    }

    fn set(&mut self, port: PortId, running: bool, since: Duration) {
        let (switch, slot) = self.at(port);
        if let Ok(sight) = &mut self.seen[switch.index()] {
            sight.ports[slot] = PortSight { running, since: Some(since) };
        }
    }

    /// Neither end hears the other any more.
    fn deafen(&mut self, port: PortId) {
        let (switch, slot) = self.at(port);
        if let Ok(sight) = &mut self.seen[switch.index()] {
            sight.station.as_mut().expect("SNMP").heard.retain(|heard| heard.port != slot);
        }
    }

    fn ends(&self, link: LinkId) -> [PortId; 2] {
        let link = self.plan.topology.link(link);
        [link.a, link.b]
    }

    fn is_shut(&self, port: PortId) -> bool {
        let (switch, slot) = self.at(port);
        self.seen[switch.index()].as_ref().is_ok_and(|sight| sight.config.ports[slot].admin == Admin::Down)
    }

    /// A cable dies.
    fn cut(&mut self, link: LinkId) {
        self.down.insert(link);
        for port in self.ends(link) {
            self.set(port, false, Duration::from_secs(125));
            self.deafen(port);
        }
    }

    /// A switch loses its power.
    fn power_off(&mut self, switch: SwitchId) {
        for port in self.plan.topology.port_ids(switch) {
            if let Attachment::Link(link) = self.plan.topology.port(port).attachment {
                self.cut(link);
            }
        }
        self.seen[switch.index()] = Err(Fault::Silent);
    }

    fn stored(&self, failure: Failure) -> Vec<(HostId, VlanId)> {
        let over = self.plan.failover.as_ref().and_then(|failover| failover.switch_over(failure));
        let runs = over.expect("something is stored").hosts.iter();
        runs.flat_map(|run| (run.first.index()..=run.last.index()).map(|host| (HostId::new(host), run.choice)))
            .collect()
    }

    /// Standby moves hosts as the plan stored.
    fn switch_over(&mut self, failure: Failure) {
        for (host, vlan) in self.stored(failure) {
            self.move_host(host, Some(vlan));
        }
    }

    fn move_host(&mut self, host: HostId, pvid: Option<VlanId>) {
        let port = self.plan.topology.host(host).port;
        if self.seen[self.at(port).0.index()].is_ok() {
            self.port(port).pvid = pvid;
        }
    }

    /// What standby asks of switches before it begins: the plan, but for PVIDs of hosts' ports.
    fn hold_the_plan(&self) -> bool {
        let hosts: BTreeSet<(usize, usize)> = (self.plan.topology.host_ids())
            .map(|host| self.at(self.plan.topology.host(host).port))
            .map(|(switch, slot)| (switch.index(), slot))
            .collect();
        self.seen.iter().zip(&self.goals).enumerate().all(|(switch, (seen, goal))| {
            let drifts = seen.as_ref().map_or_else(|_| Vec::new(), |sight| drift(&sight.config, goal));
            drifts
                .iter()
                .all(|drift| matches!(drift, Drift::Pvid { port, .. } if hosts.contains(&(switch, port.index()))))
        })
    }

    fn diagnoses(&self) -> Vec<Diagnosis> {
        diagnose(self.plan, &self.goals, &self.seen)
    }

    /// Every diagnosis: its sentence, what follows, and what to do.
    fn told(&self) -> Vec<String> {
        let tell = |diagnosis: &Diagnosis| {
            let config =
                diagnosis.cause.switch().and_then(|switch| Some(&self.seen[switch.index()].as_ref().ok()?.config));
            let mut lines = vec![diagnosis.sentence(self.plan)];
            lines.extend(diagnosis.consequences.iter().map(|one| format!("  {}", one.sentence(self.plan, config))));
            lines.extend(diagnosis.remedy.sentence(self.plan).map(|remedy| format!("  to do: {remedy}")));
            lines.join("\n")
        };
        self.diagnoses().iter().map(tell).collect()
    }

    /// Ordered pairs of hosts whose frames arrive, by the judge's reckoning.
    fn delivered(&self) -> usize {
        let mut plan = self.plan.clone();
        for (switch, seen) in self.plan.topology.switch_ids().zip(&self.seen) {
            // A switch that does not answer but forwards holds what it held.
            let mut config =
                seen.as_ref().map_or_else(|_| self.goals[switch.index()].clone(), |sight| sight.config.clone());
            config.ports.truncate(self.goals[switch.index()].ports.len());
            for port in self.plan.topology.port_ids(switch) {
                if let Attachment::Link(link) = self.plan.topology.port(port).attachment {
                    if self.down.contains(&link) {
                        config.ports[self.at(port).1].admin = Admin::Down;
                    }
                }
            }
            plan.devices[switch.index()] = config.to_intent(&plan.topology, &self.plan.devices[switch.index()]);
        }
        let hosts = || plan.topology.host_ids();
        let arrives = |from: HostId, to: HostId| {
            verify::walk(&plan, from, verify::Receiver::Host(to)).disposition == verify::Disposition::Delivered
        };
        hosts().flat_map(|from| hosts().map(move |to| (from, to))).filter(|(a, b)| a != b && arrives(*a, *b)).count()
    }
}

fn chassis(switch: SwitchId) -> LldpId {
    LldpId { subtype: CHASSIS_MAC, octets: vec![2, 2, 0, 0, 0, switch.index() as u8] }
}

fn port_id(name: &str) -> LldpId {
    LldpId { subtype: INTERFACE_NAME, octets: name.as_bytes().to_vec() }
}

fn station(plan: &Plan, switch: SwitchId) -> Station {
    let topology = &plan.topology;
    let ports = topology.port_ids(switch).map(|port| StationPort {
        name: topology.port(port).name.clone(),
        id: Some(port_id(&topology.port(port).name)),
        ..StationPort::default()
    });
    let heard = topology.port_ids(switch).enumerate().filter_map(|(slot, port)| {
        let Attachment::Link(link) = topology.port(port).attachment else { return None };
        let link = topology.link(link);
        let far = if link.a == port { link.b } else { link.a };
        Some(hears(plan, slot, far))
    });
    Station {
        name: topology.switch(switch).name.clone(),
        chassis: Some(chassis(switch)),
        ports: ports.collect(),
        heard: heard.collect(),
        ..Station::default()
    }
}

fn hears(plan: &Plan, slot: usize, far: PortId) -> LldpNeighbour {
    let far = plan.topology.port(far);
    LldpNeighbour {
        port: slot,
        chassis: chassis(far.switch),
        id: port_id(&far.name),
        description: String::new(),
        system: String::new(),
        capabilities: Capabilities::default(),
    }
}

/// A cable for whose failure hosts move.
fn with_moves(plan: &Plan, at_least: usize) -> LinkId {
    let failover = plan.failover.as_ref().expect("resilience");
    let moves = |over: &&fabric::SwitchOver| {
        over.hosts.iter().map(|run| run.last.index() - run.first.index() + 1).sum::<usize>() >= at_least
    };
    let Failure::Link(link) = failover.switch_overs.iter().find(moves).expect("some cable moves that many").failure
    else {
        panic!("links come first")
    };
    link
}

/// The cables for which something is stored.
fn stored_links(plan: &Plan) -> Vec<LinkId> {
    let link = |over: &fabric::SwitchOver| match over.failure {
        Failure::Link(link) => Some(link),
        Failure::Switch(_) | Failure::Group(_) => None,
    };
    plan.failover.as_ref().expect("resilience").switch_overs.iter().filter_map(link).collect()
}

/// One diagnosis, with these words in this order.
fn only(scene: &Scene<'_>, words: &[&str]) -> Diagnosis {
    let told = scene.told();
    assert_eq!(told.len(), 1, "{told:#?}");
    let mut rest = told[0].as_str();
    for word in words {
        let at = rest.find(word).unwrap_or_else(|| panic!("nobody says {word:?} after what was found: {told:#?}"));
        rest = &rest[at + word.len()..];
    }
    scene.diagnoses().remove(0)
}

#[test]
fn nothing_is_wrong_with_a_fabric_as_planned() {
    for resilience in [Resilience::None, Resilience::OneLink] {
        let plan = plan("torus 3x3", resilience);
        assert_eq!(Scene::sound(&plan).diagnoses(), []);
    }
}

#[test]
fn a_port_that_drops_the_largest_packets_is_told_with_what_it_needs() {
    let mut plan = plan("torus 3x3", Resilience::None);
    let link = LinkId::new(0);
    plan.devices.iter_mut().flat_map(|device| &mut device.ports).for_each(|port| port.mtu_bytes = 9000);
    let mut scene = Scene::sound(&plan);
    let [a, b] = scene.ends(link);
    scene.port(a).mtu_bytes = Some(9216);
    scene.port(b).mtu_bytes = Some(1500);
    let label = plan.topology.port_label(b);
    let found = only(&scene, &[&label, "an MTU of 1500 bytes", "needs 9000 (frames of 9022 bytes", "a smaller --mtu"]);
    assert_eq!(found.remedy, Remedy::RaiseMtu);
    scene.port(b).mtu_bytes = Some(9000);
    assert_eq!(scene.diagnoses(), []);
}

#[test]
fn a_cable_that_deploy_left_shut_waits_for_somebody_to_confirm_it() {
    let plan = plan("torus 3x3", Resilience::OneLink);
    let link = with_moves(&plan, 1);
    let mut scene = Scene::sound(&plan);
    for port in scene.ends(link) {
        scene.port(port).admin = Admin::Down;
        scene.set(port, false, HOUR);
        scene.deafen(port);
    }
    let [a, b] = scene.ends(link).map(|port| plan.topology.port_label(port));
    let told = format!("--trust-cabling {a}--{b}");
    let found = only(&scene, &["1 cable is administratively down at both ends", &a, &b, "to do: turn LLDP on", &told]);
    assert_eq!(found.remedy, Remedy::Confirm(link));
    // One end alone is a difference as before.
    scene.port(scene.ends(link)[0]).admin = Admin::Up;
    only(&scene, &["1 difference from the plan", "deploy again"]);
    // While another cable is down, nothing is to be deployed, and standby would not begin.
    scene.port(scene.ends(link)[0]).admin = Admin::Down;
    let dead = stored_links(&plan).into_iter().find(|one| *one != link);
    scene.cut(dead.expect("another cable"));
    let remedies: Vec<Remedy> = scene.diagnoses().into_iter().map(|found| found.remedy).collect();
    assert!(
        matches!(&remedies[..], [Remedy::Repair(cut), Remedy::AfterRepairs { links, .. }] if Some(*cut) == dead && links == &[*cut]),
        "{remedies:?}"
    );
}

#[test]
fn the_answer_to_a_dead_cable_is_no_difference() {
    let plan = plan("torus 3x3", Resilience::OneLink);
    let link = with_moves(&plan, 1);
    let label = plan.topology.link_label(link);
    let mut scene = Scene::sound(&plan);
    scene.cut(link);
    let mut held = scene.clone();
    held.switch_over(Failure::Link(link));
    let diagnosis = only(
        &held,
        &[
            &label,
            "is down",
            "no carrier at either end for 2 min 5 s",
            "is on VLAN",
            "instead of",
            "nothing to do on the switches",
            "repair or replace the cable",
        ],
    );
    assert_eq!((diagnosis.urgency, diagnosis.remedy), (Urgency::Act, Remedy::Repair(link)));

    // Nobody has moved anybody.
    let diagnosis = only(&scene, &[&label, "is down", "to move", "start espalier standby", "repair or replace"]);
    assert_eq!(diagnosis.remedy, Remedy::StandbyAndRepair(link));
}

#[test]
fn an_answer_that_is_in_force_in_part_is_said_so() {
    let plan = plan("torus 4x4", Resilience::OneLink);
    let link = with_moves(&plan, 2);
    let mut scene = Scene::sound(&plan);
    scene.cut(link);
    let stored = scene.stored(Failure::Link(link));
    scene.move_host(stored[0].0, Some(stored[0].1));
    only(&scene, &["is in force on 1 of", "still hold", "standby would move the others", "start espalier standby"]);
    // The others are stopped.
    for (host, _) in &stored[1..] {
        scene.move_host(*host, None);
    }
    only(&scene, &["is in force on 1 of", "no untagged frames for now", "none waits"]);
}

#[test]
fn the_answer_to_a_dead_switch_is_no_difference() {
    let plan = plan("torus 4x4", Resilience::OneSwitch);
    let failover = plan.failover.as_ref().expect("resilience");
    // One that moves other hosts than any cable's.
    let is_distinct = |over: &&fabric::SwitchOver| {
        let alike = failover.switch_overs.iter().filter(|other| other.hosts == over.hosts);
        matches!(over.failure, Failure::Switch(_)) && alike.count() == 1
    };
    let failure = failover.switch_overs.iter().find(is_distinct).expect("some switch is passed").failure;
    let Failure::Switch(switch) = failure else { unreachable!("found above") };
    let name = failure.label(&plan.topology);
    let mut scene = Scene::sound(&plan);
    scene.power_off(switch);
    let waiting =
        only(&scene, &[&name, "it is off, or restarting", "have no carrier", "to move as the plan stored", &name]);
    let is_missing =
        |one: &Consequence| matches!(one, Consequence::NotMoved { failure: found, .. } if *found == failure);
    assert!(waiting.consequences.iter().any(is_missing), "{waiting:?}");
    scene.switch_over(failure);
    let answered =
        only(&scene, &[&name, "it is off, or restarting", "the plan's answer to the failure of", &name, "is in force"]);
    let is_in_force =
        |one: &Consequence| matches!(one, Consequence::InForce { failure: found, .. } if *found == failure);
    assert!(answered.consequences.iter().any(is_in_force), "{answered:?}");
    // It is back, and hosts are where they were sent.
    let mut back = Scene::sound(&plan);
    back.switch_over(failure);
    let found =
        only(&back, &[&name, "has a cable that carries", "hosts' ports still hold what is stored for its failure"]);
    assert_eq!((found.cause.switch(), found.remedy), (Some(switch), Remedy::Standby));
}

/// Switches of a power feed that are off, and cables of a line card that are down, are each told with the answer to the group.
#[test]
fn the_answer_to_a_dead_group_is_no_difference() {
    let kind = Kind::parse("torus", &["4x4".to_owned()]).expect("a kind");
    let mut builder = TopologyBuilder::of(&generate(&kind, &Options::default()).expect("a topology"));
    builder.add_group("feed-a", &[SwitchId::new(0), SwitchId::new(1)], &[]).expect("a fresh name");
    builder.add_group("card-3", &[], &[LinkId::new(8), LinkId::new(20)]).expect("a fresh name");
    let topology = builder.finish().expect("connected");
    let policy = Policy { resilience: Resilience::OneGroup, flow_control: FlowControl::None, ..Policy::default() };
    let plan = planner::plan(&topology, &policy, None).expect("a plan");
    for group in topology.group_ids() {
        let failure = Failure::Group(group);
        let Group { switches, links, .. } = topology.group(group);
        let mut scene = Scene::sound(&plan);
        switches.iter().for_each(|switch| scene.power_off(*switch));
        links.iter().for_each(|link| scene.cut(*link));
        let told = |scene: &Scene<'_>, is_answer: &dyn Fn(&Consequence) -> bool| {
            let found = scene.diagnoses();
            assert_eq!(found.len(), switches.len() + links.len(), "{:#?}", scene.told());
            assert!(found.iter().all(|one| one.consequences.iter().any(is_answer)), "{:#?}", scene.told());
        };
        scene.switch_over(failure);
        told(&scene, &|one| matches!(one, Consequence::InForce { failure: found, .. } if *found == failure));
        assert!(scene.told()[0].contains(&format!("the failure of {} is in force", failure.label(&topology))));
        let (host, _) = scene.stored(failure)[0];
        if scene.seen[topology.switch_of(host).index()].is_ok() {
            scene.move_host(host, Some(plan.assignment.broadcast(host)));
            told(&scene, &|one| matches!(one, Consequence::PartlyInForce { failure: found, .. } if *found == failure));
        }
        let failover = plan.failover.as_ref().expect("ready");
        let own = failover.switch_over(failure).expect("stored");
        if failover.switch_overs.iter().filter(|over| over.hosts == own.hosts).count() == 1 {
            let mut back = Scene::sound(&plan);
            back.switch_over(failure);
            only(&back, &[&failure.label(&topology), "has a cable that carries", "still hold what is stored"]);
        }
    }
}

#[test]
fn a_second_failure_and_cables_without_answers_are_told() {
    let ready = plan("torus 3x3", Resilience::OneLink);
    let first = with_moves(&ready, 1);
    let mut scene = Scene::sound(&ready);
    let stored = stored_links(&ready);
    let second = *stored.iter().find(|link| **link != first).expect("another");
    scene.cut(first);
    scene.switch_over(Failure::Link(first));
    scene.cut(second);
    let told = scene.told();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told.iter().any(|one| one.contains("nothing is stored for two failures at once")), "{told:#?}");
    assert!(told.iter().all(|one| !one.contains("deploy again")), "{told:#?}");

    let plain = plan("torus 3x3", Resilience::None);
    let mut scene = Scene::sound(&plain);
    scene.cut(first);
    only(&scene, &["is down", "the plan stores nothing for failures", "repair or replace"]);

    let line = plan("tree fanout=2,depth=2", Resilience::OneLink);
    let mut scene = Scene::sound(&line);
    let link = line.topology.link_ids().next().expect("a cable");
    scene.cut(link);
    only(&scene, &["is down", "nothing runs beside it", "repair or replace"]);
}

/// What carries no frames may be pulled out: its being down is told, and nobody is cut off by it.
#[test]
fn a_drained_cable_that_is_down_is_needed_by_nobody() {
    let mut plan = plan("torus 3x3", Resilience::None);
    let link = LinkId::new(0);
    plan.policy.drain.links.insert(link);
    let mut scene = Scene::sound(&plan);
    scene.cut(link);
    let diagnosis = only(&scene, &["is down"]);
    assert_eq!(diagnosis.consequences, [Consequence::NotNeeded]);
}

#[test]
fn hosts_that_were_left_elsewhere_are_for_standby() {
    let plan = plan("torus 4x4", Resilience::OneLink);
    let link = with_moves(&plan, 2);
    let mut scene = Scene::sound(&plan);
    scene.switch_over(Failure::Link(link));
    let diagnosis = only(&scene, &["carries for 1 h 0 min", "still hold what is stored", "start espalier standby"]);
    assert!(matches!(diagnosis.cause, Cause::Lingering { .. }));
    let (host, _) = scene.stored(Failure::Link(link))[0];
    scene.move_host(host, None);
    only(&scene, &["in the middle of a change that no standby finished", "start espalier standby"]);
}

#[test]
fn a_dead_switch_takes_its_cables_and_hosts_with_it() {
    for resilience in [Resilience::None, Resilience::OneLink] {
        let plan = plan("torus 3x3", resilience);
        let switch = SwitchId::new(4);
        let mut scene = Scene::sound(&plan);
        scene.power_off(switch);
        let diagnosis = only(
            &scene,
            &["does not answer and none of its cables has a carrier", "4 cables have no carrier", "1 host", "power"],
        );
        assert!(matches!(diagnosis.cause, Cause::SwitchDown { .. }));
    }
}

#[test]
fn a_switch_whose_management_is_lost_is_not_called_dead() {
    let plan = plan("torus 3x3", Resilience::OneLink);
    let mut scene = Scene::sound(&plan);
    scene.seen[4] = Err(Fault::Silent);
    let diagnosis = only(&scene, &["does not answer", "to do: see whether its management address"]);
    assert!(matches!(diagnosis.cause, Cause::Unreachable { .. }));
    scene.seen[4] = Err(Fault::Refused("no dot1qVlanStaticTable: use SSH".to_owned()));
    only(&scene, &["no dot1qVlanStaticTable: use SSH"]);
    // A cable of it may be dead all the same.
    let link = plan.topology.link_ids().find(|link| {
        let link = plan.topology.link(*link);
        plan.topology.port(link.a).switch == SwitchId::new(4)
    });
    scene.cut(link.expect("a cable"));
    let told = scene.told();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told.iter().any(|one| one.contains("no cable, or the far end is off")), "{told:#?}");
}

#[test]
fn differences_without_a_cause_are_for_deploy_unless_that_hurts() {
    let plan = plan("torus 3x3", Resilience::OneLink);
    let switch = SwitchId::new(2);
    let mut scene = Scene::sound(&plan);
    scene.sight(switch).config.spanning_tree = SpanningTree::On;
    let name = plan.topology.switch(switch).name.clone();
    only(&scene, &[&format!("{name}: 1 difference from the plan"), "spanning tree is on", "to do: deploy again"]);

    let link = with_moves(&plan, 1);
    scene.cut(link);
    scene.switch_over(Failure::Link(link));
    let told = scene.told();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told.iter().all(|one| !one.contains("deploy again")), "{told:#?}");
    assert!(told[1].contains("first repair") && told[1].contains(&plan.topology.link_label(link)), "{told:#?}");

    // A host's port with a PVID that nothing explains is a difference beside the moves.
    let mut scene = Scene::sound(&plan);
    scene.cut(link);
    scene.switch_over(Failure::Link(link));
    let moved: BTreeSet<HostId> = scene.stored(Failure::Link(link)).into_iter().map(|(host, _)| host).collect();
    let other = plan.topology.host_ids().find(|host| !moved.contains(host)).expect("somebody stays");
    scene.move_host(other, Some(VlanId::MAX));
    let told = scene.told();
    assert!(told.len() == 2 && told[1].contains("has PVID 4094 instead of"), "{told:#?}");
}

#[test]
fn switches_that_were_reset_or_hold_another_deployment_are_told() {
    let plan = plan("torus 3x3", Resilience::OneLink);
    let switch = SwitchId::new(5);
    let mut scene = Scene::sound(&plan);
    let names: Vec<String> = scene.goals[5].ports.iter().map(|port| port.name.clone()).collect();
    scene.sight(switch).config = SwitchConfig::out_of_the_box(names);
    scene.sight(switch).mark = None;
    scene.sight(switch).up = Some(Duration::from_secs(40));
    only(&scene, &["holds nothing of the plan (up for 40 s)", "reset or replaced", "to do: deploy again"]);

    let mut scene = Scene::sound(&plan);
    scene.sight(switch).mark = Some(Mark::new(2, 5, 4));
    scene.sight(switch).config.entries.clear();
    only(&scene, &["holds generation 2 of the deployment and most others generation 3", "is missing", "deploy again"]);
}

#[test]
fn a_deployment_under_way_is_not_a_fault_of_every_switch() {
    let plan = plan("torus 3x3", Resilience::OneLink);
    let mut scene = Scene::sound(&plan);
    for port in (0..plan.topology.ports().len()).map(PortId::new) {
        scene.port(port).admin = Admin::Down;
        scene.set(port, false, Duration::from_secs(3));
    }
    only(&scene, &["administratively down on 9 switches", "under way, or was interrupted", "deploy --resume"]);
    // One port of one switch is somebody's doing.
    let mut scene = Scene::sound(&plan);
    let link = plan.topology.link_ids().next().expect("a cable");
    let [a, b] = scene.ends(link);
    scene.port(a).admin = Admin::Down;
    scene.set(a, false, HOUR);
    scene.set(b, false, HOUR);
    only(&scene, &["1 difference from the plan", "is administratively down", "to do: deploy again"]);
}

#[test]
fn not_heard_yet_is_told_from_no_cable_and_from_no_lldp() {
    let plan = plan("torus 3x3", Resilience::OneLink);
    let link = plan.topology.link_ids().next().expect("a cable");
    let mut scene = Scene::sound(&plan);
    for port in scene.ends(link) {
        scene.deafen(port);
        scene.set(port, true, Duration::from_secs(2));
    }
    let diagnosis =
        only(&scene, &["1 cable is not heard yet by LLDP (up for 2 s, LLDP every 30 s)", "ask again in 1 min 29 s"]);
    assert_eq!(diagnosis.urgency, Urgency::Wait);

    for port in scene.ends(link) {
        scene.set(port, true, Duration::from_secs(90));
    }
    only(&scene, &["1 cable is up, but neither end hears the other by LLDP", "unmanaged switch between"]);

    let mut one_way = Scene::sound(&plan);
    one_way.deafen(one_way.ends(link)[1]);
    only(&one_way, &["hears", "by LLDP, but not the other way round"]);
}

#[test]
fn swapped_plugs_are_told_and_nothing_is_deployed_meanwhile() {
    let plan = plan("torus 3x3", Resilience::OneLink);
    let mut scene = Scene::sound(&plan);
    let links: Vec<LinkId> = plan.topology.link_ids().collect();
    let (first, second) = (scene.ends(links[0]), scene.ends(links[7]));
    // The second plugs of two cables are exchanged.
    for [here, there] in [[first[0], second[1]], [second[0], first[1]]] {
        for (port, far) in [(here, there), (there, here)] {
            let (switch, slot) = scene.at(port);
            scene.deafen(port);
            let heard = hears(&plan, slot, far);
            scene.sight(switch).station.as_mut().expect("SNMP").heard.push(heard);
        }
    }
    scene.sight(SwitchId::new(8)).config.entries.clear();
    let told = scene.told();
    assert!(told.len() == 2 && told[0].contains("two cables are swapped"), "{told:#?}");
    assert!(told[1].contains("move the plugs to their ports") && !told[1].contains("deploy again"), "{told:#?}");
}

#[test]
fn hosts_that_are_off_are_a_note() {
    let plan = plan("torus 3x3", Resilience::OneLink);
    let mut scene = Scene::sound(&plan);
    scene.set(plan.topology.hosts()[3].port, false, HOUR);
    let diagnosis = only(&scene, &["1 host has no carrier: off, or unplugged"]);
    assert_eq!(diagnosis.urgency, Urgency::Note);
}

#[test]
fn times_read_as_people_say_them() {
    for (s, expect) in [(2, "2 s"), (125, "2 min 5 s"), (11_400, "3 h 10 min"), (432_000, "5 days")] {
        assert_eq!(span(Duration::from_secs(s)), expect);
    }
}

#[test]
fn switches_behind_a_dead_cable_of_their_own_management_follow_from_it() {
    let kind = Kind::parse("torus", &["3x3".to_owned()]).expect("a kind");
    let topology = generate(&kind, &Options::default()).expect("a topology");
    let mut builder = fabric::TopologyBuilder::of(&topology);
    let controller = builder.add_port(SwitchId::new(0), "ctl").expect("a port");
    builder.set_in_band(fabric::InBand { vlan: VlanId::MIN, controller }).expect("management");
    let topology = builder.finish().expect("a topology");
    let policy = Policy { flow_control: FlowControl::None, ..Policy::default() };
    let plan = planner::plan(&topology, &policy, None).expect("a plan");
    let tree = topology.in_band().expect("management").links(&plan.topology, &plan.devices);
    let mut scene = Scene::sound(&plan);
    // The last switch of the tree hangs on one cable of it.
    let degree = |switch: SwitchId| {
        let ends = tree.iter().flat_map(|link| scene.ends(*link)).map(|port| plan.topology.port(port).switch);
        ends.filter(|end| *end == switch).count()
    };
    let leaf = plan.topology.switch_ids().skip(1).find(|switch| degree(*switch) == 1).expect("a leaf");
    let link = *tree
        .iter()
        .find(|link| scene.ends(**link).iter().any(|port| plan.topology.port(*port).switch == leaf))
        .expect("its cable");
    scene.cut(link);
    scene.seen[leaf.index()] = Err(Fault::Silent);
    let name = plan.topology.switch(leaf).name.clone();
    only(&scene, &["is down", "1 switch is managed over it, and cannot be asked", &name, "repair or replace"]);
}

/// Follows an advice as a person would, and standby as it runs.
fn follow(scene: &mut Scene<'_>, diagnosis: &Diagnosis) {
    match &diagnosis.remedy {
        Remedy::DeployAgain => {
            for (seen, goal) in scene.seen.iter_mut().zip(&scene.goals) {
                seen.as_mut().expect("all switches answer, or nothing is deployed").config = goal.clone();
            }
        }
        Remedy::Repair(link) => {
            scene.down.remove(link);
        }
        Remedy::Confirm(_) => {
            let ends: Vec<PortId> = scene.plan.topology.link_ids().flat_map(|link| scene.ends(link)).collect();
            for port in ends.into_iter().filter(|port| scene.is_shut(*port)).collect::<Vec<_>>() {
                scene.port(port).admin = Admin::Up;
            }
        }
        Remedy::StandbyAndRepair(link) => {
            assert!(scene.hold_the_plan(), "standby would refuse to begin");
            let moves = diagnosis.consequences.iter().any(|consequence| {
                matches!(consequence, Consequence::NotMoved { .. } | Consequence::PartlyInForce { .. })
            });
            if moves {
                scene.switch_over(Failure::Link(*link));
            }
        }
        Remedy::Standby => {
            assert!(scene.hold_the_plan(), "standby would refuse to begin");
            let fabric::Assignment::Source(home) = &scene.plan.assignment else { panic!("switch-tagged") };
            for (host, vlan) in home.clone().into_iter().enumerate() {
                scene.move_host(HostId::new(host), Some(vlan));
            }
        }
        _ => {}
    }
}

fn storm(scene: &mut Scene<'_>, rng: &mut Rng) {
    let plan = scene.plan;
    let links: Vec<LinkId> = plan.topology.link_ids().collect();
    let stored: Vec<LinkId> = stored_links(plan);
    let pick = |rng: &mut Rng, from: &[LinkId]| from[rng.below(from.len())];
    for _ in 0..=rng.below(3) {
        match rng.below(9) {
            0 | 1 => {
                let link = pick(rng, &links);
                scene.cut(link);
            }
            // Standby has moved hosts, all or some, for a cable that is dead or not.
            2 | 3 => {
                let link = pick(rng, &stored);
                if rng.below(4) > 0 {
                    scene.cut(link);
                }
                for (host, vlan) in scene.stored(Failure::Link(link)) {
                    match rng.below(6) {
                        0 => scene.move_host(host, None),
                        1 => {}
                        _ => scene.move_host(host, Some(vlan)),
                    }
                }
            }
            4 => {
                let switch = SwitchId::new(rng.below(plan.topology.switches().len()));
                if rng.below(2) == 0 {
                    scene.power_off(switch)
                } else {
                    scene.seen[switch.index()] = Err(Fault::Silent)
                }
            }
            // A deployment left a cable shut.
            8 => {
                let link = pick(rng, &links);
                for (switch, slot) in scene.ends(link).map(|port| scene.at(port)) {
                    if let Ok(sight) = &mut scene.seen[switch.index()] {
                        sight.config.ports[slot].admin = Admin::Down;
                    }
                }
            }
            // Somebody writes.
            kind => {
                let at = rng.below(plan.topology.switches().len());
                let Ok(sight) = &mut scene.seen[at] else { continue };
                let key = sight.config.entries.keys().next().copied();
                match (kind, key) {
                    (5, Some(key)) => _ = sight.config.entries.remove(&key),
                    (6, Some(key)) => _ = sight.config.entries.insert(key, Slot::new(0)),
                    _ => sight.config.ports[0].pvid = Some(VlanId::MAX),
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Whatever went wrong, no advice loses a pair of hosts that had its frames delivered, by the judge's walks; and the plan is not to be
    /// deployed while a cable that it uses is down, or a switch does not answer.
    #[test]
    fn no_advice_makes_matters_worse(seed in any::<u64>()) {
        let plan = plan("torus 3x3", Resilience::OneLink);
        let mut scene = Scene::sound(&plan);
        storm(&mut scene, &mut Rng::new(seed));
        let before = scene.delivered();
        for diagnosis in scene.diagnoses() {
            let told = diagnosis.sentence(&plan);
            if diagnosis.remedy == Remedy::DeployAgain {
                prop_assert!(scene.down.is_empty() && scene.seen.iter().all(Result::is_ok), "seed {seed}: {told}");
            }
            let says = diagnosis.remedy.sentence(&plan).is_some_and(|words| words.contains("deploy again"));
            prop_assert_eq!(says, diagnosis.remedy == Remedy::DeployAgain);
            let mut after = scene.clone();
            follow(&mut after, &diagnosis);
            let left = after.delivered();
            prop_assert!(left >= before, "seed {seed}: {told}: {before} pairs before, {left} after {:?}", diagnosis.remedy);
        }
    }
}
