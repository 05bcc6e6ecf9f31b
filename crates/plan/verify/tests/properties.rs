//! The judge against a simulator that is too simple to be wrong: one frame, a queue of arrivals, no graph theory.

mod common;

use std::collections::{BTreeMap, VecDeque};

use common::{Wish, plan, topology, vlan};
use fabric::{
    Admin, Attachment, FdbEntry, FdbMode, FindingKind, Flood, FloodKind, FloodSet, HostId, Mac, Plan, PortId,
    PortIntent, Severity, Tagging, VlanId,
};
use proptest::{prelude::*, test_runner::FileFailurePersistence};
use verify::{Disposition, Receiver, check, walk};

/// Arrivals after which a frame must be looping: far more than copies can exist on these graphs without a loop.
const ARRIVALS_MAX: usize = 3000;

/// What the simulator sees of one frame.
#[derive(Default)]
struct Seen {
    deliveries: BTreeMap<HostId, u64>,
    flooded: bool,
    endless: bool,
}

fn intent(plan: &Plan, port: PortId) -> &PortIntent {
    plan.devices.iter().flat_map(|device| &device.ports).find(|intent| intent.port == port).unwrap()
}

fn simulate(plan: &Plan, source: HostId, receiver: Receiver) -> Seen {
    let mut seen = Seen::default();
    let topology = &plan.topology;
    let tag = match (plan.policy.tagging, receiver) {
        (Tagging::Switch, _) => None,
        (_, Receiver::Host(to)) => Some(plan.assignment.unicast(source, to)),
        (_, Receiver::Everybody | Receiver::Nobody) => Some(plan.assignment.broadcast(source)),
    };
    let mac = match receiver {
        Receiver::Host(host) => topology.host(host).mac,
        Receiver::Everybody => Mac::BROADCAST,
        Receiver::Nobody => Mac::local(0x00ff_ffff),
    };
    let kind = match receiver {
        Receiver::Everybody => FloodKind::Broadcast,
        Receiver::Host(_) | Receiver::Nobody => FloodKind::UnknownUnicast,
    };
    let mut queue = VecDeque::from([(topology.host(source).port, tag)]);
    let mut arrivals = 0;
    while let Some((ingress, tag)) = queue.pop_front() {
        arrivals += 1;
        if arrivals > ARRIVALS_MAX {
            seen.endless = true;
            break;
        }
        let at = intent(plan, ingress);
        let Some(vlan) = tag.or(at.pvid) else { continue };
        if at.admin == Admin::Down || !at.is_member(vlan) {
            continue;
        }
        let device = &plan.devices[topology.port(ingress).switch.index()];
        let entry = device.fdb_entries(topology).find(|entry| entry.vlan == vlan && entry.mac == mac);
        let out: Vec<&PortIntent> = match entry {
            Some(entry) => device.ports.iter().filter(|port| port.port == entry.port).collect(),
            None => device.ports.iter().filter(|port| !port.blocked.contains(kind)).collect(),
        };
        seen.flooded |= entry.is_none();
        for port in out {
            if port.port == ingress || port.admin == Admin::Down || !port.is_member(vlan) {
                continue;
            }
            let tag = if port.untagged.contains(vlan) { None } else { Some(vlan) };
            match topology.port(port.port).attachment {
                Attachment::Nothing | Attachment::Member(_) => {}
                Attachment::Host(_) if tag.is_some() && plan.policy.tagging == Tagging::Switch => {}
                Attachment::Host(host) => *seen.deliveries.entry(host).or_default() += 1,
                Attachment::Link(link) => {
                    let link = topology.link(link);
                    queue.push_back((if link.a == port.port { link.b } else { link.a }, tag));
                }
            }
        }
    }
    seen
}

fn frames(plan: &Plan) -> impl Iterator<Item = (HostId, Receiver)> + '_ {
    let hosts = plan.topology.host_ids();
    hosts.flat_map(move |source| {
        let one = plan.topology.host_ids().filter(move |to| *to != source).map(Receiver::Host);
        one.chain([Receiver::Everybody, Receiver::Nobody]).map(move |receiver| (source, receiver))
    })
}

