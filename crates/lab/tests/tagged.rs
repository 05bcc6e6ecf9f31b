//! Hosts that tag their own frames: VBFT, two switches with several cables between them and four hosts each.
//!
//! ```text
//!   n1 n2 n3 n4 ─ s0 ═══ s1 ─ n5 n6 n7 n8       cable k is the tree of VLAN 2 + k
//! ```
//! In every mode all cables carry traffic at once; a plain tree has one. How fast it is belongs to `bench/lab`, except that
//! a cable cannot carry more than its rate, so that n cables that are all used show in the prediction and in the counters.
//!
//! Source: Miura et al. 2005, 4.3 and Fig. 6.

mod common;

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use common::{Guard, StopOnDrop, cabling, lab_name, plan, setting, skipped, watch};
use fabric::{
    Assignment, FdbMode, FdbRun, FlowControl, HostId, HostRun, LinkId, Plan, Policy, SwitchId, Tagging, Tree, VlanId,
    VlanSet,
    generate::{Kind, Options, generate},
};
use lab::{
    Backend, FailMode, Lab, LabOptions,
    delivery::{Probe, check},
    measure::{Load, Pattern, measure},
    netns::within,
    table::SwitchTable,
    tagger::{self, Classes, Spread, device::Tagged, health::Verdict, links::Links},
    twin::{FrameHead, Tag, deliver},
};

const HOSTS_PER_SWITCH: usize = 4;

/// A frame's source port is the place of its VLAN in the list, and other ports take the first.
#[test]
fn a_source_port_chooses_among_the_vlans_of_a_pair() {
    const CABLES: usize = 4;
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let plan = vbft(CABLES, Tagging::Pair);
        let spread = Spread::Port;
        let lab = Guard::up(&plan, &LabOptions { backend: Some(backend), spread, ..LabOptions::new(lab_name("port")) });
        let (first, last) = (&lab.0.layout().hosts[0], &lab.0.layout().hosts[2 * HOSTS_PER_SWITCH - 1]);
        let send = |port: u16| {
            let before = carried(&lab.0, CABLES);
            let sent = within(&first.namespace, || -> std::io::Result<()> {
                let socket = UdpSocket::bind(("0.0.0.0", port))?;
                (0..100).try_for_each(|_| socket.send_to(&[0; 1000], (last.address, 9)).map(|_| ()))
            });
            sent.expect("a namespace").expect("datagrams leave");
            let after = Instant::now() + Duration::from_secs(10);
            loop {
                let used: Vec<usize> = (carried(&lab.0, CABLES).iter().zip(&before))
                    .enumerate()
                    .filter(|(_, (now, before))| **now - **before > 90_000)
                    .map(|(cable, _)| cable)
                    .collect();
                if !used.is_empty() || Instant::now() > after {
                    return used;
                }
                thread::sleep(Duration::from_millis(20));
            }
        };
        let table = tagger::plan::table(&plan, HostId::new(0), spread).expect("hosts tag");
        let mac = plan.topology.host(HostId::new(2 * HOSTS_PER_SWITCH - 1)).mac;
        let choices = table.destinations[&mac].choices();
        assert_eq!(choices.len(), CABLES);
        let cable = |place: usize| vec![usize::from(choices[place % CABLES].get()) - 2];
        for port in 61_440..61_448 {
            assert_eq!(send(port), cable(usize::from(port % 8)), "port {port}, {choices:?}");
        }
        for port in [61_439, 40_003, 5_001] {
            assert_eq!(send(port), cable(0), "port {port}, {choices:?}");
        }
    }
}

#[test]
fn every_mode_uses_every_cable() {
    let modes = [Tagging::Source, Tagging::Destination, Tagging::SourceDestination, Tagging::Pair];
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        for cables in 1..=4 {
            for mode in modes {
                // Every mode with four cables, one of them with fewer.
                if cables == 4 || mode == Tagging::SourceDestination {
                    bisection(backend, &vbft(cables, mode), cables, Spread::First);
                }
            }
        }
        bisection(backend, &vbft(4, Tagging::Pair), 4, Spread::Flow);
        bisection(backend, &vbft(4, Tagging::Pair), 4, Spread::Flowlet { gap_us: 500 });
    }
}

