//! A plan's state, read.
//!
//! ```text
//!   plan.devices ─▶ in order, of the topology, one each ─▶ State, with what switches have learned
//!                     └─▶ not so: a finding, and the most natural reading
//! ```
//! Broken state (missing switches, entries out of order) is reported here once and then read in the most natural way, so
//! that the rest can still be judged.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use fabric::{
    Assignment, Attachment, DeviceIntent, FdbMode, FdbRun, FindingKind, HostId, HostTagging, Mac, Plan, PortId,
    PortIntent, PortRole, SwitchId, Tagging, Topology, Traffic, VlanId, VlanSet,
};

use crate::{findings::Findings, learned, state::FabricState};

/// Reads a plan's state; what is missing or malformed becomes a finding.
pub(crate) fn read_state<'a>(plan: &'a Plan, findings: &mut Findings) -> FabricState<'a> {
    let topology = &plan.topology;
    let (devices, ports) = read_devices(plan, findings);
    let host_by_mac = topology.hosts_by_mac();
    let fdb = topology
        .switch_ids()
        .map(|switch| match devices[switch.index()] {
            Some(device) => usable_runs(topology, switch, device, &host_by_mac, findings),
            None => Cow::Borrowed(&[][..]),
        })
        .collect();
    let mut vlans = VlanSet::new();
    for port in ports.iter().flatten() {
        vlans.extend(port.tagged.iter().chain(port.untagged.iter()));
    }
    let whole = assignment_is_whole(&plan.assignment, topology.hosts().len());
    if !whole {
        findings.fatal(FindingKind::IncompleteState, || {
            let message = "does not name exactly one VLAN for every host and receiver; plan again".to_owned();
            ("assignment".to_owned(), message)
        });
    }
    let traffic = read_traffic(plan, findings);
    let classes = read_classes(devices.iter().copied().flatten());
    let mut state = FabricState {
        plan,
        topology,
        traffic,
        macs_before: topology.hosts().iter().fold(vec![0], |mut before, host| {
            before.push(before[before.len() - 1] + host.macs().count());
            before
        }),
        tagging: match plan.policy.tagging {
            Tagging::Switch => HostTagging::BySwitch,
            Tagging::Pair | Tagging::Source | Tagging::Destination | Tagging::SourceDestination => HostTagging::ByHost,
        },
        devices,
        fdb,
        vlans,
        lanes: plan.trees.iter().map(|tree| (tree.vlan, tree.lane)).collect(),
        classes,
        host_by_mac,
        ports,
        assignment: whole.then_some(&plan.assignment),
    };
    if plan.policy.fdb == FdbMode::Learned {
        learned::settle(&mut state);
    }
    state
}

/// What hosts send to each other; all-to-all where the plan says what cannot be.
fn read_traffic<'a>(plan: &'a Plan, findings: &mut Findings) -> Cow<'a, Traffic> {
    let mut mismatch = |message: String| {
        findings.fatal(FindingKind::PlanMismatch, || ("traffic".to_owned(), message));
        Cow::Owned(Traffic::AllToAll)
    };
    match plan.policy.demand(&plan.topology) {
        Ok(traffic) if traffic.fits(plan.topology.hosts().len()) => traffic,
        Ok(_) => mismatch("is a matrix for another number of hosts; plan again".to_owned()),
        Err(error) => mismatch(format!("cannot be counted: {error}")),
    }
}

