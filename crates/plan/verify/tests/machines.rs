//! Machines with several ports and addresses: what the judge counts, and what it finds where entries are for some addresses.

mod common;

use common::{Wish, clos, plan, with_traffic};
use fabric::{FdbEntry, FindingKind as K, HostId, Mac, Plan, PortId, Rails, Topology, TopologyBuilder, Traffic};
use verify::check;

/// The switches of a cabling with their ports, by its numbers of ports, and no cable.
fn uncabled(network: &Topology) -> (TopologyBuilder, Vec<PortId>) {
    let (mut builder, mut ports) = (TopologyBuilder::new(), Vec::new());
    for id in network.switch_ids() {
        let switch = builder.add_switch(&network.switch(id).name, Default::default()).unwrap();
        ports.extend(network.port_ids(id).map(|port| builder.add_port(switch, &network.port(port).name).unwrap()));
    }
    (builder, ports)
}

/// Two machines with a port on each of two rails, and two single hosts, of which the first has two further addresses.
fn machines() -> Topology {
    let network = clos();
    let (mut builder, ports) = uncabled(&network);
    for (number, host) in network.hosts().iter().enumerate() {
        let machine = (number < 4).then(|| format!("m{}", number / 2));
        let name = machine.as_ref().map_or(host.name.clone(), |machine| format!("{machine}/{}", number % 2));
        let added = builder.add_host(&name, host.mac, ports[host.port.index()], host.rate_bps, None).unwrap();
        if let Some(machine) = machine {
            builder.join_machine(&machine).unwrap();
            builder.set_rail(added, (number % 2) as u8);
        }
    }
    for mac in [101, 102] {
        builder.add_mac(HostId::new(4), Mac::local(mac)).unwrap();
    }
    for link in network.links() {
        builder.add_link(ports[link.a.index()], ports[link.b.index()], link.rate_bps).unwrap();
    }
    builder.finish().unwrap()
}

fn planned(rails: Rails) -> Plan {
    let mut plan = plan(&machines(), Wish::switch_tagged());
    plan.policy.rails = rails;
    let demand = plan.policy.demand(&plan.topology).unwrap().into_owned();
    let mut plan = with_traffic(plan, demand);
    plan.policy.traffic = Traffic::AllToAll;
    plan
}

fn kinds(plan: &Plan) -> Vec<K> {
    check(plan).findings().iter().map(|finding| finding.kind).collect()
}

#[test]
fn all_to_all_is_counted_between_machines_and_within_rails_if_asked() {
    for rails in Rails::ALL.iter().copied() {
        assert_eq!(kinds(&planned(rails)), [], "{rails}");
    }
    let mut other = planned(Rails::Across);
    other.policy.rails = Rails::Within;
    assert!(!kinds(&other).is_empty(), "what one policy counts is not what the other does");
}

#[test]
fn entries_count_every_address() {
    let plan = planned(Rails::Across);
    let without = common::plan(&clos(), Wish::switch_tagged());
    let vlans_with_host_4: usize = without
        .devices
        .iter()
        .flat_map(|device| &device.fdb)
        .filter(|run| (run.first..=run.last).contains(&HostId::new(4)))
        .count();
    assert_eq!(plan.summary.fdb_entries_total, without.summary.fdb_entries_total + 2 * vlans_with_host_4);
}

/// What a switch holds for the three addresses of host 4, as a live switch is read: entries that make no whole run are foreign.
#[test]
fn entries_for_some_addresses_of_a_host_are_found() {
    let run = |plan: &Plan| *plan.devices[0].fdb.iter().find(|run| run.last >= HostId::new(4)).expect("an entry");
    let single = |plan: &mut Plan| {
        let whole = run(plan);
        let runs = plan.devices[0].fdb.iter().filter(|other| **other != whole).copied();
        let rest = (whole.first.index()..=whole.last.index()).map(HostId::new).filter(|host| host.index() != 4);
        let mut runs: Vec<_> =
            runs.chain(rest.map(|host| fabric::FdbRun { first: host, last: host, ..whole })).collect();
        runs.sort_unstable();
        plan.devices[0].fdb = runs;
        whole
    };
    let entries = |plan: &mut Plan, macs: &[(Mac, usize)]| {
        let whole = single(plan);
        let ports = plan.devices[0].ports.clone();
        let own = ports.iter().position(|port| port.port == whole.port).unwrap();
        let entry = |&(mac, turn): &(Mac, usize)| FdbEntry {
            vlan: whole.vlan,
            mac,
            port: ports[(own + turn) % ports.len()].port,
        };
        plan.devices[0].foreign = macs.iter().map(entry).collect();
    };
    let own = machines().host(HostId::new(4)).macs().collect::<Vec<_>>();
    // All of them, by one port: what a run says, though listed apart.
    let mut plan = planned(Rails::Across);
    entries(&mut plan, &[(own[0], 0), (own[1], 0), (own[2], 0)]);
    assert_eq!(kinds(&plan), [K::ForeignEntry; 3]);
    // One is missing: frames for it flood.
    entries(&mut plan, &[(own[0], 0), (own[2], 0)]);
    let found = kinds(&plan);
    assert!(found.contains(&K::ForeignEntry) && found.contains(&K::Flood), "{found:?}");
    // One leaves by another port.
    let mut plan = planned(Rails::Across);
    entries(&mut plan, &[(own[0], 0), (own[1], 1), (own[2], 0)]);
    let found = kinds(&plan);
    assert!(found.contains(&K::ForeignEntry) && found.contains(&K::Flood), "{found:?}");
}