#[test]
fn a_configuration_that_spreads_lists_every_vlan_that_carries_all_of_a_host() {
    for mode in [Tagging::Source, Tagging::Destination, Tagging::SourceDestination, Tagging::Pair] {
        let whole = vbft(4, mode);
        let config = tagger::plan::config(&whole, Spread::Flow).expect("every VLAN reaches everybody");
        for host in whole.topology.host_ids() {
            let own = whole.topology.host(host).mac;
            let (table, planned) =
                (config.table(own).expect("listed"), tagger::plan::table(&whole, host, Spread::Flow));
            let planned = planned.expect("hosts tag");
            for (mac, route) in &table.destinations {
                let every: BTreeSet<VlanId> = route.choices().iter().copied().collect();
                assert_eq!(every.len(), 4, "{mode:?}: {own} to {mac}: {route}");
                assert_eq!(every, planned.destinations[mac].choices().iter().copied().collect(), "{mode:?}");
            }
            assert_eq!(table.group, planned.group, "groups stay in one VLAN");
        }
        // A VLAN whose entries for one host are gone is no choice for those whose frames it would flood.
        let mut holed = whole.clone();
        let gone = (VlanId::new(3).expect("in range"), HostId::new(7));
        holed.devices[0].fdb.retain(|run| (run.vlan, run.first) != gone);
        let config = tagger::plan::config(&holed, Spread::Flow).expect("three VLANs are left");
        for from in holed.topology.host_ids() {
            let table = config.table(holed.topology.host(from).mac).expect("listed");
            for to in holed.topology.host_ids().filter(|to| *to != from) {
                let assigned = holed.assignment.unicast(from, to);
                let route = &table.destinations[&holed.topology.host(to).mac];
                assert!(route.choices().len() > 1, "{mode:?}: {from:?} to {to:?}: {route}");
                for vlan in route.choices().iter().filter(|vlan| **vlan != assigned) {
                    assert!(arrives(&holed, *vlan, from, to), "{mode:?}: {from:?} to {to:?} in {vlan}");
                }
            }
        }
        // Where no VLAN but the own one has entries there is nothing to spread over.
        let mut bare = whole.clone();
        bare.devices.iter_mut().for_each(|device| device.fdb.clear());
        assert_eq!(tagger::plan::config(&bare, Spread::Flow), Err(tagger::plan::PlanError::NothingToSpread));
        assert!(tagger::plan::config(&bare, Spread::First).is_ok());
    }
}

/// On a torus whose plan is proven for PAUSE, hosts may use more VLANs than they were assigned, but not all of them.
#[test]
fn hosts_send_in_the_class_of_a_vlan_s_lane() {
    for mode in [Tagging::Source, Tagging::Pair] {
        let mut plan = vbft(4, mode);
        plan.policy.flow_control = FlowControl::Pfc(2);
        for (number, tree) in plan.trees.iter_mut().enumerate() {
            tree.lane = number as u8 % 2;
        }
        let lanes = Classes::Vlan([3, 5].map(|id| (VlanId::new(id).expect("in range"), 1)).into());
        let config = tagger::plan::config(&plan, Spread::First).expect("hosts tag");
        assert_eq!(config.classes, lanes, "the lanes of VLANs 2 to 5 are 0, 1, 0, 1");
        assert!(config.text().contains("class 1 3,5\n"), "{}", config.text());
        for host in plan.topology.host_ids() {
            let table = tagger::plan::table(&plan, host, Spread::First).expect("hosts tag");
            assert_eq!(table.classes, lanes);
        }
        assert_eq!(tagger::plan::by_dscp(&plan), Err(tagger::plan::PlanError::Lanes));
        // Without priority flow control there are no lanes, and programs may say what is urgent.
        plan.policy.flow_control = FlowControl::None;
        let table = tagger::plan::table(&plan, HostId::new(0), Spread::First).expect("hosts tag");
        assert_eq!(table.classes, Classes::default());
        assert_eq!(tagger::plan::by_dscp(&plan), Ok(Classes::Dscp));
    }
}

