//! Golden files: one switch of a square in every language. `BLESS=1 cargo test -p dialects --test golden` rewrites them; read
//! the difference before you commit it.

mod common;

use std::{fmt::Write, fs, path::PathBuf};

use common::{PlanSpec, named_topology, plan};
use dialects::{Difference, Memory, RenderRequest, Target, TargetChoice};
use fabric::{EngineName, FdbMode, FlowControl, Plan, Tagging};

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
