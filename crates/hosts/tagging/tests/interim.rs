//! What hosts are told between two steps of a hitless change says what the steps say.

use std::collections::BTreeMap;

use fabric::{
    FlowControl, Mac, Plan, Policy, Tagging, Topology, VlanId, VlanPool,
    generate::{Kind, Options, generate},
};
use planner::{StepLimit, plan_with};
use tagging::{
    Config, Route,
    config::{Failover, Mode},
    interim,
};
use transition::{FabricState, StepKind, Transition, apply, steps};

fn torus() -> Topology {
    generate(&Kind::parse("torus", &["3x3".to_owned()]).expect("a size"), &Options::default()).expect("sane")
}

fn planned(tagging: Tagging, flow_control: FlowControl, paths_max: u32, first: u16) -> Plan {
    let vlans = VlanPool { first: VlanId::new(first).expect("in range"), ..VlanPool::default() };
    let policy = Policy { tagging, flow_control, paths_max, vlans, ..Policy::default() };
    plan_with(&torus(), &policy, None, &mut StepLimit::new(2)).expect("it plans")
}

/// Compares each host's table, made from the text, with the state that the steps have led to.
fn judge(transition: &Transition, state: &FabricState, failover: Failover) -> Config {
    let (topology, tables) = (&transition.topology, state.tables.as_deref().expect("hosts tag"));
    let made = interim::config(topology, &state.devices, tables, failover);
    let config = Config::parse("interim", &made.text()).expect("its own text");
    assert_eq!(config, made);
    for from in topology.host_ids() {
        let own = topology.host(from).macs().next().expect("an address");
        let (told, table) = (config.table(own).expect("listed"), &tables[from.index()]);
        for to in topology.host_ids().filter(|to| *to != from) {
            let route = told.destinations.get(&topology.host(to).macs().next().expect("an address"));
            assert_eq!(route.cloned(), table.vlan_to(to).map(Route::single), "{from:?} to {to:?}");
        }
        assert_eq!(told.group, table.broadcast.map(Route::single));
        assert!(table.receives.iter().all(|vlan| told.receive.contains(vlan)));
        for run in &table.unicast {
            let class = state.devices.iter().find_map(|device| {
                device.classes.iter().position(|vlans| vlans.contains(run.choice)).filter(|class| *class > 0)
            });
            assert_eq!(told.classes.of(run.choice), Some(class.unwrap_or(0) as u8), "the class of {}", run.choice);
        }
    }
    config
}

#[test]
fn hosts_are_told_what_every_step_says() {
    let mut told = BTreeMap::new();
    for tagging in [Tagging::Source, Tagging::Destination, Tagging::SourceDestination, Tagging::Pair] {
        for (flow_control, paths_max) in [(FlowControl::None, 3), (FlowControl::Pause, 1), (FlowControl::Pfc(2), 1)] {
            let [before, after] = [2, 1000].map(|first| planned(tagging, flow_control, paths_max, first));
            let transition = steps(&before, &after).expect("room for both");
            let mut state = transition.start.clone();
            for step in &transition.steps {
                step.parts.iter().for_each(|part| apply(part, &mut state));
                if [StepKind::Ready, StepKind::Flip].contains(&step.kind) {
                    let config = judge(&transition, &state, Failover::None);
                    *told.entry((tagging.to_string(), config.mode.word())).or_insert(0) += 1;
                }
            }
        }
    }
    let modes = |tagging: Tagging| -> Vec<&str> {
        told.keys().filter(|(of, _)| *of == tagging.to_string()).map(|(_, mode)| *mode).collect()
    };
    assert_eq!(modes(Tagging::Source), [Mode::Source.word()], "{told:?}");
    assert_eq!(modes(Tagging::Destination), [Mode::Destination.word()], "{told:?}");
    assert!(
        modes(Tagging::SourceDestination).contains(&Mode::Pair.word()) && told.values().sum::<usize>() >= 24,
        "{told:?}"
    );
}

#[test]
fn a_host_that_joins_is_listed_once_it_sends() {
    let before = planned(Tagging::Source, FlowControl::None, 1, 2);
    let mut joined = fabric::format::native::write_native(&before.topology);
    joined = joined.replacen(
        "hosts:\n",
        &format!("hosts:\n  new: {{mac: \"{}\", port: \"s0-0:new\"}}\n", Mac::local(999)),
        1,
    );
    let topology = fabric::format::native::parse_native("joined.yaml", &joined).expect("a topology");
    let after = plan_with(&topology, &before.policy, Some(&before), &mut StepLimit::new(2)).expect("it plans");
    let transition = steps(&before, &after).expect("room for both");
    let mut state = transition.start.clone();
    let mut listed = Vec::new();
    for step in &transition.steps {
        step.parts.iter().for_each(|part| apply(part, &mut state));
        let tables = state.tables.as_deref().expect("hosts tag");
        let config = interim::config(&transition.topology, &state.devices, tables, Failover::Any);
        listed.push((step.kind, config.hosts.contains_key(&Mac::local(999))));
    }
    assert_eq!(listed.first(), Some(&(StepKind::Ready, false)), "{listed:?}");
    assert!(listed.iter().any(|(kind, is_listed)| *kind == StepKind::Flip && *is_listed), "{listed:?}");
}