#[test]
fn what_is_spread_or_moved_under_pause_closes_no_circle() {
    let topology = generate(&Kind::parse("torus", &["5x5".to_owned()]).expect("a known family"), &Options::default())
        .expect("a torus");
    let policy = Policy { tagging: Tagging::Source, fdb: FdbMode::Full, ..Policy::default() };
    let plan = planner::plan(&topology, &policy, None).expect("it plans");
    let assigned = |from: HostId, to: HostId, vlan: VlanId| plan.assignment.unicast(from, to) == vlan;
    assert!(!waits_in_a_circle(&plan, assigned));
    assert!(waits_in_a_circle(&plan, |_, _, _| true), "every VLAN for everybody is too much");
    let tables: Vec<_> = plan
        .topology
        .host_ids()
        .map(|host| tagger::plan::table(&plan, host, Spread::Flow).expect("hosts tag"))
        .collect();
    let spread = |from: HostId, to: HostId, vlan: VlanId| {
        tables[from.index()].destinations[&plan.topology.host(to).mac].choices().contains(&vlan)
    };
    assert!(!waits_in_a_circle(&plan, spread));
    let more =
        plan.topology.host_ids().any(|from| tables[from.index()].destinations.values().any(|r| r.choices().len() > 1));
    assert!(more, "somebody has a choice");
    let moved = |from: HostId, to: HostId, vlan: VlanId| {
        assigned(from, to, vlan) || tagger::plan::safe(&plan, vlan, from)[plan.topology.switch_of(to).index()]
    };
    assert!(!waits_in_a_circle(&plan, moved));
    let config = tagger::plan::config(&plan, Spread::Flow).expect("a choice");
    let listed = |from: HostId, to: HostId, vlan: VlanId| {
        assigned(from, to, vlan) || config.hosts[&plan.topology.host(from).mac].vlans.contains(&vlan)
    };
    assert!(!waits_in_a_circle(&plan, listed));
}

#[test]
fn what_is_spread_over_path_sets_arrives_and_closes_no_circle() {
    let topology = generate(&Kind::parse("torus", &["4x4".to_owned()]).expect("a known family"), &Options::default())
        .expect("a torus");
    let policy = Policy { tagging: Tagging::Source, paths_max: 4, ..Policy::default() };
    let plan = planner::plan(&topology, &policy, None).expect("it plans");
    let sets = plan.paths.as_ref().expect("path sets");
    let config = tagger::plan::config(&plan, Spread::Flow).expect("a choice");
    let mac = |host: HostId| plan.topology.host(host).mac;
    let links = Links::of(&plan);
    for from in plan.topology.host_ids() {
        let table = tagger::plan::table(&plan, from, Spread::Flow).expect("hosts tag");
        for to in plan.topology.host_ids().filter(|to| *to != from) {
            let choices = table.destinations[&mac(to)].choices();
            assert_eq!(choices[0], plan.assignment.unicast(from, to));
            let chosen: BTreeSet<VlanId> = choices.iter().copied().collect();
            assert_eq!(chosen, sets.of(from, to).iter().copied().collect());
            assert_eq!(config.pairs[&(mac(from), mac(to))], choices);
            assert!(choices.iter().all(|vlan| arrives(&plan, *vlan, from, to)), "{from:?} to {to:?}: {choices:?}");
            for vlan in choices {
                // Placed flows count on the links that frames cross.
                let tree = &plan.tree(*vlan).expect("a VLAN of the plan").tree;
                let rooted = tree.rooted_at(&plan.topology, plan.topology.switch_of(from));
                let crossed = rooted.path_to(&plan.topology, plan.topology.switch_of(to));
                let crossed: BTreeSet<usize> = crossed.into_iter().map(|channel| channel.index()).collect();
                let counted = links.path(mac(from), mac(to), *vlan).expect("the tree connects all switches");
                assert_eq!(counted.into_iter().collect::<BTreeSet<_>>(), crossed);
            }
        }
    }
    assert!(!waits_in_a_circle(&plan, |from, to, vlan| sets.of(from, to).contains(&vlan)));
    assert!(waits_in_a_circle(&plan, |_, _, _| true), "every VLAN for everybody is too much");
}