/// Whether a frame does exactly what the plan promises.
fn is_right(plan: &Plan, source: HostId, receiver: Receiver, seen: &Seen) -> bool {
    let dropped = plan.policy.flood.blocked();
    let wanted: BTreeMap<HostId, u64> = match receiver {
        Receiver::Host(to) => BTreeMap::from([(to, 1)]),
        Receiver::Everybody if dropped.contains(FloodKind::Broadcast) => BTreeMap::new(),
        // None of these topologies has an edge port.
        Receiver::Nobody if plan.policy.flood >= Flood::Edge => BTreeMap::new(),
        Receiver::Everybody | Receiver::Nobody => {
            plan.topology.host_ids().filter(|to| *to != source).map(|to| (to, 1)).collect()
        }
    };
    let flood_is_right = !matches!(receiver, Receiver::Host(_));
    !seen.endless && seen.deliveries == wanted && (flood_is_right || !seen.flooded)
}

fn is_about_frames(kind: FindingKind) -> bool {
    use FindingKind::*;
    matches!(kind, Loop | BroadcastLoop | Flood | Drop | WrongDelivery | DuplicateDelivery | MissedBroadcast)
}

/// One way to damage device state; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Damage {
    RemoveRun(usize, usize),
    Retarget(usize, usize, usize),
    Shorten(usize, usize),
    Pvid(usize, Option<usize>),
    ToggleTagged(usize, usize),
    ToggleUntagged(usize, usize),
    SwapForm(usize, usize),
    Shut(usize),
    ToggleLink(usize, usize),
    BroadcastEntry(usize, usize, usize),
    Block(usize, FloodKind),
}

fn damages() -> impl Strategy<Value = Damage> {
    let n = 0..1000_usize;
    prop_oneof![
        (n.clone(), n.clone()).prop_map(|(a, b)| Damage::RemoveRun(a, b)),
        (n.clone(), n.clone(), n.clone()).prop_map(|(a, b, c)| Damage::Retarget(a, b, c)),
        (n.clone(), n.clone()).prop_map(|(a, b)| Damage::Shorten(a, b)),
        (n.clone(), proptest::option::of(n.clone())).prop_map(|(a, b)| Damage::Pvid(a, b)),
        (n.clone(), n.clone()).prop_map(|(a, b)| Damage::ToggleTagged(a, b)),
        (n.clone(), n.clone()).prop_map(|(a, b)| Damage::ToggleUntagged(a, b)),
        (n.clone(), n.clone()).prop_map(|(a, b)| Damage::SwapForm(a, b)),
        n.clone().prop_map(Damage::Shut),
        (n.clone(), n.clone()).prop_map(|(a, b)| Damage::ToggleLink(a, b)),
        (n.clone(), n.clone(), n.clone()).prop_map(|(a, b, c)| Damage::BroadcastEntry(a, b, c)),
        (n, proptest::sample::select(FloodKind::ALL)).prop_map(|(a, kind)| Damage::Block(a, kind)),
    ]
}

