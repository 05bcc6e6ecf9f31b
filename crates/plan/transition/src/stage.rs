//! The stage of a transition: two plans' device state in the terms of one cabling, the one that is there now.
//!
//! ```text
//!   previous  s0:1 ── s1:1      stage   s0:1   (a port without a cable: the new cabling does not know it any more)
//!   next      s0:2 ── s1:2              s0:2 ── s1:2
//! ```
//! Switches, links and hosts have the numbers of the next plan's topology; only ports have their own, since ports that
//! lost their cable are still there and still set up. Entries for addresses that no host has any more become foreign,
//! and so do those of a host whose addresses are others now.

use fabric::{
    Attachment, DeviceIntent, FdbEntry, FdbRun, HostId, HostRun, HostTable, HostTagging, Learning, Models, Plan,
    PortIntent, PortRole, Relation, SwitchSpec, Topology, TopologyBuilder,
};

use super::{FabricState, table};

/// Two plans on one cabling.
pub(crate) struct Stage {
    pub(crate) topology: Topology,
    pub(crate) before: FabricState,
    pub(crate) after: FabricState,
    /// From the previous plan's topology to the stage.
    pub(crate) relation: Relation,
}

impl Stage {
    pub(crate) fn set(previous: &Plan, next: &Plan) -> Self {
        let topology = with_old_ports(&previous.topology, &next.topology);
        let relation = Relation::between(&previous.topology, &topology);
        let arrived = Relation::between(&next.topology, &topology);
        let before = FabricState {
            devices: devices(previous, &topology, &relation),
            tables: tables(previous, &topology, &relation),
        };
        let after =
            FabricState { devices: devices(next, &topology, &arrived), tables: tables(next, &topology, &arrived) };
        Self { topology, before, after, relation }
    }
}

/// The new cabling, with the ports of its switches that only the old one names.
fn with_old_ports(old: &Topology, new: &Topology) -> Topology {
    let mut builder = TopologyBuilder::with_models(Models::of(new));
    let mut ports = Vec::with_capacity(new.ports().len());
    let refused = "a part of a topology is accepted again";
    for id in new.switch_ids() {
        let switch = new.switch(id);
        let spec = SwitchSpec { model: Some(switch.model.name.clone()), mgmt: switch.mgmt };
        let twin = builder.add_switch(&switch.name, spec).expect(refused);
        builder.set_switch_identity(twin, switch.identity.clone()).expect(refused);
        for port in new.port_ids(id) {
            ports.push(builder.add_port(twin, &new.port(port).name).expect(refused));
        }
        for port in old.find_switch(&switch.name).into_iter().flat_map(|before| old.port_ids(before)) {
            // A switch that was replaced by another model may not have the port any more; then it needs no care.
            let _ = builder.add_port(twin, &old.port(port).name);
        }
    }
    for (number, port) in new.ports().iter().enumerate() {
        if let Attachment::Member(lag) = port.attachment {
            builder.add_to_lag(ports[lag.index()], ports[number]).expect(refused);
        }
    }
    for link in new.links() {
        builder.add_link(ports[link.a.index()], ports[link.b.index()], link.rate_bps).expect(refused);
    }
    builder.add_hosts_of(new, |_, host| Some(ports[host.port.index()])).expect(refused);
    builder.add_standby_edges_of(new, |edge| Some(ports[edge.port.index()])).expect(refused);
    if let Some(in_band) = new.in_band() {
        let controller = ports[in_band.controller.index()];
        builder.set_in_band(fabric::InBand { controller, ..in_band }).expect(refused);
        new.return_ports().iter().for_each(|port| builder.add_return_port(ports[port.index()]).expect(refused));
    }
    builder.finish().expect(refused)
}