/// Whether frames of all pairs, in all VLANs that they `may` use, could wait for each other's channels in a circle.
fn waits_in_a_circle(plan: &Plan, may: impl Fn(HostId, HostId, VlanId) -> bool) -> bool {
    let topology = &plan.topology;
    let channels = topology.channel_count();
    let mut after: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); channels];
    for from in topology.host_ids() {
        for tree in &plan.trees {
            let rooted = tree.tree.rooted_at(topology, topology.switch_of(from));
            for to in topology.host_ids().filter(|to| *to != from && may(from, *to, tree.vlan)) {
                for pair in rooted.path_to(topology, topology.switch_of(to)).windows(2) {
                    after[pair[0].index()].insert(pair[1].index());
                }
            }
        }
    }
    let mut left = vec![0; channels];
    after.iter().flatten().for_each(|channel| left[*channel] += 1);
    let mut free: Vec<usize> = (0..channels).filter(|channel| left[*channel] == 0).collect();
    let mut seen = 0;
    while let Some(channel) = free.pop() {
        seen += 1;
        for &next in &after[channel] {
            left[next] -= 1;
            if left[next] == 0 {
                free.push(next);
            }
        }
    }
    seen < channels
}

/// By the rules that the lab's switches follow.
fn arrives(plan: &Plan, vlan: VlanId, from: HostId, to: HostId) -> bool {
    let tables: Vec<SwitchTable> =
        plan.devices.iter().map(|intent| SwitchTable::new(&plan.topology, intent).expect("a small switch")).collect();
    let tag = Some(Tag { vid: vlan.get(), priority: 0 });
    let (destination, source) = (plan.topology.host(to).mac, plan.topology.host(from).mac);
    let arrivals = deliver(&plan.topology, &tables, from, &FrameHead { destination, source, tag }, 64);
    arrivals.is_ok_and(|arrivals| arrivals == [(to, tag)])
}

/// How often flows that all took one cable may try again, from other ports.
const FLOW_RUNS_MAX: usize = 4;

/// All hosts of one switch send to those of the other at once; prints what it gives.
fn bisection(backend: Backend, plan: &Plan, cables: usize, spread: Spread) {
    let rate_bps = setting("LAB_RATE_BPS", 50_000_000);
    let options = LabOptions { backend: Some(backend), rate_bps, spread, ..LabOptions::new(lab_name("vbft")) };
    let lab = Guard::up(plan, &options);
    let what = format!("{backend}, {cables} cables, {}, {spread:?}", plan.policy.tagging.word());
    if cables == 4 {
        for probe in [Probe::Ping, Probe::Arp, Probe::Dhcp, Probe::Multicast] {
            let delivery = check(&lab.0, probe).expect("probes are sent");
            assert_eq!(delivery.faults, [], "{what}: {probe}");
        }
    }
    let before = carried(&lab.0, cables);
    let load = Load::new(Pattern::Bisection, setting("LAB_BYTES", 1_000_000));
    let once = || measure(&lab.0, &load, &mut |_| {}).expect("it runs");
    let used =
        || -> Vec<u64> { carried(&lab.0, cables).iter().zip(&before).map(|(after, before)| after - before).collect() };
    let mut measured = once();
    // A hash puts the four flows of one run on one cable of four once in 64 runs.
    for _ in 1..FLOW_RUNS_MAX {
        if spread == Spread::First || used().iter().filter(|bytes| **bytes > 100_000).count() > 1 {
            break;
        }
        measured = once();
    }
    let used = used();
    println!(
        "{what}: {:.1} Mbit/s each way per link rate {:.1}, bytes of each cable {used:?}, floods {}",
        measured.total_goodput_bps() / 1e6,
        rate_bps as f64 / 1e6,
        measured.unknown_floods,
    );
    assert_eq!(measured.unknown_floods, 0, "{what}");
    match spread {
        // A hash promises nothing of so few flows, but that they are not all on one.
        Spread::Flow | Spread::Flowlet { .. } => {
            assert!(used.iter().filter(|bytes| **bytes > 100_000).count() > 1, "{what}: {used:?}")
        }
        Spread::First | Spread::Port | Spread::Placed => {
            let (least, most) = (used.iter().min().copied().unwrap_or(0), used.iter().max().copied().unwrap_or(0));
            assert!(least > 0 && most < 3 * least, "{what}: every cable carries its share: {used:?}");
        }
    }
}

