//! Frames reach exactly the hosts that they should, once.

mod common;

use common::{Guard, Shape, clos, grid, lab_name, ring, skipped, wanted};
use fabric::{HostId, Mac, Plan, PortRole, VlanId};
use lab::{
    Backend, FailMode, Lab, LabOptions,
    delivery::{Probe, check},
    twin::DropReason,
};
use socket2::{Domain, SockAddr, Socket, Type};

fn options(word: &str, backend: Backend) -> LabOptions {
    LabOptions { backend: Some(backend), rate_bps: 1_000_000_000, ..LabOptions::new(lab_name(word)) }
}

fn everything_arrives_once(lab: &Lab, word: &str) {
    for &probe in Probe::ALL {
        let delivery = check(lab, probe).expect("probes can be sent");
        println!("{word}: {probe}: {} pairs in {:.2?}", delivery.pairs, delivery.elapsed);
        assert_eq!(delivery.faults, [], "{word}: {probe}");
    }
    let status = lab.status().expect("a status");
    assert_eq!(status.unknown_floods(), 0, "{word}");
}

#[test]
fn every_frame_arrives_once() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let plans: [(&str, Plan); 3] = [("ring", ring(4)), ("torus", grid(4, Shape::Torus)), ("clos", clos(4, 4))];
        for (word, plan) in plans.into_iter().filter(|(word, _)| wanted(word)) {
            let lab = Guard::up(&plan, &options(word, backend));
            everything_arrives_once(&lab.0, word);
        }
    }
}

#[test]
fn a_cut_cable_is_missed_and_a_mended_one_is_not() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let lab = Guard::up(&ring(4), &options("cut", backend));
        for mode in [FailMode::Down, FailMode::Silent] {
            lab.0.fail("n3", mode).expect("a cable");
            let delivery = check(&lab.0, Probe::Ping).expect("probes can be sent");
            let mut lost: Vec<(&str, &str)> =
                delivery.faults.iter().map(|fault| (fault.source.as_str(), fault.destination.as_str())).collect();
            lost.sort_unstable();
            let expect = [("n1", "n3"), ("n2", "n3"), ("n3", "n1"), ("n3", "n2"), ("n3", "n4"), ("n4", "n3")];
            assert_eq!(lost, expect, "{mode:?}");
            lab.0.heal("n3").expect("a cable");
            assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, [], "{mode:?}");
        }
        assert!(lab.0.fail("s0:g9", FailMode::Down).is_err());
    }
}

#[test]
fn a_missing_entry_shows_as_a_flood() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let mut plan = ring(4);
        // Switch 0 forgets everything; its frames still arrive, but everybody hears them.
        plan.devices[0].fdb.clear();
        let lab = Guard::up(&plan, &options("forget", backend));
        assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, []);
        assert!(lab.0.status().expect("a status").unknown_floods() > 0);
    }
}

#[test]
fn counters_see_a_broadcast_pass() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let plan = ring(4);
        let lab = Guard::up(&plan, &options("count", backend));
        let before = lab.0.status().expect("a status");
        assert_eq!(check(&lab.0, Probe::Dhcp).expect("probes can be sent").faults, []);
        let after = lab.0.status().expect("a status");
        let vlan_of = |host| plan.assignment.broadcast(HostId::new(host)).get();
        for switch in 0..4 {
            // Ports 0 and 1 are the ring, 2 is the host.
            for (port, intent) in after.switches[switch].ports.iter().zip(&plan.devices[switch].ports) {
                let members: Vec<u16> =
                    intent.tagged.iter().chain(intent.untagged.iter()).map(|vlan| vlan.get()).collect();
                assert_eq!(
                    port.traffic.keys().copied().collect::<Vec<_>>(),
                    members,
                    "{backend}: members and no others"
                );
            }
            let at = |status: &lab::Status, vlan| status.switches[switch].ports[2].traffic[&vlan];
            for host in 0..4 {
                let (before, after) = (at(&before, vlan_of(host)), at(&after, vlan_of(host)));
                let own = u64::from(vlan_of(host) == vlan_of(switch));
                assert!(after.in_frames - before.in_frames >= own, "{backend}: in");
                if vlan_of(host) != vlan_of(switch) {
                    assert_eq!(after.in_frames, before.in_frames, "{backend}: nobody else's VLAN comes in");
                    assert!(after.out_frames > before.out_frames, "{backend}: out");
                    assert!(after.out_bytes - before.out_bytes >= 52, "{backend}: bytes");
                }
                if let (Some(before), Some(after)) = (before.flooded_broadcast, after.flooded_broadcast) {
                    assert_eq!(after - before, own, "{backend}: floods");
                }
            }
        }
        assert_eq!(after.switches[0].ports[2].rate_bps, Some(1_000_000_000));
        assert_eq!(after.switches[0].ports[2].carrier, lab::Carrier::Up);
    }
}