/// The first two hosts as one machine with a failover bond; the second port is on standby.
fn bonded() -> Topology {
    let network = clos();
    let (mut builder, ports) = uncabled(&network);
    for (number, host) in network.hosts().iter().enumerate() {
        let port = ports[host.port.index()];
        match number {
            0 => {
                builder.add_host("m/0", host.mac, port, host.rate_bps, None).unwrap();
                builder.join_machine("m").unwrap();
            }
            1 => drop(builder.add_standby("m/1", port, host.rate_bps).unwrap()),
            _ => drop(builder.add_host(&host.name, host.mac, port, host.rate_bps, None).unwrap()),
        }
    }
    for link in network.links() {
        builder.add_link(ports[link.a.index()], ports[link.b.index()], link.rate_bps).unwrap();
    }
    builder.finish().unwrap()
}

fn planned_bond() -> Plan {
    let mut plan = plan(&bonded(), Wish::switch_tagged());
    plan.addresses[1] = plan.addresses[0];
    let demand = plan.policy.demand(&plan.topology).unwrap().into_owned();
    let mut plan = with_traffic(plan, demand);
    plan.policy.traffic = Traffic::AllToAll;
    plan
}

#[test]
fn a_standby_port_is_judged_as_a_host_and_carries_no_demand() {
    let plan = planned_bond();
    assert_eq!(kinds(&plan), []);
    let all = common::plan(&clos(), Wish::switch_tagged()).summary;
    assert!(
        plan.summary.max_channel_load < all.max_channel_load,
        "{} of {}",
        plan.summary.max_channel_load,
        all.max_channel_load
    );
    assert!(plan.summary.fdb_entries_total < all.fdb_entries_total, "entries are for the active port alone");
}

/// Entries that are for the standby port are not on switches, but what becomes of them is proven now: without one, frames would flood
/// after a failover.
#[test]
fn a_missing_entry_for_a_standby_port_is_found_before_the_failover() {
    let mut plan = planned_bond();
    let standby = HostId::new(1);
    let at = plan.topology.switch_of(standby);
    let device = &mut plan.devices[at.index()];
    let before = device.fdb.len();
    device.fdb.retain(|run| run.first != standby || run.last != standby);
    assert!(device.fdb.len() < before, "the standby port's own switch has entries for it alone");
    assert!(kinds(&plan).contains(&K::Flood), "{:?}", kinds(&plan));
}

/// Both ends active: a switch that leads frames for the active port's address to the standby port.
#[test]
fn entries_for_the_active_port_that_lead_to_the_standby_port_are_found() {
    let mut plan = planned_bond();
    let (active, standby) = (HostId::new(0), HostId::new(1));
    let (at, port) = (plan.topology.switch_of(standby), plan.topology.host(standby).port);
    let device = &mut plan.devices[at.index()];
    let mut runs = Vec::new();
    for run in &device.fdb {
        let of = |first, last, port| fabric::FdbRun { first, last, port, ..*run };
        if run.first <= active && active <= run.last {
            runs.push(of(active, active, port));
            if run.last > active {
                runs.push(of(HostId::new(active.index() + 1), run.last, run.port));
            }
        } else {
            runs.push(*run);
        }
    }
    device.fdb = runs;
    assert!(kinds(&plan).contains(&K::WrongDelivery), "{:?}", kinds(&plan));
}