#[test]
fn a_silent_cable_is_left_and_taken_back_without_a_lost_connection() {
    let Some(backend) = Backend::ALL.iter().copied().find(|backend| !skipped(*backend)) else { return };
    let options = LabOptions {
        backend: Some(backend),
        rate_bps: setting("LAB_RATE_BPS", 50_000_000),
        ..LabOptions::new(lab_name("gap"))
    };
    let plan = vbft(2, Tagging::Destination);
    let lab = Guard::up(&plan, &options);
    let stop = AtomicBool::new(false);
    let patience = setting("LAB_SLOWNESS", 1);
    thread::scope(|scope| {
        let guard = StopOnDrop(&stop);
        let (sender, notices) = std::sync::mpsc::channel();
        for host in plan.topology.host_ids() {
            let (sender, lab, plan, stop) = (sender.clone(), &lab.0, &plan, &stop);
            scope.spawn(move || watch(lab, plan, host, stop, &mut |notice| drop(sender.send((host, notice)))));
        }
        let gaps = Gaps::begin(scope, &lab.0, &stop);
        thread::sleep(Duration::from_millis(1500 * patience));
        assert_eq!(notices.try_iter().count(), 0, "sound cables have no verdicts");
        println!("before: longest gap of UDP, TCP {:?}", gaps.take());
        let cable = cable_of(&plan, HostId::new(4));
        for (mode, verdict) in [
            (FailMode::Silent, "silent"),
            (FailMode::Lossy { loss_ppm: 100_000 }, "10 % loss"),
            (FailMode::Lossy { loss_ppm: 20_000 }, "2 % loss"),
        ] {
            let cut = Instant::now();
            lab.0.fail(&cable, mode).expect("a cable");
            let (host, notice) = notices
                .iter()
                .find(|(host, notice)| *host == HostId::new(0) && notice.verdict != Verdict::Healthy)
                .expect("the daemons run");
            println!("{verdict}: {host:?} left {} after {:?}, {} moved", notice.vlan, cut.elapsed(), notice.moved);
            thread::sleep(Duration::from_millis(300 * patience));
            let gap = gaps.take();
            println!("{verdict}: longest gap {gap:?}");
            let table =
                within(&lab.0.layout().hosts[0].namespace, || Tagged::open("eth0").and_then(|tagged| tagged.table()));
            let table = table.expect("a namespace").expect("tagged");
            let far = plan.topology.host(HostId::new(4)).mac;
            assert_ne!(
                table.destinations[&far].choices()[0],
                notice.vlan,
                "{verdict}: the kernel's table has moved it"
            );
            let mended = Instant::now();
            lab.0.heal(&cable).expect("a cable");
            notices
                .iter()
                .find(|(host, notice)| *host == HostId::new(0) && notice.verdict == Verdict::Healthy)
                .expect("the daemons run");
            println!("{verdict}: back after {:?}", mended.elapsed());
            thread::sleep(Duration::from_millis(300 * patience));
            println!("{verdict}: healing: longest gap {:?}", gaps.take());
            while notices.try_recv().is_ok() {}
        }
        gaps.assert_alive();
        drop(guard);
    });
}