fn apply(plan: &mut Plan, damage: &Damage) {
    let vlans: Vec<VlanId> = plan.trees.iter().map(|tree| tree.vlan).collect();
    let pick = |number: usize| vlans[number % vlans.len()];
    let ports = plan.topology.ports().len();
    match *damage {
        Damage::RemoveRun(switch, run) => {
            with_run(plan, switch, run, |fdb, run| {
                fdb.remove(run);
            });
        }
        Damage::Retarget(switch, run, port) => {
            let own = &plan.devices[switch % plan.devices.len()].ports;
            let port = own[port % own.len()].port;
            with_run(plan, switch, run, |fdb, run| fdb[run].port = port);
        }
        Damage::Shorten(switch, run) => with_run(plan, switch, run, |fdb, run| {
            if fdb[run].first < fdb[run].last {
                fdb[run].last = HostId::new(fdb[run].last.index() - 1);
            }
        }),
        Damage::Pvid(port, to) => change(plan, port, |port| port.pvid = to.map(pick)),
        Damage::ToggleTagged(port, vlan) => change(plan, port, |port| toggle(&mut port.tagged, pick(vlan))),
        Damage::ToggleUntagged(port, vlan) => change(plan, port, |port| toggle(&mut port.untagged, pick(vlan))),
        Damage::SwapForm(port, vlan) => change(plan, port, |port| {
            if port.is_member(pick(vlan)) {
                toggle(&mut port.tagged, pick(vlan));
                toggle(&mut port.untagged, pick(vlan));
            }
        }),
        Damage::Block(port, kind) => change(plan, port, |port| {
            let kind = FloodSet::NONE.with(kind);
            port.blocked =
                if port.blocked.and(kind).is_empty() { port.blocked.or(kind) } else { port.blocked.without(kind) };
        }),
        Damage::Shut(port) => change(plan, port, |port| port.admin = Admin::Down),
        Damage::ToggleLink(link, vlan) if !plan.topology.links().is_empty() => {
            let link = plan.topology.links()[link % plan.topology.links().len()];
            for port in [link.a, link.b] {
                change(plan, port.index() % ports, |port| toggle(&mut port.tagged, pick(vlan)));
            }
        }
        Damage::ToggleLink(..) => {}
        Damage::BroadcastEntry(switch, vlan, port) => {
            let count = plan.devices.len();
            let device = &mut plan.devices[switch % count];
            let port = device.ports[port % device.ports.len()].port;
            device.foreign.push(FdbEntry { vlan: pick(vlan), mac: Mac::BROADCAST, port });
        }
    }
}

fn with_run(plan: &mut Plan, switch: usize, run: usize, act: impl FnOnce(&mut Vec<fabric::FdbRun>, usize)) {
    let count = plan.devices.len();
    let fdb = &mut plan.devices[switch % count].fdb;
    if !fdb.is_empty() {
        let run = run % fdb.len();
        act(fdb, run);
    }
}

fn change(plan: &mut Plan, port: usize, act: impl FnOnce(&mut PortIntent)) {
    let port = PortId::new(port % plan.topology.ports().len());
    act(plan.devices.iter_mut().flat_map(|device| &mut device.ports).find(|intent| intent.port == port).unwrap());
}

fn toggle(vlans: &mut fabric::VlanSet, vlan: VlanId) {
    if !vlans.remove(vlan) {
        vlans.insert(vlan);
    }
}

prop_compose! {
    /// A connected graph of up to six switches with at least two hosts, in any tagging mode; floods are dropped in one of
    /// these ways.
    fn plans(floods: &'static [Flood])(
        hosts in proptest::collection::vec(0..3_usize, 1..7),
        parents in proptest::collection::vec(0..100_usize, 6),
        extra in proptest::collection::vec((0..100_usize, 0..100_usize), 0..5),
        tagging in proptest::sample::select(Tagging::ALL),
        fdb in proptest::sample::select(&[FdbMode::Full, FdbMode::Minimal][..]),
        flood in proptest::sample::select(floods),
    ) -> Plan {
        let mut hosts = hosts;
        hosts[0] = 2;
        let count = hosts.len();
        let spanning = (1..count).map(|switch| (parents[switch - 1] % switch, switch));
        let loops = extra.iter().map(|(a, b)| (a % count, b % count)).filter(|(a, b)| a != b);
        let links: Vec<(usize, usize)> = spanning.chain(loops).collect();
        plan(&topology(&hosts, &links), Wish { fdb, flood, ..Wish::tagged_by(tagging) })
    }
}

