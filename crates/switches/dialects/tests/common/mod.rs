//! Plans on switches whose ports are named as a language wants them, and their texts.
#![allow(dead_code, reason = "each test program uses its part")]

use dialects::{Memory, RenderRequest, Target, TargetChoice, TextFile, read_back};
use fabric::{
    EngineName, FdbMode, FlowControl, Plan, Policy, Tagging, Topology,
    format::{
        exchange::{Format, ImportOptions, import},
        native::write_native,
    },
    generate::{Kind, Options, generate},
};
use switch_model::SwitchConfig;

/// What a plan is asked for.
#[derive(Clone, Copy)]
pub(crate) struct PlanSpec {
    pub(crate) engine: EngineName,
    pub(crate) tagging: Tagging,
    pub(crate) fdb: FdbMode,
    pub(crate) flow_control: FlowControl,
}

/// A model whose ports are named as the language wants them.
fn model(target: Target) -> &'static str {
    match target {
        Target::PowerConnect => "powerconnect-5324",
        Target::CiscoSb => "cisco-sg300-28",
        Target::EdgeCore => "smc-8648t",
        Target::Comware7 | Target::Comware5 => "hpe-5130-48",
        Target::Huawei => "huawei-s5700-48",
        Target::Zyxel => "zyxel-gs4012f",
        Target::TpLink => "tplink-t2600g-28",
        Target::Fastpath => "netgear-m4100-26",
        Target::RouterOs => "mikrotik-crs326",
        _ => "generic",
    }
}

/// Port names of golden texts.
pub(crate) fn golden_ports(target: Target, count: usize) -> Vec<String> {
    let name = |number: usize| match target {
        Target::PowerConnect => format!("g{number}"),
        Target::CiscoSb => format!("gi{number}"),
        Target::EdgeCore => format!("1/{number}"),
        Target::Comware7 | Target::Comware5 => format!("GigabitEthernet1/0/{number}"),
        Target::Huawei => format!("GigabitEthernet0/0/{number}"),
        Target::Zyxel => number.to_string(),
        Target::TpLink => format!("1/0/{number}"),
        Target::Fastpath => format!("0/{number}"),
        Target::RouterOs => format!("ether{number}"),
        _ => format!("p{number}"),
    };
    (1..=count).map(name).collect()
}

/// A topology of generated shape, of generic switches with the language's port names.
pub(crate) fn named_topology(target: Target, shape: &str, hosts_per_switch: usize) -> Topology {
    let (family, sizes) = shape.split_once(' ').expect("a family and its sizes");
    let kind = Kind::parse(family, &[sizes.to_owned()]).expect("a kind");
    let options = Options {
        hosts_per_switch: Some(hosts_per_switch),
        model: Some(model(target).to_owned()),
        ..Options::default()
    };
    let text = write_native(&generate(&kind, &options).expect("a topology"));
    let text = text.replace(&format!("model: {}", model(target)), "model: generic");
    import(Format::Native, &[("f", &text)], &ImportOptions::default()).expect("still a topology").topology
}

/// Three switches in a ring. `s0` has two LAGs: `lag1` to `s1`, and the `lag` of the host `n1`, with these members among its ports 1,
/// 2, 5, 6 and 7.
pub(crate) fn lag_topology(target: Target, to_s1: [usize; 2], lag: &str, to_n1: [usize; 2]) -> Topology {
    let names = golden_ports(target, 7);
    let name = |number: usize| names[number - 1].as_str();
    let members = |ports: [usize; 2]| format!("[\"{}\", \"{}\"]", name(ports[0]), name(ports[1]));
    let text = format!(
        "switches:\n  s0: {{lags: {{lag1: {}, {lag}: {}}}}}\n  s1: {{lags: {{lag1: {}}}}}\n  s2: {{}}\nlinks:\n  \
         - s0:lag1 -- s1:lag1\n  - \"s1:{p3} -- s2:{p1}\"\n  - \"s2:{p2} -- s0:{p3}\"\nhosts:\n  \
         n1: {{mac: \"02:00:00:00:00:01\", port: \"s0:{lag}\"}}\n  n2: {{mac: \"02:00:00:00:00:02\", port: \"s1:{p4}\"}}\n  \
         n3: {{mac: \"02:00:00:00:00:03\", port: \"s2:{p4}\"}}\n  n4: {{mac: \"02:00:00:00:00:04\", port: \"s0:{p4}\"}}\n",
        members(to_s1),
        members(to_n1),
        members([1, 2]),
        p1 = name(1),
        p2 = name(2),
        p3 = name(3),
        p4 = name(4),
    );
    import(Format::Native, &[("f", &text)], &ImportOptions::default()).expect("a topology").topology
}

/// A plan, if the engine fits.
pub(crate) fn plan(topology: &Topology, spec: PlanSpec) -> Option<Plan> {
    let PlanSpec { engine, tagging, fdb, flow_control } = spec;
    let policy = Policy { engine, tagging, fdb, flow_control, ..Policy::default() };
    planner::plan(topology, &policy, None).ok()
}

/// The full configuration of every switch.
pub(crate) fn render_all(plan: &Plan, target: Target) -> Memory {
    let mut memory = Memory::default();
    let request = RenderRequest {
        plan,
        digest: "0123456789abcdef",
        target: TargetChoice::Named(target),
        switch: None,
        since: None,
    };
    dialects::render(&request, &mut memory).unwrap_or_else(|error| panic!("{target}: {error}"));
    memory
}

/// The files of one switch.
pub(crate) fn parts(texts: &Memory, switch: &str) -> Vec<(String, String)> {
    let own = |name: &str| name.split(['.', '/']).next() == Some(switch);
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).expect("text");
    texts.files.iter().filter(|(name, _)| own(name)).map(|(name, bytes)| (name.clone(), text(bytes))).collect()
}

/// The plan with what the texts say in place of its devices, and each switch's state.
pub(crate) fn read_all(plan: &Plan, target: Target, texts: &Memory) -> Result<(Plan, Vec<SwitchConfig>), String> {
    let (mut read, mut configs) = (plan.clone(), Vec::new());
    for switch in plan.topology.switch_ids() {
        let name = &plan.topology.switch(switch).name;
        let own = parts(texts, name);
        let files: Vec<TextFile<'_>> = own.iter().map(|(name, text)| TextFile { name, text }).collect();
        let ports = plan.topology.port_ids(switch).map(|port| plan.topology.port(port).name.clone()).collect();
        let config = read_back(target, &files, target.factory(ports))
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
        read.devices[switch.index()] = config.to_intent(&plan.topology, &plan.devices[switch.index()]);
        configs.push(config);
    }
    Ok((read, configs))
}
