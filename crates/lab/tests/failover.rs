//! Hosts that watch their paths while TCP fills every cable: what fails is left, what heals is taken again, and no connection
//! is lost. How long that takes belongs to `bench/failover`.
//!
//! ```text
//!        s2    s3
//!        │ ╲  ╱ │       n1 n2 on s0, n3 n4 on s1; VLAN 2 by one spine, VLAN 3 by the other
//!        s0 ──── s1
//! ```

mod common;

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use common::{Guard, StopOnDrop, cabling, lab_name, setting, skipped, watch};
use fabric::{FdbMode, FlowControl, HostId, Plan, Policy, SwitchId, Tagging, VlanId};
use lab::{Backend, FailMode, Lab, LabOptions, netns::within, tagger::device::Tagged};

/// From each of these hosts to the other: both directions of every cable are full.
const STREAMS: [(usize, usize); 3] = [(0, 2), (1, 3), (3, 0)];
/// Nothing that is waited for takes this long.
const PATIENCE: Duration = Duration::from_secs(60);
/// What a stream has to carry to count as alive.
const ALIVE_BYTES: u64 = 500_000;

#[test]
fn bulk_traffic_leaves_what_fails_and_comes_back_and_no_connection_is_lost() {
    let Some(backend) = Backend::ALL.iter().copied().find(|backend| !skipped(*backend)) else { return };
    let plan = two_spines();
    let options = LabOptions {
        backend: Some(backend),
        rate_bps: setting("LAB_RATE_BPS", 40_000_000),
        queue_bytes: 1 << 17,
        ..LabOptions::new(lab_name("fail"))
    };
    let lab = Guard::up(&plan, &options);
    let lab = &lab.0;
    let (near, far) = (HostId::new(0), HostId::new(2));
    let vlan = plan.assignment.unicast(near, far);
    let cables = cables_between_leaves(&plan, vlan);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _guard = StopOnDrop(&stop);
        for host in plan.topology.host_ids() {
            let (plan, stop) = (&plan, &stop);
            scope.spawn(move || {
                watch(lab, plan, host, stop, &mut |notice| {
                    println!("{host:?}: VLAN {}: {:?}", notice.vlan, notice.verdict)
                });
            });
        }
        let streams: Vec<Arc<AtomicU64>> =
            STREAMS.iter().map(|(from, to)| stream(scope, lab, *from, *to, &stop)).collect();
        let all_carry = |what: &str| {
            let before: Vec<u64> = streams.iter().map(|bytes| bytes.load(Ordering::SeqCst)).collect();
            wait_until(&format!("{what}: every connection goes on"), || {
                streams.iter().zip(&before).all(|(bytes, before)| bytes.load(Ordering::SeqCst) > before + ALIVE_BYTES)
            });
        };
        let both_take = |taken: bool| {
            [(near, far), (far, near)].into_iter().all(|(from, to)| (vlan_of(lab, &plan, from, to) == vlan) == taken)
        };
        all_carry("sound cables");
        wait_until("the planned path is taken", || both_take(true));
        for (what, failed, mode) in [
            ("a silent cable", &cables[..1], FailMode::Silent),
            ("a dead spine", &cables[..], FailMode::Silent),
            ("a cable that loses 10 %", &cables[1..], FailMode::Lossy { loss_ppm: 100_000 }),
        ] {
            failed.iter().for_each(|cable| lab.fail(cable, mode).expect("a cable"));
            wait_until(&format!("{what} is left by both ends"), || both_take(false));
            all_carry(what);
            failed.iter().for_each(|cable| lab.heal(cable).expect("a cable"));
            wait_until(&format!("{what} is taken again when it has healed"), || both_take(true));
            all_carry(what);
        }
    });
}

/// Where the kernel of one host sends frames for another now.
fn vlan_of(lab: &Lab, plan: &Plan, from: HostId, to: HostId) -> VlanId {
    let open = || Tagged::open("eth0").and_then(|tagged| tagged.table());
    let table = within(&lab.layout().hosts[from.index()].namespace, open).expect("a namespace").expect("tagged");
    table.destinations[&plan.topology.host(to).mac].choices()[0]
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < PATIENCE * setting("LAB_SLOWNESS", 1) as u32, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
    println!("{what}: after {:?}", since.elapsed());
}

/// One connection that carries as much as it can, and what has arrived of it. It ends with `stop`; an end before that fails.
fn stream<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    lab: &Lab,
    from: usize,
    to: usize,
    stop: &'scope AtomicBool,
) -> Arc<AtomicU64> {
    let (near, far) = (&lab.layout().hosts[from], &lab.layout().hosts[to]);
    let target = SocketAddr::new(far.address, 7000 + from as u16);
    let listener = within(&far.namespace, || TcpListener::bind(target).expect("a free port")).expect("a namespace");
    let connect = || TcpStream::connect(target).expect("it listens");
    let mut sending = within(&near.namespace, connect).expect("a namespace");
    let (mut receiving, _) = listener.accept().expect("it connects");
    let nap = Some(Duration::from_millis(200));
    for done in [sending.set_write_timeout(nap), receiving.set_read_timeout(nap)] {
        done.expect("a socket");
    }
    let waits =
        |error: &std::io::Error| matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
    scope.spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            if let Err(error) = sending.write(&[0; 16_384]) {
                assert!(waits(&error) || stop.load(Ordering::SeqCst), "the connection is lost: {error}");
            }
        }
    });
    let arrived = Arc::new(AtomicU64::new(0));
    let count = arrived.clone();
    scope.spawn(move || {
        let mut bytes = [0; 65_536];
        while !stop.load(Ordering::SeqCst) {
            match receiving.read(&mut bytes) {
                Ok(length) => {
                    assert!(length > 0 || stop.load(Ordering::SeqCst), "the connection has ended");
                    count.fetch_add(length as u64, Ordering::SeqCst);
                }
                Err(error) => assert!(waits(&error), "the connection is lost: {error}"),
            }
        }
    });
    arrived
}

fn two_spines() -> Plan {
    let topology = cabling(4, &[(0, 2), (0, 3), (1, 2), (1, 3)], &[2, 2, 0, 0]);
    let policy = Policy {
        tagging: Tagging::SourceDestination,
        fdb: FdbMode::Full,
        flow_control: FlowControl::None,
        vlans_max: Some(2),
        ..Policy::default()
    };
    let plan = planner::plan(&topology, &policy, None).expect("a plan");
    assert_eq!(plan.trees.len(), 2);
    plan
}

/// The cables from the first leaf to the second in a VLAN: up to its spine, and down.
fn cables_between_leaves(plan: &Plan, vlan: VlanId) -> Vec<String> {
    let tree = &plan.tree(vlan).expect("a VLAN of the plan").tree;
    let rooted = tree.rooted_at(&plan.topology, SwitchId::new(0));
    let path = rooted.path_to(&plan.topology, SwitchId::new(1));
    assert_eq!(path.len(), 2, "by one spine");
    path.iter().map(|channel| plan.topology.link_label(channel.link())).collect()
}
