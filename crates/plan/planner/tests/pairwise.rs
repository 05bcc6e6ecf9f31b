//! Every pair of values of any two options: a plan that the judge finds fit, or a refusal before planning, with a way out
//! that works.
//!
//! Requests are chosen so that each covers as many pairs as possible that none before it did (seeded, the same every time).

mod common;

use common::{Cabling, covering::every_pair};
use fabric::{
    Demand, EngineName, FdbMode, Flood, FlowControl, InBand, Policy, Resilience, StormLimit, SwitchId, Tagging,
    Topology, TopologyBuilder, Traffic, TrafficMatrix, VlanId, VlanPool, VlanSet,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{PlanError, StepLimit, plan_with};

/// How many values each option has; [`request`] says which.
const VALUES: [usize; 13] = [6, 5, 5, 3, 2, 5, 4, 2, 3, 4, 4, 4, 2];

/// The topology and policy that stand for a value of each option, in the order of [`VALUES`].
fn request(values: &[usize]) -> (Topology, Policy) {
    let [engine, tagging, flow_control, fdb, resilience, cap, range, managed, traffic, tables, shape, flood, storm] =
        *values
    else {
        panic!("a value of each option")
    };
    let id = |id: u16| VlanId::new(id).expect("in range");
    let mut topology = match shape {
        0 => generated("torus", "3x3"),
        1 => generated("fat-tree", "k=4"),
        2 => generated("mesh", "4x1"),
        _ => Cabling::random(7, 6, &mut Rng::new(3)).topology().expect("connected"),
    };
    let mut builder = TopologyBuilder::of(&topology);
    if managed == 1 {
        let controller = builder.add_port(SwitchId::new(0), "ctl").expect("a fresh port");
        builder.set_in_band(InBand { vlan: id(3), controller }).expect("a free port");
    }
    builder.change_models(|model| match tables {
        0 => {}
        1 => model.static_entries_max = 40,
        2 => model.vlans_max = 4,
        _ => {
            (model.hybrid_ports, model.pfc_classes) = (false, 2);
            model.blocks_floods = Flood::Drop.blocked();
            model.storm_control = false;
        }
    });
    topology = builder.finish().expect("connected");
    let hosts = topology.hosts().len();
    let demand = |(source, destination)| Demand { source, destination, amount: 2.5 };
    let ends = topology.host_ids().zip(topology.host_ids().skip(1));
    let policy = Policy {
        engine: [
            EngineName::Auto,
            EngineName::Balanced,
            EngineName::Tree,
            EngineName::Updown,
            EngineName::Dor,
            EngineName::Clos,
        ][engine],
        tagging: Tagging::ALL[tagging],
        flow_control: [
            FlowControl::Pause,
            FlowControl::None,
            FlowControl::Pfc(1),
            FlowControl::Pfc(2),
            FlowControl::Pfc(8),
        ][flow_control],
        fdb: [FdbMode::Minimal, FdbMode::Full, FdbMode::Learned][fdb],
        // Much is refused together with dropping floods.
        flood: [Flood::Forward, Flood::Forward, Flood::Drop, Flood::DropAll][flood],
        storm_limit: [None, StormLimit::new(5)][storm],
        resilience: [Resilience::None, Resilience::OneLink][resilience],
        vlans_max: [None, Some(1), Some(2), Some(5), Some(9)][cap],
        vlans: match range {
            0 => VlanPool::default(),
            1 => VlanPool { first: id(2), last: id(4), reserved: VlanSet::new() },
            2 => VlanPool { first: id(2), last: id(9), reserved: [id(5)].into_iter().collect() },
            _ => VlanPool { first: id(4090), last: id(4094), reserved: VlanSet::new() },
        },
        traffic: match traffic {
            0 => Traffic::AllToAll,
            1 => Traffic::Matrix(TrafficMatrix::new(hosts, ends.map(demand).collect()).expect("sane")),
            _ => Traffic::Matrix(TrafficMatrix::new(hosts, Vec::new()).expect("sane")),
        },
        ..Policy::default()
    };
    (topology, policy)
}

fn generated(kind: &str, size: &str) -> Topology {
    let kind = Kind::parse(kind, &[size.to_owned()]).expect("a valid size");
    generate(&kind, &Options::default()).expect("a sane size")
}

#[test]
fn every_pair_of_options_is_planned_or_refused_with_a_way_out() {
    let (mut planned, mut refused) = (0, 0);
    for values in every_pair(&VALUES, 1) {
        let (topology, policy) = request(&values);
        let what = format!("{values:?}, {policy:?}");
        match plan_with(&topology, &policy, None, &mut StepLimit::new(2)) {
            Ok(plan) => {
                let report = verify::check(&plan);
                assert!(report.is_deployable(), "{what}\n{report}");
                planned += 1;
            }
            Err(PlanError::LearnedUnproven { .. }) => refused += 1,
            Err(error) => {
                assert!(error.to_string().contains("; "), "{what}\n{error}");
                refused += 1;
            }
        }
    }
    eprintln!("{planned} planned, {refused} refused");
    assert!(planned > 10 && refused > 10, "{planned} planned, {refused} refused");
}