#[test]
fn of_two_silent_cables_the_one_that_fell_last_is_kept() {
    let Some(backend) = Backend::ALL.iter().copied().find(|backend| !skipped(*backend)) else { return };
    let options = LabOptions { backend: Some(backend), ..LabOptions::new(lab_name("last")) };
    let plan = vbft(2, Tagging::Destination);
    let lab = Guard::up(&plan, &options);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let guard = StopOnDrop(&stop);
        let (sender, notices) = std::sync::mpsc::channel();
        let (own, far) = (HostId::new(0), HostId::new(4));
        let (watched, known, end) = (&lab.0, &plan, &stop);
        scope.spawn(move || watch(watched, known, own, end, &mut |notice| drop(sender.send(notice))));
        // Paths that carry traffic are probed often.
        let (near, target) = (&lab.0.layout().hosts[0], SocketAddr::new(lab.0.layout().hosts[4].address, 9));
        let sender =
            within(&near.namespace, || UdpSocket::bind("0.0.0.0:0").expect("a free port")).expect("a namespace");
        scope.spawn(move || {
            while !end.load(Ordering::SeqCst) {
                let _ = sender.send_to(&[0; 500], target);
                thread::sleep(NAP);
            }
        });
        let next = |verdict: &str, is: fn(Verdict) -> bool| {
            let notice = notices.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("{verdict}"));
            assert!(is(notice.verdict), "{verdict}, not {notice:?}");
            notice.vlan
        };
        let taken = || {
            let open = || Tagged::open("eth0").and_then(|tagged| tagged.table());
            let table = within(&lab.0.layout().hosts[0].namespace, open).expect("a namespace").expect("tagged");
            table.destinations[&plan.topology.host(far).mac].choices()[0]
        };
        let (home, other) = (cable_of(&plan, far), cable_of(&plan, HostId::new(5)));
        let sick = |verdict| verdict != Verdict::Healthy;
        thread::sleep(Duration::from_millis(500));
        let own_vlan = taken();
        lab.0.fail(&home, FailMode::Silent).expect("a cable");
        assert_eq!(next("the first cable is left", sick), own_vlan);
        let other_vlan = taken();
        assert_ne!(other_vlan, own_vlan);
        lab.0.fail(&other, FailMode::Silent).expect("a cable");
        assert_eq!(next("the second is found silent", sick), other_vlan);
        assert_eq!(taken(), other_vlan, "there is nothing to leave it for");
        lab.0.heal(&home).expect("a cable");
        assert_eq!(next("the first heals", |verdict| verdict == Verdict::Healthy), own_vlan);
        assert_eq!(taken(), own_vlan);
        drop(guard);
    });
}

#[test]
fn without_watching_a_silent_cable_stays_dead() {
    let Some(backend) = Backend::ALL.iter().copied().find(|backend| !skipped(*backend)) else { return };
    let plan = vbft(2, Tagging::Destination);
    let options = LabOptions { backend: Some(backend), ..LabOptions::new(lab_name("dead")) };
    let lab = Guard::up(&plan, &options);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _guard = StopOnDrop(&stop);
        let gaps = Gaps::begin(scope, &lab.0, &stop);
        thread::sleep(Duration::from_millis(500));
        let cable = cable_of(&plan, HostId::new(4));
        lab.0.fail(&cable, FailMode::Silent).expect("a cable");
        let outage = Duration::from_millis(1000);
        gaps.take();
        thread::sleep(outage);
        let [udp, tcp] = gaps.take();
        println!("static VLANs: still nothing after {udp:?} (UDP), {tcp:?} (TCP)");
        // From the cut on: what was on its way then arrives within a few milliseconds.
        assert!(udp.min(tcp) > outage / 2, "nothing comes by a dead cable");
        lab.0.heal(&cable).expect("a cable");
    });
}

