//! Routes drawn by hand, as device state: for experiments that no sound plan would contain.
//!
//! Every source gets a VLAN of its own, its host's port the PVID, and each switch on its routes a static entry a
//! destination. The certificate goes, since nobody has looked whether these routes can deadlock.
//! Source: the switch-tagged method, \[Otsuka\] 3.2 and 3.3.

use fabric::{
    Admin, Assignment, ChannelId, DeviceIntent, FdbRun, FlowControlMode, HostId, Plan, PortId, PortIntent, PortRole,
    Tagging, Topology, VlanId, VlanSet,
};

/// A route drawn by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandRoute {
    /// Who sends.
    pub source: HostId,
    /// To whom.
    pub destination: HostId,
    /// The channels between switches, in order.
    pub channels: Vec<ChannelId>,
}

/// A plan whose device state is these routes and nothing else. The rest of `plan` stays and no longer describes it.
///
/// # Panics
/// If a route does not lead from its source's switch to its destination's, or there are more than 4,000 hosts.
pub fn with_routes(plan: &Plan, routes: &[HandRoute], flow_control: FlowControlMode) -> Plan {
    let topology = &plan.topology;
    let vlan_of = |host: HostId| VlanId::new(2 + host.index() as u16).expect("at most 4,000 hosts");
    let all: VlanSet = topology.host_ids().map(vlan_of).collect();
    let mut devices: Vec<DeviceIntent> = topology
        .switch_ids()
        .map(|switch| {
            let ports = topology.port_ids(switch).map(|port| blank(topology, port, &all, &flow_control, vlan_of));
            DeviceIntent { ports: ports.collect(), ..DeviceIntent::blank(switch) }
        })
        .collect();
    for HandRoute { source, destination, channels } in routes {
        let vlan = vlan_of(*source);
        let mut at = topology.switch_of(*source);
        let mut exits: Vec<PortId> = Vec::new();
        for channel in channels {
            assert_eq!(topology.tail(*channel), at, "the route of {source:?} is broken");
            at = topology.head(*channel);
            exits.push(topology.tail_port(*channel));
        }
        assert_eq!(topology.switch_of(*destination), at, "the route of {source:?} ends elsewhere");
        exits.push(topology.host(*destination).port);
        for port in exits {
            let device = &mut devices[topology.port(port).switch.index()];
            device.fdb.push(FdbRun { vlan, first: *destination, last: *destination, port });
        }
    }
    for device in &mut devices {
        device.fdb.sort_unstable();
        device.fdb.dedup();
    }
    let mut policy = plan.policy.clone();
    policy.tagging = Tagging::Switch;
    let assignment = Assignment::Source(topology.host_ids().map(vlan_of).collect());
    Plan { devices, policy, assignment, trees: Vec::new(), certificate: None, ..plan.clone() }
}

fn blank(
    topology: &Topology,
    port: PortId,
    all: &VlanSet,
    flow_control: &FlowControlMode,
    vlan_of: impl Fn(HostId) -> VlanId,
) -> PortIntent {
    let (role, pvid, tagged, untagged) = match topology.port(port).attachment {
        fabric::Attachment::Nothing => (PortRole::Unused, None, VlanSet::new(), VlanSet::new()),
        fabric::Attachment::Member(_) => (PortRole::Member, None, VlanSet::new(), VlanSet::new()),
        fabric::Attachment::Host(host) => (PortRole::Host(host), Some(vlan_of(host)), VlanSet::new(), all.clone()),
        fabric::Attachment::Link(link) => (PortRole::Link(link), None, all.clone(), VlanSet::new()),
    };
    let flow_control = flow_control.clone();
    PortIntent { role, admin: Admin::Up, pvid, tagged, untagged, flow_control, ..PortIntent::unused(port) }
}