/// A frame for local experiments, which no stack answers, out of a host's device.
fn send(namespace: &str, destination: Mac, source: Mac, vlan: Option<VlanId>) {
    let mut frame = [destination.octets(), source.octets()].concat();
    if let Some(vlan) = vlan {
        frame.extend([0x81, 0]);
        frame.extend(vlan.get().to_be_bytes());
    }
    frame.extend([0x88, 0xb5]);
    frame.resize(60, 0);
    // SAFETY: the closure fills in a complete sockaddr_ll, which fits in sockaddr_storage, and says how long it is.
    let device = unsafe {
        SockAddr::try_init(|storage, length| {
            let address = storage.cast::<libc::sockaddr_ll>();
            (*address).sll_family = libc::AF_PACKET as u16;
            (*address).sll_ifindex = lab::table::PORT_IFINDEX_BASE as i32;
            *length = size_of::<libc::sockaddr_ll>() as u32;
            Ok(())
        })
    };
    let ((), device) = device.expect("an address");
    let sent = lab::netns::within(namespace, || {
        Socket::new(Domain::PACKET, Type::RAW, None).and_then(|socket| socket.send_to(&frame, &device))
    });
    sent.expect("the namespace is there").expect("the frame leaves");
}

#[test]
fn hosts_may_tag_where_the_plan_says_so() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let mut plan = ring(4);
        for port in plan.devices.iter_mut().flat_map(|device| &mut device.ports) {
            if let PortRole::Host(_) = port.role {
                std::mem::swap(&mut port.tagged, &mut port.untagged);
                port.pvid = None;
            }
        }
        let lab = Guard::up(&plan, &options("tagged", backend));
        let mac = |host| plan.topology.host(HostId::new(host)).mac;
        let n1 = lab.0.layout().host("n1").expect("a host").namespace.clone();
        let at = |switch: usize, vlan: u16| lab.0.status().expect("a status").switches[switch].ports[2].traffic[&vlan];
        for tree in &plan.trees {
            let vlan = tree.vlan.get();
            send(&n1, mac(2), mac(0), Some(tree.vlan));
            std::thread::sleep(std::time::Duration::from_millis(100));
            assert_eq!((at(0, vlan).in_frames, at(2, vlan).out_frames), (1, 1), "{backend}: through v{vlan}");
            assert_eq!(at(1, vlan).out_frames + at(3, vlan).out_frames, 0, "{backend}: and to nobody else");
        }
        send(&n1, mac(2), mac(0), None);
        send(&n1, mac(2), mac(0), Some(VlanId::MAX));
        std::thread::sleep(std::time::Duration::from_millis(100));
        let status = lab.0.status().expect("a status");
        let entered = status.switches[0].ports[2].total().in_frames;
        assert_eq!(entered, plan.trees.len() as u64, "{backend}: neither untagged nor of an unknown VLAN");
        if let Some(drops) = &status.switches[0].ports[2].drops {
            // The host's own stack sends untagged reports, too.
            assert!(drops[&DropReason::NoPvid] >= 1 && drops[&DropReason::NoVlan] == 1, "{drops:?}");
        }
    }
}