/// A failing case's seed is printed and kept beside this file, where the next run tries it first.
fn config() -> ProptestConfig {
    let persistence = FileFailurePersistence::WithSource("regressions");
    ProptestConfig { cases: 1000, failure_persistence: Some(Box::new(persistence)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn correct_plans_are_clean(plan in plans(Flood::ALL)) {
        let report = check(&plan);
        prop_assert!(report.findings().iter().all(|finding| finding.severity == Severity::Note), "{report}");
        for (source, receiver) in frames(&plan) {
            prop_assert!(is_right(&plan, source, receiver, &simulate(&plan, source, receiver)));
        }
    }

    #[test]
    fn the_judge_sees_what_frames_do(plan in plans(&[Flood::Forward]), damages in proptest::collection::vec(damages(), 1..4)) {
        let mut plan = plan;
        // No pair of hosts needs unknown unicast, and nobody walks multicasts.
        let is_walked = |damage: &&Damage| !matches!(damage, Damage::Block(_, FloodKind::UnknownUnicast | FloodKind::Multicast));
        damages.iter().filter(is_walked).for_each(|damage| apply(&mut plan, damage));
        let report = check(&plan);
        let right = frames(&plan).all(|(source, receiver)| {
            is_right(&plan, source, receiver, &simulate(&plan, source, receiver))
        });
        prop_assert!(right || !report.is_deployable(), "{damages:?} passed:\n{report}");
        let accused = report.findings().iter().any(|finding| is_about_frames(finding.kind));
        prop_assert_eq!(accused, !right, "{:?}:\n{}", damages, report);
        prop_assert_eq!(check(&plan.clone()), report);
    }

    #[test]
    fn a_walk_is_what_the_simulator_sees(plan in plans(Flood::ALL), damages in proptest::collection::vec(damages(), 0..4)) {
        let mut plan = plan;
        damages.iter().for_each(|damage| apply(&mut plan, damage));
        for (source, receiver) in frames(&plan) {
            let (walk, seen) = (walk(&plan, source, receiver), simulate(&plan, source, receiver));
            let looped = matches!(walk.disposition, Disposition::Looped { .. });
            prop_assert_eq!(looped, seen.endless, "{:#?}", walk.lines(&plan.topology));
            if !looped {
                prop_assert_eq!(&walk.deliveries, &seen.deliveries, "{:#?}", walk.lines(&plan.topology));
            }
            let delivered = matches!(walk.disposition, Disposition::Delivered);
            if matches!(receiver, Receiver::Host(_)) {
                prop_assert_eq!(delivered, is_right(&plan, source, receiver, &seen));
            }
        }
    }

    #[test]
    fn broken_plans_are_judged_without_a_panic(plan in plans(Flood::ALL), cut in 0..12_usize) {
        let mut plan = plan;
        match cut {
            0 => plan.devices.clear(),
            1 => plan.trees.clear(),
            2 => plan.addresses.clear(),
            3 => plan.bound.lengths.push(1),
            4 => plan.certificate = Some(fabric::Certificate { rank: vec![vec![0; 3]; 300] }),
            5 => plan.devices.iter_mut().for_each(|device| device.ports.clear()),
            6 => plan.devices.iter_mut().for_each(|device| device.switch = fabric::SwitchId::new(u32::MAX as usize)),
            7 => plan.assignment = fabric::Assignment::Pair { unicast: vec![std::sync::Arc::default()], broadcast: Vec::new() },
            8 => plan.assignment = fabric::Assignment::Source(Vec::new()),
            9 => plan.devices.iter_mut().flat_map(|device| &mut device.fdb).for_each(|run| {
                (run.first, run.last) = (HostId::new(u32::MAX as usize), HostId::new(0));
            }),
            10 => plan.devices.iter_mut().flat_map(|device| &mut device.fdb).for_each(|run| {
                run.port = PortId::new(u32::MAX as usize);
            }),
            _ => plan.trees.iter_mut().for_each(|tree| (tree.vlan, tree.lane) = (vlan(4094), 255)),
        }
        prop_assert!(!check(&plan).is_deployable());
        for (source, receiver) in frames(&plan) {
            prop_assert!(!walk(&plan, source, receiver).lines(&plan.topology).is_empty());
        }
    }
}
