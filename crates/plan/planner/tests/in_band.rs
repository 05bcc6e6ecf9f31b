//! Plans of fabrics that are managed over their own cables: judged by `verify`, and kept from plan to plan.

use std::collections::BTreeSet;

use fabric::{
    Attachment, EngineName, FlowControl, InBand, Plan, Policy, PortId, SwitchId, Tagging, Topology, TopologyBuilder,
    VlanId,
    format::{
        native::{parse_native, write_native},
        plan::{ReadMode, read_plan, write_plan},
    },
    generate::{Kind, Options, generate},
    return_ports,
};
use planner::{StepLimit, plan_with};
use proptest::prelude::*;

fn managed(seed: u64, vlan: u16, at: usize) -> Topology {
    let kind = Kind::parse("random-regular", &[format!("n=10,d=3,seed={seed}")]).expect("a kind");
    let topology = generate(&kind, &Options { hosts_per_switch: Some(1), ..Options::default() }).expect("a topology");
    let mut builder = TopologyBuilder::of(&topology);
    let controller = builder.add_port(SwitchId::new(at), "ctl").expect("a free name");
    builder.set_in_band(InBand { vlan: VlanId::new(vlan).expect("valid"), controller }).expect("a free port");
    builder.finish().expect("connected")
}

fn few_steps(topology: &Topology, policy: &Policy, previous: Option<&Plan>) -> Plan {
    plan_with(topology, policy, previous, &mut StepLimit::new(3)).expect("auto always finds a plan")
}

/// The cables of the management VLAN, as people write them.
fn tree(plan: &Plan) -> BTreeSet<String> {
    let in_band = plan.topology.in_band().expect("in band");
    let links = in_band.links(&plan.topology, &plan.devices);
    assert_eq!(links.len() + 1, plan.topology.switches().len(), "a tree");
    assert_eq!(in_band.outward(&plan.topology, &links).len(), plan.topology.switches().len(), "that reaches everybody");
    links.iter().map(|link| plan.topology.link_label(*link)).collect()
}

/// The topology without these switches, with these ports for their return.
fn without(topology: &Topology, gone: &BTreeSet<SwitchId>, ports: &[PortId]) -> Option<Topology> {
    let mut builder = TopologyBuilder::of(&topology.without_switches(gone).ok()?);
    for port in ports {
        let near = topology.port(*port);
        let switch = builder.switch(&topology.switch(near.switch).name).expect("it is left");
        let port = builder.add_port(switch, &near.name).expect("a port of it");
        builder.add_return_port(port).expect("its cable is gone");
    }
    builder.finish().ok()
}

/// The switch that a port's cable leads to.
fn far_switch(topology: &Topology, port: PortId) -> SwitchId {
    let Attachment::Link(link) = topology.port(port).attachment else { panic!("no cable") };
    let link = topology.link(link);
    topology.port(if link.a == port { link.b } else { link.a }).switch
}