/// A plan's devices on the stage; switches that the plan does not know are blank.
fn devices(plan: &Plan, stage: &Topology, relation: &Relation) -> Vec<DeviceIntent> {
    let mut from = vec![None; stage.ports().len()];
    for (old, new) in relation.port.iter().enumerate() {
        if let Some(new) = new {
            from[new.index()] = Some(old);
        }
    }
    let device = |switch| {
        let before = relation.switch_from[fabric::SwitchId::index(switch)].map(|before| &plan.devices[before.index()]);
        let ports = stage.port_ids(switch).map(|port| {
            let role = match stage.port(port).attachment {
                Attachment::Nothing => stage.role_without_cable(port),
                Attachment::Host(host) => PortRole::Host(host),
                Attachment::Link(link) => PortRole::Link(link),
                Attachment::Member(_) => PortRole::Member,
            };
            let intent = before.zip(from[port.index()]).and_then(|(device, old)| {
                device.ports.binary_search_by_key(&old, |intent| intent.port.index()).ok().map(|at| &device.ports[at])
            });
            match intent {
                Some(intent) => {
                    let lag = intent.lag.and_then(|lag| relation.port[lag.index()]);
                    PortIntent { port, role, lag, ..intent.clone() }
                }
                None => PortIntent { role, ..PortIntent::unused(port) },
            }
        });
        let ports = ports.collect();
        let (mut fdb, mut foreign) = (Vec::new(), Vec::new());
        for run in before.into_iter().flat_map(|device| &device.fdb) {
            let Some(port) = relation.port[run.port.index()] else { continue };
            for host in run.first.index()..=run.last.index() {
                match relation.station[host] {
                    Some(twin) => push(&mut fdb, FdbRun { vlan: run.vlan, first: twin, last: twin, port }),
                    None => {
                        let macs = plan.topology.hosts()[host].macs();
                        foreign.extend(macs.map(|mac| FdbEntry { vlan: run.vlan, mac, port }));
                    }
                }
            }
        }
        let kept = before.into_iter().flat_map(|device| &device.foreign);
        foreign.extend(kept.filter_map(|entry| Some(FdbEntry { port: relation.port[entry.port.index()]?, ..*entry })));
        foreign.sort_unstable();
        let (classes, spanning_tree, lldp) =
            before.map_or_else(Default::default, |device| (device.classes.clone(), device.spanning_tree, device.lldp));
        let (fdb, learning) = (table::tidy(fdb), Learning::Off);
        DeviceIntent { switch, ports, fdb, foreign, learning, classes, spanning_tree, lldp }
    };
    stage.switch_ids().map(device).collect()
}

/// Appends a run, to the last one if it follows it.
fn push(runs: &mut Vec<FdbRun>, run: FdbRun) {
    match runs.last_mut() {
        Some(last) if (last.vlan, last.port, last.last.index() + 1) == (run.vlan, run.port, run.first.index()) => {
            last.last = run.last;
        }
        _ => runs.push(run),
    }
}

/// What hosts that tag put on their frames and accept: `tables[host]`, empty for hosts that the plan does not know.
/// Cost: O(hosts²).
fn tables(plan: &Plan, stage: &Topology, relation: &Relation) -> Option<Vec<HostTable>> {
    let first = plan.topology.host_ids().next()?;
    if plan.host_intent(first).tagging == HostTagging::BySwitch {
        return None;
    }
    let table = |source: HostId| {
        let Some(from) = relation.host_from[source.index()] else { return HostTable::default() };
        let (mut unicast, mut paths) = (Vec::new(), Vec::new());
        for destination in stage.host_ids().filter(|host| *host != source) {
            let Some(to) = relation.host_from[destination.index()] else { continue };
            append(&mut unicast, destination, plan.assignment.unicast(from, to));
            if let Some(sets) = &plan.paths {
                append(&mut paths, destination, sets.of(from, to).to_vec());
            }
        }
        let port = plan.topology.host(from).port;
        let ports = &plan.devices[plan.topology.port(port).switch.index()].ports;
        let at = ports.binary_search_by_key(&port, |intent| intent.port).expect("a host's port");
        let (broadcast, receives) = (Some(plan.assignment.broadcast(from)), ports[at].tagged.clone());
        HostTable { unicast, broadcast, paths, receives }
    };
    Some(stage.host_ids().map(table).collect())
}

/// Appends a host's choice to runs of them, to the last one if it follows that with the same choice.
pub(crate) fn append<T: PartialEq>(runs: &mut Vec<HostRun<T>>, host: HostId, choice: T) {
    match runs.last_mut() {
        Some(run) if run.choice == choice && run.last.index() + 1 == host.index() => run.last = host,
        _ => runs.push(HostRun { first: host, last: host, choice }),
    }
}