#[test]
fn long_flows_that_share_a_cable_part() {
    let Some(backend) = Backend::ALL.iter().copied().find(|backend| !skipped(*backend)) else { return };
    let options = LabOptions { backend: Some(backend), spread: Spread::Placed, ..LabOptions::new(lab_name("place")) };
    let plan = vbft(2, Tagging::Destination);
    let lab = Guard::up(&plan, &options);
    let stop = AtomicBool::new(false);
    let sound = |from: usize, to: usize| {
        let [from, to] = [from, to].map(|host| lab.0.layout().hosts[host].clone());
        let target = SocketAddr::new(to.address, 7000);
        let receiver = within(&to.namespace, || UdpSocket::bind(target).expect("a free port")).expect("a namespace");
        let sender = within(&from.namespace, || UdpSocket::bind("0.0.0.0:0").expect("a free port"));
        receiver.set_read_timeout(Some(NAP)).expect("a socket");
        (sender.expect("a namespace"), receiver, target)
    };
    // The first VLAN of both destinations is the same.
    let streams = [sound(0, 4), sound(1, 6)];
    assert_eq!(cable_of(&plan, HostId::new(4)), cable_of(&plan, HostId::new(6)));
    thread::scope(|scope| {
        let _guard = StopOnDrop(&stop);
        for host in plan.topology.host_ids() {
            let (lab, plan, stop) = (&lab.0, &plan, &stop);
            scope.spawn(move || watch(lab, plan, host, stop, &mut |_| ()));
        }
        for (sender, receiver, target) in streams {
            let stop = &stop;
            scope.spawn(move || {
                for number in 0_u64.. {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let _ = sender.send_to(&[&number.to_be_bytes()[..], &[0; 1000]].concat(), target);
                    thread::sleep(Duration::from_millis(1));
                }
            });
            scope.spawn(move || {
                let (mut bytes, mut next) = ([0; 2000], 0);
                while !stop.load(Ordering::SeqCst) {
                    if receiver.recv(&mut bytes).is_ok() {
                        let number = u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
                        assert!(number >= next, "in order: {number} after {next}");
                        next = number;
                    }
                }
            });
        }
        // Both cables carry a stream of some 8 Mbit/s, or less on a busy machine.
        let deadline = Instant::now() + Duration::from_secs(60 * setting("LAB_SLOWNESS", 1));
        loop {
            let before = carried(&lab.0, 2);
            thread::sleep(Duration::from_millis(500));
            let span: Vec<u64> = carried(&lab.0, 2).iter().zip(&before).map(|(after, before)| after - before).collect();
            let [less, more] = [span[0].min(span[1]), span[0].max(span[1])];
            if less > 20_000 && less * 2 > more {
                break;
            }
            assert!(Instant::now() < deadline, "both streams stay on one cable: {span:?} bytes in half a second");
        }
    });
}

/// The cable that frames for a host cross.
fn cable_of(plan: &Plan, host: HostId) -> String {
    let vlan = plan.assignment.unicast(HostId::new(0), host);
    let tree = plan.tree(vlan).expect("a VLAN of the plan");
    plan.topology.link_label(tree.tree.links()[0])
}

/// 500 bytes every millisecond from the first host to the fifth, by UDP and by one TCP connection, and the longest pause
/// between arrivals of each.
struct Gaps {
    udp: Arc<Mutex<Arrivals>>,
    tcp: Arc<Mutex<Arrivals>>,
}

struct Arrivals {
    last: Instant,
    longest: Duration,
    bytes: usize,
}

impl Gaps {
    fn begin<'scope>(scope: &'scope thread::Scope<'scope, '_>, lab: &Lab, stop: &'scope AtomicBool) -> Self {
        let (near, far) = (lab.layout().hosts[0].clone(), lab.layout().hosts[4].clone());
        let target = SocketAddr::new(far.address, 7000);
        let in_near = |work: &(dyn Fn() -> TcpStream + Sync)| within(&near.namespace, work).expect("a namespace");
        let listener = within(&far.namespace, || TcpListener::bind(target).expect("a free port")).expect("a namespace");
        let mut stream = in_near(&|| TcpStream::connect(target).expect("it listens"));
        stream.set_nodelay(true).expect("a socket");
        let (mut accepted, _) = listener.accept().expect("it connects");
        let receiver = within(&far.namespace, || UdpSocket::bind(target).expect("a free port")).expect("a namespace");
        let sender =
            within(&near.namespace, || UdpSocket::bind("0.0.0.0:0").expect("a free port")).expect("a namespace");
        for patience in [receiver.set_read_timeout(Some(NAP)), accepted.set_read_timeout(Some(NAP))] {
            patience.expect("a socket");
        }
        scope.spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let _ = sender.send_to(&[0; 500], target);
                stream.write_all(&[0; 500]).expect("the connection lives");
                thread::sleep(Duration::from_millis(1));
            }
        });
        let gaps = Self { udp: Arrivals::begin(), tcp: Arrivals::begin() };
        let udp = gaps.udp.clone();
        scope.spawn(move || {
            let mut bytes = [0; 600];
            while !stop.load(Ordering::SeqCst) {
                if let Ok(length) = receiver.recv(&mut bytes) {
                    Arrivals::note(&udp, length);
                }
            }
        });
        let tcp = gaps.tcp.clone();
        scope.spawn(move || {
            let mut bytes = [0; 4096];
            while !stop.load(Ordering::SeqCst) {
                if let Ok(length) = accepted.read(&mut bytes) {
                    Arrivals::note(&tcp, length);
                }
            }
        });
        gaps
    }

    /// The longest pauses, of UDP and of TCP, since this was asked last; one that lasts still counts.
    fn take(&self) -> [Duration; 2] {
        [&self.udp, &self.tcp].map(|arrivals| {
            let mut arrivals = arrivals.lock().expect("nobody panics with it");
            let lasting = arrivals.last.elapsed();
            std::mem::take(&mut arrivals.longest).max(lasting)
        })
    }

    fn assert_alive(&self) {
        let bytes = || [&self.udp, &self.tcp].map(|arrivals| arrivals.lock().expect("nobody panics with it").bytes);
        let before = bytes();
        thread::sleep(Duration::from_millis(500));
        let after = bytes();
        assert!(after[0] > before[0] && after[1] > before[1], "both arrive to the end: {before:?}, {after:?}");
    }
}