/// Sorts the plan's device and port state by what it is about.
fn read_devices<'a>(
    plan: &'a Plan,
    findings: &mut Findings,
) -> (Vec<Option<&'a DeviceIntent>>, Vec<Option<&'a PortIntent>>) {
    let topology = &plan.topology;
    let mut devices: Vec<Option<&DeviceIntent>> = vec![None; topology.switches().len()];
    let mut ports: Vec<Option<&PortIntent>> = vec![None; topology.ports().len()];
    for (position, device) in plan.devices.iter().enumerate() {
        let Some(slot) = devices.get_mut(device.switch.index()) else {
            broken(findings, format!("{:?}", device.switch), "is a switch that the topology does not have".to_owned());
            continue;
        };
        let name = &topology.switch(device.switch).name;
        if slot.is_some() {
            broken(findings, name.clone(), "has its state stated twice".to_owned());
            continue;
        }
        if position != device.switch.index() {
            broken(findings, name.clone(), format!("stands at position {position} of the devices, out of order"));
        }
        *slot = Some(device);
        for port in &device.ports {
            if !topology.switch_ports(device.switch).contains(&port.port.index()) {
                broken(
                    findings,
                    name.clone(),
                    format!("has state for {:?}, which is no port of this switch", port.port),
                );
            } else if ports[port.port.index()].replace(port).is_some() {
                broken(findings, topology.port_label(port.port), "has its state stated twice".to_owned());
            }
        }
        if !device.ports.iter().map(|port| port.port).is_sorted() {
            broken(findings, name.clone(), "has its ports out of order".to_owned());
        }
    }
    for switch in topology.switch_ids() {
        if devices[switch.index()].is_none() {
            broken(findings, topology.switch(switch).name.clone(), "has no state".to_owned());
            continue;
        }
        for port in topology.port_ids(switch) {
            match (ports[port.index()].map(|intent| intent.role), topology.port(port).attachment) {
                (None, _) => broken(findings, topology.port_label(port), "has no state".to_owned()),
                (Some(said), Attachment::Nothing) if said == topology.role_without_cable(port) => {}
                (Some(PortRole::Host(said)), Attachment::Host(host)) if said == host => {}
                (Some(PortRole::Link(said)), Attachment::Link(link)) if said == link => {}
                (Some(PortRole::Member), Attachment::Member(_)) => {}
                (Some(role), attachment) => {
                    let (said, is) = (role_words(topology, role), attachment_words(topology, attachment));
                    findings.fatal(FindingKind::RoleMismatch, || {
                        (topology.port_label(port), format!("is set up for {said}, but its cable leads to {is}"))
                    });
                }
            }
        }
    }
    (devices, ports)
}

fn broken(findings: &mut Findings, subject: String, message: String) {
    findings.fatal(FindingKind::IncompleteState, || (subject, message));
}

fn role_words(topology: &Topology, role: PortRole) -> String {
    match role {
        PortRole::Unused => "nothing".to_owned(),
        PortRole::Controller => "the controller".to_owned(),
        PortRole::Return => "a switch that is left out".to_owned(),
        PortRole::Member => "a LAG".to_owned(),
        PortRole::Host(host) => match topology.hosts().get(host.index()) {
            Some(host) => format!("host {}", host.name),
            None => format!("the unknown host {host:?}"),
        },
        PortRole::Link(link) if link.index() < topology.links().len() => {
            format!("the link {}", topology.link_label(link))
        }
        PortRole::Link(link) => format!("the unknown link {link:?}"),
    }
}

fn attachment_words(topology: &Topology, attachment: Attachment) -> String {
    match attachment {
        Attachment::Nothing => "nothing".to_owned(),
        Attachment::Host(host) => format!("host {}", topology.host(host).name),
        Attachment::Link(link) => format!("the link {}", topology.link_label(link)),
        Attachment::Member(lag) => format!("where {} does", topology.port_label(lag)),
    }
}

/// By VLAN: its class on the first switch that states one. Cost: O(switches · VLANs).
fn read_classes<'a>(devices: impl Iterator<Item = &'a DeviceIntent>) -> BTreeMap<VlanId, u8> {
    let mut classes = BTreeMap::new();
    for device in devices {
        for (class, vlans) in device.classes.iter().enumerate() {
            for vlan in vlans.iter() {
                classes.entry(vlan).or_insert(u8::try_from(class).unwrap_or(u8::MAX));
            }
        }
    }
    classes
}

