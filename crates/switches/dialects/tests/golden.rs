//! Golden files: one switch of a square in every language. `BLESS=1 cargo test -p dialects --test golden` rewrites them; read
//! the difference before you commit it.

mod common;

use std::{fmt::Write, fs, path::PathBuf};

use common::{PlanSpec, golden_ports, named_topology, plan};
use dialects::{Difference, Memory, RenderRequest, Target, TargetChoice, write_change, write_full};
use fabric::{Admin, EngineName, FdbMode, FlowControl, FlowControlMode, Mac, Plan, Tagging};
use switch_model::{LagMembership, PortLearning, Slot, SwitchConfig};

#[test]
fn every_language_is_written_as_before() {
    let mut changed = Vec::new();
    for &target in Target::ALL {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{target}.txt"));
        let text = sample(target);
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, text).expect("the golden file can be written");
        } else if fs::read_to_string(&path).unwrap_or_default() != text {
            changed.push(path.display().to_string());
        }
    }
    assert!(changed.is_empty(), "not as before; BLESS=1 rewrites, and the difference wants reading: {changed:#?}");
}

/// A LAG of two ports, in full; the way to one of another two, and to none.
#[test]
fn every_language_with_lags_writes_them_as_before() {
    let mut changed = Vec::new();
    for &target in Target::ALL.iter().filter(|target| target.has_lags()) {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/lags").join(format!("{target}.txt"));
        let text = lag_sample(target);
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, text).expect("the golden file can be written");
        } else if fs::read_to_string(&path).unwrap_or_default() != text {
            changed.push(path.display().to_string());
        }
    }
    assert!(changed.is_empty(), "not as before; BLESS=1 rewrites, and the difference wants reading: {changed:#?}");
}

fn lag_sample(target: Target) -> String {
    let none = |members: &[usize]| {
        let mut names = golden_ports(target, 3);
        names.push("lag1".to_owned());
        let mut config = SwitchConfig::blank(names);
        let always = target.factory(vec![String::new()]).ports[0].learning == PortLearning::Always;
        config.ports.iter_mut().filter(|_| always).for_each(|port| port.learning = PortLearning::Always);
        let lag = Slot::new(3);
        members.iter().for_each(|port| config.ports[*port].lag = LagMembership::Of(lag));
        config
    };
    let with = |members: &[usize]| {
        let mut config = none(members);
        config.vlans = "2-3".parse().expect("a set");
        let (lag, vlan) = (Slot::new(3), config.vlans.iter().next().expect("a VLAN"));
        config.ports[3].tagged = config.vlans.clone();
        config.entries.insert((vlan, Mac::local(1)), lag);
        for port in members.iter().chain(&[3]) {
            config.ports[*port].admin = Admin::Up;
            if !matches!(target, Target::Sonic | Target::Ios) {
                config.ports[*port].flow_control = FlowControlMode::Pause;
            }
        }
        config
    };
    let mut text = String::new();
    let mut add = |title: &str, memory: Memory| {
        for (file, bytes) in memory.files {
            let content = String::from_utf8(bytes).expect("text");
            write!(text, "==== {title}: {file}\n{content}\n").expect("writing to a string");
        }
    };
    let (first, second) = (with(&[0, 1]), with(&[1, 2]));
    let mut memory = Memory::default();
    write_full(target, &first, &mut memory).unwrap_or_else(|error| panic!("{target}: {error}"));
    add("full", memory);
    for (title, before, after) in [("other members", &first, &second), ("no LAG", &second, &none(&[]))] {
        let mut memory = Memory::default();
        write_change(target, before, after, &mut memory).unwrap_or_else(|error| panic!("{target}: {error}"));
        add(title, memory);
    }
    text
}

#[test]
fn the_same_plan_gives_the_same_bytes() {
    for &target in Target::ALL {
        assert_eq!(sample(target), sample(target), "{target}");
    }
}

/// What the third switch of a square is told: everything, hosts tagging; everything, switches tagging, where the language
/// knows hybrid ports; the way there from a single tree; and, where there are lanes, the way on to a plan without.
fn sample(target: Target) -> String {
    let topology = named_topology(target, "torus 4", 1);
    let flow_control = match target {
        Target::Sonic | Target::Eos => FlowControl::Pfc(2),
        Target::Ios => FlowControl::None,
        _ => FlowControl::Pause,
    };
    let spec = |engine, tagging| PlanSpec { engine, tagging, fdb: FdbMode::Minimal, flow_control };
    let tagging = if target.has_hybrid_ports() { Tagging::Switch } else { Tagging::Source };
    let goal = plan(&topology, spec(EngineName::Dor, tagging)).expect("a plan");
    let mut text = String::new();
    section(&mut text, "full", target, &goal, None);
    if target.has_hybrid_ports() {
        let tagged = plan(&topology, spec(EngineName::Dor, Tagging::Pair)).expect("a plan");
        section(&mut text, "full, hosts tag", target, &tagged, None);
    }
    let tree = plan(&topology, spec(EngineName::Tree, tagging)).expect("a plan");
    section(&mut text, "since a single tree", target, &goal, Some(&tree));
    if matches!(flow_control, FlowControl::Pfc(_)) {
        let spec = PlanSpec { flow_control: FlowControl::None, ..spec(EngineName::Dor, tagging) };
        section(&mut text, "since lanes", target, &plan(&topology, spec).expect("a plan"), Some(&goal));
    }
    text
}

fn section(text: &mut String, title: &str, target: Target, plan: &Plan, since: Option<&Plan>) {
    let mut memory = Memory::default();
    let request = RenderRequest {
        plan,
        digest: "0123456789abcdef",
        target: TargetChoice::Named(target),
        switch: Some("s2"),
        since: since.map(|plan| Difference { plan, digest: "fedcba9876543210" }),
    };
    let parts = dialects::render(&request, &mut memory).unwrap_or_else(|error| panic!("{target}: {error}"));
    for file in parts.iter().flat_map(|part| &part.files) {
        let content = String::from_utf8(memory.files[file].clone()).expect("text");
        write!(text, "==== {title}: {file}\n{content}\n").expect("writing to a string");
    }
}
