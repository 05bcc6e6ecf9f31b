//! LAGs: a plan with them is clean, and every way to set half of one up is found.

mod common;

use common::{Wish, plan};
use fabric::{Admin, FindingKind as K, Plan, PortId, PortIntent, Severity, Topology, format::native::parse_native};
use verify::check;

const RING: &str = r#"switches:
  a: {lags: {lag1: [p1, p2, p3]}, ports: [spare]}
  b: {lags: {lag4: [p1, p2, p3]}}
  c: {}
links:
  - a:lag1 -- b:lag4
  - b:p5 -- c:p1
  - c:p2 -- a:p5
machines:
  storage: {bond: lacp, mac: "02:00:00:00:00:01", nics: {eth0: {port: "a:p6"}, eth1: {port: "a:p7"}}}
  one: {mac: "02:00:00:00:00:02", port: "b:p6"}
  two: {mac: "02:00:00:00:00:03", port: "c:p6"}
"#;

fn ring() -> Topology {
    parse_native("ring.yaml", RING).expect("valid")
}

fn port(topology: &Topology, label: &str) -> PortId {
    let (switch, name) = label.split_once(':').expect("a label");
    topology.find_port(topology.find_switch(switch).expect("a switch"), name).expect("a port")
}

fn intent<'p>(plan: &'p mut Plan, label: &str) -> &'p mut PortIntent {
    let port = port(&plan.topology, label);
    let mut all = plan.devices.iter_mut().flat_map(|device| &mut device.ports);
    all.find(|intent| intent.port == port).expect("a port of the plan")
}

fn found(plan: &Plan) -> Vec<(Severity, K, String)> {
    let report = check(plan);
    report.findings().iter().map(|finding| (finding.severity, finding.kind, finding.subject.clone())).collect()
}

#[test]
fn a_plan_with_lags_is_clean_and_reckons_with_all_their_members() {
    let bundled = plan(&ring(), Wish::switch_tagged());
    assert_eq!(found(&bundled), []);
    // With one cable for three, the link is the busiest there is.
    let thin = RING.replace("[p1, p2, p3]", "[p1]");
    let thin = plan(&parse_native("thin.yaml", &thin).expect("valid"), Wish::switch_tagged());
    let loads = [&bundled, &thin].map(|plan| plan.summary.max_channel_load);
    assert!(loads[0] <= loads[1], "{loads:?}");
    assert_eq!(bundled.topology.rate_max_bps(), 3_000_000_000);
}

#[test]
fn half_a_lag_is_found_whatever_is_missing() {
    type Damage = fn(&mut Plan);
    let cases: [(&str, Damage, Severity, K, &str); 9] = [
        (
            "a member at one end is a port of its own",
            |p| intent(p, "a:p2").lag = None,
            Severity::Fatal,
            K::LagMismatch,
            "a:p2",
        ),
        (
            "a member is another LAG's",
            |p| intent(p, "a:p2").lag = Some(port(&ring(), "a:lag2")),
            Severity::Fatal,
            K::LagMismatch,
            "a:p2",
        ),
        (
            "a host's port is a member",
            |p| intent(p, "b:p6").lag = Some(port(&ring(), "b:lag4")),
            Severity::Fatal,
            K::LagMismatch,
            "b:p6",
        ),
        (
            "an unused port is a member",
            |p| intent(p, "a:spare").lag = Some(port(&ring(), "a:lag1")),
            Severity::Fatal,
            K::LagMismatch,
            "a:spare",
        ),
        (
            "a member is in a VLAN by itself",
            |p| {
                let vlan = p.trees[0].vlan;
                intent(p, "b:p3").tagged.insert(vlan);
            },
            Severity::Fatal,
            K::LagMismatch,
            "b:p3",
        ),
        (
            "a member has a PVID",
            |p| {
                let vlan = p.trees[0].vlan;
                intent(p, "b:p3").pvid = Some(vlan);
            },
            Severity::Warning,
            K::UnusedSetting,
            "b:p3",
        ),
        ("a member is shut", |p| intent(p, "a:p1").admin = Admin::Down, Severity::Warning, K::LagMismatch, "a:lag1"),
        (
            "all members are shut",
            |p| ["a:p1", "a:p2", "a:p3"].iter().for_each(|port| intent(p, port).admin = Admin::Down),
            Severity::Fatal,
            K::LagMismatch,
            "a:lag1",
        ),
        (
            "a member drops what others hold back",
            |p| intent(p, "a:p3").flow_control = fabric::FlowControlMode::Off,
            Severity::Warning,
            K::FlowControlMismatch,
            "a:p3",
        ),
    ];
    for (name, damage, severity, kind, subject) in cases {
        let mut plan = plan(&ring(), Wish::switch_tagged());
        damage(&mut plan);
        let found = found(&plan);
        assert!(found.contains(&(severity, kind, subject.to_owned())), "{name}: {found:?}");
    }
}

/// What a plan's role says of a port, and what its cable leads to, agree for members as for all others.
#[test]
fn a_member_that_the_plan_takes_for_something_else_is_found() {
    let mut plan = plan(&ring(), Wish::switch_tagged());
    intent(&mut plan, "a:p2").role = fabric::PortRole::Unused;
    assert!(found(&plan).contains(&(Severity::Fatal, K::RoleMismatch, "a:p2".to_owned())), "{:?}", found(&plan));
}