const NAP: Duration = Duration::from_millis(20);

impl Arrivals {
    fn begin() -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { last: Instant::now(), longest: Duration::ZERO, bytes: 0 }))
    }

    fn note(arrivals: &Mutex<Self>, bytes: usize) {
        let mut arrivals = arrivals.lock().expect("nobody panics with it");
        arrivals.longest = arrivals.longest.max(arrivals.last.elapsed());
        arrivals.last = Instant::now();
        arrivals.bytes += bytes;
    }
}

/// Bytes that each cable between the switches has carried, from the first to the second.
fn carried(lab: &Lab, cables: usize) -> Vec<u64> {
    let status = lab.status().expect("a status");
    status.switches[0].ports[..cables].iter().map(|port| port.total().out_bytes).collect()
}

/// Two switches, `cables` between them, four hosts each; priorities fall with the number, VLANs go round, as in the
/// paper.
fn vbft(cables: usize, mode: Tagging) -> Plan {
    let topology = cabling(2, &vec![(0, 1); cables], &[HOSTS_PER_SWITCH; 2]);
    let hosts = topology.hosts().len();
    let trees: Vec<Tree> = (0..cables).map(|link| Tree::new(&topology, [LinkId::new(link)]).expect("a tree")).collect();
    let mut plan = plan(topology, |host| trees[host.index() % cables].clone());
    let vlan = |number: usize| VlanId::new(2 + (number % cables) as u16).expect("few");
    let choice: Vec<VlanId> = (0..hosts).map(vlan).collect();
    plan.policy.tagging = mode;
    plan.assignment = match mode {
        Tagging::Switch | Tagging::Source => Assignment::Source(choice),
        Tagging::Destination => Assignment::Destination { broadcast: choice.clone(), choice },
        Tagging::SourceDestination => {
            Assignment::Priority { broadcast: choice.clone(), choice, priority: (0..hosts as u32).rev().collect() }
        }
        Tagging::Pair => Assignment::Pair {
            unicast: (0..hosts)
                .map(|source| {
                    let run = |to: usize| HostRun {
                        first: HostId::new(to),
                        last: HostId::new(to),
                        choice: vlan(source + 2 * to),
                    };
                    (0..hosts).map(run).collect::<Vec<_>>().into()
                })
                .collect(),
            broadcast: choice,
        },
    };
    let all: VlanSet = (0..cables).map(vlan).collect();
    for switch in 0..2 {
        let topology = &plan.topology;
        let ports: Vec<_> = topology.port_ids(SwitchId::new(switch)).collect();
        let intent = &mut plan.devices[switch];
        for port in &mut intent.ports[cables..] {
            (port.pvid, port.tagged, port.untagged) = (None, all.clone(), VlanSet::new());
        }
        // Every host in every VLAN, so that any of them may be taken.
        intent.fdb.clear();
        for (number, cable) in ports.iter().take(cables).enumerate() {
            for host in (0..hosts).map(HostId::new) {
                let near = topology.switch_of(host).index() == switch;
                let port = if near { topology.host(host).port } else { *cable };
                intent.fdb.push(FdbRun { vlan: vlan(number), first: host, last: host, port });
            }
        }
    }
    assert_eq!(plan.trees.iter().map(|tree| tree.vlan).collect::<BTreeSet<_>>().len(), cables);
    plan
}