/// The runs of a device that frames can meet: as they stand if they are in order, else a repaired copy.
fn usable_runs<'a>(
    topology: &Topology,
    switch: SwitchId,
    device: &'a DeviceIntent,
    host_by_mac: &BTreeMap<Mac, HostId>,
    findings: &mut Findings,
) -> Cow<'a, [FdbRun]> {
    let name = &topology.switch(switch).name;
    let is_usable = |run: &FdbRun| {
        run.first <= run.last
            && run.last.index() < topology.hosts().len()
            && topology.switch_ports(switch).contains(&run.port.index())
    };
    let foreign = runs_among_foreign(topology, device, host_by_mac);
    let in_order = device.fdb.windows(2).all(|pair| (pair[0].vlan, pair[0].last) < (pair[1].vlan, pair[1].first));
    if in_order && foreign.is_empty() && device.fdb.iter().all(is_usable) {
        return Cow::Borrowed(&device.fdb);
    }
    for run in device.fdb.iter().filter(|run| !is_usable(run)) {
        findings.fatal(FindingKind::IncompleteState, || {
            let message = format!("has a static entry of VLAN {} for hosts or a port that do not exist", run.vlan);
            (name.clone(), message)
        });
    }
    if !device.fdb.is_sorted_by_key(|run| (run.vlan, run.first)) {
        findings
            .fatal(FindingKind::IncompleteState, || (name.clone(), "has its static entries out of order".to_owned()));
    }
    let mut runs: Vec<FdbRun> = device.fdb.iter().chain(&foreign).filter(|run| is_usable(run)).copied().collect();
    runs.sort_by_key(|run| (run.vlan, run.first));
    let mut repaired: Vec<FdbRun> = Vec::with_capacity(runs.len());
    for mut run in runs {
        if let Some(before) = repaired.last().filter(|before| before.vlan == run.vlan && before.last >= run.first) {
            let (host, vlan) = (&topology.host(run.first).name, run.vlan);
            let (one, other) = (topology.port_label(before.port), topology.port_label(run.port));
            findings.fatal(FindingKind::ContradictoryEntries, || {
                (name.clone(), format!("sends frames of VLAN {vlan} for {host} both to {one} and to {other}"))
            });
            if before.last >= run.last {
                continue;
            }
            run.first = HostId::new(before.last.index() + 1);
        }
        repaired.push(run);
    }
    Cow::Owned(repaired)
}

/// Runs for hosts whose entries a device lists as foreign: one for each host all of whose addresses leave by one port. Entries for
/// some addresses of a host, or by several ports, make no run, so that its frames are found to flood.
fn runs_among_foreign(topology: &Topology, device: &DeviceIntent, host_by_mac: &BTreeMap<Mac, HostId>) -> Vec<FdbRun> {
    let mut found: BTreeMap<(VlanId, HostId), BTreeMap<Mac, PortId>> = BTreeMap::new();
    for entry in &device.foreign {
        if let Some(&host) = host_by_mac.get(&entry.mac) {
            found.entry((entry.vlan, host)).or_default().insert(entry.mac, entry.port);
        }
    }
    let run = |((vlan, host), ports): ((VlanId, HostId), BTreeMap<Mac, PortId>)| {
        let ways: BTreeSet<PortId> = ports.values().copied().collect();
        let is_whole = ports.len() == topology.host(host).macs().count() && ways.len() == 1;
        ways.first().filter(|_| is_whole).map(|port| FdbRun { vlan, first: host, last: host, port: *port })
    };
    found.into_iter().filter_map(run).collect()
}

/// Whether an assignment names a VLAN for every host and, by pair, for every receiver exactly once (a sender's own
/// place among its receivers may stay empty).
fn assignment_is_whole(assignment: &Assignment<VlanId>, hosts: usize) -> bool {
    match assignment {
        Assignment::Source(choice) => choice.len() == hosts,
        Assignment::Destination { choice, broadcast } => choice.len() == hosts && broadcast.len() == hosts,
        Assignment::Priority { choice, priority, broadcast } => {
            [choice.len(), priority.len(), broadcast.len()] == [hosts; 3]
        }
        Assignment::Pair { unicast, broadcast } => {
            broadcast.len() == hosts
                && unicast.len() == hosts
                && unicast.iter().enumerate().all(|(source, runs)| {
                    let reaches = |next: usize, to: usize| next == to || (next == source && next + 1 == to);
                    let mut next = 0;
                    runs.iter().all(|run| {
                        let follows = reaches(next, run.first.index()) && run.first <= run.last;
                        next = run.last.index() + 1;
                        follows
                    }) && reaches(next, hosts)
                })
        }
    }
}