fn without_flow_control(tagging: Tagging) -> Policy {
    Policy { tagging, flow_control: FlowControl::None, ..Policy::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// A switch at the end of the tree that is left out has a port to return by, which is planned, judged and written down, stays in
    /// the next plan without it, and is a cable of the tree once the switch is planned again.
    #[test]
    fn a_switch_that_is_left_out_returns_by_the_end_of_the_tree(
        seed in 0_u64..1000,
        vlan in prop::sample::select(vec![1_u16, 2, 4094]),
        at in 0_usize..10,
        which in 0_usize..10,
    ) {
        let topology = managed(seed, vlan, at);
        let policy = without_flow_control(Tagging::Switch);
        let plan = few_steps(&topology, &policy, None);
        let in_band = topology.in_band().expect("in band");
        let outward = in_band.outward(&topology, &in_band.links(&topology, &plan.devices));
        let (last, link) = outward[outward.len() - 1 - which % 3];
        let gone = BTreeSet::from([last]);
        let ports = return_ports(&plan, &plan, &gone);
        prop_assert_eq!(ports.len(), 1);
        let ends = [topology.link(link.expect("not the first")).a, topology.link(link.expect("not the first")).b];
        prop_assert!(ends.contains(&ports[0]) && far_switch(&topology, ports[0]) == last);
        let Some(left) = without(&topology, &gone, &ports) else { return Ok(()) };
        prop_assert_eq!(&parse_native("t", &write_native(&left)).expect("what was written"), &left);
        let between = few_steps(&left, &policy, Some(&plan));
        let report = verify::check(&between);
        prop_assert!(report.is_deployable(), "{report}");
        let mut text = Vec::new();
        write_plan(&between, &mut text).expect("into memory");
        prop_assert_eq!(&read_plan(&text, ReadMode::Strict).expect("what was written"), &between);
        prop_assert_eq!(return_ports(&plan, &between, &gone), ports.clone());
        let again = few_steps(&topology, &policy, Some(&between));
        prop_assert!(verify::check(&again).is_deployable());
        let Attachment::Link(back) = topology.port(ports[0]).attachment else { panic!("no cable") };
        prop_assert!(tree(&again).contains(&topology.link_label(back)));
    }

    /// The tree with the ends toward whatever switches are gone is a tree, and where management has no tag, no two ports lead to
    /// switches that are cabled with one another by others that are gone.
    #[test]
    fn ports_for_the_return_of_switches_close_no_ring(
        seed in 0_u64..1000,
        vlan in prop::sample::select(vec![1_u16, 4094]),
        gone in prop::collection::btree_set(1_usize..10, 1..5),
    ) {
        let topology = managed(seed, vlan, 0);
        let plan = few_steps(&topology, &without_flow_control(Tagging::Switch), None);
        let gone: BTreeSet<SwitchId> = gone.into_iter().map(SwitchId::new).collect();
        let ports = return_ports(&plan, &plan, &gone);
        let far: Vec<SwitchId> = ports.iter().map(|port| far_switch(&topology, *port)).collect();
        prop_assert!(far.iter().all(|switch| gone.contains(switch)));
        prop_assert!(ports.iter().all(|port| !gone.contains(&topology.port(*port).switch)));
        prop_assert_eq!(far.iter().collect::<BTreeSet<_>>().len(), far.len(), "one port a switch");
        prop_assert!(!ports.is_empty(), "the way to the first of them is open");
        // Parts of what is gone, by cables of any kind.
        let mut part: Vec<usize> = (0..10).collect();
        for link in topology.links() {
            let ends = [link.a, link.b].map(|end| topology.port(end).switch);
            if ends.iter().all(|switch| gone.contains(switch)) {
                let [a, b] = ends.map(|switch| part[switch.index()]);
                part.iter_mut().filter(|part| **part == a).for_each(|part| *part = b);
            }
        }
        let parts: BTreeSet<usize> = far.iter().map(|switch| part[switch.index()]).collect();
        prop_assert!(vlan != 1 || parts.len() == far.len(), "two ports lead to one part");
    }

    /// Whatever the cabling, the VLAN and the controller's place, the judge finds nothing, and files keep all of it.
    #[test]
    fn a_managed_fabric_passes_the_judge(
        seed in 0_u64..1000,
        vlan in prop::sample::select(vec![1_u16, 2, 3, 100, 4094]),
        at in 0_usize..10,
        tagging in prop::sample::select(Tagging::ALL),
    ) {
        let topology = managed(seed, vlan, at);
        prop_assert_eq!(&parse_native("t", &write_native(&topology)).expect("what was written"), &topology);
        let policy = Policy { tagging, flow_control: FlowControl::None, engine: EngineName::Auto, ..Policy::default() };
        let plan = few_steps(&topology, &policy, None);
        let report = verify::check(&plan);
        prop_assert!(report.is_deployable(), "{report}");
        tree(&plan);
        prop_assert!(plan.tree(VlanId::new(vlan).expect("valid")).is_none(), "no data travels there");
        let mut text = Vec::new();
        write_plan(&plan, &mut text).expect("into memory");
        prop_assert_eq!(&read_plan(&text, ReadMode::Strict).expect("what was written"), &plan);
    }

    /// A cable that fails costs the tree that cable alone, and one that does not belong to it costs it nothing.
    #[test]
    fn the_tree_is_kept_from_plan_to_plan(seed in 0_u64..1000, at in 0_usize..10, gone in 0_usize..15) {
        let topology = managed(seed, 100, at);
        let before = few_steps(&topology, &Policy::default(), None);
        let label = topology.link_label(fabric::LinkId::new(gone));
        let text: String =
            write_native(&topology).lines().filter(|line| !line.contains(&label)).map(|line| format!("{line}\n")).collect();
        // Ten switches of three cables stay connected, mostly.
        let Ok(less) = parse_native("t", &text) else { return Ok(()) };
        let after = few_steps(&less, &Policy::default(), Some(&before));
        prop_assert!(verify::check(&after).is_deployable());
        let (old, new) = (tree(&before), tree(&after));
        let lost: Vec<&String> = old.difference(&new).collect();
        prop_assert!(lost.iter().all(|link| **link == label), "{lost:?} without {label}");
    }
}

/// Where full buffers wait, management rarely closes a ring with data, and the judge says where it does. The nearest cables
/// close one in most of these plans.
#[test]
fn management_waits_in_few_rings() {
    let (mut plans, mut rings) = (0, Vec::new());
    for seed in 0..40 {
        for flow_control in [FlowControl::Pause, FlowControl::Pfc(2)] {
            for tagging in [Tagging::Switch, Tagging::Destination, Tagging::SourceDestination] {
                let policy = Policy { tagging, flow_control, engine: EngineName::Auto, ..Policy::default() };
                let plan = few_steps(&managed(seed, 100, seed as usize % 10), &policy, None);
                let report = verify::check(&plan);
                assert!(report.is_deployable(), "{report}");
                let said = report.findings().iter().map(ToString::to_string);
                rings
                    .extend(said.filter(|text| text.contains("management VLAN 100: frames of data cannot block, but")));
                plans += 1;
            }
        }
    }
    assert!(rings.len() * 20 <= plans, "{} of {plans}: {rings:?}", rings.len());
}
