//! Small plans for tests.
#![allow(dead_code)]

use fabric::{
    ChannelId, FlowControlMode, HostId, Plan, Policy, Topology,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use sim::{
    hand::{HandRoute, with_routes},
    packet::{Buffers, Limit, PacketConfig, Refresh},
    workload::{Flow, SECOND_PS},
};

/// Plans a generated topology.
pub(crate) fn plan_of(kind: &str, size: &str, hosts: usize, policy: &Policy) -> Plan {
    let kind = Kind::parse(kind, &[size.to_owned()]).expect("a kind");
    let options = Options { hosts_per_switch: Some(hosts), ..Options::default() };
    planner::plan(&generate(&kind, &options).expect("a topology"), policy, None).expect("a plan")
}

/// A ring of four switches whose every host sends two hops clockwise: a cycle of dependencies.
pub(crate) fn clockwise_ring(hosts: usize, flow_control: FlowControlMode) -> Plan {
    let plan = plan_of("torus", "4", hosts, &Policy::default());
    let topology = &plan.topology;
    let clockwise = |switch: usize| {
        let next = (switch + 1) % 4;
        let leaves = topology.channels_from(fabric::SwitchId::new(switch));
        *leaves.iter().find(|channel| topology.head(**channel).index() == next).expect("a ring")
    };
    let mut routes = Vec::new();
    for source in topology.host_ids() {
        let at = topology.switch_of(source).index();
        let channels: Vec<ChannelId> = vec![clockwise(at), clockwise((at + 1) % 4)];
        for destination in topology.hosts_of(fabric::SwitchId::new((at + 2) % 4)) {
            routes.push(HandRoute { source, destination: *destination, channels: channels.clone() });
        }
    }
    with_routes(&plan, &routes, flow_control)
}

/// The hosts opposite each other on the ring of four.
pub(crate) fn opposite(plan: &Plan) -> Vec<(HostId, HostId)> {
    let topology = &plan.topology;
    topology
        .host_ids()
        .map(|host| {
            let at = topology.switch_of(host);
            let number = topology.hosts_of(at).iter().position(|own| *own == host).expect("on its switch");
            (host, topology.hosts_of(fabric::SwitchId::new((at.index() + 2) % 4))[number])
        })
        .collect()
}

/// Every host sends to a randomly chosen other one without end: few flows that last fill a cycle sooner than many that take turns.
pub(crate) fn random_permutation(topology: &Topology, rng: &mut Rng) -> Vec<Flow> {
    let mut partners: Vec<HostId> = topology.host_ids().collect();
    rng.shuffle(&mut partners);
    let pairs = topology.host_ids().zip(partners).filter(|(source, to)| source != to);
    pairs.map(|(source, to)| Flow::flood(source, to)).collect()
}

/// Small buffers, in which a deadlock forms soon. A look for one is one pause time: 0.25 ms on 1 Gbit/s.
pub(crate) fn freezing_config(seed: u64) -> PacketConfig {
    let buffers = Buffers {
        pool_bytes: 1 << 22,
        ingress: Limit::Static(24 << 10),
        xoff_bytes: 6 << 10,
        xon_bytes: 3 << 10,
        ..Buffers::default()
    };
    PacketConfig {
        buffers,
        refresh: Refresh::HalfTime,
        pause_quanta: 500,
        duration_ps: SECOND_PS / 40,
        seed,
        ..PacketConfig::default()
    }
}
